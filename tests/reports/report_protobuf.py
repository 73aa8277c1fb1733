"""Makes protobuf traces, imports them and real ones, and compares with protobuf_plain.py. See report_protobuf.sh."""
import collections
import glob
import gzip
import os
import random
import re
import sqlite3
import subprocess

import protobuf_plain as plain

REPORT = os.path.join(os.environ["IPUSCOPE_BIN_DIR"], "ipu-report")
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


def told(output):
    """(events read, of which became what, left out): the counts that the command prints."""
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
# Cut anywhere: refused in a line, or read up to there; never anything else.
for cut in sorted(rng.sample(range(1, len(space)), 40)):
    open("cut.xplane.pb", "wb").write(space[:cut])
    done = run("cut.xplane.pb")
    assert done.returncode in (0, 1, 2) and (done.returncode == 0 or done.stderr.count(b"\n") == 1), (cut, done)
for damaged in range(60):
    bad = bytearray(space)
    for _ in range(rng.randrange(1, 5)):
        bad[rng.randrange(len(bad))] = rng.randrange(256)
    open("bad.xplane.pb", "wb").write(bad)
    done = run("bad.xplane.pb")
    assert done.returncode in (0, 1, 2) and (done.returncode == 0 or done.stderr.count(b"\n") == 1), (damaged, done)

real = 0
for path in sorted(glob.glob(os.path.join(os.environ.get("IPUSCOPE_TEST_TRACES", ""), "xplane", "*.pb"))):
    if "CORRUPT" in path:
        refused(path, "byte")
    else:
        check_xplane(path)
    real += 1
print(f"XPlane: {count} events of a made file and those of {real} real ones: as a plain reader has them")
