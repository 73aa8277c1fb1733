#!/usr/bin/env bash
# The viewer on the reports of the tutorials, a few steps each: view_matrix.sh on all of them.
# `view_tutorials.sh [--all]`
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

# recorded NAME EXAMPLE ARGUMENT...: the report $work/NAME of a short training.
recorded() {
	local name=$1 example=$2
	shift 2
	mkdir -p "$work/in.$name"
	(cd "$work/in.$name" && POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' "$bin/ipu-train" \
		"$IPUSCOPE_SOURCE_DIR/examples/$example" --fit.epochs 1 "$@" >out.txt 2>err.txt) ||
		fail "$example $*: $(cat "$work/in.$name/err.txt")"
	mv "$work/in.$name"/tf_report__*/ "$work/$name"
	reports+=("$work/$name")
}

reports=()
few=(--data.limit 1000)
recorded keras-mnist keras-mnist.json "${few[@]}" --use-ipu
recorded keras-mnist-demo keras-mnist-demo.json "${few[@]}" --pipelining Interleaved
recorded keras-chapter keras-chapter-stages.json
recorded mnist-starter mnist-starter.json --fit.steps_per_epoch 40
recorded inspect-tensors inspect-tensors.json --steps-per-epoch 40 --outfeed.capture histogram
recorded cifar10 cifar10-resnet50.json --max-img 4 --data.resize '[32, 32]' --model.config.layers.0.config.batch_input_shape '[null, 32, 32, 3]'
bash "$IPUSCOPE_SOURCE_DIR/tests/viewer/view_matrix.sh" "$@" "${reports[@]}"
