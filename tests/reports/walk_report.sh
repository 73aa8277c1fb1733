#!/usr/bin/env bash
# What the public report says of a pipelined run is what SQL says of it, line by line. Usage: walk_report.sh [PROGRAM]
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
program=${1:-$bin/walk_report}
cd "$work"
command -v sqlite3 >/dev/null || { echo "skipped: no sqlite3"; exit 77; }

# By the contract's views alone.
expected() {
	sqlite3 -batch -bail "$1" <<'SQL'
SELECT printf('Target: IPU_MODEL %s, %d IPUs, %d tiles of 638976 bytes, 1330 MHz', (SELECT value FROM meta WHERE key = 'target'), i, i * 1472)
	FROM (SELECT CAST(value AS INTEGER) AS i FROM meta WHERE key = 'ipus');
SELECT printf('Graph: %d compute sets, %d vertices, %d variables', count(*), sum(vertices), (SELECT count(*) FROM variables)) FROM compute_sets;
CREATE TEMP TABLE tiles AS SELECT ipu, tile, sum(bytes) AS bytes, max(capacity) AS capacity,
	sum(bytes) FILTER (WHERE region = 'overflowed') AS overflowed FROM tile_memory GROUP BY ipu, tile;
SELECT printf('Memory of IPU %d: %d of %d bytes, always live %d, fullest tile %d with %d, overflowing %d', ipu, sum(bytes), 1472 * max(capacity),
	(SELECT sum(bytes) FROM tile_memory m WHERE m.ipu = t.ipu AND category <> 'notAlwaysLiveVariables'),
	(SELECT tile FROM tiles m WHERE m.ipu = t.ipu ORDER BY bytes DESC, tile LIMIT 1), max(bytes), count(overflowed)) FROM tiles t GROUP BY ipu;
SELECT printf('  %s: %d', category, sum(bytes)) FROM tile_memory GROUP BY ipu, category;
CREATE TEMP TABLE peak AS SELECT l.*, p.name FROM liveness l LEFT JOIN programs p USING (program_id)
	ORDER BY always_live_bytes + not_always_live_bytes DESC, ipu, program_step LIMIT 1;
SELECT printf('Peak of liveness: IPU %d, step %d (%s), %d always live, %d not always live', ipu, program_step, name, always_live_bytes, not_always_live_bytes) FROM peak;
SELECT printf('  %d variables not always live, %d bytes', count(*), sum(bytes)) FROM variables v JOIN peak p ON p.ipu = v.ipu
	AND p.program_step BETWEEN v.first_program_step AND v.last_program_step WHERE NOT always_live;
SELECT 'Programs:';
SELECT printf('  %s: %d', type, count(*)) FROM programs GROUP BY type;
SELECT printf('Engine::run #%d: %.3f us here (measured), %d cycles (simulated)%s', execution, dur_ns / 1e3, cycles, iif(traced = 1, '', ', not traced')) FROM executions;
SELECT 'Longest steps but waits:';
SELECT printf('  %d cycles: %s %s on IPU %d', cycles, type, name, ipu) FROM (SELECT *, row_number() OVER () AS n FROM device_steps)
	WHERE type NOT IN ('Sync', 'SyncAns') ORDER BY cycles DESC, n LIMIT 5;
SELECT 'Stages, cycles of all traced steps:';
SELECT printf('  stage %d %s: %d compute, %d exchange, %d other', stage, phase, sum(cycles) FILTER (WHERE type = 'OnTileExecute'),
	sum(cycles) FILTER (WHERE type = 'DoExchange'), sum(cycles) FILTER (WHERE type NOT IN ('OnTileExecute', 'DoExchange')))
	FROM device_steps WHERE phase IS NOT NULL AND stage IS NOT NULL GROUP BY stage, phase;
SELECT printf('Thread %s: %d spans, %d us; %d children, %d us', t.name, sum(depth = 0), sum(dur_ns) FILTER (WHERE depth = 0) / 1000,
	sum(depth = 1), sum(dur_ns) FILTER (WHERE depth = 1) / 1000) FROM tracks t LEFT JOIN spans s USING (track) WHERE t.clock = 'host' GROUP BY track;
SQL
}

export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}'
compare() {
	rm -rf tf_report__*
	train 16 --quiet "$@" || fail "training: $*"
	"$program" tf_report__* >said 2>err || fail "$*: $(cat err)"
	[ ! -s err ] || fail "$*: $(cat err)"
	expected tf_report__*/profile.db >wanted
	diff <(sort wanted) <(sort said) || fail "$*: the report and SQL part"
	[ "$(wc -l <said)" -gt 40 ] || fail "$*: $(cat said)"
}
compare --gradient_accumulation.steps_per_replica 4 --evaluate '{"steps": 8, "steps_per_execution": 8}'
compare --pipeline.schedule Interleaved --gradient_accumulation.steps_per_replica 4 --ipu.auto_select_ipus 4 --evaluate null
compare "${no_pipeline[@]}" --evaluate null

# What is not a report is told in one line.
if "$program" "$IPUSCOPE_SOURCE_DIR" >out 2>err; then fail "a folder without a report is walked"; fi
[ "$(wc -l <err)" -eq 1 ] && grep -q 'profile.db' err || fail "$(cat err)"
echo "the public report says what SQL says"
