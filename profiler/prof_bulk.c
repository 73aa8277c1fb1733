/*
 * Bulk loading of tables. See prof_bulk.h.
 *
 * A tree grows from its leaves: rows fill the one open leaf; a full leaf is staged, and a divider,
 * its number with the key that separates it from the next, goes to the open page one level up,
 * which does the same when it is full. So a tree has one open page for each level, whatever its
 * size, and at the end the open pages are the right edge of the tree.
 *
 * Until the join a page's number is its place in the staging file; pages above the leaves, which
 * have numbers of others in them, are changed while they are copied.
 */
#include "profiler/prof_bulk.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "profiler/prof_insert.h"
#include "profiler/prof_sql.h"

#define LEVELS_MOST  12                           /* of which a page has 16 children or more */
#define COLUMNS_MOST 24                           /* a record's head has one byte of size */
#define CELL_MOST    (PROF_BULK_MOST + 4 + 9 + 9) /* with a page's number, a size and a row id */
#define LOCK_PAGE    (0x40000000u / PROF_PAGE_BYTES + 1u) /* SQLite locks its bytes: no content */

/* Places of fields in the file's header. */
enum {
	HEADER_PAGE_SIZE = 16,
	HEADER_RESERVED = 20,
	HEADER_CHANGES = 24,
	HEADER_PAGES = 28,
	HEADER_SCHEMA_FORMAT = 44,
	HEADER_LARGEST_ROOT = 52, /* 0: no auto-vacuum */
	HEADER_ENCODING = 56,
	HEADER_VALID_FOR = 92, /* the number of changes that the number of pages is of */
	HEADER_BYTES = 100
};

struct page {
	unsigned char bytes[PROF_PAGE_BYTES];
	size_t cells, top; /* cells lie from @top to the page's end, the last one first */
};

struct cell {
	size_t size;
	unsigned char bytes[CELL_MOST];
};

struct prof_bulk_table {
	struct prof_bulk *bulk;
	struct prof_bulk_table *next;
	char *name;
	enum prof_bulk_kind kind;
	bool keyed; /* WITHOUT ROWID */
	size_t columns, keys;
	uint32_t root;                    /* the page of the table in the database */
	int64_t last[4];                  /* the row id, or the key, of the last row given */
	int64_t leaf_last;                /* the row id of the last row in the leaf */
	struct page *levels[LEVELS_MOST]; /* the open pages; 0: the leaf */
	struct page *top;                 /* at the end, the topmost; NULL: the table has no row */
};

struct prof_bulk {
	sqlite3 *db;
	struct prof_bulk_table *tables;
	int fd; /* -1: no page is staged yet */
	uint32_t staged;
};

/* ---- numbers --------------------------------------------------------------------------------- */

static void put_2(unsigned char *out, size_t value)
{
	const uint16_t big = htobe16((uint16_t)value);

	memcpy(out, &big, sizeof(big));
}

static size_t get_2(const unsigned char *in)
{
	return (size_t)in[0] << 8 | in[1];
}

static void put_4(unsigned char *out, uint32_t value)
{
	const uint32_t big = htobe32(value);

	memcpy(out, &big, sizeof(big));
}

static uint32_t get_4(const unsigned char *in)
{
	return (uint32_t)(get_2(in) << 16 | get_2(in + 2));
}

static size_t varint_bytes(uint64_t value)
{
	return (70 - (size_t)__builtin_clzll(value | 1)) / 7;
}

/* Write a varint below 2^56, the most significant 7 bits first, and return its bytes. */
static size_t put_varint(unsigned char *out, uint64_t value)
{
	const size_t bytes = varint_bytes(value);

	out[bytes - 1] = (unsigned char)(value & 0x7f);
	for (size_t i = bytes - 1; i-- > 0;) {
		value >>= 7;
		out[i] = (unsigned char)(value | 0x80);
	}
	return bytes;
}

/* The same before @end; return its first byte. */
static unsigned char *put_varint_before(unsigned char *end, uint64_t value)
{
	*--end = (unsigned char)(value & 0x7f);
	while (value >>= 7)
		*--end = (unsigned char)(value | 0x80);
	return end;
}

/* ---- records --------------------------------------------------------------------------------- */

/* A row as it is in a page, from @head on: the bytes of the types with this number, the types, the
 * values. Before @head is room for the row's size, which is known last, and its id. Behind
 * PROF_BULK_MOST bytes of values each column may have a number more, and 8 bytes may be written. */
struct record {
	unsigned char *head, *end;
	unsigned char bytes[9 + 9 + 1 + COLUMNS_MOST * 3 + PROF_BULK_MOST + (COLUMNS_MOST + 1) * 8];
};

static const unsigned char value_bytes[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0}; /* by type */

/* Write the low bytes of @bits that a value of @type has; 8 may be written. Return the type. */
static unsigned put_value(unsigned char *out, unsigned type, uint64_t bits)
{
	const uint64_t big = htobe64(bits << (-8u * value_bytes[type] & 63));

	memcpy(out, &big, sizeof(big));
	return type;
}

static unsigned put_int(unsigned char *out, int64_t value)
{
	/* by the bytes that a value takes with its sign */
	static const unsigned char types[] = {0, 1, 2, 3, 4, 5, 5, 6, 6};
	const uint64_t magnitude = (uint64_t)(value < 0 ? ~value : value);
	const unsigned bits = 64 - (unsigned)__builtin_clzll(magnitude | 1);

	if ((uint64_t)value <= 1)
		return 8 + (unsigned)value;
	return put_value(out, types[bits / 8 + 1], (uint64_t)value);
}

/* Without a key a whole number is stored as an integer, as in a column of the type REAL. */
static unsigned put_real(unsigned char *out, double value, bool keyed)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	if (value != value)
		return 0;
	if (!keyed && value > -0x1p47 && value < 0x1p47 && value == (double)(int64_t)value)
		return put_int(out, (int64_t)value);
	return put_value(out, 7, bits);
}

/* Fill @record from @cells; false: too long, or with a blob. The id of a rowid table is NULL. */
static bool make_record(const struct prof_bulk_table *table, const struct prof_cell *cells,
			struct record *record)
{
	unsigned char *types = record->bytes + 9 + 9 + 1;
	unsigned char *first = types + table->columns + (table->kind == PROF_BULK_ASSIGNED);
	unsigned char *values = first;

	record->head = types - 1;
	if (!table->keyed)
		*types++ = 0;
	for (size_t i = table->kind == PROF_BULK_ROWID; i < table->columns; i++) {
		const struct prof_cell *cell = &cells[i];
		unsigned type = 0;

		if (cell->type == PROF_CELL_INT) {
			type = put_int(values, cell->value.i);
		} else if (cell->type == PROF_CELL_REAL) {
			type = put_real(values, cell->value.r, table->keyed);
		} else if (cell->type == PROF_CELL_TEXT) {
			const size_t size = strlen(cell->value.p);
			const size_t more = varint_bytes(2 * size + 13) - 1;

			if ((size_t)(values - first) + size > PROF_BULK_MOST)
				return false;
			/* The values give room to a type that has more than one byte. */
			if (more > 0)
				memmove(first + more, first, (size_t)(values - first));
			first += more;
			values += more;
			types += put_varint(types, 2 * size + 13);
			memcpy(values, cell->value.p, size);
			values += size;
			continue;
		} else if (cell->type == PROF_CELL_BLOB) {
			return false;
		}
		*types++ = (unsigned char)type;
		values += value_bytes[type];
	}
	*record->head = (unsigned char)(types - record->head);
	record->end = values;
	return record->end - record->head <= PROF_BULK_MOST;
}

/* ---- pages ----------------------------------------------------------------------------------- */

static size_t head_bytes(size_t depth)
{
	return depth == 0 ? 8 : 12;
}

static void page_clear(struct page *page)
{
	memset(page->bytes, 0, sizeof(page->bytes));
	page->cells = 0;
	page->top = PROF_PAGE_BYTES;
}

/* Return the place of a new last cell; NULL: it does not fit. */
static unsigned char *page_room(struct page *page, size_t depth, size_t size)
{
	const size_t pointers = head_bytes(depth) + 2 * page->cells;

	if (pointers + 2 + size > page->top)
		return NULL;
	page->top -= size;
	put_2(page->bytes + pointers, page->top);
	page->cells++;
	return page->bytes + page->top;
}

/* Append a cell; false: it does not fit. */
static bool page_push(struct page *page, size_t depth, const struct cell *cell)
{
	unsigned char *place = page_room(page, depth, cell->size);

	if (place)
		memcpy(place, cell->bytes, cell->size);
	return place != NULL;
}

/* Move the last cell out of the page. */
static void page_pop(struct page *page, size_t depth, struct cell *out)
{
	unsigned char *pointer = page->bytes + head_bytes(depth) + 2 * --page->cells;
	const size_t end = page->cells == 0 ? PROF_PAGE_BYTES : get_2(pointer - 2);

	out->size = end - page->top;
	memcpy(out->bytes, page->bytes + page->top, out->size);
	page->top = end;
}

/* Write the page's head. @right: above the leaves, its last child. */
static void page_finish(const struct prof_bulk_table *table, struct page *page, size_t depth,
			uint32_t right)
{
	/* the leaves' types are those of the inner pages, and 8 */
	page->bytes[0] = (unsigned char)((table->keyed ? 2 : 5) + (depth == 0 ? 8 : 0));
	put_2(page->bytes + 3, page->cells);
	put_2(page->bytes + 5, page->top);
	if (depth > 0)
		put_4(page->bytes + 8, right);
}

static enum status write_page(int fd, uint32_t number, const unsigned char *bytes, struct err *err)
{
	return fs_write_at(fd, (uint64_t)number * PROF_PAGE_BYTES, bytes, PROF_PAGE_BYTES, "rows",
			   err);
}

/* Stage the open page of @depth and clear it; *@number: its place in the file. */
static enum status stage(struct prof_bulk_table *table, size_t depth, uint32_t right,
			 uint32_t *number, struct err *err)
{
	struct prof_bulk *bulk = table->bulk;
	struct page *page = table->levels[depth];
	enum status status = ST_OK;

	if (bulk->fd < 0)
		status = fs_unnamed(sqlite3_db_filename(bulk->db, NULL), &bulk->fd, err);
	page_finish(table, page, depth, right);
	*number = bulk->staged++;
	if (status == ST_OK)
		status = write_page(bulk->fd, *number, page->bytes, err);
	page_clear(page);
	return status;
}

/* ---- growing --------------------------------------------------------------------------------- */

static enum status level_at(struct prof_bulk_table *table, size_t depth, struct page **out,
			    struct err *err)
{
	assert(depth < LEVELS_MOST);
	*out = table->levels[depth];
	if (*out)
		return ST_OK;
	*out = table->levels[depth] = mem_alloc(sizeof(**out));
	if (!*out)
		return err_nomem(err);
	page_clear(*out);
	return ST_OK;
}

/* Put @divider, a page's number and its key, into the pages above the leaves. A page that is full
 * leaves its last two cells to the next one, which so has as many as SQLite expects; the cell
 * before those becomes its divider. */
static enum status add_divider(struct prof_bulk_table *table, struct cell *divider, struct err *err)
{
	struct cell last, before, up;
	enum status status = ST_OK;

	for (size_t depth = 1; status == ST_OK; depth++) {
		struct page *page;
		uint32_t number = 0;

		status = level_at(table, depth, &page, err);
		if (status != ST_OK || page_push(page, depth, divider))
			break;
		page_pop(page, depth, &last);
		page_pop(page, depth, &before);
		page_pop(page, depth, &up);
		status = stage(table, depth, get_4(up.bytes), &number, err);
		page_push(page, depth, &before);
		page_push(page, depth, &last);
		page_push(page, depth, divider);
		put_4(up.bytes, number);
		*divider = up;
	}
	return status;
}

/* Stage the full leaf. The divider of a rowid table is a copy of the last row's id; that of a table
 * of keys is the last row itself, which leaves the leaf. */
static enum status turn_leaf(struct prof_bulk_table *table, struct err *err)
{
	struct cell row = {.size = 0}, divider;
	uint32_t number = 0;
	enum status status;

	if (table->keyed)
		page_pop(table->levels[0], 0, &row);
	else
		row.size = put_varint(row.bytes, (uint64_t)table->leaf_last);
	status = stage(table, 0, 0, &number, err);
	put_4(divider.bytes, number);
	memcpy(divider.bytes + 4, row.bytes, row.size);
	divider.size = 4 + row.size;
	return status == ST_OK ? add_divider(table, &divider, err) : status;
}

enum status prof_bulk_put(struct prof_bulk_table *table, const struct prof_cell *cells,
			  bool *loaded, struct err *err)
{
	int64_t key[4] = {table->last[0] + 1, 0, 0, 0};
	unsigned char *place, *begin;
	struct record record;
	struct page *page;
	size_t size, same = 0;
	enum status status = level_at(table, 0, &page, err);

	*loaded = false;
	for (size_t i = 0; i < table->keys && table->kind != PROF_BULK_ASSIGNED; i++)
		key[i] = cells[i].value.i;
	while (same + 1 < table->keys && key[same] == table->last[same])
		same++;
	if (status != ST_OK || key[0] >> 55 != 0 || key[same] <= table->last[same])
		return status;
	/* Rows that follow one that is inserted, with its key, are inserted, too: they replace it. */
	memcpy(table->last, key, sizeof(key));
	if (!make_record(table, cells, &record)) {
		assert(table->kind != PROF_BULK_ASSIGNED);
		return ST_OK;
	}
	begin = record.head;
	if (!table->keyed)
		begin = put_varint_before(begin, (uint64_t)key[0]);
	begin = put_varint_before(begin, (uint64_t)(record.end - record.head));
	size = (size_t)(record.end - begin);
	place = page_room(page, 0, size);
	if (!place) {
		status = turn_leaf(table, err);
		place = page_room(page, 0, size);
	}
	memcpy(place, begin, size);
	table->leaf_last = key[0];
	*loaded = status == ST_OK;
	return status;
}

/* ---- life ------------------------------------------------------------------------------------ */

enum status prof_bulk_new(struct prof_bulk **out, sqlite3 *db, struct err *err)
{
	const int fd = open(sqlite3_db_filename(db, NULL), O_RDONLY | O_CLOEXEC);
	unsigned char header[HEADER_BYTES];
	enum status status;

	*out = NULL;
	if (fd < 0)
		return err_set(err, ST_IO, "cannot open: %s", strerror(errno));
	status = fs_read_at(fd, 0, header, sizeof(header), "header", err);
	close(fd);
	if (status != ST_OK || get_2(header + HEADER_PAGE_SIZE) != PROF_PAGE_BYTES ||
	    header[HEADER_RESERVED] != 0 || get_4(header + HEADER_SCHEMA_FORMAT) != 4 ||
	    get_4(header + HEADER_LARGEST_ROOT) != 0 || get_4(header + HEADER_ENCODING) != 1)
		return status;
	*out = mem_calloc(1, sizeof(**out));
	if (!*out)
		return err_nomem(err);
	(*out)->db = db;
	(*out)->fd = -1;
	return ST_OK;
}

void prof_bulk_free(struct prof_bulk *bulk)
{
	if (!bulk)
		return;
	for (struct prof_bulk_table *table = bulk->tables, *next; table; table = next) {
		next = table->next;
		for (size_t i = 0; i < LEVELS_MOST; i++)
			mem_free(table->levels[i]);
		mem_free(table->name);
		mem_free(table);
	}
	if (bulk->fd >= 0)
		close(bulk->fd);
	mem_free(bulk);
}

enum status prof_bulk_table(struct prof_bulk *bulk, const char *name, enum prof_bulk_kind kind,
			    size_t columns, struct prof_bulk_table **out, struct err *err)
{
	struct prof_bulk_table *table = mem_calloc(1, sizeof(*table));
	sqlite3_stmt *statement = NULL;
	int code;

	assert(columns >= 2 && columns < COLUMNS_MOST);
	*out = NULL;
	if (!table)
		return err_nomem(err);
	table->bulk = bulk;
	table->kind = kind;
	table->keyed = kind >= PROF_BULK_KEYS;
	table->keys = kind == PROF_BULK_4_KEYS ? 4 : kind == PROF_BULK_KEYS ? 2 : 1;
	table->columns = columns;
	table->next = bulk->tables;
	bulk->tables = table;
	table->name = mem_strdup(name);
	if (!table->name)
		return err_nomem(err);
	*out = table;
	code = sqlite3_prepare_v2(
		bulk->db,
		"SELECT rootpage FROM main.sqlite_schema WHERE type = 'table' AND name = ?", -1,
		&statement, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_bind_text(statement, 1, table->name, -1, SQLITE_STATIC);
	if (code == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
		table->root = (uint32_t)sqlite3_column_int64(statement, 0);
	code = sqlite3_finalize(statement);
	return code == SQLITE_OK && table->root > 0
		       ? ST_OK
		       : prof_sql_error(bulk->db, code, err, "load rows");
}

uint64_t prof_bulk_pages(const struct prof_bulk *bulk)
{
	return bulk->staged;
}

/* ---- joining --------------------------------------------------------------------------------- */

/* Return the number in a database that had @pages pages of the staged page @number. */
static uint32_t place_of(uint32_t pages, uint32_t number)
{
	const uint32_t place = pages + 1 + number;

	return pages < LOCK_PAGE && place >= LOCK_PAGE ? place + 1 : place;
}

/* Replace the staged numbers of an inner page's children. */
static void relocate(unsigned char *page, uint32_t pages)
{
	const size_t cells = get_2(page + 3);

	if (page[0] >= 8)
		return;
	put_4(page + 8, place_of(pages, get_4(page + 8)));
	for (size_t i = 0; i < cells; i++) {
		unsigned char *child = page + get_2(page + 12 + 2 * i);

		put_4(child, place_of(pages, get_4(child)));
	}
}

/* Append all pages to the database @fd, the topmost ones in the tables' places. */
static enum status write_trees(struct prof_bulk *bulk, int fd, struct err *err)
{
	unsigned char header[HEADER_BYTES] = {0};
	enum status status = fs_read_at(fd, 0, header, sizeof(header), "header", err);
	const uint32_t pages = get_4(header + HEADER_PAGES);

	/* The open pages but the topmost are staged. */
	for (struct prof_bulk_table *t = bulk->tables; t && status == ST_OK; t = t->next) {
		uint32_t child = 0;
		size_t depth = 0;

		if (!t->levels[0] || t->levels[0]->cells == 0)
			continue;
		for (; depth + 1 < LEVELS_MOST && t->levels[depth + 1] && status == ST_OK; depth++)
			status = stage(t, depth, child, &child, err);
		t->top = t->levels[depth];
		page_finish(t, t->top, depth, child);
	}
	if (status == ST_OK) {
		unsigned char page[PROF_PAGE_BYTES];

		for (uint32_t i = 0; i < bulk->staged && status == ST_OK; i++) {
			status = fs_read_at(bulk->fd, (uint64_t)i * PROF_PAGE_BYTES, page,
					    sizeof(page), "rows", err);
			if (status != ST_OK)
				break;
			relocate(page, pages);
			status = write_page(fd, place_of(pages, i) - 1, page, err);
		}
	}
	for (struct prof_bulk_table *t = bulk->tables; t && status == ST_OK; t = t->next) {
		if (!t->top)
			continue;
		relocate(t->top->bytes, pages);
		status = write_page(fd, t->root - 1, t->top->bytes, err);
	}
	if (status != ST_OK)
		return status;
	put_4(header + HEADER_CHANGES, get_4(header + HEADER_CHANGES) + 1);
	put_4(header + HEADER_VALID_FOR, get_4(header + HEADER_CHANGES));
	if (bulk->staged > 0)
		put_4(header + HEADER_PAGES, place_of(pages, bulk->staged - 1));
	return fs_write_at(fd, 0, header, sizeof(header), "header", err);
}

/* Move the rows of all tables to temporary tables, or @back. */
static enum status move_rows(struct prof_bulk *bulk, bool back, struct err *err)
{
	struct str sql = {0};
	enum status status;

	for (const struct prof_bulk_table *t = bulk->tables; t; t = t->next)
		str_addf(&sql,
			 back ? "INSERT OR REPLACE INTO main.%s SELECT * FROM temp.inserted_%s; "
				"DROP TABLE temp.inserted_%s;"
			      : "CREATE TEMP TABLE inserted_%s AS SELECT * FROM main.%s; "
				"DELETE FROM main.%s;",
			 t->name, t->name, t->name);
	status = sql.failed ? err_nomem(err) : prof_sql_run(bulk->db, str_peek(&sql), err);
	str_free(&sql);
	return status;
}

enum status prof_bulk_join(struct prof_bulk *bulk, struct err *err)
{
	/* What SQLite has inserted waits in temporary tables. */
	enum status status = move_rows(bulk, false, err);
	int fd;

	/* The lock of an exclusive connection is released by its next read. From then on SQLite
	 * compares the file's number of changes before it believes its own cache. */
	if (status == ST_OK)
		status = prof_sql_run(bulk->db,
				      "PRAGMA main.locking_mode=NORMAL; "
				      "SELECT 1 FROM main.sqlite_schema LIMIT 1",
				      err);
	if (status != ST_OK)
		return status;
	fd = open(sqlite3_db_filename(bulk->db, NULL), O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, ST_IO, "cannot open: %s", strerror(errno));
	status = write_trees(bulk, fd, err);
	close(fd);
	return status == ST_OK ? move_rows(bulk, true, err) : status;
}
