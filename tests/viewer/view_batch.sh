#!/bin/bash
# The viewer without a terminal: text, CSV and JSON of each screen, errors of one line, and that what it
# prints is what SQL says. UPDATE_GOLDEN=1 rewrites the saved texts.
set -u
view=${IPUSCOPE_BIN_DIR:?}/ipu-view
source=${IPUSCOPE_SOURCE_DIR:?}
make=${IPUSCOPE_VIEW_MAKE:-./view_make}
work=$(mktemp -d)
failures=0
trap 'rm -rf "$work"' EXIT
export LC_ALL=C.UTF-8 XDG_CONFIG_HOME=$work/config
mkdir "$work/tf_report__2026-01-02__03-04-05.006__7"
db=$work/tf_report__2026-01-02__03-04-05.006__7/profile.db
"$make" "$db" || exit 1

fail()
{
	echo "FAILED: $*"
	failures=$((failures + 1))
}

golden()
{
	if [ -n "${UPDATE_GOLDEN:-}" ]; then
		cp "$work/out" "$source/tests/golden/$1"
	elif ! diff -u "$source/tests/golden/$1" "$work/out"; then
		fail "$1"
	fi
}

# refuse CODE TEXT ARGUMENTS...: ends with CODE and one line on stderr that holds TEXT.
refuse()
{
	local code=$1 text=$2
	shift 2
	"$view" "$@" >"$work/out" 2>"$work/err" </dev/null
	local got=$?
	[ $got = "$code" ] || fail "$*: exit $got, not $code"
	[ "$(wc -l <"$work/err")" = 1 ] || fail "$*: not one line on stderr"
	grep -qF -- "$text" "$work/err" || fail "$*: $(cat "$work/err")"
}

same() { [ "$1" = "$2" ] || fail "$3: $1 is not $2"; }

"$view" "$db" --view timeline --text --width 100 --from 170us --to 340us >"$work/out"
golden view_gantt.txt
"$view" "$db" --view timeline --text --width 100 --from 170us --to 340us --ascii >"$work/out"
golden view_gantt_ascii.txt
LC_ALL=C grep -q '[^ -~]' "$work/out" && fail "--ascii prints other characters"
"$view" "$db" --view tensors --text --width 80 >"$work/out"
golden view_tensors.txt
"$view" "$db" --view help --text --width 80 >"$work/out"
golden view_help.txt

# Not a terminal: the summary. Without an argument: the newest report here.
(cd "$work" && "$view") >"$work/out"
grep -q 'Pipeline bubble' "$work/out" || fail "no summary of the newest report"
# Of more than two, which a shell makes of tf_report__*, the newest; two are compared.
mkdir "$work/several"
for name in tf_report__1 tf_report__2 tf_report__3; do
	mkdir "$work/several/$name"
	cp "$db" "$work/several/$name/profile.db"
done
touch -d '1 hour' "$work/several/tf_report__2/profile.db"
(cd "$work/several" && "$view" tf_report__* --text) >"$work/out" 2>"$work/err"
[ "$(cat "$work/err")" = 'ipu-view: the newest of 3 reports: tf_report__2' ] && grep -q 'Pipeline bubble' "$work/out" || fail "of three: $(cat "$work/err")"
(cd "$work/several" && "$view" tf_report__[12] --text) >"$work/out" 2>"$work/err"
[ ! -s "$work/err" ] && grep -q 'Target' "$work/out" || fail "of two: $(cat "$work/err")"
TERM=dumb "$view" "$db" | grep 'Pipeline bubble' >/dev/null || fail "no summary on a dumb terminal"

# A file from another machine is a view of the same.
screens="summary insights memory liveness programs operations timeline tensors metrics health communication accelerators whatif sql"
for name in $screens; do
	"$view" "$db" --view $name --csv >"$work/$name.csv" || fail "$name --csv"
	"$view" "$db" --view $name --json >"$work/$name.json" || fail "$name --json"
	if command -v python3 >/dev/null; then
		python3 -m json.tool "$work/$name.json" >"$work/out" || fail "$name: no JSON"
	fi
done
if command -v sqlite3 >/dev/null; then
	same "$(($(wc -l <"$work/timeline.csv") - 1))" \
		"$(sqlite3 "$db" 'SELECT count(*) FROM spans')" "spans"
	same "$(sed -n 's/^Run,weight updates,//p' "$work/summary.csv" | tr -d '\r')" \
		"$(sqlite3 "$db" "SELECT count(DISTINCT weight_update) FROM bubbles")" "weight updates"
	same "$("$view" "$db" --view timeline --csv --from 170us --to 340us | grep -c ^device)" \
		"$(sqlite3 "$db" "SELECT count(*) FROM spans WHERE clock = 'device'
			AND start_ns < 340000 AND start_ns + dur_ns > 170000")" "spans of a window"
fi

# Pictures: the same bytes again, and what the text says.
for name in $screens help; do
	"$view" "$db" --view $name --svg >"$work/out.svg" || fail "$name --svg"
	"$view" "$db" --view $name --svg | cmp -s - "$work/out.svg" || [ $name = summary ] || fail "$name --svg: other bytes"
	if command -v xmllint >/dev/null; then
		xmllint --noout "$work/out.svg" || fail "$name: no XML"
	fi
done
grep -q 'Zoom in about the cursor' "$work/out.svg" || fail "the picture of the help lacks text"
"$view" "$db" --view tensors --svg --theme light >"$work/light.svg"
"$view" "$db" --view tensors --svg --theme dark | cmp -s - "$work/light.svg" && fail "themes make the same picture"

# Two reports: each screen, and nothing differs from itself.
for name in $screens help; do
	"$view" "$db" "$db" --view $name --text >"$work/out" || fail "$name of two reports"
done
"$view" "$db" "$db" --text | grep '^ Source ' >/dev/null || fail "two reports are not compared"
"$view" "$db" "$db" --view tensors --csv | sed -n 1p | grep target >/dev/null || fail "no target in the rows of two reports"

# Settings: the command line goes before them, and what is wrong is named.
settings=$XDG_CONFIG_HOME/ipuscope/view.json
mkdir -p "${settings%/*}"
echo '{"screen": "tensors", "ascii": true}' >"$settings"
"$view" "$db" --text | grep 'Dense_128/kernel:0_grad' >/dev/null || fail "the settings' screen is not shown"
"$view" "$db" --text --view timeline | grep "device (sim)" >/dev/null || fail "--view does not go before the settings"
"$view" "$db" --text --config none | grep 'Pipeline bubble' >/dev/null || fail "--config none reads settings"
"$view" "$db" --text >"$work/out"
LC_ALL=C grep -q '[^ -~]' "$work/out" && fail "the settings' ASCII is not drawn"
"$view" "$db" --text --no-ascii >"$work/out"
LC_ALL=C grep -q '[^ -~]' "$work/out" || fail "--no-ascii does not go before the settings"
echo '{"screen": "tensor"}' >"$settings"
refuse 2 'view.json: screen: ' "$db"
refuse 2 'did you mean "tensors"' "$db"
echo '{"mose": true}' >"$work/other.json"
refuse 2 'did you mean "mouse"' --config "$work/other.json" "$db"
refuse 2 "missing.json" --config "$work/missing.json" "$db"
rm -r "$XDG_CONFIG_HOME/ipuscope"

# A statement of one's own: the rows, and what is wrong with it in one line.
same "$("$view" "$db" --query 'SELECT count(*) AS n FROM spans' --csv | tail -1)" "$("$view" "$db" --view sql --json \
	--query 'SELECT count(*) AS n FROM spans;' | grep -oE '"n":[0-9]+' | cut -d: -f2)$(printf '\r')" "a statement's rows"
printf 'SELECT 7 AS seven,\n NULL AS none\n' | "$view" "$db" --query - --csv >"$work/out"
same "$(tr -d '\r' <"$work/out" | tr '\n' ' ')" "seven,none 7, " "the standard input"
"$view" "$db" --query 'SELECT NULL AS none' --text | grep -E '^ NULL' >/dev/null || fail "NULL is not told from a text"
"$view" "$db" --csv --query 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n' \
	>"$work/out" 2>"$work/err" || fail "a bounded result is an error"
same "$(wc -l <"$work/out")" 100001 "the bound on rows"
grep -q 'the first 100,000 rows' "$work/err" || fail "nothing is said of rows that are left out"
refuse 2 'did you mean spans? (line 2, column 6)' "$db" --csv --query "SELECT 1
FROM spanz"
refuse 2 'only statements that read' "$db" --query "PRAGMA user_version = 3" --csv
refuse 2 'syntax error (line 1, column 1)' "$db" --query 'SELEKT 1'
refuse 2 'no statement' "$db" --query ' ; '
refuse 2 'no statement' "$db" --query -
refuse 2 'only with --view sql' "$db" --query 'SELECT 1' --view memory
refuse 2 'longer than 4,095 bytes' "$db" --query "SELECT '$(printf '%04500d' 0)'"

refuse 2 "none: no such file or folder" "$work/none"
refuse 2 "not a recorded database" /etc/passwd
refuse 2 "profile.db" "$work"
refuse 2 "did you mean" --veiw summary
refuse 2 "tensors" --view tensor "$db"
refuse 2 "--width" --width 7 "$db"
refuse 2 "not a time" --from soon "$db"
refuse 2 "before" --from 2 --to 1 "$db"
refuse 2 "--from 5 s: the timeline ends at 4.08 ms" --from 5s --to 6s --view timeline --csv "$db"
refuse 2 "--to -1 ns: the timeline begins at 0 ns" --to -1 --view timeline --text "$db"
refuse 2 'one word too many' "$db" "$db" "$db"
refuse 2 "none: no such file or folder" "$db" "$work/none"
refuse 2 "use --text" "$db" --view help --csv
(cd / && refuse 2 "no report in this directory")
cp "$db" "$work/new.db"
if command -v sqlite3 >/dev/null; then
	sqlite3 "$work/new.db" 'PRAGMA user_version = 99'
	refuse 2 "99" "$work/new.db"
fi
head -c 20000 "$db" >"$work/cut.db"
"$view" "$work/cut.db" >"$work/out" 2>"$work/err" </dev/null
code=$?
[ $code = 1 ] || [ $code = 2 ] || fail "a cut file: exit $code"
[ "$(wc -l <"$work/err")" = 1 ] || fail "a cut file: not one line"
# Nobody takes the output: exit code 1 and one line with the reason, in every format.
lost()
{
	[ $1 = 1 ] && [ "$(wc -l <"$work/err")" = 1 ] && grep -q "write: $3" "$work/err" ||
		fail "$2: exit $1: $(cat "$work/err")"
}

for format in text csv json svg; do
	"$view" "$db" --view timeline --$format >/dev/full 2>"$work/err"
	lost $? "--$format to a full disk" "No space left"
	(ulimit -f 1; "$view" "$db" --view timeline --$format >"$work/out" 2>"$work/err")
	lost $? "--$format to a file that may not grow" "File too large"
	"$view" "$db" --view timeline --$format >&- 2>"$work/err"
	lost $? "--$format to nowhere" "Bad file"
done

# Communication has the rows of the report, by rank and, of the map alone, by weight update.
"$make" "$work/ranks.db" ranks || exit 1
for format in csv json; do
	"$view" "$work/ranks.db" --view communication --$format | sed 's/ipu-view/ipu-report/' >"$work/out"
	"$IPUSCOPE_BIN_DIR/ipu-report" "$work/ranks.db" communication --by rank --$format >"$work/wanted"
	diff "$work/wanted" "$work/out" >/dev/null && [ -s "$work/out" ] || fail "communication --$format: $(cat "$work/out")"
done
same "$("$view" "$work/ranks.db" --view communication --text --width 120 | grep -c '^  rank [0-3] ')" 4 "rows of the map"
same "$("$view" "$db" --view communication --text | sed -n 2p)" '  No calls of MPI were recorded.' "no calls"

"$view" --man >"$work/out"
grep -q '^.SH "KEYS"' "$work/out" || fail "the manual lacks the keys"
"$view" --completion bash | grep -- --view >/dev/null || fail "no completion"
"$view" --completion bash | grep -- --theme >/dev/null || fail "no completion of themes"
"$view" --man | grep 'view.json' >/dev/null || fail "the manual lacks the settings"
"$view" --help | grep -- --follow >/dev/null || fail "no help"

[ $failures = 0 ] && echo "all as it should be"
exit $((failures > 0))
