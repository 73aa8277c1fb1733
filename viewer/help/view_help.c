/*
 * The screen Help, made from the key table.
 *
 * Threading: one thread. Ownership: the state owns its blocks.
 */
#include <string.h>

#include "common/mem.h"
#include "viewer/draw/view_blocks.h"

#define KEYS_WIDTH 20
#define TWO_FROM   150 /* narrower columns would cut what keys do */

static enum status view_help_open(void **state, struct view_context *context, struct err *err)
{
	(void)context;
	*state = mem_calloc(1, sizeof(struct view_blocks));
	return *state ? ST_OK : err_nomem(err);
}

static void view_help_close(void *state)
{
	if (!state)
		return;
	view_blocks_fini(state);
	mem_free(state);
}

static void view_help_keys(struct view_blocks *blocks)
{
	const char *group = "";

	for (int i = VIEW_NONE + 1; i < VIEW_REQUESTS; i++) {
		const enum view_request request = (enum view_request)i;
		const struct view_request_info *info = view_request_info(request);
		char keys[VIEW_KEY_LIST_SIZE];
		const char *name;

		if (strcmp(group, info->group) != 0)
			view_blocks_begin(blocks, info->group, KEYS_WIDTH);
		if (strcmp(group, info->group) != 0 && strcmp(info->group, VIEW_SCREENS_GROUP) == 0)
			view_blocks_fact(blocks, VIEW_SCREEN_KEYS, VIEW_NORMAL, "%s",
					 VIEW_SCREEN_KEYS_HELP);
		group = info->group;
		name = arena_strdup(&blocks->arena, view_key_list(request, keys));
		if (!name)
			blocks->failed = true;
		view_blocks_fact(blocks, name ? name : "", VIEW_NORMAL, "%s", info->help);
	}
}

static void view_help_legend(struct view_blocks *blocks)
{
	view_blocks_begin(blocks, "Reading the timeline", KEYS_WIDTH);
	view_blocks_fact(blocks, "F0 B0 W0 R0", VIEW_NORMAL,
			 "forward, backward, weight part, recomputation of micro-batch 0");
	view_blocks_fact(blocks, "U", VIEW_NORMAL, "weight update");
	view_blocks_fact(blocks, "shaded", VIEW_NORMAL,
			 "the bubble: an IPU idle within a pipeline run (one weight update)");
	view_blocks_fact(blocks, "column", VIEW_NORMAL,
			 "many spans in one cell: its height is the share of time busy");
	view_blocks_fact(blocks, "idle", VIEW_NORMAL, "share of the window without stage work");
	view_blocks_fact(blocks, "device", VIEW_NORMAL,
			 "the simulated clock; its window shows the same executions as the host's");
}

static enum status view_help_load(void *state, struct view_context *context, bool news,
				  struct err *err)
{
	struct view_blocks *blocks = state;

	(void)news;
	if (blocks->count == 0) {
		blocks->found = -1;
		blocks->two_from = TWO_FROM;
		view_help_keys(blocks);
		view_help_legend(blocks);
	}
	return view_blocks_fit(blocks, context->body.width, context->body.height, err);
}

static void view_help_draw(const void *state, const struct view_context *context,
			   struct view_pane *pane)
{
	(void)context;
	view_blocks_draw(state, pane);
}

static enum view_answer view_help_request(void *state, struct view_context *context,
					  enum view_request request)
{
	return view_blocks_request(state, context->body.height, request);
}

static bool view_help_search(void *state, struct view_context *context, const char *text,
			     bool forward)
{
	return view_blocks_search(state, context->body.height, text, forward);
}

static void view_help_status(const void *state, const struct view_context *context, char *out,
			     size_t size)
{
	view_blocks_status(state, context->body.height, out, size);
}

static int view_help_height(const void *state, const struct view_context *context)
{
	(void)context;
	return ((const struct view_blocks *)state)->height;
}

const struct view_screen_ops view_help_ops = {
	.name = "help",
	.title = "Help",
	.brief = "Help",
	.key = '?',
	.where = VIEW_ON_HELP,
	.least_ns = UINT64_MAX,
	.open = view_help_open,
	.close = view_help_close,
	.load = view_help_load,
	.draw = view_help_draw,
	.request = view_help_request,
	.search = view_help_search,
	.status = view_help_status,
	.height = view_help_height,
};
