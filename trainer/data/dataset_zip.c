/*
 * Zip archives in memory: their directory, and members that are stored or deflated.
 *
 * The central directory at the file's end says where members lie and how long they are; the local
 * headers are believed for the length of their names alone. Every offset is checked against the
 * file before use.
 *
 * Threading: none. Source: PKWARE's APPNOTE.TXT.
 */
#include "trainer/data/dataset_zip.h"

#include <string.h>

#define ZIP_END_SIZE     22
#define ZIP_COMMENT_MOST 65535
#define ZIP_ENTRY_SIZE   46
#define ZIP_LOCAL_SIZE   30
#define ZIP_BEYOND       0xffffffffu /* the number stands in a zip64 record */

static uint32_t zip_u16(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static uint32_t zip_u32(const uint8_t *at)
{
	return zip_u16(at) | zip_u16(at + 2) << 16;
}

/* The record at the end, behind which only a comment of the length it states may come. */
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
