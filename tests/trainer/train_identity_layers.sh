#!/usr/bin/env bash
# Layers of every kind train to the same bytes whatever the schedule, the stages and the threads.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

count=0
# network NAME LAYERS: layers between the images of MNIST and the classes, as a run file.
network() {
	cat >"$work/$1.json" <<-END
		{"model": {"class_name": "Sequential", "config": {"layers": [
		 {"class_name": "InputLayer", "config": {"batch_input_shape": [null, 28, 28, 1]}}, $2,
		 {"class_name": "Dense", "config": {"name": "classes", "units": 10, "activation": "softmax"}}]}},
		 "compile": {"optimizer": "adam", "loss": "sparse_categorical_crossentropy", "steps_per_execution": 8},
		 "data": {"name": "mnist", "batch_size": 4}, "fit": {"epochs": 1, "steps_per_epoch": 8, "seed": 1},
		 "ipu": {"target": "ipu2", "auto_select_ipus": 2}, "gradient_accumulation": {"steps_per_replica": 8},
		 "pipeline": {"schedule": "Grouped"}}
	END
}
weights() {
	local out=$1
	shift
	"$bin/ipu-train" "$work/$name.json" --quiet --weights.save "$work/$out" "$@"
}
same() {
	weights now "$@"
	cmp -s "$work/reference" "$work/now" || fail "$name: other weights than the reference's: $*"
	count=$((count + 1))
}

network generative '
 {"class_name": "Conv2D", "config": {"name": "c", "filters": 8, "kernel_size": 3, "strides": 2, "padding": "same"}},
 {"class_name": "GroupNormalization", "config": {"name": "gn", "groups": 4}},
 {"class_name": "GaussianNoise", "config": {"name": "noise", "stddev": 0.1}},
 {"class_name": "Conv2DTranspose", "config": {"name": "t", "filters": 6, "kernel_size": 3, "strides": 2, "padding": "same", "activation": "relu"}},
 {"class_name": "GaussianDropout", "config": {"name": "gd", "rate": 0.1}},
 {"class_name": "AlphaDropout", "config": {"name": "ad", "rate": 0.1}},
 {"class_name": "GlobalAveragePooling2D", "config": {"name": "p"}}'

network sequences '
 {"class_name": "Reshape", "config": {"name": "rows", "target_shape": [28, 28]}},
 {"class_name": "Bidirectional", "config": {"name": "both", "layer": {"class_name": "LSTM", "config": {"units": 6, "return_sequences": true}}}},
 {"class_name": "TimeDistributed", "config": {"name": "each", "layer": {"class_name": "Dense", "config": {"units": 5}}}},
 {"class_name": "GRU", "config": {"name": "before", "units": 5, "return_sequences": true, "reset_after": false}},
 {"class_name": "Bidirectional", "config": {"name": "again", "merge_mode": "sum", "layer": {"class_name": "GRU", "config": {"units": 4}}}}'

network augmented '
 {"class_name": "Resizing", "config": {"name": "large", "height": 32, "width": 30}},
 {"class_name": "Conv2D", "config": {"name": "c", "filters": 3, "kernel_size": 3, "strides": 2, "padding": "same"}},
 {"class_name": "RandomFlip", "config": {"name": "flip", "mode": "horizontal", "seed": 4}},
 {"class_name": "RandomRotation", "config": {"name": "turn", "factor": 0.1}},
 {"class_name": "RandomTranslation", "config": {"name": "shift", "height_factor": 0.2, "width_factor": 0.2, "fill_mode": "wrap"}},
 {"class_name": "RandomZoom", "config": {"name": "zoom", "height_factor": 0.2, "fill_mode": "constant", "interpolation": "nearest"}},
 {"class_name": "RandomCrop", "config": {"name": "crop", "height": 12, "width": 12}},
 {"class_name": "CenterCrop", "config": {"name": "middle", "height": 10, "width": 10}},
 {"class_name": "Flatten", "config": {"name": "f"}}'

for file in "$work"/*.json; do
	name=$(basename "$file" .json)
	case $name in
	generative) half='{"c": 0, "t": 1}' ;;
	augmented) half='{"large": 0, "zoom": 1}' ;;
	sequences) half='{"rows": 0, "each": 1}' ;;
	esac
	weights reference "${no_pipeline[@]}" --host.threads 1
	same "${no_pipeline[@]}" --host.threads 3
	same --pipeline.stages "$half" --host.threads 2
	same --pipeline.stages "$half" --pipeline.schedule Sequential --host.threads 1
	same --pipeline.stages "$half" --pipeline.schedule zb-h1 --host.threads 1
	same --pipeline null --ipu null
done
echo "$count runs gave the same bytes"
