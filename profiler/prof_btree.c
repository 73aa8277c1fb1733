/*
 * Building a table's pages. See prof_btree.h.
 *
 * A level is a page that is being filled; what does not fit goes up as the divider between that
 * page and the next. The divider waits (`pending`) until the next page has a first cell, because a
 * page must not stay empty: at the end the page before gives its last cell instead.
 */
#include "profiler/prof_btree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/mem.h"

#define MOST_LEVELS 16 /* SQLite follows 20 */
#define CELL_BYTES  (PROF_BTREE_MOST + 32 + 4 + 2 * 9)
#define LOCK_PAGE   (0x40000000u / PROF_PAGE_BYTES + 1) /* never used: SQLite locks its bytes */
#define JOIN_PAGES  64                                  /* copied at once */

enum {
	PAGE_KEYS_INNER = 2,
	PAGE_ROWS_INNER = 5,
	PAGE_KEYS_LEAF = 10,
	PAGE_ROWS_LEAF = 13
};

struct cell {
	size_t size;
	unsigned char bytes[CELL_BYTES];
};

struct level {
	unsigned char page[PROF_PAGE_BYTES];
	size_t cells, top; /* the cells are at @top and behind */
	bool is_pending;
	struct cell pending;
};

struct prof_btree {
	enum prof_btree_kind kind;
	int fd;
	uint32_t staged; /* pages in the file */
	int64_t last_row;
	struct level *levels[MOST_LEVELS];
	struct cell next;
};

/* ---- numbers --------------------------------------------------------------------------------- */

static void put_2(unsigned char *out, size_t value)
{
	out[0] = (unsigned char)(value >> 8);
	out[1] = (unsigned char)value;
}

static size_t get_2(const unsigned char *in)
{
	return (size_t)in[0] << 8 | in[1];
}

static void put_4(unsigned char *out, uint32_t value)
{
	put_2(out, value >> 16);
	put_2(out + 2, value & 0xffff);
}

static uint32_t get_4(const unsigned char *in)
{
	return (uint32_t)(get_2(in) << 16 | get_2(in + 2));
}

/* ---- pages ----------------------------------------------------------------------------------- */

static size_t head_size(size_t depth)
{
	return depth == 0 ? 8 : 12;
}

static void level_clear(struct level *level)
{
	memset(level->page, 0, sizeof(level->page));
	level->cells = 0;
	level->top = PROF_PAGE_BYTES;
	level->is_pending = false;
}

/* The place of a new last cell of @size bytes; NULL: it does not fit. */
static unsigned char *level_room(struct level *level, size_t depth, size_t size)
{
	const size_t pointers = head_size(depth) + 2 * level->cells;

	if (pointers + 2 + size > level->top)
		return NULL;
	level->top -= size;
	put_2(level->page + pointers, level->top);
	level->cells++;
	return level->page + level->top;
}

static bool level_add(struct level *level, size_t depth, const struct cell *cell)
{
	unsigned char *place = level_room(level, depth, cell->size);

	if (place)
		memcpy(place, cell->bytes, cell->size);
	return place != NULL;
}

/* The last cell of the page leaves it. */
static void level_take_last(struct level *level, size_t depth, struct cell *out)
{
	unsigned char *pointers = level->page + head_size(depth);
	size_t above;

	level->cells--;
	above = level->cells == 0 ? PROF_PAGE_BYTES : get_2(pointers + 2 * (level->cells - 1));
	out->size = above - level->top;
	memcpy(out->bytes, level->page + level->top, out->size);
	level->top = above;
	put_2(pointers + 2 * level->cells, 0);
}

/* The page's head. @right: its last child, where it has any. */
static void level_finish(const struct prof_btree *tree, struct level *level, size_t depth,
			 uint32_t right)
{
	static const unsigned char types[2][2] = {
		[PROF_BTREE_ROWS] = {PAGE_ROWS_LEAF, PAGE_ROWS_INNER},
		[PROF_BTREE_KEYS] = {PAGE_KEYS_LEAF, PAGE_KEYS_INNER},
	};

	memset(level->page, 0, head_size(depth));
	level->page[0] = types[tree->kind][depth > 0];
	put_2(level->page + 3, level->cells);
	put_2(level->page + 5, level->top);
	if (depth > 0)
		put_4(level->page + 8, right);
}

static enum status write_all(int fd, const unsigned char *bytes, size_t size, off_t at,
			     struct err *err)
{
	while (size > 0) {
		ssize_t put = pwrite(fd, bytes, size, at);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return err_set(err, errno == ENOSPC ? ST_NOSPACE : ST_IO, "write rows: %s",
				       strerror(errno));
		bytes += put;
		size -= (size_t)put;
		at += put;
	}
	return ST_OK;
}

static enum status read_all(int fd, unsigned char *bytes, size_t size, off_t at, struct err *err)
{
	while (size > 0) {
		ssize_t got = pread(fd, bytes, size, at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return err_set(err, ST_IO, "read rows: %s",
				       got < 0 ? strerror(errno) : "the file is cut");
		bytes += got;
		size -= (size_t)got;
		at += got;
	}
	return ST_OK;
}

/* The page goes to the file as number *@number, from 0. */
static enum status stage(struct prof_btree *tree, struct level *level, size_t depth, uint32_t right,
			 uint32_t *number, struct err *err)
{
	level_finish(tree, level, depth, right);
	*number = tree->staged++;
	return write_all(tree->fd, level->page, PROF_PAGE_BYTES, (off_t)*number * PROF_PAGE_BYTES,
			 err);
}

/* ---- levels ---------------------------------------------------------------------------------- */

static enum status level_at(struct prof_btree *tree, size_t depth, struct level **out,
			    struct err *err)
{
	*out = NULL;
	if (depth >= MOST_LEVELS)
		return err_set(err, ST_LIMIT, "a table of more levels than SQLite reads");
	if (!tree->levels[depth]) {
		tree->levels[depth] = mem_alloc(sizeof(struct level));
		if (!tree->levels[depth])
			return err_nomem(err);
		level_clear(tree->levels[depth]);
	}
	*out = tree->levels[depth];
	return ST_OK;
}

static uint32_t child_of(const struct cell *cell, size_t depth)
{
	return depth == 0 ? 0 : get_4(cell->bytes);
}

/* @divider, of the page @child and its right neighbour, as a cell one level up. */
static void lift(struct cell *divider, size_t depth, uint32_t child)
{
	if (depth == 0) {
		memmove(divider->bytes + 4, divider->bytes, divider->size);
		divider->size += 4;
	}
	put_4(divider->bytes, child);
}

/* Put a cell into the page at @depth and what that page gives up into those above it. */
static enum status add(struct prof_btree *tree, size_t depth, const struct cell *cell,
		       struct err *err)
{
	struct cell now = *cell, up;
	struct level *level;
	enum status status;
	uint32_t page;

	for (;; depth++) {
		status = level_at(tree, depth, &level, err);
		if (status != ST_OK)
			return status;
		if (!level->is_pending) {
			level->is_pending = !level_add(level, depth, &now);
			if (level->is_pending)
				level->pending = now;
			return ST_OK;
		}
		up = level->pending;
		status = stage(tree, level, depth, child_of(&up, depth), &page, err);
		if (status != ST_OK)
			return status;
		level_clear(level);
		level_add(level, depth, &now);
		lift(&up, depth, page);
		now = up;
	}
}

/* A page of rows is full: its last row id goes up, and every row stays. */
static enum status turn_rows(struct prof_btree *tree, struct err *err)
{
	struct cell up;
	uint32_t page;
	enum status status = stage(tree, tree->levels[0], 0, 0, &page, err);

	level_clear(tree->levels[0]); /* even where that failed: what comes has a place */
	if (status != ST_OK)
		return status;
	put_4(up.bytes, page);
	up.size = 4 + prof_varint_put(up.bytes + 4, (uint64_t)tree->last_row);
	return add(tree, 1, &up, err);
}

/* The row as a leaf's cell is: its size, the row id, the types of its values with their own size,
 * the values. */
struct cell_head {
	size_t size; /* of head and row */
	size_t bytes;
	unsigned char text[2 * 9 + 1];
};

static void set_head(const struct prof_btree *tree, int64_t row_id, const struct prof_row_text *row,
		     struct cell_head *head)
{
	head->bytes = prof_varint_put(head->text, 1 + row->types + row->values);
	if (tree->kind == PROF_BTREE_ROWS)
		head->bytes += prof_varint_put(head->text + head->bytes, (uint64_t)row_id);
	head->text[head->bytes++] = (unsigned char)(row->types + 1);
	head->size = head->bytes + row->types + row->values;
}

static void put_cell(unsigned char *out, const struct cell_head *head,
		     const struct prof_row_text *row)
{
	memcpy(out, head->text, head->bytes);
	memcpy(out + head->bytes, row->type, row->types);
	memcpy(out + head->bytes + row->types, row->value, row->values);
}

enum status prof_btree_put(struct prof_btree *tree, int64_t row_id, const struct prof_row_text *row,
			   struct err *err)
{
	struct cell_head head;
	struct level *level;
	enum status status = level_at(tree, 0, &level, err);
	unsigned char *place;

	if (status != ST_OK)
		return status;
	set_head(tree, row_id, row, &head);
	place = level->is_pending ? NULL : level_room(level, 0, head.size);
	if (!place && tree->kind == PROF_BTREE_KEYS) {
		tree->next.size = head.size;
		put_cell(tree->next.bytes, &head, row);
		return add(tree, 0, &tree->next, err);
	}
	if (!place) {
		status = turn_rows(tree, err);
		place = level_room(level, 0, head.size);
	}
	put_cell(place, &head, row);
	tree->last_row = row_id;
	return status;
}

/* The divider that waits gets a page of its own on its right, with one cell. */
static enum status settle(struct prof_btree *tree, size_t depth, struct err *err)
{
	struct level *level = tree->levels[depth];
	struct cell last, first = level->pending;
	enum status status;
	uint32_t page;

	level_take_last(level, depth, &last);
	status = stage(tree, level, depth, child_of(&last, depth), &page, err);
	if (status != ST_OK)
		return status;
	level_clear(level);
	level_add(level, depth, &first);
	lift(&last, depth, page);
	return add(tree, depth + 1, &last, err);
}

/* Every page but the root is in the file; *@root is that. */
static enum status finish(struct prof_btree *tree, struct level **root, struct err *err)
{
	enum status status = ST_OK;
	uint32_t child = 0;

	for (size_t depth = 0;; depth++) {
		struct level *level = tree->levels[depth];

		if (level->is_pending)
			status = settle(tree, depth, err);
		if (status == ST_OK && (depth + 1 == MOST_LEVELS || !tree->levels[depth + 1])) {
			level_finish(tree, level, depth, child);
			*root = level;
			return ST_OK;
		}
		if (status == ST_OK)
			status = stage(tree, level, depth, child, &child, err);
		if (status != ST_OK)
			return status;
	}
}

/* ---- joining --------------------------------------------------------------------------------- */

/* The place of staged page @number in a database that had @pages before. */
static uint32_t place_of(uint32_t pages, uint32_t number)
{
	uint32_t place = pages + 1 + number;

	return pages < LOCK_PAGE && place >= LOCK_PAGE ? place + 1 : place;
}

static void relocate(unsigned char *page, uint32_t pages)
{
	const size_t cells = get_2(page + 3);

	if (page[0] != PAGE_KEYS_INNER && page[0] != PAGE_ROWS_INNER)
		return;
	put_4(page + 8, place_of(pages, get_4(page + 8)));
	for (size_t i = 0; i < cells; i++) {
		unsigned char *child = page + get_2(page + 12 + 2 * i);

		put_4(child, place_of(pages, get_4(child)));
	}
}

static enum status copy_pages(const struct prof_btree *tree, int fd, uint32_t pages,
			      unsigned char *buffer, struct err *err)
{
	enum status status = ST_OK;
	uint32_t count;

	for (uint32_t at = 0; at < tree->staged && status == ST_OK; at += count) {
		count = 0;
		while (count < JOIN_PAGES && at + count < tree->staged &&
		       place_of(pages, at + count) == place_of(pages, at) + count)
			count++;
		status = read_all(tree->fd, buffer, (size_t)count * PROF_PAGE_BYTES,
				  (off_t)at * PROF_PAGE_BYTES, err);
		for (uint32_t i = 0; i < count && status == ST_OK; i++)
			relocate(buffer + (size_t)i * PROF_PAGE_BYTES, pages);
		if (status == ST_OK)
			status = write_all(fd, buffer, (size_t)count * PROF_PAGE_BYTES,
					   (off_t)(place_of(pages, at) - 1) * PROF_PAGE_BYTES, err);
	}
	return status;
}

enum status prof_btree_join(struct prof_btree *tree, int fd, uint32_t root, uint32_t *pages,
			    struct err *err)
{
	unsigned char *buffer;
	struct level *top = NULL;
	enum status status;

	if (!tree->levels[0])
		return ST_OK;
	buffer = mem_alloc((size_t)JOIN_PAGES * PROF_PAGE_BYTES);
	status = !buffer ? err_nomem(err) : finish(tree, &top, err);
	if (status == ST_OK)
		status = copy_pages(tree, fd, *pages, buffer, err);
	if (status == ST_OK) {
		relocate(top->page, *pages);
		status = write_all(fd, top->page, PROF_PAGE_BYTES,
				   (off_t)(root - 1) * PROF_PAGE_BYTES, err);
	}
	if (status == ST_OK && tree->staged > 0)
		*pages = place_of(*pages, tree->staged - 1);
	mem_free(buffer);
	return status;
}

enum status prof_btree_set_pages(int fd, uint32_t pages, struct err *err)
{
	unsigned char head[100];
	enum status status = read_all(fd, head, sizeof(head), 0, err);

	put_4(head + 28, pages);
	put_4(head + 24, get_4(head + 24) + 1); /* the file change counter */
	memcpy(head + 92, head + 24, 4);        /* of which the number of pages is true */
	return status == ST_OK ? write_all(fd, head, sizeof(head), 0, err) : status;
}

/* ---- life ------------------------------------------------------------------------------------ */

enum status prof_btree_new(struct prof_btree **out, enum prof_btree_kind kind, const char *beside,
			   struct err *err)
{
	struct prof_btree *tree = mem_calloc(1, sizeof(*tree));
	char path[FS_PATH_SIZE];

	*out = tree;
	if (!tree)
		return err_nomem(err);
	tree->kind = kind;
	tree->fd = -1;
	if (!fs_path(path, "%s.rows.XXXXXX", beside))
		return err_set(err, ST_INVALID, "%s: the path is too long", beside);
	tree->fd = mkostemp(path, O_CLOEXEC);
	if (tree->fd < 0)
		return err_set(err, errno == ENOSPC ? ST_NOSPACE : ST_IO, "%s: cannot write: %s",
			       path, strerror(errno));
	unlink(path);
	return ST_OK;
}

void prof_btree_free(struct prof_btree *tree)
{
	if (!tree)
		return;
	for (size_t i = 0; i < MOST_LEVELS; i++)
		mem_free(tree->levels[i]);
	if (tree->fd >= 0)
		close(tree->fd);
	mem_free(tree);
}
