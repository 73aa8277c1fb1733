#!/usr/bin/env bash
# What ipu-plan model says of a run is what the run then records: cycles, times, bubble, and about the size.
set -uo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
wrong() {
	echo "FAILED: $*" >&2
	failed=1
}

key() { # FILE KEY
	sed -n "s/^ *\"$2\": \([^,]*\),*$/\1/p" "$1"
}
near() { # A B FACTOR WHAT
	awk -v a="$1" -v b="$2" -v f="$3" 'BEGIN { exit !(a > 0 && b > 0 && a <= b * f && b <= a * f) }' || wrong "$4: $1, $2"
}

# check RUN WORD...
check() {
	local what=$*
	rm -rf report plan.json
	"$IPUSCOPE_BIN_DIR/ipu-plan" model "$@" --json >plan.json || wrong "$what: ipu-plan fails"
	POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true","autoReport.directory":"report"}' \
		"$IPUSCOPE_BIN_DIR/ipu-train" "$@" >/dev/null || wrong "$what: ipu-train fails"
	local db
	db=$(echo report/*/profile.db)
	near "$(key plan.json cycles_per_step)" \
		"$(sqlite3 "$db" "SELECT cycles * 1.0 / steps FROM executions WHERE mode = 'train' LIMIT 1")" 1.02 "$what: cycles of a step"
	near "$(key plan.json memory_bytes_per_ipu)" \
		"$(sqlite3 "$db" "SELECT max(always_live_bytes + not_always_live_bytes) FROM liveness")" 1.0001 "$what: memory"
	near "$(key plan.json report_bytes_forecast)" "$(stat -c %s "$db")" 1.6 "$what: size of the report"
	if [ "$(key plan.json bubble_rate)" = null ]; then
		[ "$(sqlite3 "$db" "SELECT count(*) FROM bubbles")" = 0 ] || wrong "$what: a bubble that was not predicted"
	else
		near "$(key plan.json idle_fraction)" \
			"$(sqlite3 "$db" "SELECT idle_fraction FROM bubbles WHERE clock = 'device' LIMIT 1")" 1.000001 "$what: bubble"
	fi
}

examples=$IPUSCOPE_SOURCE_DIR/examples
check "$examples/inspect-tensors.json" --epochs 1 --steps-per-epoch 200
check "$examples/keras-mnist.json" --use-ipu --fit.epochs 1 --data.limit 4000
check "$examples/keras-chapter-stages.json"
for capture in off full '[{"tier": "last 7"}]' '[{"kind": "weight", "tier": "full", "every": 5}, {"tier": "counts"}]'; do
	check "$examples/inspect-tensors.json" --epochs 1 --steps-per-epoch 200 --outfeed.capture "$capture"
done
check "$examples/inspect-tensors.json" --epochs 1 --steps-per-epoch 200 --outfeed.capture full --outfeed.budget "2 MB"

# A model that nobody could train here.
cat >huge.json <<'JSON'
{"model": {"class_name": "Sequential", "config": {"layers": [
	{"class_name": "Flatten", "config": {}},
	{"class_name": "Dense", "config": {"units": 131072, "activation": "relu"}},
	{"class_name": "Dense", "config": {"units": 131072, "activation": "relu"}},
	{"class_name": "Dense", "config": {"units": 10, "activation": "softmax"}}]}},
 "compile": {"loss": "sparse_categorical_crossentropy", "steps_per_execution": "epoch"},
 "data": {"name": "mnist", "batch_size": 32}, "ipu": {}}
JSON
timeout 600 "$IPUSCOPE_BIN_DIR/ipu-plan" model huge.json --json >plan.json || wrong "huge: ipu-plan fails"
[ "$(key plan.json memory_fits)" = false ] || wrong "huge: 64 GB of weights fit"

# A split is by forwards and backwards.
"$IPUSCOPE_BIN_DIR/ipu-plan" model "$examples/keras-mnist.json" --use-ipu --pipelining --json >plan.json || wrong "split: ipu-plan fails"
! grep -E '"(backward|update)_cycles": 0,' plan.json || wrong "a stage of the split has no backward"

# The picture is streamed to each stage that reads it, as bytes too, and sent by none: what is sent is the convolution's result.
cat >reads.json <<'JSON'
{"model": {"class_name": "Functional", "config": {"name": "m", "layers": [
	{"class_name": "InputLayer", "name": "in", "config": {"batch_input_shape": [null, 28, 28, 1], "dtype": "float32", "name": "in"}, "inbound_nodes": []},
	{"class_name": "Conv2D", "name": "a", "config": {"name": "a", "filters": 4, "kernel_size": 3, "padding": "same"}, "inbound_nodes": [[["in", 0, 0, {}]]]},
	{"class_name": "Concatenate", "name": "c", "config": {"name": "c"}, "inbound_nodes": [[["a", 0, 0, {}], ["in", 0, 0, {}]]]},
	{"class_name": "Flatten", "name": "f", "config": {"name": "f"}, "inbound_nodes": [[["c", 0, 0, {}]]]},
	{"class_name": "Dense", "name": "d", "config": {"name": "d", "units": 10, "activation": "softmax"}, "inbound_nodes": [[["f", 0, 0, {}]]]}],
	"input_layers": [["in", 0, 0]], "output_layers": [["d", 0, 0]]}},
 "compile": {"loss": "sparse_categorical_crossentropy", "steps_per_execution": 8}, "data": {"name": "mnist", "batch_size": 10}, "fit": {"steps_per_epoch": 8},
 "ipu": {"auto_select_ipus": 2}, "gradient_accumulation": {"steps_per_replica": 4}, "pipeline": {"stages": {"a": 0, "c": 1}}}
JSON
for dtype in float32 float16 uint8; do
	"$IPUSCOPE_BIN_DIR/ipu-plan" model reads.json --infeed.dtype $dtype --json >plan.json || wrong "$dtype pictures: ipu-plan fails"
	sent=$(sed -n 's/.*"sent_bytes": \([0-9]*\).*/\1/p' plan.json | head -1)
	[ "$sent" = $((10 * 28 * 28 * 4 * 4)) ] || wrong "$dtype pictures: the first stage sends $sent bytes"
done

# One stage has no bubble, and an answer that cannot be written is no success.
"$IPUSCOPE_BIN_DIR/ipu-plan" model "$examples/keras-mnist.json" --ipu '{}' --json >plan.json || wrong "one stage: ipu-plan fails"
[ "$(key plan.json bubble_rate)" = null ] || wrong "one stage has a bubble_rate"
full_disk() {
	local code=0 error
	error=$("$IPUSCOPE_BIN_DIR/ipu-plan" "$@" 2>&1 >/dev/full) || code=$?
	[ $code -eq 1 ] || wrong "$* on a full disk: exit code $code"
	[ "$(wc -l <<<"$error")" -eq 1 ] || wrong "$* on a full disk: $error"
}
full_disk model "$examples/keras-mnist.json" --use-ipu
full_disk matmul 8 8 8
full_disk conv --in-channels 8 --out-channels 8 --field 8
full_disk --help

# An evaluation is recorded by its steady state, and a run that is too long to be simulated is refused.
evaluate() {
	"$IPUSCOPE_BIN_DIR/ipu-plan" model "$examples/keras-mnist.json" --ipu '{}' --fit null --json \
		--evaluate "{\"steps\": $1, \"steps_per_execution\": $1}" 2>&1
}
evaluate 10000 >plan.json
[ "$(key plan.json report_bytes_forecast)" -lt 40000000 ] || wrong "evaluation: a report of $(key plan.json report_bytes_forecast) bytes"
grep -q 'evaluate.steps_per_execution may be at most' <<<"$(evaluate 100000000)" || wrong "evaluation: $(evaluate 100000000)"

# 1f1b-interleaved by default: two stages for each IPU, dealt in turn, as where that is said.
dealt() {
	"$IPUSCOPE_BIN_DIR/ipu-plan" model "$examples/keras-chapter-stages.json" --pipeline.stages auto --pipeline.schedule 1f1b-interleaved \
		--ipu.auto_select_ipus 2 --gradient_accumulation.steps_per_replica 8 --json "$@"
}
dealt >plan.json || wrong "1f1b-interleaved has no default mapping"
dealt --pipeline.device_mapping '[0, 1, 0, 1]' >said.json
grep -q '^  "stages": 4,' plan.json && cmp -s plan.json said.json || wrong "1f1b-interleaved by default is not [0, 1, 0, 1]"

# A network each of whose cells takes two: both stages hold what is handed past the other.
"$IPUSCOPE_BIN_DIR/ipu-plan" model "$examples/keras-chapter-resnet50.json" --model '{"application": "NASNetMobile"}' \
	--pipeline '{"stages": "auto"}' --json >plan.json
grep -q '^  "stages": 2,' plan.json && grep -q '^  "memory_fits": true' plan.json || wrong "NASNetMobile on two IPUs: $(head -30 plan.json)"

# Graphcore trained ResNet50 with micro-batches of 20 on one IPU, in seven stages that recompute
# (examples, configs.yml, resnet50_mlperf_pod16_bs20): it has to fit.
"$IPUSCOPE_BIN_DIR/ipu-plan" model "$examples/keras-chapter-resnet50.json" --compile.dtype_policy mixed_float16 --data.batch_size 20 --infeed.dtype uint8 \
	--compile.optimizer '{"class_name": "SGD", "config": {"momentum": 0.9}}' --fit.steps_per_epoch 6 --compile.steps_per_execution 6 --ipu.auto_select_ipus 1 \
	--gradient_accumulation '{"steps_per_replica": 6, "dtype": "float16"}' --ipu.allow_recompute true --data.limit 120 \
	--ipu.convolutions '{"availableMemoryProportion": 0.15, "partialsType": "half"}' --ipu.matmuls '{"availableMemoryProportion": 0.15, "partialsType": "half"}' \
	--pipeline '{"schedule": "Sequential", "device_mapping": [0, 0, 0, 0, 0, 0, 0], "stages": {"conv2_block2_1_conv": 1, "conv3_block1_1_conv": 2,
		"conv3_block2_1_conv": 3, "conv3_block4_1_conv": 4, "conv4_block2_1_conv": 5, "conv4_block5_1_conv": 6}}' --json >plan.json
grep -q '^  "stages": 7,' plan.json && grep -q '^  "memory_fits": true' plan.json || wrong "ResNet50, micro-batch 20: $(grep memory plan.json)"

# Refusals are one line that says what to do.
for words in "$examples/keras-mnist.json" "nowhere.json" "huge.json --ipu.targit ipu2" ""; do
	# shellcheck disable=SC2086
	error=$("$IPUSCOPE_BIN_DIR/ipu-plan" model $words 2>&1 >/dev/null)
	[ $? -eq 2 ] || wrong "model $words: exit code"
	[ "$(wc -l <<<"$error")" -eq 1 ] || wrong "model $words: $error"
done
exit $failed
