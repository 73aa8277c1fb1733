#!/usr/bin/env bash
# Ctrl-C: the execution under way ends early, at a weight update of all workers; the report is finished and holds what
# was done, no more; exit code 1.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}'
"$bin/ipu-train" "$run" --fit.epochs 1000 --fit.steps_per_epoch 40 --compile.steps_per_execution 40 >out 2>err &
pid=$!
# A row of the query $1 is committed.
recorded() { [ "$(sqlite3 -readonly tf_report__*/profile.db "SELECT count(*) > 0 FROM $1" 2>/dev/null)" = 1 ] || ! kill -0 $pid 2>/dev/null; }
until_ recorded executions
kill -INT $pid
code=0
wait $pid || code=$?
[ $code -eq 1 ] || fail "exit code $code after an interrupt: $(tail -3 out) $(cat err)"
report=$(ls -d tf_report__*)
[ "$(sqlite3 "$report/profile.db" "SELECT value FROM meta WHERE key = 'state'")" = complete ] || fail "not finished after an interrupt"

# ended_by SIGNAL COUNT: the same after so many of them.
ended_by() {
	local i
	rm -rf "$report"
	env --default-signal="$1" "$bin/ipu-train" "$run" --fit.epochs 1000 --fit.steps_per_epoch 40 --compile.steps_per_execution 40 >out 2>err &
	pid=$!
	until_ recorded executions
	for ((i = 0; i < $2; i++)); do
		kill -"$1" $pid 2>/dev/null || true
	done
	code=0
	wait $pid || code=$?
	[ $code -eq 1 ] || fail "exit code $code after SIG$1: $(tail -3 out) $(cat err)"
	report=$(ls -d tf_report__*)
	[ "$(sqlite3 "$report/profile.db" "SELECT value FROM meta WHERE key = 'state'")" = complete ] || fail "not finished after SIG$1"
}
# The terminal is closed; a second signal would end the run at once. A limit of processor time is near: the kernel says so again and again.
ended_by HUP 1
ended_by XCPU 9

# An execution of hours, on two replicas of two stages: host and device have the same runs, all of them whole.
rm -rf "$report"
"$bin/ipu-train" "$run" --fit.epochs 1 --fit.steps_per_epoch 800000 --compile.steps_per_execution 400000 --ipu.auto_select_ipus 4 >out 2>err &
pid=$!
until_ recorded stage_timings
kill -INT $pid
code=0
wait $pid || code=$?
[ $code -eq 1 ] || fail "exit code $code after an interrupt within an execution: $(tail -3 out) $(cat err)"
db=$(ls -d tf_report__*)/profile.db
steps=$(sqlite3 "$db" "SELECT steps FROM executions")
updates=$(sqlite3 "$db" "SELECT updates FROM executions")
[ "$steps" -gt 0 ] && [ "$steps" -lt 400000 ] && [ "$steps" -eq $((4 * updates)) ] || fail "$steps steps, $updates updates"
grep -q "^Weights: XXH3 [0-9a-f]\{16\} after $((2 * steps)) of 800000 steps$" out || fail "the digest does not say of which steps: $(grep XXH3 out)"
grep -q "^ *$((2 * steps))/800000 " out || fail "the screen does not say $((2 * steps)) steps: $(tail -2 out)"
# Forwards and backwards of two stages on two replicas, and updates; host and device alike.
wanted="$((4 * steps))|$((4 * steps))|$((4 * updates))"
for clock in host device; do
	found=$(sqlite3 "$db" "SELECT sum(phase = 'F'), sum(phase = 'B'), sum(phase = 'U') FROM stage_timings WHERE clock = '$clock'")
	[ "$found" = "$wanted" ] || fail "$clock: $found instead of $wanted"
done
[ "$(sqlite3 "$db" "SELECT count(*) FROM metrics WHERE step IS NOT NULL")" -eq "$steps" ] || fail "not every step has its loss"
