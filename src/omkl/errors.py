"""What can go wrong, by name."""


class DivergenceError(ArithmeticError):
    """A prediction left the range of useful numbers: the step was too long for the data."""


class BudgetWarning(UserWarning):
    """A learner that stores samples has stored all it was allowed to."""


class ModelFileError(ValueError):
    """A model file that is truncated, corrupted, foreign, of a newer version, or inconsistent."""
