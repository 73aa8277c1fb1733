/*
 * Rows are stepped through and added up here: SQLite would sort them all to group them.
 *
 * Threading: none. Ownership: the sums own their array of stages.
 */
#include "reports/report_sums.h"

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

/* --- stages ----------------------------------------------------------------------------------- */

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

static const char sql_timings[] = "SELECT s.row_id, s.clock, s.dur_ns, c.stage, c.phase, c.ipu, "
				  "c.mode IS NULL OR c.mode = 'train' FROM stage_timing_rows s "
				  "LEFT JOIN contexts c ON c.context_id = s.context_id "
				  "WHERE s.row_id > :after ORDER BY s.row_id LIMIT :rows";

static enum status sums_timing(struct report_sums *sums, const struct prof_query *query,
			       struct err *err)
{
	const int device = prof_column_int(query, 1) != 0;
	const int64_t ns = prof_column_int(query, 2), ipu = prof_column_int(query, 5);
	struct report_stage_sum *stage;
	const char *phase;

	if (prof_column_type(query, 3) == PROF_NULL)
		return ST_OK;
	stage = report_sums_stage(sums, prof_column_int(query, 3));
	if (!stage)
		return err_nomem(err);
	phase = prof_column_text(query, 4);
	if (!phase || prof_column_int(query, 6) != 1)
		return ST_OK;
	if (ipu != INT64_MIN && (stage->ipu == INT64_MIN || ipu < stage->ipu))
		stage->ipu = ipu;
	if (*phase == 'F' && !device)
		stage->count++;
	if (*phase == 'F')
		sums_count(&stage->forward_ns[device], ns);
	else if (*phase == 'U')
		sums_count(&stage->update_ns[device], ns);
	else
		sums_count(&stage->backward_ns[device], ns); /* B, W, and F done again: R */
	return ST_OK;
}

/* --- bubbles ---------------------------------------------------------------------------------- */

/* Busy and idle parts add up to IPUs x makespan. */
static const char sql_bubbles[] =
	"SELECT b.row_id, b.clock, b.idle_fraction, b.bubble_rate, b.bubble_over_ideal, "
	"b.theory_idle_fraction, b.theory_bubble_rate, b.theory_bubble_over_ideal, b.ramp_up_ns, "
	"b.ramp_down_ns, b.imbalance_ns, b.communication_ns, "
	"b.busy_ns + b.ramp_up_ns + b.ramp_down_ns + b.imbalance_ns + b.communication_ns, "
	"b.oversubscribed, c.mode IS NULL OR c.mode = 'train' FROM bubble_rows b "
	"LEFT JOIN contexts c ON c.context_id = b.context_id "
	"WHERE b.row_id > :after ORDER BY b.row_id LIMIT :rows";

enum {
	BUBBLE_MEAN = 2,
	BUBBLE_TIME = BUBBLE_MEAN + REPORT_BUBBLE_MEANS,
	BUBBLE_TOTAL = BUBBLE_TIME + REPORT_BUBBLE_TIMES,
	BUBBLE_OVERSUBSCRIBED,
	BUBBLE_TRAINING
};

static enum status sums_bubble(struct report_sums *sums, const struct prof_query *query,
			       struct err *err)
{
	struct report_bubble_sum *bubble = &sums->bubble[prof_column_int(query, 1) != 0];

	(void)err;
	if (prof_column_int(query, BUBBLE_TRAINING) != 1)
		return ST_OK;
	bubble->runs++;
	for (int i = 0; i < REPORT_BUBBLE_MEANS; i++)
		if (prof_column_type(query, BUBBLE_MEAN + i) != PROF_NULL) {
			bubble->mean[i] += prof_column_real(query, BUBBLE_MEAN + i);
			bubble->known[i]++;
		}
	for (int i = 0; i < REPORT_BUBBLE_TIMES; i++)
		sums_count(&bubble->time_ns[i], prof_column_int(query, BUBBLE_TIME + i));
	sums_count(&bubble->total_ns, prof_column_int(query, BUBBLE_TOTAL));
	if (prof_column_int(query, BUBBLE_OVERSUBSCRIBED) > 0)
		bubble->oversubscribed = true;
	return ST_OK;
}

/* --- slices ----------------------------------------------------------------------------------- */

/* One slice after row *@read. *@rows: how many there were. */
static enum status sums_slice(struct report_sums *sums, struct prof_db *db, const char *sql,
			      sums_row_fn take, int64_t *read, int *rows, struct err *err)
{
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql, err);
	bool row = true;

	*rows = 0;
	if (status != ST_OK)
		return status;
	prof_query_int(query, ":after", *read);
	prof_query_int(query, ":rows", SLICE_ROWS);
	while (status == ST_OK && row) {
		status = prof_query_step(query, &row, err);
		if (status != ST_OK || !row)
			break;
		*read = prof_column_int(query, 0);
		(*rows)++;
		status = take(sums, query, err);
	}
	prof_query_close(query);
	return status;
}

static enum status sums_look(struct report_sums *sums, struct prof_db *db, struct err *err)
{
	static const char sql[] = "SELECT coalesce((SELECT max(row_id) FROM stage_timing_rows), 0),"
				  " coalesce((SELECT max(row_id) FROM bubble_rows), 0)";
	struct prof_query *query;
	enum status status = prof_query_open(&query, db, sql, err);
	bool row = false;

	if (status != ST_OK)
		return status;
	status = prof_query_step(query, &row, err);
	if (status == ST_OK && row) {
		sums->timings = prof_column_int(query, 0);
		sums->bubbles = prof_column_int(query, 1);
	}
	prof_query_close(query);
	return status;
}

enum status report_sums_add(struct report_sums *sums, struct prof_db *db, uint64_t budget_ns,
			    struct err *err)
{
	const struct {
		const char *sql;
		sums_row_fn take;
		int64_t *read;
	} parts[] = {{sql_bubbles, sums_bubble, &sums->bubbles_read},
		     {sql_timings, sums_timing, &sums->timings_read}};
	const uint64_t start = clock_ns();
	bool some = false; /* a slice at least, however little time there is */
	enum status status = sums_look(sums, db, err);

	sums->complete = false;
	/* Rows never go: this is another file. */
	if (status == ST_OK &&
	    (sums->timings < sums->timings_read || sums->bubbles < sums->bubbles_read)) {
		report_sums_free(sums);
		status = sums_look(sums, db, err);
	}
	for (size_t i = 0; i < ARRAY_LEN(parts) && status == ST_OK; i++) {
		int rows = SLICE_ROWS;

		while (status == ST_OK && rows == SLICE_ROWS) {
			if (some && budget_ns && clock_ns() - start > budget_ns)
				return ST_OK;
			status = sums_slice(sums, db, parts[i].sql, parts[i].take, parts[i].read,
					    &rows, err);
			some = true;
		}
	}
	sums->complete = status == ST_OK;
	return status;
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
