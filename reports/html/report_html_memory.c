/*
 * Memory: a heat map with one square per tile, the categories, and live bytes of each IPU over the
 * steps of the program.
 *
 * Threading: none. Ownership: curves live for one section.
 */
#include "reports/html/report_html.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/mem.h"
#include "reports/named/report_floor.h"

#define IPUS_MAX     16 /* heat maps and charts of a page */
#define TILES_ACROSS REPORT_FLOOR_ACROSS
#define TILE_SIZE    11
#define TILES_MAX    65536
#define HEATS        10 /* colours up to the fullest tile; one more for out of memory */

/* ---- heat map -------------------------------------------------------------------------------- */

static const char sql_tiles[] =
	"SELECT ipu, tile, sum(bytes) AS bytes, max(capacity) AS capacity FROM tile_memory "
	"GROUP BY ipu, tile ORDER BY ipu, tile";

static const char sql_greatest[] =
	"SELECT max(tile), max(bytes) FROM (SELECT tile, sum(bytes) AS bytes FROM tile_memory "
	"GROUP BY ipu, tile)";

struct heat {
	struct report_html *page;
	int64_t ipu; /* current IPU; IPS_NULL: none */
	int ipus, beyond;
	int height;       /* rows of tiles of a map */
	int64_t greatest; /* bytes of the fullest tile, at least 1 */
	bool open;
};

static void end_map(struct heat *heat)
{
	if (heat->open)
		html_add(heat->page, "</svg></figure>\n");
	heat->open = false;
}

static void draw_tile(struct heat *heat, int64_t tile, int64_t bytes, int64_t capacity)
{
	const bool beyond = capacity > 0 && bytes > capacity;
	const double share = (double)bytes / (double)heat->greatest;
	const int step = beyond       ? HEATS
			 : share >= 1 ? HEATS - 1
			 : share >= 0 ? (int)(share * HEATS)
				      : 0;
	char text[FMT_SIZE];

	heat->beyond += beyond;
	if (!heat->open || tile < 0 || tile >= (int64_t)heat->height * TILES_ACROSS)
		return;
	html_addf(heat->page,
		  "<rect class=\"h%d\" x=\"%d\" y=\"%d\" width=\"10\" height=\"10\"><title>tile "
		  "%" PRId64 ": %s",
		  step, (int)(tile % TILES_ACROSS) * TILE_SIZE,
		  (int)(tile / TILES_ACROSS) * TILE_SIZE, tile,
		  fmt_bytes(text, bytes > 0 ? (uint64_t)bytes : 0));
	if (capacity > 0)
		html_addf(heat->page, ", %.1f %% of its memory",
			  (double)bytes / (double)capacity * 100);
	html_add(heat->page, "</title></rect>\n");
}

static void draw_legend(const struct heat *heat)
{
	char text[FMT_SIZE];

	html_add(heat->page, "<p class=\"legend\">Bytes in use, from ");
	for (int i = 0; i < HEATS; i++)
		html_addf(heat->page, "<span class=\"key h%d\">&#9632;</span>%s ", i,
			  fmt_bytes(text, (uint64_t)heat->greatest / HEATS * (uint64_t)i));
	html_addf(heat->page,
		  "on; <span class=\"key h%d\">&#9632;</span>out of memory. %d tiles a row, from "
		  "tile 0.</p>\n",
		  HEATS, TILES_ACROSS);
}

static void draw_heat(struct heat *heat)
{
	struct err *err = heat->page->err;
	struct prof_query *query;

	prof_query_open(&query, heat->page->db, sql_tiles, err);
	while (prof_query_next(query, &err->status, err)) {
		if (heat->ipus == 0)
			draw_legend(heat);
		if (prof_column_int(query, 0) != heat->ipu) {
			end_map(heat);
			heat->ipu = prof_column_int(query, 0);
			heat->open = heat->ipus++ < IPUS_MAX;
			if (heat->open)
				html_addf(heat->page,
					  "<figure class=\"heat\"><figcaption>IPU %" PRId64
					  "</figcaption>\n"
					  "<svg viewBox=\"0 0 %d %d\" role=\"img\">\n",
					  heat->ipu, TILES_ACROSS * TILE_SIZE,
					  heat->height * TILE_SIZE);
		}
		draw_tile(heat, prof_column_int(query, 1), prof_column_int(query, 2),
			  prof_column_int(query, 3));
	}
	prof_query_close(query);
	end_map(heat);
}

static const char sql_categories[] =
	"SELECT ipu, category, region, sum(bytes) AS bytes, count(*) AS tiles, max(bytes) AS "
	"greatest_bytes FROM tile_memory GROUP BY ipu, category, region "
	"ORDER BY ipu, sum(bytes) DESC, category, region";

void html_memory(struct report_html *page)
{
	struct heat heat = {.page = page, .ipu = IPS_NULL, .greatest = 1};
	struct prof_query *query;

	prof_query_open(&query, page->db, sql_greatest, page->err);
	if (prof_query_next(query, &page->err->status, page->err)) {
		if (prof_column_int(query, 0) >= 0 && prof_column_int(query, 0) < TILES_MAX)
			heat.height = (int)prof_column_int(query, 0) / TILES_ACROSS + 1;
		if (prof_column_int(query, 1) > 0)
			heat.greatest = prof_column_int(query, 1);
	}
	prof_query_close(query);
	if (!err_stuck(page->err))
		draw_heat(&heat);
	if (heat.ipus > IPUS_MAX)
		html_note(page, "The first %d of %d IPUs.", IPUS_MAX, heat.ipus);
	if (heat.beyond > 0)
		html_note(page, "%d tiles hold more than their memory: the model does not fit.",
			  heat.beyond);
	html_add(page, "<details><summary>By category and region</summary>\n");
	html_query(page, "tile_memory", sql_categories, 1000);
	html_add(page, "</details>\n");
}

/* ---- liveness -------------------------------------------------------------------------------- */

static const char sql_liveness[] =
	"SELECT ipu, program_step, always_live_bytes, not_always_live_bytes FROM liveness "
	"WHERE typeof(ipu) = 'integer' ORDER BY ipu, program_step";

struct liveness {
	int64_t ipu;
	struct html_curve always, all;
};

/* Draw the maximum of a point, not its mean: peaks must not be smoothed. */
static void make_peak_series(struct html_curve *curve, const char *name, struct html_series *out)
{
	html_curve_series(curve, name, true, out);
	out->y = out->high;
	out->low = out->high = NULL;
	out->area = true;
}

static void draw_liveness(struct report_html *page, struct liveness *live)
{
	struct html_series series[2];
	char title[80];

	snprintf(title, sizeof(title), "IPU %" PRId64 ": live bytes by program step", live->ipu);
	make_peak_series(&live->all, "not always live", &series[0]);
	make_peak_series(&live->always, "always live", &series[1]);
	html_chart(page, &(struct html_chart){.title = title,
					      .x_name = "program step",
					      .quantity = REPORT_BYTES,
					      .from_zero = true,
					      .series = series,
					      .count = ARRAY_LEN(series)});
}

void html_liveness(struct report_html *page)
{
	struct liveness *live = mem_alloc(sizeof(*live));
	struct prof_query *query = NULL;
	int ipus = 0;

	if (!live)
		err_nomem(page->err);
	else
		prof_query_open(&query, page->db, sql_liveness, page->err);
	while (prof_query_next(query, &page->err->status, page->err)) {
		const int64_t ipu = prof_column_int(query, 0);
		const double step = prof_column_real(query, 1), always = prof_column_real(query, 2);

		if (ipus == 0 || ipu != live->ipu) {
			if (ipus > 0)
				draw_liveness(page, live);
			if (ipus++ == IPUS_MAX)
				break;
			live->ipu = ipu;
			html_curve_begin(&live->always);
			html_curve_begin(&live->all);
		}
		html_curve_add(&live->always, step, always);
		html_curve_add(&live->all, step, always + prof_column_real(query, 3));
	}
	prof_query_close(query);
	if (ipus > 0 && ipus <= IPUS_MAX)
		draw_liveness(page, live);
	mem_free(live);
}
