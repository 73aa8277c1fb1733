#!/usr/bin/python3
"""Write tests/golden/optimizers.txt: 50 updates of 8 weights by each optimizer, in double.

The formulas are those of TensorFlow 2.6's OptimizerV2 and, of the kinds that came later, of Keras,
written out by hand (model/learn/optimizer.h tells them); rho and the betas are float32 values, as TensorFlow's are. Gradients come from the same
generator as in tests/support/math.c. Usage: script/make-optimizer-golden.py > tests/golden/optimizers.txt
"""
import math

import numpy as np

COUNT, UPDATES, SHOWN = 8, 50, (1, 10, 50)


def single(x):
    return float(np.float32(x))


def numbers(seed, count):
    state = seed
    for _ in range(count):
        state = (1664525 * state + 1013904223) % 2**32
        yield (state >> 8) * 2.0**-24


def exponential(rate, steps, decay):
    return lambda u: rate * decay ** (u / steps)


def sgd(w, g, s, u, rate=0.01, momentum=0.0, nesterov=False, decay=0.0):
    r = rate / (1 + decay * u)
    if momentum == 0:
        return w - r * g
    s["a"] = momentum * s["a"] - r * g
    return w + (momentum * s["a"] - r * g if nesterov else s["a"])


def rmsprop(w, g, s, u, rate=0.001, rho=0.9, momentum=0.0, epsilon=1e-7, centered=False):
    rho = single(rho)
    s["s"] = rho * s["s"] + (1 - rho) * g * g
    spread = s["s"]
    if centered:
        s["m"] = rho * s["m"] + (1 - rho) * g
        spread = spread - s["m"] ** 2
    if momentum == 0:
        return w - rate * g / (np.sqrt(spread) + epsilon)
    s["a"] = momentum * s["a"] + rate * g / np.sqrt(spread + epsilon)
    return w - s["a"]


def adam(w, g, s, u, rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, amsgrad=False):
    beta_1, beta_2, t = single(beta_1), single(beta_2), u + 1
    r = rate(u) if callable(rate) else rate
    s["m"] += (1 - beta_1) * (g - s["m"])
    s["v"] += (1 - beta_2) * (g * g - s["v"])
    s["most"] = np.maximum(s["most"], s["v"])
    root = np.sqrt(s["most"] if amsgrad else s["v"])
    return w - r * math.sqrt(1 - beta_2**t) / (1 - beta_1**t) * s["m"] / (root + epsilon)


def adamw(w, g, s, u, weight_decay=0.004, rate=0.001):
    return adam(w - rate * weight_decay * w, g, s, u, rate)


def sgd_decayed(w, g, s, u):
    return sgd(w - 0.01 * 0.5 * w, g, s, u, momentum=0.9)


def adagrad(w, g, s, u, rate, epsilon=1e-7):
    s["s"] = (s["s"] if u else 0.1) + g * g
    return w - rate * g / (np.sqrt(s["s"]) + epsilon)


def moments(g, s, beta_1, beta_2):
    s["m"] = beta_1 * s["m"] + (1 - beta_1) * g
    s["v"] = beta_2 * s["v"] + (1 - beta_2) * g * g


def nadam(w, g, s, u, rate, epsilon=1e-7):
    beta_1, beta_2, t = single(0.9), single(0.999), u + 1
    moments(g, s, beta_1, beta_2)
    factor = [beta_1 * (1 - 0.5 * 0.96**i) for i in range(1, t + 2)]
    until, after = math.prod(factor[:t]), math.prod(factor)
    mean = factor[t] * s["m"] / (1 - after) + (1 - factor[t - 1]) * g / (1 - until)
    return w - rate * mean / (np.sqrt(s["v"] / (1 - beta_2**t)) + epsilon)


def lion(w, g, s, u, rate=0.001, weight_decay=0.01):
    beta_1, beta_2 = single(0.9), single(0.99)
    step = np.sign(beta_1 * s["m"] + (1 - beta_1) * g)
    s["m"] = beta_2 * s["m"] + (1 - beta_2) * g
    return w - rate * weight_decay * w - rate * step


def lamb(w, g, s, u, rate, weight_decay_rate=0.0, epsilon=1e-7):
    beta_1, beta_2, t = single(0.9), single(0.999), u + 1
    moments(g, s, beta_1, beta_2)
    step = s["m"] / (1 - beta_1**t) / (np.sqrt(s["v"] / (1 - beta_2**t)) + epsilon)
    step = step + weight_decay_rate * w
    return w - rate * np.linalg.norm(w) / np.linalg.norm(step) * step


def sgd_clipvalue(w, g, s, u):
    return sgd(w, np.clip(g, -0.05, 0.05), s, u)


def clipped(g, norm):
    return g * min(1.0, norm / np.linalg.norm(g))


def adam_clipnorm(w, g, s, u):
    return adam(w, clipped(g, 0.5), s, u)


def sgd_global(w, g, s, u):
    return sgd(w, clipped(g, 0.5), s, u, rate=0.1)


CASES = {
    "sgd": (sgd, {}),
    "sgd_decay": (sgd, {"rate": 0.1, "decay": 0.05}),
    "sgd_momentum": (sgd, {"momentum": 0.9}),
    "sgd_nesterov": (sgd, {"momentum": 0.9, "nesterov": True}),
    "rmsprop": (rmsprop, {}),
    "rmsprop_epsilon": (rmsprop, {"rho": 0.8, "epsilon": 0.01}),
    "rmsprop_centered": (rmsprop, {"centered": True}),
    "rmsprop_momentum": (rmsprop, {"momentum": 0.5, "epsilon": 0.01}),
    "rmsprop_both": (rmsprop, {"momentum": 0.5, "centered": True, "epsilon": 0.01}),
    "adam": (adam, {}),
    "adam_betas": (adam, {"rate": 0.01, "beta_1": 0.8, "beta_2": 0.99, "epsilon": 0.001}),
    "adam_amsgrad": (adam, {"amsgrad": True, "beta_2": 0.9}),
    "adam_schedule": (adam, {"rate": exponential(0.01, 10, 0.5)}),
    "adamw": (adamw, {"rate": 0.01, "weight_decay": 0.1}),
    "adamw_default": (adamw, {}),
    "sgd_decayed": (sgd_decayed, {}),
    "adagrad": (adagrad, {"rate": 0.05}),
    "nadam": (nadam, {"rate": 0.01}),
    "lion": (lion, {}),
    "lamb": (lamb, {"rate": 0.01}),
    "lamb_rate": (lamb, {"rate": 0.01, "weight_decay_rate": 0.1}),
    "sgd_clipvalue": (sgd_clipvalue, {}),
    "adam_clipnorm": (adam_clipnorm, {}),
    "sgd_global": (sgd_global, {}),
}

for name, (step, options) in CASES.items():
    w = np.array([2 * x - 1 for x in numbers(1, COUNT)])
    slots = {key: np.zeros(COUNT) for key in ("a", "s", "m", "v", "most")}
    stream = numbers(2, COUNT * UPDATES)
    for update in range(UPDATES):
        g = np.array([(2 * next(stream) - 1) * 10.0 ** -(i % 4) for i in range(COUNT)])
        w = step(w, g, slots, update, **options)
        if update + 1 in SHOWN:
            print(name, update + 1, *(f"{x:.12g}" for x in w))
