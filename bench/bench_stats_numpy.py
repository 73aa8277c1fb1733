#!/usr/bin/env python3
"""What numpy takes for the columns of a statistics row, pass by pass: called by bench_stats.

    bench_stats_numpy.py FLOATS ROUNDS

Prints a line for each pass, its name and the least milliseconds of all rounds, of the same array as
bench_stats fills. Exit code 3: there is no numpy.
"""
import sys
import time

try:
    import numpy as np
except ImportError:
    sys.exit(3)

PASSES = {
    "mean": lambda x: x.mean(),
    "std": lambda x: x.std(),
    "min": lambda x: x.min(),
    "max": lambda x: x.max(),
    "isnan": lambda x: np.count_nonzero(np.isnan(x)),
    "isinf": lambda x: np.count_nonzero(np.isinf(x)),
    "zeros": lambda x: x.size - np.count_nonzero(x),
    "negatives": lambda x: np.count_nonzero(x < 0),
    "l1": lambda x: np.abs(x).sum(),
    "l2": lambda x: np.dot(x, x),
    "abs max": lambda x: np.abs(x).max(),
}


def fill(count):
    """The same integers as fill() of bench_stats.c, in parts, so that they need little memory."""
    values = np.empty(count, np.float32)
    for at in range(0, count, 1 << 20):
        u = (np.arange(at, min(at + (1 << 20), count), dtype=np.uint64) * 2654435761) & 0xFFFFFFFF
        parts = (u >> 2 & 1023) + (u >> 12 & 1023) + (u >> 22 & 1023)
        values[at : at + len(u)] = (parts.astype(np.float32) - 1534) * np.float32(2.0**-16)
    return values


def main():
    values = fill(int(sys.argv[1]))
    for name, run in PASSES.items():
        best = float("inf")
        for _ in range(int(sys.argv[2])):
            start = time.perf_counter()
            run(values)
            best = min(best, time.perf_counter() - start)
        print(f"{name}\t{best * 1e3:.3f}")


main()
