/*
 * The queue of rows for the writer: a bounded list of chunks.
 *
 * Any number of threads append, one thread takes. Rows are copied together with their texts and
 * blobs, so the caller may free its memory at once; the pointers in a queued struct point into
 * its chunk. If the queue is full, appending blocks. States: open; full (appends block); full
 * without space on the disk (appends are refused and counted, blocked ones too); stopped with a
 * status (appends return it at once, blocked ones too). Queued
 * rows can be taken in every state. Two chunks are preallocated: appending allocates nothing as
 * long as less than one chunk is appended between two takes.
 *
 * Locking: the queue's own mutex; no other lock is acquired while it is held.
 */
#ifndef PROF_QUEUE_H
#define PROF_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct prof_chunk {
	struct prof_chunk *next;
	size_t capacity, used;
	_Alignas(16) unsigned char data[];
};

/* Precedes every row in a chunk. */
struct prof_record {
	uint32_t table, reserved;
	uint64_t size; /* of this header, the row, its texts and blobs */
};

struct prof_queue {
	pthread_mutex_t lock;
	pthread_cond_t room;
	struct prof_chunk *first, *last, *spare;
	size_t spares, chunk_size;
	uint64_t bytes, limit; /* queued or being written */
	enum status stopped;   /* ST_OK: open */
	bool no_space;         /* on the disk, so nothing is taken */
	uint64_t refused;      /* rows, since the queue was made */
};

/* Return ST_OK, or ST_NOMEM with everything released. */
enum status prof_queue_init(struct prof_queue *queue, uint64_t limit);
void prof_queue_fini(struct prof_queue *queue);

/* Append @count rows of @table. @wake is called with @user before blocking. *@filling: the queue is
 * more than a quarter full now. */
enum status prof_queue_put(struct prof_queue *queue, unsigned table, const void *rows, size_t count,
			   void (*wake)(void *user), void *user, bool *filling);

/* Remove all chunks, oldest first, or return NULL; return each with prof_queue_release(). */
struct prof_chunk *prof_queue_pop(struct prof_queue *queue);
void prof_queue_release(struct prof_queue *queue, struct prof_chunk *chunk);

/* Nothing is taken until there is space on the disk again. Return the rows refused so far. */
uint64_t prof_queue_no_space(struct prof_queue *queue, bool none);

void prof_queue_stop(struct prof_queue *queue, enum status status);

#endif /* PROF_QUEUE_H */
