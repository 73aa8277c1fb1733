#!/usr/bin/env bash
# `ipu-report import`: traces of foreign shapes become databases, with nothing lost: spans, tracks, nesting, times to the
# nanosecond, arguments, flows, counters; broken tails; gzip; pipes; refusals; an interrupted import leaves nothing.
set -euo pipefail

bin=$IPUSCOPE_BIN_DIR
golden=$IPUSCOPE_SOURCE_DIR/tests/golden
trace_make=$PWD/trace_make
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

# import TRACE DB [ARGS]: what it says is in `said`, errors in `err`.
import() {
	timeout 600 "$bin/ipu-report" import "$1" -o "$2" "${@:3}" >said 2>err || fail "import $1: $(cat said err)"
}

# ask DB SQL WANTED: rows joined by newlines, columns by |.
ask() {
	local got
	got=$(sqlite3 -readonly "$1" "$2")
	[ "$got" = "$3" ] || fail "$1: $2: got
$got
wanted
$3"
}

# A command line that is refused: its exit code, a part of what it says, the arguments.
refused() {
	local wanted=$1 part=$2 code=0
	shift 2
	timeout 600 "$bin/ipu-report" import "$@" >out 2>err || code=$?
	[ $code -eq "$wanted" ] || fail "$*: exit code $code, not $wanted: $(cat out err)"
	[ "$(wc -l <err)" -eq 1 ] || fail "$*: not one line: $(cat err)"
	grep -qF -- "$part" err || fail "$*: does not say \"$part\": $(cat err)"
}

# The events that were read are those that became something and those that became nothing.
balanced() {
	awk '/read, of which became/ { gsub(",", ""); events = $1; on = 1; next } /^notes|^time 0/ { on = 0 }
		on { gsub(",", "", $1); sum += $1 } END { exit events == sum && events > 0 ? 0 : 1 }' said ||
		fail "counts do not add up: $(cat said)"
}

said() {
	grep -qE -- "^ *$1\$" said || fail "does not say \"$1\": $(cat said)"
}

# ---- every phase ---------------------------------------------------------------------------------
import "$golden/trace_phases.json" phases.db
balanced
[ ! -s err ] || fail "said: $(cat err)"
ask phases.db "SELECT track, depth, name, start_ns, dur_ns, step FROM spans ORDER BY track, start_ns, depth" \
"io (async)|0|old|100000|40000|
loader|0|load|100000|50000|
loader|1|decode|120001|10000|
loader|0|inside crosses|160000|5000|
loader|0|point|195000|0|
loader (overlap 1)|0|crosses|140000|50000|
main|0|step|100000|100000|3
main|1|forward|110500|39750|
main|1|backward|160000|30000|
main|0|never|210000|0|
net (async)|0|request|100000|20000|
net (async)|1|parse|112000|6000|
net (async) (overlap 1)|0|request|110000|20000|"
ask phases.db "SELECT s.name, a.name, a.value, typeof(a.value) FROM span_args a JOIN spans s USING (span_id) WHERE a.name <> 'note'
	ORDER BY s.name, a.name" \
'forward|bytes|42|integer
forward|loss|0.5|real
forward|tts_end|77|integer
load|nan|NaN|text
load|none||null
load|shape|[1,2,{"a":"b"}]|text
load|yes|1|integer
never|unfinished|1|integer'
ask phases.db "SELECT hex(value) FROM span_args WHERE name = 'note'" 61C3A90A
ask phases.db "SELECT track, name, time_ns FROM instants ORDER BY time_ns" \
"io (async)|old|105000
net (async)|hop|113000
trace|all|130000
worker|process-wide|131000
main|navigationStart|132000
main|mark|155000"
ask phases.db "SELECT track, name, time_ns, value FROM counters ORDER BY time_ns, name" \
"worker|memory.free|100000|90.5
worker|memory.used|100000|10.0
worker|memory.free|120000|80.0
worker|memory.used|120000|20.0
worker|rate|130000|1000.0"
ask phases.db "SELECT f.name, a.name, b.name FROM flows f JOIN spans a ON a.span_id = from_span_id JOIN spans b ON b.span_id = to_span_id
	ORDER BY 1, 2" \
"arrow|forward|decode
arrow|load|forward
next|load|backward"
# The process comes first, then the thread that sorts first.
ask phases.db "SELECT track, pid, tid, parent FROM track_rows ORDER BY track_id LIMIT 3" "worker|7||
loader|7|2|worker
main|7|1|worker"
ask phases.db "SELECT parent FROM tracks WHERE track = 'loader (overlap 1)'" loader
ask phases.db "SELECT value FROM meta WHERE key IN ('state', 'command', 'source') ORDER BY key" \
"ipu-report import
chrome trace
complete"
ask phases.db "SELECT value FROM meta WHERE key = 'trace.process 7.labels'" gpu
ask phases.db "SELECT sum(dropped) FROM overhead" 0 # a flow without an end is none that was lost
said '6  nothing: of a phase without a place here, D 1, N 1, O 1, P 1, c 1, v 1 \(the first at byte [0-9]+\)'
for reason in 'without a phase \(ph\)' 'not an object' 'without a time \(ts\)' 'a time \(ts or dur\) out of range' \
	'a negative duration' 'an end without a begin' 'without an id' 'a counter without a finite number' \
	'metadata without a place here' 'an end of a flow without a start' 'a start of a flow without an end'; do
	said "1  nothing: $reason( \(the first at byte [0-9]+\))?"
done

# ---- the PyTorch profiler's --------------------------------------------------------------------
import "$golden/trace_kineto.json" kineto.db
balanced
ask kineto.db "SELECT track, depth, name, start_ns, dur_ns, step FROM spans ORDER BY start_ns, depth" \
"PyTorch Profiler|0|PyTorch Profiler (0)|0|60000|
thread 4711 (python3)|0|ProfilerStep#12|1000|50000|12
thread 4711 (python3)|1|aten::relu|7789|5250|12
thread 4711 (python3)|2|aten::clamp_min|8001|4125|12
thread 4711 (python3)|3|cudaLaunchKernel|9000|1000|12
GPU 0 stream 7|0|void at::native::vectorized_elementwise_kernel<4, at::native::relu>(int)|12001|2016|12"
ask kineto.db "SELECT a.name, b.name LIKE 'void at%' FROM flows f JOIN spans a ON a.span_id = from_span_id
	JOIN spans b ON b.span_id = to_span_id" "cudaLaunchKernel|1"
ask kineto.db "SELECT length(value), value LIKE '%\"quoted\"' FROM span_args WHERE name = 'Call stack'" "103|1"
ask kineto.db "SELECT value FROM meta WHERE key IN ('trace_base_ns', 'trace.schemaVersion', 'trace.displayTimeUnit') ORDER BY key" \
"ms
1
1720000000123449000"
ask kineto.db "SELECT track, parent FROM track_rows ORDER BY track_id" "python3|
thread 4711 (python3)|python3
GPU 0 memory|GPU 0
GPU 0 stream 7|GPU 0
Spans|
PyTorch Profiler|Spans
GPU 0|
trace|"

# ---- children before parents, epoch times with a fraction ---------------------------------------
import "$golden/trace_viztracer.json" viztracer.db
balanced
ask viztracer.db "SELECT depth, name, start_ns, dur_ns FROM spans" "0|<module> (/tmp/f.py:1)|0|9300
1|fib (/tmp/f.py:1)|800|7700
2|fib (/tmp/f.py:1)|1300|3200"
ask viztracer.db "SELECT name, time_ns, value FROM counters" "queue.size|6400|3.0"

# ---- as many events as another parser finds --------------------------------------------------------
if command -v python3 >/dev/null; then
	for trace in kineto viztracer; do
		import "$golden/trace_$trace.json" again.db --force
		wanted=$(python3 -c "import json, sys; print(len(json.load(open(sys.argv[1]))['traceEvents']))" "$golden/trace_$trace.json")
		said "$wanted  read, of which became"
	done
fi

# ---- our own export, and back: the same spans, keys and samples --------------------------------------
"$trace_make" own.db awkward
"$trace_make" large.db large 3000
for db in own large; do
	"$bin/ipu-report" $db.db export chrome -o $db.json >/dev/null
	import $db.json $db.back.db
	balanced
	for sql in "SELECT track, depth, category, start_ns, dur_ns, mode, epoch, execution, weight_update, step, microbatch, replica,
			ipu, stage, phase, operation FROM spans ORDER BY track, start_ns, depth" \
		"SELECT track, name, time_ns, value FROM counters ORDER BY track, time_ns" \
		"SELECT track, name, ipu, parent FROM tracks ORDER BY track" \
		"SELECT value FROM meta WHERE key = 'start_epoch_ns'"; do
		ask $db.back.db "$sql" "$(sqlite3 -readonly $db.db "$sql")"
	done
done

# ---- every reader takes the result ----------------------------------------------------------------
for db in phases kineto viztracer; do
	"$bin/ipu-report" $db.db >out || fail "$db.db: no summary"
	"$bin/ipu-report" $db.db spans --csv >out || fail "$db.db: no spans"
	if [ -x "$bin/ipu-view" ]; then
		"$bin/ipu-view" $db.db --view timeline --text >out || fail "$db.db: no timeline"
	fi
done

# ---- the same from gzip, from a pipe, and again ----------------------------------------------------
dump() {
	sqlite3 -readonly "$1" "SELECT * FROM spans; SELECT * FROM span_args; SELECT * FROM flows; SELECT * FROM tracks"
}
dump kineto.db >wanted
gzip -c "$golden/trace_kineto.json" >kineto.json.gz
import kineto.json.gz gzip.db
dump gzip.db | cmp - wanted || fail "gzip: another database"
timeout 600 "$bin/ipu-report" import - -o pipe.db <"$golden/trace_kineto.json" >said
dump pipe.db | cmp - wanted || fail "pipe: another database"
head -c 900 "$golden/trace_kineto.json" | gzip >two.json.gz
tail -c +901 "$golden/trace_kineto.json" | gzip >>two.json.gz
import two.json.gz two.db
dump two.db | cmp - wanted || fail "two members: another database"
mkdir sub
(cd sub && "$bin/ipu-report" import ../kineto.json.gz >said)
[ -f sub/kineto.db ] || fail "default name: $(ls sub)"
for name in stacks.folded stacks.xplane.pb stacks.perfetto-trace.gz; do
	echo 'a;b 1' >"sub/$name" # the content says what it is
	(cd sub && "$bin/ipu-report" import "$name" --force >said)
	[ -f sub/stacks.db ] || fail "default name of $name: $(ls sub)"
	rm sub/stacks.db
done

# ---- broken tails ----------------------------------------------------------------------------------
head -c 2900 "$golden/trace_kineto.json" >cut.json
import cut.json cut.db
balanced
grep -qE '^ipu-report import: cut.json: byte 2900: the text ends here, within a value; everything before it was taken$' err ||
	fail "said: $(cat err)"
ask cut.db "SELECT count(*) FROM spans" 6
head -c 500 kineto.json.gz >cut.json.gz
import cut.json.gz cut.db --force
grep -qE 'byte [0-9]+: the text ends here' err || fail "said: $(cat err)"
printf '[{"ph":"X","ts":1,"dur":2,"name":"a"},{"ph":"X","ts":9,"dur":2,"name":"b"},' >open.json
import open.json open.db
[ ! -s err ] || fail "an array without ] is whole: $(cat err)"
ask open.db "SELECT name, start_ns FROM spans" "a|1000
b|9000"
printf '[{"ph":"X","ts":1,"dur":2,"name":"a"},{"ph":"X","ts":9,"dur":2,]]' >wrong.json
import wrong.json wrong.db
grep -qF 'wrong.json: byte 63: a key in quotes or } is expected; everything' err || fail "said: $(cat err)"
ask wrong.db "SELECT name FROM spans" a

# ---- the same trace, the same rows -------------------------------------------------------------------
awk 'BEGIN { print "["; for (i = 0; i < 60000; i++) printf "{\"ph\":\"X\",\"ts\":%d.5,\"dur\":%d,\"name\":\"n%d\",\"tid\":%d,\"args\":{\"b\":%d,\"a\":\"t%d\"}},\n",
	i * 7919 % 60000 * 10, i % 40, i % 50, i % 9, i, i }' >many.json
for i in 1 2; do
	import many.json many$i.db
	sqlite3 -readonly many$i.db .dump | grep -vE '^INSERT INTO (overhead|meta)' >many$i.sql
done
cmp -s many1.sql many2.sql || fail "two imports differ: $(diff many1.sql many2.sql | head -5)"
ask many1.db "SELECT count(*), sum(value) FROM span_args WHERE name = 'b'" "60000|1799970000"

# ---- several to one file at once: none takes what another one writes for left --------------------------
for i in 1 2 3 4 5 6; do
	"$bin/ipu-report" import many.json -o one.db --force >said$i 2>err$i &
	imports[i]=$!
	sleep 0.2
done
for i in 1 2 3 4 5 6; do
	wait ${imports[i]} || fail "import $i of 6 at once: $(cat err$i)"
done
[ "$(ls one.db*)" = one.db ] || fail "left: $(ls one.db*)"

# ---- long names ------------------------------------------------------------------------------------
for bytes in 16384 16385; do
	long=$(head -c $bytes /dev/zero | tr '\0' n)
	echo "[{\"ph\":\"X\",\"ts\":1,\"dur\":2,\"cat\":\"c$long\",\"name\":\"$long\"}]" >long.json
	import long.json long.db --force
	ask long.db "SELECT length(name), length(category) FROM spans" "16384|16384"
done
said '2  different names cut after 16384 bytes'
# Of megabytes they are told apart by their last byte, and take no memory: 300 of 1 MB in an address space of 300 MB, of which most is
# that of threads. Sanitizers do not have it, and read fewer.
names=300
[ -e "$bin/../tests/libfail_alloc.so" ] || names=20
letters=$(head -c 1000000 /dev/zero | tr '\0' n)
for ((i = 100; i < 100 + names; i++)); do
	echo "{\"ph\":\"X\",\"name\":\"$letters$i\",\"pid\":1,\"tid\":1,\"ts\":${i}0,\"dur\":5},"
done | { echo '['; cat; } >long.json
(
	[ $names -lt 300 ] || ulimit -v 300000
	import long.json long.db --force
)
said "$names  different names cut after 16384 bytes"
ask long.db "SELECT count(*), count(DISTINCT name), max(length(name)) FROM spans" "$names|1|16384"
rm long.json

# ---- refusals --------------------------------------------------------------------------------------
before=$(stat -c %Y.%s kineto.db)
refused 2 'kineto.db: is there already (--force replaces it)' "$golden/trace_kineto.json" -o kineto.db
[ "$(stat -c %Y.%s kineto.db)" = "$before" ] || fail "kineto.db was touched"
# A log without its checkpoint: the last rows of a killed recording.
for log in wal journal; do
	echo rows >kineto.db-$log
	refused 2 "kineto.db-$log: belongs to a recording that is not finished" "$golden/trace_kineto.json" -o kineto.db --force
	[ "$(cat kineto.db-$log)$(stat -c %Y.%s kineto.db)" = "rows$before" ] || fail "kineto.db-$log or kineto.db was touched"
	rm kineto.db-$log
done
refused 2 'no trace given' 
refused 2 'one word too many: "b"' a b
refused 2 'none.json: cannot open: No such file' none.json
refused 2 'is a folder' .
mkfifo device
refused 2 'is a device or pipe, not a file' "$golden/trace_kineto.json" -o device --force
rm device
refused 2 'nowhere' "$golden/trace_kineto.json" -o nowhere/x.db
: >empty.json
refused 2 'empty.json: is empty' empty.json
echo hello >text.json
refused 2 'text.json: is none of the formats that can be imported (Chrome' text.json
# What can be made importable, by its content or its name.
printf 'PERFILE2\0' >perf.data
refused 2 'perf.data: is none of the formats that can be imported; `perf script | stackcollapse-perf.pl`' perf.data
printf 'PK\003\004' >trace.zip
refused 2 'unpack the archive' trace.zip
echo report >run.nsys-rep
refused 2 '`nsys export --type sqlite`' run.nsys-rep
"$bin/ipu-view" run.nsys-rep 2>view.err && fail 'ipu-view run.nsys-rep'
grep -qF '`nsys export --type sqlite`' view.err || fail "ipu-view run.nsys-rep: $(cat view.err)"
echo '{"a": [1, 2], "b": {}}' >other.json
refused 2 'other.json: is JSON without traceEvents' other.json
echo '{"rocprofiler-sdk-tool": [{"metadata": {}}]}' >rocprof.json
refused 2 'rocprof.json: is rocprofv3'"'"'s JSON, which is no trace' rocprof.json
for text in '[1, "two", null]' '[{"a": 1}, {"b": [2]}]' '{"traceEvents": [{"name": "x"}]}'; do
	echo "$text" >none.json
	refused 2 'none.json: is JSON without an event' none.json
done
rm none.json
refused 2 'is none of the formats' "$bin/ipu-report"
[ -z "$(ls -A | grep -E '[.]tmp|sort\.')" ] || fail "left: $(ls -A)"

# ---- interrupted -----------------------------------------------------------------------------------
mkfifo pipe
(
	printf '['
	while printf '{"ph":"X","ts":1,"dur":2,"name":"a"},'; do :; done
) >pipe 2>/dev/null &
"$bin/ipu-report" import - -o never.db <pipe >out 2>err &
interrupted() {
	local code=0
	# Not before it is the program, and catches the signal: the second bit of its mask.
	until [ "$(cat "/proc/$1/comm")" = ipu-report ] && grep -q '^SigCgt:.*[2367abef]$' "/proc/$1/status"; do sleep 0.01; done
	kill -INT "$1"
	wait "$1" || code=$?
	[ $code -eq 1 ] || fail "interrupted: exit code $code: $(cat err)"
	grep -q 'interrupted: nothing was written to never.db' err || fail "said: $(cat err)"
	[ -z "$(ls -A | grep -E 'never|[.]tmp|sort\.')" ] || fail "left: $(ls -A)"
}
interrupted $!
# From pipes that nobody writes to: one that has begun, and one that has no writer.
mkfifo silent
{
	printf '['
	exec sleep 100
} >pipe &
writer=$!
"$bin/ipu-report" import - -o never.db <pipe >out 2>err &
interrupted $!
"$bin/ipu-report" import silent -o never.db >out 2>err &
interrupted $!
kill $writer

# ---- folded stacks -------------------------------------------------------------------------------
# A span for each frame that adjacent lines share, as long as what is counted in it; exported again, the stacks are the same.
cat >stacks.txt <<'END'
main;a;b 5
main;a;c 7
main;a 2
main;operator new [](unsigned long) 1
main;operator new [](unsigned long) 0
other;a 3
other;a 4
END
import stacks.txt stacks.db
ask stacks.db "SELECT name, depth, start_ns, dur_ns FROM spans ORDER BY start_ns, depth" "main|0|0|15
a|1|0|14
b|2|0|5
c|2|5|7
operator new [](unsigned long)|1|14|1
other|0|15|7
a|1|15|7"
ask stacks.db "SELECT value FROM meta WHERE key = 'trace.unit'" '1 ns is a count of 1'
"$bin/ipu-report" stacks.db export folded -o stacks.folded >said 2>err || fail "stacks.folded: $(cat err)"
printf 'stacks;main;a 2\nstacks;main;a;b 5\nstacks;main;a;c 7\nstacks;main;operator new [](unsigned long) 1\nstacks;other;a 7\n' >wanted
LC_ALL=C sort stacks.folded | cmp -s wanted - || fail "stacks.folded: $(cat stacks.folded)"
# Of many lines, more than the buffer holds, each count is there; lines without a count are counted and left out.
awk 'BEGIN { for (i = 0; i < 100000; i++) printf "main;f%d;g%d %d\n", i % 7, i % 11, i }' >many.txt
(cat many.txt; echo 'no count'; printf '\r\n') >tail.txt
import tail.txt many.db
grep -qF 'lines with a count of 0 1, lines without a count 1' said || fail "many.txt: $(cat said)"
ask many.db "SELECT sum(dur_ns) FROM spans WHERE name GLOB 'g*'" "$(awk '{ sum += $2 } END { printf "%.0f", sum }' many.txt)"
ask many.db "SELECT dur_ns FROM spans WHERE name = 'main'" "$(awk '{ sum += $2 } END { printf "%.0f", sum }' many.txt)"
echo "import: all as wanted"
