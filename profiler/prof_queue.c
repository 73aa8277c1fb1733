/*
 * The row queue. See prof_queue.h for threads and states.
 */
#include "profiler/prof_queue.h"

#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "profiler/prof_rows.h"

#define CHUNK_BYTES ((size_t)256 * 1024)
#define LEAST_CHUNK ((size_t)4096)
#define MAX_SPARES  8u
#define OWN_CHUNKS  2u /* one is filled while the writer drains the other */

/* Return NULL if out of memory. */
static struct prof_chunk *new_chunk(size_t capacity)
{
	struct prof_chunk *chunk = mem_alloc(sizeof(*chunk) + capacity);

	if (chunk)
		chunk->capacity = capacity;
	return chunk;
}

static void free_list(struct prof_chunk *chunk)
{
	while (chunk) {
		struct prof_chunk *next = chunk->next;

		mem_free(chunk);
		chunk = next;
	}
}

enum status prof_queue_init(struct prof_queue *queue, uint64_t limit)
{
	memset(queue, 0, sizeof(*queue));
	queue->limit = max(LEAST_CHUNK, limit);
	queue->chunk_size = queue->limit / 4 < CHUNK_BYTES ? (size_t)queue->limit / 4 : CHUNK_BYTES;
	if (queue->chunk_size < LEAST_CHUNK)
		queue->chunk_size = LEAST_CHUNK;
	while (queue->spares < OWN_CHUNKS) {
		struct prof_chunk *chunk = new_chunk(queue->chunk_size);

		if (!chunk)
			goto no_memory;
		chunk->next = queue->spare;
		queue->spare = chunk;
		queue->spares++;
	}
	if (pthread_mutex_init(&queue->lock, NULL) != 0)
		goto no_memory;
	if (pthread_cond_init(&queue->room, NULL) == 0)
		return ST_OK;
	pthread_mutex_destroy(&queue->lock);
no_memory:
	free_list(queue->spare);
	return ST_NOMEM;
}

void prof_queue_fini(struct prof_queue *queue)
{
	free_list(queue->first);
	free_list(queue->spare);
	pthread_cond_destroy(&queue->room);
	pthread_mutex_destroy(&queue->lock);
}

static const char *text_at(const unsigned char *row, size_t offset)
{
	const char *text;

	memcpy(&text, row + offset, sizeof(text));
	return text;
}

/* Bytes that column @column of @row occupies outside the struct. */
static size_t outside_size(const struct prof_column *column, const unsigned char *row)
{
	const char *text;
	int64_t size;

	if (column->kind != PROF_COLUMN_TEXT && column->kind != PROF_COLUMN_NAME &&
	    column->kind != PROF_COLUMN_BLOB)
		return 0;
	text = text_at(row, column->offset);
	if (!text)
		return 0;
	if (column->kind != PROF_COLUMN_BLOB)
		return strlen(text) + 1;
	memcpy(&size, row + column->size_offset, sizeof(size));
	return size < 0 ? 0 : (size_t)size;
}

static void copy_record(unsigned char *out, unsigned table, size_t size, const unsigned char *row)
{
	const struct prof_row_type *type = &prof_row_types[table];
	const struct prof_record head = {table, 0, size};
	unsigned char *copy = out + sizeof(head);
	unsigned char *free_bytes = copy + type->size;

	memcpy(out, &head, sizeof(head));
	memcpy(copy, row, type->size);
	for (size_t i = 0; i < type->count; i++) {
		const struct prof_column *column = &type->columns[i];
		size_t length = outside_size(column, row);

		if (length == 0)
			continue;
		memcpy(free_bytes, text_at(row, column->offset), length);
		memcpy(copy + column->offset, &free_bytes, sizeof(free_bytes));
		free_bytes += length;
	}
}

/* Reserve @size bytes at the end of the list; NULL if out of memory. The lock is held. */
static unsigned char *reserve(struct prof_queue *queue, size_t size)
{
	struct prof_chunk *chunk = queue->last;

	if (!chunk || chunk->capacity - chunk->used < size) {
		size_t capacity = max(size, queue->chunk_size);

		chunk = capacity == queue->chunk_size ? queue->spare : NULL;
		if (chunk) {
			queue->spare = chunk->next;
			queue->spares--;
		} else {
			chunk = new_chunk(capacity);
			if (!chunk)
				return NULL;
		}
		chunk->next = NULL;
		chunk->used = 0;
		if (!queue->last)
			queue->first = chunk;
		else
			queue->last->next = chunk;
		queue->last = chunk;
	}
	chunk->used += size;
	return chunk->data + chunk->used - size;
}

static enum status put_one(struct prof_queue *queue, unsigned table, const unsigned char *row,
			   void (*wake)(void *), void *user)
{
	const struct prof_row_type *type = &prof_row_types[table];
	size_t size = sizeof(struct prof_record) + type->size;
	unsigned char *out;

	for (size_t i = 0; i < type->count; i++)
		size += outside_size(&type->columns[i], row);
	size = (size + 15) / 16 * 16;
	while (queue->stopped == ST_OK && queue->bytes > 0 && queue->bytes + size > queue->limit) {
		if (queue->no_space) {
			queue->refused++;
			return ST_OK;
		}
		wake(user);
		pthread_cond_wait(&queue->room, &queue->lock);
	}
	if (queue->stopped != ST_OK)
		return queue->stopped;
	out = reserve(queue, size);
	if (!out)
		return ST_NOMEM;
	queue->bytes += size;
	copy_record(out, table, size, row);
	return ST_OK;
}

enum status prof_queue_put(struct prof_queue *queue, unsigned table, const void *rows, size_t count,
			   void (*wake)(void *), void *user, bool *filling)
{
	const unsigned char *row = rows;
	enum status status = ST_OK;

	pthread_mutex_lock(&queue->lock);
	for (size_t i = 0; i < count && status == ST_OK; i++)
		status = put_one(queue, table, row + i * prof_row_types[table].size, wake, user);
	*filling = queue->bytes > queue->limit / 4;
	pthread_mutex_unlock(&queue->lock);
	return status;
}

struct prof_chunk *prof_queue_pop(struct prof_queue *queue)
{
	struct prof_chunk *first;

	pthread_mutex_lock(&queue->lock);
	first = queue->first;
	queue->first = NULL;
	queue->last = NULL;
	pthread_mutex_unlock(&queue->lock);
	return first;
}

void prof_queue_release(struct prof_queue *queue, struct prof_chunk *chunk)
{
	pthread_mutex_lock(&queue->lock);
	queue->bytes -= chunk->used;
	if (chunk->capacity == queue->chunk_size && queue->spares < MAX_SPARES) {
		chunk->next = queue->spare;
		queue->spare = chunk;
		queue->spares++;
		chunk = NULL;
	}
	pthread_cond_broadcast(&queue->room);
	pthread_mutex_unlock(&queue->lock);
	mem_free(chunk);
}

uint64_t prof_queue_no_space(struct prof_queue *queue, bool none)
{
	uint64_t refused;

	pthread_mutex_lock(&queue->lock);
	queue->no_space = none;
	refused = queue->refused;
	pthread_cond_broadcast(&queue->room);
	pthread_mutex_unlock(&queue->lock);
	return refused;
}

void prof_queue_stop(struct prof_queue *queue, enum status status)
{
	pthread_mutex_lock(&queue->lock);
	queue->stopped = status;
	pthread_cond_broadcast(&queue->room);
	pthread_mutex_unlock(&queue->lock);
}
