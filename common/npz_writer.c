/*
 * .npz files: zip archives of .npy members.
 *
 * Members are stored, not compressed: floats hardly shrink. A member's checksum precedes its
 * values: an array in memory is read twice; for values in pieces the checksum is patched in after
 * the last one. Neither way buffers the values.
 *
 * Threading: none. Sources: PKWARE's APPNOTE.TXT, NumPy's format description (numpy.lib.format).
 */
#include "common/npz_writer.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "common/minmax.h"

#define NPZ_CHUNK     4096                 /* floats converted to bytes at a time */
#define NPZ_HEADER    512                  /* most bytes of an .npy header */
#define NPZ_BEYOND    UINT64_C(0xffffffff) /* sizes and offsets from here on need zip64 */
#define NPZ_MANY      UINT64_C(0xffff)     /* member counts from here on need zip64 */
#define NPZ_MOST      (UINT64_C(1) << 62)  /* most bytes of a file */
#define ZIP_VERSION   20
#define ZIP_VERSION64 45
#define ZIP_UTF8      0x800
#define ZIP_DATE      0x21 /* 1980-01-01, so that a file depends on its values only */
#define ZIP_CRC_AT    14   /* offset in a local header */
#define ZIP_ENTRY_CRC 16   /* offset in a directory entry */

static void npz_u16(struct str *out, uint32_t value)
{
	const char bytes[] = {(char)(value & 255), (char)(value >> 8 & 255)};

	str_add_bytes(out, bytes, sizeof(bytes));
}

static void npz_u32(struct str *out, uint32_t value)
{
	npz_u16(out, value & 0xffff);
	npz_u16(out, value >> 16);
}

static void npz_u64(struct str *out, uint64_t value)
{
	npz_u32(out, (uint32_t)(value & 0xffffffff));
	npz_u32(out, (uint32_t)(value >> 32));
}

/* A number of 32 bits, or the marker that a zip64 record has it. */
static void npz_u32_or_marker(struct str *out, uint64_t value)
{
	npz_u32(out, value >= NPZ_BEYOND ? 0xffffffff : (uint32_t)value);
}

/* Convert to little-endian on any machine; return the number of bytes. */
static size_t npz_to_bytes(const float *values, size_t count, uint8_t *out)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t bits;

		memcpy(&bits, &values[i], sizeof(bits));
		for (int j = 0; j < 4; j++)
			out[4 * i + (size_t)j] = (uint8_t)(bits >> 8 * j);
	}
	return 4 * count;
}

/* Write the .npy header, padded to a multiple of 64 bytes with the magic; return its length. */
static size_t npz_header(const struct npz_member *member, char out[NPZ_HEADER])
{
	size_t used = 10, length;

	used += (size_t)snprintf(out + used, NPZ_HEADER - used,
				 "{'descr': '%s', 'fortran_order': False, 'shape': (",
				 dtype_npy(member->type));
	for (int i = 0; i < member->ndim; i++)
		used += (size_t)snprintf(out + used, NPZ_HEADER - used, "%s%lld", i ? ", " : "",
					 (long long)member->dim[i]);
	used += (size_t)snprintf(out + used, NPZ_HEADER - used, "%s), }",
				 member->ndim == 1 ? "," : "");
	length = (used + 1 + 63) / 64 * 64;
	memset(out + used, ' ', length - 1 - used);
	out[length - 1] = '\n';
	memcpy(out, "\x93NUMPY\1\0", 8);
	out[8] = (char)((length - 10) & 255);
	out[9] = (char)((length - 10) >> 8);
	return length;
}

static uint32_t npz_crc(uint32_t crc, const void *data, size_t length)
{
	return (uint32_t)crc32_z(crc, data, length);
}

/* ---- a member -------------------------------------------------------------------------------- */

/* The fields that local header and directory entry share, from the version on; @extra is the length
 * of the extra field after the name. */
static void npz_shared_fields(struct str *out, const char *name, uint32_t crc, uint64_t size,
			      bool zip64, uint32_t extra)
{
	uint32_t flags = 0;

	for (const char *c = name; *c; c++)
		if ((unsigned char)*c >= 0x80)
			flags = ZIP_UTF8;
	npz_u16(out, zip64 ? ZIP_VERSION64 : ZIP_VERSION);
	npz_u16(out, flags);
	npz_u16(out, 0); /* stored */
	npz_u16(out, 0); /* midnight */
	npz_u16(out, ZIP_DATE);
	npz_u32(out, crc);
	npz_u32_or_marker(out, size);
	npz_u32_or_marker(out, size);
	npz_u16(out, (uint32_t)strlen(name));
	npz_u16(out, extra);
}

static void npz_local_header(struct str *out, const char *name, uint32_t crc, uint64_t size)
{
	const bool zip64 = size >= NPZ_BEYOND;

	str_add_bytes(out, "PK\3\4", 4);
	npz_shared_fields(out, name, crc, size, zip64, zip64 ? 20 : 0);
	str_add(out, name);
	if (zip64) {
		npz_u16(out, 1);
		npz_u16(out, 16);
		npz_u64(out, size);
		npz_u64(out, size);
	}
}

/* Append the member's entry to the directory, which is written last. */
static void npz_add_entry(struct npz_writer *writer, const char *name, uint32_t crc, uint64_t size)
{
	struct str *out = &writer->directory;
	const bool large = size >= NPZ_BEYOND, far = writer->at >= NPZ_BEYOND;
	const uint32_t numbers = (large ? 16u : 0u) + (far ? 8u : 0u);

	writer->entry = out->length;
	str_add_bytes(out, "PK\1\2", 4);
	npz_u16(out, numbers ? ZIP_VERSION64 : ZIP_VERSION);
	npz_shared_fields(out, name, crc, size, numbers != 0, numbers ? numbers + 4 : 0);
	npz_u16(out, 0); /* no comment */
	npz_u16(out, 0); /* the first disk */
	npz_u16(out, 0); /* binary */
	npz_u32(out, 0); /* no attributes */
	npz_u32_or_marker(out, writer->at);
	str_add(out, name);
	if (numbers) {
		npz_u16(out, 1);
		npz_u16(out, numbers);
	}
	if (large) {
		npz_u64(out, size);
		npz_u64(out, size);
	}
	if (far)
		npz_u64(out, writer->at);
}

static enum status npz_put(struct npz_writer *writer, const void *data, size_t length)
{
	writer->at += length;
	return fs_writer_put(&writer->file, data, length, writer->err);
}

/* Write the zip header of member @name and the @length bytes at @header; @bytes of values will
 * follow. @crc covers both. */
static enum status npz_begin_member(struct npz_writer *writer, const char *name, const char *header,
				    size_t length, uint64_t bytes, uint32_t crc)
{
	struct str local = {0};
	enum status status;

	if (strlen(name) >= NPZ_NAME_SIZE + 4 || bytes > NPZ_MOST - writer->at - length)
		return err_set(writer->err, ST_LIMIT, "%s: does not fit into a zip archive",
			       writer->path);
	npz_local_header(&local, name, crc, length + bytes);
	npz_add_entry(writer, name, crc, length + bytes);
	writer->members++;
	writer->local = writer->at;
	if (local.failed || writer->directory.failed)
		status = err_nomem(writer->err);
	else
		status = npz_put(writer, local.text, local.length);
	str_free(&local);
	return status == ST_OK ? npz_put(writer, header, length) : status;
}

/* npz_begin_member() for the array @member. */
static enum status npz_begin_array(struct npz_writer *writer, const struct npz_member *member,
				   const char *header, size_t length, uint64_t bytes, uint32_t crc)
{
	char name[NPZ_NAME_SIZE + 5];

	snprintf(name, sizeof(name), "%s.npy", member->name);
	return npz_begin_member(writer, name, header, length, bytes, crc);
}

enum status npz_writer_file(struct npz_writer *writer, const char *name, const char *data,
			    size_t length)
{
	return npz_begin_member(writer, name, data, length, 0, npz_crc(0, data, length));
}

enum status npz_writer_put(struct npz_writer *writer, const struct npz_member *member,
			   const float *values, size_t count)
{
	char header[NPZ_HEADER];
	uint8_t chunk[4 * NPZ_CHUNK];
	size_t length = npz_header(member, header);
	uint32_t crc = npz_crc(0, header, length);
	enum status status;

	/* The member's header, which precedes the values, has their checksum. */
	for (size_t done = 0; done < count;) {
		size_t part = min(count - done, NPZ_CHUNK);

		crc = npz_crc(crc, chunk, npz_to_bytes(values + done, part, chunk));
		done += part;
	}
	status = npz_begin_array(writer, member, header, length, sizeof(float) * (uint64_t)count,
				 crc);
	for (size_t done = 0; done < count && status == ST_OK;) {
		size_t part = min(count - done, NPZ_CHUNK);

		status = npz_put(writer, chunk, npz_to_bytes(values + done, part, chunk));
		done += part;
	}
	return status;
}

enum status npz_writer_begin(struct npz_writer *writer, const struct npz_member *member,
			     uint64_t bytes)
{
	char header[NPZ_HEADER];
	size_t length = npz_header(member, header);

	if (!writer->file.replaces)
		return err_set(writer->err, ST_INVALID, "%s: is a device or pipe, not a file",
			       writer->path);
	writer->left = bytes;
	writer->crc = npz_crc(0, header, length);
	return npz_begin_array(writer, member, header, length, bytes, 0);
}

enum status npz_writer_data(struct npz_writer *writer, const void *data, size_t length)
{
	assert(length <= writer->left);
	writer->left -= length;
	writer->crc = npz_crc(writer->crc, data, length);
	return npz_put(writer, data, length);
}

enum status npz_writer_end(struct npz_writer *writer)
{
	const uint32_t crc = writer->crc;
	const char bytes[4] = {(char)(crc & 255), (char)(crc >> 8 & 255), (char)(crc >> 16 & 255),
			       (char)(crc >> 24)};

	assert(writer->left == 0);
	memcpy(writer->directory.text + writer->entry + ZIP_ENTRY_CRC, bytes, sizeof(bytes));
	return fs_writer_patch(&writer->file, writer->local + ZIP_CRC_AT, bytes, sizeof(bytes),
			       writer->err);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* The zip64 end record and its locator, for numbers that the end record cannot hold. */
static void npz_end64(struct str *out, uint64_t members, uint64_t size, uint64_t begin)
{
	str_add_bytes(out, "PK\6\6", 4);
	npz_u64(out, 44); /* bytes that follow */
	npz_u16(out, ZIP_VERSION64);
	npz_u16(out, ZIP_VERSION64);
	npz_u64(out, 0); /* one disk */
	npz_u64(out, members);
	npz_u64(out, members);
	npz_u64(out, size);
	npz_u64(out, begin);
	str_add_bytes(out, "PK\6\7", 4);
	npz_u32(out, 0);
	npz_u64(out, begin + size);
	npz_u32(out, 1); /* one disk */
}

static enum status npz_put_directory(struct npz_writer *writer)
{
	struct str *out = &writer->directory;
	const uint64_t begin = writer->at, size = out->length, members = writer->members;
	const uint32_t count = members >= NPZ_MANY ? 0xffff : (uint32_t)members;

	if (begin >= NPZ_BEYOND || size >= NPZ_BEYOND || members >= NPZ_MANY)
		npz_end64(out, members, size, begin);
	str_add_bytes(out, "PK\5\6", 4);
	npz_u32(out, 0); /* one disk */
	npz_u16(out, count);
	npz_u16(out, count);
	npz_u32_or_marker(out, size);
	npz_u32_or_marker(out, begin);
	npz_u16(out, 0); /* no comment */
	if (out->failed)
		return err_nomem(writer->err);
	return npz_put(writer, out->text, out->length);
}

enum status npz_writer_open(struct npz_writer *writer, const char *path, struct err *err)
{
	*writer = (struct npz_writer){.path = path, .err = err};
	return fs_writer_open(&writer->file, path, err);
}

enum status npz_writer_close(struct npz_writer *writer, enum status status)
{
	if (status == ST_OK)
		status = npz_put_directory(writer);
	str_free(&writer->directory);
	if (status != ST_OK) {
		fs_writer_drop(&writer->file);
		return status;
	}
	return fs_writer_close(&writer->file, writer->err);
}
