"""The documentation: examples in the pages run, the reference is complete, links work, and the site builds."""

import ast
import doctest
import importlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from omkl.encoder import cells, columns
from omkl.stream import records
from omkl.stream.options import Options

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))
RUN = ROOT / "docs" / "run.md"
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # with the command omkl
FROM_ROOT = {"changelog.md", "contributing.md", "security.md", "command_line.md"}  # added by docs/hooks.py


# Examples


@pytest.mark.parametrize("path", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda p: p.name)
def test_examples_in_the_pages_run(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", PATH)
    text = re.sub(r"^```.*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(text, {}, path.name, path.name, 0)
    failed, _ = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test)
    assert not failed


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
        f"({Options().pending} by default)",
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
    wanted = [public(module) for module in ("omkl", "omkl.river", "omkl.fleet", "omkl.fleet.spark")]
    assert named == set.union(*wanted)


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
