"""A pooled fleet: row by row as its formulas say, better for keys with few rows, the same in batches and from files."""

import tracemalloc

import numpy as np
import pytest

import omkl
from omkl import persist
from omkl.errors import DivergenceError
from omkl.fleet import Fleet, PooledFleet, codec, corrections

SMALL = omkl.SFGMKLRegressor(n_features=6)
POOL = omkl.RakerRegressor(n_features=20)


def rows_of(keys, rows, seed=0):
    rng = np.random.default_rng(seed)
    key, X = rng.integers(keys, size=rows), rng.normal(size=(rows, 3))
    slope = np.random.default_rng(99).normal(size=keys)
    return [f"key {k}" for k in key], X, np.sin(2 * X[:, 0]) + (X[:, 1] + 1) * slope[key] + 0.1 * rng.normal(size=rows)


def one_by_one(keys, X, y, fits):
    """The formulas, a row at a time: an independent implementation with a ridge regression solved anew for each row.

    `fits` are the rows after which the shares change. Also how many rows the pool alone predicted, of known keys.
    """
    pool = omkl.RakerRegressor(n_features=20, random_state=4)
    own = {key: Fleet(SMALL, seed=4).fresh(key, 3) for key in set(keys)}
    scaler = corrections.InputScaler(3)
    history = {key: [] for key in keys}
    evidence = []  # (age, expert predictions, residual, number of the fit)
    shares, number, out = np.zeros((corrections.AGES, 2)), 0, []
    losses, trusted, alone = [], True, 0  # losses: of the pool, of the corrected prediction, number of the fit
    for t, (key, x, target) in enumerate(zip(keys, X, y, strict=True)):
        p = pool.predict_then_learn(x[None], target[None])[0]
        h = own[key].predict_then_learn(x[None], target[None])[0]
        z = np.append(1.0, scaler.learn(x[None].copy())[0] * np.sqrt(3))
        past = history[key]
        n = len(past)
        weights = (1 - 1 / 2000) ** np.arange(n)[::-1]
        Z, r = np.array([row[0] for row in past]).reshape(n, 4), np.array([row[1] for row in past])
        w = np.linalg.solve(Z.T @ (weights[:, None] * Z) + 3.0 * np.eye(4), Z.T @ (weights * r)) if n else np.zeros(4)
        linear = w @ z
        age = n.bit_length()
        a, b = shares[age] if n else (0.0, 0.0)
        q = p + a * linear + b * (h - p - linear)
        out.append(q if trusted else p)
        past.append((z, target - p))
        if n:
            alone += not trusted
            losses.append(((target - p) ** 2, (target - q) ** 2, number))
            evidence.append((age, np.array([linear, h - p - linear]), target - p, number))
        if t + 1 in fits:
            weights = [(1 - 1 / 1600) ** (number - k) for *_, k in losses]
            of_pool, of_corrected = (sum(w * each[k] for w, each in zip(weights, losses, strict=True)) for k in (0, 1))
            trusted = of_corrected < of_pool
            before = np.zeros(2)
            for age in range(corrections.AGES):
                mine = [(e, r, (1 - 1 / 1600) ** (number - k)) for at, e, r, k in evidence if at == age]
                S = sum((v * np.outer(e, e) for e, _, v in mine), np.zeros((2, 2)))
                ridge = 20 * np.diag(np.diag(S)) / max(sum(v for *_, v in mine), 1)
                ridge += 1e-12 * (np.trace(S) + 1e-300) * np.eye(2)
                moment = sum((v * e * r for e, r, v in mine), np.zeros(2))
                before = shares[age] = np.clip(np.linalg.solve(S + ridge, moment + ridge @ before), 0, 1)
            number += 1
    return out, alone


@pytest.mark.parametrize("differ", [True, False])
def test_predictions_are_those_of_the_formulas(differ):
    keys, X, y = rows_of(12, 600)
    if not differ:
        y = np.sin(2 * X[:, 0]) + 0.3 * np.random.default_rng(1).normal(size=600)
    fits = {1, 2, 4, 8, 16, *range(32, 601, 32)}
    fleet = PooledFleet(SMALL, POOL, seed=4)
    predictions = np.concatenate([fleet.learn_rows(keys[a:b], X[a:b], y[a:b]) for a, b in ((0, 250), (250, 600))])
    expected, alone = one_by_one(keys, X, y, fits)
    np.testing.assert_allclose(predictions, expected, rtol=1e-8, atol=1e-8)
    assert alone < 100 if differ else alone > 300  # corrections are not believed where keys do not differ


def test_keys_with_many_rows_and_nothing_in_common_are_predicted_as_well_as_by_their_own_models():
    rng = np.random.default_rng(8)
    key, X, slope = rng.integers(20, size=8000), rng.normal(size=(8000, 3)), rng.normal(size=(20, 3))
    y = (slope[key] * X).sum(axis=1) + np.sin(2 * (slope[key][:, ::-1] * X).sum(axis=1)) + 0.3 * rng.normal(size=8000)
    pooled, alone, light = (
        np.mean((fleet.learn_rows(key, X, y) - y) ** 2)
        for fleet in (PooledFleet(seed=1), Fleet("graph-mkl", seed=1), PooledFleet(omkl.SFGMKLRegressor(), seed=1))
    )
    assert pooled < 1.02 * alone < light


def test_models_of_keys_stay_within_the_memory_that_is_given():
    keys, X, y = rows_of(60, 3000)
    free, limited = PooledFleet(seed=4), PooledFleet(seed=4, memory=3_000_000)
    for part in (slice(0, 1500), slice(1500, 3000)):
        assert (
            limited.learn_rows(keys[part], X[part], y[part]).tolist()
            == free.learn_rows(keys[part], X[part], y[part]).tolist()
        )
    assert free.fleet.nbytes_in_memory > 6_000_000
    assert limited.fleet.nbytes_in_memory <= 3_000_000
    assert persist.from_bytes(persist.to_bytes(limited)).fleet.memory == 3_000_000


def test_predictions_do_not_depend_on_the_batches_and_files_continue_exactly(tmp_path):
    keys, X, y = rows_of(12, 700)
    whole = PooledFleet(SMALL, POOL, seed=4)
    expected = whole.learn_rows(keys, X, y)
    fleet, out = PooledFleet(SMALL, POOL, seed=4), []
    for a, b in ((0, 1), (1, 3), (3, 300), (300, 301), (301, 700)):
        omkl.save(fleet, tmp_path / "fleet.omkl")
        fleet = omkl.load(tmp_path / "fleet.omkl")
        out += fleet.predict_rows(keys[a : a + 1], X[a : a + 1]).tolist() if a == 300 else []
        out += fleet.learn_rows(keys[a:b], X[a:b], y[a:b]).tolist()
    foretold = out.pop(300)
    assert out == expected.tolist()
    assert foretold == out[300]  # what was predicted is what was then predicted before learning
    assert persist.to_bytes(fleet) == persist.to_bytes(whole)


def test_a_new_key_is_predicted_by_the_pool():
    keys, X, y = rows_of(12, 300)
    fleet = PooledFleet(SMALL, POOL, seed=4)
    fleet.learn_rows(keys, X, y)
    assert fleet.predict_rows(["nobody"] * 5, X[:5]).tolist() == fleet.pool.predict(X[:5]).tolist()
    assert "nobody" not in fleet
    assert len(fleet) == 12
    del fleet["key 3"]
    assert fleet.predict_rows(["key 3"], X[:1]).tolist() == fleet.pool.predict(X[:1]).tolist()
    rest = [k for k, key in enumerate(keys[:50]) if key != "key 3"]
    again = PooledFleet(SMALL, POOL, seed=4)
    again.learn_rows(keys, X, y)
    others = [keys[k] for k in rest]
    assert fleet.predict_rows(others, X[rest]).tolist() == again.predict_rows(others, X[rest]).tolist()


def test_keys_with_few_rows_are_predicted_better_than_by_their_own_models():
    keys, X, y = rows_of(100, 1500)
    errors = [(fleet.learn_rows(keys, X, y) - y) ** 2 for fleet in (PooledFleet(seed=1), Fleet(seed=1))]
    assert errors[0].mean() < 0.7 * errors[1].mean()


def test_a_batch_that_is_refused_changes_nothing():
    keys, X, y = rows_of(12, 100)
    fleet = PooledFleet(SMALL, POOL, seed=4)
    fleet.learn_rows(keys, X, y)
    before = persist.to_bytes(fleet)
    for bad, message in ((np.full((1, 3), np.nan), "finite number"), (np.zeros((1, 2)), "must have 3 columns")):
        with pytest.raises(ValueError, match=message):
            fleet.learn_rows(["a"], bad, [1.0])
    assert persist.to_bytes(fleet) == before
    wild = omkl.RakerRegressor(n_features=6, stabiliser="none", scale="none", learning_rate=1e6, horizon=10)
    for learner, pool in ((wild, POOL), (SMALL, wild)):
        fleet = PooledFleet(learner, pool, seed=4)
        fleet.learn_rows(["a"], np.ones((1, 3)), [1e-9])
        before = persist.to_bytes(fleet)
        with pytest.raises(DivergenceError):
            fleet.learn_rows(["a"] * 60, np.ones((60, 3)), np.ones(60))
        assert persist.to_bytes(fleet) == before


def test_too_little_memory_for_new_keys_changes_nothing(monkeypatch):
    def refuse(self, count):
        raise MemoryError

    keys, X, y = rows_of(12, 100)
    fleet = PooledFleet(SMALL, POOL, seed=4)
    fleet.learn_rows(keys, X, y)
    before = persist.to_bytes(fleet)
    monkeypatch.setattr(corrections.Corrections, "reserve", refuse)
    with pytest.raises(MemoryError):
        fleet.learn_rows(["a"], X[:1], y[:1])
    assert persist.to_bytes(fleet) == before
    assert "a" not in fleet


def test_many_rows_or_many_keys_in_one_call_take_no_matrix_for_each():
    rng, rows, d = np.random.default_rng(0), 20_000, 30
    linear = corrections.Corrections(d, rows)
    Z, slots = rng.normal(size=(rows, d + 1)), np.arange(rows)
    some = slots % 10
    tracemalloc.start()
    try:
        linear.learn(slots, Z, Z[:, 0])
        predictions = linear.predict(some, Z)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 60e6  # a matrix for each row would be 154 MB
    assert predictions.tolist() == [linear.predict(some[k : k + 1], Z[k : k + 1])[0] for k in range(rows)]


@pytest.mark.parametrize("pool", [POOL, omkl.GraphMKLRegressor(n_features=6)])
def test_rows_with_missing_values_are_predicted_the_same_in_any_batches(pool):
    keys, X, y = rows_of(12, 200)
    X[::5, 1] = np.nan
    fleet, whole = PooledFleet(SMALL, pool, seed=4), PooledFleet(SMALL, pool, seed=4)
    parts = [slice(start, start + 7) for start in range(0, 200, 7)]
    found = np.concatenate([fleet.learn_rows(keys[part], X[part], y[part], gaps=True) for part in parts])
    assert np.isfinite(found).all()
    assert found.tolist() == whole.learn_rows(keys, X, y, gaps=True).tolist()
    assert np.isfinite(fleet.predict_rows(keys, X, gaps=True)).all()


def test_wrong_arguments():
    with pytest.raises(ValueError, match="gaps need a pool that scales its inputs"):
        PooledFleet(SMALL, omkl.RakerRegressor(scale="none")).learn_rows(["a"], [[np.nan, 1.0]], [1.0], gaps=True)
    with pytest.raises(ValueError, match="a pooled fleet predicts numbers, got RakerClassifier; use Fleet for labels"):
        PooledFleet(omkl.RakerClassifier())
    with pytest.raises(ValueError, match="nothing has been learned yet"):
        PooledFleet().predict_rows(["a"], [[1.0]])
    with pytest.raises(ValueError, match="one value for each of the 1 rows"):
        PooledFleet().learn_rows(["a"], [[1.0]], [1.0, 2.0])


def test_models_of_keys_can_be_named_and_files_continue_exactly():
    fleet = PooledFleet("graph-mkl", POOL, seed=4)
    keys, X, y = rows_of(5, 50)
    fleet.learn_rows(keys, X, y)
    loaded = persist.from_bytes(persist.to_bytes(fleet))
    assert fleet.fleet.learner.get_params()["budget"] == "small"
    assert loaded.learn_rows(keys, X, y).tolist() == fleet.learn_rows(keys, X, y).tolist()


def test_a_fleet_whose_keys_were_all_forgotten_is_the_pool_after_loading_too():
    fleet = PooledFleet(SMALL, POOL, seed=4)
    keys, X, y = rows_of(5, 50)
    fleet.learn_rows(keys, X, y)
    for key in list(fleet):
        del fleet[key]
    loaded = persist.from_bytes(persist.to_bytes(fleet))
    assert loaded.predict_rows(keys, X).tolist() == fleet.predict_rows(keys, X).tolist()
    assert loaded.learn_rows(keys, X, y).tolist() == fleet.learn_rows(keys, X, y).tolist()


def test_files_that_cannot_be_are_refused(monkeypatch):
    fleet = PooledFleet(SMALL, POOL, seed=4)
    fleet.learn_rows(*rows_of(5, 50))
    for change in (
        lambda f: f._corrections.squares.__imul__(-1),
        lambda f: f._corrections.squares.__setitem__(0, np.diag([1e12, -corrections.PRIOR, 0, 0])),
        lambda f: f._corrections.products.__imul__(np.inf),
        lambda f: f._corrections.products.__setitem__(0, 1e300),
        lambda f: f._corrections.rows.__isub__(100),
        lambda f: f._corrections.rows.__iadd__(2**62),
        lambda f: f._shares.shares.__iadd__(2),
        lambda f: f._shares.products.__iadd__(1e300),
        lambda f: f._shares.counts.__isub__(1e9),
        lambda f: f._shares.errors.__isub__(1e9),
        lambda f: setattr(f._shares, "t", -1),
        lambda f: setattr(f._shares, "t", 10**400),
    ):
        broken = persist.from_bytes(persist.to_bytes(fleet))
        change(broken)
        with pytest.raises(ValueError, match="cannot be saved"), np.errstate(invalid="ignore"):
            persist.to_bytes(broken)
        with monkeypatch.context() as patched:
            patched.setattr(codec, "check", lambda *_: None)
            written = persist.to_bytes(broken)
        with pytest.raises(omkl.ModelFileError), np.errstate(invalid="ignore"):
            persist.from_bytes(written)
    fleet._keys[0] = "nobody"
    with pytest.raises(omkl.ModelFileError, match="keys and models differ"):
        persist.from_bytes(persist.to_bytes(fleet))


def test_shares_that_no_fit_gives_are_those_of_the_age_before():
    """Sums of a file may contradict each other: products without squares."""
    shares = corrections.Shares()
    shares.squares[5:7] = np.eye(2), np.zeros((2, 2))
    shares.products[5:7] = [[0.4], [1e200]]
    shares.counts[5:7] = 1e9
    shares._fit()
    assert np.isfinite(shares.shares).all()
    np.testing.assert_allclose(shares.shares[5:7], 0.4, rtol=1e-6)


def test_files_of_versions_that_always_believed_corrections_are_read():
    fleet = PooledFleet(SMALL, POOL, seed=4)
    keys, X, y = rows_of(5, 300)
    fleet.learn_rows(keys, X, y)
    assert fleet._shares.trusted
    body, arrays = codec._encode_pooled(fleet, compact=False)
    del body["trusted"], arrays["share errors"]
    older = codec._decode_pooled(body, arrays)
    assert older.predict_rows(keys, X).tolist() == fleet.predict_rows(keys, X).tolist()
    assert np.isfinite(older.learn_rows(keys, X, y)).all()
