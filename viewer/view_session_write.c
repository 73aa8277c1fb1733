/*
 * Screens as text, rows and pictures: for files and for the batch mode.
 *
 * Threading: that of the session.
 */
#include "viewer/view_session_internal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "viewer/draw/view_canvas.h"

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

	status = view_screen_rows(ops, session->state[screen], &session->context, &table, err);
	if (status != ST_OK)
		return status;
	status = report_render(&table, &params, out, err);
	/* CSV has no field for a note. */
	if (table.note && format == REPORT_AS_CSV && !session->context.message[0])
		view_message(&session->context, table.note, NULL);
	report_table_free(&table);
	return status;
}

static bool view_row_is_blank(const struct view_canvas *canvas, int y)
{
	const struct view_cell *row = &canvas->cells[(size_t)y * (size_t)canvas->width];

	for (int x = 0; x < canvas->width; x++)
		if (row[x].character != ' ')
			return false;
	return true;
}

/* Draw the screen at its full height; *@rows: without blank rows at the bottom. */
static enum status view_draw_whole(struct view_session *session, enum view_screen screen, int width,
				   int *rows, struct err *err)
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
	while (height > 1 && view_row_is_blank(&session->canvas, height - 1))
		height--;
	*rows = height;
	return ST_OK;
}

/* Do the first load for printing; *@width 0: the default. */
static enum status view_begin_print(struct view_session *session, enum view_screen screen,
				    int *width, struct err *err)
{
	if (*width <= 0)
		*width = TEXT_WIDTH;
	if (!session->source.db)
		return err_set(err, ST_BUSY, "the run is being closed: try again in a moment");
	session->context.whole = true;
	session->context.body = (struct view_rect){0, 0, *width, 50};
	return view_screen(screen)->load(session->state[screen], &session->context, true, err);
}

enum status view_session_print(struct view_session *session, enum view_screen screen,
			       enum report_format format, int width, FILE *out, struct err *err)
{
	enum status status;
	int rows;

	session->canvas.plain = true;
	status = view_begin_print(session, screen, &width, err);
	if (status != ST_OK)
		return status;
	if (format != REPORT_AS_TEXT)
		return view_print_rows(session, screen, format, out, err);
	status = view_draw_whole(session, screen, width, &rows, err);
	if (status != ST_OK)
		return status;
	return view_canvas_print(&session->canvas, 0, rows, out, err);
}

/* ---- pictures -------------------------------------------------------------------------------- */

static enum status view_write_picture(const struct view_session *session, enum view_screen screen,
				      int rows, FILE *out, struct err *err)
{
	char title[2 * sizeof(session->source.name)];

	snprintf(title, sizeof(title), "%s: %s", session->source.name, view_screen(screen)->title);
	return view_svg_write(&session->canvas, 0, rows, session->theme, title, out, err);
}

/* SVG has all colours and characters, whatever the terminal supports. */
static void view_enable_colours(struct view_canvas *canvas)
{
	canvas->ascii = canvas->plain = false;
	canvas->colours = 256;
}

enum status view_session_print_svg(struct view_session *session, enum view_screen screen, int width,
				   FILE *out, struct err *err)
{
	enum status status;
	int rows;

	view_enable_colours(&session->canvas);
	status = view_begin_print(session, screen, &width, err);
	if (status == ST_OK)
		status = view_draw_whole(session, screen, width, &rows, err);
	if (status != ST_OK)
		return status;
	return view_write_picture(session, screen, rows, out, err);
}

/* Write the whole screen as it is, drawn again in a second canvas. */
static enum status view_write_screen(struct view_session *session, FILE *out, struct err *err)
{
	struct view_canvas shown = session->canvas;
	enum status status;

	memset(&session->canvas, 0, sizeof(session->canvas));
	view_enable_colours(&session->canvas);
	status = view_canvas_resize(&session->canvas, shown.width, shown.height, err);
	if (status == ST_OK) {
		view__picture(session);
		status = view_write_picture(session, session->screen, shown.height, out, err);
	}
	view_canvas_fini(&session->canvas);
	session->canvas = shown;
	return status;
}

/* ---- the shown screen ------------------------------------------------------------------------ */

struct view_kind {
	const char *ending;
	enum report_format format;
	bool svg;
};

/* Select the format by the file's ending, text without one; NULL: an unknown ending. */
static const struct view_kind *session_file_kind(const char *path)
{
	static const struct view_kind kinds[] = {{".txt", REPORT_AS_TEXT, false},
						 {".csv", REPORT_AS_CSV, false},
						 {".json", REPORT_AS_JSON, false},
						 {".svg", REPORT_AS_TEXT, true}};
	const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');

	if (!dot)
		return &kinds[0];
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (strcmp(dot, kinds[i].ending) == 0)
			return &kinds[i];
	return NULL;
}

/* Write the shown body as text, drawn in a second canvas. */
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

/* The output file: never an existing one, and written atomically. */
struct view_file {
	struct fs_writer writer;
	FILE *out;
};

static enum status view_file_open(struct view_file *file, const char *path, struct err *err)
{
	enum status status = fs_writer_begin(&file->writer, path, FS_NEW, err);

	if (status != ST_OK)
		return status;
	status = fs_writer_stream(&file->writer, &file->out, err);
	if (status != ST_OK)
		fs_writer_drop(&file->writer);
	return status;
}

/* Close the file; @status and @err: the result of the writing. */
static enum status view_file_close(struct view_file *file, enum status status, struct err *err)
{
	if (fclose(file->out) != 0 && status == ST_OK)
		status = err_set(err, ST_IO, "write: %s", strerror(errno));
	if (status == ST_OK)
		return fs_writer_close(&file->writer, err);
	fs_writer_drop(&file->writer);
	err_prefix(err, "%s", file->writer.path);
	return status;
}

/* @note: additional information, or NULL or "". */
static void view_report_written(struct view_session *session, const char *path, const char *note,
				const struct err *err)
{
	struct str text = {0};

	str_add(&text, path);
	if (note && note[0])
		str_addf(&text, " (%s)", note);
	if (err->status == ST_OK)
		view__notify(session, "written: ", text.failed ? path : str_peek(&text));
	else
		view__notify(session, "not written: ", err->text);
	str_free(&text);
}

/* The rows have been gathered: write them. */
static void session_gathered(struct view_session *session, const struct view_job *job)
{
	const char *path = session->job_path;
	const struct report_render_params params = {.format = session_file_kind(path)->format,
						    .tool = "ipu-view"};
	struct err err = job->err;
	char note[VIEW_MESSAGE_SIZE / 2] = "";
	struct view_file file;

	if (err.status == ST_OK) {
		if (view_file_open(&file, path, &err) == ST_OK)
			view_file_close(&file,
					report_render(&session->job.table, &params, file.out, &err),
					&err);
		/* CSV has no field for a note. */
		str_copy(note, sizeof(note),
			 session->job.table.note ? session->job.table.note : "");
		report_table_free(&session->job.table);
	}
	view_report_written(session, path, note, &err);
}

void view__write(struct view_session *session, const char *path)
{
	const struct view_kind *kind = session_file_kind(path);
	const enum report_format format = kind ? kind->format : REPORT_AS_TEXT;
	const struct view_screen_ops *ops = view__ops(session);
	struct view_file file;
	struct err err = {0};

	if (!kind) {
		view__notify(session, "not written: the name must end in .txt, .csv, .json or .svg",
			     NULL);
		return;
	}
	if (!session->fresh[session->screen] ||
	    (view__db_closed(session) && format != REPORT_AS_TEXT)) {
		view__notify(session, "not written: ",
			     view__db_closed(session) ? "the run is being closed: a moment"
						      : "there is nothing to write yet");
		return;
	}
	if (format != REPORT_AS_TEXT && !ops->table && !ops->grid) {
		view__notify(session, "not written: this screen has no rows: use .txt or .svg",
			     NULL);
		return;
	}
	if (format != REPORT_AS_TEXT) {
		str_copy(session->job_path, sizeof(session->job_path), path);
		view__job(session, VIEW_WRITE_JOB, session_gathered);
		view__start(session);
		return;
	}
	if (view_file_open(&file, path, &err) == ST_OK)
		view_file_close(&file,
				kind->svg ? view_write_screen(session, file.out, &err)
					  : view_write_shown(session, file.out, &err),
				&err);
	view_report_written(session, path, NULL, &err);
}
