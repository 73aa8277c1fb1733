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
    "ipu1": (1216, 1600000000, 8, 8, 4, 205, 54400000000, 0),
    "ipu2": (1472, 1330000000, 8, 8, 4, 205, 54400000000, 5500000000),
    "ipu21": (1472, 1850000000, 8, 8, 4, 205, 54400000000, 5500000000),
    "c600": (1472, 1490000000, 8, 8, 4, 205, 54400000000, 0),
}
WORKERS = 6
CALL = 288
LATENCY_NS = 2000
# Bytes a second of the link to the host: a gateway's, or PCIe of 8 and 16 GT/s with 8 lanes, coded 128 in 130, at 85 %.
HOST = {"ipu1": Fraction(8 * 10**9 * 128 * 85, 130 * 100), "ipu2": Fraction(5500000000), "ipu21": Fraction(5500000000),
        "c600": Fraction(16 * 10**9 * 128 * 85, 130 * 100)}

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


def arranged(target, nbytes, atom):
    """The regression gives whole cycles, of the copy and of both its phases, which are charged apart."""
    each = Fraction("0.44") if atom >= 8 else Fraction("3.125") if atom >= 4 else Fraction("5.148")
    return ceil(587 - 2 * target.phase + each * nbytes)


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
                            phases.append(phase("Op/OnTileCopyPre", arranged(target, got, 8), arranged(target, got_mean, 8), tiles, 0))
                        phases.append(phase("Op", vertex(*of, lanes, most), vertex_mean(*of, lanes, mean), tiles, 0))
                        print("map", target.words(), ["float32", "float16"][dtype], "+".join(functions), count, operands,
                              "|", " | ".join(phases))


# What an AMP vertex works with: units, input channels of a group, cycles of a position, output channels of a group;
# "common" are float16 with 16 units or float32 partials.
USES = {
    # name: mode, units, group, c, P = output channels of a group / units, bytes of a partial, common
    "float": ("float", 16, 8, 8, 1, 4, False),
    "float_half_units": ("float", 8, 8, 8, 2, 4, False),
    "half_float": ("half", 8, 16, 4, 2, 4, True),
    "half_half": ("half_half", 16, 16, 4, 1, 2, True),
    "half_half_few": ("half_half", 8, 16, 4, 2, 2, False),
}


def worker_1x1(use, n, zero):
    mode, units, _, c, _, _, common = use
    if mode == "float":
        z = 8 if units == 16 else 4
        return 24 if n == 0 else 47 + (2 + z) * zero if n == 1 else 46 + (2 + 2 * z) * zero if n == 2 else (
            46 + (2 + z * n) * zero + c * (n - 3))
    if common:
        return 15 - zero if n == 0 else 26 - zero if n == 1 else 35 - zero if n == 2 else 31 - zero + c * (n - 3)
    return 39 + 4 * zero if n == 1 else 40 + 6 * zero if n == 2 else 41 + (2 + 2 * n) * zero + c * (n - 3)


def inner_1x1(use, positions, zero):
    cycles = [worker_1x1(use, n, zero) for n in (up(positions, WORKERS), positions // WORKERS)]
    return max(WORKERS * max(cycles), WORKERS * min(cycles) + 14)


def amp_1x1(use, positions, n_in, n_out, n_groups):
    mode, units, _, _, P, _, common = use
    L = Fraction(units * 32, 8)
    r, r2 = (7, 3) if common else (0, 0)
    k = 1 if mode == "float" or common else 0
    return 50 + 6 * r + 6 * r2 * (n_in * n_groups - 1) + n_groups * (
        12 + k + (n_in - 1) * (16 - k + n_out * (19 + P * (6 + L + inner_1x1(use, positions, 0)))) +
        11 + n_out * (19 - k + P * (7 + L + inner_1x1(use, positions, 1))))


def worker_nx1(use, rows, columns):
    """The slowest worker's tap: positions are shared out evenly, in order, and a share begins and ends within rows."""
    mode, _, _, c, _, _, common = use
    total, slowest = rows * columns, 0
    for w in range(WORKERS):
        pieces = {}
        for position in range(total * w // WORKERS, total * (w + 1) // WORKERS):
            pieces[position // columns] = pieces.get(position // columns, 0) + 1
        cycles = 17 + (1 if mode == "half_half" else 0)
        for n in pieces.values():
            if mode == "float":
                f = {1: 33, 2: 44}.get(n, 45 + c * (n - 3))
            else:
                f = {1: 29, 2: 34 if common else 33}.get(n, 34 + c * (n - 3))
            cycles += 3 + f - 9
        slowest = max(slowest, cycles)
    return slowest


def amp_nx1(use, rows, columns, n_in, n_out, n_groups, K, k, height):
    mode, units, _, _, P, size, _ = use
    L = Fraction(units * 32, 8)
    h = {1: 15, 2: 46, 4: 60}[height]
    worker = worker_nx1(use, rows, columns)
    inner = K * (14 + k * (12 + P * (L + h + 3))) + 6 * worker * P * K * k
    vec = 4 if mode == "half_half" else 2
    zeroing = 6 * n_out * n_groups * (up(up(rows * columns * units * P, 6), vec) + 5)
    return 109 + 54 + 6 * (10 if mode == "half_half" else 9) + n_groups * (17 * n_out + 6 * (n_out - 1) + 1) + \
        6 * (n_groups - 1) + 1 + n_groups * (16 + n_in * (14 + n_out * (14 + inner))) + zeroing


def vertices():
    for name, use in USES.items():
        words = f"{use[0]} {use[1]} {use[2]} {use[4]}"
        for positions in 6, 7, 12, 18, 59, 1000:
            for groups in (1, 1, 1), (2, 1, 1), (1, 3, 1), (3, 2, 4):
                print("amp_1x1", words, positions, *groups, float(amp_1x1(use, positions, *groups)))
        for rows, columns in (1, 1), (1, 12), (2, 9), (6, 10), (7, 13), (13, 7), (100, 3):
            print("amp_nx1_worker", words, rows, columns, worker_nx1(use, rows, columns))
            for height in 1, 2, 4:
                for share in (1, 1, 1, 1, 1), (2, 3, 1, 3, 3), (1, 1, 5, 1, 2), (2, 2, 2, 2, 1):
                    print("amp_nx1", words, height, rows, columns, *share,
                          float(amp_nx1(use, rows, columns, *share, height)))


def slic_row(n, stride, half):
    """A piece of a row of n positions: with float32 partials the input is passed over twice."""
    if stride == 2:
        row = {1: 13, 2: 15}.get(n, 15 + 2 * (n - 3))
    else:
        row = 13 if n == 1 else 17 + n if n < 5 else 15 + n - 5
    return 10 + row if half else 10 + 3 + 2 * (row - 1)


def slic():
    for half in False, True:
        for together in (1, 2, 4, 8, 16) if half else (1, 2, 4):
            for stride in 1, 2:
                for rows, columns in (1, 1), (1, 12), (2, 9), (6, 10), (7, 13), (13, 7), (100, 3):
                    shares = [{} for _ in range(WORKERS)]
                    for w in range(WORKERS):
                        for at in range(rows * columns * w // WORKERS, rows * columns * (w + 1) // WORKERS):
                            shares[w][at // columns] = shares[w].get(at // columns, 0) + 1
                    worker = max(sum(slic_row(n, stride, half) for n in share.values()) for share in shares)
                    worker += 17 + (4 if together > 4 else 0)
                    words = f"{'float16' if half else 'float32'} {together} {stride} {rows} {columns}"
                    print("slic_worker", words, worker)
                    for groups, taps in (1, 1), (1, 3), (5, 3), (2, 14):
                        load = 34 if together == 1 else 37 + WORKERS * {2: 12, 4: 10}.get(together, 11)
                        body = load + 20
                        if together > 4:
                            turns = together // 4
                            body = (load + 21) * turns + 6 * (turns - 1) + 1 + 15
                        cycles = 28 + (23 if together > 4 else 15) * groups + 6 * (groups - 1) + 1
                        cycles += body * taps + 6 * (taps - 1) + 1
                        cycles += groups * taps * max(together // 4, 1) * WORKERS * worker
                        print("slic", words, groups, taps, float(cycles))


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
                          phase("OnTileCopy-0", arranged(target, got, atom * size), arranged(target, got_mean, atom * size), tiles, 0))


def fifos():
    for target in Target("ipu2", 0), Target("ipu21", 0), Target("ipu2", 9):
        for nbytes in 0, 1, 4096, 11777, 50_000_000:
            push = target.phase + CALL + ceil(Fraction(nbytes, target.tiles * target.load)) if nbytes else 0
            far = ceil(Fraction(LATENCY_NS * target.clock, 10**9) + Fraction(nbytes * target.clock, target.remote)) if nbytes else 0
            print("fifo", target.words(), nbytes, push, far)


def streams():
    for target in Target("ipu1", 0), Target("ipu2", 0), Target("ipu21", 0), Target("c600", 0):
        for nbytes in 0, 1, 4096, 123457, 10_000_000:
            fixed = Fraction(LATENCY_NS * target.clock, 10**9)
            print("stream", target.words(), nbytes, ceil(fixed + nbytes * target.clock / HOST[target.name]),
                  floor(fixed * 155 / 1755), floor(fixed * 87 / 1755))


def syncs():
    for name in "ipu1", "ipu2", "ipu21":
        target = Target(name, 0)
        for ipus in 1, 2, 3, 4, 7, 8, 64:
            print("sync", target.words(), ipus, sync_between(name, target.clock, ipus))


def sync_between(name, clock, ipus):
    """600 cycles (Mk1 500) and 15 ns more for each hop, there and back; one IPU by itself has 126."""
    hops = 1 + ipus // 4
    return 126 if ipus == 1 else ceil((500 if name == "ipu1" else 600) + Fraction(2 * hops * 15 * clock, 10**9))


# IPUs of a domain of IPU-Links, and bytes a second of one from domain to domain: a Pod64 of 16 machines with four IPUs
# and two GW-Links of 100 Gb/s each; a server of Mk1 cards with 16 IPUs and a network port of 100 Gb/s.
DOMAINS = {"ipu1": (16, Fraction(12_500_000_000, 16)), "ipu2": (64, Fraction(25_000_000_000, 4))}


def meets(own, members, nbytes, least):
    """Does a ring meet in the middle? One IPU a replica: by size; more: on the torus of a whole Pod64."""
    if members <= 2:
        return False
    if own > 1:
        return members * own >= 64
    return nbytes < least or members > 4 and nbytes < 4 * least or members > 8 and nbytes < 32 * least or members > 16


def all_reduces():
    """Rings in each domain and between the domains, first to scatter the sums, then to gather them. A round has a sync
    of the IPUs of a domain (a network round trip more between domains), the share over the links, and three phases;
    before the rounds are three, one more where shares are copied, and one more after rounds that meet."""
    for target, sizes in (Target("ipu2", 0), (1, 2, 3, 4, 6, 16, 64, 128, 200, 4096)), (
            Target("ipu1", 0), (2, 16, 32)), (Target("ipu2", 11), (2, 3)):
        most, gateway = DOMAINS[target.name]
        for replicas in sizes:
            for own in 1, 2, 4, 128:
                for nbytes in 0, 4, 401408, 2_000_000, 102_400_000:
                    if replicas < 2 or not nbytes:
                        print("all_reduce", target.words(), replicas, own, nbytes, 0, 0, 0)
                        continue
                    inside = min(max(most // own, 1), replicas)
                    domains = up(replicas, inside)
                    share = up(nbytes, inside)
                    beyond = up(share, domains)
                    meeting = max(sync_between(target.name, target.clock, inside * own), target.phase)
                    trip = meeting + ceil(Fraction(LATENCY_NS * target.clock, 10**9))
                    sync = exchange = work = 0
                    for gathers in False, True:
                        middle = meets(own, inside, share if gathers else nbytes, 622592 if gathers else 1245184)
                        rate = Fraction(target.link)
                        if own > 1 or inside > 2 and middle:
                            rate /= max(own, 2)
                        for rounds, part, over, wait, added in (
                                (inside // 2 if middle else inside - 1, share, rate, meeting, gathers or middle),
                                (domains - 1, beyond, gateway, trip, gathers)):
                            if rounds:
                                sync += (3 + added + 3 * rounds) * target.phase + rounds * wait
                                exchange += rounds * ceil(part * target.clock / over)
                                exchange += (1 + rounds) * ceil(Fraction(part, target.tiles * target.exchange))
                                work += (added + rounds) * ceil(Fraction(part, target.tiles * target.vector))
                    print("all_reduce", target.words(), replicas, own, nbytes, sync, exchange,
                          sync + exchange + work)


maps()
vertices()
slic()
copies()
fifos()
streams()
syncs()
all_reduces()
