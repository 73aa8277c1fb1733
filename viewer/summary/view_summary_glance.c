/*
 * The run at a glance: state, loss, speed, health, bubble, memory, the worst insight; each line
 * links to the screen that shows more.
 *
 * Insights and the loss trend cost some ten milliseconds, so they are read once after the run is
 * over, and only occasionally while it records.
 *
 * Threading: the session's worker. Ownership: texts belong to the blocks' arena or are literals.
 */
#include "viewer/summary/view_summary_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "common/str.h"
#include "reports/insights/report_insights.h"
#include "viewer/insights/view_insights_internal.h"

#define SUMMARY_GLANCE_NAME_WIDTH 9
#define NOTE_FROM                 60 /* least columns of a line with the screen's name */
#define NOTE_COLUMNS              14 /* at least, of that name, with its key and a gap */
#define LINE_MOST                 98 /* longer ones are hard to read */
#define CHECK_NS                  (10 * UINT64_C(1000000000)) /* between two checks while recording */

/* Cost of training on both clocks, its steps done, and its planned steps. */
static const char summary_speed_sql[] =
	"SELECT sum(steps), sum(total_ns), sum(total_cycles), "
	"(SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'epochs') * "
	"(SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'steps_per_epoch'), "
	"min(first_start_ns), max(last_end_ns) FROM execution_sums WHERE mode = 'train'";

/* The fullest tile, and the totals over all tiles. */
static const char summary_memory_sql[] =
	"SELECT max(used), ipu, tile, sum(bytes), sum(capacity), count(*) FROM (SELECT 1.0 * "
	"sum(bytes) / max(capacity) AS used, ipu, tile, sum(bytes) AS bytes, max(capacity) AS "
	"capacity FROM tile_memory GROUP BY ipu, tile)";

/* ---- reading --------------------------------------------------------------------------------- */

static void summary_check_insights(struct view_glance *glance, struct prof_db *db, struct err *err)
{
	const struct report_accelerator *longest;
	struct report_insights found;

	if (err_stuck(err) || report_insights_get(&found, db, err) != ST_OK)
		return;
	glance->problems = glance->advice = 0;
	glance->worst[0] = '\0';
	for (int i = 0; i < found.count; i++) {
		const struct report_insight *insight = &found.items[i];

		glance->problems += insight->severity == REPORT_INSIGHT_PROBLEM;
		glance->advice += insight->severity == REPORT_INSIGHT_ADVICE;
		if (glance->worst[0] || insight->severity == REPORT_INSIGHT_NOTE)
			continue;
		str_copy(glance->worst, sizeof(glance->worst), insight->sentence);
		glance->worst_severity = insight->severity;
		view__insight_place(insight, &glance->worst_place);
		/* Without these fields Enter opens the insight instead of its rows in SQL. */
		glance->worst_place.view[0] = glance->worst_place.sql[0] = '\0';
	}
	longest = report_insights_device(&found);
	glance->devices = found.accelerator_count;
	if (longest) {
		glance->device = *longest;
		glance->device.device = glance->device.name = glance->device.keys = NULL;
		str_copy(glance->device_name, sizeof(glance->device_name), longest->name);
	}
	report_insights_free(&found);
}

static void summary_check_trend(struct view_glance *glance, struct view_context *context,
				struct err *err)
{
	struct view_metrics_list list = {0};
	const struct view_metric *loss = NULL;

	view_metrics_list(&list, context->source->db, err);
	for (int i = 0; i < list.count && !loss; i++)
		if (list.items[i].mode && strcmp(list.items[i].mode, "train") == 0 &&
		    list.items[i].name && strcmp(list.items[i].name, "loss") == 0)
			loss = &list.items[i];
	glance->trend = (struct view_trend){.way = VIEW_TREND_UNKNOWN, .first = NAN};
	if (loss) {
		view_metrics_read(&list, context->source->db, context, 1, list.rows, err);
		if (!err_stuck(err))
			glance->trend = view_metrics_trend(loss);
	}
	view_metrics_fini(&list);
}

static void summary_check_memory(struct view_glance *glance, struct prof_db *db, struct err *err)
{
	struct prof_query *query = view_query_open(db, summary_memory_sql, err);

	glance->memory = NAN;
	glance->memory_ipu = glance->memory_tile = IPS_NULL;
	if (view_query_next(query, err)) {
		glance->memory = prof_column_real(query, 0);
		glance->memory_ipu = prof_column_int(query, 1);
		glance->memory_tile = prof_column_int(query, 2);
		glance->memory_bytes = prof_column_int(query, 3);
		glance->memory_capacity = prof_column_int(query, 4);
		glance->memory_tiles = prof_column_int(query, 5);
	}
	prof_query_close(query);
}

void view__summary_check(struct view_summary *screen, struct view_context *context, struct err *err)
{
	struct view_glance *glance = &screen->glance;
	const enum view_state state = context->source->state;
	const uint64_t now_ns = clock_ns();
	struct prof_query *query = view_query_open(context->source->db, summary_speed_sql, err);

	if (view_query_next(query, err)) {
		glance->steps = prof_column_int(query, 0);
		glance->host_ns = prof_column_int(query, 1);
		glance->cycles = prof_column_int(query, 2);
		glance->steps_of = prof_column_int(query, 3);
		glance->trained_ns = sat_sub(prof_column_int(query, 5), prof_column_int(query, 4));
	}
	prof_query_close(query);
	if (err_stuck(err) || (glance->checked && glance->state == state &&
			       (state != VIEW_RECORDING || now_ns - glance->checked_ns < CHECK_NS)))
		return;
	glance->state = state;
	/* For a large file, postpone the checks, so that the first picture need not wait for
	 * them. */
	if (!glance->begun && !context->whole &&
	    screen->summary.database_bytes > screen->large_bytes) {
		glance->begun = context->more = true;
		glance->memory = NAN;
		return;
	}
	glance->begun = true;
	summary_check_memory(glance, context->source->db, err);
	summary_check_insights(glance, context->source->db, err);
	summary_check_trend(glance, context, err);
	view__summary_machine(screen, context->source->db, err);
	if (err_stuck(err))
		return;
	glance->checked = true;
	glance->checked_ns = now_ns;
}

int64_t view__summary_left_ns(const struct view_glance *glance)
{
	if (glance->steps <= 0 || glance->steps_of < glance->steps || glance->trained_ns <= 0)
		return -1;
	return (int64_t)((double)glance->trained_ns / (double)glance->steps *
			 (double)(glance->steps_of - glance->steps));
}

/* ---- the block ------------------------------------------------------------------------------- */

/* Add a line, wrapped if the text is long. @more: the screen that shows more; VIEW_SCREENS: none.
 * Return its link's place, as view__summary_link(). */
static struct view_place *__attribute__((format(printf, 5, 6)))
summary_add_glance(struct view_summary *screen, const char *name, enum view_style style,
		   enum view_screen more, const char *format, ...)
{
	struct view_blocks *blocks = &screen->blocks;
	struct view_block *block = &blocks->block[blocks->count - 1];
	const int whole = view_blocks_line_width(blocks, true, screen->width);
	const int width = min(whole, LINE_MOST);
	const size_t first = block->count;
	const char *title = more == VIEW_SCREENS ? "" : view_screen(more)->title;
	const int note = width > NOTE_FROM ? max(NOTE_COLUMNS, (int)strlen(title) + 4) : 0;
	char text[VIEW_WORST_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	view_blocks_fold(blocks, name, style, width - SUMMARY_GLANCE_NAME_WIDTH - note, text);
	if (more == VIEW_SCREENS || block->count == first)
		return &screen->links[VIEW_SUMMARY_LINKS];
	if (width > NOTE_FROM) {
		block->lines[first].note =
			arena_printf(&blocks->arena, "%c %s", (char)view_screen(more)->key, title);
		blocks->failed |= !block->lines[first].note;
	}
	return view__summary_link(screen, more);
}

static void summary_glance_run(struct view_summary *screen)
{
	const struct report_summary *summary = &screen->summary;
	char epochs[FMT_SIZE], updates[FMT_SIZE], took[FMT_SIZE];
	const enum view_state state = screen->glance.state;

	if (screen->now.live || summary->steps <= 0)
		return;
	summary_add_glance(
		screen, "run",
		state == VIEW_COMPLETE ? VIEW_GOOD
		: state == VIEW_KILLED ? VIEW_BAD
				       : VIEW_WARN,
		VIEW_SCREENS, "%s%s %s epoch%s, %s weight update%s in %s", view_state_text(state),
		state == VIEW_COMPLETE ? ":" : ";", fmt_count(epochs, summary->epochs),
		summary->epochs == 1 ? "" : "s", fmt_count(updates, summary->weight_updates),
		summary->weight_updates == 1 ? "" : "s", fmt_ns(took, summary->duration_ns));
}

static void summary_glance_loss(struct view_summary *screen)
{
	static const struct {
		const char *text;
		enum view_style style;
	} ways[] = {[VIEW_TREND_UNKNOWN] = {"", VIEW_NORMAL},
		    [VIEW_TREND_FALLING] = {", still falling", VIEW_GOOD},
		    [VIEW_TREND_LEVEL] = {", no longer falling", VIEW_WARN},
		    [VIEW_TREND_RISING] = {", rising", VIEW_BAD}};
	const double first = screen->glance.trend.first;
	const struct report_summary *summary = &screen->summary;
	const enum view_trend_way way = screen->glance.trend.way;
	/* A loss that falls at the end may have exploded before. */
	const bool risen = way != VIEW_TREND_UNKNOWN && screen->glance.trend.risen;
	char loss[FMT_SIZE], accuracy[FMT_SIZE], from[FMT_SIZE], since[FMT_SIZE + 32] = "";
	struct view_place *place;

	if (isnan(summary->loss) && !summary->loss_nan)
		return;
	if (risen)
		snprintf(since, sizeof(since), ", risen from %s at first", fmt_real(from, first));
	place = summary_add_glance(
		screen, "loss", summary->loss_nan || risen ? VIEW_BAD : ways[way].style,
		VIEW_METRICS, "%s%s%s%s", summary->loss_nan ? "nan" : fmt_real(loss, summary->loss),
		risen ? since : ways[way].text, isnan(summary->accuracy) ? "" : "; accuracy ",
		isnan(summary->accuracy) ? "" : fmt_percent(accuracy, summary->accuracy));
	view_place_text(place->metric, "loss");
	view_place_text(place->mode, "train");
}

/* Format with three digits: "64.2 k". */
static const char *summary_rate_text(char out[FMT_SIZE], double rate)
{
	if (rate >= 1e6)
		snprintf(out, FMT_SIZE, "%.3g M", rate / 1e6);
	else if (rate >= 1e4)
		snprintf(out, FMT_SIZE, "%.3g k", rate / 1e3);
	else
		snprintf(out, FMT_SIZE, "%.0f", rate);
	return out;
}

static void summary_glance_speed(struct view_summary *screen)
{
	const struct report_summary *summary = &screen->summary;
	const struct view_glance *glance = &screen->glance;
	const double replicas = summary->replicas > 1 ? (double)summary->replicas : 1;
	const double samples = (double)glance->steps * (double)summary->batch_size * replicas;
	char host[FMT_SIZE], device[FMT_SIZE];
	bool simulated;

	if (glance->steps <= 0 || glance->host_ns <= 0 || summary->batch_size <= 0 ||
	    summary->ranks > 1)
		return;
	simulated = glance->cycles > 0 && screen->machine.clock_hz > 0;
	summary_rate_text(host, samples * 1e9 / (double)glance->host_ns);
	summary_rate_text(device,
			  simulated ? samples * screen->machine.clock_hz / (double)glance->cycles
				    : 0);
	summary_add_glance(screen, "speed", VIEW_BOLD, VIEW_TIMELINE,
			   "%s samples/s on the host%s%s%s", host, simulated ? ", " : "",
			   simulated ? device : "", simulated ? " on simulated IPUs" : "");
	fmt_ns(host, glance->host_ns / glance->steps);
	if (simulated)
		fmt_ns(device, (int64_t)((double)glance->cycles * 1e9 / screen->machine.clock_hz /
					 (double)glance->steps));
	summary_add_glance(screen, "step", VIEW_BOLD, VIEW_SCREENS, "%s on the host%s%s%s", host,
			   simulated ? ", " : "", simulated ? device : "",
			   simulated ? " on simulated IPUs" : "");
}

/* The peak covers all attached IPUs and the number format of the products. No link: this keeps the
 * bubble and the slowest stage below at the same number of key presses. */
static void summary_glance_arithmetic(struct view_summary *screen)
{
	const struct report_arithmetic *arithmetic = &screen->summary.arithmetic;
	char done[FMT_SIZE], peak[FMT_SIZE], share[FMT_SIZE];

	if (arithmetic->flops_s > 0 && arithmetic->peak_flops_s > 0)
		summary_add_glance(
			screen, "training", VIEW_NORMAL, VIEW_SCREENS,
			"%s simulated, %s of the peak %s", fmt_flops(done, arithmetic->flops_s),
			fmt_percent(share, arithmetic->flops_s / arithmetic->peak_flops_s),
			fmt_flops(peak, arithmetic->peak_flops_s));
}

static void summary_glance_health(struct view_summary *screen)
{
	const struct report_summary *summary = &screen->summary;
	struct view_place *place = NULL;
	char hits[FMT_SIZE];

	if (summary->bad.known)
		place = summary_add_glance(screen, "health", VIEW_BAD, VIEW_HEALTH,
					   "NaN or Inf, first in %s",
					   summary->bad.key ? summary->bad.key : "?");
	else if (summary->broken_count > 0)
		place = summary_add_glance(screen, "health", VIEW_WARN, VIEW_HEALTH,
					   "%d rule%s broken, %s hit%s in all",
					   summary->broken_count,
					   summary->broken_count == 1 ? "" : "s",
					   fmt_count(hits, summary->health_hits),
					   summary->health_hits == 1 ? "" : "s");
	else if (summary->rules > 0)
		summary_add_glance(screen, "health", VIEW_GOOD, VIEW_HEALTH,
				   "sound: no rule broken, no NaN, no Inf");
	if (place && summary->broken_count > 0)
		view_place_text(place->rule, summary->broken[0].rule);
}

static void summary_glance_bubble(struct view_summary *screen)
{
	const int clock = screen->summary.bubble[1].known;
	const struct report_bubble_mean *bubble = &screen->summary.bubble[clock];
	struct view_place *place;
	char idle[FMT_SIZE], theory[FMT_SIZE];
	const struct {
		double share;
		const char *name;
	} causes[] = {{bubble->imbalance, "imbalance"},
		      {bubble->communication, "communication"},
		      {bubble->ramp_up, "ramp-up"},
		      {bubble->ramp_down, "ramp-down"}};
	size_t most = 0;

	if (!bubble->known || isnan(bubble->idle_fraction))
		return;
	/* The greatest of the four causes of idleness. */
	for (size_t i = 1; i < ARRAY_LEN(causes); i++)
		if (causes[i].share > causes[most].share)
			most = i;
	place = summary_add_glance(screen, "bubble", VIEW_BUBBLE, VIEW_TIMELINE,
				   "%s (theory %s) on %s, mostly %s",
				   fmt_percent(idle, bubble->idle_fraction),
				   fmt_percent(theory, bubble->theory_idle_fraction),
				   clock ? "IPUs" : "workers", causes[most].name);
	/* Link to the pipeline run that was idle most. */
	view_place_text(place->view, "bubble_sums");
	view_place_text(place->clock, clock ? "device" : "host");
}

static void summary_glance_slowest(struct view_summary *screen)
{
	const struct report_summary *summary = &screen->summary;
	const int clock = summary->bubble[1].known;
	const int64_t at = view__summary_slowest(summary, clock);
	const struct report_stage *stage = at < 0 ? NULL : &summary->stage[at];
	struct view_place *place;
	char each[FMT_SIZE];
	int64_t work;

	if (!stage || stage->count <= 0)
		return;
	work = sat_add(stage->forward_ns[clock], stage->backward_ns[clock]);
	place = summary_add_glance(screen, "slowest", VIEW_NORMAL, VIEW_OPERATIONS,
				   "stage %lld on IPU %lld, %s a micro-batch",
				   (long long)stage->stage, (long long)stage->ipu,
				   fmt_ns(each, work / stage->count));
	place->stage = stage->stage;
	place->ipu = stage->ipu;
}

static void summary_glance_memory(struct view_summary *screen)
{
	struct view_place *place;
	char text[FMT_SIZE];

	if (isnan(screen->glance.memory))
		return;
	place = summary_add_glance(screen, "memory",
				   screen->glance.memory > 1 ? VIEW_BAD : VIEW_NORMAL, VIEW_MEMORY,
				   "the fullest tile uses %s of what it has",
				   fmt_percent(text, screen->glance.memory));
	place->ipu = screen->glance.memory_ipu;
	place->tile = screen->glance.memory_tile;
}

/* GPUs and other accelerators: how one of them spent its time. */
static void summary_glance_devices(struct view_summary *screen)
{
	const struct view_glance *glance = &screen->glance;
	const struct report_accelerator *device = &glance->device;
	const struct {
		const char *name;
		double ns;
	} parts[] = {{"idle", device->idle},
		     {"compute", device->compute},
		     {"communication alone", device->communication - device->overlap},
		     {"copies alone", device->copies}};
	struct str text = {0};
	char number[FMT_SIZE];

	if (glance->devices <= 0)
		return;
	str_add(&text, glance->device_name);
	if (glance->devices > 1)
		str_addf(&text, ", one of %s", fmt_count(number, glance->devices));
	for (size_t i = 0, told = 0; i < ARRAY_LEN(parts); i++)
		if (parts[i].ns > 0)
			str_addf(&text, "%s %s %s", told++ ? "," : ":", parts[i].name,
				 fmt_percent(number, parts[i].ns / device->total));
	screen->blocks.failed |= text.failed;
	summary_add_glance(screen, "device", VIEW_NORMAL, VIEW_ACCELERATORS, "%s", str_peek(&text));
	str_free(&text);
}

/* The worst insight. */
static void summary_glance_advice(struct view_summary *screen)
{
	const struct view_glance *glance = &screen->glance;
	const bool problem = glance->worst_severity == REPORT_INSIGHT_PROBLEM;
	struct view_place *place;

	if (!glance->checked) {
		summary_add_glance(screen, "advice", VIEW_DIM, VIEW_INSIGHTS, "a moment ...");
		return;
	}
	if (!glance->worst[0]) {
		summary_add_glance(screen, "advice", VIEW_GOOD, VIEW_INSIGHTS,
				   "nothing was found that is worth a change");
		return;
	}
	place = summary_add_glance(screen, problem ? "problem" : "advice",
				   problem ? VIEW_BAD : VIEW_WARN, VIEW_INSIGHTS, "%s",
				   glance->worst);
	*place = glance->worst_place;
}

void view__summary_glance(struct view_summary *screen)
{
	view_blocks_begin(&screen->blocks,
			  screen->summary.bubble[1].known ? "At a glance: IPUs are simulated, "
							    "host and loss are measured"
							  : "At a glance",
			  SUMMARY_GLANCE_NAME_WIDTH);
	summary_glance_run(screen);
	summary_glance_loss(screen);
	summary_glance_speed(screen);
	summary_glance_arithmetic(screen);
	summary_glance_health(screen);
	summary_glance_bubble(screen);
	summary_glance_slowest(screen);
	summary_glance_memory(screen);
	summary_glance_devices(screen);
	summary_glance_advice(screen);
}
