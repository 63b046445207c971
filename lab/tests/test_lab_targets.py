"""The cost of several targets."""

from omkl_lab import targets


def test_random_features_of_several_targets_are_in_memory_once():
    X, Y = targets.data(50, 5)
    for name, learner in targets.LEARNERS.items():
        models = targets.learned(learner, X, Y, together=False)
        problem = sum(part.nbytes for part in (models[0].core_.online.problem.V,))
        apart, together = (targets.size(learner, X, Y, each) for each in (False, True))
        assert apart - together > 3.9 * problem, name
