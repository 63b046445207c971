"""The laboratory: streams, prequential scores, tables, the generated page and the examples in the README."""

import doctest
import io
import json
import os
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from omkl.lab import bench, demo, equations, patience, published
from omkl.lab.entrants import NAMES, Entrant, entrants
from omkl.lab.files import write_json
from omkl.lab.prequential import CHUNK, Score, running_mean_mse, score
from omkl.lab.streams import Stream, diabetes, mixture, read
from omkl.online import Online
from omkl.settings import LEARNERS, Settings

ROOT = equations.ROOT
DIVERGING = Entrant("raker", "far too fast", {"learning_rate": 50.0})


def shown(show: Any, results: Any, **options: Any) -> str:
    out = io.StringIO()
    show(results, Console(file=out, **{"width": 80, **options}))
    return out.getvalue()


# Streams


@pytest.mark.parametrize("stream", [diabetes(), mixture(700, seed=4)], ids=lambda stream: stream.name)
def test_streams_are_scaled_as_in_the_paper(stream: Stream):
    assert np.linalg.norm(stream.X, axis=1).max() <= 1 + 1e-12
    assert (stream.y.min(), stream.y.max()) == (0, 1)


def test_the_mixture_depends_on_its_seed_alone():
    np.testing.assert_array_equal(mixture(50, seed=1).y, mixture(50, seed=1).y)
    assert not np.array_equal(mixture(50, seed=1).y, mixture(50, seed=2).y)


def test_read_takes_the_last_column_as_the_target(tmp_path: Path):
    (tmp_path / "small.csv").write_text("a,b,target\n3,4,10\n0,1,30\n")
    stream = read(tmp_path / "small.csv")
    assert stream.name == "small"
    np.testing.assert_allclose(stream.X, [[0.6, 0.8], [0, 0.2]])
    np.testing.assert_allclose(stream.y, [0, 1])


# Scores


def test_everybody_enters_and_no_form_twice():
    assert set(LEARNERS) == set(NAMES) == {entrant.learner for entrant in entrants()}
    assert len({(entrant.learner, entrant.variant) for entrant in entrants()}) == len(entrants())


def test_score_is_the_mean_squared_error_of_predictions_made_before_learning():
    stream = mixture(CHUNK + 200, seed=0)
    found = score(Entrant("sfg-mkl", "commit first", {"commit": "first"}), stream, sets=2, seed=7)
    errors = []
    for seed in (7, 8):
        online = Online.make("sfg-mkl", Settings.paper(CHUNK + 200, commit="first"), 3, seed)
        errors.append(np.mean((online.run(stream.X, stream.y) - stream.y) ** 2))
    assert found["mse"] == pytest.approx(np.mean(errors), rel=1e-12)
    assert found["kernels"] == 5
    assert sum(found["weights"] or []) == pytest.approx(1)


def test_running_mean_has_seen_only_the_past():
    y = np.random.default_rng(0).random(50)
    errors = [(y[t] - (y[:t].mean() if t else 0)) ** 2 for t in range(50)]
    assert running_mean_mse(y) == pytest.approx(np.mean(errors))


def test_a_diverged_learner_is_a_row_that_says_so():
    stream = mixture(400, seed=0)
    rows: list[int] = []
    lost = score(DIVERGING, stream, sets=3, tick=rows.append)
    assert (lost["diverged"], lost["mse"], lost["weights"]) == (3, None, None)
    assert sum(rows) == 3 * 400
    some: Score = {**lost, "diverged": 1, "variant": "now and then too fast"}
    result: demo.StreamResult = {
        "name": "s", "about": "a", "rows": 400, "features": 3, "truth": [], "mean_mse": 1.0, "scores": [lost, some],
    }  # fmt: skip
    out = io.StringIO()
    Console(file=out, width=80).print(demo.table(result))
    assert re.search(r"Raker +far too fast +diverges ", out.getvalue())
    assert re.search(r"Raker +now and then too fast +1/3 diverge ", out.getvalue())


def test_a_learner_that_blew_up_without_overflow_has_diverged():
    far = Stream("far", "", mixture(3, seed=0).X, np.array([0.0, 1.0, 0.5]))
    assert score(DIVERGING, far, sets=1)["diverged"] == 1


# Tables


@pytest.fixture(scope="module")
def quick() -> demo.Results:
    return demo.run(quick=True, seed=0)


def test_demo_ticks_as_many_rows_as_it_says():
    rows: list[int] = []
    demo.run(quick=True, seed=0, tick=rows.append)
    assert sum(rows) == demo.rows_to_run(quick=True)


def test_demo_shows_every_algorithm_in_eighty_columns(quick: demo.Results):
    text = shown(demo.show, quick)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    for entrant in entrants():
        assert len(re.findall(rf" {NAMES[entrant.learner]} +{re.escape(entrant.variant)} ", text)) == 2
    assert "true kernels: 0.32, 0.79, 2 " in text


def test_demo_needs_no_letters_beyond_ascii(quick: demo.Results):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    demo.show(quick, Console(file=out, width=80))
    out.flush()


def test_bench_times_every_algorithm_and_fits_eighty_columns(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bench, "ROWS", 20)
    monkeypatch.setattr(bench, "REPLAYS", {"chunk": 2, "row": 1, "numpy": 1})
    ticks: list[int] = []
    results = bench.run(ticks.append)
    assert [timing["algorithm"] for timing in results["timings"]] == list(NAMES.values())
    assert all(timing[way] > 0 for timing in results["timings"] for way in ("chunk", "row", "numpy"))
    assert len(ticks) == bench.ticks()
    assert "…" not in shown(bench.show, results)


def test_published_numbers_stand_beside_ours(tmp_path: Path):
    rng = np.random.default_rng(0)
    for name in published.DATA:
        np.savetxt(tmp_path / f"{name}.csv", rng.random((30, 3)), delimiter=",", header="a,b,target", comments="")
    results = published.run(tmp_path, sets=1, console=Console(file=io.StringIO()))
    text = shown(published.show, json.loads(json.dumps(results)))
    assert "…" not in text
    assert text.count("published") == len(NAMES)
    assert re.search(r"SFG-MKL-R +published +12\.81 +21\.38 +20\.20 +4\.36", text)


# Progress and files


@pytest.mark.parametrize(("terminal", "wait", "bar"), [(True, 0.0, True), (True, 60.0, False), (False, 0.0, False)])
def test_the_bar_appears_on_a_terminal_and_only_after_a_while(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, wait: float, bar: bool
):
    monkeypatch.setattr(patience, "WAIT", wait)
    out = io.StringIO()
    with patience.Patience(10, Console(file=out, force_terminal=terminal)) as waiting:
        for _ in range(10):
            waiting.tick(1)
    assert ("running" in out.getvalue()) is bar


def test_results_are_written_whole_or_not_at_all(tmp_path: Path):
    path = tmp_path / "results.json"
    write_json(path, {"a": 1})
    with pytest.raises(ValueError):
        write_json(path, {"a": float("nan")})
    assert json.loads(path.read_text()) == {"a": 1}
    assert os.listdir(tmp_path) == ["results.json"]


def test_a_pipe_stays_a_pipe(tmp_path: Path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(path.read_text()))
    reader.start()
    write_json(path, {"a": 1})
    reader.join()
    assert path.is_fifo()
    assert json.loads(read[0]) == {"a": 1}


# The generated page and the README


def test_equations_page_is_up_to_date():
    page = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")
    assert page == equations.page(), "run make equations"


def test_every_equation_is_computed_in_both_texts_or_before_the_rounds_begin():
    python, cpp = equations.tagged(equations.PYTHON), equations.tagged(equations.CPP)
    assert set(python) == set(equations.EQUATIONS)
    assert set(cpp) == set(equations.EQUATIONS) - {"3", "7", "11"}


@pytest.mark.parametrize("path", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda p: p.name)
def test_examples_in_the_pages_run(path: Path):
    text = re.sub(r"^```.*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(text, {}, path.name, path.name, 0)
    failed, _ = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test)
    assert not failed
