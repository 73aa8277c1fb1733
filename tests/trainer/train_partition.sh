#!/usr/bin/env bash
# pipeline.stages "auto": no slower than splits made by hand, the same weights as without a pipeline, and errors.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

examples=$IPUSCOPE_SOURCE_DIR/examples
count=0

# figure KEY NUMBER: the NUMBER-th value of KEY in the plan.
figure() {
	grep "\"$1\":" "$work/plan.json" | sed -n "$2s/.*: //;$2s/,\$//p"
}

# least A B: A is at most B.
least() {
	awk -v a="$1" -v b="$2" 'BEGIN { exit !(a <= b) }'
}

plan() {
	"$bin/ipu-plan" model "$@" --json >"$work/plan.json" 2>"$work/err.txt" || fail "plan $*: $(cat "$work/err.txt")"
}

# no_slower EXAMPLE ARGUMENT...: auto beside the split that these give, on one schedule or the other.
no_slower() {
	local example=$examples/$1 own own_step auto schedule
	shift
	sweep Grouped Interleaved
	for schedule in "${swept[@]}"; do
		plan "$example" "$@" --pipeline.schedule "$schedule"
		own=$(figure slowest_stage_cycles 1)
		own_step=$(figure device_step_us 1)
		auto=$(figure slowest_stage_cycles 2)
		least "$auto" "$own" || fail "$example $*, $schedule: the slowest stage takes $auto cycles, by hand $own"
		plan "$example" "$@" --pipeline.schedule "$schedule" --pipeline.stages auto
		[ "$(figure slowest_stage_cycles 1)" = "$auto" ] || fail "$example $*: auto is not what was promised beside"
		[ "$(figure slowest_stage_cycles 2)" = "$auto" ] || fail "$example $*: auto is not the best"
		# Ramps and small differences of the device clock are not what is looked at; nor, in an Interleaved
		# pipeline, which forward is beside which backward.
		least "$(figure device_step_us 1)" \
			"$(awk -v own="$own_step" -v grouped="$([ "$schedule" = Grouped ] && echo 1 || echo 0)" \
				'BEGIN { print own * (grouped ? 1.02 : 1.25) }')" ||
			fail "$example $*, $schedule: a step takes $(figure device_step_us 1) us, by hand $own_step"
		count=$((count + 1))
	done
}

# A stage is weighed with its backward pass: more than a tenth of its forward, whose copies from the host are most.
"$bin/ipu-plan" model "$IPUSCOPE_SOURCE_DIR/examples/inspect-tensors.json" --json >"$work/plan.json"
[ "$(sqlite3 :memory: "SELECT count(*) FROM json_each(CAST(readfile('$work/plan.json') AS TEXT), '\$.split.stages')
	WHERE json_extract(value, '\$.backward_cycles') > json_extract(value, '\$.forward_cycles') / 10")" = 2 ] ||
	fail "stages are weighed without their backward passes"

no_slower keras-mnist.json --use-ipu --pipelining
no_slower inspect-tensors.json
no_slower keras-chapter-stages.json
no_slower keras-chapter-stages.json --functional
resnet() {
	local ipus=$1 stages=$2
	shift 2
	no_slower cifar10-resnet50.json --ipu.auto_select_ipus "$ipus" --pipeline.stages "$stages" \
		--gradient_accumulation.steps_per_replica 32 "$@"
}
no_slower keras-chapter-resnet50.json
resnet 2 '{"conv4_block1_1_conv": 1}'
resnet 4 '{"conv3_block1_1_conv": 1, "conv4_block1_1_conv": 2, "conv5_block1_1_conv": 3}'
resnet 4 '{"conv3_block1_1_conv": 1, "conv3_block4_1_conv": 2, "conv4_block4_1_conv": 3}' --compile.dtype_policy mixed_float16
resnet 8 '{"conv2_block3_1_conv": 1, "conv3_block2_1_conv": 2, "conv3_block4_1_conv": 3, "conv4_block2_1_conv": 4,
	"conv4_block4_1_conv": 5, "conv4_block6_1_conv": 6, "conv5_block2_1_conv": 7}'

# ---- the same weights ---------------------------------------------------------------------------

# identical STEPS ACCUMULATION EXAMPLE ARGUMENT...
identical() {
	local steps=$1 accumulation=$2 example=$3 ipus schedule
	shift 3
	trained() {
		local name=$1
		shift
		"$bin/ipu-train" "$examples/$example" "$@" --quiet --evaluate null --fit.epochs 1 --fit.steps_per_epoch "$steps" \
			--compile.steps_per_execution "$steps" --gradient_accumulation.steps_per_replica "$accumulation" \
			--weights.save "$work/$name" >"$work/out.txt" 2>"$work/err.txt" || fail "$example $*: $(cat "$work/err.txt")"
	}
	trained reference "$@" --pipeline null --ipu.auto_select_ipus 1
	for ipus in 2 4; do
		for schedule in Grouped Interleaved Sequential; do
			[ "$example:$ipus" != inspect-tensors.json:4 ] || continue
			trained auto "$@" --pipeline.stages auto --ipu.auto_select_ipus $ipus --pipeline.schedule $schedule
			cmp -s "$work/reference" "$work/auto" || fail "$example, $ipus stages, $schedule: other weights"
			count=$((count + 1))
		done
	done
}

identical 24 8 keras-mnist.json --use-ipu --data.batch_size 8
identical 24 12 inspect-tensors.json
identical 16 8 keras-chapter-stages.json

# ---- what is said -------------------------------------------------------------------------------

cd "$work"
POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' "$bin/ipu-train" "$run" --pipeline.stages auto --evaluate null --fit.epochs 1 \
	--fit.steps_per_epoch 8 --compile.steps_per_execution 8 >out.txt
grep -qE '^pipeline.stages auto: stages begin at flatten, Dense_[a-z0-9_]+; the slowest, [01], takes [0-9.]+ us' out.txt ||
	fail "the split is not said: $(cat out.txt)"
grep -q '"stages": *"auto"' tf_report__*/app.json || fail 'app.json does not hold "auto"'
first=$(sed -n 's/^pipeline.stages auto: stages begin at flatten, \([^;]*\);.*/\1/p' out.txt)
grep -qE "^$first \([A-Za-z]+\) +1 *$" out.txt || fail "the summary of stages does not begin stage 1 at $first"
"$bin/ipu-plan" model "$run" >out.txt
grep -q '^  pipeline.stages: stages begin at flatten, Dense_128; ' out.txt || fail 'the own split is not said'
grep -q '^  pipeline.stages auto: ' out.txt || fail 'nothing is said of auto beside it'

small=("$examples/keras-chapter-resnet50.json" --ipu.tiles_per_ipu 100)
"$bin/ipu-plan" model "${small[@]}" >out.txt 2>err.txt || true
grep -qhE 'pipeline.stages: does not fit memory: stage [01], from .* on, needs at least [0-9.]+ MB' out.txt err.txt ||
	fail "nothing is said of what does not fit: $(cat out.txt err.txt)"
"$bin/ipu-plan" model "${small[@]}" --pipeline.stages auto >out.txt 2>err.txt || true
grep -qhE 'pipeline.stages auto: no split fits memory: stage [01], from ' out.txt err.txt ||
	fail "nothing is said of auto that does not fit: $(cat out.txt err.txt)"

# Labels are weighed as they are streamed: 32 numbers for each token take longer than one.
awk 'BEGIN { for (i = 0; i < 64 * 32; i++) { x = x " " i % 7; y = y " " i % 32 } print "x_train i4 64,32" x; print "y_train i8 64,32" y }' |
	make_npz "$work/tokens.npz"
cat >"$work/tokens.json" <<'JSON'
{
	"model": { "class_name": "Sequential", "config": { "name": "m", "layers": [
		{ "class_name": "Embedding", "config": { "name": "e", "input_dim": 32, "output_dim": 32 } },
		{ "class_name": "Dense", "config": { "name": "a", "units": 32 } },
		{ "class_name": "Dense", "config": { "name": "b", "units": 32 } },
		{ "class_name": "Dense", "config": { "name": "c", "units": 32, "activation": "softmax" } } ] } },
	"compile": { "loss": "sparse_categorical_crossentropy", "steps_per_execution": 4 },
	"data": { "name": "npz", "batch_size": 16 },
	"ipu": { "auto_select_ipus": 2 }, "gradient_accumulation": { "steps_per_replica": 4 }, "pipeline": { "stages": "auto", "schedule": "Grouped" }
}
JSON
plan "$work/tokens.json" --data.path "$work/tokens.npz"
numbers=$(figure slowest_stage_cycles 1)
plan "$work/tokens.json" --data.path "$work/tokens.npz" --data.one_hot true --compile.loss categorical_crossentropy
least $((numbers + 10000)) "$(figure slowest_stage_cycles 1)" || fail "vectors for labels: $(figure slowest_stage_cycles 1) cycles, numbers $numbers"

# refuse TEXT ARGUMENT...
refuse() {
	local text=$1 code=0
	shift
	"$bin/ipu-plan" model "$@" >out.txt 2>err.txt || code=$?
	[ $code -eq 2 ] || fail "$*: exit code $code, not 2"
	grep -qF -- "$text" err.txt || fail "$*: expected \"$text\", got: $(cat err.txt)"
	count=$((count + 1))
}

refuse 'pipeline.stages: "auto": 8 stages are more than the layers can be split into, 4' "$examples/keras-chapter-stages.json" \
	--pipeline.stages auto --ipu.auto_select_ipus 8
# The two MaybeOutfeed layers share a queue, and so the layer between them and theirs a stage.
refuse 'pipeline.stages: "auto": 4 stages are more than the layers can be split into' "$run" --pipeline.stages auto \
	--ipu.auto_select_ipus 4
refuse '"auto" makes a stage for each of ipu.auto_select_ipus, of which there is 1' "$run" --pipeline.stages auto \
	--ipu.auto_select_ipus 1
refuse 'needs gradient_accumulation.steps_per_replica' "$run" --pipeline.stages auto --gradient_accumulation null
refuse 'pipeline.auto_stages: is of pipeline.stages "auto" alone' "$run" --pipeline.auto_stages 2
refuse 'pipeline.device_mapping: has 3 entries, but the pipeline has 2 stages' "$run" --pipeline.stages auto \
	--pipeline.auto_stages 2 --pipeline.device_mapping '[0,1,2]'
refuse 'multiple of' "$examples/keras-chapter-stages.json" --pipeline.stages auto --ipu.auto_select_ipus 4 \
	--gradient_accumulation.steps_per_replica 4
echo "$count splits"
