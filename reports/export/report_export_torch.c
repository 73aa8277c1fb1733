/*
 * `export torch-csv`: the order of work of a pipeline run in PyTorch's schedule format: one line
 * per rank, cells such as 2F0: stage, action, micro-batch. Actions: F forward, B backward; a split
 * backward is I (inputs) and W (weights). PyTorch has no actions for recomputation and weight
 * update.
 *
 * torch.distributed.pipelining reads it as the format "compute_only". Threading: none.
 */
#include "common/fmt.h"
#include "reports/export/report_sink.h"
#include "reports/export/report_export.h"

struct torch_csv {
	const struct report_export_request *request;
	struct report_sink sink;
	int clock;
	bool training;                 /* a weight update; otherwise an execution */
	int64_t rank, replica, number; /* number: of the weight update or execution */
	bool split;                    /* the backward pass is split */
	int64_t lines, cells;
};

#define RUNS                                                                                       \
	"FROM stage_timings WHERE clock = :clock AND (:execution IS NULL OR execution = "          \
	":execution) "

static const char *clock_name(int clock)
{
	return clock == IPS_HOST ? "host" : "device";
}

/* ---- selecting the run ----------------------------------------------------------------------- */

/* Find the first matching run on @clock. */
static bool find_run(struct torch_csv *csv, int clock, struct err *err)
{
	struct prof_query *query;
	bool found;

	prof_query_open(
		&query, csv->request->db,
		"SELECT rank, replica, weight_update, execution " RUNS
		"AND phase IN ('F', 'B', 'W') AND (:update IS NULL OR weight_update = :update) "
		"ORDER BY weight_update IS NULL, weight_update, rank, replica, execution LIMIT 1",
		err);
	prof_query_text(query, ":clock", clock_name(clock));
	prof_query_int(query, ":execution", csv->request->execution);
	prof_query_int(query, ":update", csv->request->weight_update);
	found = prof_query_next(query, &err->status, err);
	if (found) {
		csv->clock = clock;
		csv->rank = prof_column_int(query, 0);
		csv->replica = prof_column_int(query, 1);
		csv->training = prof_column_type(query, 2) != PROF_NULL;
		csv->number = prof_column_int(query, csv->training ? 2 : 3);
	}
	prof_query_close(query);
	return found;
}

/* Prefer the device's clock, which shows the schedule; fall back to the host's. */
static void choose_run(struct torch_csv *csv, struct err *err)
{
	const struct report_export_request *request = csv->request;

	if (find_run(csv, request->clock < 0 ? IPS_DEVICE : request->clock, err) ||
	    err_stuck(err) || (request->clock < 0 && find_run(csv, IPS_HOST, err)) ||
	    err_stuck(err))
		return;
	if (request->weight_update != IPS_NULL)
		err_set(err, ST_NOTFOUND,
			"%s: has no stage timings of weight update %lld (`ipu-report %s "
			"stage_timings` lists them)",
			request->path, (long long)request->weight_update, request->path);
	else
		err_set(err, ST_NOTFOUND,
			"%s: has no stage timings%s%s: they are recorded of runs with a pipeline",
			request->path, request->clock < 0 ? "" : " on the clock of the ",
			request->clock < 0 ? "" : clock_name(request->clock));
}

/* ---- the file -------------------------------------------------------------------------------- */

#define OF_RUN                                                                                     \
	RUNS "AND rank IS :rank AND replica IS :replica AND "                                      \
	     "CASE WHEN :training THEN weight_update = :number ELSE weight_update IS NULL AND "    \
	     "execution = :number END "

static struct prof_query *open_run(const struct torch_csv *csv, const char *sql, struct err *err)
{
	struct prof_query *query;

	prof_query_open(&query, csv->request->db, sql, err);
	prof_query_text(query, ":clock", clock_name(csv->clock));
	prof_query_int(query, ":execution", csv->request->execution);
	prof_query_int(query, ":rank", csv->rank);
	prof_query_int(query, ":replica", csv->replica);
	prof_query_int(query, ":training", csv->training);
	prof_query_int(query, ":number", csv->number);
	return query;
}

static void write_lines(struct torch_csv *csv, struct err *err)
{
	int64_t ipu = IPS_NULL;
	struct prof_query *query = open_run(
		csv,
		"SELECT ipu, stage, phase, coalesce(microbatch, step - min(step) OVER ()) " OF_RUN
		"AND phase IN ('F', 'B', 'W') ORDER BY ipu, start_ns, stage, phase DESC",
		err);

	while (prof_query_next(query, &err->status, err)) {
		const char *phase = prof_column_text(query, 2);

		if (csv->lines == 0 || prof_column_int(query, 0) != ipu)
			report_sink_text(&csv->sink, csv->lines++ > 0 ? "\r\n" : "");
		else
			report_sink_text(&csv->sink, ",");
		ipu = prof_column_int(query, 0);
		report_sink_int(&csv->sink, prof_column_int(query, 1));
		report_sink_text(&csv->sink, csv->split && *phase == 'B' ? "I" : phase);
		report_sink_int(&csv->sink, prof_column_int(query, 3));
		csv->cells++;
	}
	prof_query_close(query);
	report_sink_text(&csv->sink, "\r\n");
}

enum status report_export_torch_csv(const struct report_export_request *request, const char *path,
				    struct err *err)
{
	struct torch_csv csv = {.request = request};
	struct err own;
	char cells[FMT_SIZE];

	err = err_start(err, &own);
	choose_run(&csv, err);
	if (!err_stuck(err)) {
		struct prof_query *query =
			open_run(&csv, "SELECT 1 " OF_RUN "AND phase = 'W' LIMIT 1", err);

		csv.split = prof_query_next(query, &err->status, err);
		prof_query_close(query);
	}
	if (!err_stuck(err) && report_sink_open(&csv.sink, path, err) == ST_OK) {
		write_lines(&csv, err);
		report_sink_close(&csv.sink, err->status);
	}
	return report_export_print_result(
		request, path, NULL, err, "%s actions on %lld IPU%s: %s %lld, %s clock",
		fmt_count(cells, csv.cells), (long long)csv.lines, csv.lines == 1 ? "" : "s",
		csv.training ? "weight update" : "execution", (long long)csv.number,
		clock_name(csv.clock));
}
