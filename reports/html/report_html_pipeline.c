/*
 * A Gantt chart of a few weight updates of the pipeline, simulated and measured, and the bubbles.
 *
 * The chart is complete without scripts; report_html.js zooms it using the numbers in data-*.
 * Threading: none. Ownership: the pieces of work live for one section.
 */
#include "reports/html/report_html.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"

#define ROWS_MAX     40000 /* stage timings read: a bound independent of the file's size */
#define WORKS_MAX    1500  /* pieces of work per chart */
#define UPDATES_MAX  3
#define LANES_MAX    64
#define CHART_LEFT   64
#define CHART_WIDTH  1000
#define LANE_HEIGHT  26
#define LETTER_WIDTH 7.5

struct work {
	int64_t rank, update, step, microbatch, replica, ipu, stage, start_ns, dur_ns;
	bool device;
	char phase;
};

struct works {
	struct work *at;
	size_t count, capacity;
};

/* ---- selecting the work ---------------------------------------------------------------------- */

/* Column 0 is the clock: rows of both clocks are interleaved in the file. */
static const char sql_works[] =
	"SELECT s.clock, c.weight_update, c.step, c.microbatch, c.replica, c.ipu, c.stage, "
	"c.phase, "
	"s.start_ns, s.dur_ns, c.rank FROM stage_timing_rows s "
	"JOIN contexts c ON c.context_id = s.context_id "
	"WHERE s.row_id <= :rows AND c.mode = 'train' AND c.weight_update IS NOT NULL "
	"AND c.phase IS NOT NULL ORDER BY s.row_id";

static void add_work(struct works *works, const struct prof_query *query, struct err *err)
{
	const char *phase = prof_column_text(query, 7);
	struct work work = {
		.device = prof_column_int(query, 0) != 0,
		.update = prof_column_int(query, 1),
		.step = prof_column_int(query, 2),
		.microbatch = prof_column_int(query, 3),
		.replica = prof_column_int(query, 4),
		.ipu = prof_column_int(query, 5),
		.stage = prof_column_int(query, 6),
		.phase = phase && strchr("FBWRU", *phase) && *phase ? *phase : '?',
		.start_ns = prof_column_int(query, 8),
		.dur_ns = prof_column_int(query, 9),
		.rank = prof_column_int(query, 10),
	};
	const int64_t most = INT64_MAX / 4; /* bound for damaged files */

	if (work.start_ns < 0 || work.start_ns > most || work.dur_ns < 0 || work.dur_ns > most)
		return;
	if (mem_grow(&works->at, &works->capacity, works->count + 1, sizeof(*works->at)))
		err_nomem(err);
	else
		works->at[works->count++] = work;
}

static int compare_works(const void *a, const void *b)
{
	const struct work *x = a, *y = b;

	const int order = SORTED_BY(x, y, rank);

	return order != 0 ? order : SORTED_BY(x, y, device, update, start_ns, ipu, stage, phase);
}

/* The work on one clock in the updates @first to @last; borrows from @all, which is sorted. */
static struct works select_range(const struct works *all, bool device, int64_t first, int64_t last)
{
	struct works part = {0};

	for (size_t i = 0; i < all->count; i++) {
		const struct work *work = &all->at[i];

		if (work->device != device || work->update < first || work->update > last)
			continue;
		if (!part.at)
			part.at = all->at + i;
		part.count++;
	}
	return part;
}

/* Choose the updates to draw: from the second one on, because the first includes start-up; as many
 * as are legible. Return false if there are none. */
static bool choose_updates(const struct works *all, bool device, int64_t *first, int64_t *last)
{
	const struct works part = select_range(all, device, INT64_MIN + 1, INT64_MAX);

	if (part.count == 0)
		return false;
	*first = part.at[0].update;
	if (part.at[part.count - 1].update > *first + 1)
		(*first)++;
	*last = *first;
	while (*last - *first + 1 < UPDATES_MAX && *last + 1 < part.at[part.count - 1].update &&
	       select_range(all, device, *first, *last + 1).count <= WORKS_MAX)
		(*last)++;
	return true;
}

/* ---- the chart ------------------------------------------------------------------------------- */

struct gantt {
	struct report_html *page;
	struct works works;
	int64_t lanes[LANES_MAX]; /* IPUs, in ascending order */
	int lane_count;
	int64_t from_ns, until_ns;
};

static int compare_numbers(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return SORTED_ORDER(x, y);
}

static int find_lane(const struct gantt *gantt, int64_t ipu)
{
	for (int i = 0; i < gantt->lane_count; i++)
		if (gantt->lanes[i] == ipu)
			return i;
	return -1;
}

static void measure_gantt(struct gantt *gantt)
{
	gantt->from_ns = INT64_MAX;
	for (size_t i = 0; i < gantt->works.count; i++) {
		const struct work *work = &gantt->works.at[i];

		if (find_lane(gantt, work->ipu) < 0 && gantt->lane_count < LANES_MAX)
			gantt->lanes[gantt->lane_count++] = work->ipu;
		gantt->from_ns = min(gantt->from_ns, work->start_ns);
		gantt->until_ns = max(gantt->until_ns, work->start_ns + work->dur_ns);
	}
	if (gantt->until_ns <= gantt->from_ns)
		gantt->until_ns = gantt->from_ns + 1;
	qsort(gantt->lanes, (size_t)gantt->lane_count, sizeof(gantt->lanes[0]), compare_numbers);
}

static double gantt_x(const struct gantt *gantt, int64_t ns)
{
	return CHART_LEFT + (double)(ns - gantt->from_ns) /
				    (double)(gantt->until_ns - gantt->from_ns) * CHART_WIDTH;
}

/* Colour each lane from the first forward work of a weight update on any IPU until its last
 * backward work; works are drawn over it, and what stays visible is the update's bubble. */
static void draw_bubbles(const struct gantt *gantt)
{
	const struct works *works = &gantt->works;

	for (size_t i = 0, next; i < works->count; i = next) {
		int64_t from = INT64_MAX, until = 0;

		for (next = i; next < works->count && works->at[next].update == works->at[i].update;
		     next++) {
			const struct work *work = &works->at[next];

			if (!strchr("FBWR", work->phase))
				continue;
			from = min(from, work->start_ns);
			until = max(until, work->start_ns + work->dur_ns);
		}
		for (int lane = 0; lane < gantt->lane_count && until > from; lane++)
			html_addf(gantt->page,
				  "<rect class=\"bubble\" data-s=\"%" PRId64 "\" data-d=\"%" PRId64
				  "\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\"><title>"
				  "bubble</title></rect>\n",
				  from - gantt->from_ns, until - from, gantt_x(gantt, from),
				  lane * LANE_HEIGHT + 2,
				  gantt_x(gantt, until) - gantt_x(gantt, from), LANE_HEIGHT - 4);
	}
}

static void write_title(const struct gantt *gantt, const struct work *work)
{
	char at[FMT_SIZE], dur[FMT_SIZE];
	const struct {
		const char *name;
		int64_t value;
	} keys[] = {{"stage", work->stage},
		    {"micro-batch", work->microbatch},
		    {"step", work->step},
		    {"weight update", work->update},
		    {"replica", work->replica}};

	html_addf(gantt->page, "<title>%c", work->phase);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (keys[i].value != IPS_NULL)
			html_addf(gantt->page, ", %s %" PRId64, keys[i].name, keys[i].value);
	html_addf(gantt->page, ": %s from %s on</title>", fmt_ns(dur, work->dur_ns),
		  fmt_ns(at, work->start_ns));
}

static void draw_work(const struct gantt *gantt, const struct work *work)
{
	const int lane = find_lane(gantt, work->ipu);
	const double x = gantt_x(gantt, work->start_ns);
	const double width = gantt_x(gantt, work->start_ns + work->dur_ns) - x;
	char label[32];

	if (lane < 0)
		return;
	if (work->microbatch != IPS_NULL)
		snprintf(label, sizeof(label), "%c%" PRId64, work->phase, work->microbatch);
	else
		snprintf(label, sizeof(label), "%c", work->phase);
	html_addf(gantt->page,
		  "<g class=\"w\" data-s=\"%" PRId64 "\" data-d=\"%" PRId64
		  "\"><rect class=\"p%c\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\">",
		  work->start_ns - gantt->from_ns, work->dur_ns,
		  work->phase == '?' ? 'X' : work->phase, x, lane * LANE_HEIGHT + 2,
		  max(0.4, width), LANE_HEIGHT - 4);
	write_title(gantt, work);
	html_addf(gantt->page, "</rect><text class=\"mid\" x=\"%.2f\" y=\"%d\"%s>%s</text></g>\n",
		  x + width / 2, lane * LANE_HEIGHT + LANE_HEIGHT / 2 + 4,
		  width < (double)strlen(label) * LETTER_WIDTH ? " visibility=\"hidden\"" : "",
		  label);
}

static void draw_gantt(struct gantt *gantt, const char *title)
{
	struct report_html *page = gantt->page;

	measure_gantt(gantt);
	html_add(page, "<figure class=\"gantt\"><figcaption>");
	html_text(page, title);
	html_addf(page,
		  "</figcaption>\n<svg viewBox=\"0 0 %d %d\" data-left=\"%d\" data-width=\"%d\" "
		  "data-span=\"%" PRId64 "\" role=\"img\">\n",
		  CHART_LEFT + CHART_WIDTH + 24, gantt->lane_count * LANE_HEIGHT + 22, CHART_LEFT,
		  CHART_WIDTH, gantt->until_ns - gantt->from_ns);
	for (int lane = 0; lane < gantt->lane_count; lane++) {
		html_addf(page, "<text class=\"end\" x=\"%d\" y=\"%d\">", CHART_LEFT - 6,
			  lane * LANE_HEIGHT + LANE_HEIGHT / 2 + 4);
		if (gantt->lanes[lane] == IPS_NULL)
			html_add(page, "CPU</text>\n");
		else
			html_addf(page, "IPU %" PRId64 "</text>\n", gantt->lanes[lane]);
	}
	if (page->summary.stages > 1)
		draw_bubbles(gantt);
	for (size_t i = 0; i < gantt->works.count; i++)
		draw_work(gantt, &gantt->works.at[i]);
	html_time_axis(page, gantt->until_ns - gantt->from_ns, CHART_LEFT, CHART_WIDTH,
		       gantt->lane_count * LANE_HEIGHT + 14);
	html_add(page, "</svg></figure>\n");
}

static void draw_clock(struct report_html *page, const struct works *all, const char *which,
		       bool device, int64_t first, int64_t last)
{
	struct gantt gantt = {.page = page, .works = select_range(all, device, first, last)};
	const char *clock = device ? "Device (simulated)" : "Host (measured)";
	char title[160];

	if (gantt.works.count == 0)
		return;
	gantt.works.count = min(gantt.works.count, 4 * WORKS_MAX);
	if (first == last)
		snprintf(title, sizeof(title), "%s%s, weight update %" PRId64, clock, which, first);
	else
		snprintf(title, sizeof(title), "%s%s, weight updates %" PRId64 " to %" PRId64,
			 clock, which, first, last);
	draw_gantt(&gantt, title);
}

/* Name the phases that @works has. */
static void draw_legend(struct report_html *page, const struct works *works)
{
	static const struct {
		char phase;
		const char *name;
	} phases[] = {{'F', "forward"},
		      {'B', "backward"},
		      {'W', "weight part"},
		      {'R', "recomputation"},
		      {'U', "weight update"}};

	html_add(page, "<p class=\"legend\">");
	for (size_t p = 0; p < ARRAY_LEN(phases); p++) {
		bool has = false;

		for (size_t i = 0; i < works->count && !has; i++)
			has = works->at[i].phase == phases[p].phase;
		if (has)
			html_addf(page,
				  " <span class=\"part\"><span class=\"key p%c\">&#9632;</span> %c "
				  "%s</span>",
				  phases[p].phase, phases[p].phase, phases[p].name);
	}
	if (page->summary.stages > 1)
		html_add(page, " <span class=\"part\"><span class=\"key bubble\">&#9632;</span> "
			       "bubble</span>");
	html_add(page, ". The number is the micro-batch. <span class=\"js\">Wheel or + - zooms, "
		       "dragging moves, 0 shows all.</span></p>\n");
}

void html_pipeline(struct report_html *page)
{
	struct works works = {0};
	int64_t first, last;
	char which[32];
	size_t count = 0;
	struct prof_query *query;

	prof_query_open(&query, page->db, sql_works, page->err);
	prof_query_int(query, ":rows", ROWS_MAX);
	while (prof_query_next(query, &page->err->status, page->err))
		add_work(&works, query, page->err);
	prof_query_close(query);
	if (works.count > 0)
		qsort(works.at, works.count, sizeof(*works.at), compare_works);
	/* Only the first rank is drawn: ranks have IPUs and weight updates of the same numbers. */
	which[0] = '\0';
	while (count < works.count && works.at[count].rank == works.at[0].rank)
		count++;
	if (count < works.count)
		snprintf(which, sizeof(which), ", rank %" PRId64, works.at[0].rank);
	works.count = count;
	if (!choose_updates(&works, true, &first, &last) &&
	    !choose_updates(&works, false, &first, &last)) {
		html_note(page, "No weight update of a pipeline was recorded.");
		goto out;
	}
	draw_legend(page, &works);
	draw_clock(page, &works, which, true, first, last);
	draw_clock(page, &works, which, false, first, last);
	html_bubble(page);
out:
	mem_free(works.at);
}
