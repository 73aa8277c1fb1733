/*
 * Merging: how far each source's host times are moved. See prof_merge.h.
 *
 * Recordings say when they started by their host's wall clock, which may be wrong by seconds where
 * hosts differ. Processes of one job meet at every execution: what is left between the starts of
 * executions with equal numbers is the clocks' error, its median being little disturbed by those
 * that one of them reached late.
 */
#include "profiler/prof_merge_internal.h"

#include "common/mem.h"
#include "common/minmax.h"

/* Moments of a source: the starts of its first rank's executions by number... */
#define EXECUTIONS(schema)                                                                         \
	"SELECT mode, epoch, execution AS number, min(start_ns) AS ns FROM " schema                \
	".execution_rows WHERE start_ns IS NOT NULL AND execution IS NOT NULL AND "                \
	"rank = (SELECT min(rank) FROM " schema ".execution_rows) GROUP BY 1, 2, 3"

/* ...or, where there are none in common, the first span of each step on the host clock. */
#define STEPS(schema)                                                                              \
	"SELECT c.mode, NULL AS epoch, c.step AS number, min(s.start_ns) AS ns FROM " schema       \
	".span_rows s JOIN " schema ".contexts c ON c.context_id = s.context_id JOIN " schema      \
	".track_rows t ON t.track_id = s.track_id WHERE t.clock = 0 AND c.step IS NOT NULL AND "   \
	"c.rank = (SELECT min(rank) FROM " schema ".track_rows) GROUP BY 1, 2, 3"

/* Differences beyond 2^61 are not what a recorder writes. */
#define COMMON(moments)                                                                            \
	"INSERT INTO temp.anchors SELECT b.ns - a.ns FROM (" moments("ref") ") a JOIN (" moments(  \
		"src") ") b ON b.number = a.number AND b.mode IS a.mode AND b.epoch IS a.epoch "   \
		       "WHERE b.ns - a.ns BETWEEN -(1 << 61) AND 1 << 61"

/* The anchors of the source at hand and the first one, as differences of recorded times. */
static void find_anchors(struct merge *m)
{
	static const char count[] = "SELECT count(*) FROM temp.anchors";

	prof__merge_run(m, "DELETE FROM temp.anchors");
	prof__merge_run(m, COMMON(EXECUTIONS));
	if (prof__merge_ask(m, count) == 0)
		prof__merge_run(m, COMMON(STEPS));
	m->source->anchors = prof__merge_ask(m, count);
}

/* What is left after the shifts, of @reference and of the source at hand. */
static void measure(struct merge *m, const struct prof_merge_source *reference)
{
	struct prof_merge_source *source = m->source;
	const int64_t shift = source->shift_ns - reference->shift_ns;
	int64_t median, least, greatest;

	if (source->anchors <= 0)
		return;
	median = prof__merge_ask(m, "SELECT d FROM temp.anchors ORDER BY d LIMIT 1 "
				    "OFFSET (SELECT (count(*) - 1) / 2 FROM temp.anchors)");
	least = prof__merge_ask(m, "SELECT min(d) FROM temp.anchors");
	greatest = prof__merge_ask(m, "SELECT max(d) FROM temp.anchors");
	if (!prof__merge_ok(m))
		return;
	if (m->params->align == PROF_MERGE_ALIGN_STEPS) {
		source->shift_ns = reference->shift_ns - median;
		source->residual_ns = 0;
		source->greatest_ns = max(greatest - median, median - least);
		return;
	}
	source->residual_ns = median + shift;
	least = least + shift < 0 ? -(least + shift) : least + shift;
	greatest = greatest + shift < 0 ? -(greatest + shift) : greatest + shift;
	source->greatest_ns = max(least, greatest);
}

static void compare(struct merge *m)
{
	prof__merge_attach(m, m->files[0].path, "ref");
	for (m->at = 1; m->at < m->count && prof__merge_ok(m); m->at++) {
		m->source = &m->sources[m->at];
		prof__merge_attach(m, m->files[m->at].path, "src");
		if (!prof__merge_ok(m))
			break;
		find_anchors(m);
		measure(m, &m->sources[0]);
		if (!prof__merge_ok(m))
			err_prefix(&m->err, "%s", m->files[m->at].path);
		prof__merge_detach(m, "src");
	}
	prof__merge_detach(m, "ref");
}

static void wall(struct merge *m)
{
	for (size_t i = 0; i < m->count; i++) {
		if (m->sources[i].has_clock && m->params->align != PROF_MERGE_ALIGN_NONE)
			m->sources[i].shift_ns = m->files[i].epoch_ns;
	}
}

/* The earliest start becomes 0; what has no clock starts there. */
static void settle(struct merge *m, bool all)
{
	int64_t least = INT64_MAX;

	for (size_t i = 0; i < m->count; i++) {
		if ((all || m->sources[i].has_clock) && m->sources[i].shift_ns < least)
			least = m->sources[i].shift_ns;
	}
	for (size_t i = 0; i < m->count && least != INT64_MAX; i++) {
		if (all || m->sources[i].has_clock)
			m->sources[i].shift_ns -= least;
	}
}

void prof__merge_align(struct merge *m)
{
	if (!prof__merge_ok(m))
		return;
	m->what = "align";
	wall(m);
	if (m->params->align != PROF_MERGE_ALIGN_NONE)
		settle(m, false);
	prof__merge_run(m, "CREATE TEMP TABLE anchors (d INTEGER NOT NULL)");
	if (prof__merge_ok(m))
		compare(m);
	settle(m, true);
}
