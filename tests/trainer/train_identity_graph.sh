#!/usr/bin/env bash
# As train_identity, for graphs: a convnet with dropout, and a residual model with batch normalisation, whose additions
# take what an earlier stage made. Threads, stages, schedules and recording do not change a byte of the weights.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

count=0
run=$work/run.json
schedules=(Grouped Interleaved Sequential)

# weights NAME ARGUMENT...: 2 updates of 12 micro-batches.
weights() {
	local name=$1
	shift
	train 24 --quiet --evaluate null --gradient_accumulation.steps_per_replica 12 --weights.save "$work/$name" "$@"
}

# same NAME ARGUMENT...: the bytes of the reference.
same() {
	weights "$@"
	cmp -s "$work/reference" "$work/$1" || fail "$model: $1: other weights than the reference's"
	count=$((count + 1))
}

# identical MODEL STAGES2 STAGES3
identical() {
	local threads schedule tier watched
	model=$1
	weights reference "${no_pipeline[@]}" --host.threads 1
	[ -s "$work/reference" ] || fail "$model: no weights were written"
	weights other "${no_pipeline[@]}" --fit.seed 2
	! cmp -s "$work/reference" "$work/other" || fail "$model: another seed gave the same weights"
	for threads in 1 2 4; do
		same "threads-$threads" "${no_pipeline[@]}" --host.threads "$threads"
	done
	for schedule in "${schedules[@]}"; do
		sweep 1 2 4
		for threads in "${swept[@]}"; do
			same "$schedule-2-$threads" --pipeline.stages "$2" --pipeline.schedule "$schedule" --host.threads "$threads"
			same "$schedule-3-$threads" --pipeline.stages "$3" --ipu.auto_select_ipus 4 --pipeline.schedule "$schedule" \
				--host.threads "$threads"
		done
	done
	same cpu --pipeline null --ipu null
	mkdir "$work/$model" && cd "$work/$model"
	export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}'
	same recorded --pipeline.stages "$2"
	same recorded --pipeline.stages "$3" --ipu.auto_select_ipus 4
	same recorded "${no_pipeline[@]}"
	# Nor does looking at every tensor there is, though a layer that is looked at leaves the ReLU behind it to that.
	for tier in health stats full; do
		sweep 1 2 3
		for threads in "${swept[@]}"; do
			watched=(--host.threads "$threads" --outfeed.capture '[{"tier": "'"$tier"'"}]')
			rm -rf tf_report__*
			same "$tier-1-$threads" "${no_pipeline[@]}" "${watched[@]}" --outfeed.optimizer_mode AFTER_COMPUTE
			same "$tier-2-$threads" --pipeline.stages "$2" "${watched[@]}"
			same "$tier-3-$threads" --pipeline.stages "$3" --ipu.auto_select_ipus 4 "${watched[@]}"
		done
	done
	unset POPLAR_ENGINE_OPTIONS
	[ "$(ls -d tf_report__* | wc -l)" -eq 3 ] || fail "$model: nothing was recorded"
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
# With two stages two outputs pass between them, block1_out and block2_1_relu; with three stem_relu passes the second by.
identical residual '{"block2_2_conv": 1}' '{"block1_1_relu": 1, "block1_2_bn": 2}'

sed -e 's/"shuffle": false/"shuffle": true, "limit": 200/' -e 's/"batch_size": 80/"batch_size": 8/' -e 's/"epochs": 3/"epochs": 1/' "$IPUSCOPE_SOURCE_DIR/examples/keras-mnist.json" |
	sed -e 's/"ipu": null/"ipu": { "auto_select_ipus": 2 }, "pipeline": { "stages": { "max_pooling2d_1": 1 } }/' \
		-e 's/"evaluate": {}/"gradient_accumulation": { "steps_per_replica": 12 }/' >"$run"
identical convnet '{"max_pooling2d_1": 1}' '{"max_pooling2d": 1, "dropout": 2}'
echo "$count runs gave the same bytes"
