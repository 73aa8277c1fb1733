#!/usr/bin/env python3
"""Writes tests/golden/outfeed_stats.txt: numpy's statistics of arrays that break formulas.

    script/make-stats-golden.py > tests/golden/outfeed_stats.txt

Needs python3 with numpy; takes about 40 seconds. The arrays are made of integers by rules that
tests/outfeed/test_outfeed_numpy.c has too, so that none is stored. Sums are numpy's of float64, in parts of
2^20 values that math.fsum() adds up; deviations are taken about the mean, in a second pass.
"""
import math

import numpy as np

PART = 1 << 20
HUGE = 100_000_000


def mixed(i):
    """32 bits of i, well mixed."""
    u = (i * 2654435761) & 0xFFFFFFFF
    u ^= u >> 15
    u = (u * 2246822519) & 0xFFFFFFFF
    return u ^ (u >> 13)


def centred(u):
    """An integer of deviation 512 about 0, in -1535 .. 1534."""
    parts = (u & 1023) + (u >> 10 & 1023) + (u >> 20 & 1023)
    return parts.astype(np.int64) - 1535


def gradient(i, u, n):
    return centred(u) * 2.0**-16


def far(i, u, n):
    return 10000 + (centred(u) >> 9) * 2.0**-10


def bad_first(i, u, n):
    return np.where(i == 0, 0, far(i, u, n))


def huge_first(i, u, n):
    return np.where(i == 0, float(np.finfo(np.float32).max), gradient(i, u, n))


def equal(i, u, n):
    return np.full(len(i), float(np.float32(0.1)))


def one_nan(i, u, n):
    return np.where(i == n * 5 // 7, np.nan, far(i, u, n))


def minus_inf(i, u, n):
    return np.full(len(i), -np.inf)


def denormals(i, u, n):
    return centred(u) * 2.0**-149


def mixture(i, u, n):
    odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0])
    which = (u >> 3) % 16
    return np.where(which < 5, odd[np.minimum(which, 4).astype(int)], gradient(i, u, n))


def magnitudes(i, u, n):
    return np.ldexp(centred(u).astype(float), ((u >> 7) % 200).astype(int) - 120)


KINDS = [gradient, far, bad_first, huge_first, equal, one_nan, minus_inf, denormals, mixture, magnitudes]


def parts_of(kind, n):
    for at in range(0, n, PART):
        i = np.arange(at, min(at + PART, n), dtype=np.uint64)
        wide = kind(i, mixed(i), n)
        x = wide.astype(np.float32).astype(np.float64)
        assert np.array_equal(x, wide, equal_nan=True)  # every value is a float
        yield x


class Row:
    def __init__(self):
        self.counts = np.zeros(6, np.int64)
        self.ends = [math.nan] * 4  # min, max, least |x| but 0, greatest |x|
        self.sums, self.l1, self.squares, self.n = [], [], [], 0

    def add(self, x):
        self.counts += [np.isnan(x).sum(), np.isposinf(x).sum(), np.isneginf(x).sum(),
                        (x == 0).sum(), (x < 0).sum(), (x > 0).sum()]
        x = x[np.isfinite(x)]
        size = np.abs(x)
        some = size[size > 0]
        self.n += len(x)
        if len(x):
            self.ends[0] = np.fmin(self.ends[0], x.min())
            self.ends[1] = np.fmax(self.ends[1], x.max())
            self.ends[3] = np.fmax(self.ends[3], size.max())
        if len(some):
            self.ends[2] = np.fmin(self.ends[2], some.min())
        self.sums.append(x.sum())
        self.l1.append(size.sum())
        self.squares.append((x * x).sum())

    def moments(self, kind, n):
        if self.n == 0:
            return [math.nan] * 4
        mean = math.fsum(self.sums) / self.n
        m2 = []
        for x in parts_of(kind, n):
            d = x[np.isfinite(x)] - mean
            m2.append((d * d).sum())
        return [mean, math.sqrt(math.fsum(m2) / self.n), math.fsum(self.l1),
                math.sqrt(math.fsum(self.squares))]


def line(kind, n):
    row = Row()
    for x in parts_of(kind, n):
        row.add(x)
    numbers = [f"{v + 0.0:.9g}" for v in row.ends] + [f"{v:.17g}" for v in row.moments(kind, n)]
    print(kind.__name__, n, *row.counts, *numbers)


def main():
    print("# script/make-stats-golden.py: kind n; nan +inf -inf zeros negatives positives; min max, "
          "least |x| but 0, greatest |x|; mean std l1 l2")
    for n in range(1, 258):
        line(KINDS[n % len(KINDS)], n)
    for kind in KINDS:
        for n in (0, 1, 257, 4097, 8191, 8193, 1000003):
            line(kind, n)
    line(gradient, HUGE)
    line(bad_first, HUGE)


main()
