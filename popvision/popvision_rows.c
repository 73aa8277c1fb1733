/*
 * Rows as JSON. See popvision_internal.h.
 *
 * Threading: none. Ownership: the function that opens a query closes it.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "popvision/popvision_internal.h"

#define KEY_SIZE 64

/* ---- queries --------------------------------------------------------------------------------- */

/* Open a query with :replica bound (NULL: all); NULL: failed. */
static struct prof_query *open_query(struct popvision *pv, const char *sql)
{
	struct prof_query *query;

	if (pv->status == ST_OK)
		pv->status = prof_query_open(&query, report_public_db(pv->report), sql, pv->err);
	if (pv->status != ST_OK)
		return NULL;
	if (strstr(sql, ":replica") && pv->replica != POPVISION_ALL_REPLICAS)
		prof_query_int(query, ":replica", pv->replica);
	return query;
}

static bool step_query(struct popvision *pv, struct prof_query *query)
{
	return query && prof_query_next(query, &pv->status, pv->err);
}

void popvision__check(struct popvision *pv)
{
	char text[ERR_TEXT_SIZE];
	int failed = ips_report_status(pv->report, text, sizeof(text));

	if (pv->status == ST_OK && failed)
		pv->status = err_set(pv->err, (enum status)failed, "%s", text);
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

static void write_key_value(struct popvision *pv, const struct prof_query *query, int column,
			    const char *key)
{
	double real =
		prof_column_type(query, column) == PROF_REAL ? prof_column_real(query, column) : 0;
	char sibling[KEY_SIZE];

	jsonw_key(&pv->w, key);
	write_value(pv, query, column);
	if (isfinite(real))
		return;
	snprintf(sibling, sizeof(sibling), "%s_nonfinite", key);
	jsonw_key_text(&pv->w, sibling, isnan(real) ? "nan" : real > 0 ? "inf" : "-inf");
}

static void write_columns(struct popvision *pv, const struct prof_query *query)
{
	char outer[KEY_SIZE] = "";

	for (int i = 0; i < prof_column_count(query); i++) {
		const char *name = prof_column_name(query, i), *dot = strchr(name, '.');
		char inner[KEY_SIZE] = "";

		if (dot)
			snprintf(inner, sizeof(inner), "%.*s", (int)(dot - name), name);
		if (*outer && strcmp(outer, inner) != 0)
			jsonw_end_object(&pv->w);
		if (*inner && strcmp(outer, inner) != 0) {
			jsonw_key(&pv->w, inner);
			jsonw_begin_object(&pv->w);
		}
		str_copy(outer, sizeof(outer), inner);
		write_key_value(pv, query, i, dot ? dot + 1 : name);
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

	jsonw_key(&pv->w, key);
	jsonw_begin_array(&pv->w);
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

	jsonw_key(w, key);
	jsonw_begin_object(w);
	jsonw_key(w, "runs");
	jsonw_begin_array(w);
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
