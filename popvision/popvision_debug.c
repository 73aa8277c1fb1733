/*
 * debug.cbor: a context for each layer, operation and program, with the id of its parent.
 *
 * CBOR (RFC 8949), written as a stream: {"version": 1, "producer": ..., "contexts": [_ ...]}. A
 * context is a map without keys of unknown values. docs/json.md lists the keys. Threading: none.
 * Ownership: nothing outlives a call.
 */
#include <cbor.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "popvision/popvision_internal.h"

#define VERSION   1
#define HEAD_SIZE 9 /* most bytes of an item's head */

/* One id per name: in a merged report all ranks have the same names. */
#define IDS                                                                                        \
	"WITH l AS MATERIALIZED (SELECT layer, min(number) AS id FROM (SELECT layer, "             \
	"row_number() OVER (ORDER BY position, layer) - 1 AS number FROM layers) GROUP BY "        \
	"layer), "                                                                                 \
	"o AS MATERIALIZED (SELECT operation, min(number) + (SELECT count(*) FROM layers) AS id "  \
	"FROM (SELECT operation, row_number() OVER () - 1 AS number FROM operations) GROUP BY "    \
	"operation) "

/* Queries of the contexts; the column names are the keys. */
static const char *const contexts[] = {
	"SELECT row_number() OVER (ORDER BY position, layer) - 1 AS id, 'keras' AS layer, "
	"layer AS name, class, stage FROM layers ORDER BY position, layer",
	IDS "SELECT (SELECT count(*) FROM layers) + row_number() OVER () - 1 AS id, "
	    "l.id AS parentId, 'poplibs' AS layer, p.operation AS name, p.kind, p.phase, p.stage "
	    "FROM operations p LEFT JOIN l ON l.layer = p.layer",
	IDS "SELECT (SELECT count(*) FROM layers) + (SELECT count(*) FROM operations) + "
	    "row_number() OVER (ORDER BY p.program_id) - 1 AS id, o.id AS parentId, "
	    "'poplar' AS layer, p.name, p.type, p.program_id AS programId "
	    "FROM programs p LEFT JOIN o ON o.operation = p.operation ORDER BY p.program_id",
};

/* ---- items ----------------------------------------------------------------------------------- */

/* Text that is not UTF-8 is written as a byte string. */
static void write_text(FILE *file, const char *text)
{
	unsigned char head[HEAD_SIZE];
	const size_t length = strlen(text);
	size_t valid = 0, size;

	for (size_t step = 1; valid < length && step > 0; valid += step)
		step = str_utf8(text + valid);
	size = valid < length ? cbor_encode_bytestring_start(length, head, sizeof(head))
			      : cbor_encode_string_start(length, head, sizeof(head));
	fwrite(head, 1, size, file);
	fwrite(text, 1, length, file);
}

static void write_int(FILE *file, int64_t value)
{
	unsigned char head[HEAD_SIZE];
	size_t size = value < 0 ? cbor_encode_negint((uint64_t)(-1 - value), head, sizeof(head))
				: cbor_encode_uint((uint64_t)value, head, sizeof(head));

	fwrite(head, 1, size, file);
}

static void write_map_head(FILE *file, size_t pairs)
{
	unsigned char head[HEAD_SIZE];

	fwrite(head, 1, cbor_encode_map_start(pairs, head, sizeof(head)), file);
}

/* ---- contexts -------------------------------------------------------------------------------- */

static bool is_known(const struct prof_query *query, int column)
{
	const enum prof_type type = prof_column_type(query, column);

	return type == PROF_INT || type == PROF_TEXT;
}

static void write_context(FILE *file, const struct prof_query *query)
{
	size_t pairs = 0;

	for (int i = 0; i < prof_column_count(query); i++)
		pairs += is_known(query, i);
	write_map_head(file, pairs);
	for (int i = 0; i < prof_column_count(query); i++) {
		if (!is_known(query, i))
			continue;
		write_text(file, prof_column_name(query, i));
		if (prof_column_type(query, i) == PROF_INT)
			write_int(file, prof_column_int(query, i));
		else
			write_text(file, prof_column_text(query, i));
	}
}

enum status popvision_debug(struct ips_report *report, const char *path, struct err *err)
{
	struct popvision_file file;
	struct err own;
	unsigned char head[HEAD_SIZE];

	err = err_start(err, &own);
	if (popvision__file_open(&file, path, err) != ST_OK)
		return err->status;
	write_map_head(file.stream, 3);
	write_text(file.stream, "version");
	write_int(file.stream, VERSION);
	write_text(file.stream, "producer");
	write_text(file.stream, "ipuscope " IPUSCOPE_VERSION);
	write_text(file.stream, "contexts");
	fwrite(head, 1, cbor_encode_indef_array_start(head, sizeof(head)), file.stream);
	for (size_t i = 0; i < ARRAY_LEN(contexts) && !err_stuck(err); i++) {
		struct prof_query *query;

		prof_query_open(&query, report_public_db(report), contexts[i], err);
		while (prof_query_next(query, &err->status, err))
			write_context(file.stream, query);
		prof_query_close(query);
	}
	fwrite(head, 1, cbor_encode_break(head, sizeof(head)), file.stream);
	return popvision__file_close(&file, err);
}
