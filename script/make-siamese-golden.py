#!/usr/bin/python3
"""Train the network of tests/golden/siamese.json in PyTorch, from ipu-train's first weights.

    UPDATE_GOLDEN=1 ctest --test-dir build/release -R train_shared

runs `script/make-siamese-golden.py first.npz pairs.npz >tests/golden/siamese_losses.txt`: the loss before each of 20 updates by
Adam, of all items at once and with the regulariser, then that of the test set after the update, which reads the moving statistics:
each call of the normalisation has updated them. Everything in double; Keras's Adam and normalisation are written out.

Needs Debian's python3-torch and python3-numpy. Shares nothing but weights and words with ipu-train.
"""
import sys

import numpy as np
import torch

torch.set_default_dtype(torch.float64)
weights = {key.split(":")[0]: torch.tensor(array.astype("f8")) for key, array in np.load(sys.argv[1]).items()}
data = {key: torch.tensor(array.astype("i8")) for key, array in np.load(sys.argv[2]).items()}
moving = {name: weights.pop(f"norm/moving_{name}") for name in ("mean", "variance")}
for weight in weights.values():
    weight.requires_grad = True


def encode(words, training):
    x, h = weights["table/embeddings"][words], torch.zeros(len(words), 6)
    kernel, recurrent, bias = (weights[f"gru/{name}"] for name in ("kernel", "recurrent_kernel", "bias"))
    for s in range(x.shape[1]):
        z, r, a = (x[:, s] @ kernel + bias[0]).chunk(3, 1)
        z2, r2, a2 = (h @ recurrent + bias[1]).chunk(3, 1)
        z = (z + z2).sigmoid()
        h = z * h + (1 - z) * (a + (r + r2).sigmoid() * a2).tanh()
    for _ in range(2):
        h = (h @ weights["mix/kernel"] + weights["mix/bias"]).tanh()
    mean, variance = (h.mean(0), h.var(0, unbiased=False)) if training else moving.values()
    if training:
        for name, value in (("mean", mean), ("variance", variance)):
            moving[name] = 0.7 * moving[name] + 0.3 * value.detach()
    return (h - mean) / (variance + 1e-3).sqrt() * weights["norm/gamma"] + weights["norm/beta"]


def loss(part, training):
    scores = [(encode(data[f"x_{part}_{side}"], training) @ weights["score/kernel"] + weights["score/bias"]).sigmoid() for side in ("left", "right")]
    out = scores[0] * scores[1] @ weights["out/kernel"] + weights["out/bias"]
    return torch.nn.functional.cross_entropy(out, data[f"y_{part}"]) + 0.01 * (weights["mix/kernel"] ** 2).sum()


print(f"# PyTorch {torch.__version__}; made by script/make-siamese-golden.py")
slots = {key: (torch.zeros_like(weight), torch.zeros_like(weight)) for key, weight in weights.items()}
for update in range(20):
    now = loss("train", True)
    now.backward()
    with torch.no_grad():
        rate = 0.05 * (1 - 0.999 ** (update + 1)) ** 0.5 / (1 - 0.9 ** (update + 1))
        for key, weight in weights.items():
            first, second = slots[key]
            first += 0.1 * (weight.grad - first)
            second += 0.001 * (weight.grad**2 - second)
            weight -= rate * first / (second.sqrt() + 1e-7)
            weight.grad = None
        print(update, f"{now.item():.6f} {loss('test', False).item():.6f}")
