#!/usr/bin/env python3
"""Writes tests/golden/cost_model.txt: small cases of docs/cost-model.md's formulas, worked out from its text.

    script/make-cost-golden.py > tests/golden/cost_model.txt

It knows nothing of ipu/: constants and formulas are those of the tables "Targets", "Vector operations"
and "What moves data". A phase is PART CYCLES MEAN TILES BYTES, where MEAN is what a tile takes on
average, at most as long as the busiest.
"""
from fractions import Fraction
from math import ceil, floor

TARGETS = {
    # tiles, clock, bytes of a vector, of a load, exchange, phase, link, remote
    "ipu1": (1216, 1600000000, 8, 8, 4, 513, 54400000000, 0),
    "ipu2": (1472, 1330000000, 8, 8, 4, 513, 54400000000, 5500000000),
    "ipu21": (1472, 1850000000, 8, 8, 4, 513, 54400000000, 5500000000),
}
WORKERS = 6
CALL = 288
LATENCY_NS = 2000
HOST = 5500000000

# Instructions of a function for a vector in a map: float32, float16.
FUNCTIONS = {
    "add": (1, 1), "divide": (9, 20), "divide_by": (5, 15), "select": (2, 2), "exp": (5, 3), "log": (11, 3),
    "sqrt": (9, 22), "sigmoid": (11, 5), "tanh": (11, 3), "relu": (1, 1), "relu_grad": (2, 2), "random": (1, 3),
    "scaled_add": (2, 2), "fill": (0, 0), "cast": (0, 1),
}


class Target:
    def __init__(self, name, tiles):
        (whole, self.clock, self.vector, self.load, self.exchange, self.phase, self.link,
         self.remote) = TARGETS[name]
        self.name, self.tiles = name, tiles or whole
        self.asked = tiles

    def words(self):
        return f"{self.name} {self.asked}"


def up(a, b):
    return -(-a // b)


def deal(target, count, lanes):
    """Whole vectors, evenly: tiles that have any, elements of the fullest, elements on average."""
    vectors = up(count, lanes)
    each = up(vectors, target.tiles)
    tiles = up(vectors, each)
    return tiles, min(each * lanes, count), Fraction(count, tiles)


def vertex(supervisor, prologue, each, lanes, elements):
    return supervisor + WORKERS * (prologue + each * up(up(elements, WORKERS), lanes))


def vertex_mean(supervisor, prologue, each, lanes, elements):
    return supervisor + WORKERS * (prologue + Fraction(each) * elements / (WORKERS * lanes))


def phase(part, cycles, mean, tiles, nbytes):
    return f"{part} {ceil(cycles)} {float(min(mean, ceil(cycles))):.6f} {tiles} {nbytes}"


def map_vertex(functions, dtype, repeated):
    alone = functions[0] if len(functions) == 1 and not repeated else None
    table = {"relu": (9, 20, 2), "relu_grad": (9, 20, 3), "scaled_add": (45, 15 + 3, 3), "fill": (0, 22, 1)}
    if alone in table:
        return table[alone]
    return 11, 20 if repeated else 58, 1 + sum(FUNCTIONS[f][dtype] for f in functions)


def arranged(nbytes, atom):
    each = Fraction("0.44") if atom >= 8 else Fraction("3.125") if atom >= 4 else Fraction("5.148")
    return ceil(587 + each * nbytes)  # the regression gives whole cycles


def maps():
    for target in Target("ipu2", 0), Target("ipu1", 7), Target("ipu2", 1):
        for dtype in 0, 1:
            size, lanes = (4, 2) if dtype == 0 else (2, 4)
            for functions in [[f] for f in FUNCTIONS if f not in ("random", "cast")] + [["add", "exp", "divide"]]:
                for count in 1, 23, 640, 10007:
                    for operands in 1, 2:
                        if functions == ["fill"] and operands > 1:
                            continue
                        tiles, most, mean = deal(target, count, lanes)
                        of = map_vertex(functions, dtype, False)
                        phases = []
                        if operands > 1:
                            got, got_mean = most * size, mean * size
                            phases.append(phase("Op/ExchangePre", Fraction(got, target.exchange),
                                                got_mean / target.exchange, tiles, count * size))
                            phases.append(phase("Op/OnTileCopyPre", arranged(got, 8), arranged(got_mean, 8), tiles, 0))
                        phases.append(phase("Op", vertex(*of, lanes, most), vertex_mean(*of, lanes, mean), tiles, 0))
                        print("map", target.words(), ["float32", "float16"][dtype], "+".join(functions), count, operands,
                              "|", " | ".join(phases))


def copies():
    for target in Target("ipu2", 0), Target("ipu1", 5):
        for dtype in 0, 1:
            size, lanes = (4, 2) if dtype == 0 else (2, 4)
            for count in 3, 1000, 99991:
                for atom in 1, 2, 4:
                    tiles, most, mean = deal(target, count, lanes)
                    got, got_mean = most * size, mean * size
                    print("copy", target.words(), ["float32", "float16"][dtype], count, atom, "|",
                          phase("OnTileCopyPre/ExchangePre", Fraction(got, target.exchange), got_mean / target.exchange,
                                tiles, count * size), "|",
                          phase("OnTileCopy-0", arranged(got, atom * size), arranged(got_mean, atom * size), tiles, 0))


def fifos():
    for target in Target("ipu2", 0), Target("ipu21", 0), Target("ipu2", 9):
        for nbytes in 0, 1, 4096, 11777, 50_000_000:
            push = target.phase + CALL + ceil(Fraction(nbytes, target.tiles * target.load)) if nbytes else 0
            far = ceil(Fraction(LATENCY_NS * target.clock, 10**9) + Fraction(nbytes * target.clock, target.remote)) if nbytes else 0
            print("fifo", target.words(), nbytes, push, far)


def streams():
    for target in Target("ipu1", 0), Target("ipu2", 0), Target("ipu21", 0):
        for nbytes in 0, 1, 4096, 123457, 10_000_000:
            fixed = Fraction(LATENCY_NS * target.clock, 10**9)
            print("stream", target.words(), nbytes, ceil(fixed + Fraction(nbytes * target.clock, HOST)),
                  floor(fixed * 155 / 1755), floor(fixed * 87 / 1755))


def syncs():
    """Within an IPU 126; between IPUs 600 (Mk1 500) and 15 ns more for each hop, there and back."""
    for name, between in ("ipu1", 500), ("ipu2", 600), ("ipu21", 600):
        target = Target(name, 0)
        for ipus in 1, 2, 3, 4, 7, 8, 64:
            hops = 1 + ipus // 4
            print("sync", target.words(), ipus,
                  126 if ipus == 1 else ceil(between + Fraction(2 * hops * 15 * target.clock, 10**9)))


def all_reduces():
    """A ring: (6 + 2 (R - 2)) phases, 2 (R - 1) shares over the link, and the four phases' own work."""
    for target in Target("ipu2", 0), Target("ipu1", 0), Target("ipu2", 11):
        for replicas in 1, 2, 3, 4, 16:
            for nbytes in 0, 4, 4096, 401408, 102_400_000:
                if replicas < 2 or not nbytes:
                    print("all_reduce", target.words(), replicas, nbytes, 0, 0, 0)
                    continue
                sync = (6 + 2 * (replicas - 2)) * target.phase
                share = up(nbytes, replicas)
                link = ceil(Fraction(share * target.clock, target.link))
                local = ceil(Fraction(nbytes, target.tiles * target.exchange))
                add = ceil(Fraction(nbytes // replicas, target.tiles * target.vector))
                exchange = 2 * (replicas - 1) * link + 2 * local
                print("all_reduce", target.words(), replicas, nbytes, sync, exchange, sync + exchange + 2 * add)


maps()
copies()
fifos()
streams()
syncs()
all_reduces()
