/*
 * Screens as text, rows and pictures: for files and for the batch mode.
 *
 * Threading: the session's.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/str.h"
#include "viewer/view_session_internal.h"

#define TEXT_WIDTH  100
#define TEXT_HEIGHT 10000

static enum status view_print_rows(struct view_session *session, enum view_screen screen,
				   enum report_format format, FILE *out, struct err *err)
{
	const struct view_screen_ops *ops = view_screen(screen);
	const struct report_render_params params = {
		.format = format, .tool = "ipu-view", .terminal = isatty(fileno(out)) == 1};
	struct report_table table;
	enum status status;

	if (!ops->table)
		return err_set(err, ST_INVALID, "the screen %s has no rows: use --text", ops->name);
	status = ops->table(session->state[screen], &session->context, &table, err);
	if (status != ST_OK)
		return status;
	status = report_render(&table, &params, out, err);
	report_table_free(&table);
	return status;
}

/* Drawn as high as it wants to be. */
static enum status view_print_text(struct view_session *session, enum view_screen screen, int width,
				   FILE *out, struct err *err)
{
	const struct view_screen_ops *ops = view_screen(screen);
	struct view_context *context = &session->context;
	struct view_pane pane;
	enum status status;
	int height = ops->height(session->state[screen], context);

	height = height < 1 ? 1 : height > TEXT_HEIGHT ? TEXT_HEIGHT : height;
	context->body = (struct view_rect){0, 0, width, height};
	status = ops->load(session->state[screen], context, false, err);
	if (status == ST_OK)
		status = view_canvas_resize(&session->canvas, width, height, err);
	if (status != ST_OK)
		return status;
	pane = view_pane_all(&session->canvas);
	ops->draw(session->state[screen], context, &pane);
	while (height > 1 &&
	       session->canvas.cells[(size_t)(height - 1) * (size_t)width].character == ' ') {
		bool blank = true;

		for (int x = 0; x < width; x++)
			if (session->canvas.cells[(size_t)(height - 1) * (size_t)width + (size_t)x]
				    .character != ' ')
				blank = false;
		if (!blank)
			break;
		height--;
	}
	return view_canvas_print(&session->canvas, 0, height, out, err);
}

enum status view_session_print(struct view_session *session, enum view_screen screen,
			       enum report_format format, int width, FILE *out, struct err *err)
{
	enum status status;

	if (width <= 0)
		width = TEXT_WIDTH;
	if (!session->source.db)
		return err_set(err, ST_BUSY, "the run is being closed: try again in a moment");
	session->canvas.plain = true;
	session->context.whole = true;
	session->context.body = (struct view_rect){0, 0, width, 50};
	status = view_screen(screen)->load(session->state[screen], &session->context, true, err);
	if (status != ST_OK)
		return status;
	if (format != REPORT_AS_TEXT)
		return view_print_rows(session, screen, format, out, err);
	return view_print_text(session, screen, width, out, err);
}

static enum report_format view_format_of(const char *path)
{
	const char *dot = strrchr(path, '.');

	if (dot && strcmp(dot, ".csv") == 0)
		return REPORT_AS_CSV;
	if (dot && strcmp(dot, ".json") == 0)
		return REPORT_AS_JSON;
	return REPORT_AS_TEXT;
}

/* What is on the screen, as it is: the canvas is a copy, so that nothing here moves. */
static enum status view_write_shown(struct view_session *session, FILE *out, struct err *err)
{
	struct view_canvas canvas = {.ascii = session->canvas.ascii, .plain = true};
	struct view_pane pane;
	enum status status;

	status = view_canvas_resize(&canvas, session->canvas.width, session->canvas.height, err);
	if (status == ST_OK) {
		pane = view_pane_at(&canvas, session->frame.body);
		view__ops(session)->draw(session->state[session->screen], &session->context, &pane);
		status = view_canvas_print(&canvas, session->frame.body.y,
					   session->frame.body.y + session->frame.body.height, out,
					   err);
	}
	view_canvas_fini(&canvas);
	return status;
}

static enum status view_close_file(FILE *out, const char *path, enum status status, struct err *err)
{
	if (fclose(out) != 0 && status == ST_OK)
		status = err_set(err, ST_IO, "%s: %s", path, strerror(errno));
	if (status != ST_OK)
		unlink(path);
	return status;
}

/* Never over a file that is there. */
static FILE *view_create(const char *path, struct err *err)
{
	FILE *out = fopen(path, "wx");

	if (!out)
		err_set(err, ST_IO, "%s: %s", path, strerror(errno));
	return out;
}

static void view_say_written(struct view_session *session, const char *path, const struct err *err)
{
	if (err->status == ST_OK)
		view__say(session, "written: ", path);
	else
		view__say(session, "not written: ", err->text);
}

void view__write(struct view_session *session, const char *path)
{
	const enum report_format format = view_format_of(path);
	const struct view_screen_ops *ops = view__ops(session);
	struct err err = {0};
	FILE *out;

	if (!session->fresh[session->screen] || (!session->source.db && format != REPORT_AS_TEXT)) {
		view__say(session, "not written: there is nothing to write yet", NULL);
		return;
	}
	if (format != REPORT_AS_TEXT && !ops->table) {
		view__say(session, "not written: this screen has no rows: use .txt", NULL);
		return;
	}
	if (format != REPORT_AS_TEXT) {
		str_copy(session->job_path, sizeof(session->job_path), path);
		view__job(session, VIEW_WRITE_JOB);
		view__start(session);
		return;
	}
	out = view_create(path, &err);
	if (out)
		err.status = view_close_file(out, path, view_write_shown(session, out, &err), &err);
	view_say_written(session, path, &err);
}

void view__written(struct view_session *session)
{
	const char *path = session->job_path;
	const struct report_render_params params = {.format = view_format_of(path),
						    .tool = "ipu-view"};
	struct err err = session->job.err;
	FILE *out;

	if (err.status == ST_OK) {
		out = view_create(path, &err);
		if (out)
			err.status = view_close_file(
				out, path, report_render(&session->job.table, &params, out, &err),
				&err);
		report_table_free(&session->job.table);
	}
	view_say_written(session, path, &err);
}
