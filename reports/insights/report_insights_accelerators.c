/*
 * Insights on GPUs and other accelerators: why they are idle, what they do beside computing, and
 * which kernel and which span decide how long it takes.
 *
 * The times are those of the reports temporal, launch, kernels and critical-path, defined as
 * Holistic Trace Analysis does. Threading: none. Ownership: texts belong to the insights' arena, or
 * are literals.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/fmt.h"
#include "common/str.h"
#include "reports/insights/report_insights_internal.h"
#include "reports/named/report_named.h"

/* ---- facts ----------------------------------------------------------------------------------- */

static double accelerator_ns(const struct report_table *table, int64_t row, int column)
{
	const double ns = report__insight_real(table, row, column);

	return isnan(ns) ? 0 : ns;
}

static void read_split(struct insight_facts *facts)
{
	struct report_insights *out = facts->out;
	struct report_table table;
	bool ranks = false;

	if (!report__insight_rows(facts, &table, report_accelerator_split_sql))
		return;
	out->accelerators =
		report__insight_alloc(facts, table.row_count, sizeof(*out->accelerators));
	for (int64_t row = 0; row < table.row_count && out->accelerators; row++) {
		const char *device = report__insight_word(&table, row, 1);
		const double busy = accelerator_ns(&table, row, 3);
		struct report_accelerator *a = &out->accelerators[out->accelerator_count++];

		*a = (struct report_accelerator){
			.rank = report__insight_int(&table, row, 0),
			.device = report__insight_text(facts, "%.100s",
						       device ? device : "the device"),
			.total = accelerator_ns(&table, row, 2),
			.idle = accelerator_ns(&table, row, 4),
			.compute = accelerator_ns(&table, row, 6),
			.communication = accelerator_ns(&table, row, 9),
			.overlap = accelerator_ns(&table, row, 10),
		};
		a->copies = busy - (a->compute + a->communication - a->overlap);
	}
	report_table_free(&table);
	/* With several ranks a device's name says which. */
	for (int i = 1; i < out->accelerator_count; i++)
		ranks |= out->accelerators[i].rank != out->accelerators[0].rank;
	for (int i = 0; i < out->accelerator_count; i++) {
		struct report_accelerator *a = &out->accelerators[i];

		a->name = a->device;
		a->keys = report__insight_text(facts, "device=%s", a->device);
		if (!ranks)
			continue;
		a->name = report__insight_text(facts, "%s of rank %" PRId64, a->device, a->rank);
		a->keys = report__insight_text(facts, "rank=%" PRId64 " %s", a->rank, a->keys);
	}
}

void report__insight_accelerators(struct insight_facts *facts)
{
	static const char any[] = "SELECT EXISTS (SELECT 1 FROM kernel_rows) OR EXISTS (SELECT 1 "
				  "FROM copy_rows)";
	int64_t has = 0;
	struct report_table table;

	if (err_stuck(facts->err) || prof_db_number(facts->db, any, &has, facts->err) != ST_OK ||
	    !has)
		return;
	read_split(facts);
	report__insight_rows(facts, &table, report_accelerator_gaps_sql);
	for (int64_t row = 0; row < table.row_count; row++) {
		const int64_t rank = report__insight_int(&table, row, 0);
		const char *device = report__insight_word(&table, row, 1);

		for (int i = 0; i < facts->out->accelerator_count && device; i++) {
			struct report_accelerator *a = &facts->out->accelerators[i];

			if (a->rank != rank || strncmp(a->device, device, 100) != 0)
				continue;
			a->gaps = accelerator_ns(&table, row, 2);
			a->waits_host = accelerator_ns(&table, row, 3);
			a->waits_other = accelerator_ns(&table, row, 4);
		}
	}
	report_table_free(&table);
}

/* ---- insights -------------------------------------------------------------------------------- */

static double idle_share(const struct report_accelerator *a)
{
	return a->idle / a->total;
}

static double copies_share(const struct report_accelerator *a)
{
	return a->copies / a->total;
}

static double exposed_share(const struct report_accelerator *a)
{
	return (a->communication - a->overlap) / a->total;
}

/* The device with the greatest share, if that is above the limit; *count: how many are above it. */
static const struct report_accelerator *
find_worst(const struct insight_facts *facts, double (*share)(const struct report_accelerator *),
	   enum report_insight_limit limit, int *count)
{
	const struct report_accelerator *worst = NULL;

	*count = 0;
	for (int i = 0; i < facts->out->accelerator_count; i++) {
		const struct report_accelerator *a = &facts->out->accelerators[i];

		if (!(share(a) > report_insight_limit(limit)))
			continue;
		(*count)++;
		if (!worst || share(a) > share(worst))
			worst = a;
	}
	return worst;
}

/* Add an insight on the device with the greatest share, if that is above the limit; NULL: none is.
 * *@who: its name, and how many others are above the limit, "GPU 0 (and 7 more)". */
static struct report_insight *add_worst(struct insight_facts *facts, const char *id,
					const char *view,
					double (*share)(const struct report_accelerator *),
					enum report_insight_limit limit,
					const struct report_accelerator **device, const char **who)
{
	int count;
	const struct report_accelerator *a = find_worst(facts, share, limit, &count);
	struct report_insight *insight;

	if (!a)
		return NULL;
	*device = a;
	*who = count == 1 ? a->name
			  : report__insight_text(facts, "%s (and %d more)", a->name, count - 1);
	insight = report__insight_add(facts, id, REPORT_INSIGHT_ADVICE, view, a->keys,
				      report_accelerator_split_sql);
	insight->subject_kind = "device";
	insight->subject = a->name;
	insight->share = share(a);
	report__insight_number(insight, "total_ns", a->total, REPORT_NS);
	return insight;
}

void report__insight_device_idle(struct insight_facts *facts)
{
	const struct report_accelerator *a;
	const char *who;
	char share[FMT_SIZE], part[FMT_SIZE];
	struct report_insight *insight = add_worst(facts, "device_idle", "kernels", idle_share,
						   REPORT_LIMIT_DEVICE_IDLE, &a, &who);
	bool host;

	if (!insight)
		return;
	host = a->waits_host >= a->waits_other;
	insight->sentence = report__insight_text(
		facts,
		"%s is idle for %s of the time from its first kernel to its last; %s of the gaps "
		"in its streams %s.",
		who, fmt_percent(share, insight->share),
		fmt_percent(part, (host ? a->waits_host : a->waits_other) / a->gaps),
		host ? "end with a call that the host had not yet begun"
		     : "are longer than a switch between kernels, though the host had already "
		       "called");
	report__insight_number(insight, "idle_share", insight->share, REPORT_FRACTION);
	report__insight_number(insight, "host_wait_share", a->waits_host / a->gaps,
			       REPORT_FRACTION);
	insight->remedy =
		host ? "The host is too slow for the device: larger batches, batches made ahead, "
		       "graphs of launches. `ipu-report REPORT critical-path` names the calls."
		     : "Kernels wait for events, copies or other streams: `ipu-report REPORT "
		       "critical-path`; the arrows `a` in the timeline.";
}

void report__insight_device_copies(struct insight_facts *facts)
{
	const struct report_accelerator *a;
	const char *who;
	char share[FMT_SIZE], time[FMT_SIZE];
	struct report_insight *insight = add_worst(facts, "device_copies", "copies", copies_share,
						   REPORT_LIMIT_DEVICE_COPIES, &a, &who);

	if (!insight)
		return;
	insight->sentence = report__insight_text(
		facts,
		"%s copies for %s, %s of the time from its first kernel to its last, and "
		"computes nothing meanwhile.",
		who, fmt_ns(time, (int64_t)a->copies), fmt_percent(share, insight->share));
	report__insight_number(insight, "copies_ns", a->copies, REPORT_NS);
	report__insight_number(insight, "copies_share", insight->share, REPORT_FRACTION);
	insight->remedy =
		"Copy while the batch before is computed: on a GPU from pinned memory, on a "
		"stream of its own. Leave on the device what is used again.";
}

void report__insight_exposed_communication(struct insight_facts *facts)
{
	const struct report_accelerator *a;
	const char *who;
	char share[FMT_SIZE], time[FMT_SIZE], hidden[FMT_SIZE];
	struct report_insight *insight = add_worst(facts, "exposed_communication", "kernels",
						   exposed_share, REPORT_LIMIT_EXPOSED, &a, &who);

	if (!insight)
		return;
	insight->sentence = report__insight_text(
		facts,
		"%s communicates for %s, and computes during %s of it: the rest is %s of the time "
		"from its first kernel to its last.",
		who, fmt_ns(time, (int64_t)a->communication),
		fmt_percent(hidden, a->overlap / a->communication),
		fmt_percent(share, insight->share));
	report__insight_number(insight, "communication_ns", a->communication, REPORT_NS);
	report__insight_number(insight, "exposed_share", insight->share, REPORT_FRACTION);
	insight->remedy = "Begin exchanges while gradients are still computed (smaller buckets), "
			  "or send less; a rank that comes late makes the others wait: `ipu-report "
			  "merge` its recording with theirs.";
}

static const char sql_short[] =
	"SELECT count(*) AS launches, avg(device_dur_ns) FILTER (WHERE device_dur_ns < dur_ns)\n"
	"         AS mean_device_ns, avg(dur_ns) FILTER (WHERE device_dur_ns < dur_ns)\n"
	"         AS mean_ns, 1.0 * sum(device_dur_ns < dur_ns) / count(*) AS short_share\n"
	"FROM launches WHERE device_dur_ns IS NOT NULL AND dur_ns IS NOT NULL";

/* Only of a device that is idle: calls beside a busy one cost nothing. */
void report__insight_short_kernels(struct insight_facts *facts)
{
	struct report_table table;
	struct report_insight *insight;
	char share[FMT_SIZE], launches[FMT_SIZE], device[FMT_SIZE], call[FMT_SIZE];
	double part, device_ns, call_ns;
	int64_t count;
	int idle;

	if (!find_worst(facts, idle_share, REPORT_LIMIT_DEVICE_IDLE, &idle))
		return;
	if (!report__insight_rows(facts, &table, sql_short))
		return;
	count = report__insight_int(&table, 0, 0);
	device_ns = report__insight_real(&table, 0, 1);
	call_ns = report__insight_real(&table, 0, 2);
	part = report__insight_real(&table, 0, 3);
	report_table_free(&table);
	if (!(part > report_insight_limit(REPORT_LIMIT_SHORT)))
		return;
	insight = report__insight_add(facts, "short_kernels", REPORT_INSIGHT_ADVICE, "launches", "",
				      sql_short);
	insight->sentence = report__insight_text(
		facts,
		"%s of %s launches take the host longer than what they launch takes the device: "
		"%s a call, %s on the device (their means).",
		fmt_percent(share, part), fmt_count(launches, count),
		fmt_ns(call, (int64_t)call_ns), fmt_ns(device, (int64_t)device_ns));
	report__insight_number(insight, "short_share", part, REPORT_FRACTION);
	insight->remedy = "Larger batches, kernels fused by a compiler, or graphs that launch many "
			  "at once.";
}

/* A note on the first row of @sql, which has a name, ns and a share, if the share is above the
 * limit. @before, @after: what the sentence says around the name, the time and the share. */
static void note_hottest(struct insight_facts *facts, const char *id, const char *sql,
			 const char *view, const char *before, const char *after)
{
	struct report_table table;
	struct report_insight *insight;
	char time[FMT_SIZE], share[FMT_SIZE], shown[INSIGHT_NAME];
	const char *name;
	double part;
	int64_t ns;

	if (!report__insight_rows(facts, &table, sql))
		return;
	name = report__insight_word(&table, 0, 0);
	name = report__insight_text(facts, "%s", name ? name : "");
	ns = report__insight_int(&table, 0, 1);
	part = report__insight_real(&table, 0, 2);
	report_table_free(&table);
	if (!(part > report_insight_limit(REPORT_LIMIT_HOT)))
		return;
	insight = report__insight_add(facts, id, REPORT_INSIGHT_NOTE, view, "", sql);
	insight->subject_kind = "span";
	insight->subject = name;
	insight->keys = report__insight_text(facts, "name=%s", name);
	insight->share = part;
	str_shorten(shown, sizeof(shown), name);
	insight->sentence = report__insight_text(facts, "%s\"%s\" takes %s, %s %s.", before, shown,
						 fmt_ns(time, ns), fmt_percent(share, part), after);
	report__insight_number(insight, "total_ns", (double)ns, REPORT_NS);
	report__insight_number(insight, "share", part, REPORT_FRACTION);
}

void report__insight_hot_kernel(struct insight_facts *facts)
{
	static const char sql[] =
		"SELECT name, sum(dur_ns) AS total_ns,\n"
		"       1.0 * sum(dur_ns) / nullif(sum(sum(dur_ns)) OVER (), 0) AS share,\n"
		"       count(*) AS count\n"
		"FROM kernels GROUP BY name ORDER BY 2 DESC, 1 LIMIT 1";

	note_hottest(facts, "hot_kernel", sql, "kernels", "The kernel ",
		     "of the time of all kernels");
}

void report__insight_critical_path(struct insight_facts *facts)
{
	static const char sql[] =
		"SELECT " REPORT_RANGE_NAME " AS range, sum(dur_ns) AS total_ns,\n"
		"       1.0 * sum(dur_ns) / nullif(sum(sum(dur_ns)) OVER (), 0) AS share, kind\n"
		"FROM (SELECT kind, name, sum(dur_ns) AS dur_ns FROM critical_path\n"
		"      WHERE dur_ns > 0 GROUP BY kind, name) GROUP BY kind, 1\n"
		"ORDER BY 2 DESC, 1 LIMIT 1";

	note_hottest(facts, "critical_path", sql, "critical_path",
		     "What determines how long it takes: ", "of the critical path");
}
