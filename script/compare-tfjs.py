#!/usr/bin/python3
"""Compare what ipu-train predicts with what TensorFlow.js does: compare-tfjs.py IPU-TRAIN FOLDER

FOLDER is where `npm install @tensorflow/tfjs` was. script/compare-tfjs.js makes the networks; their model.json is
read as it is, their weights come in a file in Keras's layout, written with h5py. Prints the greatest difference of each
network; ends with 1 where one is above 1e-5 of the greatest value. Needs node, Debian's python3-h5py and python3-numpy.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import h5py
import numpy

program, folder = sys.argv[1:3]
OPTIONS = "--fit null --evaluate null --ipu null -q --compile.loss mse --data.name npz --data.batch_size 6 --weights.load w.h5"


def write_weights(path, layers):
    with h5py.File(path, "w") as file:
        file.attrs["layer_names"] = [layer["name"].encode() for layer in layers]
        for layer in layers:
            group = file.create_group(layer["name"])
            group.attrs["weight_names"] = [(w["name"] + ":0").encode() for w in layer["weights"]]
            for w in layer["weights"]:
                group[w["name"] + ":0"] = numpy.array(w["numbers"], "float32").reshape(w["shape"])


def predict(network, work):
    (work / "model.json").write_text(json.dumps({"format": "layers-model", "modelTopology": network["topology"]}))
    write_weights(work / "w.h5", network["layers"])
    numpy.savez(work / "data.npz", x_test=numpy.array(network["x"], "float32").reshape(network["shape"]))
    command = [program, "./model.json", *OPTIONS.split(), "--data.path", "data.npz", "--predict", '{"output": "y.npz"}']
    subprocess.run(command, cwd=work, check=True)
    return numpy.load(work / "y.npz")["predictions"].reshape(-1)


program, bad = str(pathlib.Path(program).resolve()), 0
script = pathlib.Path(__file__).with_suffix(".js")
lines = subprocess.run(["node", script, folder], stdout=subprocess.PIPE, check=True).stdout.splitlines()
for line in lines:
    network = json.loads(line)
    with tempfile.TemporaryDirectory() as work:
        y, wanted = predict(network, pathlib.Path(work)), numpy.array(network["y"])
    most = numpy.abs(y - wanted).max()
    bad += not most <= 1e-5 * max(1, numpy.abs(wanted).max())
    print(f"{network['name']:18} {len(y):6} values, largest difference {most:.1e}")
sys.exit(bad > 0 or not lines)
