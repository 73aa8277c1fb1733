/*
 * Bubbles: idle time between the intervals of one pipeline run, measured and in theory.
 *
 * Pure functions on the caller's data; scratch memory is freed before they return. Any thread.
 */
#include "ipu/ipu_schedule.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"

/* How to divide a wait between two works of an IPU into communication and imbalance. */
enum blame {
	BLAME_PRODUCER, /* communication: the part after the end of the input's producer */
	BLAME_NOBODY,   /* communication is free: all waits are imbalance */
	BLAME_LOCKSTEP, /* communication: the part in which no IPU works */
};

struct measure {
	struct ipu_interval *by_ipu;  /* F, B and W only, by IPU and start */
	struct ipu_interval *by_work; /* the same, by phase, stage and micro-batch */
	struct ipu_interval *by_time; /* the same, by start; merged to when any IPU works */
	int count, cover;
	int ipus, stages;
	int64_t first, last;
};

/* ---- order ----------------------------------------------------------------------------------- */

static int compare_ipus(const void *left, const void *right)
{
	const struct ipu_interval *a = left, *b = right;

	return SORTED_BY(a, b, ipu, start_ns, dur_ns);
}

static int compare_works(const void *left, const void *right)
{
	const struct ipu_interval *a = left, *b = right;

	return SORTED_BY(a, b, phase, stage, microbatch);
}

static int compare_times(const void *left, const void *right)
{
	const struct ipu_interval *a = left, *b = right;

	return SORTED_BY(a, b, start_ns);
}

static int64_t end_of(const struct ipu_interval *interval)
{
	return interval->start_ns + interval->dur_ns;
}

/* ---- waits ----------------------------------------------------------------------------------- */

/* End of the work that made the input of @work, or INT64_MAX if no other IPU made it. */
static int64_t producer_end(const struct measure *m, const struct ipu_interval *work)
{
	struct ipu_interval key = *work;
	const struct ipu_interval *found;

	if (work->phase == IPU_PHASE_W)
		return INT64_MAX;
	if (work->phase == IPU_PHASE_F || work->stage == m->stages - 1) {
		key.phase = IPU_PHASE_F;
		key.stage = work->phase == IPU_PHASE_F ? work->stage - 1 : work->stage;
	} else {
		key.stage = work->stage + 1;
	}
	found = bsearch(&key, m->by_work, (size_t)m->count, sizeof(key), compare_works);
	if (!found || found->ipu == work->ipu)
		return INT64_MAX;
	return end_of(found);
}

/* Time within @from .. @to in which no IPU works. `by_time` holds disjoint intervals. */
static int64_t idle_time(const struct measure *m, int64_t from, int64_t to)
{
	int low;
	int64_t covered = 0;

	SORTED_FIRST(low, 0, m->cover, end_of(&m->by_time[low]) <= from);
	for (int i = low; i < m->cover && m->by_time[i].start_ns < to; i++) {
		int64_t start = m->by_time[i].start_ns, end = end_of(&m->by_time[i]);

		covered += min(end, to) - max(start, from);
	}
	return to - from - covered;
}

static int64_t communication(const struct measure *m, enum blame blame, int64_t from,
			     const struct ipu_interval *work)
{
	int64_t made;

	switch (blame) {
	case BLAME_PRODUCER:
		made = producer_end(m, work);
		if (made >= work->start_ns)
			return 0;
		return work->start_ns - max(made, from);
	case BLAME_LOCKSTEP:
		return idle_time(m, from, work->start_ns);
	case BLAME_NOBODY:
		break;
	}
	return 0;
}

/* Measure busy time and waits of one IPU; @works are sorted by start. */
static void measure_ipu(const struct measure *m, const struct ipu_interval *works, int count,
			enum blame blame, struct ipu_bubble *out)
{
	int64_t at;

	if (count == 0) {
		out->ramp_up_ns += m->last - m->first;
		return;
	}
	at = works[0].start_ns;
	out->ramp_up_ns += at - m->first;
	for (int i = 0; i < count; i++) {
		if (works[i].start_ns > at) {
			int64_t moved = communication(m, blame, at, &works[i]);

			out->communication_ns += moved;
			out->imbalance_ns += works[i].start_ns - at - moved;
			at = works[i].start_ns;
		}
		/* Intervals overlap at most by rounding; count that time once. */
		if (end_of(&works[i]) > at) {
			out->busy_ns += end_of(&works[i]) - at;
			at = end_of(&works[i]);
		}
	}
	out->ramp_down_ns += m->last - at;
}

/* ---- preparation ----------------------------------------------------------------------------- */

static void merge_cover(struct measure *m)
{
	m->cover = 0;
	for (int i = 0; i < m->count; i++) {
		struct ipu_interval *last = m->cover > 0 ? &m->by_time[m->cover - 1] : NULL;
		int64_t end = end_of(&m->by_time[i]);

		if (!last || m->by_time[i].start_ns > end_of(last))
			m->by_time[m->cover++] = m->by_time[i];
		else if (end > end_of(last))
			last->dur_ns = end - last->start_ns;
	}
}

static enum status measure_init(struct measure *m, const struct ipu_interval *intervals, int count,
				struct err *err)
{
	size_t size = sizeof(*intervals), room = count > 0 ? (size_t)count : 1;

	m->by_ipu = mem_calloc(room, size);
	m->by_work = mem_calloc(room, size);
	m->by_time = mem_calloc(room, size);
	if (!m->by_ipu || !m->by_work || !m->by_time)
		return err_nomem(err);
	m->first = INT64_MAX;
	m->last = INT64_MIN;
	for (int i = 0; i < count; i++) {
		const struct ipu_interval *work = &intervals[i];

		if (work->phase != IPU_PHASE_F && work->phase != IPU_PHASE_B &&
		    work->phase != IPU_PHASE_W)
			continue;
		if (work->ipu < 0 || work->ipu >= m->ipus || work->stage < 0 ||
		    work->stage >= m->stages || work->dur_ns < 0)
			return err_set(
				err, ST_INVALID,
				"stage %d on IPU %d for %lld ns: there are %d stages on %d IPUs",
				work->stage, work->ipu, (long long)work->dur_ns, m->stages,
				m->ipus);
		m->by_ipu[m->count] = m->by_work[m->count] = m->by_time[m->count] = *work;
		m->count++;
		m->first = min(work->start_ns, m->first);
		m->last = max(end_of(work), m->last);
	}
	qsort(m->by_ipu, (size_t)m->count, size, compare_ipus);
	qsort(m->by_work, (size_t)m->count, size, compare_works);
	qsort(m->by_time, (size_t)m->count, size, compare_times);
	merge_cover(m);
	return ST_OK;
}

/* ---- rates ----------------------------------------------------------------------------------- */

/* The longest time from an IPU's first start to its last end; the works of an IPU are contiguous.
 * The paper has one stage per device; several stages on an IPU count as one. */
static int64_t longest_span(const struct measure *m)
{
	int64_t longest = 0;

	for (int from = 0, to; from < m->count; from = to) {
		int64_t first = INT64_MAX, last = INT64_MIN;

		for (to = from; to < m->count && m->by_ipu[to].ipu == m->by_ipu[from].ipu; to++) {
			const struct ipu_interval *work = &m->by_ipu[to];

			first = min(work->start_ns, first);
			last = max(end_of(work), last);
		}
		longest = max(last - first, longest);
	}
	return longest;
}

static enum status measure(const struct ipu_interval *intervals, int count, int ipus, int stages,
			   enum blame blame, struct ipu_bubble *out, struct err *err)
{
	struct measure m = {.ipus = ipus, .stages = stages};
	enum status status;

	*out = (struct ipu_bubble){
		.idle_fraction = NAN, .bubble_rate = NAN, .bubble_over_ideal = NAN};
	if (ipus < 1 || stages < 1 || count < 0)
		return err_set(err, ST_INVALID, "a bubble of %d stages on %d IPUs", stages, ipus);
	status = measure_init(&m, intervals, count, err);
	if (status == ST_OK && m.count > 0) {
		double busy, span, total;
		int from = 0;

		out->makespan_ns = m.last - m.first;
		for (int ipu = 0; ipu < ipus; ipu++) {
			int to = from;

			while (to < m.count && m.by_ipu[to].ipu == ipu)
				to++;
			measure_ipu(&m, m.by_ipu + from, to - from, blame, out);
			from = to;
		}
		busy = (double)out->busy_ns;
		span = (double)longest_span(&m);
		total = (double)ipus * (double)out->makespan_ns;
		out->idle_fraction = total > 0 ? (total - busy) / total : NAN;
		out->bubble_rate = span > 0 ? 1 - busy / ipus / span : NAN;
		out->bubble_over_ideal = busy > 0 ? (total - busy) / busy : NAN;
	}
	mem_free(m.by_ipu);
	mem_free(m.by_work);
	mem_free(m.by_time);
	return status;
}

enum status ipu_bubble_measure(const struct ipu_interval *intervals, int count, int ipus,
			       int stages, struct ipu_bubble *out, struct err *err)
{
	return measure(intervals, count, ipus, stages, BLAME_PRODUCER, out, err);
}

enum status ipu_bubble_measure_lockstep(const struct ipu_interval *intervals, int count, int ipus,
					int stages, struct ipu_bubble *out, struct err *err)
{
	return measure(intervals, count, ipus, stages, BLAME_LOCKSTEP, out, err);
}

/* ---- theory ---------------------------------------------------------------------------------- */

static enum status check_costs(const struct ipu_schedule *schedule,
			       const struct ipu_schedule_costs *costs, struct err *err)
{
	const double cells = (double)schedule->stages * (double)schedule->microbatches;

	for (int s = 0; s < schedule->stages; s++) {
		double each = costs->forward[s];

		if (schedule->training)
			each = fmax(each, costs->backward[s]);
		if (schedule->splits)
			each = fmax(each, costs->weight[s]);
		/* Reject costs whose sum may overflow an int64_t of ns. */
		if (!(costs->forward[s] >= 0 && each < 0x1p62 / cells / 3) ||
		    (schedule->training && !(costs->backward[s] >= 0)) ||
		    (schedule->splits && !(costs->weight[s] >= 0)))
			return err_set(err, ST_INVALID, "stage %d has no usable cost", s);
	}
	return ST_OK;
}

enum status ipu_bubble_theory(const struct ipu_schedule *schedule,
			      const struct ipu_schedule_costs *costs, struct ipu_bubble *out,
			      struct err *err)
{
	const int count = schedule->first[schedule->ipus];
	struct ipu_interval *intervals = mem_calloc((size_t)count, sizeof(*intervals));
	double *times = mem_calloc(2 * (size_t)count, sizeof(*times));
	enum status status = check_costs(schedule, costs, err);

	*out = (struct ipu_bubble){
		.idle_fraction = NAN, .bubble_rate = NAN, .bubble_over_ideal = NAN};
	if (status == ST_OK)
		status = intervals && times
				 ? ipu_schedule_run(schedule, costs, times, times + count, err)
				 : err_nomem(err);
	if (status != ST_OK)
		goto end;
	for (int i = 0; i < count; i++) {
		const struct ipu_work *work = &schedule->works[i];

		intervals[i] = (struct ipu_interval){.ipu = schedule->device[work->stage],
						     .stage = work->stage,
						     .microbatch = work->microbatch,
						     .phase = work->phase,
						     .start_ns = llround(times[i])};
		intervals[i].dur_ns = llround(times[count + i]) - intervals[i].start_ns;
	}
	status =
		measure(intervals, count, schedule->ipus, schedule->stages, BLAME_NOBODY, out, err);
end:
	mem_free(intervals);
	mem_free(times);
	return status;
}
