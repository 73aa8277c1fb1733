#!/bin/bash
# Random keys, clicks and resizes in ipu-view, in a real terminal, on ten kinds of reports and three traces, if they are there. Each viewer
# has to answer throughout, end when it is told to with the terminal as it was, and leave no word of a sanitizer. `keys.sh [SECONDS [SEED]]`:
# so long in all (600). Under the sanitizers where $IPUSCOPE_BIN_DIR has programs built with them.
set -u
source=${IPUSCOPE_SOURCE_DIR:?}
seconds=${1:-600}
RANDOM=${2:-1}
. "$source/tests/support/view_terminal.sh"
traces=${IPUSCOPE_TEST_TRACES:-}
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:log_path=$work/sanitizer UBSAN_OPTIONS=${UBSAN_OPTIONS:-}:print_stacktrace=1:halt_on_error=1
export XDG_CACHE_HOME=$work/cache

# --- the reports --------------------------------------------------------------------------------------
# trained NAME EXAMPLE ARGUMENT...: the report of a short training.
trained()
{
	local name=$1 example=$2
	shift 2
	mkdir -p "$work/in.$name"
	(cd "$work/in.$name" && POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' "$bin/ipu-train" \
		"$source/examples/$example" --fit.epochs 1 "$@" >out.txt 2>&1) || { fail "$example: $(tail -1 "$work/in.$name/out.txt")"; exit 1; }
	mv "$work/in.$name"/tf_report__*/ "$work/$name"
}

trained pipeline keras-chapter-stages.json
trained tensors inspect-tensors.json --steps-per-epoch 20 --outfeed.capture histogram
for topic in memory liveness metrics ranks64 gpu; do
	"$make" "$work/$topic.db" $topic || exit 1
done
cp "$work/run.db" "$work/damaged.db"
dd if=/dev/zero of="$work/damaged.db" bs=4096 seek=$(($(stat -c %s "$work/damaged.db") / 8192)) count=8 conv=notrunc status=none

# What is shown: the words for ipu-view's command line.
kinds=("$work/run.db" "$work/pipeline" "$work/tensors" "$work/memory.db" "$work/liveness.db" "$work/metrics.db" "$work/ranks64.db" "$work/gpu.db"
	"$work/damaged.db" recording)
if [ -n "$traces" ]; then
	kinds+=("$traces/kineto/hta_alexnet__MIT.json.gz" "$traces/nsys/nsys-ai_healthy_1pct__MIT.sqlite" "$traces/xplane/tracelens_jax_conv_minimal_08__MIT.xplane.pb")
fi

# --- keys ----------------------------------------------------------------------------------------------
named=(Up Down Left Right S-Left S-Right PPage NPage Home End Tab BTab Enter Enter Escape Escape BSpace DC Space F1 F2 F3 F4 F5 F6 F7 F8 F9 C-l C-u C-d)

# One to twelve keys: bytes, a click or a turn of the wheel, or keys with a name.
press()
{
	local i line= code
	case $((RANDOM % 3)) in
	0)
		for ((i = RANDOM % 12; i >= 0; i--)); do
			code=$((RANDOM % 126 + 1))
			# Not the keys that leave, suspend, write files or stop the terminal's output.
			case $code in 3 | 17 | 19 | 26 | 28 | 87 | 81 | 113) code=43 ;; esac
			line+=$(printf ' %02x' $code)
		done
		# shellcheck disable=SC2086
		"${tmux_[@]}" send-keys -t v -H $line
		;;
	1)
		type_ $'\e['"<$((RANDOM % 4 == 0 ? 64 + RANDOM % 2 : 0));$((RANDOM % 200 + 1));$((RANDOM % 50 + 1))M"
		;;
	2)
		for ((i = RANDOM % 6; i >= 0; i--)); do
			keys "${named[RANDOM % ${#named[@]}]}"
		done
		;;
	esac
}

# The viewer shows its help when it is asked to. Where it is busy, Esc stops what it reads, or two of them arrive as one key: once more then.
answers()
{
	"${tmux_[@]}" resize-window -t v -x 100 -y 30
	local pause i
	for pause in 0.3 1 3 10; do
		for i in 1 2 3; do
			keys Escape
			sleep $pause
		done
		keys '?'
		for i in $(seq 300); do
			screen | grep -F "Esc goes back" >/dev/null && keys Escape && sleep 0.3 && return 0
			sleep 0.1
		done
	done
	fail "it does not answer"
	return 1
}

# --- each report in turn, until the time is over ---------------------------------------------------------
writer=
share=$((seconds / ${#kinds[@]} + 1))
for kind in "${kinds[@]}"; do
	report=$kind
	if [ "$kind" = recording ]; then
		mkdir -p "$work/in.live"
		(cd "$work/in.live" && POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' exec "$bin/ipu-train" "$source/examples/inspect-tensors.json" \
			--fit.epochs 1000 >out.txt 2>&1) &
		writer=$!
		until report=$(echo "$work"/in.live/tf_report__*/profile.db) && [ -e "$report" ]; do
			kill -0 $writer 2>/dev/null || { fail "the training ended: $(tail -1 "$work/in.live/out.txt")"; break 2; }
			sleep 0.1
		done
	fi
	start 100 30
	view
	answers
	batches=0
	end=$((SECONDS + share))
	while [ $SECONDS -lt $end ] && [ $failures = 0 ]; do
		press
		[ $((RANDOM % 4)) = 0 ] && "${tmux_[@]}" resize-window -t v -x $((RANDOM % 180 + 10)) -y $((RANDOM % 50 + 3))
		kill -0 "$(cat "$work/pid")" 2>/dev/null || fail "random keys ended it on $kind"
		batches=$((batches + 1))
		[ $((batches % 200)) != 0 ] || answers || break
	done
	[ $failures = 0 ] && answers && keys Q && sane 0 "$kind"
	[ -z "$writer" ] || kill "$writer" 2>/dev/null
	writer=
	cat "$work"/sanitizer.* 2>/dev/null && fail "a sanitizer on $kind"
	[ $failures = 0 ] || break
	echo "${kind##*/}: $batches times keys, $share s"
done
exit $((failures > 0))
