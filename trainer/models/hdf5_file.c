/*
 * HDF5 files of weights, using libhdf5's core driver, which keeps a file in memory.
 *
 * libhdf5 is loaded when the first file is opened: it brings 30 other libraries, which would take
 * three quarters of the time in which ipu-train starts.
 *
 * Threading: none. Ownership: libhdf5 owns a file's bytes. Source: the HDF5 reference manual, 1.10;
 * the layout of string lists is that of keras/src/legacy/saving/legacy_h5_format.py.
 */
#include "trainer/models/hdf5_file.h"

#include <dlfcn.h>
#include <hdf5.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"

#define HDF5_STEP       ((size_t)1 << 20) /* bytes by which a new file grows */
#define HDF5_TEXT_MOST  ((size_t)64 << 20)
#define HDF5_NAMES_MOST 65536
#define HDF5_CHUNK_MOST ((uint64_t)1 << 28) /* maximum bytes of a compressed chunk, unpacked */
#define HDF5_PACKED     1032                /* maximum compression ratio of deflate */
#define HDF5_KEY_MOST   64512               /* maximum bytes of an attribute: Keras's own limit */

/* Its macros open the library and check its version at each use: hdf5_load() does it once. */
#undef H5CHECK
#undef H5OPEN
#undef H5Fcreate
#undef H5Fopen
#define H5CHECK
#define H5OPEN

/* What is used of it: functions and variables. */
/* clang-format off */
#define HDF5_SYMBOLS(X) \
	X(H5Acreate2) X(H5Aexists) X(H5Aget_space) X(H5Aget_type) X(H5Aopen) X(H5Aread) \
	X(H5Awrite) X(H5Dcreate2) X(H5Dget_create_plist) X(H5Dget_space) X(H5Dget_type) \
	X(H5Dread) X(H5Dvlen_reclaim) X(H5Dwrite) X(H5Eset_auto2) X(H5Fcreate) X(H5Fflush) \
	X(H5Fget_file_image) X(H5Fopen) X(H5Gcreate2) X(H5Gget_info) X(H5Idec_ref) \
	X(H5Iget_type) X(H5Lget_name_by_idx) X(H5Oopen) X(H5PLset_loading_state) X(H5Pclose) \
	X(H5Pcreate) X(H5Pget_chunk) X(H5Pget_external_count) X(H5Pget_layout) \
	X(H5Pset_create_intermediate_group) X(H5Pset_elink_cb) X(H5Pset_fapl_core) \
	X(H5Pset_file_image) X(H5Pset_obj_track_times) X(H5Screate) X(H5Screate_simple) \
	X(H5Sget_simple_extent_dims) X(H5Sget_simple_extent_ndims) \
	X(H5Sget_simple_extent_npoints) X(H5Sget_simple_extent_type) X(H5Tcopy) X(H5Tget_class) \
	X(H5Tget_size) X(H5Tis_variable_str) X(H5Tset_cset) X(H5Tset_size) X(H5Tset_strpad) \
	X(H5check_version) X(H5open) X(H5P_CLS_DATASET_CREATE_ID_g) X(H5P_CLS_FILE_ACCESS_ID_g) \
	X(H5P_CLS_LINK_ACCESS_ID_g) X(H5P_CLS_LINK_CREATE_ID_g) X(H5T_C_S1_g) \
	X(H5T_IEEE_F32LE_g) X(H5T_NATIVE_FLOAT_g)
/* clang-format on */

static struct {
	void *library;
#define HDF5_POINTER(symbol) __typeof__(symbol) *symbol;
	HDF5_SYMBOLS(HDF5_POINTER)
} h5;

struct hdf5 {
	hid_t id, access; /* access: link access properties */
	char *name;
	size_t length; /* bytes of the file that was parsed */
};

static const char *hdf5_path(const char *path)
{
	return *path ? path : "/";
}

static enum status hdf5_failed(const struct hdf5 *file, const char *path, enum status status,
			       const char *what, struct err *err)
{
	return err_set(err, status, "%s: %.512s: %s", file->name, hdf5_path(path), what);
}

/* Report that the object at @path of the file is invalid. */
static enum status hdf5_read_failed(const struct hdf5 *file, const char *path, const char *what,
				    struct err *err)
{
	return hdf5_failed(file, path, ST_FORMAT, what, err);
}

/* Close what @id stands for, of any kind; a negative one is none. */
static void hdf5_release(hid_t id)
{
	if (id >= 0)
		h5.H5Idec_ref(id);
}

/* Load the library, once per process; it is never unloaded. */
static enum status hdf5_load(const char *name, struct err *err)
{
	static const struct {
		const char *name;
		size_t at;
	} symbols[] = {
#define HDF5_SYMBOL(symbol) {#symbol, offsetof(__typeof__(h5), symbol)},
		HDF5_SYMBOLS(HDF5_SYMBOL)};
	void *library;

	if (h5.library)
		return ST_OK;
	library = dlopen(IPUSCOPE_HDF5_FILE, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return err_set(err, ST_FAILED,
			       "%s: needs libhdf5, which cannot be loaded (%s): install it, or "
			       "keep the model as to_json() and the weights as .npz",
			       name, dlerror());
	for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
		void *symbol = dlsym(library, symbols[i].name);

		if (!symbol) {
			dlclose(library);
			return err_set(err, ST_UNSUPPORTED,
				       "%s: needs %s of libhdf5, which %s lacks: install the one "
				       "that this ipuscope was built with",
				       name, symbols[i].name, IPUSCOPE_HDF5_FILE);
		}
		memcpy((char *)&h5 + symbols[i].at, &symbol, sizeof(symbol));
	}
	h5.library = library;
	h5.H5check_version(H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE);
	h5.H5open();
	return ST_OK;
}

static herr_t hdf5_refuse_link(const char *parent, const char *group, const char *child,
			       const char *object, unsigned *flags, hid_t access, void *data)
{
	(void)parent;
	(void)group;
	(void)child;
	(void)object;
	(void)flags;
	(void)access;
	(void)data;
	return -1;
}

enum status hdf5_open(struct hdf5 **out, const char *name, const void *bytes, size_t length,
		      struct err *err)
{
	struct hdf5 *file;
	hid_t driver;

	*out = NULL;
	if (hdf5_load(name, err) != ST_OK)
		return err->status;
	file = mem_calloc(1, sizeof(*file));
	if (!file || !(file->name = mem_strdup(name))) {
		mem_free(file);
		return err_nomem(err);
	}
	h5.H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	h5.H5PLset_loading_state(0); /* never load filter plugins that a file requests */
	file->length = length;
	file->access = h5.H5Pcreate(*h5.H5P_CLS_LINK_ACCESS_ID_g);
	h5.H5Pset_elink_cb(file->access, hdf5_refuse_link, NULL);
	driver = h5.H5Pcreate(*h5.H5P_CLS_FILE_ACCESS_ID_g);
	h5.H5Pset_fapl_core(driver, HDF5_STEP, 0);
	if (bytes) {
		/* The library does not modify the image. */
		h5.H5Pset_file_image(driver, (void *)(uintptr_t)bytes, length);
		file->id = h5.H5Fopen("memory", H5F_ACC_RDONLY, driver);
	} else {
		file->id = h5.H5Fcreate("memory", H5F_ACC_TRUNC, H5P_DEFAULT, driver);
	}
	h5.H5Pclose(driver);
	if (file->id < 0) {
		hdf5_close(file);
		return bytes ? err_set(err, ST_FORMAT,
				       "%s: is truncated or damaged: libhdf5 does not open it",
				       name)
			     : err_set(err, ST_FAILED, "%s: libhdf5 did not write it", name);
	}
	*out = file;
	return ST_OK;
}

void hdf5_close(struct hdf5 *file)
{
	if (!file)
		return;
	hdf5_release(file->id);
	h5.H5Pclose(file->access);
	mem_free(file->name);
	mem_free(file);
}

/* ---- strings --------------------------------------------------------------------------------- */

/* Open the group or array at @path; the result is negative if it does not exist. */
static hid_t hdf5_open_object(const struct hdf5 *file, const char *path)
{
	return h5.H5Oopen(file->id, hdf5_path(path), file->access);
}

bool hdf5_has_group(const struct hdf5 *file, const char *path)
{
	const hid_t object = hdf5_open_object(file, path);
	const bool group = object >= 0 && h5.H5Iget_type(object) == H5I_GROUP;

	hdf5_release(object);
	return group;
}

bool hdf5_has_attribute(const struct hdf5 *file, const char *path, const char *key)
{
	const hid_t object = hdf5_open_object(file, path);
	const bool has = object >= 0 && h5.H5Aexists(object, key) > 0;

	hdf5_release(object);
	return has;
}

/* A string attribute as stored in the file: blocks of `size` bytes, or pointers. */
struct hdf5_attribute {
	hid_t id, type, space;
	bool variable; /* strings of variable length */
	size_t size;
	hssize_t count;
	char *block;
};

static void hdf5_attribute_close(struct hdf5_attribute *a)
{
	if (a->block && a->variable)
		h5.H5Dvlen_reclaim(a->type, a->space, H5P_DEFAULT, a->block);
	mem_free(a->block);
	hdf5_release(a->space);
	hdf5_release(a->type);
	hdf5_release(a->id);
}

static enum status hdf5_attribute_open(const struct hdf5 *file, const char *path, const char *key,
				       struct hdf5_attribute *a, struct err *err)
{
	const hid_t object = hdf5_open_object(file, path);
	char text[256];

	*a = (struct hdf5_attribute){.id = -1, .type = -1, .space = -1};
	if (object < 0)
		return hdf5_read_failed(file, path, "is not there", err);
	a->id = h5.H5Aopen(object, key, H5P_DEFAULT);
	hdf5_release(object);
	if (a->id >= 0)
		a->type = h5.H5Aget_type(a->id);
	if (a->id >= 0)
		a->space = h5.H5Aget_space(a->id);
	snprintf(text, sizeof(text), "its attribute \"%.64s\" is no text", key);
	/* An empty list has no string type: NumPy stores it as floats. */
	if (a->space >= 0 && h5.H5Sget_simple_extent_npoints(a->space) == 0)
		return ST_OK;
	if (a->type < 0 || a->space < 0 || h5.H5Tget_class(a->type) != H5T_STRING)
		return hdf5_read_failed(file, path, text, err);
	a->variable = h5.H5Tis_variable_str(a->type) > 0;
	a->size = h5.H5Tget_size(a->type);
	a->count = h5.H5Sget_simple_extent_npoints(a->space);
	snprintf(text, sizeof(text), "its attribute \"%.64s\" is larger than the limit", key);
	if (a->count < 0 || a->count > HDF5_NAMES_MOST || a->size == 0 ||
	    (!a->variable && a->size > HDF5_TEXT_MOST / (size_t)max(a->count, 1)))
		return hdf5_failed(file, path, ST_LIMIT, text, err);
	a->block = mem_calloc((size_t)a->count + 1, a->size);
	if (!a->block)
		return err_nomem(err);
	snprintf(text, sizeof(text), "its attribute \"%.64s\" cannot be read: it is damaged", key);
	if (h5.H5Aread(a->id, a->type, a->block) < 0) {
		memset(a->block, 0, ((size_t)a->count + 1) * a->size);
		return hdf5_read_failed(file, path, text, err);
	}
	return ST_OK;
}

/* Return string @index of the attribute, and its length. */
static const char *hdf5_attribute_text(const struct hdf5_attribute *a, size_t index, size_t *length)
{
	const char *text = a->block + index * a->size;

	if (a->variable) {
		memcpy(&text, a->block + index * a->size, sizeof(text));
		*length = text ? strlen(text) : 0;
	} else {
		*length = strnlen(text, a->size);
	}
	return text;
}

enum status hdf5_text(const struct hdf5 *file, const char *path, const char *key, char **out,
		      struct err *err)
{
	struct hdf5_attribute a;
	enum status status = hdf5_attribute_open(file, path, key, &a, err);
	size_t length = 0;
	const char *text;

	*out = NULL;
	if (status != ST_OK)
		goto end;
	if (a.count != 1) {
		status = hdf5_read_failed(file, path, "a text has to be one", err);
		goto end;
	}
	text = hdf5_attribute_text(&a, 0, &length);
	*out = length < HDF5_TEXT_MOST ? mem_calloc(length + 1, 1) : NULL;
	if (*out && length)
		memcpy(*out, text, length);
	else if (!*out)
		status = err_nomem(err);
end:
	hdf5_attribute_close(&a);
	return status;
}

/* Build the list as one allocation: the pointers, followed by the strings. @texts holds the
 * strings, each with its terminating 0. */
static enum status hdf5_list(struct hdf5_texts *out, const struct str *texts, int count,
			     struct err *err)
{
	const size_t pointers = ((size_t)count + 1) * sizeof(*out->items);
	char *at;

	*out = (struct hdf5_texts){0};
	if (texts->failed)
		return err_nomem(err);
	out->items = mem_alloc(pointers + texts->length + 1);
	if (!out->items)
		return err_nomem(err);
	at = (char *)out->items + pointers;
	if (texts->length)
		memcpy(at, texts->text, texts->length);
	for (int i = 0; i < count; i++, at += strlen(at) + 1)
		out->items[i] = at;
	out->items[count] = NULL;
	out->count = count;
	return ST_OK;
}

static enum status hdf5_texts_of(const struct hdf5 *file, const char *path, const char *key,
				 struct str *texts, int *count, struct err *err)
{
	struct hdf5_attribute a;
	enum status status = hdf5_attribute_open(file, path, key, &a, err);

	for (hssize_t i = 0; status == ST_OK && i < a.count; i++) {
		size_t length;
		const char *text = hdf5_attribute_text(&a, (size_t)i, &length);

		if (texts->length + length > HDF5_TEXT_MOST || ++*count > HDF5_NAMES_MOST)
			status = hdf5_read_failed(file, path, "has too many names", err);
		else if (length)
			str_add_bytes(texts, text, length);
		str_add_bytes(texts, "", 1);
	}
	hdf5_attribute_close(&a);
	return status;
}

enum status hdf5_texts(const struct hdf5 *file, const char *path, const char *key,
		       struct hdf5_texts *out, struct err *err)
{
	enum status status = ST_NOTFOUND;
	struct str texts = {0};
	char part[80];
	int count = 0;

	*out = (struct hdf5_texts){0};
	if (hdf5_has_attribute(file, path, key))
		status = hdf5_texts_of(file, path, key, &texts, &count, err);
	for (int i = 0; status == ST_NOTFOUND || (status == ST_OK && i > 0); i++) {
		snprintf(part, sizeof(part), "%.64s%d", key, i);
		if (!hdf5_has_attribute(file, path, part))
			break;
		status = hdf5_texts_of(file, path, part, &texts, &count, err);
		if (status != ST_OK)
			break;
	}
	if (status == ST_OK)
		status = hdf5_list(out, &texts, count, err);
	else if (status == ST_NOTFOUND)
		err_set(err, ST_NOTFOUND, "%s: %.512s: has no attribute \"%s\"", file->name,
			hdf5_path(path), key);
	str_free(&texts);
	return status;
}

enum status hdf5_names(const struct hdf5 *file, const char *path, struct hdf5_texts *out,
		       struct err *err)
{
	const hid_t group = hdf5_open_object(file, path);
	enum status status = ST_OK;
	struct str texts = {0};
	H5G_info_t info;

	*out = (struct hdf5_texts){0};
	if (group < 0 || h5.H5Gget_info(group, &info) < 0)
		status = hdf5_read_failed(file, path, "is no group that can be read", err);
	else if (info.nlinks > HDF5_NAMES_MOST)
		status = hdf5_read_failed(file, path, "has too many entries", err);
	for (hsize_t i = 0; status == ST_OK && i < info.nlinks; i++) {
		char name[1024];

		if (h5.H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name,
					  sizeof(name), H5P_DEFAULT) < 0)
			status = hdf5_read_failed(file, path, "its names cannot be read", err);
		else
			str_add_bytes(&texts, name, strlen(name) + 1);
	}
	if (status == ST_OK)
		status = hdf5_list(out, &texts, (int)info.nlinks, err);
	hdf5_release(group);
	str_free(&texts);
	return status;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

struct hdf5_array {
	hid_t id, type, space, creation;
};

static void hdf5_array_close(struct hdf5_array *a)
{
	hdf5_release(a->creation);
	hdf5_release(a->space);
	hdf5_release(a->type);
	hdf5_release(a->id);
}

/* Whether a chunk is within the limit: compressed chunks are unpacked whole. */
static bool hdf5_chunk_fits(const struct hdf5_array *a, int ndim)
{
	uint64_t bytes = h5.H5Tget_size(a->type);
	hsize_t chunk[HDF5_DIMS] = {0};

	if (h5.H5Pget_layout(a->creation) != H5D_CHUNKED)
		return true;
	if (h5.H5Pget_chunk(a->creation, HDF5_DIMS, chunk) != ndim)
		return false;
	for (int i = 0; i < ndim; i++) {
		if (chunk[i] < 1 || chunk[i] > HDF5_CHUNK_MOST / bytes)
			return false;
		bytes *= chunk[i];
	}
	return true;
}

static enum status hdf5_array_open(const struct hdf5 *file, const char *path, struct hdf5_array *a,
				   struct hdf5_shape *shape, struct err *err)
{
	hsize_t dim[HDF5_DIMS] = {0};
	uint64_t limit = (uint64_t)file->length * HDF5_PACKED, count = 1;

	*a = (struct hdf5_array){-1, -1, -1, -1};
	*shape = (struct hdf5_shape){0};
	a->id = hdf5_open_object(file, path);
	if (a->id < 0 || h5.H5Iget_type(a->id) != H5I_DATASET)
		return hdf5_read_failed(file, path, "there is no such array", err);
	a->type = h5.H5Dget_type(a->id);
	a->space = h5.H5Dget_space(a->id);
	a->creation = h5.H5Dget_create_plist(a->id);
	if (a->type < 0 || a->space < 0 || a->creation < 0)
		return hdf5_read_failed(file, path, "cannot be read: it is damaged", err);
	if (h5.H5Tget_class(a->type) != H5T_FLOAT)
		return err_set(err, ST_UNSUPPORTED, "%s: %.512s: holds no floats: weights are",
			       file->name, path);
	if (h5.H5Sget_simple_extent_type(a->space) == H5S_NULL)
		return hdf5_read_failed(file, path, "is empty", err);
	shape->ndim = h5.H5Sget_simple_extent_ndims(a->space);
	if (shape->ndim < 0 || shape->ndim > HDF5_DIMS)
		return hdf5_read_failed(file, path, "has more dimensions than 8", err);
	h5.H5Sget_simple_extent_dims(a->space, dim, NULL);
	for (int i = 0; i < shape->ndim; i++) {
		if (dim[i] > limit / count)
			return hdf5_read_failed(file, path,
						"its dimensions are beyond what the file can hold",
						err);
		count *= dim[i] ? dim[i] : 1;
		shape->dim[i] = (int64_t)dim[i];
	}
	if (h5.H5Pget_external_count(a->creation) != 0 ||
	    h5.H5Pget_layout(a->creation) == H5D_VIRTUAL)
		return err_set(err, ST_UNSUPPORTED,
			       "%s: %.512s: its values lie in another file, which is not followed",
			       file->name, path);
	if (!hdf5_chunk_fits(a, shape->ndim))
		return hdf5_read_failed(file, path, "its packed blocks are beyond the limit", err);
	return ST_OK;
}

enum status hdf5_shape(const struct hdf5 *file, const char *path, struct hdf5_shape *out,
		       struct err *err)
{
	struct hdf5_array a;
	enum status status = hdf5_array_open(file, path, &a, out, err);

	hdf5_array_close(&a);
	return status;
}

enum status hdf5_read(const struct hdf5 *file, const char *path, float *out, size_t count,
		      struct err *err)
{
	struct hdf5_array a;
	struct hdf5_shape shape;
	enum status status = hdf5_array_open(file, path, &a, &shape, err);

	if (status != ST_OK)
		goto end;
	if (h5.H5Sget_simple_extent_npoints(a.space) != (hssize_t)count)
		status = hdf5_read_failed(file, path, "has another number of values", err);
	else if (h5.H5Dread(a.id, *h5.H5T_NATIVE_FLOAT_g, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) < 0)
		status = hdf5_read_failed(
			file, path,
			"its values cannot be read: the file is truncated, damaged "
			"or packed by an unknown filter",
			err);
end:
	hdf5_array_close(&a);
	return status;
}

/* ---- writing --------------------------------------------------------------------------------- */

static enum status hdf5_write_failed(const struct hdf5 *file, const char *path, struct err *err)
{
	return hdf5_failed(file, path, ST_FAILED, "libhdf5 did not write it", err);
}

static hid_t hdf5_link_properties(void)
{
	const hid_t links = h5.H5Pcreate(*h5.H5P_CLS_LINK_CREATE_ID_g);

	h5.H5Pset_create_intermediate_group(links, 1);
	return links;
}

enum status hdf5_put_group(struct hdf5 *file, const char *path, struct err *err)
{
	hid_t links, group;

	if (hdf5_has_group(file, path))
		return ST_OK;
	links = hdf5_link_properties();
	group = h5.H5Gcreate2(file->id, path, links, H5P_DEFAULT, H5P_DEFAULT);
	hdf5_release(group);
	hdf5_release(links);
	return group < 0 ? hdf5_write_failed(file, path, err) : ST_OK;
}

/* Write an attribute, and close @type and @space. */
static enum status hdf5_put_attribute(struct hdf5 *file, const char *path, const char *key,
				      hid_t type, hid_t space, const void *block, struct err *err)
{
	const hid_t object = hdf5_open_object(file, path);
	hid_t id = -1;
	herr_t put = -1;

	if (object >= 0)
		id = h5.H5Acreate2(object, key, type, space, H5P_DEFAULT, H5P_DEFAULT);
	if (id >= 0)
		put = h5.H5Awrite(id, type, block);
	hdf5_release(id);
	hdf5_release(space);
	hdf5_release(type);
	hdf5_release(object);
	return put < 0 ? hdf5_write_failed(file, path, err) : ST_OK;
}

/* A string of variable length is stored outside the object's header, so that it may be long. */
enum status hdf5_put_text(struct hdf5 *file, const char *path, const char *key, const char *text,
			  struct err *err)
{
	const hid_t type = h5.H5Tcopy(*h5.H5T_C_S1_g);

	h5.H5Tset_size(type, H5T_VARIABLE);
	h5.H5Tset_cset(type, H5T_CSET_UTF8);
	return hdf5_put_attribute(file, path, key, type, h5.H5Screate(H5S_SCALAR), &text, err);
}

static size_t hdf5_longest(const char *const *items, int count)
{
	size_t longest = 1;

	for (int i = 0; i < count; i++)
		longest = max(longest, strlen(items[i]));
	return longest;
}

static enum status hdf5_put_part(struct hdf5 *file, const char *path, const char *key,
				 const char *const *items, int count, struct err *err)
{
	const hsize_t dim[1] = {(hsize_t)count};
	const size_t size = hdf5_longest(items, count);
	char *block = mem_calloc((size_t)count + 1, size);
	enum status status;
	hid_t type;

	if (!block)
		return err_nomem(err);
	type = h5.H5Tcopy(*h5.H5T_C_S1_g);
	h5.H5Tset_size(type, size);
	h5.H5Tset_strpad(type, H5T_STR_NULLPAD);
	for (int i = 0; i < count; i++)
		memcpy(block + (size_t)i * size, items[i], strlen(items[i]));
	status = hdf5_put_attribute(file, path, key, type, h5.H5Screate_simple(1, dim, NULL), block,
				    err);
	mem_free(block);
	return status;
}

enum status hdf5_put_texts(struct hdf5 *file, const char *path, const char *key,
			   const char *const *items, int count, struct err *err)
{
	const int per_part = (int)(HDF5_KEY_MOST / hdf5_longest(items, count));
	enum status status = ST_OK;
	char part[80];

	if (count <= per_part)
		return hdf5_put_part(file, path, key, items, count, err);
	for (int at = 0, i = 0; at < count && status == ST_OK; at += per_part, i++) {
		snprintf(part, sizeof(part), "%.64s%d", key, i);
		status =
			hdf5_put_part(file, path, part, items + at, min(per_part, count - at), err);
	}
	return status;
}

enum status hdf5_put(struct hdf5 *file, const char *path, const struct hdf5_shape *shape,
		     const float *values, struct err *err)
{
	hid_t links = hdf5_link_properties(),
	      creation = h5.H5Pcreate(*h5.H5P_CLS_DATASET_CREATE_ID_g), space, id;
	hsize_t dim[HDF5_DIMS];
	herr_t put = -1;

	for (int i = 0; i < shape->ndim; i++)
		dim[i] = (hsize_t)shape->dim[i];
	h5.H5Pset_obj_track_times(creation, 0); /* so that equal values give equal bytes */
	space = shape->ndim ? h5.H5Screate_simple(shape->ndim, dim, NULL)
			    : h5.H5Screate(H5S_SCALAR);
	id = h5.H5Dcreate2(file->id, path, *h5.H5T_IEEE_F32LE_g, space, links, creation,
			   H5P_DEFAULT);
	if (id >= 0)
		put = h5.H5Dwrite(id, *h5.H5T_NATIVE_FLOAT_g, H5S_ALL, H5S_ALL, H5P_DEFAULT,
				  values);
	hdf5_release(id);
	hdf5_release(space);
	hdf5_release(creation);
	hdf5_release(links);
	return put < 0 ? hdf5_write_failed(file, path, err) : ST_OK;
}

enum status hdf5_bytes(struct hdf5 *file, char **out, size_t *length, struct err *err)
{
	ssize_t size;

	*out = NULL;
	h5.H5Fflush(file->id, H5F_SCOPE_GLOBAL);
	size = h5.H5Fget_file_image(file->id, NULL, 0);
	if (size <= 0)
		return hdf5_write_failed(file, "", err);
	*out = mem_alloc((size_t)size);
	if (!*out)
		return err_nomem(err);
	*length = (size_t)size;
	return h5.H5Fget_file_image(file->id, *out, *length) == size
		       ? ST_OK
		       : hdf5_write_failed(file, "", err);
}
