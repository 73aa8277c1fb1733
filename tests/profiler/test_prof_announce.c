/*
 * Announcements: what is written is read back, by nobody but us, and never of a process that is
 * gone.
 */
#include "profiler/prof_announce.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "profiler/prof_process.h"
#include "support/support.h"

#define PAUSE_NS 250000000 /* between two writings */

struct fixture {
	char dir[SUPPORT_PATH_SIZE]; /* $XDG_RUNTIME_DIR */
	char path[FS_PATH_SIZE];     /* of the last file asked for */
	struct prof_announcements runs;
	struct str notes;
	struct err err;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	support_tempdir(f->dir);
	assert_int_equal(chmod(f->dir, 0700), 0);
	setenv("XDG_RUNTIME_DIR", f->dir, 1);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	prof_announcements_free(&f->runs);
	str_free(&f->notes);
	chmod(f->dir, 0700);
	support_tempdir_remove(f->dir);
	free(f);
	return 0;
}

static struct prof_announcement sample(void)
{
	struct prof_announcement run = {
		.command = "ipu-train a \"b\" \xc3\xa9.json",
		.target = "ipu21",
		.clock_mhz = 1850,
		.ipus = 2,
		.replicas = 1,
		.stages = 2,
		.report = "/tmp/tf_report__x",
	};

	return run;
}

static struct prof_announce *announce(const struct prof_announcement *run)
{
	struct prof_announce *out;

	assert_int_equal(prof_announce_open(&out, run, NULL), ST_OK);
	return out;
}

static enum status look(struct fixture *f, bool tidy)
{
	prof_announcements_free(&f->runs);
	str_clear(&f->notes);
	return prof_announcements_read(&f->runs, tidy, &f->notes, &f->err);
}

static const char *file(struct fixture *f, const char *name)
{
	assert_true(fs_path(f->path, "%s/ipuscope/%s", f->dir, name));
	return f->path;
}

static const char *own_file(struct fixture *f)
{
	char name[32];

	snprintf(name, sizeof(name), "%ld.json", (long)getpid());
	return file(f, name);
}

/* The file of a process @pid whose start is @start, as we would write it. */
static void foreign(struct fixture *f, int64_t pid, int64_t start)
{
	char name[32], text[1024];

	mkdir(file(f, ""), 0700);
	snprintf(name, sizeof(name), "%lld.json", (long long)pid);
	snprintf(text, sizeof(text),
		 "{\"version\":1,\"pid\":%lld,\"process_start\":%lld,\"started_ms\":1,"
		 "\"command\":\"x\",\"user\":\"me\",\"target\":\"ipu2\",\"clock_mhz\":1330,"
		 "\"first_id\":0,\"ipus\":1,\"replicas\":1,\"stages\":1,\"state\":\"training\","
		 "\"epoch\":1,\"epochs\":2,\"step\":3,\"steps\":4,\"utilisation\":0.5,"
		 "\"report\":null}\n",
		 (long long)pid, (long long)start);
	support_write_file(file(f, name), text, strlen(text));
}

/* ---- saying ---------------------------------------------------------------------------------- */

static void test_what_is_announced_is_read_back(void **state)
{
	struct fixture *f = *state;
	const struct prof_announcement run = sample();
	struct prof_announce *out = announce(&run);
	const struct prof_announcement *read;
	struct stat info;

	assert_int_equal(look(f, false), ST_OK);
	assert_int_equal(f->runs.count, 1);
	read = &f->runs.items[0];
	assert_int_equal(read->pid, getpid());
	assert_int_equal(read->process_start, prof_process_start(getpid()));
	assert_true(read->started_ms > 1000000000000);
	assert_string_equal(read->command, run.command);
	assert_true(read->user[0] != '\0');
	assert_string_equal(read->target, "ipu21");
	assert_int_equal(read->clock_mhz, 1850);
	assert_int_equal(read->first_id, 0);
	assert_int_equal(read->ipus, 2);
	assert_int_equal(read->stages, 2);
	assert_int_equal(read->progress.state, REPORT_RUN_COMPILING);
	assert_string_equal(read->report, run.report);
	assert_string_equal(str_peek(&f->notes), "");
	assert_int_equal(stat(own_file(f), &info), 0);
	assert_int_equal(info.st_mode & 0777, 0600);
	prof_announce_close(out);
}

/* Only root can be a user whom this machine's list does not name. */
static void test_the_environment_names_a_user_of_no_list(void **state)
{
	static const char *const names[][2] = {{"far", "far"}, {"", "54321"}, {NULL, "54321"}};
	struct fixture *f = *state;
	const struct prof_announcement run = sample();

	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(f->dir, 54321, 54321), 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct prof_announce *out;
		enum status said, read;
		bool reached;

		if (names[i][0])
			setenv("LOGNAME", names[i][0], 1);
		else
			unsetenv("LOGNAME");
		assert_int_equal(seteuid(54321), 0);
		reached = faccessat(AT_FDCWD, f->dir, W_OK, AT_EACCESS) == 0;
		said = prof_announce_open(&out, &run, &f->err);
		read = look(f, false);
		prof_announce_close(out);
		assert_int_equal(seteuid(0), 0);
		prctl(PR_SET_DUMPABLE, 1); /* again: a sanitizer looks for leaks at the end */
		if (!reached)              /* others may not enter the folder for temporary files */
			skip();
		assert_int_equal(said, ST_OK);
		assert_int_equal(read, ST_OK);
		assert_int_equal(f->runs.count, 1);
		assert_string_equal(f->runs.items[0].user, names[i][1]);
	}
}

static void test_progress_is_written_a_few_times_a_second(void **state)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	struct fixture *f = *state;
	const struct prof_announcement run = sample();
	struct report_progress progress = {REPORT_RUN_EVALUATING, 2, 3, 40, 50, 0.125};
	struct prof_announce *out = NULL;
	uint64_t start;

	/* Until no busy machine has let the pause pass in between. */
	do {
		prof_announce_close(out);
		start = clock_ns();
		out = announce(&run);
		prof_announce_progress(out, &progress);
	} while (clock_ns() - start >= PAUSE_NS);
	assert_int_equal(look(f, false), ST_OK);
	assert_int_equal(f->runs.items[0].progress.state, REPORT_RUN_COMPILING);
	nanosleep(&pause, NULL);
	prof_announce_progress(out, &progress);
	assert_int_equal(look(f, false), ST_OK);
	progress = f->runs.items[0].progress;
	assert_int_equal(progress.state, REPORT_RUN_EVALUATING);
	assert_int_equal(progress.epoch * 1000 + progress.epochs, 2003);
	assert_int_equal(progress.step * 1000 + progress.steps, 40050);
	assert_close(progress.utilisation, 0.125, 0);
	prof_announce_close(out);
}

static void test_the_end_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	const struct prof_announcement run = sample();

	prof_announce_close(announce(&run));
	assert_int_equal(look(f, false), ST_OK);
	assert_int_equal(f->runs.count, 0);
	assert_int_equal(access(own_file(f), F_OK), -1);
	prof_announce_progress(NULL, &run.progress);
	prof_announce_close(NULL);
}

static void test_a_process_announces_one_run_at_a_time(void **state)
{
	const struct prof_announcement run = sample();
	struct prof_announce *first = announce(&run), *second;

	(void)state;
	assert_int_equal(prof_announce_open(&second, &run, NULL), ST_NOTFOUND);
	assert_null(second);
	prof_announce_close(first);
	prof_announce_close(announce(&run));
}

/* Without the variable a folder of one's own in the temporary one takes its place: made with mode
 * 0700, and refused where it is a link, others may look into it, or it is another's. */
static void test_without_the_variable_it_is_a_folder_in_the_temporary_one(void **state)
{
	static const char *const values[] = {NULL, "", "relative"};
	const struct prof_announcement run = sample();
	struct fixture *f = *state;
	struct prof_announce *out;
	char path[FS_PATH_SIZE], real[FS_PATH_SIZE];
	struct stat info;

	setenv("TMPDIR", f->dir, 1);
	assert_int_equal(chmod(f->dir, 01777), 0);
	assert_true(fs_path(path, "%s/ipuscope-%ld", f->dir, (long)geteuid()));
	assert_true(fs_path(real, "%s/real", f->dir));
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		if (values[i])
			setenv("XDG_RUNTIME_DIR", values[i], 1);
		else
			unsetenv("XDG_RUNTIME_DIR");
		assert_int_equal(look(f, true), ST_NOTFOUND);
		assert_int_equal(prof_announce_open(&out, &run, &f->err), ST_OK);
		assert_int_equal(stat(path, &info), 0);
		assert_int_equal(info.st_mode & 0777, 0700);
		assert_int_equal(look(f, true), ST_OK);
		assert_int_equal(f->runs.count, 1);
		prof_announce_close(out);

		assert_int_equal(chmod(path, 0755), 0);
		assert_int_equal(prof_announce_open(&out, &run, &f->err), ST_INVALID);
		assert_contains(f->err.text, "must be yours alone");
		assert_int_equal(look(f, true), ST_INVALID);
		assert_int_equal(chmod(path, 0700), 0);
		if (geteuid() == 0) {
			assert_int_equal(chown(path, 1, 1), 0);
			assert_int_equal(prof_announce_open(&out, &run, &f->err), ST_INVALID);
			assert_int_equal(look(f, true), ST_INVALID);
		}
		assert_int_equal(rename(path, real), 0);
		assert_int_equal(symlink(real, path), 0);
		assert_int_equal(prof_announce_open(&out, &run, &f->err), ST_INVALID);
		assert_int_equal(unlink(path), 0);
		assert_int_equal(rmdir(real), 0);
	}
	unsetenv("TMPDIR");
}

static void test_a_folder_of_others_is_refused(void **state)
{
	const struct prof_announcement run = sample();
	struct fixture *f = *state;
	struct prof_announce *out;

	assert_int_equal(chmod(f->dir, 0755), 0);
	assert_int_equal(prof_announce_open(&out, &run, &f->err), ST_INVALID);
	assert_contains(f->err.text, "0700");
	assert_int_equal(look(f, true), ST_INVALID);

	assert_int_equal(chmod(f->dir, 0700), 0);
	assert_int_equal(mkdir(file(f, ""), 0777), 0);
	assert_int_equal(chmod(file(f, ""), 0777), 0);
	assert_int_equal(prof_announce_open(&out, &run, &f->err), ST_INVALID);
	assert_int_equal(rmdir(file(f, "")), 0);

	setenv("XDG_RUNTIME_DIR", "/nowhere/at/all", 1);
	assert_int_equal(prof_announce_open(&out, &run, &f->err), ST_INVALID);
	assert_contains(f->err.text, "/nowhere/at/all");
}

static void test_a_linked_folder_is_refused(void **state)
{
	const struct prof_announcement run = sample();
	struct fixture *f = *state;
	struct prof_announce *out;
	char real[FS_PATH_SIZE], link[FS_PATH_SIZE];

	assert_true(fs_path(real, "%s/real", f->dir));
	assert_true(fs_path(link, "%s/ipuscope", f->dir));
	assert_int_equal(mkdir(real, 0700), 0);
	assert_int_equal(symlink(real, link), 0);
	assert_int_equal(prof_announce_open(&out, &run, &f->err), ST_INVALID);
	assert_int_equal(look(f, true), ST_INVALID);
}

static void test_memory_may_fail_anywhere(void **state)
{
	struct fixture *f = *state;
	const struct prof_announcement run = sample();
	bool failed = true;

	foreign(f, getppid(), prof_process_start(getppid()));
	for (long n = 0; failed; n++) {
		struct prof_announce *out;
		enum status status;

		support_fail_alloc(n);
		status = prof_announce_open(&out, &run, &f->err);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
		prof_announce_close(out);
	}
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void test_processes_that_are_gone_are_passed_over_and_tidied(void **state)
{
	struct fixture *f = *state;
	const pid_t child = fork();

	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	foreign(f, child, 1);
	support_write_file(file(f, "4000000.tmp"), "{", 1);
	assert_int_equal(look(f, false), ST_OK);
	assert_int_equal(f->runs.count, 0);
	foreign(f, child, 1); /* still there, and written over */
	assert_int_equal(look(f, true), ST_OK);
	assert_int_equal(f->runs.count, 0);
	assert_int_equal(access(file(f, "4000000.tmp"), F_OK), -1);
	assert_int_equal(rmdir(file(f, "")), 0);
}

static void test_another_process_of_the_same_number_is_not_it(void **state)
{
	struct fixture *f = *state;

	foreign(f, getpid(), prof_process_start(getpid()) - 1);
	assert_int_equal(look(f, true), ST_OK);
	assert_int_equal(f->runs.count, 0);
	assert_int_equal(access(own_file(f), F_OK), -1);
	foreign(f, getpid(), prof_process_start(getpid()));
	assert_int_equal(look(f, true), ST_OK);
	assert_int_equal(f->runs.count, 1);
}

/* Each with a note, and what is good beside them is read. */
static void test_hostile_files_are_passed_over(void **state)
{
	static const struct {
		const char *name, *text, *says;
	} files[] = {
		{"11.json", "{\"version\":1,\"pid\":11", "11.json"},
		{"12.json", "[]", "12.json"},
		{"13.json", "{\"version\":2}", "13.json: version"},
		{"14.json", "{\"version\":1,\"pid\":\"14\"}", "14.json: pid"},
		{"15.json", "{\"version\":1,\"pid\":-1}", "15.json: pid"},
		{"16.json", "", "16.json"},
		{"17.json", "\xff\xfe\x00", "17.json"},
		{"18.json", "{\"version\":1}", "18.json: pid is missing"},
	};
	struct fixture *f = *state;
	char *huge = calloc(1, 1 << 20);

	foreign(f, getpid(), prof_process_start(getpid()));
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		support_write_file(file(f, files[i].name), files[i].text, strlen(files[i].text));
	memset(huge, '[', 1 << 20);
	support_write_file(file(f, "20.json"), huge, 1 << 20);
	support_write_file(file(f, "21.json"), huge, 60000);
	free(huge);
	assert_int_equal(symlink("/etc/passwd", file(f, "22.json")), 0);
	assert_int_equal(mkfifo(file(f, "23.json"), 0600), 0);
	assert_int_equal(mkdir(file(f, "24.json"), 0700), 0);
	/* Not called as an announcement: no word about them. */
	support_write_file(file(f, "notes.txt"), "x", 1);
	support_write_file(file(f, "099.json"), "x", 1);
	support_write_file(file(f, "99999999999999999999.json"), "x", 1);

	assert_int_equal(look(f, true), ST_OK);
	assert_int_equal(f->runs.count, 1);
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		assert_contains(str_peek(&f->notes), files[i].says);
	assert_contains(str_peek(&f->notes), "20.json: is larger");
	assert_contains(str_peek(&f->notes), "21.json");
	assert_contains(str_peek(&f->notes), "22.json: cannot be opened");
	assert_contains(str_peek(&f->notes), "23.json: is no file of yours");
	assert_contains(str_peek(&f->notes), "24.json: is no file of yours");
	assert_null(strstr(str_peek(&f->notes), "notes.txt"));
	assert_int_equal(access(file(f, "11.json"), F_OK), 0);
}

static void test_a_file_that_names_another_process_is_not_believed(void **state)
{
	struct fixture *f = *state;
	char path[FS_PATH_SIZE];

	foreign(f, getpid(), prof_process_start(getpid()));
	assert_true(fs_path(path, "%s", own_file(f)));
	assert_int_equal(rename(path, file(f, "31.json")), 0);
	assert_int_equal(look(f, true), ST_OK);
	assert_int_equal(f->runs.count, 0);
	assert_contains(str_peek(&f->notes), "31.json: is of another process");
}

/* ---- places ---------------------------------------------------------------------------------- */

static void test_runs_get_ipus_of_their_own_while_there_are_some(void **state)
{
	struct prof_announcement items[8] = {0};
	struct prof_announcements others = {.items = items};
	static const struct {
		int64_t ipus, first;
	} runs[] = {{2, 0}, {1, 2}, {4, 4}, {1, 3}, {8, 8}, {1, 0}, {4, 4}, {32, 0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
		items[i].ipus = runs[i].ipus;
		items[i].first_id = prof_announce_place(&others, runs[i].ipus);
		assert_int_equal(items[i].first_id, runs[i].first);
		others.count++;
	}
	assert_int_equal(prof_announce_machine(1), 4);
	assert_int_equal(prof_announce_machine(5), 8);
	assert_int_equal(prof_announce_machine(16), 16);
}

static void test_a_second_process_gets_the_next_ipus(void **state)
{
	struct fixture *f = *state;
	const struct prof_announcement run = sample();
	struct prof_announce *out;

	foreign(f, getppid(), prof_process_start(getppid()));
	out = announce(&run);
	assert_int_equal(look(f, false), ST_OK);
	assert_int_equal(f->runs.count, 2);
	assert_int_equal(f->runs.items[0].pid, getppid()); /* it began before */
	assert_int_equal(f->runs.items[1].first_id, 2);
	prof_announce_close(out);
}

static int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static void test_looking_leaves_no_file_open(void **state)
{
	struct fixture *f = *state;
	const struct prof_announcement run = sample();
	struct prof_announce *out = announce(&run);
	const int before = open_files();

	foreign(f, getppid(), prof_process_start(getppid()));
	support_write_file(file(f, "77.json"), "{", 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(look(f, false), ST_OK);
	assert_int_equal(f->runs.count, 2);
	assert_int_equal(open_files(), before);
	prof_announce_close(out);
}

/* Its parent has not asked for its end yet. */
static void test_a_process_that_has_ended_never_started(void **state)
{
	siginfo_t info;
	pid_t child;

	(void)state;
	assert_true(prof_process_start(getpid()) > 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(prof_process_start(child), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(prof_process_start(child), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_announced_is_read_back),
		TEST(the_environment_names_a_user_of_no_list),
		TEST(progress_is_written_a_few_times_a_second),
		TEST(the_end_leaves_nothing),
		TEST(a_process_announces_one_run_at_a_time),
		TEST(without_the_variable_it_is_a_folder_in_the_temporary_one),
		TEST(a_folder_of_others_is_refused),
		TEST(a_linked_folder_is_refused),
		TEST(memory_may_fail_anywhere),
		TEST(processes_that_are_gone_are_passed_over_and_tidied),
		TEST(another_process_of_the_same_number_is_not_it),
		TEST(hostile_files_are_passed_over),
		TEST(a_file_that_names_another_process_is_not_believed),
		TEST(runs_get_ipus_of_their_own_while_there_are_some),
		TEST(a_second_process_gets_the_next_ipus),
		TEST(looking_leaves_no_file_open),
		TEST(a_process_that_has_ended_never_started),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
