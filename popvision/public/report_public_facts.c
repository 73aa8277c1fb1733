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

int report_public__status(struct ips_report *report, enum status status, const struct err *err,
			  char *message, size_t size)
{
	const char *text = status == ST_OK        ? ""
			   : err->text[0] != '\0' ? err->text
						  : status_text(status);

	if (message && size > 0)
		str_copy(message, size, text);
	if (status != ST_OK && report && report->first.status == ST_OK)
		err_set(&report->first, status, "%s", text);
	return (int)status;
}

int report_public__null_argument(const char *name, char *message, size_t size)
{
	struct err err = {ST_OK, ""};

	return report_public__status(NULL, err_set(&err, ST_INVALID, "%s: is NULL", name), &err,
				     message, size);
}

int ips_report_status(const struct ips_report *report, char *message, size_t size)
{
	if (!report)
		return report_public__null_argument("report", message, size);
	if (message && size > 0)
		str_copy(message, size, report->first.status == ST_OK ? "" : report->first.text);
	return (int)report->first.status;
}

/* ---- texts ----------------------------------------------------------------------------------- */

enum status report_public__text(struct ips_report *report, const char **out, const char *text,
				struct err *err)
{
	struct report_public__texts *texts = &report->texts;
	const uint64_t hash = map_text(MAP_SEED, text);
	size_t at;

	*out = NULL;
	if (!text)
		return ST_OK;
	MAP_FIND(at, &texts->map, hash, strcmp(texts->items[at], text) == 0);
	if (at == MAP_NONE) {
		const char *copy = arena_strdup(&report->arena, text);

		at = texts->map.count;
		if (!copy ||
		    mem_grow(&texts->items, &texts->capacity, at + 1, sizeof(*texts->items)) != 0 ||
		    map_add(&texts->map, hash, at) != 0)
			return err_nomem(err);
		texts->items[at] = copy;
	}
	*out = texts->items[at];
	return ST_OK;
}

/* ---- facts ----------------------------------------------------------------------------------- */

const char *ips_report_fact(struct ips_report *report, const char *key)
{
	struct err err = {ST_OK, ""};
	const char *value = NULL;
	enum status status;
	struct prof_query *query;

	if (!report || !key)
		return NULL;
	status = prof_query_open(&query, report->db, "SELECT value FROM meta WHERE key = :key",
				 &err);
	prof_query_text(query, ":key", key);
	if (prof_query_next(query, &status, &err))
		status = report_public__text(report, &value, prof_column_text(query, 0), &err);
	prof_query_close(query);
	report_public__status(report, status, &err, NULL, 0);
	return value;
}
