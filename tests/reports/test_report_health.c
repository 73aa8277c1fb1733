/*
 * A recorded run judged again: with its own rules the hits are the recorded ones.
 */
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "outfeed/outfeed_health.h"
#include "reports/named/report_named.h"

#define TENSORS  5
#define REPLICAS 2
#define UPDATES  200
#define PATH     (SUPPORT_PATH_SIZE + 64)

/* A run that records what its own rules find. */
struct run {
	struct ips_recording *recording;
	struct outfeed_health *health;
	struct outfeed_health_rules rules;
	struct outfeed_health_tensor *tensors[TENSORS][REPLICAS];
	int64_t ids[TENSORS];
	int64_t now;
	uint32_t random;
	int hits;
	char folder[SUPPORT_PATH_SIZE], path[PATH];
};

static void record_hit(void *user, const struct outfeed_hit *hit)
{
	struct run *run = user;
	const struct ips_health row = {
		.keys = hit->keys,
		.rule = outfeed_health_describe(hit->rule)->name,
		.tensor_id = hit->tensor_id,
		.layer = hit->layer,
		.time_ns = hit->time_ns,
		.value = hit->value,
		.threshold = hit->threshold,
		.key = hit->key,
	};

	assert_int_equal(ips_append_health(run->recording, &row), 0);
	run->hits++;
}

static void record_rules(struct run *run)
{
	for (int i = 0; i < OUTFEED_HEALTH_RULES; i++) {
		const struct outfeed_health_rule *rule = &run->rules.rule[i];
		char parameters[OUTFEED_HEALTH_TEXT];

		outfeed_health_parameters(parameters, &run->rules, (enum outfeed_health_id)i);
		assert_int_equal(
			ips_append_health_rule(
				run->recording,
				&(struct ips_health_rule){
					.rule = outfeed_health_describe((enum outfeed_health_id)i)
							->name,
					.threshold = rule->threshold,
					.patience = rule->patience,
					.enabled = rule->enabled,
					.parameters = parameters}),
			0);
	}
}

static void add_tensors(struct run *run)
{
	static const struct {
		enum outfeed_kind kind;
		enum outfeed_activity activity;
		const char *key, *shape;
		bool matrix;
		int64_t neurons;
	} rows[TENSORS] = {
		{OUTFEED_GRADIENT, OUTFEED_NO_ACTIVITY, "d/kernel:0_grad", "(4, 25)", true, 25},
		{OUTFEED_GRADIENT, OUTFEED_NO_ACTIVITY, "d/bias:0_grad", "(100,)", false, 100},
		{OUTFEED_ACTIVATION, OUTFEED_RELU, "d_acts", "(25, 4)", true, 4},
		{OUTFEED_ACTIVATION, OUTFEED_SIGMOID, "e_acts", "(25, 4)", true, 4},
		{OUTFEED_WEIGHT, OUTFEED_NO_ACTIVITY, "d/kernel:0", "(4, 25)", true, 25},
	};

	for (int t = 0; t < TENSORS; t++) {
		const struct ips_tensor tensor = {.queue = t < 2 ? "gradients" : "watch",
						  .key = rows[t].key,
						  .kind = outfeed_kind_text(rows[t].kind),
						  .layer = "d",
						  .stage = t % 2,
						  .shape = rows[t].shape,
						  .dtype = "float32",
						  .activity =
							  outfeed_activity_text(rows[t].activity)};
		struct outfeed_health_about_tensor about = {.key = rows[t].key,
							    .layer = "d",
							    .kind = rows[t].kind,
							    .activity = rows[t].activity,
							    .matrix = rows[t].matrix,
							    .neurons = rows[t].neurons};

		run->ids[t] = about.tensor_id = ips_tensor_add(run->recording, &tensor);
		for (int r = 0; r < REPLICAS; r++) {
			about.replica = r;
			assert_int_equal(outfeed_health_tensor(run->health, &run->tensors[t][r],
							       &about, NULL),
					 ST_OK);
		}
	}
}

static double pick(struct run *run, const double *from, uint32_t count)
{
	run->random = run->random * 1664525u + 1013904223u;
	return from[(run->random >> 8) % count];
}

/* One row, recorded and judged. Faults last for 10 updates. */
static void feed_row(struct run *run, int t, int replica, int64_t update)
{
	static const double sizes[] = {1e-9, 1, 2, 3, 2e6, 0}, parts[] = {0.1, 0.9, (double)NAN},
			    bad[] = {0, 0, 0, 2}, ratios[] = {0.01, 1e-9, 20, (double)NAN};
	struct ips_tensor_stats stats = {.keys = IPS_KEYS_NULL, .tensor_id = run->ids[t]};
	struct outfeed_health_row row = {.keys = IPS_KEYS_NULL};
	double size;

	run->random = (uint32_t)(update / 10 * 131 + t * 17 + replica * 7 + 1);
	size = pick(run, sizes, 6) * (1 + 1e-4 * (double)(update % 10) * (double)(t != 3));
	row.keys.mode = IPS_TRAIN;
	row.keys.phase = t < 2 ? 'B' : 'F';
	row.keys.weight_update = row.keys.step = update;
	row.keys.epoch = 1 + update / 50;
	row.keys.replica = replica;
	row.time_ns = ++run->now;
	row.n = 100;
	row.n_nan = (int64_t)pick(run, bad, 4);
	row.n_inf = (int64_t)pick(run, bad, 4);
	row.n_zero = size == 0 ? 100 : 3;
	row.n_changed = t == 4 ? (int64_t)pick(run, bad, 4) : IPS_NULL;
	row.max = row.std = row.l1 = row.l2 = size;
	row.min = -size;
	if (t == 1) /* of the tier health, which has but the greatest |x| */
		row.min = row.max = (double)NAN;
	row.mean = 0.1 * size;
	row.inactive = pick(run, parts, 3);
	row.update_ratio = t == 4 ? pick(run, ratios, 4) : (double)NAN;
	row.abs_max = row.n_nan > 0 ? (double)NAN : row.n_inf > 0 ? (double)INFINITY : size;

	stats.keys = row.keys;
	stats.time_ns = row.time_ns;
	stats.n = row.n;
	stats.n_nan = row.n_nan;
	stats.n_pos_inf = row.n_inf / 2;
	stats.n_neg_inf = row.n_inf - row.n_inf / 2;
	stats.n_zero = row.n_zero;
	stats.n_neg = stats.n_pos = IPS_NULL;
	stats.min = row.min;
	stats.max = row.max;
	stats.mean = row.mean;
	stats.std = row.std;
	stats.l1 = row.l1;
	stats.l2 = row.l2;
	stats.abs_min_nonzero = (double)NAN;
	stats.abs_max = size;
	stats.inactive = row.inactive;
	stats.update_ratio = row.update_ratio;
	stats.n_changed = row.n_changed;
	assert_int_equal(ips_append_tensor_stats(run->recording, &stats), 0);
	outfeed_health_row(run->tensors[t][replica], &row);
}

static void record_loss(struct run *run, enum ips_mode mode, int64_t epoch, int64_t step,
			double value)
{
	const struct ips_metric row = {.mode = (int64_t)mode,
				       .epoch = epoch,
				       .execution = step == IPS_NULL ? IPS_NULL : step / 10,
				       .step = step,
				       .time_ns = ++run->now,
				       .name = "loss",
				       .value = value};

	assert_int_equal(ips_append_metric(run->recording, &row), 0);
}

static void feed_loss(struct run *run, int64_t step)
{
	const double loss = step == 120      ? (double)NAN
			    : step % 60 < 30 ? 2.3
					     : 1.0 / (double)(step + 1);
	struct ips_keys keys = IPS_KEYS_NULL;

	record_loss(run, IPS_TRAIN, 1 + step / 50, step, loss);
	keys.mode = IPS_TRAIN;
	keys.epoch = 1 + step / 50;
	keys.execution = step / 10;
	keys.step = step;
	outfeed_health_loss(run->health, &keys, run->now, loss);
}

static void feed_epoch(struct run *run, int64_t epoch)
{
	static const double losses[] = {1, 0.5, 0.7, 0.4},
			    val_losses[] = {1, 0.9, 0.9, (double)INFINITY};
	const double loss = losses[epoch - 1], val_loss = val_losses[epoch - 1];
	struct ips_keys keys = IPS_KEYS_NULL;

	record_loss(run, IPS_EVALUATE, epoch, IPS_NULL, val_loss);
	record_loss(run, IPS_TRAIN, epoch, IPS_NULL, loss);
	keys.mode = IPS_TRAIN;
	keys.epoch = epoch;
	outfeed_health_epoch(run->health, &keys, run->now, loss, val_loss, true);
	run->now++;
	keys.epoch = epoch;
	outfeed_health_classes(run->health, &keys, run->now, 600, 8.0 + (double)epoch, (double)NAN);
}

static void run_it(struct run *run)
{
	for (int64_t update = 0; update < UPDATES; update++) {
		for (int t = 0; t < TENSORS; t++)
			for (int r = 0; r < REPLICAS; r++)
				feed_row(run, t, r, update);
		feed_loss(run, update);
		outfeed_health_evaluate(run->health);
		if (update % 50 == 49)
			feed_epoch(run, 1 + update / 50);
	}
	/* An evaluation at the end, of no epoch. */
	record_loss(run, IPS_EVALUATE, IPS_NULL, IPS_NULL, 100);
}

static int setup(void **state)
{
	struct run *run = mem_calloc(1, sizeof(*run));
	struct outfeed_health_params params = {
		.rules = &run->rules, .hit = record_hit, .user = run};

	assert_non_null(run);
	support_tempdir(run->folder);
	snprintf(run->path, sizeof(run->path), "%s/run.db", run->folder);
	outfeed_health_defaults(&run->rules);
	run->rules.rule[OUTFEED_HEALTH_exploding].threshold = 1e5;
	run->rules.rule[OUTFEED_HEALTH_loss_not_decreasing].parameter[0] = 7;
	run->rules.rule[OUTFEED_HEALTH_vanishing].patience = 3;
	run->rules.rule[OUTFEED_HEALTH_poor_initialization].parameter[0] = 1e9; /* range */
	assert_int_equal(ips_recording_open(&run->recording, run->path, NULL, NULL, 0), 0);
	assert_int_equal(outfeed_health_new(&run->health, &params, NULL), ST_OK);
	record_rules(run);
	add_tensors(run);
	run_it(run);
	outfeed_health_free(run->health);
	assert_int_equal(ips_recording_close(run->recording, NULL, 0), 0);
	*state = run;
	return 0;
}

static int teardown(void **state)
{
	struct run *run = *state;

	support_tempdir_remove(run->folder);
	mem_free(run);
	return 0;
}

static void judge(const struct run *run, const char *file, struct report_table *out)
{
	struct outfeed_health_rules rules;
	struct prof_db *db;
	struct err err = {0};

	assert_int_equal(prof_db_open(&db, run->path, &err), ST_OK);
	if (report_health_rules(&rules, db, file, &err) != ST_OK ||
	    report_health_hits(out, db, &rules, &err) != ST_OK)
		fail_msg("%s", err.text);
	prof_db_close(db);
}

static int count_of(const struct report_table *table, const char *rule)
{
	int count = 0;

	for (int64_t i = 0; i < table->row_count; i++)
		count += strcmp(table->cells[i * table->column_count].text, rule) == 0;
	return count;
}

static bool same_cell(const struct report_cell *a, const struct report_cell *b)
{
	if (a->type != b->type)
		return false;
	switch (a->type) {
	case PROF_INT:
		return a->integer == b->integer;
	case PROF_REAL:
		return memcmp(&a->real, &b->real, sizeof(a->real)) == 0;
	case PROF_TEXT:
		return strcmp(a->text, b->text) == 0;
	case PROF_NULL:
	case PROF_BLOB:
		break;
	}
	return true;
}

static void test_the_runs_own_rules_give_the_recorded_hits(void **state)
{
	struct run *run = *state;
	struct report_table recorded, again;
	struct prof_db *db;

	assert_true(run->hits > 100);
	assert_int_equal(prof_db_open(&db, run->path, NULL), ST_OK);
	assert_int_equal(report_table_query(&recorded, db, "health",
					    "SELECT * FROM health ORDER BY time_ns", 0, NULL),
			 ST_OK);
	prof_db_close(db);
	judge(run, "recorded", &again);
	assert_int_equal(recorded.row_count, run->hits);
	assert_int_equal(again.row_count, recorded.row_count);
	assert_int_equal(again.column_count, recorded.column_count);
	for (int c = 0; c < again.column_count; c++)
		assert_string_equal(again.columns[c].name, recorded.columns[c].name);
	for (int64_t i = 0; i < again.row_count * again.column_count; i++)
		if (!same_cell(&again.cells[i], &recorded.cells[i]))
			fail_msg("row %d, column %s", (int)(i / again.column_count),
				 again.columns[i % again.column_count].name);
	for (int i = 0; i < OUTFEED_HEALTH_RULES; i++) {
		const char *name = outfeed_health_describe((enum outfeed_health_id)i)->name;

		if (count_of(&again, name) == 0)
			fail_msg("never hit: %s", name);
	}
	report_table_free(&recorded);
	report_table_free(&again);
}

static void test_what_a_file_names_changes_the_hits(void **state)
{
	static const char text[] = "{\"exploding\": {\"threshold\": 1e7}, \"nonfinite\": false, "
				   "\"class_imbalance\": {\"threshold\": 11.5}}";
	struct run *run = *state;
	struct report_table own, changed, defaults;
	char path[PATH];

	snprintf(path, sizeof(path), "%s/rules.json", run->folder);
	support_write_file(path, text, strlen(text));
	judge(run, "recorded", &own);
	judge(run, path, &changed);
	judge(run, "default", &defaults);
	assert_true(count_of(&own, "exploding") > 0 && count_of(&own, "nonfinite") > 0);
	assert_int_equal(count_of(&changed, "exploding") + count_of(&changed, "nonfinite"), 0);
	assert_int_equal(count_of(&own, "class_imbalance"), 1);
	assert_int_equal(count_of(&changed, "class_imbalance"), 0);
	/* The rest is as the run had it, not as the defaults are. */
	assert_int_equal(count_of(&changed, "loss_not_decreasing"),
			 count_of(&own, "loss_not_decreasing"));
	assert_int_equal(count_of(&changed, "vanishing"), count_of(&own, "vanishing"));
	assert_true(count_of(&defaults, "exploding") <= count_of(&own, "exploding"));
	report_table_free(&own);
	report_table_free(&changed);
	report_table_free(&defaults);
}

static void test_bad_rules_are_refused_where_they_are(void **state)
{
	static const char text[] = "{\"explode\": {}}";
	struct outfeed_health_rules rules;
	struct run *run = *state;
	struct err err = {0};
	struct prof_db *db;
	char path[PATH];

	snprintf(path, sizeof(path), "%s/bad.json", run->folder);
	support_write_file(path, text, strlen(text));
	assert_int_equal(prof_db_open(&db, run->path, NULL), ST_OK);
	assert_int_equal(report_health_rules(&rules, db, path, &err), ST_INVALID);
	assert_contains(err.text, "bad.json: unknown health rule \"explode\"");
	snprintf(path, sizeof(path), "%s/none.json", run->folder);
	assert_int_not_equal(report_health_rules(&rules, db, path, &err), ST_OK);
	assert_contains(err.text, "none.json");
	prof_db_close(db);
}

/* A bound that is none, and a patience that is none, are the defaults. Other programs' rules are
 * left out. */
static void test_recorded_rules_are_taken_where_they_are_numbers(void **state)
{
	static const struct {
		double threshold;
		int64_t patience;
		bool threshold_taken, patience_taken;
	} rows[] = {
		{7.5, 3, true, true},    {0, 1, true, true},
		{-1, 2, false, true},    {INFINITY, 0, false, false},
		{NAN, -4, false, false}, {-INFINITY, IPS_NULL, false, false},
	};
	struct outfeed_health_rules defaults, rules;
	struct run *run = *state;
	enum outfeed_health_id id;

	outfeed_health_defaults(&defaults);
	assert_true(outfeed_health_find(&id, "exploding"));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ips_recording *recording;
		struct err err = {0};
		struct prof_db *db;
		char path[PATH];

		snprintf(path, sizeof(path), "%s/rules%zu.db", run->folder, i);
		assert_int_equal(ips_recording_open(&recording, path, NULL, NULL, 0), 0);
		ips_append_health_rule(recording, &(struct ips_health_rule){.rule = "another"});
		ips_append_health_rule(recording,
				       &(struct ips_health_rule){.rule = "exploding",
								 .threshold = rows[i].threshold,
								 .patience = rows[i].patience});
		assert_int_equal(ips_recording_close(recording, NULL, 0), 0);
		assert_int_equal(prof_db_open(&db, path, NULL), ST_OK);
		if (report_health_rules(&rules, db, "recorded", &err) != ST_OK)
			fail_msg("%s", err.text);
		prof_db_close(db);
		assert_close(rules.rule[id].threshold,
			     rows[i].threshold_taken ? rows[i].threshold
						     : defaults.rule[id].threshold,
			     0);
		assert_int_equal(rules.rule[id].patience, rows[i].patience_taken
								  ? rows[i].patience
								  : defaults.rule[id].patience);
		assert_false(rules.rule[id].enabled);
	}
}

static void test_no_memory_is_no_table(void **state)
{
	struct run *run = *state;
	struct outfeed_health_rules rules;
	enum status status = ST_NOMEM;
	struct prof_db *db;

	outfeed_health_defaults(&rules);
	assert_int_equal(prof_db_open(&db, run->path, NULL), ST_OK);
	for (long n = 0; status != ST_OK; n += n < 40 ? 1 : 97) {
		struct report_table table;

		support_fail_alloc(n);
		status = report_health_hits(&table, db, &rules, NULL);
		assert_int_equal(status, support_alloc_failed() ? ST_NOMEM : ST_OK);
		support_fail_alloc(-1);
		if (status == ST_OK)
			report_table_free(&table);
	}
	prof_db_close(db);
}

static void test_the_command_prints_hits_and_the_rules_as_used(void **state)
{
	struct run *run = *state;
	struct support_result result;

	support_shell(&result, "'%s'/ipu-report '%s' health --reevaluate recorded",
		      support_bin_dir(), run->path);
	assert_int_equal(result.exit_code, 0);
	assert_contains(result.out, "d/kernel:0_grad");
	assert_contains(result.out, "poor_initialization");
	assert_contains(result.out, "misprediction");
	support_result_free(&result);
	support_shell(&result,
		      "'%s'/ipu-report '%s' health --reevaluate recorded --csv --limit 3 | wc -l",
		      support_bin_dir(), run->path);
	assert_string_equal(result.out, "4\n"); /* with the names of the columns */
	support_result_free(&result);
	support_shell(&result, "'%s'/ipu-report '%s' health --reevaluate recorded --csv | wc -l",
		      support_bin_dir(), run->path);
	assert_int_equal(atoi(result.out), run->hits + 1);
	support_result_free(&result);
	support_shell(
		&result,
		"'%s'/ipu-report '%s' health --reevaluate recorded --json | python3 -c 'import "
		"json, sys; d = json.load(sys.stdin); print(len(d[\"rows\"]), "
		"json.loads(d[\"note\"])[\"exploding\"][\"threshold\"])'",
		support_bin_dir(), run->path);
	if (support_has_program("python3"))
		assert_int_equal(atoi(result.out), run->hits);
	support_result_free(&result);
	support_shell(&result, "'%s'/ipu-report '%s' spans --reevaluate recorded",
		      support_bin_dir(), run->path);
	assert_int_equal(result.exit_code, 2);
	assert_contains(result.err, "--reevaluate is an option of `health`, not of `spans`");
	support_result_free(&result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_runs_own_rules_give_the_recorded_hits),
		cmocka_unit_test(test_what_a_file_names_changes_the_hits),
		cmocka_unit_test(test_bad_rules_are_refused_where_they_are),
		cmocka_unit_test(test_recorded_rules_are_taken_where_they_are_numbers),
		cmocka_unit_test(test_no_memory_is_no_table),
		cmocka_unit_test(test_the_command_prints_hits_and_the_rules_as_used),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
