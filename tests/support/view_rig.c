/*
 * Sessions for tests.
 *
 * Threading: one thread. Ownership: view_rig_new() gives a rig that teardown frees.
 */
#include "support/view_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "support/view_fixture.h"
#include "support/view_fixture_model.h"

void view_rig_open(struct view_rig *rig, const char *path, const char *target, int width,
		   int height)
{
	assert_int_equal(view_session_open(&rig->session, path, target, false, NULL), ST_OK);
	view_rig_size(rig, width, height);
}

void view_rig_close(struct view_rig *rig)
{
	view_session_close(&rig->session);
}

struct view_rig *view_rig_new(void **state)
{
	struct view_rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	support_tempdir(rig->folder);
	setenv("XDG_STATE_HOME", rig->folder, 1);
	snprintf(rig->path, sizeof(rig->path), "%s/run.db", rig->folder);
	snprintf(rig->other, sizeof(rig->other), "%s/other.db", rig->folder);
	*state = rig;
	return rig;
}

void view_rig_start(struct view_rig *rig, bool compared, int width, int height, const char *keys)
{
	view_rig_open(rig, rig->path, compared ? rig->other : NULL, width, height);
	view_rig_press(rig, keys);
}

int view_rig_setup(void **state)
{
	struct view_rig *rig = view_rig_new(state);

	if (!view_fixture_write(rig->path, 0))
		return -1;
	view_rig_start(rig, false, 80, 24, "");
	return 0;
}

int view_rig_setup_model(void **state, bool compared, int width, int height, const char *keys)
{
	struct view_rig *rig = view_rig_new(state);

	if (!view_fixture_model_write(rig->path, false) ||
	    (compared && !view_fixture_model_write(rig->other, true)))
		return -1;
	view_rig_start(rig, compared, width, height, keys);
	return 0;
}

int view_rig_setup_with(void **state, view_rig_write write, const void *source, const void *target,
			const char *keys)
{
	struct view_rig *rig = view_rig_new(state);

	if (!write(rig->path, source) || (target && !write(rig->other, target)))
		return -1;
	view_rig_start(rig, target, 80, 24, keys);
	return 0;
}

int view_rig_teardown(void **state)
{
	struct view_rig *rig = *state;

	view_rig_close(rig);
	if (rig->folder[0])
		support_tempdir_remove(rig->folder);
	free(rig);
	return 0;
}

void view_rig_press(struct view_rig *rig, const char *keys)
{
	for (; *keys; keys++)
		view_rig_key(rig, (unsigned char)*keys);
}

void view_rig_key(struct view_rig *rig, uint32_t key)
{
	view_session_key(&rig->session, key);
	view_session_draw(&rig->session);
}

void view_rig_size(struct view_rig *rig, int width, int height)
{
	assert_int_equal(view_session_size(&rig->session, width, height, NULL), ST_OK);
	view_session_draw(&rig->session);
}

char *view_rig_text(const struct view_session *session)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(view_canvas_print(&session->canvas, 0, session->canvas.height, out, NULL),
			 ST_OK);
	fclose(out);
	return text;
}

void view_rig_assert_shows(struct view_rig *rig, const char *part, const char *file, int line)
{
	char *text = view_rig_text(&rig->session);

	support_assert_contains(text, part, file, line);
	free(text);
}

void view_rig_assert_hides(struct view_rig *rig, const char *part, const char *file, int line)
{
	char *text = view_rig_text(&rig->session);

	if (strstr(text, part)) {
		print_error("\"%s\" is shown:\n%s\n", part, text);
		_fail(file, line);
	}
	free(text);
}

/* Are @parts in @line, one after the other? */
static bool view_rig_in_order(const char *line, const char *const *parts)
{
	for (; *parts; parts++) {
		line = strstr(line, *parts);
		if (!line)
			return false;
		line += strlen(*parts);
	}
	return true;
}

void view_rig_assert_line_shows(struct view_rig *rig, const char *const *parts, const char *file,
				int line)
{
	char *text = view_rig_text(&rig->session), *rest = text, *at;
	bool found = false;

	while (!found && (at = strsep(&rest, "\n")))
		found = view_rig_in_order(at, parts);
	free(text);
	if (!found) {
		print_error("no line shows \"%s\" with all that should follow\n", parts[0]);
		_fail(file, line);
	}
}

void view_rig_assert_count(struct view_rig *rig, const char *part, const char *sql,
			   const char *file, int line)
{
	char *text = view_rig_text(&rig->session), count[FMT_SIZE];
	char *at = strstr(text, part);

	support_assert_contains(text, part, file, line);
	at[strcspn(at, "\n")] = '\0';
	support_assert_contains(at, fmt_count(count, view_rig_sql_int(rig, sql)), file, line);
	free(text);
}

void view_rig_assert_real(struct view_rig *rig, const char *sql, const char *file, int line)
{
	char text[FMT_SIZE];

	view_rig_assert_shows(rig, fmt_real(text, view_rig_sql_real(rig, sql)), file, line);
}

static struct prof_query *view_rig_row(struct view_rig *rig, const char *sql)
{
	struct prof_query *query;
	bool row = false;

	assert_int_equal(prof_query_open(&query, rig->session.source.db, sql, NULL), ST_OK);
	assert_int_equal(prof_query_step(query, &row, NULL), ST_OK);
	assert_true(row);
	return query;
}

int64_t view_rig_sql_int(struct view_rig *rig, const char *sql)
{
	struct prof_query *query = view_rig_row(rig, sql);
	const int64_t value = prof_column_int(query, 0);

	prof_query_close(query);
	return value;
}

double view_rig_sql_real(struct view_rig *rig, const char *sql)
{
	struct prof_query *query = view_rig_row(rig, sql);
	const double value = prof_column_real(query, 0);

	prof_query_close(query);
	return value;
}

char *view_rig_sql_text(struct view_rig *rig, const char *sql)
{
	struct prof_query *query = view_rig_row(rig, sql);
	const char *value = prof_column_text(query, 0);
	char *out = value ? strdup(value) : NULL;

	prof_query_close(query);
	return out;
}

void view_rig_press_every_key(struct view_rig *rig, enum view_screen screen)
{
	const unsigned where = view_screen(screen)->where;

	for (int r = VIEW_NONE + 1; r < VIEW_REQUESTS; r++) {
		const struct view_request_info *info = view_request_info((enum view_request)r);

		if (!(info->screens & where) || r == VIEW_QUIT_REQUEST || r == VIEW_CLOSE_REQUEST)
			continue;
		for (int way = 0; way < 10; way++) {
			view_session_show(&rig->session, screen);
			view_rig_press(rig, "v");
			if (way == 5)
				view_rig_key(rig, VIEW_KEY_ENTER);
			view_session_show(&rig->session, screen);
			view_session_key(&rig->session, info->keys[0]);
			assert_null(strstr(rig->session.context.message, "not on this"));
			view_session_draw(&rig->session);
			view_popup_close(&rig->session.popup);
			if (rig->session.prompt != VIEW_NO_PROMPT)
				view_session_key(&rig->session, VIEW_KEY_ESCAPE);
		}
	}
	assert_false(rig->session.quit);
}

void view_rig_each_look(struct view_rig *rig, void (*press)(struct view_rig *rig))
{
	static const int sizes[][2] = {{40, 10},  {41, 12},  {60, 17},  {80, 24},
				       {120, 12}, {132, 43}, {151, 30}, {250, 60}};

	for (int look = 0; look < 4; look++) {
		rig->session.canvas.ascii = look & 1;
		rig->session.canvas.plain = look & 2;
		for (size_t i = (size_t)look % support_stride(); i < ARRAY_LEN(sizes);
		     i += support_stride()) {
			view_rig_size(rig, sizes[i][0], sizes[i][1]);
			press(rig);
			assert_int_equal(rig->session.trouble.status, ST_OK);
		}
	}
}
