"""The exceptions and warnings of omkl."""


class DivergenceError(ArithmeticError):
    """A prediction overflowed or became NaN: the learning rate was too large for the data."""


class BudgetWarning(UserWarning):
    """A learner that stores samples has reached its budget."""


class ModelFileError(ValueError):
    """A model file that is truncated, corrupted, not one of omkl's, of a newer version, or inconsistent."""
