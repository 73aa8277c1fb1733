/*
 * NumPy's .npz: a zip archive of .npy arrays. Each member is unpacked to the size its .npy header
 * states, and no further.
 *
 * Threading: none. Source: NumPy's format description.
 */
#include "trainer/data/dataset_zip.h"

#include <stdio.h>
#include <string.h>

#include "common/fs.h"
#include "common/mem.h"

/* The directory's entry for "@member.npy". */
static enum status npz_find(struct dataset_zip *zip, const char *member,
			    struct dataset_zip_member *out, struct err *err)
{
	enum status status = dataset__zip_open(zip, err);
	size_t length = strlen(member);

	while (status == ST_OK) {
		status = dataset__zip_next(zip, out, err);
		if (status != ST_OK || !out->name)
			break;
		if (out->name_length == length + 4 && !memcmp(out->name, member, length) &&
		    !memcmp(out->name + length, ".npy", 4))
			return ST_OK;
	}
	if (status != ST_OK)
		return status;
	return err_set(err, ST_NOTFOUND,
		       "%s: there is no array \"%s\" (x_train and y_train are needed; x_test and "
		       "y_test to evaluate)",
		       zip->name, member);
}

/* ---- the array ------------------------------------------------------------------------------- */

/* Where the array has been read to its end, the stream's checksum is the whole member's. */
enum status dataset__npz_parse(struct dataset_array *out, const char *name, const void *bytes,
			       size_t length, const char *member, struct err *err)
{
	struct dataset_zip zip = {.name = name, .bytes = bytes, .length = length};
	char place[FS_PATH_SIZE + 64];
	struct dataset_stream stream;
	struct dataset_zip_member entry = {0};
	enum status status;

	*out = (struct dataset_array){0};
	status = npz_find(&zip, member, &entry, err);
	if (status != ST_OK)
		return status;
	snprintf(place, sizeof(place), "%.*s: %.16s", DATASET_PATH_SHOWN, name, member);
	status = dataset__zip_member_open(&zip, &entry, place, &stream, err);
	if (status != ST_OK)
		return status;

	status = dataset__npy_header(&stream, out, err);
	if (status == ST_OK)
		status = dataset__array_read(out, &stream, err);
	if (status == ST_OK && stream.crc != entry.crc) {
		status = err_set(err, ST_FORMAT, "%s: its checksum does not fit: it is damaged",
				 place);
		mem_free(out->bytes);
		out->bytes = NULL;
	}
	dataset__stream_close(&stream);
	return status;
}

/* ---- a file ---------------------------------------------------------------------------------- */

struct npz_file {
	const char *path, *source;
	char *bytes;
	size_t length;
	const struct dataset_known *known;
	int64_t limit;
};

static enum status npz_part(struct dataset *out, const struct npz_file *file, const char *x,
			    const char *y, struct err *err)
{
	const struct dataset_about about = {.source = file->source,
					    .inputs = x,
					    .targets = y,
					    .classes = file->known->classes,
					    .names = file->known->names,
					    .limit = file->limit};
	struct dataset_array inputs, targets = {0};
	enum status status;

	status = dataset__npz_parse(&inputs, file->path, file->bytes, file->length, x, err);
	if (status == ST_OK)
		status =
			dataset__npz_parse(&targets, file->path, file->bytes, file->length, y, err);
	if (status == ST_OK)
		status = dataset__join(out, &about, &inputs, &targets, err);
	dataset__array_free(&inputs);
	dataset__array_free(&targets);
	return status;
}

/* Neither of the test arrays is there. */
static bool npz_has_no_test(const struct npz_file *file)
{
	struct dataset_zip zip = {
		.name = file->path, .bytes = (const uint8_t *)file->bytes, .length = file->length};
	struct dataset_zip_member entry;

	return npz_find(&zip, "x_test", &entry, NULL) == ST_NOTFOUND &&
	       npz_find(&zip, "y_test", &entry, NULL) == ST_NOTFOUND;
}

enum status dataset__npz_open(struct dataset *train, struct dataset *test,
			      const struct dataset_known *known, const char *path, int64_t limit,
			      struct err *err)
{
	char source[FS_PATH_SIZE + 16];
	struct npz_file file = {.path = path, .source = source, .known = known, .limit = limit};
	enum status status;

	snprintf(source, sizeof(source), "%.*s (npz)", DATASET_PATH_SHOWN, path);
	status = fs_read(path, DATASET_FILE_LIMIT, &file.bytes, &file.length, err);
	if (status != ST_OK)
		return status;
	status = npz_part(train, &file, "x_train", "y_train", err);
	if (status == ST_OK && !npz_has_no_test(&file)) {
		status = npz_part(test, &file, "x_test", "y_test", err);
		if (status != ST_OK)
			dataset_close(train);
	}
	mem_free(file.bytes);
	return status;
}
