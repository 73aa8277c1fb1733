/*
 * Scrolling pages of titled blocks of lines in one to three columns (Summary and Help).
 *
 * Blocks are filled at load in an arena and laid out for a width; drawing does not change them. One
 * thread.
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
	double part, mark; /* of a bar: filled share and position of a mark, 0 .. 1; NaN: none */
	int link;          /* the caller's id; the cursor stops at lines with one; 0: none */
	const char *note;  /* right-aligned, owned by the caller; NULL: none */
};

struct view_block {
	const char *title;
	struct view_line *lines;
	size_t count, capacity;
	int name_width;
	struct view_rect place; /* including the title, relative to the page */
};

struct view_blocks {
	struct arena arena; /* owns the texts */
	struct view_block block[VIEW_BLOCKS_MOST];
	int count, height, width, scroll;
	int found; /* line of the cursor or the last match, counted through all blocks; -1: none */
	int heads; /* number of first blocks that span the page, above the columns */
	int later; /* this block and those after it lie below the columns of the others; 0: none */
	int two_from; /* least width of two columns; three need 7/4 of it; 0: 98 */
	bool folds;   /* wrap lines that are too long for their column */
	bool failed;  /* out of memory or of blocks */
};

void view_blocks_fini(struct view_blocks *blocks);
void view_blocks_clear(struct view_blocks *blocks);
/* Begin a block; lines are added to the last block. @title and names must live as long as the
 * arena. */
void view_blocks_begin(struct view_blocks *blocks, const char *title, int name_width);
void view_blocks_fact(struct view_blocks *blocks, const char *name, enum view_style style,
		      const char *format, ...) __attribute__((format(printf, 4, 5)));
void view_blocks_text(struct view_blocks *blocks, enum view_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Wrap @text into lines of at most @width columns; its newlines are kept. If @named is not NULL, it
 * is the name of the first line; the other lines have none. */
void view_blocks_fold(struct view_blocks *blocks, const char *named, enum view_style style,
		      int width, const char *text);
void view_blocks_bar(struct view_blocks *blocks, const char *name, enum view_style style,
		     double part, double mark, const char *format, ...)
	__attribute__((format(printf, 6, 7)));

/* Let the cursor stop at the line added last. */
void view_blocks_link(struct view_blocks *blocks, int link);
/* The link of the line under the cursor; 0: none. */
int view_blocks_linked(const struct view_blocks *blocks);
/* Move the cursor to the line at @x, @y of the pane in which the page is drawn. Return false if no
 * line with a link is there. */
bool view_blocks_click(struct view_blocks *blocks, int x, int y);

/* Columns of a line, its name included, on a page of @width: of the blocks above the columns
 * (@head) or in them. */
int view_blocks_line_width(const struct view_blocks *blocks, bool head, int width);
/* Lay out the blocks. Return ST_NOMEM if an earlier addition failed. */
enum status view_blocks_fit(struct view_blocks *blocks, int width, int height, struct err *err);
void view_blocks_draw(const struct view_blocks *blocks, struct view_pane *pane);
enum view_answer view_blocks_request(struct view_blocks *blocks, int height,
				     enum view_request request);
bool view_blocks_search(struct view_blocks *blocks, struct view_context *context, int height,
			const char *text, bool forward);
void view_blocks_status(const struct view_blocks *blocks, int height, char *out, size_t size);

#endif /* VIEW_BLOCKS_H */
