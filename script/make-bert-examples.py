#!/usr/bin/env python3
"""Write examples/bert.json, bert-large.json and bert-small.json.

    script/make-bert-examples.py examples
    script/make-bert-examples.py FOLDER --length 512 --predicted 76     # of the second phase

BERT's encoder with its masked-LM head. Which layers a stage has and which IPU runs it is as in Graphcore's
public examples (graphcore/examples, nlp/bert) at sequence length 128: Base in four replicas of 4 IPUs
(tensorflow2/configs/pretrain_base_128_phase1); Large on 8 IPUs (tensorflow1/configs/
pretrain_large_groupbert_128_adam_8IPU), and with --four-ipus in four replicas of 4 IPUs (tensorflow2/configs/
pretrain_large_128_phase1). The head is on the IPU of the embeddings.

Micro-batches and memory proportions are those that fit here, where variables are float32 and Graphcore's were
float16; --four-ipus has Graphcore's, and does not fit.

As there, the tokens to be predicted stand first in the sequence (their positions are an input), so that the
head is of the first PREDICTED ones alone. What is left out: the next-sentence head, attention masks, and the
head's matrix being the embedding's: here it has one of its own.
"""
import argparse
import json

parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("--length", type=int, default=128, help="of Base's and Large's sequences; micro-batches shrink with it")
parser.add_argument("--predicted", type=int, default=20, help="tokens of each that are")
args = parser.parse_args()

BASE = dict(name="bert", layers=12, width=768, heads=12, length=args.length, predicted=args.predicted, vocabulary=30522)
LARGE = dict(BASE, name="bert_large", layers=24, width=1024, heads=16)
SMALL = dict(name="bert_small", layers=2, width=64, heads=4, length=32, predicted=5, vocabulary=256)

INPUTS = ["tokens", "positions", "segments"]
EPSILON = 1e-12


def row(kind, name, inputs=(), call=None, **config):
    nodes = [[[other, 0, 0, {} if i else call or {}] for i, other in enumerate(inputs)]]
    config = {"name": name, **config}
    return {"class_name": kind, "config": config, "name": name, "inbound_nodes": nodes if inputs else []}


def normal(kind, name, inputs, **config):
    """BERT's initial weights."""
    start = {"class_name": "TruncatedNormal", "config": {"stddev": 0.02}}
    key = "embeddings_initializer" if kind == "Embedding" else "kernel_initializer"
    return row(kind, name, inputs, config.pop("call", None), **config, **{key: start})


def added(rows, name, x, y):
    """Dropout, the residual connection, and the norm behind it."""
    rows += [
        row("Dropout", f"{name}_dropout", [y], rate=0.1),
        row("Add", f"{name}_add", [x, f"{name}_dropout"]),
        row("LayerNormalization", f"{name}_norm", [f"{name}_add"], epsilon=EPSILON),
    ]
    return f"{name}_norm"


def block(rows, i, x, width, heads):
    attention, up, down = f"attention_{i}", f"up_{i}", f"down_{i}"
    rows.append(normal("MultiHeadAttention", attention, [x], call={"value": [x, 0, 0]}, num_heads=heads, key_dim=width // heads))
    x = added(rows, attention, x, attention)
    rows.append(normal("Dense", up, [x], units=4 * width, activation="gelu"))
    rows.append(normal("Dense", down, [up], units=width))
    return added(rows, down, x, down)


def model(name, layers, width, heads, length, predicted, vocabulary):
    sizes = [vocabulary, max(length, 512), 2]
    rows = [row("InputLayer", i, batch_input_shape=[None, length], dtype="int32") for i in INPUTS]
    for i, size in zip(INPUTS, sizes):
        rows.append(normal("Embedding", f"{i}_embedding", [i], input_dim=size, output_dim=width))
    rows.append(row("Add", "embeddings", [f"{i}_embedding" for i in INPUTS]))
    rows.append(row("LayerNormalization", "embeddings_norm", ["embeddings"], epsilon=EPSILON))
    rows.append(row("Dropout", "embeddings_dropout", ["embeddings_norm"], rate=0.1))
    x = "embeddings_dropout"
    for i in range(layers):
        x = block(rows, i, x, width, heads)
    rows += [
        row("Cropping1D", "predicted", [x], cropping=[0, length - predicted]),
        normal("Dense", "transform", ["predicted"], units=width, activation="gelu"),
        row("LayerNormalization", "transform_norm", ["transform"], epsilon=EPSILON),
        normal("Dense", "vocabulary", ["transform_norm"], units=vocabulary, activation="softmax"),
    ]
    config = {"name": name, "layers": rows, "input_layers": [[i, 0, 0] for i in INPUTS], "output_layers": [["vocabulary", 0, 0]]}
    return {"class_name": "Functional", "config": config}


def run(description, shape, batch, accumulation, replicas, ipus, stages, **more):
    """LAMB, as Graphcore's, and a weight update of each replica an execution."""
    optimizer = {"class_name": "LAMB", "config": {"learning_rate": 0.006, "weight_decay_rate": 0.01}}
    out = {
        "description": description,
        "model": model(**shape),
        "compile": {"optimizer": optimizer, "loss": "sparse_categorical_crossentropy"},
        "data": {"name": "npz", "inputs": INPUTS, "batch_size": batch},
        "fit": {},
        "gradient_accumulation": {"reduction": "mean"},
        "ipu": {},
        "pipeline": stages,
    }
    for section, keys in (*updates(batch, accumulation, replicas, ipus).items(), *more.items()):
        out[section] = {**out.get(section, {}), **keys}
    return out


def updates(batch, accumulation, replicas, ipus):
    return {
        "compile": {"steps_per_execution": accumulation},
        "data": {"batch_size": batch},
        "fit": {"steps_per_epoch": accumulation * replicas},
        "gradient_accumulation": {"steps_per_replica": accumulation},
        "ipu": {"auto_select_ipus": replicas * ipus},
    }


def starts(blocks):
    """The layer with which each stage but the first begins; the head is the last, back on the first IPU."""
    return {layer: i + 1 for i, layer in enumerate([*(f"attention_{n}" for n in blocks), "predicted"])}


def stage_list(shape, blocks):
    """The same as a list: what a flag's patch replaces whole."""
    stage, stages = 0, []
    for layer in model(**shape)["config"]["layers"]:
        stage = starts(blocks).get(layer["name"], stage)
        stages.append(stage)
    return stages


def pipeline(stages, shares, **more):
    """@shares: each IPU's availableMemoryProportion of products."""
    options = [{"matmul": {"availableMemoryProportion": share}} for share in (*shares, shares[0])]
    return {
        "stages": stages,
        "schedule": "Grouped",
        "device_mapping": [*range(len(shares)), 0],
        "forward_propagation_stages_poplar_options": options,
        "backward_propagation_stages_poplar_options": options,
        **more,
    }


def batch(most):
    """As many as at length 128, token by token."""
    return max(most * 128 // args.length, 1)


# What the optimizer keeps is in the host's memory, a share of it for each replica.
OFFLOADED = {"offload_weight_update_variables": True, "replicated_optimizer_state_sharding": True}
# Half precision on the device, activations computed again.
DEVICE = {
    "compile": {"dtype_policy": "mixed_float16"},
    "gradient_accumulation": {"dtype": "float16"},
    "ipu": {"allow_recompute": True, "matmuls": {"partialsType": "half"}},
}


BASE_STAGES, LARGE_STAGES, FOUR = [0, 4, 8], [0, 3, 6, 9, 13, 17, 21], [3, 10, 17]
RUNS = {
    "bert": run("BERT-Base's pre-training, for ipu-plan: 4 x 4 IPUs", BASE, batch(16), 1020, 4, 4,
                pipeline(starts(BASE_STAGES), [0.2] * 4, **OFFLOADED), **DEVICE),
    "bert-large": run("BERT-Large's pre-training, for ipu-plan: 2 x 8 IPUs", LARGE, batch(8), 4104, 2, 8,
                      pipeline(starts(LARGE_STAGES), [0.15] * 8, **OFFLOADED), **DEVICE,
                      flags={"--one-replica": {**updates(batch(4), 8208, 1, 8), "pipeline": {"replicated_optimizer_state_sharding": False}},
                             "--four-ipus": {**updates(batch(8), 2040, 4, 4), "pipeline": pipeline(stage_list(LARGE, FOUR), [0.15, 0.19, 0.25, 0.25], **OFFLOADED)}}),
    "bert-small": run("A small BERT that learns a text's masked bytes: two IPUs", SMALL, 8, 6, 1, 2,
                      pipeline(starts([0]), [0.6] * 2),
                      compile={"optimizer": {"class_name": "LAMB", "config": {"learning_rate": 0.008, "weight_decay_rate": 0.01}},
                               "metrics": ["accuracy"], "steps_per_execution": 60},
                      fit={"steps_per_epoch": 600}, evaluate={"steps": 3, "steps_per_execution": 3},
                      flags={"--cpu": {"ipu": None, "pipeline": None}}),
}


def text(value, depth=0, wide=2):
    """Objects of the first levels on lines of their own, a layer on a line."""
    if isinstance(value, dict) and depth < wide and value:
        inner = ",\n".join("\t" * (depth + 1) + json.dumps(k) + ": " + text(v, depth + 1, 4 if k in ("model", "config") else wide) for k, v in value.items())
        return "{\n" + inner + "\n" + "\t" * depth + "}"
    if isinstance(value, list) and depth == 3 and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join("\t" * 4 + json.dumps(v) for v in value) + "\n" + "\t" * 3 + "]"
    return json.dumps(value)


for name, what in RUNS.items():
    with open(f"{args.folder}/{name}.json", "w") as out:
        print(text(what), file=out)
