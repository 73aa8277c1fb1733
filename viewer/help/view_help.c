/*
 * The screen Help: what the screen that it was asked on shows, its words, and its keys, made from
 * the key table; for a file, of all screens.
 *
 * Threading: one thread. Ownership: the state owns its blocks.
 */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "viewer/draw/view_blocks.h"
#include "viewer/help/view_help_told.h"

#define KEYS_WIDTH 20
#define TWO_FROM   110 /* in narrower columns most texts would be folded */
#define LINE_MOST  100 /* longer ones are hard to read */

struct view_help {
	struct view_blocks blocks;
	int about, width; /* what the blocks are of; width 0: nothing yet */
	int line;         /* columns of a line, the name included */
};

static enum status view_help_open(void **state, struct view_context *context, struct err *err)
{
	(void)context;
	*state = mem_calloc(1, sizeof(struct view_help));
	return *state ? ST_OK : err_nomem(err);
}

static void view_help_close(void *state)
{
	if (!state)
		return;
	view_blocks_fini(&((struct view_help *)state)->blocks);
	mem_free(state);
}

static void view_help_width(struct view_help *help, bool head)
{
	const int line = view_blocks_line_width(&help->blocks, head, help->width);

	help->line = min(line, LINE_MOST);
}

static void view_help_fact(struct view_help *help, const char *name, const char *text)
{
	const int width = help->line - KEYS_WIDTH;
	const char *copy = arena_strdup(&help->blocks.arena, name);

	if (copy)
		view_blocks_fold(&help->blocks, copy, VIEW_NORMAL, width, text);
	else
		help->blocks.failed = true;
}

static void view_help_begin(struct view_help *help, const char *title, const char *of)
{
	const char *text = arena_printf(&help->blocks.arena, "%s%s", title, of);

	if (!text)
		help->blocks.failed = true;
	view_blocks_begin(&help->blocks, text ? text : "", KEYS_WIDTH);
}

/* What @screen shows, and its words. */
static void view_help_screen(struct view_help *help, enum view_screen screen)
{
	const struct view_help_told *told = view_help_told(screen);
	const struct view_help_word *word = told->words;

	view_help_begin(help, "The screen ", view_screen(screen)->title);
	view_blocks_fold(&help->blocks, NULL, VIEW_BOLD, help->line, told->shows);
	view_blocks_text(&help->blocks, VIEW_NORMAL, "%s", "");
	for (; word->text; word++)
		view_help_fact(help, word->word, word->text);
}

/* The screens, by the keys that show them. */
static void view_help_screens(struct view_help *help)
{
	char name[VIEW_KEY_NAME_SIZE + 32], key[VIEW_KEY_NAME_SIZE];

	for (int i = 0; i < VIEW_SCREENS; i++) {
		const struct view_screen_ops *ops = view_screen((enum view_screen)i);

		snprintf(name, sizeof(name), "%s %s", view_key_name(ops->key, key), ops->title);
		view_help_fact(help, name, view_help_told((enum view_screen)i)->answers);
	}
}

/* Keys that do something on the screens @where, in the table's groups; @screen: whose meanings. */
static void view_help_keys(struct view_help *help, unsigned where, enum view_screen screen)
{
	const char *group = "";

	for (int i = VIEW_NONE + 1; i < VIEW_REQUESTS; i++) {
		const enum view_request request = (enum view_request)i;
		const struct view_request_info *info = view_request_info(request);
		char keys[VIEW_KEY_LIST_SIZE];

		if (!(info->screens & where))
			continue;
		if (strcmp(group, info->group) != 0) {
			view_help_begin(help, info->group, "");
			if (strcmp(info->group, VIEW_SCREENS_GROUP) == 0)
				view_help_screens(help);
		}
		group = info->group;
		view_help_fact(help, view_key_list(request, keys),
			       view_help_key_text(screen, request));
	}
}

static void view_help_fill(struct view_help *help, const struct view_context *context)
{
	const enum view_screen about = (enum view_screen)context->about;

	view_blocks_clear(&help->blocks);
	help->blocks.two_from = TWO_FROM;
	help->blocks.heads = context->whole ? VIEW_HELP_SCREEN : 1;
	view_help_width(help, true);
	for (int i = 0; i < VIEW_HELP_SCREEN; i++)
		if (context->whole || i == (int)about)
			view_help_screen(help, (enum view_screen)i);
	view_help_width(help, false);
	if (context->whole)
		view_help_keys(help, VIEW_ON_ALL, VIEW_HELP_SCREEN);
	else
		view_help_keys(help, view_screen_where(about, context), about);
}

static enum status view_help_load(void *state, struct view_context *context, bool news,
				  struct err *err)
{
	struct view_help *help = state;

	(void)news;
	if (help->width == 0 || help->blocks.failed || help->about != context->about ||
	    help->width != context->body.width) {
		if (help->about != context->about)
			help->blocks.scroll = 0;
		help->about = context->about;
		help->width = context->body.width;
		view_help_fill(help, context);
	}
	return view_blocks_fit(&help->blocks, context->body.width, context->body.height, err);
}

static void view_help_draw(const void *state, const struct view_context *context,
			   struct view_pane *pane)
{
	(void)context;
	view_blocks_draw(&((const struct view_help *)state)->blocks, pane);
}

static enum view_answer view_help_request(void *state, struct view_context *context,
					  enum view_request request)
{
	return view_blocks_request(&((struct view_help *)state)->blocks, context->body.height,
				   request);
}

static bool view_help_search(void *state, struct view_context *context, const char *text,
			     bool forward)
{
	return view_blocks_search(&((struct view_help *)state)->blocks, context->body.height, text,
				  forward);
}

static void view_help_status(const void *state, const struct view_context *context, char *out,
			     size_t size)
{
	const struct view_help *help = state;
	char rows[64];

	view_blocks_status(&help->blocks, context->body.height, rows, sizeof(rows));
	snprintf(out, size, "of %s; Esc goes back%s%s%s",
		 view_screen((enum view_screen)help->about)->title, rows[0] ? "; " : "", rows,
		 rows[0] ? ", Space: more" : "");
}

static int view_help_height(const void *state, const struct view_context *context)
{
	(void)context;
	return ((const struct view_help *)state)->blocks.height;
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
