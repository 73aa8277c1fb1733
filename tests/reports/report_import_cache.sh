#!/usr/bin/env bash
# Recordings of other programs are opened as they are: imported once into the user's cache, again when they change; the
# cache has a limit; what is no recording gets its opener's error.
set -euo pipefail

bin=$IPUSCOPE_BIN_DIR
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export XDG_CACHE_HOME=$work/cache
imports=$XDG_CACHE_HOME/ipuscope/imports

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

# trace FILE NAME COUNT: a Chrome trace of COUNT spans.
trace() {
	awk -v name="$2" -v count="$3" 'BEGIN {
		printf "["
		for (i = 0; i < count; i++)
			printf "%s{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":5,\"name\":\"%s %d\"}", i ? ",\n" : "", 10 * i, name, i
		print "]" }' >"$1"
}

# entries: the number of imports in the cache.
entries() {
	find "$imports" -name '*.db' | wc -l
}

# names FILE: the names of its spans, as the report `spans` has them.
names() {
	"$bin/ipu-report" "$1" spans --columns name --csv --limit 0 2>err | tr -d "\r" | tail -n +2 || fail "$1: $(cat err)"
}

# refused PART ARGUMENTS...: one line that has PART, and exit code 2.
refused() {
	local part=$1 code=0
	shift
	"$@" >out 2>err || code=$?
	[ $code -eq 2 ] || fail "$*: exit code $code: $(cat out err)"
	[ "$(wc -l <err)" -eq 1 ] && grep -qF -- "$part" err || fail "$*: not one line with \"$part\": $(cat err)"
}

# ---- opened as it is -----------------------------------------------------------------------------
trace a.json first 3
[ "$(names a.json)" = $'first 0\nfirst 1\nfirst 2' ] || fail "a.json: $(names a.json)"
[ "$(entries)" = 1 ] || fail "$(entries) entries of one file"
[ "$(stat -c %a "$imports")" = 700 ] || fail "the cache can be read by others"
entry=$(find "$imports" -name '*.db')
inode=$(stat -c %i "$entry")
gzip -c a.json >b
[ "$(names ./b)" = "$(names a.json)" ] || fail "gzip: $(names b)"
"$bin/ipu-view" a.json --view timeline --text >out 2>err || fail "ipu-view: $(cat err)"
grep -q 'first 0' out || fail "ipu-view shows no span: $(cat out)"
"$bin/ipu-report" a.json export chrome -o exported.json 2>err >out || fail "export: $(cat err)"
grep -q 'first 2' exported.json || fail "export: no span"
"$bin/ipu-report" diff a.json b >out 2>err || fail "diff: $(cat out err)"
[ "$(entries)" = 2 ] && [ "$(stat -c %i "$entry")" = "$inode" ] || fail "imported again: $(ls -l "$imports")"
cp a.json "$work/kept.json"
cmp -s a.json kept.json && ! ls a.json-* ./*.db 2>/dev/null || fail "something was written beside the trace"

# A file that changes has another entry.
trace a.json second 2
[ "$(names a.json)" = $'second 0\nsecond 1' ] || fail "after its change: $(names a.json)"
[ "$(entries)" = 3 ] || fail "$(entries) entries after a change"

# Several at once get whole entries.
trace large.json span 20000
for _ in 1 2 3 4; do
	"$bin/ipu-report" large.json spans --csv --limit 0 >"at once.$_" 2>&1 &
done
wait
for _ in 2 3 4; do
	cmp -s "at once.1" "at once.$_" || fail "opened at once: $(head -3 "at once.$_")"
done
[ "$(wc -l <"at once.1")" = 20001 ] || fail "opened at once: $(head -3 "at once.1")"
[ -z "$(find "$imports" -name '*.tmp')" ] || fail "left: $(ls "$imports")"

# ---- the limit -----------------------------------------------------------------------------------
[ "$(entries)" = 4 ] || fail "$(entries) entries before the limit"
touch -d '2020-01-01' "$imports"/*
names ./b >/dev/null # opened last of those that are there
trace other.json other 1
IPUSCOPE_CACHE_MB=1 names other.json >/dev/null
[ "$(find "$imports" -name 'large.json.*' | wc -l)" = 0 ] || fail "the largest of the oldest is there: $(ls -l "$imports")"
[ "$(find "$imports" -name 'other.json.*' | wc -l)" = 1 ] || fail "what was opened is gone: $(ls -l "$imports")"
[ "$(du -sb "$imports" | cut -f 1)" -le $(((1 << 20) + 8192)) ] || [ "$(entries)" = 1 ] || fail "beyond the limit: $(ls -l "$imports")"

# ---- what is none --------------------------------------------------------------------------------
echo 'only words' >text
refused 'text: not a recorded database' "$bin/ipu-report" text
echo '{"a": 1}' >no.json
refused 'no.json: is JSON without traceEvents' "$bin/ipu-report" no.json
refused 'no.json: is JSON without traceEvents' "$bin/ipu-view" no.json --text
sqlite3 foreign.db 'CREATE TABLE a (b)'
refused 'foreign.db: a database, but not one of ipuscope' "$bin/ipu-report" foreign.db
refused 'XDG_CACHE_HOME and HOME are not set: `ipu-report import' env -u XDG_CACHE_HOME -u HOME "$bin/ipu-report" a.json
[ "$(find "$imports" -name 'no.json*' -o -name 'text*' -o -name 'foreign*' | wc -l)" = 0 ] || fail "left: $(ls "$imports")"

# A recording of our own is opened where it is.
cp "$(find "$imports" -name 'other.json.*')" own.db
before=$(entries)
[ "$(names own.db)" = 'other 0' ] && [ "$(entries)" = "$before" ] || fail "own.db was imported"
# A cut trace is opened as far as it goes, and the place is said.
head -c 150 kept.json >cut.json
"$bin/ipu-report" cut.json spans --csv --limit 0 >out 2>err || fail "cut: $(cat err)"
grep -q 'first 0' out && grep -qE '^ipu-report: cut.json: byte [0-9]+: ' err || fail "cut: $(cat out err)"
# An import that cannot be read is made again: one of another schema, one that was cut.
trace again.json again 1
names again.json >/dev/null
entry=$(find "$imports" -name 'again.json.*')
sqlite3 "$entry" 'PRAGMA user_version = 2'
[ "$(names again.json)" = 'again 0' ] || fail "an import of another schema: $(cat err)"
: >"$entry"
[ "$(names again.json)" = 'again 0' ] || fail "an import that was cut: $(cat err)"
echo "imports in the cache: $(entries)"
