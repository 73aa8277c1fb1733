#!/usr/bin/env bash
# pipeline.accumulate_outfeed: one loss for each pipeline run, the mean of its micro-batches, in rows, callbacks and means; and the
# same weights.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
args=(--data.limit 8000 --gradient_accumulation.steps_per_replica 12 --fit.steps_per_epoch 48 --compile.steps_per_execution 24
	--evaluate '{"steps": 48, "steps_per_execution": 12}')
accumulated=(--pipeline.accumulate_outfeed true)

# record NAME [--key value ...]: a report under NAME, what was printed in NAME.txt.
record() {
	local name=$1
	shift
	mkdir "$name"
	(cd "$name" && POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' \
		train 48 "${args[@]}" --weights.save "../$name.npz" "$@" >"../$name.txt")
	mv "$name"/tf_report__*/profile.db "$name.db"
}

# same NAME RUN: the rows of NAME and NAME-each: a row for each RUN of steps and its last step, their mean.
same() {
	local rows
	rows=$(sqlite3 -readonly "$1.db" "ATTACH '$1-each.db' AS each; SELECT m.mode, count(*), max(abs(m.value - e.value)) < 1e-9,
		min(m.step = e.step) FROM (SELECT row_number() OVER (PARTITION BY mode ORDER BY step) - 1 AS run, * FROM main.metrics
			WHERE name = 'loss' AND step IS NOT NULL) m
		JOIN (SELECT mode, step / $2 AS run, max(step) AS step, avg(value) AS value, count(*) AS steps FROM each.metrics
			WHERE name = 'loss' AND step IS NOT NULL GROUP BY 1, 2) e USING (mode, run) GROUP BY m.mode ORDER BY m.mode DESC")
	[ "$rows" = "$3" ] || fail "$1: rows are $rows, not $3"
	cmp -s "$1.npz" "$1-each.npz" || fail "$1: other weights"
	[ "$(grep -o 'loss: .*' "$1.txt" | tail -n 1)" = "$(grep -o 'loss: .*' "$1-each.txt" | tail -n 1)" ] ||
		fail "$1: the evaluation's mean is another: $(tail -n 3 "$1.txt")"
}

record pipeline-each
record pipeline "${accumulated[@]}"
same pipeline 12 $'train|4|1|1\nevaluate|4|1|1'
record replicas-each --ipu.auto_select_ipus 4
record replicas --ipu.auto_select_ipus 4 "${accumulated[@]}"
same replicas 12 $'train|2|1|1\nevaluate|2|1|1'

# A callback sees the last pipeline run of an execution, and single steps never.
watch() {
	"$bin/watch_training" "$run" 0 --fit.epochs 1 "${args[@]}" --evaluate null "$@" | grep "batches seen"
}
last=$(sqlite3 -readonly pipeline.db "SELECT printf('%.4f', min(value)) FROM metrics
	WHERE name = 'loss' AND mode = 'train' AND step IN (23, 47)")
for asynchronous in false true; do
	seen=$(watch "${accumulated[@]}" --fit.asynchronous_callbacks "$asynchronous")
	[[ $seen == *", 2 batches seen, the best $last" ]] || fail "callbacks saw $seen, not $last"
done
[[ $(watch --fit.asynchronous_callbacks true) == *', 48 batches seen, '* ]] || fail "single steps are not seen without"
echo "ok"
