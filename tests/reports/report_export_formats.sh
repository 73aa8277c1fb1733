#!/usr/bin/env bash
# `ipu-report REPORT export speedscope|folded|torch-csv`: what their readers get is what SQL says.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
make=$PWD/trace_make

cd "$work"
python=
for candidate in python3 /usr/bin/python3; do
	[ -n "$python" ] || ! "$candidate" -c 'import json' 2>/dev/null || python=$candidate
done
[ -n "$python" ] || { echo "skipped: no python3"; exit 77; }

POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' "$bin/ipu-train" "$run" --fit.epochs 1 --fit.steps_per_epoch 40 \
	--compile.steps_per_execution 20 >out 2>err || fail "training: $(cat out err)"
mv tf_report__* run
for kind in awkward open empty; do
	"$make" $kind.db $kind
done
cp awkward.db crossed.db
sqlite3 crossed.db "UPDATE span_rows SET dur_ns = 1500 WHERE track_id = 3 AND depth = 1"
# Times whose sum is no number.
cp run/profile.db wild.db
sqlite3 wild.db "UPDATE span_rows SET dur_ns = 9223372036854775807"
"$bin/ipu-report" export wild.db folded -o wild.folded >said || fail "wild.db: exit code $?"

# ---- speedscope, folded --------------------------------------------------------------------------
cat >check.py <<'PYTHON'
import collections, json, re, sqlite3, sys

path, name = sys.argv[1:3]
db = sqlite3.connect(path)
db.text_factory = lambda b: re.sub("\ufffd+", "?", b.decode("utf-8", "replace"))
file = json.loads(re.sub("\ufffd+", "?", open(name + ".speedscope", encoding="utf-8").read()))
frames = [f["name"] for f in file["shared"]["frames"]]
assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"

# Every span, its time and its own time; open ones end with the recording.
spans, own = collections.Counter(), collections.Counter()
for profile in file["profiles"]:
    assert profile["type"] == "evented" and profile["unit"] == "nanoseconds"
    track = re.sub(r" \(simulated\)$", "", profile["name"])
    track = re.sub(r" \(2\)$", "", track)
    stack, last = [], profile["startValue"]
    for e in profile["events"]:
        assert e["at"] >= last
        last = e["at"]
        if e["type"] == "O":
            stack.append([e["frame"], e["at"], 0])
            continue
        frame, start, inside = stack.pop()
        assert e["type"] == "C" and frame == e["frame"]
        dur = e["at"] - start
        if stack:
            stack[-1][2] += dur
        spans[track, frames[frame], start, dur] += 1
        names = [track] + [frames[f[0]] for f in stack] + [frames[frame]]
        line = ";".join(re.sub("[\x00-\x1f\x7f]", " ", n.replace(";", ":")) for n in names)
        own[line] += dur - inside
    assert not stack and last <= profile["endValue"]
closed = [r for r in db.execute("SELECT track, name, start_ns, dur_ns FROM spans WHERE dur_ns IS NOT NULL")]
assert collections.Counter(closed) - spans == collections.Counter(), collections.Counter(closed) - spans
assert sum(spans.values()) == db.execute("SELECT count(*) FROM spans").fetchone()[0]

folded = collections.Counter()
for line in open(name + ".folded", encoding="utf-8", errors="replace", newline="\n"):
    stack, ns = re.sub("\ufffd+", "?", line).rstrip("\n").rsplit(" ", 1)
    folded[stack] += int(ns)
assert folded == +own, (folded, own)
PYTHON
for name in run awkward.db open.db empty.db crossed.db; do
	db=$name
	[ ! -d $name ] || db=$name/profile.db
	for format in speedscope folded; do
		"$bin/ipu-report" $name export $format -o $name.$format >>said || fail "$name $format: exit code $?"
	done
	"$python" check.py $db $name || fail "$name: not what SQL says"
done
"$bin/ipu-report" run export folded >said
cmp stacks.folded run.folded || fail "two exports differ"

# ---- torch-csv -----------------------------------------------------------------------------------
"$bin/ipu-report" run export torch-csv >said
grep -q 'weight update 0, device clock$' said || fail "said: $(cat said)"
for clock in host device; do
	"$bin/ipu-report" run export torch-csv --clock $clock --weight-update 3 -o $clock.csv >said
	sqlite3 run/profile.db "SELECT group_concat(cell) FROM (SELECT ipu, stage || phase || microbatch AS cell FROM stage_timings
		WHERE clock = '$clock' AND weight_update = 3 AND phase IN ('F', 'B') ORDER BY ipu, start_ns) GROUP BY ipu ORDER BY ipu" >wanted
	[ -s wanted ] && tr -d '\r' <$clock.csv | cmp - wanted || fail "$clock: $(cat $clock.csv) instead of $(cat wanted)"
done
code=0
"$bin/ipu-report" run export torch-csv --weight-update 999 -o x >out 2>err || code=$?
[ $code -eq 2 ] && grep -q 'no stage timings of weight update 999' err || fail "said: $(cat err)"
code=0
"$bin/ipu-report" empty.db export torch-csv -o x >out 2>err || code=$?
[ $code -eq 2 ] && grep -q 'has no stage timings' err || fail "said: $(cat err)"
if "$python" -c 'import torch.distributed.pipelining' 2>/dev/null; then
	"$python" - <<'PYTHON'
import csv
from torch.distributed.pipelining.schedules import _Action, _validate_schedule

rows = [[_Action.from_str(cell) for cell in row] for row in csv.reader(open("schedule.csv", newline=""))]
_validate_schedule(dict(enumerate(rows)), len(rows), len(rows), max(a.microbatch_index for r in rows for a in r) + 1)
PYTHON
else
	echo "without torch: the schedule was not read by it"
fi
