#!/usr/bin/env bash
# The weights of each tutorial's short form have the digest that golden/digests.txt has, with each instruction set of this
# machine; those of an MLP and of a convnet also on any number of threads and any schedule, for 1 to 4 replicas.
# UPDATE_GOLDEN=1 rewrites the file: what changes there changes everyone's weights.
#
# train_digest.sh NAME...: only these of the tutorials, for a processor that is emulated.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

golden=$IPUSCOPE_SOURCE_DIR/tests/golden/digests.txt
examples=$IPUSCOPE_SOURCE_DIR/examples
chosen=()
[ -n "$sweeps_all" ] || chosen=("$@")
# Not the real data, wherever it may be.
export HOME=$work XDG_DATA_HOME=$work XDG_CACHE_HOME=$work
cd "$work"

# digest PROGRAM EXAMPLE ARGUMENT...: of the weights at the end.
digest() {
	local program=$1 example=$2
	shift 2
	"$program" "$examples/$example" --fit.epochs 1 --evaluate null "$@" >out.txt 2>err.txt || fail "$program $example $*: $(cat err.txt)"
	tr '\r' '\n' <out.txt | sed -n 's/^Weights: XXH3 \([0-9a-f]\{16\}\)$/\1/p'
}

# The programs: the best that this machine has, and those with narrower vectors.
programs=("$bin/ipu-train")
for level in 1 0; do
	narrow=./ipu-train-level-$level
	[ -x "$OLDPWD/$narrow" ] && programs+=("$OLDPWD/$narrow")
done
if [ -x "$OLDPWD/ipu-train-level-0" ]; then
	[ "$(nm "$OLDPWD/ipu-train-level-0" | grep -c ' i kernel_')" -eq 0 ] || fail 'the portable program has kernels of several variants'
	[ "$(nm "$bin/ipu-train" | grep -c ' i kernel_')" -gt 0 ] || echo 'the kernels have one variant in this build'
fi

# same NAME EXAMPLE ARGUMENT...: the digest of each of the programs is NAME's.
: >digests.txt
same() {
	local name=$1 program first='' found
	shift
	[ ${#chosen[@]} -eq 0 ] || [[ " ${chosen[*]} " == *" $name "* ]] || return 0
	for program in "${programs[@]}"; do
		found=$(digest "$program" "$@")
		[ -n "$found" ] || fail "$name: $program prints no digest"
		first=${first:-$found}
		[ "$found" = "$first" ] || fail "$name: $(basename "$program") has the weights $found, ipu-train $first"
		count=$((count + 1))
	done
	printf '%-28s %s\n' "$name" "$first" >>digests.txt
}

count=0
few=(--data.limit 64 --data.batch_size 8)
same keras-mnist keras-mnist.json "${few[@]}"
same keras-mnist-pipelining keras-mnist.json "${few[@]}" --use-ipu --pipelining
same keras-mnist-demo keras-mnist-demo.json "${few[@]}"
same keras-mnist-demo-replication keras-mnist-demo.json "${few[@]}" --replication
same keras-mnist-demo-pipelining keras-mnist-demo.json "${few[@]}" --pipelining Grouped
same keras-chapter keras-chapter.json "${few[@]}" --fit.steps_per_epoch 10
same keras-chapter-stages keras-chapter-stages.json "${few[@]}" --fit.steps_per_epoch 32
# Of large networks one of the narrower programs in turn.
every=("${programs[@]}")
large() {
	if [ ${#every[@]} -gt 2 ]; then
		sweep "${every[@]:1}"
		programs=("${every[0]}" "${swept[@]}")
	fi
	same "$@"
	programs=("${every[@]}")
}
large keras-chapter-resnet50 keras-chapter-resnet50.json --data.resize '[32, 32]' --data.limit 4
large cifar10-resnet50 cifar10-resnet50.json --data.resize '[32, 32]' --max-img 2 \
	--model.config.layers.0.config.batch_input_shape '[null, 32, 32, 3]'
same mnist-starter mnist-starter.json "${few[@]}" --fit.steps_per_epoch 10
same inspect-tensors inspect-tensors.json "${few[@]}" --steps-per-epoch 8
same inspect-tensors-half inspect-tensors.json "${few[@]}" --steps-per-epoch 8 --compile.dtype_policy mixed_float16
same inspect-tensors-adam inspect-tensors.json "${few[@]}" --steps-per-epoch 8 --compile.optimizer Adam
large efficientnet keras-chapter-resnet50.json --model '{"application": "EfficientNetB0", "config": {"weights": null}}' \
	--data.resize '[32, 32]' --data.limit 4 --pipeline null --ipu null
large nasnet keras-chapter-resnet50.json --model '{"application": "NASNetMobile", "config": {"weights": null}}' \
	--data.resize '[40, 40]' --data.limit 4 --pipeline '{"stages": "auto"}'

if [ ${#chosen[@]} -gt 0 ]; then
	[ "$(wc -l <digests.txt)" -eq ${#chosen[@]} ] || fail "not all of ${chosen[*]} are tutorials' names"
	cat digests.txt
	grep -vxFf "$golden" digests.txt >other.txt || exit 0
	fail "other weights than everyone has: $(cat other.txt)"
fi

# pipelined NAME EXAMPLE ARGUMENT...: every schedule that is no tutorial's own gives the digest of NAME too.
pipelined() {
	local name=$1 schedule found
	shift
	sweep gpipe 1f1b zb-h1 zb-h2
	for schedule in "${swept[@]}"; do
		found=$(digest "$bin/ipu-train" "$@" --pipeline.schedule $schedule)
		grep -q "^$name  *$found\$" digests.txt || fail "$name: $schedule: the weights $found"
		count=$((count + 1))
	done
}

pipelined keras-mnist-pipelining keras-mnist.json "${few[@]}" --use-ipu --pipelining
pipelined keras-mnist-demo-pipelining keras-mnist-demo.json "${few[@]}" --pipelining Grouped
pipelined keras-chapter-stages keras-chapter-stages.json "${few[@]}" --fit.steps_per_epoch 32
pipelined keras-chapter-resnet50 keras-chapter-resnet50.json --data.resize '[32, 32]' --data.limit 4
pipelined inspect-tensors-half inspect-tensors.json "${few[@]}" --steps-per-epoch 8 --compile.dtype_policy mixed_float16

# grid NAME EXAMPLE STAGES ARGUMENT...: on 1 to 3 replicas the digest depends on their number alone.
grid() {
	local name=$1 example=$2 stages=$3 replicas threads schedule ipus pipeline first found
	shift 3
	for replicas in 1 2 3; do
		first=
		for schedule in none Grouped Interleaved Sequential gpipe 1f1b zb-h1 zb-h2; do
			ipus=$((2 * replicas)) pipeline='{"stages": '$stages', "schedule": "'$schedule'"}'
			[ $schedule != none ] || ipus=$replicas pipeline=null
			sweep 1 2 3
			for threads in "${swept[@]}"; do
				found=$(digest "$bin/ipu-train" "$example" "$@" --ipu '{"auto_select_ipus": '$ipus'}' --pipeline "$pipeline" \
					--host.threads $threads --fit.steps_per_epoch $((8 * replicas)) --compile.steps_per_execution 8 \
					--gradient_accumulation '{"steps_per_replica": 4}')
				first=${first:-$found}
				[ -n "$found" ] && [ "$found" = "$first" ] ||
					fail "$name: $replicas replicas, $schedule, $threads threads: the weights $found, not $first"
				count=$((count + 1))
			done
		done
		printf '%-28s %s\n' "$name-$replicas" "$first" >>digests.txt
	done
}

# deep NAME EXAMPLE STAGES ARGUMENT...: four stages, on four IPUs or, in chunks, on two; the digest is that of two stages, NAME-1.
deep() {
	local name=$1 example=$2 stages=$3 threads schedule ipus mapping found first
	shift 3
	first=$(digest "$bin/ipu-train" "$example" "$@" --pipeline null --ipu.auto_select_ipus 1 --gradient_accumulation.steps_per_replica 8)
	for schedule in Grouped gpipe 1f1b 1f1b-interleaved zb-h1 zb-h2; do
		ipus=4 mapping=null
		sweep 1 2
		for threads in "${swept[@]}"; do
			[ $schedule != 1f1b-interleaved ] || ipus=2
			# Said, then by default.
			[ $schedule$threads != 1f1b-interleaved1 ] || mapping='[0, 1, 0, 1]'
			[ $schedule$threads != 1f1b-interleaved2 ] || mapping=null
			found=$(digest "$bin/ipu-train" "$example" "$@" --ipu.auto_select_ipus $ipus --host.threads $threads \
				--pipeline '{"stages": '"$stages"', "schedule": "'$schedule'", "device_mapping": '"$mapping"'}' \
				--gradient_accumulation.steps_per_replica 8)
			[ -n "$found" ] && [ "$found" = "$first" ] ||
				fail "$name: four stages, $schedule, $threads threads: the weights $found, not $first"
			count=$((count + 1))
		done
	done
}

eight=(--fit.steps_per_epoch 8 --compile.steps_per_execution 8)
deep mlp inspect-tensors.json '[0, 1, 2, 3, 3, 3]' "${few[@]}" "${eight[@]}"
deep convnet keras-mnist.json '[0, 0, 1, 2, 2, 3, 3]' "${few[@]}" "${eight[@]}" --use-ipu
grid mlp inspect-tensors.json '[0, 0, 1, 1, 1, 1]' "${few[@]}"
grid convnet keras-mnist.json '{"max_pooling2d_1": 1}' "${few[@]}"

if [ -n "${UPDATE_GOLDEN:-}" ]; then
	cp digests.txt "$golden"
fi
diff "$golden" digests.txt || fail 'other weights than everyone has'
# And it can fail: another seed gives another digest.
other=$(digest "$bin/ipu-train" inspect-tensors.json "${few[@]}" --steps-per-epoch 8 --fit.seed 2)
grep -q "^inspect-tensors  *$other" digests.txt && fail 'another seed gave the same weights'
echo "$count runs"
