"""Columns of many categories: the statistics that take their place, against plain computations of them."""

import copy
import itertools
import json
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command import invoke

import omkl
import omkl.river
from omkl.estimators.columns import Columns, limits_of
from omkl.estimators.id_column import IdColumn, label_code
from omkl.estimators.ids import IdStatistics
from omkl.names import BUCKETS, id_features

RNG = np.random.default_rng(3)
N = 150
IDS = [f"id{k}" for k in RNG.integers(0, 50, N)]
X = RNG.normal(size=(N, 2))
Y = np.round(RNG.normal(size=50)[[int(name[2:]) for name in IDS]] + X[:, 0] + 0.1 * RNG.normal(size=N), 3)
FRAME = pd.DataFrame({"id": IDS, "a": X[:, 0], "b": np.where(RNG.random(N) < 0.1, np.nan, X[:, 1])})
LABELS = [("low", "middle", "high")[int(value > -0.5) + int(value > 0.5)] for value in Y]
ROWS = FRAME.astype({"id": object}).to_dict("records")


def few_features(**options: Any) -> Any:
    return omkl.river.RakerRegressor(n_features=5, seed=0, **options)


# The statistics themselves


def plain_statistics(rows: list[tuple[int, list[float], list[float], float]], at: int) -> list[float]:
    """The features of row `at` = (bucket, inputs, codes, weight), by one pass over the rows before, in plain Python."""
    bucket, inputs, codes, _ = rows[at]
    known = [row for row in rows[:at] if row[3] > 0]
    total = sum(row[3] for row in known)
    overall = [sum(row[3] * row[2][j] for row in known) / total if total else 0.0 for j in range(len(codes))]
    own = [row for row in known if row[0] == bucket]
    count = sum(row[3] for row in own)
    means = [(sum(row[3] * row[2][j] for row in own) + overall[j]) / (count + 1) for j in range(len(codes))]
    weights = [[0.0] * (1 + len(inputs)) for _ in codes]
    variances = [1.0] * (1 + len(inputs))
    for k, (other, x, code, weight) in enumerate(rows[:at]):
        if other != bucket or weight == 0:
            continue
        z, middle = standardised(rows[:k], x), overall_before(rows[:k], len(codes))
        s = sum(v * part * part for v, part in zip(variances, z, strict=True)) + 1 / weight
        for j, model in enumerate(weights):
            error = code[j] - middle[j] - sum(w * part for w, part in zip(model, z, strict=True))
            weights[j] = [w + v * part / s * error for w, v, part in zip(model, variances, z, strict=True)]
        variances = [v - (v * part) ** 2 / s for v, part in zip(variances, z, strict=True)]
    z = standardised(rows[:at], inputs)
    fits = [
        middle + sum(w * p for w, p in zip(model, z, strict=True))
        for middle, model in zip(overall, weights, strict=True)
    ]
    return [math.log1p(count), *itertools.chain(*zip(means, fits, strict=True))]


def overall_before(rows: list[Any], codes: int) -> list[float]:
    total = sum(row[3] for row in rows)
    return [sum(row[3] * row[2][j] for row in rows) / total if total else 0.0 for j in range(codes)]


def standardised(rows: list[Any], x: list[float]) -> list[float]:
    out = [1.0]
    for k, value in enumerate(x):
        seen = [(row[1][k], row[3]) for row in rows if row[3] > 0 and row[1][k] == row[1][k]]
        total = sum(w for _, w in seen)
        mean = sum(v * w for v, w in seen) / total if total else 0.0
        variance = sum(w * (v - mean) ** 2 for v, w in seen) / total if total else 0.0
        out.append(
            max(-4.0, min(4.0, (value - mean) / math.sqrt(variance))) if variance > 0 and value == value else 0.0
        )
    return out


@pytest.mark.parametrize("codes", [1, 2])
def test_statistics_are_those_of_the_rows_before(codes: int):
    rng = np.random.default_rng(codes)
    rows = [(int(rng.integers(0, 4)), [float(rng.normal(7, 3)), float(rng.choice([math.nan, 1.0, 2.0, 5.0]))],
             rng.normal(5, 2, codes).tolist(), float(rng.choice([0.0, 1.0, 1.0, 2.5]))) for _ in range(40)]  # fmt: skip
    rows[30][1][0] = 1e6  # counts as 4 standard deviations
    column = IdColumn("x", codes)
    column.add_inputs(["a", "b", "x=1", *id_features("x", codes)])
    assert column.inputs == ["a", "b"]
    for k, (bucket, inputs, code, weight) in enumerate(rows):
        row = np.array([float(bucket)]), np.array([inputs])
        wanted = plain_statistics(rows, k)
        np.testing.assert_allclose(column.values(*row)[0], wanted, rtol=1e-9, atol=1e-9)
        found = column.learn(*row, np.array([code]), np.array([weight]))
        np.testing.assert_allclose(found[0], wanted, rtol=1e-9, atol=1e-9)


def test_a_row_without_a_value_is_like_one_with_a_new_value():
    column = IdColumn("x", 1)
    column.learn(np.array([7.0]), np.empty((1, 0)), np.array([[3.0]]), None)
    assert column.values(np.array([math.nan, 8.0, 1e9, -1.0]), np.empty((4, 0))).tolist() == [[0.0, 3.0, 3.0]] * 4
    column.learn(np.array([math.nan]), np.empty((1, 0)), np.array([[5.0]]), None)
    assert list(column.buckets) == [7]
    assert column.values(np.array([8.0]), np.empty((1, 0))).tolist() == [[0.0, 4.0, 4.0]]


@pytest.mark.parametrize("used", [0, 40])
def test_buckets_learned_in_a_chunk_are_those_learned_row_by_row_and_can_be_undone(used: int):
    rng = np.random.default_rng(used)
    numbers = np.where(rng.random(300) < 0.1, np.nan, rng.integers(0, 90, 300)).astype(float)
    inputs, codes, weight = rng.normal(size=(300, 3)), rng.normal(size=(300, 2)), rng.integers(0, 3, 300).astype(float)
    single, whole = IdColumn("x", 2), IdColumn("x", 2)
    for column in (single, whole):
        column.add_inputs(["a", "b", "c"])
        column.learn(numbers[:used], inputs[:used], codes[:used], weight[:used])
    saved, before = {k: v.tolist() for k, v in whole.buckets.items()}, whole.before(numbers[used:])
    found = whole.learn(numbers[used:], inputs[used:], codes[used:], weight[used:])
    for k in range(used, 300):
        row = slice(k, k + 1)
        assert single.learn(numbers[row], inputs[row], codes[row], weight[row])[0].tolist() == found[k - used].tolist()
    assert {k: v.tolist() for k, v in single.buckets.items()} == {k: v.tolist() for k, v in whole.buckets.items()}
    assert single.overall.tolist() == whole.overall.tolist()
    whole.restore(before)
    assert {k: v.tolist() for k, v in whole.buckets.items()} == saved
    assert whole.learn(numbers[used:], inputs[used:], codes[used:], weight[used:]).tolist() == found.tolist()


def test_labels_have_codes_that_differ():
    codes = [label_code(k) for k in range(40)]
    assert len(set(codes)) == 40
    assert all(math.hypot(*code) == pytest.approx(1) for code in codes[1:])


# In estimators


def test_a_core_sees_the_statistics_of_the_bucket_of_the_hash():
    model = few_features()
    for x, y in zip(ROWS, Y, strict=True):
        model.learn_one(x, y)
    core = model._core
    bucket = zlib.crc32(IDS[-1].encode()) % BUCKETS
    begun = next(k for k in range(N) if len(set(IDS[: k + 1])) > 32)
    mine = [y for name, y in zip(IDS[begun:], Y[begun:], strict=True) if name == IDS[-1]]
    assert core.ids.columns[0].buckets[bucket][:2] == pytest.approx([len(mine), np.mean(mine)])
    assert core.ids.columns[0].inputs == ["a", "b", "b missing"]
    values = core.row_with_ids(core.encoder.row(ROWS[-1], learn=False))
    assert values["id count of id"] == pytest.approx(math.log1p(len(mine)))
    assert values["id mean of id"] == pytest.approx((sum(mine) + np.mean(Y[begun:])) / (len(mine) + 1))


@pytest.mark.filterwarnings("ignore:column:UserWarning")  # notices are not the subject
@pytest.mark.parametrize("learner", ["Raker", "GraphMKL"])
def test_labels_of_many_categories_are_the_same_row_by_row_and_in_chunks(learner: str):
    single, whole = (getattr(omkl.river, f"{learner}Classifier")(seed=0) for _ in range(2))
    predictions = []
    for x, label in zip(ROWS, LABELS, strict=True):
        predictions.append(single.predict_one(x))
        single.learn_one(x, label)
    assert whole.predict_then_learn(FRAME, LABELS) == predictions
    assert omkl.to_bytes(whole) == omkl.to_bytes(single)
    assert [single.predict_proba_one(x) for x in ROWS[::20]] == whole.predict_proba_many(FRAME[::20]).to_dict("records")
    assert len(single._core.ids.columns[0].names) == 5


def test_weights_count_and_a_weight_of_0_changes_no_statistics():
    counted, zero = few_features(), few_features()
    for x, y in zip(ROWS, Y, strict=True):
        counted.learn_one(x, y, 3.0)
        zero.learn_one(x, y, 0.0)
    frame = omkl.RakerRegressor(n_features=5, random_state=0)
    frame.partial_fit(FRAME, Y, np.full(N, 3.0))
    column, other = counted._core.ids.columns[0], frame.core_.ids.columns[0]
    assert column.overall.tolist() == other.overall.tolist()
    assert column.overall[0] == pytest.approx(3 * (N - next(k for k in range(N) if len(set(IDS[: k + 1])) > 32)))
    assert {key: value.tolist() for key, value in column.buckets.items()} == {
        key: value.tolist() for key, value in other.buckets.items()
    }
    assert not zero._core.ids.columns[0].buckets


@pytest.mark.parametrize("known", [0, 100])
def test_a_chunk_that_cannot_be_learned_leaves_the_statistics(known: int, monkeypatch: pytest.MonkeyPatch):
    model = omkl.RakerRegressor(n_features=5, random_state=0).partial_fit(FRAME[:110], Y[:110])
    before, core = omkl.to_bytes(model), model.core_

    def fail(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(core.online, "run_whole", fail)
    rows = FRAME[110:].assign(id=[f"id{k + known}" for k in range(N - 110)])
    with pytest.raises(MemoryError):
        model.partial_fit(rows, Y[110:])
    monkeypatch.undo()
    assert omkl.to_bytes(model) == before
    model.partial_fit(rows, Y[110:])
    assert omkl.to_bytes(model) != before


def test_copies_learn_on_their_own_and_fresh_ones_know_nothing():
    model = omkl.RakerRegressor(n_features=5, random_state=0).fit(FRAME, Y)
    before = omkl.to_bytes(model)
    other = copy.deepcopy(model).partial_fit(FRAME, Y)
    fresh = model.core_.fresh_copy(np.random.default_rng(0))
    assert not fresh.ids.columns[0].buckets
    fresh.learn_rows(np.ones((3, len(fresh.names))), np.ones(3))
    assert omkl.to_bytes(model) == before != omkl.to_bytes(other)


def test_intervals_of_one_row_are_those_of_a_table_of_it():
    model = omkl.river.GraphMKLRegressor(seed=0)
    table = omkl.GraphMKLRegressor(random_state=0)
    table.partial_fit(FRAME, Y)
    for x, y in zip(ROWS, Y, strict=True):
        model.learn_one(x, y)
    found = model.predict_one(ROWS[5], with_interval=0.8)
    assert table.predict_interval(FRAME[5:6], 0.8)[0].tolist() == [found.lower, found.upper]
    assert table.predict(FRAME[5:6])[0] == model.predict_one(ROWS[5])
    assert model.predict_one(ROWS[5], with_dist=True).mu == model.predict_one(ROWS[5])


def test_a_model_read_from_a_file_continues_as_the_one_written():
    model = few_features()
    for x, y in zip(ROWS[:120], Y, strict=False):
        model.learn_one(x, y)
    again = omkl.from_bytes(omkl.to_bytes(model))
    for each in (model, again):
        each.learn_many(FRAME[120:], Y[120:])
    assert omkl.to_bytes(again) == omkl.to_bytes(model)


COLUMNS = Columns(("a", *id_features("x", 1)), limits_of("graph-mkl"))


def statistics() -> tuple[Any, dict[str, Any]]:
    ids = IdStatistics(1)
    ids.add_features(COLUMNS.names, COLUMNS)
    ids.learn_rows(np.array([[1.0, 5, 5, 5], [2.0, 6, 6, 6]]), COLUMNS, np.ones((2, 1)), None)
    arrays: dict[str, Any] = {}
    return json.loads(json.dumps(ids.encode(arrays))), arrays


@pytest.mark.parametrize(
    "spoil",
    [
        lambda body, arrays: body[0].__setitem__(0, 5), lambda body, arrays: body[0].__setitem__(0, "y"),
        lambda body, arrays: body[0].__setitem__(1, ["b"]), lambda body, arrays: body[0].__setitem__(1, ["a", "a"]),
        lambda body, arrays: body[0].__setitem__(1, ["id mean of x"]),
        lambda body, arrays: body[0].__setitem__(2, [5, 5]), lambda body, arrays: body[0].__setitem__(2, [5, BUCKETS]),
        lambda body, arrays: body[0].__setitem__(2, [5, True]),
        lambda body, arrays: body[0].__setitem__(2, [5]), lambda body, arrays: body.append(body[0]),
        lambda body, arrays: arrays.pop("ids.0.overall"),
        lambda body, arrays: arrays["ids.0.overall"].__setitem__(0, -1.0),
        lambda body, arrays: arrays["ids.0.overall"].__setitem__(1, np.nan),
        lambda body, arrays: arrays["ids.0.scaling"].__setitem__((2, 0), -1.0),
        lambda body, arrays: arrays["ids.0.buckets"].__setitem__((0, 0), -1.0),
        lambda body, arrays: arrays["ids.0.buckets"].__setitem__((0, -1), 1.5),
        lambda body, arrays: arrays["ids.0.buckets"].__setitem__((0, 3), np.inf),
        lambda body, arrays: arrays.__setitem__("ids.0.buckets", arrays["ids.0.buckets"][:, 1:]),
    ],
    ids=itertools.count(),
)  # fmt: skip
def test_statistics_that_cannot_be_are_refused(spoil: Any):
    body, arrays = statistics()
    assert IdStatistics.decode(body, arrays, 1, COLUMNS).encode({}) == body
    spoil(body, arrays)
    if len(body) == 2:
        arrays |= {name.replace("0", "1"): array for name, array in arrays.items()}
    with pytest.raises(ValueError):
        IdStatistics.decode(body, arrays, 1, COLUMNS)


def test_a_feature_that_is_called_like_a_statistic_is_a_number():
    model = few_features()
    for k in range(5):
        model.learn_one({"a": float(k)}, k)
    model.learn_one({"a": 1.0, **dict.fromkeys(id_features("a", 1), 2.5)}, 1.0)
    model.learn_many(
        pd.DataFrame({"a": [1.0], "id count of b": [2.5], "id mean of b": [1.0], "id fit of b": [1.0]}), [2.0]
    )
    assert model._core.ids is None
    first = few_features()
    first.learn_one(dict.fromkeys(id_features("a", 1), 2.5), 1.0)
    assert first._core.ids is None


# At the command line


def test_labels_that_come_late_are_learned_as_those_that_come_at_once(tmp_path: Path):
    """Each row waits for its target until the next one comes: predictions differ, statistics do not."""
    lines, late = [], []
    for k, (x, y) in enumerate(zip(ROWS, Y.tolist(), strict=True)):
        cells = {"key": f"k{k}", **{name: None if cell != cell else cell for name, cell in x.items()}}
        lines.append({**cells, "y": y})
        late += [{**cells, "y": None}, {"key": f"k{k}", "y": y}]
    found = []
    for name, rows in (("once", lines), ("late", late)):
        path, model = tmp_path / f"{name}.jsonl", tmp_path / f"{name}.omkl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        result = invoke("run", path, "--target", "y", "--key", "key", "--model", model, "--learner", "raker")
        assert result.exit_code == 0, result.output
        found.append(omkl.load(model).core_.ids.columns[0])
    once, waited = found
    assert {k: v.tolist() for k, v in once.buckets.items()} == {k: v.tolist() for k, v in waited.buckets.items()}
    assert once.overall.tolist() == waited.overall.tolist()


def test_columns_that_name_the_rows_or_never_change_are_mentioned(tmp_path: Path):
    path = tmp_path / "t.csv"
    pd.DataFrame({
        "row": [f"r{k}" for k in range(1200)], "same": 3, "word": "same", "x": np.arange(1200) % 7,
        "y": np.arange(1200) % 5, "almost": [3] * 999 + [4] * 201,
    }).to_csv(path, index=False)  # fmt: skip
    result = invoke("run", path, "--target", "y", "--learner", "raker", "--task", "regression", "--every", 100)
    assert "column 'row' names the rows: of 200 values no two are the same" in result.output
    for name in ("same", "word"):
        assert f"column '{name}' has had only one value in 1000 rows" in result.output
    assert result.output.count("only one value") == 2
    result = invoke("run", path, "--target", "y", "--learner", "raker", "--task", "regression", "--categorical", "row")
    assert "column 'row' has more than 32 categories; statistics of its targets describe each" in result.output


def test_sensors_are_told_apart_though_there_are_more_than_features():
    rng = np.random.default_rng(0)
    sensor, x = rng.integers(0, 60, 1500), rng.normal(size=1500)
    y = rng.normal(0, 5, 60)[sensor] + rng.normal(0, 2, 60)[sensor] * x + rng.normal(0, 0.5, 1500)
    frame = pd.DataFrame({"x": x, "sensor": [f"s{k}" for k in sensor]})
    errors = omkl.GraphMKLRegressor(random_state=0).predict_then_learn(frame, y) - y
    assert np.sqrt(np.mean(errors[750:] ** 2)) < 0.25 * y.std()


def test_several_passes_over_ids_without_a_pattern_do_not_learn_the_targets_by_heart():
    rng = np.random.default_rng(0)
    ids = np.array([f"id{k}" for k in rng.integers(0, 100, 800)])
    frame, y = pd.DataFrame({"id": ids, "a": rng.normal(size=800)}), rng.normal(size=800)
    for epochs in (1, 4):
        model = omkl.GraphMKLRegressor(epochs=epochs, random_state=0).fit(frame[:400], y[:400])
        assert np.mean((model.predict(frame[400:]) - y[400:]) ** 2) < 1.15 * np.var(y[400:])


@pytest.mark.parametrize("shuffle", [False, True])
def test_later_passes_show_the_statistics_of_the_first(shuffle: bool):
    model = omkl.RakerRegressor(n_features=5, epochs=3, shuffle=shuffle, random_state=0).fit(FRAME, Y)
    once = omkl.RakerRegressor(n_features=5, epochs=1, shuffle=shuffle, random_state=0).fit(FRAME, Y)
    assert model.core_.ids.encode({}) == once.core_.ids.encode({})
    for column, other in zip(model.core_.ids.columns, once.core_.ids.columns, strict=True):
        np.testing.assert_array_equal(column.overall, other.overall)
        assert column.overall[0] == N
    assert not np.array_equal(model.predict(FRAME), once.predict(FRAME))


def test_ctrl_c_while_the_statistics_are_learned_leaves_them_as_they_were(monkeypatch: pytest.MonkeyPatch):
    model = few_features()
    model.learn_many(FRAME[:120].assign(other=IDS[:120][::-1]), Y[:120])
    saved, learn, calls = omkl.to_bytes(model), IdColumn.learn, itertools.count()

    def interrupted(self: IdColumn, *rows: Any) -> Any:
        if next(calls) == 1:  # the first column has learned the rows
            raise KeyboardInterrupt
        return learn(self, *rows)

    monkeypatch.setattr(IdColumn, "learn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.learn_many(FRAME[120:].assign(other=IDS[120:][::-1]), Y[120:])
    assert omkl.to_bytes(model) == saved
    assert next(calls) == 2
