#!/usr/bin/env bash
# Eight replicas on two ranks of one thread each, beside one process with two threads; two replicas of four times the batch, a replica on
# each rank, which is what PyTorch's DistributedDataParallel (gloo) beside it does on two processes: the same images an update; and the
# sum over ranks alone beside MPI_Allreduce and gloo's. A step is one weight update; its time is the difference of a long and a short run,
# so that the start is in none. Medians of ROUNDS, in each of which all take turns, since the machine may be busier in one than in another.
# Usage: bench_ranks.sh BUILD_DIR [ROUNDS]. Needs Open MPI; without python3-torch its columns are left out.
set -euo pipefail
export LC_ALL=C OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none

build=$(cd "$1" && pwd)
rounds=${2:-5}
repeats=1
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

# ms of an update of REPLICAS: step REPLICAS SHORT LONG COMMAND...
updates() { seconds "${@:3}" --fit.steps_per_epoch $(($1 * $2)) --compile.steps_per_execution "$2" --fit.epochs 1; }
step() { awk -v a="$(updates "$1" "$2" "${@:4}")" -v b="$(updates "$1" "$3" "${@:4}")" -v n=$(($3 - $2)) 'BEGIN { printf "%.3f\n", (b - a) / n * 1e3 }'; }
median() { sort -g "$1" | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (b > 0) printf "%.2f", a / b; else print "-" }'; }

printf '%-8s %14s %14s %8s %14s %14s %8s %8s\n' "ms" "8: 1x2 threads" "8: 2x1 thread" ratio "2: 2x1 thread" "DDP gloo" "to 8" "to 2"
while read -r -u 3 network batch short long; do
	rm -f one two alike peer
	for ((round = 0; round < rounds; round++)); do
		step 8 "$short" "$long" "$build/bin/ipu-train" $network.json --host.threads 2 >>one
		step 8 "$short" "$long" "${launch[@]}" "$build/bin/ipu-train" $network.json --host.threads 1 >>two
		step 2 "$short" "$long" "${launch[@]}" "$build/bin/ipu-train" $network.json --host.threads 1 --distribution.replicas 2 --data.batch_size $((4 * batch)) >>alike
		if [ -n "$torch" ]; then $python3 "$here/peer_ddp.py" "$network" $((4 * batch)) 3; else echo 0; fi >>peer
	done
	one=$(median one) two=$(median two) alike=$(median alike) peer=$(median peer)
	printf '%-8s %14s %14s %8s %14s %14s %8s %8s\n' "$network" "$one" "$two" "$(ratio "$one" "$two")" "$alike" "$peer" "$(ratio "$peer" "$two")" "$(ratio "$peer" "$alike")"
done 3<<'END'
mlp 32 20 180
convnet 64 4 54
END

printf '\n%-10s %14s %14s %8s %14s %8s\n' "2 ranks, us" "ours" "MPI_Allreduce" ratio "gloo" ratio
for kib in 16 256 1024 4096 16384; do
	words=$((kib * 256))
	times=$((kib > 1024 ? 100 : 400))
	rm -f ours mpi gloo
	for ((round = 0; round < rounds; round++)); do
		"${launch[@]}" "$build/bin/bench_allreduce" ours $words $times >>ours
		"${launch[@]}" "$build/bin/bench_allreduce" mpi $words $times >>mpi
		if [ -n "$torch" ]; then $python3 "$here/peer_ddp.py" sum $words 1 | awk '{ printf "%.1f\n", $1 * 1e3 }'; else echo 0; fi >>gloo
	done
	ours=$(median ours) mpi=$(median mpi) gloo=$(median gloo)
	printf '%-10s %14s %14s %8s %14s %8s\n' "$kib KiB" "$ours" "$mpi" "$(ratio "$mpi" "$ours")" "$gloo" "$(ratio "$gloo" "$ours")"
done
echo "load: $(cat /proc/loadavg)"
