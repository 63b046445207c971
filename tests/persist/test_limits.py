"""What a model file may ask for: memory and work are bounded by its size or by a limit, before anything is made."""

import hashlib
import json
import tracemalloc
from typing import Any

import numpy as np
import pytest
from large_states import learned, small_problem

import omkl
import omkl.river
from omkl import algorithms, graph
from omkl.algorithms.graph_mkl import trees
from omkl.algorithms.settings import MOST_DRAWS
from omkl.estimators import files
from omkl.fleet import Fleet
from omkl.persist import container, registry
from omkl.persist.container import DIGEST, FRONT, MAGIC, VERSION, Content, pack

X = np.random.default_rng(0).normal(size=(40, 2))
Y, LABELS = X[:, 0], np.arange(40) % 3
TWO = [omkl.Gaussian(0.5), omkl.Gaussian(2.0)]
LITTLE = 32 << 20  # bytes: loading a small file, or refusing a large one, takes no more


def raw(header: bytes, arrays: bytes = b"") -> bytes:
    content = FRONT.pack(MAGIC, VERSION, len(header)) + header + arrays
    return content + hashlib.blake2b(content, digest_size=DIGEST).digest()


def changed(model: Any, change: Any, compact: bool = False) -> bytes:
    """The file of a model whose body and arrays were changed."""
    content = registry.encode(model, compact)
    body, arrays = json.loads(json.dumps(content.body)), dict(content.arrays)
    change(body, arrays)
    return b"".join(pack(Content(content.kind, body, arrays)))


def refused_cheaply(data: bytes, reason: str) -> None:
    """A file is refused for this reason, and little memory is taken for it."""
    tracemalloc.start()
    try:
        with pytest.raises(omkl.ModelFileError, match=reason):
            omkl.from_bytes(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * len(data) + LITTLE


@pytest.fixture
def no_overlaps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where a graph is computed from kernels that need quadratures."""

    def refuse(*_: object) -> None:
        raise AssertionError("a graph of many kernels was about to be computed")

    monkeypatch.setattr(graph, "log_overlap", refuse)


def many_kernels(body: Any, arrays: Any) -> None:
    N = 1000
    body["core"]["settings"]["kernels"] = [["Matern", {"length_scale": 1 + k / N, "nu": 1.5}] for k in range(N)]
    arrays |= {"0.theta": np.zeros((N, 2, 1)), "0.log_w": np.zeros(N), "0.log_u": np.zeros(N)}


@pytest.mark.usefixtures("no_overlaps")
def test_a_small_file_does_not_make_a_graph_of_many_kernels():
    model = omkl.SFGMKLRegressor(kernels=TWO, n_features=1, out_degree=1, random_state=0).fit(X, Y)
    data = changed(model, many_kernels, compact=True)
    assert len(data) < 90_000
    refused_cheaply(data, "too large to be made again")


@pytest.mark.usefixtures("no_overlaps")
def test_a_file_that_contains_its_graph_is_loaded_without_making_it_again(monkeypatch: pytest.MonkeyPatch):
    kernels = [omkl.Matern(1 + k / 10) for k in range(6)]
    monkeypatch.undo()
    model = omkl.SFGMKLRegressor(kernels=kernels, n_features=2, out_degree=2, random_state=0).fit(X, Y)
    data = b"".join(pack(registry.encode(model)))
    monkeypatch.setattr(graph, "log_overlap", None)
    assert np.array_equal(omkl.from_bytes(data).predict(X), model.predict(X))


def test_a_compact_file_contains_what_would_take_long_to_make_again(monkeypatch: pytest.MonkeyPatch):
    model = omkl.RakerRegressor(kernels=TWO, n_features=2, random_state=0).fit(X, Y)
    assert "drawn" in registry.encode(model, True).body["core"]
    monkeypatch.setattr(files, "LARGEST_MADE", 10)
    assert "problem" in registry.encode(model, True).body["core"]
    assert np.array_equal(omkl.from_bytes(omkl.to_bytes(model)).predict(X), model.predict(X))


@pytest.mark.parametrize("name", ["GraphMKLRegressor", "RakerRegressor"])
def test_a_compact_file_does_not_draw_more_random_features_than_the_limit(name: str):
    model = getattr(omkl, name)(kernels=TWO, n_features=4, random_state=0).fit(X, Y)

    def many_names(body: Any, arrays: Any) -> None:
        body["core"]["names"] = [str(k) for k in range(300_000)]
        body["core"]["settings"] |= {"n_features": 64, "kernels": [["Gaussian", {"length_scale": 1.0}]] * 2}

    refused_cheaply(changed(model, many_names, compact=True), "too large to be made again")


NAMES = {"text": "x" * 10**5, "duplicates": ["x"] * 10**5}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES.keys())
def test_names_of_a_compact_file_are_a_list_without_duplicates_before_features_are_drawn(
    names: Any, monkeypatch: pytest.MonkeyPatch
):
    model = omkl.RakerRegressor(kernels=TWO, n_features=1, random_state=0).fit(X, Y)

    def rename(body: Any, arrays: Any) -> None:
        body["core"]["names"] = names

    data = changed(model, rename, compact=True)
    monkeypatch.setattr(algorithms, "problem", None)  # making one would be a TypeError
    refused_cheaply(data, "names must be a list without duplicates")


def test_generators_of_very_many_names_are_not_made_again(monkeypatch: pytest.MonkeyPatch):
    """A name takes a generator of its own, which takes longer than the few numbers that it draws."""
    model = omkl.RakerRegressor(kernels=TWO, n_features=1, random_state=0).fit(X, Y)

    def many_names(body: Any, arrays: Any) -> None:
        body["core"]["names"] = [str(k) for k in range(50_000)]

    data = changed(model, many_names, compact=True)
    monkeypatch.setattr(algorithms, "problem", None)
    refused_cheaply(data, "too large to be made again")


def test_orthogonal_features_of_many_inputs_are_not_made_again():
    model = omkl.RakerRegressor(kernels=TWO, n_features=4, random_state=0).fit(X, Y)

    def orthogonal(body: Any, arrays: Any) -> None:
        body["core"]["names"] = [str(k) for k in range(3000)]
        body["core"]["settings"]["orthogonal"] = True

    refused_cheaply(changed(model, orthogonal, compact=True), "too large to be made again")


@pytest.mark.parametrize("part", ['["{}","int",[0]]', "[]", '{{"{}":0}}'])
def test_a_header_of_very_many_values_is_refused_before_it_is_parsed(part: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(container, "MOST_VALUES", 2**13)
    parts = ",".join(part.format(k) for k in range(20_000))
    as_arrays = part.startswith('["')
    header = '{"kind":"sklearn","body":[%s],"arrays":[%s]}' % (("", parts) if as_arrays else (parts, ""))
    monkeypatch.setattr(json, "loads", None)  # parsing would be a TypeError
    with pytest.raises(omkl.ModelFileError, match=r"asks for too much: .* values in its header, at most 8192"):
        omkl.from_bytes(raw(header.encode()))


def test_a_file_of_very_many_arrays_is_refused():
    count = container.MOST_ARRAYS + 2
    listing = ",".join(f'["{k}","int",[0]]' for k in range(count))
    header = f'{{"kind":"sklearn","body":null,"arrays":[{listing}]}}'
    with pytest.raises(omkl.ModelFileError, match=f"too much: {count} arrays, at most {count - 2} with"):
        omkl.from_bytes(raw(header.encode()))


def test_what_the_limits_of_values_and_arrays_refuse_cannot_be_saved_either(monkeypatch: pytest.MonkeyPatch):
    model = omkl.RakerRegressor(kernels=TWO, n_features=1)
    for name in ("MOST_VALUES", "MOST_ARRAYS"):
        with monkeypatch.context() as patch:
            patch.setattr(container, name, -1)
            with pytest.raises(ValueError, match="too large for a model file"):
                omkl.to_bytes(model)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_numbers_of_a_header_are_finite(word: str):
    with pytest.raises(omkl.ModelFileError, match="in the header is not finite"):
        omkl.from_bytes(raw(f'{{"kind":"sklearn","body":[{word}],"arrays":[]}}'.encode()))


@pytest.mark.parametrize("shape", ["[0,0,0,0,0,0,0,0,0]", "[-1]", "[true]", "[1.0]", "[9223372036854775808,0]"])
def test_impossible_shapes_are_refused(shape: str):
    with pytest.raises(omkl.ModelFileError):
        omkl.from_bytes(raw(f'{{"kind":"sklearn","body":[],"arrays":[["a","int",{shape}]]}}'.encode(), bytes(8)))


def test_trees_of_very_many_labels_are_refused_before_there_are_any(monkeypatch: pytest.MonkeyPatch):
    """The first fit would need more than a gigabyte, which the file does not have."""
    online = omkl.Online("graph-mkl", small_problem("classification", 1100, trees=1000, archive=256), 0)
    with monkeypatch.context() as patch:
        patch.setattr(trees, "LARGEST_FIT", 2**40)
        data = omkl.to_bytes(online)
    refused_cheaply(data, "the trees of so many labels need too much memory")
    with pytest.raises(ValueError, match=r"cannot be saved, .* need too much memory"):
        omkl.to_bytes(online)


def test_what_a_file_contains_of_trees_it_may_have_whatever_the_limit(monkeypatch: pytest.MonkeyPatch):
    problem = small_problem("classification", 3, trees=4, archive=256)
    before, after = learned(problem, 60), learned(problem, 90)
    monkeypatch.setattr(trees, "LARGEST_FIT", after.state.large.trees.fitted.size)  # working memory of a fit
    assert omkl.from_bytes(omkl.to_bytes(after)).t == 90
    with pytest.raises(ValueError, match="too much memory"):
        omkl.to_bytes(before)


def test_arrays_of_trees_are_not_made_to_be_compared_with_those_of_a_file():
    """Two ensembles are claimed by an array of two numbers; the others are empty."""
    online = omkl.Online("graph-mkl", small_problem("classification", 200, trees=1000, archive=256), 0)

    def claim(body: Any, arrays: Any) -> None:
        name = next(name for name in arrays if name.endswith("trees.ridge"))
        arrays[name] = np.zeros(2)

    refused_cheaply(changed(online, claim), "feature of the trees does not fit the problem")


def test_deep_nesting_is_refused():
    for start, end in (("[", "]"), ('{"a":', "}")):
        deep = start * 100_000 + "0" + end * 100_000
        with pytest.raises(omkl.ModelFileError):
            omkl.from_bytes(raw(f'{{"kind":"sklearn","body":{deep},"arrays":[]}}'.encode()))


def test_messages_do_not_repeat_long_values():
    def long_name(body: Any, arrays: Any) -> None:
        body["class"] = "x" * 10**6

    with pytest.raises(omkl.ModelFileError) as caught:
        omkl.from_bytes(changed(omkl.RakerRegressor(), long_name))
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("dtype", ["<U16384", "<U1000000000"])
def test_labels_of_a_file_take_no_more_memory_than_the_limit(dtype: str):
    def long_labels(body: Any, arrays: Any) -> None:
        labels = sorted(str(k) for k in range(10_000))
        body["fitted"] |= {"classes_": labels, "dtype": dtype}

    model = omkl.RakerClassifier(kernels=TWO, n_features=1, random_state=0).fit(X, LABELS)
    refused_cheaply(changed(model, long_labels), "labels must be an array|inconsistent content")


def many_outputs(body: Any, arrays: Any) -> None:
    body |= {"classes": [f"{k:06}" for k in range(100_000)], "dtype": "<U6"}


@pytest.mark.parametrize("learner", [omkl.GraphMKLClassifier(), omkl.RakerClassifier()], ids=["GraphMKL", "Raker"])
def test_a_fleet_that_has_not_started_may_not_ask_for_very_many_outputs(learner: Any):
    fleet = Fleet(learner, seed=0, classes=["a", "b"])
    refused_cheaply(changed(fleet, many_outputs), "the parameters ask for a model of more than")


HUGE = [("n_features", 10**6), ("n_features", 2**61), ("steps", [0.5] * 10_000), ("widths", [0.5] * 10_000)]


@pytest.mark.parametrize(("name", "value"), HUGE, ids=[f"{name} {k}" for k, (name, _) in enumerate(HUGE)])
@pytest.mark.parametrize("api", [omkl, omkl.river], ids=["sklearn", "river"])
def test_an_estimator_without_a_model_may_not_ask_for_a_huge_one(api: Any, name: str, value: Any):
    def huge(body: Any, arrays: Any) -> None:
        body["parameters"][name] = value

    refused_cheaply(changed(api.GraphMKLRegressor(), huge), "the parameters ask for a model of more than")
    with pytest.raises(ValueError, match="the parameters ask for a model of more than"):
        omkl.to_bytes(api.GraphMKLRegressor(**{name: value if name == "n_features" else tuple(value)}))


@pytest.mark.parametrize("model", [omkl.RakerClassifier(), omkl.river.RakerClassifier(),
                                   Fleet(omkl.OMKLGFClassifier(), seed=0, classes=["a", "b", "c"])],
                         ids=["sklearn", "river", "fleet"])  # fmt: skip
def test_rows_of_a_model_that_a_small_file_asks_for_take_little(model: Any):
    """A million features of two kernels: a row of each label takes tens of milliseconds, a key 100 megabytes."""

    def huge(body: Any, arrays: Any) -> None:
        kernels = [["Gaussian", {"length_scale": 1.0}]] * 2
        body.get("start", body)["parameters"] |= {"kernels": kernels, "n_features": 10**6}

    refused_cheaply(changed(model, huge), "the parameters ask for a model of more than")


def test_a_large_model_that_is_there_may_be_saved(monkeypatch: pytest.MonkeyPatch):
    model = omkl.RakerRegressor(kernels=TWO, n_features=20, random_state=0).fit(X, Y)
    monkeypatch.setattr(files, "LARGEST_NEW", 50)
    with pytest.raises(ValueError, match="the parameters ask for"):
        omkl.to_bytes(omkl.RakerRegressor(kernels=TWO, n_features=20))
    assert np.array_equal(omkl.from_bytes(omkl.to_bytes(model)).predict(X), model.predict(X))


def test_keys_of_a_fleet_fit_it_whatever_its_files_contain(monkeypatch: pytest.MonkeyPatch):
    """A key packed where the random features are drawn again fits a fleet whose files contain them."""
    fleet = Fleet(omkl.RakerRegressor(kernels=TWO, n_features=2), seed=0)
    fleet.learn_rows(["k"] * 40, X, Y)
    packed = fleet.pack("k")
    monkeypatch.setattr(files, "LARGEST_MADE", 10)
    other = Fleet(omkl.RakerRegressor(kernels=TWO, n_features=2), seed=0)
    other.restore([("k", packed)], features=2)
    for loaded in (other, omkl.from_bytes(omkl.to_bytes(other))):
        assert np.array_equal(loaded["k"].predict(X), fleet["k"].predict(X))


def test_draws_are_limited_by_the_settings_as_by_files():
    with pytest.raises(ValueError, match="draws must be at most"):
        omkl.Settings(draws=MOST_DRAWS + 1)


def test_arrays_of_many_learners_are_looked_up_once(monkeypatch: pytest.MonkeyPatch):
    """Loading takes time in proportion to the number of labels, not to its square."""

    class Counted(str):
        looked_at = 0

        def partition(self, mark: str) -> Any:
            Counted.looked_at += 1
            return super().partition(mark)

        def startswith(self, *_: Any) -> bool:
            raise AssertionError("all names are searched for those of one learner")

    model = omkl.RakerClassifier(kernels=TWO, n_features=1, random_state=0).fit(X, np.arange(40) % 20)
    content = registry.encode(model)
    arrays = {Counted(name): array for name, array in content.arrays.items()}
    registry.decode(Content(content.kind, json.loads(json.dumps(content.body)), arrays))
    assert Counted.looked_at == len(arrays)


def test_of_a_file_that_is_no_model_only_the_beginning_is_read():
    with pytest.raises(omkl.ModelFileError, match="not an omkl model file"):
        omkl.load("/dev/zero")
