"""What a model has learned, from its predictions: importance of inputs, effects, contributions, experts, changes.

Trees have no gradients, and some learners are nothing but averages, so everything here compares predictions: those for
a row with those for the same row in which some columns are taken from another row. The other rows are the background,
which comes from what a model keeps anyway (`background`). A column is one that the user knows: all features that were
made of it change together (`columns`).
"""

from omkl.explain.changes import Change, Expert, changes_of, experts_of
from omkl.explain.contributions import Explanation, explain
from omkl.explain.effects import Effect, effect, importance
from omkl.explain.view import View

__all__ = ["Change", "Effect", "Expert", "Explanation", "View", "changes_of", "effect", "experts_of", "explain",
           "importance"]  # fmt: skip
