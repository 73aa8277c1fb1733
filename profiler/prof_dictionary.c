/*
 * What the writer's rows refer to by number: texts, call sites and contexts, each written once, by
 * the commit of the first row with its number. Also the begin of the transaction that any row
 * needs, and the facts in `meta`.
 *
 * On the writer's thread; on the one that opens and closes the recording while that does not run.
 */
#include <string.h>
#include <sys/stat.h>

#include "common/mem.h"
#include "profiler/prof_internal.h"

void prof__writer_begin(struct prof_writer *writer)
{
	struct stat info;

	if (writer->in_transaction || !prof__writer_ok(writer))
		return;
	/* Nothing that is written to a file without its name would be found. */
	if (stat(sqlite3_db_filename(writer->db, NULL), &info) != 0 ||
	    info.st_dev != writer->device || info.st_ino != writer->inode)
		err_set(&writer->err, ST_IO,
			"was deleted, renamed or replaced while it was written");
	else
		writer->in_transaction =
			prof_sql_execute(writer->begin, &writer->err, "begin") == ST_OK;
}

void prof__writer_commit(struct prof_writer *writer)
{
	if (prof__writer_ok(writer))
		writer->in_transaction =
			prof_sql_execute(writer->commit, &writer->err, "commit") != ST_OK;
}

enum status prof__meta_insert(sqlite3 *db, const char *key, const char *value, struct err *err)
{
	sqlite3_stmt *statement;
	enum status status = prof_sql_prepare(
		&statement, db, "INSERT OR REPLACE INTO meta_facts (key, value) VALUES (?, ?)",
		err);

	if (status != ST_OK)
		return status;
	sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 2, value, -1, SQLITE_STATIC);
	status = prof_sql_execute(statement, err, "write meta");
	sqlite3_finalize(statement);
	return status;
}

void prof__writer_meta(struct prof_writer *writer, const char *key, const char *value)
{
	if (prof__writer_ok(writer))
		prof__meta_insert(writer->db, key, value, &writer->err);
}

int64_t prof__writer_text(struct prof_writer *writer, const char *text)
{
	struct prof_cell *cells;
	int64_t id;
	bool fresh;

	if (!text)
		return IPS_NULL;
	id = (int64_t)prof_texts_add(&writer->texts, text, &fresh);
	if (id == 0)
		prof__writer_nomem(writer);
	if (id == 0 || !fresh)
		return id;
	prof__writer_begin(writer);
	cells = prof__writer_cells(writer, &writer->strings);
	prof_cell_int(&cells[0], id);
	prof_cell_text(&cells[1], writer->texts.items[id - 1]);
	return id;
}

static void write_site(struct prof_writer *writer, const struct ips_site *site, uint32_t id)
{
	int64_t category, name, operation, file;
	struct prof_cell *cells;

	prof__writer_begin(writer);
	category = prof__writer_text(writer, !site->category ? "" : site->category);
	name = prof__writer_text(writer, !site->name ? "" : site->name);
	operation = prof__writer_text(writer, site->operation);
	file = prof__writer_text(writer, site->file);
	cells = prof__writer_cells(writer, &writer->sites);
	prof_cell_int(&cells[0], id);
	prof_cell_int(&cells[1], category);
	prof_cell_int(&cells[2], name);
	prof_cell_int(&cells[3], operation);
	prof_cell_int(&cells[4], file);
	prof_cell_int(&cells[5], !site->file ? IPS_NULL : (int64_t)site->line);
}

uint32_t prof__writer_site(struct prof_writer *writer, struct ips_site *site)
{
	const uint32_t id = prof_site_id(site);
	size_t capacity = writer->sites_capacity;

	if (id < capacity && writer->sites_seen[id])
		return id;
	if (id >= capacity) {
		if (mem_grow(&writer->sites_seen, &writer->sites_capacity, (size_t)id + 1, 1) !=
		    0) {
			prof__writer_nomem(writer);
			return id;
		}
		memset(writer->sites_seen + capacity, 0, writer->sites_capacity - capacity);
	}
	writer->sites_seen[id] = 1;
	write_site(writer, site, id);
	return id;
}

const char *prof__phase_text(int64_t phase)
{
	static const char phases[][2] = {"F", "B", "W", "R", "U"};

	for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
		if (phases[i][0] == phase)
			return phases[i];
	}
	return NULL;
}

static void write_context(struct prof_writer *writer, const struct ips_keys *keys, int64_t id)
{
	struct prof_cell *cells;

	prof__writer_begin(writer);
	cells = prof__writer_cells(writer, &writer->contexts);
	prof_cell_int(&cells[0], id);
	prof_cell_int(&cells[1], writer->rank);
	prof_cell_text(&cells[2], prof_mode_text(keys->mode));
	prof_cell_int(&cells[3], keys->epoch);
	prof_cell_int(&cells[4], keys->execution);
	prof_cell_int(&cells[5], keys->weight_update);
	prof_cell_int(&cells[6], keys->step);
	prof_cell_int(&cells[7], keys->microbatch);
	prof_cell_int(&cells[8], keys->replica);
	prof_cell_int(&cells[9], keys->ipu);
	prof_cell_int(&cells[10], keys->stage);
	prof_cell_text(&cells[11], prof__phase_text(keys->phase));
}

static bool all_unknown(const struct ips_keys *keys)
{
	return keys->epoch == IPS_NULL && keys->execution == IPS_NULL &&
	       keys->weight_update == IPS_NULL && keys->step == IPS_NULL &&
	       keys->microbatch == IPS_NULL && keys->replica == IPS_NULL && keys->ipu == IPS_NULL &&
	       keys->stage == IPS_NULL && !prof_mode_text(keys->mode) && keys->phase == 0;
}

int64_t prof__writer_context(struct prof_writer *writer, const struct ips_keys *keys, bool needed)
{
	struct ips_keys key;
	int64_t id;

	if (!needed && all_unknown(keys))
		return 0;
	memset(&key, 0, sizeof(key)); /* the hash includes the padding */
	key.epoch = keys->epoch;
	key.execution = keys->execution;
	key.weight_update = keys->weight_update;
	key.step = keys->step;
	key.microbatch = keys->microbatch;
	key.replica = keys->replica;
	key.ipu = keys->ipu;
	key.stage = keys->stage;
	key.mode = keys->mode;
	key.phase = keys->phase;
	id = prof_contexts_add(&writer->recent_contexts, &key, writer->last_context + 1);
	if (id > writer->last_context) {
		writer->last_context = id;
		write_context(writer, &key, id);
	}
	return id;
}
