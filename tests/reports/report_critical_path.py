"""The view critical_path against a graph that is built and searched here: report_critical_path.sh."""
import bisect
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
from collections import defaultdict

REPORT, SAMPLES = sys.argv[1:3]
failures = 0


def equal(what, got, wanted):
    global failures
    if got != wanted:
        failures += 1
        print("FAILED: %s: %r instead of %r" % (what, got, wanted))


def imported(path):
    done = subprocess.run([REPORT, "import", path, "-o", "path.db", "--force"], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit("FAILED: %s: %s" % (path, done.stderr))
    return sqlite3.connect("path.db")


# ---- the graph --------------------------------------------------------------------------------

BLOCKS = re.compile(r"(cuda|cu|hip)(DeviceSynchronize|CtxSynchronize|StreamSynchronize|EventSynchronize|EventQuery)")
COPIES = re.compile(r"(cuda|cu|hip)Memcpy")


class Recording:
    def __init__(self, db):
        ask = lambda sql: db.execute(sql).fetchall()
        self.ranges = dict(ask("SELECT span_id, kind FROM ranges"))
        self.device = {row[0]: row[1:] for row in ask(
            "SELECT span_id, kind, launch_span_id FROM kernels UNION ALL SELECT span_id, 'memory', launch_span_id FROM copies")}
        self.threads = {row[0] for row in ask("SELECT DISTINCT s.track FROM call_rows c JOIN spans s USING (span_id)")}
        self.pids = dict(ask("SELECT track, pid FROM tracks"))
        self.spans = {row[0]: row[1:] for row in ask(
            "SELECT span_id, track, start_ns, start_ns + dur_ns, name FROM spans WHERE clock = 'host' AND dur_ns > 0")}
        self.streams = {self.stream(self.spans[s][0]) for s in self.device if s in self.spans}
        self.args = defaultdict(dict)
        for span, name, value in ask("SELECT span_id, name, value FROM span_args WHERE name IN ("
                                     "'wait_on_stream', 'wait_on_cuda_event_record_corr_id')"):
            self.args[span][name] = value
        self.correlations = defaultdict(dict)  # by the process
        for key, start, name, track in ask("SELECT c.launch_key & 0xffffffffffff, s.start_ns, s.name, s.track FROM call_rows c "
                                           "JOIN spans s USING (span_id) ORDER BY 1, 2 DESC"):
            if "EventRecord" in name:
                self.correlations[key][self.pids[track]] = start
        joined = ask("SELECT DISTINCT a.track, b.track FROM flows f JOIN spans a ON a.span_id = f.from_span_id "
                     "JOIN spans b ON b.span_id = f.to_span_id WHERE f.name = 'fwdbwd'")
        self.group = {t: t for t in self.threads}
        for a, b in joined:
            if a in self.group and b in self.group:
                old = self.group[b]
                self.group = {t: self.group[a] if g == old else g for t, g in self.group.items()}
        self.steps = ask("SELECT step, start_ns, start_ns + dur_ns FROM ranges WHERE kind = 'step' ORDER BY start_ns")
        self.steps = self.steps or [(None, -1 << 62, 1 << 62)]

    def stream(self, track):
        return re.sub(r" \((overlap \d+|sync)\).*", "", track)

    def edges(self, start, end):
        """Edges (node, node, weight) of a step; a node is (span, 0 or 1)."""
        edges = []
        begins = lambda span: self.spans[span][1]
        ends = lambda span: self.spans[span][2]
        time = lambda node: ends(node[0]) if node[1] else begins(node[0])
        device = []
        for span, (_, call) in self.device.items():
            if span in self.spans:
                when = begins(call) if call in self.spans else begins(span)
                if start <= when <= end:
                    device.append(span)
        streams = defaultdict(list)
        for span in device:
            streams[self.stream(self.spans[span][0])].append((ends(span), span))
        for at in streams.values():
            at.sort()

        def before(stream, ns):
            """The kernel of the stream that ended last."""
            at = bisect.bisect_right(streams[stream], (ns, 1 << 62))
            return streams[stream][at - 1][1] if at else None

        threads = defaultdict(list)
        for span, (track, begin, finish, name) in self.spans.items():
            if (track in self.threads and start <= begin <= end and span not in self.device
                    and self.ranges.get(span) not in ("step", "annotation", "device")):
                threads[track].append(span)
        waits = [s for s, (track, begin, _, _) in self.spans.items() if "(sync)" in track and start <= begin <= end]
        calls = {s for spans in threads.values() for s in spans}

        def waiting(record, pattern):
            """The call in which a wait ended."""
            pid, own = self.pids[self.spans[record][0]], {self.pids[s] for s in self.streams}
            inside = [c for c in calls if re.search(pattern, self.spans[c][3]) and begins(c) <= begins(record) and ends(record) <= ends(c)
                      and self.pids[self.spans[c][0]] in {pid} | ({self.pids[self.spans[c][0]]} - own)]
            return min(inside, key=lambda c: (ends(c), c)) if inside else None

        def launched(stream):
            return sorted((begins(self.device[s][1]), s) for _, s in streams[stream] if self.device[s][1] in calls)

        def recorded(record):
            """The kernel before the event that a wait waits for."""
            track = self.spans[record][0]
            calls_of = self.correlations.get(self.args[record].get("wait_on_cuda_event_record_corr_id"))
            device_name = track.split(": ")[-1].split(" stream ")[0]
            wanted = r"(^| )%s stream %s( |$)" % (re.escape(device_name), self.args[record].get("wait_on_stream"))
            found = [s for s in streams if re.search(wanted, s) and self.pids[s] == self.pids[track]]
            if not calls_of or not found:
                return None
            at, stream = calls_of.get(self.pids[track], min(calls_of.values())), found[0]
            earlier = [s for ns, s in launched(stream) if ns < at]
            return earlier[-1] if earlier else None

        of_stream, of_event, of_kernel = {}, {}, {}
        for record in waits:
            name, track = self.spans[record][3].lower(), self.spans[record][0]
            if name.startswith("stream w") or name.startswith("event"):
                call = waiting(record, "StreamWaitEvent" if name.startswith("stream w") else BLOCKS)
                kernel = recorded(record) if call is not None else None
                if kernel is None:
                    continue
                if name.startswith("event"):
                    of_event[call] = kernel
                    continue
                for ns, s in launched(self.stream(track)):
                    if ns >= begins(call) and self.spans[self.device[s][1]][0] == self.spans[call][0]:
                        of_kernel[s] = kernel
                        break
            elif name.startswith("stream"):
                call = waiting(record, BLOCKS)
                if call is not None and self.stream(track) in self.streams:
                    of_stream[call] = self.stream(track)

        tops = defaultdict(list)
        for track, spans in threads.items():
            spans.sort(key=lambda s: (begins(s), -ends(s), s))
            open_, last = [], None

            def leave():
                nonlocal last
                span = open_.pop()
                name = self.spans[span][3]
                blocks = BLOCKS.match(name) or COPIES.match(name)
                edges.append((last, (span, 1), 0 if blocks else ends(span) - time(last)))
                last = (span, 1)
                if not open_:
                    tops[self.group[track]].append((begins(span), ends(span), span, track))
                if not BLOCKS.match(name):
                    return
                if span in of_event:
                    if ends(of_event[span]) <= ends(span):
                        edges.append(((of_event[span], 1), (span, 1), 0))
                    return
                own = [s for s in streams if self.pids[s] == self.pids[track]] or list(streams)
                for stream in [of_stream[span]] if span in of_stream else own:
                    kernel = before(stream, ends(span))
                    if kernel is not None:
                        edges.append(((kernel, 1), (span, 1), 0))

            for span in spans:
                while open_ and ends(open_[-1]) <= begins(span):
                    leave()
                if open_:
                    edges.append((last, (span, 0), begins(span) - time(last)))
                open_.append(span)
                last = (span, 0)
            while open_:
                leave()
        for spans in tops.values():
            for track in {t[3] for t in spans}:
                done = sorted((t[1], t[2]) for t in spans if t[3] == track)
                for begin, _, span, _ in spans:
                    at = bisect.bisect_right(done, (begin, 1 << 62))
                    if at and done[at - 1][1] != span:
                        edges.append(((done[at - 1][1], 1), (span, 0), 0))
        for stream in list(streams):
            for _, span in streams[stream]:
                edges.append(((span, 0), (span, 1), ends(span) - begins(span)))
                call = self.device[span][1]
                call = call if call in calls and begins(call) <= begins(span) else None
                last, waited = before(stream, begins(span)), of_kernel.get(span)
                if waited is not None and ends(waited) <= begins(span):
                    edges.append(((waited, 1), (span, 0), 0))
                idle = ends(last) if last is not None else -1 << 62
                if call is not None and idle < begins(call) and (waited is None or ends(waited) < begins(call)):
                    edges.append(((call, 0), (span, 0), begins(span) - begins(call)))
                elif last is not None and begins(span) - idle < 1500000 and (waited is None or ends(waited) < idle):
                    edges.append(((last, 1), (span, 0), begins(span) - idle))
                if call is not None:
                    edges.append(((call, 0), (span, 0), 0))
        return sorted(edges, key=lambda e: (time(e[1]), time(e[0])))


def longest(edges):
    """Relax all edges until nothing changes."""
    length, changed = defaultdict(int), True
    while changed:
        changed = False
        for a, b, weight in edges:
            if length[a] + weight > length[b]:
                length[b], changed = length[a] + weight, True
    return max(length.values(), default=0)


def compare(what, db):
    recording = Recording(db)
    rows = db.execute("SELECT step, position, kind, span_id, start_ns, dur_ns FROM critical_path ORDER BY step, position").fetchall()
    paths = defaultdict(list)
    for row in rows:
        paths[row[0]].append(row[1:])
    for step, start, end in recording.steps:
        path = paths.pop(step, [])
        edges = recording.edges(start, end)
        if not any(a[0] in recording.device for a, _, _ in edges):
            equal("%s: step %s without kernels" % (what, step), path, [])
            continue
        equal("%s: length of step %s" % (what, step), sum(row[4] for row in path), longest(edges))
        equal("%s: positions" % what, [row[0] for row in path], list(range(len(path))))
        equal("%s: order" % what, [row[3] for row in path], sorted(row[3] for row in path))
        for before, after in zip(path, path[1:]):
            if before[3] + before[4] > after[3]:
                equal("%s: one after the other" % what, before, after)
        for _, kind, span, _, _ in path:
            if (kind in ("compute", "communication", "memory", "kernel_delay")) != (span in recording.device) and kind != "sync":
                equal("%s: span %d" % (what, span), kind, "another kind")
    equal(what + ": more steps", dict(paths), {})
    return rows


# ---- by hand ----------------------------------------------------------------------------------

def event(name, cat, tid, ts, dur, pid=100, **args):
    return {"ph": "X", "name": name, "cat": cat, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def kernel(name, stream, ts, dur, correlation):
    return event(name, "kernel", stream, ts, dur, pid=0, correlation=correlation, stream=stream, device=0)


def by_hand():
    json.dump({"traceEvents": [
        event("ProfilerStep#3", "user_annotation", 1, 0, 200),
        event("forward", "cpu_op", 1, 10, 40),
        event("cudaLaunchKernel", "cuda_runtime", 1, 20, 5, correlation=1),
        kernel("gemm", 7, 40, 60, 1),
        event("softmax", "cpu_op", 1, 60, 20),
        event("cudaLaunchKernel", "cuda_runtime", 1, 65, 5, correlation=2),
        kernel("ncclDevKernel_AllReduce", 7, 103, 47, 2),
        event("cudaDeviceSynchronize", "cuda_runtime", 1, 85, 67, correlation=3),
        event("update", "cpu_op", 1, 160, 30)]}, open("hand.json", "w"))
    db = imported("hand.json")
    compare("by hand", db)
    equal("by hand", db.execute("SELECT kind, name, start_ns / 1000, dur_ns / 1000 FROM critical_path ORDER BY position").fetchall(), [
        ("host", "forward", 10, 10), ("launch", "cudaLaunchKernel", 20, 20), ("compute", "gemm", 40, 60),
        ("kernel_delay", "gemm", 100, 3), ("communication", "ncclDevKernel_AllReduce", 103, 47),
        ("sync", "cudaDeviceSynchronize", 150, 0), ("dependency", "update", 152, 0), ("host", "update", 160, 30)])
    table = lambda *words: list(csv.DictReader(io.StringIO(subprocess.run(
        [REPORT, "path.db", "critical-path", *words, "--csv"], capture_output=True, text=True, check=True).stdout)))
    equal("by kind", {row["kind"]: (int(row["total_ns"]), round(float(row["share"]), 6)) for row in table("--by", "kind")}, {
        "host": (40000, 0.235294), "launch": (20000, 0.117647), "compute": (60000, 0.352941),
        "communication": (47000, 0.276471), "kernel_delay": (3000, 0.017647)})
    row = table("--by", "step")[0]
    equal("by step", [row[c] for c in ("step", "path_ns", "length_ns")], ["3", "170000", "180000"])
    equal("by name", table()[0]["name"], "gemm")
    equal("by span", len(table("--by", "span")), 8)
    sql = subprocess.run([REPORT, "path.db", "critical-path", "--sql"], capture_output=True, text=True, check=True).stdout
    equal("the query", len(db.execute(sql.strip().rstrip(";")).fetchall()), len(table()))


def without_calls():
    """Kernels whose call was not recorded are of the step in which they start; one behind them may be of the step before, by its call."""
    json.dump({"traceEvents": [
        event("ProfilerStep#1", "user_annotation", 1, 0, 100),
        event("cudaLaunchKernel", "cuda_runtime", 1, 20, 5, correlation=1),
        kernel("gemm", 7, 30, 40, 1),
        event("cudaLaunchKernel", "cuda_runtime", 1, 80, 5, correlation=2),
        event("ProfilerStep#2", "user_annotation", 1, 100, 200),
        kernel("unknown", 7, 110, 10, 0),
        kernel("late", 7, 121, 30, 2),
        event("cudaLaunchKernel", "cuda_runtime", 1, 160, 5, correlation=3),
        kernel("gemm", 7, 170, 60, 3)]}, open("calls.json", "w"))
    db = imported("calls.json")
    compare("without calls", db)
    equal("kernels of the steps' paths", db.execute(
        "SELECT p.step, k.name, p.dur_ns FROM critical_path p JOIN kernels k USING (span_id) "
        "WHERE p.kind = 'compute' ORDER BY p.step, p.position").fetchall(),
        [(1, "late", 30000), (2, "gemm", 60000)])


# ---- at random --------------------------------------------------------------------------------

def random_steps(seed, steps):
    """Threads that nest calls and launch on streams; device, stream, event synchronisations, waits between streams."""
    dice = random.Random(seed)
    events, correlation = [], 0
    free = {7: 0, 8: 0, 9: 0}  # when a stream is
    at = 0
    for step in range(steps):
        begun = at
        flow = dice.random() < 0.5
        records = []
        for tid in (1, 2):
            now = begun + dice.randrange(5)
            if tid == 2:
                events.append(event("autograd", "cpu_op", 2, now, 1 + dice.randrange(3)))
                now += 4
            for _ in range(dice.randrange(2, 7)):
                start, depth = now, dice.randrange(1, 4)
                outer = [now]
                for _ in range(depth):
                    now += dice.randrange(3)
                    outer.append(now)
                for _ in range(dice.randrange(4)):
                    correlation += 1
                    what, dur = dice.random(), 1 + dice.randrange(6)
                    stream = dice.choice(list(free))
                    if what < 0.55:
                        call = dice.choice(("cudaLaunchKernel", "cudaMemcpyAsync"))
                        events.append(event(call, "cuda_runtime", tid, now, dur, correlation=correlation))
                        ran = max(free[stream], now + dice.randrange(1, 12)) + dice.choice((0, 0, 1, 3, 1600))
                        took = 1 + dice.randrange(30)
                        events.append(kernel("kernel %d" % dice.randrange(5), stream, ran, took, correlation if dice.random() < 0.9 else 0))
                        free[stream] = ran + took
                    elif what < 0.65:
                        events.append(event("cudaEventRecord", "cuda_runtime", tid, now, dur, correlation=correlation))
                        records.append((correlation, stream))
                    elif what < 0.75 and records:
                        record, source = dice.choice(records)
                        events.append(event("cudaStreamWaitEvent", "cuda_runtime", tid, now, dur, correlation=correlation))
                        events.append(event("Stream Wait Event", "cuda_sync", stream, now, dur, pid=0, correlation=correlation, stream=stream,
                                            device=0, wait_on_stream=source, wait_on_cuda_event_record_corr_id=record))
                    elif what < 0.9:
                        kind = dice.choice(("Stream", "Context", "Event"))
                        call = {"Stream": "cudaStreamSynchronize", "Context": "cudaDeviceSynchronize", "Event": "cudaEventSynchronize"}[kind]
                        dur = max(dur, free[stream] - now) if dice.random() < 0.7 else dur
                        events.append(event(call, "cuda_runtime", tid, now, dur + 1, correlation=correlation))
                        more = {}
                        if kind == "Event" and records:
                            record, source = dice.choice(records)
                            more = dict(wait_on_stream=source, wait_on_cuda_event_record_corr_id=record)
                        events.append(event(kind + " Sync", "cuda_sync", stream if kind == "Stream" else -1, now, dur, pid=0, device=0,
                                            correlation=correlation, stream=stream if kind == "Stream" else -1, **more))
                        dur += 1
                    now += dur + dice.randrange(3)
                for inner in reversed(outer):
                    now += dice.randrange(3)
                    events.append(event("op %d" % dice.randrange(9), "cpu_op", tid, inner, now - inner + 1))
                    now += 1
                now += dice.randrange(4)
            at = max(at, now)
        if flow:
            events.append({"ph": "s", "cat": "fwdbwd", "name": "fwdbwd", "id": step + 1, "pid": 100, "tid": 1, "ts": begun + 5})
            events.append({"ph": "f", "bp": "e", "cat": "fwdbwd", "name": "fwdbwd", "id": step + 1, "pid": 100, "tid": 2, "ts": begun + 5})
        events.append(event("ProfilerStep#%d" % step, "user_annotation", 1, begun, at - begun + 1))
        at += 2
    dice.shuffle(events)
    json.dump({"traceEvents": events}, open("random.json", "w"))


def many_streams(count):
    """Whether a step whose kernels are on so many streams has a path."""
    launches = [event("cudaLaunchKernel", "cuda_runtime", 1, 10 * i, 2, correlation=i + 1) for i in range(count)]
    kernels = [kernel("gemm", i, 10 * i + 3, 4, i + 1) for i in range(count)]
    json.dump({"traceEvents": launches + kernels + [event("ProfilerStep#1", "user_annotation", 1, 0, 10 * count)]}, open("streams.json", "w"))
    db = imported("streams.json")
    told = db.execute("SELECT count(*) FROM meta WHERE key = 'critical_path' AND value LIKE '%2048 tracks'").fetchone()[0]
    return db.execute("SELECT count(*) > 0 FROM critical_path").fetchone()[0], told


NSYS = """
CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'cudaEventRecord_v3020'), (3, 'cudaStreamWaitEvent_v3020'),
	(4, 'cudaEventSynchronize_v3020'), (5, 'produce'), (6, 'consume'), (7, 'beside');
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
	globalPid INTEGER, correlationId INTEGER, demangledName INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
	globalPid INTEGER, correlationId INTEGER, syncType INTEGER, eventId INTEGER, eventSyncId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (deviceId INTEGER, contextId INTEGER, streamId INTEGER, globalPid INTEGER,
	correlationId INTEGER, eventId INTEGER, eventSyncId INTEGER);
"""


def nsys_waits(numbered):
    """Two processes on two devices, with the same numbers: stream 7 waits for what runs on stream 13, a call for stream 7."""
    if os.path.exists("waits.sqlite"):
        os.remove("waits.sqlite")
    db = sqlite3.connect("waits.sqlite")
    db.executescript(NSYS)
    for device, late in ((0, 0), (1, 40)):
        pid = (256 + 7 + device) << 24
        for start, end, correlation, name in ((0, 10, 1, 2), (10, 20, 2, 1), (20, 30, 3, 2), (30, 40, 4, 3), (40, 50, 5, 1), (50, 60, 6, 1),
                                              (60, 70, 7, 2), (70, 500 + late, 8, 4)):
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?)", (start + late, end + late, pid | 7, correlation, name))
        for start, end, stream, correlation, name in ((25, 300, 13, 2, 5), (310, 400 + late, 7, 5, 6), (55, 100, 20, 6, 7)):
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                       (start + late, end + late, device, device + 1, stream, pid, correlation, name))
        # The event is recorded three times. Waits have device 0, whatever their context's is.
        for stream, correlation, number in ((20, 1, 100), (13, 3, 101), (7, 7, 102)):
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES (0, ?, ?, ?, ?, 9, ?)",
                       (device + 1, stream, pid, correlation, number if numbered else None))
        for start, end, stream, correlation, kind, number in ((32, 38, 7, 4, 2, 101), (72, 495 + late, 7, 8, 1, 102)):
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (?, ?, 0, ?, ?, ?, ?, ?, 9, ?)",
                       (start + late, end + late, device + 1, stream, pid, correlation, kind, number if numbered else None))
    db.commit()
    db.close()
    got = imported("waits.sqlite")
    equal("what waits wait for", got.execute(
        "SELECT track, group_concat(value) FROM (SELECT s.track, s.span_id, a.value FROM span_args a JOIN spans s USING (span_id) "
        "WHERE a.name LIKE 'wait_on%' ORDER BY s.span_id, a.name DESC) GROUP BY span_id ORDER BY track, span_id").fetchall(), [
            ("GPU 0 stream 7 (sync)", "13,3"), ("GPU 0 stream 7 (sync)", "7,7"),
            ("GPU 1 stream 7 (sync)", "13,3"), ("GPU 1 stream 7 (sync)", "7,7")])
    compare("waits.sqlite", got)
    equal("the path through the waits", got.execute(
        "SELECT track, name, kind, dur_ns FROM critical_path ORDER BY position").fetchall()[-3:], [
            ("GPU 1 stream 13", "produce", "compute", 275), ("GPU 1 stream 7", "consume", "sync", 0),
            ("GPU 1 stream 7", "consume", "compute", 130)])


by_hand()
without_calls()
nsys_waits(True)
nsys_waits(False)
equal("few streams", many_streams(40), (1, 0))
equal("too many streams", many_streams(2050), (0, 1))
for seed in range(int(os.environ.get("IPUSCOPE_TEST_ROUNDS", 4))):
    random_steps(seed, 30)
    found = compare("random %d" % seed, imported("random.json"))
    kinds = {row[2] for row in found}
    equal("random %d: all kinds of edges" % seed, kinds >= {"host", "launch", "compute", "kernel_delay", "sync", "dependency"}, True)
for path in sorted(glob.glob(SAMPLES + "/kineto/*.json.gz") + glob.glob(SAMPLES + "/nsys/*.sqlite")) if SAMPLES else []:
    compare(path, imported(path))
for path in glob.glob(SAMPLES + "/kineto/hta_simple_add__*.json.gz") if SAMPLES else []:
    # tests/test_critical_path_analysis.py of HTA: the second of these annotations as the step.
    trace = json.load(gzip.open(path))
    named = [e for e in trace["traceEvents"] if e["name"] == "[param|pytorch.model.alex_net|0|0|0|measure|forward]"]
    sorted(named, key=lambda e: e["ts"])[1]["name"] = "ProfilerStep#1"
    json.dump(trace, open("hta.json", "w"))
    equal("HTA's edges and spans on the path", imported("hta.json").execute(
        "SELECT count(*), count(DISTINCT span_id) FROM critical_path").fetchall(), [(314, 159)])
sys.exit(1 if failures else 0)
