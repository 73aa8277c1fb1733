#!/usr/bin/env bash
# Keras's files at the command line: as run file, as a run file's model, as weights; what is refused, in one line each.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
golden=$IPUSCOPE_SOURCE_DIR/tests/golden/keras
options=(--compile.loss mean_squared_error --compile.metrics null --fit null --ipu null)

# refuse TEXT ARGUMENT...: exit code 2 and one line that has TEXT.
refuse() {
	local text=$1 code=0
	shift
	"$bin/ipu-train" "$@" >out 2>err || code=$?
	[ $code -eq 2 ] || fail "$*: exit code $code: $(cat err)"
	[ "$(wc -l <err)" -eq 1 ] || fail "$*: not one line: $(cat err)"
	grep -qF -- "$text" err || fail "$*: expected \"$text\", got: $(cat err)"
}

printf '\x08\x07\x12\x07pytorch' >net.onnx
refuse 'net.onnx: is an ONNX model' net.onnx
refuse 'net.onnx: is an ONNX model' "$golden/model.json" "${options[@]}" --predict '{}' --weights.load net.onnx
mkdir saved
printf '\x08\x01\x12\x00' >saved/saved_model.pb
refuse 'saved: is a SavedModel of TensorFlow: load it there' "$golden/model.json" "${options[@]}" --predict '{}' --weights.load saved
refuse 'model.json: is JSON: weights come from' "$golden/model.json" "${options[@]}" --predict '{}' --weights.load "$golden/model.json"
refuse 'weights.npz: is a zip archive without a Keras model' "$golden/weights.npz"
head -c 2000 "$golden/model.keras" >cut.keras
refuse 'cut.keras: is truncated' cut.keras

"$bin/ipu-train" "$golden/model.h5" >out 2>&1 || true
if grep -qF 'needs libhdf5' out; then
	echo "This build has no HDF5: no .h5 file is read"
	exit 0
fi
head -c 3000 "$golden/model.h5" >cut.h5
refuse 'cut.h5: is truncated or damaged' cut.h5
refuse 'named.h5: holds a model'"'"'s weights, not the model: give what its to_json() says' "$golden/named.h5"
refuse 'other.h5: is an HDF5 file without a Keras model' "$golden/other.h5"

# The same outputs whatever the model and the weights are kept in.
cat >set.py <<'PY'
import numpy
random = numpy.random.default_rng(1)
numpy.savez("set.npz", **{"%s_%s" % (n, p): random.normal(size=s).astype("f4")
                          for p in ("train", "test") for n, s in (("x", (8, 6, 4)), ("y", (8, 2)))})
PY
for python in python3 /usr/bin/python3 none; do
	"$python" set.py 2>/dev/null && break
done
[ -f set.npz ] || { echo "no NumPy: nothing is predicted"; exit 0; }
for model in model.json model.h5 model.keras; do
	echo "{\"model\": \"$golden/$model\", \"compile\": {\"loss\": \"mean_squared_error\"}}" >run.json
	for weights in weights.npz model.h5 model.keras named.h5 counted.weights.h5; do
		for from in run.json "$golden/$model"; do
			"$bin/ipu-train" "$from" "${options[@]}" --data.name npz --data.path set.npz --data.batch_size 4 \
				--predict.output out.npz --weights.load "$golden/$weights" >out || fail "$from $weights"
			grep -qF "Loaded 11 of 11 variables" out || fail "$model $weights: $(cat out)"
			[ -f first.npz ] || mv out.npz first.npz
			[ ! -f out.npz ] || cmp out.npz first.npz || fail "$model $weights: other outputs"
		done
	done
done
