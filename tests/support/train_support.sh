# Sourced by the training tests: a folder of their own, and the data that the run uses.
set -euo pipefail

bin=$IPUSCOPE_BIN_DIR
run=$IPUSCOPE_SOURCE_DIR/examples/inspect-tensors.json
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset POPLAR_ENGINE_OPTIONS IPUSCOPE_DATA
# The programs run in the user's locale; awk and printf would write numbers in it, too.
export LANG=${LC_ALL:-${LANG:-C}} LC_NUMERIC=C
unset LC_ALL

# sweep WORD...: sets $swept to one of the words, the next with each call; to all of them where the test was called with --all or
# $IPUSCOPE_TEST_SWEEPS is "all", as script/soak does.
sweep() {
	swept=("$@")
	[ -n "$sweeps_all" ] || swept=("${@:sweeps++ % $# + 1:1}")
}
sweeps=0 sweeps_all=
[ "${1:-}" != --all ] && [ "${IPUSCOPE_TEST_SWEEPS:-}" != all ] || sweeps_all=yes

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

# unlagged FILE: takes out of what ipu-train has said the line that it says on a busy machine.
unlagged() {
	sed -i '/^ipu-train: the report lags: /d' "$1"
}

# until_ COMMAND...: waits until it is true; two minutes, which no machine is too busy for.
until_() {
	local i
	for ((i = 0; i < 1200; i++)); do
		"$@" && return 0
		sleep 0.1
	done
	fail "never came true: $*"
}

# find_launchers: sets $launchers to the implementations of MPI that are built in and installed, of openmpi and mpich. Without any the
# test ends as skipped. Tests run them as the superuser, too, and with more ranks than processors.
find_launchers() {
	local plugins
	plugins=$(ls -d "$bin"/../lib*/ipuscope "$bin"/../lib/*/ipuscope 2>/dev/null | head -n 1 || true)
	launchers=()
	[ ! -e "$plugins/ranks-openmpi.so" ] || ! command -v mpirun.openmpi >/dev/null || launchers+=(openmpi)
	[ ! -e "$plugins/ranks-mpich.so" ] || ! command -v mpiexec.mpich >/dev/null || launchers+=(mpich)
	[ ${#launchers[@]} -gt 0 ] || { echo "skipped: neither Open MPI nor MPICH is installed"; exit 77; }
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
}

# A short run: steps of an epoch, then more arguments. The accumulation suits 1 to 3 stages on any schedule. Where the arguments say
# nothing of data it has the first images of the set: reading all of them takes longer than a few steps.
train() {
	local steps=$1 few=(--data.limit 8000)
	shift
	[ "$steps" -le 250 ] && [[ " $* " != *' --data.'* ]] || few=()
	"$bin/ipu-train" "$run" --fit.epochs 1 --fit.steps_per_epoch "$steps" --compile.steps_per_execution "$steps" "${few[@]}" "$@"
}

# train_full_disk ARGUMENT...: a run whose disk is full once its first execution is recorded, however fast the machine
# is: from then on nothing can be written beyond the first 8 MiB of a file. The log needs 16 MiB before it begins anew, and
# the database 11 MiB at the end; what is there by then fits, so the failure can be recorded. Leaves "out" and "err"; ends
# with the run's exit code.
train_full_disk() {
	local pid
	"$bin/ipu-train" "$run" --fit.epochs 20 --fit.steps_per_epoch 400 --compile.steps_per_execution 400 --data.batch_size 4 \
		--data.limit 2000 "$@" >out 2>err &
	pid=$!
	until_ executed 1
	prlimit --pid $pid --fsize=8388608:
	wait $pid
}

# executed N: whether the one report here has N executions or more.
executed() { [ "$(sqlite3 -readonly tf_report__*/profile.db "SELECT count(*) >= $1 FROM executions" 2>/dev/null)" = 1 ]; }

# make_npz FILE: an archive of the arrays on the standard input, a line each: name, type (f4, i4, u1 ...), dimensions with
# commas, values. Without Python the test ends as skipped.
make_npz() {
	command -v python3 >/dev/null || exit 77
	python3 -c '
import struct, sys, zipfile
codes = {"f4": "f", "f8": "d", "i4": "i", "i8": "q", "u1": "B"}
with zipfile.ZipFile(sys.argv[1], "w") as out:
    for line in sys.stdin:
        name, kind, shape, *values = line.split()
        dims = "".join(size + ", " for size in shape.split(","))
        head = "{\x27descr\x27: \x27<%s\x27, \x27fortran_order\x27: False, \x27shape\x27: (%s), }" % (kind, dims)
        head = head.ljust(117) + "\n"
        numbers = map(float if kind[0] == "f" else int, values)
        bytes = struct.pack("<%d%s" % (len(values), codes[kind]), *numbers)
        out.writestr(name + ".npy", b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + bytes)
' "$1"
}

# The keys of ipu-train that take the pipeline away.
no_pipeline=(--pipeline null --ipu.auto_select_ipus 1)
