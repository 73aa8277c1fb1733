#!/usr/bin/python3
"""Train the networks of tests/golden/masks.json, mask_*.json and seq2seq.json in PyTorch.

    UPDATE_GOLDEN=1 ctest --test-dir build/release -R train_masks

runs `script/make-mask-golden.py masks first.npz words.npz >tests/golden/mask_losses.txt`, and the same of the others:
from the weights that ipu-train begins with, the loss before each of 20 updates by SGD, of all items at once, then
metrics. A masked step leaves the state of a recurrent layer as it is; the sequences of a Bidirectional have zeros
there; attention adds -1e9 to scores that do not count, as Keras's Softmax does; the average is of the steps that
count. PyTorch has no such cells: they are written out here, in double.

Needs Debian's python3-torch and python3-numpy. Shares nothing but weights and words with ipu-train.
"""
import sys

import numpy as np
import torch

torch.set_default_dtype(torch.float64)
weights = {key: torch.tensor(array.astype("f8"), requires_grad=True) for key, array in np.load(sys.argv[2]).items()}
data = np.load(sys.argv[3])
words, classes = torch.tensor(data["x_train" if "x_train" in data else "x_train_to"].astype("i8")), torch.tensor(data["y_train"].astype("i8"))
mask = words != 0
left, last = {}, {}


def of(layer, *names):
    return [next(weights[key] for key in weights if key.startswith(layer) and key.split("/")[-1].split(":")[0] == name) for name in names]


def lstm(x, h, c, kernel, recurrent, bias):
    i, f, a, o = (x @ kernel + h @ recurrent + bias).chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * a.tanh()
    return o.sigmoid() * c.tanh(), c


def gru(x, h, c, kernel, recurrent, bias):
    z, r, a = (x @ kernel + bias[0]).chunk(3, 1)
    z2, r2, a2 = (h @ recurrent + bias[1]).chunk(3, 1)
    z = (z + z2).sigmoid()
    return z * h + (1 - z) * (a + (r + r2).sigmoid() * a2).tanh(), c


def simple(x, h, c, kernel, recurrent, bias):
    return (x @ kernel + h @ recurrent + bias).tanh(), c


def gru_before(x, h, c, kernel, recurrent, bias):
    """Without reset_after."""
    z, r, a = (x @ kernel + bias).chunk(3, 1)
    z2, r2, _ = (h @ recurrent).chunk(3, 1)
    z = (z + z2).sigmoid()
    return z * h + (1 - z) * (a + ((r + r2).sigmoid() * h) @ recurrent.chunk(3, 1)[2]).tanh(), c


def scan(cell, layer, x, backwards=False, zeros=False, stateful=False, start=None, mask=mask):
    """Outputs by the input's steps, and the last one worked out; the states go to `last`."""
    params = of(layer, "kernel", "recurrent_kernel", "bias")
    h = c = torch.zeros(len(x), params[1].shape[0])
    if stateful:
        h, c = left.get(layer, (h, c))
    h, c = start or (h, c)
    steps = [None] * x.shape[1]
    for s in reversed(range(len(steps))) if backwards else range(len(steps)):
        here = mask[:, s, None]
        next_h, next_c = cell(x[:, s], h, c, *params)
        h, c = torch.where(here, next_h, h), torch.where(here, next_c, c)
        steps[s] = torch.where(here, h, torch.zeros_like(h)) if zeros else h
    left[layer] = h.detach(), c.detach()
    last[layer] = h, c
    return torch.stack(steps, 1), h


def attend(x):
    def project(part):
        kernel, bias = (next(weights[key] for key in weights if key.startswith(f"heads/{part}/{name}")) for name in ("kernel", "bias"))
        return torch.einsum("bsf,fhk->bhsk", x, kernel) + bias[:, None, :]

    q, k, v = map(project, ("query", "key", "value"))
    scores = q @ k.transpose(2, 3) / k.shape[3] ** 0.5
    allowed = mask[:, None, :, None] & mask[:, None, None, :]
    context = torch.where(allowed, scores, torch.full_like(scores, -1e9)).softmax(3) @ v
    kernel, bias = (next(weights[key] for key in weights if key.startswith(f"heads/attention_output/{name}")) for name in ("kernel", "bias"))
    return torch.einsum("bhsk,hkf->bsf", context, kernel) + bias


def masks():
    x = of("embedding", "embeddings")[0][words]
    both = torch.cat([scan(lstm, "both/forward", x, zeros=True)[0], scan(lstm, "both/backward", x, True, True)[0]], 2)
    # go_backwards alone puts its steps out in the order in which they were worked out.
    flat = scan(gru, "gru", both, True)[0].flip(1).flatten(1)
    mean = (attend(both) * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    kernel, bias = of("out", "kernel", "bias")
    everything = torch.cat([mean, scan(simple, "last", both)[1], flat], 1)
    return (torch.nn.functional.cross_entropy(everything @ kernel + bias, classes),)


def mask_tokens():
    """Loss, accuracy, crossentropy, weighted accuracy: of the words that count, each of which has a class and a weight."""
    x = of("embedding", "embeddings")[0][words]
    both = torch.cat([scan(lstm, "both/forward", x, zeros=True)[0], scan(lstm, "both/backward", x, True, True)[0]], 2)
    kernel, bias = of("out", "kernel", "bias")
    scores, right = (scan(gru, "gru", both)[0] @ kernel + bias)[mask], classes[mask]
    weight = torch.tensor(data["sample_weight_train"].astype("f8"))[mask]
    each = torch.nn.functional.cross_entropy(scores, right, reduction="none")
    hits = (scores.argmax(1) == right).double()
    return (each * weight).mean(), hits.mean(), each.mean(), (hits * weight).sum() / weight.sum()


def mask_stateful():
    """The batch begins where it ended before the last update; no gradient goes there."""
    x = of("embedding", "embeddings")[0][words]
    kernel, bias = of("out", "kernel", "bias")
    scores = scan(gru, "gru", scan(lstm, "lstm", x, stateful=True)[0], stateful=True)[0] @ kernel + bias
    weight = torch.tensor(data["sample_weight_train"].astype("f8"))[mask]
    return ((torch.nn.functional.cross_entropy(scores[mask], classes[mask], reduction="none") * weight).mean(),)


def mask_turns():
    """Two calls of a stateful layer: the second begins where the first has ended, the next batch where the second has."""
    x = of("e", "embeddings")[0][words]
    first = scan(gru, "gru", x, stateful=True)[0]
    second = scan(gru, "gru", first, stateful=True)[0]
    kernel, bias = of("out", "kernel", "bias")
    scores = (first + second) @ kernel + bias
    weight = torch.tensor(data["sample_weight_train"].astype("f8"))[mask]
    return ((torch.nn.functional.cross_entropy(scores[mask], classes[mask], reduction="none") * weight).mean(),)


def seq2seq():
    """Loss and accuracy of the words that count."""
    words_from = torch.tensor(data["x_train_from"].astype("i8"))
    known = words_from != 0
    x = of("from_words", "embeddings")[0][words_from]
    scan(lstm, "encoder", x, mask=known)
    read = scan(gru, "reader", x, mask=known)[0]
    mean = (read * known[..., None]).sum(1) / known.sum(1, keepdim=True)
    said = scan(lstm, "decoder", of("to_words", "embeddings")[0][words], start=last["encoder"])[0]
    state = mean + last["reader"][0]
    kernel, bias = of("out", "kernel", "bias")
    scores = (scan(gru_before, "writer", said, start=(state, state))[0] @ kernel + bias)[mask]
    return torch.nn.functional.cross_entropy(scores, classes[mask]), (scores.argmax(1) == classes[mask]).double().mean()


def mask_ignored():
    """Loss, accuracy, perplexity: the loss ignores -1, the accuracy takes it for a class that nobody predicts."""
    kernel, bias = of("out", "kernel", "bias")
    scores, right = (torch.tensor(data["x_train"].astype("f8")) @ kernel + bias).flatten(0, 1), classes.flatten()
    entropy = torch.nn.functional.cross_entropy(scores, right, ignore_index=-1)
    return entropy, (scores.argmax(1) == right).double().mean(), entropy.exp()


def normal(layer, x):
    """BatchNormalization by the steps that count; the moving statistics go to `left`."""
    gamma, beta = of(layer, "gamma", "beta")
    counts, number = mask[..., None], mask.sum()
    mean = (x * counts).sum((0, 1)) / number
    variance = ((x - mean) ** 2 * counts).sum((0, 1)) / number
    moving = left.get(layer, (torch.zeros_like(mean), torch.ones_like(mean)))
    left[layer] = tuple(0.75 * old + 0.25 * new.detach() for old, new in zip(moving, (mean, variance)))
    return (x - mean) / (variance + 1e-3).sqrt() * gamma + beta


def mask_normal():
    """The last layer reads padding too, which has been normalised with the rest."""
    x = normal("first", of("embedding", "embeddings")[0][words])
    kernel, bias = of("out", "kernel", "bias")
    scores = normal("second", scan(gru, "gru", x)[0]).flatten(1) @ kernel + bias
    return (torch.nn.functional.cross_entropy(scores, classes),)


def mask_states():
    """States of each direction begin the like one of the next Bidirectional."""
    x = of("e", "embeddings")[0][words]
    ends = [scan(lstm, f"ends/{way}", x, way == "backward")[1] for way in ("forward", "backward")]
    first, second = last["ends/forward"], last["ends/backward"]
    again = scan(lstm, "again/forward", x, zeros=True, start=first)[0] + scan(lstm, "again/backward", x, True, True, start=second)[0]
    kernel, bias = of("start", "kernel", "bias")
    start = torch.cat(ends, 1) @ kernel + bias
    two = [scan(gru, f"two/{way}", x, way == "backward", start=(start, start))[1] for way in ("forward", "backward")]
    mean = (again * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    kernel, bias = of("out", "kernel", "bias")
    return (torch.nn.functional.cross_entropy(torch.cat([mean, *two, first[0], second[1]], 1) @ kernel + bias, classes),)


print(f"# PyTorch {torch.__version__}; made by script/make-mask-golden.py")
for update in range(20):
    now = globals()[sys.argv[1]]()
    print(update, *(f"{number.item():.6f}" for number in now))
    now[0].backward()
    with torch.no_grad():
        for weight in weights.values():
            if weight.grad is not None:
                weight -= 0.5 * weight.grad
                weight.grad = None
if sys.argv[1] == "mask_normal":
    print("moving", *(f"{number.sum().item():.6f}" for layer in ("first", "second") for number in left[layer]))
