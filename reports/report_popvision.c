/*
 * The files beside profile.db: which are written, where, and what stands at the head of each.
 *
 * Threading: none. Ownership: a database is open for one call.
 */
#include "reports/report_popvision.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "ipu/ipu_target.h"
#include "reports/report_popvision_internal.h"

/* Beyond these a file is damaged, and has no arrays by tile. */
#define TILES_MAX 65536
#define IPUS_MAX  4096

/* --- a file ------------------------------------------------------------------------------------
 */

enum status report__pv_file_open(struct report_pv_file *file, const char *path, struct err *err)
{
	enum status status = fs_writer_open(&file->writer, path, err);

	if (status != ST_OK)
		return status;
	status = fs_writer_stream(&file->writer, &file->stream, err);
	if (status != ST_OK)
		fs_writer_drop(&file->writer);
	return status;
}

enum status report__pv_file_close(struct report_pv_file *file, enum status status, struct err *err)
{
	const bool failed = ferror(file->stream) != 0;
	int number = 0;

	if (fclose(file->stream))
		number = errno;
	if (status == ST_OK && (failed || number != 0))
		status = err_set(err, number == ENOSPC ? ST_NOSPACE : ST_IO, "%s: cannot write: %s",
				 file->writer.path, number ? strerror(number) : status_text(ST_IO));
	if (status == ST_OK)
		return fs_writer_close(&file->writer, err);
	fs_writer_drop(&file->writer);
	return status;
}

/* --- the machine -------------------------------------------------------------------------------
 */

/* "": there is none. */
static void pv_fact(struct report_pv *pv, const char *key, char *out, size_t size)
{
	struct prof_query *query = report__pv_open(pv, "SELECT value FROM meta WHERE key = :key");

	if (query)
		prof_query_text(query, ":key", key);
	str_copy(out, size, "");
	if (report__pv_step(pv, query) && prof_column_type(query, 0) == PROF_TEXT)
		str_copy(out, size, prof_column_text(query, 0));
	prof_query_close(query);
}

/* INT64_MIN: unknown. */
static int64_t pv_number(struct report_pv *pv, const char *key)
{
	char text[64];
	long long value;

	pv_fact(pv, key, text, sizeof(text));
	return str_to_int(text, &value) ? value : INT64_MIN;
}

/* What the target says, and the memory's rows, which know of tiles that were taken away. */
static void target_tiles(struct report_pv *pv, struct report_pv_target *out)
{
	struct prof_query *query =
		report__pv_open(pv, "SELECT max(tile) + 1, max(capacity) FROM tile_memory");
	struct ipu_target known;

	out->tiles_per_ipu = out->bytes_per_tile = out->sync_cycles = INT64_MIN;
	if (*out->name && ipu_target_get(out->name, 0, &known, NULL) == ST_OK) {
		out->tiles_per_ipu = known.tiles;
		out->bytes_per_tile = known.bytes_per_tile;
		out->sync_cycles = (int64_t)known.sync_cycles;
		if (out->clock_hz == INT64_MIN)
			out->clock_hz = (int64_t)known.clock_hz;
	}
	if (report__pv_step(pv, query) && prof_column_type(query, 0) == PROF_INT) {
		out->tiles_per_ipu = prof_column_int(query, 0);
		out->bytes_per_tile = prof_column_int(query, 1);
	}
	prof_query_close(query);
}

static void pv_target(struct report_pv *pv, struct report_pv_target *out)
{
	*out = (struct report_pv_target){0};
	pv_fact(pv, "target", out->name, sizeof(out->name));
	out->replicas = pv_number(pv, "replicas");
	out->ipus = *out->name ? pv_number(pv, "ipus") : 0;
	out->clock_hz = pv_number(pv, "clock_hz");
	target_tiles(pv, out);
	if (out->tiles_per_ipu <= 0 || out->ipus <= 0 || out->replicas <= 0)
		return;
	pv->tiles_per_ipu = out->tiles_per_ipu;
	if (out->tiles_per_ipu <= TILES_MAX && out->ipus / out->replicas <= IPUS_MAX)
		pv->tiles = out->tiles_per_ipu * (out->ipus / out->replicas);
}

/* --- a JSON file -------------------------------------------------------------------------------
 */

static void pv_head(struct report_pv *pv)
{
	char model[256];

	pv_fact(pv, "model", model, sizeof(model));
	jsonw_key(&pv->w, "ipuscope");
	jsonw_begin_object(&pv->w);
	jsonw_key_text(&pv->w, "version", IPUSCOPE_VERSION);
	jsonw_key_bool(&pv->w, "simulated", true);
	jsonw_key_text(&pv->w, "model", *model ? model : NULL);
	jsonw_end_object(&pv->w);
}

enum status report__pv_write(struct prof_db *db, const char *path, int64_t replica,
			     void (*body)(struct report_pv *pv, const struct report_pv_target *t),
			     struct err *err)
{
	struct report_pv pv = {.db = db, .replica = replica, .err = err};
	struct report_pv_target target;
	struct report_pv_file file;
	enum status status = report__pv_file_open(&file, path, err);

	if (status != ST_OK)
		return status;
	jsonw_init_file(&pv.w, file.stream, 0);
	pv_target(&pv, &target);
	jsonw_begin_object(&pv.w);
	pv_head(&pv);
	body(&pv, &target);
	jsonw_end_object(&pv.w);
	status = jsonw_end(&pv.w, pv.status == ST_OK ? err : NULL);
	if (pv.status == ST_OK && status != ST_OK)
		pv.status = err_prefix(err, "%s", path);
	return report__pv_file_close(&file, pv.status, err);
}

/* --- which files -------------------------------------------------------------------------------
 */

static enum status write_graph(struct prof_db *db, const char *path,
			       const struct report_options *options, struct err *err)
{
	(void)options;
	return report_popvision_graph(db, path, err);
}

static enum status write_execution(struct prof_db *db, const char *path,
				   const struct report_options *options, struct err *err)
{
	return report_popvision_execution(db, path, options->replica_to_profile, err);
}

static enum status write_debug(struct prof_db *db, const char *path,
			       const struct report_options *options, struct err *err)
{
	(void)options;
	return report_popvision_debug(db, path, err);
}

static const struct {
	const char *name;
	size_t wanted; /* offset of the option's field */
	bool compiled; /* known before the first execution */
	enum status (*write)(struct prof_db *db, const char *path,
			     const struct report_options *options, struct err *err);
} files[] = {
	{"graph.json", offsetof(struct report_options, graph_profile), true, write_graph},
	{"debug.cbor", offsetof(struct report_options, debug_info), true, write_debug},
	{"execution.json", offsetof(struct report_options, execution_profile), false,
	 write_execution},
};

static bool file_is_wanted(size_t i, const struct report_options *options, bool compiled)
{
	bool wanted;

	memcpy(&wanted, (const char *)options + files[i].wanted, sizeof(wanted));
	return wanted && files[i].compiled == compiled;
}

static enum status write_file(size_t i, struct prof_db *db, const char *directory,
			      const struct report_options *options, struct err *err)
{
	char path[FS_PATH_SIZE];

	if (!fs_path(path, "%s/%s", directory, files[i].name))
		return err_set(err, ST_INVALID, "%s: the path is too long", directory);
	return files[i].write(db, path, options, err);
}

static enum status write_wanted(const char *directory, const struct report_options *options,
				bool compiled, struct err *err)
{
	enum status status = ST_OK;
	struct prof_db *db = NULL;

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct err own = {0};
		enum status one = ST_OK;

		if (!file_is_wanted(i, options, compiled))
			continue;
		if (!db)
			one = prof_db_open(&db, directory, &own);
		if (one == ST_OK)
			one = write_file(i, db, directory, options, &own);
		if (status == ST_OK && one != ST_OK)
			status = err_set(err, one, "%s", own.text);
	}
	prof_db_close(db);
	return status;
}

enum status report_popvision_compiled(const char *directory, const struct report_options *options,
				      struct err *err)
{
	return write_wanted(directory, options, true, err);
}

enum status report_popvision_executed(const char *directory, const struct report_options *options,
				      struct err *err)
{
	return write_wanted(directory, options, false, err);
}

/* --- by hand -----------------------------------------------------------------------------------
 */

/* The replica that the run was asked for; options that cannot be read asked for none. */
static int64_t recorded_replica(struct prof_db *db)
{
	struct report_options options;
	char text[8192];
	int64_t replica = REPORT_ALL_REPLICAS;

	if (prof_db_meta(db, "engine_options", text, sizeof(text)) &&
	    report_options_parse(&options, text, NULL) == ST_OK) {
		replica = options.replica_to_profile;
		report_options_free(&options);
	}
	return replica;
}

enum status report_export_popvision(const struct report_export_request *request, const char *path,
				    struct err *err)
{
	const struct report_options options = {.replica_to_profile = recorded_replica(request->db)};
	enum status status = ST_OK;
	struct str what = {0};
	size_t done = 0;

	if (!fs_is_dir(path))
		status = fs_make_dirs(path, err);
	for (; done < ARRAY_LEN(files) && status == ST_OK; done++) {
		status = write_file(done, request->db, path, &options, err);
		str_addf(&what, "%s%s", done > 0 ? ", " : "", files[done].name);
		if (status == ST_OK)
			status = report_export_tick(request, 0, 0, err);
	}
	if (status == ST_INTERRUPTED)
		err_set(err, status, "interrupted: %s has %s", path, str_peek(&what));
	else if (status == ST_OK)
		status = report_export_tell(request, path, str_peek(&what), "", err);
	str_free(&what);
	return status;
}
