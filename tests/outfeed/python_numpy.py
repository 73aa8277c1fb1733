"""Arrays of numpy of every type, contiguous or not, and of changing shapes: their statistics are numpy's."""
import sqlite3

import numpy

import ipuscope

rng = numpy.random.default_rng(1)
base = rng.normal(size=(6, 8, 10)) * 50
arrays = {str(numpy.dtype(kind)): base.astype(kind) for kind in
          ("f4", "f2", "f8", "i1", "i2", "i4", "i8", "u1", "?", "u2", "u4", ">f4", ">i2", "c8")}
arrays.update(transposed=base.T, every_second=base[::2, :, ::3], fortran=numpy.asfortranarray(base), scalar=numpy.float32(3),
              listed=[[1.0, 2.0], [3.0, 4.0]], number=5, deep=base.reshape([1, 2, 3, 2, 2, 2, 1, 5, 2, 1]),
              empty=numpy.zeros((0, 3)))
ipuscope.record("numpy.db", quiet=True)
for name, value in arrays.items():
    ipuscope.look(name, value)
for length in (8, 4, 8, 12, 12, 3):  # a value of fewer rows fits; one of more is a tensor of its own
    ipuscope.look("batch", base[0, :, 0].repeat(2)[:length].astype("f4"))
for length in range(200):
    ipuscope.look("crowd", numpy.zeros((2, length + 1), "f4"))
ipuscope.close()

db = sqlite3.connect("numpy.db")
for name, value in arrays.items():
    found = db.execute("SELECT n, n_zero, min, max, mean, std, l1, l2 FROM tensor_stats WHERE key = ?", (name,)).fetchall()
    flat = numpy.asarray(value).ravel()
    if flat.size == 0:
        assert found == [], (name, found)
        continue
    flat = flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat
    flat = flat.astype("f4").astype("f8")  # statistics are those of the values rounded to float
    expected = (flat.size, (flat == 0).sum(), flat.min(), flat.max(), flat.mean(), flat.std(), abs(flat).sum(),
                numpy.sqrt((flat * flat).sum()))
    assert len(found) == 1, name
    assert numpy.allclose(found[0], expected, rtol=1e-6, atol=1e-6), (name, found[0], expected)
assert db.execute("SELECT key, count(*), sum(n) FROM tensor_stats WHERE key LIKE 'batch%' GROUP BY key").fetchall() == [
    ("batch", 4, 23), ("batch (12,)", 2, 24)]
assert db.execute("SELECT count(*) FROM tensors WHERE key LIKE 'crowd%'").fetchone() == (ipuscope.SHAPES_OF_A_KEY,)
print(f"{len(arrays)} arrays of numpy: as numpy has them")
