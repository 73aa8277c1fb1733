/*
 * Insights on the recording itself, and on the health of the run.
 *
 * Threading: none. Ownership: texts belong to the insights' arena, or are literals.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "reports/insights/report_insights_internal.h"

static const char sql_meta[] =
	"SELECT key, value FROM meta WHERE key IN ('state', 'failure', 'repaired')";
static const char sql_overhead[] =
	"SELECT sum(events) AS events, sum(dropped) AS dropped,\n"
	"       sum(record_ns_estimate) AS record_ns, sum(write_ns) AS write_ns,\n"
	"       max(time_ns) AS time_ns FROM overhead_sums";
static const char sql_nonfinite[] = REPORT_FIRST_BAD;
static const char sql_health[] =
	"SELECT rule, sum(hits) AS hits, min(time_ns) AS first_ns, coalesce(key, layer) AS key,\n"
	"       epoch, step FROM health_sums GROUP BY rule ORDER BY 3, 1";
static const char sql_tiers[] =
	"SELECT queue, key, min(time_ns) AS time_ns, why FROM tensor_tiers\n"
	"WHERE time_ns IS NOT NULL GROUP BY queue, key";

/* Format the known positions: "epoch 1, step 7". */
static const char *position_text(struct insight_facts *facts, int64_t epoch, int64_t weight_update,
				 int64_t step)
{
	char a[48] = "", b[48] = "";

	if (epoch != IPS_NULL)
		snprintf(a, sizeof(a), "epoch %" PRId64, epoch);
	if (step != IPS_NULL)
		snprintf(b, sizeof(b), "step %" PRId64, step);
	else if (weight_update != IPS_NULL)
		snprintf(b, sizeof(b), "weight update %" PRId64, weight_update);
	return report__insight_text(facts, "%s%s%s", a, *a && *b ? ", " : "", b);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Describe what an unfinished file lacks. */
static const char *missing_text(struct insight_facts *facts)
{
	char at[FMT_SIZE];

	if (facts->summary.last_commit_ns <= 0)
		return "how much of the run is missing is not known";
	return report__insight_text(facts, "what came after the last commit, at %s, is missing",
				    fmt_ns(at, facts->summary.last_commit_ns));
}

/* Add an insight on the state of the file. */
static struct report_insight *add_state(struct insight_facts *facts, const char *id,
					enum report_insight_severity severity)
{
	struct report_insight *insight =
		report__insight_add(facts, id, severity, "meta", "", sql_meta);

	report__insight_number(insight, "last_commit_ns", (double)facts->summary.last_commit_ns,
			       REPORT_NS);
	if (severity == REPORT_INSIGHT_PROBLEM) {
		insight->share = 1;
		insight->remedy = report__insight_text(
			facts, "`ipu-report %.1000s repair` finishes the file.",
			facts->summary.path);
	}
	return insight;
}

void report__insight_writer_failed(struct insight_facts *facts)
{
	const struct report_summary *s = &facts->summary;

	if (!s->whole && !s->live && s->failure)
		add_state(facts, "writer_failed", REPORT_INSIGHT_PROBLEM)->sentence =
			report__insight_text(facts, "Writing failed: %.300s; %s.", s->failure,
					     missing_text(facts));
}

void report__insight_killed(struct insight_facts *facts)
{
	const struct report_summary *s = &facts->summary;
	const struct report_reached *at = &s->reached;

	if (s->whole || s->live || s->failure || prof_db_state(facts->db) == PROF_COMPLETE)
		return;
	add_state(facts, "killed", REPORT_INSIGHT_PROBLEM)->sentence = report__insight_text(
		facts, "The recording's writer died before the file was complete%s%s: %s.",
		at->known ? ", in " : "",
		at->known ? position_text(facts, at->epoch, at->weight_update, at->step) : "",
		missing_text(facts));
}

void report__insight_still_recording(struct insight_facts *facts)
{
	char at[FMT_SIZE];

	if (facts->summary.live)
		add_state(facts, "still_recording", REPORT_INSIGHT_NOTE)->sentence =
			report__insight_text(
				facts, "The run goes on: this is of what was committed until %s.",
				fmt_ns(at, facts->summary.last_commit_ns));
}

void report__insight_repaired(struct insight_facts *facts)
{
	const struct report_summary *s = &facts->summary;

	if (s->whole || s->live || prof_db_state(facts->db) != PROF_COMPLETE)
		return;
	add_state(facts, "repaired", REPORT_INSIGHT_NOTE)->sentence =
		report__insight_text(facts, "The file was finished after its writer %s%.300s: %s.",
				     s->failure ? "failed: " : "died", s->failure ? s->failure : "",
				     missing_text(facts));
}

void report__insight_nothing(struct insight_facts *facts)
{
	const struct report_summary *s = &facts->summary;
	const bool metrics = s->loss_nan || !isnan(s->loss) || !isnan(s->accuracy);
	const char *some = metrics ? "Metrics" : NULL; /* what there is without times */
	struct report_insight *insight;

	if (s->tensors > 0)
		some = metrics ? "Tensors and metrics" : "Tensors";
	if (s->spans > 0 || s->executions > 0 || facts->memory_count > 0 ||
	    facts->stage_count[0] > 0 || facts->stage_count[1] > 0)
		return;
	insight = report__insight_add(facts, "nothing", REPORT_INSIGHT_NOTE, "meta", "",
				      "SELECT count(*) AS executions FROM executions");
	insight->sentence =
		s->origin == PROF_FROM_TRACE
			? "The trace that was imported has no span."
			: "Nothing was recorded of a run: no span, no execution, no stage.";
	insight->remedy = "Run `ipu-train` with POPLAR_ENGINE_OPTIONS='{\"autoReport.all\": "
			  "\"true\"}'.";
	if (!some && s->origin == PROF_FROM_TRAINER)
		return;
	insight->remedy = s->origin == PROF_FROM_TRACE
				  ? NULL
				  : "Spans around the parts of a step (ipuscope/profiler.h) tell "
				    "where its time goes.";
	if (!some)
		return;
	/* A recording of another trainer's tensors: do not advise running ipu-train. */
	insight->sentence = report__insight_text(
		facts, "%s were recorded, and no times: no span, no execution, no stage.", some);
}

/* ---- recording ------------------------------------------------------------------------------- */

void report__insight_lost_events(struct insight_facts *facts)
{
	const struct report_summary *s = &facts->summary;
	const double all = (double)s->events + (double)s->dropped;
	struct report_insight *insight;
	char count[FMT_SIZE], share[FMT_SIZE], refused[FMT_SIZE], most[FMT_SIZE],
		all_names[FMT_SIZE];

	if (s->dropped <= 0 && s->tracks_refused <= 0 && s->names_cut <= 0)
		return;
	insight = report__insight_add(facts, "lost_events", REPORT_INSIGHT_PROBLEM, "overhead", "",
				      sql_overhead);
	insight->share = all > 0 ? (double)s->dropped / all : 0;
	if (s->tracks_refused > 0) {
		insight->sentence = report__insight_text(
			facts,
			"%s tracks are missing, since a recording may have %s, and %s of their "
			"names; of the others %s events were dropped.",
			fmt_count(refused, s->tracks_refused), fmt_count(most, IPS_TRACKS_MOST),
			fmt_bytes(all_names, IPS_NAMES_MOST), fmt_count(count, s->dropped));
		insight->remedy =
			"One track for each thread or device, not for each task "
			"(`ips_thread_track()` gives a track of a thread that has ended to "
			"the next one).";
		return;
	}
	if (s->dropped <= 0) {
		insight->sentence = report__insight_text(
			facts,
			"%s names were cut after %s bytes, or are called \"" IPS_MORE_NAMES
			"\" since all names take %s at most: different things may look the same.",
			fmt_count(count, s->names_cut), fmt_count(most, IPS_NAME_MOST),
			fmt_bytes(all_names, IPS_NAMES_MOST));
		report__insight_number(insight, "names_cut", (double)s->names_cut, REPORT_COUNT);
		insight->remedy = "Short names of call sites, tracks and tensors; what differs "
				  "from call to call as an argument (`ips_span_arg_text()`).";
		return;
	}
	insight->sentence = report__insight_text(
		facts,
		"%s events, %s of all, were dropped, since their ring was full or their times "
		"contradict those before: spans are missing. Sums, stage timings and tensors are "
		"complete.",
		fmt_count(count, s->dropped), fmt_percent(share, insight->share));
	report__insight_number(insight, "dropped", (double)s->dropped, REPORT_COUNT);
	report__insight_number(insight, "dropped_share", insight->share, REPORT_FRACTION);
	insight->remedy = facts->has & INSIGHT_TRAINING
				  ? "A faster disk for the report (autoReport.directory); fewer "
				    "threads that compete for the writer's core (`--host.threads`)."
				  : "A larger ring_slots in ips_recording_params or "
				    "ips_track_params.";
}

void report__insight_recording_cost(struct insight_facts *facts)
{
	const struct report_summary *s = &facts->summary;
	struct report_insight *insight;
	char share[FMT_SIZE], record[FMT_SIZE], write[FMT_SIZE];

	if (!(s->overhead_fraction > report_insight_limit(REPORT_LIMIT_RECORDING)) ||
	    (double)s->duration_ns < 1e9 * report_insight_limit(REPORT_LIMIT_RECORDING_RUN))
		return;
	insight = report__insight_add(facts, "recording_cost", REPORT_INSIGHT_ADVICE, "overhead",
				      "", sql_overhead);
	insight->share = s->overhead_fraction;
	insight->sentence =
		report__insight_text(facts,
				     "Recording itself took %s of the run, %s by estimate; the "
				     "writer's thread worked %s beside it.",
				     fmt_percent(share, s->overhead_fraction),
				     fmt_ns(record, s->record_ns), fmt_ns(write, s->write_ns));
	report__insight_number(insight, "overhead_fraction", s->overhead_fraction, REPORT_FRACTION);
	report__insight_number(insight, "record_ns", (double)s->record_ns, REPORT_NS);
	report__insight_number(insight, "write_ns", (double)s->write_ns, REPORT_NS);
	if (facts->has & INSIGHT_TRAINING)
		insight->remedy = "A lower tier, as `--outfeed.capture counts`, or rules with "
				  "\"every\"; a smaller "
				  "autoReport.executionProfileProgramRunCount.";
}

void report__insight_tiers_lowered(struct insight_facts *facts)
{
	const struct report_summary *s = &facts->summary;
	struct report_insight *insight;
	char count[FMT_SIZE], at[FMT_SIZE];

	if (s->lowered <= 0)
		return;
	insight = report__insight_add(facts, "tiers_lowered", REPORT_INSIGHT_ADVICE, "tensor_tiers",
				      "", sql_tiers);
	insight->subject_kind = "tensors";
	insight->share = s->tensors > 0 ? (double)s->lowered / (double)s->tensors : 0;
	insight->sentence = report__insight_text(
		facts,
		"%s tensor%s less kept of %s than was asked for, from %s on: %.100s. Later "
		"statistics are coarser, or missing.",
		fmt_count(count, s->lowered), s->lowered == 1 ? " has" : "s have",
		s->lowered == 1 ? "it" : "them", fmt_ns(at, s->lowered_ns),
		s->lowered_why ? s->lowered_why : "the reason is not recorded");
	report__insight_number(insight, "tensors_lowered", (double)s->lowered, REPORT_COUNT);
	report__insight_number(insight, "first_ns", (double)s->lowered_ns, REPORT_NS);
	insight->remedy =
		facts->has & INSIGHT_TRAINING
			? "A greater `--outfeed.budget`; rules in `outfeed.capture` for "
			  "fewer tensors, or with \"every\"."
			: "A greater budget in ips_outfeed_params; rules in its `capture` "
			  "for fewer tensors, or with \"every\".";
}

/* ---- health ---------------------------------------------------------------------------------- */

void report__insight_first_nonfinite(struct insight_facts *facts)
{
	const struct report_bad *bad = &facts->summary.bad;
	struct report_insight *insight;
	char element[48] = "", key[INSIGHT_NAME];

	if (!bad->known)
		return;
	if (bad->element >= 0)
		snprintf(element, sizeof(element), ", element %" PRId64, bad->element);
	insight = report__insight_add(facts, "first_nonfinite", REPORT_INSIGHT_PROBLEM,
				      "nonfinite_trail", "", sql_nonfinite);
	insight->subject_kind = "tensor";
	insight->subject = bad->key ? report__insight_text(facts, "%s", bad->key) : NULL;
	str_shorten(key, sizeof(key), bad->key ? bad->key : "a tensor");
	insight->share = 1;
	insight->sentence = report__insight_text(
		facts,
		"The first number that is not finite is %.8s in %s%s%.100s%s, at %s%s%.4s. All "
		"that is computed from it is worthless.",
		bad->value ? bad->value : "one", key, bad->layer ? " of layer " : "",
		bad->layer ? bad->layer : "", element,
		position_text(facts, bad->epoch, bad->weight_update, bad->step),
		bad->phase ? ", phase " : "", bad->phase ? bad->phase : "");
	report__insight_number(insight, "time_ns", (double)bad->time_ns, REPORT_NS);
	insight->remedy =
		facts->has & INSIGHT_TRAINING
			? "The view nonfinite_trail has what led there. A lower learning "
			  "rate (`--compile.optimizer`), no logarithm or division of what "
			  "may be 0; `--health.stop nonfinite` ends such a run at once."
			: "The view nonfinite_trail has what led there. A lower learning "
			  "rate, no logarithm or division of what may be 0.";
}

void report__insight_loss_nonfinite(struct insight_facts *facts)
{
	static const char sql[] =
		"SELECT mode, name, last_epoch, last_step, last_value, last_time_ns\n"
		"FROM metric_sums WHERE name = 'loss' AND mode = 'train'\n"
		"  AND (last_value IS NULL OR abs(last_value) > 1e308)\n"
		"ORDER BY last_epoch DESC LIMIT 1";
	struct report_table table;
	struct report_insight *insight;

	if (facts->summary.bad.known || !report__insight_rows(facts, &table, sql))
		return;
	insight = report__insight_add(facts, "loss_nonfinite", REPORT_INSIGHT_PROBLEM, "metrics",
				      "mode=train name=loss", sql);
	insight->subject_kind = "metric";
	insight->subject = "loss";
	insight->share = 1;
	insight->sentence =
		report__insight_text(facts, "The loss of the training is %s at its end (%s).",
				     isnan(report__insight_real(&table, 0, 4)) ? "NaN" : "infinite",
				     position_text(facts, report__insight_int(&table, 0, 2),
						   IPS_NULL, report__insight_int(&table, 0, 3)));
	report__insight_number(insight, "epoch", report__insight_real(&table, 0, 2), REPORT_NUMBER);
	insight->remedy =
		facts->has & INSIGHT_TRAINING
			? "A lower learning rate (`--compile.optimizer`); `--health.watch "
			  "all` finds the tensor where it begins."
			: "A lower learning rate; tensors recorded with "
			  "ipuscope/outfeed.h tell where it begins.";
	report_table_free(&table);
}

/* As in docs/health.md: for any trainer, and with options of ipu-train. */
static const struct {
	const char *rule, *remedy, *ours;
} rule_remedies[] = {
	{"nonfinite", "A lower learning rate.",
	 "A lower learning rate (`--compile.optimizer`); `--health.stop nonfinite`."},
	{"exploding", "A lower learning rate, normalisation, inputs scaled to about 1.",
	 "A lower learning rate (`--compile.optimizer`), normalisation, inputs scaled to about 1."},
	{"vanishing", "relu instead of sigmoid, normalisation, residual connections.", NULL},
	{"dead_relu", "A lower learning rate, a bias that is not negative, LeakyReLU.",
	 "A lower learning rate (`--compile.optimizer`), a bias that is not negative, LeakyReLU."},
	{"saturated_activation", "Smaller initial weights, scaled inputs.", NULL},
	{"poor_initialization", "glorot_uniform or he_normal as the layer's initialiser.", NULL},
	{"unchanged_tensor",
	 "Is the layer frozen on purpose? Then without this rule; else the learning rate.",
	 "Is the layer frozen on purpose? Then `--health.rules.unchanged_tensor false`; else the "
	 "learning rate."},
	{"all_zero",
	 "What comes before it: dead neurons, a loss that clips; does the loss expect "
	 "logits where the last layer gives probabilities?",
	 "What comes before it: dead neurons, a loss that clips; does `from_logits` of "
	 "`compile.loss` fit the last layer?"},
	{"update_ratio", "The learning rate: a ratio of 1e-3 is usual.",
	 "The learning rate (`--compile.optimizer`): a ratio of 1e-3 is usual."},
	{"loss_not_decreasing", "The learning rate; is a softmax applied twice?",
	 "The learning rate (`--compile.optimizer`); is there a softmax where `from_logits` of "
	 "`compile.loss` is false?"},
	{"overfit", "Regularisers, Dropout, early stopping.",
	 "Regularisers, Dropout, EarlyStopping (`callbacks`)."},
	{"class_imbalance", "Weights or resampling of the data, in another order each epoch.",
	 "Weights or resampling of the data; `--data.shuffle true`."},
};

static const char *rule_remedy(const struct insight_facts *facts, const char *rule)
{
	for (size_t i = 0; i < ARRAY_LEN(rule_remedies); i++)
		if (!strcmp(rule_remedies[i].rule, rule))
			return facts->has & INSIGHT_TRAINING && rule_remedies[i].ours
				       ? rule_remedies[i].ours
				       : rule_remedies[i].remedy;
	return NULL;
}

void report__insight_rule_broken(struct insight_facts *facts)
{
	const struct report_summary *s = &facts->summary;

	for (int i = 0; i < s->broken_count; i++) {
		const struct report_broken *broken = &s->broken[i];
		struct report_insight *insight;
		char hits[FMT_SIZE];

		if (!broken->rule || (s->bad.known && !strcmp(broken->rule, "nonfinite")))
			continue;
		insight = report__insight_add(facts, "rule_broken", REPORT_INSIGHT_PROBLEM,
					      "health", "", sql_health);
		insight->keys = report__insight_text(facts, "rule=%.64s", broken->rule);
		insight->subject_kind = "rule";
		insight->subject = report__insight_text(facts, "%.64s", broken->rule);
		insight->sentence = report__insight_text(
			facts, "The health rule %.64s was broken %s time%s, first by %.200s (%s).",
			broken->rule, fmt_count(hits, broken->hits), broken->hits == 1 ? "" : "s",
			broken->key ? broken->key : "the run",
			position_text(facts, broken->epoch, broken->weight_update, broken->step));
		report__insight_number(insight, "hits", (double)broken->hits, REPORT_COUNT);
		report__insight_number(insight, "first_ns", (double)broken->first_ns, REPORT_NS);
		insight->remedy = rule_remedy(facts, broken->rule);
	}
}

/* ---- other programs -------------------------------------------------------------------------- */

/* The innermost call site that covers most of the track with the most busy time, of tracks with
 * more than one span: the one span of a profiler's own track is the whole recording. Level 12 has
 * every span shorter than an hour in a few rows, each naming the call site with the most time in
 * it. */
static const char sql_hot[] =
	"SELECT t.name AS track, n.value AS name, l.site_ns, a.busy_ns, l.depth\n"
	"FROM (SELECT track_id, depth, site_id, sum(site_ns) AS site_ns FROM span_levels\n"
	"      WHERE level = 12 GROUP BY track_id, depth, site_id) l\n"
	"JOIN (SELECT track_id, sum(busy_ns) AS busy_ns FROM span_levels\n"
	"      WHERE level = 12 AND depth = 0 GROUP BY track_id HAVING sum(count) > 1 OR track_id "
	"IN\n"
	"        (SELECT track_id FROM span_levels WHERE level = 12 AND depth = 1)\n"
	"      ORDER BY 2 DESC, 1 LIMIT 1) a ON a.track_id = l.track_id\n"
	"JOIN track_rows t ON t.track_id = l.track_id\n"
	"JOIN sites s ON s.site_id = l.site_id JOIN strings n ON n.string_id = s.name_id\n"
	"WHERE l.site_ns > 0.5 * a.busy_ns ORDER BY l.depth DESC, l.site_ns DESC, 2 LIMIT 1";

void report__insight_hot_span(struct insight_facts *facts)
{
	struct report_table table;
	char time[FMT_SIZE], share[FMT_SIZE], shown[2][INSIGHT_NAME];
	double part;

	/* With kernels, the critical path says more of the host's calls. */
	if ((facts->has & INSIGHT_ACCELERATOR) || !report__insight_rows(facts, &table, sql_hot))
		return;
	part = report__insight_real(&table, 0, 2) / report__insight_real(&table, 0, 3);
	if (part > report_insight_limit(REPORT_LIMIT_SPAN)) { /* same bound as in the query */
		const char *track = report__insight_word(&table, 0, 0);
		const char *name = report__insight_word(&table, 0, 1);
		struct report_insight *insight = report__insight_add(
			facts, "hot_span", REPORT_INSIGHT_NOTE, "spans", "", sql_hot);

		insight->subject_kind = "span";
		insight->subject = report__insight_text(facts, "%s", name ? name : "");
		insight->keys = report__insight_text(facts, "name=%s", name ? name : "");
		str_shorten(shown[0], sizeof(shown[0]), name ? name : "");
		str_shorten(shown[1], sizeof(shown[1]), track ? track : "");
		insight->share = min(part, 1);
		insight->sentence = report__insight_text(
			facts,
			"\"%s\" takes %s, %s of the time in which track \"%s\", which "
			"has most, did anything; no span within it has half of that.",
			shown[0], fmt_ns(time, report__insight_int(&table, 0, 2)),
			fmt_percent(share, insight->share), shown[1]);
		report__insight_number(insight, "total_ns", report__insight_real(&table, 0, 2),
				       REPORT_NS);
		report__insight_number(insight, "track_share", insight->share, REPORT_FRACTION);
	}
	report_table_free(&table);
}
