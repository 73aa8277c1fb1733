"""The module without numpy and PyTorch: spans, threads, keys, losses, facts, errors, forks, off."""
import os
import sqlite3
import threading

import ipuscope


def rows(path, sql):
    db = sqlite3.connect(path)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


class Array:
    """An array of five floats, by numpy's protocol."""

    def __init__(self, values):
        import array
        self.values = array.array("f", values)
        self.__array_interface__ = {"typestr": "<f4", "shape": (len(values),), "strides": None, "version": 3,
                                    "data": (self.values.buffer_info()[0], True)}


def off():
    with ipuscope.span("nothing"):
        pass
    ipuscope.look("nothing", Array([1]))
    ipuscope.keys(step=3)
    ipuscope.loss(1)
    ipuscope.epoch_loss(1)
    ipuscope.meta("a", "b")
    assert ipuscope.hits() == 0
    ipuscope.close()


@ipuscope.span("decorated", "work")
def decorated(depth):
    return depth if depth == 0 else decorated(depth - 1)


def worker():
    with ipuscope.span("in a thread"):
        pass


def refused(call, *words):
    try:
        call()
    except (ipuscope.Error, TypeError) as failed:
        assert all(word in str(failed) for word in words), failed
        assert "\n" not in str(failed)
        return
    raise AssertionError(f"{call} was not refused")


off()
hits = []
ipuscope.record("run.db", command="of mine", on_hit=lambda *hit: hits.append(hit), quiet=True)
refused(lambda: ipuscope.record("two.db"), "open already")
ipuscope.meta("model", "mine")
refused(lambda: ipuscope.meta("state", "complete"), "state")
refused(lambda: ipuscope.keys(stepp=1), "stepp")
for step in range(4):
    ipuscope.keys(step=step, epoch=1, mode="train")
    with ipuscope.span("load", "data"):
        assert decorated(2) == 0
    if step == 2:
        thread = threading.Thread(target=worker, name="loader")
        thread.start()
        thread.join()
    ipuscope.look("fc.weight.grad", Array([1, 2, 3, -4, float("nan") if step == 3 else 0]), layer="fc")
    ipuscope.loss(1 / (1 + step))
try:
    with ipuscope.span("raises"):
        raise KeyError("gone")
except KeyError:
    pass
ipuscope.epoch_loss(0.5, val_loss=0.75)
assert ipuscope.hits("nonfinite") == 1 and ("nonfinite", "fc.weight.grad", 3) == hits[0][:3], hits
assert ipuscope.hits("no such rule") == -1
child = os.fork()
if child == 0:
    off()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
ipuscope.close()
off()

assert rows("run.db", "SELECT track, category, name, count(*), count(step), max(depth), min(dur_ns) >= 0 FROM spans "
            "GROUP BY 1, 2, 3 ORDER BY 1, 2, 3") == [
    ("MainThread", "data", "load", 4, 4, 0, 1), ("MainThread", "span", "raises", 1, 1, 0, 1),
    ("MainThread", "work", "decorated", 12, 12, 3, 1), ("loader", "span", "in a thread", 1, 1, 0, 1)]
assert rows("run.db", "SELECT step FROM spans WHERE track = 'loader'") == [(2,)]
assert rows("run.db", "SELECT key, kind, layer, mode, step, n, n_nan, max, mean FROM tensor_stats JOIN tensors USING "
            "(queue, key, kind, layer) WHERE step > 1") == [
    ("fc.weight.grad", "gradient", "fc", "train", 2, 5, 0, 3.0, 0.4),
    ("fc.weight.grad", "gradient", "fc", "train", 3, 5, 1, 3.0, 0.5)]
assert rows("run.db", "SELECT key, step, element, value FROM first_nonfinite") == [("fc.weight.grad", 3, 4, "nan")]
assert rows("run.db", "SELECT mode, epoch, step, value FROM metrics WHERE value > 0.4") == [
    ("train", 1, 0, 1.0), ("train", 1, 1, 0.5), ("train", 1, None, 0.5), ("evaluate", 1, None, 0.75)]
assert rows("run.db", "SELECT key, value FROM meta WHERE key IN ('model', 'command', 'state') ORDER BY key") == [
    ("command", "of mine"), ("model", "mine"), ("state", "complete")]
assert rows("run.db", "SELECT count(*) > 0 FROM counters WHERE name = 'resident_bytes'") == [(1,)]

# Errors are one line, and leave nothing behind.
refused(lambda: ipuscope.record("run.db"), "run.db", "exists already")
refused(lambda: ipuscope.record("bad.db", capture="[{\"tensors\": 1}]"), "capture")
assert not os.path.exists("bad.db")
ipuscope.record("two.db", health=False, capture="off")
ipuscope.look("x", Array([float("nan")]))
assert ipuscope.hits() == 0
ipuscope.close()
assert rows("two.db", "SELECT count(*) FROM tensor_stats") == [(0,)]
print("spans, keys, losses and one tensor: as recorded")
