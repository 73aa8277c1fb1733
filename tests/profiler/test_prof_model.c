/*
 * Tiny rings against a naive model: whatever is dropped is counted, and what remains nests and has
 * the right keys.
 */
#include "support/prof_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/rng.h"

#define OPS       20000
#define MAX_DEPTH 12

struct model_span {
	int64_t parent; /* id; 0: none */
	int64_t step;   /* IPS_NULL: no keys */
	int depth, site;
	bool ended;
};

struct model {
	struct model_span *spans; /* by id, from 1 */
	int64_t count;
	int64_t stack[64]; /* ids of open spans; -1: dropped */
	int depth;
	int skipped; /* of the stack's top, how many are dropped */
	int64_t step;
	int64_t dropped, instants, args;
};

static struct ips_site *sites[4];

static bool lost(struct model *model, struct ips_track *track, uint64_t head)
{
	if (track->head != head)
		return false;
	model->dropped++;
	return true;
}

static void do_begin(struct model *model, struct ips_track *track, int site)
{
	uint64_t head = track->head;

	ips_span_begin(track, sites[site]);
	if (lost(model, track, head)) {
		model->stack[model->depth++] = -1;
		model->skipped++;
		return;
	}
	assert_int_equal(model->skipped, 0);
	model->count++;
	model->spans[model->count] =
		(struct model_span){model->depth == 0 ? 0 : model->stack[model->depth - 1],
				    model->step, model->depth, site, false};
	model->stack[model->depth++] = model->count;
}

static void do_end(struct model *model, struct ips_track *track)
{
	uint64_t head = track->head;

	ips_span_end(track);
	if (model->depth == 0) {
		assert_int_equal(track->head, head);
		return;
	}
	model->depth--;
	if (model->stack[model->depth] == -1) {
		assert_int_equal(track->head, head);
		model->skipped--;
		return;
	}
	assert_int_equal(track->head, head + 1); /* an end is never lost */
	model->spans[model->stack[model->depth]].ended = true;
}

static void do_instant(struct model *model, struct ips_track *track)
{
	uint64_t head = track->head;

	ips_instant(track, sites[0]);
	if (!lost(model, track, head))
		model->instants++;
}

/* Texts of several slots, across the ring's end. */
static void do_argument(struct model *model, struct ips_track *track)
{
	uint64_t head = track->head;
	char text[64];

	if (model->depth == 0)
		return;
	snprintf(text, sizeof(text), "span %d at depth %d, padded to fill both slots",
		 (int)model->stack[model->depth - 1], model->depth - 1);
	ips_span_arg_text(track, "text", text);
	if (!lost(model, track, head) && !model->spans[model->stack[model->depth - 1]].ended)
		model->args++;
}

static void do_keys(struct model *model, struct ips_track *track, int64_t step)
{
	struct ips_keys keys = IPS_KEYS_NULL;

	keys.step = step;
	ips_track_set_keys(track, step == IPS_NULL ? NULL : &keys);
	model->step = step;
}

static void run_ops(struct model *model, struct ips_recording *recording, struct ips_track *track,
		    struct rng *rng)
{
	for (int i = 0; i < OPS; i++) {
		unsigned dice = rng_below(rng, 100);

		if (dice < 40 && model->depth < MAX_DEPTH)
			do_begin(model, track, (int)(rng_u32(rng) % 4));
		else if (dice < 78)
			do_end(model, track);
		else if (dice < 86)
			do_instant(model, track);
		else if (dice < 90)
			do_argument(model, track);
		else if (dice < 97)
			do_keys(model, track, dice == 96 ? IPS_NULL : (int64_t)(rng_u32(rng) % 5));
		else if (rng_u32(rng) % 8 == 0)
			ips_recording_flush(recording);
		else
			usleep(20);
		assert_int_equal(track->dropped, model->dropped);
	}
}

static void check_model(const char *path, const struct model *model)
{
	char expected[128], sql[256];
	char *all = prof_ask_all(path, "SELECT span_id, coalesce(parent_id, 0), depth, name, step, "
				       "dur_ns IS NOT NULL FROM spans ORDER BY span_id");
	const char *line = all;

	for (int64_t id = 1; id <= model->count; id++) {
		const struct model_span *span = &model->spans[id];
		char step[32] = "-";

		if (span->step != IPS_NULL)
			snprintf(step, sizeof(step), "%d", (int)span->step);
		snprintf(expected, sizeof(expected), "%d|%d|%d|site %d|%s|%d\n", (int)id,
			 (int)span->parent, span->depth, span->site, step, span->ended);
		if (strncmp(line, expected, strlen(expected)) != 0)
			fail_msg("wanted %s found %.60s", expected, line);
		line += strlen(expected);
	}
	assert_string_equal(line, "");
	free(all);
	assert_int_equal(prof_ask(path, "SELECT sum(dropped) FROM overhead"), model->dropped);
	assert_int_equal(prof_ask(path, "SELECT count(*) FROM instants"), model->instants);
	snprintf(sql, sizeof(sql),
		 "SELECT count(*) FROM span_args a JOIN spans s USING (span_id) WHERE "
		 "a.value <> 'span ' || span_id || ' at depth ' || depth || ', padded to "
		 "fill both slots'");
	assert_int_equal(prof_ask(path, sql), 0);
	assert_int_equal(
		prof_ask(path,
			 "SELECT count(*) FROM spans s JOIN spans p ON p.span_id = s.parent_id "
			 "WHERE s.start_ns < p.start_ns OR s.start_ns + s.dur_ns > p.start_ns + "
			 "p.dur_ns"),
		0);
}

static void test_what_a_tiny_ring_keeps_is_right_and_what_it_drops_is_counted(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		char name[16];

		snprintf(name, sizeof(name), "site %d", i);
		sites[i] = ips_site_intern("model", name, NULL);
	}
	for (unsigned round = 0; round < 6; round++) {
		const struct ips_track_params params = {NULL, NULL, IPS_NULL, IPS_HOST,
							16u << round};
		struct model model = {.step = IPS_NULL};
		struct ips_recording *recording;
		struct prof_place place;
		struct ips_track *track;
		struct rng rng;

		rng_init(&rng, 1234, round, 0, 0);
		model.spans = calloc(OPS + 1, sizeof(*model.spans));
		prof_place_make(&place);
		recording = prof_start(&place, NULL);
		track = ips_track_open(recording, "model", &params);
		run_ops(&model, recording, track, &rng);
		prof_stop(recording);
		check_model(place.path, &model);
		if (round == 0)
			assert_true(model.dropped > 0);
		prof_place_remove(&place);
		free(model.spans);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_a_tiny_ring_keeps_is_right_and_what_it_drops_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
