/*
 * The public report: opening, facts, failures, and the texts that it returns.
 *
 * Threading and ownership: as ipuscope/report.h says.
 */
#include "popvision/popvision.h"

#include <stdio.h>
#include <stdlib.h>
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

/* IPS_NULL if the fact is missing or not a number. */
static int64_t fact_int(struct ips_report *report, const char *key)
{
	const char *text = ips_report_fact(report, key);
	long long value;

	return text && str_to_int(text, &value) ? value : IPS_NULL;
}

/* Split "0.9.0" into its numbers. */
static void read_version(struct ips_report_info *info)
{
	int64_t *const parts[] = {&info->library_major, &info->library_minor, &info->library_point};
	const char *at = info->library_version;
	char *end;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		*parts[i] = IPS_NULL;
		if (!at || *at < '0' || *at > '9')
			continue;
		*parts[i] = strtoll(at, &end, 10);
		at = *end == '.' ? end + 1 : end;
	}
}

static enum ips_report_instrumentation read_instrumentation(struct ips_report *report)
{
	struct err err = {ST_OK, ""};
	int64_t traced;
	enum status status =
		prof_db_number(report->db, "SELECT max(traced) FROM executions", &traced, &err);

	report_public__status(report, status, &err, NULL, 0);
	if (traced == 1)
		return IPS_REPORT_INSTRUMENTATION_TILE;
	return report->info.cost_model ? IPS_REPORT_INSTRUMENTATION_OFF
				       : IPS_REPORT_INSTRUMENTATION_UNKNOWN;
}

const struct ips_report_info *ips_report_info(struct ips_report *report)
{
	return !report ? NULL : &report->info;
}

/* ---- opening --------------------------------------------------------------------------------- */

enum status report_public_open(struct ips_report **out, const char *path, struct err *err)
{
	struct ips_report *report = mem_calloc(1, sizeof(*report));
	enum status status;
	struct ips_report_info *info;
	const char *state;

	*out = NULL;
	if (!report)
		return err_nomem(err);
	status = arena_init(&report->arena, 0) == 0 ? ST_OK : err_nomem(err);
	if (status == ST_OK)
		status = prof_db_open(&report->db, path, err);
	if (status != ST_OK) {
		ips_report_close(report);
		return status;
	}
	info = &report->info;
	info->path = prof_db_path(report->db);
	state = ips_report_fact(report, "state");
	if (state && strcmp(state, "complete") == 0)
		info->state = IPS_REPORT_COMPLETE;
	else
		info->state =
			prof_db_writer_alive(report->db) ? IPS_REPORT_RECORDING : IPS_REPORT_KILLED;
	info->schema_version = fact_int(report, "schema_version");
	info->library_version = ips_report_fact(report, "library_version");
	read_version(info);
	info->command = ips_report_fact(report, "command");
	info->model = ips_report_fact(report, "model");
	info->dataset = ips_report_fact(report, "dataset");
	info->schedule = ips_report_fact(report, "schedule");
	info->cost_model = ips_report_fact(report, "cost_model");
	info->start_epoch_ns = fact_int(report, "start_epoch_ns");
	info->compute = info->external_exchange = read_instrumentation(report);
	*out = report;
	return ST_OK;
}

struct prof_db *report_public_db(struct ips_report *report)
{
	return report->db;
}

int ips_report_open(struct ips_report **out, const char *path, char *message, size_t size)
{
	struct err err = {ST_OK, ""};

	if (!out)
		return report_public__null_argument("out", message, size);
	*out = NULL;
	if (!path)
		return report_public__null_argument("path", message, size);
	return report_public__status(NULL, report_public_open(out, path, &err), &err, message,
				     size);
}

void ips_report_close(struct ips_report *report)
{
	if (!report)
		return;
	for (int i = 0; i < PUBLIC_LISTS; i++)
		mem_free(report->lists[i].items);
	report_public__memory_free(report->memory);
	mem_free(report->texts.items);
	map_fini(&report->texts.map);
	arena_fini(&report->arena);
	prof_db_close(report->db);
	mem_free(report);
}
