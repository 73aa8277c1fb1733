#!/usr/bin/env bash
# ipu-monitor beside real trainers: two at once are shown as text and as JSON, gone after their end, after Ctrl-C and after kill -9; a run
# is never worse for a folder that cannot be announced in; --watch in a terminal and in a pipe.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
export XDG_RUNTIME_DIR=$work/runtime XDG_CACHE_HOME=${XDG_CACHE_HOME:-$work/cache} LC_ALL=C
mkdir -m 700 runtime
pids=()
tmux_=(tmux -L "ipumonitor$$" -f /dev/null)
trap 'set +e; kill -9 "${pids[@]}" 2>/dev/null; "${tmux_[@]}" kill-server 2>/dev/null; rm -rf "$work"' EXIT

monitor() { "$bin/ipu-monitor" "$@"; }
announced() { find runtime/ipuscope -type f 2>/dev/null | wc -l; }

# start ARGUMENTS: a trainer that goes on until it is ended; its number is the last of pids.
start() {
	"$bin/ipu-train" "$run" --fit.epochs 100000 --fit.steps_per_epoch 40 --compile.steps_per_execution 40 "$@" >>out 2>>err &
	pids+=($!)
}

trains() { monitor | grep "^$1: training, epoch [0-9]*/100000, step [0-9]*/40" >/dev/null; }
ended() { ! kill -0 "$1" 2>/dev/null; }

# --- nobody ------------------------------------------------------------------------------------------
monitor | grep 'No attached processes in partition sim' >/dev/null || fail "somebody is attached"

# --- two at once, one of them recording ----------------------------------------------------------------
POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' start
until_ trains "${pids[0]}"
start "${no_pipeline[@]}" --gradient_accumulation null --ipu.target ipu21 -q
until_ trains "${pids[1]}"
monitor >text
[ "$(grep -cE "^\| *${pids[0]} *\| *ipu-train .* 1330MHz .* [0-9.]+ C \| [0-9.]+ C \|[0-9.]+ W \|$" text)" -eq 2 ] || fail "not two IPUs: $(cat text)"
[ "$(grep -cE "^\| *${pids[1]} *\| *ipu-train .*\| 2  \| 1850MHz " text)" -eq 1 ] || fail "not the third IPU: $(cat text)"
grep -q '^Temp and Power are simulated' text || fail "not said to be simulated"
report=$(sed -n "s/^${pids[0]}: .*; ipu-view //p" text)
[ -f "$report/profile.db" ] || fail "no report in \"$report\""
grep -q "^${pids[1]}: .*ipu-view" text && fail "a report of a run that records none"
if command -v python3 >/dev/null; then
	monitor --json | python3 -c '
import json, sys
m = json.load(sys.stdin)
a, b = m["processes"]
assert [a["pid"], b["pid"]] == [int(p) for p in sys.argv[1:3]], m
assert a["ipus"] == [0, 1] and b["ipus"] == [2] and not a["shared"] and not b["shared"], m
assert a["state"] == "training" and a["epochs"] == 100000 and 0 <= a["step"] <= a["steps"] == 40, m
assert a["report"] == sys.argv[3] and b["report"] is None and 0 < a["utilisation"] <= 1, m
assert len(m["devices"]) == m["partition"]["ipus"] == 4, m
assert [d.get("user process id") for d in m["devices"]] == [sys.argv[1], sys.argv[1], sys.argv[2], None], m
' "${pids[0]}" "${pids[1]}" "$report" || fail "--json"
fi

# --- following -----------------------------------------------------------------------------------------
mkdir empty
(cd empty && "$bin/ipu-view" --text 2>&1 || true) | grep -F "running now: ipu-view $report" >/dev/null || fail "ipu-view does not suggest the running one"

# --- watching ------------------------------------------------------------------------------------------
"$bin/ipu-monitor" --watch 0.2 --json >watched &
watcher=$!
watched() { [ "$(wc -l <watched)" -ge "$1" ]; }
until_ watched 1
kill -INT $watcher # not heard in the background
until_ watched $(($(wc -l <watched) + 2))
kill -TERM $watcher
code=0
wait $watcher || code=$?
[ $code -eq 143 ] || fail "--watch: exit code $code"

if command -v tmux >/dev/null; then
	screen() { "${tmux_[@]}" capture-pane -p -t m 2>/dev/null; }
	shows() { screen | grep -F -- "$1" >/dev/null; }
	hides() { ! shows "$1"; }
	"${tmux_[@]}" new-session -d -s m -x 100 -y 30 "env -u NO_COLOR PS1='ready> ' bash --norc --noprofile"
	until_ shows 'ready>'
	"${tmux_[@]}" send-keys -t m "stty -g >before; '$bin/ipu-monitor' --watch 0.2; echo ended \$?" Enter
	until_ shows "${pids[1]}: training"
	[ "$("${tmux_[@]}" display -p -t m '#{alternate_on} #{cursor_flag}')" = "1 0" ] || fail "not on the alternate screen"
	screen | grep '^|  ipu-monitor  | ' >/dev/null || fail "the top is not there: $(screen)"
	"${tmux_[@]}" resize-window -t m -x 60 -y 10
	until_ shows 'lines above'
	until_ shows "${pids[1]}: training"
	"${tmux_[@]}" send-keys -t m C-z
	until_ shows 'Stopped'
	[ "$("${tmux_[@]}" display -p -t m '#{alternate_on} #{cursor_flag}')" = "0 1" ] || fail "stopped on the alternate screen"
	"${tmux_[@]}" send-keys -t m "clear; fg; echo ended \$?" Enter
	until_ shows "${pids[1]}: training"
	"${tmux_[@]}" send-keys -t m C-c
	until_ shows 'ended 0'
	until_ hides 'training'
	"${tmux_[@]}" send-keys -t m "stty -g >after" Enter
	until_ test -s after
	cmp -s before after || fail "--watch left other settings of the terminal"
	[ "$("${tmux_[@]}" display -p -t m '#{alternate_on} #{cursor_flag}')" = "0 1" ] || fail "--watch left the alternate screen"
fi

# --- ends ----------------------------------------------------------------------------------------------
kill -INT "${pids[0]}"
until_ ended "${pids[0]}"
[ "$(announced)" -eq 1 ] || fail "Ctrl-C left the announcement"
kill -9 "${pids[1]}"
wait "${pids[1]}" 2>/dev/null || true
[ "$(announced)" -eq 1 ] || fail "there is nothing to tidy up"
monitor | grep 'No attached processes' >/dev/null || fail "shown after kill -9"
[ "$(announced)" -eq 0 ] || fail "the file of the killed run is still there"
train 4 >out
[ "$(announced)" -eq 0 ] || fail "the end left the announcement"
code=0
train 4 --ipu.auto_select_ipus 1 >out 2>err || code=$?
[ "$(announced)" -eq 0 ] || fail "an error left the announcement"

# --- nowhere to announce -------------------------------------------------------------------------------
chmod 755 runtime
train 4 >out 2>err || fail "a folder of the wrong mode stopped the run: $(cat err)"
[ "$(grep -c 'ipu-monitor will not show this run: .*0700' out)" -eq 1 ] || fail "not one warning: $(cat out)"
train 4 -q >out 2>err || fail "-q: $(cat err)"
[ ! -s out ] && [ ! -s err ] || fail "-q warns: $(cat out err)"
code=0
monitor >out 2>err || code=$?
[ $code -eq 2 ] && [ "$(wc -l <err)" -eq 1 ] || fail "ipu-monitor, a folder of the wrong mode: $code, $(cat err)"
# Without the variable: a folder of one's own in the temporary one, made for it.
unset XDG_RUNTIME_DIR
export TMPDIR=$work/temporary
mkdir -m 1777 "$TMPDIR"
monitor >out 2>err || fail "ipu-monitor where nobody has announced anything: $(cat err)"
grep -q 'No attached processes' out && [ ! -s err ] || fail "without XDG_RUNTIME_DIR: $(cat out err)"
start -q
until_ trains "${pids[-1]}"
[ "$(stat -c %a "$TMPDIR/ipuscope-$(id -u)")" = 700 ] || fail "its mode: $(ls -la "$TMPDIR")"
kill "${pids[-1]}"
wait "${pids[-1]}" 2>/dev/null || true
chmod 755 "$TMPDIR/ipuscope-$(id -u)"
code=0
monitor >out 2>err || code=$?
[ $code -eq 2 ] && grep -q 'must be yours alone' err || fail "a folder that others may read: $code, $(cat err)"
