#!/usr/bin/env python3
"""A PyTorch training of handwritten digits, watched layer by layer.

    python3 watch_torch.py run.db [LEARNING_RATE]       # 1000 ends in NaN: which layer had it first?
"""
import sys

import ipuscope
import torch
from torch import nn

torch.manual_seed(1)
model = nn.Sequential(nn.Conv2d(1, 16, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(2704, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=float(sys.argv[2]) if len(sys.argv) > 2 else 0.1)
digits = torch.rand(10, 1, 28, 28) > 0.5  # noise of MNIST's shape, a picture for each digit

ipuscope.record(sys.argv[1], quiet=True)
ipuscope.watch(model, optimizer)
for step in range(100):
    with ipuscope.span("load"):
        labels = torch.randint(0, 10, (64,))
        pictures = digits[labels] + 0.3 * torch.randn(64, 1, 28, 28)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(pictures), labels)
    with ipuscope.span("backward"):
        loss.backward()
    optimizer.step()
    ipuscope.loss(loss)
    if ipuscope.hits("nonfinite"):
        print(f"step {step}: a number is not finite")
        break
print(f"loss {loss:.4f} after {step + 1} steps")
