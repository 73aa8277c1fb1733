#!/usr/bin/env bash
# What is watched without a queue: which tensors, how often, at what tier; rings that a signal writes; the line before the run.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true","autoReport.directory":"report"}'

# record [--key value ...]: 24 weight updates of 4 micro-batches, the report in profile.db, what was printed in out.
record() {
	rm -rf report profile.db
	train 96 --evaluate null "$@" >out || fail "$*: exit code $?"
	mv report/*/profile.db profile.db
}
asks() { # SQL ANSWER
	local answer
	answer=$(sqlite3 -readonly profile.db "$1")
	[ "$answer" = "$2" ] || fail "$1: $answer, not $2"
}
tensors="SELECT kind, count(*) FROM tensors WHERE queue = 'watch' GROUP BY 1 ORDER BY 1"

# By default the activations and gradients that no queue sends; what has no bad value has no row.
record
asks "$tensors" $'activation|1\ngradient|4'
asks "SELECT count(*) FROM tensor_stats WHERE queue = 'watch'" 0
grep -q '^Looking at 9 tensors: about [0-9.]* kB of the report and [0-9.]* kB of memory$' out || fail "$(cat out)"
record --health.watch gradients
asks "$tensors" 'gradient|4'
record --health.watch none
asks "$tensors" ''
record --health null
asks "$tensors" ''
# Weights and optimizer state are for rules.
record --compile.optimizer Adam --outfeed.capture '[{"kind": ["weight", "optimizer_state"], "tier": "health"}]'
asks "$tensors" $'activation|1\ngradient|4\noptimizer_state|12\nweight|6'
asks "SELECT key FROM tensors WHERE kind = 'optimizer_state' ORDER BY 1 LIMIT 1" 'Adam/m/Dense_10/bias:0'
asks "SELECT key, activity FROM tensors WHERE queue = 'watch' AND kind = 'activation'" 'Dense_256|relu'
# What queues do not send is watched.
record --outfeed.capture off
asks "$tensors" $'activation|3\ngradient|6'

# Rules: each so many steps, or weight updates.
record --outfeed.optimizer_mode AFTER_COMPUTE --health.watch none --outfeed.capture '[{"kind": ["activation", "gradient"], "tier": "stats", "every": 5},
	{"kind": "weight", "tensors": "*kernel*", "tier": "counts", "every": 7}, {"kind": "optimizer_state", "tier": "off"}]'
asks "SELECT kind, count(*), count(DISTINCT key), sum(step % 5), sum(weight_update % 7) FROM tensor_stats WHERE queue = 'watch' AND kind <> 'weight'
	AND step IS NOT NULL GROUP BY 1" "$(printf 'activation|20|1|0|%s\ngradient|80|4|0|%s' \
	"$(seq 0 5 95 | awk '{s += int($1 / 4) % 7} END {print s}')" "$(seq 0 5 95 | awk '{s += int($1 / 4) % 7} END {print 4 * s}')")"
asks "SELECT key, group_concat(weight_update), min(phase), max(n_nan), count(mean) FROM tensor_stats WHERE kind = 'weight' GROUP BY 1 ORDER BY 1 LIMIT 1" \
	'Dense_10/kernel:0|0,7,14,21|U|0|0'
asks "SELECT count(DISTINCT key) FROM tensor_stats WHERE kind = 'weight'" 3

# Moving statistics are weights too; they have neither gradient nor slot.
cat >norm.json <<'JSON'
{"model": {"class_name": "Sequential", "config": {"name": "m", "layers": [
	{"class_name": "Flatten", "config": {"name": "flatten"}}, {"class_name": "BatchNormalization", "config": {"name": "norm"}},
	{"class_name": "Dense", "config": {"name": "out", "units": 10, "activation": "softmax"}}]}},
 "compile": {"loss": "sparse_categorical_crossentropy", "optimizer": "RMSprop", "steps_per_execution": "epoch"},
 "fit": {"steps_per_epoch": 8}, "outfeed": {"capture": [{"tier": "stats"}]}, "ipu": null}
JSON
rm -rf report
"$bin/ipu-train" norm.json >out || fail "norm.json: exit code $?"
mv report/*/profile.db profile.db
asks "$tensors" $'activation|2\ngradient|4\noptimizer_state|4\nweight|6'
asks "SELECT count(DISTINCT mean) FROM tensor_stats WHERE key = 'norm/moving_mean:0'" 8

# A rule that fits nothing is told, one that comes too late is not.
record --outfeed.capture '[{"kind": "weight", "tier": "stats"}, {"tensors": "Dense_10/kernel", "tier": "full"}, {"tensors": "Dense_10/kernel*", "tier": "full"},
	{"tensors": "Dense_128_acts", "tier": "off"}]'
[ "$(grep -c 'fits no tensor' out)" = 1 ] || fail "$(cat out)"
grep -q 'inspect-tensors.json: outfeed.capture\[1\] fits no tensor of this run$' out || fail "$(cat out)"

# Bytes that would pass the budget are told beforehand.
record --outfeed.capture full --outfeed.budget '1 MB'
grep -q '; the budget is 1 MB (outfeed.budget), so tiers will be lowered$' out || fail "$(cat out)"

# Nothing is watched where nobody would see it.
unset POPLAR_ENGINE_OPTIONS
train 96 --evaluate null >out
! grep -q '^Looking' out || fail "$(cat out)"
export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true","autoReport.directory":"report"}'

# A signal writes what is kept in memory, and training goes on; rules, which write it too, are not asked.
rm -rf report
"$bin/ipu-train" "$run" --fit.epochs 40 --fit.steps_per_epoch 400 --compile.steps_per_execution 400 --data.batch_size 4 --evaluate null --health null \
	--outfeed.capture '[{"tensors": "Dense_10/bias:0", "tier": "last 3"}, {"tier": "off"}]' >out 2>err &
pid=$!
captures() { sqlite3 -readonly report/*/profile.db "SELECT count(*) FROM captures" 2>/dev/null || echo 0; }
executed() { [ "$(sqlite3 -readonly report/*/profile.db "SELECT count(*) > 0 FROM executions" 2>/dev/null)" = 1 ]; }
until_ executed
[ "$(captures)" = 0 ] || fail "a ring is written without need"
kill -USR1 $pid
kept() { [ "$(captures)" = 3 ] || ! kill -0 $pid 2>/dev/null; }
until_ kept
code=0
wait $pid || code=$?
[ $code -eq 0 ] || fail "exit code $code: $(cat err)"
mv report/*/profile.db profile.db
# Three of the signal, three of the end.
asks "SELECT count(*), max(weight_update), sum(weight_update > 3990) FROM captures" '6|3999|3'
asks "SELECT value FROM meta WHERE key = 'state'" complete

# Of a rule that many tensors break, the first 20 are told, then that there are more; the end counts them all.
record --compile.optimizer Adam --outfeed.capture '[{"tier": "stats"}]' --health.rules '{"exploding": {"threshold": 0, "patience": 1}, "unchanged_tensor": false}' 2>err
told=$(grep -c '^\[HEALTH\] rule=exploding key=' err) || true
asks "SELECT count(*) > 20 FROM health WHERE rule = 'exploding'" 1
[ "$told" = 20 ] || fail "$told lines of one rule"
[ "$(grep -c '^\[HEALTH\] rule=exploding more than 20 times: further ones are in the view health of the report alone$' err)" = 1 ] || fail "$(cat err)"
grep -q "^Health: [0-9]* times a rule was broken: .*exploding $(sqlite3 -readonly profile.db "SELECT count(*) FROM health WHERE rule = 'exploding'")[, ].*(\`ipu-report .*report/.* health\`)\$" out || fail "$(tail -3 out)"
record --health.rules '{"unchanged_tensor": false}'
! grep -q '^Health:' out || fail "$(cat out)"

# Rings that the machine has no memory for are refused before the run.
code=0
"$bin/ipu-train" "$run" --outfeed.capture '"last 1000000"' >out 2>err || code=$?
[ $code -eq 1 ] || [ $code -eq 2 ] || fail "exit code $code: $(cat err)"
unlagged err
[ "$(wc -l <err)" = 1 ] || fail "not one line: $(cat err)"
grep -q 'outfeed.capture: what is kept in memory of the tensors needs about .* use a smaller N' err || fail "$(cat err)"
echo ok
