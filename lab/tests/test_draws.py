"""Random features shared by all Gaussian kernels, compared with independent ones on every data set."""

import itertools

from omkl_lab import draws
from omkl_lab.configurations import NAMES
from omkl_lab.data.sets import SETS
from omkl_lab.equations import ROOT
from omkl_lab.files import read_json


def test_the_committed_results_have_every_learner_on_every_set():
    lines = read_json(ROOT / draws.RESULTS)["lines"]
    sets = {line["set"] for line in lines}
    assert len(sets) >= 13
    assert sets <= set(SETS)
    learners = [NAMES[learner] for learner in draws.LEARNERS]
    assert sorted((line["set"], line["learner"]) for line in lines) == sorted(itertools.product(sets, learners))


def test_both_draws_are_tried_with_as_many_seeds_and_differ():
    apart = draws.errors("mixture", "sfg-mkl", "independent", seeds=2, rows=200)
    shared = draws.errors("mixture", "sfg-mkl", "shared", seeds=2, rows=200)
    assert len(apart) == len(shared) == 2
    assert not set(apart) & set(shared)
