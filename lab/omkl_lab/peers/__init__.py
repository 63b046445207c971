"""Comparison of omkl's learners with other streaming learners, on the same streams in one run."""
