#!/usr/bin/env bash
# ipu-report REPORT insights of trained runs: what a remedy is predicted to give, beside the run that follows it word by word.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}'
examples=$IPUSCOPE_SOURCE_DIR/examples
table=${INSIGHTS_TABLE:-/dev/null} # docs/insights.md has it

# record NAME ARGUMENT...: train; the report is $work/NAME.
record() {
	local name=$1
	shift
	mkdir "$work/$name.dir"
	(cd "$work/$name.dir" && "$bin/ipu-train" "$@" --evaluate null >out.txt 2>err.txt) || fail "$name: $(cat "$work/$name.dir/err.txt")"
	mv "$work/$name.dir"/tf_report* "$work/$name"
}

# ask NAME ID COLUMN: of the first such insight; nothing where it is not said.
ask() {
	"$bin/ipu-report" "$work/$1" insights --where "id = '$2'" --json >"$work/answer.json"
	sqlite3 :memory: "SELECT json_extract(CAST(readfile('$work/answer.json') AS TEXT), '\$.rows[0].$3')"
}

# Of the device: ns of a step in executions, and from execution to execution; always-live bytes of IPU 0.
figure() {
	case $2 in
	step) sqlite3 "$work/$1/profile.db" "SELECT 1e9 * cycles / steps / m.value FROM executions, meta m
		WHERE mode = 'train' AND m.key = 'clock_hz' LIMIT 1" ;;
	start) sqlite3 "$work/$1/profile.db" "SELECT 1e9 * (max(start_cycle) - min(start_cycle)) / (sum(steps) - min(steps)) / m.value
		FROM executions, meta m WHERE mode = 'train' AND m.key = 'clock_hz'" ;;
	bytes) sqlite3 "$work/$1/profile.db" "SELECT max(always_live_bytes) FROM liveness WHERE ipu = 0" ;;
	esac
}

# follow FIGURE COLUMN NAME ID ARGUMENT...: train with what is said to do; the figure is what was predicted, to 5 %. COLUMN -: nothing
# was, but the figure is less.
follow() {
	local what=$1 column=$2 name=$3 id=$4 remedy words expected was is
	shift 4
	remedy=$(ask "$name" "$id" remedy)
	words=${remedy#*\`}
	words=${words%%\`*}
	[ -n "$words" ] || fail "$name: no $id, or no remedy: $("$bin/ipu-report" "$work/$name" insights)"
	was=$(figure "$name" "$what")
	expected=$was
	[ "$column" = - ] || expected=$(ask "$name" "$id" "$column")
	# shellcheck disable=SC2086
	record "$name-$id" "$@" $words
	is=$(figure "$name-$id" "$what")
	awk -v was="$was" -v expected="$expected" -v is="$is" -v column="$column" -v name="| \`$id\` | \`$words\` |" -v table="$table" 'BEGIN {
		error = is - expected
		if (error < 0)
			error = -error
		printf "%s %.0f | %s | %.0f | %s |\n", name, was, column == "-" ? "-" : sprintf("%.0f", expected), is,
			column == "-" ? "-" : sprintf("%.2f %%", 100 * error / is) >>table
		exit !(is < was && (column == "-" || error <= 0.05 * is))
	}' || fail "$name: $id: $words: from $was, predicted $expected, was $is"
}

tutorial=("$run" --fit.epochs 2 --fit.steps_per_epoch 160 --compile.steps_per_execution 80)
record tutorial "${tutorial[@]}"
follow step predicted_step_ns tutorial ramps "${tutorial[@]}"
follow step predicted_step_ns tutorial slow_stage "${tutorial[@]}"
follow step predicted_step_ns tutorial other_schedule "${tutorial[@]}"
follow start predicted_step_ns tutorial engine_run "${tutorial[@]}"
follow step - tutorial stream_copies "${tutorial[@]}"
ask tutorial ramps sentence | grep 'never leaves its ramps: Grouped with 2 stages goes in rounds of 4 micro-batches' >/dev/null || fail "ramps"
[ -z "$(ask tutorial recomputation id)" ] || fail "said without a reason"

# Half as many ramps: not "never". The better split: no slow stage. Interleaved: no other schedule.
[ -z "$(ask tutorial-ramps ramps sentence | grep never)" ] || fail "ramps are left"
[ -z "$(ask tutorial-slow_stage slow_stage remedy)" ] || fail "the best split has no better"
[ -z "$(ask tutorial-other_schedule other_schedule id)" ] || fail "the best schedule has no better"
[ -z "$(ask tutorial-engine_run engine_run id)" ] || fail "an epoch is one execution"

convolutions=("$examples/keras-mnist.json" --use-ipu --pipelining --fit.epochs 1 --fit.steps_per_epoch 16)
record convolutions "${convolutions[@]}"
follow bytes predicted_bytes convolutions recomputation "${convolutions[@]}"
[ -z "$(ask convolutions-recomputation recomputation id)" ] || fail "recomputed already"
# W reads activations once more: none can be let go.
record split "${convolutions[@]}" --pipeline.schedule zb-h1
[ -z "$(ask split recomputation id)" ] || fail "recomputation is offered to a schedule that refuses it"
record sequential "${convolutions[@]}" --pipeline.schedule Sequential
follow step predicted_step_ns sequential one_ipu "${convolutions[@]}" --pipeline.schedule Sequential

# A device that waits for the host; and an evaluation, which has no weight updates.
waiting=("$examples/mnist-starter.json" --fit.epochs 1 --fit.steps_per_epoch 8 --compile.steps_per_execution 8 --data.batch_size 512)
record waiting "${waiting[@]}" --infeed.prefetch_depth 1
follow step - waiting stream_copies "${waiting[@]}"
mkdir "$work/evaluation"
(cd "$work/evaluation" && "$bin/ipu-train" "$run" --fit null --evaluate.steps 8 --evaluate.steps_per_execution 8 >out.txt 2>&1) || fail "evaluation"
mv "$work"/evaluation/tf_report* "$work/evaluation/report"
[ -z "$(ask evaluation/report ramps id)" ] || fail "an evaluation has no ramps of weight updates"

# A run that is killed.
mkdir "$work/killed"
(cd "$work/killed" && exec "$bin/ipu-train" "$run" --fit.epochs 100 >out.txt 2>&1) &
pid=$!
executed() { [ "$(sqlite3 "$work"/killed/tf_report*/profile.db 'SELECT count(*) > 0 FROM execution_sum_rows' 2>/dev/null)" = 1 ]; }
until_ executed
kill -9 "$pid"
wait "$pid" 2>/dev/null || true
mv "$work"/killed/tf_report* "$work/killed/report"
# It has a place, unless what was written last is the end of an execution.
place=', in epoch'
[ "$(sqlite3 -readonly "$work/killed/report/profile.db" "SELECT (SELECT max(execution) FROM stage_timings WHERE clock = 'host')
	> (SELECT max(execution) FROM executions)")" = 1 ] || place=': '
ask killed/report killed sentence | grep "died before the file was complete$place" >/dev/null || fail "killed: $(ask killed/report killed sentence)"
ask killed/report ramps id | grep ramps >/dev/null || fail "a killed run has its ramps"
