#!/usr/bin/env bash
# What the tutorials print: steps of an epoch, tables, stages, effective batches, shapes of what is outfed; and the traps in them.
# train_examples runs the same commands with little data; here the steps are the documents', of networks with one filter.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
examples=$IPUSCOPE_SOURCE_DIR/examples

# run EXAMPLE ARGUMENT...
run() {
	local example=$1
	shift
	command="$example $*"
	"$bin/ipu-train" "$examples/$example" "$@" >out.txt 2>err.txt || fail "$command: $(cat err.txt)"
	tr '\r' '\n' <out.txt | sed 's/\x1b\[[0-9]*[A-Za-z]//g' >lines.txt
}

says() {
	local text
	for text in "$@"; do
		grep -qF -- "$text" lines.txt || fail "$command: not printed: $text
$(cat lines.txt)"
	done
}

# epochs STEPS COUNT: so many lines, as in the documents, each with a loss.
epochs() {
	[ "$(grep -cE "^$1/$1 \[={10,30}\] - [0-9]+s [0-9]+(us|ms|s)/step - loss: [0-9]+\.[0-9]{4}( - |$)" lines.txt)" -eq "$2" ] ||
		fail "$command: not $2 epochs of $1 steps: $(grep / lines.txt | tail -3)"
}

# lines A B...: these, one after the other.
lines() {
	local text
	printf '%s\n' "$@" >expected.txt
	text=$(grep -nxF -m1 -- "$1" lines.txt | cut -d: -f1)
	[ -n "$text" ] && sed -n "$text,$((text + $# - 1))p" lines.txt | cmp -s - expected.txt || fail "$command: not printed:
$(cat expected.txt)
but
$(cat lines.txt)"
}

# --- Keras on the IPU: 938 steps on the CPU, of which the last is of 32 images; whole batches on IPUs
small=(--model.config.layers.1.config.filters 1 --model.config.layers.3.config.filters 1 --fit.epochs 1)
run keras-mnist-demo.json "${small[@]}"
epochs 938 1
epochs 157 1
grep -qE '^loss: [0-9.]+ - accuracy: 0\.[0-9]{4}$' lines.txt || fail "$command: the evaluation: $(tail -1 lines.txt)"
! grep -q IPU lines.txt || fail "$command: an IPU takes part"
run keras-mnist-demo.json "${small[@]}" --use-ipu
epochs 937 1
epochs 156 1
says '32 of the 60,000 training images' '16 of the 10,000 test images' 'compile.steps_per_execution is 1'
run keras-mnist-demo.json "${small[@]}" --replication
epochs 936 1
epochs 156 1
says 'the effective batch size is 128 (batch 64 x 1 accumulated x 2 replicas)' '468 in an execution, 468 in an epoch'
run keras-mnist-demo.json "${small[@]}" --pipelining Grouped
epochs 936 1
epochs 152 1
says 'the effective batch size is 512 (batch 64 x 8 accumulated x 1 replica)' '117 in an execution, 117 in an epoch'
grep -qE '^conv2d_1 \(Conv2D\) \(0\) +max_pooling2d +0 +$' lines.txt || fail "$command: the first stage's last layer"
grep -qE '^max_pooling2d_1 \(MaxPooling2D\) \(0\) +conv2d_1 +1 +$' lines.txt || fail "$command: the second stage's first layer"
# The completed example: 2 IPUs always; its flags for IPUs alone do nothing without --use-ipu.
run keras-mnist.json "${small[@]}" --use-ipu
epochs 750 1
epochs 124 1
says '375 in an execution, 375 in an epoch' '(batch 80 x 1 accumulated x 2 replicas)'
run keras-mnist.json "${small[@]}" --use-ipu --pipelining
epochs 744 1
epochs 124 1
says '93 in an execution, 93 in an epoch'
run keras-mnist.json "${small[@]}" --use-ipu --pipelining --gradient-accumulation-count 4
epochs 748 1
run keras-mnist.json "${small[@]}" --data.limit 8000 --weights.save cpu.npz
for flags in --pipelining '--gradient-accumulation-steps-per-replica 4' '--pipelining --gradient-accumulation-count 4'; do
	# shellcheck disable=SC2086
	run keras-mnist.json "${small[@]}" --data.limit 8000 --weights.save flags.npz $flags
	cmp -s cpu.npz flags.npz || fail "$flags does something without --use-ipu"
done
lines 'conv2d (Conv2D)              (None, 26, 26, 1)         10        ' \
	_________________________________________________________________ \
	'max_pooling2d (MaxPooling2D) (None, 13, 13, 1)         0         '

# --- Keras with IPUs. Without softmax the loss stands still near log 10; from_logits mends it.
run keras-chapter.json
epochs 100 2
sed -n 's/^100.100 .*loss: \([0-9.]*\).*/\1/p' lines.txt | tail -1 | awk '{ exit !($1 > 2.25 && $1 < 2.35) }' ||
	fail "$command: the MLP without softmax: $(tail -1 lines.txt)"
run keras-chapter.json --compile.loss '{"class_name": "SparseCategoricalCrossentropy", "config": {"from_logits": true}}'
sed -n 's/^100.100 .*loss: \([0-9.]*\).*/\1/p' lines.txt | tail -1 | awk '{ exit !($1 < 1) }' || fail "$command: $(tail -1 lines.txt)"
run keras-chapter.json --steps-per-execution 50 --gradient-accumulation-steps-per-replica 10
epochs 100 2
says '5 in an execution, 10 in an epoch'
run keras-chapter.json --num-ipus 2
epochs 100 2
says 'the effective batch size is 64 (batch 32 x 1 accumulated x 2 replicas)'
run keras-chapter.json --num-ipus 2 --steps-per-execution 50 --gradient-accumulation-steps-per-replica 10
says 'the effective batch size is 640 (batch 32 x 10 accumulated x 2 replicas)'
# 256 steps in an execution are more than the epoch's 128: Keras says so and takes those.
run keras-chapter.json --pipelined
epochs 128 2
says 'compile.steps_per_execution: 256 is more than the 128 steps there are'
lines 'dense (Dense)                 0                             ' \
	____________________________________________________________ \
	'dense_1 (Dense)               1                             '
run keras-chapter-stages.json --functional
epochs 128 2
lines 'dense_1 (Dense) (0)                dense                               0                 ' \
	_________________________________________________________________________________________ \
	'dense_2 (Dense) (0)                dense_1                             1                 '
# The layer that the chapter names is the last of its stage.
run keras-chapter-resnet50.json --data.resize '[32, 32]'
lines 'conv4_block2_add (Add) (0)         conv4_block1_out                    0                 ' \
	'                                   conv4_block2_3_bn                                     ' \
	_________________________________________________________________________________________ \
	'conv4_block2_out (Activation) (0)  conv4_block2_add                    1                 '
lines 'Total params: 25,636,712' 'Trainable params: 25,583,592' 'Non-trainable params: 53,120'

# What went with TensorFlow 2.1 names what came: classes, and arguments of the constructors.
sequential=$IPUSCOPE_SOURCE_DIR/tests/golden/tf21-pipeline.json
# replaced NAME TEXT OLD NEW: with OLD replaced by NEW in the file of that time.
replaced() {
	local code=0
	sed "s/$3/$4/" "$sequential" >old.json
	"$bin/ipu-train" old.json >out.txt 2>err.txt || code=$?
	[ $code -eq 2 ] && [ "$(wc -l <err.txt)" -eq 1 ] && grep -qF -- "$1" err.txt && grep -qF -- "$2" err.txt ||
		fail "$1: no \"$2\": $(cat err.txt)"
}
for class in IPUSequential ipu.keras.Sequential PipelineSequential; do
	replaced "$class" 'use "Sequential"' PipelineSequential "$class"
done
for class in IPUModel ipu.keras.Model PipelineModel; do
	replaced "$class" 'use "Functional"' PipelineSequential "$class"
done
replaced gradient_accumulation_count gradient_accumulation.steps_per_replica PipelineSequential Sequential
sed 's/"gradient_accumulation_count": 16,//' "$sequential" >no_count.json
sequential=no_count.json
replaced device_mapping pipeline.stages PipelineSequential Sequential
for name in gradient_accumulation_dtype batch_serialization_iterations pipeline_schedule recomputation_mode forward_propagation_stages_poplar_options \
	backward_propagation_stages_poplar_options weight_update_poplar_options offload_weight_update_variables replicated_optimizer_state_sharding \
	offload_activations offload_gradient_accumulation_buffers replicated_weight_sharding offload_weights; do
	sed "s/PipelineSequential/Sequential/; s/\"device_mapping\": .*/\"$name\": 1/" no_count.json >old.json
	if "$bin/ipu-train" old.json >out.txt 2>err.txt; then
		fail "$name was taken"
	fi
	[ "$(wc -l <err.txt)" -eq 1 ] && grep -q "$name" err.txt || fail "$name: $(cat err.txt)"
done

# --- ResNet50 on CIFAR-10: the document's table, and the line of the evaluation
run cifar10-resnet50.json --max-img 4 --num-epochs 1
rule=_________________________________________________________________
lines 'Model: "model"' $rule \
	'Layer (type)                 Output Shape              Param #   ' \
	"${rule//_/=}" \
	'input_1 (InputLayer)         [(2, 224, 224, 3)]        0         ' $rule \
	'resnet50 (Functional)        (None, None, None, 2048)  23587712  ' $rule \
	'global_average_pooling2d (Gl (2, 2048)                 0         ' $rule \
	'flatten (Flatten)            (2, 2048)                 0         ' $rule \
	'dense (Dense)                (2, 10)                   20490     ' \
	"${rule//_/=}" 'Total params: 23,608,202' 'Trainable params: 23,555,082' 'Non-trainable params: 53,120' $rule
epochs 2 2
grep -qE '^loss: [0-9.]+ - accuracy: [01]\.[0-9]{4}$' lines.txt || fail "$command: the evaluation: $(tail -1 lines.txt)"

# --- the starter: 2,000 steps, 100 in an execution, 4 epochs
run mnist-starter.json
epochs 2000 4

# --- tensor inspection: what four models send, with each of the flags. 40 steps, 4 in an update.
few=(--steps-per-epoch 40 --epochs 1 --evaluate null --data.limit 4000)
for model in Sequential Model; do
	for pipelining in '' --no-pipelining; do
		for accumulation in '' --use-gradient-accumulation; do
			for mode in '' --outfeed-pre-accumulated-gradients; do
				# shellcheck disable=SC2086
				run inspect-tensors.json "${few[@]}" --model-type $model $pipelining $accumulation $mode
				updates=10 inputs=256 rows=40
				[ -z "$mode" ] || updates=40
				[ -n "$accumulation" ] || [ -z "$pipelining" ] || updates=40
				[ -z "$pipelining" ] || inputs=784
				says "key: Dense_128/bias:0_grad shape: ($updates, 128)" "key: Dense_128/kernel:0_grad shape: ($updates, $inputs, 128)" \
					"key: Dense_128_acts shape: ($rows, 32, 128)" 'Gradients callback'
				[ "$(grep -c 'key: Dense_10_acts' lines.txt)" -eq $((${#pipelining} == 0)) ] || fail "$command: $(grep key: lines.txt)"
				# The document's last variable comes first.
				[ "$(grep -m1 key: lines.txt)" = "key: Dense_128/bias:0_grad shape: ($updates, 128)" ] || fail "$command: the order of gradients"
			done
		done
	done
done
run inspect-tensors.json "${few[@]}" --gradients-filters Dense_1 --activations-filters NONE
[ "$(grep -c '^key: .*_grad shape' lines.txt)" -eq 4 ] || fail "$command: Dense_1 is part of Dense_128 and Dense_10: $(grep key: lines.txt)"
[ "$(grep -c '^key: .*_acts shape' lines.txt)" -eq 2 ] || fail "$command: NONE is no filter: $(grep key: lines.txt)"
run inspect-tensors.json "${few[@]}" --gradients-filters Dense_10/kernel Dense_256/bias
[ "$(grep -c '^key: .*_grad shape' lines.txt)" -eq 2 ] || fail "$command: $(grep key: lines.txt)"
echo ok
