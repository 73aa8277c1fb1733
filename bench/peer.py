#!/usr/bin/python3
"""PyTorch's training step of the networks of bench_train: peer.py NETWORK THREADS SECONDS

NETWORK: mlp128, mlp256, convnet or resnet50. A step is zero_grad, forward, loss, backward and
optimizer on data in memory. Prints the median, the least and the lower quartile of processor time in ms, each in the
faster of PyTorch's two layouts, and the process's peak memory in MB. Needs Debian's python3-torch. The C library's allocator is told to keep
freed memory: without that each step faults its activations in anew, and PyTorch is slower.
"""
import os
import resource
import sys
import time

network, threads, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
SETTINGS = {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
SETTINGS |= {"MALLOC_TRIM_THRESHOLD_": "100000000000", "MALLOC_MMAP_THRESHOLD_": "100000000000"}
if any(os.environ.get(key) != value for key, value in SETTINGS.items()):  # read when libraries are loaded
    os.execve(sys.executable, [sys.executable] + sys.argv, os.environ | SETTINGS)

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

torch.set_num_threads(threads)
torch.manual_seed(1)


def mlp(*sizes):
    layers = []
    for n_in, n_out in zip(sizes, sizes[1:]):
        layers += [nn.Linear(n_in, n_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def convnet():
    convolutions = [nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*convolutions, nn.Flatten(), nn.Dropout(0.5), nn.Linear(1600, 10))


def unit(n_in, n_out, kernel, stride=1):
    return [nn.Conv2d(n_in, n_out, kernel, stride, kernel // 2), nn.BatchNorm2d(n_out, 1.001e-5)]


class Block(nn.Module):
    """Keras's bottleneck: the stride is in the first convolution."""

    def __init__(self, n_in, width, stride, project):
        super().__init__()
        units = unit(n_in, width, 1, stride) + [nn.ReLU()] + unit(width, width, 3) + [nn.ReLU()]
        self.body = nn.Sequential(*units, *unit(width, 4 * width, 1))
        self.skip = nn.Sequential(*unit(n_in, 4 * width, 1, stride)) if project else nn.Identity()

    def forward(self, x):
        return F.relu(self.skip(x) + self.body(x))


def resnet50():
    layers, n_in = unit(3, 64, 7, 2) + [nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for width, times, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(times):
            layers.append(Block(n_in, width, 1 if i else stride, i == 0))
            n_in = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 10))


NETWORKS = {
    "mlp128": (lambda: mlp(784, 128, 10), (784,), 32),
    "mlp256": (lambda: mlp(784, 256, 128, 10), (784,), 32),
    "convnet": (convnet, (1, 28, 28), 64),
    "resnet50": (resnet50, (3, 224, 224), 2),
}


def measure(layout):
    build, shape, batch = NETWORKS[network]
    model, x = build().to(memory_format=layout), torch.rand(batch, *shape)
    if x.dim() == 4:
        x = x.contiguous(memory_format=layout)
    y = torch.randint(0, 10, (batch,))
    kind = torch.optim.Adam if network == "resnet50" else torch.optim.SGD
    optimizer = kind(model.parameters(), lr=0.01)
    samples, end = [], 0
    while len(samples) < 5 or time.perf_counter() < end:
        begin, processor = time.perf_counter(), time.process_time()
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        samples.append((time.perf_counter() - begin, time.process_time() - processor))
        if len(samples) == 2:
            end = time.perf_counter() + seconds
    steps, processor = map(sorted, zip(*samples[2:]))  # the first two warm up
    return steps[len(steps) // 2] * 1e3, steps[0] * 1e3, processor[len(steps) // 4] * 1e3


layouts = [torch.contiguous_format]
if len(NETWORKS[network][1]) == 3:
    layouts.append(torch.channels_last)
figures = [measure(layout) for layout in layouts]
print("%.4f %.4f %.4f %.0f" % (*(min(column) for column in zip(*figures)), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
