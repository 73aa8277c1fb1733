/*
 * Health rules in a training: a hit is printed and recorded, and may end the run; the rules for
 * classes and losses are evaluated here, since these are no tensors.
 */
#include "trainer/train_outfeed.h"

#include <inttypes.h>
#include <math.h>
#include <xxhash.h>

#include "common/mem.h"
#include "common/str.h"
#include "trainer/train_ranks.h"
#include "trainer/train_screen.h"

/* ---- broken rules ---------------------------------------------------------------------------- */

void train_health_print(void *user, const char *line)
{
	const struct train_session *session = user;

	if (session->screen)
		train_screen_say(session->screen, session->screen->log, "%s\n", line);
}

static void add_number(struct str *text, const char *before, int64_t number)
{
	if (number != IPS_NULL)
		str_addf(text, "%s%" PRId64, before, number);
}

enum status train_health_read(struct train_session *session, struct err *err)
{
	const struct run_file *run = session->run;
	const struct json_at rules = json_root(run->path, run->health.rules);
	struct train_health *health = &session->health;

	outfeed_health_defaults(&health->rules);
	for (int i = 0; i < OUTFEED_HEALTH_RULES; i++)
		health->rules.rule[i].enabled = run->health.wanted;
	for (int i = 0; i < run->health.stop.count; i++) {
		enum outfeed_health_id id;

		if (outfeed_health_find(&id, run->health.stop.items[i]))
			health->stop |= 1u << id;
	}
	return run->health.rules ? outfeed_health_read(&health->rules, &rules, err) : ST_OK;
}

/* The first hit that ends the run sets the reason. */
void train_health_hit(void *user, const struct outfeed_hit *hit)
{
	struct train_session *session = user;
	struct train_health *health = &session->health;
	struct str why = {0};

	if (health->broken)
		health->broken[hit->rule]++;
	if ((health->stop & 1u << hit->rule) == 0 || train_stop_asked(&session->stop_early))
		return;
	str_addf(&why, "rule %s", outfeed_health_describe(hit->rule)->name);
	if (hit->key)
		str_addf(&why, " broken by %s", hit->key);
	add_number(&why, " in step ", hit->keys.step);
	add_number(&why, hit->keys.step == IPS_NULL ? " in weight update " : ", weight update ",
		   hit->keys.weight_update);
	add_number(&why, " of epoch ", hit->keys.epoch);
	str_copy(health->why, sizeof(health->why),
		 why.failed ? outfeed_health_describe(hit->rule)->name : str_peek(&why));
	str_free(&why);
	train_stop_ask(&session->stop_early);
}

enum status train_health_check(struct train_session *session, struct err *err)
{
	enum status status = ST_OK;

	if (session->health.stop == 0)
		return ST_OK;
	if (train_stop_asked(&session->stop_early))
		status = err_set(err, ST_FAILED, "health.stop: %s", session->health.why);
	status = train_ranks_fail_together(session, status, err);
	if (status != ST_OK)
		train_stop_ask(&session->stop_early);
	return status;
}

char *train_health_text(const int64_t broken[OUTFEED_HEALTH_RULES], const char *report)
{
	struct str text = {0};
	int64_t sum = 0;

	for (int i = 0; i < OUTFEED_HEALTH_RULES; i++)
		sum += broken[i];
	if (sum == 0)
		return NULL;
	str_addf(&text, "Health: %" PRId64 " time%s a rule was broken: ", sum, sum == 1 ? "" : "s");
	for (int i = 0, named = 0; i < OUTFEED_HEALTH_RULES; i++)
		if (broken[i] > 0)
			str_addf(&text, "%s%s %" PRId64, named++ > 0 ? ", " : "",
				 outfeed_health_describe((enum outfeed_health_id)i)->name,
				 broken[i]);
	if (report)
		str_addf(&text, " (`ipu-report %s health`%s)", report,
			 broken[OUTFEED_HEALTH_nonfinite] > 0
				 ? "; its view first_nonfinite is where the bad numbers began"
				 : "");
	if (text.failed)
		str_free(&text);
	return text.text;
}

/* ---- classes --------------------------------------------------------------------------------- */

/* Return the number of classes; 0: not counted. With a crossentropy, vectors are one-hot targets.
 * Targets for each token or pixel are not counted, since their frequencies are those of the text or
 * picture, and neither are several outputs. */
static int64_t classes_of(const struct train_session *session)
{
	const struct target_kind kind = dataset_targets(session->train_set);
	const int64_t positions = loss_positions(session->model);

	if (positions > 1 || session->model->output_count > 1)
		return 0;
	if (targets_are_classes(&kind, positions))
		return kind.classes;
	return loss_is_error(&session->plan->program[IPS_TRAIN].losses.items[0].loss) ? 0
										      : kind.width;
}

enum status train_health_new(struct train_session *session, struct err *err)
{
	const bool asked = train_outfeed_health(session) &&
			   session->health.rules.rule[OUTFEED_HEALTH_class_imbalance].enabled;
	const int64_t classes = asked ? classes_of(session) : 0;
	enum status status = ST_OK;

	if (classes < 2)
		return ST_OK;
	for (int r = 0; r < session->replicas && status == ST_OK; r++)
		status = class_counts_init(&session->replica[r].classes, classes, err);
	return status;
}

/* Sum all replicas' counts of this rank, then those of all ranks; evaluate the rules; reset. */
static enum status evaluate_classes(struct train_session *session, struct outfeed_health *rules,
				    const struct ips_keys *keys, struct err *err)
{
	struct class_counts *all = &session->replica[0].classes;
	struct class_figures figures;
	int64_t sums[2];
	enum status status;

	if (all->classes == 0)
		return ST_OK;
	for (int r = 1; r < session->replicas; r++) {
		class_counts_merge(all, &session->replica[r].classes);
		class_counts_clear(&session->replica[r].classes);
	}
	sums[0] = all->items;
	sums[1] = all->predicted;
	status = train_ranks_add(session->ranks, all->targets, 2 * (size_t)all->classes, err);
	if (status == ST_OK)
		status = train_ranks_add(session->ranks, sums, ARRAY_LEN(sums), err);
	all->items = sums[0];
	all->predicted = sums[1];
	figures = class_counts_figures(all);
	outfeed_health_classes(rules, keys, ips_recording_now_ns(session->recording), figures.items,
			       figures.imbalance, figures.misprediction);
	class_counts_clear(all);
	return status;
}

/* ---- backups --------------------------------------------------------------------------------- */

#define ITEMS_MOST (INT64_C(1) << 48) /* prevents overflow of sums of counts */

static bool sync_field(void *user, const char *name, void *data, size_t bytes)
{
	struct snapshot *snapshot = user;

	if (snapshot_reads(snapshot) && !snapshot_fits(snapshot, name, bytes))
		return false;
	snapshot_field(snapshot, name, data, bytes);
	return !err_stuck(snapshot_err(snapshot));
}

static void sync_classes(struct class_counts *counts, struct snapshot *snapshot)
{
	const size_t each = 2 * (size_t)counts->classes * sizeof(*counts->targets);
	int64_t sums[] = {counts->items, counts->predicted};

	if (counts->classes == 0 || !sync_field(snapshot, "classes", counts->targets, each) ||
	    !sync_field(snapshot, "class sums", sums, sizeof(sums)) || !snapshot_reads(snapshot))
		return;
	counts->items = sums[0];
	counts->predicted = sums[1];
	for (int64_t i = 0; i < 2 * counts->classes; i++)
		if (counts->targets[i] < 0 || counts->targets[i] > ITEMS_MOST)
			err_set(snapshot_err(snapshot), ST_INVALID,
				"%s: a class has %" PRId64 " items", snapshot_path(snapshot),
				counts->targets[i]);
	if (sums[0] < 0 || sums[0] > ITEMS_MOST || sums[1] < 0 || sums[1] > sums[0])
		err_set(snapshot_err(snapshot), ST_INVALID,
			"%s: the classes have %" PRId64 " items", snapshot_path(snapshot), sums[0]);
}

/* Digest the effective rules: state that other rules have collected does not fit these. */
static uint64_t digest_rules(const struct outfeed_health_rules *rules)
{
	char parameters[OUTFEED_HEALTH_TEXT];
	struct str text = {0};
	uint64_t digest;

	for (int i = 0; i < OUTFEED_HEALTH_RULES; i++) {
		const struct outfeed_health_rule *rule = &rules->rule[i];

		outfeed_health_parameters(parameters, rules, (enum outfeed_health_id)i);
		str_addf(&text, "%d %a %" PRId64 " %s\n", rule->enabled, rule->threshold,
			 rule->patience, parameters);
	}
	digest = text.failed ? 0 : XXH3_64bits(text.text, text.length);
	str_free(&text);
	return digest;
}

void train_health_snapshot(struct train_session *session, int index, struct snapshot *snapshot)
{
	struct train_replica *replica = &session->replica[index];
	uint64_t digest, there;

	if (!train_outfeed_health(session))
		return;
	digest = there = digest_rules(&session->health.rules);
	snapshot_prefix(snapshot, "health %d ", replica->number);
	if (sync_field(snapshot, "rules", &there, sizeof(there)) && there == digest) {
		sync_classes(&replica->classes, snapshot);
		train_outfeed_state(session, index, sync_field, snapshot);
		snapshot_prefix(snapshot, "health ");
		if (replica->number == 0 || (snapshot_reads(snapshot) && index == 0))
			outfeed_health_state(train_outfeed_health(session), sync_field, snapshot);
	}
	snapshot_prefix(snapshot, "%s", "");
}

/* ---- losses ---------------------------------------------------------------------------------- */

static struct ips_keys keys_of(int64_t epoch)
{
	struct ips_keys keys = IPS_KEYS_NULL;

	keys.mode = IPS_TRAIN;
	keys.epoch = epoch;
	return keys;
}

void train_health_loss(struct train_session *session, int64_t step, double loss)
{
	struct outfeed_health *rules = train_outfeed_health(session);
	struct ips_keys keys = keys_of(session->execution.epoch);

	keys.execution = session->execution.execution;
	keys.step = step;
	outfeed_health_loss(rules, &keys, ips_recording_now_ns(session->recording), loss);
}

enum status train_health_epoch(struct train_session *session, int64_t epoch, double loss,
			       const double *val_loss, struct err *err)
{
	struct outfeed_health *rules = train_outfeed_health(session);
	const struct ips_keys keys = keys_of(epoch);
	enum status status;

	if (!rules)
		return ST_OK;
	status = evaluate_classes(session, rules, &keys, err);
	outfeed_health_epoch(rules, &keys, ips_recording_now_ns(session->recording), loss,
			     !val_loss ? (double)NAN : *val_loss, val_loss != NULL);
	return status == ST_OK ? train_health_check(session, err) : status;
}
