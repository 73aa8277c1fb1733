#!/usr/bin/env bash
# Every tutorial's command trains: a few hundred images, one epoch, and the line of an epoch at its end.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

# trains STEPS EXAMPLE ARGUMENT...: the epoch has so many steps and a loss that is a number.
trains() {
	local steps=$1 example=$2
	shift 2
	"$bin/ipu-train" "$IPUSCOPE_SOURCE_DIR/examples/$example" --fit.epochs 1 "$@" >"$work/out.txt" 2>"$work/err.txt" ||
		fail "$example $*: $(cat "$work/err.txt")"
	tr '\r' '\n' <"$work/out.txt" | grep -E "^$steps/$steps \[=+\] .*/step - loss: [0-9]+\.[0-9]{4}" >/dev/null ||
		fail "$example $*: $(tail -3 "$work/out.txt")"
}

few=(--data.limit 1000)
trains 12 keras-mnist.json "${few[@]}"
trains 12 keras-mnist.json "${few[@]}" --use-ipu
trains 8 keras-mnist.json "${few[@]}" --use-ipu --pipelining
trains 20 keras-mnist.json "${few[@]}" --batch-size 50
trains 16 keras-mnist-demo.json "${few[@]}"
trains 15 keras-mnist-demo.json "${few[@]}" --use-ipu
trains 15 keras-mnist-demo.json "${few[@]}" --steps-per-execution
trains 14 keras-mnist-demo.json "${few[@]}" --replication
for schedule in Grouped Interleaved; do
	trains 8 keras-mnist-demo.json "${few[@]}" --pipelining "$schedule" --evaluate null --weights.save "$work/$schedule.npz"
done
cmp -s "$work/Grouped.npz" "$work/Interleaved.npz" || fail 'the schedule changed the weights'

trains 100 keras-chapter.json
trains 100 keras-chapter.json --steps-per-execution 50
trains 100 keras-chapter.json --steps-per-execution 50 --gradient-accumulation-steps-per-replica 10
trains 100 keras-chapter.json --num-ipus 2
trains 100 keras-chapter.json --steps-per-execution 50 --asynchronous-callbacks
trains 128 keras-chapter.json --pipelined
grep -q 'compile.steps_per_execution: 256 is more than the 128 steps there are: 128 is used' "$work/out.txt" ||
	fail 'no warning of too many steps in an execution'
trains 128 keras-chapter-stages.json --weights.save "$work/sequential.npz"
trains 128 keras-chapter-stages.json --functional --weights.save "$work/functional.npz"
cmp -s "$work/sequential.npz" "$work/functional.npz" || fail 'Functional and Sequential differ'
trains 4 keras-chapter-resnet50.json --data.resize '[32, 32]'
grep -q '^Total params: 25,636,712' "$work/out.txt" || fail 'ResNet50 has another number of parameters'

trains 2 cifar10-resnet50.json --max-img 4
grep -q '^Total params: 23,608,202' "$work/out.txt" || fail 'the CIFAR-10 model has another number of parameters'
trains 100 mnist-starter.json --fit.steps_per_epoch 100
for model in Sequential Model; do
	trains 40 inspect-tensors.json --steps-per-epoch 40 --model-type "$model" --weights.save "$work/pipelined.$model.npz"
	trains 40 inspect-tensors.json --steps-per-epoch 40 --model-type "$model" --no-pipelining --weights.save "$work/single.$model.npz"
done
for form in pipelined single; do
	cmp -s "$work/$form.Sequential.npz" "$work/$form.Model.npz" || fail "$form: Model and Sequential differ"
done

# The form of TensorFlow 2.1 names what replaced it.
if "$bin/ipu-train" "$IPUSCOPE_SOURCE_DIR/tests/golden/tf21-pipeline.json" 2>"$work/err.txt"; then
	fail 'the form of TensorFlow 2.1 was taken'
fi
grep -q 'PipelineSequential.*use "Sequential".*pipeline.stages' "$work/err.txt" || fail "$(cat "$work/err.txt")"

echo ok
