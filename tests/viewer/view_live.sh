#!/bin/bash
# The viewer on runs that are recording, in tmux: progress moves, Z pauses, F follows, the write-ahead log stays bounded while the writer
# writes as fast as it can, and the end and the death of the writer are said and survived. `view_live.sh [SECONDS]`: of recording (2).
set -u
bin=${IPUSCOPE_BIN_DIR:?}
seconds=${1:-2}
work=$(mktemp -d)
failures=0 writer= pace=
tmux_=(tmux -L "ipulive$$" -f "${IPUSCOPE_SOURCE_DIR:?}/tests/support/tmux.conf")

if ! command -v tmux >/dev/null; then
	echo "skipped: tmux is not installed"
	exit 77
fi
trap '"${tmux_[@]}" kill-server 2>/dev/null; [ -z "$pace" ] || kill "$pace" 2>/dev/null; [ -z "$writer" ] || kill -9 "$writer" 2>/dev/null; rm -rf "$work"' EXIT
unset NO_COLOR TMUX
export LC_ALL=C.UTF-8
LOG_MOST=$((1 << 30)) # bytes; an idle machine writes 100 MB a second

fail()
{
	echo "FAILED: $*"
	failures=$((failures + 1))
	screen | sed 's/^/    | /'
}

screen() { "${tmux_[@]}" capture-pane -p -t v 2>/dev/null; }
keys() { "${tmux_[@]}" send-keys -t v "$@"; }

# Wait until the screen holds $1: a minute, which no machine is too busy for.
see()
{
	for _ in $(seq 600); do
		screen | grep -E -- "$1" >/dev/null && return 0
		sleep 0.1
	done
	fail "never shown: $1"
	return 1
}

# A writer that is through after $1 spans and then does $2, and a viewer with the arguments after.
record()
{
	local spans=$1 end=$2
	shift 2
	rm -f "$work"/run.db*
	"$bin/make_database" "$work/run.db" --spans "$spans" --end "$end" >"$work/said" 2>&1 &
	writer=$!
	for _ in $(seq 600); do
		"$bin/ipu-report" "$work/run.db" summary 2>/dev/null | grep steps >/dev/null && break
		sleep 0.1
	done
	"${tmux_[@]}" kill-session -t v 2>/dev/null
	"${tmux_[@]}" new-session -d -s v -x 100 -y 30 "'$bin/ipu-view' $* '$work/run.db'; echo ended \$?; sleep 100"
}

# From now on the writer rests nine tenths of its time: what a picture shows moves, without a processor that is busy all along.
slow()
{
	while sleep 0.05 && kill -STOP "$writer" && sleep 0.45 && kill -CONT "$writer"; do :; done 2>/dev/null &
	pace=$!
}

# As fast as it can.
fast()
{
	kill $pace && wait $pace 2>/dev/null
	pace=
	kill -CONT "$writer"
}

# The weight updates that the Summary tells.
updates() { screen | sed -nE 's/.* ([0-9,]+) weight updates.*/\1/p' | head -1 | tr -d ,; }
# The time at the right edge of the timeline's window, as it is told.
edge() { screen | grep -oE '(device|host) .* to [0-9.]+ [a-z]+' | head -1; }

# How often the write-ahead log began anew: the number of checkpoints in its header.
restarts() { echo $((0x$(od -A n -t x1 -j 12 -N 4 "$work/run.db-wal" 2>/dev/null | tr -d ' \n' | grep . || echo 0))); }

# It comes to say something else.
moves()
{
	local before now
	before=$("$1")
	for _ in $(seq 600); do
		sleep 0.1
		now=$("$1")
		[ -n "$now" ] && [ "$now" != "$before" ] && return 0
	done
	fail "$1 stays at '$before'"
}

# It comes to say the same for longer than a picture takes: what is under way ends some time.
stands()
{
	local before now
	now=$("$1")
	for _ in $(seq 20); do
		before=$now
		sleep 2.5
		now=$("$1")
		[ "$now" = "$before" ] && return 0
	done
	fail "$1 went from '$before' to '$now'"
}

# --- progress, pause, following, the log -----------------------------------------------------------
record 2000M complete
slow
see "[0-9] weight updates" && moves updates
see "recording" || true
keys Z
see "paused" && stands updates
keys Z
moves updates
keys 7
see "device [(]sim" && stands edge
keys F
see "following" && moves edge
fast
# The writer restarts its log beside the viewer's reads, however slow the machine: at 128 MB, or where a reader has lost its processor
# for longer than the writer waits, at one of the next attempts, 32 MB apart.
first=$(restarts) most=0
until=$((SECONDS + seconds))
while [ "$(restarts)" -le "$first" ] || [ $SECONDS -lt $until ]; do
	size=$(stat -c %s "$work/run.db-wal" 2>/dev/null || echo 0)
	[ "$size" -le $most ] || most=$size
	[ $most -le $LOG_MOST ] || { fail "the log grew to $most bytes while the viewer followed" && break; }
	kill -0 $writer 2>/dev/null || { fail "the writer ended: $(cat "$work/said")" && break; }
	sleep 0.1
done
echo "greatest log while followed: $((most >> 20)) MB, restarted $(($(restarts) - first)) times"

# --- the writer dies -------------------------------------------------------------------------------
kill -9 $writer
wait $writer 2>/dev/null
writer=
# The message "has died" goes after 5 s, which a busy machine may spend elsewhere; tests/viewer/test_view_session.c has it.
see "killed"
keys 1
see "Pipeline bubble"
keys q
see "ended 0"

# --- the run ends ------------------------------------------------------------------------------------
record 2M complete --follow
see "[0-9] weight updates"
wait $writer || fail "the writer failed: $(cat "$work/said")"
writer=
see "run has ended|complete"
see "complete"
keys 7
see "device [(]sim"
keys q
see "ended 0"
# One plain file; or, where the viewer was too busy to let go within the writer's second, all is in the file without its log.
cp "$work/run.db" "$work/alone.db"
"$bin/ipu-report" "$work/alone.db" view:meta --where "key = 'state'" --csv | grep complete >/dev/null || fail "the file is not complete without its log"
[ "$("$bin/ipu-report" "$work/alone.db" view:metrics --csv | wc -l)" = "$("$bin/ipu-report" "$work/run.db" view:metrics --csv | wc -l)" ] ||
	fail "the log has rows that the file has not"

[ $failures = 0 ] && echo "followed to both ends"
exit $((failures > 0))
