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

static void set(struct merge *m, const char *key, const char *value)
{
	sqlite3_stmt *statement =
		prof__merge_prepare(m, "INSERT OR REPLACE INTO main.meta_facts VALUES (?1, ?2)");

	if (!statement)
		return;
	sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 2, value, -1, SQLITE_STATIC);
	prof_sql_execute(statement, &m->err, "meta");
	sqlite3_finalize(statement);
}

static void set_int(struct merge *m, const char *key, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, value);
	set(m, key, text);
}

static void set_rank_int(struct merge *m, const char *fact, int64_t value)
{
	char key[64];

	snprintf(key, sizeof(key), "merge.%" PRId64 ".%s", m->source->rank, fact);
	set_int(m, key, value);
}

/* What earlier merges said of their ranks, under the ranks that they have now. */
static void copy_earlier(struct merge *m)
{
	prof__merge_run(
		m,
		"INSERT OR REPLACE INTO main.meta_facts SELECT 'merge.' || r.new || '.' || e.fact, "
		"iif(e.fact = 'shift_ns', e.value + :shift, e.value) "
		"FROM (" EARLIER ") e JOIN temp.rank_map r ON r.old = CAST(e.rank AS INTEGER)");
}

static void copy_common(struct merge *m)
{
	static const char differing[] =
		"INSERT OR REPLACE INTO main.meta_facts SELECT 'merge.' || :rank || '.' || s.key, "
		"s.value FROM src.meta_facts s WHERE s.key NOT IN " OF_FILE
		" AND s.key NOT GLOB 'merge.*' AND (s.key IN " OWN " OR EXISTS (SELECT 1 FROM "
		"main.meta_facts o WHERE o.key = s.key AND o.value IS NOT s.value))";
	static const char common[] =
		"INSERT OR IGNORE INTO main.meta_facts SELECT key, value FROM src.meta_facts "
		"WHERE key NOT IN " OWN " AND key NOT IN " OF_FILE " AND key NOT GLOB 'merge.*'";

	if (m->source->ranks <= 1)
		prof__merge_run(m, differing);
	prof__merge_run(m, common);
}

static void set_alignment(struct merge *m)
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

	snprintf(key, sizeof(key), "merge.%" PRId64 ".source", source->rank);
	set(m, key, source->path);
	for (size_t i = 0; i < ARRAY_LEN(facts); i++)
		set_rank_int(m, facts[i].fact, facts[i].value);
	if (source->same_model >= 0)
		set_rank_int(m, "model_of_rank", source->same_model);
	if (m->base[MERGE_IPU] > 0)
		set_rank_int(m, "memory_first_ipu", m->base[MERGE_IPU]);
}

void prof__merge_facts(struct merge *m)
{
	copy_common(m);
	if (m->source->ranks > 1)
		copy_earlier(m);
	else
		set_alignment(m);
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

void prof__merge_facts_end(struct merge *m)
{
	static const char *const aligns[] = {"wall", "steps", "none"};
	int64_t least = INT64_MAX, greatest = 0, ranks = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct prof_merge_source *source = &m->sources[i];
		int64_t last = source->rank + (int64_t)source->ranks - 1;

		least = min(source->rank, least);
		greatest = max(last, greatest);
		ranks += (int64_t)source->ranks;
	}
	set(m, "state", "complete");
	set(m, "merge_align", aligns[m->params->align]);
	set(m, "sqlite_version", sqlite3_libversion());
	if (m->params->command)
		set(m, "command", m->params->command);
	set_int(m, "schema_version", PROF_SCHEMA_VERSION);
	set_int(m, "rank", least);
	set_int(m, "last_rank", greatest);
	set_int(m, "ranks", ranks);
	if (start_of(m) > 0)
		set_int(m, "start_epoch_ns", start_of(m));
}
