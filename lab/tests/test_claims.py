"""The verdicts on the paper's claims, and other interpretations of its text."""

from pathlib import Path

import pytest
from reproduction_cases import measured, published_line

from omkl_lab.configurations import (
    DEFAULTS,
    MATCHING,
)
from omkl_lab.data.sets import PAPER
from omkl_lab.files import read_lines, write_lines
from omkl_lab.reproduce import claims, readings, tables
from omkl_lab.streams import diabetes

# Claims


def verdicts(found: list[claims.Claim], beginning: str) -> dict[str, bool | None]:
    claim = next(c for c in found if c.quote.startswith(beginning))
    return {v.form: v.holds for v in claim.verdicts}


def test_with_the_published_numbers_every_claim_about_the_tables_holds():
    lines = [published_line(n, a, m.form) for n in PAPER for a, m in MATCHING.items()]
    found = claims.claims(lines, [])
    both = "Both SFG-MKL and SFG-MKL-R"
    for beginning in (f"{both} can", "Using", "SFG-MKL runs", f"{both} run", "SFG-MKL is"):
        assert set(verdicts(found, beginning).values()) == {True}
    assert tables.within(lines) == (20, 20)


def test_a_claim_falls_with_one_cell_and_names_it():
    lines = [published_line(n, a, m.form) for n in PAPER for a, m in MATCHING.items()]
    worse = next(line for line in lines if (line["dataset"], line["algorithm"]) == ("naval", "SFG-MKL"))
    worse |= {"mse": 0.0069}
    found = claims.claims(lines, [])
    claim = next(c for c in found if c.quote.startswith("Both SFG-MKL and SFG-MKL-R can"))
    assert [(v.holds, v.why) for v in claim.verdicts] == [
        (False, "not lower: naval (Raker)"), (True, "lower MSE in all 12 comparisons"),
    ]  # fmt: skip
    assert tables.within(lines) == (19, 20)


def test_results_of_the_library_s_defaults_do_not_affect_the_claims():
    lines = [published_line(n, a, m.form) for n in PAPER for a, m in MATCHING.items()]
    better = [published_line(n, "Raker", DEFAULTS, mse=1e-6, seconds=1e-6) for n in PAPER]
    assert claims.claims([*lines, *better], []) == claims.claims(lines, [])


def test_the_commit_rule_of_the_text_is_judged_and_the_others_are_not_part_of_the_claim():
    lines = [
        published_line("airfoil", "SFG-MKL", "commit argmax", mse=0.0266),
        published_line("airfoil", "SFG-MKL", "commit first"),
    ]
    assert verdicts(claims.claims(lines, []), "In order to speed up") == {
        "SFG-MKL, commit argmax": False, "SFG-MKL, commit first": None,
    }  # fmt: skip


def test_a_diverged_cell_loses_every_comparison_of_mse():
    lines = [published_line(n, a, m.form) for n in PAPER for a, m in MATCHING.items()]
    lines[-2] |= {"mse": None, "diverged": True}
    assert (lines[-2]["algorithm"], lines[-2]["dataset"]) == ("SFG-MKL", "wine_white")
    assert verdicts(claims.claims(lines, []), "Using") == {f"SFG-MKL, {MATCHING['SFG-MKL'].form}": False}
    assert "diverges" in dict(claims.disagreements(lines))["Which node is used after 300 rounds"]


def test_nothing_is_said_about_algorithms_that_were_not_run():
    lines = [published_line("airfoil", a, MATCHING[a].form) for a in ("Raker", "SFG-MKL")]
    assert [title for title, _ in claims.disagreements(lines)] == [
        "Which node is used after 300 rounds", "The distance between two kernels",
    ]  # fmt: skip
    every = [published_line(n, a, m.form) for n in PAPER for a, m in MATCHING.items()]
    assert set(claims.SUBJECTS) == {title for title, _ in claims.disagreements(every)} | {"RFOMKR"}


def test_streams_that_the_paper_does_not_have_make_no_claims(tmp_path: Path):
    results = measured(tmp_path)
    assert all(v.holds is None for c in claims.claims(results, []) for v in c.verdicts)
    assert claims.disagreements(results) == []


def test_lines_of_results_are_written_whole_or_not_at_all(tmp_path: Path):
    path = tmp_path / "results.jsonl"
    write_lines(path, [{"a": 1}])
    with pytest.raises(ValueError):
        write_lines(path, [{"a": 2}, {"a": float("nan")}])
    assert read_lines(path) == [{"a": 1}]
    path.write_text('{"a": 1}\n{"a": ')
    assert read_lines(path) == [{"a": 1}]
    path.write_text('{"a": 1}\nnonsense\n')
    with pytest.raises(ValueError, match=r"results\.jsonl, line 2"):
        read_lines(path)


# Other interpretations


def test_the_mean_of_another_interpretation_is_between_its_extremes():
    line = readings.summary("aware", readings.STABILISERS["aware"], diabetes(), seeds=2)
    assert (line["runs"], line["diverged"]) == (2, 0)
    assert line["least"] < line["mse"] < line["most"]


def test_a_fixed_node_is_used_more_often_than_its_probability():
    found = readings.committed(diabetes())
    assert 0 < found["probability"] < 0.5
    assert 0 < found["moves"] < 1
