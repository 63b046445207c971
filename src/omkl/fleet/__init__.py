"""One model per key: `Fleet` on one machine, `omkl.fleet.spark` on Spark."""

from omkl.fleet.local import Fleet

__all__ = ["Fleet"]
