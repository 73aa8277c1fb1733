/*
 * Print the summary of a run as text. Host figures are measured; device figures are simulated, and
 * each of their headings says so.
 *
 * Threading: none. Ownership: the caller owns the summary.
 */
#include "reports/summary/report_summary.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "reports/table/report_internal.h"

#define WIDTH_DEFAULT 80
#define LABEL         "  %-10s "
#define LABEL_WIDTH   13

struct print {
	const struct report_summary *summary;
	FILE *out;
	int width;
	bool failed;
};

/* Print one line, cut to the width. */
static void print_line(struct print *print, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void print_line(struct print *print, const char *format, ...)
{
	char text[4096];
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (length < 0) {
		print->failed = true;
		return;
	}
	for (char *at = text; *at; at++)
		if (*at == '\n' || *at == '\t')
			*at = ' ';
	text[utf8_show(text, strlen(text), "")] = '\0';

	if (utf8_columns(text) <= print->width)
		fprintf(print->out, "%s\n", text);
	else
		fprintf(print->out, "%.*s...\n", utf8_cut(text, print->width - 3), text);
}

static const char *text_or_dash(const char *text)
{
	return text ? text : "-";
}

static const char *format_count(char out[FMT_SIZE], int64_t value)
{
	if (value == IPS_NULL)
		return "-";
	return fmt_count(out, value);
}

/* "1 epoch", "2 epochs" */
static const char *format_count_of(char out[2 * FMT_SIZE], int64_t value, const char *thing)
{
	char count[FMT_SIZE];

	snprintf(out, 2 * FMT_SIZE, "%.40s %.40s%s", format_count(count, value), thing,
		 value == 1 ? "" : "s");
	return out;
}

/* Shorten a path at its start: its end identifies it. */
static const char *shorten_path(const struct print *print, const char *path, int columns,
				char out[4096])
{
	int width = utf8_columns(path), room = print->width - columns;

	if (width <= room || room < 8)
		return path;
	snprintf(out, 4096, "...%s", path + utf8_cut(path, width - room + 3));
	return out;
}

struct position {
	const char *name;
	int64_t value;
};

/* Format the known positions: ", epoch 1, step 7". */
static const char *format_positions(char out[160], const struct position *positions, size_t count)
{
	size_t length = 0;

	out[0] = '\0';
	for (size_t i = 0; i < count; i++)
		if (positions[i].value != IPS_NULL && length < 120)
			length += (size_t)snprintf(out + length, 160 - length, ", %.16s %" PRId64,
						   positions[i].name, positions[i].value);
	return out;
}

/* ---- the run --------------------------------------------------------------------------------- */

const char *report_summary_started(int64_t start_epoch_ns, char out[FMT_SIZE])
{
	const time_t seconds = (time_t)(start_epoch_ns / 1000000000);
	struct tm local;

	if (start_epoch_ns == IPS_NULL || !localtime_r(&seconds, &local) ||
	    !strftime(out, FMT_SIZE, "%Y-%m-%d %H:%M:%S", &local))
		return NULL;
	return out;
}

/* Print the missing parts of a file that is unfinished or empty. */
static void print_missing(struct print *print)
{
	const struct report_summary *s = print->summary;
	const struct report_reached *at = &s->reached;
	const struct position positions[] = {{"epoch", at->epoch},
					     {"execution", at->execution},
					     {"weight update", at->weight_update},
					     {"step", at->step}};
	char text[FMT_SIZE], where[160];

	if (at->known)
		print_line(print, LABEL "%s; not ended", "reached",
			   format_positions(where, positions, ARRAY_LEN(positions)) + 2);
	if (!s->whole && !s->live && s->last_commit_ns > 0)
		print_line(print, LABEL "what came after the last commit, at %s", "missing",
			   fmt_ns(text, s->last_commit_ns));
	else if (!s->whole && !s->live)
		print_line(print, LABEL "what came after the last commit, which has no event",
			   "missing");
	if (s->absent)
		print_line(print, LABEL "%s", "none of", s->absent);
}

static void print_header(struct print *print)
{
	const struct report_summary *s = print->summary;
	char path[4096], duration[FMT_SIZE], stamp[FMT_SIZE];
	const char *started = report_summary_started(s->start_epoch_ns, stamp);

	print_line(print, "Report");
	print_line(print, LABEL "%s", "file", shorten_path(print, s->path, 13, path));
	print_line(print, LABEL "%s", "command", text_or_dash(s->command));
	if (str_starts_with(s->state, "killed") || str_starts_with(s->state, "failed")) {
		if (s->failure)
			print_line(print, LABEL "failed: %s", "state", s->failure);
		else
			print_line(print,
				   LABEL "killed: the writer died before the file was complete.",
				   "state");
		print_line(print, LABEL "`ipu-report %s repair` finishes the file.", "",
			   shorten_path(print, s->path, 52, path));
	} else {
		print_line(print, LABEL "%s", "state", s->state);
	}
	if (s->note)
		print_line(print, LABEL "%s", "read", s->note);
	print_line(print, LABEL "%s, %s recorded%s", "started", started ? started : "-",
		   s->duration_ns > 0 ? fmt_ns(duration, s->duration_ns) : "nothing",
		   s->origin == PROF_FROM_TRACE ? ", an imported trace" : " (host)");
	print_missing(print);
}

/* Return the length up to and including the next comma. */
static size_t clause_length(const char *text)
{
	const size_t length = strcspn(text, ",");

	return length + (text[length] == ',');
}

/* Print as many clauses on a line as fit. */
static void print_parts(struct print *print, const char *parts)
{
	const size_t room = (size_t)max(print->width - LABEL_WIDTH, 1);

	for (const char *name = "parts"; *parts; name = "") {
		size_t length = clause_length(parts), next;

		while ((next = clause_length(parts + length)) > 0 && length + next <= room)
			length += next;
		print_line(print, LABEL "%.*s", name, (int)length, parts);
		parts += length + strspn(parts + length, " ");
	}
}

static void print_training(struct print *print)
{
	const struct report_summary *s = print->summary;
	char a[2 * FMT_SIZE], b[2 * FMT_SIZE], c[2 * FMT_SIZE], d[2 * FMT_SIZE];
	char path[4096];

	/* A recording of another program has spans only. */
	if (!s->model && !s->stages && !s->executions)
		return;
	fputc('\n', print->out);
	print_line(print, "Training");
	print_line(print, LABEL "%s; batch size %s, gradient accumulation %s", "model",
		   text_or_dash(s->model), format_count(a, s->batch_size),
		   format_count(b, s->gradient_accumulation));
	print_line(print, LABEL "%s", "data", text_or_dash(s->dataset));
	if (s->stages > 1 || s->replicas > 1)
		print_line(print, LABEL "%s on %s, %s; schedule %s", "pipeline",
			   format_count_of(a, s->stages, "stage"),
			   format_count_of(b, s->ipus, "IPU"),
			   format_count_of(c, s->replicas, "replica"), text_or_dash(s->schedule));
	if (s->part > 1)
		print_line(print, LABEL "%s of a training; it goes on after step %s", "part",
			   format_count(a, s->part), format_count(b, s->after_step));
	if (s->part > 1 && s->continues && s->continues[0])
		print_line(print, LABEL "%s", "continues",
			   shorten_path(print, s->continues, 13, path));
	if (s->parts)
		print_parts(print, s->parts);
	if (s->ranks != IPS_NULL)
		print_line(print, LABEL "%s: counts and means below are of all of them", "merged",
			   format_count_of(a, s->ranks, "rank"));
	if (s->ipus > 0)
		print_line(print, LABEL "%s, %s, simulated (%s)", "device",
			   format_count_of(a, s->ipus, "IPU"), text_or_dash(s->target),
			   text_or_dash(s->cost_model));
	if (s->arithmetic.flops_s > 0 && s->arithmetic.peak_flops_s > 0)
		print_line(print, LABEL "%s of %s (%s of the peak), simulated", "arithmetic",
			   fmt_flops(a, s->arithmetic.flops_s),
			   fmt_flops(b, s->arithmetic.peak_flops_s),
			   fmt_percent(c, s->arithmetic.flops_s / s->arithmetic.peak_flops_s));
	print_line(print, LABEL "%s%s", "host", format_count_of(a, s->host_threads, "thread"),
		   s->oversubscribed ? "; oversubscribed: host times include waiting for a core"
				     : "");
	print_line(print, LABEL "%s, %s, %s, %s", "ran", format_count_of(a, s->epochs, "epoch"),
		   format_count_of(b, s->executions, "execution"),
		   format_count_of(c, s->steps, "step"),
		   format_count_of(d, s->weight_updates, "weight update"));
	if (s->ipus > 0 && s->traced > 0 && s->untraced > 0)
		print_line(print,
			   LABEL "device lanes hold %s of %s executions; stage_timings has all",
			   "timeline", format_count(a, s->traced),
			   format_count(b, s->traced + s->untraced));
}

static void print_metric(struct print *print, const char *label, double loss, bool nan,
			 double accuracy)
{
	char a[FMT_SIZE], b[FMT_SIZE];

	if (isnan(loss) && !nan && isnan(accuracy))
		return;
	print_line(print, LABEL "loss %s, accuracy %s", label,
		   nan           ? "nan"
		   : isnan(loss) ? "-"
				 : fmt_real(a, loss),
		   fmt_percent(b, accuracy));
}

/* ---- stages ---------------------------------------------------------------------------------- */

static const char *format_ns_or_dash(char out[FMT_SIZE], int64_t ns)
{
	/* 0 means that nothing was recorded. */
	return ns ? fmt_ns(out, ns) : "-";
}

static void print_stages(struct print *print)
{
	const struct report_summary *s = print->summary;
	char device[64];

	if (!s->stages)
		return;
	snprintf(device, sizeof(device), "device, simulated%s%.20s%s", s->cost_model ? " (" : "",
		 s->cost_model ? s->cost_model : "", s->cost_model ? ")" : "");
	fputc('\n', print->out);
	print_line(print, "Stages: time in training, summed over micro-batches and replicas");
	print_line(print, "  %5s %4s %8s %-27s  %s", "", "", "micro-", "  host, measured", device);
	print_line(print, "  %5s %4s %8s %9s%9s%9s %9s%9s%9s", "stage", "IPU", "batches", "forward",
		   "backward", "update", "forward", "backward", "update");
	for (int64_t i = 0; i < s->stages; i++) {
		const struct report_stage *stage = &s->stage[i];
		char n[6][FMT_SIZE], count[FMT_SIZE], ipu[FMT_SIZE];

		snprintf(ipu, sizeof(ipu), "%" PRId64, stage->ipu);
		print_line(print, "  %5" PRId64 " %4s %8s %9s%9s%9s %9s%9s%9s", stage->stage,
			   stage->ipu == IPS_NULL ? "-" : ipu, format_count(count, stage->count),
			   format_ns_or_dash(n[0], stage->forward_ns[0]),
			   format_ns_or_dash(n[1], stage->backward_ns[0]),
			   format_ns_or_dash(n[2], stage->update_ns[0]),
			   format_ns_or_dash(n[3], stage->forward_ns[1]),
			   format_ns_or_dash(n[4], stage->backward_ns[1]),
			   format_ns_or_dash(n[5], stage->update_ns[1]));
	}
	for (int64_t i = 0; i < s->stages; i++)
		if (s->stage[i].layers)
			print_line(print, "  stage %" PRId64 ": %s", s->stage[i].stage,
				   s->stage[i].layers);
}

/* ---- the bubble ------------------------------------------------------------------------------ */

static const char *format_share(char out[FMT_SIZE], const struct report_bubble_mean *bubble,
				double share)
{
	return bubble->known ? fmt_percent(out, share) : "-";
}

static void print_bubble_rows(struct print *print)
{
	static const struct {
		const char *name;
		size_t measured, theory;
	} rows[] = {
		{"bubble", offsetof(struct report_bubble_mean, idle_fraction),
		 offsetof(struct report_bubble_mean, theory_idle_fraction)},
		{"bubble_rate", offsetof(struct report_bubble_mean, bubble_rate),
		 offsetof(struct report_bubble_mean, theory_bubble_rate)},
		{"bubble_over_ideal", offsetof(struct report_bubble_mean, bubble_over_ideal),
		 offsetof(struct report_bubble_mean, theory_bubble_over_ideal)},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[4][FMT_SIZE];
		const char *shown[4];

		for (int clock = 0; clock < 2; clock++) {
			const struct report_bubble_mean *bubble = &print->summary->bubble[clock];
			double measured, theory;

			memcpy(&measured, (const char *)bubble + rows[i].measured, sizeof(double));
			memcpy(&theory, (const char *)bubble + rows[i].theory, sizeof(double));
			shown[2 * clock] = format_share(text[2 * clock], bubble, measured);
			shown[2 * clock + 1] = format_share(text[2 * clock + 1], bubble, theory);
		}
		print_line(print, "  %-18s %12s %12s   %12s %12s", rows[i].name, shown[0], shown[1],
			   shown[2], shown[3]);
	}
}

static void print_bubble_parts(struct print *print)
{
	static const struct {
		const char *name;
		size_t share;
	} rows[] = {
		{"ramp-up", offsetof(struct report_bubble_mean, ramp_up)},
		{"ramp-down", offsetof(struct report_bubble_mean, ramp_down)},
		{"imbalance", offsetof(struct report_bubble_mean, imbalance)},
		{"communication", offsetof(struct report_bubble_mean, communication)},
	};

	double together[2] = {0, 0};
	char text[2][FMT_SIZE];
	const char *shown[2];

	print_line(print, "  the bubble by cause (of IPUs x makespan):");
	for (size_t i = 0; i <= ARRAY_LEN(rows); i++) {
		for (int clock = 0; clock < 2; clock++) {
			const struct report_bubble_mean *bubble = &print->summary->bubble[clock];
			double share = together[clock];

			if (i < ARRAY_LEN(rows))
				memcpy(&share, (const char *)bubble + rows[i].share,
				       sizeof(double));
			together[clock] += share;
			shown[clock] = format_share(text[clock], bubble, share);
		}
		print_line(print, "    %-16s %12s %12s   %12s",
			   i < ARRAY_LEN(rows) ? rows[i].name : "in all", shown[0], "", shown[1]);
	}
}

static void print_bubble(struct print *print)
{
	const struct report_summary *s = print->summary;
	char a[FMT_SIZE], b[FMT_SIZE];

	if (!s->bubble[0].known && !s->bubble[1].known)
		return;
	fputc('\n', print->out);
	print_line(print, "Bubble of all pipeline runs (host %s, device %s)",
		   format_count(a, s->bubble[0].runs), format_count(b, s->bubble[1].runs));
	print_line(print, "  bubble is of all runs together; the other two are means of the runs");
	print_line(print, "  %-18s %25s   %25s", "", "host, measured", "device, simulated");
	print_line(print, "  %-18s %12s %12s   %12s %12s", "", "run", "theory", "run", "theory");
	print_bubble_rows(print);
	print_bubble_parts(print);
}

/* ---- health ---------------------------------------------------------------------------------- */

static void print_first_nonfinite(struct print *print)
{
	const struct report_bad *bad = &print->summary->bad;
	const bool stepped = bad->step != IPS_NULL;
	const struct position positions[] = {
		{"epoch", bad->epoch},
		{stepped ? "step" : "weight update", stepped ? bad->step : bad->weight_update},
		{"stage", bad->stage},
		{"replica", bad->replica},
	};
	char where[160], at[FMT_SIZE], element[FMT_SIZE] = "";

	if (bad->element >= 0)
		snprintf(element, sizeof(element), "[%" PRId64 "]", bad->element);
	print_line(print, "  %-22s %s in %s%s", "first bad number", text_or_dash(bad->value),
		   text_or_dash(bad->key), element);
	print_line(print, "  %-22s at %s%s, phase %s", "", fmt_ns(at, bad->time_ns),
		   format_positions(where, positions, ARRAY_LEN(positions)),
		   text_or_dash(bad->phase));
}

/* Print nothing if no rule was enabled and nothing is wrong. */
static void print_health(struct print *print)
{
	const struct report_summary *s = print->summary;
	char a[2 * FMT_SIZE], b[FMT_SIZE];

	if (s->rules <= 0 && s->broken_count == 0 && !s->bad.known && s->lowered <= 0)
		return;
	fputc('\n', print->out);
	print_line(print, "Health: %s in force, %s broken", format_count_of(a, s->rules, "rule"),
		   s->broken_count == 0 ? "none" : format_count(b, s->broken_count));
	for (int i = 0; i < s->broken_count; i++) {
		const struct report_broken *broken = &s->broken[i];
		const bool stepped = broken->step != IPS_NULL;
		const struct position positions[] = {
			{"epoch", broken->epoch},
			{stepped ? "step" : "weight update",
			 stepped ? broken->step : broken->weight_update},
		};
		char hits[2 * FMT_SIZE], where[160];

		print_line(print, "  %-22s %s; first %s%s", text_or_dash(broken->rule),
			   format_count_of(hits, broken->hits, "hit"), text_or_dash(broken->key),
			   format_positions(where, positions, ARRAY_LEN(positions)));
	}
	if (s->bad.known)
		print_first_nonfinite(print);
	if (s->lowered > 0)
		print_line(print, "  %-22s %s from %s on: %s", "tiers lowered",
			   format_count_of(a, s->lowered, "tensor"), fmt_ns(b, s->lowered_ns),
			   text_or_dash(s->lowered_why));
}

/* ---- recording ------------------------------------------------------------------------------- */

static void print_recording(struct print *print)
{
	const struct report_summary *s = print->summary;
	char a[FMT_SIZE], b[FMT_SIZE], c[FMT_SIZE], d[FMT_SIZE];

	fputc('\n', print->out);
	print_line(print, "Recording");
	print_line(print, LABEL "%s spans of %s events, %s dropped%s", "events",
		   format_count(a, s->spans), format_count(b, s->events),
		   format_count(c, s->dropped), s->dropped ? " (spans are missing)" : "");
	if (s->tracks_refused > 0)
		print_line(print, LABEL "%s more than a recording may have are missing", "tracks",
			   format_count(a, s->tracks_refused));
	if (s->names_cut > 0)
		print_line(print, LABEL "%s cut, or called \"(more names)\"", "names",
			   format_count(a, s->names_cut));
	print_line(print, LABEL "%s with %s rows of statistics", "tensors",
		   format_count(a, s->tensors), format_count(b, s->tensor_rows));
	if (s->peak_resident_bytes > 0)
		print_line(print, LABEL "%s at most, of the process on the host", "memory",
			   fmt_bytes(a, (uint64_t)s->peak_resident_bytes));
	print_line(print, LABEL "%s", "file size",
		   fmt_bytes(a, (uint64_t)max(s->database_bytes, 0)));
	if (s->record_ns != IPS_NULL)
		print_line(print, LABEL "%s of the run (%s, estimated); writer's thread %s",
			   "own cost", fmt_percent(a, s->overhead_fraction),
			   fmt_ns(b, s->record_ns), fmt_ns(d, s->write_ns));
}

enum status report_summary_print(const struct report_summary *summary, int width, FILE *out,
				 struct err *err)
{
	struct print print = {
		.summary = summary, .out = out, .width = width > 0 ? width : WIDTH_DEFAULT};

	print.width = max(print.width, 8);
	print_header(&print);
	print_training(&print);
	print_metric(&print, "trained", summary->loss, summary->loss_nan, summary->accuracy);
	print_metric(&print, "evaluated", summary->evaluate_loss, summary->evaluate_loss_nan,
		     summary->evaluate_accuracy);
	print_stages(&print);
	print_bubble(&print);
	print_health(&print);
	print_recording(&print);
	if (summary->option_count) {
		fputc('\n', print.out);
		print_line(&print, "Facts");
		for (int i = 0; i < summary->option_count; i++)
			print_line(&print, "  %-22s %s", summary->options[i].name,
				   summary->options[i].value);
	}

	if (print.failed)
		return err_set(err, ST_FAILED, "the summary could not be formatted");
	if (fflush(out) || ferror(out))
		return err_set(err, ST_IO, "write: %s", strerror(errno));
	return ST_OK;
}
