"""The folder of the data sets, for tests that need them."""

import os

import pytest

DATA = os.environ.get("OMKL_DATA", "")
data_needed = pytest.mark.skipif(not DATA, reason="set OMKL_DATA to the folder of the data sets")
