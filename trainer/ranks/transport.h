/*
 * The transport of bytes between ranks: a table of functions that a plugin exports, one plugin for
 * each implementation of MPI, since their binary interfaces differ. The program opens the one of
 * the launcher that started it; without a launcher it needs none.
 *
 * Threading: all functions are called on the thread that called start(), so that MPI needs to
 * provide only MPI_THREAD_FUNNELED. Errors of MPI end the job with MPI's own message.
 */
#ifndef RANKS_TRANSPORT_H
#define RANKS_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RANKS_TRANSPORT_VERSION 2
#define RANKS_TRANSPORT_SYMBOL  "ipuscope_ranks_transport"

/* A block of memory in pieces, one for each rank: the number of four-byte words of each, and its
 * offset in words. */
struct ranks_pieces {
	void *base;      /* borrowed */
	int *words, *at; /* by rank */
};

/* An operation in progress. */
struct ranks_request {
	uint64_t handle;
};

struct ranks_transport {
	uint32_t version;
	/* Initialize; @name receives the implementation's name and version. 0: success. */
	int (*start)(int *rank, int *count, char *name, size_t room);
	/* Called by all ranks, with consecutive numbers: create channel @number, usable when the
	 * request is done. Operations of a channel have the same order on all ranks. 0: success. */
	int (*channel)(int number, struct ranks_request *out);
	/* Send piece r of @send to rank r, and receive piece r of @receive from it. */
	void (*exchange)(int channel, const struct ranks_pieces *send,
			 const struct ranks_pieces *receive, struct ranks_request *out);
	/* Send this rank's piece of @all, which is in place, to all ranks; receive theirs. */
	void (*gather)(int channel, const struct ranks_pieces *all, struct ranks_request *out);
	/* Send @words from rank 0 to all. */
	void (*broadcast)(int channel, void *data, int words, struct ranks_request *out);
	/* Send or receive one word, independent of channels; words of a rank arrive in order. */
	void (*send)(int rank, const int32_t *word, struct ranks_request *out);
	void (*receive)(int rank, int32_t *word, struct ranks_request *out);
	bool (*done)(struct ranks_request *request);
	void (*abort)(int code); /* ends all ranks; does not return */
	void (*finish)(void);
};

#endif /* RANKS_TRANSPORT_H */
