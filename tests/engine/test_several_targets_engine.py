"""Several targets: what the engine does once for all of them leaves each as if it had been learned alone."""

from functools import lru_cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from large_states import STAGES, in_stage, learned, rows, small_problem
from streams import assert_same_learner, graph_settings, raw_and_turning

from omkl import algorithms, engine
from omkl.algorithms.graph_mkl import archive, wide
from omkl.algorithms.graph_mkl.constants import FIRST_ROWS
from omkl.errors import DivergenceError
from omkl.online import Online
from omkl.together import run_together, shared_runners

D, CHANGE = 3, 430
CHUNKS = (1, 7, 256, 4096)
MANY = settings().max_examples  # as the profile has it
SETTINGS = {
    "small": graph_settings(),
    "all experts": graph_settings(evaluate="all"),
    "standard": graph_settings(budget="standard", evaluate="all"),
}


@lru_cache
def problem(kind, sparse=False):
    made = algorithms.problem("graph-mkl", SETTINGS[kind], D)
    return made._replace(trees=min(made.trees, 6), archive=min(made.archive, 512), trial=60, sparse=4 if sparse else 0)


def fresh(made, n, isa=None):
    first = Online("graph-mkl", made, 0, isa=isa)
    return [first, *(first.fresh_copy(k) for k in range(1, n))]


def targets(X, n):
    rng = np.random.default_rng(1)
    return np.sin(X @ rng.normal(size=(X.shape[1], n)) / 4).T * 10.0 ** np.arange(n)[:, None] + 3


def assert_as_alone(together, alone, X, Y, weight, chunk):
    """The same predictions, half widths and states, after every chunk."""
    Y = np.ascontiguousarray(Y)
    extras, outputs = together[0].shape.extras, together[0].shape.outputs
    for start in range(0, len(X), chunk):
        at = slice(start, start + chunk)
        w = None if weight is None else weight[at]
        n = len(X[at])
        extra, expected = np.full((len(Y), n, extras), -1.0), np.full((n, extras), -1.0)
        out = run_together(together, X[at], np.ascontiguousarray(Y[:, at]), w, extra)
        assert out.shape == (len(Y), n, outputs)
        for k, learner in enumerate(alone):
            np.testing.assert_array_equal(out[k], learner.run_unchecked(X[at], Y[k, at], w, expected))
            np.testing.assert_array_equal(extra[k], expected)
            if chunk > 7:
                assert_same_learner(together[k], learner)
    for one, other in zip(together, alone, strict=True):
        assert_same_learner(one, other)


@pytest.mark.parametrize("isa", engine.supported())
@pytest.mark.parametrize("kind", SETTINGS)
@pytest.mark.parametrize("drifting", [(), (0,), (2,), (0, 1, 2)], ids=str)
def test_targets_that_change_at_different_times(drifting, kind, isa):
    X, _ = raw_and_turning(650, D)
    Y = targets(X, 3)
    for k in drifting:
        Y[k, CHANGE:] = 10.0**k * (900 * np.cos(X[CHANGE:, k]) - 5000)
    together, alone = fresh(problem(kind), 3, isa), fresh(problem(kind), 3, isa)
    assert_as_alone(together, alone, X, Y, None, 4096)
    for k, learner in enumerate(alone):
        assert (learner.started > 0) == (k in drifting)  # the challenger has won


STREAMS = st.fixed_dictionaries({
    "kind": st.sampled_from(list(SETTINGS)),
    "chunk": st.sampled_from(CHUNKS),
    "n": st.integers(2, 4),
    "rows": st.integers(260, 700),
    "weights": st.sampled_from(["none", "ones", "some 0", "heavy"]),
    "repeats": st.sampled_from(["none", "copies", "copies of some targets", "shown again", "again for some targets"]),
    "missing": st.sampled_from([0.0, 0.1]),
    "constant": st.booleans(),
    "drifting": st.sets(st.integers(0, 3), max_size=2),
    "sparse": st.booleans(),
    "seed": st.integers(0, 3),
})  # fmt: skip


def stream_of(s):
    rng = np.random.default_rng(s["seed"])
    X, _ = raw_and_turning(s["rows"], D, s["seed"])
    if s["constant"]:
        X[:301, 0] = 2.0  # its first change is its deviation
    Y = targets(X, s["n"]) + rng.normal(size=(s["n"], s["rows"]))
    for k in s["drifting"] & set(range(s["n"])):
        Y[k, 330:] = 900 * np.cos(X[330:, 0]) - 5000
    X[rng.random(X.shape) < s["missing"]] = np.nan
    some = slice(1, None) if "some" in s["repeats"] else slice(None)
    if s["repeats"].startswith("copies"):
        for row in range(400, s["rows"], 9):
            X[row], Y[some, row] = X[row - 1], Y[some, row - 1]
    elif s["repeats"] != "none":
        for row in range(430, min(s["rows"], 490)):
            X[row], Y[some, row] = X[row - 50], Y[some, row - 50]
    if s["sparse"]:
        X = np.column_stack((X, np.where(rng.random((s["rows"], 4)) < 0.3, rng.normal(size=(s["rows"], 4)), 0)))
    weight = rng.uniform(0.2, 2, s["rows"])
    if s["weights"] == "some 0":
        weight[::5] = 0
    elif s["weights"] == "heavy":
        weight[::40] = 300
    elif s["weights"] == "ones":
        weight[:] = 1
    return X, Y, None if s["weights"] == "none" else weight


HARD = {"kind": "standard", "chunk": 256, "n": 4, "rows": 700, "weights": "some 0", "repeats": "copies of some targets",
        "missing": 0.1, "constant": True, "drifting": {0}, "sparse": False, "seed": 0}  # fmt: skip


@pytest.mark.parametrize("which", [[0], [2], [0, 2]], ids=str)
@pytest.mark.parametrize("repeats", ["copies", "shown again"])
def test_rows_that_come_again_for_some_targets_only(repeats, which):
    X, _ = raw_and_turning(600, D)
    Y = targets(X, 3) + np.random.default_rng(0).normal(size=(3, 600))
    for row in range(400, 600, 9) if repeats == "copies" else range(430, 490):
        before = row - (1 if repeats == "copies" else 50)
        X[row], Y[which, row] = X[before], Y[which, before]
    together, alone = fresh(problem("standard"), 3), fresh(problem("standard"), 3)
    assert_as_alone(together, alone, X, Y, None, 4096)
    ages = [learner.state.sets[0].age for learner in alone]
    assert [age < 600 for age in ages] == [k in which for k in range(3)]


@settings(max_examples=MANY // 3)
@given(STREAMS)
@example(HARD)
@example(HARD | {"repeats": "again for some targets", "chunk": 4096})
@example(HARD | {"repeats": "copies", "weights": "heavy"})
@example(HARD | {"repeats": "none", "drifting": {0, 2}, "chunk": 4096})
@example(HARD | {"kind": "all experts", "sparse": True, "repeats": "copies", "chunk": 4096})
def test_every_target_is_learned_as_if_it_were_alone(s):
    X, Y, weight = stream_of(s)
    made = problem(s["kind"], sparse=s["sparse"])
    assert_as_alone(fresh(made, s["n"]), fresh(made, s["n"]), X, Y, weight, s["chunk"])


@pytest.mark.parametrize("chunk", CHUNKS[2:])
def test_wide_least_squares_of_several_targets(chunk):
    """Long enough for all stages of their fits, and for more features, which are not useful for the second target."""
    more = algorithms.problem("graph-mkl", graph_settings(budget="large"), 2).V_wide
    made = small_problem()._replace(V_wide=more)
    X, _ = rows(2600, 1)
    y = np.sin(X[:, 0]) * np.cos(X[:, 1])
    noise = np.random.default_rng(5).normal(size=(2, len(y)))
    Y = np.stack([y, noise[0], y + noise[1], -y])
    together, alone = fresh(made, 4), fresh(made, 4)
    assert_as_alone(together, alone, X, Y, None, chunk)
    features = [learner.state.large.wide.features for learner in alone]
    assert features[0] == features[3] == 2 * features[1] == 512


@lru_cache
def at_stage(stage):
    """A learner whose wide least squares are in the middle of this stage."""
    base = learned(small_problem(archive=4096), 1100)
    return in_stage(base, stage).checkpoint() if stage else base.checkpoint()


def assert_go_on_as_alone(each, n=150):
    X, y = rows(n, 1, seed=7)
    made = small_problem(archive=4096)
    learners = [Online("graph-mkl", made, 0, checkpoint=one) for one in each]
    assert shared_runners(learners)
    assert_as_alone([one.copy() for one in learners], learners, X, np.stack([y, -y, 2 * y]), None, 4096)


@pytest.mark.parametrize("stage", range(1, len(STAGES)))
@pytest.mark.parametrize("other", [wide.IDLE, wide.UPDATE, wide.BACKWARD])
def test_wide_least_squares_at_different_places_of_their_work(stage, other):
    """As files may claim: some have work to do that others have not."""
    assert_go_on_as_alone([at_stage(stage), at_stage(other), at_stage(stage)])


def twice(w):
    """With room for twice the features."""
    panels = 2 * len(w.total)
    longer = {name: wide.lengthened(getattr(w, name), panels) for name in ("Z", "B", "total", "solution", "theta")}
    return longer | {name: wide.lengthened(getattr(w, name), wide.pairs_of(panels)) for name in ("G", "U")}


def edited(path, change):
    """An edit of a state: what `change` makes of the part of this name."""

    def edit(part, names):
        if not names:
            return change(part)
        if names[0].isdigit():
            k = int(names[0])
            return (*part[:k], edit(part[k], names[1:]), *part[k + 1 :])
        return part._replace(**{names[0]: edit(getattr(part, names[0]), names[1:])})

    return lambda state: edit(state, path.split("."))


ODD = {
    "another covariance": edited("sets.0.coefficients.R", lambda R: R / 2),
    "another covariance of the linear expert": edited("sets.0.coefficients.R_linear", lambda R: R / 2),
    "another scale": edited("sets.0.scaling.scale", lambda scale: scale * 2),
    "another mean": edited("sets.0.scaling.mean", lambda mean: mean + 1),
    "another memory": edited("sets.0.window.X", lambda X: X[:, ::-1].copy()),
    "other weights in memory": edited("sets.0.window.weight", lambda weight: weight * np.linspace(1, 2, len(weight))),
    "another age": edited("sets.0.age", lambda age: age + 1),
    "longer archive": edited("large.archive", lambda a: archive.enlarged(small_problem(archive=4096), a)),
    "another archive": edited("large.archive.X", lambda X: X + 1),
    "other weights": edited("large.archive.weight", lambda weight: weight * 2),
    "more room": edited("large.wide", lambda w: w._replace(**twice(w))),
    "more room in one": edited("large.wide.G", lambda G: np.concatenate((G, np.zeros_like(G)))),
    "another Gram matrix": edited("large.wide.G", lambda G: G * 2),
    "another factor": edited("large.wide.U", lambda U: U * 2),
    "nothing taken": edited("large.wide", lambda w: w._replace(taken=0, stage=wide.IDLE, panel=0, step=0, ridge=0)),
}  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("first", [False, True])
def test_states_that_differ(odd, first):
    """As edited files may; each target goes on from its own."""
    start = at_stage(wide.BACKWARD)
    strange = start._replace(state=ODD[odd](start.state))
    assert_go_on_as_alone([strange, start, start] if first else [start, strange, start])


def test_what_is_shared():
    assert shared_runners(fresh(problem("standard"), 2))
    assert not shared_runners(fresh(problem("standard"), 1))
    assert not shared_runners(fresh(problem("small"), 2))  # experts are selected by their errors
    labels = algorithms.problem("graph-mkl", graph_settings(evaluate="all", task="classification", outputs=2), D)
    assert not shared_runners(fresh(labels, 2))
    first, second = fresh(problem("standard"), 2)
    other = problem("standard")._replace(trial=50)
    assert not shared_runners([first, Online("graph-mkl", other, 0)])
    assert not shared_runners([first, Online("graph-mkl", first.problem, 0, isa="baseline")])
    assert not shared_runners([first, Online("graph-mkl", first.problem, 0, backend="numpy")])
    assert shared_runners([first, second])


@pytest.mark.parametrize("at", [100, 300])
def test_a_target_that_cannot_be_learned_stops_alone(at):
    """Where nobody has checked it; the others are learned to the end, and all states are whole."""
    X, _ = raw_and_turning(400, D)
    Y = targets(X, 3)
    Y[1, at] = np.nan
    together, alone = fresh(problem("standard"), 3), fresh(problem("standard"), 3)
    with pytest.raises(DivergenceError, match=f"row {at}"):
        run_together(together, X, Y)
    for k, learner in enumerate(alone):
        learner.run_unchecked(X[: at if k == 1 else 400], Y[k, : at if k == 1 else 400])
        assert together[k].t == (at if k == 1 else 400)
    Y[1, at] = 0
    assert_as_alone(together, alone, X[::-1].copy(), Y[:, ::-1], None, 4096)


def test_no_room_and_no_memory_for_more(monkeypatch):
    """An error in the middle of a chunk leaves every state at the end of a row, from which it goes on."""
    X, _ = raw_and_turning(700, D)
    Y = targets(X, 3)
    together, alone = fresh(problem("standard"), 3), fresh(problem("standard"), 3)
    make_room, calls = engine.Runner.make_room, []

    def fails(self):
        calls.append(self)
        if len(calls) == 8:  # of the second target, once there is the archive and it is full
            raise MemoryError
        make_room(self)

    monkeypatch.setattr(engine.Runner, "make_room", fails)
    with pytest.raises(MemoryError):
        run_together(together, X, Y)
    monkeypatch.undo()
    for k, learner in enumerate(alone):
        t = together[k].t
        assert FIRST_ROWS <= t < len(X)
        together[k].run_unchecked(X[t:], Y[k, t:])
        learner.run_unchecked(X, Y[k])
        assert_same_states(learner, together[k])


def assert_same_states(one, other):
    """`evaluations` are counted when a call has ended well."""
    assert_same_learner(one, Online("graph-mkl", other.problem, 0, checkpoint=other.checkpoint()._replace(
        evaluations=one.evaluations)))  # fmt: skip


def test_arguments_that_do_not_fit_are_refused_where_nobody_checked_them():
    a, b = fresh(problem("standard"), 2)
    one, other = (learner._runner._memory for learner in (a, b))
    compiled, n = a.compiled, 9
    good = {
        "memories": [one, other], "X": np.zeros((n, D)), "y": np.zeros((2, n)), "uniforms": np.zeros((2, 2 * n)),
        "weight": None, "out": np.zeros((2, 2 * n)), "extra": None, "progress": np.zeros((2, 2), dtype=np.int64),
    }  # fmt: skip
    wrong = {
        "memories": [[one], [one, one], [one, None], [one, other, one]],
        "X": [np.zeros((n, D + 1)), np.zeros((n + 1, D)), np.zeros(n)],
        "y": [np.zeros((2, n - 1)), np.zeros((1, n)), np.zeros((3, n)), np.zeros(n)],
        "uniforms": [np.zeros((2, n)), np.zeros((1, 2 * n))],
        "weight": [np.ones(n - 1)],
        "out": [np.zeros((2, n)), np.zeros((1, 2 * n)), np.zeros((2 * n, 2)).T, np.zeros((2, 2 * n), dtype=np.float32)],
        "extra": [np.zeros((2, n)), np.zeros((1, 9 * n))],
        "progress": [np.zeros((2, 2)), np.zeros((1, 2), dtype=np.int64), np.full((2, 2), -1), np.full((2, 2), n + 1)],
    }
    for name, values in wrong.items():
        for value in values:
            with pytest.raises((TypeError, ValueError)):
                compiled.run_several(**{**good, name: value})
    assert a.t == b.t == 0
    compiled.run_several(**good)
    assert a.t == b.t == n
    small, labels = fresh(problem("small"), 2)
    with pytest.raises(TypeError, match="call run"):
        small.compiled.run_several(**good)
    assert labels.t == 0
