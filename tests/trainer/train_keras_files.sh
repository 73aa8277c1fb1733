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
# Weights are refused before the data are read.
without_data=("$golden/model.json" "${options[@]}" --predict '{}' --data.name npz --data.path missing.npz)
refuse 'missing.npz' "${without_data[@]}" --weights.load "$golden/named.h5"
refuse 'cut.h5: is truncated or damaged' "${without_data[@]}" --weights.load cut.h5
refuse "other.h5: is an HDF5 file but none of Keras's" "${without_data[@]}" --weights.load "$golden/other.h5"
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

# What is saved is what Keras's own readers look for, seen by h5py where it is.
for file in s.npz s.h5 s.weights.h5; do
	"$bin/ipu-train" "$golden/model.keras" "${options[@]}" --data.name npz --data.path set.npz --data.batch_size 4 --predict '{}' \
		--weights.load "$golden/model.keras" --weights.save $file --weights.save_model "model-$file.keras" >out || fail "$file"
done
cmp model-s.npz.keras model-s.h5.keras || fail "a .keras has other bytes the second time"
"$bin/ipu-train" "$golden/model.keras" "${options[@]}" --data.name npz --data.path set.npz --data.batch_size 4 --predict '{}' \
	--weights.load s.h5 --weights.save_model model.h5 >out || fail "model.h5"
refuse 'x.keras: a .keras holds a model too' "$golden/model.keras" "${options[@]}" --predict '{}' --weights.save x.keras
refuse 'x.npz: a model is saved as .keras or .h5' "$golden/model.keras" "${options[@]}" --predict '{}' --weights.save_model x.npz
cat >look.py <<'PY'
import io, json, sys, zipfile
import h5py, numpy
golden = sys.argv[1]

def arrays(file):
    found = {}
    file.visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return {name: value for name, value in found.items() if not name.startswith("optimizer")}

def same(ours, theirs):
    ours, theirs = arrays(ours), arrays(theirs)
    assert sorted(ours) == sorted(theirs), (sorted(ours), sorted(theirs))
    for name, value in ours.items():
        assert value.dtype == "float32" and numpy.array_equal(value, theirs[name]), name

def texts(value):
    return [n.decode() if hasattr(n, "decode") else n for n in value]

def attributes(ours, theirs):
    assert texts(ours.attrs["layer_names"]) == texts(theirs.attrs["layer_names"])
    assert ours.attrs["backend"] == "tensorflow"
    for name in texts(theirs.attrs["layer_names"]):
        assert texts(ours[name].attrs["weight_names"]) == texts(theirs[name].attrs["weight_names"]), name

with h5py.File("s.h5") as ours, h5py.File(golden + "/named.h5") as theirs:
    same(ours, theirs)
    attributes(ours, theirs)
with h5py.File("s.weights.h5") as ours, h5py.File(golden + "/counted.weights.h5") as theirs:
    same(ours, theirs)
with h5py.File("model.h5") as ours, h5py.File(golden + "/named.h5") as theirs:
    same(ours["model_weights"], theirs)
    attributes(ours["model_weights"], theirs)
    config = json.loads(ours.attrs["model_config"])
assert config == json.load(open(golden + "/model.json"))
with zipfile.ZipFile("model-s.h5.keras") as archive:
    assert archive.testzip() is None
    assert json.loads(archive.read("config.json")) == config
    assert "keras_version" in json.loads(archive.read("metadata.json"))
    with h5py.File(io.BytesIO(archive.read("model.weights.h5"))) as ours, h5py.File(golden + "/counted.weights.h5") as theirs:
        same(ours, theirs)
PY
for python in python3 /usr/bin/python3 none; do
	"$python" -c 'import h5py' 2>/dev/null && break
done
[ $python != none ] || { echo "no h5py: what is saved was read by ipu-train alone"; exit 0; }
"$python" look.py "$golden" || fail "h5py sees something else"
