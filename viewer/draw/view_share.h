/*
 * Sharing out many things among few cells, and few among many.
 */
#ifndef VIEW_SHARE_H
#define VIEW_SHARE_H

#include <stdint.h>

/* @count * @at / @cells, of any count. */
static inline int64_t view_share_begin(int64_t count, int cells, int at)
{
	return count / cells * at + count % cells * at / cells;
}

/* The things @from .. @to - 1 of @count that fall on cell @at of @cells: at least one, and each on
 * one cell at least. */
static inline void view_share(int64_t count, int cells, int at, int64_t *from, int64_t *to)
{
	*from = view_share_begin(count, cells, at);
	*to = view_share_begin(count, cells, at + 1);
	if (*to <= *from)
		*to = *from + 1;
}

/* The first cell of @cells that thing @index of @count falls on. */
static inline int view_share_cell(int64_t count, int cells, int64_t index)
{
	/* The least cell whose share ends beyond the thing; of very many, about that. */
	if (count > INT64_MAX / cells)
		return (int)(index / (count / cells + 1));
	return count >= cells ? (int)(((index + 1) * cells - 1) / count)
			      : (int)((index * cells + count - 1) / count);
}

#endif /* VIEW_SHARE_H */
