#!/usr/bin/python3
"""Train the network of tests/golden/outputs.json in PyTorch, from the weights that ipu-train begins with.

    UPDATE_GOLDEN=1 ctest --test-dir build/release -R train_outputs

runs `script/make-outputs-golden.py first.npz data.npz >tests/golden/outputs_losses.txt`: the loss and each output's
own before each of 20 updates by SGD, of all items at once, weighted by item.

Needs Debian's python3-torch and python3-numpy. Shares nothing but weights and data with ipu-train.
"""
import sys

import numpy as np
import torch

torch.set_default_dtype(torch.float64)
weights = {key: torch.tensor(array.astype("f8"), requires_grad=True) for key, array in np.load(sys.argv[1]).items()}
data = {key: torch.tensor(array) for key, array in np.load(sys.argv[2]).items()}
x, kinds, places = data["x_train"].double(), data["y_train_kind"].long(), data["y_train_place"].double()
counts, place_counts = data["sample_weight_train"].double(), data["sample_weight_train_place"].double()


def dense(name, x):
    kernel, bias = (next(weights[key] for key in weights if key.startswith(f"{name}/{part}")) for part in ("kernel", "bias"))
    return x @ kernel + bias


print(f"# PyTorch {torch.__version__}; made by script/make-outputs-golden.py")
for update in range(20):
    first = dense("first", x).tanh()
    scores = dense("kind", first)
    place = dense("place", torch.cat([dense("second", first).tanh(), scores.softmax(1)], 1))
    kind_loss = (torch.nn.functional.cross_entropy(scores, kinds, reduction="none") * counts).mean()
    place_loss = (((place - places) ** 2).mean(1) * place_counts).mean()
    loss = kind_loss + 0.75 * place_loss
    print(f"{update} {loss.item():.6f} {kind_loss.item():.6f} {place_loss.item():.6f}")
    loss.backward()
    with torch.no_grad():
        for weight in weights.values():
            weight -= 0.2 * weight.grad
            weight.grad = None
