#!/usr/bin/python3
"""Write tests/golden/torch_mlp.txt: what PyTorch says of the first 20 micro-batches of an MLP.

Needs Debian's python3-torch and python3-numpy. Inputs are made by a linear congruential generator
that tests/test_oracle.c repeats, so no other file is needed. Run from the source tree:

    /usr/bin/python3 script/make-torch-golden.py > tests/golden/torch_mlp.txt
"""
import numpy as np
import torch

SIZES = [784, 256, 128, 10]
BATCH, STEPS, RATE = 32, 20, 0.01
PROBES = 8  # weights of each parameter that are written down


class Lcg:
    """u = the upper 24 bits of x' = 1664525 x + 1013904223 (mod 2^32), in [0, 1)."""

    def __init__(self, seed):
        self.x = seed

    def next(self):
        self.x = (1664525 * self.x + 1013904223) & 0xFFFFFFFF
        return self.x >> 8

    def floats(self, count):
        return np.array([self.next() for _ in range(count)], dtype=np.float32) * np.float32(2.0**-24)


def weights():
    """Kernels [inputs, outputs] uniform in +-sqrt(6 / (inputs + outputs)); biases zero."""
    lcg, out = Lcg(1), []
    for n_in, n_out in zip(SIZES, SIZES[1:]):
        limit = np.float32(np.sqrt(6.0 / (n_in + n_out)))
        u = lcg.floats(n_in * n_out)
        out.append(((u * np.float32(2) - np.float32(1)) * limit).reshape(n_in, n_out))
        out.append(np.zeros(n_out, dtype=np.float32))
    return out


def batches():
    """The label first, then 784 pixels u / 2, and 1/2 more where pixel % 10 is the label."""
    lcg = Lcg(2)
    for _ in range(STEPS):
        x = np.empty((BATCH, SIZES[0]), dtype=np.float32)
        y = np.empty(BATCH, dtype=np.int64)
        for i in range(BATCH):
            y[i] = lcg.next() % 10
            x[i] = lcg.floats(SIZES[0]) * np.float32(0.5)
            x[i, y[i] :: 10] += np.float32(0.5)
        yield torch.from_numpy(x), torch.from_numpy(y)


def train(name, accumulation):
    params = [torch.from_numpy(w).clone().requires_grad_(True) for w in weights()]
    optimizer = torch.optim.SGD(params, lr=RATE)
    for step, (x, y) in enumerate(batches()):
        h = torch.relu(x @ params[0] + params[1])
        h = torch.relu(h @ params[2] + params[3])
        loss = torch.nn.functional.cross_entropy(h @ params[4] + params[5], y)
        loss.backward()  # gradients add up: the sum over the micro-batches
        print(f"{name} loss {step} {loss.item():.9g}")
        if (step + 1) % accumulation == 0:
            optimizer.step()
            optimizer.zero_grad()
    for index, param in enumerate(params):
        flat = param.detach().reshape(-1)
        for probe in range(PROBES):
            at = probe * (flat.numel() - 1) // (PROBES - 1)
            print(f"{name} weight {index} {at} {flat[at].item():.9g}")
        print(f"{name} norm {index} {flat.double().norm().item():.9g}")


torch.set_num_threads(1)
print(f"# PyTorch {torch.__version__}; made by script/make-torch-golden.py")
train("plain", 1)
train("accumulate4", 4)
