/*
 * Merging: the facts of `meta`. See prof_merge.h.
 *
 * A fact that all sources agree on stays as it is. What is about one recording, and what differs
 * from the first source's, is kept as merge.RANK.KEY.
 */
#include "profiler/prof_merge_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "profiler/prof_sql.h"

#define EARLIER                                                                                    \
	"SELECT substr(key, 7, instr(substr(key, 7), '.') - 1) AS rank, "                          \
	"substr(key, 7 + instr(substr(key, 7), '.')) AS fact, value "                              \
	"FROM src.meta_facts WHERE key GLOB 'merge.[0-9]*.?*'"

/* About one recording. Of a merged file they say nothing new: its own ranks' facts do. */
#define OWN                                                                                        \
	"('state', 'pid', 'process_start', 'start_epoch_ns', 'ticks_per_second', 'rank', "         \
	"'command', 'repaired', 'schema_version')"

/* About the file that they are in. */
#define OF_FILE                                                                                    \
	"('indexes', 'page_bytes', 'last_rank', 'ranks', 'merge_align', 'sqlite_version', "        \
	"'library_version')"

static enum status set(struct merge *m, const char *key, const char *value, struct err *err)
{
	sqlite3_stmt *statement;
	enum status status = prof__merge_prepare(
		m, &statement, "INSERT OR REPLACE INTO main.meta_facts VALUES (?1, ?2)", err);

	if (status != ST_OK)
		return status;
	sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 2, value, -1, SQLITE_STATIC);
	status = prof_sql_execute(statement, err, "meta");
	sqlite3_finalize(statement);
	return status;
}

static enum status set_int(struct merge *m, const char *key, int64_t value, struct err *err)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, value);
	return set(m, key, text, err);
}

static enum status set_rank_int(struct merge *m, const char *fact, int64_t value, struct err *err)
{
	char key[64];

	snprintf(key, sizeof(key), "merge.%" PRId64 ".%s", m->source->rank, fact);
	return set_int(m, key, value, err);
}

/* What earlier merges said of their ranks, under the ranks that they have now. */
static enum status copy_earlier(struct merge *m, struct err *err)
{
	return prof__merge_run(
		m,
		"INSERT OR REPLACE INTO main.meta_facts SELECT 'merge.' || r.new || '.' || e.fact, "
		"iif(e.fact = 'shift_ns', e.value + :shift, e.value) "
		"FROM (" EARLIER ") e JOIN temp.rank_map r ON r.old = CAST(e.rank AS INTEGER)",
		err);
}

static enum status copy_common(struct merge *m, struct err *err)
{
	static const char differing[] =
		"INSERT OR REPLACE INTO main.meta_facts SELECT 'merge.' || :rank || '.' || s.key, "
		"s.value FROM src.meta_facts s WHERE s.key NOT IN " OF_FILE
		" AND s.key NOT GLOB 'merge.*' AND (s.key IN " OWN " OR EXISTS (SELECT 1 FROM "
		"main.meta_facts o WHERE o.key = s.key AND o.value IS NOT s.value))";
	static const char common[] =
		"INSERT OR IGNORE INTO main.meta_facts SELECT key, value FROM src.meta_facts "
		"WHERE key NOT IN " OWN " AND key NOT IN " OF_FILE " AND key NOT GLOB 'merge.*'";
	enum status status = ST_OK;

	if (m->source->ranks <= 1)
		status = prof__merge_run(m, differing, err);
	return status == ST_OK ? prof__merge_run(m, common, err) : status;
}

static enum status set_alignment(struct merge *m, struct err *err)
{
	const struct prof_merge_source *source = m->source;
	const struct {
		const char *fact;
		int64_t value;
	} facts[] = {
		{"shift_ns", source->shift_ns},
		{"residual_ns", source->residual_ns},
		{"residual_greatest_ns", source->greatest_ns},
		{"anchors", source->anchors},
	};
	char key[64];
	enum status status;

	snprintf(key, sizeof(key), "merge.%" PRId64 ".source", source->rank);
	status = set(m, key, source->path, err);
	for (size_t i = 0; i < ARRAY_LEN(facts) && status == ST_OK; i++)
		status = set_rank_int(m, facts[i].fact, facts[i].value, err);
	if (status == ST_OK && source->same_model >= 0)
		status = set_rank_int(m, "model_of_rank", source->same_model, err);
	if (status == ST_OK && m->base[MERGE_IPU] > 0)
		status = set_rank_int(m, "memory_first_ipu", m->base[MERGE_IPU], err);
	return status;
}

enum status prof__merge_facts(struct merge *m, struct err *err)
{
	enum status status = copy_common(m, err);

	if (status == ST_OK && m->source->ranks > 1)
		return copy_earlier(m, err);
	return status == ST_OK ? set_alignment(m, err) : status;
}

/* When the merged file's time 0 was. */
static int64_t start_of(const struct merge *m)
{
	for (size_t i = 0; i < m->count; i++) {
		if (m->sources[i].has_clock)
			return m->files[i].epoch_ns - m->sources[i].shift_ns;
	}
	return 0;
}

enum status prof__merge_facts_end(struct merge *m, struct err *err)
{
	static const char *const aligns[] = {"wall", "steps", "none"};
	int64_t least = INT64_MAX, greatest = 0, ranks = 0;
	enum status status = set(m, "state", "complete", err);

	for (size_t i = 0; i < m->count; i++) {
		const struct prof_merge_source *source = &m->sources[i];
		int64_t last = source->rank + (int64_t)source->ranks - 1;

		least = min(source->rank, least);
		greatest = max(last, greatest);
		ranks += (int64_t)source->ranks;
	}
	if (status == ST_OK)
		status = set(m, "merge_align", aligns[m->params->align], err);
	if (status == ST_OK)
		status = set(m, "sqlite_version", sqlite3_libversion(), err);
	if (status == ST_OK && m->params->command)
		status = set(m, "command", m->params->command, err);
	if (status == ST_OK)
		status = set_int(m, "schema_version", PROF_SCHEMA_VERSION, err);
	if (status == ST_OK)
		status = set_int(m, "rank", least, err);
	if (status == ST_OK)
		status = set_int(m, "last_rank", greatest, err);
	if (status == ST_OK)
		status = set_int(m, "ranks", ranks, err);
	return status == ST_OK && start_of(m) > 0 ? set_int(m, "start_epoch_ns", start_of(m), err)
						  : status;
}
