/*
 * Named arrays from which weights are read, independent of the file format.
 */
#ifndef WEIGHTS_SOURCE_H
#define WEIGHTS_SOURCE_H

#include "trainer/data/npz.h"

struct weights_source {
	const struct npz_array *arrays;
	int count;
	const void *file; /* argument of read() and close() */
	enum status (*read)(const void *file, int index, float *out, size_t count, struct err *err);
	void (*close)(const void *file);
};

#endif /* WEIGHTS_SOURCE_H */
