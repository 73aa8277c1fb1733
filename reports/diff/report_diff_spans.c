/*
 * Compare two runs' spans by name: number and total time.
 *
 * Each row is read once and added to its call site's sums; a GROUP BY in SQLite would sort all
 * rows. Threading: none. Ownership: texts of the result belong to the comparison's arena.
 */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "reports/diff/report_diff.h"
#include "reports/import/report_import_intern.h"

#define SITES_MAX (1 << 22) /* bound for damaged files */
#define STEP_NAME "ProfilerStep#"

/* Sums of a name on a clock, in both runs. */
struct span_sum {
	const char *key;
	bool host;
	double count[2], total_ns[2];
};

struct span_sums {
	struct report_diff *diff;
	struct err *err;           /* sticky: every step returns at once after a failure */
	struct import_intern keys; /* a key's id is the index into at */
	struct span_sum *at;
	size_t capacity;
};

/* Sums of a call site on a clock, in one run. */
struct site_sum {
	double count, total_ns;
};

struct site_sums {
	struct site_sum *at; /* index: 2 x site_id + clock */
	size_t capacity;
	struct site_sum outermost[2]; /* spans of depth 0, by clock */
};

static const char sql_spans[] =
	"SELECT r.site_id, coalesce(t.clock, 0), r.dur_ns, r.depth FROM span_rows r "
	"LEFT JOIN track_rows t ON t.track_id = r.track_id";
static const char sql_sites[] =
	"SELECT s.site_id, coalesce(g.value, ''), coalesce(n.value, '?') FROM sites s "
	"LEFT JOIN strings g ON g.string_id = s.category_id "
	"LEFT JOIN strings n ON n.string_id = s.name_id ORDER BY s.site_id";

static void add_span(struct site_sums *sums, const struct prof_query *query, struct err *err)
{
	const int64_t site = prof_column_int(query, 0);
	const int clock = prof_column_int(query, 1) == 1;
	const size_t at = 2 * (size_t)site + (size_t)clock, before = sums->capacity;
	const double ns = prof_column_type(query, 2) == PROF_INT ? prof_column_real(query, 2) : 0;

	if (prof_column_int(query, 3) == 0) {
		sums->outermost[clock].count++;
		sums->outermost[clock].total_ns += ns;
	}
	if (site < 0 || site > SITES_MAX)
		return;
	if (mem_grow(&sums->at, &sums->capacity, at + 1, sizeof(*sums->at))) {
		err_nomem(err);
		return;
	}
	if (sums->capacity > before)
		memset(sums->at + before, 0, (sums->capacity - before) * sizeof(*sums->at));
	sums->at[at].count++;
	sums->at[at].total_ns += ns;
}

/* Add a site's sums of one run under @key. @side: 0 source, 1 target. */
static void add_sum(struct span_sums *sums, const char *key, size_t clock, int side,
		    const struct site_sum *add)
{
	bool fresh;
	uint32_t id;

	if (add->count == 0 || err_stuck(sums->err))
		return;
	id = report__import_intern(&sums->keys, key, strlen(key), UINT32_MAX - 1, &fresh);
	if (id == IMPORT_NO_ID ||
	    mem_grow(&sums->at, &sums->capacity, sums->keys.count, sizeof(*sums->at))) {
		err_nomem(sums->err);
		return;
	}
	if (fresh)
		sums->at[id] = (struct span_sum){.key = arena_strdup(&sums->diff->arena, key),
						 .host = clock == 0};
	if (!sums->at[id].key)
		err_nomem(sums->err);
	sums->at[id].count[side] += add->count;
	sums->at[id].total_ns[side] += add->total_ns;
}

static const char *const clock_names[] = {"host", "device"};

/* Build the key of a call site. The steps of a profiler share one key, since they repeat the same
 * work; other names are kept in full, since names of templates may differ only at the end. */
static void build_key(struct str *key, size_t clock, const char *category, const char *name)
{
	str_clear(key);
	str_addf(key, "%s%s%s ", clock_names[clock], category && *category ? " " : "",
		 category ? category : "");
	if (name && str_starts_with(name, STEP_NAME))
		str_add(key, STEP_NAME "*");
	else
		str_add(key, name ? name : "?");
}

static void read_spans(struct span_sums *sums, struct prof_db *db, int side)
{
	struct site_sums sites = {0};
	struct err *err = sums->err;
	struct prof_query *query;

	if (err_stuck(err))
		return;
	prof_query_open(&query, db, sql_spans, err);
	while (prof_query_next(query, &err->status, err))
		add_span(&sites, query, err);
	prof_query_close(query);
	/* "host, outermost": the total of a run, the only sum for which more is worse. */
	for (size_t clock = 0; clock < 2; clock++) {
		char key[32];

		snprintf(key, sizeof(key), "%s, outermost", clock_names[clock]);
		add_sum(sums, key, clock, side, &sites.outermost[clock]);
	}
	prof_query_open(&query, db, sql_sites, err);
	while (prof_query_next(query, &err->status, err)) {
		const int64_t site = prof_column_int(query, 0);
		struct str key = {0};

		for (size_t clock = 0; clock < 2; clock++) {
			const size_t at = 2 * (size_t)site + clock;

			if (site < 0 || at >= sites.capacity)
				continue;
			build_key(&key, clock, prof_column_text(query, 1),
				  prof_column_text(query, 2));
			if (key.failed)
				err_nomem(sums->err);
			add_sum(sums, str_peek(&key), clock, side, &sites.at[at]);
		}
		str_free(&key);
	}
	prof_query_close(query);
	mem_free(sites.at);
}

static void add_row(struct span_sums *sums, const struct span_sum *sum, const char *name,
		    enum report_quantity quantity, const double value[2])
{
	struct report_diff_row *row = report__diff_add(sums->diff, sums->err);

	if (row)
		*row = (struct report_diff_row){
			.section = "spans",
			.key = sum->key,
			.name = name,
			.quantity = quantity,
			.measured = sum->host,
			.in_source = sum->count[0] > 0,
			.in_target = sum->count[1] > 0,
			.better = quantity == REPORT_NS && strstr(sum->key, ", outermost")
					  ? REPORT_DIFF_LOWER
					  : REPORT_DIFF_NEITHER,
			.source = {.known = sum->count[0] > 0, .number = value[0]},
			.target = {.known = sum->count[1] > 0, .number = value[1]},
		};
}

void report__diff_spans(struct report_diff *diff, struct prof_db *source, struct prof_db *target,
			struct err *err)
{
	struct span_sums sums = {.diff = diff, .err = err};

	read_spans(&sums, source, 0);
	read_spans(&sums, target, 1);
	for (size_t i = 0; i < sums.keys.count && !err_stuck(err); i++) {
		add_row(&sums, &sums.at[i], "total_ns", REPORT_NS, sums.at[i].total_ns);
		add_row(&sums, &sums.at[i], "count", REPORT_COUNT, sums.at[i].count);
	}
	mem_free(sums.at);
	report__import_intern_fini(&sums.keys);
}
