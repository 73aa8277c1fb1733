#!/bin/sh
# Fill the results of the five joins into docs/schema.md: each query that stands before a
# "<!-- RESULT ... -->" line is asked of a recorded run, and its first rows are put up to "<!-- END -->".
#
# usage: report_schema_results.sh DATABASE DOCUMENT
set -eu

rows=10
database=$1
document=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What stands in the document for the query in $work/sql.
result() {
	sqlite3 -readonly -box "$database" <"$work/sql" >"$work/box"
	# -box has three lines above the rows and one below.
	count=$(($(wc -l <"$work/box") - 4))
	echo '```text'
	if [ "$count" -le 0 ]; then
		echo '(no rows)'
	elif [ "$count" -le "$rows" ]; then
		cat "$work/box"
	else
		head -n $((rows + 3)) "$work/box"
		tail -n 1 "$work/box"
		echo "$rows rows of $count"
	fi
	echo '```'
}

mode=text
while IFS= read -r line; do
	case $mode:$line in
	'text:```sql')
		mode=sql
		: >"$work/sql"
		;;
	'sql:```')
		mode=text
		;;
	'text:<!-- RESULT '*)
		mode=result
		printf '%s\n' "$line"
		result
		;;
	'result:<!-- END -->')
		mode=text
		;;
	sql:*)
		printf '%s\n' "$line" >>"$work/sql"
		;;
	esac
	[ "$mode" = result ] || printf '%s\n' "$line"
done <"$document" >"$work/document"
cat "$work/document" >"$document"
