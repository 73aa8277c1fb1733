/*
 * Detect insights: run every detector whose facts the recording has, then order the results.
 *
 * Threading: none. Ownership: all memory belongs to the insights' arena.
 */
#include "reports/insights/report_insights.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "common/mem.h"
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

struct report_insight *report__insight_add(struct insight_facts *facts, const char *id,
					   enum report_insight_severity severity)
{
	struct report_insights *out = facts->out;
	struct report_insight *grown;

	if (out->count == out->capacity) {
		grown = arena_alloc(&out->arena, 2 * (size_t)out->capacity + 32, sizeof(*grown));
		if (!grown)
			return NULL;
		if (out->count > 0)
			memcpy(grown, out->items, (size_t)out->count * sizeof(*grown));
		out->items = grown;
		out->capacity = 2 * out->capacity + 32;
	}
	out->items[out->count] = (struct report_insight){
		.id = id,
		.severity = severity,
		.subject_kind = "run",
		.gain = {.step_ns = {NAN, NAN}, .idle_fraction = {NAN, NAN}, .bytes = {NAN, NAN}},
		.keys = ""};
	return &out->items[out->count++];
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
	return text;
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
static enum status list_undetected(struct report_insights *out, enum prof_origin origin,
				   const int *missing, struct err *err)
{
	struct str text = {0};
	enum status status = ST_OK;

	if (origin != PROF_FROM_TRAINER)
		return ST_OK;
	for (int i = 0; i < INSIGHT_NEEDS; i++)
		if (missing[i] > 0 && !(1 << i & (INSIGHT_FOREIGN | INSIGHT_ACCELERATOR)))
			str_addf(&text, "%s%s (%d)", text.length ? ", " : "", need_words[i],
				 missing[i]);
	if (text.length)
		out->not_looked = arena_strdup(&out->arena, str_peek(&text));
	if (text.failed || (text.length && !out->not_looked))
		status = err_nomem(err);
	str_free(&text);
	return status;
}

static enum status run_detectors(struct insight_facts *facts, struct err *err)
{
	int missing[INSIGHT_NEEDS] = {0};
	enum status status = ST_OK;

	for (size_t i = 0; i < ARRAY_LEN(insight_table) && status == ST_OK; i++) {
		const int lacks = insight_table[i].needs & ~facts->has;
		int first = 0;

		while (lacks && !(lacks & 1 << first))
			first++;
		if (lacks)
			missing[first]++;
		else
			status = insight_table[i].detect(facts, err);
	}
	if (status == ST_OK)
		status = list_undetected(facts->out, facts->summary.origin, missing, err);
	return status;
}

/* Return false if a text could not be allocated. */
static bool texts_allocated(const struct report_insights *out)
{
	for (int i = 0; i < out->count; i++)
		if (!out->items[i].sentence || !out->items[i].keys)
			return false;
	return true;
}

enum status report_insights_get(struct report_insights *out, struct prof_db *db, struct err *err)
{
	struct insight_facts facts = {.out = out};
	enum status status;

	*out = (struct report_insights){0};
	if (arena_init(&out->arena, 0)) {
		*out = (struct report_insights){0};
		return err_nomem(err);
	}
	status = report__insight_facts(&facts, db, err);
	if (status == ST_OK)
		status = run_detectors(&facts, err);
	if (status == ST_OK && !texts_allocated(out))
		status = err_nomem(err);
	report__insight_facts_free(&facts);
	if (status != ST_OK) {
		report_insights_free(out);
		return status;
	}
	sort_insights(out);
	return ST_OK;
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
