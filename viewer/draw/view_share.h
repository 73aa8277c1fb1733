/*
 * Distribute items over cells, whichever are more. Pure functions.
 */
#ifndef VIEW_SHARE_H
#define VIEW_SHARE_H

#include <stdint.h>

/* @count * @at / @cells without overflow. */
static inline int64_t view_share_begin(int64_t count, int cells, int at)
{
	return count / cells * at + count % cells * at / cells;
}

/* The items @from .. @to - 1 of @count that belong to cell @at of @cells. Every cell has at least
 * one item and every item at least one cell. */
static inline void view_share(int64_t count, int cells, int at, int64_t *from, int64_t *to)
{
	*from = view_share_begin(count, cells, at);
	*to = view_share_begin(count, cells, at + 1);
	if (*to <= *from)
		*to = *from + 1;
}

/* The first of @cells cells that item @index of @count belongs to. */
static inline int view_share_cell(int64_t count, int cells, int64_t index)
{
	/* The least cell whose share ends beyond the item; approximate for very large counts. */
	if (count > INT64_MAX / cells)
		return (int)(index / (count / cells + 1));
	return count >= cells ? (int)(((index + 1) * cells - 1) / count)
			      : (int)((index * cells + count - 1) / count);
}

#endif /* VIEW_SHARE_H */
