#!/usr/bin/env bash
# Names that mean something else to SQLite, in a URI or to a command line: a file of that name is recorded, finished, imported to,
# merged to, exported from and read as one of any other name, and no other file is written.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

makers=$PWD
cd "$work"
cp "$IPUSCOPE_SOURCE_DIR/tests/golden/trace_kineto.json" trace.json

# ends_well COMMAND...
ends_well() {
	"$@" >out 2>err && [ ! -s err ] || fail "$(printf '%q ' "$@"): $(cat err)"
}

checked=0
for name in ':memory:' 'file:a' 'file:a?vfs=memdb' 'file::memory:?cache=shared' 'a?mode=rwc#b%20c%00' $'a\nb' $'\377\376' -o ' '; do
	mkdir folder && cd folder
	path=$name
	[ "$name" != -o ] || path=./$name
	ends_well "$makers/trace_make" "$path" killed
	ends_well "$bin/ipu-report" "$path" repair
	ends_well "$bin/ipu-report" "$path" spans --csv
	[ "$(wc -l <out)" -gt 1 ] || fail "$name: no spans"
	ends_well "$bin/ipu-report" import ../trace.json -o "$path" --force
	[ "$(head -c 15 <"$path")" = 'SQLite format 3' ] || fail "$name: an import is no database"
	ends_well "$bin/ipu-view" "$path" --text
	ends_well "$bin/ipu-report" diff "$path" "$path"
	ends_well "$bin/ipu-report" merge "$path" "$path" -o ../merged.db --force
	ends_well "$bin/ipu-report" merge ../merged.db ../merged.db -o "$path" --force
	ends_well "$bin/ipu-report" "$path" export popvision -o "$path.folder"
	rm out err
	ls -A >../left
	printf '%s\n%s.folder\n' "$name" "$name" | cmp -s - ../left || fail "$name: left: $(cat ../left)"
	cd .. && rm -r folder
	checked=$((checked + 1))
done
echo "$checked names"
