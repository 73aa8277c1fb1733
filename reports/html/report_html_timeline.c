/*
 * The timeline of a recording without a pipeline: its lanes with their longest spans, coloured by
 * name.
 *
 * Threading: none. Ownership: the spans live for one section.
 */
#include "reports/html/report_html.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"

#define SPANS_MAX    2000 /* per chart: the longest */
#define LANES_MAX    40
#define ROWS_MAX     6 /* per lane: nesting levels */
#define CHART_LEFT   150
#define CHART_WIDTH  914
#define ROW_HEIGHT   18
#define LANE_GAP     6
#define LETTER_WIDTH 6.5
#define NAME_COLUMNS 21

struct lane {
	int64_t track;
	char name[96];
	int rows, top; /* rows of spans; y of the first, in pixels */
};

struct timeline {
	struct report_html *page;
	bool device, alone; /* alone: the recording has no other clock */
	struct lane lanes[LANES_MAX];
	int lane_count, height;
	int64_t from_ns, until_ns;
};

/* The inner query selects the longest spans, the outer one orders them by lane. */
static const char sql_spans[] =
	"SELECT s.track_id, t.track, s.depth, n.value, s.start_ns, s.dur_ns FROM "
	"(SELECT * FROM span_rows WHERE dur_ns > 0 AND depth < :rows AND track_id IN "
	" (SELECT track_id FROM track_rows WHERE clock = :clock) "
	" ORDER BY dur_ns DESC, span_id LIMIT :most) s "
	"JOIN track_rows t ON t.track_id = s.track_id JOIN sites i ON i.site_id = s.site_id "
	"JOIN strings n ON n.string_id = i.name_id ORDER BY s.track_id, s.depth, s.start_ns";

static struct lane *find_lane(struct timeline *timeline, int64_t track)
{
	for (int i = 0; i < timeline->lane_count; i++)
		if (timeline->lanes[i].track == track)
			return &timeline->lanes[i];
	return NULL;
}

static void add_to_lane(struct timeline *timeline, const struct prof_query *query)
{
	const int64_t track = prof_column_int(query, 0), start_ns = prof_column_int(query, 4);
	const char *name = prof_column_text(query, 1);
	struct lane *lane = find_lane(timeline, track);

	if (!lane && timeline->lane_count == LANES_MAX)
		return;
	if (!lane) {
		lane = &timeline->lanes[timeline->lane_count++];
		*lane = (struct lane){.track = track};
		str_copy(lane->name, sizeof(lane->name), name ? name : "?");
	}
	lane->rows = max(lane->rows, (int)prof_column_int(query, 2) + 1);
	timeline->from_ns = min(timeline->from_ns, start_ns);
	timeline->until_ns = max(timeline->until_ns, start_ns + prof_column_int(query, 5));
}

static double timeline_x(const struct timeline *timeline, int64_t ns)
{
	return CHART_LEFT + (double)(ns - timeline->from_ns) /
				    (double)(timeline->until_ns - timeline->from_ns) * CHART_WIDTH;
}

static void draw_span(struct timeline *timeline, const struct prof_query *query)
{
	const struct lane *lane = find_lane(timeline, prof_column_int(query, 0));
	const int64_t start_ns = prof_column_int(query, 4), dur_ns = prof_column_int(query, 5);
	const char *name = prof_column_text(query, 3);
	const double x = timeline_x(timeline, start_ns);
	const double width = max(0.4, timeline_x(timeline, start_ns + dur_ns) - x);
	struct report_html *page = timeline->page;
	char dur[FMT_SIZE], at[FMT_SIZE];
	uint32_t hash = 2166136261u;
	int y;

	if (!lane)
		return;
	name = name ? name : "?";
	for (const char *c = name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 16777619u;
	y = lane->top + (int)prof_column_int(query, 2) * ROW_HEIGHT;
	html_addf(page,
		  "<g class=\"w\" data-s=\"%" PRId64 "\" data-d=\"%" PRId64
		  "\"><rect class=\"f%u\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\"><title>",
		  start_ns - timeline->from_ns, dur_ns, (unsigned)(hash >> 8) % HTML_SERIES_COLOURS,
		  x, y, width, ROW_HEIGHT - 2);
	html_text(page, name);
	html_addf(page, ": %s from %s on</title></rect><text class=\"mid\" x=\"%.2f\" y=\"%d\"%s>",
		  fmt_ns(dur, dur_ns), fmt_ns(at, start_ns), x + width / 2, y + 12,
		  width < (double)strlen(name) * LETTER_WIDTH ? " visibility=\"hidden\"" : "");
	html_text(page, name);
	html_add(page, "</text></g>\n");
}

static void draw_frame(struct timeline *timeline)
{
	struct report_html *page = timeline->page;

	html_addf(page,
		  "<figure class=\"gantt\">%s\n<svg viewBox=\"0 0 %d %d\" "
		  "data-left=\"%d\" data-width=\"%d\" data-span=\"%" PRId64 "\" role=\"img\">\n",
		  timeline->alone    ? ""
		  : timeline->device ? "<figcaption>Device</figcaption>"
				     : "<figcaption>Host</figcaption>",
		  CHART_LEFT + CHART_WIDTH + 24, timeline->height + 22, CHART_LEFT, CHART_WIDTH,
		  timeline->until_ns - timeline->from_ns);
	for (int i = 0; i < timeline->lane_count; i++) {
		const struct lane *lane = &timeline->lanes[i];
		const char *name = lane->name;
		size_t letters = 0, skip;

		/* Show the ends of long names: names often differ only there. */
		for (const char *c = name; *c; c++)
			letters += ((unsigned char)*c & 0xc0) != 0x80;
		skip = letters > NAME_COLUMNS ? letters - NAME_COLUMNS + 1 : 0;
		while (skip > 0 && *name)
			skip -= ((unsigned char)*++name & 0xc0) != 0x80;
		html_addf(page, "<text class=\"end\" x=\"%d\" y=\"%d\"><title>", CHART_LEFT - 6,
			  lane->top + 12);
		html_text(page, lane->name);
		html_addf(page, "</title>%s", name != lane->name ? "&#8230;" : "");
		html_text(page, name);
		html_addf(page, "</text><path class=\"grid\" d=\"M0 %dH%d\"/>\n",
			  lane->top - LANE_GAP / 2, CHART_LEFT + CHART_WIDTH);
	}
	html_time_axis(page, timeline->until_ns - timeline->from_ns, CHART_LEFT, CHART_WIDTH,
		       timeline->height + 14);
}

static void for_each_span(struct timeline *timeline,
			  void (*row)(struct timeline *timeline, const struct prof_query *query))
{
	struct err *err = timeline->page->err;
	struct prof_query *query;

	prof_query_open(&query, timeline->page->db, sql_spans, err);
	prof_query_int(query, ":rows", ROWS_MAX);
	prof_query_int(query, ":clock", timeline->device);
	prof_query_int(query, ":most", SPANS_MAX);
	while (prof_query_next(query, &err->status, err)) {
		const int64_t most = INT64_MAX / 4; /* bound for damaged files */
		const int64_t depth = prof_column_int(query, 2);

		if (depth >= 0 && depth < ROWS_MAX && prof_column_int(query, 4) >= -most &&
		    prof_column_int(query, 4) <= most && prof_column_int(query, 5) <= most)
			row(timeline, query);
	}
	prof_query_close(query);
}

void html_timeline(struct report_html *page)
{
	static const char sql_clocks[] = "SELECT count(DISTINCT clock) FROM track_rows";
	struct timeline *timeline = mem_alloc(sizeof(*timeline));
	int64_t clocks = 0;

	if (!timeline)
		err_nomem(page->err);
	else
		prof_db_number(page->db, sql_clocks, &clocks, page->err);
	for (int device = 0; device < 2 && !err_stuck(page->err); device++) {
		*timeline = (struct timeline){.page = page,
					      .device = device,
					      .alone = clocks < 2,
					      .from_ns = INT64_MAX,
					      .until_ns = INT64_MIN};
		for_each_span(timeline, add_to_lane);
		if (timeline->lane_count == 0)
			continue;
		for (int i = 0; i < timeline->lane_count; i++) {
			timeline->lanes[i].top = timeline->height + LANE_GAP;
			timeline->height += timeline->lanes[i].rows * ROW_HEIGHT + LANE_GAP;
		}
		draw_frame(timeline);
		for_each_span(timeline, draw_span);
		html_add(page, "</svg></figure>\n");
		if (timeline->lane_count == LANES_MAX)
			html_note(page, "The first %d lanes with spans.", LANES_MAX);
	}
	html_addf(page,
		  "<p class=\"note\">The longest spans, at most %d on each clock, within %d others "
		  "at most. <span class=\"js\">Wheel or + - zooms, dragging moves, 0 shows "
		  "all.</span></p>\n",
		  SPANS_MAX, ROWS_MAX - 1);
	mem_free(timeline);
}
