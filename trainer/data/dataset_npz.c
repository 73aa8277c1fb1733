/*
 * NumPy's .npz, a zip archive of .npy arrays, or a folder of .npy files. Each member, stored or
 * deflated, is unpacked to the size in its .npy header and no further.
 *
 * The central directory at the file's end gives the members' offsets and sizes; of the local
 * headers only the lengths of names and extra fields are used. Every offset is checked against the
 * file's size before use. An .npy begins with magic, version, length, then a Python dictionary such
 * as {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }.
 *
 * Threading: none. Sources: PKWARE's APPNOTE.TXT; NumPy's format description (numpy.lib.format).
 */
#include "trainer/data/dataset_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"

#define ZIP_END_SIZE     22
#define ZIP_COMMENT_MOST 65535
#define ZIP_ENTRY_SIZE   46
#define ZIP_LOCAL_SIZE   30
#define ZIP_BEYOND       0xffffffffu /* the value is in a zip64 record */
#define NPY_HEADER_MOST  4096
#define NPZ_MEMBER_SIZE  256

/* ---- zip ------------------------------------------------------------------------------------- */

static uint32_t zip_u16(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static uint32_t zip_u32(const uint8_t *at)
{
	return zip_u16(at) | zip_u16(at + 2) << 16;
}

/* Find the end record; only a comment of the length that it states may follow it. */
static const uint8_t *zip_find_end(const struct dataset_zip *zip)
{
	size_t least = 0;

	if (zip->length < ZIP_END_SIZE)
		return NULL;
	if (zip->length > ZIP_END_SIZE + ZIP_COMMENT_MOST)
		least = zip->length - ZIP_END_SIZE - ZIP_COMMENT_MOST;
	for (size_t at = zip->length - ZIP_END_SIZE + 1; at-- > least;)
		if (!memcmp(zip->bytes + at, "PK\5\6", 4) &&
		    at + ZIP_END_SIZE + zip_u16(zip->bytes + at + 20) == zip->length)
			return zip->bytes + at;
	return NULL;
}

enum status dataset__zip_open(struct dataset_zip *zip, struct err *err)
{
	const uint8_t *end = zip_find_end(zip);
	size_t directory, size;

	if (!end && zip->length >= 4 && !memcmp(zip->bytes, "PK\3\4", 4))
		return err_set(err, ST_FORMAT,
			       "%s: is truncated: the directory at a zip file's end is missing",
			       zip->name);
	if (!end)
		return err_set(err, ST_FORMAT, "%s: is not an .npz (zip) file", zip->name);
	if (zip_u32(end + 16) == ZIP_BEYOND || zip_u32(end + 12) == ZIP_BEYOND ||
	    zip_u16(end + 10) == 0xffff)
		return err_set(err, ST_UNSUPPORTED,
			       "%s: is a zip64 archive (4 GiB or more), which is not read",
			       zip->name);
	if (zip_u16(end + 4) || zip_u16(end + 6) || zip_u16(end + 8) != zip_u16(end + 10))
		return err_set(err, ST_UNSUPPORTED, "%s: is a zip archive of several parts",
			       zip->name);

	directory = zip_u32(end + 16);
	size = zip_u32(end + 12);
	if (directory > zip->length || size > zip->length - directory ||
	    directory + size > (size_t)(end - zip->bytes))
		return err_set(err, ST_FORMAT,
			       "%s: is damaged: its directory lies outside of the file", zip->name);
	zip->at = directory;
	zip->left = size;
	zip->entry = 0;
	zip->entries = zip_u16(end + 10);
	return ST_OK;
}

static enum status zip_damaged(const struct dataset_zip *zip, struct err *err)
{
	return err_set(err, ST_FORMAT, "%s: is damaged: entry %u of its directory", zip->name,
		       zip->entry);
}

enum status dataset__zip_next(struct dataset_zip *zip, struct dataset_zip_member *out,
			      struct err *err)
{
	const uint8_t *at = zip->bytes + zip->at;
	size_t size;

	*out = (struct dataset_zip_member){0};
	if (zip->entry == zip->entries)
		return ST_OK;
	if (zip->left < ZIP_ENTRY_SIZE || memcmp(at, "PK\1\2", 4) != 0)
		return zip_damaged(zip, err);
	*out = (struct dataset_zip_member){
		.name = (const char *)at + ZIP_ENTRY_SIZE,
		.name_length = zip_u16(at + 28),
		.flags = zip_u16(at + 8),
		.method = zip_u16(at + 10),
		.crc = zip_u32(at + 16),
		.packed = zip_u32(at + 20),
		.unpacked = zip_u32(at + 24),
		.local = zip_u32(at + 42),
	};
	size = ZIP_ENTRY_SIZE + out->name_length + zip_u16(at + 30) + zip_u16(at + 32);
	if (zip->left < size) {
		out->name = NULL;
		return zip_damaged(zip, err);
	}
	zip->at += size;
	zip->left -= size;
	zip->entry++;
	return ST_OK;
}

enum status dataset__zip_member_open(const struct dataset_zip *zip,
				     const struct dataset_zip_member *member, const char *name,
				     struct dataset_stream *out, struct err *err)
{
	const uint8_t *local = zip->bytes + member->local;
	size_t left, skip;
	enum status status;

	if (member->packed == ZIP_BEYOND || member->unpacked == ZIP_BEYOND ||
	    member->local == ZIP_BEYOND)
		return err_set(err, ST_UNSUPPORTED, "%s: is a zip64 member, which is not read",
			       name);
	if (member->flags & 1)
		return err_set(err, ST_UNSUPPORTED, "%s: is encrypted", name);
	if (member->method != 0 && member->method != 8)
		return err_set(err, ST_UNSUPPORTED,
			       "%s: is packed by method %u; only stored (0) and deflated (8) are "
			       "read",
			       name, member->method);
	if (member->local > zip->length || zip->length - member->local < ZIP_LOCAL_SIZE ||
	    memcmp(local, "PK\3\4", 4) != 0)
		return err_set(err, ST_FORMAT,
			       "%s: is damaged: its header is not where the "
			       "directory says",
			       name);
	left = zip->length - member->local;
	skip = ZIP_LOCAL_SIZE + zip_u16(local + 26) + zip_u16(local + 28);
	if (skip > left || member->packed > left - skip)
		return err_set(err, ST_FORMAT,
			       "%s: is truncated: its data lies beyond the file's end", name);
	status = dataset__stream_open(out, name, member->method ? DATASET_DEFLATE : DATASET_STORED,
				      local + skip, member->packed, err);
	out->sums = status == ST_OK;
	return status;
}

/* ---- the header of an .npy ------------------------------------------------------------------- */

/* Return the start of the value of @key in the dictionary, or NULL. */
static const char *npy_value(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	if (!at)
		return NULL;
	at += strlen(key);
	at += strspn(at, " ");
	if (*at++ != ':')
		return NULL;
	return at + strspn(at, " ");
}

/* Parse "(60000, 28, 28)", "(60000,)"; false: malformed. *@ndim may exceed the room in @out. */
static bool npy_shape(const char *at, struct dataset_array *out, int *ndim)
{
	*ndim = 0;
	if (*at++ != '(')
		return false;
	for (;;) {
		int64_t value = 0;

		at += strspn(at, " ");
		if (*at == ')')
			return true;
		if (*at < '0' || *at > '9')
			return false;
		for (; *at >= '0' && *at <= '9'; at++) {
			if (value > DATASET_ARRAY_LIMIT)
				return false;
			value = value * 10 + (*at - '0');
		}
		if (*ndim < (int)ARRAY_LEN(out->dim))
			out->dim[*ndim] = value;
		++*ndim;
		at += strspn(at, " ");
		if (*at == ',')
			at++;
		else if (*at != ')')
			return false;
	}
}

/* Parse "'<f4'": the byte order, then one of the types. */
static enum status npy_type(const char *descr, const char *name, struct dataset_array *out,
			    struct err *err)
{
	int shown = (int)strcspn(descr, ",}");

	if (descr[0] != '\'' || !descr[1])
		return err_set(err, ST_UNSUPPORTED,
			       "%s: holds %.*s: records are not read, give x and y arrays of their "
			       "own",
			       name, shown, descr);
	for (int type = 0; type < DATASET_TYPES; type++) {
		const char *known = dataset__types[type].name;

		if (!str_starts_with(descr + 2, known) || descr[4] != '\'')
			continue;
		out->type = (enum dataset_type)type;
		if (descr[1] == '<' || descr[1] == '|')
			return ST_OK;
		return err_set(err, ST_UNSUPPORTED,
			       "%s: holds %.*s, which is not little-endian: astype('<%s') changes "
			       "that",
			       name, shown, descr, known);
	}
	return err_set(err, ST_UNSUPPORTED,
		       "%s: holds %.*s; bool, whole numbers of 1 to 8 bytes and floats of 2, 4 and "
		       "8 are read: astype('float32') makes such",
		       name, shown, descr);
}

static enum status npy_dictionary(const char *text, const char *name, struct dataset_array *out,
				  struct err *err)
{
	const char *descr = npy_value(text, "'descr'"), *shape = npy_value(text, "'shape'");
	const char *fortran = npy_value(text, "'fortran_order'");
	enum status status;
	int ndim;

	if (!descr || !shape || !fortran)
		return err_set(err, ST_FORMAT,
			       "%s: its .npy header lacks descr, shape or fortran_order", name);
	status = npy_type(descr, name, out, err);
	if (status != ST_OK)
		return status;
	if (!npy_shape(shape, out, &ndim))
		return err_set(err, ST_FORMAT, "%s: its shape is malformed", name);
	/* Fortran and C order are the same for a vector. */
	if (!str_starts_with(fortran, "False") && ndim != 1)
		return err_set(err, ST_UNSUPPORTED,
			       "%s: is in Fortran order; numpy.ascontiguousarray() changes that",
			       name);
	if (ndim < 1 || ndim > (int)ARRAY_LEN(out->dim))
		return err_set(err, ST_FORMAT,
			       "%s: has %d dimensions; from 1 (items) to %zu are read", name, ndim,
			       ARRAY_LEN(out->dim));
	out->ndim = ndim;
	return ST_OK;
}

static enum status npy_read(struct dataset_stream *stream, void *out, size_t size, struct err *err)
{
	enum status status;
	size_t got;

	status = dataset__stream_read(stream, out, size, &got, err);
	if (status == ST_OK && got < size)
		status = err_set(err, ST_FORMAT, "%s: is truncated within its .npy header",
				 stream->name);
	return status;
}

enum status dataset__npy_header(struct dataset_stream *stream, struct dataset_array *out,
				struct err *err)
{
	char text[NPY_HEADER_MOST + 1];
	uint8_t head[12] = {0};
	enum status status;
	size_t length;

	status = npy_read(stream, head, 8, err);
	if (status != ST_OK)
		return status;
	if (memcmp(head, "\x93NUMPY", 6) != 0)
		return err_set(err, ST_FORMAT, "%s: is not an .npy array", stream->name);
	if (head[6] != 1 && head[6] != 2)
		return err_set(err, ST_UNSUPPORTED, "%s: is of .npy version %d; 1 and 2 are read",
			       stream->name, head[6]);
	/* Version 1 has two bytes of length, version 2 four. */
	status = npy_read(stream, head + 8, head[6] == 1 ? 2 : 4, err);
	if (status != ST_OK)
		return status;
	length = (size_t)head[8] | (size_t)head[9] << 8 | (size_t)head[10] << 16 |
		 (size_t)head[11] << 24;
	if (length > NPY_HEADER_MOST)
		return err_set(err, ST_LIMIT,
			       "%s: its .npy header has %zu bytes, at most %d are read",
			       stream->name, length, NPY_HEADER_MOST);
	status = npy_read(stream, text, length, err);
	if (status != ST_OK)
		return status;
	text[length] = '\0';
	return npy_dictionary(text, stream->name, out, err);
}

/* Read an .npy: header and values. */
static enum status npy_array(struct dataset_stream *stream, struct dataset_array *out,
			     struct err *err)
{
	enum status status = dataset__npy_header(stream, out, err);

	return status == ST_OK ? dataset__array_read(out, stream, err) : status;
}

/* ---- npz ------------------------------------------------------------------------------------- */

#define NPZ_NEEDED                                                                                 \
	"(x_train and y_train are needed; x_test and y_test to evaluate, x_test to predict)"

enum status dataset__npz_find(struct dataset_zip *zip, const char *member,
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
	return err_set(err, ST_NOTFOUND, "%s: there is no array \"%s\" " NPZ_NEEDED, zip->name,
		       member);
}

/* ---- the array ------------------------------------------------------------------------------- */

/* Once the array has been read to its end, the stream's checksum covers the whole member. */
enum status dataset__npz_parse(struct dataset_array *out, const char *name, const void *bytes,
			       size_t length, const char *member, struct err *err)
{
	struct dataset_zip zip = {.name = name, .bytes = bytes, .length = length};
	char place[FS_PATH_SIZE + 64];
	struct dataset_stream stream;
	struct dataset_zip_member entry = {0};
	enum status status;

	*out = (struct dataset_array){0};
	status = dataset__npz_find(&zip, member, &entry, err);
	if (status != ST_OK)
		return status;
	snprintf(place, sizeof(place), "%.*s: %.60s", DATASET_PATH_SHOWN, name, member);
	status = dataset__zip_member_open(&zip, &entry, place, &stream, err);
	if (status != ST_OK)
		return status;

	status = npy_array(&stream, out, err);
	if (status == ST_OK && stream.crc != entry.crc) {
		status = err_set(err, ST_FORMAT, "%s: its checksum does not fit: it is damaged",
				 place);
		mem_free(out->bytes);
		out->bytes = NULL;
	}
	dataset__stream_close(&stream);
	return status;
}

/* ---- a file, or a folder --------------------------------------------------------------------- */

/* A group of arrays that are concatenated: "input" with the names of data.inputs, or outputs. */
struct npz_names {
	const char *what;
	const char *const *items;
	int count;
	bool images; /* bytes are images: scale them to [0, 1], as batches do */
};

struct npz_file {
	const char *path, *source;
	char *bytes; /* NULL: the path is a folder of .npy files */
	size_t length;
	const struct dataset_known *known;
	const struct dataset_params *params;
	struct npz_names inputs, outputs;
};

static enum status npz_array(struct dataset_array *out, const struct npz_file *file,
			     const char *member, struct err *err)
{
	struct dataset_stream stream;
	char path[FS_PATH_SIZE];
	enum status status;
	size_t length;
	char *bytes;

	if (file->bytes)
		return dataset__npz_parse(out, file->path, file->bytes, file->length, member, err);
	*out = (struct dataset_array){0};
	if (!fs_path(path, "%s/%s.npy", file->path, member) || !fs_exists(path))
		return err_set(err, ST_NOTFOUND, "%s: there is no %s.npy " NPZ_NEEDED, file->path,
			       member);
	status = fs_read(path, DATASET_FILE_LIMIT, &bytes, &length, err);
	if (status != ST_OK)
		return status;
	status = dataset__stream_open(&stream, path, DATASET_STORED, bytes, length, err);
	if (status == ST_OK) {
		status = npy_array(&stream, out, err);
		dataset__stream_close(&stream);
	}
	mem_free(bytes);
	return status;
}

/* ---- several inputs, or outputs -------------------------------------------------------------- */

/* Return the number of values of an item. */
static int64_t npz_width(const struct dataset_array *array)
{
	return (int64_t)dataset__array_count(array) / array->dim[0];
}

static void npz_floats(float *out, const struct dataset_array *array, int64_t item, int64_t width,
		       bool images)
{
	const size_t size = dataset__types[array->type].size;

	dataset__to_floats(out, array->type, array->bytes + (size_t)(item * width) * size,
			   (size_t)width);
	for (int64_t i = 0; images && array->type == DATASET_U8 && i < width; i++)
		out[i] /= 255.0f;
}

/* Concatenate @parts into one array of floats: a row holds an item's values of all parts. */
static enum status npz_rows(struct dataset_array *out, const struct npz_file *file,
			    const struct npz_names *names, const struct dataset_array *parts,
			    struct err *err)
{
	const int count = names->count;
	const int64_t items = parts[0].dim[0];
	int64_t total = 0, at = 0;
	float *rows;

	for (int i = 0; i < count; i++) {
		if (parts[i].dim[0] != items)
			return err_set(err, ST_FORMAT,
				       "%s: %s \"%s\" has %lld items but \"%s\" has %lld",
				       file->path, names->what, names->items[0], (long long)items,
				       names->items[i], (long long)parts[i].dim[0]);
		total += npz_width(&parts[i]);
	}
	if (total > DATASET_ARRAY_LIMIT / (int64_t)sizeof(*rows) / items)
		return err_set(err, ST_LIMIT, "%s: data.%ss: would hold more than %lld bytes",
			       file->path, names->what, (long long)DATASET_ARRAY_LIMIT);
	rows = mem_resize(NULL, (size_t)(items * total), sizeof(*rows));
	if (!rows)
		return err_nomem(err);
	for (int i = 0; i < count; i++) {
		const int64_t width = npz_width(&parts[i]);

		for (int64_t item = 0; item < items; item++)
			npz_floats(rows + item * total + at, &parts[i], item, width, names->images);
		at += width;
	}
	*out = (struct dataset_array){
		.type = DATASET_F32, .ndim = 2, .dim = {items, total}, .bytes = (uint8_t *)rows};
	return ST_OK;
}

/* "x_train_user" */
static bool npz_member(char out[NPZ_MEMBER_SIZE], const char *x, const char *input)
{
	return snprintf(out, NPZ_MEMBER_SIZE, "%s_%s", x, input) < NPZ_MEMBER_SIZE;
}

/* Read the array @member, or with several names their arrays, concatenated. @kinds receives the
 * kind of each array as targets of @about; NULL: not needed. */
static enum status npz_joined(struct dataset_array *out, const struct npz_file *file,
			      const char *member, const struct npz_names *names,
			      const struct dataset_about *about, struct target_part *kinds,
			      struct err *err)
{
	struct dataset_array *parts;
	enum status status = ST_OK;
	char full[NPZ_MEMBER_SIZE];

	if (!names->count)
		return npz_array(out, file, member, err);
	*out = (struct dataset_array){0};
	parts = mem_calloc((size_t)names->count, sizeof(*parts));
	if (!parts)
		return err_nomem(err);
	for (int i = 0; i < names->count && status == ST_OK; i++) {
		status = npz_member(full, member, names->items[i])
				 ? npz_array(&parts[i], file, full, err)
				 : err_set(err, ST_INVALID, "data.%ss[%d]: is too long",
					   names->what, i);
		if (kinds && status == ST_OK) {
			struct dataset_about its = *about;

			its.ignored = file->params->ignored[i];
			kinds[i] = dataset__target_part(&its, &parts[i]);
		}
	}
	if (status == ST_OK)
		status = npz_rows(out, file, names, parts, err);
	for (int i = 0; i < names->count; i++)
		dataset__array_free(&parts[i]);
	mem_free(parts);
	return status;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static bool npz_has(const struct npz_file *file, const char *member)
{
	struct dataset_zip zip = {
		.name = file->path, .bytes = (const uint8_t *)file->bytes, .length = file->length};
	struct dataset_zip_member entry;
	char path[FS_PATH_SIZE];

	if (!file->bytes)
		return fs_path(path, "%s/%s.npy", file->path, member) && fs_exists(path);
	return dataset__npz_find(&zip, member, &entry, NULL) != ST_NOTFOUND;
}

/* Does the file have @member, or with several names the first one's array? */
static bool npz_has_any(const struct npz_file *file, const char *member,
			const struct npz_names *names)
{
	char full[NPZ_MEMBER_SIZE];

	if (!names->count)
		return npz_has(file, member);
	return npz_member(full, member, names->items[0]) && npz_has(file, full);
}

/* Return the name of the weights of output @i: its own array, else the common @w. NULL: neither. */
static const char *npz_weight(char own_name[NPZ_MEMBER_SIZE], const struct npz_file *file,
			      const char *w, const struct npz_names *outputs, int i)
{
	if (npz_member(own_name, w, outputs->items[i]) && npz_has(file, own_name))
		return own_name;
	return npz_has(file, w) ? w : NULL;
}

/* Read the weights of each output, concatenated in a row; an item has one number for each
 * output. */
static enum status npz_output_weights(struct dataset_array *out, const struct npz_file *file,
				      const char *w, const struct npz_names *outputs,
				      struct err *err)
{
	struct dataset_array parts[TARGET_PARTS] = {{0}};
	enum status status = ST_OK;
	char own_name[NPZ_MEMBER_SIZE];

	for (int i = 0; i < outputs->count && status == ST_OK; i++) {
		const char *name = npz_weight(own_name, file, w, outputs, i);

		status = name ? npz_array(&parts[i], file, name, err)
			      : err_set(err, ST_NOTFOUND,
					"%s: there is no array \"%s_%s\": give one of each output "
					"that data.outputs names, or %s for those without",
					file->path, w, outputs->items[i], w);
		if (status == ST_OK && npz_width(&parts[i]) != 1)
			status = err_set(err, ST_FORMAT,
					 "%s: %s has %lld numbers for each item: of a model of "
					 "several outputs it has 1",
					 file->path, name, (long long)npz_width(&parts[i]));
	}
	if (status == ST_OK)
		status = npz_rows(out, file, outputs, parts, err);
	for (int i = 0; i < outputs->count; i++)
		dataset__array_free(&parts[i]);
	return status;
}

/* Read the weights of items; @w may be missing. */
static enum status npz_read_weights(struct dataset *set, const struct npz_file *file, const char *w,
				    struct err *err)
{
	const struct npz_names *outputs = &file->outputs;
	struct dataset_array weights = {0};
	char own_name[NPZ_MEMBER_SIZE];
	bool any = npz_has(file, w);
	enum status status;

	for (int i = 0; i < outputs->count && !any; i++)
		any = npz_weight(own_name, file, w, outputs, i);
	if (!any)
		return ST_OK;
	status = outputs->count ? npz_output_weights(&weights, file, w, outputs, err)
				: npz_array(&weights, file, w, err);
	if (status == ST_OK)
		status = dataset__weigh(set, w, &weights, err);
	dataset__array_free(&weights);
	return status;
}

/* Read one part. Weights are optional, and so is @y if @unlabelled allows it. */
static enum status npz_part(struct dataset *out, const struct npz_file *file, const char *x,
			    const char *y, const char *w, bool unlabelled, struct err *err)
{
	const struct dataset_about about = {.source = file->source,
					    .inputs = x,
					    .targets = y,
					    .classes = file->known->classes,
					    .names = file->known->names,
					    .ignored = file->params->ignored[0],
					    .limit = file->params->limit};
	struct dataset_array inputs, targets = {0};
	struct target_part kinds[TARGET_PARTS] = {{0}};
	enum status status;

	status = npz_joined(&inputs, file, x, &file->inputs, &about, NULL, err);
	if (status == ST_OK && (!unlabelled || npz_has_any(file, y, &file->outputs)))
		status = npz_joined(&targets, file, y, &file->outputs, &about, kinds, err);
	if (status == ST_OK)
		status = dataset__join(out, &about, &inputs, &targets, err);
	dataset__array_free(&inputs);
	dataset__array_free(&targets);
	if (status == ST_OK && !out->unlabelled) {
		memcpy(out->parts, kinds, sizeof(kinds));
		out->part_count = file->outputs.count;
	}
	if (status != ST_OK || out->unlabelled)
		return status;
	status = npz_read_weights(out, file, w, err);
	if (status != ST_OK)
		dataset_close(out);
	return status;
}

enum status dataset__npz_open(struct dataset *train, struct dataset *test,
			      const struct dataset_known *known, const char *path,
			      const struct dataset_params *params, struct err *err)
{
	char source[FS_PATH_SIZE + 16];
	struct npz_file file = {
		.path = path,
		.source = source,
		.known = known,
		.params = params,
		.inputs = {"input", params->inputs, params->input_count, true},
		.outputs = {"output", params->outputs, params->output_count, false},
	};
	const bool folder = fs_is_dir(path);
	enum status status = ST_OK;
	bool tests;

	snprintf(source, sizeof(source), "%.*s (%s)", DATASET_PATH_SHOWN, path,
		 folder ? "npy" : "npz");
	if (!folder)
		status = fs_read(path, DATASET_FILE_LIMIT, &file.bytes, &file.length, err);
	if (status != ST_OK)
		return status;
	if (file.length >= 6 && !memcmp(file.bytes, "\x93NUMPY", 6)) {
		mem_free(file.bytes);
		return err_set(err, ST_INVALID,
			       "%s: is one .npy array: give the folder that has x_train.npy and "
			       "y_train.npy",
			       path);
	}
	tests = npz_has_any(&file, "x_test", &file.inputs);
	if (!params->no_train || !tests || npz_has_any(&file, "x_train", &file.inputs))
		status = npz_part(train, &file, "x_train", "y_train", "sample_weight_train", false,
				  err);
	if (status == ST_OK && (tests || npz_has_any(&file, "y_test", &file.outputs)))
		status = npz_part(test, &file, "x_test", "y_test", "sample_weight_test",
				  params->no_test_targets, err);
	mem_free(file.bytes);
	return status;
}
