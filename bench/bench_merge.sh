#!/usr/bin/env bash
# What `ipu-report merge` of two databases costs: rows/s, the memory that is the program's own, and the time beside two limits
# of the same rows: copying both files' bytes, and one SQLite statement that copies span_rows as they are. Least of REPEATS each.
# Usage: bench_merge.sh BUILD_DIR [SPANS [REPEATS]]
set -euo pipefail
export LC_ALL=C # a point in its numbers

build=$(cd "$1" && pwd)
spans=${2:-1M}
repeats=${3:-3}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

. "$here/bench_seconds.sh"

for name in a b; do
	"$build/bin/make_database" $name.db --spans "$spans" --seed $([ $name = a ] && echo 1 || echo 2)
done
rows=0
for table in $(sqlite3 a.db "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB '*_rows' OR name = 'contexts'"); do
	for file in a.db b.db; do
		rows=$((rows + $(sqlite3 $file "SELECT count(*) FROM $table")))
	done
done

echo 0 >anon
took=$(seconds "$build/bin/ipu-report" merge a.db b.db -o out.db)
own=$(cat anon)
bytes=$(stat -c %s out.db)
bare=$(seconds sh -c 'cat a.db b.db >out.db; sync out.db')
for file in a b; do
	echo "ATTACH '$file.db' AS $file; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
done >statements
cat >>statements <<'SQL'
CREATE TABLE span_rows (span_id INTEGER PRIMARY KEY, track_id, site_id, start_ns, dur_ns, context_id, parent_back, depth);
INSERT INTO span_rows SELECT * FROM a.span_rows;
INSERT INTO span_rows SELECT span_id + (SELECT max(span_id) FROM a.span_rows), track_id, site_id, start_ns, dur_ns, context_id,
	parent_back, depth FROM b.span_rows;
SQL
plain=$(seconds sqlite3 out.db '.read statements')
awk -v rows="$rows" -v took="$took" -v own="$own" -v bytes="$bytes" -v bare="$bare" -v plain="$plain" 'BEGIN {
	printf "merge: %d rows (%.1f MB) in %.2f s, %.2f M rows/s, %.1f MB of memory\n", rows, bytes / 1e6, took, rows / took / 1e6, own / 1e3
	printf "       %.1f times the bytes copied and synced (%.2f s), %.1f times their spans alone copied by one statement (%.2f s)\n",
		took / bare, bare, took / plain, plain
}'
