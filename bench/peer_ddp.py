#!/usr/bin/python3
"""PyTorch's DistributedDataParallel with gloo on two processes of one thread: peer_ddp.py NETWORK BATCH SECONDS

NETWORK: mlp or convnet, those of bench_ranks.sh; BATCH: images of a process and step, in memory. Prints the median ms of a step.
Or peer_ddp.py sum WORDS SECONDS: of one all_reduce. Needs Debian's python3-torch.
"""
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn


def build(network):
    if network == "mlp":
        return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)), (784,)
    convolutions = [nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*convolutions, nn.Flatten(), nn.Dropout(0.5), nn.Linear(1600, 10)), (1, 28, 28)


def work(rank, network, size, seconds):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    if network == "sum":
        block = torch.zeros(size)

        def step():
            dist.all_reduce(block)
    else:
        model, shape = build(network)
        model = nn.parallel.DistributedDataParallel(model)
        x, y = torch.rand(size, *shape), torch.randint(0, 10, (size,))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

        def step():
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()

    samples = []
    for _ in range(3):
        begin = time.perf_counter()
        step()
    steps = torch.tensor([max(5, int(seconds / (time.perf_counter() - begin)))])
    dist.broadcast(steps, 0)
    for _ in range(int(steps)):
        begin = time.perf_counter()
        step()
        samples.append(time.perf_counter() - begin)
    if rank == 0:
        print("%.4f" % (sorted(samples)[len(samples) // 2] * 1e3))
    # Who leaves first closes connections that the other may still use.
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(20000 + os.getpid() % 20000), "OMP_NUM_THREADS": "1"}
    mp.spawn(work, (sys.argv[1], int(sys.argv[2]), float(sys.argv[3])), nprocs=2)
