/*
 * Insights on processes that exchange through MPI: the rank that the others wait for, and buckets
 * too small for their fixed cost.
 *
 * Threading: none. Ownership: texts belong to the insights' arena, or are literals.
 */
#include <inttypes.h>
#include <math.h>

#include "common/fmt.h"
#include "reports/insights/report_insights_internal.h"
#include "reports/named/report_communication.h"

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
