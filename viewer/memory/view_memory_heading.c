/*
 * The first lines: the fullest tile and what it holds, whether all fits, and how full it is; of
 * each what there is room for. And the short names of categories, for where the long ones are too
 * long.
 *
 * Threading: the worker's; names are shortened where they are drawn, too. Ownership: none.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "viewer/memory/view_memory_internal.h"

#define HEADING_CATEGORIES 4

/* ---- names ----------------------------------------------------------------------------------- */

const char *view__memory_brief(const char *name, int width, char out[VIEW_PLACE_NAME])
{
	static const struct {
		const char *name, *brief;
	} names[] = {{"globalExchangeCode", "globalExchCode"},
		     {"globalExchangePacketHeader", "globalExchHeader"},
		     {"hostExchangeCode", "hostExchCode"},
		     {"hostExchangePacketHeader", "hostExchHeader"},
		     {"internalExchangeCode", "internalExchCode"},
		     {"notAlwaysLiveVariables", "notAlwaysLive"},
		     {"vectorListDescriptor", "vectorListDescr"},
		     {"vertexFieldData", "vertexFields"},
		     {"vertexInstanceState", "vertexState"}};
	const size_t length = strcspn(name, "/"); /* "stack/IPU0" */

	if (view_text_width(name) <= width)
		return name;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strlen(names[i].name) == length && strncmp(name, names[i].name, length) == 0) {
			snprintf(out, VIEW_PLACE_NAME, "%s%s", names[i].brief, name + length);
			return out;
		}
	return name;
}

/* ---- the lines ------------------------------------------------------------------------------- */

/* @more, if @line is not wider than @width then. */
static bool view_add_fitting(struct str *line, int width, const char *more)
{
	if (view_text_width(str_peek(line)) + view_text_width(more) > width)
		return false;
	str_add(line, more);
	return true;
}

/* The categories that the tile has most of, the greatest first. Returns their number. */
static int view_greatest(const struct view_memory *screen, int64_t index,
			 int out[HEADING_CATEGORIES])
{
	bool said[VIEW_MEMORY_CATEGORIES] = {false};
	int count = 0;

	for (; count < HEADING_CATEGORIES; count++) {
		int64_t most = 0;
		int at = -1;

		for (int c = 0; c < screen->categories; c++) {
			const int64_t *bytes = screen->side[0].category[c];

			if (bytes && !said[c] && bytes[index] > most) {
				most = bytes[index];
				at = c;
			}
		}
		if (at < 0)
			break;
		said[at] = true;
		out[count] = at;
	}
	return count;
}

/* With short names where the long ones of all would not fit. */
static void view_add_greatest(const struct view_memory *screen, int64_t index, int width,
			      struct str *line)
{
	char name[VIEW_PLACE_NAME], bytes[FMT_SIZE], text[VIEW_PLACE_NAME + FMT_SIZE + 8];
	int categories[HEADING_CATEGORIES], room = width;
	const int count = view_greatest(screen, index, categories);

	for (int pass = 0; pass < 2; pass++) {
		int used = view_text_width(str_peek(line));

		for (int n = 0; n < count; n++) {
			const int c = categories[n];

			snprintf(text, sizeof(text), "%s%s %s", n == 0 ? ": " : ", ",
				 view__memory_brief(screen->category[c], room, name),
				 fmt_bytes(bytes, (uint64_t)screen->side[0].category[c][index]));
			used += view_text_width(text);
			if (pass == 1 && !view_add_fitting(line, width, text))
				return;
		}
		room = used <= width ? width : 0;
	}
}

static void view_add_fullest(const struct view_memory *screen, int side, struct str *out)
{
	const int64_t index = screen->sums[side].fullest;
	char name[FMT_SIZE], bytes[FMT_SIZE], part[FMT_SIZE];
	int64_t total, capacity;

	if (index < 0) {
		str_add(out, "no memory recorded");
		return;
	}
	total = screen->side[side].total[index];
	capacity = screen->side[side].capacity[index];
	str_addf(out, "tile %s: %s B, %s", view__memory_name(screen, index, name),
		 fmt_count(bytes, total), fmt_percent(part, view__memory_share(total, capacity)));
}

/* "does not fit: 2 tiles are out of memory, by up to 8.05 kB"; else "does not fit, by 8.05 kB" */
static void view_add_verdict(const struct view_memory *screen, int side, int width,
			     struct str *line)
{
	const struct view_memory_sums *sums = &screen->sums[side];
	char tiles[FMT_SIZE], most[FMT_SIZE], text[2 * FMT_SIZE + 48];

	if (sums->over == 0) {
		str_add(line, "it fits");
		return;
	}
	str_add(line, "does not fit");
	fmt_bytes(most, (uint64_t)sums->excess);
	if (sums->over == 1)
		snprintf(text, sizeof(text), ": 1 tile is out of memory, by %s", most);
	else
		snprintf(text, sizeof(text), ": %s tiles are out of memory, by up to %s",
			 fmt_count(tiles, sums->over), most);
	if (view_add_fitting(line, width, text))
		return;
	snprintf(text, sizeof(text), ", by %s", most);
	view_add_fitting(line, width, text);
}

static void view_add_use(const struct view_memory *screen, int side, int width, struct str *line)
{
	const struct view_memory_sums *sums = &screen->sums[side];
	char bytes[FMT_SIZE], all[FMT_SIZE], text[2 * FMT_SIZE + 32];

	snprintf(text, sizeof(text), ", %s of %s", fmt_bytes(bytes, (uint64_t)sums->bytes),
		 fmt_bytes(all, (uint64_t)sums->capacity));
	if (!view_add_fitting(line, width, text) || sums->tiles == 0)
		return;
	snprintf(text, sizeof(text), ", mean tile %s",
		 fmt_bytes(bytes, (uint64_t)(sums->bytes / sums->tiles)));
	if (!view_add_fitting(line, width, text))
		return;
	snprintf(text, sizeof(text), ", min %s", fmt_bytes(bytes, (uint64_t)sums->least));
	view_add_fitting(line, width, text);
}

static void view_take(char out[VIEW_MESSAGE_SIZE], struct str *text)
{
	str_copy(out, VIEW_MESSAGE_SIZE, str_peek(text));
	str_free(text);
}

/* One report: the fullest tile, then the sum; two: a line of each. */
void view__memory_heading(struct view_memory *screen)
{
	static const char *const names[] = {"Source", "Target"};
	const int width = screen->areas.heading.width - 1;
	struct str lines[2] = {{0}, {0}};

	screen->fits = true;
	for (int s = 0; s < screen->sides; s++)
		screen->fits = screen->fits && screen->sums[s].over == 0;
	if (screen->sides == 1) {
		str_add(&lines[0], "Fullest ");
		view_add_fullest(screen, 0, &lines[0]);
		if (screen->sums[0].fullest >= 0)
			view_add_greatest(screen, screen->sums[0].fullest, width, &lines[0]);
		if (screen->ipu != IPS_NULL)
			str_addf(&lines[1], "IPU %" PRId64 ", simulated: ", screen->ipu);
		else
			str_addf(&lines[1], "%d IPU%s, simulated: ", screen->ipus,
				 screen->ipus == 1 ? "" : "s");
		view_add_verdict(screen, 0, width, &lines[1]);
		view_add_use(screen, 0, width, &lines[1]);
	}
	for (int s = 0; s < screen->sides && screen->sides > 1; s++) {
		str_addf(&lines[s], "%s: fullest ", names[s]);
		view_add_fullest(screen, s, &lines[s]);
		str_add(&lines[s], "; ");
		view_add_verdict(screen, s, width, &lines[s]);
		view_add_use(screen, s, width, &lines[s]);
	}
	for (int i = 0; i < 2; i++)
		view_take(screen->fullest[i], &lines[i]);
}
