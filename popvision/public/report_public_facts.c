/*
 * Failures of the public report, the texts that it returns, and the run's facts.
 *
 * Threading and ownership: as ipuscope/report.h says.
 */
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "popvision/public/report_public_internal.h"

/* ---- failures -------------------------------------------------------------------------------- */

int report_public__status(struct ips_report *report, const struct err *err, char *message,
			  size_t size)
{
	const char *text = !err_stuck(err)        ? ""
			   : err->text[0] != '\0' ? err->text
						  : status_text(err->status);

	if (message && size > 0)
		str_copy(message, size, text);
	if (err_stuck(err) && report && !err_stuck(&report->first))
		err_set(&report->first, err->status, "%s", text);
	return (int)err->status;
}

int report_public__null_argument(const char *name, char *message, size_t size)
{
	struct err err = {ST_OK, ""};

	err_set(&err, ST_INVALID, "%s: is NULL", name);
	return report_public__status(NULL, &err, message, size);
}

int ips_report_status(const struct ips_report *report, char *message, size_t size)
{
	if (!report)
		return report_public__null_argument("report", message, size);
	return report_public__status(NULL, &report->first, message, size);
}

/* ---- texts ----------------------------------------------------------------------------------- */

const char *report_public__text(struct ips_report *report, const char *text, struct err *err)
{
	struct report_public__texts *texts = &report->texts;
	const uint64_t hash = map_text(MAP_SEED, text);
	size_t at;

	if (!text)
		return NULL;
	MAP_FIND(at, &texts->map, hash, strcmp(texts->items[at], text) == 0);
	if (at == MAP_NONE) {
		const char *copy = arena_strdup(&report->arena, text);

		at = texts->map.count;
		if (!copy ||
		    mem_grow(&texts->items, &texts->capacity, at + 1, sizeof(*texts->items)) != 0 ||
		    map_add(&texts->map, hash, at) != 0) {
			err_nomem(err);
			return NULL;
		}
		texts->items[at] = copy;
	}
	return texts->items[at];
}

/* ---- facts ----------------------------------------------------------------------------------- */

const char *ips_report_fact(struct ips_report *report, const char *key)
{
	struct err err = {ST_OK, ""};
	const char *value = NULL;
	struct prof_query *query;

	if (!report || !key)
		return NULL;
	prof_query_open(&query, report->db, "SELECT value FROM meta WHERE key = :key", &err);
	prof_query_text(query, ":key", key);
	if (prof_query_next(query, &err.status, &err))
		value = report_public__text(report, prof_column_text(query, 0), &err);
	prof_query_close(query);
	report_public__status(report, &err, NULL, 0);
	return value;
}
