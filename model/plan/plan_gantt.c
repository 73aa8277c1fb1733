/*
 * A pipeline's works as a Gantt chart of letters.
 *
 * Threading: none. No state: rows are appended to the text directly.
 */
#include "model/plan/plan_command.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"

#define WIDTH_LEAST 20
#define LABEL_SIZE  32

/* Letters and colours of the phases. Odd chunks are lower case and brighter. */
static const struct look {
	char phase, odd;
	const char *colour, *odd_colour; /* background and foreground */
	const char *name;
} looks[] = {
	{IPU_PHASE_F, 'f', "\033[44;97m", "\033[104;30m", "forward"},
	{IPU_PHASE_B, 'b', "\033[46;30m", "\033[106;30m", "backward"},
	{IPU_PHASE_W, 'w', "\033[42;30m", "\033[102;30m", "weight gradient"},
};

struct gantt {
	const struct ipu_pipeline *pipeline;
	const struct plan_gantt_params *params;
	struct str *out;
	int name_width, columns;
	const char *colour; /* the active colour, or NULL */
};

static const struct look *look_of(char phase)
{
	for (size_t i = 0; i < ARRAY_LEN(looks); i++)
		if (looks[i].phase == phase)
			return &looks[i];
	return &looks[0];
}

static void set_colour(struct gantt *g, const char *colour)
{
	if (!g->params->colour || colour == g->colour)
		return;
	if (g->colour)
		str_add(g->out, "\033[0m");
	if (colour)
		str_add(g->out, colour);
	g->colour = colour;
}

static const char *idle_glyph(const struct gantt *g)
{
	return g->params->unicode ? "░" : ".";
}

/* Begin of @column in ns. Computed by quotient and remainder, which is exact: the makespan is at
 * most 2^61 and there are few columns. */
static int64_t column_at(const struct gantt *g, int column)
{
	int64_t makespan = g->pipeline->bubble.makespan_ns;

	return makespan / g->columns * column + makespan % g->columns * column / g->columns;
}

/* ---- one row --------------------------------------------------------------------------------- */

/* The work that fills most of @column, or -1 if idle time does. *@from is the first work that may
 * overlap the column; it only increases. */
static int dominant_work(const struct gantt *g, int column, int stage, int *from)
{
	const struct ipu_pipeline_work *works = g->pipeline->works;
	int64_t start = column_at(g, column), end = column_at(g, column + 1);
	int64_t idle = end - start, most = 0;
	int winner = -1, last = g->pipeline->first[stage + 1];

	while (*from < last && works[*from].end_ns <= start)
		++*from;
	for (int i = *from; i < last && works[i].start_ns < end; i++) {
		int64_t a = max(works[i].start_ns, start);
		int64_t b = min(works[i].end_ns, end);

		idle -= b - a;
		if (b - a > most) {
			most = b - a;
			winner = i;
		}
	}
	return idle > most ? -1 : winner;
}

/* Draw @count columns of one work: its letter, its micro-batch if that fits, and a line. */
static void draw_work(struct gantt *g, const struct ipu_pipeline_work *work, int count)
{
	const struct look *look = look_of(work->phase);
	bool odd = work->chunk % 2 == 1;
	char label[LABEL_SIZE];
	int length = snprintf(label, sizeof(label), "%c%d", odd ? look->odd : look->phase,
			      work->microbatch);

	set_colour(g, odd ? look->odd_colour : look->colour);
	if (length > count || length >= (int)sizeof(label)) {
		label[1] = '\0';
		length = 1;
	}
	str_add(g->out, label);
	for (int i = length; i < count; i++)
		str_add(g->out, g->params->colour ? " " : g->params->unicode ? "─" : "-");
}

static void draw_row(struct gantt *g, int stage)
{
	int from = g->pipeline->first[stage], column = 0;
	int next = dominant_work(g, 0, stage, &from);

	str_addf(g->out, "stage %-*d", g->name_width - 6, stage);
	while (column < g->columns) {
		int work = next, begin = column;

		do {
			column++;
			next = column < g->columns ? dominant_work(g, column, stage, &from) : -1;
		} while (column < g->columns && next == work);
		if (work >= 0) {
			draw_work(g, &g->pipeline->works[work], column - begin);
			continue;
		}
		set_colour(g, NULL);
		for (int i = begin; i < column; i++)
			str_add(g->out, idle_glyph(g));
	}
	set_colour(g, NULL);
	str_add(g->out, "\n");
}

/* ---- the chart ------------------------------------------------------------------------------- */

void plan_gantt(const struct ipu_pipeline *pipeline, const struct plan_gantt_params *params,
		struct str *out)
{
	struct gantt g = {.pipeline = pipeline, .params = params, .out = out};
	int width = max(params->width, WIDTH_LEAST);
	char end[LABEL_SIZE];
	int length;

	g.name_width = snprintf(NULL, 0, "stage %d ", pipeline->stages - 1);
	g.columns = width - g.name_width;
	for (int s = 0; s < pipeline->stages; s++)
		draw_row(&g, s);

	/* The axis. */
	length = snprintf(end, sizeof(end), "%.6g ms", (double)pipeline->bubble.makespan_ns / 1e6);
	str_addf(out, "%*s0%*s\n", g.name_width, "", g.columns - 1, length < g.columns ? end : "");

	/* The legend. */
	str_addf(out, "%*s", g.name_width, "");
	for (size_t i = 0; i < ARRAY_LEN(looks); i++) {
		const char letter[2] = {looks[i].phase, '\0'};

		if (looks[i].phase == IPU_PHASE_W && !ipu_schedule_row(pipeline->kind)->splits)
			continue;
		set_colour(&g, looks[i].colour);
		str_add(out, letter);
		set_colour(&g, NULL);
		str_addf(out, " %s  ", looks[i].name);
	}
	str_addf(out, "%s idle%s\n", idle_glyph(&g),
		 pipeline->chunks > 1 ? "  (odd chunks: f, b)" : "");
}
