#!/usr/bin/env python3
"""Writes tests/golden/elementary.txt: exact values of elementary functions at chosen arguments.

    script/make-elementary-golden.py > tests/golden/elementary.txt

Needs python3-mpmath. A line is: function, x, y (0 where there is none), high, low, exponent. The
value is (high + low) 2^exponent with high from 1/2 to 1 in size, all but the exponent as C writes
hexadecimal doubles; so results below the normal range have their exact value too.
"""
import random

import mpmath

mpmath.mp.prec = 300
random.seed(17)
ROWS = 150


def line(name, value, x, y=0.0):
    _, exponent = mpmath.frexp(value)
    if not -1074 <= exponent <= 1024:
        return
    scaled = mpmath.ldexp(value, -exponent)
    high = float(scaled)
    print(name, x.hex(), y.hex(), high.hex(), float(scaled - high).hex(), exponent)


def any_size():
    return random.uniform(0.5, 1.0) * 2.0 ** random.randint(-1073, 1023)


def near(to):
    return to + random.uniform(-0.5, 0.5) * 2.0 ** -random.randint(0, 48)


def arguments(kinds):
    for i in range(ROWS):
        yield kinds[i % len(kinds)]()


for x in arguments([any_size, lambda: near(1.0), lambda: random.uniform(0.5, 2.0)]):
    line("log", mpmath.log(x), x)
for x in arguments([any_size, lambda: near(0.0), lambda: random.uniform(0.0, 1.0)]):
    line("log1p", mpmath.log1p(x), x)
for x in arguments([lambda: near(0.0), lambda: random.uniform(0.0, 1.0), lambda: random.uniform(-99.0, 99.0)]):
    line("cos_pi", mpmath.cos(mpmath.pi * mpmath.mpf(x)), x)
for x in arguments([lambda: random.uniform(0.0, 1.0), lambda: near(1.0), any_size, any_size]):
    widest = 745.0 / float(abs(mpmath.log(x)))
    y = random.uniform(-1.0, 1.0) * min(widest, random.choice([10.0, 1000.0, 1e300]))
    line("pow", mpmath.power(x, y), x, y)
for x, y in [(0.999, 1000.0), (0.9, 1.0), (0.5, 1074.0), (0.5, 3.0), (10.0, 22.0), (2.0, 0.5), (0.96, 50.0)]:
    line("pow", mpmath.power(x, y), x, y)
