"""A demonstration: GraphMKL beside other learners on a generated stream of hourly demand, with a report."""

from omkl.demo.job import run

__all__ = ["run"]
