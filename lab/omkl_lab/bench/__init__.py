"""Benchmarks: lower bounds of the machine, every algorithm, its NumPy implementation and other libraries."""
