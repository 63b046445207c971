"""Generated parts of the pages and pictures agree with the committed results."""

from pathlib import Path
from statistics import median

import pytest

from omkl_lab import markdown, pictures, readme
from omkl_lab.comparison import drawings
from omkl_lab.comparison.job import RESULTS, records_of
from omkl_lab.comparison.outcome import PREFIX
from omkl_lab.comparison.results import summarised
from omkl_lab.peers.showing import US

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
    ran = [record for record in records_of(ROOT / RESULTS) if record["status"] == "ok"]
    for name in {record["stream"] for record in ran if record["task"] == "numbers"}:
        there = [record for record in ran if record["stream"] == name and record["rows"] == record["of"]]
        ours = [record for record in there if record["learner"] == US and not record["settings"]]
        if ours:
            newest = [record["mse"] for record in ours if record["version"] == ours[-1]["version"]]
            theirs = min(record["mse"] for record in there if not record["learner"].startswith("omkl"))
            if theirs < median(newest) * 0.999:  # LightGBM with several seeds counts by its median
                assert f"- **{name}**: squared error" in text, name


def test_a_page_without_its_markers_is_refused():
    with pytest.raises(ValueError, match="once each; put them back"):
        markdown.filled("nothing here", {"x": "new"}, "a command")


# Pictures


@pytest.mark.pages
def test_the_peers_picture_names_every_learner_that_ran_on_all_sets():
    records = records_of(ROOT / RESULTS)
    whole, first = summarised(records), summarised(records, PREFIX)
    named = [summary.name for summary in drawings.learner_summaries(whole, first, "microseconds")]
    drawn = drawings.scatter(whole, first, "microseconds", "microseconds")
    assert len(named) > 8
    assert all(name in drawn for name in named)


@pytest.mark.pages
def test_the_picture_of_modules_shows_every_module_of_the_import_contract():
    drawn = pictures.modules(ROOT)
    modules = {module for layer in pictures.layers(ROOT) for module in layer}
    assert modules >= {"cli", "estimators", "engine", "algorithms", "kernels"}
    assert all(f">{module}</text>" in drawn and pictures.purpose(ROOT, module) for module in modules)
