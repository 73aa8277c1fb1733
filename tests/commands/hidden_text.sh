#!/usr/bin/env bash
# Characters that control a terminal or hide in the text around them (C0, C1, marks of direction, characters without width), in the names
# of files, of layers and of a trace's events: no output has them as they are, but for CSV, which has the recorded bytes.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

hidden=$'\302\233m\342\200\256\342\200\213'
name=$'a\033[7m\177'$hidden
cd "$work"
checked=0

# shown WORDS COMMAND...: it ends well, says WORDS, and all that it prints can be read.
shown() {
	local words=$1
	shift
	"$@" >out 2>&1 </dev/null || fail "$*: $(cat -v out)"
	readable out "$*"
	LC_ALL=C grep -qaF -- "$words" out || fail "$* does not say '$words': $(cat out)"
	checked=$((checked + 1))
}

# readable FILE WHAT: no hidden character is in the file. An SVG's and HTML's newlines are none.
readable() {
	! LC_ALL=C grep -qaP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8b-\x8f\xaa-\xae]' "$1" || fail "$2: $(cat -v "$1")"
}

# --- a trace: names of events and of the file ----------------------------------------------------------
printf '{"traceEvents":[{"ph":"X","name":"b%s","pid":1,"tid":1,"ts":1,"dur":5,"args":{"k%s":"v%s"}},{"ph":"X","name":"=1+1","pid":1,"tid":1,"ts":9,"dur":5}]}' \
	"$hidden" "$hidden" "$hidden" >"$name.json"
shown 'a?[7m??m??.json: ' "$bin/ipu-report" import "$name.json" -o "$name.db"
cp "$name.db" other.db
shown 'b?m??' "$bin/ipu-report" "$name.db" spans --width 0
shown 'a?[7m??m??.db' "$bin/ipu-report" "$name.db"
shown 'b\u009bm\u202e\u200b' "$bin/ipu-report" "$name.db" spans --json
shown 'a?[7m??m??.db' "$bin/ipu-report" diff "$name.db" other.db
shown 'a?[7m??m??.merged: 2 ranks' "$bin/ipu-report" merge "$name.db" other.db -o "$name.merged"
shown 'a?[7m??m??.out: ' "$bin/ipu-report" "$name.db" export chrome -o "$name.out"
readable "$name.out" "export chrome"
shown 'a?[7m??m??.html' "$bin/ipu-report" "$name.db" export html -o "$name.html"
readable "$name.html" "export html"
shown 'a?[7m??m??.db: complete already' "$bin/ipu-report" "$name.db" repair
shown 'b?m??' "$bin/ipu-view" "$name.db" --view timeline --text --width 120
shown 'b?m??' "$bin/ipu-view" "$name.db" --view timeline --svg
mkdir "tf_report__$name" "tf_report__b"
cp other.db "tf_report__b/profile.db"
sleep 0.01
cp other.db "tf_report__$name/profile.db"
shown 'the newest report here: ./tf_report__a?[7m??m??' "$bin/ipu-report"
shown 'the newest of 2 reports: tf_report__a?[7m??m??' "$bin/ipu-report" tf_report__*
rm -r tf_report__*
# A fact of a file is not a line of ours.
sqlite3 other.db "INSERT INTO meta_facts VALUES ('weights_xxh3', '9c' || char(10) || 'FORGED' || char(27) || '[7m')"
shown 'No other difference' "$bin/ipu-report" diff other.db other.db
! grep FORGED out || fail "a forged line: $(cat out)"
"$bin/ipu-report" "$name.db" spans --csv >out
LC_ALL=C grep -qaF "b$hidden," out || fail "CSV has not the recorded bytes: $(cat out)"
grep -q ',=1+1' out || fail "CSV has not the recorded text: $(cat out)"
"$bin/ipu-report" "$name.db" spans --csv --csv-safe >out
grep -q ",'=1+1" out || fail "--csv-safe: $(cat out)"
! "$bin/ipu-report" "$name.none" >out 2>&1 || fail "a report that is not there"
readable out "a report that is not there"

# --- a run file: names of layers and of the file -------------------------------------------------------
sed "s/Dense_128/b\\\\u009bm\\\\u202e\\\\u200b/g" "$run" >"$name.run"
shown 'a?[7m??m??.run: ' "$bin/ipu-plan" model "$name.run"
shown 'b\u009bm' "$bin/ipu-plan" model "$name.run" --json
shown 'a?[7m??m??.run: ' "$bin/ipu-plan" scale "$name.run" --ipus 2,4
shown 'Flags of a?[7m??m??.run' "$bin/ipu-train" "$name.run" --help
shown 'b\u009bm' "$bin/ipu-train" "$name.run" --print-run
shown 'b?m?' "$bin/ipu-train" "$name.run" --summary
! command -v mpirun.openmpi >/dev/null || shown " 'a?[7m??m??.run'" "$bin/ipu-run" --dry-run -n 2 "$name.run"
sed "s/Dense_256/bä中/g" "$run" >wide.run
"$bin/ipu-train" wide.run --summary >out || fail "names beyond ASCII: $(cat out)"
[ "$(LC_ALL=C.UTF-8 grep -o '^b.*(Dense) *' out | head -1)" = 'bä中 (Dense)                 ' ] || fail "columns are not aligned: $(cat out)"
export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}'
shown 'key: b?m??_acts shape: ' "$bin/ipu-train" "$name.run" --fit.epochs 1 --fit.steps_per_epoch 4 --compile.steps_per_execution 4 --data.limit 128 \
	--outfeed.capture full
mv tf_report__* report
for file in report/*.json; do
	readable "$file" "$file"
done
shown 'b?m??' "$bin/ipu-report" report layers
shown 'b\u009bm\u202e\u200b' "$bin/ipu-report" report operations --json
shown 'Insights' "$bin/ipu-report" report insights
shown 'a?[7m??m??.npz: ' "$bin/ipu-report" report export npz -o "$name.npz"
shown 'b?m??' "$bin/ipu-view" report --view tensors --text --width 160
echo "$checked commands"
