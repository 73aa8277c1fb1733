#!/usr/bin/env bash
# A full disk while recording: training ends, the report is said to be incomplete, exit code 1, the file opens.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}'
code=0
# A small model: what is recorded of a step is no less.
train_full_disk --evaluate null --weights.save weights --model.config.layers.1.config.units 8 --model.config.layers.2.config.units 16 || code=$?
[ $code -eq 1 ] || fail "exit code $code, not 1: $(cat out err)"
grep -q 'incomplete' err || fail "not said to be incomplete: $(cat err)"
grep -q 'Epoch 20/20' out || fail "training did not end: $(cat out)"
report=$(ls -d tf_report__*)
[ "$(sqlite3 "$report/profile.db" 'PRAGMA integrity_check')" = ok ] || fail "integrity"
"$bin/ipu-report" "$report" >summary.txt || fail "no summary of an incomplete report"
grep -q 'state  *failed: .*File too large' summary.txt || fail "the summary does not say what failed: $(cat summary.txt)"
# On a slow machine the disk may be full just when an execution has ended: then nothing lies beyond it.
beyond=$(sqlite3 "$report/profile.db" "SELECT coalesce(max(c.execution), -1) > (SELECT max(execution) FROM execution_rows)
	FROM stage_timing_rows s JOIN contexts c USING (context_id) WHERE s.clock = 0")
[ "$(grep -c 'reached  *epoch' summary.txt)" = "$beyond" ] || fail "the summary does not say how far the run came: $(cat summary.txt)"
grep -q 'what came after the last commit' summary.txt || fail "the summary does not say what is missing: $(cat summary.txt)"
"$bin/ipu-view" "$report" --view summary --text >/dev/null || fail "no view of an incomplete report"
