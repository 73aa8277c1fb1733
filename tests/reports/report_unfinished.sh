#!/usr/bin/env bash
# Recordings that did not come to their end (killed, disk full, empty): every report, view, export and verb says what
# it can, says what is missing, and fails with one line where it can say nothing.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
make=$PWD/trace_make

cd "$work"
export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}'

# ---- the states ----------------------------------------------------------------------------------
train 40 --compile.steps_per_execution 20 >out 2>err || fail "training: $(cat out err)"
mv tf_report__* whole

train_full_disk --evaluate null || true
mv tf_report__* full

"$bin/ipu-train" "$run" --fit.epochs 10000 --fit.steps_per_epoch 40 --compile.steps_per_execution 40 >out 2>&1 &
pid=$!
until_ executed 3
kill -9 $pid
wait $pid 2>/dev/null || true
mv tf_report__* killed

"$bin/ipu-train" "$run" --fit.steps_per_epoch 1000000 --compile.steps_per_execution 1000000 >out 2>&1 &
pid=$!
stepped() { [ "$(sqlite3 -readonly tf_report__*/profile.db 'SELECT count(*) > 100 FROM spans' 2>/dev/null)" = 1 ]; }
until_ stepped
kill -9 $pid
wait $pid 2>/dev/null || true
mv tf_report__* early

cp -r killed repaired
"$bin/ipu-report" repaired repair >said || fail "repair: exit code $?"

"$make" empty.db empty
: >nothing.db

# ---- what each must say --------------------------------------------------------------------------
declare -A lacks=(
	[full]='Recording failed (.*File too large.*): what came after is missing'
	[killed]='The run was killed: what it had not yet written is missing'
	[repaired]='The run was killed: what it had not yet written is missing'
)

# expect CODE PATTERN COMMAND...: the exit code; what is said has a line that fits, and an error is one line.
expect() {
	local wanted=$1 pattern=$2 code=0
	shift 2
	timeout 600 "$bin/ipu-report" "$@" >said 2>error </dev/null || code=$?
	[ $code -eq "$wanted" ] || fail "$*: exit code $code, not $wanted: $(head -c 1000 error)"
	if [ "$wanted" -eq 0 ]; then
		[ ! -s error ] || fail "$*: done, but complains: $(cat error)"
	else
		[ ! -s said ] && [ "$(wc -l <error)" -eq 1 ] || fail "$*: not one line: $(cat said error)"
		grep -q "^ipu-report[a-z -]*: .*$(basename -- "${*: -1}")\|^ipu-report" error || fail "$*: no place: $(cat error)"
	fi
	tr '\n' ' ' <said | cat - error | grep -- "$pattern" >/dev/null || fail "$*: does not say \"$pattern\": $(cat said error)"
}

names=$("$bin/ipu-report" list --csv | tr -d '\r' | awk -F, 'NR > 1 && $2 != "verb" && $1 != "list" && $1 != "repair" && $1 != "summary" && $1 != "insights" { print $1 }')
[ "$(wc -w <<<"$names")" -gt 50 ] || fail "few reports: $names"

# ---- reports and views ---------------------------------------------------------------------------
expect 0 'state  *failed: .*File too large' full
expect 0 'state  *killed: ' killed
expect 0 'state  *complete (repaired' repaired
expect 0 'none of  *spans, executions, stages, bubbles, metrics, statistics' empty.db
expect 0 'Writing failed: .*File too large.* is missing' full insights
expect 0 'killed' killed insights
expect 0 'repaired' repaired insights
expect 0 . empty.db insights
expect 2 'is empty: nothing was recorded yet' nothing.db insights
for name in $names; do
	sweep full killed repaired
	for report in "${swept[@]}"; do
		expect 0 "${lacks[$report]}" $report $name
	done
	expect 0 "${lacks[full]}" full $name --json --limit 3
	grep -q '"rows":\[' said || fail "full $name --json: $(cat said)"
	expect 0 . full $name --csv --limit 3
done
for name in $names; do
	expect 0 . empty.db $name
	case $name in
	meta | overhead | view:overhead | overhead_sums) ;;
	*) grep -q '^(no rows)$' said || fail "empty.db $name: rows, or not said that there are none: $(cat said)" ;;
	esac
	awk '/^\(no rows\)$/ { none = 1 } none && NF { lines++ } END { exit none && lines < 1 }' said || fail "$name: $(cat said)"
done
for name in summary spans view:metrics; do
	expect 2 'is empty: nothing was recorded yet' nothing.db $name
done
for name in summary runs stages spans meta; do
	expect 0 . whole $name
	! grep -q 'missing' said || fail "whole $name: said to lack something: $(cat said)"
done

# ---- exports -------------------------------------------------------------------------------------
# report format code pattern; UNFINISHED: the report's sentence.
while read -r report format code pattern; do
	rm -rf written*
	[ "$pattern" != UNFINISHED ] || pattern=${lacks[$report]}
	expect "$code" "$pattern" $report export $format -o written
	[ "$code" -ne 0 ] || [ -e written ] || fail "$report $format: nothing was written"
	[ "$code" -eq 0 ] || [ -z "$(ls -d written* 2>/dev/null)" ] || fail "$report $format: left $(ls -d written*)"
done <<'TABLE'
full chrome 0 UNFINISHED
full speedscope 0 UNFINISHED
full folded 0 UNFINISHED
full torch-csv 0 UNFINISHED
full popvision 0 UNFINISHED
full html 0 UNFINISHED
full npz 2 no values were captured
killed chrome 0 UNFINISHED
killed speedscope 0 UNFINISHED
killed folded 0 UNFINISHED
killed torch-csv 0 UNFINISHED
killed popvision 0 UNFINISHED
killed html 0 UNFINISHED
killed npz 2 no values were captured
repaired chrome 0 UNFINISHED
repaired popvision 0 UNFINISHED
empty.db chrome 0 0 spans, 0 instants
empty.db speedscope 0 0 spans on 0 tracks
empty.db folded 0 0 stacks of 0 spans
empty.db torch-csv 2 has no stage timings
empty.db popvision 0 no program was recorded: .* no traced execution was recorded
empty.db html 0 .
empty.db npz 2 no values were captured
nothing.db chrome 2 is empty: nothing was recorded yet
nothing.db popvision 2 is empty: nothing was recorded yet
nothing.db npz 2 is empty: nothing was recorded yet
TABLE

# ---- verbs ---------------------------------------------------------------------------------------
expect 2 'no execution of a training was finished' what-if early
expect 0 "${lacks[full]}" what-if full
expect 0 "${lacks[killed]}" what-if killed
expect 0 "${lacks[repaired]}" what-if repaired
expect 2 'no run of ipu-train' what-if empty.db
expect 2 'fit.seed: must be from 0 to 9007199254740992, not -1' what-if full --fit.seed -1
for report in full killed repaired; do
	expect 0 "target  $report  *${lacks[$report]}" diff whole $report
	expect 0 "source  $report  *${lacks[$report]}" diff $report whole
done
expect 0 'There are no rows of tensors or metrics that both have' diff whole empty.db
expect 2 'is empty' diff whole nothing.db
expect 0 ' failed, .*recording failed: what came after is missing.* killed, .*its writer died' \
	merge whole full killed empty.db -o merged.db
expect 2 'is empty' merge whole nothing.db -o merged2.db
[ ! -e merged2.db ] || fail "a merge that failed left its file"
expect 2 'is empty' nothing.db repair

# ---- files that may grow no further --------------------------------------------------------------
# Of a whole report: what a killed one has, and so how large its exports are, depends on the moment.
while read -r -a words; do
	rm -rf limit && mkdir limit
	code=0
	(
		ulimit -f 1
		"$bin/ipu-report" "${words[@]}" >/dev/null 2>error
	) || code=$?
	[ $code -eq 1 ] && [ "$(wc -l <error)" -eq 1 ] || fail "${words[*]} onto a small disk: $code $(cat error)"
	[ -z "$(find limit -type f -size +0)" ] || fail "${words[*]} onto a small disk left $(ls limit)"
done <<'TABLE'
whole export chrome -o limit/x
whole export chrome -o limit/x.gz
whole export folded -o limit/x
whole export speedscope -o limit/x
whole export html -o limit/x
whole export popvision -o limit/x
merge whole killed -o limit/x
TABLE

# ---- output that is refused ----------------------------------------------------------------------
# Whatever is printed: a full disk is an error, and a closed output is one too.
while read -r -a words; do
	code=0
	"$bin/ipu-report" "${words[@]}" >/dev/full 2>error || code=$?
	[ $code -eq 1 ] && [ "$(wc -l <error)" -eq 1 ] || fail "${words[*]} onto a full disk: $code $(cat error)"
	code=0
	"$bin/ipu-report" "${words[@]}" >&- 2>error || code=$?
	[ $code -eq 1 ] && [ "$(wc -l <error)" -eq 1 ] || fail "${words[*]}, output closed: $code $(cat error)"
done <<'TABLE'
killed
killed spans
killed spans --json
killed list
killed spans --sql
killed export folded -o -
killed export chrome --force -o trace.json
killed what-if
diff whole killed
merge whole killed --force -o merged.db
import trace.json --force -o imported.db
repaired repair
--help
--version
--man
--completion bash
export --help
TABLE
"$bin/ipu-report" merged.db meta >/dev/null && "$bin/ipu-report" imported.db meta >/dev/null || fail "a database was written into"

# ---- Ctrl-C --------------------------------------------------------------------------------------
for pause in 0.01 0.03 0.05 0.1 0.3; do
	for words in 'export killed chrome' 'export killed speedscope' 'export killed html' 'merge whole killed' \
		'import trace.json'; do
		rm -rf stopped && mkdir stopped
		timeout -s INT $pause "$bin/ipu-report" $words -o stopped/x >said 2>error || true
		ls stopped | grep -vx x >/dev/null && fail "$words, interrupted after $pause s: left $(ls stopped)"
		[ ! -e stopped/x ] || [ ! -s error ] || fail "$words: interrupted, and yet written: $(cat error)"
	done
done

# ---- files that must stay ------------------------------------------------------------------------
ln -s killed/profile.db link.db
ln whole/profile.db hard.db
while read -r -a words; do
	expect 2 'write another file\|cannot go to the standard output' "${words[@]}"
done <<'TABLE'
whole export chrome --force -o whole/profile.db
whole export chrome --force -o hard.db
whole export npz --force -o whole/profile.db
killed export folded --force -o killed/profile.db-wal
killed export folded --force -o link.db
whole/profile.db export speedscope --force -o ./whole/../whole/profile.db
import trace.json --force -o ./trace.json
import trace.json --force -o -
merge whole killed --force -o hard.db
merge whole killed --force -o -
TABLE
sqlite3 whole/profile.db 'PRAGMA integrity_check' | grep -x ok >/dev/null || fail "the recording was written into"
