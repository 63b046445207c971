"""Runs under callgrind: every algorithm over the same rows on the AVX2 path, with a mark after each.

python counted.py MARKS.so
"""

import ctypes
import sys

import numpy as np

from omkl import GraphSettings, Settings
from omkl.online import Online
from omkl.together import run_together
from omkl_lab._peaks import peak

ROWS, D = 256, 15
OF_THE_PAPER = ("omkr", "rfomkr", "raker", "omkl-gf", "sfg-mkl", "sfg-mkl-r")


def main() -> None:
    marks = ctypes.CDLL(sys.argv[1])
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, D)) / 8
    y = 0.5 + np.tanh(X.sum(axis=1)) / 2
    learners = [(name, Online.make(name, Settings.paper(11_934), D, isa="avx2")) for name in OF_THE_PAPER]
    learners.append(("graph-mkl", Online.make("graph-mkl", GraphSettings(budget="small"), D, isa="avx2")))
    for _, online in learners:
        online.run(X, y)  # memory is allocated, OMKR has support points, GraphMKL its last refit behind it
    peak("avx2", "least_squares", 1)
    several = Online.make("graph-mkl", GraphSettings(budget=1.5), D, isa="avx2")
    targets, Y = [several, *(several.fresh_copy(0) for _ in range(4))], np.arange(1.0, 6)[:, None] * y
    run_together(targets, X, Y)
    marks.start()
    for name, online in learners:
        marks.mark(b"-")
        online.run(X + 2**-10, y)  # GraphMKL takes less time for rows that it has learned before
        marks.mark(name.encode())
    marks.mark(b"-")
    run_together(targets, X + 2**-10, Y)
    marks.mark(b"graph-mkl-5-targets")
    for what in ("sincos", "least_squares"):
        marks.mark(b"-")
        peak("avx2", what, 1)
        marks.mark(what.encode())


if __name__ == "__main__":
    main()
