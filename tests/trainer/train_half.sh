#!/usr/bin/env bash
# compile.dtype_policy mixed_float16 and mixed_bfloat16: the model learns; the weights are the same bytes whatever the threads, stages,
# schedules and recording, other ones than those of float32, and saved whole; what is loaded is rounded too.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

keras=$IPUSCOPE_SOURCE_DIR/examples/keras-mnist.json
half=(--compile.dtype_policy mixed_float16)
count=0
run=$work/run.json
schedules=(Grouped Interleaved Sequential)

# weights NAME ARGUMENT...: 2 updates of 12 micro-batches.
weights() {
	local name=$1
	shift
	train 24 --quiet --evaluate null --weights.save "$work/$name" "$@"
}

# same NAME ARGUMENT...: the bytes of the reference, in half.
same() {
	weights "$@" "${half[@]}"
	cmp -s "$work/reference" "$work/$1" || fail "$model: $1: other weights than the reference's"
	count=$((count + 1))
}

# identical MODEL STAGES2 STAGES3
identical() {
	local threads schedule
	model=$1
	weights reference "${no_pipeline[@]}" "${half[@]}" --host.threads 1
	weights float32 "${no_pipeline[@]}" --host.threads 1
	! cmp -s "$work/reference" "$work/float32" || fail "$model: float32 gives the same weights"
	sweep 1 2 4
	for threads in "${swept[@]}"; do
		same "threads-$threads" "${no_pipeline[@]}" --host.threads "$threads"
	done
	for schedule in "${schedules[@]}"; do
		same "$schedule-2" --pipeline.stages "$2" --pipeline.schedule "$schedule"
		same "$schedule-3" --pipeline.stages "$3" --ipu.auto_select_ipus 4 --pipeline.schedule "$schedule"
	done
	same cpu --pipeline null --ipu null
	mkdir "$work/$model" && cd "$work/$model"
	export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}'
	same recorded --pipeline.stages "$2"
	same outfed "${no_pipeline[@]}" --outfeed.optimizer_mode AFTER_COMPUTE --outfeed.gradients '["none"]'
	unset POPLAR_ENGINE_OPTIONS
	for report in tf_report__*; do
		[ "$(sqlite3 "$report/profile.db" "SELECT value FROM meta WHERE key = 'dtype_policy'")" = mixed_float16 ] ||
			fail "$model: $report does not say which policy"
	done
}

cat >"$run" <<JSON
{
	"model": "$IPUSCOPE_SOURCE_DIR/tests/golden/residual.json",
	"compile": { "optimizer": "Adam", "loss": "sparse_categorical_crossentropy" },
	"data": { "name": "cifar10", "batch_size": 4, "limit": 96, "resize": [16, 16] },
	"ipu": { "auto_select_ipus": 2 },
	"gradient_accumulation": { "steps_per_replica": 12 },
	"pipeline": { "stages": { "block1_1_relu": 1 } }
}
JSON
identical residual '{"block2_2_conv": 1}' '{"block1_1_relu": 1, "block1_2_bn": 2}'

sed -e 's/"shuffle": false/"shuffle": true, "limit": 200/' -e 's/"batch_size": 80/"batch_size": 8/' -e 's/"epochs": 3/"epochs": 1/' "$keras" |
	sed -e 's/"ipu": null/"ipu": { "auto_select_ipus": 2 }, "pipeline": { "stages": { "max_pooling2d_1": 1 } }/' \
		-e 's/"evaluate": {}/"gradient_accumulation": { "steps_per_replica": 12 }/' >"$run"
identical convnet '{"max_pooling2d_1": 1}' '{"max_pooling2d": 1, "dropout": 2}'
cd "$work"

# Two replicas, whose evaluation takes the first one's weights.
replicas=(--pipeline null --gradient_accumulation null --evaluate.steps 24)
train 24 --quiet "${replicas[@]}" "${half[@]}" --weights.save "$work/replicas-1" --host.threads 1
train 24 --quiet "${replicas[@]}" "${half[@]}" --weights.save "$work/replicas-4" --host.threads 4
cmp -s "$work/replicas-1" "$work/replicas-4" || fail "replicas: other weights with 4 threads"

# bfloat16 rounds otherwise, and to the same bytes whatever the threads and stages.
half=(--compile.dtype_policy mixed_bfloat16)
cp "$work/reference" "$work/float16"
weights reference "${no_pipeline[@]}" "${half[@]}" --host.threads 1
! cmp -s "$work/reference" "$work/float16" || fail "bfloat16 gives float16's weights"
! cmp -s "$work/reference" "$work/float32" || fail "bfloat16 gives float32's weights"
same bfloat16-4 "${no_pipeline[@]}" --host.threads 4
same bfloat16-2 --pipeline.stages '{"max_pooling2d_1": 1}'
half=(--compile.dtype_policy mixed_float16)
mv "$work/float16" "$work/reference"

# A JSON of its own policies does without the key.
sed 's/"name": "\(conv2d\|conv2d_1\)", "filters"/"dtype": "mixed_float16", &/; s/"name": "dense", "units"/"dtype": { "class_name": "Policy", "config": { "name": "mixed_float16" } }, &/' \
	"$run" >"$work/own.json"
[ "$(grep -c mixed_float16 "$work/own.json")" -eq 3 ] || fail "the example has changed"
run=$work/own.json weights own "${no_pipeline[@]}"
cmp -s "$work/reference" "$work/own" || fail "the layers' own policies gave other weights than the global one"

# The summary is Keras's, whatever the policy; the digits are learnt; what is saved gives the same evaluation again.
short=(--data.limit 3200 --fit.epochs 2 --compile.optimizer adam)
"$bin/ipu-train" "$keras" "${short[@]}" >"$work/float32.txt"
"$bin/ipu-train" "$keras" "${short[@]}" "${half[@]}" --weights.save "$work/learnt" >"$work/half.txt"
for text in float32 half; do
	sed '/^Trainable params/q' "$work/$text.txt" >"$work/$text.summary"
done
grep -q "^Trainable params" "$work/half.summary" || fail "no summary: $(cat "$work/half.txt")"
cmp "$work/float32.summary" "$work/half.summary" || fail "the summary depends on the policy"
accuracy=$(sed -n 's/^loss: .* - accuracy: //p' "$work/half.txt")
awk -v a="$accuracy" 'BEGIN { exit !(a > 0.9) }' || fail "accuracy $accuracy: $(cat "$work/half.txt")"
"$bin/ipu-train" "$keras" "${short[@]}" "${half[@]}" --fit null --weights.load "$work/learnt" >"$work/again.txt"
diff <(grep '^loss: ' "$work/half.txt") <(grep '^loss: ' "$work/again.txt") || fail "loaded weights evaluate otherwise"
echo "$count runs gave the same bytes; accuracy $accuracy"
