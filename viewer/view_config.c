/*
 * The user's own files: settings, read from JSON; and files in the state folder with their lock.
 *
 * Threading: none. Ownership: none.
 */
#include "viewer/view_config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/json.h"
#include "common/mem.h"
#include "common/str.h"

/* ---- the state folder ------------------------------------------------------------------------ */

#define LOCK_TRIES   1000
#define LOCK_WAIT_NS 1000000 /* between two tries */

bool view_own_path(char out[FS_PATH_SIZE], const char *name)
{
	char folder[FS_PATH_SIZE];

	out[0] = '\0';
	return fs_xdg(folder, "XDG_STATE_HOME", ".local/state") &&
	       fs_path(out, "%s/%s", folder, name);
}

enum status view_own_read(const char *path, size_t most, char **text, size_t *length,
			  struct err *err)
{
	struct stat info;

	*text = NULL;
	*length = 0;
	if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
		return err_set(err, ST_INVALID, "%s: is not a file", path);
	return fs_read(path, most, text, length, err);
}

static enum status view_own_folder(const char *path, struct err *err)
{
	char folder[FS_PATH_SIZE];

	str_copy(folder, sizeof(folder), path);
	*strrchr(folder, '/') = '\0';
	return fs_make_dirs(folder, err);
}

enum status view_own_write(const char *path, const void *data, size_t length, struct err *err)
{
	enum status status = view_own_folder(path, err);

	if (status == ST_OK)
		status = fs_write_private(path, data, length, err);
	return status;
}

void view_own_unlock(int lock)
{
	if (lock >= 0)
		close(lock);
}

int view_own_lock(void)
{
	const struct timespec wait = {.tv_nsec = LOCK_WAIT_NS};
	char path[FS_PATH_SIZE];
	int lock;

	if (!view_own_path(path, "lock") || view_own_folder(path, NULL) != ST_OK)
		return -1;
	lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	for (int i = 0; lock >= 0 && i < LOCK_TRIES; i++) {
		if (flock(lock, LOCK_EX | LOCK_NB) == 0)
			return lock;
		if (errno != EWOULDBLOCK && errno != EINTR)
			break;
		nanosleep(&wait, NULL);
	}
	view_own_unlock(lock);
	return -1;
}

/* ---- settings -------------------------------------------------------------------------------- */

void view_config_defaults(struct view_config *config)
{
	*config = (struct view_config){.theme = "auto", .color = "auto", .ascii = "auto"};
}

/* ---- values: each is read into its field ----------------------------------------------------- */

static enum status config_read_word(const struct json_at *at, const char *const *words,
				    size_t count, const char **out, struct err *err)
{
	size_t word;
	enum status status = json_choice(at, at->key, words, count, &word, err);

	if (status == ST_OK)
		*out = words[word];
	return status;
}

static enum status config_read_theme(const struct json_at *at, void *out, struct err *err)
{
	static const char *const words[] = {"auto", "dark", "light"};

	return config_read_word(at, words, ARRAY_LEN(words), out, err);
}

static enum status config_read_color(const struct json_at *at, void *out, struct err *err)
{
	static const char *const words[] = {"auto", "always", "never"};

	return config_read_word(at, words, ARRAY_LEN(words), out, err);
}

static enum status config_read_ascii(const struct json_at *at, void *out, struct err *err)
{
	const char *text;

	if (!cJSON_IsBool(at->node) &&
	    (json_text(at, &text, NULL) != ST_OK || strcmp(text, "auto") != 0))
		return json_fail(at, err, "must be true, false or \"auto\"");
	*(const char **)out = !cJSON_IsBool(at->node)  ? "auto"
			      : cJSON_IsTrue(at->node) ? "always"
						       : "never";
	return ST_OK;
}

static enum status config_read_bool(const struct json_at *at, void *out, struct err *err)
{
	return json_bool(at, out, err);
}

static enum status config_read_screen(const struct json_at *at, void *out, struct err *err)
{
	const char *names[VIEW_SCREENS];
	size_t word;
	enum status status;

	for (int i = 0; i < VIEW_SCREENS; i++)
		names[i] = view_screen((enum view_screen)i)->name;
	status = json_choice(at, at->key, names, VIEW_SCREENS, &word, err);
	if (status == ST_OK)
		*(enum view_screen *)out = (enum view_screen)word;
	return status;
}

/* ---- the file -------------------------------------------------------------------------------- */

enum status view_config_load(struct view_config *config, const char *path, struct err *err)
{
	char folder[FS_PATH_SIZE], own[FS_PATH_SIZE];
	struct view_config loaded = *config;
	struct json_at root, at;
	static const char *const keys[] = {"theme", "color", "ascii", "mouse", "follow", "screen"};
	const struct {
		enum status (*read)(const struct json_at *at, void *out, struct err *err);
		void *out;
	} values[] = {
		{config_read_theme, &loaded.theme}, {config_read_color, &loaded.color},
		{config_read_ascii, &loaded.ascii}, {config_read_bool, &loaded.mouse},
		{config_read_bool, &loaded.follow}, {config_read_screen, &loaded.screen},
	};
	enum status status;
	cJSON *json;

	_Static_assert(ARRAY_LEN(keys) == ARRAY_LEN(values), "keys out of step");
	if (!path) {
		if (!fs_xdg(folder, "XDG_CONFIG_HOME", ".config") ||
		    !fs_path(own, "%s/view.json", folder) || !fs_exists(own))
			return ST_OK;
		path = own;
	}
	status = json_load(&json, path, err);
	if (status != ST_OK)
		return status;
	root = json_root(path, json);
	status = json_only_keys(&root, keys, ARRAY_LEN(keys), err);
	for (size_t i = 0; i < ARRAY_LEN(keys) && status == ST_OK; i++)
		if (json_child(&root, keys[i], &at))
			status = values[i].read(&at, values[i].out, err);
	cJSON_Delete(json);
	if (status == ST_OK)
		*config = loaded;
	return status;
}

enum view_theme view_config_theme(const struct view_config *config, const char *colorfgbg)
{
	const char *ground = colorfgbg ? strrchr(colorfgbg, ';') : NULL;
	char *end;
	long colour;

	if (strcmp(config->theme, "auto") != 0)
		return strcmp(config->theme, "light") == 0 ? VIEW_LIGHT : VIEW_DARK;
	if (!ground || ground[1] < '0' || ground[1] > '9')
		return VIEW_DARK;
	colour = strtol(ground + 1, &end, 10);
	/* Of the 16 ANSI colours, white and the bright ones are light; bright black (8) is not. */
	return *end == '\0' && (colour == 7 || (colour >= 9 && colour <= 15)) ? VIEW_LIGHT
									      : VIEW_DARK;
}
