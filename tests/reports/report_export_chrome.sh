#!/usr/bin/env bash
# `ipu-report REPORT export chrome`: every row of the views is an event, whole numbers of ns, properly nested; what is
# awkward in JSON; windows, clocks and executions; refusals; a full disk and an interrupt leave nothing.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
make=$PWD/trace_make

cd "$work"
python=
for candidate in python3 /usr/bin/python3; do
	[ -n "$python" ] || ! "$candidate" -c 'import json' 2>/dev/null || python=$candidate
done
[ -n "$python" ] || { echo "skipped: no python3"; exit 77; }

# A command line of ipu-report that is refused: its exit code, a part of what it says, the arguments.
refused() {
	local wanted=$1 part=$2 code=0
	shift 2
	timeout 600 "$bin/ipu-report" "$@" >out 2>err || code=$?
	[ $code -eq "$wanted" ] || fail "$*: exit code $code, not $wanted: $(cat out err)"
	[ "$(wc -l <err)" -eq 1 ] || fail "$*: not one line: $(cat err)"
	grep -qF -- "$part" err || fail "$*: does not say \"$part\": $(cat err)"
}

# ---- a pipelined run: the file is what SQL says ----------------------------------------------------
POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' "$bin/ipu-train" "$run" --fit.epochs 2 --fit.steps_per_epoch 40 \
	--compile.steps_per_execution 20 >out 2>err || fail "training: $(cat out err)"
mv tf_report__* run
for kind in awkward open empty killed; do
	"$make" $kind.db $kind
done
# Spans that do not nest, as other writers may have them.
cp awkward.db crossed.db
sqlite3 crossed.db "UPDATE span_rows SET dur_ns = 1500 WHERE track_id = 3 AND depth = 1"
# Rows that name what is not there, and times that no clock has.
cp awkward.db wild.db
sqlite3 wild.db "UPDATE span_rows SET site_id = -5, context_id = 9223372036854775807 WHERE track_id = 1;
	UPDATE span_rows SET start_ns = 9223372036854775807, dur_ns = 9223372036854775807 WHERE track_id = 3 AND depth = 0;
	UPDATE zones SET last_row = 9223372036854775807 WHERE kind = 0 AND track_id = 2;
	UPDATE counter_rows SET time_ns = -9223372036854775807; INSERT INTO flow_rows VALUES (98, 4, 4, 1), (99, 777, 1, 1)"

cat >check.py <<'PYTHON'
import collections, decimal, json, re, sqlite3, sys

path, file = sys.argv[1:3]
trace = json.loads(re.sub("\ufffd+", "?", open(file, encoding="utf-8").read()), parse_float=decimal.Decimal)
db = sqlite3.connect(path)
# How many U+FFFD stand for bytes that are no UTF-8 differs.
db.text_factory = lambda b: re.sub("\ufffd+", "?", b.decode("utf-8", "replace"))
KEYS = "mode epoch execution weight_update step microbatch replica ipu stage phase".split()


def ns(value):
    whole = value * 1000
    assert whole == int(whole), value
    return int(whole)


def rows(sql):
    return db.execute(sql).fetchall()


threads, processes = {}, {}
for e in trace["traceEvents"]:
    if e["ph"] == "M" and e["name"] == "thread_name":
        assert (e["pid"], e["tid"]) not in threads
        threads[e["pid"], e["tid"]] = e["args"]
    if e["ph"] == "M" and e["name"] == "process_name":
        processes[e["pid"]] = e["args"]["name"]
by = collections.defaultdict(list)
around = collections.defaultdict(list)
for e in trace["traceEvents"]:
    if e["ph"] == "M":
        continue
    assert (e["pid"], e["tid"]) in threads and e["pid"] in processes
    if e["ph"] == "B":
        around[e["pid"], e["tid"]].append(e)
    elif e["ph"] == "E":
        begin = around[e["pid"], e["tid"]].pop()
        assert begin["name"] == e["name"] and begin["cat"] == e["cat"]
        begin["dur"] = e["ts"] - begin["ts"]
        # A step of no time says at both ends what it is: steps lie end to end.
        if e["cat"] == "device_step" and begin["dur"] == 0:
            assert e["args"] == begin["args"]
        else:
            assert begin["dur"] > 0 and "args" not in e
        continue
    assert e["ph"] != "X" or e["dur"] == 0 and e["cat"] != "device_step"
    phase = "X" if e["ph"] == "B" else e["ph"]
    by["step" if e["cat"] == "device_step" else phase].append(e)
assert not any(around.values())

# Spans: the same, with all that they say.
wanted = collections.Counter()
for row in rows("SELECT span_id, track, category, name, start_ns, dur_ns, operation, %s FROM spans" % ", ".join(KEYS)):
    wanted[row[1:5] + (row[5], row[6]) + row[7:]] += 1
found = collections.Counter()
for e in by["X"]:
    lane, args = threads[e["pid"], e["tid"]], e["args"]
    dur = None if "open" in args else ns(e["dur"])
    keys = [args.get(k) for k in KEYS]
    keys[KEYS.index("ipu")] = args.get("ipu", lane.get("ipu"))
    found[(lane["track"], e["cat"], e["name"], ns(e["ts"]), dur, args.get("operation")) + tuple(keys)] += 1
assert found == wanted, (found - wanted, wanted - found)

# Their own arguments: those that are called like a key are called otherwise.
number = {"nan": None, "inf": float("inf"), "-inf": float("-inf")}
own = collections.Counter()
for e in by["X"]:
    for k, v in e["args"].items():
        if k in KEYS + ["operation", "open"] or k.endswith("_nonfinite"):
            continue
        if v is None:
            v = number[e["args"][k + "_nonfinite"]]
        own[k, str(float(v)) if isinstance(v, decimal.Decimal) else str(v)] += 1
assert own == collections.Counter(
    ("arg." + k if k in KEYS else k, str(v)) for k, v in rows("SELECT name, value FROM span_args")), own

# Device steps, flat, on lanes of their own.
columns = "ipu, type, start_ns, dur_ns, operation, name, program_id, start_cycle, cycles, step, microbatch"
wanted = collections.Counter(rows("SELECT %s FROM device_steps" % columns))
found = collections.Counter()
for e in by["step"]:
    a = e["args"]
    found[(a.get("ipu"), e["name"], ns(e["ts"]), ns(e["dur"]), a.get("operation"), a.get("program"), a.get("program_id"),
           a.get("start_cycle"), a.get("cycles"), a.get("step"), a.get("microbatch"))] += 1
    assert threads[e["pid"], e["tid"]]["name"] == "IPU %d steps" % a["ipu"]
assert found == wanted

# Strict nesting on each lane, in order of start.
lanes = collections.defaultdict(list)
for e in by["X"] + by["step"]:
    lanes[e["pid"], e["tid"]].append((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]), e["name"], e["args"]))
for lane in lanes.values():
    stack, last = [], None
    for start, end, name, args in lane:
        assert last is None or start >= last
        last = start
        while stack and stack[-1] <= start:
            stack.pop()
        assert not stack or end <= stack[-1]
        stack.append(end)

# Both ends of a flow are in their spans: the deepest that is there just then.
def deepest(e):
    at = ns(e["ts"])
    inside = [s for s in lanes[e["pid"], e["tid"]] if s[0] <= at and (at < s[1] or s[0] == s[1] == at)]
    return inside[-1]


flows = {}
for e in by["s"]:
    flows[e["id"]] = [e["name"], deepest(e)[:3]]
for e in by["f"]:
    assert e["bp"] == "e"
    flows[e["id"]].append(deepest(e)[:3])
wanted = collections.Counter(
    (r[0], r[1:4], r[4:7]) for r in rows(
        "SELECT f.name, a.start_ns, a.start_ns + a.dur_ns, a.name, b.start_ns, b.start_ns + b.dur_ns, b.name FROM flows f "
        "JOIN spans a ON a.span_id = from_span_id JOIN spans b ON b.span_id = to_span_id"))
assert collections.Counter(tuple(f) for f in flows.values()) == wanted

wanted = collections.Counter(rows("SELECT track, category, name, time_ns, mode FROM instants"))
assert collections.Counter((threads[e["pid"], e["tid"]]["track"], e["cat"], e["name"], ns(e["ts"]), e["args"].get("mode"))
                           for e in by["i"]) == wanted
wanted = collections.Counter(rows("SELECT track, name, time_ns, value FROM counters"))
found = collections.Counter()
for e in by["C"]:
    a = e["args"]
    assert (a["value"] is None) == ("value_nonfinite" in a)
    value = float(a["value"]) if a["value"] is not None else number[a["value_nonfinite"]]
    found[threads[e["pid"], e["tid"]]["track"], e["name"], ns(e["ts"]), value] += 1
assert found == wanted
other = trace["otherData"]
assert other["spans"] == len(by["X"]) and other["device_steps"] == len(by["step"])
assert other["flows"] == len(by["f"]) and other["instants"] == len(by["i"]) and other["counters"] == len(by["C"])
print(len(by["X"]), len(by["step"]), len(by["f"]), len(by["i"]), len(by["C"]))
PYTHON

for name in run awkward.db open.db empty.db killed.db crossed.db; do
	db=$name
	[ ! -d $name ] || db=$name/profile.db
	"$bin/ipu-report" $name export chrome -o $name.json >said || fail "$name: exit code $?"
	"$python" check.py $db $name.json >counts || fail "$name: not what SQL says"
	cp counts $name.counts
done
"$bin/ipu-report" wild.db export chrome -o wild.json >said || fail "wild.db: exit code $?"
"$python" -m json.tool wild.json >pretty || fail "wild.db: no JSON"
grep -q '^1 flow left out: a span of its ends is not there$' said || fail "said: $(cat said)"
read -r spans steps flows _ <run.counts
[ "$spans" -gt 500 ] && [ "$steps" -gt 500 ] && [ "$flows" -gt 50 ] || fail "the run has little: $(cat run.counts)"
"$bin/ipu-report" run export chrome >said
"$python" -c 'import sys; print("trace.json: {:,} spans, ".format(int(sys.argv[1])), end="")' "$spans" >wanted
grep -qF "$(cat wanted)" said || fail "said: $(cat said)"
cmp trace.json run.json || fail "two exports differ"
"$bin/ipu-report" crossed.db export chrome -o - 2>said | cmp - crossed.db.json || fail "-o - differs"
grep -q '^1 span did not nest: it is on a further lane of its track$' said || fail "said: $(cat said)"
grep -q '"name":"device (2)","track":"device"' crossed.db.json || fail "no further lane"
"$bin/ipu-report" open.db export chrome -o - 2>said | cmp - open.db.json || fail "-o - differs"
grep -q '^2 spans were open: they end with the recording$' said || fail "said: $(cat said)"
"$bin/ipu-report" run export chrome -o run.json.gz >said
gzip -dc run.json.gz | cmp - run.json || fail "the compressed one differs"

# ---- a run that is being recorded ----------------------------------------------------------------
"$make" live.db large 3000000 &
maker=$!
until [ "$(sqlite3 -readonly live.db 'SELECT max(span_id) FROM span_rows' 2>/dev/null || echo 0)" -gt 1000 ] 2>/dev/null; do sleep 0.02; done
"$bin/ipu-report" live.db export chrome -o live.json >said || fail "live: exit code $?"
grep -q '^The run is still being recorded: there will be more.$' said || fail "live: said $(cat said)"
wait $maker
"$python" - <<'PYTHON'
import collections, json

trace = json.load(open("live.json"))
around = collections.defaultdict(list)
for e in trace["traceEvents"]:
    stack = around[e["pid"], e["tid"]]
    if e["ph"] == "B":
        assert not stack or stack[-1][1] <= e["ts"]
        stack.append((e["name"], e["ts"]))
    elif e["ph"] == "E":
        name, start = stack.pop()
        assert name == e["name"] and start <= e["ts"]
assert not any(around.values())
PYTHON

# ---- parts ---------------------------------------------------------------------------------------
part() {
	"$bin/ipu-report" run export chrome -o part.json --force "$@" >said
	"$python" -c "
import json
t = json.load(open('part.json'))
o = t['otherData']
print(o['spans'], o['device_steps'], sorted({e['pid'] for e in t['traceEvents']}))
"
}
sql() {
	sqlite3 run/profile.db "$1"
}
[ "$(part --clock host)" = "$(sql "SELECT count(*) FROM spans WHERE clock = 'host'") 0 [1]" ] || fail "--clock host"
[ "$(part --clock device)" = "$(sql "SELECT count(*) FROM spans WHERE clock = 'device'") $steps [2]" ] || fail "--clock device"
[ "$(part --execution 1)" = "$(sql "SELECT count(*) FROM spans WHERE execution = 1") $(sql "SELECT count(*) FROM device_steps WHERE execution = 1") [1, 2]" ] ||
	fail "--execution 1: $(cat said)"
[ "$(part --from 20000 --to 60000 --clock device)" = "$(sql "SELECT count(*) FROM spans WHERE clock = 'device' AND start_ns < 60000 AND start_ns + dur_ns >= 20000") $(sql "SELECT count(*) FROM device_steps WHERE start_ns < 60000 AND start_ns + dur_ns >= 20000") [2]" ] ||
	fail "--from, --to: $(cat said)"

# ---- refusals ------------------------------------------------------------------------------------
refused 2 'trace.json: is there already (--force replaces it)' run export chrome
refused 2 '--keys: is of no use to export chrome (it belongs to npz)' run export chrome --keys x -o x
refused 2 '--clock: is of no use to export npz (it belongs to chrome' run export npz --clock host -o x
refused 2 'needs a file (-o FILE)' run export npz -o -
refused 2 '--from 20: is not before --to 10' run export chrome --from 20 --to 10 -o x
refused 2 'is not a number from 0' run export chrome --from 1ms -o x
refused 2 '--execution 99: run has none of this number' run export chrome --execution 99 -o x
refused 2 '(-o - writes to the standard output)' run export chrome -o /dev/null --force
[ ! -e x ] || fail "a refusal leaves a file"

# ---- a full disk, an interrupt -------------------------------------------------------------------
mkdir full
code=0
(
	ulimit -f 100 # blocks of 1,024 bytes
	trap '' XFSZ
	"$bin/ipu-report" run export chrome -o full/out.json >out 2>err
) || code=$?
[ $code -eq 1 ] || fail "full disk: exit code $code: $(cat out err)"
grep -q 'full/out.json: ' err || fail "full disk: said $(cat err)"
[ -z "$(ls -A full)" ] || fail "a full disk leaves $(ls -A full)"

"$bin/ipu-report" live.db export chrome -o full/out.json >out 2>err &
pid=$!
# Not before it writes: then it catches the signal.
until [ "$(stat -c %s full/* 2>/dev/null || echo 0)" -gt 1000000 ]; do sleep 0.01; done
kill -INT $pid
code=0
wait $pid || code=$?
[ $code -eq 1 ] || fail "interrupt: exit code $code: $(cat out err)"
grep -q 'interrupted' err || fail "interrupt: said $(cat err)"
[ -z "$(ls -A full)" ] || fail "an interrupt leaves $(ls -A full)"
