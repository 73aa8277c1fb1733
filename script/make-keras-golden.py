#!/usr/bin/env python3
"""Writes tests/golden/keras: one model in each of the layouts in which Keras keeps models and weights.

The files are put together with h5py and zipfile as Keras's own sources describe them (legacy_h5_format.py,
saving_lib.py), not by ipuscope; needs python3-h5py and python3-numpy.
"""
import io
import json
import sys
import zipfile

import h5py
import numpy

FOLDER = sys.argv[1] if len(sys.argv) > 1 else "tests/golden/keras"
KERAS3 = {"module": "keras.layers", "registered_name": None}
POLICY = {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float32"}, "registered_name": None}
STAMP = (1980, 1, 1, 0, 0, 0)


def layer(class_name, name, nodes, **config):
    return {**KERAS3, "class_name": class_name, "name": name, "build_config": {"input_shape": [None, 6, 4]},
            "config": {"name": name, "trainable": True, "dtype": POLICY, **config}, "inbound_nodes": nodes}


def node(source, shape, training=False):
    history = {"class_name": "__keras_tensor__",
               "config": {"shape": shape, "dtype": "float32", "keras_history": [source, 0, 0]}}
    return [{"args": [history], "kwargs": {"training": training, "mask": None}}]


HEAD = {**KERAS3, "class_name": "Sequential", "name": "head", "module": "keras", "build_config": {"input_shape": [None, 5]},
        "inbound_nodes": node("scale", [None, 5], None),
        "config": {"name": "head", "trainable": True, "dtype": POLICY, "layers": [
            {**KERAS3, "class_name": "InputLayer", "config": {"batch_shape": [None, 5], "dtype": "float32", "sparse": False,
                                                             "ragged": False, "name": "between"}},
            layer("Dense", "hidden", [], units=3, activation="relu"),
            layer("Dense", "answer", [], units=2, activation="softmax")]}}
MODEL = {"module": "keras.src.models.functional", "class_name": "Functional", "registered_name": "Functional",
         "build_config": {"input_shape": None},
         "config": {"name": "golden", "trainable": True, "layers": [
             layer("InputLayer", "sequence", [], batch_shape=[None, 6, 4], sparse=False, ragged=False),
             layer("LSTM", "recall", node("sequence", [None, 6, 4]), units=5),
             layer("BatchNormalization", "scale", node("recall", [None, 5])),
             HEAD],
             "input_layers": [["sequence", 0, 0]], "output_layers": [["head", 1, 0]]}}
MODEL["config"]["layers"][0]["config"]["dtype"] = "float32"

random = numpy.random.default_rng(22)


def values(*shape):
    return random.normal(size=shape).astype("f4")


LSTM = [("kernel", values(4, 20)), ("recurrent_kernel", values(5, 20)), ("bias", values(20))]
NORM = [("gamma", values(5)), ("beta", values(5)), ("moving_mean", values(5)), ("moving_variance", abs(values(5)) + 1)]
HIDDEN = [("kernel", values(5, 3)), ("bias", values(3))]
ANSWER = [("kernel", values(3, 2)), ("bias", values(2))]
LAYERS = {"recall": LSTM, "scale": NORM, "hidden": HIDDEN, "answer": ANSWER}


def write_named(group, prefix):
    """Keras 1 and 2, and .h5 of Keras 3: layer_names and weight_names."""
    groups = {"sequence": [], "recall": [(prefix + "recall/lstm_cell/" + n, v) for n, v in LSTM],
              "scale": [(prefix + "scale/" + n, v) for n, v in NORM],
              "head": [("hidden/" + n, v) for n, v in HIDDEN] + [("answer/" + n, v) for n, v in ANSWER]}
    group.attrs["layer_names"] = [n.encode() for n in groups]
    group.attrs["backend"] = b"tensorflow"
    group.attrs["keras_version"] = b"2.15.0"
    for name, weights in groups.items():
        inner = group.create_group(name)
        inner.attrs["weight_names"] = [(n + ":0").encode() for n, _ in weights]
        for n, v in weights:
            inner[n + ":0"] = v


def write_counted(file, layers="layers", second="dense_1"):
    """Keras 3: groups by class, arrays by number."""
    file.create_group("vars")
    places = {"lstm/cell": LSTM, "batch_normalization": NORM, "sequential/%s/dense" % layers: HIDDEN,
              "sequential/%s/%s" % (layers, second): ANSWER}
    for name in ["input_layer", "lstm", "sequential", "sequential/%s/input_layer" % layers, *places]:
        file.create_group("%s/%s/vars" % (layers, name))
    for name, weights in places.items():
        for i, (_, v) in enumerate(weights):
            file["%s/%s/vars/%d" % (layers, name, i)] = v
    file["optimizer/vars/0"] = numpy.int64(7)


def write_windows(file):
    """Keras 2.13 to 2.15 on Windows: the paths of layers are names of groups at the top."""
    places = {"lstm": [], "lstm/cell": LSTM, "batch_normalization": NORM, "sequential": [], "sequential/layers/dense": HIDDEN,
              "sequential/layers/dense_1": ANSWER}
    for name, weights in places.items():
        vars = file.create_group("layers/%s".replace("/", "\\") % name.replace("/", "\\")).create_group("vars")
        for i, (_, v) in enumerate(weights):
            vars[str(i)] = v
    file["optimizer/vars/0"] = numpy.int64(7)


def hdf5(name, write):
    with h5py.File(FOLDER + "/" + name, "w") as file:
        write(file)


def whole(file):
    file.attrs["keras_version"] = "2.15.0"
    file.attrs["backend"] = "tensorflow"
    file.attrs["model_config"] = json.dumps(MODEL)
    write_named(file.create_group("model_weights"), "golden/")


def unnamed(file):
    """The names of another session: what fits is found by order."""
    groups = [("lstm_4", LSTM), ("batch_normalization_9", NORM), ("sequential_2", HIDDEN + ANSWER)]
    file.attrs["layer_names"] = [n.encode() for n, _ in groups]
    for name, weights in groups:
        inner = file.create_group(name)
        names = ["%s_%d" % (name, i) for i in range(len(weights))]
        inner.attrs["weight_names"] = [n.encode() for n in names]
        for n, (_, v) in zip(names, weights):
            inner[n] = v


hdf5("model.h5", whole)
hdf5("named.h5", lambda file: write_named(file, ""))
hdf5("unnamed.h5", unnamed)
hdf5("counted.weights.h5", write_counted)
# TensorFlow 2.12 and 2.13 list each layer twice, as a layer and as one with weights, and count both.
hdf5("checkpoint.weights.h5", lambda file: write_counted(file, "_layer_checkpoint_dependencies", "dense_2"))
hdf5("windows.weights.h5", write_windows)
hdf5("other.h5", lambda file: file.create_dataset("temperature", data=numpy.zeros(3)))
with open(FOLDER + "/counted.weights.h5", "rb") as file:
    inner = file.read()


def archive(name, model, weights):
    with zipfile.ZipFile(FOLDER + "/" + name, "w", zipfile.ZIP_DEFLATED) as out:
        for inner, data in [("metadata.json", json.dumps({"keras_version": "3.3.3", "date_saved": "1980-01-01@00:00:00"})),
                            ("config.json", json.dumps(model)), ("model.weights.h5", weights)]:
            info = zipfile.ZipInfo(inner, STAMP)
            info.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(info, data)


archive("model.keras", MODEL, inner)

# Layers that draw: Keras 3 saves the state of their generators beside weights, TensorFlow 2.4 among them.
DRAWS = {"module": "keras", "class_name": "Sequential", "registered_name": None, "build_config": {"input_shape": [None, 4, 3, 1]},
         "config": {"name": "draws", "trainable": True, "dtype": POLICY, "layers": [
             {**KERAS3, "class_name": "InputLayer", "config": {"batch_shape": [None, 4, 3, 1], "dtype": "float32", "sparse": False,
                                                              "ragged": False, "name": "picture"}},
             layer("RandomFlip", "flip", [], seed=None, mode="horizontal", data_format="channels_last"),
             layer("RandomRotation", "turn", [], factor=[-0.1, 0.1], fill_mode="reflect", fill_value=0.0,
                   interpolation="bilinear", seed=3, data_format="channels_last"),
             layer("Flatten", "row", [], data_format="channels_last"),
             layer("Dropout", "drop", [], rate=0.5, seed=None, noise_shape=None),
             layer("Dense", "answer", [], units=2, activation="softmax")]}}
DRAWN = [("kernel", numpy.arange(24, dtype="f4").reshape(12, 2)), ("bias", numpy.array([24, 25], dtype="f4"))]


def drawn_counted(file):
    for name in ["input_layer", "flatten", "random_flip", "random_rotation", "dropout"]:
        file.create_group("layers/%s/vars" % name)
    for name in ["random_flip/generator", "random_rotation/generator", "dropout/seed_generator"]:
        file["layers/%s/vars/0" % name] = numpy.array([5, 0], dtype="u4")
    for i, (_, v) in enumerate(DRAWN):
        file["layers/dense/vars/%d" % i] = v


def drawn_named(file):
    file.attrs["model_config"] = json.dumps(DRAWS)
    weights = file.create_group("model_weights")
    state = [("StateVar", numpy.zeros(3, dtype="i8"))]  # may stand before weights, as in a nested model
    groups = {"flip": state, "turn": state, "row": [], "drop": [], "answer": state + [("answer/" + n, v) for n, v in DRAWN]}
    weights.attrs["layer_names"] = [n.encode() for n in groups]
    for name, arrays in groups.items():
        inner = weights.create_group(name)
        inner.attrs["weight_names"] = [(n + ":0").encode() for n, _ in arrays]
        for n, v in arrays:
            inner[n + ":0"] = v


hdf5("draws.h5", drawn_named)
hdf5("draws.weights.h5", drawn_counted)
with open(FOLDER + "/draws.weights.h5", "rb") as file:
    archive("draws.keras", DRAWS, file.read())
with open(FOLDER + "/model.json", "w") as file:
    json.dump(MODEL, file, indent=1)
numpy.savez(FOLDER + "/weights.npz", **{"%s/%s:0" % (l, n): v for l, w in LAYERS.items() for n, v in w})

# Layers that hold layers: their arrays are in groups by the attributes of Keras's classes.
WRAPPED = {"module": "keras.src.models.functional", "class_name": "Functional", "registered_name": "Functional",
           "build_config": {"input_shape": None},
           "config": {"name": "wrapped", "trainable": True, "layers": [
               layer("InputLayer", "sequence", [], batch_shape=[None, 6, 4], sparse=False, ragged=False),
               layer("Bidirectional", "both", node("sequence", [None, 6, 4]), merge_mode="concat",
                     layer={**KERAS3, "class_name": "LSTM", "config": {"name": "lstm", "units": 3, "return_sequences": True}}),
               layer("TimeDistributed", "each", node("both", [None, 6, 6]),
                     layer={**KERAS3, "class_name": "Dense", "config": {"name": "dense", "units": 5}}),
               layer("MultiHeadAttention", "heads", [{"args": 2 * node("each", [None, 6, 5])[0]["args"], "kwargs": {}}],
                     num_heads=2, key_dim=3)],
               "input_layers": [["sequence", 0, 0]], "output_layers": [["heads", 0, 0]]}}
WRAPPED["config"]["layers"][0]["config"]["dtype"] = "float32"
PLACES = {"bidirectional/forward_layer/cell": "both/forward_lstm", "bidirectional/backward_layer/cell": "both/backward_lstm",
          "time_distributed/layer": "each", "multi_head_attention/query_dense": "heads/query",
          "multi_head_attention/key_dense": "heads/key", "multi_head_attention/value_dense": "heads/value",
          "multi_head_attention/output_dense": "heads/attention_output"}
INSIDE = {"both/forward_lstm": [("kernel", values(4, 12)), ("recurrent_kernel", values(3, 12)), ("bias", values(12))],
          "both/backward_lstm": [("kernel", values(4, 12)), ("recurrent_kernel", values(3, 12)), ("bias", values(12))],
          "each": [("kernel", values(6, 5)), ("bias", values(5))],
          **{"heads/" + n: [("kernel", values(5, 2, 3)), ("bias", values(2, 3))] for n in ("query", "key", "value")},
          "heads/attention_output": [("kernel", values(2, 3, 5)), ("bias", values(5))]}


def write_wrapped(file):
    for place, name in PLACES.items():
        for i, (_, v) in enumerate(INSIDE[name]):
            file["layers/%s/vars/%d" % (place, i)] = v
    for empty in ["input_layer/vars", "bidirectional/vars", "bidirectional/layer/cell/vars", "bidirectional/forward_layer/vars",
                  "time_distributed/vars", "multi_head_attention/_softmax/vars", "multi_head_attention/vars"]:
        file.create_group("layers/" + empty)
    file.create_group("vars")


hdf5("wrapped.weights.h5", write_wrapped)
with open(FOLDER + "/wrapped.json", "w") as file:
    json.dump(WRAPPED, file, indent=1)
numpy.savez(FOLDER + "/wrapped.npz", **{"%s/%s:0" % (l, n): v for l, w in INSIDE.items() for n, v in w})
