/*
 * Weights in NumPy's .npz.
 *
 * Threading: none. Ownership: the npz owns its file's bytes, unless the caller provided them.
 */
#include "trainer/data/npz.h"

#include <stdio.h>
#include <string.h>

#include "common/arena.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "trainer/data/dataset_internal.h"

#define NPZ_FILE_LIMIT ((size_t)4 << 30) /* bytes: larger archives need zip64 */
#define NPZ_CHUNK      8192              /* bytes unpacked at a time */

struct npz {
	const char *path;
	char *owned; /* NULL: the bytes are the caller's */
	struct dataset_zip zip;
	struct npz_array *arrays;
	struct dataset_zip_member *members;
	int count;
	struct arena arena; /* names */
};

static void npz_format_place(const struct npz *npz, const char *name, char *out, size_t size)
{
	snprintf(out, size, "%.*s: \"%.512s\"", DATASET_PATH_SHOWN, npz->path, name);
}

/* Open a stream positioned at the first value. */
static void npz_values(const struct npz *npz, int index, const char *place,
		       struct dataset_stream *stream, struct dataset_array *array, struct err *err)
{
	*array = (struct dataset_array){0};
	dataset__zip_member_open(&npz->zip, &npz->members[index], place, stream, err);
	dataset__npy_header(stream, array);
	if (!err_stuck(err) && dataset__types[array->type].whole)
		err_set(err, ST_UNSUPPORTED,
			"%s: holds %s; weights are floats: astype('float32') makes such", place,
			dataset__types[array->type].name);
}

static enum status npz_add(struct npz *npz, const struct dataset_zip_member *member,
			   struct err *err)
{
	struct npz_array *array = &npz->arrays[npz->count];
	char place[FS_PATH_SIZE + 512], *name;
	struct dataset_stream stream;
	struct dataset_array header;

	name = arena_alloc(&npz->arena, member->name_length + 1, 1);
	if (!name)
		return err_nomem(err);
	memcpy(name, member->name, member->name_length);
	if (strlen(name) != member->name_length || member->name_length < 4 ||
	    strcmp(name + member->name_length - 4, ".npy") != 0)
		return err_set(err, ST_FORMAT,
			       "%s: holds \"%.512s\", which is not an .npy array as in an .npz "
			       "file",
			       npz->path, name);
	name[member->name_length - 4] = '\0';
	array->name = name;
	npz->members[npz->count] = *member;
	npz_format_place(npz, name, place, sizeof(place));
	npz_values(npz, npz->count, place, &stream, &header, err);
	dataset__stream_close(&stream);

	_Static_assert(DATASET_RANK + 1 <= NPZ_DIMS, "an npz_array has too few dimensions");
	array->ndim = header.ndim;
	memcpy(array->dim, header.dim, sizeof(header.dim));
	npz->count++;
	return err->status;
}

static enum status npz_directory(struct npz *npz, struct err *err)
{
	enum status status = dataset__zip_open(&npz->zip, err);
	struct dataset_zip_member member;

	if (status != ST_OK)
		return status;
	npz->arrays = arena_alloc(&npz->arena, npz->zip.entries + 1, sizeof(*npz->arrays));
	npz->members = arena_alloc(&npz->arena, npz->zip.entries + 1, sizeof(*npz->members));
	if (!npz->arrays || !npz->members)
		return err_nomem(err);
	do {
		status = dataset__zip_next(&npz->zip, &member, err);
		if (status == ST_OK && member.name)
			status = npz_add(npz, &member, err);
	} while (status == ST_OK && member.name);
	return status;
}

/* Takes ownership of @owned, also on failure. */
static enum status npz_new(struct npz **out, const char *path, const void *bytes, size_t length,
			   char *owned, struct err *err)
{
	struct npz *npz = mem_calloc(1, sizeof(*npz));
	struct err own;

	*out = NULL;
	err = err_start(err, &own);
	if (!npz || arena_init(&npz->arena, 0)) {
		mem_free(npz);
		mem_free(owned);
		return err_nomem(err);
	}
	npz->owned = owned;
	npz->path = arena_strdup(&npz->arena, path);
	npz->zip = (struct dataset_zip){.name = npz->path, .bytes = bytes, .length = length};
	if ((npz->path ? npz_directory(npz, err) : err_nomem(err)) == ST_OK)
		*out = npz;
	else
		npz_close(npz);
	return err->status;
}

enum status npz_open(struct npz **out, const char *path, struct err *err)
{
	enum status status;
	size_t length;
	char *bytes;

	*out = NULL;
	status = fs_read(path, NPZ_FILE_LIMIT, &bytes, &length, err);
	if (status != ST_OK)
		return status;
	return npz_new(out, path, bytes, length, bytes, err);
}

enum status npz_parse(struct npz **out, const char *path, const void *bytes, size_t length,
		      struct err *err)
{
	return npz_new(out, path, bytes, length, NULL, err);
}

void npz_close(struct npz *npz)
{
	if (!npz)
		return;
	arena_fini(&npz->arena);
	mem_free(npz->owned);
	mem_free(npz);
}

const struct npz_array *npz_arrays(const struct npz *npz, int *count)
{
	*count = npz->count;
	return npz->arrays;
}

enum status npz_read(const struct npz *npz, int index, float *out, size_t count, struct err *err)
{
	char place[FS_PATH_SIZE + 512];
	uint8_t chunk[NPZ_CHUNK];
	struct dataset_stream stream;
	struct dataset_array array;
	size_t size, got;
	struct err own;

	err = err_start(err, &own);
	npz_format_place(npz, npz->arrays[index].name, place, sizeof(place));
	npz_values(npz, index, place, &stream, &array, err);
	size = dataset__types[array.type].size;
	for (size_t done = 0; done < count && !err_stuck(err); done += got / size) {
		const size_t wanted = min(count - done, NPZ_CHUNK / size);

		got = dataset__stream_read(&stream, chunk, wanted * size);
		if (!err_stuck(err) && got < wanted * size)
			err_set(err, ST_FORMAT, "%s: is truncated: %zu of %zu values are there",
				place, done + got / size, count);
		if (!err_stuck(err))
			dataset__to_floats(out + done, array.type, chunk, wanted);
	}
	dataset__stream_end(&stream, count);
	dataset__stream_close(&stream);
	return err->status;
}
