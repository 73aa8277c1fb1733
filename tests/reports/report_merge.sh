#!/usr/bin/env bash
# merge of two real trainers that ran at once: one timeline with both, one summary; where the file may not go; a full disk and Ctrl-C leave
# nothing behind.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' LC_ALL=C.UTF-8
merge() { "$bin/ipu-report" merge "$@"; }
refused() { # CODE TEXT COMMAND...
	local code=$1 text=$2 got=0
	shift 2
	"$@" >out 2>err || got=$?
	[ "$got" -eq "$code" ] || fail "$*: ended with $got: $(cat out err)"
	grep -q -- "$text" err || fail "$*: \"$text\" is not in: $(cat err)"
}

for name in a b; do
	mkdir $name
	(cd $name && train 40 --fit.epochs 3 -q >out 2>&1) &
done
wait
a=$(ls -d a/tf_report__*) b=$(ls -d b/tf_report__*)
[ -f "$a/profile.db" ] && [ -f "$b/profile.db" ] || fail "no reports: $(cat a/out b/out)"

# --- both in one -------------------------------------------------------------------------------------
merge "$a" "$b" -o both.db >said || fail "merge"
grep -q '^both.db: 2 ranks$' said || fail "said: $(cat said)"
grep -q 'residual .* anchors: [1-9]' said || fail "no residual: $(cat said)"
[ "$(sqlite3 both.db 'PRAGMA integrity_check')" = ok ] || fail "integrity"
for view in spans stage_timings bubbles device_steps tensor_stats metrics executions time_split; do
	for rank in 0 1; do
		report=$([ $rank = 0 ] && echo "$a" || echo "$b")
		[ "$(sqlite3 both.db "SELECT count(*) FROM $view WHERE rank = $rank")" = "$(sqlite3 "$report/profile.db" "SELECT count(*) FROM $view")" ] ||
			fail "$view of rank $rank"
	done
done
for view in layers operations programs variables tile_memory liveness tensors health_rules; do
	[ "$(sqlite3 both.db "SELECT count(*) FROM $view")" = "$(sqlite3 "$a/profile.db" "SELECT count(*) FROM $view")" ] || fail "$view is there twice"
done
"$bin/ipu-view" both.db --view timeline --text --width 160 >timeline || fail "ipu-view"
for lane in 'rank 0/IPU 0' 'rank 0/IPU 1' 'rank 1/IPU 0' 'rank 1/IPU 1'; do
	[ "$(grep -c "$lane" timeline)" -eq 2 ] || fail "no lanes of $lane on both clocks: $(cat timeline)"
done
"$bin/ipu-report" both.db >summary || fail "summary"
grep -q '2 ranks' summary || fail "the summary does not say that there are 2 ranks: $(head -20 summary)"
for report in stages bubbles time-split runs; do
	"$bin/ipu-report" both.db $report >/dev/null || fail "$report"
done

# --- a page ------------------------------------------------------------------------------------------
# The chart of the pipeline is of one rank: both have IPUs and weight updates of the same numbers.
"$bin/ipu-report" both.db export html -o both.html >/dev/null && "$bin/ipu-report" "$a" export html -o a.html >/dev/null || fail "export html"
for clock in simulated measured; do
	grep -q "($clock), rank 0, weight update" both.html || fail "both.html does not say whose pipeline it draws ($clock)"
done
grep -q "(simulated), weight update" a.html || fail "a.html does not draw its pipeline"
[ "$(grep -c '<g class="w"' both.html)" = "$(grep -c '<g class="w"' a.html)" ] || fail "both.html draws the work of both ranks"

# --- one execution of both ranks ----------------------------------------------------------------------
# Each rank's samples that lie in its own execution, which the ranks began at different times.
cp both.db sampled.db
sampled="counters c JOIN tracks t USING (track)"
for rank in 0 1; do
	sqlite3 sampled.db "UPDATE execution_rows SET dur_ns = 1, start_ns = (SELECT max(time_ns) FROM $sampled WHERE t.rank = $rank)
		WHERE rank = $rank AND execution = 1"
done
"$bin/ipu-report" sampled.db export chrome --execution 1 -o part.json >/dev/null || fail "export of an execution"
samples=$(grep -o '"ph":"C"' part.json | wc -l)
[ "$samples" -eq 2 ] || fail "$samples samples of execution 1, not one of each rank"

# --- a killed one, and again -------------------------------------------------------------------------
merge both.db "$a" -o three.db --align none >said || fail "merge of a merged file"
grep -q 'merged before: ranks 0 to 1' said || fail "said: $(cat said)"
[ "$(sqlite3 three.db 'SELECT group_concat(DISTINCT rank) FROM spans')" = 0,1,2 ] || fail "ranks of the second merge"

# --- where it may not go -----------------------------------------------------------------------------
ln -s "$a" 'file:a?mode=memory' && merge "/$PWD/file:a?mode=memory" "$b" -o 'file:m?mode=memory' >/dev/null ||
	fail "merge of names that are not URIs"
[ -s 'file:m?mode=memory' ] || fail "no file of that name"
refused 2 'is there already' merge "$a" "$b" -o both.db
merge "$a" "$b" -o both.db --force >/dev/null || fail "--force"
refused 2 'belongs to a report that is read' merge both.db "$b" -o both.db --force
refused 2 'is a folder' merge "$a" "$b" -o a
refused 2 'no file to write' merge "$a" "$b"
refused 2 'give two' merge "$a" -o x.db
refused 2 'same rank' merge "$a" "$b" -o x.db --ranks keep
touch x.db-wal
refused 2 'not finished' merge "$a" "$b" -o x.db
rm x.db-wal
echo nothing >nothing.db
refused 2 'nothing.db' merge "$a" nothing.db -o x.db
[ ! -e x.db ] || fail "a file of a refused merge"

# --- what does not end well --------------------------------------------------------------------------
(
	ulimit -f 200
	trap '' XFSZ
	refused 1 'x.db' merge "$a" "$b" -o x.db
)
[ -z "$(ls x.db* 2>/dev/null)" ] || fail "left of a full disk: $(ls x.db*)"
"$bin/ipu-report" merge both.db both.db both.db both.db both.db both.db both.db both.db both.db both.db -o x.db >out 2>err &
pid=$!
until [ -n "$(ls x.db.*.tmp 2>/dev/null)" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
kill -TERM $pid 2>/dev/null || fail "ended before it was stopped"
wait $pid && fail "stopped, and ended well"
grep -q 'interrupted: nothing was written' err || fail "said of the end: $(cat err)"
[ -z "$(ls x.db* 2>/dev/null)" ] || fail "left of an interrupted merge: $(ls x.db*)"
