/*
 * Detect insights: run every detector whose facts the recording has, then order the results.
 *
 * Threading: none. Ownership: all memory belongs to the insights' arena.
 */
#include "reports/insights/report_insights.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "reports/insights/report_insights_internal.h"

static const struct {
	const char *id;
	int needs;
	insight_fn detect;
} insight_table[] = {
#define INSIGHT_ROW(id, needs) {#id, (needs), report__insight_##id},
	INSIGHT_MAP(INSIGHT_ROW)
#undef INSIGHT_ROW
};

static const char *const need_words[INSIGHT_NEEDS] = {
	"a run of ipu-train",
	"a pipeline of several stages",
	"a training on a simulated device",
	"a traced execution (autoReport.executionProfileProgramRunCount)",
	"what ipu-report what-if needs",
	"the tiles' memory",
	"the spans of another program",
	"kernels of a GPU",
};

static const double limits[] = {
#define LIMIT_VALUE(id, name, value, why) (value),
	REPORT_INSIGHT_LIMIT_MAP(LIMIT_VALUE)
#undef LIMIT_VALUE
};

double report_insight_limit(enum report_insight_limit limit)
{
	assert((unsigned)limit < REPORT_INSIGHT_LIMITS);
	return limits[limit];
}

const char *report_insight_id(int at)
{
	return at >= 0 && at < (int)ARRAY_LEN(insight_table) ? insight_table[at].id : NULL;
}

const char *report_insight_severity(enum report_insight_severity severity)
{
	static const char *const words[REPORT_INSIGHT_SEVERITIES] = {"problem", "advice", "note"};

	return words[severity];
}

/* ---- adding an insight ----------------------------------------------------------------------- */

static void lacks_memory(struct insight_facts *facts)
{
	if (!err_stuck(facts->err))
		err_nomem(facts->err);
}

void *report__insight_alloc(struct insight_facts *facts, int64_t count, size_t size)
{
	void *items = err_stuck(facts->err)
			      ? NULL
			      : arena_alloc(&facts->out->arena, (size_t)max(count, 1), size);

	if (!items)
		lacks_memory(facts);
	return items;
}

struct report_insight *report__insight_add(struct insight_facts *facts, const char *id,
					   enum report_insight_severity severity, const char *view,
					   const char *keys, const char *sql)
{
	struct report_insights *out = facts->out;
	struct report_insight *insight = &facts->spare;

	if (out->count == out->capacity) {
		struct report_insight *grown =
			report__insight_alloc(facts, 2 * out->capacity + 32, sizeof(*grown));

		if (grown && out->count > 0)
			memcpy(grown, out->items, (size_t)out->count * sizeof(*grown));
		if (grown) {
			out->items = grown;
			out->capacity = 2 * out->capacity + 32;
		}
	}
	if (out->count < out->capacity)
		insight = &out->items[out->count++];
	*insight = (struct report_insight){
		.id = id,
		.severity = severity,
		.subject_kind = "run",
		.gain = {.step_ns = {NAN, NAN}, .idle_fraction = {NAN, NAN}, .bytes = {NAN, NAN}},
		.view = view,
		.keys = keys,
		.sql = sql};
	return insight;
}

void report__insight_subject(struct insight_facts *facts, struct report_insight *insight,
			     const char *kind, int64_t number)
{
	if (number == IPS_NULL)
		return;
	insight->subject_kind = kind;
	insight->subject = report__insight_text(facts, "%" PRId64, number);
	insight->keys = report__insight_text(facts, "%s%s%s=%" PRId64, insight->keys,
					     *insight->keys ? " " : "", kind, number);
}

void report__insight_number(struct report_insight *insight, const char *name, double value,
			    enum report_quantity quantity)
{
	if (insight->number_count < REPORT_INSIGHT_NUMBERS && isfinite(value))
		insight->numbers[insight->number_count++] =
			(struct report_insight_number){name, value, quantity};
}

const char *report__insight_text(struct insight_facts *facts, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = arena_vprintf(&facts->out->arena, format, args);
	va_end(args);
	if (!text)
		lacks_memory(facts);
	return text ? text : "";
}

const struct insight_time *report__insight_most(const struct insight_facts *facts, int clock,
						enum insight_part part)
{
	const struct insight_time *most = NULL;

	for (int i = 0; i < facts->time_count[clock]; i++)
		if (!most || facts->time[clock][i].share[part] > most->share[part])
			most = &facts->time[clock][i];
	return most;
}

const struct insight_stage *report__insight_slowest(const struct insight_facts *facts, int clock,
						    double *all_ns)
{
	const struct insight_stage *most = NULL;

	*all_ns = 0;
	for (int i = 0; i < facts->stage_count[clock]; i++) {
		const struct insight_stage *stage = &facts->stage[clock][i];

		*all_ns += stage->work_ns;
		if (!most || stage->work_ns > most->work_ns)
			most = stage;
	}
	return most;
}

bool report__insight_predict(struct insight_facts *facts, const struct report_whatif_change *change,
			     struct report_whatif_prediction *out)
{
	const struct report_whatif_prediction *measured;

	if (!facts->whatif || report_whatif_predict(out, facts->whatif, change, NULL) != ST_OK)
		return false;
	measured = report_whatif_measured(facts->whatif);
	return out->memory_fits && out->step_ns > 0 && measured->step_ns > 0;
}

void report__insight_gain(struct report_insight *insight,
			  const struct report_whatif_prediction *measured,
			  const struct report_whatif_prediction *predicted)
{
	const struct report_whatif_prediction *both[2] = {measured, predicted};

	for (int i = 0; i < 2; i++) {
		insight->gain.step_ns[i] = both[i]->step_ns;
		if (measured->pipelined && predicted->pipelined)
			insight->gain.idle_fraction[i] = both[i]->idle_fraction;
	}
	insight->share = 1 - predicted->step_ns / measured->step_ns;
}

/* ---- all insights ---------------------------------------------------------------------------- */

/* Order by severity, then by share, then by position in the table (insertion sort is stable). */
static bool insight_before(const struct report_insight *a, const struct report_insight *b)
{
	return a->severity != b->severity ? a->severity < b->severity : a->share > b->share;
}

static void sort_insights(struct report_insights *out)
{
	for (int i = 1; i < out->count; i++) {
		const struct report_insight moved = out->items[i];
		int at = i;

		for (; at > 0 && insight_before(&moved, &out->items[at - 1]); at--)
			out->items[at] = out->items[at - 1];
		out->items[at] = moved;
	}
}

/* List the insights that lack data. Only for runs of ipu-train: a recording of another program
 * lacks most by nature. */
static void list_undetected(struct insight_facts *facts, const int *missing)
{
	struct str text = {0};

	if (facts->summary.origin != PROF_FROM_TRAINER)
		return;
	for (int i = 0; i < INSIGHT_NEEDS; i++)
		if (missing[i] > 0 && !(1 << i & (INSIGHT_FOREIGN | INSIGHT_ACCELERATOR)))
			str_addf(&text, "%s%s (%d)", text.length ? ", " : "", need_words[i],
				 missing[i]);
	if (text.failed)
		lacks_memory(facts);
	else if (text.length)
		facts->out->not_looked = report__insight_text(facts, "%s", str_peek(&text));
	str_free(&text);
}

static void run_detectors(struct insight_facts *facts)
{
	int missing[INSIGHT_NEEDS] = {0};

	for (size_t i = 0; i < ARRAY_LEN(insight_table) && !err_stuck(facts->err); i++) {
		const int lacks = insight_table[i].needs & ~facts->has;
		int first = 0;

		while (lacks && !(lacks & 1 << first))
			first++;
		if (lacks)
			missing[first]++;
		else
			insight_table[i].detect(facts);
	}
	list_undetected(facts, missing);
}

enum status report_insights_get(struct report_insights *out, struct prof_db *db, struct err *err)
{
	struct err own;
	struct insight_facts facts = {.out = out, .db = db, .err = err_start(err, &own)};

	*out = (struct report_insights){0};
	if (arena_init(&out->arena, 0)) {
		*out = (struct report_insights){0};
		return err_nomem(err);
	}
	report__insight_facts(&facts);
	run_detectors(&facts);
	report__insight_facts_free(&facts);
	if (err_stuck(facts.err))
		report_insights_free(out);
	else
		sort_insights(out);
	return facts.err->status;
}

const struct report_accelerator *report_insights_device(const struct report_insights *insights)
{
	const struct report_accelerator *longest = insights->accelerators;

	for (int i = 1; i < insights->accelerator_count; i++)
		if (insights->accelerators[i].total > longest->total)
			longest = &insights->accelerators[i];
	return longest;
}

void report_insights_free(struct report_insights *insights)
{
	arena_fini(&insights->arena);
	*insights = (struct report_insights){0};
}
