"""Makes protobuf traces, imports them and real ones, and compares with protobuf_plain.py. See report_protobuf.sh."""
import collections
import glob
import gzip
import hashlib
import os
import random
import re
import resource
import shutil
import sqlite3
import subprocess
import zlib

import protobuf_plain as plain

REPORT = os.path.join(os.environ["IPUSCOPE_BIN_DIR"], "ipu-report")
ROUNDS = int(os.environ.get("IPUSCOPE_TEST_ROUNDS", 8))  # of each kind of damage
rng = random.Random(1)


# ---- writing protobuf -----------------------------------------------------------------------------------------------

def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def put(number, value):
    if isinstance(value, float):
        import struct
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(*pairs):
    return b"".join(put(number, value) for number, value in pairs)


# ---- importing ------------------------------------------------------------------------------------------------------

def run(path, *more, data=None):
    return subprocess.run([REPORT, "import", path, "-o", "out.db", "--force", *more], input=data, capture_output=True)


def damage(whole, name):
    """Cut anywhere, or with other bytes: refused in a line, or read up to there; never anything else."""
    cuts = [whole[:cut] for cut in sorted(rng.sample(range(1, len(whole)), ROUNDS))]
    changed = []
    for _ in range(ROUNDS):
        changed.append(bytearray(whole))
        for _ in range(rng.randrange(1, 5)):
            changed[-1][rng.randrange(len(whole))] = rng.randrange(256)
    for content in cuts + changed:
        open(name, "wb").write(content)
        done = run(name)
        assert done.returncode in (0, 1, 2) and (done.returncode == 0 or done.stderr.count(b"\n") == 1), done


def told(output):
    """The number of events that the command says it has read."""
    read = re.search(r"([\d,]+)  read, of which became", output)
    return int(read.group(1).replace(",", "")) if read else 0


def imported(path):
    done = run(path)
    assert done.returncode == 0, (path, done.stderr)
    db = sqlite3.connect("out.db")
    rows = collections.Counter(db.execute("SELECT name, start_ns, dur_ns FROM spans"))
    rows.update((name, ns, None) for name, ns in db.execute("SELECT name, time_ns FROM instants"))
    samples = db.execute("SELECT count(*) FROM counters").fetchone()[0]
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return rows, samples, told(done.stdout.decode()), db


def refused(path, *words):
    done = run(path)
    assert done.returncode != 0 and done.stderr.count(b"\n") == 1, (path, done)
    assert all(word in done.stderr.decode() for word in words), done.stderr


# ---- XPlane ---------------------------------------------------------------------------------------------------------

def make_xplane(lines=4, events=50, planes=3):
    space = b""
    for p in range(planes):
        name = "/host:CPU" if p == 0 else f"/device:GPU:{p - 1}"
        plane = message((1, p), (2, name))
        for l in range(lines):
            at, body = 0, b""
            for i in range(events):
                at += rng.randrange(2000, 9000000)
                dur = rng.choice([0, rng.randrange(1, 2000)])
                stats = [(4, message((1, 1), (4, l * 1000 + i + 1))), (4, message((1, 2), (5, "détail"))),
                         (4, message((1, 3), (2, 2.5))), (4, message((1, 4), (7, 5)))]
                body += put(4, message((1, 1 + i % 7), (2, at), (3, dur), *stats[:1 + i % 4]))
            body += put(4, message((1, 1), (5, 17)))  # an aggregate
            plane += put(3, message((1, l), (2, f"Stream #{l}(Kernel)"), (3, 1000 + l)) + body)
        for i in range(1, 8):
            plane += put(4, message((1, i), (2, message((1, i), (2, f"op {i}"), *([(4, f"shown {i}")] if i == 3 else [])))))
        for i, text in enumerate(("correlation_id", "détail", "ratio", "tf_op", "jit(f)/dot"), 1):
            plane += put(5, message((1, i), (2, message((1, i), (2, text)))))
        space += put(1, plane)
    start = message((2, "Task Environment"), (5, message((1, 1), (2, message((1, 1), (2, "profile_start_time"))))),
                    (6, message((1, 1), (3, 1700000000000000000))))
    return space + put(1, start) + put(4, "secret-host")


def check_xplane(path):
    rows, samples, read, db = imported(path)
    data = open(path, "rb").read()
    expected, count = plain.xplane(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    want = collections.Counter(row[1:] for row in expected)
    missing, extra = want - rows, rows - want
    assert not extra, (path, list(extra.items())[:5])
    # Allocations are samples of what is allocated.
    assert sum(missing.values()) == samples and all(re.match("Memory(De)?[Aa]llocation", name) for name, _, _ in missing), (
        path, list(missing.items())[:5])
    assert read == count, (path, read, count)
    return count, db


space = make_xplane()
open("made.xplane.pb", "wb").write(space)
count, db = check_xplane("made.xplane.pb")
assert count == 3 * 4 * 51
assert db.execute("SELECT count(*) > 20 FROM launches").fetchone() == (1,)
assert db.execute("SELECT DISTINCT value FROM span_args WHERE name = 'tf_op'").fetchall() == [("jit(f)/dot",)]
assert db.execute("SELECT DISTINCT value FROM span_args WHERE name = 'détail'").fetchall() == [("détail",)]
assert db.execute("SELECT count(*) FROM meta WHERE value LIKE '%secret%'").fetchone() == (0,)
assert db.execute("SELECT value FROM meta WHERE key = 'source'").fetchone() == ("xplane",)
assert db.execute("SELECT count(*) FROM tracks WHERE name LIKE 'GPU 1 Stream #%'").fetchone() == (4,)
with gzip.open("made.xplane.pb.gz", "wb") as zipped:
    zipped.write(space)
assert check_xplane("made.xplane.pb.gz")[0] == count
damage(space, "bad.xplane.pb")

# A TPU: its operations are kernels, without those that enclose others; what it ran as a whole are ranges.
tpu = message((1, 2), (2, "/device:TPU:3"),
              (3, message((1, 1), (2, "XLA Modules"), (3, 10), (4, message((1, 1), (3, 9000000))))),
              (3, message((1, 2), (2, "XLA Ops"), (3, 10), (4, message((1, 2), (3, 8000000))), (4, message((1, 3), (2, 1000000), (3, 2000000))),
                          (4, message((1, 4), (2, 3000000), (3, 4000000))), (4, message((1, 5), (2, 8000000), (3, 500000))))),
              *[(4, message((1, i), (2, message((1, i), (2, name)))))
                for i, name in enumerate(("jit_step(17)", "while.1", "fusion.2", "all-reduce.3", "copy-done.4"), 1)])
open("tpu.xplane.pb", "wb").write(put(1, tpu))
count, db = check_xplane("tpu.xplane.pb")
assert db.execute("SELECT device, stream, name, kind, start_ns, dur_ns FROM kernels ORDER BY start_ns").fetchall() == [
    ("TPU 3", None, "fusion.2", "compute", 1010, 2000), ("TPU 3", None, "all-reduce.3", "communication", 3010, 4000),
    ("TPU 3", None, "copy-done.4", "memory", 8010, 500)]
assert db.execute("SELECT kind, name, dur_ns FROM ranges").fetchall() == [("device", "jit_step(17)", 9000)]
assert db.execute("SELECT device, number FROM devices").fetchall() == [("TPU 3", 3)]
assert db.execute("SELECT track, parent FROM tracks ORDER BY track").fetchall() == [
    ("TPU 3", None), ("XLA Modules", "TPU 3"), ("XLA Ops", "TPU 3")], db.execute("SELECT track, parent FROM tracks").fetchall()
assert db.execute("SELECT depth FROM spans WHERE name = 'fusion.2'").fetchone() == (1,)

real = 0
for path in sorted(glob.glob(os.path.join(os.environ.get("IPUSCOPE_TEST_TRACES", ""), "xplane", "*.pb"))):
    if "CORRUPT" in path:
        refused(path, "byte")
    else:
        check_xplane(path)
    real += 1
print(f"XPlane: {count} events of a made file and those of {real} real ones: as a plain reader has them")


# ---- Perfetto -------------------------------------------------------------------------------------------------------

def packet(*pairs):
    return put(1, message(*pairs))


def make_pftrace():
    out = [packet((6, message((1, message((1, 6), (2, 5000000000))), (1, message((1, 1), (2, 1700000000 * 10 ** 9))))))]
    for pid in (10, 11):
        out.append(packet((60, message((1, pid), (3, message((1, pid), (6, f"process {pid}")))))))
        for tid in (1, 2):
            out.append(packet((60, message((1, pid * 100 + tid), (5, pid), (4, message((1, pid), (2, tid), (5, f"thread {tid}")))))))
    out.append(packet((60, message((1, 7), (5, 10), (2, "memory"), (8, message((3, 3), (4, 1024)))))))
    out.append(packet((60, message((1, 8), (5, 10), (2, "delta"), (8, message((5, 1)))))))
    # Tracks under others, described before these; one under itself, two under each other.
    for uuid, above, name in ((20, 21, "lock"), (21, 1001, "locks"), (22, 22, "own"), (23, 24, "round"), (24, 23, "about")):
        out.append(packet((60, message((1, uuid), (5, above), (2, name)))))
        if name != "locks":
            out.append(packet((8, 7000000000), (11, message((9, 3), (11, uuid), (23, "held")))))
    for seq, track in enumerate((1001, 1002, 1101, 1102), 1):
        # A clock of the sequence's own, in us, each timestamp a distance to the last.
        out.append(packet((10, seq), (13, 1), (6, message((1, message((1, 6), (2, 6000000000))),
                                                         (1, message((1, 64), (2, 500), (3, 1), (4, 1000)))))))
        names = [(12, message(*[(2, message((1, i), (2, f"slice {i}"))) for i in range(1, 6)], (1, message((1, 1), (2, "cat"))),
                              (3, message((1, 1), (2, "size"))), (29, message((1, 1), (2, "wörd")))))]
        out.append(packet((10, seq), (13, 2), (59, message((58, 64), (11, message((11, track), (31, 8))))), *names))
        depth, body = 0, []
        for i in range(200):
            step = (8, rng.randrange(1, 50))
            kind = rng.choice((1, 1, 2, 3, 4)) if depth else rng.choice((1, 3, 4))
            if kind == 1:
                depth += 1
                body.append(packet((10, seq), (13, 2), step, (11, message(
                    (9, 1), (10, 1 + i % 5), (3, 1), (4, message((1, 1), (4, i))), (4, message((10, "word"), (17, 1))),
                    (4, message((10, "nested"), (11, message((10, "a"), (5, 2.5))), (11, message((10, "b"), (6, "text")))))))))
            elif kind == 2:
                depth -= 1
                body.append(packet((10, seq), (13, 2), step, (11, message((9, 2), (12, i)))))
            elif kind == 3:
                body.append(packet((10, seq), (13, 2), step, (11, message((9, 3), (23, "mark"), (22, "other")))))
            else:
                body.append(packet((10, seq), (13, 2), step, (11, message((9, 4), (11, 7), (30, i * 3 - 100)))))
        out += body
        out.append(packet((10, seq), (42, 1), (13, 2), (8, 1), (11, message((9, 3), (10, 1)))))  # its names are lost
    for i in range(20):  # flows between threads
        out += [packet((8, 9000000000 + i * 1000), (11, message((9, 1), (11, 1001), (23, "out"), (47, i + 1)))),
                packet((8, 9000000400 + i * 1000), (11, message((9, 2), (11, 1001)))),
                packet((8, 9000000500 + i * 1000), (11, message((9, 1), (11, 1101), (23, "in"), (48, i + 1)))),
                packet((8, 9000000900 + i * 1000), (11, message((9, 2), (11, 1101))))]
    def chrome(at, track, name, phase, *more):  # an event in the old form
        out.append(packet((8, at), (11, message((11, track), (22, "chrome"), (23, name), (6, message((2, ord(phase)), *more))))))

    for i in range(10):  # flows of the old form: s and f, to the next slice or the enclosing one; of slices
        at = 9200000000 + i * 10000
        chrome(at, 1001, "first", "X", (3, 1))
        chrome(at + 100, 1001, "arrow", "s", (6, i))
        chrome(at + 2000, 1101, "second", "X", (3, 3))
        chrome(at + 2100, 1101, "arrow", "t", (6, i))
        chrome(at + 6000 - i % 2, 1102, "arrow", "f", (6, i))
        chrome(at + 6000, 1102, "third", "X", (3, 2))
        chrome(at + 6100, 1102, "arrow", "s", (6, 1000 + i))
        chrome(at + 9000, 1002, "fourth", "X", (3, 1))
        chrome(at + 9100, 1002, "arrow", "f", (6, 1000 + i), (12, 1))
        chrome(at + 9950, 1001, "leaves", "X", (3, 0), (8, i), (13, 2))
        chrome(at + 9960, 1101, "arrives", "X", (3, 0), (8, i), (13, 1))
    import zlib
    deflated = b"".join(packet((8, 9100000000 + i * 10), (11, message((9, 3), (11, 1001), (23, "deflated")))) for i in range(30))
    out.append(packet((50, zlib.compress(deflated))))
    out.append(packet((8, 9), (1, b"\x08\x01")))  # ftrace
    return b"".join(out)


def check_pftrace(path):
    data = open(path, "rb").read()
    want = plain.Perfetto(data)
    done = run(path)
    assert done.returncode == 0, (path, done.stderr)
    db = sqlite3.connect("out.db")
    times = [ns for _, ns, _ in list(want.rows) + list(want.samples)]
    base = min(times) if times and not 0 <= min(times) < 60 * 10 ** 9 else 0
    rows = collections.Counter(db.execute("SELECT name, start_ns, dur_ns FROM spans"))
    rows.update((name, ns, None) for name, ns in db.execute("SELECT name, time_ns FROM instants"))
    samples = collections.Counter(db.execute("SELECT name, time_ns, value FROM counters"))
    expected = collections.Counter()
    for (name, ns, dur), n in want.rows.items():
        expected[name, ns - base, dur] += n
    for (name, ns, dur), n in list(expected.items()):
        if dur == "open":  # to the end of what encloses it
            found = [row for row in rows if row[:2] == (name, ns) and row[2] is not None and row not in expected]
            assert found, (path, name, ns)
            del expected[name, ns, dur]
            for row in found:
                expected[row] = rows[row]
    assert rows == expected, (path, list((expected - rows).items())[:4], list((rows - expected).items())[:4])
    assert samples == collections.Counter({(name, ns - base, value): n for (name, ns, value), n in want.samples.items()}), path
    count = want.order + sum(want.samples.values()) + want.flows + sum(want.left.values()) - want.left["end"]
    assert told(done.stdout.decode()) == count, (path, told(done.stdout.decode()), count, dict(want.left))
    return count, db


trace = make_pftrace()
open("made.pftrace", "wb").write(trace)
count, db = check_pftrace("made.pftrace")
# The first packet is compressed, and longer than the head by which a format is recognised.
texts = (hashlib.md5(b"%d" % i).hexdigest() for i in range(300))
inner = b"".join(packet((8, 1000 + i), (11, message((9, 3), (11, 1), (23, text)))) for i, text in enumerate(texts))
open("first.pftrace", "wb").write(packet((50, zlib.compress(inner))))
check_pftrace("first.pftrace")
assert dict(db.execute("SELECT a.name || ' ' || b.name, count(*) FROM flows f JOIN spans a ON a.span_id = f.from_span_id "
                       "JOIN spans b ON b.span_id = f.to_span_id GROUP BY 1")) == {
    "out in": 20, "first second": 10, "second third": 10, "third fourth": 10, "leaves arrives": 10}
assert db.execute("SELECT DISTINCT value FROM span_args WHERE name = 'word'").fetchall() == [("wörd",)]
assert db.execute("SELECT DISTINCT name, value FROM span_args WHERE name LIKE 'nested%' ORDER BY name").fetchall() == [
    ("nested.a", 2.5), ("nested.b", "text")]
assert db.execute("SELECT count(*) FROM tracks WHERE name LIKE '%thread 2%'").fetchone() == (2,)
above = dict(db.execute("SELECT track, parent FROM tracks"))
assert (above["lock"], above["locks"], above["own"]) == ("locks", "process 10: thread 1", None), above
assert {above["round"], above["about"]} == {"about", None} or {above["round"], above["about"]} == {"round", None}, above
damage(trace, "bad.pftrace")


# Tracks in the order that the file asks for, and states, in and out of the order of time, with a slice across them.
def make_ordered(states):
    def track(uuid, *more):
        return packet((60, message((1, uuid), *more)))

    out = []
    for pid, rank in ((30, 2), (31, 1)):
        out.append(track(pid, (3, message((1, pid), (6, f"process {pid}"))), (12, rank)))
    out += [track(3000 + tid, (4, message((1, 30), (2, tid), (5, f"thread {tid}"))), (12, rank)) for tid, rank in ((1, 5), (2, 3))]
    out += [track(50, (5, 31), (2, "ranks"), (11, 3)), track(60, (5, 31), (2, "names"), (11, 1)), track(70, (5, 31), (2, "player"))]
    out += [track(uuid, (5, above), (2, name), (12, rank)) for uuid, above, name, rank in (
        (51, 50, "second", 2), (52, 50, "first", -1), (53, 50, "third", 9), (61, 60, "zeta", 1), (62, 60, "alpha", 2), (63, 60, "mu", 3))]
    out += [packet((8, 1000), (11, message((9, 3), (11, uuid), (23, "mark")))) for uuid in (3001, 3002, 51, 52, 53, 61, 62, 63, 70)]
    out += [packet((8, ns), (11, message((9, 5), (11, 70), *([(23, name)] if name is not None else [])))) for ns, name in states]
    out += [packet((8, 1250), (11, message((9, 1), (11, 70), (23, "slice")))), packet((8, 1350), (11, message((9, 2), (11, 70))))]
    out.append(packet((8, 5000), (11, message((9, 3), (11, 3001), (23, "last")))))
    return b"".join(out + [track(0, (19, 1), (20, 1))])  # the root's descriptor may come last


states = [(1100, "buffering"), (1200, "buffering"), (1300, "playing"), (1500, ""), (1600, None), (1700, "buffering"), (1800, "paused")]
for order in (states, states[3:] + states[:3]):
    open("ordered.pftrace", "wb").write(make_ordered(order))
    done = run("ordered.pftrace")
    assert done.returncode == 0 and re.search(rb" 3 +states that ended, or went on", done.stdout), done
    assert told(done.stdout.decode()) == 19
    db = sqlite3.connect("out.db")
    assert db.execute("SELECT name, start_ns, dur_ns FROM spans WHERE track = 'player' ORDER BY start_ns").fetchall() == [
        ("buffering", 1100, 200), ("playing", 1300, 200), ("buffering", 1700, 100), ("paused", 1800, 3200)]
    assert db.execute("SELECT start_ns, dur_ns FROM spans WHERE name = 'slice'").fetchall() == [(1250, 100)]
    order = [name for name, in db.execute("SELECT track FROM track_rows ORDER BY track_id")]
    assert order.index("process 31") < order.index("process 30")
    for inner in (["thread 2", "thread 1"], ["first", "second", "third"], ["alpha", "mu", "zeta"]):
        assert [name for name in order if name in inner] == inner, order


def make_gpu_trace():
    """Two streams of a GPU and one of another, with launches, waits, and counters, in both forms of descriptors."""
    names = (12, message(
        (1000, message((1, 1), (2, "_Z3addPf"), (3, "add(float*)"), (5, message((1, 1), (4, 32))))),
        (1000, message((1, 2), (2, "ncclAllReduce_f32"))), (1001, message((1, 1), (2, "registers_per_thread"))),
        (23, message((1, 1), (2, 100), (3, 4))), (24, message((1, 1), (2, "compute 0"), (4, 2))),
        (24, message((1, 2), (2, "compute 1"), (4, 2))), (24, message((1, 3), (2, "Kernel"))),
        (47, message((1, 1), (3, 1), (2, message((1, message((1, 7), (2, "SM active")))))))))
    out = [packet((10, 1), (13, 1), names), packet((10, 2), (13, 1), (12, message((2, message((1, 1), (2, "cuLaunch"))))))]
    for i in range(40):
        at = 10**9 + i * 10000
        size = message((1, 64 + i), (2, 2))
        args = [(3, message((2, "shared_mem_static"), (4, 1024))), (3, message((2, "shared_mem_dynamic"), (4, i)))]
        out += [packet((10, 2), (13, 2), (8, at), (11, message((9, 1), (11, 5), (10, 1), (3000, message((1, 2 * i), (1, 2 * i + 1)))))),
                packet((10, 2), (13, 2), (8, at + 50), (11, message((9, 2), (11, 5)))),
                packet((10, 1), (13, 2), (8, at + 100), (53, message(
                    (1, 2 * i), (2, 4000), (5, 1), (13, 1), (14, 3), (19, 1), (11, i % 2), (21, message((1, size), (2, message((1, 128))), *args))))),
                packet((10, 1), (13, 2), (8, at + 2000), (53, message(
                    (1, 2 * i + 1), (2, 5000), (5, 1), (13, 2), (14, 3), (18, 2 * i), (18, 10**6), (6, message((1, "key"), (2, "värde"))),
                    *[(19, 2)] * (i % 2)))),
                packet((10, 2), (13, 2), (8, at + 8000), (11, message((9, 1), (11, 5), (23, "waited"), (3000, message((2, 2 * i + 1)))))),
                packet((10, 2), (13, 2), (8, at + 8100), (11, message((9, 2), (11, 5)))),
                packet((10, 1), (13, 2), (8, at), (52, message((4, 1), (2, message((1, 7), (3, i / 4))), (2, message((1, 8), (2, 1)))))),
                packet((10, 3), (8, at), (52, message((1, message((1, message((1, 7), (2, "clock"))))), (2, message((1, 7), (2, i))))))]
    return b"".join(out)


gpu = make_gpu_trace()
open("gpu.pftrace", "wb").write(gpu)
_, db = check_pftrace("gpu.pftrace")
assert db.execute("SELECT count(*), count(launch_span_id), sum(kind = 'communication'), min(registers), max(grid_x), min(grid_y), min(block_x), "
                  "max(shared_bytes) FROM kernels").fetchone() == (80, 80, 20, 32, 103, 2, 128, 1024 + 39)
assert db.execute("SELECT DISTINCT track FROM spans WHERE name = 'add(float*)' ORDER BY 1").fetchall() == [
    ("GPU 0 compute 0",), ("GPU 1 compute 0",)]
assert db.execute("SELECT count(DISTINCT launch_span_id), count(*), min(delay_ns) FROM launches").fetchone() == (40, 80, 50)
assert db.execute("SELECT name, count(*) FROM flows GROUP BY name").fetchall() == [("launch", 80), ("wait", 80)]
assert db.execute("SELECT track, name, count(*) FROM counters GROUP BY 1, 2").fetchall() == [
    ("GPU 0 counters", "clock", 40), ("GPU 1 counters", "SM active", 40)]
assert db.execute("SELECT track, parent FROM tracks WHERE track LIKE '% counters' ORDER BY 1").fetchall() == [
    ("GPU 0 counters", "GPU 0"), ("GPU 1 counters", "GPU 1")]
assert db.execute("SELECT DISTINCT value FROM span_args WHERE name = 'key'").fetchall() == [("värde",)]
damage(gpu, "bad.pftrace")

if shutil.which("zstd"):
    squeezed = subprocess.run(["zstd", "-c"], input=trace, capture_output=True).stdout
    open("whole.pftrace.zst", "wb").write(squeezed)
    zstd = b"libzstd" not in run("whole.pftrace.zst").stderr
    if not zstd:
        refused("whole.pftrace.zst", "libzstd-dev", "zstd -dc")
if shutil.which("zstd") and zstd:
    rows, samples, read, _ = imported("whole.pftrace.zst")
    whole = imported("made.pftrace")
    assert (rows, samples, read) == whole[:3]
    open("packets.pftrace", "wb").write(packet((8, 1), (10, 9)) + packet((133, squeezed)))
    check_pftrace("packets.pftrace")
    assert imported("packets.pftrace")[1] == whole[1]
    damage(squeezed, "bad.pftrace.zst")
    damage(packet((133, squeezed)), "bad.pftrace")
# Times at the ends of their range: of clocks, of events in microseconds, of durations.
far = [packet((6, message(*[(1, message((1, clock), (2, ticks))) for clock, ticks in ((6, 5), (1, 2**63 - 1), (3, 2**62), (4, 7))]))),
       packet((6, message((1, message((1, 3), (2, 2**62 + 5))), (1, message((1, 1), (2, 1)))))),
       packet((8, 2**63 - 1), (10, 1), (58, 1), (11, message((9, 1), (11, 1), (23, "late"))))]
far += [packet((10, 1), (44, message((1, 1), (2, 2), (6, 2**62))))]
far += [packet((10, 1), (11, message((number, us), (6, message((2, ord("X")), (3, dur))), (23, "far"))))
        for number in (1, 16) for us in (2**62, -2**62, 2**63 - 1, 5) for dur in (2**62, -2**62, -2**63, 3)]
open("far.pftrace", "wb").write(b"".join(far))
done = run("far.pftrace")
assert done.returncode == 0 and not done.stderr and told(done.stdout.decode()) == len(far) - 3, done
# Texts that no two events share are not kept: 160 MB of them in an address space of 300 MB, which sanitizers do not have.
if os.path.exists(os.path.join(os.path.dirname(REPORT), "../tests/libfail_alloc.so")):
    with open("texts.pftrace", "wb") as file:
        file.write(packet((60, message((1, 7), (4, message((1, 1), (2, 1), (5, "thread")))))))
        for i in range(10000):
            argument = (4, message((10, "text"), (6, f"{i} " + "x" * 16000)))
            file.write(packet((8, 1000 + 10 * i), (11, message((9, 3), (11, 7), (23, "event"), argument))))
    limit = 300 << 20
    done = subprocess.run([REPORT, "import", "texts.pftrace", "-o", "out.db", "--force"], capture_output=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    assert done.returncode == 0 and not done.stderr, done
    db = sqlite3.connect("out.db")
    assert db.execute("SELECT count(DISTINCT value) FROM instant_args").fetchone() == (10000,)
    os.remove("texts.pftrace")
real = events = 0
for path in sorted(glob.glob(os.path.join(os.environ.get("IPUSCOPE_TEST_TRACES", ""), "pftrace", "*.pftrace"))):
    events += check_pftrace(path)[0]
    real += 1
print(f"Perfetto: {count} events of a made file and {events} of {real} real ones: as a plain reader has them")
