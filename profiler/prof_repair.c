/*
 * Repair: the finish that a killed writer could not do. See prof_repair.h. One thread.
 */
#include "profiler/prof_repair.h"

#include <stdio.h>
#include <string.h>

#include "common/fs.h"
#include "common/mem.h"
#include "profiler/prof_db.h"
#include "profiler/prof_finish.h"
#include "profiler/prof_sql.h"

#define INDEX_MS ((int64_t)30 * 60 * 1000)

/* @err holds no failure. */
static enum status finish(sqlite3 *db, bool complete, struct err *err)
{
	int pages, copied, code;
	bool all;

	sqlite3_busy_timeout(db, 1000);
	prof_sql_run(db, "PRAGMA synchronous=NORMAL; PRAGMA temp_store=FILE", err);
	if (!complete) {
		prof_launch_link(db, NULL, err);
		prof_critical_find(db, err);
	}
	if (err_stuck(err))
		return err->status;
	all = prof_index_build(db, INDEX_MS, NULL, NULL);
	if (prof_sql_run(db,
			 all ? "INSERT OR REPLACE INTO meta_facts VALUES ('indexes', 'all')"
			     : "INSERT OR REPLACE INTO meta_facts VALUES ('indexes', 'some')",
			 err) != ST_OK)
		return err->status;
	if (!complete && prof_sql_run(db,
				      "INSERT OR REPLACE INTO meta_facts VALUES "
				      "('state', 'complete'), ('repaired', '1')",
				      err) != ST_OK)
		return err->status;
	code = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, &pages, &copied);
	if (code != SQLITE_OK && (code & 0xff) != SQLITE_BUSY)
		return prof_sql_error(db, code, err, "copy the write-ahead log");
	/* If a reader has the file open, an empty, harmless log remains. */
	sqlite3_exec(db, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
	return ST_OK;
}

enum status prof_repair(const char *path, bool *done, struct err *err)
{
	char wal[FS_PATH_SIZE + 8];
	char indexes[8];
	struct prof_db *db;
	enum status status = prof_db_open(&db, path, err);
	bool complete, indexed, alive;
	char *file;

	*done = false;
	if (status != ST_OK)
		return status;
	complete = prof_db_state(db) == PROF_COMPLETE;
	alive = !complete && prof_db_writer_alive(db);
	indexed = !prof_db_meta(db, "indexes", indexes, sizeof(indexes)) ||
		  strcmp(indexes, "some") != 0;
	/* A fact that could not be read is not one that is missing. */
	if (prof_db_lacked_memory(db))
		status = err_nomem(err);
	else if (alive)
		status = err_set(err, ST_BUSY, "%s: is being recorded; wait for the end of the run",
				 prof_db_path(db));
	if (status != ST_OK) {
		prof_db_close(db);
		return status;
	}
	snprintf(wal, sizeof(wal), "%s-wal", prof_db_path(db));
	file = mem_strdup(prof_db_path(db));
	prof_db_close(db);
	if (!file)
		return err_nomem(err);
	if (!complete || !indexed || fs_exists(wal)) {
		struct err own_err;
		sqlite3 *own = NULL;
		int code = prof_sql_open(&own, file, "mode=rw",
					 SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, NULL);

		err = err_start(err, &own_err);
		status = code == SQLITE_OK ? finish(own, complete, err)
					   : prof_sql_error(own, code, err, "open");
		sqlite3_close(own);
		if (status != ST_OK)
			err_prefix(err, "%s", file);

		*done = status == ST_OK;
	}
	mem_free(file);
	return status;
}
