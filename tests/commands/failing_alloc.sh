#!/usr/bin/env bash
# Memory that ends at any allocation, of the programs or of a library: each command is done with the same output, or ends with one line
# and exit code 1; no signal, no command that hangs. Each place that allocates, as the stack of calls tells them apart, fails once alone
# and once with all allocations after it. A sample of the places, chosen by IPUSCOPE_TEST_SEED; with --all every place (script/soak).
# As released: the sanitizers have an allocator of their own.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

[ -e libfail_alloc.so ] || { echo "skipped: built with sanitizers"; exit 77; }
# The dynamic linker splits LD_PRELOAD at spaces, which the path of the build may have.
cp libfail_alloc.so "$work/"
library=./libfail_alloc.so
seed=${IPUSCOPE_TEST_SEED:-1}
cd "$work"
options='{"autoReport.all":"true"}'
short=(--fit.epochs 1 --fit.steps_per_epoch 4 --compile.steps_per_execution 4 --data.limit 128 --evaluate null --quiet --host.threads 2)
POPLAR_ENGINE_OPTIONS=$options "$bin/ipu-train" "$run" "${short[@]}" 2>/dev/null || fail "the recording"
mv tf_report__* report
tried=0

# An import prints how long it took.
without_times() {
	sed -i 's/ in [0-9.]* s, / in some s, /' "$1"
}

by=FAIL_ALLOC_STACK
# place HASH COMMAND...: the command with that place failing; "HASH-": from there on. Sets $what to nothing if it ended as it may.
place() {
	local hash=$1 code=0
	shift
	rm -rf tf_report__* out.*
	timeout -s KILL 100 env "$by=$hash" LD_PRELOAD="$library" "$@" >out 2>err || code=$?
	without_times out
	unlagged err
	sed -i '/(the run goes on without it)$/d' err
	tried=$((tried + 1))
	what="allocation $hash of $*: exit code $code, output of $(wc -l <out) lines: $(cat err)"
	# A locale that cannot be loaded is the locale C.
	if [ $code -eq 0 ] && [ ! -s err ] && { [ "$1" = "$bin/ipu-train" ] || cmp -s out good || cmp -s out plain; }; then
		what=
	elif [ $code -eq 1 ] && [ "$(wc -l <err)" -eq 1 ]; then
		what=
	fi
}

# sweep_places COUNT COMMAND...: so many of its places.
sweep_places() {
	local count=$1 hash places
	shift
	rm -rf tf_report__* out.* log
	FAIL_ALLOC_LOG=log LD_PRELOAD=$library "$@" >good 2>err || fail "$*: $(cat err)"
	rm -rf tf_report__* out.*
	LC_ALL=C "$@" >plain 2>err || fail "$*: $(cat err)"
	without_times good
	without_times plain
	[ "$(wc -l <log)" -gt 20 ] || fail "$*: places that allocate: $(wc -l <log)"
	places=$(cut -d ' ' -f 1 log | sort | awk -v count="$count" -v seed="$seed" '{ all[NR] = $1 }
		END { step = count > 0 && NR > count ? NR / count : 1; for (i = 0; int(i * step) < NR; i++) print all[(int(i * step) + seed) % NR + 1] }')
	for hash in $places; do
		sweep '' -
		for after in "${swept[@]}"; do
			place "$hash$after" "$@"
			[ -z "$what" ] || fail "$what"$'\n'"$(grep "^$hash " log)"
		done
	done
}

many=1
[ -z "$sweeps_all" ] || many=0
sweep_places $((2 * many)) "$bin/ipu-plan" schedule --all --stages 4 --microbatches 16 --forward 1 --backward 2
sweep_places $((3 * many)) "$bin/ipu-plan" model "$IPUSCOPE_SOURCE_DIR/examples/keras-mnist.json" --use-ipu
sweep_places $((4 * many)) "$bin/ipu-report" report
sweep_places $((4 * many)) "$bin/ipu-report" import "$IPUSCOPE_SOURCE_DIR/tests/golden/trace_kineto.json" -o out.db
sweep_places $((3 * many)) "$bin/ipu-report" merge report report -o out.db
sweep_places $((4 * many)) "$bin/ipu-view" report --view timeline --text --width 100
sweep_places $((3 * many)) "$bin/ipu-train" "$run" "${short[@]}"

# libhdf5 crashes where memory ends, as it starts above all. The log has no places of the processes that save and read for it; their
# allocations have the numbers after those of a run that does neither.
rm -f log
FAIL_ALLOC_LOG=log LD_PRELOAD=$library "$bin/ipu-train" "$run" "${short[@]}" 2>err || fail "a run that saves nothing: $(cat err)"
last=$(awk '$2 > last { last = $2 } END { print last }' log)
if "$bin/ipu-train" "$run" "${short[@]}" --weights.save_model saved.h5 2>err; then
	by=FAIL_ALLOC_AT
	for after in 50 120 200-; do
		place "$((last + ${after%-}))${after//[0-9]/}" "$bin/ipu-train" "$run" "${short[@]}" --weights.save_model out.h5
		[ -z "$what" ] || fail "$what"
	done
	rm -f log
	FAIL_ALLOC_LOG=log LD_PRELOAD=$library "$bin/ipu-train" "$run" "${short[@]}" --weights.load saved.h5 2>err || fail "a run that loads: $(cat err)"
	last=$(awk '$2 > last { last = $2 } END { print last }' log)
	export FAIL_ALLOC_CHILD=$work/child
	for ((at = 0; at < last; at += last / (many ? 12 : 400) + 1)); do
		for after in '' -; do
			place "$at$after" "$bin/ipu-train" "$run" "${short[@]}" --weights.load saved.h5
			[ -z "$what" ] || fail "$what"
		done
	done
	[ -e child ] || fail "no allocation of libhdf5 failed as it read"
	by=FAIL_ALLOC_STACK
else
	grep -q libhdf5 err || fail "saving a model: $(cat err)"
fi
export POPLAR_ENGINE_OPTIONS=$options
sweep_places $((3 * many)) "$bin/ipu-train" "$run" "${short[@]}"
if [ "$sweeps_all" ]; then
	unset POPLAR_ENGINE_OPTIONS
	sweep_places 0 "$bin/ipu-report" report insights
	sweep_places 0 "$bin/ipu-report" report what-if
	sweep_places 0 "$bin/ipu-report" report export html -o out.html
	sweep_places 0 "$bin/ipu-report" report export chrome -o out.json
	sweep_places 0 "$bin/ipu-view" report --view tensors --csv
fi

# Files that may not grow, few descriptors, a small stack: a line, no signal. Descriptors that whoever runs the tests left open count, too.
for descriptor in /proc/self/fd/*; do
	descriptor=${descriptor##*/}
	[ "$descriptor" -le 2 ] || [ "$descriptor" -eq 255 ] || eval "exec $descriptor>&-"
done
limited() {
	local code=0
	rm -rf tf_report__* out.*
	(ulimit "$1" "$2" && shift 2 && exec timeout -s KILL 100 "$@") >/dev/null 2>err || code=$?
	unlagged err
	sed -i '/(the run goes on without it)$/d' err
	{ [ $code -eq 0 ] && [ ! -s err ]; } || { [ $code -eq 1 ] && [ "$(wc -l <err)" -eq 1 ]; } || fail "ulimit $*: exit code $code: $(cat err)"
}
for limit in '-f 1' '-n 16' '-n 5' '-s 256'; do
	# shellcheck disable=SC2086
	limited $limit "$bin/ipu-train" "$run" "${short[@]}"
	# shellcheck disable=SC2086
	[ ! -e saved.h5 ] || limited $limit "$bin/ipu-train" "$run" "${short[@]}" --weights.load saved.h5
	# shellcheck disable=SC2086
	limited $limit "$bin/ipu-report" report
	# shellcheck disable=SC2086
	limited $limit "$bin/ipu-report" report export html -o out.html
	# shellcheck disable=SC2086
	limited $limit "$bin/ipu-view" report --view timeline --text
	# shellcheck disable=SC2086
	limited $limit "$bin/ipu-plan" schedule --all --stages 4 --microbatches 16 --forward 1 --backward 2
done
echo "$tried allocations failed"
