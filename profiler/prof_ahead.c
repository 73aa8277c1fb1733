/*
 * Rows read ahead. See prof_db_internal.h.
 *
 * Blocks form a ring: the thread fills those from `filled` on, the caller empties that of `taken`.
 * `lock` guards both numbers, `stop` and `ended`; a block belongs to the thread until it is filled,
 * and to the caller until it is taken.
 */
#include "profiler/prof_db_internal.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/mem.h"
#include "common/pool.h"

#define BLOCKS      3
#define BLOCK_ROWS  1024 /* a thread that waits is woken a thousand times for a million */
#define BLOCK_BYTES ((size_t)256 << 10) /* of texts and blobs, with which a block is full */
#define NUMBER_SIZE 24
#define AGAIN_NS    1000000 /* between interrupts of a thread that is to end */

struct value {
	int type; /* SQLite's */
	union {
		int64_t i; /* 0 of NULL */
		size_t at; /* of a real, a text or a blob: of struct other, and its bytes and a 0 */
	} is;
};

/* What is neither NULL nor an integer, as each of these. */
struct other {
	int64_t i;
	double r;
	size_t size;
};

struct block {
	struct value *values; /* by row and column */
	size_t rows;
	char *others;
	size_t used, room;
	bool last;
	struct err failure; /* behind the rows of the last block */
};

struct prof_ahead {
	sqlite3_stmt *statement;
	prof_ahead_step step;
	void *user;
	size_t columns;
	struct block blocks[BLOCKS];
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t filled, taken;
	bool stop, ended;
	/* the caller's */
	struct block *block;          /* that it reads; NULL: none yet */
	size_t row;                   /* in it, from 1 */
	const struct value *values;   /* of the row */
	char (*numbers)[NUMBER_SIZE]; /* texts of the row's integers, by column */
};

/* ---- the thread ------------------------------------------------------------------------------ */

/* Whether a text or blob may be read as a number other than 0. */
static bool is_numeric(const unsigned char *bytes, size_t size)
{
	return size > 0 && strchr(" \t\n\v\f\r+-.0123456789", bytes[0]);
}

/* A real's text comes last: SQLite makes it in the number's place. */
static bool copy_other(struct block *block, sqlite3_stmt *statement, int column, int type)
{
	struct other other = {
		.i = type == SQLITE_FLOAT ? sqlite3_column_int64(statement, column) : 0,
		.r = type == SQLITE_FLOAT ? sqlite3_column_double(statement, column) : 0.0};
	const void *bytes = type == SQLITE_BLOB ? sqlite3_column_blob(statement, column)
						: sqlite3_column_text(statement, column);
	const size_t size = (size_t)sqlite3_column_bytes(statement, column);

	if (mem_grow(&block->others, &block->room, block->used + sizeof(other) + size + 1, 1) !=
		    0 ||
	    (!bytes && (type != SQLITE_BLOB || size > 0)))
		return false;
	other.size = size;
	if (size > 0)
		memcpy(block->others + block->used + sizeof(other), bytes, size);
	if (type != SQLITE_FLOAT && is_numeric(bytes, size)) {
		other.i = sqlite3_column_int64(statement, column);
		other.r = sqlite3_column_double(statement, column);
	}
	memcpy(block->others + block->used, &other, sizeof(other));
	block->used += sizeof(other);
	block->used += size;
	block->others[block->used++] = 0;
	return true;
}

static enum status read_row(struct prof_ahead *ahead, struct block *block, struct err *err)
{
	struct value *values = block->values + block->rows * ahead->columns;
	sqlite3_stmt *statement = ahead->statement;

	for (size_t i = 0; i < ahead->columns; i++) {
		/* Of a value's own functions none locks the connection, which only this thread
		 * has: that takes half of the time of sqlite3_column_type() and the like. */
		sqlite3_value *const of = sqlite3_column_value(statement, (int)i);
		const int type = sqlite3_value_type(of);

		values[i].type = type;
		values[i].is.i = 0;
		if (type == SQLITE_INTEGER)
			values[i].is.i = sqlite3_value_int64(of);
		else if (type != SQLITE_NULL)
			values[i].is.at = block->used;
		if (type != SQLITE_INTEGER && type != SQLITE_NULL &&
		    !copy_other(block, statement, (int)i, type))
			return err_nomem(err);
	}
	block->rows++;
	return ST_OK;
}

static void *ahead_main(void *user)
{
	struct prof_ahead *ahead = user;
	bool last = false;

	pthread_mutex_lock(&ahead->lock);
	while (!last && !ahead->stop) {
		struct block *block = &ahead->blocks[ahead->filled % BLOCKS];
		enum status status;
		bool row;

		if (ahead->filled - ahead->taken == BLOCKS) {
			pthread_cond_wait(&ahead->changed, &ahead->lock);
			continue;
		}
		pthread_mutex_unlock(&ahead->lock);

		status = ST_OK;
		row = true;
		block->rows = block->used = 0;
		while (status == ST_OK && row && block->rows < BLOCK_ROWS &&
		       block->used < BLOCK_BYTES) {
			status = ahead->step(ahead->user, &row, &block->failure);
			if (status == ST_OK && row)
				status = read_row(ahead, block, &block->failure);
		}
		block->last = status != ST_OK || !row;

		last = block->last;
		pthread_mutex_lock(&ahead->lock);
		ahead->filled++;
		pthread_cond_signal(&ahead->changed);
	}
	ahead->ended = true;
	pthread_cond_signal(&ahead->changed);
	pthread_mutex_unlock(&ahead->lock);
	return NULL;
}

/* ---- the caller ------------------------------------------------------------------------------ */

static void ahead_free(struct prof_ahead *ahead)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		mem_free(ahead->blocks[i].values);
		mem_free(ahead->blocks[i].others);
	}
	mem_free(ahead->numbers);
	pthread_cond_destroy(&ahead->changed);
	pthread_mutex_destroy(&ahead->lock);
	mem_free(ahead);
}

enum status prof_ahead_start(struct prof_ahead **out, sqlite3_stmt *statement, prof_ahead_step step,
			     void *user, struct err *err)
{
	struct prof_ahead *ahead = mem_calloc(1, sizeof(*ahead));
	bool ready = true;

	*out = NULL;
	if (!ahead)
		return err_nomem(err);
	ahead->statement = statement;
	ahead->step = step;
	ahead->user = user;
	ahead->columns = (size_t)sqlite3_column_count(statement);
	pthread_mutex_init(&ahead->lock, NULL);
	pthread_cond_init(&ahead->changed, NULL);
	ahead->numbers = mem_alloc(ahead->columns * sizeof(*ahead->numbers));
	for (size_t i = 0; i < BLOCKS && ready; i++) {
		ahead->blocks[i].values =
			mem_alloc(BLOCK_ROWS * ahead->columns * sizeof(struct value));
		ready = ahead->blocks[i].values != NULL;
	}
	if (!ready || !ahead->numbers) {
		ahead_free(ahead);
		return err_nomem(err);
	}
	if (thread_start(&ahead->thread, ahead_main, ahead) != 0) {
		ahead_free(ahead);
		return err_set(err, ST_NOMEM, "cannot start a thread for reading");
	}
	*out = ahead;
	return ST_OK;
}

void prof_ahead_stop(struct prof_ahead *ahead)
{
	if (!ahead)
		return;
	pthread_mutex_lock(&ahead->lock);
	ahead->stop = true;
	pthread_cond_signal(&ahead->changed);
	/* A step that has not yet begun is not interrupted: again, until the thread has ended. */
	while (!ahead->ended) {
		struct timespec until;

		sqlite3_interrupt(sqlite3_db_handle(ahead->statement));
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += AGAIN_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&ahead->changed, &ahead->lock, &until);
	}
	pthread_mutex_unlock(&ahead->lock);
	pthread_join(ahead->thread, NULL);
	ahead_free(ahead);
}

enum status prof_ahead_next(struct prof_ahead *ahead, bool *row, struct err *err)
{
	while (!ahead->block || (ahead->row >= ahead->block->rows && !ahead->block->last)) {
		/* Give the block back, and wait for the next. */
		pthread_mutex_lock(&ahead->lock);
		if (ahead->block) {
			ahead->taken++;
			pthread_cond_signal(&ahead->changed);
		}
		while (ahead->filled == ahead->taken)
			pthread_cond_wait(&ahead->changed, &ahead->lock);
		ahead->block = &ahead->blocks[ahead->taken % BLOCKS];
		ahead->row = 0;
		pthread_mutex_unlock(&ahead->lock);
	}
	*row = ahead->row < ahead->block->rows;
	if (*row)
		ahead->values = ahead->block->values + ahead->row++ * ahead->columns;
	else if (ahead->block->failure.status != ST_OK)
		return err_set(err, ahead->block->failure.status, "%s", ahead->block->failure.text);
	return ST_OK;
}

static const struct value *value_at(const struct prof_ahead *ahead, int column)
{
	return &ahead->values[column];
}

static bool is_other(const struct value *value)
{
	return value->type != SQLITE_INTEGER && value->type != SQLITE_NULL;
}

static struct other other_of(const struct prof_ahead *ahead, const struct value *value)
{
	struct other other;

	memcpy(&other, ahead->block->others + value->is.at, sizeof(other));
	return other;
}

int prof_ahead_type(const struct prof_ahead *ahead, int column)
{
	return value_at(ahead, column)->type;
}

int64_t prof_ahead_int(const struct prof_ahead *ahead, int column)
{
	const struct value *value = value_at(ahead, column);

	return is_other(value) ? other_of(ahead, value).i : value->is.i;
}

double prof_ahead_real(const struct prof_ahead *ahead, int column)
{
	const struct value *value = value_at(ahead, column);

	return is_other(value) ? other_of(ahead, value).r : (double)value->is.i;
}

const char *prof_ahead_text(struct prof_ahead *ahead, int column, size_t *size)
{
	const struct value *value = value_at(ahead, column);
	const struct other other = is_other(value) ? other_of(ahead, value) : (struct other){0};
	char *number = ahead->numbers[column];

	*size = other.size;
	if (value->type == SQLITE_INTEGER)
		*size = (size_t)snprintf(number, NUMBER_SIZE, "%lld", (long long)value->is.i);
	if (value->type == SQLITE_NULL)
		return NULL;
	return is_other(value) ? ahead->block->others + value->is.at + sizeof(other) : number;
}
