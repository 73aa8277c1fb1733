/*
 * ipu-monitor: the layout of gc-monitor, the simulated figures, and the JSON, of runs made up by
 * hand.
 */
#include "reports/monitor/report_monitor.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "support/support.h"

#define START INT64_C(1700000000000)

struct fixture {
	struct prof_announcements runs;
	struct report_monitor monitor;
	struct str text;
};

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct fixture));
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	report_monitor_free(&f->monitor);
	prof_announcements_free(&f->runs);
	str_free(&f->text);
	free(f);
	return 0;
}

static struct prof_announcement *add(struct fixture *f, int64_t pid, int64_t first, int64_t ipus,
				     const char *target, int64_t clock_mhz)
{
	struct prof_announcements *runs = &f->runs;
	struct prof_announcement *run;

	assert_int_equal(mem_grow(&runs->items, &runs->capacity, (size_t)runs->count + 1,
				  sizeof(*runs->items)),
			 0);
	run = &runs->items[runs->count++];
	*run = (struct prof_announcement){
		.pid = pid,
		.process_start = 1,
		.started_ms = START,
		.command = "ipu-train run.json",
		.user = "ipuuser",
		.clock_mhz = clock_mhz,
		.first_id = first,
		.ipus = ipus,
		.replicas = 1,
		.stages = ipus,
	};
	snprintf(run->target, sizeof(run->target), "%s", target);
	return run;
}

static void make(struct fixture *f, int64_t ipus, double seconds)
{
	const struct report_monitor_params params = {
		.ipus = ipus, .target = "ipu21", .now_ms = START + (int64_t)(seconds * 1000)};

	assert_int_equal(report_monitor_new(&f->monitor, &f->runs, &params, NULL), ST_OK);
}

static const char *text_of(struct fixture *f)
{
	str_clear(&f->text);
	report_monitor_text(&f->monitor, false, &f->text);
	assert_false(f->text.failed);
	return str_peek(&f->text);
}

static cJSON *json_of(struct fixture *f)
{
	struct jsonw w;
	cJSON *json;

	str_clear(&f->text);
	jsonw_init_str(&w, &f->text, 0);
	report_monitor_json(&f->monitor, &w);
	assert_int_equal(jsonw_end(&w, NULL), ST_OK);
	json = cJSON_Parse(str_peek(&f->text));
	assert_non_null(json);
	return json;
}

/* ---- the layout ------------------------------------------------------------------------------ */

/* Versions are those of the program. */
static void without_version(char *text)
{
	for (char *at = text; (at = strstr(at, IPUSCOPE_VERSION));)
		memset(at, 'v', strlen(IPUSCOPE_VERSION));
}

static void compare(struct fixture *f, const char *name)
{
	char path[FS_PATH_SIZE], *text = strdup(text_of(f)), *golden;

	without_version(text);
	assert_true(fs_path(path, "%s/tests/golden/%s", support_source_dir(), name));
	if (getenv("UPDATE_GOLDEN"))
		support_write_file(path, text, strlen(text));
	golden = support_read_file(path, NULL);
	assert_string_equal(text, golden);
	free(golden);
	free(text);
}

static void test_the_layout_is_that_of_gc_monitor(void **state)
{
	struct fixture *f = *state;
	struct prof_announcement *run = add(f, 1653623, 0, 1, "ipu21", 1850);

	run->progress = (struct report_progress){REPORT_RUN_TRAINING, 2, 3, 120, 500, 0.117};
	make(f, 16, 40);
	compare(f, "monitor.txt");
	/* Line by line what gc-monitor prints around its texts. */
	assert_contains(text_of(f),
			"+-------------+--------------------+--------+--------------+----------+"
			"-------+----+------+-------+\n"
			"|    IPU-M    |       Serial       |IPU-M SW|Server version|  ICU FW  | "
			"Type  | ID | IPU# |Routing|\n");
	assert_contains(text_of(f),
			"  |  40s   |  ipuuser   | 0  | 1850MHz  | 35.7 C | 30.2 C |130.7 W |");
}

static void test_runs_share_and_hostile_texts_are_shown(void **state)
{
	struct fixture *f = *state;
	struct prof_announcement *run = add(f, 11, 0, 4, "ipu2", 1330);

	memset(run->command, 'x', 200);
	snprintf(run->report, sizeof(run->report), "/tmp/\033[2Jtf_report__x");
	run->progress = (struct report_progress){REPORT_RUN_EVALUATING, 0, 0, 5, 6, 0.5};
	run = add(f, 12, 2, 2, "ipu2", 1330);
	snprintf(run->command, sizeof(run->command), "ipu-train \033]0;title\a\n.json");
	snprintf(run->user, sizeof(run->user), "a-very-long-user-name");
	make(f, 4, 100000);
	compare(f, "monitor_shared.txt");
	assert_null(strchr(text_of(f), '\033'));
}

static void test_nobody_is_attached(void **state)
{
	struct fixture *f = *state;

	make(f, 4, 0);
	compare(f, "monitor_none.txt");
}

static void test_every_line_of_a_table_is_as_wide(void **state)
{
	struct fixture *f = *state;
	size_t width = 0;

	add(f, 4194304, 60, 4, "c600", 1490);
	make(f, 4, 1e9);
	assert_int_equal(f->monitor.count, 64);
	for (const char *line = text_of(f), *end; line[0] == '+' || line[0] == '|';
	     line = end + 1) {
		end = strchr(line, '\n');
		if (width != 0 &&
		    strncmp(line, "+--------------------------------------------", 45))
			assert_int_equal(end - line, width);
		width = (size_t)(end - line);
	}
}

static void test_colour_is_beside_the_text(void **state)
{
	struct fixture *f = *state;

	make(f, 4, 0);
	text_of(f);
	str_clear(&f->text);
	report_monitor_text(&f->monitor, true, &f->text);
	assert_contains(str_peek(&f->text), "\033[1m|  ipu-monitor  |");
}

/* ---- figures --------------------------------------------------------------------------------- */

static void test_an_idle_ipu_is_cool(void **state)
{
	struct fixture *f = *state;
	const struct report_monitor_device *device;

	make(f, 2, 0);
	device = &f->monitor.devices[0];
	assert_close(device->watts, 50, 1e-12);
	assert_close(device->board_watts, 100, 1e-12);
	assert_close(device->die_c, 25 + 0.14 * 50, 1e-12);
	assert_close(device->board_c, 25 + 0.0413 * 100, 1e-12);
}

static void test_power_follows_work_and_heat_follows_power(void **state)
{
	struct fixture *f = *state;
	const struct report_monitor_device *device;
	double felt;

	add(f, 1, 0, 1, "ipu21", 1850)->progress.utilisation = 0.5;
	make(f, 4, 20);
	device = &f->monitor.devices[0];
	assert_close(device->watts, 50 + 262.5 * 0.5, 1e-12);
	assert_close(device->board_watts, 231.25, 1e-12);
	felt = 50 + 131.25 * (1 - exp(-1));
	assert_close(device->die_c, 25 + 0.14 * felt, 1e-12);
	assert_close(device->board_c, 25 + 0.0413 * (felt + 50), 1e-12);
	/* Another board is not warmed. */
	assert_close(f->monitor.devices[2].board_c, 25 + 0.0413 * 100, 1e-12);
	assert_true(device->die_c > f->monitor.devices[1].die_c);
}

static void test_shared_ipus_are_busy_at_most_always(void **state)
{
	struct fixture *f = *state;

	add(f, 1, 0, 1, "ipu2", 1330)->progress.utilisation = 0.75;
	add(f, 2, 0, 1, "ipu2", 1330)->progress.utilisation = 0.75;
	make(f, 4, 0);
	assert_close(f->monitor.devices[0].utilisation, 1, 0);
	assert_close(f->monitor.devices[0].watts, 375, 1e-12);
	assert_true(report_monitor_shared(&f->monitor, &f->monitor.runs.items[0]));
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void test_json_has_devices_and_processes(void **state)
{
	struct fixture *f = *state;
	struct prof_announcement *run = add(f, 77, 4, 2, "ipu21", 1850);
	cJSON *json, *devices, *process;

	run->progress = (struct report_progress){REPORT_RUN_TRAINING, 1, 2, 3, 4, 0.25};
	make(f, 4, 2.5);
	json = json_of(f);
	assert_string_equal(cJSON_GetObjectItem(json, "tool")->valuestring, "ipu-monitor");
	devices = cJSON_GetObjectItem(json, "devices");
	assert_int_equal(cJSON_GetArraySize(devices), 8);
	for (int i = 0; i < 8; i++) {
		const cJSON *item;

		cJSON_ArrayForEach(item, cJSON_GetArrayItem(devices, i))
		{
			assert_true(cJSON_IsString(item));
		}
		assert_int_equal(
			cJSON_HasObjectItem(cJSON_GetArrayItem(devices, i), "user process id"),
			i == 4 || i == 5);
	}
	process = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "processes"), 0);
	assert_int_equal(cJSON_GetObjectItem(process, "pid")->valueint, 77);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(process, "ipus")), 2);
	assert_close(cJSON_GetObjectItem(process, "seconds")->valuedouble, 2.5, 1e-12);
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(process, "report")));
	cJSON_Delete(json);
}

static void test_memory_may_fail(void **state)
{
	const struct report_monitor_params params = {.ipus = 4, .target = "ipu2"};
	struct fixture *f = *state;

	add(f, 1, 0, 1, "ipu2", 1330);
	support_fail_alloc(0);
	assert_int_equal(report_monitor_new(&f->monitor, &f->runs, &params, NULL), ST_NOMEM);
	support_fail_alloc(-1);
	assert_int_equal(f->runs.count, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_layout_is_that_of_gc_monitor),
		TEST(runs_share_and_hostile_texts_are_shown),
		TEST(nobody_is_attached),
		TEST(every_line_of_a_table_is_as_wide),
		TEST(colour_is_beside_the_text),
		TEST(an_idle_ipu_is_cool),
		TEST(power_follows_work_and_heat_follows_power),
		TEST(shared_ipus_are_busy_at_most_always),
		TEST(json_has_devices_and_processes),
		TEST(memory_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
