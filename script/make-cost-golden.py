#!/usr/bin/env python3
"""Writes tests/golden/cost_model.txt: small cases of docs/cost-model.md's formulas, worked out from its text.

    script/make-cost-golden.py > tests/golden/cost_model.txt

It knows nothing of ipu/: constants and formulas are those of the document's tables. A phase is
PART CYCLES MEAN TILES BYTES, where MEAN is what a tile takes on average, at most as long as the busiest.
"""
from fractions import Fraction
from itertools import groupby, product
from math import ceil, floor, gcd

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


def deal(target, count, lanes, tiles=1472):
    """Whole vectors, evenly: tiles that have any, elements of the fullest, elements on average."""
    vectors = up(count, lanes)
    each = up(vectors, min(tiles, target.tiles))
    tiles = up(vectors, each)
    return tiles, min(each * lanes, count), Fraction(count, tiles)


def vertex(supervisor, prologue, each, lanes, elements):
    return supervisor + WORKERS * (prologue + each * up(up(elements, WORKERS), lanes))


def vertex_mean(supervisor, prologue, each, lanes, elements):
    return supervisor + WORKERS * (prologue + Fraction(each) * elements / (WORKERS * lanes))


def phase(part, cycles, mean, tiles, nbytes):
    return f"{part} {ceil(cycles)} {float(min(mean, ceil(cycles))):.6f} {tiles} {nbytes}"


def map_vertex(functions, dtype, repeated):
    alone = functions[0] if len(functions) == 1 else None
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


# On the vector pipe: bytes of an element, elements of a vector.

DTYPES = {"float32": (4, 2), "float16": (2, 4)}


def line(kind, target, words, phases, temporary, flops):
    print(kind, target.words(), *words, *(f"| {p}" for p in phases), "temporary", temporary, "flops", flops)


def exchanged(target, part, most, total, tiles):
    """The busiest tile receives @most bytes, all together @total; nothing sent is no phase."""
    if not most:
        return []
    return [phase(part, Fraction(most, target.exchange), Fraction(total) / (tiles * target.exchange), tiles, ceil(total))]


def in_place(target, part, most, total, tiles):
    """An operand with another layout is arranged where it arrived."""
    return [phase(part, arranged(target, most, 8), arranged(target, Fraction(total, tiles), 8), tiles, 0)]


def worked(part, of, lanes, over):
    """A vertex (supervisor, prologue, each) on elements that are spread over tiles."""
    tiles, most, mean = over
    return [phase(part, vertex(*of, lanes, most), vertex_mean(*of, lanes, mean), tiles, 0)]


def time_of(target, phases):
    return sum(int(p.split()[1]) + target.phase for p in phases)


def maps_alone():
    """Masks, casts, and maps with a repeated operand, of which a tile needs as many as it has elements."""
    for target in Target("ipu2", 0), Target("ipu1", 7), Target("ipu2", 1):
        for dtype, (size, lanes) in DTYPES.items():
            for count in 1, 5, 23, 10007:
                over = tiles, most, mean = deal(target, count, lanes)
                line("map", target, (dtype, "random", count, 0), worked("Op", (6, 24, lanes), lanes, over), 0, count)
                line("map", target, (dtype, "cast", count, 1), worked("Op", (0, 26, Fraction(lanes, 2)), lanes, over), 0, 0)
                if count == 23:
                    for function, flops in ("scaled_add", 2 * count), ("fill", 0):
                        phases = worked("Op", map_vertex([function], dtype == "float16", False), lanes, over)
                        line("map", target, (dtype, function, count, 1), phases, 0, flops)
                repeats = (["add"], 1, 1), (["add"], 1, 1429), (["add", "divide_by"], 2, 10), (["relu"], 1, 10)
                for functions, operands, repeated in repeats if count in (5, 10007) else ():
                    needed = min(most, repeated)
                    got = (needed + most * (operands - 1)) * size
                    total = (min(needed, mean) * tiles + count * (operands - 1)) * size
                    phases = exchanged(target, "Op/ExchangePre", got, total, tiles)
                    if operands > 1:
                        phases += in_place(target, "Op/OnTileCopyPre", most * size, count * size, tiles)
                    phases += worked("Op", map_vertex(functions, dtype == "float16", True), lanes, over)
                    line("map_repeated", target, (dtype, "+".join(functions), count, operands, repeated), phases, got,
                         count * len(functions))


def sums_on_tiles(target, parts, half, depth, over):
    """A reduction on tiles; few outputs may be made as several sums side by side, which a second compute set adds."""
    if depth == 1:
        return []
    lanes, tiles, most, mean = 4 if half else 2, *over
    o = 13 if half else 10

    def at_once(part, d, side):
        return worked(part, (0, 16, o + d), lanes, (tiles, most * side, mean * side))

    ways = [at_once(parts(0), depth, 1)]
    ways += [at_once(parts(0), up(depth, side), side) + at_once(parts(1), side, 1)
             for side in (2, 4, 8, 16) if most * side <= lanes * WORKERS]
    return min(ways, key=lambda phases: time_of(target, phases))


def sums_over_tiles(target, parts, partials, outputs):
    """Stages sum float32, at once. Each but the last takes the root of what is left by as many stages as are left."""
    phases, gathered = [], 0
    stages = 0 if partials < 2 else 1 if partials <= 64 else 2 if partials <= 64**2 else 3
    for number in range(stages):
        left = stages - number
        by = max(n for n in range(1, partials + 1) if n**left <= partials)
        after = up(partials, by)
        over = tiles, most, _ = deal(target, outputs * after, 1)
        phases += exchanged(target, parts(number) + "/ExchangePre", most * by * 4, partials * outputs * 4, tiles)
        phases += worked(parts(number), (0, 16, 10 + by), 2, over)
        gathered, partials = max(gathered, most * by * 4), after
    return phases, gathered


def tile_choices(most):
    choices, t = {1216, 1472}, 1
    while t <= most:
        choices.add(t)
        t += 1 + t // 20
    return sorted(t for t in choices if t <= most)


def reduction(target, parts, dtype, inputs, outputs, sent=False):
    """On the fastest number of tiles, each with inputs of as many outputs as possible, then over tiles."""
    ways, size = [], DTYPES[dtype][0]
    for choice in tile_choices(min(target.tiles, inputs)):
        tiles, most, mean = deal(target, inputs, 1, choice)
        own = min(outputs, most)
        phases = sums_on_tiles(target, parts, dtype == "float16", up(most, own), (tiles, own, min(Fraction(own), mean)))
        number = len(phases)
        if sent:
            phases = exchanged(target, parts(0) + "/ExchangePre", most * size, inputs * size, tiles) + phases
        more, gathered = sums_over_tiles(target, lambda n: parts(n + number), up(tiles * own, outputs), outputs)
        ways.append((phases + more, max(gathered, most * size if sent else 0)))
    return min(ways, key=lambda way: time_of(target, way[0]))


def reductions():
    def parts(number):
        return f"Reduce{number}"

    for dtype in DTYPES:
        for depth in 1, 2, 64, 128, 1000:
            for outputs in 1, 11, 12, 13, 24, 25, 101:
                target = Target("ipu2", 1)
                line("reduction", target, (dtype, depth * outputs, outputs),
                     *reduction(target, parts, dtype, depth * outputs, outputs), (depth - 1) * outputs)
    for target in Target("ipu1", 7), Target("ipu2", 30), Target("ipu1", 0), Target("ipu2", 0):
        for dtype in DTYPES:
            for inputs, outputs in (2, 1), (1000, 1), (1000, 999), (1001, 13), (16384, 64), (16384, 5000), (99991, 1), (
                    99991, 24), (10**9, 10):
                line("reduction", target, (dtype, inputs, outputs), *reduction(target, parts, dtype, inputs, outputs),
                     inputs - outputs)
    for target in Target("ipu2", 0), Target("ipu1", 3):
        for partials in 1, 2, 8, 63, 64, 65, 80, 1472, 4096, 4097, 15000, 300_000:
            for outputs in 1, 13, 1000:
                phases, gathered = sums_over_tiles(target, parts, partials, outputs)
                line("reduce_over_tiles", target, (partials, outputs), phases, gathered, 0)


def pool_worker(positions, columns, every, most):
    """Pieces of rows and positions of each worker: positions are shared out evenly, in order. Of a gradient's piece only
    every stride'th column has work for a tap, and no more than there are windows."""
    for w in range(WORKERS):
        pieces = {}
        for at in range(positions * w // WORKERS, positions * (w + 1) // WORKERS):
            pieces[at // columns] = pieces.get(at // columns, 0) + 1
        yield len(pieces), sum(min(up(n, every), most) for n in pieces.values())


def pool_vertex(pool, out, positions, columns, groups, v):
    largest, backward, kernel, stride = pool
    grad = largest and backward
    first = 23 if grad else 13 if largest else 14
    taps = min(up(kernel[0], stride[0]), out[0]) * kernel[1] if backward else kernel[0] * kernel[1]
    slowest = 0
    for p, m in pool_worker(positions, columns, *((stride[1], out[1]) if backward else (1, columns))):
        each = 5 * p + 5 * m if grad else (4 if largest else 5) * p + 3 * m
        slowest = max(slowest, groups * (4 + up(v * positions, 6)) + first + 15 * p + taps * (
            p * (23 + (6 if grad else 4) * (groups - 1)) + groups * (2 * p + v * each)))
    return 13 + WORKERS * (27 + slowest)


def pool_covered(pool, size, out, n, d):
    """What n neighbours need in dimension d: of the outputs their windows, of the inputs all windows that may have them."""
    kernel, stride = pool[2][d], pool[3][d]
    if pool[1]:
        return min((n + kernel - 2) // stride + 1, out[d])
    return min((n - 1) * stride + kernel if kernel > stride else n * kernel, size[d])


def parts_of(size, tiles):
    """Largest parts of a dimension of few elements, from one part on."""
    return sorted({up(size, n) for n in range(1, min(size, tiles) + 1)}, reverse=True)


def pool_plan(target, pool, dtype, batch, channels, field, out):
    """The fastest cut; of several the first, by vectors of a group, parts of the batch, of rows, of columns."""
    size, lanes = DTYPES[dtype]
    largest, backward = pool[:2]
    grad = largest and backward
    over = field if backward else out
    ways = []
    for v in 1, 2, 4, 8:
        if v * lanes > 16 or v > 1 and v * lanes >= 2 * channels:
            continue
        of = up(up(channels, lanes), v)
        for b, r, c in product(*(parts_of(of_all, target.tiles) for of_all in (batch, *over))):
            tiles = up(batch, b) * up(over[0], r) * up(over[1], c)
            if tiles > target.tiles:
                continue
            groups = up(of, min(of, target.tiles // tiles))
            tiles *= up(of, groups)
            held = b * groups * v * lanes
            got = pool_covered(pool, field, out, r, 0) * pool_covered(pool, field, out, c, 1) * (2 if grad else 1)
            got = held * (got + (r * c if grad else 0)) * size
            full = Fraction(batch * channels * over[0] * over[1], held * r * c * tiles)
            work = pool_vertex(pool, out, b * r * c, c, groups, v)
            phases = exchanged(target, "Pool/ExchangePre", got, got * tiles * full, tiles)
            if v * lanes != max(gcd(channels, 16), lanes):
                phases.append(phase("Pool/OnTileCopyPre", Fraction(got, 4), Fraction(got, 4) * full, tiles, 0))
            ways.append((phases + [phase("PoolGrad" if backward else "Pool", work, work * full, tiles, 0)], got))
    return min(ways, key=lambda way: time_of(target, way[0]))


def pools():
    shapes = (
        (1, 1, (1, 1), (1, 1), (1, 1), (1, 1)), (1, 16, (4, 4), (2, 2), (2, 2), (2, 2)),
        (2, 3, (8, 7), (6, 5), (3, 3), (1, 1)), (3, 40, (7, 13), (3, 6), (3, 3), (2, 2)),
        (1, 130, (9, 9), (3, 3), (3, 3), (3, 3)), (1, 8, (5, 11), (1, 1), (5, 11), (5, 11)),
        (1, 32, (1, 25), (1, 12), (1, 3), (1, 2)), (5, 64, (3, 7), (1, 3), (3, 5), (1, 1)),
        (1, 6, (9, 8), (5, 3), (1, 2), (2, 3)), (13, 2, (2, 2), (1, 1), (2, 2), (2, 2)))
    for target in Target("ipu1", 1), Target("ipu2", 7):
        for dtype in DTYPES:
            for largest, backward in product((False, True), (False, True)):
                for batch, channels, field, out, kernel, stride in shapes:
                    words = (dtype, "max" if largest else "average", "backward" if backward else "forward", batch, channels)
                    line("pool", target, (*words, *field, *out, *kernel, *stride),
                         *pool_plan(target, (largest, backward, kernel, stride), dtype, batch, channels, field, out),
                         batch * channels * out[0] * out[1] * kernel[0] * kernel[1])


STEPS = {
    # Sums and maximums of a row "=", maps of its elements "*" and of its one number "1", with their functions.
    "softmax": (("=", "SoftmaxMax"), ("*", "SoftmaxSub/Exp", "add", "exp"), ("=", "SoftmaxSum"),
                ("*", "SoftmaxDiv", "divide_by")),
    "softmax_grad": (("*", "SoftmaxGrad/Mul", "add"), ("=", "SoftmaxGrad"), ("*", "SoftmaxGrad/SubMul", "add", "add")),
    "cross_entropy": (("=", "Max"), ("*", "SubExp", "add", "exp"), ("=", "Sum"), ("1", "Log", "log"),
                      ("*", "SubMul", "add", "add", "add", "select"), ("=", "Loss"), ("*", "Grad", "divide_by", "add")),
    "error": (("*", "SubSquare", "add", "add"), ("=", "Error"), ("*", "Grad", "add", "add")),
    "accuracy": (("max", "ArgMax"), ("equal", "CalcAccuracy")),
}

FLOPS = {"softmax": 5, "softmax_grad": 4, "cross_entropy": 3, "error": 3, "accuracy": 1}


def row_steps(target, work, dtype, rows, columns, pieces):
    """Rows, each in pieces, are shared out over the tiles; sums over pieces end on a tile of the row and return."""
    size, lanes = DTYPES[dtype]
    half = dtype == "float16"
    length = up(columns, pieces)
    cut = tiles, most, mean = deal(target, rows * pieces, 1)
    whole = deal(target, rows, 1)
    elements = tiles, most * length, mean * columns / pieces
    got, total = most * length * size, rows * columns * size
    phases = exchanged(target, "Rows/ExchangePre", got, total, tiles)
    phases += in_place(target, "Rows/OnTileCopyPre", got, total, tiles)
    for kind, part, *functions in STEPS[work]:
        added, gathered = [], 0
        if kind == "=":
            added = sums_on_tiles(target, lambda n: f"{part}/Reduce{n}", half, length, cut)
        elif kind == "max":
            added = worked(part, (9, 20, 3 * lanes), lanes, elements)
        elif kind == "equal":
            added = worked(part, (9, 20, 4 * 2), 2, whole)
        else:
            of = 11, 58, 1 + sum(FUNCTIONS[f][half] for f in functions)
            added = worked(part, of, lanes, elements if kind == "*" else whole)
        if kind in ("=", "max"):
            first = len(added) if kind == "=" else 0
            more, gathered = sums_over_tiles(target, lambda n: f"{part}/Reduce{first + n}", pieces, rows)
            added += more
        if kind == "=" and pieces > 1:
            added += exchanged(target, part + "/Broadcast/ExchangePre", most * size, rows * pieces * size, tiles)
        phases += added
        got = max(got, gathered)
    return phases, 2 * got


def rows_plan(target, work, dtype, rows, columns):
    """As many pieces as are fastest, the fewest of several; losses and hits are summed over all rows."""
    ways = [row_steps(target, work, dtype, rows, columns, 2**n) for n in range(11) if 2**n <= columns]
    phases, most = min(ways, key=lambda way: time_of(target, way[0]))
    if not work.startswith("softmax") and rows > 1:
        total, gathered = reduction(target, lambda n: f"Total/Reduce{n}", dtype, rows, 1, sent=True)
        phases, most = phases + total, max(most, gathered)
    return phases, most


def rows():
    for target in Target("ipu2", 1), Target("ipu1", 0):
        for dtype in DTYPES:
            for work in STEPS:
                for shape in (1, 1), (2, 5), (64, 10), (1, 4000), (5, 50000), (4000, 10), (300, 777):
                    if shape[0] * shape[1] < 10000 * target.tiles:
                        line("rows", target, (dtype, work, *shape), *rows_plan(target, work, dtype, *shape),
                             shape[0] * shape[1] * FLOPS[work])


def slice_plan(target, update, dtype, entries, columns, lookups, tables):
    """The fastest cut into groups of lookups, parts of columns and of entries; of several the first, in this order."""
    size, lanes = DTYPES[dtype]
    together = min(tables, target.tiles)
    each = up(tables, together)
    share = target.tiles // together
    vectors = up(columns, lanes)
    ways = []
    for g, c, e in product((1, 2, 4, 8), range(1, 9), range(1, 9)):
        if g * c * e > share or g > lookups or e > entries or up(vectors, up(vectors, c)) != c:
            continue
        tiles = g * c * e * together
        width = up(vectors, c) * lanes
        of = up(lookups, g)
        inside = each * up(of, e)
        of *= each
        table = each * up(entries, e) * width * size
        got = of * 4 + (of * width * size if update else table - table // g)
        start, found, step, missed = (38, 11, 3, 5) if update else (30, 19, 2, 8)
        found += step * up(width, 2)
        name = "MultiUpdateAdd" if update else "MultiSlice"
        work = WORKERS * (start + up(inside, WORKERS) * found + up(of - inside, WORKERS) * missed)
        phases = exchanged(target, "MultiSlice/ExchangePre", got, got * tiles, tiles)
        phases.append(phase(name + "/stage0", work, work, tiles, 0))
        held = got + (0 if update else of * width * size)
        if update and g > 1:
            added, gathered = sums_over_tiles(target, lambda n: f"{name}/Reduce{n}", g, entries * columns * tables)
            phases += added
            held = max(got, gathered) + 2 * table
        if not update and e > 1:
            held += of * width * size
            work = WORKERS * (start + up(up(of, e), WORKERS) * found)
            phases += exchanged(target, name + "/stage1/ExchangePre", of * width * size, of * width * size * tiles, tiles)
            phases.append(phase(name + "/stage1", work, work, tiles, 0))
        ways.append((phases, held))
    return min(ways, key=lambda way: time_of(target, way[0]))


def slices():
    for target in Target("ipu2", 1), Target("ipu1", 3), Target("ipu2", 8):
        for dtype in DTYPES:
            for update in False, True:
                for shape in (1, 1, 1, 1), (7, 5, 13, 1), (300, 16, 1, 1), (300, 3, 600, 1), (1000, 1, 7, 1), (
                        4, 64, 96, 1), (50, 12, 96, 2), (20, 8, 30, 13), (20000, 2, 600, 1), (300, 3, 600, 2), (50, 70, 20, 1):
                    line("slice", target, (dtype, "update" if update else "lookup", *shape),
                         *slice_plan(target, update, dtype, *shape), 2 * shape[1] * shape[2] * shape[3] if update else 0)


CELLS = {
    # Gates, products (of inputs, of state, of how many gates), the map's sigmoids, tanhs and additions, forward and back.
    "lstm": (4, ((1, 1, 4),), (3, 2, 8), (0, 1, 18)),
    "gru": (3, ((1, 0, 3), (0, 1, 3)), (2, 1, 8), (0, 0, 14)),
    "gru_reset_before": (3, ((1, 1, 2), (1, 1, 1)), (2, 1, 8), (0, 0, 14)),
    "rnn": (1, ((1, 0, 1), (0, 1, 1)), (0, 1, 1), (0, 0, 3)),
}


def together_of(cell, size, lanes, batch, steps, units):
    """Steps of an LSTM that have one product for their weights' gradient."""
    grain = gcd(units, 16)
    of_a_tile = up(batch * units // grain, 1472) * grain * 4 * size
    most = min(638976 // 50 // of_a_tile, steps) // lanes * lanes
    return up(steps, up(steps, most)) if cell == "lstm" and most else 1


def cell_ops(cell, which, dtype, batch, steps, inputs, units, fixed):
    gates, products, forward, backward = CELLS[cell]
    together = together_of(cell, *DTYPES[dtype], batch, steps, units)
    groups = up(steps, together)
    ops = [("map", steps, batch * units, *backward)] if which == "data" else []
    for of_inputs, of_state, wide in products:
        n, k = wide * units, inputs * of_inputs + units * of_state
        at_once = cell == "rnn" and of_inputs  # which needs no state
        times, rows = (1, batch * steps) if at_once else (steps, batch)
        if which == "forward":
            ops.append(("product", times, rows, k, n))
        elif which == "data":
            k -= inputs * of_inputs * fixed
            ops += [("product", times, rows, n, k)] if k else []
        elif at_once:
            ops.append(("product", 1, k, rows, n))
        else:
            ops += [("product", groups, k, batch * together, n), ("sum", groups, k * n)]
    biases = batch * gates * units
    if which == "forward":
        ops.append(("map", steps, batch * units, *forward))
    elif which == "weights":
        ops.append(("reduce", groups, biases * together, biases) if together > 1 else ("sum", groups, biases))
        ops.append(("reduce", 1, biases, gates * units))
    return ops


def cells():
    for cell in CELLS:
        for which in "forward", "data", "weights":
            for fixed in (0, 1) if which == "data" else (0,):
                for dtype in DTYPES if (cell, which) == ("lstm", "weights") else ["float32"]:
                    for shape in (1, 2, 1, 3), (3, 5, 8, 16), (512, 100, 40, 96), (92, 100, 8, 256), (
                            2048, 9, 24, 1024):
                        ops = cell_ops(cell, which, dtype, *shape, fixed)
                        print("cell", cell, which, dtype, *shape, fixed, *("| " + " ".join(map(str, op)) for op in ops))


def horizontal_mac(half, half_partials, in_size, out_size, positions, taps, n_in, n_out, n_conv):
    lanes = 4 if half else 2
    n, outputs = up(positions, WORKERS), up(out_size, 2) if half_partials else out_size
    if in_size % lanes == 0:
        dot = (11 if half_partials else 7) + in_size // lanes
    else:
        parts = in_size // 2 if half and in_size % 2 == 0 else in_size
        dot = (13 if half_partials else 8) + 2 * parts
    worker = 16 + taps * (35 + n * (7 + outputs * dot))
    zeroing = 6 * n_out * n_conv * (up(up(positions * out_size, WORKERS), 2) + 5)
    return (65 if half else 58) + 6 * (10 if half_partials else 9) + n_conv * (
        23 + n_in * (15 + n_out * (10 + 6 * worker))) + zeroing


def vertical_mac(half_partials, together, positions, rows, columns, n_in, sets):
    n, more = up(positions, WORKERS), columns - 1
    if together == 4:
        worker = 18 + n * rows * (13 + 2 * more) if half_partials else 19 + n * rows * (15 + 2 * more)
    else:
        worker = {8: 13, 16: 25}[together] + together // 8 * n * rows * (25 + 3 * more)
    zero = 4 + up(positions, 4 if half_partials else 2)
    total = 10 + 12 * n // together if half_partials else 9 + 19 * n // together
    return (100 if half_partials else 101) + sets * (zero + 32 + n_in * (24 + 6 * worker) + total)


def outer_product(half, out_size, positions, n_out, n_conv):
    lanes = 4 if half else 2
    if out_size >= 3 * lanes and out_size % lanes == 0:
        row = 6 + (out_size - 3 * lanes) // lanes
    else:
        row = 10 + (5 * out_size // 2 if half else 2 * out_size)
    return 6 * (25 + n_out * n_conv * ((10 if half else 11) + up(positions, WORKERS) * row))


def transpose(half, rows, columns, count):
    b, lanes = up(count, WORKERS), 4 if half else 2
    if rows % lanes or columns % lanes:
        return 6 * (15 + b * (8 + columns * (5 + 5 * rows // 2))) if half else (
            6 * (13 + b * (8 + columns * (5 + 2 * rows))))
    r, c = rows // lanes, columns // lanes
    if not half:
        return 6 * (27 + b * (11 + r * (6 + 3 * (c - 1))))
    if c > 1:
        return 7 + 6 * (29 + b * (18 + r * (12 + 4 * (c - 2))))
    if r > 1:
        return 7 + 6 * (27 + b * (35 + 4 * (r - 2)))
    return 7 + 6 * (37 + 4 * (b - 2) if b > 1 else 29)


TYPES = (False, "float32"), (True, "float16")


def methods():
    for half, name in TYPES:
        for half_partials, partials in TYPES if half else TYPES[:1]:
            for in_size, out_size in (1, 1), (2, 1), (3, 1), (4, 2), (6, 2), (7, 2), (64, 1):
                for share in (1, 1, 1, 1, 1), (6, 1, 2, 1, 1), (7, 3, 1, 3, 2), (1009, 9, 3, 2, 4):
                    print("hmac", name, partials, in_size, out_size, *share,
                          horizontal_mac(half, half_partials, in_size, out_size, *share))
            for together in (4, 8, 16) if half_partials else (4,) if half else ():
                for share in (1, 1, 1, 1, 1), (12, 3, 1, 2, 1), (13, 3, 5, 1, 3), (1009, 7, 7, 2, 3):
                    print("vmac", partials, together, *share, vertical_mac(half_partials, together, *share))
        for out_size in 1, 2, 4, 5, 6, 7, 8, 11, 12, 13, 14, 16, 18, 64:
            for positions, groups in (1, (1, 1)), (6, (2, 1)), (13, (3, 2)):
                print("outer", name, out_size, positions, *groups, outer_product(half, out_size, positions, *groups))
        for rows, columns in ((1, 1), (2, 2), (2, 4), (3, 4), (4, 2), (4, 3), (4, 4), (4, 8), (8, 4), (12, 4), (8, 8),
                              (16, 12), (6, 6), (7, 5)):
            for count in 1, 7, 13:
                print("transpose", name, rows, columns, count, transpose(half, rows, columns, count))


BYTES_PER_TILE = {"ipu1": 256 * 1024, "ipu2": 624 * 1024}
MEMORY_ELEMENT = 16 * 1024


def reduce_vertex(name, half, half_sum, depth, outputs):
    v, size, o = (8, 2, 9) if half else (4, 4, 7)
    o += 0 if half_sum else 1
    if outputs % v or 16 * MEMORY_ELEMENT * up((depth - 1) * outputs * size, MEMORY_ELEMENT) >= BYTES_PER_TILE[name]:
        return 6 * (32 + (3 * depth + o - 1) * up(outputs, v * WORKERS))
    return 33 + 6 * (20 + (2 * (depth - 1) + o) * up(outputs, v * WORKERS))


def sums():
    for name in "ipu2", "ipu1":
        for half, kind in TYPES:
            for half_sum, total in TYPES if name == "ipu2" else ((half, kind),):
                for depth, outputs in ((2, 4), (2, 8), (2, 1), (3, 48), (5, 49), (5, 2048), (5, 2056), (3, 4096),
                                       (3, 4104), (17, 1000), (2, 4096), (2, 8192), (2, 8200), (64, 7)):
                    print("reduce", name, kind, total, depth, outputs, reduce_vertex(name, half, half_sum, depth, outputs))
    for n in 1, 2, 6, 7, 12, 13, 24, 25, 120, 1009:
        each = up(n, WORKERS)
        print("cast", n, 6 * (max(up(each, 2), up(each, 4)) + 26))
        for half, kind in TYPES:
            vectors = up(each, 4 if half else 2)
            print("add_in_place", kind, n, 11 + 6 * (58 + 2 * vectors))
        print("dynamic_slice", n, sliced(n))
        print("zeros", n, 6 * (22 + up(n, 8 * WORKERS)))
    for half, kind in TYPES:
        for channels in 1, 2, 3, 4, 6, 8, 13:
            for nbytes in 4, 1000, 123456:
                print("rearrange", kind, channels, nbytes, laid_out(nbytes, half, channels))


def stages(depth):
    """Depths of a sum's stages. What d partials leave is a power of d rounded down, or one more if that takes no more
    messages."""
    def messages(d, n):
        if n == 1:
            return Fraction(d), []
        down = 1
        while (down + 1)**n <= d**(n - 1):
            down += 1
        ways = []
        for left in down + 1, down:
            rest, plan = messages(left, n - 1)
            ways.append((rest + Fraction(d, left), [left] + plan))
        return min(ways, key=lambda choice: choice[0])

    depths = []
    for left in messages(depth, 1 if depth < 16 else 2 if depth < 125 else 3)[1]:
        depths.append(up(depth, left))
        depth = up(depth, depths[-1])
    return depths + [depth] if depth > 1 else depths


def conv_parts(half, half_partials, groups_of, positions, channels, kernel, cut, serial, order, moves, fill):
    """What a cut costs beside its vertex. groups_of: channels of a method's groups in and out; cut: parts of groups, in,
    out, rows of taps, batch, rows and columns; order: is the input sent before the loop, do the tiles lie in another
    pass's order; moves: operands and result that change layout."""
    (n_in, n_out, n_groups), size, psize = channels, 2 if half else 4, 2 if half_partials else 4
    field = cut[4] * cut[5] * cut[6]
    tiles = cut[0] * cut[1] * cut[2] * cut[3] * field
    b, r, c = (up(p, s) for p, s in zip(positions, cut[4:]))
    groups, taps = up(n_groups, cut[0]), (up(kernel[0], cut[3]), kernel[1])
    t_in = groups_of[0] * up(up(n_in, groups_of[0]), cut[1] * serial[0])
    t_out = groups_of[1] * up(up(n_out, groups_of[1]), cut[2] * serial[1])
    inputs = b * (r + taps[0] - 1) * (c + taps[1] - 1)
    whole = positions[0] * (positions[1] + kernel[0] - 1) * (positions[2] + kernel[1] - 1) * n_in * n_groups
    weights = n_in * n_out * n_groups * kernel[0] * kernel[1]
    outputs = positions[0] * positions[1] * positions[2] * n_out * n_groups
    parts = {"sizes": f"{b * r * c} {inputs} {whole} {weights} {outputs}"}
    more_in, more_out = up(n_in, groups_of[0]) * groups_of[0], up(n_out, groups_of[1]) * groups_of[1]
    got = inputs * t_in * groups * size
    got -= min(got // cut[2], whole // n_in * more_in * size // (serial[0] * tiles))
    weight = t_in * t_out * groups * taps[0] * taps[1] * size
    parts["input/exchange" if order[0] else "exchange"] = up(got, 4 if cut[2] % 2 or order[1] else 8)
    parts["exchange"] = parts.get("exchange", 0) + up(weight - weight // field, 4)
    numbers, depth, lanes = b * r * c * t_out * groups, cut[1] * cut[3], 4 if half_partials else 2
    after = up(numbers, depth)
    plan = stages(depth) if depth > 1 else []
    for i, d in enumerate(plan):
        parts[f"sum{i}/exchange"] = up(numbers * psize, 4)
        grain = up(groups_of[1], lanes) * lanes
        numbers = min(numbers, up(up(numbers, grain), d) * grain)
        last = i + 1 == len(plan)
        parts[f"sum{i}"] = reduce_vertex("ipu2", half_partials, half if last else half_partials, d, numbers)
    if serial[0] > 1:
        parts["slice"] = sum(sliced(Fraction(operand * size, serial[0] * tiles)) for operand in (whole, weights))
        parts["add"] = 11 + 6 * (58 + 2 * up(after, WORKERS * (4 if half_partials else 2)))
    if serial[1] > 1:
        parts["slice"] = sliced(Fraction(weights * size, serial[1] * tiles))
        parts["update"] = sliced(after * size)
    if half and not half_partials and (depth == 1 or serial[0] > 1):
        parts["cast"] = 6 * (up(after * serial[1], 2 * WORKERS) + 26)
    if fill:
        parts["fill"] = 6 * (22 + up(fill * size, tiles * 8 * WORKERS))
    # Channels that fill no groups are laid out anew too, with zeros.
    before = [up(operand * size, tiles * splits) for operand, splits, moved in (
        (whole // n_in * more_in, serial[0], moves[0] or more_in > n_in),
        (weights // (n_in * n_out) * more_in * more_out, serial[0] * serial[1],
         moves[1] or more_in > n_in or more_out > n_out)) if moved]
    if before:
        parts["before/exchange"] = up(sum(before), 4)
        parts["before"] = sum(laid_out(nbytes, half, n_in * n_out) for nbytes in before)
    if moves[2] or more_out > n_out:
        nbytes = up(outputs // n_out * more_out * size, tiles)
        parts["after/exchange"] = up(nbytes, 4)
        parts["after"] = laid_out(nbytes, half, n_out)
    return parts


def sliced(nbytes):
    return 6 * (49 + 2 * up(nbytes, 8 * WORKERS))


def laid_out(nbytes, half, channels):
    each = Fraction(5, 3) if channels % (4 if half else 2) else Fraction(5, 4)
    return ceil(587 - 2 * 205 + each * nbytes / (2 if half else 4))


def convolutions():
    one, flat, plain = (1, 1), (64, 1, 1), (0, 0)
    cases = [  # positions, channels in, out and groups, kernel, cut, serial, order, moves, fill
        # What is already there: with one part of the output, an even and an odd number, and parts of the field.
        (flat, (64, 64, 1), one, (1, 1, 1, 1, 1, 1, 1), one, plain, (0, 0, 0), 0),
        (flat, (64, 64, 1), one, (1, 1, 2, 1, 1, 1, 1), one, plain, (0, 0, 0), 0),
        (flat, (64, 48, 1), one, (1, 1, 3, 1, 4, 1, 1), one, plain, (0, 0, 0), 0),
        (flat, (64, 64, 3), one, (3, 1, 4, 1, 7, 1, 1), one, plain, (0, 0, 0), 0),
        ((80, 1, 1), (64, 80, 1), one, (1, 1, 5, 1, 5, 1, 1), one, plain, (0, 0, 0), 0),
        # Windows that overlap, and rows of taps in parts: not more than a tile's share of the input.
        ((1, 12, 12), (16, 16, 1), (3, 3), (1, 1, 1, 1, 1, 4, 4), one, plain, (0, 0, 0), 0),
        ((2, 12, 12), (32, 32, 1), (3, 3), (1, 2, 1, 3, 2, 3, 2), one, plain, (0, 0, 0), 0),
        ((1, 8, 8), (16, 32, 1), (5, 1), (1, 1, 2, 5, 1, 8, 1), one, plain, (0, 0, 0), 0),
        # Channels that fill no groups.
        (flat, (65, 33, 1), one, (1, 2, 2, 1, 1, 1, 1), one, plain, (0, 0, 0), 0),
        (flat, (64, 33, 1), one, (1, 2, 2, 1, 1, 1, 1), one, plain, (0, 0, 0), 0),
        (flat, (65, 32, 1), one, (1, 2, 2, 1, 1, 1, 1), one, plain, (0, 0, 0), 0),
        # Serial splits, alone and with sums.
        (flat, (64, 64, 1), one, (1, 1, 2, 1, 2, 1, 1), (2, 1), plain, (0, 0, 0), 0),
        (flat, (256, 64, 1), one, (1, 4, 1, 1, 2, 1, 1), (4, 1), plain, (0, 0, 0), 0),
        (flat, (192, 64, 1), one, (1, 3, 1, 1, 2, 1, 1), (2, 1), plain, (1, 1, 0), 0),
        ((8, 1, 1), (160, 16, 1), one, (1, 5, 1, 1, 2, 1, 1), (2, 1), plain, (0, 0, 0), 0),
        (flat, (64, 128, 1), one, (1, 1, 2, 1, 2, 1, 1), (1, 4), plain, (0, 0, 0), 0),
        (flat, (192, 128, 1), one, (1, 3, 2, 1, 1, 1, 1), (1, 2), plain, (1, 1, 1), 0),
        (flat, (256, 128, 1), one, (1, 2, 2, 1, 2, 1, 1), (1, 2), plain, (0, 0, 0), 0),
        (flat, (64, 128, 1), one, (1, 1, 2, 1, 2, 1, 1), (1, 4), (1, 0), (0, 0, 0), 0),
        (flat, (64, 128, 1), one, (1, 1, 2, 1, 2, 1, 1), one, (0, 1), (0, 0, 0), 0),
        # Layouts, one operand alone and all, and zeros.
        (flat, (64, 64, 1), one, (1, 1, 2, 1, 2, 1, 1), one, plain, (1, 0, 0), 0),
        (flat, (64, 64, 1), one, (1, 1, 2, 1, 2, 1, 1), one, plain, (0, 1, 0), 1),
        (flat, (64, 64, 1), one, (1, 2, 2, 1, 2, 1, 1), one, plain, (1, 1, 1), 1009),
    ]
    # Depths of sums: before and after each number of stages, primes, squares and cubes.
    for depth in 2, 3, 15, 16, 17, 20, 24, 36, 41, 100, 124, 125, 126, 128, 216, 343, 500, 512:
        cases.append(((64, 1, 1), (16 * depth, 16, 1), one, (1, depth, 1, 1, 1, 1, 1), one, plain, (0, 0, 0), 0))
    # Sums of groups that fill no vectors.
    few = [((n, 1, 1), (16 * depth, out, 1), one, (1, depth, 1, 1, 1, 1, 1), one, plain, (0, 0, 0), 0)
           for n in (1, 7, 64) for out in (1, 3) for depth in (2, 3)]
    for half, half_partials in (False, False), (True, False), (True, True):
        group = 16 if half else 8
        for groups_of, case in [((group, 16), case) for case in (cases if half == half_partials else cases[:28])] + [
                ((group, case[1][1]), case) for case in few]:
            parts = conv_parts(half, half_partials, groups_of, *case)
            print("conv", TYPES[half][1], TYPES[half_partials][1], *groups_of, *(n for part in case[:7] for n in part),
                  case[7], parts["sizes"], end="")
            print("".join(f" | {name} {parts[name]}" for name in PARTS if parts.get(name, 0)))


PARTS = ("input/exchange", "before/exchange", "before", "slice", "exchange", "sum0/exchange", "sum0", "sum1/exchange",
         "sum1", "sum2/exchange", "sum2", "add", "update", "cast", "fill", "after/exchange", "after")


def lines_of(name, stages, training):
    """Programs of a micro-batch, and the first steps of the lines in which micro-batches run, one IPU a stage."""
    programs = 2 * stages if training else stages
    if name == "Grouped":
        return programs, list(range(programs))
    if name == "Interleaved":
        return programs, [2 * i for i in range(stages)] if training else list(range(stages))
    return programs, [0]


def depth_of(name, stages, count, stage):
    """Of a training run's FIFO."""
    if name in ("Grouped", "Interleaved"):
        return (2 if name == "Grouped" else 1) * (stages - 1 - stage)
    live = {"Sequential": 1, "gpipe": count, "1f1b": stages - stage, "zb-h1": stages, "zb-h2": 2 * stages - 1}[name]
    return min(live, count) - 1


def schedules():
    for name in "Grouped", "Interleaved", "Sequential":
        for training in 0, 1:
            for stages in 1, 2, 3, 4, 8:
                programs, offsets = lines_of(name, stages, training)
                for rounds in 1, 2, 5:
                    count = rounds * (len(offsets) if stages > 1 else 1)
                    if stages == 1:
                        offsets = [0]
                    busy = {offset + programs * turn + p for offset in offsets for turn in range(rounds)
                            for p in range(programs)}
                    print("schedule", name, stages, count, training, len(busy), end="")
                    for stage in range(stages):
                        depth = depth_of(name, stages, count, stage) if training else 0
                        more = training and name == "Grouped" and stages > 1
                        print("", depth + (2 if more else 1), depth, 0, end="")
                    print()
    for name in "gpipe", "1f1b", "zb-h1", "zb-h2":
        for stages in 1, 2, 4, 7:
            for count in sorted({1, max(stages - 1, 1), stages, 2 * stages - 1, 2 * stages, 3 * stages + 1}):
                print("schedule", name, stages, count, 1, 0, end="")
                for stage in range(stages):
                    depth = depth_of(name, stages, count, stage) if stages > 1 else 0
                    held = {"zb-h1": stage + 1, "zb-h2": 2 * stage + 1}.get(name, 0) if stages > 1 else 0
                    print("", depth + 1, depth, min(held, count), end="")
                print()


def closed_form(name, p, m, v, f, b, w, c):
    """Makespan and longest span, None where nothing is known."""
    t = f + b + w
    if p == 1:
        return m * t, m * t
    if name == "gpipe":
        made = (m + p - 1) * t + 2 * (p - 1) * c
    elif name == "1f1b":
        made = (m + p - 1) * t + (Fraction(2 * (p - 1) * m, p) + 2 * (p - 2)) * c if m % p == 0 or c == 0 else None
    elif name == "1f1b-interleaved":
        made = m * t + Fraction((p - 1) * t, v) + ((2 * v - 1) * p - 2) * c
    elif name == "zb-h1":
        span = m * t + (p - 1) * (f + b - w) + 4 * (p - 1) * c if m >= 2 * p and w <= f and 2 * c <= w else None
        return span if w <= b else None, span
    elif name == "zb-h2":
        holds = m >= 2 * p and w <= f and 2 * w <= f + b and c <= w
        return None, m * t + (p - 1) * (f + b - 2 * w) + 2 * (p - 1) * c if holds else None
    elif name == "Grouped":
        made = (m + p - 1) * t + (m + 2 * p - 2) * c
    elif name == "Interleaved":
        made = p * t + (2 * m - 2) * max(f, b + w) + (m + 1 if p == 2 else 2 * m + 2 * p - 3) * c
    else:
        made = m * (p * t + 2 * (p - 1) * c)
    return made, made


def closed_forms():
    times = [(12, 24, 6, 0), (12, 24, 12, 6), (12, 24, 12, 7), (12, 6, 12, 0), (12, 12, 18, 1), (24, 6, 18, 6),
             (24, 12, 18, 18), (24, 12, 18, 19), (24, 6, 12, 9), (12, 12, 12, 6)]
    for name in "gpipe", "1f1b", "1f1b-interleaved", "zb-h1", "zb-h2", "Grouped", "Interleaved", "Sequential":
        for p, m in (1, 3), (2, 3), (3, 6), (4, 7), (4, 8):
            v = 3 if name == "1f1b-interleaved" else 1
            lines = len(lines_of(name, p, True)[1]) if name in ("Grouped", "Interleaved") and p > 1 else 1
            if v > 1 and m % p:
                continue
            m = up(m, lines) * lines
            for f, b, w, c in times[:1] if p == 1 else times if name[:2] == "zb" and p > 2 else times[1:4]:
                made, span = closed_form(name, p, m, v, f, b, w, c)
                busy = m * (f + b + w)
                print("closed", name, p, m, v, f, b, w, c, *(f"{float(x):.9f}" if x is not None else "nan" for x in (
                    made, made and 1 - Fraction(busy) / made, span and 1 - Fraction(busy) / span,
                    made and made / Fraction(busy) - 1)))


FRAMEWORK_NS = 33200
# Bytes a second at which a host fills buffers (of a card as fast as its link), and IPUs that share a host's link.
FILL = {**HOST, "ipu2": Fraction(56_500_000_000, 8), "ipu21": Fraction(56_500_000_000, 8)}
SHARING = {"ipu1": 2, "ipu2": 4, "ipu21": 4, "c600": 1}


def host_copy(target, nbytes, sharing=1):
    fixed = Fraction((LATENCY_NS + FRAMEWORK_NS) * target.clock, 10**9)
    return ceil(fixed + sharing * nbytes * target.clock / HOST[target.name])


def way(a, b):
    """Links from IPU to IPU: along the side, then across."""
    links = []
    while a // 2 != b // 2:
        links.append((a, a + (2 if b > a else -2)))
        a = links[-1][1]
    return links + ([(a, b)] if a != b else [])


def copy_cycles(target, sends):
    """One function's copies, until the fullest link is done: two pairs have half the links that a pair has."""
    loads = {}
    for a, b, nbytes in sends:
        for link in way(a, b):
            loads[link] = loads.get(link, 0) + nbytes
    return max(ceil(nbytes * target.clock / Fraction(target.link, 1 if a // 2 == b // 2 else 2))
               for (a, b), nbytes in loads.items())


def device_clock():
    for name in "ipu1", "ipu2", "ipu21", "c600":
        target = Target(name, 0)
        for cycles in 0, 1, 2, 4, 12, 126, 205, 999, 10**9 + 7, 10**15 + 1:
            print("ns", name, 0, cycles, floor(Fraction(cycles * 10**9, target.clock) + Fraction(1, 2)))
        for replicas in 1, 2, 3, 64:
            for nbytes in 1, 100_000:
                print("host", name, 0, replicas, nbytes, host_copy(target, nbytes, min(replicas, SHARING[name])))
        for training in 0, 1:
            for nbytes, forward in (1000, 10), (100_000, 10), (100_000, 15_000), (1_000_000, 400_000):
                # Batches of a run: the host has filled the next one when the device has worked on the last.
                work = [forward + (forward + 1 if training else 0)] * 3
                work[2] += 7 if training else 0
                fill = ceil(Fraction(LATENCY_NS * target.clock, 10**9) + nbytes * target.clock / FILL[name])
                print("prefetch", name, 0, training, nbytes, forward, 3,
                      sum(host_copy(target, nbytes) + max(fill, w) for w in work))
    for name, tiles in ("ipu2", 32), ("ipu1", 7):
        target = Target(name, 0)
        for infeed, outfeed, forward, backward in ((4, 4, 100, 100_000), (100_003, 40_001, 1000, 100),
                                                   (1_000_000, 0, 500_000, 9), (0, 999, 9, 200_000)):
            # F between the copies from and to the I/O tiles; B beside the streams of the next batch and the last results.
            moved = [n for n in (infeed, outfeed) if n]
            print("io_tiles", name, 0, tiles, infeed, outfeed, forward, backward, 3, 3 * (
                forward + sum(up(n, tiles * target.exchange) + target.phase for n in moved) +
                max(backward, sum(host_copy(target, n) for n in moved))))
    routes = [((0, 1, 1000),), ((0, 2, 1000),), ((0, 3, 1001),), ((1, 4, 777),), ((0, 7, 1000),),
              ((0, 1, 1000), (0, 3, 10)), ((0, 2, 1000), (0, 4, 100)), ((0, 3, 1000), (0, 5, 100), (0, 1, 5000)), ((1, 3, 7), (1, 2, 7)),
              ((0, 7, 1), (0, 1, 10))]
    gradients = [((6, 7, 1000),), ((0, 7, 1000),), ((1, 7, 77), (2, 7, 100)), ((0, 7, 100), (5, 7, 50), (6, 7, 300)),
                 ((4, 7, 8), (3, 7, 8))]
    for name in "ipu2", "ipu1":
        target = Target(name, 0)
        for sends in routes:
            print("links", name, 0, 0, *(n for send in sends for n in send), "|", copy_cycles(target, sends))
        for sends in gradients:
            print("links", name, 0, 1, *(n for send in sends for n in send), "|",
                  copy_cycles(target, [(b, a, nbytes) for a, b, nbytes in sends]))


# Layers: cycles of F, B, U and stream copies, bytes of variables. Tensors: bytes, the layers that make them (-1: the
# host) and read them last, those whose B reads them, cycles of a push or a pop.
LAYERS = [(7, 13, 2, 5, 100), (11, 17, 3, 0, 40), (3, 6, 1, 0, 64), (20, 31, 0, 0, 80), (5, 9, 6, 2, 12)]
TENSORS = [(16, -1, 0, (0,), 4), (40, 0, 1, (1,), 3), (33, 1, 2, (1, 2), 5), (21, 2, 3, (3,), 2), (18, 3, 4, (4,), 6),
           (10, 0, 4, (4,), 1)]


def over(border, host):
    return sum(t[0] for t in TENSORS if t[1] < border <= t[2] and (host or t[1] >= 0))


def links(firsts, link, ipus):
    """Cycles over the cuts before each stage and after the last: from pair to pair twice those of a pair."""
    return [0] + [up(over(first, False), link) * (0 if a == b else 1 if a // 2 == b // 2 else 2)
                  for first, a, b in zip(firsts[1:], ipus, ipus[1:])] + [0]


def stage_of(name, training, recompute, offload, firsts, ipus, s, link, sync, count):
    """Of a stage: passes, update, work and transfer of a time step (-1: in the work), bytes sent and held."""
    n, ends = len(firsts), firsts[1:] + [len(LAYERS)]
    first, end = firsts[s], ends[s]
    forward, backward, update, host, variables = (sum(layer[i] for layer in LAYERS[first:end]) for i in range(5))
    again = recompute and s + 1 < n
    depth = depth_of(name, n, count, s) if training and n > 1 else 0
    kept = [t for t in TENSORS if any(first <= layer < end for layer in t[3])]
    moved = sum(t[4] for t in kept) if depth and not again else 0
    backward = (backward + (forward if again else 0) + moved) if training else 0
    forward += host + moved
    i, o = links(firsts, link, ipus)[s:s + 2]
    transfer = -1
    if name in ("Grouped", "Interleaved"):
        work = max(forward, backward) if name == "Interleaved" and training else forward + backward
        transfer = (o + sync if o else 0) + (i + sync if i and training and name == "Grouped" else 0)
    elif name == "Sequential":
        work = forward + backward + (i + o + 2 * sync if training else o + sync)
    else:
        work = forward + backward + (2 * (i + o) + 2 * sync if training else i + o + sync)
    live = (1 if offload else depth + 1) + (1 if training and name == "Grouped" and n > 1 else 0)
    held = sum(t[0] for t in kept) * (1 if again else live)
    held += over(first, True) * (live - 1) if again else 0
    passing = sum(t[0] for t in TENSORS if t[1] < first and t[2] >= end)
    return forward, backward, update, work, transfer, over(end, False) if s + 1 < n else 0, variables + held + passing


def partitions():
    for name in "Grouped", "Interleaved", "Sequential", "gpipe", "1f1b", "zb-h1", "zb-h2":
        for training, recompute, offload in (1, 0, 0), (0, 0, 0), (1, 1, 0), (1, 0, 1):
            for firsts, ipus, link, sync in (([0], [0], 4, 3), ([0, 2], [0, 1], 4, 3), ([0, 2, 4], [0, 1, 2], 4, 3),
                                             ([0, 1, 3], [0, 1, 2], 7, 0), ([0, 1, 2, 3], [0, 0, 2, 0], 4, 2),
                                             ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4], 5, 11)):
                if offload and link != 5 or recompute and (link != 5 or name[:2] == "zb"):
                    continue
                if len(set(ipus)) < len(ipus) and name not in ("Grouped", "Sequential"):
                    continue
                n, count, limit = len(firsts), 12, 500
                stages = [stage_of(name, training, recompute, offload, firsts, ipus, s, link, sync, count)
                          for s in range(n)]
                forward, backward, update, work = (max(s[i] for s in stages) for i in range(4))
                lockstep = name in ("Grouped", "Interleaved")
                copies = max(sum(s[4] for s in stages), sync) if lockstep else 0
                step, runs = work + copies, 4 * n
                if name == "Sequential":
                    run = runs * sum(s[3] for s in stages)
                elif name == "Grouped" and training:
                    # Steps of forwards alone, or backwards, have the copies of one way.
                    copies_alone = max(sum(o + sync for o in links(firsts, link, ipus) if o), sync)
                    run = (runs - 1) * step + n * (forward + backward + 2 * copies_alone)
                elif name == "Interleaved" and training:
                    run = 2 * (runs + n - 1) * step
                else:
                    run = (runs + n - 1) * step
                print("partition", name, training, recompute, offload, link, sync, limit, n, *firsts, *ipus, "|",
                      count, runs, run + (update if training else 0), step, end="")
                for s, ipu in zip(stages, ipus):
                    print("", s[3], s[4], s[3] + copies, s[5], s[6], max(s[6] - limit // ipus.count(ipu), 0), end="")
                print()


def dealt(tiles, elements, size):
    """Bytes of the tiles that have any, in order: grains of a vector, evenly, at least 128 bytes of them on each."""
    grains = up(elements * size, 8)
    tiles = max(1, min(tiles, grains * 8 // 128))
    each, more = divmod(grains, tiles)
    bytes_of = [8 * (each + 1)] * more + [8 * each] * (tiles - more)
    bytes_of[-1] -= 8 * grains - elements * size
    return bytes_of


def mappings():
    for name, tiles, kept in ("ipu2", 7, 0), ("ipu2", 10, 3), ("ipu1", 1, 0), ("ipu2", 0, 0):
        target = Target(name, tiles)
        for half, kind in TYPES:
            for counts in (1, 31, 64), (32, 63, 64, 65), (255, 300, 1000, 7), (1009, 2048, 5, 4099):
                print("mapping", target.words(), kept, kind, len(counts), end="")
                start = 0
                for count in counts:
                    bytes_of = dealt(target.tiles - kept, count, 2 if half else 4)
                    runs = [(nbytes, len(list(same))) for nbytes, same in groupby(bytes_of)]
                    print(" |", count, start, len(runs), *(n for run in runs for n in run), end="")
                    start = (start + len(bytes_of)) % (target.tiles - kept)
                print()


def map_memory():
    """One map of an input, and where it has two operands of a weight, to a result. Its tensors are on all tiles."""
    for name, tiles in ("ipu2", 1), ("ipu1", 4), ("ipu2", 0):
        target = Target(name, tiles)
        for half, kind in TYPES:
            for each in 128, 256, 264, 1000:  # bytes of a tile
                for operands in 1, 2:
                    blocks = up(each, 256)
                    # A Sync before each phase: an exchange, a copy as it arrives, and the map.
                    control = (1 + 3) * (operands - 1) + (1 + 4) * operands
                    print("tile_bytes", target.words(), kind, target.tiles * each // (2 if half else 4), operands,
                          "stack", 7 * 512, "vertexCode", 4 * 100, "vertexInstanceState", 16,
                          "copyDescriptor", 8 * (operands - 1),
                          "internalExchangeCode", (32 + 4 * blocks) * (operands - 1),
                          "hostExchangeCode", 2 * (32 + 4 * blocks), "hostExchangePacketHeader", 2 * 8 * blocks,
                          "controlCode", 4 * control, "controlTable", 4 * operands, "controlId", 4)


def phase_memory():
    """Code and state of a plan's phases."""
    for method, code, state in (("NONE", 100, 16), ("AMP_1X1", 300, 48), ("AMP_NX1", 500, 48), ("SLIC", 300, 48),
                                ("HORIZONTAL_MAC", 200, 48), ("VERTICAL_MAC", 200, 48), ("OUTER_PRODUCT", 100, 6 * 24)):
        for pointers in (0, 100) if method != "NONE" else (0,):
            vertices = 6 if method == "OUTER_PRODUCT" else 1
            print("phase", method, "Convolve", pointers, 3, 3 * vertices, 0, 0, 4 * code, state + pointers)
        print("phase", method, "Reduce", 100, 3, 6, 0, 0, 4 * 100, 2 * 16)
        print("phase", method, "OnTileCopy-0", 100, 3, 3, 0, 0, 0, 8)
    for tiles in 1, 3:
        for sent in 0, 1, 256, 257, 768, 769, 10_000:
            for sources in 0, 1, 5:
                print("phase NONE Exchange", 0, tiles, 0, tiles * sent, sources, 32 + 4 * (up(sent, 256) + sources), 0)


def pieces(rows, columns):
    """Pieces of rows that the workers have: positions are shared out evenly, in order."""
    cuts = {c * columns for c in range(rows)} | {w * rows * columns // WORKERS for w in range(WORKERS)}
    return len(cuts)


def vertex_lists():
    """Bytes of lists of work and of pointers to them and to a vertex's groups: positions of one item, in rows."""
    for method, half in (("AMP_1X1", False), ("AMP_NX1", True), ("SLIC", True), ("HORIZONTAL_MAC", False),
                         ("VERTICAL_MAC", True)):
        for rows, columns, kernel in (1, 1, (1, 1)), (1, 7, (3, 1)), (5, 35, (3, 3)), (2, 3, (1, 5)), (12, 7, (5, 5)):
            for n_in, n_out, n_groups in (1, 1, 1), (3, 2, 1), (1, 1, 4), (2, 3, 5):
                together = 4 if method == "VERTICAL_MAC" else 1
                if method == "AMP_1X1" and kernel != (1, 1) or method in ("VERTICAL_MAC", "SLIC") and n_in > 1:
                    continue
                taps = kernel[0] * (up(kernel[1], 4) if method == "SLIC" else kernel[1])
                lists = WORKERS * taps
                nbytes = pieces(rows, columns) * taps * 6
                if method == "AMP_1X1":
                    lists, nbytes = 1, WORKERS * 6
                elif method == "VERTICAL_MAC":
                    lists, nbytes = WORKERS, pieces(rows * columns, kernel[1]) * kernel[0] * 8
                weights = n_in * n_out * (taps if method == "SLIC" else 1)
                print("lists", method, TYPES[half][1], together, rows, columns, *kernel, n_in, n_out, n_groups, nbytes,
                      4 * ((n_in + n_out + weights) * n_groups + lists))


def pair_memory():
    """Two maps on two IPUs: one sends what it makes of the host's numbers, the other makes of it the host's results."""
    for name, tiles in ("ipu2", 1), ("ipu1", 4), ("ipu2", 0):
        target = Target(name, tiles)
        for half, kind in TYPES:
            for each in 128, 256, 264, 1000:
                blocks = up(each, 256)
                print("pair_bytes", target.words(), kind, target.tiles * each // (2 if half else 4),
                      "hostExchangeCode", 32 + 4 * blocks, "hostExchangePacketHeader", 8 * blocks,
                      "globalExchangeCode", 32 + 4 * blocks, "globalExchangePacketHeader", 8 * blocks)


def shards():
    for replicas in 2, 3, 16:
        for half, kind in TYPES:
            for elements in 1, 15, 16, 17, 1009:
                print("shard", replicas, kind, elements, up(elements, replicas) * (2 if half else 4))


def regions():
    for name in "ipu1", "ipu2":
        whole = BYTES_PER_TILE[name]
        inner = whole // 2 if name == "ipu1" else whole * 2 // 3
        for code, data in ((0, 0), (1, 1), (whole - inner, inner), (whole - inner + 1, 5), (5, inner + 1), (whole, 0),
                           (0, whole), (whole - 7, 7), (whole - 7, 8), (9, whole), (whole + 5, whole + 6)):
            outer_code = min(code, whole - inner)
            inner_code = min(code - outer_code, inner)
            inner_data = min(data, inner - inner_code)
            outer_data = min(data - inner_data, whole - inner - outer_code)
            print("regions", name, 0, code, data, outer_code, inner_code, code - outer_code - inner_code,
                  outer_data, inner_data, data - outer_data - inner_data)


def instructions():
    print("instructions OnTileExecute 4 DoExchange 3 GlobalExchange 4 Sync 1 StreamCopyBegin 3 StreamCopyMid 4 "
          "StreamCopyEnd 2 Call 2 Repeat 4 Unknown 6")


maps()
vertices()
slic()
copies()
fifos()
streams()
syncs()
all_reduces()
maps_alone()
reductions()
pools()
rows()
slices()
cells()
methods()
sums()
convolutions()
schedules()
closed_forms()
device_clock()
partitions()
mappings()
map_memory()
phase_memory()
vertex_lists()
pair_memory()
shards()
regions()
instructions()
