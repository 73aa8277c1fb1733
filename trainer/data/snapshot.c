/*
 * Named fields of bytes in one file.
 *
 *     magic, order mark; fields: length of the name, bytes, name, data; a length of 0; XXH3
 *
 * Threading: one thread. Ownership: a snapshot for reading borrows the file's bytes; a part owns
 * its bytes.
 */
#include "trainer/data/snapshot.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "common/fs.h"
#include "common/mem.h"

#define SNAPSHOT_MAGIC "ipuscope snapshot 1"
#define SNAPSHOT_ORDER 0x01020304u
#define SNAPSHOT_NAME  4096 /* bytes of a name, including prefix and terminating 0 */

struct snapshot_head {
	char magic[20];
	uint32_t order;
};

struct snapshot_entry {
	uint32_t name; /* bytes; 0: last entry */
	uint32_t unused;
	uint64_t data; /* bytes */
};

struct snapshot {
	const char *path;
	struct err *err;
	char prefix[256];
	bool reads;
	/* Writing; a part has no digest and collects its fields in memory. */
	struct fs_writer file;
	XXH3_state_t *digest;
	char *part;
	size_t used, room;
	/* Reading: fields extend from `first` to `end`; the search for the next starts at `at`. */
	const char *bytes;
	size_t first, at, end;
};

bool snapshot_reads(const struct snapshot *snapshot)
{
	return snapshot->reads;
}

struct err *snapshot_err(const struct snapshot *snapshot)
{
	return snapshot->err;
}

const char *snapshot_path(const struct snapshot *snapshot)
{
	return snapshot->path;
}

void snapshot_prefix(struct snapshot *snapshot, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(snapshot->prefix, sizeof(snapshot->prefix), format, arguments);
	va_end(arguments);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_bytes(struct snapshot *snapshot, const void *data, size_t bytes)
{
	if (err_stuck(snapshot->err) || bytes == 0)
		return;
	if (!snapshot->digest) {
		if (mem_grow(&snapshot->part, &snapshot->room, snapshot->used + bytes, 1) != 0) {
			err_nomem(snapshot->err);
			return;
		}
		memcpy(snapshot->part + snapshot->used, data, bytes);
		snapshot->used += bytes;
		return;
	}
	XXH3_64bits_update(snapshot->digest, data, bytes);
	fs_writer_put(&snapshot->file, data, bytes, snapshot->err);
}

enum status snapshot_create(struct snapshot **out, const char *path, struct err *err)
{
	const struct snapshot_head head = {SNAPSHOT_MAGIC, SNAPSHOT_ORDER};
	struct snapshot *snapshot = mem_calloc(1, sizeof(*snapshot));

	*out = NULL;
	err_start(err, err);
	if (!snapshot)
		return err_nomem(err);
	snapshot->path = path;
	snapshot->err = err;
	snapshot->digest = XXH3_createState();
	if (!snapshot->digest) {
		mem_free(snapshot);
		return err_nomem(err);
	}
	XXH3_64bits_reset(snapshot->digest);
	if (fs_writer_open(&snapshot->file, path, err) != ST_OK) {
		XXH3_freeState(snapshot->digest);
		mem_free(snapshot);
		return err->status;
	}
	write_bytes(snapshot, &head, sizeof(head));
	*out = snapshot;
	return ST_OK;
}

enum status snapshot_create_part(struct snapshot **out, struct err *err)
{
	*out = mem_calloc(1, sizeof(**out));
	err_start(err, err);
	if (!*out)
		return err_nomem(err);
	(*out)->path = "backup";
	(*out)->err = err;
	return ST_OK;
}

const void *snapshot_part(const struct snapshot *snapshot, size_t *bytes)
{
	*bytes = snapshot->used;
	return snapshot->part;
}

void snapshot_append(struct snapshot *snapshot, const void *part, size_t bytes)
{
	write_bytes(snapshot, part, bytes);
}

static void write_field(struct snapshot *snapshot, const char *name, const void *data, size_t bytes)
{
	const struct snapshot_entry entry = {.name = (uint32_t)strlen(name), .data = bytes};

	write_bytes(snapshot, &entry, sizeof(entry));
	write_bytes(snapshot, name, entry.name);
	write_bytes(snapshot, data, bytes);
}

enum status snapshot_close(struct snapshot *snapshot)
{
	enum status status;

	if (!snapshot)
		return ST_OK;
	if (snapshot->digest) {
		const struct snapshot_entry last = {0};
		uint64_t digest;

		write_bytes(snapshot, &last, sizeof(last));
		digest = XXH3_64bits_digest(snapshot->digest);
		write_bytes(snapshot, &digest, sizeof(digest));
		if (err_stuck(snapshot->err))
			fs_writer_drop(&snapshot->file);
		else
			fs_writer_close(&snapshot->file, snapshot->err);
	}
	status = snapshot->err->status;
	XXH3_freeState(snapshot->digest);
	mem_free(snapshot->part);
	mem_free(snapshot);
	return status;
}

/* ---- reading --------------------------------------------------------------------------------- */

static struct snapshot_entry entry_at(const struct snapshot *snapshot, size_t at)
{
	struct snapshot_entry entry;

	memcpy(&entry, snapshot->bytes + at, sizeof(entry));
	return entry;
}

static size_t entry_bytes(const struct snapshot_entry *entry)
{
	return sizeof(*entry) + entry->name + (size_t)entry->data;
}

/* A forged file can have a matching digest, so check each length against the bytes left. */
static bool fields_fit(struct snapshot *snapshot, size_t length)
{
	size_t at = snapshot->first;

	for (;;) {
		const size_t left = length - at;
		struct snapshot_entry entry;

		if (left < sizeof(entry))
			return false;
		entry = entry_at(snapshot, at);
		if (entry.name == 0) {
			snapshot->end = at;
			return entry.data == 0 && left == sizeof(entry);
		}
		if (entry.name >= SNAPSHOT_NAME || entry.name > left - sizeof(entry) ||
		    entry.data > left - sizeof(entry) - entry.name)
			return false;
		at += entry_bytes(&entry);
	}
}

static enum status check_file(struct snapshot *snapshot, size_t length)
{
	struct snapshot_head head;
	uint64_t digest;

	if (length < sizeof(head) || memcmp(snapshot->bytes, SNAPSHOT_MAGIC, sizeof(head.magic)))
		return err_set(snapshot->err, ST_INVALID,
			       "%s: is no backup that ipu-train has written", snapshot->path);
	memcpy(&head, snapshot->bytes, sizeof(head));
	if (head.order != SNAPSHOT_ORDER)
		return err_set(snapshot->err, ST_INVALID,
			       "%s: was written on a machine with another order of bytes",
			       snapshot->path);
	snapshot->first = snapshot->at = sizeof(head);
	if (length < sizeof(head) + sizeof(digest))
		length = 0;
	else
		memcpy(&digest, snapshot->bytes + length - sizeof(digest), sizeof(digest));
	if (length > 0 && XXH3_64bits(snapshot->bytes, length - sizeof(digest)) == digest &&
	    fields_fit(snapshot, length - sizeof(digest)))
		return ST_OK;
	return err_set(snapshot->err, ST_INVALID,
		       "%s: the backup is cut short or damaged: delete it to train from the "
		       "beginning",
		       snapshot->path);
}

enum status snapshot_parse(struct snapshot **out, const char *path, const void *bytes,
			   size_t length, struct err *err)
{
	struct snapshot *snapshot = mem_calloc(1, sizeof(*snapshot));

	*out = NULL;
	err_start(err, err);
	if (!snapshot)
		return err_nomem(err);
	*snapshot = (struct snapshot){.path = path, .err = err, .reads = true, .bytes = bytes};
	if (check_file(snapshot, length) != ST_OK)
		return snapshot_close(snapshot);
	*out = snapshot;
	return ST_OK;
}

/* Find a field's offset; false: absent. Fields are usually read in the order in which they were
 * written, so the search starts after the last one read and wraps around. */
static bool find_field(const struct snapshot *snapshot, const char *name, size_t *out)
{
	const size_t length = strlen(name);
	size_t at = snapshot->at;

	for (int round = 0; round < 2; round++) {
		const size_t until = round == 0 ? snapshot->end : snapshot->at;

		while (at < until) {
			const struct snapshot_entry entry = entry_at(snapshot, at);

			*out = at;
			if (entry.name == length &&
			    !memcmp(snapshot->bytes + at + sizeof(entry), name, length))
				return true;
			at += entry_bytes(&entry);
		}
		at = snapshot->first;
	}
	return false;
}

static bool full_name(const struct snapshot *snapshot, const char *name, char out[SNAPSHOT_NAME])
{
	if (snprintf(out, SNAPSHOT_NAME, "%s%s", snapshot->prefix, name) < SNAPSHOT_NAME)
		return true;
	err_set(snapshot->err, ST_LIMIT, "%s: a name is too long: \"%.80s...\"", snapshot->path,
		name);
	return false;
}

/* Return the field's bytes, or NULL if it is absent, which is an error. */
static const char *read_field(struct snapshot *snapshot, const char *name, size_t *bytes)
{
	struct snapshot_entry entry;
	size_t at;

	if (!find_field(snapshot, name, &at)) {
		err_set(snapshot->err, ST_INVALID,
			"%s: the backup has no \"%s\": it is of another run", snapshot->path, name);
		return NULL;
	}
	entry = entry_at(snapshot, at);
	snapshot->at = at + entry_bytes(&entry);
	*bytes = (size_t)entry.data;
	return snapshot->bytes + at + sizeof(entry) + entry.name;
}

/* ---- fields ---------------------------------------------------------------------------------- */

void snapshot_field(struct snapshot *snapshot, const char *name, void *data, size_t bytes)
{
	char full[SNAPSHOT_NAME];
	const char *from;
	size_t there;

	if (err_stuck(snapshot->err) || !full_name(snapshot, name, full))
		return;
	if (!snapshot->reads) {
		write_field(snapshot, full, data, bytes);
		return;
	}
	from = read_field(snapshot, full, &there);
	if (from && there != bytes)
		err_set(snapshot->err, ST_INVALID,
			"%s: \"%s\" has %zu bytes in the backup, but %zu in this run",
			snapshot->path, full, there, bytes);
	else if (from && bytes > 0)
		memcpy(data, from, bytes);
}

bool snapshot_fits(const struct snapshot *snapshot, const char *name, size_t bytes)
{
	char full[SNAPSHOT_NAME];
	struct snapshot_entry entry;
	size_t at;

	if (err_stuck(snapshot->err) || !full_name(snapshot, name, full) ||
	    !find_field(snapshot, full, &at))
		return false;
	entry = entry_at(snapshot, at);
	return entry.data == bytes;
}

const void *snapshot_bytes(struct snapshot *snapshot, const char *name, const void *data,
			   size_t *bytes)
{
	char full[SNAPSHOT_NAME];

	if (err_stuck(snapshot->err) || !full_name(snapshot, name, full))
		return NULL;
	if (snapshot->reads)
		return read_field(snapshot, full, bytes);
	write_field(snapshot, full, data, *bytes);
	return data;
}

void snapshot_integer(struct snapshot *snapshot, const char *name, int64_t *value, int64_t least,
		      int64_t greatest)
{
	int64_t there = *value;

	snapshot_field(snapshot, name, &there, sizeof(there));
	if (err_stuck(snapshot->err))
		return;
	if (there < least || there > greatest)
		err_set(snapshot->err, ST_INVALID,
			"%s: \"%s%s\" is %lld, which must be from %lld to %lld in this run",
			snapshot->path, snapshot->prefix, name, (long long)there, (long long)least,
			(long long)greatest);
	else
		*value = there;
}

void snapshot_real(struct snapshot *snapshot, const char *name, double *value)
{
	snapshot_field(snapshot, name, value, sizeof(*value));
}

void snapshot_flag(struct snapshot *snapshot, const char *name, bool *value)
{
	int64_t number = *value;

	snapshot_integer(snapshot, name, &number, 0, 1);
	*value = number == 1;
}

const char *snapshot_text(struct snapshot *snapshot, const char *name, const char *text)
{
	size_t bytes = text ? strlen(text) + 1 : 0;
	const char *from = snapshot_bytes(snapshot, name, text, &bytes);

	if (from && (bytes == 0 || from[bytes - 1] != '\0' || strlen(from) + 1 != bytes)) {
		err_set(snapshot->err, ST_INVALID, "%s: \"%s%s\" is no text", snapshot->path,
			snapshot->prefix, name);
		from = NULL;
	}
	return from;
}
