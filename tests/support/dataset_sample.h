/*
 * Data files for tests, made in memory: IDX, gzip, npz, CIFAR-10; and a home to lay them in.
 */
#ifndef DATASET_SAMPLE_H
#define DATASET_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "support/support.h"

struct dataset_params;

struct sample_bytes {
	size_t length;
	uint8_t bytes[8192];
};

/* An IDX file of @ndim dimensions whose values count up, modulo @modulo. */
void sample_idx(struct sample_bytes *out, int ndim, const uint32_t *dim, int modulo);

/* The same bytes as a gzip file. */
void sample_gzip(struct sample_bytes *out, const struct sample_bytes *in);

/* CIFAR-10's binary records: labels count up from @first, red, green and blue of pixel p of record
 * r are p + r, p + r + 1 and p + r + 2 (modulo 256). @coarse: CIFAR-100's, all of group 19. */
void sample_cifar(struct sample_bytes *out, int records, int first, bool coarse);

/* An .npy array; the header states @descr and @shape; values count up, modulo @modulo. */
void sample_npy(struct sample_bytes *out, const char *descr, const char *fortran, const char *shape,
		size_t count, int modulo);

/* Add a member to a zip being built; end it with sample_zip_end(). */
struct sample_zip {
	struct sample_bytes file, directory;
	int members;
};
void sample_zip_add(struct sample_zip *zip, const char *name, const struct sample_bytes *data,
		    int deflated);
void sample_zip_end(struct sample_zip *zip);

/* An .npy array of @size bytes a value at @values, as they are. */
void sample_npy_values(struct sample_bytes *out, const char *descr, const char *shape,
		       const void *values, size_t size);

/* A whole mnist.npz: 6 training and 4 test images of 3x2. */
void sample_npz(struct sample_zip *zip, int deflated);

/* A new $HOME without any data; no other variable names a place. */
struct sample_place {
	char folder[SUPPORT_PATH_SIZE];
	char notice[8192]; /* the last that sample_notice() was told */
	int notices;
};
int sample_place_set_up(void **state); /* the state is a place */
int sample_place_tear_down(void **state);
/* For dataset_params; @user is the place. */
void sample_notice(void *user, const char *text);
/* Write the file @name below the place's folder, with the folders that it needs. */
void sample_write(const struct sample_place *place, const char *name, const void *bytes,
		  size_t length);

/* However many allocations are left, a made-up set (which can do without its helpers: a pool, a
 * cache) opens, or fails with ST_NOMEM and nothing. */
void sample_no_memory(const struct dataset_params *params);

#endif /* DATASET_SAMPLE_H */
