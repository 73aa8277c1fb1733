"""A convolutional network on digits, watched: every statistic within 1e-6 of what PyTorch computes of the same tensor, a
NaN in a gradient is found where it began, and the training's results are those of one that is not watched."""
import csv
import os
import sqlite3
import subprocess

import torch
from torch import nn

import ipuscope

torch.set_num_threads(1)
BATCH, STEPS = 16, 8


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 8, 3, stride=2), nn.Conv2d(8, 8, 3)
        self.act, self.norm = nn.ReLU(inplace=True), nn.BatchNorm2d(8)
        self.fc = nn.Sequential(nn.Linear(968, 16), nn.Tanh(), nn.Linear(16, 10))

    def forward(self, x):
        x = self.act(self.conv1(x))
        x = self.norm(self.act(self.conv2(x)))
        return {"logits": self.fc(x.flatten(1)), "counts": torch.ones(3, dtype=torch.int64)}


class Poison(torch.autograd.Function):
    """Passes values on; the gradient of element 5 is NaN if `on`."""
    on = False

    @staticmethod
    def forward(context, x):
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        gradient = gradient.clone()
        if Poison.on:
            gradient.view(-1)[5] = float("nan")
        return gradient


def statistics(tensor):
    """As PyTorch computes them in double precision: of the finite values."""
    t = tensor.detach().double().flatten()
    finite = t[torch.isfinite(t)]
    if finite.numel() == 0:
        return None
    return dict(n=t.numel(), n_nan=int(t.isnan().sum()), n_zero=int((t == 0).sum()), n_neg=int((t < 0).sum()),
                min=float(finite.min()), max=float(finite.max()), mean=float(finite.mean()),
                std=float(finite.std(unbiased=False)), l1=float(finite.abs().sum()), l2=float(finite.norm()),
                abs_max=float(finite.abs().max()))


def train(expected=None, poisoned=None):
    """Train; @expected gets (key, step, ordinal): statistics, by hooks of this test's own."""
    torch.manual_seed(1)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    schedule = None
    if expected is not None:
        step = [-1]

        def keep(key, tensor):
            times = sum(1 for known in expected if known[:2] == (key, step[0]))
            expected[key, step[0], times] = statistics(tensor)
        for name, module in net.named_modules():
            if name and not list(module.children()):
                module.register_forward_hook(lambda m, i, o, name=name: keep(name, o))
        for name, parameter in net.named_parameters():
            parameter.register_hook(lambda g, name=name: keep(name + ".grad", g))
        ipuscope.watch(net, optimizer)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 100)  # it replaces optimizer.step, too
    inputs = torch.randn(STEPS, BATCH, 1, 28, 28)
    targets = torch.randint(0, 10, (STEPS, BATCH))
    for i in range(STEPS):
        Poison.on = i == poisoned
        if expected is not None:
            step[0] = i
        optimizer.zero_grad()
        with ipuscope.span("forward and loss"):
            loss = nn.functional.cross_entropy(Poison.apply(net(inputs[i])["logits"]), targets[i])
        with ipuscope.span("backward pass"):
            loss.backward()
        optimizer.step()
        if schedule:
            schedule.step()
        if expected is not None:
            for name, parameter in net.named_parameters():
                keep(name, parameter)
        ipuscope.loss(loss)
        if expected is not None and i == 3:
            net.eval()
            step[0] = "evaluate"
            with torch.no_grad():
                net(inputs[0])
            net.train()
    return {name: value.clone() for name, value in net.state_dict().items()} if expected is None else net


def compare(path, expected):
    db = sqlite3.connect(path)
    names = list(next(iter(expected.values())))
    counts, worst = {}, 0.0
    for key, step, mode, *values in db.execute(f"SELECT key, step, mode, {', '.join(names)} FROM tensor_stats "
                                               "ORDER BY time_ns"):
        # A layer that is called with another shape has a tensor of its own: "act (16, 8, 11, 11)".
        where = (key.partition(" ")[0], step if mode == "train" else mode)
        at = counts.get(where, 0)
        counts[where] = at + 1
        known = expected.pop(where + (at,))
        scale = known["abs_max"] or 1.0
        for name, value in zip(names, values):
            size = {"l1": abs(known["l1"]), "l2": abs(known["l2"])}.get(name, scale) or 1.0
            off = abs(value - known[name]) / size if not name.startswith("n") else float(value != known[name])
            worst = max(worst, off)
            assert off <= 1e-6, (key, step, name, value, known[name])
    assert not expected, f"not recorded: {sorted(map(str, expected))[:5]}"
    return sum(counts.values()), worst


plain = train()
expected = {}
ipuscope.record("torch.db", quiet=True)
ipuscope.meta("batch_size", BATCH)
net = train(expected)
assert ipuscope.hits("nonfinite") == 0
ipuscope.close()
watched = net.state_dict()
# The extra evaluation changes nothing that is trained; watching changes no bit.
assert all(torch.equal(plain[name], watched[name]) for name in plain), "watching changed the training"
rows, worst = compare("torch.db", expected)
db = sqlite3.connect("torch.db")
ask = lambda sql: db.execute(sql).fetchall()
assert ask("SELECT count(*), sum(mode = 'evaluate') FROM tensor_stats WHERE key = 'conv1'") == [(STEPS + 1, 1)]
assert ask("SELECT DISTINCT kind FROM tensor_stats WHERE key LIKE '%.grad'") == [("gradient",)]
assert ask("SELECT activity FROM tensors WHERE key IN ('act', 'fc.1') ORDER BY key") == [("relu",), ("tanh",)]
assert ask("SELECT count(*), count(DISTINCT weight_update) FROM tensor_stats WHERE key = 'fc.0.weight'") == [(STEPS, STEPS)]
assert ask("SELECT layer, class, output_shape, params FROM layers WHERE layer IN ('conv1', 'act', 'fc.2') ORDER BY 1") == [
    ("act", "ReLU", "(16, 8, 13, 13)", 0), ("conv1", "Conv2d", "(16, 8, 13, 13)", 80), ("fc.2", "Linear", "(16, 10)", 170)]
# Spans nest as the modules do, each layer has its backward, and none is left open.
assert ask("SELECT count(*) FROM spans WHERE dur_ns IS NULL") == [(0,)]
assert ask("SELECT DISTINCT p.name FROM spans s JOIN spans p ON p.span_id = s.parent_id WHERE s.name IN ('fc.0', 'fc.2')"
           ) == [("fc",)]
assert ask("SELECT DISTINCT p.name, count(*) FROM spans s JOIN spans p ON p.span_id = s.parent_id "
           "WHERE s.name = 'fc.0/backward'") == [("backward pass", STEPS)]
assert ask("SELECT count(*), count(DISTINCT operation) FROM spans WHERE category = 'forward' AND operation = 'conv2'") == [
    (STEPS + 1, 1)]
# `ipu-report operations --by measured`: each layer's forward and backward, from its spans.
report = subprocess.run([os.path.join(os.environ["IPUSCOPE_BIN_DIR"], "ipu-report"), "torch.db", "operations", "--by", "measured",
                         "--columns", "operation,layer,phase,spans,total_ns", "--csv"], check=True, capture_output=True, text=True)
measured = {row["operation"]: row for row in csv.DictReader(report.stdout.splitlines())}
assert set(measured) == {name + way for name in ("conv1", "conv2", "act", "norm", "fc.0", "fc.1", "fc.2") for way in
                         ("", "/backward")}, sorted(measured)
for name, row in measured.items():
    assert ask(f"SELECT count(*), sum(dur_ns) FROM spans WHERE operation = '{name}'") == [
        (int(row["spans"]), int(row["total_ns"]))], row
    assert row["layer"] == name.partition("/")[0] and row["phase"] == ("B" if "/" in name else "F"), row
db.close()

# A NaN that the backward pass makes: the first gradient that has it is named, with the step.
expected = {}
ipuscope.record("nan.db", quiet=True, capture="health")
train(expected, poisoned=5)
assert ipuscope.hits("nonfinite") > 0
ipuscope.close()
db = sqlite3.connect("nan.db")
assert ask("SELECT key, step, value FROM first_nonfinite") == [("fc.2.bias.grad", 5, "nan")] or \
    ask("SELECT key, step, value FROM first_nonfinite") == [("fc.2.weight.grad", 5, "nan")], ask("SELECT * FROM first_nonfinite")
assert ask("SELECT min(step) FROM health WHERE rule = 'nonfinite'") == [(5,)]
db.close()

# A forward that raises leaves no span open for the next one; types without statistics are converted; remove() ends it.
ipuscope.record("rest.db", quiet=True)
net = Net()
watch = ipuscope.watch(net, activation_gradients=True)
try:
    net(torch.zeros(2, 3, 28, 28))
except RuntimeError:
    pass
net(torch.randn(4, 1, 28, 28))["logits"].sum().backward()
ipuscope.look("bf16", torch.arange(6, dtype=torch.bfloat16))
ipuscope.look("complex", torch.tensor([1 + 2j, 3 - 4j]))
ipuscope.look("sparse", torch.eye(3).to_sparse())
ipuscope.look("transposed", torch.arange(6.0).reshape(2, 3).t())
ipuscope.look("leaf", torch.ones(2, requires_grad=True))
watch.remove()
net(torch.randn(4, 1, 28, 28))["logits"].sum().backward()
ipuscope.close()
db = sqlite3.connect("rest.db")
assert ask("SELECT name, depth, count(*) FROM spans WHERE name = 'model' GROUP BY 1, 2") == [("model", 0, 2)]
assert ask("SELECT key, n, min, max FROM tensor_stats WHERE key IN ('bf16', 'complex', 'sparse', 'transposed', 'leaf') "
           "ORDER BY key") == [("bf16", 6, 0, 5), ("complex", 4, -4, 3), ("leaf", 2, 1, 1), ("sparse", 9, 0, 1),
                               ("transposed", 6, 0, 5)]
assert ask("SELECT count(*) FROM tensor_stats WHERE key = 'fc.0.output.grad'") == [(1,)]
assert ask("SELECT count(*) FROM tensor_stats WHERE key = 'fc.0.weight.grad'") == [(1,)]
print(f"{rows} rows of a watched PyTorch training: within {worst:.1g} of PyTorch")
