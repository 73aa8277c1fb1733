/*
 * Rows on their way to the writer: a bounded queue of chunks.
 *
 * Any number of appending threads, one taking thread. Rows are copied together with their texts and
 * blobs, so the caller's memory is free at once; the pointers in a queued struct lead into its
 * chunk. A full queue makes appending wait; nothing is dropped. States: open; full (appends wait);
 * stopped with a status (appends return it at once, also those that wait). What is queued can be
 * taken in every state. Two chunks are there from the start: nothing is allocated while less than
 * one is appended between the writer's takes.
 *
 * Locking: the queue's own mutex, which is never held while another is taken.
 */
#ifndef PROF_QUEUE_H
#define PROF_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

struct prof_chunk {
	struct prof_chunk *next;
	size_t capacity, used;
	_Alignas(16) unsigned char data[];
};

/* Before every row in a chunk. */
struct prof_record {
	uint32_t table, reserved;
	uint64_t size; /* of this and the row with all that belongs to it */
};

struct prof_queue {
	pthread_mutex_t lock;
	pthread_cond_t room;
	struct prof_chunk *first, *last, *spare;
	size_t spares, chunk_size;
	uint64_t bytes, limit; /* queued or being written */
	enum status stopped;   /* ST_OK: open */
};

/* ST_OK or ST_NOMEM, then with nothing to undo. */
enum status prof_queue_init(struct prof_queue *queue, uint64_t limit);
void prof_queue_fini(struct prof_queue *queue);

/* Append @count rows of @table. @wake is called (with @user) before waiting and when the queue is
 * a quarter full. */
enum status prof_queue_put(struct prof_queue *queue, unsigned table, const void *rows, size_t count,
			   void (*wake)(void *user), void *user);

/* All chunks, oldest first, or NULL; each goes back by prof_queue_release(). */
struct prof_chunk *prof_queue_take(struct prof_queue *queue);
void prof_queue_release(struct prof_queue *queue, struct prof_chunk *chunk);

void prof_queue_stop(struct prof_queue *queue, enum status status);

#endif /* PROF_QUEUE_H */
