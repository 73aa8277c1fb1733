/*
 * The writer's sums where the file has them; else its rows, which are stepped through and added up
 * here: SQLite would sort them all to group them.
 *
 * Threading: none. Ownership: the sums own their array of stages.
 */
#include "reports/summary/report_sums.h"

#include <string.h>

#include "common/clock.h"
#include "common/mem.h"

#define SLICE_ROWS 20000 /* some 5 ms */

typedef enum status (*sums_row_fn)(struct report_sums *sums, const struct prof_query *query,
				   struct err *err);

/* Rows of a broken file may hold anything: a sum stays where it would overflow. */
static void sums_count(int64_t *sum, int64_t value)
{
	if (value == INT64_MIN)
		return;
	if (value > 0 ? *sum <= INT64_MAX - value : *sum >= INT64_MIN - value)
		*sum += value;
}

/* ---- stages ---------------------------------------------------------------------------------- */

struct report_stage_sum *report_sums_stage(struct report_sums *sums, int64_t stage)
{
	size_t low = 0, high = sums->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (sums->stage[middle].stage < stage)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < sums->count && sums->stage[low].stage == stage)
		return &sums->stage[low];
	if (mem_grow(&sums->stage, &sums->capacity, sums->count + 1, sizeof(*sums->stage)))
		return NULL;
	memmove(&sums->stage[low + 1], &sums->stage[low],
		(sums->count - low) * sizeof(*sums->stage));
	sums->stage[low] = (struct report_stage_sum){.stage = stage, .ipu = INT64_MIN};
	sums->count++;
	return &sums->stage[low];
}

/*
 * One shape for both: what the writer has summed, a group a row, and the rows, each a group of one.
 */
#define TIMING_COLUMNS "clock, stage, phase, ipu, mode IS NULL OR mode = 'train', "

static const char sql_timing_sums[] =
	"SELECT 0, " TIMING_COLUMNS "count, total_ns FROM stage_sum_rows ORDER BY sum_id";

static const char sql_timings[] =
	"SELECT s.row_id, " TIMING_COLUMNS "1, s.dur_ns FROM stage_timing_rows s "
	"LEFT JOIN contexts c ON c.context_id = s.context_id "
	"WHERE s.row_id > :after ORDER BY s.row_id LIMIT :rows";

enum {
	TIMING_CLOCK = 1,
	TIMING_STAGE,
	TIMING_PHASE,
	TIMING_IPU,
	TIMING_TRAINING,
	TIMING_COUNT,
	TIMING_NS
};

static enum status sums_timing(struct report_sums *sums, const struct prof_query *query,
			       struct err *err)
{
	const int device = prof_column_int(query, TIMING_CLOCK) != 0;
	const int64_t ns = prof_column_int(query, TIMING_NS);
	const int64_t ipu = prof_column_int(query, TIMING_IPU);
	struct report_stage_sum *stage;
	const char *phase;

	if (prof_column_type(query, TIMING_STAGE) == PROF_NULL)
		return ST_OK;
	stage = report_sums_stage(sums, prof_column_int(query, TIMING_STAGE));
	if (!stage)
		return err_nomem(err);
	phase = prof_column_text(query, TIMING_PHASE);
	if (!phase || prof_column_int(query, TIMING_TRAINING) != 1)
		return ST_OK;
	if (ipu != INT64_MIN && (stage->ipu == INT64_MIN || ipu < stage->ipu))
		stage->ipu = ipu;
	if (*phase == 'F' && !device)
		sums_count(&stage->count, prof_column_int(query, TIMING_COUNT));
	if (*phase == 'F')
		sums_count(&stage->forward_ns[device], ns);
	else if (*phase == 'U')
		sums_count(&stage->update_ns[device], ns);
	else
		sums_count(&stage->backward_ns[device], ns); /* B, W, and F done again: R */
	return ST_OK;
}

/* ---- bubbles --------------------------------------------------------------------------------- */

#define BUBBLE_COLUMNS                                                                             \
	"clock, mode IS NULL OR mode = 'train', oversubscribed, idle_fraction, bubble_rate, "      \
	"bubble_over_ideal, theory_idle_fraction, theory_bubble_rate, "                            \
	"theory_bubble_over_ideal, ramp_up_ns, ramp_down_ns, imbalance_ns, communication_ns, "

static const char sql_bubble_sums[] =
	"SELECT 0, " BUBBLE_COLUMNS "all_ns, runs, idle_fractions, bubble_rates, "
	"bubbles_over_ideal, theory_idle_fractions, theory_bubble_rates, "
	"theory_bubbles_over_ideal FROM bubble_sum_rows ORDER BY sum_id";

/* Busy and idle parts add up to IPUs x makespan. */
static const char sql_bubbles[] =
	"SELECT b.row_id, " BUBBLE_COLUMNS
	"busy_ns + ramp_up_ns + ramp_down_ns + imbalance_ns + communication_ns, 1, "
	"idle_fraction IS NOT NULL, bubble_rate IS NOT NULL, bubble_over_ideal IS NOT NULL, "
	"theory_idle_fraction IS NOT NULL, theory_bubble_rate IS NOT NULL, "
	"theory_bubble_over_ideal IS NOT NULL FROM bubble_rows b "
	"LEFT JOIN contexts c ON c.context_id = b.context_id "
	"WHERE b.row_id > :after ORDER BY b.row_id LIMIT :rows";

enum {
	BUBBLE_CLOCK = 1,
	BUBBLE_TRAINING,
	BUBBLE_OVERSUBSCRIBED,
	BUBBLE_MEAN,
	BUBBLE_TIME = BUBBLE_MEAN + REPORT_BUBBLE_MEANS,
	BUBBLE_TOTAL = BUBBLE_TIME + REPORT_BUBBLE_TIMES,
	BUBBLE_RUNS,
	BUBBLE_KNOWN
};

static enum status sums_bubble(struct report_sums *sums, const struct prof_query *query,
			       struct err *err)
{
	struct report_bubble_sum *bubble = &sums->bubble[prof_column_int(query, BUBBLE_CLOCK) != 0];

	(void)err;
	if (prof_column_int(query, BUBBLE_TRAINING) != 1)
		return ST_OK;
	sums_count(&bubble->runs, prof_column_int(query, BUBBLE_RUNS));
	for (int i = 0; i < REPORT_BUBBLE_MEANS; i++)
		if (prof_column_type(query, BUBBLE_MEAN + i) != PROF_NULL) {
			bubble->mean[i] += prof_column_real(query, BUBBLE_MEAN + i);
			sums_count(&bubble->known[i], prof_column_int(query, BUBBLE_KNOWN + i));
		}
	for (int i = 0; i < REPORT_BUBBLE_TIMES; i++)
		sums_count(&bubble->time_ns[i], prof_column_int(query, BUBBLE_TIME + i));
	sums_count(&bubble->total_ns, prof_column_int(query, BUBBLE_TOTAL));
	if (prof_column_int(query, BUBBLE_OVERSUBSCRIBED) > 0)
		bubble->oversubscribed = true;
	return ST_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Call @take for each row of @sql: for all of them, or (@read) for a slice after row *@read.
 * *@rows: how many there were. */
static enum status sums_each(struct report_sums *sums, struct prof_db *db, const char *sql,
			     sums_row_fn take, int64_t *read, int *rows, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql, err);

	*rows = 0;
	if (status != ST_OK)
		return status;
	if (read) {
		prof_query_int(query, ":after", *read);
		prof_query_int(query, ":rows", SLICE_ROWS);
	}
	while (prof_query_next(query, &status, err)) {
		if (read)
			*read = prof_column_int(query, 0);
		(*rows)++;
		status = take(sums, query, err);
	}
	prof_query_close(query);
	return status;
}

/* How many rows there are to sum, and whether the file has their sums (since schema 5). */
static enum status sums_look(struct report_sums *sums, struct prof_db *db, bool *summed,
			     struct err *err)
{
	static const char sql[] =
		"SELECT coalesce((SELECT max(row_id) FROM stage_timing_rows), 0), "
		"coalesce((SELECT max(row_id) FROM bubble_rows), 0), "
		"(SELECT count(*) FROM sqlite_schema WHERE type = 'table' "
		"AND name IN ('stage_sum_rows', 'bubble_sum_rows'))";
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql, err);

	*summed = false;
	if (prof_query_next(query, &status, err)) {
		sums->timings = prof_column_int(query, 0);
		sums->bubbles = prof_column_int(query, 1);
		*summed = prof_column_int(query, 2) == 2;
	}
	prof_query_close(query);
	return status;
}

/* The writer's sums: few rows, afresh each time. */
static enum status sums_take(struct report_sums *sums, struct prof_db *db, struct err *err)
{
	enum status status;
	int rows;

	memset(sums->bubble, 0, sizeof(sums->bubble));
	sums->count = 0;
	status = sums_each(sums, db, sql_bubble_sums, sums_bubble, NULL, &rows, err);
	if (status == ST_OK)
		status = sums_each(sums, db, sql_timing_sums, sums_timing, NULL, &rows, err);
	sums->timings_read = sums->timings;
	sums->bubbles_read = sums->bubbles;
	return status;
}

/* The rows of an older file, slice by slice. *@all: they are all in. */
static enum status sums_add_rows(struct report_sums *sums, struct prof_db *db, uint64_t budget_ns,
				 bool *all, struct err *err)
{
	const struct {
		const char *sql;
		sums_row_fn take;
		int64_t *read;
	} parts[] = {{sql_bubbles, sums_bubble, &sums->bubbles_read},
		     {sql_timings, sums_timing, &sums->timings_read}};
	const uint64_t start = clock_ns();
	enum status status = ST_OK;
	bool some = false; /* a slice at least, however little time there is */

	*all = false;
	for (size_t i = 0; i < ARRAY_LEN(parts) && status == ST_OK; i++) {
		int rows = SLICE_ROWS;

		while (status == ST_OK && rows == SLICE_ROWS) {
			if (some && budget_ns && clock_ns() - start > budget_ns)
				return ST_OK;
			status = sums_each(sums, db, parts[i].sql, parts[i].take, parts[i].read,
					   &rows, err);
			some = true;
		}
	}
	*all = status == ST_OK;
	return status;
}

enum status report_sums_add(struct report_sums *sums, struct prof_db *db, uint64_t budget_ns,
			    struct err *err)
{
	bool summed;
	enum status status = sums_look(sums, db, &summed, err);

	sums->complete = false;
	if (status != ST_OK)
		return status;
	if (summed) {
		status = sums_take(sums, db, err);
		sums->complete = status == ST_OK;
		return status;
	}
	/* Rows never go: this is another file. */
	if (sums->timings < sums->timings_read || sums->bubbles < sums->bubbles_read) {
		report_sums_free(sums);
		status = sums_look(sums, db, &summed, err);
	}
	return status == ST_OK ? sums_add_rows(sums, db, budget_ns, &sums->complete, err) : status;
}

double report_sums_share(const struct report_sums *sums)
{
	const double all = (double)sums->timings + (double)sums->bubbles;

	if (sums->complete || all <= 0)
		return 1;
	return ((double)sums->timings_read + (double)sums->bubbles_read) / all;
}

void report_sums_free(struct report_sums *sums)
{
	mem_free(sums->stage);
	*sums = (struct report_sums){0};
}
