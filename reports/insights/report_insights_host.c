/*
 * Insights on the host: what the workers wait for, what makes the figures unreliable; and on
 * processes that exchange through MPI: the rank that the others wait for, and buckets too small for
 * their fixed cost.
 *
 * Threading: none. Ownership: texts belong to the insights' arena, or are literals.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/fmt.h"
#include "reports/insights/report_insights_internal.h"
#include "reports/named/report_communication.h"

void report__insight_host_waits(struct insight_facts *facts)
{
	const struct insight_time *most;
	const struct insight_stage *stage;
	struct report_insight *insight;
	char idle[FMT_SIZE], work[FMT_SIZE];
	double all, share;

	most = report__insight_most(facts, 0, INSIGHT_IDLE);
	stage = report__insight_slowest(facts, 0, &all);
	if (!most || !stage ||
	    most->share[INSIGHT_IDLE] < report_insight_limit(REPORT_LIMIT_HOST_WAITS))
		return;
	insight = report__insight_add(facts, "host_waits", REPORT_INSIGHT_NOTE, "time_split",
				      "clock=host", report__insight_sql_time);
	report__insight_subject(facts, insight, "ipu", most->ipu);
	share = all > 0 ? stage->work_ns / all : 0;
	insight->share = most->share[INSIGHT_IDLE];
	insight->sentence = report__insight_text(
		facts,
		"On the host the worker of IPU %" PRId64
		" is waiting for %s of the time of executions; stage "
		"%" PRId64 " has %s of the stages' work there. How fast this machine trains says "
		"nothing of the simulated device.",
		most->ipu, fmt_percent(idle, most->share[INSIGHT_IDLE]), stage->stage,
		fmt_percent(work, share));
	report__insight_number(insight, "waiting_share", most->share[INSIGHT_IDLE],
			       REPORT_FRACTION);
	report__insight_number(insight, "slowest_stage", (double)stage->stage, REPORT_NUMBER);
	report__insight_number(insight, "slowest_share", share, REPORT_FRACTION);
	insight->remedy = "For a faster training on this machine: `ipu-report what-if REPORT "
			  "--clock host --split auto`; or no pipeline, `--pipeline null`.";
}

void report__insight_host_data(struct insight_facts *facts)
{
	const struct insight_time *most;
	struct report_insight *insight;
	char share[FMT_SIZE];

	most = report__insight_most(facts, 0, INSIGHT_HOST_IO);
	if (!most || most->share[INSIGHT_HOST_IO] < report_insight_limit(REPORT_LIMIT_HOST_DATA))
		return;
	insight = report__insight_add(facts, "host_data", REPORT_INSIGHT_ADVICE, "time_split",
				      "clock=host", report__insight_sql_time);
	report__insight_subject(facts, insight, "ipu", most->ipu);
	insight->share = most->share[INSIGHT_HOST_IO];
	insight->sentence = report__insight_text(
		facts, "%s %s of the time of executions%s.",
		facts->options.decodes
			? "Data waits: on the host, images that are decoded as they are needed take"
			: "On the host, batches and results take",
		fmt_percent(share, most->share[INSIGHT_HOST_IO]),
		most->ipu == IPS_NULL
			? ""
			: report__insight_text(facts, " on the worker of IPU %" PRId64, most->ipu));
	report__insight_number(insight, "host_io_share", most->share[INSIGHT_HOST_IO],
			       REPORT_FRACTION);
	insight->remedy =
		facts->options.decodes
			? "A greater `data.cache_bytes`, if the memory is there: they are "
			  "decoded once; or smaller files, scaled to `data.resize` before."
			: "`--data.prefetch 4`: a thread makes the batches ahead; fewer "
			  "outfeeds (`outfeed.activations`, `outfeed.gradients`).";
}

void report__insight_busy_machine(struct insight_facts *facts)
{
	struct report_insight *insight;
	double cpu = 0, time = 0;
	char share[FMT_SIZE];

	for (int i = 0; i < facts->stage_count[0]; i++) {
		const struct insight_stage *stage = &facts->stage[0][i];

		if (isnan(stage->cpu_ns))
			continue;
		cpu += stage->cpu_ns;
		time += stage->work_ns + stage->update_ns;
	}
	if (time < 1e9 * report_insight_limit(REPORT_LIMIT_CPU_TIME) ||
	    cpu / time >= report_insight_limit(REPORT_LIMIT_CPU))
		return;
	insight = report__insight_add(facts, "busy_machine", REPORT_INSIGHT_NOTE, "stage_sums",
				      "clock=host", report__insight_sql_stages);
	insight->share = 1 - cpu / time;
	insight->sentence = report__insight_text(
		facts,
		"While stages computed, their threads had a core for %s of the time: the machine "
		"did other work, and host times are longer by that. Simulated times are not.",
		fmt_percent(share, cpu / time));
	report__insight_number(insight, "cpu_share", cpu / time, REPORT_FRACTION);
	insight->remedy = "Compare host times of runs on a quiet machine only.";
}

void report__insight_oversubscribed(struct insight_facts *facts)
{
	const struct report_summary *s = &facts->summary;
	struct report_insight *insight;

	if (!s->oversubscribed)
		return;
	insight = report__insight_add(
		facts, "oversubscribed", REPORT_INSIGHT_NOTE, "bubbles", "clock=host",
		"SELECT key, value FROM meta WHERE key IN ('oversubscribed', 'workers', "
		"'host_threads')");
	insight->sentence = "There were more workers than processors on the host: its times, and "
			    "the host's bubbles, include waiting for a core.";
	report__insight_number(insight, "host_threads",
			       s->host_threads == IPS_NULL ? NAN : (double)s->host_threads,
			       REPORT_NUMBER);
	insight->remedy = "Judge the pipeline by the device's clock; or fewer stages and replicas "
			  "(`--ipu.auto_select_ipus`).";
}

/* Of one rank. Rows are written as executions end, so the first training execution is among the
 * first rows. */
static const char sql_first[] =
	"WITH one AS (SELECT min(rank) AS rank FROM execution_sums WHERE mode = 'train'),\n"
	"     first AS (SELECT execution, dur_ns FROM\n"
	"                 (SELECT mode, execution, dur_ns FROM executions\n"
	"                  WHERE rank = (SELECT rank FROM one) LIMIT 1000)\n"
	"               WHERE mode = 'train' ORDER BY execution LIMIT 1)\n"
	"SELECT (SELECT dur_ns FROM first) AS first_ns, sum(executions) AS executions,\n"
	"       sum(total_ns) AS total_ns, (SELECT execution FROM first) AS first_execution\n"
	"FROM execution_sums WHERE mode = 'train' AND rank = (SELECT rank FROM one)";

void report__insight_first_execution(struct insight_facts *facts)
{
	struct report_table table;
	struct report_insight *insight;
	char first_text[FMT_SIZE], rest_text[FMT_SIZE];
	double first, count, rest;
	int64_t execution;

	if (!report__insight_rows(facts, &table, sql_first))
		return;
	first = report__insight_real(&table, 0, 0);
	count = report__insight_real(&table, 0, 1);
	rest = (report__insight_real(&table, 0, 2) - first) / (count - 1);
	execution = report__insight_int(&table, 0, 3);
	report_table_free(&table);
	if (!(count > 2) || !(rest > 0) ||
	    first / rest - 1 < report_insight_limit(REPORT_LIMIT_FIRST_EXECUTION))
		return;
	insight = report__insight_add(facts, "first_execution", REPORT_INSIGHT_NOTE, "executions",
				      "mode=train", sql_first);
	report__insight_subject(facts, insight, "execution", execution);
	insight->sentence = report__insight_text(
		facts,
		"On the host the first execution took %s, the others %s on average: it is a "
		"warm-up (caches, pages, threads).",
		fmt_ns(first_text, (int64_t)first), fmt_ns(rest_text, (int64_t)rest));
	report__insight_number(insight, "first_ns", first, REPORT_NS);
	report__insight_number(insight, "mean_ns", rest, REPORT_NS);
	insight->remedy = report__insight_text(
		facts,
		"Leave it out where host times are compared: `--where 'execution > %" PRId64 "'`.",
		execution);
}

void report__insight_host_only(struct insight_facts *facts)
{
	struct report_insight *insight;

	if ((facts->has & INSIGHT_DEVICE) || facts->stage_count[0] == 0)
		return;
	insight =
		report__insight_add(facts, "host_only", REPORT_INSIGHT_NOTE, "meta", "",
				    "SELECT key, value FROM meta WHERE key IN ('target', 'ipus')");
	insight->sentence = "No IPU was simulated: nothing is known of cycles, pipelines and the "
			    "tiles' memory.";
	insight->remedy = "`--ipu.auto_select_ipus 1` trains on a simulated IPU.";
}

/* ---- ranks ----------------------------------------------------------------------------------- */

/* Read the rows of @sql, unless the recording has no calls of MPI. */
static bool read_calls(struct insight_facts *facts, struct report_table *table, const char *sql)
{
	int64_t any = 0;

	return prof_db_number(facts->db, REPORT_HAS_CALLS, &any, facts->err) == ST_OK && any == 1 &&
	       report__insight_rows(facts, table, sql);
}

/* The rank that the others wait for most, beside the mean wait for each of the others: ranks of
 * one speed enter last in turn, and none of them is slow. Shares are of the time that all ranks
 * have between their first exchange and their last. */
static const char sql_slow_rank[] = REPORT_EXCHANGES
	", lasts AS (\n"
	"  SELECT last_rank, sum(waited_ns) AS waited_ns FROM exchange\n"
	"  WHERE meets AND last_rank <> rank GROUP BY last_rank),\n"
	"lengths AS (\n"
	"  SELECT rank, max(start_ns + dur_ns) - min(start_ns) AS length_ns\n"
	"  FROM exchange GROUP BY track)\n"
	"SELECT last_rank, waited_ns,\n"
	"       1.0 * waited_ns / nullif((SELECT sum(length_ns) FROM lengths), 0) AS "
	"waited_share,\n"
	"       1.0 * ((SELECT sum(waited_ns) FROM lasts) - waited_ns)\n"
	"         / ((SELECT count(DISTINCT rank) FROM lengths) - 1)\n"
	"         / nullif((SELECT sum(length_ns) FROM lengths), 0) AS mean_share\n"
	"FROM lasts ORDER BY waited_ns DESC, last_rank LIMIT 1";

void report__insight_slow_rank(struct insight_facts *facts)
{
	struct report_table table;
	struct report_insight *insight;
	char waited[FMT_SIZE], part[FMT_SIZE], mean[FMT_SIZE];
	double share, mean_share, ns;
	int64_t rank;

	if (!read_calls(facts, &table, sql_slow_rank))
		return;
	rank = report__insight_int(&table, 0, 0);
	ns = report__insight_real(&table, 0, 1);
	share = report__insight_real(&table, 0, 2);
	mean_share = report__insight_real(&table, 0, 3);
	report_table_free(&table);
	if (rank == IPS_NULL ||
	    !(share - mean_share >= report_insight_limit(REPORT_LIMIT_SLOW_RANK)))
		return;
	insight = report__insight_add(facts, "slow_rank", REPORT_INSIGHT_ADVICE, "spans",
				      "category=mpi", sql_slow_rank);
	report__insight_subject(facts, insight, "rank", rank);
	insight->share = share;
	insight->sentence = report__insight_text(
		facts,
		"The other ranks wait for rank %" PRId64 ": %s in all, %s of the time of all ranks "
		"between their first exchange and their last (%s for each of the others).",
		rank, fmt_ns(waited, (int64_t)ns), fmt_percent(part, share),
		fmt_percent(mean, mean_share));
	report__insight_number(insight, "waited_ns", ns, REPORT_NS);
	report__insight_number(insight, "waited_share", share, REPORT_FRACTION);
	report__insight_number(insight, "mean_share", mean_share, REPORT_FRACTION);
	insight->remedy = "Less work or more processors for that rank; `ipu-report REPORT "
			  "communication --by straggler` says who waited, `--by rank` how the "
			  "ranks are loaded.";
}

/* Exchanges of weight updates by stage and bucket. */
static const char sql_small[] = REPORT_EXCHANGES
	"SELECT avg(size) AS size_bytes,\n"
	"       avg(transfer_ns) FILTER (WHERE size IS NOT NULL) AS mean_ns,\n"
	"       count(DISTINCT CASE WHEN size IS NOT NULL\n"
	"             THEN coalesce(stage, -1) || ' ' || coalesce(bucket, -1) END) AS buckets,\n"
	"       1.0 * sum(exposed_ns) / nullif((\n"
	"         SELECT sum(length_ns) FROM (\n"
	"           SELECT max(start_ns + dur_ns) - min(start_ns) AS length_ns\n"
	"           FROM exchange GROUP BY track)), 0) AS exposed_share\n"
	"FROM exchange WHERE weight_update IS NOT NULL";

void report__insight_small_buckets(struct insight_facts *facts)
{
	struct report_table table;
	struct report_insight *insight;
	char size[FMT_SIZE], each[FMT_SIZE], part[FMT_SIZE];
	double bytes, ns, buckets, share;

	if (!read_calls(facts, &table, sql_small))
		return;
	bytes = report__insight_real(&table, 0, 0);
	ns = report__insight_real(&table, 0, 1);
	buckets = report__insight_real(&table, 0, 2);
	share = report__insight_real(&table, 0, 3);
	report_table_free(&table);
	if (!(bytes < report_insight_limit(REPORT_LIMIT_BUCKET_BYTES)) ||
	    !(share >= report_insight_limit(REPORT_LIMIT_EXPOSED)))
		return;
	insight = report__insight_add(facts, "small_buckets", REPORT_INSIGHT_ADVICE, "spans",
				      "category=mpi", sql_small);
	insight->share = share;
	insight->sentence = report__insight_text(
		facts,
		"An exchange between ranks has %s on average, so little that beginning it is most "
		"of its %s; exchanges take %s of the ranks' time.",
		fmt_bytes(size, (uint64_t)bytes), fmt_ns(each, (int64_t)ns),
		fmt_percent(part, share));
	report__insight_number(insight, "size_bytes", bytes, REPORT_BYTES);
	report__insight_number(insight, "mean_ns", ns, REPORT_NS);
	report__insight_number(insight, "buckets", buckets, REPORT_COUNT);
	report__insight_number(insight, "exposed_share", share, REPORT_FRACTION);
	insight->remedy = "Fewer and larger exchanges: a larger `distribution.bucket_bytes` or "
			  "`gradient_accumulation.steps_per_replica`, or fewer stages.";
}
