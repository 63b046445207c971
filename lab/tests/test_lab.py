"""Streams, prequential runs, tables of the demo, progress bar and files."""

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

from omkl import algorithms
from omkl.algorithms.settings import Settings
from omkl.online import Online
from omkl_lab import demo, progress
from omkl_lab.configurations import DEFAULTS, NAMES, Configuration, default_configurations, paper_configurations
from omkl_lab.files import write_json
from omkl_lab.prequential import CHUNK, Features, grid, run_once, running_mean_mse, snapshots
from omkl_lab.reproduce.measure import measure
from omkl_lab.reproduce.results import cases
from omkl_lab.streams import Stream, diabetes, mixture

DIVERGING = Configuration("raker", "far too fast", {"learning_rate": 50.0})


def shown(show: Any, *results: Any, **options: Any) -> str:
    out = io.StringIO()
    show(*results, Console(file=out, **{"width": 80, **options}))
    return out.getvalue()


# Streams


@pytest.mark.parametrize("stream", [diabetes(), mixture(700, seed=4)], ids=lambda stream: stream.name)
def test_streams_are_scaled_as_in_the_paper(stream: Stream):
    assert np.linalg.norm(stream.X, axis=1).max() <= 1 + 1e-12
    assert (stream.y.min(), stream.y.max()) == (0, 1)


def test_the_mixture_depends_on_its_seed_alone():
    np.testing.assert_array_equal(mixture(50, seed=1).y, mixture(50, seed=1).y)
    assert not np.array_equal(mixture(50, seed=1).y, mixture(50, seed=2).y)


# Runs


def test_every_algorithm_is_run_and_no_form_twice():
    every = [*paper_configurations(), *default_configurations()]
    papers = {name for name in algorithms.names() if algorithms.get(name).settings is Settings}
    assert papers == set(NAMES) == {configuration.learner for configuration in every}
    assert len({(configuration.learner, configuration.variant) for configuration in every}) == len(every)


def test_a_run_is_the_mean_squared_error_of_predictions_made_before_learning():
    stream = mixture(CHUNK + 200, seed=0)
    configuration = Configuration("sfg-mkl", "commit first", {"commit": "first"})
    settings = configuration.settings(CHUNK + 200)
    online = Online.make("sfg-mkl", settings, 3, 7)
    errors = (online.run(stream.X, stream.y) - stream.y) ** 2
    for history in (False, True):  # stopping to look changes nothing
        run = run_once(configuration, algorithms.problem("sfg-mkl", settings, 3, seed=7), stream, 7, history)
        assert run["mse"] == pytest.approx(np.mean(errors), rel=1e-12)
        assert run["kernels"] == 5
        assert sum(run["weights"]) == pytest.approx(1, rel=1e-3)
        at = grid(len(errors))
        np.testing.assert_allclose(run["curve"], (np.cumsum(errors) / np.arange(1, len(errors) + 1))[at - 1], rtol=1e-4)
        assert len(run["history"]) == (len(snapshots(len(errors))) if history else 0)


def test_shared_features_are_those_a_learner_would_draw_itself():
    settings = Settings.paper(100, n_features=7)
    features = Features(4, seed=3)
    for learner in ("raker", "sfg-mkl"):
        shared = features.assign(algorithms.problem(learner, settings, 4, seed=0), settings)
        np.testing.assert_array_equal(shared.V, algorithms.problem(learner, settings, 4, seed=3).V)


@pytest.mark.parametrize("rows", [1, 2, 99, 101, 12345])
def test_curves_and_snapshots_end_with_the_stream(rows: int):
    for at in (grid(rows), snapshots(rows)):
        assert at[-1] == rows
        assert (np.diff(at) > 0).all()
        assert at[0] >= 1


def test_the_running_mean_uses_only_past_targets():
    y = np.random.default_rng(0).random(50)
    errors = [(y[t] - (y[:t].mean() if t else 0)) ** 2 for t in range(50)]
    assert running_mean_mse(y) == pytest.approx(np.mean(errors))


# Tables


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Any:
    streams = [diabetes(), mixture(300, 0)]
    return measure(
        cases(streams, [*paper_configurations(), *default_configurations()], 1, 0), tmp_path_factory.mktemp("quick"), 2
    )


def test_a_diverged_learner_is_marked_in_its_row(tmp_path: Path):
    results, details = measure(cases([mixture(400, seed=0)], [DIVERGING], 3, 0), tmp_path, 1)
    some = ({**results[0], "variant": "now and then too fast"}, {**details[0], "diverged_runs": 1})
    out = io.StringIO()
    Console(file=out, width=80).print(demo.table([(results[0], details[0]), some]))
    assert re.search(r"Raker +far too fast +diverges ", out.getvalue())
    assert re.search(r"Raker +now and then too fast +1/3 diverge ", out.getvalue())


def test_demo_shows_every_algorithm_in_eighty_columns(quick: Any):
    text = shown(demo.show, *quick)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    for configuration in [*paper_configurations(), *default_configurations()]:
        wanted = 0 if "1-D" in configuration.variant else 2
        assert (
            len(re.findall(rf" {NAMES[configuration.learner]} +{re.escape(configuration.variant)}  ", text)) == wanted
        )
    assert "true kernels: 0.32, 0.79, 2 " in text
    assert DEFAULTS in text


def test_demo_shows_the_published_number_with_the_form_that_matches_it(quick: Any):
    results = [{**r, "dataset": "airfoil", "paper_mse": 0.01283} for r in quick[0] if r["dataset"] == "mixture"]
    details = [{**d, "dataset": "airfoil", "truth": []} for d in quick[1] if d["dataset"] == "mixture"]
    text = shown(demo.show, results, details)
    assert re.search(r"SFG-MKL +commit first, 1-D Delta +12\.83 ", text)
    assert not re.search(r"commit argmax +12\.83", text)
    assert "…" not in text


def test_demo_needs_no_letters_beyond_ascii(quick: Any):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    demo.show(*quick, Console(file=out, width=80))
    out.flush()


# Progress and files


@pytest.mark.parametrize(("terminal", "wait", "visible"), [(True, 0.0, True), (True, 60.0, False), (False, 0.0, False)])
def test_the_bar_appears_on_a_terminal_and_only_after_the_delay(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, wait: float, visible: bool
):
    monkeypatch.setattr(progress, "WAIT", wait)
    out = io.StringIO()
    with progress.Progress(10, Console(file=out, force_terminal=terminal)) as bar:
        for _ in range(10):
            bar.tick(1)
    assert ("running" in out.getvalue()) is visible


def test_the_total_of_the_bar_may_be_set_later(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(progress, "WAIT", 0.0)
    out = io.StringIO()
    with progress.Progress(None, Console(file=out, force_terminal=True), "fetching") as bar:
        bar.update(10, None)
        assert "%" not in out.getvalue()
        bar.update(20, 40)
    assert " 50%" in out.getvalue()


def test_results_are_written_atomically(tmp_path: Path):
    path = tmp_path / "results.json"
    write_json(path, {"a": 1})
    with pytest.raises(ValueError):
        write_json(path, {"a": float("nan")})
    assert json.loads(path.read_text()) == {"a": 1}
    assert os.listdir(tmp_path) == ["results.json"]


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(path.read_text()))
    reader.start()
    write_json(path, {"a": 1})
    reader.join()
    assert path.is_fifo()
    assert json.loads(read[0]) == {"a": 1}
