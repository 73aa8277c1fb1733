#!/usr/bin/env bash
# kill -9 in the middle of training: the file opens, is whole, and reports and viewer show it; repair finishes it.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}'
for pause in 0.4 0.9 1.3; do
	rm -rf tf_report__*
	"$bin/ipu-train" "$run" --fit.epochs 1000 --fit.steps_per_epoch 400 --compile.steps_per_execution 400 >out 2>&1 &
	pid=$!
	until [ -n "$(ls -d tf_report__*/profile.db 2>/dev/null)" ] || ! kill -0 $pid 2>/dev/null; do
		sleep 0.05
	done
	sleep $pause
	kill -9 $pid || fail "ended before it was killed: $(cat out)"
	wait $pid 2>/dev/null || true
	report=$(ls -d tf_report__*)
	[ "$(sqlite3 -readonly "$report/profile.db" 'PRAGMA integrity_check')" = ok ] || fail "integrity after $pause s"
	"$bin/ipu-report" "$report" >summary.txt || fail "no summary of a killed run"
	grep -qi 'repair' summary.txt || fail "the summary does not say how to finish it: $(cat summary.txt)"
	grep -q 'what came after the last commit' summary.txt || fail "the summary does not say what is missing: $(cat summary.txt)"
	[ "$(sqlite3 -readonly "$report/profile.db" 'SELECT (SELECT coalesce(sum(count), 0) FROM stage_sums) - (SELECT count(*) FROM stage_timings)')" = 0 ] ||
		fail "the sums are not those of the rows"
	"$bin/ipu-view" "$report" --view timeline --text >/dev/null || fail "no timeline of a killed run"
	"$bin/ipu-report" "$report" repair >/dev/null || fail "repair"
	[ "$(sqlite3 "$report/profile.db" "SELECT value FROM meta WHERE key = 'state'")" = complete ] || fail "not complete after repair"
	[ "$(sqlite3 "$report/profile.db" 'PRAGMA integrity_check')" = ok ] || fail "integrity after repair"
done

# On a busy machine the writer may die after it committed the schema and before the first event.
rm -rf tf_report__*
train 4 >out 2>&1 || fail "$(cat out)"
report=$(ls -d tf_report__*)
sqlite3 "$report/profile.db" "UPDATE meta_facts SET value = 'recording' WHERE key = 'state'; DELETE FROM overhead_rows; DELETE FROM overhead_sum_rows"
"$bin/ipu-report" "$report" >summary.txt || fail "no summary of a run that was killed before its first event"
grep -q 'what came after the last commit, which has no event' summary.txt || fail "the summary does not say what is missing: $(cat summary.txt)"
