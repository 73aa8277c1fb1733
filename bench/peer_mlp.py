#!/usr/bin/python3
"""PyTorch's training step of bench_mlp's network, in ms: peer_mlp.py THREADS ROUNDS

zero_grad, forward, loss, backward and optimizer step on data in memory. Prints the median over
rounds of 20 steps. Needs Debian's python3-torch.
"""
import os
import sys
import time

threads, rounds = int(sys.argv[1]), int(sys.argv[2])
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = str(threads)  # read when the libraries are loaded

import torch  # noqa: E402
from torch import nn  # noqa: E402

torch.set_num_threads(threads)
torch.manual_seed(1)
model = nn.Sequential(
    nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x, y = torch.rand(32, 784), torch.randint(0, 10, (32,))


def step():
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()


STEPS, samples = 20, []
for _ in range(10):
    step()
for _ in range(rounds):
    begin = time.perf_counter()
    for _ in range(STEPS):
        step()
    samples.append((time.perf_counter() - begin) / STEPS * 1e3)
print("%.4f" % sorted(samples)[len(samples) // 2])
