"""The streams that the examples use: generated, the same for the same seed, and without a download.

The functions return inputs and targets, as those of `sklearn.datasets` do; the rows are in the order of the stream.
"""

from omkl.datasets.demand import make_hourly_demand
from omkl.datasets.drift import make_friedman_drift
from omkl.datasets.faults import make_rare_faults
from omkl.datasets.meters import make_meters

__all__ = ["make_friedman_drift", "make_hourly_demand", "make_meters", "make_rare_faults"]
