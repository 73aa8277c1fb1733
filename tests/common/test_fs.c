/*
 * Files and folders: what is read, written whole, made, and how failures name the path.
 */
#include "common/fs.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "support/support.h"

struct fixture {
	char dir[SUPPORT_PATH_SIZE];
	char path[FS_PATH_SIZE];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	support_tempdir(f->dir);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	support_tempdir_remove(f->dir);
	free(f);
	return 0;
}

static const char *in_dir(struct fixture *f, const char *name)
{
	assert_true(fs_path(f->path, "%s/%s", f->dir, name));
	return f->path;
}

static unsigned count_entries(const char *path)
{
	DIR *dir = opendir(path);
	unsigned count = 0;
	struct dirent *entry;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

static void test_written_file_reads_back(void **state)
{
	static const size_t sizes[] = {0, 1, 7, 8, 4095, 4096, 65536, 65537, 300001};
	struct fixture *f = *state;
	const char *path = in_dir(f, "file");

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		char *data = malloc(sizes[i] + 1), *read;
		size_t length;

		for (size_t k = 0; k < sizes[i]; k++)
			data[k] = (char)(k * 31 + i);
		assert_int_equal(fs_write(path, data, sizes[i], NULL), ST_OK);
		assert_int_equal(fs_read(path, sizes[i], &read, &length, NULL), ST_OK);
		assert_int_equal(length, sizes[i]);
		assert_memory_equal(read, data, sizes[i]);
		assert_int_equal(read[length], 0);
		mem_free(read);
		free(data);
	}
	assert_int_equal(count_entries(f->dir), 1);
}

static void test_what_is_installed_is_found_from_the_program(void **state)
{
	char path[FS_PATH_SIZE], source[FS_PATH_SIZE];

	(void)state;
	/* In the build tree that is the source's. */
	assert_true(fs_path(source, "%s/examples", support_source_dir()));
	assert_true(fs_shared(path, "examples"));
	assert_true(fs_is_same(path, source));
	assert_true(fs_shared(path, "script/get-mnist"));
	assert_int_equal(path[0], '/');
	assert_null(strstr(path, ".."));
	assert_false(fs_shared(path, "examples/none.json"));
	assert_string_equal(path, "");
}

static void test_missing_file_is_not_found(void **state)
{
	struct fixture *f = *state;
	struct err err;
	size_t length;
	char *text;

	assert_int_equal(fs_read(in_dir(f, "missing"), 10, &text, &length, &err), ST_NOTFOUND);
	assert_null(text);
	assert_contains(err.text, "missing: cannot open: No such file");
	assert_int_equal(err.status, ST_NOTFOUND);
}

static void test_a_folder_is_not_a_file(void **state)
{
	struct fixture *f = *state;
	struct err err;
	size_t length;
	char *text;

	assert_int_equal(fs_read(f->dir, 10, &text, &length, &err), ST_INVALID);
	assert_contains(err.text, "is a folder");
	assert_int_equal(fs_write(f->dir, "x", 1, &err), ST_INVALID);
	assert_contains(err.text, "is a folder");
}

static void test_limit_is_kept(void **state)
{
	struct fixture *f = *state;
	const char *path = in_dir(f, "big");
	struct err err;
	size_t length;
	char *text;

	support_write_file(path, "0123456789", 10);
	assert_int_equal(fs_read(path, 10, &text, &length, NULL), ST_OK);
	mem_free(text);
	assert_int_equal(fs_read(path, 9, &text, &length, &err), ST_LIMIT);
	assert_contains(err.text, "big: larger than the limit of 9 bytes");
	assert_null(text);
	/* What tells no size is limited as it comes. */
	assert_int_equal(fs_read("/dev/zero", 200000, &text, &length, &err), ST_LIMIT);
}

static void test_a_pipe_is_read_to_its_end(void **state)
{
	char name[64], *text;
	size_t length;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "through", 7), 7);
	close(ends[1]);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", ends[0]);
	assert_int_equal(fs_read(name, 100, &text, &length, NULL), ST_OK);
	assert_string_equal(text, "through");
	mem_free(text);
	close(ends[0]);
}

/* In pieces of every kind, none of which is less but the last. */
static void test_a_reader_gives_all_in_order(void **state)
{
	static const size_t pieces[] = {1, 7, 500, 999, 1000, 1001, 5000};
	struct fixture *f = *state;
	const char *path = in_dir(f, "file");
	char data[1000], read[5000];
	const int next = dup(0);

	close(next);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 31);
	support_write_file(path, data, sizeof(data));
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		struct fs_reader reader;
		size_t at = 0, got;

		assert_int_equal(fs_reader_open(&reader, path, NULL), ST_OK);
		assert_int_equal(reader.size, sizeof(data));
		do {
			assert_int_equal(fs_reader_read(&reader, read, pieces[i], &got, NULL),
					 ST_OK);
			assert_int_equal(got, min(pieces[i], sizeof(data) - at));
			assert_memory_equal(read, data + at, got);
			at += got;
		} while (got > 0);
		assert_int_equal(at, sizeof(data));
		fs_reader_close(&reader);
		assert_int_equal(reader.fd, -1);
	}
	/* No descriptor is left. */
	assert_int_equal(dup(0), next);
	close(next);
}

static void test_a_reader_has_any_descriptor(void **state)
{
	const int input = dup(STDIN_FILENO);
	struct fixture *f = *state;
	struct fs_reader reader;
	int next;

	support_write_file(in_dir(f, "file"), "x", 1);
	close(STDIN_FILENO);
	assert_int_equal(fs_reader_open(&reader, in_dir(f, "file"), NULL), ST_OK);
	assert_int_equal(reader.fd, STDIN_FILENO);
	fs_reader_close(&reader);
	next = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(next, STDIN_FILENO);
	dup2(input, STDIN_FILENO);
	close(input);
}

static void test_a_device_without_an_end_ends_before_a_pipe(void **state)
{
	struct fs_reader reader;
	static char read[65536];
	uint64_t device;
	size_t got, all = 0;
	char name[64];
	int ends[2];

	(void)state;
	assert_int_equal(fs_reader_open(&reader, "/dev/zero", NULL), ST_OK);
	device = reader.left;
	while (all < (size_t)16 << 20 &&
	       fs_reader_read(&reader, read, sizeof(read), &got, NULL) == ST_OK)
		all += got;
	assert_int_equal(all, device);
	fs_reader_close(&reader);
	assert_int_equal(pipe(ends), 0);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", ends[0]);
	assert_int_equal(fs_reader_open(&reader, name, NULL), ST_OK);
	assert_true(reader.left > device);
	fs_reader_close(&reader);
	close(ends[0]);
	close(ends[1]);
}

/* A packet of a pipe comes alone, as what another program writes at a time mostly does. */
static void test_a_reader_waits_for_all_of_a_piece(void **state)
{
	struct fs_reader reader = {.path = "here", .size = -1};
	char read[20];
	struct err err;
	size_t got;
	int ends[2];

	(void)state;
	for (uint64_t limit = 0; limit < 12; limit++) {
		const enum status status = limit < 8 + (limit & 1) ? ST_LIMIT : ST_OK;

		assert_int_equal(pipe2(ends, O_DIRECT), 0);
		for (int i = 0; i < 3; i++)
			assert_int_equal(write(ends[1], "abcdefghi" + 3 * i, 3), 3);
		close(ends[1]);
		reader.fd = ends[0];
		reader.left = limit;
		assert_int_equal(fs_reader_read(&reader, read, 8 + (limit & 1), &got, &err),
				 status);
		if (status == ST_OK) {
			assert_int_equal(got, 8 + (limit & 1));
			assert_memory_equal(read, "abcdefghi", got);
			assert_int_equal(reader.left, limit - got);
		} else {
			assert_string_equal(err.text, "here: larger than the limit of its kind, "
						      "a device or pipe");
		}
		fs_reader_close(&reader);
	}
}

static void test_a_reader_tells_what_cannot_be_read(void **state)
{
	struct fixture *f = *state;
	struct fs_reader reader;
	struct err err;
	char byte;
	size_t got;

	assert_int_equal(fs_reader_open(&reader, in_dir(f, "missing"), &err), ST_NOTFOUND);
	fs_reader_close(&reader);
	assert_int_equal(fs_reader_open(&reader, f->dir, &err), ST_INVALID);
	assert_int_equal(reader.fd, -1);
	reader.fd = open(f->dir, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fs_reader_read(&reader, &byte, 1, &got, &err), ST_IO);
	assert_contains(err.text, ": cannot read: Is a directory");
	fs_reader_close(&reader);
	/* A pipe tells no size, nor does what the kernel makes as it is read. */
	assert_int_equal(fs_reader_open(&reader, "/proc/self/stat", NULL), ST_OK);
	assert_int_equal(reader.size, -1);
	fs_reader_close(&reader);
}

static void test_what_killed_processes_left_is_removed(void **state)
{
	char dir[SUPPORT_PATH_SIZE], path[FS_PATH_SIZE], left[FS_PATH_SIZE], other[FS_PATH_SIZE];
	char mine[FS_PATH_SIZE], ending[FS_PATH_SIZE], wal[FS_PATH_SIZE];
	const long pid =
		(long)getpid(); /* the id of a killed process may be another one's by now */
	int fd;

	(void)state;
	support_tempdir(dir);
	assert_true(fs_path(path, "%s/x.json", dir));
	assert_true(fs_path(left, "%s/x.json.%ld-3.tmp", dir, pid));
	assert_true(fs_path(other, "%s/y.json.%ld-3.tmp", dir, pid));
	assert_true(fs_path(mine, "%s/x.json.%ld-999.tmp", dir, pid));
	/* Endings of the one that is locked, and of one that is not there. */
	assert_true(fs_path(ending, "%s/x.json.%ld-999.tmp.db-wal", dir, pid));
	assert_true(fs_path(wal, "%s/x.json.%ld-4.tmp.db-wal", dir, pid));
	support_write_file(ending, "x", 1);
	support_write_file(wal, "x", 1);
	support_write_file(left, "x", 1);
	support_write_file(other, "x", 1);
	support_write_file(mine, "x", 1);
	/* What is being written is locked. */
	fd = open(mine, O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(fs_write(path, "{}", 2, NULL), ST_OK);
	assert_false(fs_exists(left));
	assert_true(fs_exists(other));
	assert_true(fs_exists(mine));
	assert_true(fs_exists(ending));
	assert_false(fs_exists(wal));
	close(fd);
	assert_int_equal(fs_write(path, "{}", 2, NULL), ST_OK);
	assert_int_equal(count_entries(dir), 2);
	support_tempdir_remove(dir);
}

/* Each looks for what is left while the others create, lock and rename their files. */
static void test_writers_of_one_file_leave_each_other_alone(void **state)
{
	char dir[SUPPORT_PATH_SIZE], path[FS_PATH_SIZE];
	pid_t writers[4];

	(void)state;
	support_tempdir(dir);
	assert_true(fs_path(path, "%s/x.json", dir));
	for (size_t i = 0; i < ARRAY_LEN(writers); i++) {
		writers[i] = fork();
		if (writers[i] == 0) {
			int failed = 0;

			for (int n = 0; n < 300; n++)
				failed += fs_write(path, "{}", 2, NULL) != ST_OK;
			_exit(failed > 0);
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(writers); i++) {
		int code = -1;

		assert_int_equal(waitpid(writers[i], &code, 0), writers[i]);
		assert_int_equal(code, 0);
	}
	assert_int_equal(count_entries(dir), 1);
	support_tempdir_remove(dir);
}

static void test_failed_write_leaves_the_old_file(void **state)
{
	struct fixture *f = *state;
	const char *path = in_dir(f, "kept");
	struct err err;
	char *text;

	if (getuid() == 0)
		skip(); /* nothing is forbidden to root */
	support_write_file(path, "old", 3);
	assert_int_equal(chmod(f->dir, 0500), 0);
	assert_int_equal(fs_write(path, "new", 3, &err), ST_IO);
	assert_int_equal(chmod(f->dir, 0700), 0);
	assert_contains(err.text, "kept: cannot write: ");
	text = support_read_file(path, NULL);
	assert_string_equal(text, "old");
	free(text);
	assert_int_equal(count_entries(f->dir), 1);
}

static void test_a_write_that_breaks_off_leaves_the_old_file(void **state)
{
	struct fixture *f = *state;
	const char *path = in_dir(f, "kept");
	static const char data[8192];
	enum status status;
	struct err err;
	char *text;

	support_write_file(path, "old", 3);
	support_limit_files(4096);
	status = fs_write(path, data, sizeof(data), &err);
	support_limit_files(-1);

	assert_int_equal(status, ST_NOSPACE);
	assert_contains(err.text, "kept: cannot write: File too large");
	text = support_read_file(path, NULL);
	assert_string_equal(text, "old");
	free(text);
	assert_int_equal(count_entries(f->dir), 1);
}

static void test_what_is_new_takes_no_name_that_is_taken(void **state)
{
	struct fixture *f = *state;
	const char *path = in_dir(f, "new");
	struct fs_writer writer;
	struct err err;
	char *text;

	assert_int_equal(symlink("nowhere", path), 0);
	assert_int_equal(fs_writer_begin(&writer, path, FS_NEW, &err), ST_IO);
	assert_contains(err.text, "new: cannot write: File exists");
	assert_int_equal(unlink(path), 0);

	/* Somebody else is quicker. */
	assert_int_equal(fs_writer_begin(&writer, path, FS_NEW, &err), ST_OK);
	assert_int_equal(fs_writer_put(&writer, "mine", 4, &err), ST_OK);
	support_write_file(path, "theirs", 6);
	assert_int_equal(fs_writer_close(&writer, &err), ST_IO);
	assert_contains(err.text, "new: cannot write: File exists");
	text = support_read_file(path, NULL);
	assert_string_equal(text, "theirs");
	free(text);
	assert_int_equal(unlink(path), 0);

	assert_int_equal(fs_writer_begin(&writer, path, FS_NEW, &err), ST_OK);
	assert_int_equal(fs_writer_put(&writer, "mine", 4, &err), ST_OK);
	assert_int_equal(fs_writer_close(&writer, &err), ST_OK);
	text = support_read_file(path, NULL);
	assert_string_equal(text, "mine");
	free(text);
	assert_int_equal(count_entries(f->dir), 1);
}

static void test_a_private_file_is_its_users_alone(void **state)
{
	struct fixture *f = *state;
	const char *path = in_dir(f, "private");
	struct stat info;

	assert_int_equal(fs_write_private(path, "x", 1, NULL), ST_OK);
	assert_int_equal(stat(path, &info), 0);
	assert_int_equal(info.st_mode & 07777, 0600);
}

static void test_write_into_a_missing_folder_fails(void **state)
{
	struct fixture *f = *state;
	struct err err;

	assert_int_equal(fs_write(in_dir(f, "no/such/file"), "x", 1, &err), ST_NOTFOUND);
	assert_contains(err.text, "no/such/file: cannot write");
	assert_int_equal(count_entries(f->dir), 0);
}

static void test_what_can_be_written_is_known_before(void **state)
{
	struct fixture *f = *state;
	struct err err;

	assert_int_equal(fs_check_write(in_dir(f, "no/such/file"), &err), ST_NOTFOUND);
	assert_contains(err.text, "no/such/file: cannot write");
	assert_int_equal(fs_check_write(f->dir, &err), ST_INVALID);
	assert_int_equal(fs_check_write(in_dir(f, "new"), NULL), ST_OK);
	assert_int_equal(count_entries(f->dir), 0);
	assert_int_equal(mkfifo(in_dir(f, "pipe"), 0600), 0);
	assert_int_equal(fs_check_write(in_dir(f, "pipe"), NULL), ST_OK);
	assert_int_equal(unlink(in_dir(f, "pipe")), 0);
}

static void test_paths_too_long_are_refused(void **state)
{
	char path[FS_PATH_SIZE + 8];

	(void)state;
	memset(path, 'p', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	assert_int_not_equal(fs_write(path, "x", 1, NULL), ST_OK);
	assert_int_not_equal(fs_make_dirs(path, NULL), ST_OK);
	/* Long enough for the file, not for the temporary beside it. */
	for (size_t i = 100; i < sizeof(path); i += 100)
		path[i] = '/';
	path[FS_PATH_SIZE - 4] = '\0';
	assert_int_not_equal(fs_write(path, "x", 1, NULL), ST_OK);
}

static void test_full_device_is_no_space(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(fs_write("/dev/full", "x", 1, &err), ST_NOSPACE);
	assert_contains(err.text, "/dev/full: cannot write");
	assert_int_equal(fs_write("/dev/null", "x", 1, &err), ST_OK);
}

static void test_write_keeps_mode_and_link(void **state)
{
	struct fixture *f = *state;
	char target[FS_PATH_SIZE];
	struct stat info;
	char *text;

	fs_path(target, "%s/target", f->dir);
	support_write_file(target, "old", 3);
	assert_int_equal(chmod(target, 0640), 0);
	assert_int_equal(symlink("target", in_dir(f, "link")), 0);
	assert_int_equal(fs_write(in_dir(f, "link"), "new", 3, NULL), ST_OK);
	assert_int_equal(lstat(in_dir(f, "link"), &info), 0);
	assert_true(S_ISLNK(info.st_mode));
	assert_int_equal(stat(target, &info), 0);
	assert_int_equal(info.st_mode & 0777, 0640);
	text = support_read_file(target, NULL);
	assert_string_equal(text, "new");
	free(text);
}

static void test_folders_are_made_with_their_parents(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(fs_make_dirs(in_dir(f, "a/b//c/"), NULL), ST_OK);
	assert_true(fs_is_dir(in_dir(f, "a/b/c")));
	assert_int_equal(fs_make_dirs(in_dir(f, "a/b/c"), NULL), ST_OK);
	assert_int_equal(fs_make_dirs("/", NULL), ST_OK);
}

static void test_a_file_in_the_way_is_named(void **state)
{
	struct fixture *f = *state;
	struct err err;

	support_write_file(in_dir(f, "file"), "x", 1);
	assert_int_not_equal(fs_make_dirs(in_dir(f, "file"), &err), ST_OK);
	assert_contains(err.text, "Not a directory");
	assert_int_not_equal(fs_make_dirs(in_dir(f, "file/below"), &err), ST_OK);
	assert_contains(err.text, "file/below: cannot make the folder");
	assert_int_not_equal(fs_make_dirs("", &err), ST_OK);
}

static void test_existence_is_told(void **state)
{
	struct fixture *f = *state;
	char path[FS_PATH_SIZE];

	assert_true(fs_exists(f->dir));
	assert_true(fs_is_dir(f->dir));
	assert_false(fs_exists(in_dir(f, "x")));
	support_write_file(in_dir(f, "x"), "", 0);
	assert_true(fs_exists(in_dir(f, "x")));
	assert_false(fs_is_dir(in_dir(f, "x")));
	str_copy(path, sizeof(path), in_dir(f, "x"));
	assert_true(fs_is_same(path, in_dir(f, "./x")));
	assert_false(fs_is_same(path, in_dir(f, "y")));
	support_write_file(in_dir(f, "y"), "", 0);
	assert_false(fs_is_same(path, in_dir(f, "y")));
}

static void test_a_folder_is_listed_in_byte_order(void **state)
{
	struct fixture *f = *state;
	struct fs_list list;
	struct err err;
	bool failed = true;
	char name[16];

	assert_int_equal(fs_list(&list, f->dir, NULL), ST_OK);
	assert_int_equal(list.count, 0);
	fs_list_free(&list);
	support_write_file(in_dir(f, ".hidden"), "", 0);
	for (int i = 0; i < 26; i++) {
		snprintf(name, sizeof(name), "%c%d", i % 2 ? 'a' + i : 'Z' - i, i);
		support_write_file(in_dir(f, name), "", 0);
	}
	for (long n = 0; failed; n++) {
		enum status status;

		support_fail_alloc(n);
		status = fs_list(&list, f->dir, &err);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
		assert_int_equal(list.count, failed ? 0 : 26);
		for (size_t i = 1; i < list.count; i++)
			assert_true(strcmp(list.names[i - 1], list.names[i]) < 0);
		fs_list_free(&list);
		assert_int_equal(list.count, 0);
		assert_true(n < 100);
	}
	assert_int_equal(fs_list(&list, in_dir(f, "missing"), &err), ST_NOTFOUND);
	assert_contains(err.text, "missing: cannot list: ");
	assert_int_equal(list.count, 0);
}

static void test_xdg_folders(void **state)
{
	char out[FS_PATH_SIZE];

	(void)state;
	setenv("HOME", "/home/me", 1);
	setenv("XDG_TEST_HOME", "/x/cache", 1);
	assert_true(fs_xdg(out, "XDG_TEST_HOME", ".cache"));
	assert_string_equal(out, "/x/cache/ipuscope");
	/* Relative is as good as unset. */
	setenv("XDG_TEST_HOME", "cache", 1);
	assert_true(fs_xdg(out, "XDG_TEST_HOME", ".cache"));
	assert_string_equal(out, "/home/me/.cache/ipuscope");
	assert_false(fs_xdg(out, "XDG_TEST_HOME", NULL));
	unsetenv("XDG_TEST_HOME");
	unsetenv("HOME");
	assert_false(fs_xdg(out, "XDG_TEST_HOME", ".cache"));
	assert_string_equal(out, "");
}

static void test_a_path_that_does_not_fit_is_none(void **state)
{
	char out[FS_PATH_SIZE];

	(void)state;
	assert_true(fs_path(out, "%0*d", FS_PATH_SIZE - 1, 1));
	assert_int_equal(strlen(out), FS_PATH_SIZE - 1);
	assert_false(fs_path(out, "%0*d", FS_PATH_SIZE, 1));
	assert_string_equal(out, "");
}

static void test_every_failing_allocation_is_reported(void **state)
{
	struct fixture *f = *state;
	const char *path = in_dir(f, "file");
	bool failed = true;

	support_write_file(path, "text", 4);
	for (long n = 0; failed; n++) {
		struct err err;
		enum status status;
		size_t length;
		char *text;

		support_fail_alloc(n);
		status = fs_read(path, 10, &text, &length, &err);
		failed = support_alloc_failed();
		support_fail_alloc(-1);
		assert_int_equal(status, failed ? ST_NOMEM : ST_OK);
		assert_true(failed == !text);
		mem_free(text);
		assert_true(n < 100);
	}
}

#define with_dir(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static void test_a_file_without_a_name_takes_bytes_at_any_offset(void **state)
{
	struct fixture *f = *state;
	const char *beside = in_dir(f, "beside");
	struct err err;
	char bytes[6];
	int fd;

	assert_int_equal(fs_unnamed(beside, &fd, NULL), ST_OK);
	assert_int_equal(count_entries(f->dir), 0);
	assert_int_equal(fs_write_at(fd, 3, "def", 3, "letters", NULL), ST_OK);
	assert_int_equal(fs_write_at(fd, 0, "abc", 3, "letters", NULL), ST_OK);
	assert_int_equal(fs_read_at(fd, 0, bytes, 6, "letters", NULL), ST_OK);
	assert_memory_equal(bytes, "abcdef", 6);
	assert_int_equal(fs_read_at(fd, 1, bytes, 6, "letters", &err), ST_IO);
	assert_string_equal(err.text, "letters: cannot read: it ends too early");
	close(fd);
	assert_int_equal(fs_write_at(fd, 0, "abc", 3, "letters", &err), ST_IO);
	assert_contains(err.text, "letters: cannot write: ");
	assert_int_equal(fs_unnamed(in_dir(f, "no/folder"), &fd, &err), ST_NOTFOUND);
	assert_int_equal(fd, -1);
}

/* What writers that are gone have left beside a file: temporaries whose lock nobody holds, and what
 * goes on behind their names. */
static void test_what_nobody_writes_any_more_is_removed(void **state)
{
	static const struct {
		const char *name;
		bool stale;
	} rows[] = {
		{"a.npz.123-1.tmp", true},  {"a.npz.123-1.tmp-wal", true},
		{"a.npz.123.tmp", false},   {"a.npz.0-1.tmp", false},
		{"a.npz.-3-1.tmp", false},  {"a.npz.x-1.tmp", false},
		{"a.npz-123-1.tmp", false}, {"a.npz.123-1.tm", false},
		{"a.np.123-1.tmp", false},  {"b.a.npz.123-1.tmp", false},
		{"a.npz", false},
	};
	const char *folder = support_enter();
	char path[2 * SUPPORT_PATH_SIZE];
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/none/a.npz", folder);
	assert_false(fs_remove_stale(path));
	memset(path, '/', FS_PATH_SIZE);
	path[FS_PATH_SIZE] = '\0';
	assert_false(fs_remove_stale(path));
	/* With the folder in the path, and without. */
	for (int whole = 0; whole < 2; whole++) {
		snprintf(path, sizeof(path), "%s%sa.npz", whole ? folder : "", whole ? "/" : "");
		assert_false(fs_remove_stale(path));
		for (size_t i = 0; i < ARRAY_LEN(rows); i++)
			support_write_file(rows[i].name, "x", 1);
		assert_true(fs_remove_stale(path));
		for (size_t i = 0; i < ARRAY_LEN(rows); i++)
			assert_int_equal(fs_exists(rows[i].name), !rows[i].stale);
		assert_false(fs_remove_stale(path));
		/* A file whose lock is held stays, with what goes on behind its name. */
		support_write_file("a.npz.5-7.tmp", "x", 1);
		support_write_file("a.npz.5-7.tmp-wal", "x", 1);
		fd = open("a.npz.5-7.tmp", O_RDONLY | O_CLOEXEC);
		assert_int_equal(flock(fd, LOCK_EX), 0);
		assert_false(fs_remove_stale(path));
		assert_true(fs_exists("a.npz.5-7.tmp") && fs_exists("a.npz.5-7.tmp-wal"));
		close(fd);
		assert_true(fs_remove_stale(path));
		assert_false(fs_exists("a.npz.5-7.tmp") || fs_exists("a.npz.5-7.tmp-wal"));
	}
	support_leave();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_dir(test_a_file_without_a_name_takes_bytes_at_any_offset),
		with_dir(test_written_file_reads_back),
		cmocka_unit_test(test_what_is_installed_is_found_from_the_program),
		with_dir(test_missing_file_is_not_found),
		with_dir(test_a_folder_is_not_a_file),
		with_dir(test_limit_is_kept),
		cmocka_unit_test(test_a_pipe_is_read_to_its_end),
		with_dir(test_a_reader_gives_all_in_order),
		cmocka_unit_test(test_a_reader_waits_for_all_of_a_piece),
		with_dir(test_a_reader_has_any_descriptor),
		cmocka_unit_test(test_a_device_without_an_end_ends_before_a_pipe),
		with_dir(test_a_reader_tells_what_cannot_be_read),
		cmocka_unit_test(test_what_killed_processes_left_is_removed),
		cmocka_unit_test(test_writers_of_one_file_leave_each_other_alone),
		with_dir(test_failed_write_leaves_the_old_file),
		with_dir(test_a_write_that_breaks_off_leaves_the_old_file),
		with_dir(test_what_is_new_takes_no_name_that_is_taken),
		with_dir(test_a_private_file_is_its_users_alone),
		with_dir(test_write_into_a_missing_folder_fails),
		with_dir(test_what_can_be_written_is_known_before),
		cmocka_unit_test(test_paths_too_long_are_refused),
		cmocka_unit_test(test_full_device_is_no_space),
		with_dir(test_write_keeps_mode_and_link),
		with_dir(test_folders_are_made_with_their_parents),
		with_dir(test_a_file_in_the_way_is_named),
		with_dir(test_existence_is_told),
		with_dir(test_a_folder_is_listed_in_byte_order),
		cmocka_unit_test(test_xdg_folders),
		cmocka_unit_test(test_a_path_that_does_not_fit_is_none),
		with_dir(test_every_failing_allocation_is_reported),
		cmocka_unit_test(test_what_nobody_writes_any_more_is_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
