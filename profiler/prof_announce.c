/*
 * Announcements: their text, their folder, and announcing the run of this process.
 *
 * The folder is opened with checks, and all files are accessed relative to it, without following
 * links; another process may write at the same time. One table of keys drives writing and parsing.
 *
 * Threading: one thread per announcement; an atomic flag limits a process to one at a time.
 * Ownership: the announcement owns its folder's descriptor and its text buffer, which is reused;
 * other descriptors belong to the caller, and texts are copied.
 */
#include "profiler/prof_announce.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/sorted.h"
#include "profiler/prof_process.h"

/* ---- the text: one table of keys drives writing and parsing ---------------------------------- */

#define IPUS_MOST 4096 /* of one run; more are rejected */
#define VERSION   1    /* of the file; others are rejected */

static const char *const announce_states[REPORT_RUN_STATES] = {
	[REPORT_RUN_COMPILING] = "compiling",
	[REPORT_RUN_TRAINING] = "training",
	[REPORT_RUN_EVALUATING] = "evaluating",
	[REPORT_RUN_PREDICTING] = "predicting",
};

const char *report_run_state_text(enum report_run_state state)
{
	return announce_states[state];
}

enum announce_kind {
	ANNOUNCE_INT,
	ANNOUNCE_TEXT, /* "" is written as null */
	ANNOUNCE_STATE,
	ANNOUNCE_FRACTION
};

#define AT(field)                                                                                  \
	.offset = offsetof(struct prof_announcement, field),                                       \
	.size = sizeof(((struct prof_announcement *)0)->field)
#define MOST ((int64_t)1 << 53) /* JSON's integers are exact up to here */

/* @least and @greatest: bounds of integers. */
static const struct announce_key {
	const char *key;
	enum announce_kind kind;
	size_t offset, size;
	int64_t least, greatest;
} announce_keys[] = {
	{"pid", ANNOUNCE_INT, AT(pid), 1, INT32_MAX},
	{"process_start", ANNOUNCE_INT, AT(process_start), 1, MOST},
	{"started_ms", ANNOUNCE_INT, AT(started_ms), 0, MOST},
	{"command", ANNOUNCE_TEXT, AT(command), 0, 0},
	{"user", ANNOUNCE_TEXT, AT(user), 0, 0},
	{"target", ANNOUNCE_TEXT, AT(target), 0, 0},
	{"clock_mhz", ANNOUNCE_INT, AT(clock_mhz), 1, 1000000},
	{"first_id", ANNOUNCE_INT, AT(first_id), 0, IPUS_MOST - 1},
	{"ipus", ANNOUNCE_INT, AT(ipus), 1, IPUS_MOST},
	{"replicas", ANNOUNCE_INT, AT(replicas), 1, MOST},
	{"stages", ANNOUNCE_INT, AT(stages), 1, MOST},
	{"state", ANNOUNCE_STATE, AT(progress.state), 0, 0},
	{"epoch", ANNOUNCE_INT, AT(progress.epoch), 0, MOST},
	{"epochs", ANNOUNCE_INT, AT(progress.epochs), 0, MOST},
	{"step", ANNOUNCE_INT, AT(progress.step), 0, MOST},
	{"steps", ANNOUNCE_INT, AT(progress.steps), 0, MOST},
	{"utilisation", ANNOUNCE_FRACTION, AT(progress.utilisation), 0, 0},
	{"report", ANNOUNCE_TEXT, AT(report), 0, 0},
};

/* ---- writing --------------------------------------------------------------------------------- */

static void announce_write_key(struct jsonw *w, const struct announce_key *key, const void *field)
{
	const char *text = field;

	switch (key->kind) {
	case ANNOUNCE_INT:
		jsonw_key_int(w, key->key, *(const int64_t *)field);
		break;
	case ANNOUNCE_TEXT:
		jsonw_key_text(w, key->key, text[0] ? text : NULL);
		break;
	case ANNOUNCE_STATE:
		jsonw_key_text(w, key->key, announce_states[*(const enum report_run_state *)field]);
		break;
	case ANNOUNCE_FRACTION:
		jsonw_key_real(w, key->key, *(const double *)field);
		break;
	}
}

/* ---- reading --------------------------------------------------------------------------------- */

static enum status announce_read_key(const struct json_at *root, const struct announce_key *key,
				     void *field, struct err *err)
{
	enum status status = ST_OK;
	const char *text = "";
	double *real = field;
	struct json_at at;
	size_t state = 0;

	if (!json_child(root, key->key, &at))
		return json_fail(root, err, "%s is missing", key->key);
	switch (key->kind) {
	case ANNOUNCE_INT:
		return json_int(&at, key->least, key->greatest, field, err);
	case ANNOUNCE_TEXT:
		if (!json_is_null(&at))
			status = json_text(&at, &text, err);
		str_copy(field, key->size, text);
		break;
	case ANNOUNCE_STATE:
		status = json_choice(&at, "state", announce_states, ARRAY_LEN(announce_states),
				     &state, err);
		*(enum report_run_state *)field = (enum report_run_state)state;
		break;
	case ANNOUNCE_FRACTION:
		status = json_real(&at, real, err);
		if (status == ST_OK && !(*real >= 0 && *real <= 1))
			status = json_fail(&at, err, "is not a number from 0 to 1");
		break;
	}
	return status;
}

static enum status announce_parse(struct prof_announcement *out, const char *text, size_t length,
				  const char *name, struct err *err)
{
	struct json_at root, at;
	cJSON *json;
	enum status status = json_parse(&json, text, length, name, err);
	int64_t version;

	*out = (struct prof_announcement){0};
	if (status != ST_OK)
		return status;
	root = json_root(name, json);
	status = json_object(&root, err);
	if (status == ST_OK)
		status = json_child(&root, "version", &at)
				 ? json_int(&at, VERSION, VERSION, &version, err)
				 : json_fail(&root, err, "version is missing");
	for (size_t i = 0; i < ARRAY_LEN(announce_keys) && status == ST_OK; i++)
		status = announce_read_key(&root, &announce_keys[i],
					   (char *)out + announce_keys[i].offset, err);
	cJSON_Delete(json);
	return status;
}

/* ---- the folder ------------------------------------------------------------------------------ */

#define FOLDER     "ipuscope"
#define FILE_LIMIT (64 << 10) /* bytes of an announcement */
#define RUN_LIMIT  4096       /* announcements that are read */

/* ---- opening --------------------------------------------------------------------------------- */

/* Open folder @name in @at, which must belong to this user alone. */
static enum status folder_open(int *fd, int at, const char *name, const char *shown,
			       struct err *err)
{
	struct stat info;

	*fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (at < 0 ? 0 : O_NOFOLLOW));
	if (*fd < 0)
		return err_set(err, errno == ENOENT ? ST_NOTFOUND : ST_INVALID,
			       "%s: cannot be opened: %s", shown, strerror(errno));
	if (fstat(*fd, &info) == 0 && info.st_uid == geteuid() && (info.st_mode & 077) == 0)
		return ST_OK;
	close(*fd);
	*fd = -1;
	return err_set(err, ST_INVALID, "%s: must be yours alone and have mode 0700", shown);
}

/* Open the folder @name in @base; create it if @make. */
static enum status folder_open_below(int *fd, int base, const char *name, const char *path,
				     bool make, struct err *err)
{
	if (make && mkdirat(base, name, 0700) != 0 && errno != EEXIST)
		return err_set(err, ST_INVALID, "%s: cannot be made: %s", path, strerror(errno));
	return folder_open(fd, base, name, path, err);
}

/*
 * Open $XDG_RUNTIME_DIR/ipuscope, or ipuscope-UID in the system's temporary folder. Everyone may
 * write to the latter, so an entry of that name must be a folder (no link) of ours with mode 0700.
 */
static enum status announce_folder(int *fd, bool make, struct err *err)
{
	const char *temporary = getenv("TMPDIR");
	char base[FS_PATH_SIZE], path[FS_PATH_SIZE], name[32];
	enum status status;
	int at;

	*fd = -1;
	if (fs_xdg(path, "XDG_RUNTIME_DIR", NULL)) {
		str_copy(base, strlen(path) - strlen(FOLDER), path);
		status = folder_open(&at, -1, base, base, err);
		/* If the variable names a folder that does not exist, readers report it, too. */
		if (status == ST_NOTFOUND)
			return err_set(err, ST_INVALID, "XDG_RUNTIME_DIR: %s is not there", base);
		if (status != ST_OK)
			return status;
		status = folder_open_below(fd, at, FOLDER, path, make, err);
		close(at);
		return status;
	}
	if (!temporary || temporary[0] != '/')
		temporary = "/tmp";
	snprintf(name, sizeof(name), FOLDER "-%lld", (long long)geteuid());
	if (!fs_path(path, "%s/%s", temporary, name))
		return err_set(err, ST_INVALID, "TMPDIR: the path is too long");
	at = open(temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return err_set(err, ST_INVALID, "%s: cannot be opened: %s", temporary,
			       strerror(errno));
	status = folder_open_below(fd, at, name, path, make, err);
	close(at);
	return status;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Return the process id of a name like "123.json" (@end is ".json" or ".tmp"), otherwise 0. */
static int64_t folder_pid(const char *name, const char *end)
{
	const size_t digits = strspn(name, "0123456789");

	if (digits == 0 || digits > 10 || name[0] == '0' || strcmp(name + digits, end) != 0)
		return 0;
	return strtoll(name, NULL, 10);
}

static enum status folder_read_text(int fd, char *text, size_t *length, const char *name,
				    struct err *err)
{
	struct stat info;
	ssize_t got = 1;

	if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid())
		return err_set(err, ST_INVALID, "%s: is no file of yours", name);
	if (info.st_size > FILE_LIMIT)
		return err_set(err, ST_LIMIT, "%s: is larger than an announcement", name);
	for (*length = 0; *length < FILE_LIMIT && got > 0; *length += got > 0 ? (size_t)got : 0)
		got = read(fd, text + *length, FILE_LIMIT - *length);
	text[*length] = '\0';
	return got < 0 ? err_set(err, ST_IO, "%s: cannot be read: %s", name, strerror(errno))
		       : ST_OK;
}

static enum status folder_read(struct prof_announcement *out, int folder, const char *name,
			       struct err *err)
{
	const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	enum status status;
	size_t length = 0;
	char *text;

	if (fd < 0 && errno == ENOENT)
		return ST_NOTFOUND;
	if (fd < 0)
		return err_set(err, ST_INVALID, "%s: cannot be opened: %s", name, strerror(errno));
	text = mem_alloc(FILE_LIMIT + 1);
	status = text ? folder_read_text(fd, text, &length, name, err) : err_nomem(err);
	if (status == ST_OK)
		status = announce_parse(out, text, length, name, err);
	close(fd);
	mem_free(text);
	if (status != ST_OK || out->pid == folder_pid(name, ".json"))
		return status;
	return err_set(err, ST_INVALID, "%s: is of another process, %lld", name,
		       (long long)out->pid);
}

/* Add the announcement in one file; only lack of memory is a failure. */
static enum status folder_add(struct prof_announcements *out, int folder, const char *name,
			      bool tidy, struct str *notes, struct err *err)
{
	struct err why = {ST_OK, ""};
	struct prof_announcement run;
	enum status status = folder_read(&run, folder, name, &why);

	if (status == ST_NOMEM)
		return err_nomem(err);
	if (status != ST_OK) {
		/* A file removed since the folder was listed: its run has ended. */
		if (status != ST_NOTFOUND && notes)
			str_addf(notes, "%s\n", why.text);
		return ST_OK;
	}
	if (prof_process_start(run.pid) != run.process_start) {
		if (tidy)
			unlinkat(folder, name, 0);
		return ST_OK;
	}
	if (mem_grow(&out->items, &out->capacity, (size_t)out->count + 1, sizeof(*out->items)) != 0)
		return err_nomem(err);
	out->items[out->count++] = run;
	return ST_OK;
}

static int compare_announcements(const void *left, const void *right)
{
	const struct prof_announcement *a = left, *b = right;

	return SORTED_BY(a, b, started_ms, pid);
}

static enum status announce_list(struct prof_announcements *out, int folder, bool tidy,
				 struct str *notes, struct err *err)
{
	const int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	enum status status = ST_OK;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return err_set(err, ST_IO, "the announcements cannot be listed: %s",
			       strerror(errno));
	}
	while (status == ST_OK && out->count < RUN_LIMIT && (entry = readdir(dir))) {
		if (folder_pid(entry->d_name, ".json") > 0) {
			status = folder_add(out, folder, entry->d_name, tidy, notes, err);
		} else if (tidy) {
			/* A writer was killed before it renamed its temporary file. */
			const int64_t pid = folder_pid(entry->d_name, ".tmp");

			if (pid > 0 && prof_process_start(pid) == 0)
				unlinkat(folder, entry->d_name, 0);
		}
	}
	closedir(dir);
	if (out->count > 1)
		qsort(out->items, (size_t)out->count, sizeof(*out->items), compare_announcements);
	return status;
}

enum status prof_announcements_read(struct prof_announcements *out, bool tidy, struct str *notes,
				    struct err *err)
{
	enum status status;
	int folder;

	*out = (struct prof_announcements){0};
	status = announce_folder(&folder, false, err);
	if (status != ST_OK)
		return status;
	/* A process that begins to announce holds the lock: do not remove its file meanwhile. */
	tidy = tidy && flock(folder, LOCK_EX | LOCK_NB) == 0;
	status = announce_list(out, folder, tidy, notes, err);
	close(folder);
	if (status != ST_OK)
		prof_announcements_free(out);
	return status;
}

void prof_announcements_free(struct prof_announcements *list)
{
	mem_free(list->items);
	*list = (struct prof_announcements){0};
}

/* ---- announcing ------------------------------------------------------------------------------ */

#define PAUSE_NS   (250 * UINT64_C(1000000)) /* between two writes */
#define LOCK_TRIES 20                        /* 5 ms apart, then continue without the lock */
#define MACHINE    16                        /* IPUs of the smallest machine for several runs */

struct prof_announce {
	struct prof_announcement run;
	int folder;
	uint64_t written_ns;
	struct str text;
	char name[32], temporary[32];
};

static atomic_flag announced = ATOMIC_FLAG_INIT;

/* ---- assigning IPUs -------------------------------------------------------------------------- */

static int64_t power_of_two(int64_t least, int64_t number)
{
	while (least < number)
		least *= 2;
	return least;
}

int64_t prof_announce_machine(int64_t ipus)
{
	return power_of_two(4, ipus);
}

static int count_runs(const struct prof_announcements *others, int64_t first, int64_t end)
{
	int runs = 0;

	for (int i = 0; i < others->count; i++) {
		const struct prof_announcement *other = &others->items[i];

		runs += other->first_id < end && first < other->first_id + other->ipus;
	}
	return runs;
}

int64_t prof_announce_place(const struct prof_announcements *others, int64_t ipus)
{
	const int64_t block = power_of_two(1, ipus), machine = power_of_two(MACHINE, ipus);
	int64_t best = 0;
	int least = count_runs(others, 0, ipus);

	for (int64_t first = block; first < machine && least > 0; first += block) {
		const int runs = count_runs(others, first, first + ipus);

		if (runs < least) {
			least = runs;
			best = first;
		}
	}
	return best;
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool announce_save(struct prof_announce *announce)
{
	const int fd = openat(announce->folder, announce->temporary,
			      O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	bool done;

	if (fd < 0)
		return false;
	done = write(fd, announce->text.text, announce->text.length) ==
	       (ssize_t)announce->text.length;
	done = close(fd) == 0 && done;
	/* Not synced: the file is useless after a crash of the machine. */
	done = done && renameat(announce->folder, announce->temporary, announce->folder,
				announce->name) == 0;
	if (!done)
		unlinkat(announce->folder, announce->temporary, 0);
	return done;
}

static enum status announce_write(struct prof_announce *announce, struct err *err)
{
	const struct prof_announcement *run = &announce->run;
	struct jsonw w;

	announce->written_ns = clock_ns();
	str_clear(&announce->text);
	jsonw_init_str(&w, &announce->text, 2);
	jsonw_begin_object(&w);
	jsonw_key_int(&w, "version", VERSION);
	for (size_t i = 0; i < ARRAY_LEN(announce_keys); i++)
		announce_write_key(&w, &announce_keys[i],
				   (const char *)run + announce_keys[i].offset);
	jsonw_end_object(&w);
	if (jsonw_end(&w, NULL) != ST_OK || announce->text.failed)
		return err_nomem(err);
	if (!announce_save(announce))
		return err_set(err, ST_IO, "ipuscope/%s: cannot be written: %s", announce->name,
			       strerror(errno));
	return ST_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* From this machine's list of users, not by getpwuid(): that loads the modules that nsswitch.conf
 * names, and glibc 2.36 crashes where memory ends meanwhile. Users of a directory service are not
 * in the list: the environment names them. */
static void announce_user(char *out, size_t size)
{
	FILE *users = fopen("/etc/passwd", "re");
	char room[1024];
	struct passwd entry, *found = NULL;
	const char *name = getenv("LOGNAME");

	while (users && fgetpwent_r(users, &entry, room, sizeof(room), &found) == 0 &&
	       found->pw_uid != geteuid())
		found = NULL;
	if (users)
		fclose(users);
	if (found)
		str_copy(out, size, found->pw_name);
	else if (name && *name)
		str_copy(out, size, name);
	else
		snprintf(out, size, "%lu", (unsigned long)geteuid());
}

static enum status announce_assign(struct prof_announce *announce, struct err *err)
{
	const struct timespec pause = {.tv_nsec = 5000000};
	struct prof_announcements others = {0};
	enum status status;

	/* Two runs that start at once could get the same IPUs; without the lock they still may. */
	for (int i = 0; i < LOCK_TRIES && flock(announce->folder, LOCK_EX | LOCK_NB) != 0; i++)
		nanosleep(&pause, NULL);
	status = announce_list(&others, announce->folder, false, NULL, err);
	if (status == ST_OK) {
		announce->run.first_id = prof_announce_place(&others, announce->run.ipus);
		status = announce_write(announce, err);
	}
	flock(announce->folder, LOCK_UN);
	prof_announcements_free(&others);
	return status;
}

static void announce_free(struct prof_announce *announce)
{
	if (announce->folder >= 0)
		close(announce->folder);
	str_free(&announce->text);
	mem_free(announce);
	atomic_flag_clear(&announced);
}

enum status prof_announce_open(struct prof_announce **out, const struct prof_announcement *run,
			       struct err *err)
{
	struct prof_announce *announce;
	enum status status;
	int64_t pid;

	*out = NULL;
	if (atomic_flag_test_and_set(&announced))
		return err_set(err, ST_NOTFOUND, "this process has announced another run");
	announce = mem_calloc(1, sizeof(*announce));
	if (!announce) {
		atomic_flag_clear(&announced);
		return err_nomem(err);
	}
	pid = getpid();
	announce->run = *run;
	announce->run.pid = pid;
	announce->run.process_start = prof_process_start(pid);
	announce->run.started_ms = clock_epoch_ns() / 1000000;
	announce_user(announce->run.user, sizeof(announce->run.user));
	snprintf(announce->name, sizeof(announce->name), "%lld.json", (long long)pid);
	snprintf(announce->temporary, sizeof(announce->temporary), "%lld.tmp", (long long)pid);
	status = announce_folder(&announce->folder, true, err);
	if (status == ST_OK)
		status = announce_assign(announce, err);
	if (status != ST_OK) {
		announce_free(announce);
		return status;
	}
	*out = announce;
	return ST_OK;
}

/* ---- progress, closing ----------------------------------------------------------------------- */

void prof_announce_progress(struct prof_announce *announce, const struct report_progress *progress)
{
	if (!announce || clock_ns() - announce->written_ns < PAUSE_NS)
		return;
	announce->run.progress = *progress;
	announce_write(announce, NULL);
}

void prof_announce_close(struct prof_announce *announce)
{
	if (!announce)
		return;
	unlinkat(announce->folder, announce->name, 0);
	announce_free(announce);
}
