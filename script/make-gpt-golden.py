#!/usr/bin/python3
"""Train the GPT of a run file in PyTorch, from the weights that ipu-train begins with and on the same batches.

    ipu-train RUN --data.path TEXT --fit null --weights.save first.npz
    /usr/bin/python3 script/make-gpt-golden.py RUN first.npz TEXT --updates 50 --losses log.csv

prints the loss of each weight update and the largest difference from that of ipu-train, whose CSVLogger wrote
log.csv in epochs of one weight update. tests/golden/gpt_losses.txt is made without --losses; the commands are
those of tests/trainer/train_twin.sh. --evaluate says the loss of the run's evaluation, too.

Needs Debian's python3-torch and python3-numpy. Nothing but the run file, the weights and the text is shared with
ipu-train: windows, their order (Philox4x32-10, as common/rng.h says it) and the network are written out here.
Layers are those of examples/gpt.json. The optimizer is torch.optim.AdamW, whose epsilon is inside of the bias
correction: it is scaled in each update, as Keras's stands outside.
"""
import argparse
import csv
import json
import math
import time

import numpy as np
import torch
import torch.nn.functional as F

M32, M64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


# ---- batches -------------------------------------------------------------------------------------


def mix(x):
    """SplitMix64's finalizer."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & M64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & M64
    return x ^ (x >> 31)


def random_words(seed, stream, step):
    """Philox4x32-10; the stream is the FNV-1a of its name."""
    name = 0x811C9DC5
    for byte in stream.encode():
        name = (name ^ byte) * 0x01000193 & M32
    key = mix((mix(seed) + name * 0x9E3779B97F4A7C15) & M64)
    number = 0
    while True:
        c, k = [number, step & M32, step >> 32, 0], [key & M32, key >> 32]
        for _ in range(10):
            p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [q >> 32 ^ c[1] ^ k[0], q & M32, p >> 32 ^ c[3] ^ k[1], p & M32]
            k = [(k[0] + 0x9E3779B9) & M32, (k[1] + 0xBB67AE85) & M32]
        yield from c
        number += 1


def permutation(count, seed, epoch):
    """Fisher-Yates from the end; numbers below a bound by Lemire's method."""
    words, items = random_words(seed, "data.order", epoch), list(range(count))
    for bound in range(count, 1, -1):
        product = next(words) * bound
        while product & M32 < (1 << 32) % bound:
            product = next(words) * bound
        other = product >> 32
        items[bound - 1], items[other] = items[other], items[bound - 1]
    return items


def windows(data, path):
    """Inputs and targets [windows, length] of the training and of the test part."""
    text, length = open(path, "rb").read(), data["sequence_length"]
    if data.get("tokens", "characters") == "characters":
        text = text.decode()
        names = {c: i for i, c in enumerate(sorted(set(text)))}
        text = [names[c] for c in text]
    tokens = torch.from_numpy(np.array(list(text), dtype=np.int64))
    count = (len(tokens) - 1) // length
    x, y = (tokens[i : i + count * length].reshape(count, length) for i in range(2))
    left = math.floor(count * (1.0 - data.get("validation_split", 0)))
    return (x[:left], y[:left]), (x[left:], y[left:])


def batches(part, size, seed=None):
    """Without a seed in the order of the text."""
    x, y = part
    epoch = 0
    while True:
        order = range(len(x)) if seed is None else permutation(len(x), seed, epoch)
        for at in range(0, len(x) // size * size, size):
            items = list(order[at : at + size])
            yield x[items], y[items]
        epoch += 1


# ---- the network ---------------------------------------------------------------------------------


def attention(config, w, x, causal):
    """Kernels [features, heads, width], that of the output [heads, width, features]."""
    heads, width = config["num_heads"], config["key_dim"]
    n, length = x.shape[:2]

    def project(name):
        kernel = w(f"{name}/kernel")
        y = torch.addmm(w(f"{name}/bias").reshape(-1), x.reshape(n * length, -1), kernel.reshape(kernel.shape[0], -1))
        return y.reshape(n, length, heads, -1).transpose(1, 2)

    q, k, v = (project(name) for name in ("query", "key", "value"))
    scores = q @ k.transpose(2, 3) / math.sqrt(width)
    if causal:
        scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), -math.inf)
    y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, length, -1)
    kernel = w("attention_output/kernel")
    return y @ kernel.reshape(-1, kernel.shape[-1]) + w("attention_output/bias")


def layer(kind, config, w, inputs, call):
    x = inputs[0]
    if kind == "Embedding":
        return F.embedding(x, w("embeddings"))
    if kind == "PositionEmbedding":
        return w("position_embeddings")[: x.shape[1]].expand_as(x)
    if kind == "Add":
        return inputs[0] + inputs[1]
    if kind == "LayerNormalization":
        return F.layer_norm(x, x.shape[-1:], w("gamma"), w("beta"), config.get("epsilon", 1e-3))
    if kind == "MultiHeadAttention":
        return attention(config, w, x, call.get("use_causal_mask", False))
    if kind == "Dense":
        y = x @ w("kernel") + w("bias")
        return F.gelu(y) if config.get("activation") == "gelu" else y  # a softmax is the loss's
    raise SystemExit(f"{config['name']}: {kind} is no layer of examples/gpt.json")


def logits(layers, params, tokens):
    values = {}
    for row in layers:
        config, nodes = row["config"], row["inbound_nodes"]
        w = lambda name, of=config["name"]: params[f"{of}/{name}:0"]
        inputs = [values[node[0]] for node in nodes[0]] if nodes else [tokens]
        call = nodes[0][0][3] if nodes else {}
        values[config["name"]] = layer(row["class_name"], config, w, inputs, call) if nodes else tokens
    return values[layers[-1]["config"]["name"]]


def loss_of(layers, params, x, y):
    out = logits(layers, params, x)
    return F.cross_entropy(out.reshape(-1, out.shape[-1]), y.reshape(-1))


# ---- training ------------------------------------------------------------------------------------


def update(optimizer, params, config):
    if "global_clipnorm" in config:
        torch.nn.utils.clip_grad_norm_(params, config["global_clipnorm"])
    group = optimizer.param_groups[0]
    done = optimizer.state[params[0]]["step"] if optimizer.state else 0
    group["eps"] = config.get("epsilon", 1e-7) / math.sqrt(1 - group["betas"][1] ** (int(done) + 1))
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


parser = argparse.ArgumentParser()
parser.add_argument("run")
parser.add_argument("weights")
parser.add_argument("text")
parser.add_argument("--updates", type=int, default=50)
parser.add_argument("--losses", help="what ipu-train's CSVLogger wrote")
parser.add_argument("--evaluate", action="store_true")
parser.add_argument("--threads", type=int, default=1)
args = parser.parse_args()

torch.set_num_threads(args.threads)
run = json.load(open(args.run))
layers = run["model"]["config"]["layers"]
config = run["compile"]["optimizer"]["config"]
size = run["data"]["batch_size"]
accumulation = (run.get("gradient_accumulation") or {}).get("steps_per_replica", 1)
train, test = windows(run["data"], args.text)
feed = batches(train, size, run.get("fit", {}).get("seed", 1))
params = {k: torch.from_numpy(v.copy()).requires_grad_(True) for k, v in np.load(args.weights).items()}
optimizer = torch.optim.AdamW(params.values(), config["learning_rate"], weight_decay=config["weight_decay"])
theirs = [float(row["loss"]) for row in csv.DictReader(open(args.losses))] if args.losses else None
most = 0.0

print(f"# PyTorch {torch.__version__}; made by script/make-gpt-golden.py")
began = time.monotonic()
for number in range(args.updates):
    mean = 0.0
    for _ in range(accumulation):
        loss = loss_of(layers, params, *next(feed))
        loss.backward()  # gradients add up
        mean += loss.item() / accumulation
    update(optimizer, list(params.values()), config)
    if theirs and number < len(theirs):
        most = max(most, abs(mean - theirs[number]))
        print(f"{number} {mean:.6f} {theirs[number]:.6f}")
    else:
        print(f"{number} {mean:.6f}")
if theirs:
    print(f"# largest difference {most:.3g}")
if args.evaluate:
    print(f"# {args.updates} updates in {time.monotonic() - began:.1f} s")
    feed = batches(test, size)
    steps = run["evaluate"]["steps"]
    with torch.no_grad():
        mean = sum(loss_of(layers, params, *next(feed)).item() for _ in range(steps)) / steps
    print(f"# evaluation: loss {mean:.6f}, {mean / math.log(2):.4f} bits per token")
