"""Every equation that the code computes stands on a line that ends in its number; the page that lists them."""

import itertools
import re

import pytest

from omkl_lab import equations

SOURCE = equations.ROOT / "src" / "omkl"
WHERE = {
    "z": ["features.py"],
    "4": ["algorithms"],
    "5": ["algorithms"],
    "6": ["algorithms"],
    "7": ["graph.py"],
    "11": ["graph.py"],
    "12": ["algorithms"],
    "13": ["algorithms"],
    "14": ["algorithms"],
    "15": ["algorithms"],
    "16": ["algorithms"],
    "17": ["algorithms"],
    "18a": ["algorithms"],
    "18b": ["algorithms"],
    "22": ["graph.py", "algorithms"],
    "23": ["graph.py", "algorithms"],
    "24": ["algorithms"],
    "25": ["algorithms"],
}
RELATED = ("adaraker", "vaw2", "nogd", "krls_t", "doebe")
NUMBER = r"\(([A-Z]?\d+[ab]?|z)\)"


def lines(*paths):
    for path in paths:
        files = sorted(path.rglob("*.py")) + sorted(path.rglob("*.hpp")) if path.is_dir() else [path]
        for file in files:
            yield from file.read_text(encoding="utf-8").splitlines()


def tags(comment, *paths):
    """Numbers in comments of nothing but numbers, at the end of a line of code."""
    pattern = re.compile(rf"\S.*{comment} ((?:{NUMBER} ?)+)$")
    found = [pattern.search(line) for line in lines(*paths)]
    return {number for match in found if match for number in re.findall(NUMBER, match[1])}


@pytest.mark.parametrize("number", WHERE)
def test_the_equation_is_tagged_where_it_lives(number):
    for place in WHERE[number]:
        assert number in tags("#", SOURCE / place), place


@pytest.mark.parametrize("number", [number for number, places in WHERE.items() if "algorithms" in places])
def test_the_engine_tags_every_equation_of_the_reference_implementation(number):
    assert number in tags("//", SOURCE / "engine")


@pytest.mark.parametrize("algorithm", ["omkr", "rfomkr", "raker", "omkl_gf", "sfg_mkl", "sfg_mkl_r", *RELATED])
def test_an_algorithm_tags_in_c_what_it_tags_in_python(algorithm):
    """The engine shares (4), (5), (14), (17), (18a) in features.hpp and descent.hpp."""
    engine = SOURCE / "engine"
    in_python = tags("#", SOURCE / "algorithms" / f"{algorithm}.py")
    shared = [engine / name for name in ("features.hpp", "descent.hpp", "nodes.hpp")]
    assert in_python
    assert in_python <= tags("//", engine / "algorithms" / f"{algorithm}.hpp", *shared)


PLACES = [SOURCE / name for name in ("kernels.py", "features.py", "graph.py", "losses.py", "algorithms", "engine")]


def test_no_tag_stands_before_the_end_of_its_line():
    for line in lines(*PLACES):
        assert not re.search(rf"(#|//) {NUMBER}(?! ?\((?:[A-Z]?\d+[ab]?|z)\))(?!$)", line), line


def test_no_tag_names_an_equation_that_is_not_in_the_list():
    assert tags("(?:#|//)", *PLACES) == set(WHERE) | set(equations.GRAPH_MKL) | set(equations.RELATED)


# The generated page


def test_the_page_of_equations_is_made_from_the_source():
    page = (equations.ROOT / "docs" / "equations.md").read_text(encoding="utf-8")
    assert page == equations.page(), "run make equations"


def test_every_equation_is_computed_in_both_implementations_or_outside_them():
    python, cpp = equations.tagged(equations.PYTHON), equations.tagged(equations.CPP)
    assert set(python) == set(equations.EQUATIONS) | set(equations.GRAPH_MKL) | set(equations.RELATED)
    before, after = {"z", "7", "11", "G8", "G20"}, {"19", "20", "21", "26", "G47", "G49", "G48"}
    assert set(cpp) == set(python) - before - after


# GraphMKL


def test_the_equations_of_graph_mkl_are_numbered_without_gaps():
    assert list(equations.GRAPH_MKL) == [f"G{k}" for k in range(1, len(equations.GRAPH_MKL) + 1)]


def test_the_page_of_graph_mkl_states_every_equation_in_order():
    page = (equations.ROOT / "docs" / "graph_mkl.md").read_text(encoding="utf-8")
    paragraphs = page.split("\n\n")
    stated = []
    for before, formula in itertools.pairwise(paragraphs):
        if formula.startswith("$$ "):
            stated += re.findall(r"\[\((G\d+)\)\]\(equations\.md#eq-(?=G)", before)
    assert stated == list(equations.GRAPH_MKL)


@pytest.mark.parametrize("part", ["scaling", "memory", "experts", "mixture", "selection", "change", "intervals"])
def test_a_part_of_graph_mkl_tags_in_c_what_it_tags_in_python(part):
    """Feature maps and least squares are the experts'; the target is standardised where a set learns."""
    engine = SOURCE / "engine" / "graph_mkl"
    in_python = tags("#", SOURCE / "algorithms" / "graph_mkl" / f"{part}.py")
    assert in_python - {"G47"} <= tags("//", *(engine / f"{name}.hpp" for name in (part, "learning", "maps")))
