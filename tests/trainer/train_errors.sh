#!/usr/bin/env bash
# Bad input: one line on stderr with the place and the remedy, exit code 2, nothing written.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
mkdir empty
count=0
failed=0

# One wrong answer does not hide the next.
wrong() {
	echo "FAILED: $*" >&2
	failed=1
}

# refuse TEXT ARGUMENT...: ipu-train ARGUMENT... fails with a line that contains TEXT.
refuse() {
	local text=$1 code=0
	shift
	(cd empty && POPLAR_ENGINE_OPTIONS=${options:-'{"autoReport.all":"true"}'} timeout 600 "$bin/ipu-train" "$@" >../out 2>../err) || code=$?
	[ $code -eq 2 ] || wrong "$*: exit code $code, not 2: $(cat err)"
	[ ! -s out ] || wrong "$*: printed before it was refused: $(head -1 out)"
	[ "$(wc -l <err)" -eq 1 ] || wrong "$*: not one line: $(cat err)"
	grep -qF -- "$text" err || wrong "$*: expected \"$text\", got: $(cat err)"
	[ -z "$(ls -A empty)" ] || wrong "$*: left behind: $(ls -A empty)"
	count=$((count + 1))
}

refuse 'nowhere.json' nowhere.json
refuse 'a run file is missing'
echo '{"model": {' >"$work/cut.json"
refuse 'cut.json:2:1:' "$work/cut.json"
printf '%0.s[' $(seq 20000) >"$work/deep.json"
refuse 'deep.json' "$work/deep.json"
sed 's/"Flatten"/"Flaten"/' "$run" >"$work/layer.json"
refuse 'did you mean "Flatten"' "$work/layer.json"
refuse 'unknown optimizer "Ftrl" (one of: Adagrad, Adam, ' "$run" --compile.optimizer Ftrl
refuse 'did you mean --fit.epochs' "$run" --fit.epoch 3
refuse 'did you mean "Grouped"' "$run" --pipeline.schedule Groupd
refuse 'data.batch_size' "$run" --data.batch_size 0
refuse 'data.batch_size' "$run" --data.batch_size 70000
refuse 'pipeline.stages' "$run" --pipeline.stages '[0,0,1]'
refuse 'pipeline.stages' "$run" --pipeline.stages '[0,1,0,1,1,1]'
refuse 'no layer that computes' "$run" --pipeline.stages '[0,0,0,0,0,1]'
refuse 'gradient_accumulation' "$run" --gradient_accumulation null
refuse 'multiple' "$run" --gradient_accumulation.steps_per_replica 5
refuse 'multiple' "$run" --fit.steps_per_epoch 498 --compile.steps_per_execution 498
refuse 'compile.steps_per_execution' "$run" --compile.steps_per_execution 300
refuse 'auto_select_ipus' "$run" --ipu.auto_select_ipus 1
refuse 'did you mean "ipu2' "$run" --ipu.target ipu22
refuse 'nowhere' "$run" --data.path /nowhere
refuse 'did you mean "sparse_categorical_crossentropy"' "$run" --compile.loss sparse_categorical_crossentrpy
refuse "compile.loss: the loss categorical_crossentropy needs values, but the data's targets are class numbers: set data.one_hot" "$run" --compile.loss categorical_crossentropy
refuse 'outfeed.capture: must be a tier such as "stats", or a list of rules' "$run" --outfeed.capture '{"tier": "full"}'
refuse 'health.stop: the rule overfit is switched off in health.rules' "$run" --health.stop overfit --health.rules.overfit false
refuse 'saturated_activation poor_initialization unchanged_tensor all_zero update_ratio loss_not_decreasing overfit class_imbalance)' "$run" --health.stop 5
# An unknown name is refused with the list, before data are looked for: no set is made in the cache.
export XDG_CACHE_HOME=$work/cache
mnist=$IPUSCOPE_SOURCE_DIR/examples/keras-mnist.json
refuse 'unknown optimizer "frobnicate" (one of: Adagrad, Adam, ' "$mnist" --compile.optimizer frobnicate
refuse 'compile.loss: unknown loss "frobnicate" (one of: binary_crossentropy, ' "$mnist" --compile.loss frobnicate
refuse 'compile.metrics[0]: unknown metric "frobnicate" (one of: accuracy, binary_accuracy, ' "$mnist" --compile.metrics frobnicate
refuse 'evaluate.metrics[0]: unknown metric "frobnicate" (one of: accuracy, ' "$mnist" --evaluate.metrics frobnicate
refuse 'unknown callback "frobnicate" (one of: ' "$mnist" --callbacks frobnicate
[ ! -e "$XDG_CACHE_HOME" ] || wrong "an unknown name left a cache: $(find "$XDG_CACHE_HOME")"
unset XDG_CACHE_HOME
refuse 'did you mean "SGD"' "$run" --compile.optimizer SDG
refuse 'compile.metrics[0]: unknown metric "acuracy" (did you mean "accuracy"?)' "$run" --compile.metrics acuracy
refuse 'evaluate.metrics[0].config.k: must be from 1' "$run" --evaluate.metrics '[{"class_name": "TopKCategoricalAccuracy", "config": {"k": 0}}]'
mkdir "$work/idx"
printf '\0\0\10\3\0\0\0\12\0\0\0\34\0\0\0\34abc' >"$work/idx/train-images-idx3-ubyte"
printf '\0\0\10\1\0\0\0\12\0\1\2\3\4\5\6\7\10\11' >"$work/idx/train-labels-idx1-ubyte"
cp "$work/idx/train-images-idx3-ubyte" "$work/idx/t10k-images-idx3-ubyte"
cp "$work/idx/train-labels-idx1-ubyte" "$work/idx/t10k-labels-idx1-ubyte"
refuse 'train-images-idx3-ubyte' "$run" --data.path "$work/idx"
printf 'XXXXXXXXXXXXXXXXXX' >"$work/idx/train-images-idx3-ubyte"
refuse 'not an IDX file' "$run" --data.path "$work/idx"
echo nonsense >"$work/bad.npz"
refuse 'bad.npz' "$run" --data.path "$work/bad.npz"
options='{"autoReport.al":"true"}' refuse 'did you mean "autoReport.all"' "$run"
options='{' refuse 'POPLAR_ENGINE_OPTIONS' "$run"
options='{"autoReport.all":"true","autoReport.directory":"/proc/none"}' refuse '/proc/none' "$run"
# What is read first of all is there before the model is shown.
refuse 'nowhere.npz' "$run" --weights.load nowhere.npz
[ $failed -eq 0 ] || exit 1
echo "$count requests refused"
