/*
 * Detect insights: read the facts once (the summary, sums of stages, shares of time, the trace's
 * cycles, the run file, the inputs of what-if), run every detector whose facts the recording has,
 * then order the results.
 *
 * Threading: none. Ownership: all memory belongs to the insights' arena.
 */
#include "reports/insights/report_insights.h"

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

const char *report_insight_id(int at)
{
	return at >= 0 && at < (int)ARRAY_LEN(insight_table) ? insight_table[at].id : NULL;
}

const char *report_insight_severity(enum report_insight_severity severity)
{
	static const char *const words[REPORT_INSIGHT_SEVERITIES] = {"problem", "advice", "note"};

	return words[severity];
}

/* ---- all facts ------------------------------------------------------------------------------- */

static void read_facts(struct insight_facts *facts)
{
	const struct report_summary *s = &facts->summary;
	bool trained;

	if (report_summary_get(&facts->summary, facts->db, facts->err) != ST_OK)
		return;
	report__insight_read(facts);
	report__insight_memory(facts);
	report__insight_accelerators(facts);
	if (facts->summary.stages > 1)
		report__insight_whatif(facts);
	trained = s->origin == PROF_FROM_TRAINER;
	facts->has = (trained ? INSIGHT_TRAINING : 0) |
		     (trained && s->stages > 1 ? INSIGHT_PIPELINE : 0) |
		     (facts->stage_count[1] > 0 ? INSIGHT_DEVICE : 0) |
		     (facts->trace.all > 0 ? INSIGHT_TRACE : 0) |
		     (facts->whatif ? INSIGHT_WHATIF : 0) |
		     (facts->memory_count > 0 ? INSIGHT_MEMORY : 0) |
		     (!trained && s->spans > 0 ? INSIGHT_FOREIGN : 0) |
		     (facts->out->accelerator_count > 0 ? INSIGHT_ACCELERATOR : 0);
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
	if (text.failed) {
		if (!err_stuck(facts->err))
			err_nomem(facts->err);
	} else if (text.length) {
		facts->out->not_looked = report__insight_text(facts, "%s", str_peek(&text));
	}
	str_free(&text);
}

enum status report_insights_get(struct report_insights *out, struct prof_db *db, struct err *err)
{
	struct err own;
	struct insight_facts facts = {.out = out, .db = db, .err = err_start(err, &own)};
	int missing[INSIGHT_NEEDS] = {0};

	*out = (struct report_insights){0};
	if (arena_init(&out->arena, 0)) {
		*out = (struct report_insights){0};
		return err_nomem(err);
	}
	read_facts(&facts);
	for (size_t i = 0; i < ARRAY_LEN(insight_table) && !err_stuck(facts.err); i++) {
		const int lacks = insight_table[i].needs & ~facts.has;
		int first = 0;

		while (lacks && !(lacks & 1 << first))
			first++;
		if (lacks)
			missing[first]++;
		else
			insight_table[i].detect(&facts);
	}
	list_undetected(&facts, missing);
	report_whatif_close(facts.whatif);
	report_summary_free(&facts.summary);
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
