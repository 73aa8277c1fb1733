/*
 * The public report: opening, and what is known of the run then; closing.
 *
 * Threading and ownership: as ipuscope/report.h says.
 */
#include "popvision/popvision.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "popvision/public/report_public_internal.h"

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

	prof_db_number(report->db, "SELECT max(traced) FROM executions", &traced, &err);
	report_public__status(report, &err, NULL, 0);
	if (traced == 1)
		return IPS_REPORT_INSTRUMENTATION_TILE;
	return report->info.cost_model ? IPS_REPORT_INSTRUMENTATION_OFF
				       : IPS_REPORT_INSTRUMENTATION_UNKNOWN;
}

const struct ips_report_info *ips_report_info(struct ips_report *report)
{
	return !report ? NULL : &report->info;
}

enum status report_public_open(struct ips_report **out, const char *path, struct err *err)
{
	struct ips_report *report = mem_calloc(1, sizeof(*report));
	enum status status;
	struct ips_report_info *info;
	const char *state;

	*out = NULL;
	if (!report || arena_init(&report->arena, 0) != 0) {
		mem_free(report);
		return err_nomem(err);
	}
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
	report_public_open(out, path, &err);
	return report_public__status(NULL, &err, message, size);
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
