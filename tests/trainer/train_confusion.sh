#!/usr/bin/env bash
# The metric ConfusionMatrix: its number is the accuracy, its matrix of each epoch is in the report and in the viewer, the same
# whatever the stages and the threads.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}'
# matrices NAME ARGUMENT...: a report, and its matrices, a line of numbers each.
matrices() {
	mkdir "$work/$1" && cd "$work/$1"
	shift
	train 24 --fit.epochs 2 --quiet --compile.metrics '["accuracy", "ConfusionMatrix"]' --evaluate null "$@" >out 2>&1 || fail "$*: $(cat out)"
	db=$(echo tf_report__*/profile.db)
	for epoch in 1 2; do
		sqlite3 "$db" "SELECT writefile('matrix', data) FROM captures WHERE key = 'confusion_matrix' AND epoch = $epoch" >count
		od -A n -v -t f4 -w400 matrix
	done
}
one=$(matrices one "${no_pipeline[@]}" --host.threads 1)
[ "$(wc -l <<<"$one")" -eq 2 ] || fail "not one matrix an epoch: $one"
[ "$(matrices two)" = "$one" ] || fail "two stages give another matrix"

cd "$work/two"
db=$(echo tf_report__*/profile.db)
for epoch in 1 2; do
	right=$(sed -n ${epoch}p <<<"$one" | awk '{ for (i = 1; i <= NF; i++) { all += $i; if ((i - 1) % 11 == 0) right += $i } printf "%d of %d", right, all }')
	[ "${right#* of }" -eq $((24 * 32)) ] || fail "epoch $epoch: not every image is in the matrix: $right"
	for name in accuracy confusion_matrix; do
		[ "$(sqlite3 "$db" "SELECT CAST(round(value * 24 * 32) AS INTEGER) FROM metrics WHERE name = '$name' AND epoch = $epoch AND step IS NULL")" -eq "${right% of *}" ] ||
			fail "epoch $epoch: $name is not the matrix's $right"
	done
done
"$bin/ipu-view" "$db" --view tensors --text >screen
grep -q 'confusion_matrix *metric' screen || fail "the viewer does not list it: $(cat screen)"

! train 1 --compile.loss mse --compile.metrics '["ConfusionMatrix"]' --model '{"layers": [{"class_name": "Flatten", "config": {}}, {"class_name": "Dense", "config": {"units": 1}}]}' >out 2>err ||
	fail "a matrix of one class is taken"
[ "$(wc -l <err)" -eq 1 ] || fail "not one line: $(cat err)"
