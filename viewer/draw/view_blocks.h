/*
 * Pages of titled blocks of lines, in one to three columns, that scroll: Summary and Help.
 *
 * Filled at load, in an arena; laid out for a width; drawn without a change. One thread.
 */
#ifndef VIEW_BLOCKS_H
#define VIEW_BLOCKS_H

#include "common/arena.h"
#include "viewer/view_screen.h"

#define VIEW_BLOCKS_MOST 48

enum view_line_kind {
	VIEW_LINE_TEXT,
	VIEW_LINE_FACT,
	VIEW_LINE_BAR
};

struct view_line {
	enum view_line_kind kind;
	enum view_style style; /* of the value, or of the bar */
	const char *name, *value;
	double part, mark; /* a bar: filled share and where a mark stands, 0 .. 1; NaN: none */
	int link;          /* its giver's: the cursor stops here; 0: it does not */
	const char *note;  /* at the right edge, the giver's; NULL: none */
};

struct view_block {
	const char *title;
	struct view_line *lines;
	size_t count, capacity;
	int name_width;
	struct view_rect place; /* title included, relative to the page */
};

struct view_blocks {
	struct arena arena; /* owns the texts */
	struct view_block block[VIEW_BLOCKS_MOST];
	int count, height, width, scroll;
	int found; /* the cursor or the last match, lines counted through all blocks; -1 */
	int heads; /* so many first blocks are as wide as the page, above the columns */
	int later; /* this block and those behind it stand below the columns of the others; 0: none */
	int two_from; /* two columns on screens as wide as that, three on 7/4 of it; 0: 98 */
	bool folds;   /* lines too long for their column go on in the next */
	bool failed;  /* memory was short */
};

void view_blocks_fini(struct view_blocks *blocks);
void view_blocks_clear(struct view_blocks *blocks);
/* Begin a block; lines go to the last one begun. Texts must live as long as the blocks' arena. */
void view_blocks_begin(struct view_blocks *blocks, const char *title, int name_width);
void view_blocks_fact(struct view_blocks *blocks, const char *name, enum view_style style,
		      const char *format, ...) __attribute__((format(printf, 4, 5)));
void view_blocks_text(struct view_blocks *blocks, enum view_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The words of @text in lines of at most @width columns (lines of its own stay apart); where
 * @named, the first has it as its name and the others none. */
void view_blocks_fold(struct view_blocks *blocks, const char *named, enum view_style style,
		      int width, const char *text);
void view_blocks_bar(struct view_blocks *blocks, const char *name, enum view_style style,
		     double part, double mark, const char *format, ...)
	__attribute__((format(printf, 6, 7)));

/* The line added last is one that the cursor stops at. */
void view_blocks_link(struct view_blocks *blocks, int link);
/* The link of the line under the cursor; 0: none. */
int view_blocks_linked(const struct view_blocks *blocks);
/* The cursor goes to the line at @x, @y of the pane that the page is drawn in; false: there is none
 * that it stops at. */
bool view_blocks_click(struct view_blocks *blocks, int x, int y);

/* Columns of a line, its name included, on a page of @width: of the blocks above the columns, or of
 * those in them. */
int view_blocks_line_width(const struct view_blocks *blocks, bool head, int width);
/* Place the blocks; ST_NOMEM where an addition failed. */
enum status view_blocks_fit(struct view_blocks *blocks, int width, int height, struct err *err);
void view_blocks_draw(const struct view_blocks *blocks, struct view_pane *pane);
enum view_answer view_blocks_request(struct view_blocks *blocks, int height,
				     enum view_request request);
bool view_blocks_search(struct view_blocks *blocks, struct view_context *context, int height,
			const char *text, bool forward);
void view_blocks_status(const struct view_blocks *blocks, int height, char *out, size_t size);

#endif /* VIEW_BLOCKS_H */
