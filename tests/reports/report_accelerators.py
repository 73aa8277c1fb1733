"""Other profilers' recordings, imported and read by the straightforward readers here: report_accelerators.sh."""
import csv
import glob
import gzip
import io
import json
import os
import random
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from decimal import Decimal

REPORT, SAMPLES = sys.argv[1:3]
failures = 0


def wrong(what):
    global failures
    failures += 1
    print("FAILED:", what)


def equal(what, got, wanted):
    if got != wanted:
        wrong("%s: %r instead of %r" % (what, got, wanted))


def run(path, db):
    if os.path.exists(db):
        os.remove(db)
    return subprocess.run([REPORT, "import", path, "-o", db], capture_output=True, text=True, errors="replace")


class Imported:
    """The result of an import; what it said adds up."""

    def __init__(self, path, db):
        done = run(path, db)
        if done.returncode != 0:
            raise SystemExit("FAILED: %s: %s" % (path, done.stderr))
        self.db = sqlite3.connect(db)
        self.events = self.count(done.stdout, "read, of which became")
        section = done.stdout.split("events\n")[1].split("notes\n")[0]
        counts = [int(line.split()[0].replace(",", "")) for line in section.splitlines()[1:] if re.match(r"\s+\d", line)]
        equal(path + ": counts add up", sum(counts), self.events)
        self.base = int(self.ask("SELECT value FROM meta WHERE key = 'trace_base_ns'")[0][0])
        self.hierarchy(path)

    def hierarchy(self, path):
        """Threads are under their process, what ran on a device is under the device."""
        tracks = {track: (parent, pid, tid) for track, parent, pid, tid in self.ask("SELECT track, parent, pid, tid FROM tracks")}
        devices = dict(self.ask("SELECT track, device FROM spans JOIN (SELECT span_id, device FROM kernels "
                                "UNION ALL SELECT span_id, device FROM copies) USING (span_id) GROUP BY track"))

        def top(track):
            while tracks[track][0] is not None:
                track = tracks[track][0]
            return track

        for track, (parent, pid, tid) in tracks.items():
            if parent is not None and parent not in tracks:
                wrong("%s: %s is under %s, which is no track" % (path, track, parent))
            elif track in devices:
                equal(path + ": top of " + track, top(track), devices[track])
            elif tid is not None and tracks[top(track)][1] not in (None, pid):
                wrong("%s: %s is under another process" % (path, track))
            elif tid is not None and parent is None:
                wrong("%s: %s is under nothing" % (path, track))

    @staticmethod
    def count(text, words):
        return int(re.search(r"([\d,]+)  " + re.escape(words), text).group(1).replace(",", ""))

    def ask(self, sql):
        return self.db.execute(sql).fetchall()

    def spans(self):
        return Counter((name, start + self.base, dur) for name, start, dur in
                       self.ask("SELECT name, start_ns, dur_ns FROM spans"))


def compare(path, imported, wanted, events):
    equal(path + ": events", imported.events, events)
    got = imported.spans()
    missing, more = wanted - got, got - wanted
    if missing or more:
        wrong("%s: %d spans missing, %d too many: %r %r" % (
            path, sum(missing.values()), sum(more.values()), list(missing)[:3], list(more)[:3]))


# ---- Kineto -----------------------------------------------------------------------------------

def kineto(path):
    trace = json.load(gzip.open(path), parse_float=Decimal, parse_int=Decimal)
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    wanted, calls, device = Counter(), set(), []
    for e in events:
        if e.get("ph") != "X":
            continue
        wanted[(e["name"], int(Decimal(e["ts"]) * 1000), int(Decimal(e.get("dur", 0)) * 1000))] += 1
        args = e.get("args", {})
        correlation = int(args.get("correlation", 0))
        if e.get("cat") in ("cuda_runtime", "cuda_driver", "Runtime", "mtia_runtime"):
            calls.add(correlation)
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset") and (
                "stream" in args or "device" in args):
            device.append(correlation)
        if e.get("cat") == "mtia_ccp_events" and e["name"] not in ("event_wait", "event_record"):
            device.append(correlation)
    imported = Imported(path, "kineto.db")
    compare(path, imported, wanted, len(events))
    equal(path + ": device spans", imported.ask(
        "SELECT (SELECT count(*) FROM kernels) + (SELECT count(*) FROM copies)")[0][0], len(device))
    equal(path + ": launches", imported.ask("SELECT count(*) FROM launches")[0][0],
          sum(c in calls and c != 0 for c in device))
    inside = imported.ask("SELECT count(*) FROM kernels k JOIN spans s USING (span_id) JOIN kernels p "
                          "ON p.span_id = s.parent_id")[0][0]
    equal(path + ": kernels within kernels", inside, 0)
    reports(imported, "kineto.db")


def own_names():
    """Kernels whose long names differ at their end alone are two; a name beyond all reason is cut, and told."""
    names = ["void gemm<%s, %d>" % ("ck_tile::sequence<16, 192>, " * 190, last) for last in (1, 2)] + ["x" * 20000]
    events = [{"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 10 * i, "dur": 5, "args": {"stream": 7}}
              for i, name in enumerate(names)]
    json.dump({"traceEvents": events[:2]}, gzip.open("own_names.json.gz", "wt"))
    kineto("own_names.json.gz")
    json.dump({"traceEvents": events}, open("cut.json", "w"))
    done = run("cut.json", "cut.db")
    equal("a cut name is told", "different names cut after 16384 bytes" in done.stdout, True)
    equal("cut", sqlite3.connect("cut.db").execute("SELECT max(length(name)) FROM kernels").fetchone(), (16384,))


def own_mtia():
    """Meta's accelerator: categories of its own, copies with a direction instead of a name, waits and records of events."""
    def span(cat, name, tid, ts, dur, **args):
        return {"ph": "X", "cat": cat, "name": name, "pid": 5 if cat == "mtia_ccp_events" else 1, "tid": tid, "ts": ts, "dur": dur, "args": args}

    events = [span("mtia_runtime", "runFunction - job_prep_and_submit_for_execution", 1, 10, 4, correlation=7),
              span("mtia_ccp_events", "fc-dtype_Float", 3, 20, 5, correlation=7, stream=2, row="0", column="1"),
              span("mtia_runtime", "enqueueCommand memcpyHtoDAsync", 1, 15, 1, correlation=8),
              span("mtia_ccp_events", "dma_request", 3, 26, 2, correlation=8, stream=2, size=64, direction="HOST_TO_DEVICE"),
              span("mtia_ccp_events", "dma_request", 3, 30, 1, size=16, direction="DEVICE_TO_HOST", sqid=1),
              span("mtia_ccp_events", "event_wait", 3, 32, 9, stream=2, wait_on_stream=1),
              span("mtia_ccp_events", "event_record", 3, 42, 0, stream=2)]
    with gzip.open("own_mtia.json.gz", "wt") as out:
        json.dump({"deviceProperties": [{"id": 5, "name": "Artemis"}], "traceEvents": events}, out)
    kineto("own_mtia.json.gz")
    got = sqlite3.connect("kineto.db")
    equal("MTIA: launches", got.execute("SELECT call, dur_ns, name, stream, delay_ns FROM launches ORDER BY start_ns").fetchall(), [
        ("runFunction - job_prep_and_submit_for_execution", 4000, "fc-dtype_Float", 2, 6000),
        ("enqueueCommand memcpyHtoDAsync", 1000, "dma_request", 2, 10000)])
    equal("MTIA: copies", got.execute("SELECT device, kind, bytes FROM copies ORDER BY start_ns").fetchall(), [
        ("MTIA 5", "HtoD", 64), ("MTIA 5", "DtoH", 16)])
    equal("MTIA: devices", got.execute("SELECT device, number, model FROM devices").fetchall(), [("MTIA 5", 5, "Artemis")])
    equal("MTIA: waits", got.execute("SELECT name, track LIKE '%(sync)' FROM spans WHERE name LIKE 'event%' ORDER BY 1").fetchall(), [
        ("event_record", 1), ("event_wait", 1)])


# ---- Nsight Systems ---------------------------------------------------------------------------

NSYS_CALLS = ("CUPTI_ACTIVITY_KIND_RUNTIME", "OSRT_API", "PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD",
              "MPI_COLLECTIVES_EVENTS", "CUBLAS_EVENTS")
COPY_KINDS = {1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP", 0: ""}
SYNCS = {1: "Event synchronize", 2: "Stream wait event", 3: "Stream synchronize", 4: "Context synchronize"}


def nsys(path):
    db = sqlite3.connect("file:%s?immutable=1" % path, uri=True)
    db.row_factory = sqlite3.Row
    tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    strings = dict(db.execute("SELECT id, value FROM StringIds").fetchall())
    wanted, events, calls, device = Counter(), 0, set(), []

    def rows(table):
        return [dict(row) for row in db.execute("SELECT * FROM " + table)] if table in tables else []

    def text(number):
        return re.sub(r"_v\d+$", "", strings.get(number, "")) or "(no name)"

    for table in NSYS_CALLS:
        for row in rows(table):
            wanted[(text(row["nameId"]), row["start"], row["end"] - row["start"])] += 1
            events += 1
            if table == "CUPTI_ACTIVITY_KIND_RUNTIME":
                calls.add((row["globalTid"] >> 24, row["correlationId"]))
    only = {p for p, _ in calls}
    for table, name in (("KERNEL", lambda r: text(r["demangledName"])),
                        ("MEMCPY", lambda r: ("Memcpy " + COPY_KINDS[r["copyKind"]])),
                        ("MEMSET", lambda r: "Memset"),
                        ("SYNCHRONIZATION", lambda r: SYNCS[r["syncType"]]),
                        ("GRAPH_TRACE", lambda r: "CUDA graph")):
        for row in rows("CUPTI_ACTIVITY_KIND_" + table):
            wanted[(name(row), row["start"], row["end"] - row["start"])] += 1
            events += 1
            if table != "SYNCHRONIZATION":
                pid = row["globalPid"] >> 24 if row.get("globalPid") is not None else min(only)
                device.append((pid, row["correlationId"]))
    for row in rows("NVTX_EVENTS"):
        events += 1
        if row["eventType"] in (59, 60, 70, 71) and row["end"] is not None:
            name = row["text"] if row["text"] is not None else strings[row["textId"]]
            wanted[(name, row["start"], row["end"] - row["start"])] += 1
    for table in ("SCHED_EVENTS", "COMPOSITE_EVENTS", "DIAGNOSTIC_EVENT", "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
                  "GPU_METRICS", "CUDA_GPU_MEMORY_USAGE_EVENTS"):
        events += len(rows(table))
    imported = Imported(path, "nsys.db")
    compare(path, imported, wanted, events)
    equal(path + ": launches", imported.ask("SELECT count(*) FROM launches")[0][0], sum(d in calls for d in device))
    reports(imported, "nsys.db")
    held = open("nsys.db", "rb").read()
    for table, column in (("META_DATA_CAPTURE", "value"), ("TARGET_INFO_SYSTEM_ENV", "value"), ("ProcessStreams", "contentId")):
        for row in rows(table):
            value = row.get(column)
            secret = isinstance(value, str) and re.search(r"TOKEN|PASSWORD|SECRET|/home/|HOSTNAME", str(row), re.I)
            if secret and len(value) > 8 and value.encode() in held:
                wrong("%s: %s has %r, and the import, too" % (path, table, value[:40]))
    return imported


NSYS_OWN = """
CREATE TABLE EXPORT_META_DATA (name TEXT, value TEXT);
INSERT INTO EXPORT_META_DATA VALUES ('EXPORT_SCHEMA_VERSION', '2.9.1'), ('EXPORT_USER', 'alice'), ('EXPORT_HOST', 'wonderland');
CREATE TABLE META_DATA_CAPTURE (name TEXT, value TEXT);
INSERT INTO META_DATA_CAPTURE VALUES ('ENV:HF_TOKEN', 'hf_secret_secret_secret');
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER);
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000);
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO StringIds VALUES (1, 'cudaGraphLaunch_v10000'), (2, 'void gemm<float>(float*)'), (3, 'step 3'), (4, 'poll'),
	(5, 'MPI_Allreduce'), (6, 'python3'), (7, 'ncclDevKernel_AllReduce');
CREATE TABLE ThreadNames (nameId INTEGER, globalTid INTEGER);
INSERT INTO ThreadNames VALUES (6, 0x0100000007000007);
CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
INSERT INTO PROCESSES VALUES (0x0100000007000000, 7, '/home/alice/venv/bin/train'), (0x0100000008000000, 8, 'C:\\Users\\alice\\train');
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER, returnValue INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (100, 150, 0x0100000007000007, 5, 1, 0), (100, 160, 0x0100000008000008, 5, 1, 2);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
	globalPid INTEGER, correlationId INTEGER, demangledName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER,
	blockY INTEGER, blockZ INTEGER, registersPerThread INTEGER, staticSharedMemory INTEGER, dynamicSharedMemory INTEGER, graphNodeId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
	(200, 300, 0, 1, 7, 0x0100000007000000, 5, 2, 4, 2, 1, 128, 1, 1, 32, 100, 28, 11),
	(210, 290, 0, 1, 7, 0x0100000007000000, 5, 7, 4, 2, 1, 128, 1, 1, 32, 100, 28, 12),
	(200, 300, 1, 1, 7, 0x0100000008000000, 5, 2, 4, 2, 1, 128, 1, 1, 32, 100, 28, NULL),
	(400, 500, 1, 1, 7, 0x0100000008000000, 6, 2, 4, 2, 1, 128, 1, 1, 32, 100, 28, NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
	globalPid INTEGER, correlationId INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER, dstDeviceId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (600, 700, 0, 1, 7, 0x0100000007000000, 9, 4096, 1, 1, 2, NULL),
	(700, 800, 0, 1, 7, 0x0100000007000000, 9, 64, 10, 2, 2, 1);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, globalPid INTEGER, syncType INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (150, 310, 0, 1, 7, 0x0100000007000000, 3), (150, 320, 0, 1, 4294967295, 0x0100000007000000, 4);
CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, globalPid INTEGER, correlationId INTEGER, graphId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (900, 950, 0, 1, 7, 0x0100000007000000, 5, 3);
CREATE TABLE OSRT_API (start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER);
INSERT INTO OSRT_API VALUES (1000, 1100, 0x0100000007000007, 4);
CREATE TABLE MPI_COLLECTIVES_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER, textId INTEGER, nameId INTEGER);
INSERT INTO MPI_COLLECTIVES_EVENTS VALUES (1200, 1300, 0x0100000007000007, NULL, 5);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, textId INTEGER, domainId INTEGER);
INSERT INTO NVTX_EVENTS VALUES (0, NULL, 75, 'loader', 0x0100000007000007, NULL, 9), (50, 1000, 59, NULL, 0x0100000007000007, 3, 0),
	(60, 900, 59, 'load', 0x0100000007000007, NULL, 9), (70, 2000, 60, 'crossing', 0x0100000007000007, NULL, 0),
	(80, 2100, 60, 'crossing too', 0x0100000007000007, NULL, 0), (90, NULL, 34, 'mark', 0x0100000007000007, NULL, 0),
	(95, NULL, 12345, 'unknown', 0x0100000007000007, NULL, 0);
CREATE TABLE SCHED_EVENTS (start INTEGER, cpu INTEGER, isSchedIn INTEGER, globalTid INTEGER);
INSERT INTO SCHED_EVENTS VALUES (1, 0, 1, 1), (2, 0, 0, 1);
CREATE TABLE GPU_METRICS (timestamp INTEGER, typeId INTEGER, metricId INTEGER, value INTEGER);
INSERT INTO GPU_METRICS VALUES (10, 0, 5, 40), (20, 0, 5, 60);
CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INTEGER, metricId INTEGER, metricName TEXT);
INSERT INTO TARGET_INFO_GPU_METRICS VALUES (0, 5, 'SMs Active');
CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER, globalPid INTEGER, deviceId INTEGER, contextId INTEGER, address INTEGER, bytes INTEGER, memoryOperationType INTEGER);
INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (5, 0x0100000007000000, 0, 1, 64, 1000, 0), (15, 0x0100000007000000, 0, 1, 64, 1000, 1);
CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, totalMemory INTEGER, smCount INTEGER, computeMajor INTEGER, computeMinor INTEGER);
INSERT INTO TARGET_INFO_GPU VALUES (0, 'H100', 80, 132, 9, 0);
"""


def make(path, sql):
    if os.path.exists(path):
        os.remove(path)
    db = sqlite3.connect(path)
    db.executescript(sql)
    db.commit()
    db.close()


def own_nsys():
    make("own.sqlite", NSYS_OWN)
    got = nsys("own.sqlite")
    equal("tracks", got.ask("SELECT track, parent FROM track_rows ORDER BY track_id"), [
        ("train (7)", None), ("thread 7 (python3)", "train (7)"), ("NVTX ranges", "train (7)"), ("GPU 0 metrics", "GPU 0"),
        ("GPU 0 memory", "GPU 0"), ("GPU 0 stream 7", "GPU 0"), ("GPU 0 stream 7 (sync)", "GPU 0 stream 7"),
        ("GPU 0 context (sync)", "GPU 0"), ("train (8)", None), ("thread 8", "train (8)"), ("GPU 1 stream 7", "GPU 1"),
        ("GPU 0", None), ("GPU 1", None), ("NVTX ranges (overlap 1)", "NVTX ranges"),
        ("GPU 0 stream 7 (overlap 1)", "GPU 0 stream 7")])
    equal("kernels", got.ask("SELECT device, stream, name, kind, grid_x, block_x, registers, shared_bytes, graph_node "
                             "FROM kernels ORDER BY start_ns, graph_node LIMIT 3"), [
        ("GPU 1", 7, "void gemm<float>(float*)", "compute", 4, 128, 32, 128, None),
        ("GPU 0", 7, "void gemm<float>(float*)", "compute", 4, 128, 32, 128, 11),
        ("GPU 0", 7, "ncclDevKernel_AllReduce", "communication", 4, 128, 32, 128, 12)])
    equal("launches", got.ask("SELECT track, call, count(*), max(delay_ns) FROM launches GROUP BY track"), [
        ("thread 7 (python3)", "cudaGraphLaunch", 3, 750), ("thread 8", "cudaGraphLaunch", 1, 40)])
    equal("copies", got.ask("SELECT kind, bytes, source, target, to_device FROM copies ORDER BY start_ns"), [
        ("HtoD", 4096, "pinned", "device", None), ("PtoP", 64, "device", "device", "GPU 1")])
    equal("ranges", got.ask("SELECT kind, domain, name FROM ranges ORDER BY start_ns"), [
        ("nvtx", None, "step 3"), ("nvtx", "loader", "load"), ("nvtx", None, "crossing"), ("nvtx", None, "crossing too")])
    equal("metrics", got.ask("SELECT track, name, value FROM counters WHERE name = 'SMs Active' ORDER BY time_ns"), [
        ("GPU 0 metrics", "SMs Active", 40.0), ("GPU 0 metrics", "SMs Active", 60.0)])
    equal("memory", got.ask("SELECT device, kind, bytes, total_bytes FROM memory_events ORDER BY time_ns"), [
        ("GPU 0", "alloc", 1000, 1000), ("GPU 0", "free", -1000, 0)])
    equal("device", got.ask("SELECT device, model, architecture, units FROM devices ORDER BY device LIMIT 1"), [
        ("GPU 0", "H100", "9.0", 132)])
    equal("start", got.ask("SELECT value FROM meta WHERE key = 'start_epoch_ns'"), [("1700000000000000000",)])
    held = open("nsys.db", "rb").read()
    for secret in (b"alice", b"wonderland", b"hf_secret"):
        if secret in held:
            wrong("%r was taken over" % secret)
    make("bare.sqlite", "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT); CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
         "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER);"
         "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 0), (NULL, 2, 0, 0), (9, 3, 0, 0), ('x', x'00', 'y', -1);")
    bare = Imported("bare.sqlite", "bare.db")
    equal("bare kernels", bare.ask("SELECT count(*) FROM kernels")[0][0] >= 1, True)


# ---- RPD and rocpd ----------------------------------------------------------------------------

def rpd(path):
    db = sqlite3.connect("file:%s?immutable=1" % path, uri=True)
    wanted, events = Counter(), 0
    for name, start, end in db.execute("SELECT apiName, start, end FROM api"):
        wanted[(name, start, end - start)] += 1
        events += 1
    for name, kind, start, end in db.execute("SELECT description, opType, start, end FROM op"):
        wanted[((name or kind), start, end - start)] += 1
        events += 1
    events += db.execute("SELECT count(*) FROM rocpd_monitor").fetchone()[0]
    imported = Imported(path, "rpd.db")
    compare(path, imported, wanted, events)
    equal(path + ": launches", imported.ask("SELECT count(*) FROM launches")[0][0],
          db.execute("SELECT count(DISTINCT op_id) FROM rocpd_api_ops").fetchone()[0])
    reports(imported, "rpd.db")


RPD = """
CREATE TABLE rocpd_string (id INTEGER PRIMARY KEY, string TEXT);
INSERT INTO rocpd_string VALUES (1, ''), (2, 'KernelExecution'), (3, 'CopyHostToDevice'), (4, 'hipLaunchKernel'), (5, 'gemm');
CREATE TABLE rocpd_api (id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, start INTEGER, end INTEGER, apiName_id INTEGER, args_id INTEGER);
CREATE TABLE rocpd_op (id INTEGER PRIMARY KEY, gpuId INTEGER, queueId INTEGER, start INTEGER, end INTEGER, description_id INTEGER, opType_id INTEGER);
CREATE TABLE rocpd_api_ops (id INTEGER PRIMARY KEY, api_id INTEGER, op_id INTEGER);
CREATE TABLE rocpd_kernelapi (api_ptr_id INTEGER PRIMARY KEY, gridX INTEGER, gridY INTEGER, gridZ INTEGER, workgroupX INTEGER,
	workgroupY INTEGER, workgroupZ INTEGER, groupSegmentSize INTEGER);
CREATE TABLE rocpd_copyapi (api_ptr_id INTEGER PRIMARY KEY, size INTEGER);
"""


def own_rpd():
    """Operations in any order, with no call, several, calls that are not recorded, and ids that are none."""
    draw, count = random.Random(5), 500
    calls, ops = draw.sample(range(1, 3 * count), count), draw.sample(range(1, 5 * count), count)
    make("own.rpd", RPD)
    db = sqlite3.connect("own.rpd")
    for at, call in enumerate(calls):
        db.execute("INSERT INTO rocpd_api VALUES (?, 7, ?, ?, ?, 4, 1)", (call, draw.randint(1, 3), 100 * at, 100 * at + 40))
        if draw.random() < 0.7:
            db.execute("INSERT INTO rocpd_kernelapi VALUES (?, ?, 2, 1, 64, ?, 1, ?)", (call, call, draw.randint(1, 9), draw.randint(0, 999)))
        if draw.random() < 0.7:
            db.execute("INSERT INTO rocpd_copyapi VALUES (?, ?)", (call, draw.randint(1, 9999)))
    for at, op in enumerate(ops):
        db.execute("INSERT INTO rocpd_op VALUES (?, 0, 1, ?, ?, ?, ?)", (op, 100 * at + 50, 100 * at + 90, draw.choice([1, 5]), draw.choice([2, 3])))
    for _ in range(3 * count):
        call, op = draw.choice(calls + [10 ** 8]), draw.choice(ops + [10 ** 8])
        odd = draw.random()
        db.execute("INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (?, ?)",
                   (draw.choice([None, "x"]) if odd < 0.1 else call, draw.choice([None, "x", draw.choice(ops) + 0.5, b"y"]) if odd > 0.8 else op))
    db.commit()
    started = dict(db.execute("SELECT id, start FROM rocpd_api"))
    launched = {}
    for call, op in db.execute("SELECT api_id, op_id FROM rocpd_api_ops"):
        if isinstance(call, int) and isinstance(op, int):
            launched[op] = min(call, launched.get(op, call))
    facts = {row[0]: row[1:] for row in db.execute("SELECT * FROM rocpd_kernelapi")}
    sizes = dict(db.execute("SELECT * FROM rocpd_copyapi"))
    wanted = {2: [], 3: []}
    for op, start, kind in db.execute("SELECT id, start, opType_id FROM rocpd_op ORDER BY start"):
        call = launched.get(op)
        wanted[kind].append((start, started.get(call)) + (facts.get(call, (None,) * 7) if kind == 2 else (sizes.get(call),)))
    got = Imported("own.rpd", "own_rpd.db")
    for kind, table, columns in ((2, "kernels", "grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes"), (3, "copies", "bytes")):
        equal("own.rpd: " + table, got.ask("SELECT o.start_ns + %d, c.start_ns + %d, %s FROM %s o LEFT JOIN spans c ON c.span_id = o.launch_span_id "
                                           "ORDER BY o.start_ns" % (got.base, got.base, columns, table)), wanted[kind])
    make("lacks.rpd", RPD.replace(", op_id INTEGER", ""))
    done = run("lacks.rpd", "lacks.db")
    equal("a column that is not there", (done.returncode, done.stderr), (2, "ipu-report import: lacks.rpd: no such column: l.op_id\n"))


ROCPD = """
CREATE TABLE "rocpd_metadata_U" (id INTEGER PRIMARY KEY, tag TEXT, value TEXT);
INSERT INTO "rocpd_metadata_U" (tag, value) VALUES ('schema_version', '3');
CREATE TABLE "rocpd_string_U" (id INTEGER PRIMARY KEY, string TEXT);
INSERT INTO "rocpd_string_U" VALUES (1, 'hipLaunchKernel'), (2, 'HIP_RUNTIME_API_EXT'), (3, 'KERNEL_DISPATCH'),
	(4, 'MEMORY_COPY_HOST_TO_DEVICE'), (5, 'roctxRangePushA'), (6, 'MARKER_CORE_RANGE_API');
CREATE TABLE "rocpd_info_process_U" (id INTEGER PRIMARY KEY, pid INTEGER, command TEXT, environment TEXT);
INSERT INTO "rocpd_info_process_U" VALUES (1, PID, 'train', '{"TOKEN": "rocm_secret_secret"}');
CREATE TABLE "rocpd_info_thread_U" (id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, name TEXT);
INSERT INTO "rocpd_info_thread_U" VALUES (1, 1, 43, NULL);
CREATE TABLE "rocpd_info_agent_U" (id INTEGER PRIMARY KEY, type TEXT, type_index INTEGER, name TEXT, product_name TEXT);
INSERT INTO "rocpd_info_agent_U" VALUES (1, 'CPU', 0, 'cpu', 'EPYC'), (2, 'GPU', 1, 'gfx942', 'MI300X');
CREATE TABLE "rocpd_info_kernel_symbol_U" (id INTEGER PRIMARY KEY, kernel_name TEXT, display_name TEXT, arch_vgpr_count INTEGER);
INSERT INTO "rocpd_info_kernel_symbol_U" VALUES (1, '_Z4gemm', 'gemm', 64);
CREATE TABLE "rocpd_event_U" (id INTEGER PRIMARY KEY, category_id INTEGER, stack_id INTEGER, extdata TEXT);
INSERT INTO "rocpd_event_U" VALUES (1, 2, 11, '{}'), (2, 3, 11, '{}'), (3, 3, 11, '{}'), (4, 6, 12, '{"message": "epoch 1"}'), (5, 2, 13, '{}');
CREATE TABLE "rocpd_region_U" (id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, start INTEGER, end INTEGER, name_id INTEGER, event_id INTEGER);
INSERT INTO "rocpd_region_U" VALUES (1, 1, 1, 1100, 1150, 1, 1), (2, 1, 1, 1000, 2000, 5, 4), (3, 1, 1, 1200, 1210, 1, 5);
CREATE TABLE "rocpd_kernel_dispatch_U" (id INTEGER PRIMARY KEY, pid INTEGER, agent_id INTEGER, kernel_id INTEGER, queue_id INTEGER,
	start INTEGER, end INTEGER, group_segment_size INTEGER, workgroup_size_x INTEGER, workgroup_size_y INTEGER, workgroup_size_z INTEGER,
	grid_size_x INTEGER, grid_size_y INTEGER, grid_size_z INTEGER, event_id INTEGER);
INSERT INTO "rocpd_kernel_dispatch_U" VALUES (1, 1, 2, 1, 3, 1300, 1400, 16, 256, 1, 1, 1024, 1, 1, 2), (2, 1, 2, 1, 3, 1399, 1500, 16, 256, 1, 1, 1024, 1, 1, 3);
CREATE TABLE "rocpd_memory_copy_U" (id INTEGER PRIMARY KEY, pid INTEGER, start INTEGER, end INTEGER, name_id INTEGER, dst_agent_id INTEGER,
	src_agent_id INTEGER, size INTEGER, queue_id INTEGER, event_id INTEGER);
INSERT INTO "rocpd_memory_copy_U" VALUES (1, 1, 1600, 1650, 4, 2, 1, 512, 3, 5);
CREATE TABLE "rocpd_memory_allocate_U" (id INTEGER PRIMARY KEY, pid INTEGER, agent_id INTEGER, type TEXT, start INTEGER, end INTEGER, address INTEGER, size INTEGER);
INSERT INTO "rocpd_memory_allocate_U" VALUES (1, 1, 2, 'ALLOC', 1010, 1020, 4096, 512), (2, 1, NULL, 'FREE', 1900, 1910, 4096, 512);
CREATE TABLE "rocpd_pmc_event_U" (id INTEGER PRIMARY KEY, value REAL);
INSERT INTO "rocpd_pmc_event_U" VALUES (1, 2.5);
"""


def own_rocpd():
    suffixes = ("_00001111_2222_3333_4444_555566667777", "_00001111_2222_3333_4444_555566668888")
    make("own.db3", "".join(ROCPD.replace("_U\"", s + "\"").replace("PID", str(42 + i)) for i, s in enumerate(suffixes)) +
         "CREATE VIEW rocpd_region AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n;")
    got = Imported("own.db3", "rocpd.db")
    equal("rocpd events", got.events, 2 * (1 + 3 + 2 + 1 + 2 + 1))
    equal("rocpd spans", got.ask("SELECT track, category, name, start_ns + %d, dur_ns FROM spans WHERE track LIKE '%%GPU%%' OR "
                                 "rank = 0 AND track = 'process 42: thread 43' ORDER BY track, start_ns" % got.base)[:2], [
        ("process 42: GPU 1 queue 3", "kernel", "gemm", 1300, 100), ("process 42: GPU 1 queue 3", "memcpy", "MEMORY_COPY_HOST_TO_DEVICE", 1600, 50)])
    equal("rocpd launches", got.ask("SELECT call, name, delay_ns FROM launches ORDER BY device_start_ns, launch_span_id LIMIT 4"), [
        ("hipLaunchKernel", "gemm", 150), ("hipLaunchKernel", "gemm", 150), ("hipLaunchKernel", "gemm", 249), ("hipLaunchKernel", "gemm", 249)])
    equal("rocpd ranges", got.ask("SELECT kind, name, dur_ns FROM ranges"), [("roctx", "epoch 1", 1000)] * 2)
    equal("rocpd copies", got.ask("SELECT device, stream, kind, bytes FROM copies"), [("GPU 1", 3, "HtoD", 512)] * 2)
    equal("rocpd devices", got.ask("SELECT device, model, architecture FROM devices"), [("GPU 1", "MI300X", "gfx942")])
    equal("rocpd memory", got.ask("SELECT device, kind, bytes FROM memory_events ORDER BY time_ns")[::2], [
        ("GPU 1", "alloc", 512), (None, "free", -512)])
    if b"rocm_secret" in open("rocpd.db", "rb").read():
        wrong("the environment was taken over")
    make("v4.db3", ROCPD.replace("_U\"", suffixes[0] + "\"").replace("PID", "42").replace("'3'", "'4.1'"))
    done = run("v4.db3", "v4.db")
    equal("schema 4", (done.returncode != 0, "4.1" in done.stderr, done.stderr.count("\n")), (True, True, 1))


# ---- reports ----------------------------------------------------------------------------------

def table(db, *words):
    text = subprocess.run([REPORT, db, *words, "--csv"], capture_output=True, text=True, check=True).stdout
    return list(csv.DictReader(io.StringIO(text)))


def covered(intervals):
    """The time that intervals cover, by sweeping over their ends."""
    total, end = 0, None
    for start, stop in sorted(intervals):
        if end is None or start > end:
            total, end = total + stop - start, stop
        elif stop > end:
            total, end = total + stop - end, stop
    return total


def near(what, got, wanted):
    if got in ("", None) or abs(float(got) - wanted) > 1e-9 * max(1, abs(wanted)):
        wrong("%s: %r instead of %r" % (what, got, wanted))


def reports(imported, db):
    """The reports against loops over the rows of the views."""
    kernels = imported.ask("SELECT name, kind, device, stream, start_ns, dur_ns, span_id, launch_span_id FROM kernels")
    copies = imported.ask("SELECT name, 'memory', device, stream, start_ns, dur_ns, span_id, launch_span_id FROM copies")
    spans = {row[0]: row[1:] for row in imported.ask("SELECT span_id, parent_id, start_ns, dur_ns FROM spans")}
    if not kernels:
        return
    durations = {}
    for k in kernels:
        durations.setdefault((k[1], k[0]), []).append(k[5])
    rows = table(db, "kernels")
    equal(db + ": names of kernels", len(rows), len(durations))
    for row in rows:
        mine = durations[(row["kind"], row["name"])]
        equal(row["name"], [int(row[c]) for c in ("count", "total_ns", "least_ns", "greatest_ns")],
              [len(mine), sum(mine), min(mine), max(mine)])
        near("share", row["share"], sum(mine) / sum(k[5] for k in kernels))
    for row in table(db, "temporal"):
        mine = [(k[1], k[4], k[4] + k[5]) for k in kernels + copies if k[2] == row["device"]]
        of = lambda *kinds: covered([(a, b) for kind, a, b in mine if kind in kinds])
        length = max(m[2] for m in mine) - min(m[1] for m in mine)
        compute, communication = of("compute", "graph"), of("communication")
        overlap = compute + communication - of("compute", "graph", "communication")
        busy = of("compute", "graph", "communication", "memory")
        equal(db + ": temporal", [int(row[c]) for c in (
            "total_ns", "busy_ns", "idle_ns", "compute_ns", "non_compute_ns", "communication_ns", "overlap_ns", "copy_ns")],
            [length, busy, length - busy, compute, busy - compute, communication, overlap, of("memory")])
    for row in table(db, "temporal", "--by", "idle"):
        mine = sorted((k[4], k[4] + k[5], k[6], k[7]) for k in kernels + copies
                      if (k[2], "" if k[3] is None else str(k[3])) == (row["device"], row["stream"]))
        waits = dict(host=0, kernel=0, other=0)
        for (_, before, _, _), (start, _, _, call) in zip(mine, mine[1:]):
            if call is not None and spans[call][1] > before:
                waits["host"] += max(0, start - before)
            elif start - before < 30:
                waits["kernel"] += max(0, start - before)
            else:
                waits["other"] += start - before
        equal(db + ": idle of " + row["stream"], [int(row[k + "_wait_ns"]) for k in waits], list(waits.values()))
    calls = {}
    for k in kernels + copies:
        if k[7] is not None:
            calls.setdefault(k[7], []).append(k)
    launches = {}
    for call, name in imported.ask("SELECT DISTINCT launch_span_id, call FROM launches"):
        for k in calls[call]:
            _, start, dur = spans[call]
            launches.setdefault(name, []).append((dur, k[5], max(0, k[4] - start - dur)))
    for row in table(db, "launch"):
        mine = launches.pop(row["call"])
        equal(db + ": launch", [int(row[c]) for c in ("count", "total_ns", "device_ns", "greatest_delay_ns", "short", "slow_calls", "late")],
              [len(mine), sum(m[0] for m in mine), sum(m[1] for m in mine), max(m[2] for m in mine),
               sum(m[1] < m[0] for m in mine), sum(m[0] > 50000 for m in mine), sum(m[2] > 100000 for m in mine)])
        near("mean delay", row["mean_delay_ns"], sum(m[2] for m in mine) / len(mine))
    equal(db + ": all launches told", launches, {})
    did = Counter()
    for call, mine in calls.items():
        while call is not None:
            did[call] += len(mine)
            call = spans[call][0]
    for row in table(db, "ranges", "--by", "range"):
        equal(db + ": range " + row["name"], int(row["kernels"] or 0), did[int(row["span_id"])])
    steps = Counter(row[0] for row in imported.ask("SELECT step FROM kernels UNION ALL SELECT step FROM copies"))
    for row in table(db, "steps"):
        equal(db + ": step " + row["step"], int(row["kernels"] or 0), steps[int(row["step"])])


def steps_by_range():
    """An epoch of five iterations with a forward and a backward range each: the iterations are the steps."""
    thread, process = 0x0100000007000007, 0x0100000007000000
    sql = """CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel'), (2, 'gemm');
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
	globalPid INTEGER, correlationId INTEGER, demangledName INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER);
"""
    ranges, number = [(0, 9000, "epoch 0")], 0
    for i in range(5):
        begin = 1000 + 1000 * i
        ranges += [(begin, begin + 900 + 10 * i, "iteration %d" % i), (begin + 10, begin + 300, "forward"), (begin + 310, begin + 800, "backward")]
        for at, late, dur in ((20, 100, 50), (40, 120, 60), (320, 500, 100), (850, 200, 5)):  # the second overlaps the first
            number += 1
            sql += "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (%d, %d, %d, %d, 1);\n" % (begin + at, begin + at + 5, thread, number)
            sql += "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (%d, %d, 0, 1, %d, %d, %d, 2);\n" % (
                begin + at + late, begin + at + late + dur, 7 + number % 2, process, number)
    for begin, end, name in ranges:
        sql += "INSERT INTO NVTX_EVENTS VALUES (%d, %d, 59, '%s', %d);\n" % (begin, end, name, thread)
    make("steps.sqlite", sql)
    Imported("steps.sqlite", "steps.db")
    rows = table("steps.db", "steps", "--by", "range")
    equal("steps by range", [(r["range"], r["name"], int(r["number"]), int(r["repeats"]), int(r["start_ns"]), int(r["dur_ns"]), int(r["kernels"]),
                              int(r["busy_ns"])) for r in rows],
          [("iteration", "iteration %d" % i, i + 1, 5, 1000 + 1000 * i, 900 + 10 * i, 4, 50 + 50 + 100 + 5) for i in range(5)])
    near("imbalance", rows[4]["imbalance"], 940 / 920 - 1)
    near("busy share", rows[0]["busy_share"], 205 / 900)


def numbered_ranges():
    """PyTorch's emit_nvtx numbers its operations: all of a name are one row, and the same in another run."""
    def recorded(path, first, dur):
        sql = """CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT); CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER);
"""
        for i, name in enumerate(("aten::mm, seq = %d, op_id = %d, sizes = [[2, 3], [3, 4]]", "aten::mm, seq = %d, op_id = %d", "aten::t, op_id = %d",
                                  "aten::t, op_id = %d, sizes = [[4, 3]]", "step %d, warm")):
            numbers = tuple(first + i + n for n in range(name.count("%d")))
            sql += "INSERT INTO NVTX_EVENTS VALUES (%d, %d, 59, '%s', 1);\n" % (100 * i, 100 * i + dur, name % numbers)
        make(path, sql)
        Imported(path, path + ".db")
        return path + ".db"
    one, other = recorded("one.sqlite", 7, 10), recorded("other_run.sqlite", 100, 20)
    equal("ranges with numbers", [(r["name"], int(r["count"]), int(r["total_ns"])) for r in table(one, "ranges")],
          [("aten::mm", 2, 20), ("aten::t", 2, 20), ("step 11, warm", 1, 10)])
    equal("each of them", [r["name"] for r in table(one, "ranges", "--by", "range")][1:3], ["aten::mm, seq = 8, op_id = 9", "aten::t, op_id = 9"])
    diff = subprocess.run([REPORT, "diff", one, other, "--csv", "--all", "--sections", "ranges"], capture_output=True, text=True, check=True).stdout
    equal("their difference", [(r["source"], r["target"]) for r in csv.DictReader(io.StringIO(diff)) if r["key"] == "aten::mm" and r["name"] == "mean_ns"],
          [("10", "20")])


def comparison():
    """Two traces, of which the second has one kernel in the place of three."""
    def trace(path, kernels, step):
        events = [{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d" % i, "pid": 1, "tid": 1, "ts": i * 1000, "dur": step}
                  for i in range(3)]
        for i in range(3):
            for j, (name, dur) in enumerate(kernels):
                events += [{"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": i * 1000 + 100 * j, "dur": dur,
                            "args": {"stream": 7, "device": 0, "correlation": 10 * i + j + 1}}]
        json.dump({"traceEvents": events}, open(path, "w"))
        Imported(path, path + ".db")
        return path + ".db"
    gemm = ("void gemm<float, 128>(float*)", 90)
    before = trace("before.json", [("softmax", 20), ("mask", 10), ("values", 30), gemm], 500)
    after = trace("after.json", [("void flash_fwd<64>(float const*)", 40), gemm], 440)
    text = lambda *words: subprocess.run([REPORT, "diff", *words], capture_output=True, text=True, check=True).stdout
    equal("the line", "flash_fwd replaces 3 kernels, step 12.0 % faster" in text(before, after), True)
    equal("the line backwards", "3 kernels replace 1, step 13.6 % slower" in text(after, before), True)
    rows = {(r["section"], r["key"], r["name"]): r for r in csv.DictReader(io.StringIO(text(before, after, "--csv", "--all", "--sections", "kernels,ranges")))
            if r["section"] in ("kernels", "ranges")}
    equal("gemm", [rows[("kernels", gemm[0], "total_ns")][c] for c in ("source", "target", "verdict")], ["270000", "270000", "equal"])
    equal("softmax", rows[("kernels", "softmax", "count")]["verdict"], "only source")
    equal("steps", [float(rows[("ranges", "steps", "mean_ns")][c]) for c in ("source", "target")], [500000, 440000])


# ---- what is damaged --------------------------------------------------------------------------

def hostile():
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS start, i + 1 AS end FROM n"
    make("views.sqlite", "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT); CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
         "CREATE TABLE OSRT_API (start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER); INSERT INTO OSRT_API VALUES (1, 2, 7, 1);"
         "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS " + endless + "; CREATE VIEW PROCESSES AS SELECT 'x' AS name, 0 AS pid;")
    equal("views in the place of tables", Imported("views.sqlite", "views.db").ask("SELECT count(*) FROM spans"), [(1,)])
    make("far.sqlite", "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT); CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
         "CREATE TABLE OSRT_API (start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER); INSERT INTO OSRT_API VALUES"
         "(-9000000000000000000, 9000000000000000000, 7, 1), (9000000000000000000, -9000000000000000000, 7, 1), (5, 6, 7, 1);")
    equal("durations out of range", Imported("far.sqlite", "far.db").ask("SELECT start_ns, dur_ns FROM spans"), [(5, 1)])
    make("other.sqlite", "CREATE TABLE customers (id INTEGER, name TEXT);")
    whole = open("own.sqlite", "rb").read()
    cases = {"other.sqlite": None, "cut.sqlite": whole[:len(whole) // 2], "zero.sqlite": whole[:100] + bytes(len(whole) - 100),
             "head.sqlite": whole[:16]}
    for at in range(200, len(whole), len(whole) // int(os.environ.get("IPUSCOPE_TEST_ROUNDS", 8))):
        cases["flip%d.sqlite" % at] = whole[:at] + bytes(b ^ 0xff for b in whole[at:at + 64]) + whole[at + 64:]
    for name, content in cases.items():
        if content is not None:
            open(name, "wb").write(content)
        done = run(name, "bad.db")
        if done.returncode not in (0, 1, 2) or (done.returncode and (done.stderr.count("\n") != 1 or os.path.exists("bad.db"))):
            wrong("%s: %d, %r" % (name, done.returncode, done.stderr))
    equal("another database", run("other.sqlite", "bad.db").returncode != 0, True)
    with gzip.open("own.sqlite.gz", "wb") as out:
        out.write(whole)
    equal("compressed", Imported("own.sqlite.gz", "gz.db").spans(), Imported("own.sqlite", "plain.db").spans())


if not SAMPLES:
    own_names()
    own_mtia()
    own_nsys()
    own_rpd()
    own_rocpd()
    steps_by_range()
    numbered_ranges()
    comparison()
    hostile()
for path in sorted(glob.glob(SAMPLES + "/kineto/*.json.gz")):
    kineto(path)
for path in sorted(glob.glob(SAMPLES + "/nsys/*.sqlite")):
    nsys(path)
for path in sorted(glob.glob(SAMPLES + "/rpd/*.rpd")):
    rpd(path)
sys.exit(1 if failures else 0)
