"""Generated parts of the pages and pictures agree with the committed results."""

from pathlib import Path

import pytest

from omkl_lab import markdown, pictures, readme
from omkl_lab.peers.page import by_stream, read

ROOT = Path(__file__).parents[2]


# Generated parts


@pytest.mark.pages
def test_generated_parts_and_pictures_are_made_from_the_committed_results():
    wanted = readme.pages(ROOT)
    outdated = [path.name for path, text in wanted.items() if path.read_text(encoding="utf-8") != text]
    assert outdated == [], "run make readme"


@pytest.mark.pages
def test_the_readme_shows_the_output_of_the_command_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    assert readme.quoted_run(ROOT) == readme.command_line(), "run make readme"


@pytest.mark.pages
def test_the_readme_lists_every_stream_on_which_a_peer_is_better():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    records = read(ROOT / "results" / "peers.jsonl").values()
    for name in {r["stream"] for r in records if r.get("task") in ("numbers", "drift")}:
        there = [r for r in records if r.get("stream") == name and r.get("mse") is not None]
        ours = min(r["mse"] for r in there if r["learner"] == "omkl GraphMKL")
        theirs = min(r["mse"] for r in there if not r["ours"])
        assert (f"- **{name}**: " in text) == (theirs < ours), name


def test_a_page_without_its_markers_is_refused():
    with pytest.raises(ValueError, match="once each; put them back"):
        markdown.filled("nothing here", {"x": "new"}, "a command")


# Pictures


@pytest.mark.pages
def test_the_peers_picture_names_every_learner_that_ran_on_all_sets():
    results = by_stream(read(ROOT / "results" / "peers.jsonl"))
    drawn = pictures.peers(results)
    named = [summary.name for summary in pictures.learner_summaries(results)]
    assert len(named) > 10
    assert all(name in drawn for name in named)


@pytest.mark.pages
def test_the_picture_of_modules_shows_every_module_of_the_import_contract():
    drawn = pictures.modules(ROOT)
    modules = {module for layer in pictures.layers(ROOT) for module in layer}
    assert modules >= {"cli", "estimators", "engine", "algorithms", "kernels"}
    assert all(f">{module}</text>" in drawn and pictures.purpose(ROOT, module) for module in modules)
