/*
 * Data files for tests. See dataset_sample.h.
 */
#include "support/dataset_sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "common/fs.h"
#include "trainer/data/dataset.h"

static void put(struct sample_bytes *out, const void *bytes, size_t length)
{
	assert_true(out->length + length <= sizeof(out->bytes));
	memcpy(out->bytes + out->length, bytes, length);
	out->length += length;
}

static void put_le(struct sample_bytes *out, uint32_t value, int size)
{
	for (int i = 0; i < size; i++) {
		uint8_t byte = (uint8_t)(value >> 8 * i);

		put(out, &byte, 1);
	}
}

static void put_values(struct sample_bytes *out, size_t count, int modulo)
{
	for (size_t i = 0; i < count; i++) {
		uint8_t byte = (uint8_t)(i % (size_t)modulo);

		put(out, &byte, 1);
	}
}

void sample_idx(struct sample_bytes *out, int ndim, const uint32_t *dim, int modulo)
{
	uint8_t head[4] = {0, 0, 8, (uint8_t)ndim};
	size_t count = 1;

	out->length = 0;
	put(out, head, 4);
	for (int i = 0; i < ndim; i++) {
		uint8_t big[4] = {(uint8_t)(dim[i] >> 24), (uint8_t)(dim[i] >> 16),
				  (uint8_t)(dim[i] >> 8), (uint8_t)dim[i]};

		put(out, big, 4);
		count *= dim[i];
	}
	put_values(out, count, modulo);
}

static void sample_pack(struct sample_bytes *out, const struct sample_bytes *in, int window)
{
	z_stream z = {0};

	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (Bytef *)(uintptr_t)in->bytes;
	z.avail_in = (uInt)in->length;
	z.next_out = out->bytes;
	z.avail_out = sizeof(out->bytes);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	out->length = sizeof(out->bytes) - z.avail_out;
	deflateEnd(&z);
}

void sample_gzip(struct sample_bytes *out, const struct sample_bytes *in)
{
	sample_pack(out, in, 16 + MAX_WBITS);
}

void sample_cifar(struct sample_bytes *out, int records, int first, bool coarse)
{
	out->length = 0;
	for (int r = 0; r < records; r++) {
		uint8_t label = (uint8_t)(first + r);

		if (coarse)
			put(out, "\23", 1);
		put(out, &label, 1);
		for (int plane = 0; plane < 3; plane++) {
			for (int p = 0; p < 1024; p++) {
				uint8_t value = (uint8_t)(p + r + plane);

				put(out, &value, 1);
			}
		}
	}
}

static void put_npy_header(struct sample_bytes *out, const char *descr, const char *fortran,
			   const char *shape)
{
	char text[256];
	int length =
		snprintf(text, sizeof(text), "{'descr': %s, 'fortran_order': %s, 'shape': %s, }\n",
			 descr, fortran, shape);

	out->length = 0;
	put(out, "\x93NUMPY\1\0", 8);
	put_le(out, (uint32_t)length, 2);
	put(out, text, (size_t)length);
}

void sample_npy(struct sample_bytes *out, const char *descr, const char *fortran, const char *shape,
		size_t count, int modulo)
{
	put_npy_header(out, descr, fortran, shape);
	put_values(out, count, modulo);
}

void sample_npy_values(struct sample_bytes *out, const char *descr, const char *shape,
		       const void *values, size_t size)
{
	put_npy_header(out, descr, "False", shape);
	put(out, values, size);
}

void sample_zip_add(struct sample_zip *zip, const char *name, const struct sample_bytes *data,
		    int deflated)
{
	static struct sample_bytes packed;
	const struct sample_bytes *body = data;
	uint32_t at = (uint32_t)zip->file.length, length = (uint32_t)strlen(name);
	uint32_t crc = (uint32_t)crc32_z(0, data->bytes, data->length);
	uint32_t method = deflated ? 8 : 0;

	if (deflated) {
		sample_pack(&packed, data, -MAX_WBITS);
		body = &packed;
	}
	put(&zip->file, "PK\3\4", 4);
	put_le(&zip->file, 20, 2);
	put_le(&zip->file, 0, 2);
	put_le(&zip->file, method, 2);
	put_le(&zip->file, 0, 4);
	put_le(&zip->file, crc, 4);
	/* As NumPy writes them: the sizes stand in the directory alone. */
	put_le(&zip->file, 0xffffffffu, 4);
	put_le(&zip->file, 0xffffffffu, 4);
	put_le(&zip->file, length, 2);
	put_le(&zip->file, 4, 2);
	put(&zip->file, name, length);
	put(&zip->file, "\1\0\0\0", 4);
	put(&zip->file, body->bytes, body->length);

	put(&zip->directory, "PK\1\2", 4);
	put_le(&zip->directory, 20, 2);
	put_le(&zip->directory, 20, 2);
	put_le(&zip->directory, 0, 2);
	put_le(&zip->directory, method, 2);
	put_le(&zip->directory, 0, 4);
	put_le(&zip->directory, crc, 4);
	put_le(&zip->directory, (uint32_t)body->length, 4);
	put_le(&zip->directory, (uint32_t)data->length, 4);
	put_le(&zip->directory, length, 2);
	put_le(&zip->directory, 0, 4);
	put_le(&zip->directory, 0, 4);
	put_le(&zip->directory, 0, 4);
	put_le(&zip->directory, at, 4);
	put(&zip->directory, name, length);
	zip->members++;
}

void sample_zip_end(struct sample_zip *zip)
{
	uint32_t at = (uint32_t)zip->file.length;

	put(&zip->file, zip->directory.bytes, zip->directory.length);
	put(&zip->file, "PK\5\6", 4);
	put_le(&zip->file, 0, 4);
	put_le(&zip->file, (uint32_t)zip->members, 2);
	put_le(&zip->file, (uint32_t)zip->members, 2);
	put_le(&zip->file, (uint32_t)zip->directory.length, 4);
	put_le(&zip->file, at, 4);
	put_le(&zip->file, 0, 2);
}

void sample_npz(struct sample_zip *zip, int deflated)
{
	static struct sample_bytes array;

	*zip = (struct sample_zip){0};
	sample_npy(&array, "'|u1'", "False", "(4, 3, 2)", 24, 250);
	sample_zip_add(zip, "x_test.npy", &array, deflated);
	sample_npy(&array, "'|u1'", "False", "(6, 3, 2)", 36, 250);
	sample_zip_add(zip, "x_train.npy", &array, deflated);
	sample_npy(&array, "'|u1'", "False", "(6,)", 6, 10);
	sample_zip_add(zip, "y_train.npy", &array, deflated);
	sample_npy(&array, "'|u1'", "False", "(4,)", 4, 10);
	sample_zip_add(zip, "y_test.npy", &array, deflated);
	sample_zip_end(zip);
}

/* ---- a home ---------------------------------------------------------------------------------- */

int sample_place_set_up(void **state)
{
	struct sample_place *place = calloc(1, sizeof(*place));

	assert_non_null(place);
	support_tempdir(place->folder);
	setenv("HOME", place->folder, 1);
	unsetenv("IPUSCOPE_DATA");
	unsetenv("XDG_DATA_HOME");
	unsetenv("XDG_CACHE_HOME");
	*state = place;
	return 0;
}

int sample_place_tear_down(void **state)
{
	struct sample_place *place = *state;

	support_tempdir_remove(place->folder);
	free(place);
	return 0;
}

void sample_notice(void *user, const char *text)
{
	struct sample_place *place = user;

	snprintf(place->notice, sizeof(place->notice), "%s", text);
	place->notices++;
}

void sample_write(const struct sample_place *place, const char *name, const void *bytes,
		  size_t length)
{
	char path[FS_PATH_SIZE], *slash;

	assert_true(fs_path(path, "%s/%s", place->folder, name));
	slash = strrchr(path, '/');
	*slash = '\0';
	assert_int_equal(fs_make_dirs(path, NULL), ST_OK);
	*slash = '/';
	support_write_file(path, bytes, length);
}

void sample_no_memory(const struct dataset_params *params)
{
	for (long n = 0;; n++) {
		struct dataset train, test;
		enum status status;
		bool failed;

		support_fail_alloc(n);
		status = dataset_open(&train, &test, params, NULL);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		if (status == ST_OK) {
			dataset_close(&train);
			dataset_close(&test);
		} else {
			assert_int_equal(status, ST_NOMEM);
			assert_null(train.memory);
			assert_null(test.memory);
		}
		if (!failed)
			break;
	}
}
