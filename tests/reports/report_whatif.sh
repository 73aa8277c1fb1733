#!/usr/bin/env bash
# ipu-report what-if against the truth: the run that it predicts, trained, on the simulated clock.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}'
examples=$IPUSCOPE_SOURCE_DIR/examples
count=0
table=${WHATIF_TABLE:-/dev/null} # docs/what-if.md has it

dense() {
	echo "{\"class_name\":\"Dense\",\"config\":{\"name\":\"$1\",\"units\":$2,\"activation\":\"$3\"}}"
}
layer() {
	echo "{\"class_name\":\"$1\",\"config\":{\"name\":\"$2\"${3:+,$3}}}"
}

# model NAME LAYER...: a run file of a Sequential model.
model() {
	local name=$1 layers IFS=,
	shift
	layers="$*"
	cat >"$work/$name.json" <<-RUN
		{"model":{"class_name":"Sequential","config":{"name":"$name","layers":[$layers]}},
		"compile":{"optimizer":"adam","loss":"sparse_categorical_crossentropy","metrics":["accuracy"]},
		"data":{"name":"mnist","batch_size":16},"fit":{"epochs":1},"ipu":{"auto_select_ipus":2},
		"gradient_accumulation":{"steps_per_replica":8},"pipeline":{"stages":[]}}
	RUN
}
kernel='"kernel_size":[3,3],"activation":"relu"'
model mlp "$(layer Flatten flatten)" "$(dense d0 128 relu)" "$(dense d1 128 relu)" "$(dense d2 128 relu)" \
	"$(dense d3 128 relu)" "$(dense d4 128 relu)" "$(dense out 10 softmax)"
model cnn "$(layer Conv2D c1 "\"filters\":16,$kernel")" "$(layer MaxPooling2D p1)" \
	"$(layer Conv2D c2 "\"filters\":32,$kernel")" "$(layer BatchNormalization bn)" "$(layer MaxPooling2D p2)" \
	"$(layer Dropout drop '"rate":0.25')" "$(layer Flatten flatten)" "$(dense fc 64 relu)" \
	"$(layer Dropout drop2 '"rate":0.5')" "$(dense out 10 softmax)"

# record NAME RUN STAGES G ARGUMENT...: train two weight updates; the report is $work/NAME.
record() {
	local name=$1 file=$2 stages=$3 g=$4
	shift 4
	[ -e "$work/$name" ] && return
	mkdir "$work/$name.dir"
	local pipeline=(--pipeline.stages "$stages" --gradient_accumulation.steps_per_replica "$g")
	[ "$stages" = null ] && pipeline=()
	(cd "$work/$name.dir" && "$bin/ipu-train" "$file" "${pipeline[@]}" --fit.epochs 1 --evaluate null --data.limit 2000 --fit.steps_per_epoch "$((2 * g))" \
		--compile.steps_per_execution "$((2 * g))" "$@" >out.txt 2>err.txt) || fail "$name: $(cat "$work/$name.dir/err.txt")"
	mv "$work/$name.dir"/tf_report* "$work/$name"
}

# figures DATABASE: what was measured, as what-if's columns are called.
measured() {
	sqlite3 "$1/profile.db" "SELECT round(e.cycles * 1e9 / e.updates / m.value), b.idle_fraction, b.bubble_rate,
		b.bubble_over_ideal, (SELECT max(always_live_bytes + not_always_live_bytes) FROM liveness),
		(SELECT max(bytes) FROM (SELECT sum(bytes) AS bytes FROM tile_memory GROUP BY ipu, tile))
		FROM executions e, bubbles b, meta m
		WHERE e.mode = 'train' AND b.mode = 'train' AND b.clock = 'device' AND m.key = 'clock_hz' LIMIT 1"
}
predicted() {
	sqlite3 :memory: "SELECT json_extract(CAST(readfile('$work/whatif.json') AS TEXT), '\$.rows[1].weight_update_ns',
		'\$.rows[1].idle_fraction', '\$.rows[1].bubble_rate', '\$.rows[1].bubble_over_ideal',
		'\$.rows[1].memory_ipu_bytes', '\$.rows[1].memory_tile_bytes')" | tr -d '[]' | tr , '|'
}

# check PERCENT FROM TO ARGUMENT...: what-if ARGUMENT... of run FROM is run TO, to so many percent.
check() {
	local percent=$1 from=$2 to=$3
	shift 3
	"$bin/ipu-report" what-if "$work/$from" "$@" --json >"$work/whatif.json" 2>"$work/err.txt" ||
		fail "$from, $*: $(cat "$work/err.txt")"
	echo "$(measured "$work/$to")|$(predicted)" |
		awk -F'|' -v percent="$percent" -v name="$from -> $to | $*" -v table="$table" '{
			worst = 0
			for (i = 1; i <= 6; i++) {
				error = 100 * ($(i + 6) - $i) / ($i > 0 ? $i : 1)
				if (i == 1)
					time = error
				if (error < 0)
					error = -error
				if (error > worst)
					worst = error
			}
			printf "| %s | %.2f | %.2f | %+.3f | %.4f | %.4f | %d | %d |\n", name, $1 / 1e3, $7 / 1e3, time, $2, $8, $5, $11 >>table
			exit !(NF == 12 && worst <= percent)
		}' || fail "$from, $*: $(predicted), and $to took $(measured "$work/$to")"
	count=$((count + 1))
}

# both NAME RUN STAGES IPUS G: every schedule from every other, and other numbers of micro-batches.
both() {
	local name=$1 file=$2 stages=$3 ipus=$4 g=$5 schedule other
	for schedule in Grouped Interleaved Sequential; do
		record "$name-$schedule-$g" "$file" "$stages" "$g" --ipu.auto_select_ipus "$ipus" --pipeline.schedule "$schedule"
	done
	for schedule in Grouped Interleaved Sequential; do
		sweep Grouped Interleaved Sequential
		for other in "${swept[@]}"; do
			check 0.01 "$name-$schedule-$g" "$name-$other-$g" --schedule "$other"
		done
	done
	record "$name-Grouped-$((2 * g))" "$file" "$stages" "$((2 * g))" --ipu.auto_select_ipus "$ipus"
	check 0.01 "$name-Grouped-$g" "$name-Grouped-$((2 * g))" --micro-batches "$((2 * g))"
	check 0.01 "$name-Grouped-$((2 * g))" "$name-Grouped-$g" --micro-batches "$g"
	check 0.01 "$name-Grouped-$((2 * g))" "$name-Interleaved-$g" --micro-batches "$g" --schedule Interleaved
}

# The tutorial's run, unbalanced; 2 to 4 stages, balanced and not.
both tutorial "$examples/inspect-tensors.json" '[0,0,1,1,1,1]' 2 4
both mlp2 "$work/mlp.json" '[0,0,0,0,1,1,1]' 2 8
both mlp3 "$work/mlp.json" '[0,0,0,1,1,2,2]' 4 12
both mlp4 "$work/mlp.json" '[0,0,1,1,2,2,3]' 4 8
both cnn2 "$work/cnn.json" '[0,0,0,1,1,1,1,1,1,1]' 2 8
both cnn4 "$work/cnn.json" '[0,0,1,1,1,2,2,2,3,3]' 4 8

# alone NAME RUN STAGES IPUS G: schedules whose stages go on by themselves, from Grouped and back.
alone() {
	local name=$1 file=$2 stages=$3 ipus=$4 g=$5 schedule
	for schedule in gpipe 1f1b zb-h1 zb-h2; do
		record "$name-$schedule-$g" "$file" "$stages" "$g" --ipu.auto_select_ipus "$ipus" --pipeline.schedule "$schedule"
		check 0.01 "$name-Grouped-$g" "$name-$schedule-$g" --schedule "$schedule"
		check 0.01 "$name-$schedule-$g" "$name-Grouped-$g" --schedule Grouped
	done
}
alone tutorial "$examples/inspect-tensors.json" '[0,0,1,1,1,1]' 2 4
alone mlp4 "$work/mlp.json" '[0,0,1,1,2,2,3]' 4 8
record mlp-dealt "$work/mlp.json" '"auto"' 8 --pipeline.auto_stages 4 --pipeline.device_mapping '[0,1,0,1]' --pipeline.schedule 1f1b-interleaved
check 0.01 mlp2-Grouped-8 mlp-dealt --schedule 1f1b-interleaved
check 0.01 mlp-dealt mlp4-1f1b-8 --schedule 1f1b --split d1,d3,out

# Replicas and machines.
record cnn2-2 "$work/cnn.json" '[0,0,0,1,1,1,1,1,1,1]' 8 --ipu.auto_select_ipus 4
check 0.01 cnn2-Grouped-8 cnn2-2 --replicas 2
check 0.01 cnn2-2 cnn2-Grouped-8 --replicas 1
record cnn2-bow "$work/cnn.json" '[0,0,0,1,1,1,1,1,1,1]' 8 --ipu.target ipu21
check 0.01 cnn2-Grouped-8 cnn2-bow --target bow
check 0.01 cnn2-bow cnn2-Grouped-8 --target ipu2
record cnn2-ipu1 "$work/cnn.json" '[0,0,0,1,1,1,1,1,1,1]' 8 --ipu.target ipu1
check 0.01 cnn2-Grouped-8 cnn2-ipu1 --target ipu1

# Splits: another, more stages, fewer, and the best, which is what the trainer finds.
record cnn2b "$work/cnn.json" '[0,0,0,0,0,0,0,1,1,1]' 8
check 0.01 cnn2-Grouped-8 cnn2b --split fc
check 0.01 cnn2b cnn2-Grouped-8 --split 0,0,0,1,1,1,1,1,1,1
check 0.01 cnn2-Grouped-8 cnn4-Grouped-8 --split c2,drop,drop2
check 0.01 cnn4-Grouped-8 cnn2b --split fc
check 0.01 mlp2-Interleaved-8 mlp4-Interleaved-8 --split d1,d3,out
record cnn-auto "$work/cnn.json" '"auto"' 8
check 0.01 cnn2-Grouped-8 cnn-auto --split auto
record mlp-auto "$work/mlp.json" '"auto"' 8
check 0.01 mlp4-Grouped-8 mlp-auto --stages 2

# What was no pipeline, and accumulated nothing.
record mlp1 "$work/mlp.json" null 1 --pipeline null --gradient_accumulation null --ipu.auto_select_ipus 1
check 0.01 mlp1 mlp2-Grouped-8 --split d3 --micro-batches 8
check 0.01 mlp1 mlp4-Interleaved-8 --split d1,d3,out --micro-batches 8 --schedule Interleaved

# Any key of the run file, by itself and beside the names for some; a model that stands in a file of its own.
check 0.01 cnn2-Grouped-8 cnn2-bow --ipu.target ipu21
check 0.01 mlp4-Grouped-8 mlp-auto --pipeline.stages auto --pipeline.auto_stages 2 --ipu.auto_select_ipus 2
record cnn2-other "$work/cnn.json" '[0,0,0,1,1,1,1,1,1,1]' 8 --data.batch_size 8 --compile.optimizer sgd --ipu.target ipu1 --pipeline.schedule Sequential
check 0.01 cnn2-Grouped-8 cnn2-other --data.batch_size 8 --compile.optimizer sgd --target ipu1 --pipeline.schedule Sequential
sqlite3 :memory: "SELECT writefile('$work/apart.json', json_set(readfile('$work/cnn.json'), '\$.model', 'cnn_model.json')),
	writefile('$work/cnn_model.json', json_extract(readfile('$work/cnn.json'), '\$.model'))" >"$work/out.txt"
record apart "$work/apart.json" '[0,0,0,1,1,1,1,1,1,1]' 8
rm "$work/cnn_model.json"
check 0.01 apart cnn2-bow --target bow

# What the host does is not on the device: the streams are.
options=(--infeed.prefetch_depth 1 --ipu.allow_recompute true)
record re-Grouped "$work/cnn.json" '[0,0,0,1,1,1,1,1,1,1]' 8 "${options[@]}"
record re-Interleaved "$work/cnn.json" '[0,0,0,1,1,1,1,1,1,1]' 8 "${options[@]}" --pipeline.schedule Interleaved
check 0.01 re-Grouped re-Interleaved --schedule Interleaved
check 0.01 re-Interleaved re-Grouped --schedule Grouped

# The host's own clock: no accuracy is promised, but figures.
"$bin/ipu-report" what-if "$work/cnn2-Grouped-8" --clock host >"$work/out.txt" || fail "host"
grep -q Sequential "$work/out.txt" || fail "the host's table lacks a schedule"

# Rules, by name and with what is legal; nothing else on stdout.
refused() {
	local code=0 text=$1
	shift
	"$bin/ipu-report" what-if "$@" >"$work/out.txt" 2>"$work/err.txt" || code=$?
	[ "$code" = 2 ] && grep -q -e "$text" "$work/err.txt" && [ "$(wc -l <"$work/err.txt")" = 1 ] && [ ! -s "$work/out.txt" ] ||
		fail "what-if $*: exit code $code, $(cat "$work/err.txt")"
}
run=$work/cnn2-Grouped-8
refused "multiple of 2 x stages (= 4)" "$run" --micro-batches 6
refused 'did you mean "Grouped"' "$run" --schedule Groupd
refused "not a number" "$run" --replicas 0
refused "exclude each other" "$run" --json --csv
refused 'did you mean --pipeline.schedule' "$run" --pipeline.schedul Grouped
refused "do not depend" "$run" --clock host --target bow
mkdir "$work/nothing"
(cd "$work/nothing" && refused "no report given, and no tf_report__... here")

# A run that has no device clock says so; one that is not a run of ours too.
record host "$work/mlp.json" null 8 --ipu null --pipeline null --gradient_accumulation null
[ -e "$work/host/profile.db" ] || fail "no recording of the host alone"
lacks() {
	local code=0 text=$1
	shift
	"$bin/ipu-report" what-if "$@" >"$work/out.txt" 2>"$work/err.txt" || code=$?
	[ "$code" != 0 ] && grep -q -e "$text" "$work/err.txt" && [ "$(wc -l <"$work/err.txt")" = 1 ] ||
		fail "what-if $*: exit code $code, $(cat "$work/err.txt")"
}
lacks "clock host" "$work/host"
sqlite3 "$work/other.db" "CREATE TABLE t (x)"
lacks "not one of ipuscope" "$work/other.db"

# Same database in, same bytes out; the verb may come after the report.
same() {
	"$bin/ipu-report" what-if "$run" "$@" >"$work/a.txt" && "$bin/ipu-report" "$run" what-if "$@" >"$work/b.txt" &&
		cmp "$work/a.txt" "$work/b.txt" || fail "what-if $* is not the same twice"
}
same
same --csv
same --json
"$bin/ipu-report" what-if "$run" --width 80 | awk 'length > 80 { exit 1 }' || fail "lines of more than 80 columns"

# The viewer's screen has the same rows; the flags of each that can be trained make it come true.
"$bin/ipu-report" what-if "$run" --csv >"$work/a.csv"
"$bin/ipu-view" "$run" --view whatif --csv >"$work/b.csv" || fail "the screen What if"
cmp "$work/a.csv" "$work/b.csv" || fail "the screen has other rows than ipu-report what-if"
"$bin/ipu-report" what-if "$run" --json --columns change,flags,weight_update_ns >"$work/all.json"
rows() {
	sqlite3 -separator '|' :memory: "SELECT json_extract(value, '\$.change'), json_extract(value, '\$.flags'),
		json_extract(value, '\$.weight_update_ns') FROM
		json_each(json_extract(CAST(readfile('$work/all.json') AS TEXT), '\$.rows'))"
}
for change in 'as recorded' 'schedule 1f1b' '4 micro-batches' 'split auto' '1 stage' '4 stages' 'target ipu1'; do
	rows | grep "^$change|" >/dev/null || fail "what-if has no row \"$change\""
done
for change in 'schedule 1f1b' '16 micro-batches' 'split auto' 'target ipu1'; do
	IFS='|' read -r _ flags ns < <(rows | grep "^$change|")
	[ -n "$flags" ] || fail "$change: no flags"
	eval "record 'by flags of $change' '$work/cnn.json' '[0,0,0,1,1,1,1,1,1,1]' 8 $flags"
	IFS='|' read -r truth _ < <(measured "$work/by flags of $change")
	awk -v a="$truth" -v b="$ns" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < (a / 1e4) ^ 2) }' ||
		fail "$change: $ns ns predicted, $truth with $flags"
done

echo "$count predictions"
