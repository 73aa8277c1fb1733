#!/usr/bin/env bash
# Ctrl-C: the execution under way ends, the report is finished, exit code 1.
. "$IPUSCOPE_SOURCE_DIR/tests/train_support.sh" || exit 1

cd "$work"
export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}'
"$bin/ipu-train" "$run" --fit.epochs 1000 --fit.steps_per_epoch 40 --compile.steps_per_execution 40 >out 2>err &
pid=$!
sleep 2
kill -INT $pid
code=0
wait $pid || code=$?
[ $code -eq 1 ] || fail "exit code $code after an interrupt: $(tail -3 out) $(cat err)"
report=$(ls -d tf_report__*)
[ "$(sqlite3 "$report/profile.db" "SELECT value FROM meta WHERE key = 'state'")" = complete ] || fail "not finished after an interrupt"
