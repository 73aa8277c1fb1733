/*
 * What an import knows of the whole: facts about the trace, counts of what became of its events,
 * the progress.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "reports/import/report_import_internal.h"

/* ---- facts ----------------------------------------------------------------------------------- */

enum status report__import_meta_add(struct import *import, const char *head,
				    const struct import_token *key,
				    const struct import_token *value, struct err *err)
{
	struct import_meta *meta = &import->meta[import->meta_count];
	char name[256];

	if (import->meta_count == IMPORT_MOST_META || value->length >= IMPORT_TEXT_SIZE) {
		report__import_note(import, REPORT_IMPORT_NOTE_KEYS);
		return ST_OK;
	}
	report__import_unescape(key, name, sizeof(name), NULL, NULL);
	report__import_unescape(value, import->text, IMPORT_TEXT_SIZE, NULL, NULL);
	meta->key = mem_printf("trace%s.%s", head, name);
	meta->value = mem_strdup(import->text);
	import->meta_count++;
	return !meta->key || !meta->value ? err_nomem(err) : ST_OK;
}

enum status report__import_fact(struct import *import, const char *key, const char *value,
				struct err *err)
{
	const struct import_token name = import_token_of(key), text = import_token_of(value);

	return report__import_meta_add(import, "", &name, &text, err);
}

static int set_int(struct import *import, const char *key, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, value);
	return ips_meta_set(import->recording, key, text);
}

enum status report__import_facts_write(struct import *import, struct err *err)
{
	const struct report_import_counts *counts = import->counts;
	struct ips_recording *recording = import->recording;
	int code = ips_meta_set(recording, "source", import->source);

	if (code == 0)
		code = ips_meta_set(recording, "trace_file", import->input.name);
	if (code == 0)
		code = set_int(import, "trace_base_ns", counts->base_ns);
	if (code == 0)
		code = set_int(import, "trace_duration_ns", counts->last_ns - counts->first_ns);
	if (code == 0) {
		const int64_t least = (int64_t)1000000000 * 1000000000; /* ns since 1970: in 2001 */
		int64_t base = counts->base_ns;

		/* The start of the recording, if the trace has it. */
		if (import->epoch_ns != IPS_NULL)
			code = set_int(import, "start_epoch_ns", import->epoch_ns + base);
		else if (base > least)
			code = set_int(import, "start_epoch_ns", base);
		else
			code = ips_meta_set(recording, "start_epoch_ns", NULL);
	}
	if (code == 0)
		code = set_int(import, "trace_events", (int64_t)counts->events);
	if (code == 0 && counts->broken)
		code = set_int(import, "trace_broken_at", (int64_t)counts->broken_at);
	for (size_t i = 0; i < import->processes.table.count && code == 0; i++) {
		const struct import_string *pid = &import->processes.table.strings[i];
		const struct import_token token = {.at = pid->text, .length = pid->length};
		char name[64], key[128];

		if (!import->processes.items[i].labels)
			continue;
		report__import_unescape(&token, name, sizeof(name), NULL, NULL);
		snprintf(key, sizeof(key), "trace.process %s.labels", name);
		code = ips_meta_set(recording, key, import->processes.items[i].labels);
	}
	for (size_t i = 0; i < import->meta_count && code == 0; i++)
		code = ips_meta_set(recording, import->meta[i].key, import->meta[i].value);
	for (size_t i = 0; i < import->device_count && code == 0; i++)
		code = report__import_gpu(import, import->devices[i].number)
			       ? ips_append_device(recording, &import->devices[i])
			       : ST_NOMEM;
	if (code != 0)
		return err_set(err, (enum status)code, "cannot write: %s", ips_status_text(code));
	return ST_OK;
}

/* ---- counts ---------------------------------------------------------------------------------- */

void report__import_left(struct import *import, enum report_import_left left)
{
	import->counts->left[left]++;
}

void report__import_left_at(struct import *import, enum report_import_left left, uint64_t offset)
{
	if (import->counts->left[left]++ == 0)
		import->counts->left_at[left] = offset;
}

void report__import_left_what(struct import *import, const char *what, uint64_t count)
{
	struct report_import_counts *counts = import->counts;
	size_t i = 0;

	if (count == 0)
		return;
	counts->left[REPORT_IMPORT_LEFT_KIND] += count;
	while (i < REPORT_IMPORT_WHATS && counts->whats[i].count > 0 &&
	       strcmp(counts->whats[i].what, what) != 0)
		i++;
	if (i == REPORT_IMPORT_WHATS)
		return;
	str_copy(counts->whats[i].what, sizeof(counts->whats[i].what), what);
	counts->whats[i].count += count;
}

void report__import_note(struct import *import, enum report_import_note note)
{
	import->counts->notes[note]++;
}

void report__import_broken(struct import *import, uint64_t offset, const char *why)
{
	struct report_import_counts *counts = import->counts;

	counts->broken = true;
	counts->broken_at = offset;
	str_copy(counts->why, sizeof(counts->why), why);
}

/* ---- progress -------------------------------------------------------------------------------- */

enum status report__import_progress(struct import *import, int permille, struct err *err)
{
	const struct report_import_params *params = import->params;
	enum status status;

	if (!params->progress || err_stuck(err))
		return err->status;
	status = params->progress(params->user, permille, import->counts->events);
	if (status != ST_OK)
		err_set(err, status, "%s: %s", import->input.name, status_text(status));
	return status;
}

enum status report__import_progress_read(struct import *import, uint64_t done, uint64_t all,
					 struct err *err)
{
	/* Reading counts as half of the work. */
	return report__import_progress(import,
				       all == 0 || done > all ? -1 : (int)(done * 500 / all), err);
}
