/*
 * What carries bytes between ranks: a table of functions that a plugin exports, one plugin for each
 * implementation of MPI, since their binary interfaces differ. The program opens the one whose
 * launcher has started it; without a launcher it needs none.
 *
 * Threading: all functions are called on the one thread that has called start(), so that MPI needs
 * no more than MPI_THREAD_FUNNELED. Errors of MPI end the job with MPI's own message.
 */
#ifndef RANKS_TRANSPORT_H
#define RANKS_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RANKS_TRANSPORT_VERSION 2
#define RANKS_TRANSPORT_SYMBOL  "ipuscope_ranks_transport"

/* A block of memory in pieces, one for each rank: how many words of four bytes each has, and where
 * it begins. */
struct ranks_pieces {
	void *base;      /* borrowed */
	int *words, *at; /* by rank */
};

/* An operation under way. */
struct ranks_request {
	uint64_t handle;
};

struct ranks_transport {
	uint32_t version;
	/* Begin; the implementation's name and version go to @name. 0: well. */
	int (*start)(int *rank, int *count, char *name, size_t room);
	/* By all ranks, one after the other: channel @number, the next, is there when the request
	 * is done. Operations of one channel are in the same order on all ranks. 0: well. */
	int (*channel)(int number, struct ranks_request *out);
	/* Piece r of @send goes to rank r, piece r of @receive comes from it. */
	void (*exchange)(int channel, const struct ranks_pieces *send,
			 const struct ranks_pieces *receive, struct ranks_request *out);
	/* Every rank's piece of @all, which is in place, goes to all ranks. */
	void (*gather)(int channel, const struct ranks_pieces *all, struct ranks_request *out);
	/* @words from rank 0 to all. */
	void (*broadcast)(int channel, void *data, int words, struct ranks_request *out);
	/* One word to or from @rank, beside all channels, in the order in which they are sent. */
	void (*send)(int rank, const int32_t *word, struct ranks_request *out);
	void (*receive)(int rank, int32_t *word, struct ranks_request *out);
	bool (*done)(struct ranks_request *request);
	void (*abort)(int code); /* ends all ranks; does not return */
	void (*finish)(void);
};

#endif /* RANKS_TRANSPORT_H */
