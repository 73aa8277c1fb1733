#!/usr/bin/env python3
"""What-if on more instances, worked out again: whatif_ranks.py REPORT GBIT LATENCY_NS OVERHEAD_NS BRANCHES [BUCKET_BYTES LAYER:COUNT,...],
and the CSV on standard input.

Every rank and message is followed on its own, where the program follows one rank for all. BRANCHES: of the tree of replicas that a
recorded rank has, and one of each predicted number of instances, with commas. The last two arguments are for the recording of one process: the parameters of its one stage, in order.
"""
import csv
import heapq
import math
import sqlite3
import sys

path, gbit, latency, overhead = sys.argv[1], *map(float, sys.argv[2:5])
branches = [int(word) for word in sys.argv[5].split(",")]
gbit *= 1448 / 1538
db = sqlite3.connect(path)


def recorded():
    """Buckets of each update: {(stage, bucket): [ready, exchanged, summed by rank, bytes]}, and the times of waiting and of the end."""
    starts = {(r, e): s for r, e, s in db.execute("SELECT rank, execution, start_ns FROM executions WHERE mode = 'train'")}
    updates, ends = {}, {}
    rows = db.execute("SELECT span_id, rank, execution, weight_update, stage, name, start_ns, dur_ns FROM spans WHERE category = 'mpi' AND mode = 'train' ORDER BY start_ns")
    for span, rank, execution, update, stage, name, start, length in rows:
        args = dict(db.execute("SELECT name, value FROM span_args WHERE span_id = ?", (span,)))
        updates.setdefault((execution, update), {}).setdefault(rank, []).append((stage, name, start, start + length, args))
        ends[rank, execution, update] = max(ends.get((rank, execution, update), 0), start + length)
    return starts, updates, ends


starts, updates, ends = recorded()
ready, sums, sizes, gathered, shares = {}, {}, {}, set(), {}
waits = dones = share_wait = 0
for execution, update in updates:
    latest, waiting, done = {}, 0, 0
    for rank, calls in updates[execution, update].items():
        base = ends.get((rank, execution, update - 1), starts[rank, execution])
        exchanged = {}
        for stage, name, start, end, args in calls:
            if "bucket" not in args:
                shares[stage] = args["size"]
                share_wait += (end - start) / len(updates[execution, update]) / len(updates)
                continue
            key = stage, args["bucket"]
            begun = start - args["before_ns"]
            done = max(done, end - base)
            if name == "MPI_Ialltoallv":
                latest[key] = max(latest.get(key, 0), begun - base)
                exchanged[key] = begun + args["length_ns"]
                sizes.setdefault(key, args["size"] / branches[0])
                if args["bucket"] == 0:
                    waiting = max(waiting, start - base)
            else:
                gathered.add(key)
                sums.setdefault(key, []).append(max(0, begun - exchanged[key]))
    for key in latest:
        ready[key] = ready.get(key, 0) + latest[key] / len(updates)
    waits += waiting / len(updates)
    dones += max(done, waiting) / len(updates)
sum_of = {key: sum(sums[key]) / len(sums[key]) / branches[0] if key in sums else sizes[key] / 5 for key in sizes}
measured_exposed = dones - waits + share_wait


def simulate(count, own):
    """Messages of @count ranks: each rank's link sends one after the other, each operation ends when all of its messages are there."""
    events = [(ready[key], 0, key, rank) for key in ready for rank in range(count)]
    heapq.heapify(events)
    link, thread, arrivals, last = [0.0] * count, [0.0] * count, {}, 0.0
    while events:
        when, kind, key, rank = heapq.heappop(events)
        size = sizes[key] / count * (own if kind == 0 else 1)
        each = max(8 * size / gbit, 2 * overhead)
        link[rank] = max(link[rank], when)
        for step in range(1, count):
            link[rank] += each
            there = arrivals.setdefault((kind, key, (rank + step) % count), [])
            there.append(link[rank] + (3 if size > 65536 else 1) * latency + 2 * overhead)
            if len(there) < count - 1:
                continue
            to = (rank + step) % count
            if kind == 1:
                last = max(last, *there)
                continue
            thread[to] = max(thread[to], *there) + own * sum_of[key]
            last = max(last, thread[to])
            if key in gathered:
                heapq.heappush(events, (thread[to], 1, key, to))
    exposed = max(0.0, last - waits)
    for size in shares.values():
        size /= count
        exposed += (count - 1) * max(8 * size / gbit, 2 * overhead) + (3 if size > 65536 else 1) * latency + 2 * overhead
    return exposed


def of_one_process(bucket_bytes, parameters):
    """The buckets that ranks would have, each ready with the backward pass of its first layer. Returns when the update begins."""
    places, end = [], 0
    for word in parameters.split(","):
        layer, count = word.split(":")
        first = (end + 15) // 16 * 16
        end = first + int(count)
        places.append((layer, first, end))
    count = max(1, -(-end * 4 // bucket_bytes))
    cuts = [end // count * (count - b) + end % count * (count - b) // count for b in range(count + 1)]
    spans = "SELECT execution, weight_update, name, start_ns, start_ns + dur_ns FROM spans WHERE mode = 'train' AND "
    waiting, since, backward = {}, {}, {}
    for execution, update, _, start, stop in db.execute(spans + "category = 'stage' AND phase = 'U'"):
        waiting[execution, update] = max(waiting.get((execution, update), 0), start)
        since[execution, update + 1] = max(since.get((execution, update + 1), 0), stop)
    since = {key: since.get(key, starts[0, key[0]]) for key in waiting}
    for execution, update, layer, _, stop in db.execute(spans + "category = 'layer' AND phase IN ('B', 'W')"):
        backward[execution, update, layer] = max(backward.get((execution, update, layer), 0), stop)
    for b in range(count):
        layer = next(name for name, first, last in places if first < cuts[b] and last > cuts[b + 1])
        sizes[0, b] = 4 * (cuts[b] - cuts[b + 1])
        sum_of[0, b] = sizes[0, b] / 5
        gathered.add((0, b))
        ready[0, b] = sum(backward[key + (layer,)] - since[key] for key in waiting) / len(waiting)
    return sum(waiting[key] - since[key] for key in waiting) / len(waiting)


if len(sys.argv) > 6:
    waits = of_one_process(int(sys.argv[6]), sys.argv[7])
(update_ns,) = db.execute("SELECT sum(dur_ns) * 1.0 / sum(updates) FROM executions WHERE mode = 'train'").fetchone()
measured_exposed = min(measured_exposed, update_ns)
rows = list(csv.DictReader(sys.stdin))
assert rows[0]["kind"] == "measured" and abs(float(rows[0]["exposed_ns"]) - measured_exposed) < 2, (rows[0]["exposed_ns"], measured_exposed)
assert len(rows) == len(branches), rows
for row, own in zip(rows[1:], branches[1:]):
    exposed = simulate(int(row["instances"]), own)
    assert math.isclose(float(row["exposed_ns"]), exposed, rel_tol=1e-6, abs_tol=2), (row, exposed)
    assert math.isclose(float(row["weight_update_ns"]), update_ns + exposed - measured_exposed, rel_tol=1e-6, abs_tol=3), (row, update_ns, exposed)
print("%d numbers of instances, %d buckets" % (len(branches) - 1, len(sizes)))
