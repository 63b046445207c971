# What `__init__` imports when it is used, for type checkers and editors; tests/test_package.py compares the two.
from omkl._version import __version__ as __version__
from omkl.algorithms.graph_mkl import GraphSettings as GraphSettings
from omkl.algorithms.settings import Settings as Settings
from omkl.errors import BudgetWarning as BudgetWarning
from omkl.errors import DivergenceError as DivergenceError
from omkl.errors import ModelFileError as ModelFileError
from omkl.errors import SharedFeaturesWarning as SharedFeaturesWarning
from omkl.estimators.sklearn.encoder import TableEncoder as TableEncoder
from omkl.estimators.sklearn.estimators import *  # noqa: F403  # all of its classes, as at run time
from omkl.estimators.sklearn.lags import Lags as Lags
from omkl.explain.displays import ContributionsDisplay as ContributionsDisplay
from omkl.explain.displays import EffectDisplay as EffectDisplay
from omkl.explain.displays import ImportanceDisplay as ImportanceDisplay
from omkl.kernels import Cauchy as Cauchy
from omkl.kernels import Gaussian as Gaussian
from omkl.kernels import Kernel as Kernel
from omkl.kernels import Laplacian as Laplacian
from omkl.kernels import Matern as Matern
from omkl.kernels import dictionary as dictionary
from omkl.kernels import log_grid as log_grid
from omkl.kernels import mixture as mixture
from omkl.online import Online as Online
from omkl.persist import from_bytes as from_bytes
from omkl.persist import load as load
from omkl.persist import read_metadata as read_metadata
from omkl.persist import save as save
from omkl.persist import to_bytes as to_bytes
