"""One model for every key: `Fleet` on one machine, `omkl.fleet.spark` on Spark."""

from omkl.fleet import codec as codec  # makes fleets known to omkl.save and omkl.load
from omkl.fleet.local import Fleet
from omkl.fleet.pooled import PooledFleet

__all__ = ["Fleet", "PooledFleet"]
