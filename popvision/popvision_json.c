/*
 * What the files beside profile.db are written with: a file under a temporary name, and JSON from
 * rows of queries. See popvision_internal.h.
 *
 * Threading: none. Ownership: the function that opens a query closes it.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/str.h"
#include "popvision/popvision_internal.h"

/* Most tiles of a replica; a file with more is damaged, and gets no arrays by tile. */
#define TILES_MAX (1 << 24)
#define KEY_SIZE  64

/* ---- files ----------------------------------------------------------------------------------- */

enum status popvision__file_open(struct popvision_file *file, const char *path, struct err *err)
{
	enum status status = fs_writer_open(&file->writer, path, err);

	if (status != ST_OK)
		return status;
	file->writer.remade = true; /* it can be regenerated from profile.db */
	status = fs_writer_stream(&file->writer, &file->stream, err);
	if (status != ST_OK)
		fs_writer_drop(&file->writer);
	return status;
}

enum status popvision__file_close(struct popvision_file *file, struct err *err)
{
	const bool failed = ferror(file->stream) != 0;
	int number = 0;

	if (fclose(file->stream))
		number = errno;
	if (!err_stuck(err) && (failed || number != 0))
		err_set(err, number == ENOSPC ? ST_NOSPACE : ST_IO, "%s: cannot write: %s",
			file->writer.path, number ? strerror(number) : status_text(ST_IO));
	if (!err_stuck(err))
		return fs_writer_close(&file->writer, err);
	fs_writer_drop(&file->writer);
	return err->status;
}

/* ---- queries --------------------------------------------------------------------------------- */

/* Open a query with :replica bound (NULL: all); NULL: failed. */
static struct prof_query *open_query(struct popvision *pv, const char *sql)
{
	struct prof_query *query;

	if (err_stuck(pv->err))
		return NULL;
	prof_query_open(&query, report_public_db(pv->report), sql, pv->err);
	if (strstr(sql, ":replica") && pv->replica != POPVISION_ALL_REPLICAS)
		prof_query_int(query, ":replica", pv->replica);
	return query;
}

static bool step_query(struct popvision *pv, struct prof_query *query)
{
	return prof_query_next(query, &pv->err->status, pv->err);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void write_value(struct popvision *pv, const struct prof_query *query, int column)
{
	switch (prof_column_type(query, column)) {
	case PROF_INT:
		jsonw_int(&pv->w, prof_column_int(query, column));
		break;
	case PROF_REAL:
		jsonw_real(&pv->w, prof_column_real(query, column));
		break;
	case PROF_TEXT:
		jsonw_text(&pv->w, prof_column_text(query, column));
		break;
	case PROF_NULL:
	case PROF_BLOB:
		jsonw_null(&pv->w);
		break;
	}
}

void popvision__int(struct popvision *pv, const char *key, int64_t value)
{
	jsonw_key(&pv->w, key);
	if (value == IPS_NULL)
		jsonw_null(&pv->w);
	else
		jsonw_int(&pv->w, value);
}

static void write_columns(struct popvision *pv, const struct prof_query *query)
{
	char outer[KEY_SIZE] = "";

	for (int i = 0; i < prof_column_count(query); i++) {
		const char *name = prof_column_name(query, i), *dot = strchr(name, '.');
		char inner[KEY_SIZE] = "";
		const char *key;
		double real;
		char sibling[KEY_SIZE];

		if (dot)
			snprintf(inner, sizeof(inner), "%.*s", (int)(dot - name), name);
		if (*outer && strcmp(outer, inner) != 0)
			jsonw_end_object(&pv->w);
		if (*inner && strcmp(outer, inner) != 0)
			jsonw_key_object(&pv->w, inner);
		str_copy(outer, sizeof(outer), inner);
		key = dot ? dot + 1 : name;
		real = prof_column_type(query, i) == PROF_REAL ? prof_column_real(query, i) : 0;
		jsonw_key(&pv->w, key);
		write_value(pv, query, i);
		if (isfinite(real))
			continue;
		snprintf(sibling, sizeof(sibling), "%s_nonfinite", key);
		jsonw_key_text(&pv->w, sibling, isnan(real) ? "nan" : real > 0 ? "inf" : "-inf");
	}
	if (*outer)
		jsonw_end_object(&pv->w);
}

void popvision__fields(struct popvision *pv, const char *sql)
{
	struct prof_query *query = open_query(pv, sql);

	if (step_query(pv, query))
		write_columns(pv, query);
	prof_query_close(query);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

typedef void (*pv_element_fn)(struct popvision *pv, const struct prof_query *query);

static void write_array(struct popvision *pv, const char *key, const char *sql,
			pv_element_fn element)
{
	struct prof_query *query = open_query(pv, sql);

	jsonw_key_array(&pv->w, key);
	while (step_query(pv, query))
		element(pv, query);
	jsonw_end_array(&pv->w);
	prof_query_close(query);
}

static void write_object(struct popvision *pv, const struct prof_query *query)
{
	jsonw_begin_object(&pv->w);
	write_columns(pv, query);
	jsonw_end_object(&pv->w);
}

static void write_first_column(struct popvision *pv, const struct prof_query *query)
{
	write_value(pv, query, 0);
}

static void write_first_column_array(struct popvision *pv, const struct prof_query *query)
{
	jsonw_begin_array(&pv->w);
	write_value(pv, query, 0);
	jsonw_end_array(&pv->w);
}

void popvision__objects(struct popvision *pv, const char *key, const char *sql)
{
	write_array(pv, key, sql, write_object);
}

void popvision__column(struct popvision *pv, const char *key, const char *sql)
{
	write_array(pv, key, sql, write_first_column);
}

void popvision__listed(struct popvision *pv, const char *key, const char *sql)
{
	write_array(pv, key, sql, write_first_column_array);
}

void popvision__compute_set_cycles(struct popvision *pv, const char *key)
{
	popvision__objects(pv, key,
			   "SELECT tiles, max_cycles AS max, mean_cycles AS mean FROM compute_sets "
			   "ORDER BY program_id, compute_set");
}

/* ---- numbers by tile ------------------------------------------------------------------------- */

void popvision__by_tile(struct popvision *pv, const char *key, const int64_t *values)
{
	struct jsonw *w = &pv->w;

	jsonw_key_object(w, key);
	jsonw_key_array(w, "runs");
	for (int64_t i = 0, next; i < pv->tiles; i = next) {
		for (next = i + 1; next < pv->tiles && (!values || values[next] == values[i]);)
			next++;
		jsonw_begin_array(w);
		jsonw_int(w, next - i);
		jsonw_int(w, values ? values[i] : 0);
		jsonw_end_array(w);
	}
	jsonw_end_array(w);
	jsonw_end_object(w);
}

/* ---- JSON files ------------------------------------------------------------------------------ */

enum status popvision__write(struct ips_report *report, const char *path, int64_t replica,
			     void (*body)(struct popvision *pv), struct err *err)
{
	struct err own;
	struct popvision pv = {.report = report, .replica = replica, .err = err_start(err, &own)};
	struct popvision_file file;
	char text[ERR_TEXT_SIZE];
	int failed;

	if (popvision__file_open(&file, path, pv.err) != ST_OK)
		return pv.err->status;
	jsonw_init_file(&pv.w, file.stream, 0);
	pv.target = ips_report_target(report);
	if (pv.target->tiles_per_replica > 0 && pv.target->tiles_per_replica <= TILES_MAX)
		pv.tiles = pv.target->tiles_per_replica;
	jsonw_begin_object(&pv.w);
	jsonw_key_object(&pv.w, "ipuscope");
	jsonw_key_text(&pv.w, "version", IPUSCOPE_VERSION);
	jsonw_key_bool(&pv.w, "simulated", true);
	jsonw_key_text(&pv.w, "model", ips_report_info(pv.report)->model);
	jsonw_end_object(&pv.w);
	body(&pv);
	/* The report remembers its own first failure. */
	failed = ips_report_status(report, text, sizeof(text));
	if (!err_stuck(pv.err) && failed)
		err_set(pv.err, (enum status)failed, "%s", text);
	jsonw_end_object(&pv.w);
	if (!err_stuck(pv.err) && jsonw_end(&pv.w, pv.err) != ST_OK)
		err_prefix(pv.err, "%s", path);
	return popvision__file_close(&file, pv.err);
}
