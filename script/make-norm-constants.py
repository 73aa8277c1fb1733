#!/usr/bin/python3
"""Print what PyTorch's batch_norm makes of the input of tests/trainer/test_layer_norm.c, in double."""
import torch


def fill(count, seed, low, high):
    """math_fill() of tests/support/math.c."""
    low, high = torch.tensor([low, high], dtype=torch.float32)
    units = []
    for _ in range(count):
        seed = (1664525 * seed + 1013904223) & 0xFFFFFFFF
        units.append((seed >> 8) * 2.0**-24)
    return (low + (high - low) * torch.tensor(units, dtype=torch.float32)).double()


def show(name, tensor):
    print(name + ":", ", ".join("%.8f" % value for value in tensor.detach().flatten()))


x = fill(18, 1, -2, 3).reshape(6, 3).requires_grad_()
gamma, beta = fill(3, 2, 0.5, 1.5).requires_grad_(), fill(3, 3, -1, 1).requires_grad_()
mean, variance = fill(3, 4, -1, 1), fill(3, 5, 0.5, 2)
y = torch.nn.functional.batch_norm(x, mean, variance, gamma, beta, True, 0.25, 1e-3)
y.backward(fill(18, 6, -1, 1).reshape(6, 3))
show("y", y)
show("moving mean", mean)
show("moving variance", variance)
show("gamma's gradient", gamma.grad)
show("beta's gradient", beta.grad)
show("x's gradient", x.grad)
show("inference", torch.nn.functional.batch_norm(x, mean, variance, gamma, beta, False, 0.25, 1e-3))
