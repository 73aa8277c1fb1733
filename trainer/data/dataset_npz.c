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

enum status dataset__zip_find(struct dataset_zip *zip, const char *name, bool ends,
			      struct dataset_zip_member *out, struct err *err)
{
	const size_t length = strlen(name);
	enum status status = dataset__zip_open(zip, err);

	*out = (struct dataset_zip_member){0};
	while (status == ST_OK) {
		status = dataset__zip_next(zip, out, err);
		if (status != ST_OK || !out->name)
			break;
		if ((ends ? out->name_length >= length : out->name_length == length) &&
		    !memcmp(out->name + out->name_length - length, name, length))
			return ST_OK;
	}
	return status == ST_OK ? ST_NOTFOUND : status;
}

void dataset__zip_member_open(const struct dataset_zip *zip,
			      const struct dataset_zip_member *member, const char *name,
			      struct dataset_stream *out, struct err *err)
{
	const uint8_t *at = zip->bytes;
	size_t left, skip;

	*out = (struct dataset_stream){.name = name, .err = err};
	if (err_stuck(err))
		return;
	if (member->packed == ZIP_BEYOND || member->unpacked == ZIP_BEYOND ||
	    member->local == ZIP_BEYOND)
		err_set(err, ST_UNSUPPORTED, "%s: is a zip64 member, which is not read", name);
	else if (member->flags & 1)
		err_set(err, ST_UNSUPPORTED, "%s: is encrypted", name);
	else if (member->method != 0 && member->method != 8)
		err_set(err, ST_UNSUPPORTED,
			"%s: is packed by method %u; only stored (0) and deflated (8) are read",
			name, member->method);
	else if (member->local > zip->length || zip->length - member->local < ZIP_LOCAL_SIZE ||
		 memcmp(at + member->local, "PK\3\4", 4) != 0)
		err_set(err, ST_FORMAT,
			"%s: is damaged: its header is not where the directory says", name);
	if (!err_stuck(err)) {
		at += member->local;
		left = zip->length - member->local;
		skip = ZIP_LOCAL_SIZE + zip_u16(at + 26) + zip_u16(at + 28);
		if (skip > left || member->packed > left - skip)
			err_set(err, ST_FORMAT,
				"%s: is truncated: its data lies beyond the file's end", name);
		else
			at += skip;
	}
	dataset__stream_open(out, name, member->method ? DATASET_DEFLATE : DATASET_STORED, at,
			     member->packed, err);
	out->sums = true;
	out->wanted = member->crc;
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

void dataset__npy_header(struct dataset_stream *stream, struct dataset_array *out)
{
	static const char where[] = " within its .npy header";
	const char *name = stream->name, *descr, *shape, *fortran;
	char text[NPY_HEADER_MOST + 1];
	uint8_t head[12] = {0};
	struct err *err = stream->err;
	size_t length;
	int ndim;

	dataset__stream_read_all(stream, head, 8, where);
	if (err_stuck(err))
		return;
	if (memcmp(head, "\x93NUMPY", 6) != 0)
		err_set(err, ST_FORMAT, "%s: is not an .npy array", name);
	else if (head[6] != 1 && head[6] != 2)
		err_set(err, ST_UNSUPPORTED, "%s: is of .npy version %d; 1 and 2 are read", name,
			head[6]);
	/* Version 1 has two bytes of length, version 2 four. */
	dataset__stream_read_all(stream, head + 8, head[6] == 1 ? 2 : 4, where);
	length = (size_t)head[8] | (size_t)head[9] << 8 | (size_t)head[10] << 16 |
		 (size_t)head[11] << 24;
	if (!err_stuck(err) && length > NPY_HEADER_MOST)
		err_set(err, ST_LIMIT, "%s: its .npy header has %zu bytes, at most %d are read",
			name, length, NPY_HEADER_MOST);
	dataset__stream_read_all(stream, text, length, where);
	if (err_stuck(err))
		return;
	text[length] = '\0';
	descr = npy_value(text, "'descr'");
	shape = npy_value(text, "'shape'");
	fortran = npy_value(text, "'fortran_order'");
	if (!descr || !shape || !fortran)
		err_set(err, ST_FORMAT, "%s: its .npy header lacks descr, shape or fortran_order",
			name);
	else if (npy_type(descr, name, out, err) != ST_OK)
		return;
	else if (!npy_shape(shape, out, &ndim))
		err_set(err, ST_FORMAT, "%s: its shape is malformed", name);
	/* Fortran and C order are the same for a vector. */
	else if (!str_starts_with(fortran, "False") && ndim != 1)
		err_set(err, ST_UNSUPPORTED,
			"%s: is in Fortran order; numpy.ascontiguousarray() changes that", name);
	else if (ndim < 1 || ndim > (int)ARRAY_LEN(out->dim))
		err_set(err, ST_FORMAT, "%s: has %d dimensions; from 1 (items) to %zu are read",
			name, ndim, ARRAY_LEN(out->dim));
	else
		out->ndim = ndim;
}

/* ---- npz ------------------------------------------------------------------------------------- */

#define NPZ_NEEDED                                                                                 \
	"(x_train and y_train are needed; x_test and y_test to evaluate, x_test to predict)"

enum status dataset__npz_find(struct dataset_zip *zip, const char *member,
			      struct dataset_zip_member *out, struct err *err)
{
	char name[NPZ_MEMBER_SIZE + 4];
	enum status status;

	snprintf(name, sizeof(name), "%s.npy", member);
	status = dataset__zip_find(zip, name, false, out, err);
	if (status == ST_NOTFOUND)
		err_set(err, ST_NOTFOUND, "%s: there is no array \"%s\" " NPZ_NEEDED, zip->name,
			member);
	return status;
}

/* ---- the array ------------------------------------------------------------------------------- */

enum status dataset__npz_parse(struct dataset_array *out, const char *name, const void *bytes,
			       size_t length, const char *member, struct err *err)
{
	struct dataset_zip zip = {.name = name, .bytes = bytes, .length = length};
	char place[FS_PATH_SIZE + 64];
	struct dataset_zip_member entry;
	struct dataset_stream stream;
	struct err own;

	err = err_start(err, &own);
	*out = (struct dataset_array){0};
	snprintf(place, sizeof(place), "%.*s: %.60s", DATASET_PATH_SHOWN, name, member);
	dataset__npz_find(&zip, member, &entry, err);
	dataset__zip_member_open(&zip, &entry, place, &stream, err);
	dataset__npy_header(&stream, out);
	dataset__array_read(out, &stream);
	dataset__stream_close(&stream);
	return err->status;
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
	const struct dataset_opening *opening;
	const char *path, *source;
	char *bytes; /* NULL: the path is a folder of .npy files */
	size_t length;
	struct npz_names inputs, outputs;
	struct err *err; /* the opening's: after a failure no more is read */
};

/* Read the array @member, which is empty after a failure. */
static void npz_array(struct dataset_array *out, const struct npz_file *file, const char *member)
{
	struct dataset_stream stream;
	char path[FS_PATH_SIZE], *bytes = NULL;
	size_t length;

	*out = (struct dataset_array){0};
	if (err_stuck(file->err))
		return;
	if (file->bytes) {
		dataset__npz_parse(out, file->path, file->bytes, file->length, member, file->err);
	} else if (!fs_path(path, "%s/%s.npy", file->path, member) || !fs_exists(path)) {
		err_set(file->err, ST_NOTFOUND, "%s: there is no %s.npy " NPZ_NEEDED, file->path,
			member);
	} else if (fs_read(path, DATASET_FILE_LIMIT, &bytes, &length, file->err) == ST_OK) {
		dataset__stream_open(&stream, path, DATASET_STORED, bytes, length, file->err);
		dataset__npy_header(&stream, out);
		dataset__array_read(out, &stream);
		dataset__stream_close(&stream);
	}
	mem_free(bytes);
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
static void npz_rows(struct dataset_array *out, const struct npz_file *file,
		     const struct npz_names *names, const struct dataset_array *parts)
{
	const int64_t items = parts[0].dim[0];
	int64_t total = 0, at = 0;
	float *rows = NULL;

	for (int i = 0; i < names->count && !err_stuck(file->err); i++) {
		if (parts[i].dim[0] != items)
			err_set(file->err, ST_FORMAT,
				"%s: %s \"%s\" has %lld items but \"%s\" has %lld", file->path,
				names->what, names->items[0], (long long)items, names->items[i],
				(long long)parts[i].dim[0]);
		else
			total += npz_width(&parts[i]);
	}
	if (!err_stuck(file->err) && total > DATASET_ARRAY_LIMIT / (int64_t)sizeof(*rows) / items)
		err_set(file->err, ST_LIMIT, "%s: data.%ss: would hold more than %lld bytes",
			file->path, names->what, (long long)DATASET_ARRAY_LIMIT);
	if (err_stuck(file->err))
		return;
	rows = mem_resize(NULL, (size_t)(items * total), sizeof(*rows));
	if (!rows)
		err_nomem(file->err);
	for (int i = 0; rows && i < names->count; i++) {
		const int64_t width = npz_width(&parts[i]);

		for (int64_t item = 0; item < items; item++)
			npz_floats(rows + item * total + at, &parts[i], item, width, names->images);
		at += width;
	}
	*out = (struct dataset_array){
		.type = DATASET_F32, .ndim = 2, .dim = {items, total}, .bytes = (uint8_t *)rows};
}

/* "x_train_user" */
static bool npz_member(char out[NPZ_MEMBER_SIZE], const char *x, const char *input)
{
	return snprintf(out, NPZ_MEMBER_SIZE, "%s_%s", x, input) < NPZ_MEMBER_SIZE;
}

/* Read the array @member, or with several names their arrays, concatenated. @kinds receives the
 * kind of each array as targets of @about; NULL: not needed. */
static void npz_joined(struct dataset_array *out, const struct npz_file *file, const char *member,
		       const struct npz_names *names, const struct dataset_about *about,
		       struct target_part *kinds)
{
	struct dataset_array *parts;
	char full[NPZ_MEMBER_SIZE];

	*out = (struct dataset_array){0};
	if (!names->count || err_stuck(file->err)) {
		npz_array(out, file, member);
		return;
	}
	parts = mem_calloc((size_t)names->count, sizeof(*parts));
	if (!parts)
		err_nomem(file->err);
	for (int i = 0; parts && i < names->count && !err_stuck(file->err); i++) {
		if (npz_member(full, member, names->items[i]))
			npz_array(&parts[i], file, full);
		else
			err_set(file->err, ST_INVALID, "data.%ss[%d]: is too long", names->what, i);
		if (kinds && !err_stuck(file->err)) {
			struct dataset_about its = *about;

			its.ignored = file->opening->params->ignored[i];
			kinds[i] = dataset__target_part(&its, &parts[i]);
		}
	}
	if (!err_stuck(file->err))
		npz_rows(out, file, names, parts);
	for (int i = 0; parts && i < names->count; i++)
		dataset__array_free(&parts[i]);
	mem_free(parts);
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
static void npz_output_weights(struct dataset_array *out, const struct npz_file *file,
			       const char *w)
{
	const struct npz_names *outputs = &file->outputs;
	struct dataset_array parts[TARGET_PARTS] = {{0}};
	char own_name[NPZ_MEMBER_SIZE];

	for (int i = 0; i < outputs->count && !err_stuck(file->err); i++) {
		const char *name = npz_weight(own_name, file, w, outputs, i);

		if (name)
			npz_array(&parts[i], file, name);
		else
			err_set(file->err, ST_NOTFOUND,
				"%s: there is no array \"%s_%s\": give one of each output that "
				"data.outputs names, or %s for those without",
				file->path, w, outputs->items[i], w);
		if (!err_stuck(file->err) && npz_width(&parts[i]) != 1)
			err_set(file->err, ST_FORMAT,
				"%s: %s has %lld numbers for each item: of a model of several "
				"outputs it has 1",
				file->path, name, (long long)npz_width(&parts[i]));
	}
	if (!err_stuck(file->err))
		npz_rows(out, file, outputs, parts);
	for (int i = 0; i < outputs->count; i++)
		dataset__array_free(&parts[i]);
}

/* Read the weights of items; @w may be missing. */
static void npz_read_weights(struct dataset *set, const struct npz_file *file, const char *w)
{
	const struct npz_names *outputs = &file->outputs;
	struct dataset_array weights = {0};
	char own_name[NPZ_MEMBER_SIZE];
	bool any = npz_has(file, w);

	for (int i = 0; i < outputs->count && !any; i++)
		any = npz_weight(own_name, file, w, outputs, i);
	if (!any)
		return;
	if (outputs->count)
		npz_output_weights(&weights, file, w);
	else
		npz_array(&weights, file, w);
	if (!err_stuck(file->err))
		dataset__weigh(set, w, &weights, file->err);
	dataset__array_free(&weights);
}

/* Read one part. Weights are optional, and so is @y if @unlabelled allows it. */
static void npz_part(struct dataset *out, const struct npz_file *file, const char *x, const char *y,
		     const char *w, bool unlabelled)
{
	struct dataset_about about = dataset__about_images(file->opening);
	struct dataset_array inputs, targets = {0};
	struct target_part kinds[TARGET_PARTS] = {{0}};

	about.source = file->source;
	about.inputs = x;
	about.targets = y;
	about.ignored = file->opening->params->ignored[0];
	npz_joined(&inputs, file, x, &file->inputs, &about, NULL);
	if (!unlabelled || npz_has_any(file, y, &file->outputs))
		npz_joined(&targets, file, y, &file->outputs, &about, kinds);
	dataset__join(out, &about, &inputs, &targets, file->err);
	if (err_stuck(file->err) || out->unlabelled)
		return;
	memcpy(out->parts, kinds, sizeof(kinds));
	out->part_count = file->outputs.count;
	npz_read_weights(out, file, w);
}

void dataset__npz_open(const struct dataset_opening *o)
{
	const struct dataset_params *params = o->params;
	const bool folder = fs_is_dir(o->path);
	char source[FS_PATH_SIZE + 16];
	struct npz_file file = {
		.opening = o,
		.path = o->path,
		.source = source,
		.inputs = {"input", params->inputs, params->input_count, true},
		.outputs = {"output", params->outputs, params->output_count, false},
		.err = o->err,
	};
	bool tests;

	snprintf(source, sizeof(source), "%.*s (%s)", DATASET_PATH_SHOWN, o->path,
		 folder ? "npy" : "npz");
	if (!folder)
		fs_read(o->path, DATASET_FILE_LIMIT, &file.bytes, &file.length, o->err);
	if (file.length >= 6 && !memcmp(file.bytes, "\x93NUMPY", 6))
		err_set(o->err, ST_INVALID,
			"%s: is one .npy array: give the folder that has x_train.npy and "
			"y_train.npy",
			o->path);
	if (!err_stuck(o->err)) {
		tests = npz_has_any(&file, "x_test", &file.inputs);
		if (!params->no_train || !tests || npz_has_any(&file, "x_train", &file.inputs))
			npz_part(o->parts[0], &file, "x_train", "y_train", "sample_weight_train",
				 false);
		if (tests || npz_has_any(&file, "y_test", &file.outputs))
			npz_part(o->parts[1], &file, "x_test", "y_test", "sample_weight_test",
				 params->no_test_targets);
	}
	mem_free(file.bytes);
}
