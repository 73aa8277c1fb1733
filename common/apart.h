/*
 * Work in a child process, for a library that may crash: on a damaged file, or where memory ends.
 *
 * The child is a copy of this process. The work sees all that its caller sees, and what it changes
 * is lost; what it puts is handed over. Other threads may run meanwhile: the child needs no lock of
 * theirs but malloc()'s, which fork() hands over. Where one of them calls fork() without exec()
 * meanwhile, the call lasts as long as its child does, which holds the pipe open.
 */
#ifndef COMMON_APART_H
#define COMMON_APART_H

#include <stddef.h>

#include "common/err.h"

#define APART_SECONDS 300 /* enough for gigabytes */

struct apart_out; /* opaque: where the work puts its result */

/* Fill @err on failure; return err->status. */
typedef enum status (*apart_work)(void *user, struct apart_out *out, struct err *err);

/* Append to the result. */
enum status apart_put(struct apart_out *out, const void *bytes, size_t length, struct err *err);

struct apart {
	const char *name; /* what is worked on, for messages */
	/* "NAME: CRASH" if the work crashes or is stopped. */
	enum status status;
	const char *crash;
	size_t memory; /* bytes that the work may take, else it has crashed; 0: no limit */
	int seconds;   /* of processor time that it may take, else likewise; 0: APART_SECONDS */
};

/* Call @work in a child process, and once more in another one if it fails or crashes, as a library
 * does where a single allocation fails. *@out gets what the work has put, with a 0 after it; free
 * it with mem_free(). Fails as the work does, or as @request says; with ST_NOMEM where less memory
 * is there than @request lets it take. Then *@out is NULL. */
enum status apart_call(apart_work work, void *user, const struct apart *request, char **out,
		       size_t *length, struct err *err);

#endif /* COMMON_APART_H */
