/*
 * The command ipu-view: arguments, batch mode, exit codes.
 *
 * Threading: one thread. This is a front end: it prints.
 */
#include "viewer/view_command.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/cli.h"
#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "profiler/prof_timeline.h"
#include "reports/report_find.h"
#include "viewer/view_config.h"
#include "profiler/prof_db.h"

#define VIEW_SCREEN_WORD(screen, ops) #ops " "

#define VIEW_AS_SVG 100 /* beside enum report_format */
#define VIEW_UNSAID (-1)

/* The command line's values, then those derived from them. */
struct view_arguments {
	const char *path, *target; /* target: compared with path */
	int view, format;          /* VIEW_UNSAID: not given; the same for mouse, ascii, follow */
	int width;                 /* 0: not given */
	int mouse, ascii, follow;
	const char *statement, *from, *to, *color, *theme, *config; /* NULL: not given */
	struct view_opening tensor;

	struct view_config settings;
	char query[VIEW_PLACE_SQL]; /* "": none */
	int64_t from_ns, to_ns;
};

static const struct cli_option view_options[] = {
	{.name = "--view",
	 .argument = "NAME",
	 .choices = VIEW_SCREEN_MAP(VIEW_SCREEN_WORD),
	 .help = "The screen to begin with, or to print. Default: summary.",
	 .field = CLI_FIELD(CHOICE, struct view_arguments, view)},
	{.name = "--text",
	 .help = "Print the screen as text and leave.",
	 .field = CLI_IS(struct view_arguments, format, REPORT_AS_TEXT)},
	{.name = "--csv",
	 .help = "Print the screen's rows as CSV and leave.",
	 .field = CLI_IS(struct view_arguments, format, REPORT_AS_CSV)},
	{.name = "--json",
	 .help = "Print the screen's rows as JSON and leave.",
	 .field = CLI_IS(struct view_arguments, format, REPORT_AS_JSON)},
	{.name = "--svg",
	 .help = "Print the screen as a picture (SVG) and leave.",
	 .field = CLI_IS(struct view_arguments, format, VIEW_AS_SVG)},
	{.name = "--query",
	 .argument = "STATEMENT",
	 .help = "What the screen sql begins with: a statement that reads, or - for the standard "
		 "input. The first 100,000 rows.",
	 .field = CLI_FIELD(TEXT, struct view_arguments, statement)},
	{.name = "--tensor",
	 .argument = "KEY",
	 .help = "What the screen tensors begins with: this tensor, opened.",
	 .field = CLI_FIELD(TEXT, struct view_arguments, tensor.key)},
	{.name = "--page",
	 .argument = "PAGE",
	 .choices = "curve histograms values",
	 .help = "Of --tensor. Default: its values where some were kept (of sequences a map, a "
		 "text, norms), else the curve.",
	 .field = CLI_FIELD(CHOICE, struct view_arguments, tensor.page)},
	{.name = "--step",
	 .argument = "STEP",
	 .help = "Values of --tensor that were kept at this step (weights, gradients: weight "
		 "update). Default: the last.",
	 .field = CLI_FIELD(NUMBER, struct view_arguments, tensor.step)},
	{.name = "--sample",
	 .argument = "SAMPLE",
	 .help = "Values of --tensor of this item of the batch, from 0. Default: 0.",
	 .field = CLI_FIELD(SIZE, struct view_arguments, tensor.sample)},
	{.name = "--head",
	 .argument = "HEAD",
	 .help = "Values of --tensor of this head of attention, from 0. Default: 0.",
	 .field = CLI_FIELD(SIZE, struct view_arguments, tensor.head)},
	{.name = "--width",
	 .argument = "COLUMNS",
	 .help = "Width of the text or picture, 40 to 1000. Default: the terminal's, else 100.",
	 .field = CLI_RANGE(SIZE, struct view_arguments, width, VIEW_MIN_WIDTH, 1000)},
	{.name = "--from",
	 .argument = "TIME",
	 .help = "Begin the timeline here: 1.5ms, 20us, 3s, or ns; of the device where it was "
		 "recorded, else of the host.",
	 .field = CLI_FIELD(TEXT, struct view_arguments, from)},
	{.name = "--to",
	 .argument = "TIME",
	 .help = "End the timeline here.",
	 .field = CLI_FIELD(TEXT, struct view_arguments, to)},
	{.name = "--color",
	 .argument = "WHEN",
	 .choices = "auto always never",
	 .help = "Use colours. Default: auto, which NO_COLOR and TERM=dumb turn off.",
	 .field = CLI_FIELD(TEXT, struct view_arguments, color)},
	{.name = "--theme",
	 .argument = "THEME",
	 .choices = "auto dark light",
	 .help = "Colours for a dark or a light ground. Default: auto, by COLORFGBG, else dark.",
	 .field = CLI_FIELD(TEXT, struct view_arguments, theme)},
	{.name = "--mouse",
	 .help = "Have the terminal report clicks, dragging and the wheel; selecting text then "
		 "takes Shift.",
	 .field = CLI_IS(struct view_arguments, mouse, true)},
	{.name = "--no-mouse",
	 .help = "Do not, whatever the settings say. Default.",
	 .field = CLI_IS(struct view_arguments, mouse, false)},
	{.name = "--config",
	 .argument = "FILE",
	 .help = "Settings. Default: ipuscope/view.json in $XDG_CONFIG_HOME or ~/.config, where it "
		 "is there; none: no file. {\"theme\": \"light\", \"color\": \"auto\", \"ascii\": "
		 "false, \"mouse\": true, \"screen\": \"timeline\", \"follow\": true}; options "
		 "come "
		 "after it.",
	 .field = CLI_FIELD(TEXT, struct view_arguments, config)},
	{.name = "--ascii",
	 .help = "Draw with ASCII only. Default: where the locale is not UTF-8.",
	 .field = CLI_IS(struct view_arguments, ascii, true)},
	{.name = "--no-ascii",
	 .help = "Draw with Unicode, whatever locale and settings say.",
	 .field = CLI_IS(struct view_arguments, ascii, false)},
	{.name = "--follow",
	 .help = "Keep the newest of a run that is still recording in view.",
	 .field = CLI_IS(struct view_arguments, follow, true)},
	{.name = "--no-follow",
	 .help = "Do not, whatever the settings say. Default.",
	 .field = CLI_IS(struct view_arguments, follow, false)},
	{.name = "--unlimited",
	 .action = prof_db_unlimited,
	 .help = "Lift the limits that keep a hostile file from taking all time and memory."},
};

/* Completed with the key table before use. */
static struct cli_command view_cli = {
	.name = "ipu-view",
	.synopsis = "[REPORT [TARGET]] [options]",
	.summary = "look at a recorded run in the terminal",
	.about =
		"Shows the report directory or database REPORT, or another program's recording "
		"(PyTorch, Nsight Systems, rocprofv3, Perfetto, JAX ...), which is imported into "
		"a cache. Screens on the simulated device: "
		"Insights, Memory, Liveness, Programs, Operations, and the Timeline, which has the "
		"host as well. Screens on the training: Summary, Tensors, Metrics, Health, "
		"Communication (of ranks), What if; on GPUs: "
		"Accelerators; and SQL "
		"for any query.\n\n"
		"Without REPORT: the newest tf_report__* of the working directory. With TARGET, "
		"the "
		"two are compared; R chooses it later. A run that is still recording is followed "
		"live. Nothing is ever "
		"written to the report.\n\n"
		"When the output is not a terminal the screen is printed as text. Press ? for the "
		"keys.",
	.options = view_options,
	.option_count = ARRAY_LEN(view_options),
	.examples =
		"ipu-view\tthe newest report here\n"
		"ipu-view before after\ttwo runs beside each other\n"
		"ipu-view --follow --view metrics\ta run that is training: its losses, the newest "
		"in view\n"
		"ipu-view run --view memory --csv >tiles.csv\ta screen's rows for a spreadsheet\n"
		"ipu-view run --view timeline --from 0 --to 400us --svg >run.svg\ta picture of the "
		"first 400 us\n"
		"ipu-view before after --view summary --text\tthe comparison, to paste\n"
		"ipu-view run --tensor loss_tokens --text\tthe loss of each token that was kept\n"
		"ipu-view run --csv --query 'SELECT layer, flops FROM layers'\ta statement's "
		"rows\n",
	.words = "FILE",
};

/* Parse "1.5ms": a number and its unit; without a unit, ns. */
static enum status view_parse_time(const char *name, const char *value, int64_t *out,
				   struct err *err)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"", 1}};
	const size_t digits = strspn(value, "0123456789.+-eE");
	char number[64];
	double time;

	str_copy(number, min(digits + 1, sizeof(number)), value);
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (strcmp(value + digits, units[i].unit) == 0 && str_to_double(number, &time) &&
		    time * units[i].ns > -9e18 && time * units[i].ns < 9e18) {
			*out = (int64_t)(time * units[i].ns);
			return ST_OK;
		}
	return err_set(err, ST_INVALID, "%s: \"%s\" is not a time (like 1.5ms)", name, value);
}

/* The statement of --query: @value, or all of the standard input. */
static enum status view_read_query(const char *value, struct view_arguments *out, struct err *err)
{
	char text[sizeof(out->query) + 1];

	if (strcmp(value, "-") == 0) {
		const size_t length = fread(text, 1, sizeof(text) - 1, stdin);

		text[length] = '\0';
		if (ferror(stdin))
			return err_set(err, ST_IO, "--query: the standard input cannot be read");
		if (strlen(text) < length)
			return err_set(err, ST_INVALID, "--query: the statement has a byte 0");
	} else {
		str_copy(text, sizeof(text), value);
	}
	if (text[strspn(text, " \t\r\n;")] == '\0')
		return err_set(err, ST_INVALID, "--query: there is no statement");
	if (strlen(text) >= sizeof(out->query))
		return err_set(err, ST_INVALID,
			       "--query: the statement is longer than 4,095 bytes");
	str_copy(out->query, sizeof(out->query), text);
	return ST_OK;
}

/* Read the settings of the file that --config names, then apply the command line over them. */
static enum status view_read_settings(struct view_arguments *out, struct err *err)
{
	struct view_config *settings = &out->settings;

	view_config_defaults(settings);
	if (!(out->config && strcmp(out->config, VIEW_CONFIG_NONE) == 0) &&
	    view_config_load(settings, out->config, err) != ST_OK)
		return err->status;
	if (out->view != VIEW_UNSAID)
		settings->screen = (enum view_screen)out->view;
	if (out->color)
		settings->color = out->color;
	if (out->theme)
		settings->theme = out->theme;
	if (out->ascii != VIEW_UNSAID)
		settings->ascii = out->ascii ? "always" : "never";
	if (out->mouse != VIEW_UNSAID)
		settings->mouse = out->mouse;
	if (out->follow != VIEW_UNSAID)
		settings->follow = out->follow;
	return ST_OK;
}

static enum status view_parse(struct view_arguments *out, int argc, char **argv, struct err *err)
{
	const struct view_opening *tensor = &out->tensor;
	const char *reports[2] = {NULL, NULL};
	int count = 0;
	const struct cli_words words = {reports, ARRAY_LEN(reports), &count,
					"two reports are enough"};

	*out = (struct view_arguments){.view = VIEW_UNSAID,
				       .format = VIEW_UNSAID,
				       .mouse = VIEW_UNSAID,
				       .ascii = VIEW_UNSAID,
				       .follow = VIEW_UNSAID,
				       .tensor = {.page = VIEW_UNSAID, .step = IPS_NULL},
				       .from_ns = INT64_MIN / 4,
				       .to_ns = INT64_MAX / 4};
	if (cli_parse(&view_cli, argc, argv, NULL, out, &words, err) != ST_OK ||
	    (out->statement && view_read_query(out->statement, out, err) != ST_OK) ||
	    (out->from && view_parse_time("--from", out->from, &out->from_ns, err) != ST_OK) ||
	    (out->to && view_parse_time("--to", out->to, &out->to_ns, err) != ST_OK) ||
	    view_read_settings(out, err) != ST_OK)
		return err->status;
	out->path = reports[0];
	out->target = reports[1];
	if (out->from_ns >= out->to_ns)
		return err_set(err, ST_INVALID, "--from must be before --to");
	if (out->statement && out->view != VIEW_UNSAID && out->view != VIEW_SQL)
		return err_set(err, ST_INVALID, "--query goes only with --view sql");
	if (tensor->key &&
	    ((out->view != VIEW_UNSAID && out->view != VIEW_TENSORS) || out->statement))
		return err_set(err, ST_INVALID, "--tensor goes only with --view tensors");
	if (!tensor->key && (tensor->page != VIEW_UNSAID || tensor->step != IPS_NULL ||
			     tensor->sample > 0 || tensor->head > 0))
		return err_set(err, ST_INVALID,
			       "--page, --step, --sample and --head go only with --tensor KEY");
	if (out->statement)
		out->settings.screen = VIEW_SQL;
	if (tensor->key)
		out->settings.screen = VIEW_TENSORS;
	return ST_OK;
}

/* Return the time range of the spans of @clock (0 host, 1 device); false: the clock has no
 * spans. */
static bool view_extent(const struct prof_track *tracks, int count, int clock, int64_t *from_ns,
			int64_t *to_ns)
{
	*from_ns = INT64_MAX;
	*to_ns = IPS_NULL;
	for (int i = 0; i < count; i++) {
		if (tracks[i].clock != clock || tracks[i].depth < 1)
			continue;
		*from_ns = tracks[i].first_ns < *from_ns ? tracks[i].first_ns : *from_ns;
		*to_ns = tracks[i].last_ns > *to_ns ? tracks[i].last_ns : *to_ns;
	}
	return *from_ns <= *to_ns;
}

static enum status view_compare_range(const struct view_arguments *arguments, int64_t from_ns,
				      int64_t to_ns, struct err *err)
{
	char wanted[FMT_SIZE], edge[FMT_SIZE];

	if (arguments->from && arguments->from_ns >= to_ns)
		return err_set(err, ST_INVALID, "--from %s: the timeline ends at %s",
			       fmt_ns(wanted, arguments->from_ns), fmt_ns(edge, to_ns));
	if (arguments->to && arguments->to_ns <= from_ns)
		return err_set(err, ST_INVALID, "--to %s: the timeline begins at %s",
			       fmt_ns(wanted, arguments->to_ns), fmt_ns(edge, from_ns));
	return ST_OK;
}

/* Fail if no span lies between --from and --to. A recording without spans is not checked. */
static enum status view_check_range(struct prof_db *db, const struct view_arguments *arguments,
				    struct err *err)
{
	struct prof_track *tracks;
	struct arena arena = {0};
	int64_t from_ns, to_ns;
	enum status status;
	int count;

	if (!arguments->from && !arguments->to)
		return ST_OK;
	status = prof_timeline_tracks(db, &arena, &tracks, &count, err);
	if (status == ST_OK && (view_extent(tracks, count, 1, &from_ns, &to_ns) ||
				view_extent(tracks, count, 0, &from_ns, &to_ns)))
		status = view_compare_range(arguments, from_ns, to_ns, err);
	arena_fini(&arena);
	return status;
}

static enum status view_print(struct view_session *session, const struct view_arguments *arguments,
			      struct err *err)
{
	enum status status;

	if (arguments->format == VIEW_AS_SVG)
		status = view_session_print_svg(session, arguments->settings.screen,
						arguments->width, stdout, err);
	else
		status = view_session_print(session, arguments->settings.screen,
					    arguments->format == VIEW_UNSAID
						    ? REPORT_AS_TEXT
						    : (enum report_format)arguments->format,
					    arguments->width, stdout, err);
	if (fflush(stdout) != 0 && status == ST_OK)
		status = err_set(err, ST_IO, "write: %s", strerror(errno));
	if (status != ST_OK)
		return status;
	/* CSV and query rows have no field for a message. */
	if (session->context.message[0] &&
	    (session->context.query || arguments->format == REPORT_AS_CSV))
		fprintf(stderr, "%s: %s\n", view_cli.name, session->context.message);
	return ST_OK;
}

static int view_run(struct view_session *session, const struct view_arguments *arguments)
{
	const struct view_config *config = &arguments->settings;
	const struct view_term_params params = {.colour = cli_colour(stdout, config->color),
						.mouse = config->mouse};
	struct err err = {0};
	enum status status = view_check_range(session->source.db, arguments, &err);
	const char *term = getenv("TERM");
	int signal_number = 0;

	if (status != ST_OK)
		return cli_fail(&view_cli, &err);
	session->context.ranged = arguments->from || arguments->to;
	session->context.from_ns = arguments->from_ns;
	session->context.to_ns = arguments->to_ns;
	session->context.opening = arguments->tensor;
	session->context.query = arguments->query[0] ? arguments->query : NULL;
	session->theme = view_config_theme(config, getenv("COLORFGBG"));
	/* Without a terminal, or on a dumb one, text is printed. */
	if (arguments->format != VIEW_UNSAID || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO) ||
	    !term || !term[0] || strcmp(term, "dumb") == 0) {
		status = view_print(session, arguments, &err);
	} else {
		session->context.follow = config->follow && !view_session_over(session);
		view_session_show(session, config->screen);
		status = view_term_run(session, &params, &signal_number, &err);
	}
	if (status != ST_OK)
		return cli_fail(&view_cli, &err);
	/* Ctrl-C is a normal way to quit; other signals set the exit code as shells do. */
	return signal_number == 0 || signal_number == SIGINT ? 0 : 128 + signal_number;
}

static int view_start(const struct view_arguments *arguments)
{
	struct view_session session;
	char newest[FS_PATH_SIZE];
	struct err err = {0};
	const char *path = arguments->path, *target = arguments->target;
	const char *ascii = arguments->settings.ascii;
	int code;

	if (!path) {
		if (view_source_newest(".", newest, &err) != ST_OK)
			return cli_fail(&view_cli, &err);
		path = newest;
	}
	if (report_find_recording(&path, view_cli.name, &err) != ST_OK ||
	    (target && report_find_recording(&target, view_cli.name, &err) != ST_OK) ||
	    view_session_open(&session, path, target,
			      strcmp(ascii, "always") == 0 ||
				      (strcmp(ascii, "auto") == 0 && !view_term_unicode()),
			      &err) != ST_OK)
		return cli_fail(&view_cli, &err);
	code = view_run(&session, arguments);
	view_session_close(&session);
	return code;
}

int view_command(int argc, char **argv)
{
	struct view_arguments arguments;
	struct str keys = {0};
	struct err err = {0};
	int code = 0;

	cli_locale();
	view_keys_manual(&keys);
	view_cli.details = keys.failed ? NULL : str_peek(&keys);
	if (!cli_standard(&view_cli, argc, argv, stdout)) {
		report_find_choose(&argc, argv, 2, view_cli.name, stderr);
		code = view_parse(&arguments, argc, argv, &err) == ST_OK
			       ? view_start(&arguments)
			       : cli_fail(&view_cli, &err);
	}
	view_cli.details = NULL;
	str_free(&keys);
	return code;
}
