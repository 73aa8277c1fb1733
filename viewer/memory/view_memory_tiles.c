/*
 * Tiles of the Memory screen: the conversions between an IPU's tile, its index and its position;
 * the cursor on them; and names for the user. All files of the screen rest on this one.
 *
 * Threading: the session's and, to read, the terminal's. Ownership: none.
 */
#include "viewer/memory/view_memory_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/sorted.h"
#include "common/str.h"
#include "reports/named/report_floor.h"

/* ---- indexes and positions ------------------------------------------------------------------- */

int view__memory_ipu_at(const struct view_memory *screen, int64_t ipu)
{
	const int at = (int)sorted_place(screen->ipu_ids, (size_t)screen->ipus,
					 sizeof(*screen->ipu_ids), 0, ipu);

	return at < screen->ipus && screen->ipu_ids[at] == ipu ? at : -1;
}

int64_t view__memory_index(const struct view_memory *screen, int64_t ipu, int64_t tile)
{
	const int at = view__memory_ipu_at(screen, ipu);

	return at < 0 || tile < 0 || tile >= screen->tiles ? -1 : at * screen->tiles + tile;
}

int64_t view__memory_shown(const struct view_memory *screen)
{
	return screen->ipu == IPS_NULL ? screen->ipus * screen->tiles
	       : screen->ipus > 0      ? screen->tiles
				       : 0;
}

int64_t view__memory_first(const struct view_memory *screen)
{
	const int at = screen->ipu == IPS_NULL ? 0 : view__memory_ipu_at(screen, screen->ipu);

	return at > 0 ? at * screen->tiles : 0;
}

int64_t view__memory_at(const struct view_memory *screen, int64_t position)
{
	const int64_t index = view__memory_first(screen) + position;
	const int64_t tile = index % screen->tiles;

	return screen->physical ? index - tile + report_floor_tile(tile, screen->tiles) : index;
}

int64_t view__memory_position(const struct view_memory *screen, int64_t index)
{
	const int64_t tile = index % screen->tiles;

	if (screen->physical)
		index += report_floor_position(tile, screen->tiles) - tile;
	return index - view__memory_first(screen);
}

/* ---- the cursor and the window --------------------------------------------------------------- */

int64_t view__memory_cursor(const struct view_memory *screen)
{
	const int64_t index = view__memory_index(screen, screen->at_ipu, screen->at_tile);
	const int64_t first = view__memory_first(screen);

	return index < first || index >= first + view__memory_shown(screen) ? first : index;
}

int64_t view__memory_mark(const struct view_memory *screen, int mark)
{
	return view__memory_index(screen, screen->mark[mark].ipu, screen->mark[mark].tile);
}

void view__memory_set_cursor(struct view_memory *screen, int64_t index)
{
	if (index < 0 || screen->ipus == 0)
		return;
	screen->at_ipu = view__memory_ipu_of(screen, index);
	screen->at_tile = view__memory_tile_of(screen, index);
	screen->placed = true;
}

void view__memory_select(struct view_memory *screen, int64_t variable_id, const char *name)
{
	screen->subject.variable_id = variable_id;
	view_place_text(screen->subject.name, name);
	screen->subject_stale = screen->grid_stale = true;
}

void view__memory_window(struct view_memory *screen)
{
	const int64_t shown = view__memory_shown(screen);

	if (screen->span <= 0 || screen->span >= shown)
		screen->from = screen->span = 0;
	else if (screen->from > shown - screen->span)
		screen->from = shown - screen->span;
	if (screen->from < 0)
		screen->from = 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

const char *view__memory_name(const struct view_memory *screen, int64_t index, char out[FMT_SIZE])
{
	if (screen->ipus > 1)
		snprintf(out, FMT_SIZE, "%" PRId64 ",%" PRId64, view__memory_ipu_of(screen, index),
			 view__memory_tile_of(screen, index));
	else
		snprintf(out, FMT_SIZE, "%" PRId64, view__memory_tile_of(screen, index));
	return out;
}

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

	if (utf8_columns(name) <= width)
		return name;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strlen(names[i].name) == length && strncmp(name, names[i].name, length) == 0) {
			snprintf(out, VIEW_PLACE_NAME, "%s%s", names[i].brief, name + length);
			return out;
		}
	return name;
}
