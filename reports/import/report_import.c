/*
 * The import from end to end. See report_import.h.
 *
 * The database is written under a temporary name beside the output and renamed when complete, so
 * that no partial file is ever visible there.
 */
#include "reports/import/report_import.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/mem.h"
#include "reports/import/report_import_internal.h"
#include "reports/report_output.h"

#define COMMIT_MS     500u
#define ROW_BYTES     ((uint64_t)4 << 20) /* of rows in memory, such as those of memory events */
#define KEPT_BELOW_NS ((int64_t)60 * 1000000000) /* traces that begin earlier keep their times */

/* ---- texts ----------------------------------------------------------------------------------- */

#define TEXT(name, words) words,

const char *report_import_use_text(enum report_import_use use)
{
	static const char *const texts[] = {REPORT_IMPORT_USE_MAP(TEXT)};

	return texts[use];
}

const char *report_import_left_text(enum report_import_left left)
{
	static const char *const texts[] = {REPORT_IMPORT_LEFT_MAP(TEXT)};

	return texts[left];
}

const char *report_import_note_text(enum report_import_note note)
{
	static const char *const texts[] = {REPORT_IMPORT_NOTE_MAP(TEXT)};

	return texts[note];
}

/* ---- life ------------------------------------------------------------------------------------ */

enum status report__import_init(struct import *import, const char *temporary, bool sorted,
				struct err *err)
{
	size_t memory =
		import->params->sort_bytes == 0 ? IMPORT_SORT_BYTES : import->params->sort_bytes;
	enum status status;

	import->first_ns = INT64_MAX;
	import->last_ns = IPS_NULL;
	import->epoch_ns = IPS_NULL;
	import->text = mem_alloc(IMPORT_SITE_SIZE);
	if (!import->text || !report__import_flows_init(import) ||
	    !report__import_scan_init(&import->scan, &import->input) ||
	    (!sorted && !report__import_pairs_init(import)))
		return err_nomem(err);
	status = report__import_sorter_new(&import->main, report__import_by_time, temporary, memory,
					   err);
	if (status == ST_OK && sorted)
		status = report__import_sorter_new(&import->halves, report__import_by_pair,
						   temporary, memory, err);
	return status;
}

void report__import_fini(struct import *import)
{
	report__import_sorter_free(import->main);
	report__import_sorter_free(import->halves);
	report__import_pairs_fini(import);
	report__import_flows_fini(import);
	report__import_tracks_fini(import);
	report__import_tables_fini(import);
	for (size_t i = 0; i < import->meta_count; i++) {
		mem_free(import->meta[i].key);
		mem_free(import->meta[i].value);
	}
	mem_free(import->text);
	report__import_scan_fini(&import->scan);
	report__import_input_close(&import->input);
}

/* ---- formats --------------------------------------------------------------------------------- */

/* The most specific first. */
static const struct import_format *const formats[] = {
	&report__import_sqlite, &report__import_xplane, &report__import_pftrace,
	&report__import_folded, &report__import_chrome,
};

const struct import_format *report__import_format(const unsigned char *head, size_t size)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		if (formats[i]->recognise(head, size))
			return formats[i];
	}
	return NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* What makes an importable file of one that is not. */
static const struct {
	const char *begins; /* the content; NULL: known by the name alone */
	const char *name;   /* a pattern; NULL: known by the content alone */
	const char *remedy;
} remedies[] = {
	{NULL, "*.nsys-rep", "`nsys export --type sqlite` makes a database of it that can"},
	{NULL, "*.qdrep", "`nsys export --type sqlite` makes a database of it that can"},
	{"PERFILE2", NULL, "`perf script | stackcollapse-perf.pl` makes folded stacks, which can"},
	{"PK\003\004", NULL, "unpack the archive, and import what is in it"},
};

const char *report__import_remedy(const struct import_input *input)
{
	for (size_t i = 0; i < ARRAY_LEN(remedies); i++) {
		const char *begins = remedies[i].begins;
		size_t size = !begins ? 0 : strlen(begins);

		if (begins ? input->head_bytes >= size && memcmp(input->head, begins, size) == 0
			   : fnmatch(remedies[i].name, input->name, 0) == 0)
			return remedies[i].remedy;
	}
	return NULL;
}

enum status report__import_read(struct import *import, struct err *err)
{
	const struct import_input *input = &import->input;
	const struct import_format *format = report__import_format(input->head, input->head_bytes);
	const char *remedy = report__import_remedy(input);

	if (input->head_bytes == 0)
		return err_set(err, ST_FORMAT, "%s: is empty", input->name);
	if (!format && remedy)
		return err_set(err, ST_FORMAT,
			       "%s: is none of the formats that can be imported; %s", input->name,
			       remedy);
	if (!format)
		return err_set(err, ST_FORMAT,
			       "%s: is none of the formats that can be imported (Chrome's JSON, "
			       "Perfetto, XPlane, folded stacks, databases of Nsight Systems, "
			       "rocpd and RPD)",
			       input->name);
	import->source = format->source;
	return format->read(import, err);
}

/* ---- times ----------------------------------------------------------------------------------- */

/* Choose the base time: times on a clock with an old origin are made relative to the first one. */
static void choose_base(struct import *import)
{
	struct report_import_counts *counts = import->counts;

	if (import->first_ns > import->last_ns) {
		import->first_ns = 0;
		import->last_ns = 0;
	}
	counts->first_ns = import->first_ns;
	counts->last_ns = import->last_ns;
	counts->base_ns = import->first_ns;
	if (import->first_ns >= 0 && (import->own || import->first_ns < KEPT_BELOW_NS))
		counts->base_ns = 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void on_commit(void *user, const struct ips_commit *commit)
{
	*(struct ips_commit *)user = *commit;
}

static enum status write_database(struct import *import, const char *path, struct err *err)
{
	const struct report_import_counts *counts = import->counts;
	struct ips_recording_params params;
	struct ips_commit told = {0};
	char why[ERR_TEXT_SIZE];
	int code;

	ips_recording_params_defaults(&params);
	params.command = import->params->command;
	params.commit_ms = COMMIT_MS;
	params.alone = 1;
	params.row_queue_bytes = ROW_BYTES;
	params.rank = import->rank;
	params.on_commit = on_commit;
	params.user = &told;
	code = ips_recording_open(&import->recording, path, &params, why, sizeof(why));
	if (code != 0)
		return err_set(err, (enum status)code, "%s", why);
	report__import_facts_write(import, err);
	report__import_tracks_open(import, err);
	report__import_record(import, err);
	/* Its memory is needed for the end of the recording. */
	report__import_sorter_free(import->main);
	import->main = NULL;
	import->counts->tracks = import->tracks;
	code = ips_recording_close(import->recording, why, sizeof(why));
	import->recording = NULL;
	if (!err_stuck(err) && code != 0)
		err_set(err, (enum status)code, "%s", why);
	if (err_stuck(err))
		return err->status;
	/* The database must have as many rows as were recorded. */
	if (told.spans == counts->spans && told.instants == counts->instants &&
	    told.counters == counts->counters)
		return ST_OK;
	return err_set(err, ST_FAILED,
		       "%s: %llu spans, %llu instants and %llu samples were recorded, and %llu, "
		       "%llu and %llu are in the database: please report this trace",
		       import->input.name, (unsigned long long)counts->spans,
		       (unsigned long long)counts->instants, (unsigned long long)counts->counters,
		       (unsigned long long)told.spans, (unsigned long long)told.instants,
		       (unsigned long long)told.counters);
}

/* @target: the file that @output names, which may be a link. */
static enum status move_to_output(const char *temporary, const char *target, const char *output,
				  bool force, struct err *err)
{
	enum status status = report_output_check_log(output, err);

	if (status != ST_OK)
		return status;
	if (renameat2(AT_FDCWD, temporary, AT_FDCWD, target, force ? 0 : RENAME_NOREPLACE) == 0)
		return ST_OK;
	if (errno == EEXIST)
		return err_set(err, ST_INVALID, "%s: is there already (--force replaces it)",
			       output);
	if (errno == EINVAL && !fs_exists(target) && rename(temporary, target) == 0)
		return ST_OK;
	return err_set(err, ST_IO, "%s: cannot write: %s", output, strerror(errno));
}

/* Check the output before any work is done. */
static enum status check_output(const struct report_import_params *params, struct err *err)
{
	if (fs_is_dir(params->output))
		return err_set(err, ST_INVALID, "%s: is a folder; name a file in it",
			       params->output);
	if (strcmp(params->trace, "-") != 0 && fs_is_same(params->trace, params->output))
		return err_set(err, ST_INVALID, "%s: is the trace itself; write another file",
			       params->output);
	return report_output_check(params->output, params->force, err);
}

/* Remove a database, and SQLite's side files of it. */
static void remove_database(const char *path)
{
	static const char *const endings[] = {"-wal", "-shm", "-journal", ""};
	char name[FS_PATH_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(endings); i++)
		if (fs_path(name, "%s%s", path, endings[i]))
			unlink(name);
}

/* Import the trace, with its halves of spans sorted first or paired as they come. *@again: they
 * cannot be paired as they come; nothing was done. @err holds no failure. */
static void run(const struct report_import_params *params, const char *temporary,
		const char *target, bool sorted, struct report_import_counts *counts, bool *again,
		struct err *err)
{
	struct import *import = mem_calloc(1, sizeof(*import));

	*again = false;
	*counts = (struct report_import_counts){0};
	if (!import) {
		err_nomem(err);
		return;
	}
	import->params = params;
	import->counts = counts;
	import->input.fd = -1;
	report__import_input_open(&import->input, params->trace, err);
	/* What cannot be read twice is sorted. */
	sorted = sorted || import->input.size == 0 || strcmp(params->trace, "-") == 0;
	if (!err_stuck(err) && report__import_init(import, temporary, sorted, err) == ST_OK &&
	    report__import_read(import, err) == ST_OK &&
	    report__import_pair(import, err) == ST_OK) {
		choose_base(import);
		if (write_database(import, temporary, err) != ST_OK ||
		    move_to_output(temporary, target, params->output, params->force, err) != ST_OK)
			remove_database(temporary);
	}
	*again = import->unordered;
	report__import_fini(import);
	mem_free(import);
}

enum status report_import(const struct report_import_params *params,
			  struct report_import_counts *counts, struct err *err)
{
	char temporary[FS_PATH_SIZE];
	struct fs_writer lock;
	bool again = false;
	struct err own;

	err = err_start(err, &own);
	*counts = (struct report_import_counts){0};
	if (check_output(params, err) != ST_OK ||
	    fs_writer_open(&lock, params->output, err) != ST_OK)
		return err->status;
	/* What an import writes until its end has names that go on after that of a file which it
	 * locks: another import to the same output leaves it alone, and one after a kill removes it. */
	if (fs_path(temporary, "%s.db", lock.temporary))
		run(params, temporary, lock.target, false, counts, &again, err);
	else
		err_set(err, ST_INVALID, "%s: the path is too long", params->output);
	if (again) {
		err_start(err, &own);
		run(params, temporary, lock.target, true, counts, &again, err);
	}
	fs_writer_drop(&lock);
	return err->status;
}
