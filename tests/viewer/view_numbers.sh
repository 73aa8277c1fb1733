#!/usr/bin/env bash
# What is on a screen is what SQL says: the numbers of every screen, as CSV, JSON and text, of two short trainings
# against queries of the views by the sqlite3 shell.
. "$IPUSCOPE_SOURCE_DIR/tests/support/view_trained.sh" || exit 1
failures=0

# recorded NAME STEPS ARGUMENT...: the report NAME of a short training.
recorded() {
	local name=$1
	shift
	mkdir "in.$name"
	(cd "in.$name" && train "$@" --data.limit 2000 --evaluate.steps 16 --evaluate.steps_per_execution 8 >out 2>err) ||
		fail "$*: $(cat "in.$name/err")"
	mv "in.$name"/tf_report__*/ "$name"
}

wrong() {
	echo "FAILED: $report: $*" >&2
	failures=$((failures + 1))
}

# taken: shown.csv becomes the table `shown`, which ask has beside the views of the report.
taken() {
	rm -f shown.db
	sqlite3 -batch -bail shown.db ".import --csv shown.csv shown" || fail "$screen: the CSV"
}

# load SCREEN [WIDTH]: its CSV becomes that table.
load() {
	screen=$1
	"$bin/ipu-view" "$report" --view "$screen" --csv >shown.csv 2>said.txt || fail "$screen --csv"
	"$bin/ipu-view" "$report" --view "$screen" --text --width "${2:-160}" >shown.txt || fail "$screen --text"
	taken
}

ask() {
	sqlite3 -batch -bail shown.db "ATTACH '$report/profile.db' AS report" "$1"
}

# none WHAT QUERY: no row; those that are there are what differs.
none() {
	local got
	got=$(ask "$2") || fail "$screen: $2"
	[ -z "$got" ] || wrong "$screen: $1:
$(head -5 <<<"$got")"
}

# same WHAT QUERY: its one row is a 1.
same() {
	local got
	got=$(ask "$2") || fail "$screen: $2"
	[ "$got" = 1 ] || wrong "$screen: $1: ${got:-no row}"
}

# text WHAT QUERY: the text it makes is on the screen.
text() {
	local wanted
	wanted=$(ask "$2") || fail "$screen: $2"
	{ [ -n "$wanted" ] && grep -qF -- "$wanted" shown.txt; } || wrong "$screen: $1: \"$wanted\" is not in
$(head -8 shown.txt)"
}

# value NAME SECTION QUERY: a line of the Summary.
value() {
	local wanted got
	wanted=$(ask "$3") || fail "$3"
	got=$(ask "SELECT value FROM shown WHERE section = '$2' AND name = '$1'")
	[ -n "$got" ] && [ "$got" = "$wanted" ] || wrong "summary: $2: $1: \"$got\" is not \"$wanted\""
}

# Nanoseconds of a text such as "4.26 ms", to three digits.
near="abs(CAST(value AS REAL) * CASE WHEN value LIKE '% ns' THEN 1 WHEN value LIKE '% us' THEN 1e3 WHEN value LIKE '% ms'
	THEN 1e6 ELSE 1e9 END - ns) <= 0.006 * ns"

summary() {
	local clock title of name
	load summary
	value loss Training "SELECT printf('%.6g', value) FROM metrics WHERE mode = 'train' AND name = 'loss' AND step IS NULL ORDER BY time_ns DESC"
	value accuracy Training "SELECT printf('%.2f %%', value * 100) FROM metrics WHERE mode = 'train' AND name = 'accuracy' AND step IS NULL ORDER BY time_ns DESC"
	value 'evaluation loss' Training "SELECT printf('%.6g', value) FROM metrics WHERE mode = 'evaluate' AND name = 'loss' AND step IS NULL ORDER BY time_ns DESC"
	value executions Run "SELECT count(*) FROM executions"
	value steps Run "SELECT sum(steps) FROM executions WHERE mode = 'train'"
	value 'weight updates' Run "SELECT count(DISTINCT weight_update) FROM stage_timings WHERE phase = 'U'"
	value spans Recorded "SELECT printf('%,d', count(*)) FROM spans"
	value tensors Recorded "SELECT count(*) FROM tensors"
	for name in programs operations 'compute sets' variables; do
		value "$name" 'Compiled program (simulated)' "SELECT printf('%,d', count(*)) FROM ${name/ /_}"
	done
	value vertices 'Compiled program (simulated)' "SELECT printf('%,d', sum(vertices)) FROM compute_sets"
	value 'tensor rows' Recorded "SELECT printf('%,d', count(*)) FROM tensor_stats"
	value memory "$(ask "SELECT DISTINCT section FROM shown WHERE section LIKE 'At a glance%'")" \
		"SELECT printf('the fullest tile uses %.2f %% of what it has', 100 * max(used)) FROM (
		SELECT 1.0 * sum(bytes) / max(capacity) AS used FROM tile_memory GROUP BY ipu, tile)"
	same "a step on both clocks" "WITH told AS (SELECT value, instr(value, ' on the host, ') AS at FROM shown WHERE section LIKE 'At a glance%' AND name = 'step'),
		parts AS (SELECT substr(value, 1, at - 1) AS value, (SELECT 1.0 * sum(dur_ns) / sum(steps) FROM executions WHERE mode = 'train') AS ns FROM told
			UNION ALL SELECT replace(substr(value, at + 14), ' on simulated IPUs', ''), (SELECT 1e9 * sum(cycles) / sum(steps) / m.value
				FROM executions, meta m WHERE mode = 'train' AND m.key = 'clock_hz') FROM told)
		SELECT count(*) = 2 AND min($near) FROM parts"
	for clock in device host; do
		title="Pipeline bubble: $clock" of="FROM bubbles WHERE mode = 'train' AND clock = '$clock'"
		[ $clock = host ] || title+=" (simulated)"
		value 'pipeline runs' "$title" "SELECT printf('%d together (mark: theory)', count(*)) $of"
		value bubble "$title" "SELECT printf('%.2f %% theory %.2f %%', 100 - 100.0 * sum(busy_ns) / sum(busy_ns + ramp_up_ns + ramp_down_ns +
			imbalance_ns + communication_ns), 100 * avg(theory_idle_fraction)) $of"
		value 'bubble rate' "$title" "SELECT printf('%.2f %% theory %.2f %%', 100 * avg(bubble_rate), 100 * avg(theory_bubble_rate)) $of"
		value 'over ideal' "$title" "SELECT printf('%.2f %% theory %.2f %%', 100 * avg(bubble_over_ideal), 100 * avg(theory_bubble_over_ideal)) $of"
		for name in ramp-up ramp-down imbalance communication; do
			value "$name" "$title" "SELECT printf('%.2f %%', 100.0 * sum(${name/-/_}_ns) /
				sum(busy_ns + ramp_up_ns + ramp_down_ns + imbalance_ns + communication_ns)) $of"
		done
	done
	# What all of training computes on the device's clock, beside the peak of the IPUs.
	text "FLOP/s beside the peak" "SELECT printf('simulated, %s of the peak', printf('%.2f %%', 100.0 * (SELECT sum(o.flops * iif(phase = 'U', 1, r.value)) FROM operations o) *
			sum(updates) / sum(cycles) * n.value / (32.0 * t.value * i.value))) FROM executions, meta r, meta t, meta i, meta n WHERE mode = 'train' AND
			r.key = 'gradient_accumulation' AND t.key = 'tiles_per_ipu' AND i.key = 'ipus' AND n.key = 'replicas'"
	# Phases stand below the line of their stage.
	none "times of stages" "WITH lines AS (SELECT rowid AS line, * FROM shown WHERE section LIKE 'Stages in training%'),
		phases AS (SELECT value, iif(section LIKE '%device%', 'device', 'host') AS clock, substr(name, 1, 1) AS phase, (SELECT CAST(
			substr(s.value, 7) AS INTEGER) FROM lines s WHERE s.section = p.section AND s.line < p.line AND s.value LIKE 'stage %'
			ORDER BY s.line DESC LIMIT 1) AS stage FROM lines p WHERE name <> ''),
		sums AS (SELECT clock, phase, stage, sum(dur_ns) AS ns FROM stage_timings WHERE mode = 'train' AND phase IN ('F', 'B', 'U') GROUP BY 1, 2, 3)
		SELECT * FROM sums LEFT JOIN phases USING (clock, phase, stage) WHERE ns > 0 AND ($near) IS NOT 1"
}

insights() {
	load insights
	same "all are the report's" "SELECT count(*) > 0 FROM shown"
	none "the idle IPU" "SELECT subject, share, (SELECT sum(idle_ns) * 1.0 / sum(compute_ns + exchange_ns + sync_ns + host_io_ns + idle_ns)
			FROM time_split JOIN executions USING (rank, execution) WHERE clock = 'device' AND mode = 'train' AND ipu = subject) AS idle
		FROM shown WHERE id = 'idle_ipu' AND abs(share - idle) > 1e-9"
	none "the fullest tile" "SELECT subject, share, (SELECT max(used) FROM (SELECT sum(bytes) * 1.0 / max(capacity) AS used
			FROM tile_memory WHERE ipu = subject GROUP BY tile)) AS used
		FROM shown WHERE id = 'memory_peak' AND abs(share - used) > 1e-9"
	none "dropped events" "SELECT share FROM shown WHERE id = 'lost_events' AND share + 0 <= 0"
}

memory() {
	local tiles="SELECT ipu, tile, sum(bytes) AS bytes, sum(bytes) FILTER (WHERE category <> 'notAlwaysLiveVariables') AS always,
		ifnull(sum(bytes) FILTER (WHERE region = 'interleaved'), 0) AS interleaved, max(capacity) AS capacity FROM tile_memory GROUP BY 1, 2"
	load memory
	same "every tile" "SELECT (SELECT count(*) FROM shown) = count(*) FROM ($tiles)"
	none "tiles" "SELECT s.ipu, s.tile, s.bytes, t.bytes FROM shown s JOIN ($tiles) t ON t.ipu = s.ipu AND t.tile = s.tile
		WHERE t.bytes <> s.bytes OR t.always <> s.always_live_bytes OR t.bytes - t.always <> s.not_always_live_bytes OR
			t.interleaved <> s.interleaved_bytes OR t.capacity <> s.capacity OR abs(s.used_share - t.bytes * 1.0 / t.capacity) > 1e-9"
	text "the fullest tile" "SELECT printf('Fullest tile %d,%d: %,d B, %.2f %%', ipu, tile, bytes, 100.0 * bytes / capacity) FROM ($tiles)
		ORDER BY bytes DESC, ipu, tile LIMIT 1"
}

liveness() {
	load liveness 120
	text "the peak" "SELECT printf('step %d, %.2f %% of', program_step, 100.0 * bytes / capacity) FROM (SELECT ipu, program_step,
		always_live_bytes + not_always_live_bytes AS bytes FROM liveness ORDER BY bytes DESC, ipu, program_step LIMIT 1) p
		JOIN (SELECT ipu, sum(capacity) AS capacity FROM (SELECT DISTINCT ipu, tile, capacity FROM tile_memory) GROUP BY ipu) USING (ipu)"
	same "the total" "SELECT (SELECT bytes FROM shown WHERE variable = 'Total') = max(always_live_bytes + not_always_live_bytes) FROM liveness"
	same "its parts" "SELECT sum(bytes) FILTER (WHERE variable = 'Total') = sum(bytes) FILTER (WHERE variable <> 'Total') FROM shown"
	none "variables" "SELECT s.variable, s.bytes, v.bytes FROM shown s LEFT JOIN variables v ON v.variable_id = s.variable_id
		WHERE s.variable <> 'Total' AND (v.bytes <> s.bytes OR v.variable <> s.variable OR v.always_live <> s.always_live)"
}

programs() {
	load programs
	same "every program" "SELECT (SELECT count(*) FROM shown) = count(*) FROM programs"
	none "cycles and times of a weight update" "SELECT s.program_id, own_cycles, d.cycles, s.times, d.times FROM shown s JOIN (SELECT program_id,
			sum(cycles) AS cycles, count(*) AS times FROM device_steps WHERE mode = 'train' AND weight_update = 0 AND replica = 0
			GROUP BY 1) d ON d.program_id = s.program_id WHERE d.cycles <> s.own_cycles OR d.times <> s.times"
	same "all cycles" "SELECT sum(own_cycles) = (SELECT sum(cycles) FROM device_steps WHERE mode = 'train' AND weight_update = 0 AND replica = 0) FROM shown"
}

operations() {
	load operations
	same "every operation" "SELECT (SELECT count(*) FROM shown) = count(*) FROM operations"
	# As the device ran them in a weight update.
	local ran="SELECT operation, sum(cycles) AS cycles, count(DISTINCT ifnull(microbatch, -1)) AS times FROM device_steps
		WHERE mode = 'train' AND weight_update = 0 AND replica = 0 AND operation NOT NULL GROUP BY 1"
	none "operations" "SELECT o.operation, s.update_cycles, r.cycles FROM operations o LEFT JOIN ($ran) r USING (operation) LEFT JOIN shown s
		USING (operation) WHERE s.update_cycles IS NULL OR r.cycles IS NULL OR s.update_cycles <> r.cycles OR s.times <> r.times OR
		s.update_flops <> o.flops * r.times OR s.code_bytes <> o.code_bytes OR s.stage <> o.stage OR s.layer <> o.layer OR
		s.update_compute + s.update_exchange + s.update_sync <> r.cycles OR abs(s.share - r.cycles * 1.0 / (SELECT sum(cycles) FROM ($ran))) > 1e-9"
	none "what is in no layer" "SELECT s.layer, operation FROM shown s JOIN operations o USING (operation) WHERE o.layer IS NULL AND s.layer NOT IN
		('(loss)', '(metrics)', '(infeed)', '(optimizer)')"
	# Mk2: 32 FLOP a tile and cycle in float32; the peak stands in meta, too.
	none "FLOP/s and the peak's share" "WITH fact AS (SELECT CAST((SELECT value FROM meta WHERE key = 'clock_hz') AS REAL) AS hz,
			32.0 * (SELECT value FROM meta WHERE key = 'tiles_per_ipu') AS peak, (SELECT value + 0.0 FROM meta WHERE key = 'peak_flops_per_cycle') AS noted)
		SELECT operation, tflops, peak_share, o.flops, o.cycles FROM shown s JOIN operations o USING (operation), fact WHERE noted <> peak OR
			abs(tflops - o.flops * 1e-12 * hz / o.cycles) > 5.1e-5 OR abs(peak_share - 1.0 * o.flops / o.cycles / peak) > 1e-9 OR peak_share + 0 > 1"
	text "all cycles" "SELECT printf('by operation: %,d cycles a weight update', sum(cycles)) FROM ($ran)"
	# The comparison and the insight count executions, too: of a run with itself both sides are the device's.
	"$bin/ipu-report" diff "$report" "$report" --sections operations --all --csv >shown.csv || fail "diff"
	taken
	none "diff's operations" "SELECT r.operation, r.cycles, s.source FROM ($ran) r LEFT JOIN shown s ON s.key LIKE r.operation || ' _' AND s.name = 'update_cycles'
		WHERE s.source IS NULL OR s.source <> r.cycles"
	"$bin/ipu-report" "$report" insights --csv >shown.csv || fail "insights"
	taken
	none "the insight operation" "SELECT subject, share FROM shown WHERE id = 'operation' AND abs(share - (SELECT 1.0 * max(cycles) / sum(cycles) FROM ($ran))) > 1e-9"
	# The optimizer and the accumulation of gradients beside the layers, as PopVision's picture has them.
	"$play" 160x50 6vv "$report" >shown.txt
	text "the accumulation" "SELECT printf(' %,d', sum(cycles)) FROM ($ran) WHERE operation LIKE 'GradientAccumulation/%'"
	grep -q GradientAccumulation shown.txt || wrong "operations: no layer GradientAccumulation"
}

timeline() {
	load timeline
	[ -s said.txt ] && wrong "timeline: $(cat said.txt)"
	none "spans and their time by lane" "SELECT * FROM (SELECT clock, track, count(*), sum(dur_ns), min(start_ns), max(depth) FROM spans GROUP BY 1, 2)
		EXCEPT SELECT clock, track, count(*), sum(dur_ns), min(CAST(start_ns AS INTEGER)), max(CAST(depth AS INTEGER)) FROM shown GROUP BY 1, 2"
	text "the bubble" "SELECT printf('bubble %.1f %% (theory %.1f %%): ramp-up %.1f, ramp-down %.1f, imbalance %.1f, communication %.1f',
		100 - 100.0 * sum(busy_ns) / sum(all_ns), 100 * avg(theory_idle_fraction), 100.0 * sum(ramp_up_ns) / sum(all_ns), 100.0 * sum(ramp_down_ns) / sum(all_ns),
		100.0 * sum(imbalance_ns) / sum(all_ns), 100.0 * sum(communication_ns) / sum(all_ns)) FROM (SELECT *, busy_ns + ramp_up_ns + ramp_down_ns +
		imbalance_ns + communication_ns AS all_ns FROM bubbles WHERE clock = 'device' AND mode = 'train')"
}

tensors() {
	load tensors
	same "every tensor that has rows" "SELECT (SELECT count(*) FROM shown WHERE rows > 0) = count(*) FROM (SELECT 1 FROM tensor_stats GROUP BY rank, queue, key)"
	none "tensors" "SELECT s.key, s.greatest_std, t.most FROM shown s JOIN (SELECT rank, queue, key, count(*) AS rows, sum(n_nan) AS nans,
			sum(n_pos_inf) AS infinities, max(std) AS most, min(min) AS least, max(max) AS greatest, max(time_ns) AS last FROM tensor_stats GROUP BY 1, 2, 3) t
			ON t.rank = s.rank AND t.queue = s.queue AND t.key = s.key
		WHERE t.rows <> s.rows OR t.nans <> s.n_nan OR t.infinities <> s.n_pos_inf OR t.last <> s.last_ns OR abs(t.most - s.greatest_std) > 1e-9 * t.most OR
			abs(t.least - s.least_min) > 1e-9 * abs(t.least) OR abs(t.greatest - s.greatest_max) > 1e-9 * abs(t.greatest)"
}

# The proportions of the IPUs' cycles, of the whole recording: those of the named report of one execution, and SQL's of the window.
proportions() {
	screen=proportions
	"$play" 200x60 7vvv0bb "$report" | grep -A 8 'cycles of each IPU (simulated)' >shown.txt || wrong "proportions: $(head -5 shown.txt)"
	local whole="(SELECT max(start_ns + dur_ns) - min(start_ns) FROM spans WHERE clock = 'device')" ipu share count=0
	for ipu in $(ask "SELECT DISTINCT ipu FROM device_steps"); do
		for share in "'OnTileExecute'" "'DoExchange', 'GlobalExchange'" "'Sync', 'SyncAns'" "'StreamCopyBegin', 'StreamCopyMid', 'StreamCopyEnd'"; do
			text "IPU $ipu $share" "SELECT printf('%.2f %%', 100.0 * sum(dur_ns) / $whole) FROM device_steps WHERE ipu = $ipu AND type IN ($share)"
		done
		text "IPU $ipu, balance" "SELECT printf('%.2f %%', 100 * sum(dur_ns * tile_balance) / sum(dur_ns)) FROM device_steps WHERE ipu = $ipu AND type = 'OnTileExecute'"
		count=$((count + 1))
	done
	[ "$count" -ge 2 ] || wrong "proportions of $count IPUs"
}

metrics() {
	load metrics
	none "metrics" "SELECT * FROM (SELECT mode, name, iif(step IS NULL, 'epoch', 'step') AS per, count(*) AS count, min(value) AS least, max(value) AS greatest,
			(SELECT value FROM metrics l WHERE l.mode = m.mode AND l.name = m.name AND (l.step IS NULL) = (m.step IS NULL)
			ORDER BY ifnull(l.step, l.time_ns) DESC LIMIT 1) AS last FROM metrics m GROUP BY 1, 2, 3) q
		LEFT JOIN shown s ON s.mode = q.mode AND s.metric = q.name AND s.per = q.per
		WHERE s.count IS NULL OR q.count <> s.count OR abs(q.last - s.last) > 1e-9 * abs(q.last) OR abs(q.least - s.least) > 1e-9 * abs(q.least) OR
			abs(q.greatest - s.greatest) > 1e-9 * abs(q.greatest)"
}

health() {
	load health
	same "every rule" "SELECT (SELECT count(*) FROM shown) = count(*) FROM health_rules"
	none "hits" "SELECT s.rule, s.hits, count(h.rule) FROM shown s LEFT JOIN health h ON h.rule = s.rule GROUP BY 1 HAVING s.hits <> count(h.rule)"
	none "the first of them" "SELECT s.rule, s.key, h.key FROM shown s JOIN health h ON h.rule = s.rule WHERE s.hits > 0 AND
		h.time_ns = (SELECT min(time_ns) FROM health f WHERE f.rule = s.rule) AND s.at_ns <> h.time_ns"
}

whatif() {
	load whatif
	none "the recorded run" "SELECT s.weight_update_ns FROM shown s WHERE s.kind = 'measured' AND abs(s.weight_update_ns - (SELECT e.cycles * 1e9
		/ e.updates / m.value FROM executions e, meta m WHERE e.mode = 'train' AND m.key = 'clock_hz' LIMIT 1)) > 1"
	same "what is predicted or why it is not" "SELECT count(*) > 8 AND sum(iif(s.why_not = '', s.weight_update_ns > 0, 1)) = count(*) FROM shown s"
}

sql() {
	load sql
	none "views that are none" "SELECT view FROM shown WHERE view NOT IN (SELECT name FROM report.sqlite_master WHERE type = 'view')"
	"$play" 120x30 ':SELECT count(*) AS n, sum(dur_ns) AS ns FROM stage_timings;<Enter>' "$report" >shown.txt
	text "a query of one's own" "SELECT printf(' %,d %,d', count(*), sum(dur_ns)) FROM stage_timings"
}

recorded two 64 --ipu.auto_select_ipus 4 --outfeed.capture histogram
recorded four 64 --pipeline.stages '[0,1,1,2,3,3]' --pipeline.schedule Interleaved --ipu.auto_select_ipus 4 \
	--gradient_accumulation.steps_per_replica 16 --outfeed.activations none --compile.optimizer.config.learning_rate 50
for report in two four; do
	for screen in summary insights memory liveness programs operations timeline proportions tensors metrics health whatif sql; do
		"$screen"
	done
done
[ "$(sqlite3 four/profile.db 'SELECT count(*) > 0 FROM health')" = 1 ] || fail "the second run breaks no rule"

# Ranks that did not start together: the first window has the same weight update on both clocks.
"$bin/ipu-report" merge four two -o merged.db >out || fail "merge"
"$play" 120x40 7 merged.db >shown.txt
grep -q 'clock *device' shown.txt && grep -q 'weight update *1' shown.txt || wrong "merged: $(tail -12 shown.txt)"
text=$("$bin/ipu-view" merged.db --view summary --text)
grep -q 'flatten, flatten' <<<"$text" && wrong "merged: a layer of both ranks stands there twice"

# More spans than the timeline prints: not without a word.
awk 'BEGIN { for (i = 0; i < 100010; i++) printf "%s{\"ph\":\"X\",\"ts\":%d,\"dur\":1,\"pid\":1,\"tid\":1,\"name\":\"n\"}\n", i ? "," : "[", 2 * i; print "]" }' >long.json
mkdir long
"$bin/ipu-report" import -q long.json -o long/profile.db || fail "import"
report=long
load summary
grep -q 'Simulated machine' shown.txt && wrong "an imported trace has a simulated machine"
load timeline
[ "$(ask 'SELECT count(*) FROM shown')" = 100000 ] && grep -q 'more rows' said.txt || wrong "$(ask 'SELECT count(*) FROM shown') rows, said: $(cat said.txt)"

# JSON has the rows of the CSV.
report=two
for screen in memory operations tensors metrics health; do
	load $screen
	"$bin/ipu-view" $report --view $screen --json >shown.json || fail "$screen --json"
	rows=$(sqlite3 :memory: "SELECT json_array_length(readfile('shown.json'), '\$.rows')")
	[ "$rows" = "$(ask 'SELECT count(*) FROM shown')" ] || wrong "$screen: $rows rows as JSON"
done

# Beside itself nothing is different, whichever the screen.
for screen in memory operations tensors metrics health; do
	"$bin/ipu-view" two two --view $screen --csv >shown.csv || fail "$screen of two reports"
	taken
	for column in $(head -1 shown.csv | tr -d '\r' | tr , '\n' | grep '_diff$'); do
		none "$column beside itself" "SELECT $column FROM shown WHERE $column <> '' AND $column <> 0"
	done
done
for key in 1 2 5 6 8 9 H; do
	"$play" 120x30 "${key}D" two two >shown.txt
	grep -q 'Nothing differs' shown.txt || wrong "screen $key beside itself: $(sed -n 3,6p shown.txt)"
done
# The timeline opens with the same update on both, the one under the cursor.
"$play" 120x40 7 two four >shown.txt
update=$(grep -oE 'weight update +[0-9]+' shown.txt | grep -oE '[0-9]+$')
grep -q "S and T from update $update:" shown.txt || wrong "two timelines: not aligned at update $update: $(grep 'S and T' shown.txt)"
"$play" 120x40 1 two two >shown.txt
grep -q 'device as fast, bubble as before, .*the same weights' shown.txt || wrong "a run beside itself: $(sed -n 2,4p shown.txt)"
"$play" 120x40 1 two four >shown.txt
wanted=$(sqlite3 :memory: "ATTACH 'two/profile.db' AS s; ATTACH 'four/profile.db' AS t;
	SELECT printf('Interleaved: device %.1f %% faster, bubble %.1f to %.1f %%, other weights', 100 - 100 * ts.c / ss.c, 100 * s.b, 100 * t.b)
	FROM (SELECT 1 - 1.0 * total_busy_ns / total_ns AS b FROM s.bubble_sums WHERE clock = 'device' AND mode = 'train') s,
	(SELECT 1 - 1.0 * total_busy_ns / total_ns AS b FROM t.bubble_sums WHERE clock = 'device' AND mode = 'train') t,
	(SELECT 1.0 * sum(cycles) / sum(steps) AS c FROM s.executions WHERE mode = 'train') ss,
	(SELECT 1.0 * sum(cycles) / sum(steps) AS c FROM t.executions WHERE mode = 'train') ts")
grep -qF "$wanted" shown.txt || wrong "$wanted, said: $(sed -n 2,4p shown.txt)"
"$bin/ipu-report" diff two four >shown.txt
grep -qF "$wanted" shown.txt || wrong "ipu-report diff does not say: $wanted"
for size in 80x24 120x40; do
	"$play" $size 1GgG two four >shown.txt
	"$play" $size 1 two four >>shown.txt
	grep -E '[ +-][0-9][0-9.,]*…' shown.txt >cut.txt && wrong "summary of two at $size, cut: $(cat cut.txt)"
done
# What is cut says so, and keeps what tells it apart: settings as wide as pipes have them, operations, lanes.
report=two
for width in 100 101 102 103; do
	"$bin/ipu-view" two --view summary --text --width $width >shown.txt
	grep -qE 'learning_rate +0\.01 *$' shown.txt || wrong "summary at $width: $(grep learning_rate shown.txt)"
	grep -qE 'shuffle +true *$' shown.txt || wrong "summary at $width: $(grep shuffle shown.txt)"
	# Wrapped where it is drawn: no word of a setting is broken while there is room for it.
	grep -qE 'model.class_name +Sequential *$' shown.txt || wrong "summary at $width: $(grep -A 1 class_name shown.txt)"
	grep -oE ' loss +sparse_cat[^ ]+' shown.txt | grep '…' >/dev/null && wrong "summary at $width: $(grep ' loss ' shown.txt)"
done
"$bin/ipu-view" two --view operations --text --width 100 >shown.txt
grep -q 'Grad[^ ]*128/kernel' shown.txt || wrong "operations: $(grep Grad shown.txt)"
[ "$(awk '/^ [A-Z][^ ]*\// { print $1 }' shown.txt | sort | uniq -d | wc -l)" = 0 ] || wrong "operations with the same name: $(sort shown.txt | uniq -d)"
for name in a/worker b/worker ForkPoolWorker-31 ForkPoolWorker-32; do
	echo "{\"ph\":\"M\",\"pid\":1,\"tid\":\"$name\",\"name\":\"thread_name\",\"args\":{\"name\":\"$name\"}},"
	echo "{\"ph\":\"X\",\"ts\":1,\"dur\":5,\"pid\":1,\"tid\":\"$name\",\"name\":\"n\"},"
done | { echo '['; sed '$s/,$/]/'; } >lanes.json
"$bin/ipu-report" import -q lanes.json -o lanes.db || fail "import of lanes"
for width in 80 120 200; do
	"$bin/ipu-view" lanes.db --view timeline --text --width $width >shown.txt
	[ "$(grep -oE '^ [^ ]+ +n' shown.txt | sort -u | wc -l)" = 4 ] || wrong "lanes at $width: $(cat shown.txt)"
done
grep -q '^ ForkPoolWorker-31 ' shown.txt || wrong "lanes at 200: $(cat shown.txt)"
[ $failures = 0 ] || fail "$failures numbers"
