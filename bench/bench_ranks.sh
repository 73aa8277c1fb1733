#!/usr/bin/env bash
# Eight replicas on two ranks of one thread each, beside one process with two threads and PyTorch's DistributedDataParallel (gloo) on
# two processes; and the sum over ranks alone beside MPI_Allreduce and gloo's. A step is one weight update of eight batches; its time
# is the difference of a long and a short run, so that the start is in none. Least of REPEATS each.
# Usage: bench_ranks.sh BUILD_DIR [REPEATS]. Needs Open MPI; without python3-torch its columns are left out.
set -euo pipefail
export LC_ALL=C OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none

build=$(cd "$1" && pwd)
repeats=${2:-3}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo 0 >anon
. "$here/bench_seconds.sh"

launch=(mpirun.openmpi --oversubscribe --bind-to none -n 2)
torch=
python3=/usr/bin/python3
$python3 -c 'import torch' 2>/dev/null && torch=yes

head='"compile": {"optimizer": {"class_name": "SGD", "config": {"learning_rate": 0.01}}, "loss": "sparse_categorical_crossentropy"},
	"evaluate": null, "health": null, "distribution": {"replicas": 8}, "ipu": {}'
dense() { echo '{"class_name": "Dense", "config": {"units": '"$1"', "activation": "'"$2"'"}}'; }
cat >mlp.json <<JSON
{"model": {"class_name": "Sequential", "config": {"name": "mlp", "layers": [
	{"class_name": "Flatten", "config": {"batch_input_shape": [null, 28, 28]}}, $(dense 256 relu), $(dense 128 relu), $(dense 10 softmax)]}},
 "data": {"name": "mnist", "batch_size": 32}, "fit": {}, $head}
JSON
convolution() { echo '{"class_name": "Conv2D", "config": {"filters": '"$1"', "kernel_size": 3, "activation": "relu"'"$2"'}}'; }
pool='{"class_name": "MaxPooling2D", "config": {}}'
cat >convnet.json <<JSON
{"model": {"class_name": "Sequential", "config": {"name": "convnet", "layers": [
	$(convolution 32 ', "batch_input_shape": [null, 28, 28, 1]'), $pool, $(convolution 64 ""), $pool,
	{"class_name": "Flatten", "config": {}}, {"class_name": "Dropout", "config": {"rate": 0.5}}, $(dense 10 softmax)]}},
 "data": {"name": "mnist", "batch_size": 64}, "fit": {}, $head}
JSON

# run UPDATES COMMAND...: the command's run file with so many weight updates.
run() { seconds "${@:2}" --fit.steps_per_epoch $((8 * $1)) --compile.steps_per_execution "$1" --fit.epochs 1; }
step() { # SHORT LONG COMMAND...: ms of an update
	awk -v a="$(run "$1" "${@:3}")" -v b="$(run "$2" "${@:3}")" -v n=$(($2 - $1)) 'BEGIN { printf "%.3f", (b - a) / n * 1e3 }'
}
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (b > 0) printf "%.2f", a / b; else print "-" }'; }

printf '%-10s %14s %14s %8s %14s %8s\n' "8 replicas" "1 x 2 threads" "2 x 1 thread" ratio "DDP gloo" ratio
while read -r -u 3 network batch short long; do
	one=$(step "$short" "$long" "$build/bin/ipu-train" $network.json --host.threads 2)
	two=$(step "$short" "$long" "${launch[@]}" "$build/bin/ipu-train" $network.json --host.threads 1)
	peer=0
	[ -z "$torch" ] || peer=$($python3 "$here/peer_ddp.py" "$network" $((4 * batch)) 3)
	printf '%-10s %11s ms %11s ms %8s %11s ms %8s\n' "$network" "$one" "$two" "$(ratio "$one" "$two")" "$peer" "$(ratio "$peer" "$two")"
done 3<<'END'
mlp 32 20 180
convnet 64 4 54
END

printf '\n%-10s %14s %14s %8s %14s %8s\n' "2 ranks" "ours" "MPI_Allreduce" ratio "gloo" ratio
for kib in 16 256 1024 4096 16384; do
	words=$((kib * 256))
	times=$((kib > 1024 ? 100 : 400))
	ours=$("${launch[@]}" "$build/bin/bench_allreduce" ours $words $times)
	mpi=$("${launch[@]}" "$build/bin/bench_allreduce" mpi $words $times)
	gloo=0
	[ -z "$torch" ] || gloo=$($python3 "$here/peer_ddp.py" sum $words 1 | awk '{ printf "%.1f", $1 * 1e3 }')
	printf '%-10s %11s us %11s us %8s %11s us %8s\n' "$kib KiB" "$ours" "$mpi" "$(ratio "$mpi" "$ours")" "$gloo" "$(ratio "$gloo" "$ours")"
done
