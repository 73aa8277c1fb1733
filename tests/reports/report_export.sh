#!/usr/bin/env bash
# `ipu-report REPORT export npz`: what numpy reads is what was captured; refusals; a full disk leaves nothing.
set -euo pipefail

bin=$IPUSCOPE_BIN_DIR
make=$PWD/capture_make
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

# A command line of ipu-report that is refused: its exit code, a part of what it says, the arguments.
refused() {
	local wanted=$1 part=$2 code=0
	shift 2
	timeout 600 "$bin/ipu-report" "$@" >out 2>err || code=$?
	[ $code -eq "$wanted" ] || fail "$*: exit code $code, not $wanted: $(cat out err)"
	[ "$(wc -l <err)" -eq 1 ] || fail "$*: not one line: $(cat err)"
	grep -qF -- "$part" err || fail "$*: does not say \"$part\": $(cat err)"
}

for kind in tutorial replicas none; do
	"$make" $kind.db $kind
done

# ---- the file ------------------------------------------------------------------------------------
"$bin/ipu-report" tutorial.db export npz >out
[ "$(cat out)" = "captures.npz: 5 arrays, 17.6 MB" ] || fail "said: $(cat out)"
[ "$(ls -A)" = "$(printf '%s\n' captures.npz none.db out replicas.db tutorial.db)" ] || fail "left: $(ls -A)"
"$bin/ipu-report" tutorial.db export npz -o again.npz >/dev/null
cmp captures.npz again.npz || fail "two exports differ"
"$bin/ipu-report" replicas.db export npz --steps --output replicas.npz >out
grep -q '^uneven: replicas were captured at different steps' out || fail "said: $(cat out)"
"$bin/ipu-report" tutorial.db export npz --keys '*kernel*' --steps -o kernel.npz >/dev/null
if command -v unzip >/dev/null; then
	unzip -tqq captures.npz || fail "unzip complains"
fi

# ---- refusals ------------------------------------------------------------------------------------
before=$(stat -c %Y.%s captures.npz)
refused 2 'captures.npz: is there already (--force replaces it)' tutorial.db export npz
[ "$(stat -c %Y.%s captures.npz)" = "$before" ] || fail "captures.npz was touched"
"$bin/ipu-report" tutorial.db export npz --force --keys Half >/dev/null
[ "$(stat -c %s captures.npz)" -lt 8000 ] || fail "not replaced"
refused 2 'no format given (chrome, folded, html, npz, ' tutorial.db export
refused 2 'unknown format "npy" (did you mean "npz"?)' tutorial.db export npy
refused 2 'one word too many' tutorial.db export npz more
refused 2 'one word too many' tutorial.db spans npz
refused 2 'unknown option --force' tutorial.db spans --force
refused 2 'no captured tensor is called "Dence*" (there are 5, such as Dense_128/kernel:0_grad)' tutorial.db export npz --keys 'Dence*' -o x
refused 2 'no values were captured' none.db export npz -o x
refused 2 '--outfeed.capture full' none.db export npz -o x
refused 2 'nowhere/x' tutorial.db export npz -o nowhere/x
refused 2 'is a folder' tutorial.db export npz -o . --force
refused 2 'is a device or pipe' tutorial.db export npz -o /dev/null --force

# Nobody reads the pipe: it is not waited for.
mkfifo pipe
refused 2 'pipe: is a device or pipe, not a file' tutorial.db export npz -o pipe --force

# ---- a full disk ---------------------------------------------------------------------------------
mkdir full
code=0
(
	ulimit -f 4000 # blocks of 1,024 bytes
	trap '' XFSZ
	"$bin/ipu-report" tutorial.db export npz -o full/out.npz >out 2>err
) || code=$?
[ $code -eq 1 ] || fail "full disk: exit code $code: $(cat out err)"
grep -q 'full/out.npz: ' err || fail "full disk: said $(cat err)"
[ -z "$(ls -A full)" ] || fail "a full disk leaves $(ls -A full)"

# ---- an interrupt --------------------------------------------------------------------------------
"$make" large.db large 300
"$bin/ipu-report" large.db export npz -o full/out.npz >out 2>err &
pid=$!
# Not before it writes values: then it catches the signal.
until [ "$(stat -c %s full/* 2>/dev/null || echo 0)" -gt 1000000 ]; do sleep 0.01; done
kill -INT $pid
code=0
wait $pid || code=$?
[ $code -eq 1 ] || fail "interrupt: exit code $code: $(cat out err)"
grep -q 'interrupted' err || fail "interrupt: said $(cat err)"
[ -z "$(ls -A full)" ] || fail "an interrupt leaves $(ls -A full)"
rm large.db

# ---- numpy ---------------------------------------------------------------------------------------
python=
for candidate in python3 /usr/bin/python3; do
	[ -n "$python" ] || ! "$candidate" -c 'import numpy' 2>/dev/null || python=$candidate
done
if [ -z "$python" ]; then
	echo "skipped: no python3 with numpy"
	exit 77
fi
"$bin/ipu-report" tutorial.db export npz --force >/dev/null
"$python" - <<'PYTHON'
import numpy as np


def values(shape, enqueues, replica=0):
    count = int(np.prod(shape))
    one = (np.arange(count) % 65536 / 65536).astype(np.float32)
    return np.stack([(np.float32(e + 1000 * replica) + one).reshape(shape) for e in enqueues])


f = np.load("captures.npz")
assert f.files == ["Dense_128/kernel:0_grad", "Dense_128/bias:0_grad", "Dense_128", "Dense_128@5x128", "Half"], f.files
kernel = f["Dense_128/kernel:0_grad"]
assert kernel.shape == (125, 256, 128) and kernel.dtype == np.float32
assert np.array_equal(kernel, values((256, 128), range(125)))
assert f["Dense_128/bias:0_grad"].shape == (125, 128)
assert np.array_equal(f["Dense_128"], values((32, 128), range(124)))
assert np.array_equal(f["Dense_128@5x128"], values((5, 128), [124]))
assert f["Half"].dtype == np.float16 and f["Half"].shape == (125, 3, 7)
assert np.array_equal(f["Half"][7].ravel(), (1 + np.arange(21) / 1024).astype(np.float16))
assert f.zip.testzip() is None

f = np.load("replicas.npz")
assert f.files == ["even", "even@step", "uneven", "uneven@step"], f.files
assert f["even"].shape == (3, 2, 256, 2048)
for r in range(2):
    assert np.array_equal(f["even"][:, r], values((256, 2048), range(3), r))
assert f["even@step"].dtype == np.int64 and f["even@step"].tolist() == [0, 1, 2]
assert f["uneven"].tolist() == [0, 1, 1001, 2, 1002]
assert f["uneven@step"].tolist() == [0, 1, 1, 2, 2]

f = np.load("kernel.npz")
assert f.files == ["Dense_128/kernel:0_grad", "Dense_128/kernel:0_grad@step"], f.files
PYTHON
