#!/usr/bin/env bash
# graph.json, execution.json and debug.cbor: each option gates its file, the files agree with SQL number by number and
# with their schemas, on one IPU, a pipeline, replicas and out of memory; killed and interrupted runs; a file in the way.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

schemas=$IPUSCOPE_SOURCE_DIR/docs/schemas
python=
for candidate in python3 /usr/bin/python3; do
	if command -v "$candidate" >/dev/null && "$candidate" -c 'import jsonschema' 2>/dev/null; then
		python=$candidate
		break
	fi
done
[ -n "$python" ] || echo "no python3-jsonschema: not validated against the schemas"
[ -n "$python" ] || python=$(command -v python3) || {
	echo "skipped: no python3"
	exit 77
}

# In a folder of its own: options, what the report has beside profile.db, then arguments of ipu-train.
count=0
recorded() {
	local options=$1 wanted=$2
	shift 2
	count=$((count + 1))
	mkdir "$work/$count" && cd "$work/$count"
	POPLAR_ENGINE_OPTIONS=$options train 16 --quiet --data.limit 2048 --evaluate null "$@" >out 2>err || fail "training $*: $(cat err)"
	report=$(ls -d tf_report__*)
	has "$wanted"
}
has() {
	[ "$(cd "$report" && echo *)" = "$1" ] || fail "the report has $(ls "$report"), not $1"
}
# Of a folder: what is compared, then the replica.
swept=(graph execution debug) agreed=
agrees() {
	local folder=$1 wanted=$2 got
	shift 2
	# All of the schemas once, then one after the other: a schema takes longer than all comparisons.
	[ -z "$agreed" ] || sweep graph execution debug
	agreed=yes
	got=$("$python" "$IPUSCOPE_SOURCE_DIR/tests/reports/report_popvision.py" "${swept[*]}" "$report/profile.db" "$folder" "$schemas" "$@") || fail "$report"
	[ "${got% *}" = "$wanted" ] || fail "compared: $got, not $wanted"
	echo "compared: $got"
}
all='app.json debug.cbor execution.json framework.json graph.json profile.db'
files='graph execution debug'

# ---- every key has its line in the documentation --------------------------------------------------
"$python" - "$schemas" "$IPUSCOPE_SOURCE_DIR/docs/json.md" <<'PYTHON' || fail "docs/json.md"
import json
import pathlib
import re
import sys

text = re.sub("```.*?```", "", pathlib.Path(sys.argv[2]).read_text(), flags=re.DOTALL)
told = {word for code in re.findall("`([^`]+)`", text) for word in re.split(r"[.\[\]]+", code)}


def keys(node):
    if isinstance(node, dict):
        for key in node.get("properties", {}):
            yield key
        for value in node.values():
            yield from keys(value)
    elif isinstance(node, list):
        for value in node:
            yield from keys(value)


for schema in sorted(pathlib.Path(sys.argv[1]).glob("*.schema.json")):
    missing = sorted({key for key in keys(json.loads(schema.read_text())) if not key.endswith("_nonfinite")} - told - {"runs"})
    if missing:
        sys.exit(f"{schema.name}: not told of: {', '.join(missing)}")
PYTHON

# ---- agreement -----------------------------------------------------------------------------------
recorded '{"autoReport.all":"true"}' "$all"
agrees "$report" "$files"
# The schemas bite: no further key, no other type, and of the outer objects no key less.
"$python" - "$report" "$schemas" <<'PYTHON' || fail "schemas"
import json
import sys

try:
    import jsonschema
except ImportError:
    sys.exit(0)


def objects(node, depth=0):
    if isinstance(node, dict):
        yield depth, node
    inner = node.values() if isinstance(node, dict) else node[:1] if isinstance(node, list) else ()
    for value in inner:
        yield from objects(value, depth + 1)


def short(node):
    """Two of a list's items are judged as all of them are."""
    if isinstance(node, dict):
        return {key: short(value) for key, value in node.items()}
    return [short(value) for value in node[:2]] if isinstance(node, list) else node


for name in ("graph", "execution"):
    with open(f"{sys.argv[1]}/{name}.json") as file, open(f"{sys.argv[2]}/{name}.schema.json") as schema:
        whole, judge = short(json.load(file)), jsonschema.Draft202012Validator(json.load(schema))
    for depth, node in [found for found in objects(whole) if found[0] < 4]:
        node["wrong"] = 1
        assert not judge.is_valid(whole), (name, "a further key", node)
        del node["wrong"]
        key, right = next(iter(node.items()))
        node[key] = [[]]
        assert not judge.is_valid(whole), (name, "another type", key)
        del node[key]
        assert depth > 1 or not judge.is_valid(whole), (name, "lacks", key)
        node[key] = right
    judge.validate(whole)
PYTHON
# By hand, the same bytes.
"$bin/ipu-report" "$report" export popvision >out
[ "$(cat out)" = 'popvision: graph.json, debug.cbor, execution.json' ] || fail "export says $(cat out)"
for file in graph.json debug.cbor execution.json; do
	cmp "$report/$file" "popvision/$file" || fail "exported $file differs"
done
code=0
"$bin/ipu-report" "$report" export popvision 2>err || code=$?
[ $code -eq 2 ] && grep -q 'is there already' err || fail "a second export: $code $(cat err)"

recorded '{"autoReport.all":"true"}' "$all" "${no_pipeline[@]}"
agrees "$report" "$files"
recorded '{"autoReport.all":"true"}' "$all" --ipu.auto_select_ipus 4
agrees "$report" "$files"
recorded '{"autoReport.all":"true","profiler.replicaToProfile":"1"}' "$all" --ipu.auto_select_ipus 4
agrees "$report" "$files" 1
# Three executions, of which one is traced; steady state, I/O tiles and recomputation make traces of another kind.
recorded '{"autoReport.all":"true","autoReport.executionProfileProgramRunCount":1}' "$all" --fit.steps_per_epoch 48 \
	--gradient_accumulation.steps_per_replica 16 --ipu.allow_recompute true \
	--ipu.io_tiles '{"num_io_tiles": 32, "place_ops_on_io_tiles": true}'
agrees "$report" "$files"
[ "$("$python" -c 'import json; print([r["execution"] for r in json.load(open("'"$report"'/execution.json"))["simulation"]["runs"]])')" = '[0]' ] ||
	fail "executions in execution.json"

# ---- gating --------------------------------------------------------------------------------------
plain='app.json framework.json profile.db'
recorded '{"autoReport.all":"true","autoReport.outputExecutionProfile":"false"}' 'app.json debug.cbor framework.json graph.json profile.db'
agrees "$report" 'graph debug'
[ "$(sqlite3 "$report/profile.db" 'SELECT count(*) FROM device_steps')" = 0 ] || fail "device steps without an execution profile"
recorded '{"autoReport.all":"true","autoReport.outputGraphProfile":"false"}' 'app.json debug.cbor execution.json framework.json profile.db'
agrees "$report" 'execution debug'
recorded '{"autoReport.outputDebugInfo":"true"}' 'app.json debug.cbor framework.json profile.db'
recorded '{"autoReport.outputGraphProfile":"true"}' 'app.json framework.json graph.json profile.db'
recorded '{"autoReport.outputExecutionProfile":"true"}' 'app.json execution.json framework.json profile.db'
recorded '{"autoReport.outputLoweredVars":"true"}' "$plain"
# Without a device there is still a graph.
recorded '{"autoReport.all":"true"}' "$all" --pipeline null --ipu null
grep -q '"type":"CPU"' "$report/graph.json" || fail "the CPU's target"

code=0
POPLAR_ENGINE_OPTIONS='{"autoReport.all":1,"profiler.replicaToProfile":2}' train 16 --ipu.auto_select_ipus 4 >out 2>err || code=$?
[ $code -eq 2 ] && grep -q 'there is no replica 2 (the run has 2, from 0)' err || fail "a replica that is not there: $code $(cat err)"

# ---- out of memory -------------------------------------------------------------------------------
mkdir "$work/memory" && cd "$work/memory"
POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' train 16 --quiet --ipu.tiles_per_ipu 4 --data.limit 512 >out 2>err &&
	fail "four tiles are enough"
report=$(ls -d tf_report__*)
has 'app.json debug.cbor framework.json graph.json profile.db'
agrees "$report" 'graph debug'

# ---- killed, interrupted, in the way -------------------------------------------------------------
# Train for long, wait for what is there before the first step, then do as said.
long() {
	mkdir "$work/$1" && cd "$work/$1"
	POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' "$bin/ipu-train" "$run" --quiet --evaluate null --fit.epochs 1 \
		--fit.steps_per_epoch "$2" --compile.steps_per_execution 40 >out 2>err &
	pid=$!
	planned() { [ -e "$(ls tf_report__*/debug.cbor 2>/dev/null)" ]; }
	until_ planned
	report=$(echo tf_report__*)
}
long killed 400000
kill -KILL $pid
wait $pid 2>/dev/null || true
[ -s "$report/graph.json" ] && [ ! -e "$report/execution.json" ] || fail "a killed run has $(ls "$report")"
"$bin/ipu-report" "$report" export popvision -o by-hand >/dev/null
agrees "$PWD/by-hand" "$files"
cmp "$report/graph.json" by-hand/graph.json || fail "a killed run's graph.json"

long interrupted 400000
sleep 0.3
kill -INT $pid
wait $pid 2>/dev/null || true
has "$all"
agrees "$report" "$files"

long hindered 8000
mkdir "$report/execution.json"
wait $pid || fail "a file that cannot be written fails the run: $(cat err)"
grep -q "^ipu-train: ./$report/execution.json: is a folder, not a file (the run goes on without it)$" err || fail "said: $(cat err)"
unlagged err
[ "$(wc -l <err)" -eq 1 ] || fail "more than a line: $(cat err)"
echo "ok"
