-- The database of one run (or of several merged runs).
--
-- Part 1, the tables, is ours to change with user_version. Part 2, the views, is the contract: these
-- names and columns stay, more may follow. Only core SQL, so that a plain sqlite3 answers. The tables
-- of appended rows, and the views that show such a table as it is, are not here: prof_rows.c makes
-- them of the lists of columns in ipuscope/profiler.h before it runs this text.
-- Not applicable and unknown are NULL. Times are ns from the run's start. SQLite has no NaN: a NaN
-- that is bound becomes NULL.
--
-- Hot rows (span_rows, stage_timing_rows, device_run_rows, tensor_stat_rows, counter_rows) are narrow
-- and append-only in rowid order; names are interned in strings, call sites in sites, the keys
-- "when and where" in contexts. There are no secondary indexes on them while a run is recorded.

PRAGMA application_id = 1230001491; -- 0x49505553, "IPUS"
PRAGMA user_version = 1;

-- ---------------------------------------------------------------------------------------------
-- Part 1: tables

CREATE TABLE meta_facts (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;

CREATE TABLE strings (string_id INTEGER PRIMARY KEY, value TEXT NOT NULL);

CREATE TABLE sites (
	site_id INTEGER PRIMARY KEY,
	category_id INTEGER NOT NULL, name_id INTEGER NOT NULL, operation_id INTEGER,
	file_id INTEGER, line INTEGER);

-- Everything a row can say about when and where; each combination once (as a rule: the writer looks
-- through the most recent ones only).
CREATE TABLE contexts (
	context_id INTEGER PRIMARY KEY,
	rank INTEGER NOT NULL, mode TEXT, epoch INTEGER, execution INTEGER, weight_update INTEGER,
	step INTEGER, microbatch INTEGER, replica INTEGER, ipu INTEGER, stage INTEGER, phase TEXT);

-- clock: 0 host, 1 device.
CREATE TABLE track_rows (
	track_id INTEGER PRIMARY KEY,
	rank INTEGER NOT NULL, clock INTEGER NOT NULL, pid INTEGER, tid INTEGER, ipu INTEGER,
	track TEXT NOT NULL UNIQUE, name TEXT NOT NULL, parent TEXT);

-- In order of start on each track, so a range of time on a track is a few ranges of span_id (zones).
-- parent_back: span_id minus the parent's span_id; NULL at depth 0. dur_ns NULL: still open; the one
-- column that is ever updated.
CREATE TABLE span_rows (
	span_id INTEGER PRIMARY KEY,
	track_id INTEGER NOT NULL, site_id INTEGER NOT NULL, start_ns INTEGER NOT NULL, dur_ns INTEGER,
	context_id INTEGER, parent_back INTEGER, depth INTEGER NOT NULL);

-- By span, so that the arguments of one are found without an index; given twice, the later value stays.
CREATE TABLE span_arg_rows (
	span_id INTEGER NOT NULL, name_id INTEGER NOT NULL, value,
	PRIMARY KEY (span_id, name_id)) WITHOUT ROWID;

CREATE TABLE instant_rows (
	row_id INTEGER PRIMARY KEY,
	track_id INTEGER NOT NULL, site_id INTEGER NOT NULL, time_ns INTEGER NOT NULL, context_id INTEGER);

-- As span_arg_rows, by row_id of instant_rows.
CREATE TABLE instant_arg_rows (
	instant_id INTEGER NOT NULL, name_id INTEGER NOT NULL, value,
	PRIMARY KEY (instant_id, name_id)) WITHOUT ROWID;

CREATE TABLE flow_rows (
	row_id INTEGER PRIMARY KEY,
	from_span_id INTEGER NOT NULL, to_span_id INTEGER NOT NULL, name_id INTEGER NOT NULL);

CREATE TABLE counter_rows (
	row_id INTEGER PRIMARY KEY,
	track_id INTEGER NOT NULL, site_id INTEGER NOT NULL, time_ns INTEGER NOT NULL, value REAL);

-- What a call launched: kernels and copies by their span. Filled at the end of a recording, from the equal
-- launch_key of call_rows and of kernel_rows and copy_rows (prof_launch.c).
CREATE TABLE launch_rows (span_id INTEGER PRIMARY KEY, launch_span_id INTEGER NOT NULL);

-- The critical path of each step, found at the end of a recording, too (prof_critical.c): an edge of it is a row.
CREATE TABLE critical_rows (
	row_id INTEGER PRIMARY KEY,
	rank INTEGER NOT NULL, step INTEGER, position INTEGER NOT NULL, span_id INTEGER NOT NULL, kind TEXT NOT NULL,
	time_ns INTEGER NOT NULL, dur_ns INTEGER NOT NULL);

-- The zone map: with each commit a row per kind and track that got rows. kind: 0 spans, 1 instants,
-- 2 counters. All rows first_row .. last_row of that kind are of that track; spans in order of start,
-- first_ns and last_ns being the first and the last start. finest: of spans, the finest of their levels
-- that span_levels has; a picture that needs a finer one reads the zone's rows, which are few per bucket.
CREATE TABLE zones (
	kind INTEGER NOT NULL, track_id INTEGER NOT NULL, first_ns INTEGER NOT NULL, first_row INTEGER NOT NULL,
	last_ns INTEGER NOT NULL, last_row INTEGER NOT NULL, finest INTEGER,
	PRIMARY KEY (kind, track_id, first_ns, first_row)) WITHOUT ROWID;

-- The zones of spans whose finest level is above 0, once more, to be found by it.
CREATE TABLE sparse_zones (
	track_id INTEGER NOT NULL, finest INTEGER NOT NULL, first_ns INTEGER NOT NULL, first_row INTEGER NOT NULL,
	last_ns INTEGER NOT NULL, last_row INTEGER NOT NULL,
	PRIMARY KEY (track_id, finest, first_ns, first_row)) WITHOUT ROWID;

-- Pre-aggregated spans: level l has buckets of 2^(16 + 2 l) ns, l = 0 .. 12. A span is counted in the
-- bucket of its start; its time is laid on every bucket it covers. A span as long as 4 buckets of a
-- level or longer is not in that level's buckets but in long_spans, under the greatest such level.
-- Open spans are in neither. A span is in no level finer than its zone's finest (that of the zone it
-- began in), which is the first whose buckets hold 4 spans on average, or one of them more than 64, or
-- that is as wide as the zone; level 12 always has rows.
-- site_id is the call site with most time in the bucket among the four greatest kept, site_ns its time.
CREATE TABLE span_levels (
	track_id INTEGER NOT NULL, level INTEGER NOT NULL, bucket INTEGER NOT NULL, depth INTEGER NOT NULL,
	busy_ns INTEGER NOT NULL, count INTEGER NOT NULL, site_id INTEGER, site_ns INTEGER,
	PRIMARY KEY (track_id, level, bucket, depth)) WITHOUT ROWID;

CREATE TABLE long_spans (
	track_id INTEGER NOT NULL, level INTEGER NOT NULL, start_ns INTEGER NOT NULL, span_id INTEGER NOT NULL,
	PRIMARY KEY (track_id, level, start_ns, span_id)) WITHOUT ROWID;

CREATE TABLE counter_levels (
	track_id INTEGER NOT NULL, site_id INTEGER NOT NULL, level INTEGER NOT NULL, bucket INTEGER NOT NULL,
	count INTEGER NOT NULL, least REAL, greatest REAL, total REAL,
	PRIMARY KEY (track_id, site_id, level, bucket)) WITHOUT ROWID;

-- A device that does the same steps again and again is stored as one trace, its template steps, and a
-- row for each time that it ran. The view device_steps multiplies them out. Templates are small: they
-- have their index from the start.
CREATE INDEX device_step_traces ON device_step_rows (trace_id);

-- What is the same on neighbouring tiles is one row: bytes on tile, and on each of more_tiles tiles after
-- it. The views have a row for each tile, from these numbers.
CREATE TABLE tile_numbers (tile INTEGER PRIMARY KEY);
INSERT INTO tile_numbers
	WITH RECURSIVE n(tile) AS (SELECT 0 UNION ALL SELECT tile + 1 FROM n WHERE tile < 2047)
	SELECT tile FROM n;

-- One row per commit: what recording cost since the commit before. The last: what the last commit cost.
CREATE TABLE overhead_rows (
	row_id INTEGER PRIMARY KEY,
	rank INTEGER NOT NULL, time_ns INTEGER, events INTEGER, rows INTEGER, bytes INTEGER, dropped INTEGER,
	record_ns_estimate INTEGER, write_ns INTEGER, lag_ns INTEGER);

-- Sums of the rows above, for what reports say of a whole run: with each commit those that changed are
-- written again, so they are of the same moment as the rows. A row is a group: a rank and the columns
-- up to the first sum; there may be several rows of one group (the writer forgets groups where they are
-- many), whose sums add up. A sum is NULL where nothing of it was known.
CREATE TABLE stage_sum_rows (
	sum_id INTEGER PRIMARY KEY,
	rank INTEGER NOT NULL, clock INTEGER NOT NULL, mode TEXT, replica INTEGER, ipu INTEGER, stage INTEGER,
	phase TEXT, count INTEGER NOT NULL, total_ns INTEGER, least_ns INTEGER, greatest_ns INTEGER,
	first_start_ns INTEGER, last_end_ns INTEGER, cpu_ns INTEGER);

-- all_ns: busy, the ramps, imbalance and communication, of the runs that know all of them, which is their
-- IPUs x makespan. The fractions are sums; the columns in the plural count what they are sums of.
CREATE TABLE bubble_sum_rows (
	sum_id INTEGER PRIMARY KEY,
	rank INTEGER NOT NULL, clock INTEGER NOT NULL, mode TEXT, replica INTEGER, schedule_id INTEGER,
	stages INTEGER, microbatches INTEGER, runs INTEGER NOT NULL, makespan_ns INTEGER,
	least_makespan_ns INTEGER, greatest_makespan_ns INTEGER, busy_ns INTEGER, ramp_up_ns INTEGER,
	ramp_down_ns INTEGER, imbalance_ns INTEGER, communication_ns INTEGER, all_ns INTEGER,
	oversubscribed INTEGER, idle_fraction REAL, bubble_rate REAL, bubble_over_ideal REAL,
	theory_idle_fraction REAL, theory_bubble_rate REAL, theory_bubble_over_ideal REAL,
	idle_fractions INTEGER, bubble_rates INTEGER, bubbles_over_ideal INTEGER,
	theory_idle_fractions INTEGER, theory_bubble_rates INTEGER, theory_bubbles_over_ideal INTEGER);

CREATE TABLE execution_sum_rows (
	sum_id INTEGER PRIMARY KEY,
	rank INTEGER NOT NULL, mode TEXT, epoch INTEGER, executions INTEGER NOT NULL, steps INTEGER,
	updates INTEGER, traced INTEGER, untraced INTEGER, first_start_ns INTEGER, last_end_ns INTEGER,
	total_ns INTEGER, cycles INTEGER);

-- One row per group. last_*: of the rows that are of no single execution (of all where there are none)
-- the last in time; an evaluation after the training has no epoch.
CREATE TABLE metric_sum_rows (
	sum_id INTEGER PRIMARY KEY,
	rank INTEGER NOT NULL, mode TEXT, name_id INTEGER, per_step INTEGER NOT NULL, count INTEGER NOT NULL,
	least REAL, greatest REAL, last_epoch INTEGER, last_execution INTEGER, last_step INTEGER,
	last_time_ns INTEGER, last_value REAL);

-- One row per group. first_row: of health_rows, the first in time.
CREATE TABLE health_sum_rows (
	sum_id INTEGER PRIMARY KEY,
	rank INTEGER NOT NULL, rule_id INTEGER, hits INTEGER NOT NULL, first_ns INTEGER, first_row INTEGER NOT NULL);

CREATE TABLE overhead_sum_rows (
	sum_id INTEGER PRIMARY KEY,
	rank INTEGER NOT NULL, commits INTEGER NOT NULL, time_ns INTEGER, events INTEGER, rows INTEGER,
	bytes INTEGER, dropped INTEGER, record_ns_estimate INTEGER, write_ns INTEGER);

-- One row per group. first_row, last_row: of tensor_stat_rows, the first and the last in time.
CREATE TABLE tensor_sum_rows (
	sum_id INTEGER PRIMARY KEY,
	rank INTEGER NOT NULL, tensor_id INTEGER NOT NULL, rows INTEGER NOT NULL, nonfinite_rows INTEGER,
	n_nan INTEGER, n_pos_inf INTEGER, n_neg_inf INTEGER, first_ns INTEGER, last_ns INTEGER,
	first_row INTEGER NOT NULL, last_row INTEGER NOT NULL, least_mean REAL, greatest_mean REAL,
	least_std REAL, greatest_std REAL, least_min REAL, greatest_min REAL, least_max REAL,
	greatest_max REAL, least_abs_max REAL, greatest_abs_max REAL, least_abs_min_nonzero REAL,
	greatest_abs_min_nonzero REAL, least_l1 REAL, greatest_l1 REAL, least_l2 REAL, greatest_l2 REAL,
	least_inactive REAL, greatest_inactive REAL, least_update_ratio REAL, greatest_update_ratio REAL);

-- ---------------------------------------------------------------------------------------------
-- Part 2: the contract

CREATE VIEW meta (key, value) AS SELECT key, value FROM meta_facts;

-- A loop over the runs (CROSS JOIN keeps it outside), each looking up its template. A micro-batch is
-- one of a weight update: where nothing is updated there are only steps.
CREATE VIEW device_steps AS
	SELECT r.rank, r.mode, r.epoch, r.execution, r.weight_update, r.first_step + d.microbatch AS step,
		CASE WHEN r.weight_update IS NOT NULL THEN ifnull(r.first_microbatch, 0) + d.microbatch END
			AS microbatch, r.replica,
		r.first_ipu + d.ipu AS ipu, d.stage, d.phase, d.trace_step, d.program_id, t.value AS type,
		n.value AS name, o.value AS operation, r.start_cycle + d.start_cycle AS start_cycle, d.cycles,
		CAST(round((r.start_cycle + d.start_cycle) * 1e9 / c.clock_hz) AS INTEGER) AS start_ns,
		CAST(round((r.start_cycle + d.start_cycle + d.cycles) * 1e9 / c.clock_hz) AS INTEGER) -
			CAST(round((r.start_cycle + d.start_cycle) * 1e9 / c.clock_hz) AS INTEGER) AS dur_ns,
		d.cycles_overlapped, d.active_tiles, d.tile_balance, d.active_tile_balance, d.bytes_in, d.bytes_out
	FROM device_run_rows r
	CROSS JOIN device_step_rows d ON d.trace_id = r.trace_id
	LEFT JOIN device_traces c ON c.trace_id = r.trace_id
	LEFT JOIN strings t ON t.string_id = d.type_id
	LEFT JOIN strings n ON n.string_id = d.name_id
	LEFT JOIN strings o ON o.string_id = d.operation_id;

CREATE VIEW stage_timings AS
	SELECT CASE s.clock WHEN 0 THEN 'host' ELSE 'device' END AS clock,
		c.rank, c.mode, c.epoch, c.execution, c.weight_update, c.step, c.microbatch, c.replica,
		c.ipu, c.stage, c.phase, s.start_ns, s.dur_ns, s.cpu_ns
	FROM stage_timing_rows s
	LEFT JOIN contexts c ON c.context_id = s.context_id;

CREATE VIEW bubbles AS
	SELECT CASE b.clock WHEN 0 THEN 'host' ELSE 'device' END AS clock,
		c.rank, c.mode, c.epoch, c.execution, c.weight_update, c.step, c.microbatch, c.replica,
		b.schedule, b.stages, b.microbatches, b.makespan_ns, b.busy_ns, b.idle_fraction, b.bubble_rate,
		b.bubble_over_ideal, b.theory_idle_fraction, b.theory_bubble_rate, b.theory_bubble_over_ideal,
		b.ramp_up_ns, b.ramp_down_ns, b.imbalance_ns, b.communication_ns, b.oversubscribed
	FROM bubble_rows b
	LEFT JOIN contexts c ON c.context_id = b.context_id;

CREATE VIEW tracks AS
	SELECT track, CASE clock WHEN 0 THEN 'host' ELSE 'device' END AS clock, rank, pid, tid, ipu, name, parent
	FROM track_rows;

CREATE VIEW spans AS
	SELECT CASE t.clock WHEN 0 THEN 'host' ELSE 'device' END AS clock, t.track, r.span_id,
		r.span_id - r.parent_back AS parent_id, r.depth, g.value AS category, n.value AS name,
		r.start_ns, r.dur_ns,
		t.rank, c.mode, c.epoch, c.execution, c.weight_update, c.step, c.microbatch, c.replica,
		coalesce(c.ipu, t.ipu) AS ipu, c.stage, c.phase, o.value AS operation
	FROM span_rows r
	LEFT JOIN track_rows t ON t.track_id = r.track_id
	LEFT JOIN sites s ON s.site_id = r.site_id
	LEFT JOIN strings g ON g.string_id = s.category_id
	LEFT JOIN strings n ON n.string_id = s.name_id
	LEFT JOIN strings o ON o.string_id = s.operation_id
	LEFT JOIN contexts c ON c.context_id = r.context_id;

CREATE VIEW span_args AS
	SELECT a.span_id, n.value AS name, a.value
	FROM span_arg_rows a LEFT JOIN strings n ON n.string_id = a.name_id;

CREATE VIEW instants AS
	SELECT CASE t.clock WHEN 0 THEN 'host' ELSE 'device' END AS clock, t.track, g.value AS category,
		n.value AS name, i.time_ns,
		t.rank, c.mode, c.epoch, c.execution, c.weight_update, c.step, c.microbatch, c.replica,
		i.row_id AS instant_id
	FROM instant_rows i
	LEFT JOIN track_rows t ON t.track_id = i.track_id
	LEFT JOIN sites s ON s.site_id = i.site_id
	LEFT JOIN strings g ON g.string_id = s.category_id
	LEFT JOIN strings n ON n.string_id = s.name_id
	LEFT JOIN contexts c ON c.context_id = i.context_id;

CREATE VIEW instant_args AS
	SELECT a.instant_id, n.value AS name, a.value
	FROM instant_arg_rows a LEFT JOIN strings n ON n.string_id = a.name_id;

CREATE VIEW flows AS
	SELECT f.from_span_id, f.to_span_id, n.value AS name
	FROM flow_rows f LEFT JOIN strings n ON n.string_id = f.name_id;

CREATE VIEW counters AS
	SELECT t.track, n.value AS name, r.time_ns, r.value
	FROM counter_rows r
	LEFT JOIN track_rows t ON t.track_id = r.track_id
	LEFT JOIN sites s ON s.site_id = r.site_id
	LEFT JOIN strings n ON n.string_id = s.name_id;

-- A loop over the rows (CROSS JOIN keeps it outside), each taking its range of numbers: a query for one
-- tile looks up that number only.
CREATE VIEW variable_tiles AS
	SELECT r.variable_id, r.ipu, r.tile, r.bytes FROM variable_tile_rows r WHERE coalesce(r.more_tiles, 0) = 0
	UNION ALL
	SELECT r.variable_id, r.ipu, n.tile, r.bytes
	FROM variable_tile_rows r
	CROSS JOIN tile_numbers n ON n.tile BETWEEN r.tile AND r.tile + r.more_tiles
	WHERE r.more_tiles > 0;

CREATE VIEW tile_memory AS
	SELECT m.ipu, m.tile, c.value AS category, r.value AS region, m.bytes, m.capacity
	FROM tile_memory_rows m
	LEFT JOIN strings c ON c.string_id = m.category_id
	LEFT JOIN strings r ON r.string_id = m.region_id
	WHERE coalesce(m.more_tiles, 0) = 0
	UNION ALL
	SELECT m.ipu, n.tile, c.value AS category, r.value AS region, m.bytes, m.capacity
	FROM tile_memory_rows m
	CROSS JOIN tile_numbers n ON n.tile BETWEEN m.tile AND m.tile + m.more_tiles
	LEFT JOIN strings c ON c.string_id = m.category_id
	LEFT JOIN strings r ON r.string_id = m.region_id
	WHERE m.more_tiles > 0;

CREATE VIEW tensors AS SELECT queue, key, kind, layer, stage, shape, dtype, activity, dims FROM tensor_rows;

CREATE VIEW tensor_tiers AS
	SELECT i.queue, i.key, i.kind, i.layer, t.tier, t.every, t.keep,
		c.rank, c.mode, c.epoch, c.execution, c.weight_update, c.step, c.microbatch, c.replica,
		t.time_ns, t.why
	FROM tensor_tier_rows t
	LEFT JOIN tensor_rows i ON i.tensor_id = t.tensor_id
	LEFT JOIN contexts c ON c.context_id = t.context_id;

CREATE VIEW tensor_stats AS
	SELECT i.queue, i.key, i.kind, i.layer, i.stage, c.phase,
		c.rank, c.mode, c.epoch, c.execution, c.weight_update, c.step, c.microbatch, c.replica,
		s.time_ns, s.n, s.n_nan, s.n_pos_inf, s.n_neg_inf, s.n_zero, s.n_neg, s.n_pos, s.min, s.max, s.mean,
		s.std, s.l1, s.l2, s.abs_min_nonzero, s.abs_max, s.inactive, s.update_ratio, s.n_changed
	FROM tensor_stat_rows s
	LEFT JOIN tensor_rows i ON i.tensor_id = s.tensor_id
	LEFT JOIN contexts c ON c.context_id = s.context_id;

CREATE VIEW tensor_histograms AS
	SELECT i.queue, i.key,
		c.rank, c.mode, c.epoch, c.execution, c.weight_update, c.step, c.microbatch, c.replica,
		h.bin, h.low, h.high, h.count
	FROM tensor_histogram_rows h
	LEFT JOIN tensor_rows i ON i.tensor_id = h.tensor_id
	LEFT JOIN contexts c ON c.context_id = h.context_id;

CREATE VIEW captures AS
	SELECT i.queue, i.key, i.kind, i.layer,
		c.rank, c.mode, c.epoch, c.execution, c.weight_update, c.step, c.microbatch, c.replica,
		p.dtype, p.shape, p.bytes, p.chunk, p.data
	FROM capture_rows p
	LEFT JOIN tensor_rows i ON i.tensor_id = p.tensor_id
	LEFT JOIN contexts c ON c.context_id = p.context_id;

CREATE VIEW metrics AS
	SELECT m.rank, m.mode, m.epoch, m.execution, m.step, m.time_ns, n.value AS name, m.value
	FROM metric_rows m LEFT JOIN strings n ON n.string_id = m.name_id;

CREATE VIEW health AS
	SELECT h.rule, i.queue, coalesce(h.key, i.key) AS key, coalesce(h.layer, i.layer) AS layer,
		coalesce(c.stage, i.stage) AS stage, c.phase,
		c.rank, c.mode, c.epoch, c.execution, c.weight_update, c.step, c.microbatch, c.replica,
		h.time_ns, h.value, h.threshold
	FROM health_rows h
	LEFT JOIN tensor_rows i ON i.tensor_id = h.tensor_id
	LEFT JOIN contexts c ON c.context_id = h.context_id;

CREATE VIEW first_nonfinite AS
	SELECT i.queue, i.key, i.layer, i.stage, c.phase,
		c.rank, c.mode, c.epoch, c.execution, c.weight_update, c.step, c.microbatch, c.replica,
		f.time_ns, f.element, f.value
	FROM first_nonfinite_rows f
	LEFT JOIN tensor_rows i ON i.tensor_id = f.tensor_id
	LEFT JOIN contexts c ON c.context_id = f.context_id;

CREATE VIEW nonfinite_trail AS
	SELECT p.position, p.role, i.queue, i.key, i.kind, i.layer, i.stage, c.phase,
		c.rank, c.mode, c.epoch, c.execution, c.weight_update, c.step, c.microbatch, c.replica,
		p.time_ns, p.n, p.n_nan, p.n_pos_inf, p.n_neg_inf, p.n_zero, p.n_neg, p.n_pos, p.min, p.max, p.mean,
		p.std, p.l1, p.l2, p.abs_min_nonzero, p.abs_max
	FROM nonfinite_trail_rows p
	LEFT JOIN tensor_rows i ON i.tensor_id = p.tensor_id
	LEFT JOIN contexts c ON c.context_id = p.context_id;

CREATE VIEW overhead AS
	SELECT rank, time_ns, events, rows, bytes, dropped, record_ns_estimate, write_ns, lag_ns FROM overhead_rows;

CREATE VIEW time_split AS
	SELECT CASE clock WHEN 0 THEN 'host' ELSE 'device' END AS clock, rank, execution, replica, ipu,
		compute_ns, exchange_ns, sync_ns, host_io_ns, idle_ns
	FROM time_split_rows;

CREATE VIEW stage_sums AS
	SELECT CASE clock WHEN 0 THEN 'host' ELSE 'device' END AS clock, rank, mode, replica, ipu, stage, phase,
		sum(count) AS count, sum(total_ns) AS total_ns, 1.0 * sum(total_ns) / sum(count) AS mean_ns,
		min(least_ns) AS least_ns, max(greatest_ns) AS greatest_ns, sum(cpu_ns) AS cpu_ns,
		min(first_start_ns) AS first_start_ns, max(last_end_ns) AS last_end_ns
	FROM stage_sum_rows
	GROUP BY stage_sum_rows.clock, rank, mode, replica, ipu, stage, phase;

CREATE VIEW bubble_sums AS
	SELECT CASE b.clock WHEN 0 THEN 'host' ELSE 'device' END AS clock, b.rank, b.mode, b.replica,
		n.value AS schedule, b.stages, b.microbatches, sum(b.runs) AS runs,
		sum(b.idle_fraction) / sum(b.idle_fractions) AS mean_idle_fraction,
		sum(b.bubble_rate) / sum(b.bubble_rates) AS mean_bubble_rate,
		sum(b.bubble_over_ideal) / sum(b.bubbles_over_ideal) AS mean_bubble_over_ideal,
		sum(b.theory_idle_fraction) / sum(b.theory_idle_fractions) AS mean_theory_idle_fraction,
		sum(b.theory_bubble_rate) / sum(b.theory_bubble_rates) AS mean_theory_bubble_rate,
		sum(b.theory_bubble_over_ideal) / sum(b.theory_bubbles_over_ideal) AS mean_theory_bubble_over_ideal,
		sum(b.makespan_ns) AS total_makespan_ns, min(b.least_makespan_ns) AS least_makespan_ns,
		max(b.greatest_makespan_ns) AS greatest_makespan_ns, sum(b.all_ns) AS total_ns,
		sum(b.busy_ns) AS total_busy_ns, sum(b.ramp_up_ns) AS total_ramp_up_ns,
		sum(b.ramp_down_ns) AS total_ramp_down_ns, sum(b.imbalance_ns) AS total_imbalance_ns,
		sum(b.communication_ns) AS total_communication_ns, sum(b.oversubscribed) AS oversubscribed_runs
	FROM bubble_sum_rows b
	LEFT JOIN strings n ON n.string_id = b.schedule_id
	GROUP BY b.clock, b.rank, b.mode, b.replica, n.value, b.stages, b.microbatches;

CREATE VIEW execution_sums AS
	SELECT rank, mode, epoch, sum(executions) AS executions, sum(steps) AS steps, sum(updates) AS updates,
		sum(traced) AS traced, sum(untraced) AS untraced, min(first_start_ns) AS first_start_ns,
		max(last_end_ns) AS last_end_ns, sum(total_ns) AS total_ns, sum(cycles) AS total_cycles
	FROM execution_sum_rows
	GROUP BY rank, mode, epoch;

CREATE VIEW metric_sums AS
	SELECT m.rank, m.mode, n.value AS name, m.per_step, m.count, m.least, m.greatest, m.last_epoch,
		m.last_execution, m.last_step, m.last_time_ns, m.last_value
	FROM metric_sum_rows m LEFT JOIN strings n ON n.string_id = m.name_id;

CREATE VIEW health_sums AS
	SELECT r.value AS rule, s.hits, i.queue, coalesce(h.key, i.key) AS key, coalesce(h.layer, i.layer) AS layer,
		coalesce(c.stage, i.stage) AS stage, c.phase,
		s.rank, c.mode, c.epoch, c.execution, c.weight_update, c.step, c.microbatch, c.replica,
		h.time_ns, h.value, h.threshold
	FROM health_sum_rows s
	LEFT JOIN strings r ON r.string_id = s.rule_id
	LEFT JOIN health_rows h ON h.row_id = s.first_row
	LEFT JOIN tensor_rows i ON i.tensor_id = h.tensor_id
	LEFT JOIN contexts c ON c.context_id = h.context_id;

CREATE VIEW overhead_sums AS
	SELECT rank, commits, time_ns, events, rows, bytes, dropped, record_ns_estimate, write_ns
	FROM overhead_sum_rows;

CREATE VIEW tensor_sums AS
	SELECT i.queue, i.key, i.kind, i.layer, i.stage, i.shape, s.rank, s.rows, s.nonfinite_rows,
		s.n_nan, s.n_pos_inf, s.n_neg_inf, f.time_ns AS first_ns, b.mode AS first_mode,
		b.epoch AS first_epoch, b.weight_update AS first_weight_update, b.step AS first_step,
		l.time_ns AS last_ns, c.mode AS last_mode, c.epoch AS last_epoch,
		c.weight_update AS last_weight_update, c.step AS last_step, f.mean AS first_mean,
		l.mean AS last_mean, s.least_mean, s.greatest_mean, f.std AS first_std, l.std AS last_std,
		s.least_std, s.greatest_std, f.min AS first_min, l.min AS last_min, s.least_min,
		s.greatest_min, f.max AS first_max, l.max AS last_max, s.least_max, s.greatest_max,
		f.abs_max AS first_abs_max, l.abs_max AS last_abs_max, s.least_abs_max, s.greatest_abs_max,
		f.abs_min_nonzero AS first_abs_min_nonzero, l.abs_min_nonzero AS last_abs_min_nonzero,
		s.least_abs_min_nonzero, s.greatest_abs_min_nonzero, f.l1 AS first_l1, l.l1 AS last_l1,
		s.least_l1, s.greatest_l1, f.l2 AS first_l2, l.l2 AS last_l2, s.least_l2, s.greatest_l2,
		f.inactive AS first_inactive, l.inactive AS last_inactive, s.least_inactive,
		s.greatest_inactive, f.update_ratio AS first_update_ratio,
		l.update_ratio AS last_update_ratio, s.least_update_ratio, s.greatest_update_ratio
	FROM tensor_sum_rows s
	LEFT JOIN tensor_rows i ON i.tensor_id = s.tensor_id
	LEFT JOIN tensor_stat_rows f ON f.row_id = s.first_row
	LEFT JOIN contexts b ON b.context_id = f.context_id
	LEFT JOIN tensor_stat_rows l ON l.row_id = s.last_row
	LEFT JOIN contexts c ON c.context_id = l.context_id;

-- Accelerators: rows about spans, whose times are those of the spans.
CREATE VIEW kernels AS
	SELECT k.span_id, l.launch_span_id, t.rank, d.value AS device, k.context, k.stream, c.step,
		n.value AS name, q.value AS kind, r.start_ns, r.dur_ns, k.grid_x, k.grid_y, k.grid_z, k.block_x,
		k.block_y, k.block_z, k.registers, k.shared_bytes, k.occupancy, k.graph, k.graph_node
	FROM kernel_rows k
	LEFT JOIN span_rows r ON r.span_id = k.span_id
	LEFT JOIN track_rows t ON t.track_id = r.track_id
	LEFT JOIN sites s ON s.site_id = r.site_id
	LEFT JOIN strings n ON n.string_id = s.name_id
	LEFT JOIN strings d ON d.string_id = k.device_id
	LEFT JOIN strings q ON q.string_id = k.kind_id
	LEFT JOIN contexts c ON c.context_id = r.context_id
	LEFT JOIN launch_rows l ON l.span_id = k.span_id;

CREATE VIEW launches AS
	SELECT l.launch_span_id, l.span_id, t.rank, t.track, n.value AS call, r.start_ns, r.dur_ns,
		d.value AS device, coalesce(k.stream, p.stream) AS stream, m.value AS name,
		e.start_ns AS device_start_ns, e.dur_ns AS device_dur_ns,
		max(0, e.start_ns - r.start_ns - r.dur_ns) AS delay_ns
	FROM launch_rows l
	LEFT JOIN span_rows r ON r.span_id = l.launch_span_id
	LEFT JOIN track_rows t ON t.track_id = r.track_id
	LEFT JOIN sites s ON s.site_id = r.site_id
	LEFT JOIN strings n ON n.string_id = s.name_id
	LEFT JOIN span_rows e ON e.span_id = l.span_id
	LEFT JOIN sites f ON f.site_id = e.site_id
	LEFT JOIN strings m ON m.string_id = f.name_id
	LEFT JOIN kernel_rows k ON k.span_id = l.span_id
	LEFT JOIN copy_rows p ON p.span_id = l.span_id
	LEFT JOIN strings d ON d.string_id = coalesce(k.device_id, p.device_id);

CREATE VIEW copies AS
	SELECT p.span_id, l.launch_span_id, t.rank, d.value AS device, p.context, p.stream, c.step,
		n.value AS name, q.value AS kind, r.start_ns, r.dur_ns, p.bytes, a.value AS source,
		b.value AS target, o.value AS to_device
	FROM copy_rows p
	LEFT JOIN span_rows r ON r.span_id = p.span_id
	LEFT JOIN track_rows t ON t.track_id = r.track_id
	LEFT JOIN sites s ON s.site_id = r.site_id
	LEFT JOIN strings n ON n.string_id = s.name_id
	LEFT JOIN strings d ON d.string_id = p.device_id
	LEFT JOIN strings q ON q.string_id = p.kind_id
	LEFT JOIN strings a ON a.string_id = p.source_id
	LEFT JOIN strings b ON b.string_id = p.target_id
	LEFT JOIN strings o ON o.string_id = p.to_device_id
	LEFT JOIN contexts c ON c.context_id = r.context_id
	LEFT JOIN launch_rows l ON l.span_id = p.span_id;

CREATE VIEW critical_path AS
	SELECT p.rank, p.step, p.position, p.kind, p.span_id, n.value AS name, t.track, p.time_ns AS start_ns, p.dur_ns
	FROM critical_rows p
	LEFT JOIN span_rows r ON r.span_id = p.span_id
	LEFT JOIN track_rows t ON t.track_id = r.track_id
	LEFT JOIN sites s ON s.site_id = r.site_id
	LEFT JOIN strings n ON n.string_id = s.name_id;

CREATE VIEW ranges AS
	SELECT g.span_id, q.value AS kind, d.value AS domain, n.value AS name, t.rank, t.track, c.step,
		r.start_ns, r.dur_ns
	FROM range_rows g
	LEFT JOIN span_rows r ON r.span_id = g.span_id
	LEFT JOIN track_rows t ON t.track_id = r.track_id
	LEFT JOIN sites s ON s.site_id = r.site_id
	LEFT JOIN strings n ON n.string_id = s.name_id
	LEFT JOIN strings q ON q.string_id = g.kind_id
	LEFT JOIN strings d ON d.string_id = g.domain_id
	LEFT JOIN contexts c ON c.context_id = r.context_id;

CREATE VIEW memory_events AS
	SELECT m.rank, d.value AS device, m.time_ns, q.value AS kind, m.bytes, m.address, m.total_bytes,
		m.reserved_bytes
	FROM memory_event_rows m
	LEFT JOIN strings d ON d.string_id = m.device_id
	LEFT JOIN strings q ON q.string_id = m.kind_id;
