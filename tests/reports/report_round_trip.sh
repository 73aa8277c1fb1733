#!/usr/bin/env bash
# `export chrome`, then `import`: the same tracks, spans, flows, instants and counters, both ways by SQL, but for what
# docs/import.md says of it.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
make=$PWD/trace_make
cd "$work"

# same NAME QUERY: its rows are those of both files, each as often. `@.` stands for the file.
same() {
	local name=$1 query=$2 got
	got=$(sqlite3 :memory: "ATTACH 'file:$before?mode=ro' AS a; ATTACH 'file:$after?mode=ro' AS b;
		CREATE TEMP TABLE x AS ${query//@./a.}; CREATE TEMP TABLE y AS ${query//@./b.};
		SELECT (SELECT count(*) FROM x) = (SELECT count(*) FROM y), (SELECT count(*) FROM (SELECT * FROM x EXCEPT SELECT * FROM y)),
			(SELECT count(*) FROM (SELECT * FROM y EXCEPT SELECT * FROM x)), (SELECT count(*) FROM x) > 0")
	[ "$got" = "1|0|0|1" ] || fail "$after: $name: $got"
}
keys="s.mode, s.epoch, s.execution, s.weight_update, s.step, s.microbatch, s.replica, s.ipu, s.stage, s.phase"
ends="SELECT f.name, s.track, s.name, s.start_ns, s.depth, t.track, t.name, t.start_ns, t.depth FROM @.flows f
	JOIN @.spans s ON s.span_id = from_span_id JOIN @.spans t ON t.span_id = to_span_id"

there_and_back() {
	before=$1 after=back.db
	"$bin/ipu-report" "$1" export chrome -o trace.json --force >said || fail "export $1: $(cat said)"
	"$bin/ipu-report" import trace.json -o back.db --force >said || fail "import $1: $(cat said)"
}

# ---- a pipelined run -----------------------------------------------------------------------------
POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' train 64 >out 2>err || fail "training: $(cat out err)"
mv tf_report__*/profile.db run.db
there_and_back run.db
# Device steps are no spans there, and have tracks of their own here; tracks without an event have none.
same tracks "SELECT clock, track, rank, ipu, name, parent FROM @.tracks t
	WHERE EXISTS (SELECT 1 FROM @.spans s WHERE s.track = t.track AND s.category <> 'device_step')"
same spans "SELECT s.clock, s.track, s.depth, s.category, s.name, s.start_ns, s.dur_ns, s.operation, $keys FROM @.spans s
	WHERE s.category <> 'device_step'"
same parents "SELECT s.track, s.name, s.start_ns, s.depth, p.name, p.start_ns FROM @.spans s JOIN @.spans p ON p.span_id = s.parent_id
	WHERE s.category <> 'device_step'"
same flows "$ends"
[ "$(sqlite3 run.db "SELECT count(*), sum(dur_ns), sum(start_ns), sum(cycles) FROM device_steps")" = \
	"$(sqlite3 back.db "SELECT count(*), sum(dur_ns), sum(start_ns), sum(a.value) FROM spans
		JOIN span_args a USING (span_id) WHERE category = 'device_step' AND a.name = 'cycles'")" ] || fail "device steps"

# ---- flows between spans that overlap ---------------------------------------------------------------
# A call that goes on beside what it launched; one that is launched by what began later; one of no time.
cat >crossing.json <<'JSON'
[{"ph":"X","name":"call","pid":1,"tid":1,"ts":0,"dur":100},{"ph":"X","name":"kernel","pid":1,"tid":2,"ts":50,"dur":10},
{"ph":"s","name":"a","cat":"f","id":1,"pid":1,"tid":1,"ts":40},{"ph":"f","bp":"e","name":"a","cat":"f","id":1,"pid":1,"tid":2,"ts":50},
{"ph":"X","name":"late","pid":1,"tid":3,"ts":60,"dur":30},{"ph":"X","name":"long","pid":1,"tid":4,"ts":5,"dur":200},
{"ph":"s","name":"b","cat":"f","id":2,"pid":1,"tid":3,"ts":65},{"ph":"f","bp":"e","name":"b","cat":"f","id":2,"pid":1,"tid":4,"ts":70},
{"ph":"X","name":"moment","pid":1,"tid":5,"ts":80,"dur":0,"args":{"x":1}},
{"ph":"s","name":"c","cat":"f","id":3,"pid":1,"tid":5,"ts":80},{"ph":"f","bp":"e","name":"c","cat":"f","id":3,"pid":1,"tid":4,"ts":80},
{"ph":"X","name":"outer","pid":1,"tid":6,"ts":0,"dur":100,"tts":7,"args":{"mode":"fast","step":-1,"arg.step":3}},
{"ph":"X","name":"inner","pid":1,"tid":6,"ts":20,"dur":80},{"ph":"X","name":"first","pid":1,"tid":7,"ts":30,"dur":50},
{"ph":"X","name":"within","pid":1,"tid":7,"ts":30,"dur":10},{"ph":"X","name":"beside","pid":1,"tid":6,"ts":50,"dur":80},
{"ph":"s","name":"d","cat":"f","id":4,"pid":1,"tid":6,"ts":10},{"ph":"f","bp":"e","name":"d","cat":"f","id":4,"pid":1,"tid":6,"ts":20},
{"ph":"s","name":"e","cat":"f","id":5,"pid":1,"tid":6,"ts":25},{"ph":"f","bp":"e","name":"e","cat":"f","id":5,"pid":1,"tid":7,"ts":45},
{"ph":"s","name":"g","cat":"f","id":6,"pid":1,"tid":7,"ts":31},{"ph":"f","bp":"e","name":"g","cat":"f","id":6,"pid":1,"tid":1,"ts":33},
{"ph":"i","name":"mark","pid":1,"tid":7,"ts":32,"args":{"bytes":7,"text":"t","step":2}},{"ph":"i","name":"bare","pid":1,"tid":7,"ts":33}]
JSON
"$bin/ipu-report" import crossing.json -o crossing.db >said || fail "crossing: $(cat said)"
[ "$(sqlite3 crossing.db "SELECT group_concat(f.name || ' ' || s.name || ' ' || t.name, ', ') FROM (SELECT * FROM flows ORDER BY name) f
	JOIN spans s ON s.span_id = from_span_id JOIN spans t ON t.span_id = to_span_id")" = \
	"a call kernel, b late long, c moment long, d outer inner, e inner first, g within call" ] || fail "crossing: $(cat said)"
there_and_back crossing.db
same flows "$ends"
same tracks "SELECT clock, track, rank, ipu, name, parent FROM @.tracks"
[ "$(sqlite3 back.db "SELECT parent FROM tracks WHERE track = 'thread 6 (overlap 1)'")" = "thread 6" ] || fail "the parent of a track is lost"
same arguments "SELECT s.name, a.name, a.value FROM @.span_args a JOIN @.spans s USING (span_id)"
same "arguments of instants" "SELECT i.name, i.step, a.name, a.value FROM @.instants i JOIN @.instant_args a USING (instant_id)"
[ "$(sqlite3 back.db "SELECT group_concat(name || value) FROM instant_args")" = "bytes7,textt" ] || fail "arguments of instants"
[ "$(grep -c '"name":"moment"' trace.json)" -eq 1 ] || fail "a span of no time is not one event"

# ---- what is awkward -----------------------------------------------------------------------------
"$make" awkward.db awkward
there_and_back awkward.db
same tracks "SELECT clock, track, rank, ipu, name, parent FROM @.tracks"
# Of the names one is no UTF-8.
same spans "SELECT s.clock, s.track, s.depth, s.category, s.start_ns, s.dur_ns, s.operation, $keys FROM @.spans s"
same instants "SELECT s.clock, s.track, s.category, s.name, s.time_ns, s.mode, s.epoch FROM @.instants s"
same counters "SELECT track, name, time_ns, value FROM @.counters"
same flows "$ends"
# Versions of SQLite write infinity differently.
arguments() {
	sqlite3 "$1" "SELECT name, iif(value = 9e999, 'infinite', quote(value)) FROM span_args WHERE name <> 'text' ORDER BY name"
}
[ "$(arguments awkward.db)" = "great|9223372036854775807
inf|infinite
quoted \"name\"|0.25
step|7" ] || fail "before: $(arguments awkward.db)"
[ "$(arguments back.db)" = "great|'9223372036854775807'
inf|NULL
inf_nonfinite|'inf'
quoted \"name\"|0.25
step|7" ] || fail "after: $(arguments back.db)"
echo "there and back: the same"
