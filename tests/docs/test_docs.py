"""The documentation: examples in the pages run, the reference is complete, links work, and the site builds."""

import ast
import contextlib
import importlib
import importlib.util
import io
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from browser import browser_needed, open_page

from omkl.encoder import cells, columns
from omkl.fleet.storage import FIRST_ROWS
from omkl.stream import linear, memory, records
from omkl.stream.options import Options

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))
RUN = ROOT / "docs" / "run.md"
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # with the command omkl
FROM_ROOT = {"changelog.md", "contributing.md", "security.md", "command_line.md"}  # added by docs/hooks.py


# Examples


PAGES_WITH_CODE = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SKETCHES = {"CONTRIBUTING.md", "scaling.md"}  # whose examples need data or files of the reader; others are run


def python_blocks(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return re.findall(r"^```(?:python|py|pycon)\b[^\n]*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def test_blocks_of_code_are_found():
    assert len(python_blocks(ROOT / "README.md")) == 4
    assert sum(len(python_blocks(path)) for path in PAGES_WITH_CODE) >= 35


@pytest.mark.parametrize("path", PAGES_WITH_CODE, ids=lambda p: p.name)
def test_a_block_that_is_copied_with_its_outputs_is_code(path: Path):
    for block in python_blocks(path):
        compile(block, path.name, "exec")


def steps_of(block: str) -> Iterator[tuple[ast.stmt, str]]:
    """The statements of a block, and the output of each: the comment right below it; other comments stand above."""
    lines = block.splitlines()
    for statement in ast.parse(block).body:
        assert statement.end_lineno is not None
        below = itertools.takewhile(lambda line: line.startswith("#"), lines[statement.end_lineno :])
        yield statement, "\n".join(line.removeprefix("#").removeprefix(" ") for line in below)


def output_of(statement: ast.stmt, names: dict[str, Any]) -> str:
    """What a statement prints, the value of an expression, or the error."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            if isinstance(statement, ast.Expr):
                value = eval(compile(ast.Expression(statement.value), "page", "eval"), names)
                if value is not None:
                    print(repr(value))
            else:
                exec(compile(ast.Module([statement], []), "page", "exec"), names)
        except ValueError as error:
            print(f"ValueError: {error}")
    return printed.getvalue()


@pytest.mark.parametrize("path", [p for p in PAGES_WITH_CODE if p.name not in SKETCHES], ids=lambda p: p.name)
def test_examples_in_the_pages_run(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", PATH)
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in python_blocks(path):
        for statement, shown in steps_of(block):
            assert output_of(statement, names).split() == shown.split(), ast.unparse(statement)


def test_an_output_that_is_not_the_one_shown_is_noticed():
    block = "x = 1\nx + 1\n# 2\n\n# not an output\nprint(x)\n# 5\nint('a')\n# ValueError: invalid\n"
    names: dict[str, Any] = {}
    found = [output_of(statement, names).split() == shown.split() for statement, shown in steps_of(block)]
    assert found == [True, True, False, False]


def dialogue() -> list[tuple[str, str]]:
    """The commands on the page, and their output as shown."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"```console\n(.*?)```", RUN.read_text(), re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], ""))
            else:
                command, printed = found[-1]
                goes_on = line.startswith("> ")
                found[-1] = (f"{command}\n{line[2:]}", printed) if goes_on else (command, f"{printed}{line}\n")
    return found


def test_what_the_page_about_runs_shows_is_what_happens(tmp_path: Path):
    steps = dialogue()
    assert len(steps) > 15
    script = "\n".join(f"{{\n{command}\n}} > {k}.txt 2>&1" for k, (command, _) in enumerate(steps))
    env = os.environ | {"PATH": PATH}
    subprocess.run(["bash", "-c", script], cwd=tmp_path, env=env, timeout=600)
    for k, (command, printed) in enumerate(steps):
        happened = "".join(f"{line.rstrip()}\n" for line in (tmp_path / f"{k}.txt").read_text().splitlines())
        assert happened == printed, command


def test_the_limits_on_the_page_about_runs_are_the_limits():
    text = " ".join(RUN.read_text().split())
    for limit in (
        f"at most {columns.MAX_CATEGORIES};", f"at most {columns.MAX_FEATURES} features",
        f"above {columns.LARGEST:.0e}".replace("+", ""), f"have {records.MAX_RECORD >> 20} MiB",
        f"({cells.SNIFF} at most)", f"({Options().every} by default). If a run is killed",
        f"({Options().pending} by default)", f"by 1 part in {linear.GROWTH} or by {linear.MAX_WAIT}",
        f"more than {linear.MAX_FULL} features it is", f"from {memory.shown(memory.NOTICE_BYTES)} on, a notice",
        f"with more than {FIRST_ROWS} rows",
    ):  # fmt: skip
        assert limit in text


# Pictures


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "pictures").glob("*.svg")), ids=lambda path: path.name)
def test_a_picture_is_well_formed_and_fetches_nothing(path: Path):
    tree = ElementTree.parse(path)
    assert tree.getroot().find("{http://www.w3.org/2000/svg}title") is not None
    text = path.read_text(encoding="utf-8")
    assert "href" not in text
    assert "url(" not in text


# Links of the pages in the root; mkdocs checks the others


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_links_of_the_root_lead_somewhere(name: str):
    for link in re.findall(r"\]\(([^)\s]+)\)", (ROOT / name).read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        assert not path.startswith("http"), f"{link}: nothing here needs the network"
        assert (ROOT / path).exists(), link
        if anchor:
            headings = re.findall(r"^#+ (.*)$", (ROOT / path).read_text(encoding="utf-8"), flags=re.MULTILINE)
            assert anchor in [re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings], link


# The site


def nav() -> list[str]:
    """Every page that mkdocs.yml names, in its order."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:")[1]
    return re.findall(r"([\w/]+\.md)", text)


def test_every_page_is_in_the_navigation_once():
    assert sorted(nav()) == sorted({*PAGES, *FROM_ROOT})


@pytest.mark.parametrize("name", PAGES)
def test_a_list_within_a_list_is_indented_by_four_or_the_site_shows_one_list(name: str):
    text = re.sub(
        r"^```.*?^```", "", (ROOT / "docs" / name).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    assert not re.findall(r"^ {1,3}(?:[-*]|\d+\.) .*$", text, flags=re.MULTILINE)


def public(module: str) -> set[str]:
    """The names that a module offers; those of omkl.fleet.spark are read from its source, since it needs pyspark."""
    if module == "omkl.fleet.spark":
        source = (ROOT / "src" / "omkl" / "fleet" / "spark.py").read_text(encoding="utf-8")
        found = re.search(r"^__all__ = (\[.*?\])", source, flags=re.MULTILINE | re.DOTALL)
        assert found is not None
        names = ast.literal_eval(found[1])
    else:
        names = importlib.import_module(module).__all__
    return {f"{module}.{name}" for name in names}


def test_the_reference_names_everything_public():
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("reference*.md"))
    named = set(re.findall(r"heading: (\S+)", text))
    wanted = [public(module) for module in ("omkl", "omkl.river", "omkl.fleet", "omkl.fleet.spark", "omkl.datasets")]
    assert named == set.union(*wanted)


# The words by which people look for something, and the page that each must find first
SEARCHES = {
    "drift": ["drift"],
    "delayed_labels": ["delay"],
    "deploy": ["deploy"],
    "time_series": ["lag", "time series", "forecast"],
    "intervals": ["confidence", "interval"],
    "tutorial_scikit_learn": ["GridSearchCV", "sklearn"],
    "tutorial_river": ["river"],
    "tables": ["missing values", "categories", "NaN"],
    "save_and_load": ["save", "pickle"],
    "scaling": ["Spark"],
    "kernels": ["weights"],
    "budget": ["memory"],
    "classification": ["imbalanced", "class_weight"],
    "explain": ["explain", "feature importance"],
}


@pytest.mark.slow
@browser_needed
def test_searching_the_site_finds_the_page_that_answers(browser: Any):
    """In the search box of the built site, as its own search ranks pages."""
    site = ROOT / "build" / "site"
    if not (site / "index.html").exists():
        pytest.skip("the site is not built; make docs builds it")
    open_page(browser, site / "index.html", 1400)
    there = {page: searches for page, searches in SEARCHES.items() if (ROOT / "docs" / f"{page}.md").exists()}
    found = {words: found_first(browser, words) for searches in there.values() for words in searches}
    assert found == {words: page for page, searches in there.items() for words in searches}


def found_first(browser: Any, words: str) -> str:
    """The first page that the search box lists for these words."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    links = "return [...document.querySelectorAll('.md-search-result__item > a')].map((each) => each.href)"
    box = browser.find_element(By.CSS_SELECTOR, "input.md-search__input")
    box.click()
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys(Keys.DELETE)
    WebDriverWait(browser, 30).until(lambda b: not b.execute_script(links))
    box.send_keys(words)
    WebDriverWait(browser, 30).until(lambda b: b.execute_script(links))
    return Path(browser.execute_script(links)[0].split("#")[0].split("?")[0]).stem


SESSION = """>>> def double(x):
...     return 2 * x
>>> double(4)
8
"""


@pytest.mark.slow
@browser_needed
def test_what_the_site_copies_of_a_session_is_code(browser: Any, tmp_path: Path):
    from pygments import highlight, lexers
    from pygments.formatters import HtmlFormatter

    page = tmp_path / "page.html"
    style = (ROOT / "docs" / "site.css").read_text(encoding="utf-8")
    code = highlight(SESSION, lexers.get_lexer_by_name("pycon"), HtmlFormatter(wrapcode=True))
    page.write_text(f"<!doctype html><meta charset='utf-8'><style>{style}</style>{code}", encoding="utf-8")
    open_page(browser, page)
    # as the button of the theme does it
    copied = browser.execute_script("""const code = document.querySelector("code");
        code.setAttribute("data-md-copying", "");
        const text = code.innerText;
        code.removeAttribute("data-md-copying");
        return text;""")
    selected = browser.execute_script("""getSelection().selectAllChildren(document.querySelector("code"));
        return getSelection().toString();""")
    for text in (copied, selected):
        assert [line for line in text.splitlines() if line.strip()] == [
            "def double(x):", "    return 2 * x", "double(4)"]  # fmt: skip


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_needs_no_network(tmp_path: Path):
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed; make docs brings it")
    run = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "WARNING" not in run.stderr
    for name in ("reference", "reference_river"):  # parameters that are declared once, in the module of the algorithm
        assert "Random features per kernel" in (tmp_path / f"{name}.html").read_text(encoding="utf-8")
    for path in tmp_path.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        assert not re.findall(r'<(?:script|img|link)[^>]*(?:src|href)="(https?:[^"]*)"', page), path
