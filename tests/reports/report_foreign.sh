#!/usr/bin/env bash
# Traces as PyTorch's profiler, Perfetto and viztracer write them: what is counted at the end is what a count by other
# means finds, times and totals are to the nanosecond, and `diff` of two of them says what became slower, or is gone.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
cd "$work"
command -v python3 >/dev/null || {
	echo "skipped: python3 writes the traces, and is absent"
	exit 77
}

cat >make.py <<'PYTHON'
import json, random

BASE = 1720000000123449000  # ns since 1970


def us(ns):
    return "%d.%03d" % (ns // 1000, ns % 1000)


# Numbers are written here and not by json, which has no 17 digits.
def event(**fields):
    return "{%s}" % ", ".join(
        '"%s": %s' % (k, us(v) if k in ("ts", "dur") else json.dumps(v)) for k, v in fields.items())


class Trace:
    def __init__(self):
        self.events, self.spans, self.sums = [], [], {}

    def add(self, **fields):
        self.events.append(event(**fields))

    def x(self, name, cat, pid, tid, ts, dur, **args):
        self.add(ph="X", cat=cat, name=name, pid=pid, tid=tid, ts=ts, dur=dur, args=args)
        self.sum(cat, name, dur)

    def sum(self, cat, name, dur):
        count, ns = self.sums.get((cat, name), (0, 0))
        self.sums[cat, name] = count + 1, ns + dur

    def save(self, path, head, tail, between=",\n"):
        open(path, "w").write(head + between.join(self.events) + tail)
        open(path + ".sums", "w").write("".join(
            "%s|%s|%d|%d\n" % (*key, *value) for key, value in sorted(self.sums.items())))
        open(path + ".count", "w").write("%d\n" % len(self.events))


def torch(path, slow=1, missing=None, first=0, steps=12):
    t, ns, gpu, link = Trace(), BASE + 1125, 0, 1
    for pid, labels in ((4711, "CPU"), (0, "GPU 0")):
        t.add(ph="M", name="process_name", pid=pid, tid=0, ts=BASE, args={"name": "python3"})
        t.add(ph="M", name="process_labels", pid=pid, tid=0, ts=BASE, args={"labels": labels})
    for pid, tid, name in ((4711, 4711, "thread 4711 (python3)"), (4711, 4800, "thread 4800 (python3)"), (0, 7, "stream 7 ")):
        t.add(ph="M", name="thread_name", pid=pid, tid=tid, ts=BASE, args={"name": name})
    for step in range(first, first + steps):
        begin, ns = ns, ns + 2251
        for tid, ops in ((4711, ("conv2d", "batch_norm", "relu", "linear")), (4800, ("AddmmBackward0", "ConvolutionBackward0"))):
            for op in ops:
                if op == missing:
                    continue
                factor = slow if op == "linear" else 1
                # Names of templates part late.
                kernel = "void at::native::%s<%s>" % ("elementwise_kernel<4, " * 15, op)
                gpu = max(gpu, ns + 9751)
                t.x("aten::" + op, "cpu_op", 4711, tid, ns, 40501 * factor, **{"External id": link})
                t.x("cudaLaunchKernel", "cuda_runtime", 4711, tid, ns + 3001, 5503, correlation=link)
                t.x(kernel, "kernel", 0, 7, gpu, 55127 * factor, device=0, stream=7, correlation=link)
                t.add(ph="s", id=link, pid=4711, tid=tid, ts=ns + 3001, cat="ac2g", name="ac2g")
                t.add(ph="f", id=link, pid=0, tid=7, ts=gpu, cat="ac2g", name="ac2g", bp="e")
                gpu += 55127 * factor
                ns += 40501 * factor + 1003
                link += 1
        t.x("ProfilerStep#%d" % step, "user_annotation", 4711, 4711, begin, ns - begin)
        ns += 3007
    # It begins within a step and ends within another.
    t.x("crossing", "user_annotation", 4711, 4711, BASE + 200503, 400001)
    random.Random(5).shuffle(t.events)
    t.save(path, '{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "A100"}], "traceEvents": [\n',
           '\n], "traceName": "x", "displayTimeUnit": "ms", "baseTimeNanoseconds": 1720000000000000000}\n')


def perfetto(path):
    t, ns = Trace(), 5000
    for i in range(50):
        t.add(ph="B", cat="gfx", name="frame", pid=1, tid=2, ts=ns)
        t.add(ph="B", cat="gfx", name="draw", pid=1, tid=2, ts=ns + 17, args={"calls": i})
        t.add(ph="E", pid=1, tid=2, ts=ns + 501)
        t.add(ph="E", cat="gfx", name="frame", pid=1, tid=2, ts=ns + 900)
        t.sum("gfx", "frame", 900)
        t.sum("gfx", "draw", 484)
        # Asynchronous ones overlap.
        t.add(ph="b", cat="net", name="get", id="0x%x" % i, pid=1, tid=2, ts=ns + 3)
        t.add(ph="n", cat="net", name="header", id="0x%x" % i, pid=1, tid=2, ts=ns + 40)
        t.add(ph="e", cat="net", name="get", id="0x%x" % i, pid=1, tid=3, ts=ns + 2503)
        t.sum("net", "get", 2500)
        t.add(ph="C", name="memory", pid=1, tid=2, ts=ns, args={"heap": i, "stack": 2 * i, "gpu": 0.5 * i})
        t.add(ph="i", s="t", cat="gfx", name="vsync", pid=1, tid=2, ts=ns + 7)
        ns += 1000
    t.add(ph="E", pid=1, tid=9, ts=ns)  # nothing begins it
    t.add(ph="N", pid=1, tid=9, ts=ns, name="object", id=1)
    t.save(path, "[\n", ",")


def viztracer(path):
    t = Trace()
    t.add(ph="M", pid=3, tid=3, name="thread_name", args={"name": "MainThread"})

    def call(depth, ts):
        dur = 1000 * 2 ** depth
        if depth > 0:
            call(depth - 1, ts + 100)
        t.x("f%d (/tmp/f.py:%d)" % (depth, depth), "fee", 3, 3, ts, dur)  # when it returns

    for i in range(20):
        call(8, BASE + i * 300000)
    t.save(path, '{"traceEvents": [', '], "viztracer_metadata": {"version": "0.16"}, "file_info": {"files": {}}}')


def counters(path):
    t = Trace()
    for i in range(9):
        t.add(ph="C", name="memory", pid=1, tid=2, ts=BASE + 1000 * i, args={"heap": i})
    t.save(path, "[\n", "\n]")


torch("torch.json")
torch("slow.json", slow=2)
torch("gone.json", missing="relu")
torch("later.json", first=500)
perfetto("perfetto.json")
viztracer("viztracer.json")
counters("counters.json")
PYTHON
python3 make.py

# take NAME: import it; what it says is `NAME.said`.
take() {
	timeout 600 "$bin/ipu-report" import "$1.json" -o "$1.db" >"$1.said" || fail "import $1: $(cat "$1.said")"
	[ "$(sed -n 's/^ *\([0-9,]*\)  read, of which became$/\1/p' "$1.said" | tr -d ,)" = "$(cat "$1.json.count")" ] ||
		fail "$1: not $(cat "$1.json.count") events: $(cat "$1.said")"
	awk '/read, of which became/ { gsub(",", ""); events = $1; on = 1; next } /^notes|^time 0/ { on = 0 }
		on { gsub(",", "", $1); sum += $1 } END { exit events == sum ? 0 : 1 }' "$1.said" ||
		fail "$1: counts do not add up: $(cat "$1.said")"
	sqlite3 "$1.db" "SELECT category, name, count(*), sum(dur_ns) FROM spans GROUP BY 1, 2 ORDER BY 1, 2" >sums
	LC_ALL=C sort sums | cmp - <(LC_ALL=C sort "$1.json.sums") || fail "$1: totals"
}
ask() {
	[ "$(sqlite3 "$1.db" "$2")" = "$3" ] || fail "$1: $2: $(sqlite3 "$1.db" "$2"), not $3"
}
for name in torch slow gone later perfetto viztracer counters; do
	take $name
done

# ---- PyTorch's -------------------------------------------------------------------------------------
ask torch "SELECT count(*), sum(a.name = 'cudaLaunchKernel' AND b.category = 'kernel'), sum(b.start_ns > a.start_ns)
	FROM flows JOIN spans a ON a.span_id = from_span_id JOIN spans b ON b.span_id = to_span_id" "72|72|72"
ask torch "SELECT count(*) FROM tracks" 6 # one for what crosses, one of the process, one of the device
ask torch "SELECT count(*) FROM spans WHERE track LIKE '%overlap%'" 1
ask torch "SELECT count(*), count(DISTINCT step) FROM spans WHERE name = 'aten::relu'" "12|12"
ask torch "SELECT DISTINCT p.name FROM spans s JOIN spans p ON p.span_id = s.parent_id WHERE s.name = 'cudaLaunchKernel'
	AND p.track LIKE '%4800%' ORDER BY 1" "aten::AddmmBackward0
aten::ConvolutionBackward0"
grep -q '^ *1  spans that overlap others of their thread' torch.said || fail "said: $(cat torch.said)"

# ---- Perfetto's ------------------------------------------------------------------------------------
ask perfetto "SELECT name, count(*), sum(value) FROM counters GROUP BY 1 ORDER BY 1" "memory.gpu|50|612.5
memory.heap|50|1225.0
memory.stack|50|2450.0"
ask perfetto "SELECT name, count(*) FROM instants GROUP BY 1 ORDER BY 1" "header|50
vsync|50"
grep -q '^ *1  nothing: an end without a begin' perfetto.said && grep -q '^ *1  nothing: of a phase.*N 1' perfetto.said ||
	fail "said: $(cat perfetto.said)"
ask perfetto "SELECT count(*), max(depth) FROM spans WHERE name = 'draw' AND dur_ns = 484" "50|1"

# ---- viztracer's -------------------------------------------------------------------------------------
ask viztracer "SELECT depth, count(*), min(dur_ns), max(dur_ns) FROM spans WHERE depth IN (0, 8) GROUP BY 1" \
	"0|20|256000|256000
8|20|1000|1000"

# ---- what is said of all of them -------------------------------------------------------------------
# Every report and screen: nothing that is true of runs of ipu-train alone, no advice in its flags.
ours='mpirun|ended before its first|was finished|had no pipeline|no simulated device|no execution|`--|autoReport|outfeed\.|compile\.'
for name in torch perfetto counters; do
	"$bin/ipu-report" $name.db list --csv | grep -Ev '^(report|repair|meta),|,verb,' | cut -d, -f1 >reports
	[ "$(wc -l <reports)" -gt 20 ] || fail "ipu-report list: $(cat reports)"
	for report in $(cat reports); do
		"$bin/ipu-report" $name.db $report >out 2>&1 || fail "$name: ipu-report $report: $(cat out)"
		! grep -E "$ours" out || fail "$name: ipu-report $report says what is not so"
	done
	for view in summary insights memory liveness programs operations timeline tensors metrics health whatif communication; do
		"$bin/ipu-view" $name.db --view $view --text >out 2>&1 || fail "$name: ipu-view --view $view: $(cat out)"
		! grep -E "$ours" out || fail "$name: ipu-view --view $view says what is not so"
	done
	"$bin/ipu-report" $name.db export html --force -o page.html >out && ! grep -E "$ours" page.html || fail "$name: the page says what is not so"
	"$bin/ipu-report" $name.db bubbles | grep '^No bubbles: the trace that was imported has none' >/dev/null || fail "$name: bubbles"
	"$bin/ipu-view" $name.db --view memory --text | grep '^ *the trace that was imported has none' >/dev/null || fail "$name: memory"
	# The trace's time, and not that of its import; no cost of recording, which the import had.
	wanted=$(python3 -c '
import sqlite3
first, last = sqlite3.connect("'$name'.db").execute("""SELECT min(start), max(stop) FROM (
	SELECT start_ns AS start, start_ns + dur_ns AS stop FROM spans UNION ALL SELECT time_ns, time_ns FROM counters
	UNION ALL SELECT time_ns, time_ns FROM instants)""").fetchone()
print(last - first)')
	got=$("$bin/ipu-report" $name.db summary --csv | tr -d '\r' | sed -n 's/^run,duration_ns,,,//p')
	[ "$got" = "$wanted" ] || fail "$name: duration $got instead of $wanted"
	got=$("$bin/ipu-report" $name.db summary --csv | tr -d '\r' | sed -n 's/^recording,events,,,//p')
	[ "$got" = "$(cat $name.json.count)" ] || fail "$name: $got events instead of $(cat $name.json.count)"
	! "$bin/ipu-report" $name.db | grep 'own cost' || fail "$name: the import's cost is shown"
	"$bin/ipu-report" $name.db insights --json >out && ! grep -q lost_events out || fail "$name: nothing was lost: $(cat out)"
done

# ---- what became slower, or is gone ----------------------------------------------------------------
# row SOURCE TARGET KEY NAME: source, target and their difference as a fraction, of a row of the section spans.
row() {
	"$bin/ipu-report" diff "$1.db" "$2.db" --sections spans --json --all >diff.json || fail "diff $1 $2: exit code $?"
	python3 -c '
import json, sys
rows = [r for r in json.load(open("diff.json"))["rows"] if r["key"].endswith(sys.argv[1]) and r["name"] == sys.argv[2]]
print(len(rows), *("%s|%s|%s" % (r["source"], r["target"], r["diff_fraction"]) for r in rows))' "$3" "$4"
}
wanted() {
	[ "$5" = "$(row "$1" "$2" "$3" "$4")" ] || fail "diff $1 $2: $3, $4: $(row "$1" "$2" "$3" "$4"), not $5"
}
wanted torch slow "aten::linear" total_ns "1 486012|972024|0.5"
wanted torch slow "<linear>" total_ns "1 661524|1323048|0.5"
wanted torch slow "aten::relu" total_ns "1 486012|486012|0"
wanted torch gone "aten::relu" count "1 12|None|None"
wanted torch gone "cudaLaunchKernel" count "1 72|60|-0.16666666666666666"
# Steps are called by their number, which says nothing of them.
wanted torch later "ProfilerStep#*" count "1 12|12|0"
"$bin/ipu-report" diff torch.db later.db --sections spans >out || fail "later: exit code $?"
grep -q '^No other difference' out || fail "steps of other numbers: $(cat out)"
! grep 'tensors or metrics' out || fail "what was not looked at is said not to be there: $(cat out)"
"$bin/ipu-report" diff torch.db slow.db >out || fail "slow: exit code $?"
grep -q 'cpu_op aten::linear  *486 us  *972 us' out || fail "slow: $(cat out)"
! grep -q 'relu' out || fail "what did not change is shown: $(cat out)"
code=0
"$bin/ipu-report" diff torch.db slow.db --gate 5% >out 2>err || code=$?
[ $code -eq 1 ] && grep -q 'trace duration_ns by' err || fail "gate: exit code $code, $(cat err)"
"$bin/ipu-report" diff torch.db torch.db --gate 0% >out || fail "a trace and itself"
echo "foreign: all as wanted"
