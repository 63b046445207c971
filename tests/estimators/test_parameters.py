"""Estimators take their signature and documentation from the parameters that their algorithm declares."""

import dataclasses
import inspect
import re
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from streams import GRAPHS, LEARNERS, as_many_as_taken

import omkl
from omkl import algorithms
from omkl.estimators import river, sklearn
from omkl.estimators.cores import settings_of
from omkl.estimators.declaration import Declaration, supports
from omkl.estimators.documentation import with_parameters

ALL = [*sklearn.ESTIMATORS.values(), *river.ESTIMATORS.values()]
KIND = pytest.mark.parametrize("kind", ALL, ids=lambda kind: f"{kind.__module__.split('.')[2]}.{kind.__name__}")
# what an API, its scaling or its weights of labels add
OWN = {"random_state", "shuffle", "epochs", "seed", "max_waiting", "scale", "class_weight"}


def signature(kind: type) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(kind).parameters)


def declared(kind: type) -> type:
    """The class in which the algorithm declares its estimators' parameters."""
    return next(base for base in kind.__mro__ if base.__name__ == "Parameters")


def documented(kind: type) -> dict[str, str]:
    """Name -> its description, from the section "Parameters" of the docstring."""
    text = inspect.cleandoc(kind.__doc__ or "")
    section = re.search(r"Parameters\n-+\n(.*?)(\n\n\w[^\n]*\n-+\n|\Z)", text, flags=re.S)
    assert section, f"{kind.__name__} documents no parameters"
    found: dict[str, str] = {}
    for names, about in re.findall(r"^(\w[^:\n]*) : (.*?)(?=^\w|\Z)", section[1], flags=re.M | re.S):
        found |= dict.fromkeys(re.split(r",\s*", names), about)
    return found


@KIND
def test_every_argument_is_documented_and_nothing_else_is(kind: type):
    assert set(documented(kind)) == set(signature(kind))


@KIND
def test_a_documented_default_is_the_default(kind: type):
    for name, parameter in signature(kind).items():
        default = re.search(r"default=(.*)", documented(kind)[name])
        assert default, f"{name} has no documented default"
        assert eval(default[1], {"Gaussian": omkl.Gaussian}) == parameter.default, name


@KIND
def test_every_description_is_a_sentence(kind: type):
    for name, about in documented(kind).items():
        lines = about.strip().splitlines()[1:]
        assert lines, name
        assert lines[-1].strip().endswith("."), name


@KIND
def test_the_signature_is_the_algorithms_parameters_and_those_of_the_api(kind: type):
    own = {field.name: field.default for field in dataclasses.fields(declared(kind))}
    given = signature(kind)
    assert {name: given[name].default for name in own} == own
    assert set(given) - set(own) <= OWN
    assert all(parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in given.values())


@KIND
def test_an_estimator_is_equal_to_itself_alone(kind: type):
    one, other = kind(), kind()
    assert one != other
    assert len({one, other, one}) == 2


@KIND
def test_every_parameter_is_a_setting_or_chooses_the_algorithm(kind: type):
    settings = algorithms.get(kind().algorithm_name).settings
    known = {field.name for field in dataclasses.fields(settings)}
    unknown = {field.name for field in dataclasses.fields(declared(kind))} - known
    for name in unknown:  # then another value of it is another algorithm
        assert kind(**{name: True}).algorithm_name != kind(**{name: False}).algorithm_name


@KIND
def test_defaults_of_parameters_are_those_of_the_settings(kind: type):
    algorithm = algorithms.get(kind().algorithm_name)
    if "kernels" in algorithm.preset or algorithm.name == "omkr":  # its dictionary is another
        return
    usual = algorithm.settings.for_task(kind.task)
    if algorithm.name in GRAPHS:  # those of the paper's protocol are worse than the mean on short streams
        usual = algorithm.settings.practical(loss=usual.loss)
    assert settings_of(kind(), kind.task) == usual


@pytest.mark.parametrize("name", sklearn.ESTIMATORS)
def test_both_apis_have_the_same_parameters_but_for_randomness_fit_and_waiting_rows(name: str):
    ours, theirs = signature(sklearn.ESTIMATORS[name]), signature(river.ESTIMATORS[name])
    assert set(ours) - {"random_state", "shuffle", "epochs"} == set(theirs) - {"seed", "max_waiting"}
    for parameter in set(ours) & set(theirs):
        assert ours[parameter].default == theirs[parameter].default
        assert documented(sklearn.ESTIMATORS[name])[parameter] == documented(river.ESTIMATORS[name])[parameter]


def test_both_apis_have_the_same_estimators():
    assert set(sklearn.ESTIMATORS) == set(river.ESTIMATORS)


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_algorithm_has_an_estimator_for_each_of_its_tasks(learner: str):
    for task in algorithms.get(learner).tasks:
        model = Declaration(learner, task).estimator()
        assert model.algorithm_name == learner
        assert model.task == task
        core = Declaration(learner, task).core(0, ["a", "b"])
        assert (core.learner, core.task, core.names) == (learner, task, ("a", "b"))
        assert core.settings == settings_of(model, task)


def test_a_task_without_an_estimator_is_refused():
    assert not supports("omkr", "classification")
    with pytest.raises(ValueError, match="omkr predicts numbers only, not labels; choose graph-mkl, "):
        Declaration("omkr", "classification")


@KIND
def test_an_argument_reaches_the_settings(kind: type):
    if "n_features" in signature(kind):
        assert settings_of(kind(n_features=7), kind.task).n_features == 7
    kernels = as_many_as_taken(kind, [omkl.Gaussian(1.0), omkl.Gaussian(2.0)])
    assert settings_of(kind(kernels=kernels), kind.task).all_kernels == tuple(kernels)


@KIND
def test_an_unknown_argument_is_refused(kind: type):
    with pytest.raises(TypeError, match="colour"):
        kind(colour="red")


@pytest.mark.parametrize("kind", sklearn.ESTIMATORS.values(), ids=sklearn.ESTIMATORS)
def test_a_clone_has_the_same_parameters_and_learns_the_same(kind: Any):
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = X[:, 0] if kind.task == "regression" else (X[:, 0] > 0).astype(int)
    kernels = as_many_as_taken(kind, [omkl.Gaussian(0.5), omkl.Gaussian(1.0)])
    model = kind(kernels=kernels, random_state=3)
    if "out_degree" in signature(kind):
        model.set_params(out_degree=1)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    np.testing.assert_array_equal(copy.fit(X, y).predict(X), model.fit(X, y).predict(X))


def test_the_section_of_parameters_stands_before_the_examples():
    class Source:
        """What it is.

        a : int, default=1
            First.
        """

    class More:
        """What else.

        b : int, default=2
            Second.
        """

    text = with_parameters("Head.\n\nExamples\n--------\n>>> 1\n1\n", Source, More)
    assert text == (
        "Head.\n\nParameters\n----------\na : int, default=1\n    First.\nb : int, default=2\n    Second.\n\n"
        "Examples\n--------\n>>> 1\n1\n"
    )
    assert with_parameters(None, Source).strip().startswith("Parameters")


def test_the_paper_of_an_algorithm_is_named_before_the_parameters():
    class Source:
        """What it is.

        Reference: Somebody, On
        something, 2019.

        a : int, default=1
            First.
        """

    text = with_parameters("Head.", Source)
    assert text == (
        "Head.\n\nReference: Somebody, On\nsomething, 2019.\n\nParameters\n----------\na : int, default=1\n    First.\n"
    )
    for kind in ALL:
        named = "Reference: " in inspect.getdoc(kind).partition("Parameters\n-")[0]
        assert named != kind.__name__.startswith(("GraphMKL", "OMKR", "RFOMKR")), kind
