#!/usr/bin/python3
"""Write tests/golden/torch_*.txt: what PyTorch says of the first 20 micro-batches of three networks,
of single layers (outputs and gradients) and of losses (values and gradients).

Needs Debian's python3-torch and python3-numpy. Inputs are made by a linear congruential generator
that tests/trainer/test_oracle.c, test_oracle_layers.c and test_oracle_losses.c repeat, so no other
file is needed. Run from the source tree:

    /usr/bin/python3 script/make-torch-golden.py tests/golden

PyTorch gives the gradients; the updates are written out here, by the formulas of TensorFlow 2.6's
OptimizerV2 where the two differ (RMSprop's epsilon stands outside of the root, Adam's bias correction
is in the learning rate). Parameters have Keras's shapes: kernels [height, width, in, out]. In half,
parameters are rounded through float16 where they are read, and nothing else is. The residual network is
left out there: weights that one side rounds up and the other down move its losses by nearly 1e-4.
"""
import sys

import numpy as np
import torch
import torch.nn.functional as F

STEPS = 20
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


# ---- networks: shapes of the parameters in Keras's order, "1" for those that begin with ones, and
# the logits of a batch [n, h, w, c] ----------------------------------------------------------------


def conv(x, kernel, bias=None, stride=1, same=False):
    """NHWC. "same" with stride 2 and an even side pads behind, as TensorFlow does."""
    x = x.permute(0, 3, 1, 2)
    if same:
        side, k = x.shape[2], kernel.shape[0]
        pad = max((-(-side // stride) - 1) * stride + k - side, 0)
        x = F.pad(x, (pad // 2, pad - pad // 2) * 2)
    return F.conv2d(x, kernel.permute(3, 2, 0, 1), bias, stride).permute(0, 2, 3, 1)


def pool(x):
    return F.max_pool2d(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1)


class Mlp:
    name, image, batch = "mlp", (28, 28, 1), 32
    shapes = [(784, 256), (256,), (256, 128), (128,), (128, 10), (10,)]
    ones = ()

    def logits(self, p, x):
        h = torch.relu(x.reshape(len(x), -1) @ p[0] + p[1])
        h = torch.relu(h @ p[2] + p[3])
        return h @ p[4] + p[5]


class Convnet:
    """The network of Keras's MNIST example, dropout left out."""

    name, image, batch = "convnet", (28, 28, 1), 32
    shapes = [(3, 3, 1, 32), (32,), (3, 3, 32, 64), (64,), (1600, 10), (10,)]
    ones = ()

    def logits(self, p, x):
        x = pool(torch.relu(conv(x, p[0], p[1])))
        x = pool(torch.relu(conv(x, p[2], p[3])))
        return x.reshape(len(x), -1) @ p[4] + p[5]


class Residual:
    """Two residual blocks, the second of stride 2 with a convolution on the shortcut."""

    name, image, batch = "residual", (16, 16, 3), 16
    # gamma and beta follow each kernel; the layers stand as in tests/golden/residual.json
    shapes = [(3, 3, 3, 16), (16,), (16,), (3, 3, 16, 16), (16,), (16,), (3, 3, 16, 16), (16,), (16,)]
    shapes += [(3, 3, 16, 32), (32,), (32,), (3, 3, 32, 32), (32,), (32,), (1, 1, 16, 32), (32,), (32,)]
    shapes += [(32, 10), (10,)]
    ones = (1, 4, 7, 10, 13, 16)

    def __init__(self):
        self.moving, self.training = {}, True

    def unit(self, p, at, x, stride=1):
        x = conv(x, p[at], None, stride, True)
        mean = torch.zeros(x.shape[3]), torch.ones(x.shape[3])
        mean = self.moving.setdefault(at, mean)
        # TensorFlow's fused kernel keeps the unbiased variance, as PyTorch does.
        y = F.batch_norm(x.permute(0, 3, 1, 2), *mean, p[at + 1], p[at + 2], self.training, 0.01, 1e-3)
        return y.permute(0, 2, 3, 1)

    def logits(self, p, x):
        x = torch.relu(self.unit(p, 0, x))
        y = torch.relu(self.unit(p, 3, x))
        x = torch.relu(x + self.unit(p, 6, y))
        y = torch.relu(self.unit(p, 9, x, 2))
        y = self.unit(p, 12, y)
        x = torch.relu(self.unit(p, 15, x, 2) + y)
        return x.mean((1, 2)) @ p[18] + p[19]


# ---- updates, TensorFlow 2.6 -----------------------------------------------------------------------


def sgd(rate, momentum=0.0, nesterov=False):
    def update(w, g, s, t):
        if not momentum:
            w -= rate * g
            return
        m = s.setdefault("m", torch.zeros_like(w))
        m.mul_(momentum).sub_(rate * g)
        w += momentum * m - rate * g if nesterov else m

    return update


def rmsprop(rate=0.001, rho=0.9, epsilon=1e-7):
    def update(w, g, s, t):
        v = s.setdefault("v", torch.zeros_like(w))
        v.mul_(rho).add_((1 - rho) * g * g)
        w -= rate * g / (v.sqrt() + epsilon)

    return update


def adam(rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-7):
    def update(w, g, s, t):
        m, v = s.setdefault("m", torch.zeros_like(w)), s.setdefault("v", torch.zeros_like(w))
        m.mul_(beta1).add_((1 - beta1) * g)
        v.mul_(beta2).add_((1 - beta2) * g * g)
        w -= rate * np.sqrt(1 - beta2**t) / (1 - beta1**t) * m / (v.sqrt() + epsilon)

    return update


# ---- training --------------------------------------------------------------------------------------


def weights(net):
    """Kernels uniform in +-sqrt(6 / (fan in + fan out)); the rest ones or zeros."""
    lcg, out = Lcg(1), []
    for index, shape in enumerate(net.shapes):
        if len(shape) == 1:
            out.append(np.full(shape, float(index in net.ones), dtype=np.float32))
            continue
        field = int(np.prod(shape[:-2]))
        limit = np.float32(np.sqrt(6.0 / (field * (shape[-2] + shape[-1]))))
        u = lcg.floats(int(np.prod(shape)))
        out.append(((u * np.float32(2) - np.float32(1)) * limit).reshape(shape))
    return out


def batches(net):
    """The label first, then an item's values u / 2, and 1/2 more where index % 10 is the label."""
    lcg, size = Lcg(2), int(np.prod(net.image))
    for _ in range(STEPS):
        x = np.empty((net.batch, size), dtype=np.float32)
        y = np.empty(net.batch, dtype=np.int64)
        for i in range(net.batch):
            y[i] = lcg.next() % 10
            x[i] = lcg.floats(size) * np.float32(0.5)
            x[i, y[i] :: 10] += np.float32(0.5)
        yield torch.from_numpy(x.reshape(-1, *net.image)), torch.from_numpy(y)


def computed(params, half):
    """What the network computes with: in half the values rounded through float16; gradients pass."""
    return [p + (p.half().float() - p).detach() for p in params] if half else params


def train(out, net, name, update, accumulation=1, half=False):
    params = [torch.from_numpy(w).clone().requires_grad_(True) for w in weights(net)]
    states = [{} for _ in params]
    for step, (x, y) in enumerate(batches(net)):
        loss = F.cross_entropy(net.logits(computed(params, half), x), y)
        loss.backward()  # gradients add up: the sum over the micro-batches
        print(f"{name} loss {step} {loss.item():.9g}", file=out)
        if (step + 1) % accumulation:
            continue
        with torch.no_grad():
            for w, s in zip(params, states):
                update(w, w.grad, s, (step + 1) // accumulation)
                w.grad = None
    if kind is Residual:  # the moving statistics at work
        net.training = False
        with torch.no_grad():
            print(f"{name} inference 0 {F.cross_entropy(net.logits(params, x), y).item():.9g}", file=out)
    for index, param in enumerate(params):
        flat = param.detach().reshape(-1)
        for probe in range(PROBES):
            at = probe * (flat.numel() - 1) // (PROBES - 1)
            print(f"{name} weight {index} {at} {flat[at].item():.9g}", file=out)
        print(f"{name} norm {index} {flat.double().norm().item():.9g}", file=out)


# ---- single layers: Keras's parameters, and PyTorch's function of the same numbers ---------------


def conv1d(x, kernel, bias, stride, same):
    x = x.permute(0, 2, 1)
    if same:
        side, k = x.shape[2], kernel.shape[0]
        pad = max((-(-side // stride) - 1) * stride + k - side, 0)
        x = F.pad(x, (pad // 2, pad - pad // 2))
    return F.conv1d(x, kernel.permute(2, 1, 0), bias, stride).permute(0, 2, 1)


def separable1d(x, depthwise, pointwise, bias):
    channels, times = depthwise.shape[1:]
    kernel = depthwise.permute(1, 2, 0).reshape(channels * times, 1, -1)
    x = F.conv1d(x.permute(0, 2, 1), kernel, None, groups=channels)
    return F.conv1d(x, pointwise.permute(2, 1, 0), bias).permute(0, 2, 1)


def recurrent(run, x, kernel, recurrent_kernel, bias, order, states):
    """PyTorch's gates are rows, and those of a GRU stand in another order."""
    units = recurrent_kernel.shape[0]
    rows = torch.cat([torch.arange(units) + units * gate for gate in order])
    second = bias[1] if bias.dim() == 2 else torch.zeros_like(bias)
    first = bias[0] if bias.dim() == 2 else bias
    flat = [kernel.t()[rows], recurrent_kernel.t()[rows], first[rows], second[rows]]
    zeros = torch.zeros(1, len(x), units)
    start = (zeros, zeros) if states == 2 else zeros
    return run(x, start, flat, True, 1, 0.0, True, False, True)[0]


def transpose2d(x, kernel, bias, stride, same):
    y = F.conv_transpose2d(x.permute(0, 3, 1, 2), kernel.permute(3, 2, 0, 1), None, stride)
    more = [y.shape[2 + way] - x.shape[1 + way] * stride for way in range(2)]
    if same:  # what a convolution of the output would pad is cut off, the smaller half before
        at = [side // 2 for side in more]
        y = y[:, :, at[0] : y.shape[2] - more[0] + at[0], at[1] : y.shape[3] - more[1] + at[1]]
    else:  # pixels behind a kernel that is smaller than the stride
        y = F.pad(y, (0, max(-more[1], 0), 0, max(-more[0], 0)))
    return y.permute(0, 2, 3, 1) + bias


def sampled(x, by, shift=(0, 0), mode="bilinear", padding="reflection"):
    """Output pixel (x, y) looked for at by (x, y) + shift, in pixels from the middle."""
    height, width = x.shape[1:3]
    down, right = torch.meshgrid(torch.arange(height) + 0.5, torch.arange(width) + 0.5, indexing="ij")
    at = torch.stack((right - width / 2, down - height / 2), -1) @ torch.tensor(by, dtype=torch.float32).t()
    at = at + torch.tensor(shift) + torch.tensor([width / 2, height / 2])
    grid = (at / torch.tensor([width / 2, height / 2]) - 1).expand(len(x), -1, -1, -1)
    return F.grid_sample(x.permute(0, 3, 1, 2), grid, mode, padding, False).permute(0, 2, 3, 1)


def turn(share):
    angle = 2 * np.pi * share
    return [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]


def resized(x, size, mode="bilinear"):
    return F.interpolate(x.permute(0, 3, 1, 2), size, mode=mode).permute(0, 2, 3, 1)


# Name, the input's shape, the shapes of the parameters, the function.
LAYERS = [
    ("conv1d", (3, 11, 4), [(3, 4, 6), (6,)], lambda x, k, b: torch.tanh(conv1d(x, k, b, 2, True))),
    ("separable_conv1d", (2, 9, 3), [(4, 3, 2), (1, 6, 5), (5,)], separable1d),
    ("simple_rnn", (2, 6, 4), [(4, 5), (5, 5), (5,)],
     lambda x, k, u, b: recurrent(torch.rnn_tanh, x, k, u, b, (0,), 1)),
    ("lstm", (2, 6, 4), [(4, 20), (5, 20), (20,)],
     lambda x, k, u, b: recurrent(torch.lstm, x, k, u, b, (0, 1, 2, 3), 2)),
    ("gru", (2, 6, 4), [(4, 15), (5, 15), (2, 15)],
     lambda x, k, u, b: recurrent(torch.gru, x, k, u, b, (1, 0, 2), 1)),
    ("embedding", (3, 8), [(9, 5)], lambda x, table: F.embedding((x.detach() * 9).long(), table)),
    ("group_normalization", (2, 3, 4, 8), [(8,), (8,)],
     lambda x, gamma, beta: F.group_norm(x.permute(0, 3, 1, 2), 4, gamma, beta, 1e-3).permute(0, 2, 3, 1)),
    ("conv2d_transpose", (2, 3, 4, 3), [(3, 4, 2, 3), (2,)], lambda x, k, b: transpose2d(x, k, b, 2, True)),
    ("conv2d_transpose_valid", (2, 3, 2, 3), [(2, 3, 4, 3), (4,)], lambda x, k, b: transpose2d(x, k, b, 3, False)),
    ("p_relu", (2, 7, 4), [(1, 4)], lambda x, alpha: F.prelu(x.permute(0, 2, 1), alpha[0]).permute(0, 2, 1)),
    ("rot90", (2, 5, 5, 2), [], lambda x: torch.rot90(x, 1, (1, 2))),
    ("rotation_reflect", (2, 6, 5, 2), [], lambda x: sampled(x, turn(0.1))),
    ("rotation_constant", (2, 6, 5, 2), [], lambda x: sampled(x, turn(-0.2), padding="zeros")),
    ("rotation_nearest", (2, 6, 5, 2), [], lambda x: sampled(x, turn(0.3), mode="nearest", padding="border")),
    ("translation", (2, 6, 5, 2), [], lambda x: sampled(x, [[1.0, 0.0], [0.0, 1.0]], (0.6 * 5, -0.3 * 6), padding="zeros")),
    ("zoom", (2, 6, 5, 2), [], lambda x: sampled(x, [[1.6, 0.0], [0.0, 0.7]])),
    ("zoom_joined", (2, 6, 5, 2), [], lambda x: sampled(x, [[1.4, 0.0], [0.0, 1.4]], padding="border")),
    ("resizing", (2, 6, 5, 2), [], lambda x: resized(x, (4, 9))),
    ("resizing_nearest", (2, 6, 5, 2), [], lambda x: resized(x, (7, 3), "nearest-exact")),
    ("resizing_cropped", (2, 4, 7, 2), [], lambda x: resized(x[:, :, 1:5], (6, 6))),
    ("up_sampling2d", (2, 3, 4, 2), [], lambda x: resized(x, (6, 12))),
    ("center_crop", (2, 7, 8, 2), [], lambda x: x[:, 2:5, 1:6]),
    ("center_crop_small", (2, 4, 7, 2), [], lambda x: resized(x[:, 1:3], (3, 9))),
]


def centred(lcg, shape):
    return torch.from_numpy(lcg.floats(int(np.prod(shape))).reshape(shape) - np.float32(0.5))


def layer(out, name, shape, shapes, function):
    """x is u - 1/2 (an Embedding's u times the rows, rounded down), parameters and the output's gradient too."""
    lcg = Lcg(1)
    x = centred(lcg, shape)
    if name == "embedding":
        x = x + 0.5
    x.requires_grad_(True)
    params = [centred(lcg, s).requires_grad_(True) for s in shapes]
    y = function(x, *params)
    y.backward(centred(lcg, tuple(y.shape)))
    for what, values in [("y", y), ("x", x.grad), *((str(i), p.grad) for i, p in enumerate(params))]:
        if values is not None:
            numbers = " ".join(f"{v:.9g}" for v in values.detach().reshape(-1).tolist())
            print(f"{name} {what} {values.numel()} {numbers}", file=out)


# ---- losses of tokens and pixels -----------------------------------------------------------------

# Name, what the targets are like, do logits come in, the shape, the function: means over positions.
LOSSES = [
    ("sparse_tokens", "class", True, (3, 5, 4), lambda x, y: F.cross_entropy(x.movedim(-1, 1), y)),
    ("sparse_pixels", "class", True, (3, 2, 3, 4), lambda x, y: F.cross_entropy(x.movedim(-1, 1), y)),
    ("dense_tokens", "share", True, (3, 5, 4), lambda x, y: F.cross_entropy(x.movedim(-1, 1), y.movedim(-1, 1))),
    ("binary_pixels", "flag", True, (3, 4, 3, 1), F.binary_cross_entropy_with_logits),
    ("binary_tokens", "flag", False, (3, 5, 4), F.binary_cross_entropy),
    ("squared_pixels", "value", False, (3, 2, 3, 4), F.mse_loss),
    ("huber_tokens", "value", False, (3, 5, 4), F.huber_loss),
]


def loss(out, name, kind, logits, shape, function):
    """x is u, times 4 as logits; y is 3 u, or what is made of it."""
    lcg = Lcg(1)
    x = torch.from_numpy(lcg.floats(int(np.prod(shape))).reshape(shape)) * (4 if logits else 1)
    x.requires_grad_(True)
    of = shape[:-1] if kind == "class" else shape
    y = torch.from_numpy(lcg.floats(int(np.prod(of))).reshape(of))
    y = (y * shape[-1]).long() if kind == "class" else y * 3
    if kind == "share":
        y = y / y.sum(-1, keepdim=True)
    elif kind == "flag":
        y = (y > 1.5).float()
    value = function(x, y)
    value.backward()
    print(name, " ".join(f"{v:.9g}" for v in [value.item(), *x.grad.reshape(-1).tolist()]), file=out)


RUNS = [
    (Mlp, "sgd", sgd(0.01), 1),
    (Mlp, "accumulate4", sgd(0.01), 4),
    (Mlp, "rmsprop", rmsprop(), 1),
    (Mlp, "adam", adam(), 1),
    (Convnet, "sgd", sgd(0.01), 1),
    (Convnet, "rmsprop", rmsprop(), 1),
    (Convnet, "adam", adam(), 1),
    (Residual, "nesterov", sgd(0.01, 0.9, True), 1),
    (Residual, "adam", adam(), 1),
    (Mlp, "half_sgd", sgd(0.01), 1, True),
    (Mlp, "half_accumulate4", sgd(0.01), 4, True),
    (Mlp, "half_adam", adam(), 1, True),
    (Convnet, "half_sgd", sgd(0.01), 1, True),
]

torch.set_num_threads(1)
files = {}
for kind, *run in RUNS:
    if kind not in files:
        files[kind] = open(f"{sys.argv[1]}/torch_{kind.name}.txt", "w")
        print(f"# PyTorch {torch.__version__}; made by script/make-torch-golden.py", file=files[kind])
    train(files[kind], kind(), *run)
with open(f"{sys.argv[1]}/torch_layers.txt", "w") as out:
    print(f"# PyTorch {torch.__version__}; made by script/make-torch-golden.py", file=out)
    for row in LAYERS:
        layer(out, *row)
with open(f"{sys.argv[1]}/torch_losses.txt", "w") as out:
    print(f"# PyTorch {torch.__version__}; made by script/make-torch-golden.py", file=out)
    for row in LOSSES:
        loss(out, *row)
