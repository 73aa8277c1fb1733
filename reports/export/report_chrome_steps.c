/*
 * Device steps of `export chrome`: a lane for each IPU, beside the spans of its programs.
 *
 * They are read through their view, which multiplies the recorded traces out, in one transaction:
 * only traced executions have any. Threading: none. Ownership: the export's.
 */
#include "common/mem.h"
#include "reports/export/report_chrome.h"
#include "reports/table/report_internal.h"

#define STEPS_TID   1000000000 /* of the first lane */
#define STEPS_PLACE 9999       /* after the tracks of the IPU */
#define TICK_STEPS  16384

struct step_lane {
	int64_t rank, ipu, tid, end_ns;
	int number; /* of the IPU's, from 0 */
};

struct step_lanes {
	struct step_lane *items;
	size_t count, capacity;
};

/* The columns that become args, behind those that are read here. */
#define STEPS                                                                                      \
	"SELECT rank, ipu, start_ns, dur_ns, type, mode, epoch, execution, weight_update, step, "  \
	"microbatch, replica, ipu, stage, phase, operation, name AS program, program_id, "         \
	"trace_step, start_cycle, cycles, active_tiles, bytes_in, bytes_out FROM device_steps "    \
	"WHERE :execution IS NULL OR execution = :execution"
#define STEPS_ARGS 5

static void name_lane(struct report_chrome *chrome, const struct step_lane *lane)
{
	struct str args = {0}, name = {0};
	struct jsonw w;

	str_addf(&name, "IPU %lld steps", (long long)(lane->ipu == IPS_NULL ? 0 : lane->ipu));
	if (lane->number > 0)
		str_addf(&name, " (%d)", lane->number + 1);
	jsonw_init_str(&w, &args, 0);
	jsonw_begin_object(&w);
	jsonw_key_text(&w, "name", str_peek(&name));
	jsonw_key_text(&w, "clock", "device");
	if (lane->rank != IPS_NULL)
		jsonw_key_int(&w, "rank", lane->rank);
	if (lane->ipu != IPS_NULL)
		jsonw_key_int(&w, "ipu", lane->ipu);
	jsonw_end_object(&w);
	args.failed |= name.failed;
	str_free(&name);
	report_chrome_thread(chrome, report_chrome_pid(lane->rank, IPS_DEVICE), lane->tid,
			     report_chrome_sort(lane->ipu, STEPS_PLACE), &args);
}

/* The first lane of the IPU that is free at @start_ns. Steps follow one another: as a rule there is
 * one. */
static enum status lane_for(struct report_chrome *chrome, struct step_lanes *lanes, int64_t rank,
			    int64_t ipu, int64_t start_ns, size_t *out, struct err *err)
{
	int number = 0;

	for (size_t i = 0; i < lanes->count; i++) {
		if (lanes->items[i].rank != rank || lanes->items[i].ipu != ipu)
			continue;
		number++;
		*out = i;
		if (lanes->items[i].end_ns <= start_ns)
			return ST_OK;
	}
	if (mem_grow(&lanes->items, &lanes->capacity, lanes->count + 1, sizeof(*lanes->items)) != 0)
		return err_nomem(err);
	*out = lanes->count++;
	lanes->items[*out] = (struct step_lane){
		.rank = rank, .ipu = ipu, .tid = STEPS_TID + (int64_t)*out, .number = number};
	name_lane(chrome, &lanes->items[*out]);
	return ST_OK;
}

static void put_text(struct report_chrome *chrome, const char *text)
{
	struct jsonw w;

	str_clear(&chrome->text);
	jsonw_init_str(&w, &chrome->text, 0);
	jsonw_text(&w, text);
	report_sink_add(&chrome->sink, str_peek(&chrome->text), chrome->text.length);
	if (chrome->text.failed)
		report_sink_fail(&chrome->sink, err_nomem(chrome->sink.err));
}

/* Whole numbers and texts; what is NULL is left out. */
static void put_args(struct report_chrome *chrome, const struct prof_query *query)
{
	struct report_sink *sink = &chrome->sink;
	const char *comma = "\"";

	report_sink_text(sink, ",\"args\":{");
	for (int i = STEPS_ARGS; i < prof_column_count(query); i++) {
		const enum prof_type type = prof_column_type(query, i);

		if (type == PROF_NULL)
			continue;
		report_sink_text(sink, comma);
		report_sink_text(sink, prof_column_name(query, i));
		report_sink_text(sink, "\":");
		if (type == PROF_INT)
			report_sink_int(sink, prof_column_int(query, i));
		else
			put_text(chrome, prof_column_text(query, i));
		comma = ",\"";
	}
	report_sink_text(sink, "}");
}

/* One end of a step: as of spans, with its args or not. */
static void put_end(struct report_chrome *chrome, const struct step_lane *lane, char phase,
		    int64_t time_ns, bool args, const struct prof_query *query)
{
	const char *type = prof_column_text(query, 4);

	report_chrome_event(chrome, phase, report_chrome_pid(lane->rank, IPS_DEVICE), lane->tid);
	report_sink_text(&chrome->sink, ",\"cat\":\"device_step\",\"name\":");
	put_text(chrome, !type ? "" : type);
	report_sink_text(&chrome->sink, ",\"ts\":");
	report_sink_us(&chrome->sink, time_ns);
	if (args)
		put_args(chrome, query);
	report_sink_text(&chrome->sink, "}");
}

static enum status put_step(struct report_chrome *chrome, struct step_lanes *lanes,
			    const struct prof_query *query, struct err *err)
{
	const int64_t start_ns = prof_column_int(query, 2), dur_ns = prof_column_int(query, 3);
	const int64_t rank = prof_column_int(query, 0);
	struct report_sink *sink = &chrome->sink;
	enum status status;
	size_t at = 0;

	if (start_ns == IPS_NULL || dur_ns < 0) {
		chrome->loose_steps++;
		return ST_OK;
	}
	if (start_ns >= chrome->request->to_ns || start_ns + dur_ns < chrome->request->from_ns)
		return ST_OK;
	status = lane_for(chrome, lanes, rank, prof_column_int(query, 1), start_ns, &at, err);
	if (status != ST_OK)
		return status;
	lanes->items[at].end_ns = start_ns + dur_ns;
	put_end(chrome, &lanes->items[at], 'B', start_ns, true, query);
	put_end(chrome, &lanes->items[at], 'E', start_ns + dur_ns, dur_ns == 0, query);
	chrome->counts[REPORT_CHROME_STEPS]++;
	return sink->status;
}

enum status report_chrome_steps(struct report_chrome *chrome, struct err *err)
{
	const struct report_export_request *request = chrome->request;
	int64_t *count = &chrome->counts[REPORT_CHROME_STEPS];
	struct step_lanes lanes = {0};
	struct prof_query *query;
	enum status status;

	if (request->clock == IPS_HOST)
		return ST_OK;
	status = prof_query_open(&query, request->db, STEPS, err);
	prof_query_int(query, ":execution", request->execution);
	while (prof_query_next(query, &status, err)) {
		status = put_step(chrome, &lanes, query, err);
		if (status == ST_OK && *count % TICK_STEPS == 0)
			status = report_export_tick(request, *count, 0, err);
	}
	prof_query_close(query);
	mem_free(lanes.items);
	return status;
}
