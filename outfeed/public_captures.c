/*
 * Kept values read back, behind a handle.
 *
 * Threading and ownership: as ipuscope/outfeed.h says.
 */
#include <string.h>

#include "common/mem.h"
#include "outfeed/outfeed_captures.h"
#include "outfeed/public_internal.h"

struct ips_captures {
	struct prof_db *db;
	struct outfeed_captures *captures;
	struct ips_captures_array *arrays; /* of all of them */
	int count;
};

static void show(struct ips_captures_array *out, const struct outfeed_array *array)
{
	out->queue = array->queue;
	out->key = array->key;
	out->name = array->name;
	out->dtype = (enum ips_outfeed_dtype)array->dtype;
	memcpy(out->shape, array->shape, sizeof(out->shape));
	out->ndim = array->ndim;
	out->replicas = array->replicas;
	out->uneven = array->uneven;
	out->bytes = array->bytes;
	out->incomplete = array->incomplete;
}

static enum status open_captures(struct ips_captures *captures, const char *path, struct err *err)
{
	enum status status = prof_db_open(&captures->db, path, err);

	if (status == ST_OK)
		status = outfeed_captures_open(&captures->captures, captures->db, err);
	if (status != ST_OK)
		return status;
	captures->count = outfeed_captures_count(captures->captures);
	captures->arrays = mem_calloc((size_t)captures->count + 1, sizeof(*captures->arrays));
	if (!captures->arrays)
		return err_nomem(err);
	for (int i = 0; i < captures->count; i++)
		show(&captures->arrays[i], outfeed_captures_at(captures->captures, i));
	return ST_OK;
}

int ips_captures_open(struct ips_captures **out, const char *path, char *message, size_t size)
{
	struct ips_captures *captures;
	struct err err = {ST_OK, ""};
	enum status status;

	if (!out)
		return public__null("out", message, size);
	*out = NULL;
	if (!path)
		return public__null("path", message, size);
	captures = mem_calloc(1, sizeof(*captures));
	if (!captures)
		return public__status(err_nomem(&err), &err, message, size);
	status = open_captures(captures, path, &err);
	if (status == ST_OK)
		*out = captures;
	else
		ips_captures_close(captures);
	return public__status(status, &err, message, size);
}

void ips_captures_close(struct ips_captures *captures)
{
	if (!captures)
		return;
	mem_free(captures->arrays);
	outfeed_captures_close(captures->captures);
	prof_db_close(captures->db);
	mem_free(captures);
}

int ips_captures_count(const struct ips_captures *captures)
{
	return !captures ? 0 : captures->count;
}

const struct ips_captures_array *ips_captures_at(const struct ips_captures *captures, int index)
{
	return index >= 0 && index < ips_captures_count(captures) ? &captures->arrays[index] : NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

static enum status no_array(const struct ips_captures *captures, int index, struct err *err)
{
	return err_set(err, ST_INVALID, "%s: array %d, where there are %d",
		       prof_db_path(captures->db), index, captures->count);
}

static enum status take(void *user, const void *data, size_t bytes, struct err *err)
{
	unsigned char **at = user;

	(void)err;
	memcpy(*at, data, bytes);
	*at += bytes;
	return ST_OK;
}

static enum status read_items(struct ips_captures *captures, int index, int64_t first,
			      int64_t count, void *buffer, struct err *err)
{
	const struct ips_captures_array *array = ips_captures_at(captures, index);
	unsigned char *at = buffer;

	if (!array)
		return no_array(captures, index, err);
	if (first < 0 || count < 0 || first > array->shape[0] || count > array->shape[0] - first)
		return err_set(err, ST_INVALID,
			       "%s: array \"%s\": %lld items from %lld on, where there are %lld",
			       prof_db_path(captures->db), array->name, (long long)count,
			       (long long)first, (long long)array->shape[0]);
	return outfeed_captures_read_part(captures->captures, index, first, count, take, &at, err);
}

int ips_captures_read(struct ips_captures *captures, int index, int64_t first, int64_t count,
		      void *buffer, char *message, size_t size)
{
	struct err err = {ST_OK, ""};
	enum status status;

	if (!captures)
		return public__null("captures", message, size);
	if (!buffer && count > 0)
		return public__null("buffer", message, size);
	status = read_items(captures, index, first, count, buffer, &err);
	return public__status(status, &err, message, size);
}

int ips_captures_keys(struct ips_captures *captures, int index, struct ips_keys *keys,
		      char *message, size_t size)
{
	struct err err = {ST_OK, ""};
	enum status status;

	if (!captures)
		return public__null("captures", message, size);
	if (!keys)
		return public__null("keys", message, size);
	status = !ips_captures_at(captures, index)
			 ? no_array(captures, index, &err)
			 : outfeed_captures_keys(captures->captures, index, keys, &err);
	return public__status(status, &err, message, size);
}
