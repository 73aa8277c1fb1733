/*
 * Reports on accelerators: kernels, the split of a device's time, launches, the critical path,
 * steps, ranges, memory.
 *
 * The definitions are those of Holistic Trace Analysis (hta/analyzers), so that the figures can be
 * compared: a device's time is from its first kernel's or copy's start to the last one's end, time
 * is counted once where several run, and the gaps of a stream are due to the host (the call that
 * ends the gap began after it), to the switch between kernels (less than 30 ns), or to something
 * else. HTA knows one device per rank; here a row is a device.
 *
 * Threading: constant data only. Ownership: definitions are literals.
 */
#include "reports/named/report_named.h"

/* Kernels and copies. A graph that was recorded as a whole computes. */
#define ACTIVITIES                                                                                 \
	"activity AS (\n"                                                                          \
	"  SELECT span_id, launch_span_id, rank, device, stream, step,\n"                          \
	"         CASE kind WHEN 'graph' THEN 'compute' ELSE kind END AS class,\n"                 \
	"         start_ns, start_ns + dur_ns AS end_ns, 1 AS is_kernel FROM kernels\n"            \
	"  UNION ALL\n"                                                                            \
	"  SELECT span_id, launch_span_id, rank, device, stream, step, 'memory',\n"                \
	"         start_ns, start_ns + dur_ns, 0 FROM copies)"

/* What a row adds to the time that the rows before it cover. */
#define ADDED "max(0, end_ns - max(start_ns, coalesce(before_ns, start_ns)))"
#define BEFORE(keys)                                                                               \
	"max(end_ns) OVER (PARTITION BY " keys                                                     \
	" ORDER BY start_ns, end_ns, span_id, 1 - is_kernel\n"                                     \
	"               ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_ns"

/* ---- kernels --------------------------------------------------------------------------------- */

/* self_ns: of what runs at the same time on the device, each ns is the first one's. */
#define OWN                                                                                        \
	"own AS (SELECT span_id, is_kernel, " ADDED " AS self_ns FROM (\n"                         \
	"        SELECT *, " BEFORE("rank, device") " FROM activity))\n"

#define KERNELS(keys)                                                                              \
	"WITH " ACTIVITIES ",\n" OWN "SELECT " keys                                                \
	", count(*) AS count, sum(dur_ns) AS total_ns,\n"                                          \
	"       avg(dur_ns) AS mean_ns, min(dur_ns) AS least_ns, max(dur_ns) AS greatest_ns,\n"    \
	"       1.0 * sum(dur_ns) / nullif(sum(sum(dur_ns)) OVER (), 0) AS share,\n"               \
	"       sum(self_ns) AS self_ns\n"                                                         \
	"FROM kernels JOIN own USING (span_id) WHERE is_kernel\n"                                  \
	"GROUP BY " keys

#define KERNEL_TEXT "count,total_ns,mean_ns,greatest_ns,share,self_ns"
#define NO_KERNELS  "No kernels: nothing ran on a GPU, or the recording has none of it."

const struct report_named report_named_kernels = {
	REPORT_NAMED("kernels",
		     "kernels by name, kind, device, stream or step: count, time, share"),
	{{"name", KERNELS("kind, name"), "name," KERNEL_TEXT, "-total_ns,name"},
	 {"kind", KERNELS("kind"), "kind," KERNEL_TEXT, "-total_ns"},
	 {"device", KERNELS("rank, device"), "rank,device," KERNEL_TEXT, "rank,device"},
	 {"stream", KERNELS("rank, device, stream"), "rank,device,stream," KERNEL_TEXT,
	  "rank,device,stream"},
	 {"step", KERNELS("rank, step"), "rank,step," KERNEL_TEXT, "rank,step"}},
	NO_KERNELS,
};

/* ---- temporal -------------------------------------------------------------------------------- */

/* The time that each set of classes covers. */
#define COVERED(keys)                                                                              \
	"WITH " ACTIVITIES ",\n"                                                                   \
	"sets (name, class) AS (VALUES ('all', 'compute'), ('all', 'communication'),\n"            \
	"  ('all', 'memory'), ('compute', 'compute'), ('communication', 'communication'),\n"       \
	"  ('both', 'compute'), ('both', 'communication'), ('memory', 'memory')),\n"               \
	"covered AS (\n"                                                                           \
	"  SELECT " keys ", of, sum(" ADDED ") AS ns, min(start_ns) AS start_ns,\n"                \
	"         max(end_ns) AS end_ns\n"                                                         \
	"  FROM (SELECT a.*, s.name AS of,\n"                                                      \
	"               max(a.end_ns) OVER (PARTITION BY " keys ", s.name\n"                       \
	"                 ORDER BY a.start_ns, a.end_ns, a.span_id\n"                              \
	"                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_ns\n"        \
	"        FROM activity a JOIN sets s USING (class))\n"                                     \
	"  GROUP BY " keys ", of),\n"                                                              \
	"split AS (\n"                                                                             \
	"  SELECT " keys ", max(end_ns) FILTER (WHERE of = 'all')\n"                               \
	"           - min(start_ns) FILTER (WHERE of = 'all') AS total_ns,\n"                      \
	"         sum(ns) FILTER (WHERE of = 'all') AS busy_ns,\n"                                 \
	"         total(ns) FILTER (WHERE of = 'compute') AS compute_ns,\n"                        \
	"         total(ns) FILTER (WHERE of = 'communication') AS communication_ns,\n"            \
	"         total(ns) FILTER (WHERE of = 'memory') AS copy_ns,\n"                            \
	"         total(ns) FILTER (WHERE of = 'both') AS both_ns\n"                               \
	"  FROM covered GROUP BY " keys ")\n"

#define SPLIT(keys)                                                                                \
	COVERED(keys)                                                                              \
	"SELECT " keys ", total_ns, busy_ns, total_ns - busy_ns AS idle_ns,\n"                     \
	"       1.0 * (total_ns - busy_ns) / nullif(total_ns, 0) AS idle_share,\n"                 \
	"       CAST(compute_ns AS INTEGER) AS compute_ns,\n"                                      \
	"       compute_ns / nullif(total_ns, 0) AS compute_share,\n"                              \
	"       CAST(busy_ns - compute_ns AS INTEGER) AS non_compute_ns,\n"                        \
	"       CAST(communication_ns AS INTEGER) AS communication_ns,\n"                          \
	"       CAST(compute_ns + communication_ns - both_ns AS INTEGER) AS overlap_ns,\n"         \
	"       (compute_ns + communication_ns - both_ns)\n"                                       \
	"         / nullif(communication_ns, 0) AS overlap_share,\n"                               \
	"       CAST(copy_ns AS INTEGER) AS copy_ns\n"                                             \
	"FROM split"

const char report_accelerator_split_sql[] = SPLIT("rank, device");

#define IDLE                                                                                       \
	"WITH " ACTIVITIES ",\n"                                                                   \
	"gap AS (\n"                                                                               \
	"  SELECT a.rank, a.device, a.stream,\n"                                                   \
	"         max(0, a.start_ns - a.previous_ns) AS ns,\n"                                     \
	"         CASE WHEN c.start_ns > a.previous_ns THEN 'host'\n"                              \
	"              WHEN a.start_ns - a.previous_ns < 30 THEN 'kernel'\n"                       \
	"              WHEN a.previous_ns IS NOT NULL THEN 'other' END AS wait\n"                  \
	"  FROM (SELECT *, lag(end_ns) OVER (PARTITION BY rank, device, stream\n"                  \
	"                 ORDER BY start_ns, end_ns, span_id) AS previous_ns\n"                    \
	"        FROM activity) a\n"                                                               \
	"  LEFT JOIN spans c ON c.span_id = a.launch_span_id)\n"                                   \
	"SELECT rank, device, stream, count(*) AS count, sum(ns) AS idle_ns,\n"                    \
	"       CAST(total(ns) FILTER (WHERE wait = 'host') AS INTEGER) AS host_wait_ns,\n"        \
	"       CAST(total(ns) FILTER (WHERE wait = 'kernel') AS INTEGER) AS kernel_wait_ns,\n"    \
	"       CAST(total(ns) FILTER (WHERE wait = 'other') AS INTEGER) AS other_wait_ns,\n"      \
	"       total(ns) FILTER (WHERE wait = 'host') / nullif(sum(ns), 0) AS host_wait_share,\n" \
	"       total(ns) FILTER (WHERE wait = 'kernel') / nullif(sum(ns), 0)\n"                   \
	"         AS kernel_wait_share,\n"                                                         \
	"       total(ns) FILTER (WHERE wait = 'other') / nullif(sum(ns), 0) AS "                  \
	"other_wait_share\n"                                                                       \
	"FROM gap GROUP BY rank, device, stream"

const char report_accelerator_gaps_sql[] =
	"SELECT rank, device, sum(idle_ns) AS idle_ns, sum(host_wait_ns) AS host_wait_ns,\n"
	"       sum(other_wait_ns) AS other_wait_ns FROM (" IDLE ") GROUP BY rank, device";

#define SPLIT_TEXT "total_ns,idle_share,compute_share,communication_ns,overlap_share,copy_ns"

const struct report_named report_named_temporal = {
	REPORT_NAMED("temporal", "where a device's time went: compute, communication and its "
				 "overlap, copies, idle; --by idle: who let it wait"),
	{{"device", report_accelerator_split_sql, "rank,device," SPLIT_TEXT, "rank,device"},
	 {"step", SPLIT("rank, device, step"), "rank,device,step," SPLIT_TEXT, "rank,device,step"},
	 {"idle", IDLE,
	  "rank,device,stream,count,idle_ns,host_wait_share,kernel_wait_share,other_wait_share",
	  "rank,device,stream"}},
	NO_KERNELS,
};

/* ---- launch ---------------------------------------------------------------------------------- */

#define LAUNCHES(keys)                                                                             \
	"SELECT " keys ", count(*) AS count, sum(dur_ns) AS total_ns, avg(dur_ns) AS mean_ns,\n"   \
	"       max(dur_ns) AS greatest_ns, sum(device_dur_ns) AS device_ns,\n"                    \
	"       avg(device_dur_ns) AS mean_device_ns, avg(delay_ns) AS mean_delay_ns,\n"           \
	"       max(delay_ns) AS greatest_delay_ns,\n"                                             \
	"       sum(device_dur_ns < dur_ns) AS short,\n"                                           \
	"       1.0 * sum(device_dur_ns < dur_ns) / count(*) AS short_share,\n"                    \
	"       sum(dur_ns > 50000) AS slow_calls, sum(delay_ns > 100000) AS late\n"               \
	"FROM launches GROUP BY " keys

#define LAUNCH_TEXT "count,mean_ns,mean_device_ns,mean_delay_ns,short_share,slow_calls,late"

const struct report_named report_named_launch = {
	REPORT_NAMED("launch", "calls that launch: their time, the delay until it runs, kernels "
			       "shorter than their call"),
	{{"call", LAUNCHES("call"), "call," LAUNCH_TEXT, "-total_ns"},
	 {"name", LAUNCHES("name"), "name," LAUNCH_TEXT, "-total_ns,name"},
	 {"stream", LAUNCHES("rank, device, stream"), "rank,device,stream," LAUNCH_TEXT,
	  "rank,device,stream"},
	 {"track", LAUNCHES("rank, track"), "track," LAUNCH_TEXT, "rank,track"}},
	"No launches: the recording has no calls with what they launched.",
};

/* ---- the critical path ----------------------------------------------------------------------- */

#define CRITICAL(keys, more)                                                                       \
	"SELECT " keys ", count(DISTINCT span_id) AS spans, sum(dur_ns) AS total_ns,\n" more       \
	"       1.0 * sum(dur_ns) / nullif(sum(sum(dur_ns)) OVER (), 0) AS share\n"                \
	"FROM (SELECT kind, " REPORT_RANGE_NAME " AS name, rank, track, span_id, dur_ns\n"         \
	"      FROM critical_path WHERE dur_ns > 0) GROUP BY " keys

#define OF_KIND(kind)                                                                              \
	"       total(dur_ns) FILTER (WHERE kind = '" kind "')\n"                                  \
	"         / nullif(sum(dur_ns), 0) AS " kind "_share"

/* clang-format off */
static const char critical_step_sql[] =
	"SELECT rank, step, count(DISTINCT span_id) AS spans, sum(dur_ns) AS path_ns,\n"
	"       max(start_ns + dur_ns) - min(start_ns) AS length_ns,\n"
	OF_KIND("host") ",\n"
	OF_KIND("launch") ",\n"
	OF_KIND("compute") ",\n"
	OF_KIND("communication") ",\n"
	OF_KIND("memory") ",\n"
	OF_KIND("kernel_delay") "\n"
	"FROM critical_path GROUP BY rank, step";
/* clang-format on */

static const char critical_span_sql[] =
	"SELECT rank, step, position, kind, span_id, name, track, start_ns, dur_ns\n"
	"FROM critical_path";

const struct report_named report_named_critical_path = {
	REPORT_NAMED("critical-path",
		     "what determined how long each step took, through threads, launches, streams "
		     "and waits: by kind, name, track, step, or each span"),
	{{"name", CRITICAL("kind, name", "       avg(dur_ns) AS mean_ns,\n"),
	  "kind,name,spans,total_ns,share", "-total_ns,name"},
	 {"kind", CRITICAL("kind", ""), "kind,spans,total_ns,share", "-total_ns"},
	 {"track", CRITICAL("rank, track", ""), "track,spans,total_ns,share", "-total_ns"},
	 {"step", critical_step_sql,
	  "rank,step,path_ns,host_share,launch_share,compute_share,communication_share,"
	  "memory_share",
	  "rank,step"},
	 {"span", critical_span_sql, "step,kind,name,start_ns,dur_ns", "rank,step,position"}},
	"No critical path: the recording has no calls with what they launched, a step of more than "
	"400,000 spans, or more than 2,048 tracks of them.",
};

/* ---- steps and ranges ------------------------------------------------------------------------ */

/* What a range launched: its calls are within it on the same track, whenever their kernels run. A
 * range on the device has none. */
#define WITHIN                                                                                     \
	"WITH RECURSIVE within (activity, span) AS (\n"                                            \
	"  SELECT span_id, launch_span_id FROM launches\n"                                         \
	"  UNION ALL\n"                                                                            \
	"  SELECT w.activity, s.parent_id FROM within w JOIN spans s ON s.span_id = w.span\n"      \
	"  WHERE s.parent_id IS NOT NULL),\n"

#define RANGES                                                                                     \
	WITHIN                                                                                     \
	"did AS (SELECT w.span AS span_id, count(*) AS kernels, sum(s.dur_ns) AS device_ns,\n"     \
	"               min(s.start_ns) AS device_start_ns,\n"                                     \
	"               max(s.start_ns + s.dur_ns) AS device_end_ns\n"                             \
	"        FROM within w JOIN spans s ON s.span_id = w.activity\n"                           \
	"        WHERE w.span IN (SELECT span_id FROM ranges) GROUP BY w.span)\n"

#define BEFORE_IN_STEP BEFORE("rank, step")

static const char steps_sql[] =
	"WITH " ACTIVITIES ",\n"
	"busy AS (SELECT rank, step, count(*) AS kernels, sum(" ADDED ") AS busy_ns\n"
	"         FROM (SELECT *, " BEFORE_IN_STEP "\n"
	"               FROM activity WHERE step IS NOT NULL) GROUP BY rank, step)\n"
	"SELECT r.rank, r.step, r.name, r.start_ns, r.dur_ns, b.kernels, b.busy_ns,\n"
	"       1.0 * b.busy_ns / nullif(r.dur_ns, 0) AS busy_share,\n"
	"       1.0 * r.dur_ns / nullif(avg(r.dur_ns) OVER (PARTITION BY r.rank), 0) - 1\n"
	"         AS imbalance\n"
	"FROM ranges r LEFT JOIN busy b ON b.rank = r.rank AND b.step = r.step\n"
	"WHERE r.kind = 'step'";

/* Ranges whose names differ in the number at their end alone repeat one another. Of nested ones
 * that are repeated the outermost is the step. */
static const char steps_range_sql[] = WITHIN ACTIVITIES
	",\n"
	"named AS (SELECT *, rtrim(rtrim(" REPORT_RANGE_NAME ", '0123456789'), ' #:=_-') AS range\n"
	"          FROM ranges\n"
	"          WHERE kind NOT IN ('step', 'device')),\n"
	"repeated AS (SELECT *, row_number() OVER same AS number, count(*) OVER same AS repeats,\n"
	"                    avg(dur_ns) OVER same AS mean_ns, sum(dur_ns) OVER same AS range_ns\n"
	"             FROM named WINDOW same AS\n"
	"             (PARTITION BY rank, track, domain, range ORDER BY start_ns, span_id\n"
	"              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)),\n"
	"above (span_id, outer_id) AS (\n"
	"  SELECT r.span_id, s.parent_id FROM repeated r JOIN spans s USING (span_id)\n"
	"  WHERE r.repeats > 1 AND s.parent_id IS NOT NULL\n"
	"  UNION ALL\n"
	"  SELECT a.span_id, s.parent_id FROM above a JOIN spans s ON s.span_id = a.outer_id\n"
	"  WHERE s.parent_id IS NOT NULL),\n"
	"steps AS (SELECT * FROM repeated WHERE repeats > 1 AND span_id NOT IN (\n"
	"            SELECT a.span_id FROM above a JOIN repeated o ON o.span_id = a.outer_id\n"
	"            WHERE o.repeats > 1)),\n"
	"busy AS (SELECT range_id, count(*) AS kernels, sum(" ADDED ") AS busy_ns\n"
	"         FROM (SELECT w.span AS range_id, a.*, " BEFORE(
		"w.span") "\n"
			  "               FROM within w JOIN activity a ON a.span_id = w.activity\n"
			  "               WHERE w.span IN (SELECT span_id FROM steps)) GROUP BY "
			  "range_id)\n"
			  "SELECT r.rank, r.track, r.domain, r.range, r.number, r.repeats, "
			  "r.range_ns, r.span_id,\n"
			  "       r.name, r.start_ns, r.dur_ns, b.kernels, b.busy_ns,\n"
			  "       1.0 * b.busy_ns / nullif(r.dur_ns, 0) AS busy_share,\n"
			  "       1.0 * r.dur_ns / nullif(r.mean_ns, 0) - 1 AS imbalance\n"
			  "FROM steps r LEFT JOIN busy b ON b.range_id = r.span_id";

const struct report_named report_named_steps = {
	REPORT_NAMED("steps", "each step of a training (ProfilerStep, or --by range: repeated "
			      "ranges): its time, and what its calls ran on devices"),
	{{"step", steps_sql, "rank,step,start_ns,dur_ns,kernels,busy_ns,busy_share,imbalance",
	  "rank,step"},
	 {"range", steps_range_sql,
	  "range,number,start_ns,dur_ns,kernels,busy_ns,busy_share,imbalance",
	  "-range_ns,range,rank,start_ns"}},
	"No steps: the program marked none (ProfilerStep), or with --by range repeats no range "
	"(NVTX, ROCTx, record_function).",
};

static const char ranges_name_sql[] =
	RANGES "SELECT r.kind, r.domain, " REPORT_RANGE_NAME " AS name,\n"
	       "       count(*) AS count, sum(r.dur_ns) AS total_ns,\n"
	       "       avg(r.dur_ns) AS mean_ns, min(r.dur_ns) AS least_ns, max(r.dur_ns) AS "
	       "greatest_ns,\n"
	       "       sum(d.kernels) AS kernels, sum(d.device_ns) AS device_ns\n"
	       "FROM ranges r LEFT JOIN did d USING (span_id) GROUP BY 1, 2, 3";

static const char ranges_range_sql[] =
	RANGES "SELECT r.span_id, r.rank, r.track, r.kind, r.domain, r.name, r.step, r.start_ns,\n"
	       "       r.dur_ns, d.kernels, d.device_ns, d.device_start_ns,\n"
	       "       d.device_end_ns - d.device_start_ns AS device_length_ns\n"
	       "FROM ranges r LEFT JOIN did d USING (span_id)";

const struct report_named report_named_ranges = {
	REPORT_NAMED("ranges", "ranges that the program named (NVTX, ROCTx, record_function), with "
			       "what they launched"),
	{{"name", ranges_name_sql, "name,count,total_ns,mean_ns,greatest_ns,kernels,device_ns",
	  "-total_ns,name"},
	 {"range", ranges_range_sql, "name,start_ns,dur_ns,kernels,device_ns,device_length_ns",
	  "start_ns,span_id"}},
	"No ranges: the program named none, or the recording has none of them.",
};

/* ---- memory ---------------------------------------------------------------------------------- */

/* With a bare max(), SQLite takes the time from the row of the maximum. */
static const char memory_device_sql[] =
	"SELECT rank, device, count(*) AS events, sum(bytes > 0) AS allocations,\n"
	"       sum(bytes < 0) AS releases, max(total_bytes) AS peak_bytes,\n"
	"       time_ns AS peak_time_ns, reserved_bytes AS reserved_at_peak_bytes,\n"
	"       (SELECT max(reserved_bytes) FROM memory_events n\n"
	"        WHERE n.rank = m.rank AND n.device IS m.device) AS peak_reserved_bytes\n"
	"FROM memory_events m GROUP BY rank, device";

static const char memory_event_sql[] =
	"SELECT rank, device, time_ns, kind, bytes, address, total_bytes, reserved_bytes\n"
	"FROM memory_events";

const struct report_named report_named_memory_timeline = {
	REPORT_NAMED("memory-timeline", "memory of devices as allocators counted it: the peaks, or "
					"each allocation"),
	{{"device", memory_device_sql,
	  "rank,device,allocations,releases,peak_bytes,peak_time_ns,peak_reserved_bytes",
	  "rank,device"},
	 {"event", memory_event_sql, "device,time_ns,kind,bytes,total_bytes,reserved_bytes",
	  "rank,time_ns"}},
	"No allocations: the recording has none (torch.profiler: profile_memory=True).",
};
