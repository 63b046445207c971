"""The same table through the command line, scikit-learn's and river's interface: the same to the last bit."""

import datetime
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import invoke

import omkl
import omkl.river

N = 24
RNG = np.random.default_rng(5)
NUMBERS = RNG.normal(size=N)
DAYS = [datetime.datetime(2024, 2, 27, 13) + datetime.timedelta(hours=7 * k) for k in range(N)]
WORDS = [["red", "green", "blue", "über", " red", "x=y"][k] for k in RNG.integers(0, 6, N)]


def gaps(cells: Any, *missing: int) -> list[Any]:
    return [None if k in missing else cell for k, cell in enumerate(cells)]


# one column each; what they have in common with a file is what pandas makes of them
COLUMNS: dict[str, Any] = {
    "floats": NUMBERS, "whole": RNG.integers(-5, 5, N), "small whole": RNG.integers(0, 9, N).astype(np.int8),
    "unsigned": RNG.integers(0, 9, N).astype(np.uint16), "single": NUMBERS.astype(np.float32),
    "large": NUMBERS * 1e30, "tiny": NUMBERS * 1e-200, "constant": np.full(N, 3.0), "truth": RNG.random(N) < 0.5,
    "floats with gaps": gaps(NUMBERS, 3, 7, 8), "gap first": gaps(NUMBERS, 0, 1), "gap last": gaps(NUMBERS, N - 1),
    "mostly gaps": gaps(NUMBERS, *range(1, N - 1)), "whole with gaps": pd.array(gaps(range(N), 2, 9), dtype="Int64"),
    "truth with gaps": pd.array(gaps([k % 3 == 0 for k in range(N)], 5), dtype="boolean"),
    "words": WORDS, "words with gaps": gaps(WORDS, 0, 4, 5), "one word": ["same"] * N,
    "late word": ["a"] * (N - 1) + ["b"],
    "many words": [f"w{k}" for k in range(N)], "padded words": [f"  {word} " for word in WORDS],
    "words for nothing": [*gaps(WORDS, 2)[:-2], "NA", "?"], "long words": [word * 50 for word in WORDS],
    "categories": pd.Categorical(WORDS), "categories with gaps": pd.Categorical(gaps(WORDS, 1, 6)),
    "codes": pd.Categorical(RNG.integers(0, 4, N).astype(str)),
    "ordered": pd.Categorical(["low", "high"] * (N // 2), ordered=True),
    "digits": [str(k % 7) for k in range(N)], "decimals": [f"{value:.3f}" for value in NUMBERS],
    "thousands": [f"{1000 + 37 * k:,}" for k in range(N)],
    "numbers and words": [WORDS[k] if k % 5 == 4 else str(k) for k in range(N)],
    "words, then numbers": WORDS[: N // 2] + [str(k) for k in range(N // 2)],
    "numbers, then words": [str(k) for k in range(N // 2)] + WORDS[: N // 2],
    "times": DAYS, "times with gaps": gaps(DAYS, 3, 4), "dates": [day.date() for day in DAYS],
    "times of a zone": pd.Series(DAYS).dt.tz_localize("Europe/Berlin"),
    "times in UTC": pd.Series(DAYS).dt.tz_localize("UTC"),
    "time of day": [f"{k % 24:02d}:00" for k in range(N)], "written times": [day.isoformat() for day in DAYS],
    "written times with zones": [day.isoformat() + "+02:00" for day in DAYS],
    "old times": [day - datetime.timedelta(days=40_000) for day in DAYS],
    "words and times": [WORDS[k] if k % 6 == 5 else DAYS[k].isoformat() for k in range(N)],
    "durations": pd.Series([pd.Timedelta(hours=int(k)) for k in range(N)]), "empty": [None] * N,
    "yes and no": ["yes", "no", "no"] * (N // 3), "true and false": ["true", "False"] * (N // 2),
    "a name:day sin": NUMBERS, "floats missing": NUMBERS, "words=red": NUMBERS, "'quoted'": NUMBERS, "": NUMBERS,
    "10": NUMBERS, "9": NUMBERS[::-1].copy(), "naïve": NUMBERS,
}  # fmt: skip
TOGETHER = [
    ("floats", "words"), ("words", "floats", "times"), ("10", "9"), ("floats", "floats missing", "floats with gaps"),
    ("words", "words=red"), ("gap first", "late word"), ("many words", "times with gaps", "truth"), ("empty", "whole"),
    ("categories", "codes", "digits"), ("written times", "numbers and words", "whole with gaps", "ordered"),
]  # fmt: skip
TABLES = [(name,) for name in COLUMNS] + TOGETHER
assert len(TABLES) >= 60
TARGETS = np.round(np.sin(np.arange(N)) + 0.1 * RNG.normal(size=N), 3)


def frame_of(names: tuple[str, ...]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(COLUMNS[name]) for name in names})


def by_command_line(frame: pd.DataFrame, learner: str, folder: Path, targets: Any = TARGETS) -> list[float]:
    pq.write_table(pa.Table.from_pandas(frame.assign(target=targets), preserve_index=False), folder / "t.parquet")
    out = folder / "p.jsonl"
    result = invoke("run", folder / "t.parquet", "--target", "target", "--task", "regression", "--learner", learner,
                    "--predictions", out, "--model", folder / "m.omkl", "--every", 7)  # fmt: skip
    assert result.exit_code == 0, result.output
    return pd.read_json(out, lines=True, precise_float=True)["prediction"].tolist()


def by_rows(frame: pd.DataFrame, model: Any, targets: Any = TARGETS) -> list[float]:
    predictions = []
    for x, y in zip(frame.to_dict("records"), targets.tolist(), strict=True):
        predictions.append(model.predict_one(x))
        model.learn_one(x, y)
    return predictions


# Columns of many categories: more rows, so that there are more values than have a feature each

LONG = 230
SOME = np.random.default_rng(6)
MANY: dict[str, Any] = {
    "forty": [f"w{k}" for k in SOME.integers(0, 40, LONG)],
    "a hundred": [f"id {k}" for k in SOME.integers(0, 100, LONG)],
    "a hundred with gaps": gaps([f"id {k}" for k in SOME.integers(0, 100, LONG)], 3, 50, 200),
    "once each, then again": [f"v{k % 130}" for k in range(LONG)], "all different": [f"r{k}" for k in range(LONG)],
    "words and more words": ["a", "b"] * 60 + [f" w{k} " for k in SOME.integers(0, 60, LONG - 120)],
    "strange words": [["NA", "true", " x", "7", "inf", "é", "x y"][k % 7] + str(k % 50) * (k % 3) for k in range(LONG)],
    "numbers": SOME.normal(size=LONG),
}  # fmt: skip
LONG_TARGETS = np.round(np.cumsum(SOME.normal(size=LONG)) / 5, 3)


@pytest.mark.filterwarnings("ignore:column:UserWarning")  # notices are not the subject
@pytest.mark.parametrize(
    ("name", "learner"), [("a hundred with gaps", "GraphMKL"), *((name, "Raker") for name in MANY if name != "numbers")]
)
def test_all_three_interfaces_predict_the_same_from_many_categories(name: str, learner: str, tmp_path: Path):
    frame = pd.DataFrame({column: pd.Series(MANY[column]) for column in (name, "numbers")})
    expected = by_command_line(frame, {"Raker": "raker", "GraphMKL": "graph-mkl"}[learner], tmp_path, LONG_TARGETS)
    river, whole = (getattr(omkl.river, f"{learner}Regressor")(seed=0) for _ in range(2))
    assert by_rows(frame, river, LONG_TARGETS) == expected
    assert whole.predict_then_learn(frame, LONG_TARGETS).tolist() == expected
    assert omkl.to_bytes(whole) == omkl.to_bytes(river)
    pieces = getattr(omkl, f"{learner}Regressor")(random_state=0)
    edges = itertools.pairwise([0, 1, 2, 35, 36, 37, 90, 131, 132, LONG])
    parts = [pieces.predict_then_learn(frame[a:b], LONG_TARGETS[a:b]) for a, b in edges]
    assert np.concatenate(parts).tolist() == expected
    again = frame[::7].to_dict("records")
    assert [river.predict_one(x) for x in again] == pieces.predict(frame[::7]).tolist()
    made = [feature for feature in river._core.names if name in feature]
    assert ("id mean of " + name in made) == (name != "all different")
    assert len(made) <= 5 or name in ("forty", "words and more words", "strange words")


LABELS = np.array(["low", "middle", "high"], dtype=object)[np.arange(N) % 3]


@pytest.mark.filterwarnings("ignore:column:UserWarning")  # notices are not the subject
@pytest.mark.parametrize("names", [("floats", "words"), ("times with gaps", "late word", "truth")], ids=" + ".join)
def test_all_three_interfaces_learn_the_same_with_graph_mkl(names: tuple[str, ...], tmp_path: Path):
    frame = frame_of(names)
    expected = by_command_line(frame, "graph-mkl", tmp_path)
    river, sklearn = omkl.river.GraphMKLRegressor(seed=0), omkl.GraphMKLRegressor(random_state=0)
    assert by_rows(frame, river) == expected
    intervals = sklearn.predict_interval_then_learn(frame, TARGETS)
    assert intervals[:, 0].tolist() == expected
    ends = pd.read_json(tmp_path / "p.jsonl", lines=True, precise_float=True)[["lower", "upper"]]
    np.testing.assert_array_equal(intervals[1:, 1:], ends[1:])  # the first one is not finite in the file
    assert omkl.to_bytes(river._core.online) == omkl.to_bytes(sklearn.core_.online)


@pytest.mark.filterwarnings("ignore:column:UserWarning")  # notices are not the subject
@pytest.mark.parametrize("learner", ["Raker", "GraphMKL"])
def test_labels_of_tables_are_the_same_in_both_apis(learner: str):
    frame = frame_of(("floats with gaps", "words", "times"))
    river, whole = (getattr(omkl.river, f"{learner}Classifier")(seed=0) for _ in range(2))
    single = []
    for x, label in zip(frame.to_dict("records"), LABELS, strict=True):
        single.append(river.predict_one(x))
        river.learn_one(x, label)
    assert whole.predict_then_learn(frame, LABELS) == single
    assert omkl.to_bytes(whole) == omkl.to_bytes(river)
    sklearn = getattr(omkl, f"{learner}Classifier")(random_state=0)
    parts = [
        sklearn.predict_proba_then_learn(frame[a:b], LABELS[a:b], classes=list(LABELS[:3])) for a, b in [(0, 9), (9, N)]
    ]
    assert np.isfinite(np.concatenate(parts)).all()
    assert set(sklearn.predict(frame)) <= set(LABELS)


def test_a_table_that_cannot_be_learned_changes_nothing(monkeypatch: pytest.MonkeyPatch):
    frame = frame_of(("floats", "one word"))
    model = omkl.RakerRegressor(random_state=0).partial_fit(frame[:9], TARGETS[:9])
    before = omkl.to_bytes(model)
    new = frame[9:].assign(**{"one word": [f"new {k // 2 % 5}" for k in range(N - 9)]})
    with pytest.raises(ValueError, match="infinity"):
        model.partial_fit(new, [*TARGETS[10:], np.inf])
    learn, calls = type(model.core_).learn_rows, itertools.count()

    def fail_later(core: Any, X: Any, y: Any, weight: Any = None) -> Any:
        if next(calls) == 3:
            raise MemoryError("no memory for the fourth part")
        return learn(core, X, y, weight)

    monkeypatch.setattr(type(model.core_), "learn_rows", fail_later)
    with pytest.raises(MemoryError):
        model.partial_fit(new, TARGETS[9:])
    monkeypatch.undo()
    assert next(calls) > 3
    assert omkl.to_bytes(model) == before
    assert model.partial_fit(new, TARGETS[9:]).n_samples_seen_ == N


def test_an_array_is_a_table_without_names_for_an_estimator_of_tables():
    frame = frame_of(("floats", "whole")).assign(whole=[None, *range(N - 1)])
    model = omkl.GraphMKLRegressor(random_state=0).fit(frame, TARGETS)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        predictions = model.predict(frame.to_numpy(dtype=float))
    np.testing.assert_array_equal(predictions, model.predict(frame))


def test_missing_values_of_an_array_are_accepted_by_graph_mkl_alone():
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[::7, 1] = np.nan
    model = omkl.GraphMKLRegressor(random_state=0).fit(X, X[:, 0])
    assert np.isfinite(model.predict(X)).all()
    with pytest.raises(ValueError, match="NaN"):
        omkl.RakerRegressor().fit(X, X[:, 0])


@pytest.mark.filterwarnings("ignore:column:UserWarning")  # notices are not the subject
@pytest.mark.parametrize("names", TABLES, ids=" + ".join)
def test_all_three_interfaces_predict_the_same(names: tuple[str, ...], tmp_path: Path):
    frame = frame_of(names)
    expected = by_command_line(frame, "raker", tmp_path)
    if "codes" not in names and "ordered" not in names:  # a dictionary does not say that digits are categories
        assert by_rows(frame, omkl.river.RakerRegressor(seed=0)) == expected
    model = omkl.RakerRegressor(random_state=0)
    assert model.predict_then_learn(frame, TARGETS).tolist() == expected
    pieces = omkl.RakerRegressor(random_state=0)
    edges = itertools.pairwise([0, 1, 2, 5, 13, N])
    parts = [pieces.predict_then_learn(frame[a:b], TARGETS[a:b]) for a, b in edges]
    assert np.concatenate(parts).tolist() == expected
    river = omkl.river.RakerRegressor(seed=0)
    assert river.predict_then_learn(frame, TARGETS).tolist() == expected
    if names != ("empty",):  # there is nothing to predict from
        np.testing.assert_array_equal(river.predict_many(frame), model.predict(frame))
