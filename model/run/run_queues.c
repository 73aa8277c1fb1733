/*
 * Planning outfeed queues; see the header. Failures are sticky in the planning's err.
 */
#include "model/run/run_queues.h"

#include <stdarg.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "model/run/run_internal.h"

#define SINGLE "activations_outfeed_queue"
#define MULTI  "multi_activations_outfeed_queue"

struct planning {
	struct run_queues *plan;
	struct arena *arena;
	const struct run_file *run;
	const struct model *model;
	const struct run_layout *layout;
	struct err *err;     /* never NULL */
	const char **placed; /* by layer: its key in outfeed.layers; NULL: none */
};

/* ---- outfeed.layers -------------------------------------------------------------------------- */

/* Format a name in the arena; NULL: a failure. */
static const char *format_name(const struct planning *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static const char *format_name(const struct planning *p, const char *format, ...)
{
	const char *name;
	va_list args;

	va_start(args, format);
	name = arena_vprintf(p->arena, format, args);
	va_end(args);
	if (!name && !err_stuck(p->err))
		err_nomem(p->err);
	return name;
}

/* Place the layer @name with @key. NULL: the name with "_acts", as in the tutorial. */
static void assign_layer_key(const struct planning *p, const struct json_at *at, const char *name,
			     const char *key)
{
	const int layer = model_find_layer(p->model, name);

	if (layer < 0)
		model_unknown_layer(p->model, at, name, p->err);
	else if (p->placed[layer])
		json_fail(at, p->err, "has the layer \"%s\" twice", name);
	else
		p->placed[layer] = key ? key : format_name(p, "%s_acts", name);
}

static void read_layers(const struct planning *p)
{
	struct json_at item = {0};
	struct run_place place;

	if (!run__value_find(p->run, "outfeed", "layers", &place))
		return;
	if (cJSON_IsString(place.at.node)) {
		assign_layer_key(p, &place.at, place.at.node->valuestring, NULL);
		return;
	}
	if (!cJSON_IsArray(place.at.node) && !cJSON_IsObject(place.at.node))
		json_fail(&place.at, p->err,
			  "must be a layer, a list of layers, or an object (layer: its key)");
	/* Layers are the items of a list, or the members of an object, whose values are keys. */
	while (!err_stuck(p->err) && json_next(&place.at, &item)) {
		const char *name = item.key, *key = NULL;

		if (!name)
			json_text(&item, &name, p->err);
		else if (!json_is_null(&item) && json_text(&item, &key, p->err) == ST_OK && !*key)
			json_fail(&item, p->err, "is no key; null: \"%s_acts\"", name);
		if (!err_stuck(p->err))
			assign_layer_key(p, &item, name, key);
	}
}

/* ---- listing what may be sent ---------------------------------------------------------------- */

static bool is_maybe(const struct planning *p, const struct run_send *send)
{
	return send->placed ||
	       model_layer_outfeed(&p->model->layers[send->layer]) == MODEL_MAYBE_OUTFEED;
}

static void add_send(const struct planning *p, int layer, const char *key, bool final, bool placed)
{
	p->plan->sends[p->plan->send_count++] = (struct run_send){
		.layer = layer, .key = key, .final = final, .placed = placed, .sent = true};
}

static void list_sends(const struct planning *p)
{
	const size_t most = 2 * (size_t)p->model->layer_count;

	p->plan->sends = arena_alloc(p->arena, most + 1, sizeof(*p->plan->sends));
	p->plan->queues = arena_alloc(p->arena, most + 1, sizeof(*p->plan->queues));
	if (!p->plan->sends || !p->plan->queues) {
		err_nomem(p->err);
		return;
	}
	for (int i = 0; i < p->model->layer_count; i++) {
		const struct model_layer *layer = &p->model->layers[i];
		const enum model_outfeed kind = model_layer_outfeed(layer);

		if (kind != MODEL_NO_OUTFEED)
			add_send(p, i, layer->name, kind == MODEL_OUTFEED || layer->final_outfeed,
				 false);
		if (p->placed[i])
			add_send(p, i, p->placed[i], true, true);
	}
}

/* ---- names ----------------------------------------------------------------------------------- */

/* The queue's name in the layer's config; NULL: none. */
static const char *given_name(const struct planning *p, const struct run_send *send)
{
	return send->placed ? NULL : p->model->layers[send->layer].outfeed_queue;
}

/* Whether another unnamed send of its kind exists: another Outfeed, or a MaybeOutfeed of another
 * stage. */
static bool has_others(const struct planning *p, const struct run_send *send)
{
	const int *stage = p->layout->stage;

	for (int i = 0; i < p->plan->send_count; i++) {
		const struct run_send *other = &p->plan->sends[i];

		if (given_name(p, other) || is_maybe(p, other) != is_maybe(p, send))
			continue;
		if (is_maybe(p, send) ? stage[other->layer] != stage[send->layer] : other != send)
			return true;
	}
	return false;
}

static const char *queue_name(const struct planning *p, const struct run_send *send)
{
	const char *given = given_name(p, send);

	if (given)
		return given;
	if (!is_maybe(p, send))
		return has_others(p, send) ? format_name(p, SINGLE "_%s", send->key) : SINGLE;
	return has_others(p, send)
		       ? format_name(p, MULTI "_stage_%d", p->layout->stage[send->layer])
		       : MULTI;
}

/* ---- queues ---------------------------------------------------------------------------------- */

/* The key of the first send of queue @number. */
static const char *first_key_of(const struct run_queues *plan, int number)
{
	int i = 0;

	while (plan->sends[i].queue != number)
		i++;
	return plan->sends[i].key;
}

/* Check the device's rules for sends that share a queue. */
static void check_shared(const struct planning *p, const struct run_send *send, int number)
{
	const struct run_queue *queue = &p->plan->queues[number];
	const int stage = p->layout->stage[send->layer];

	if (queue->gradients)
		err_set(p->err, ST_INVALID,
			"%s: layer \"%s\": \"%s\" is the optimizer's queue, and a queue is "
			"enqueued in one place: name another",
			p->run->path, send->key, queue->name);
	else if (!queue->wrapped && !is_maybe(p, send))
		err_set(p->err, ST_INVALID,
			"%s: outfeed queue \"%s\": a queue is enqueued in one place, but both "
			"\"%s\" and \"%s\" use it (give each a queue, or use MaybeOutfeed)",
			p->run->path, queue->name, first_key_of(p->plan, number), send->key);
	else if (queue->wrapped != is_maybe(p, send))
		err_set(p->err, ST_INVALID,
			"%s: layer \"%s\": outfeed queue \"%s\" is used by an Outfeed and by a "
			"MaybeOutfeed (\"%s\"): an Outfeed has a queue of its own",
			p->run->path, send->key, queue->name, first_key_of(p->plan, number));
	else if (queue->stage != stage)
		err_set(p->err, ST_INVALID,
			"%s: layer \"%s\" of stage %d: outfeed queue \"%s\" is that of stage %d "
			"(\"%s\"), and what a queue sends is put together in one stage: name "
			"another, or leave \"queue\" out",
			p->run->path, send->key, stage, queue->name, queue->stage,
			first_key_of(p->plan, number));
}

static void assign_queue(const struct planning *p, struct run_send *send)
{
	struct run_queues *plan = p->plan;
	const char *name = queue_name(p, send);
	int number = 0;

	if (!name)
		return;
	while (number < plan->queue_count && strcmp(plan->queues[number].name, name) != 0)
		number++;
	if (number < plan->queue_count)
		check_shared(p, send, number);
	else
		plan->queues[plan->queue_count++] =
			(struct run_queue){.name = name,
					   .wrapped = is_maybe(p, send),
					   .stage = p->layout->stage[send->layer]};
	send->queue = number;
}

/* Outfeeds precede MaybeOutfeeds, in the order in which the tutorial attaches their callbacks. */
static void assign_queues(const struct planning *p)
{
	struct run_queues *plan = p->plan;

	for (int i = 0; i < plan->send_count; i++)
		plan->sends[i].queue = -1;
	if (p->run->outfeed.gradients.given)
		plan->queues[plan->queue_count++] = (struct run_queue){.name = RUN_OPTIMIZER_QUEUE,
								       .gradients = true,
								       .wrapped = true,
								       .stage = -1};
	for (int maybe = 0; maybe < 2; maybe++)
		for (int i = 0; i < plan->send_count && !err_stuck(p->err); i++)
			if (is_maybe(p, &plan->sends[i]) == (maybe == 1))
				assign_queue(p, &plan->sends[i]);
}

/* ---- callbacks and final sends --------------------------------------------------------------- */

static const char *const callback_names[] = {
	"Gradients callback",
	"Single layer activations callback",
	"Multi-layer activations callback",
};

static int callback_kind(const struct run_queue *queue)
{
	return queue->gradients ? 0 : 1 + queue->wrapped;
}

/* Use the tutorial's names; if several queues are of one kind, append the queue's name. */
static void name_callbacks(const struct planning *p)
{
	int count[ARRAY_LEN(callback_names)] = {0};

	for (int i = 0; i < p->plan->queue_count; i++)
		count[callback_kind(&p->plan->queues[i])]++;
	for (int i = 0; i < p->plan->queue_count; i++) {
		struct run_queue *queue = &p->plan->queues[i];
		const int kind = callback_kind(queue);

		queue->callback = count[kind] == 1 ? callback_names[kind]
						   : format_name(p, "%s (%s)", callback_names[kind],
								 queue->name);
	}
}

/* In a queue that has sends of outfeed.layers, the last send is the final one; in other queues the
 * layers' configs decide. */
static void set_final(const struct planning *p)
{
	struct run_queues *plan = p->plan;

	for (int q = 0; q < plan->queue_count; q++) {
		bool placed = false;
		int last = -1;

		for (int i = 0; i < plan->send_count; i++) {
			if (plan->sends[i].queue != q)
				continue;
			placed |= plan->sends[i].placed;
			last = i;
		}
		for (int i = 0; i < plan->send_count && placed; i++)
			if (plan->sends[i].queue == q)
				plan->sends[i].final = i == last;
	}
}

static void set_sent(const struct planning *p)
{
	const struct run_texts *filters = &p->run->outfeed.activations;
	const struct run_queues *plan = p->plan;

	for (int i = 0; i < plan->send_count; i++) {
		struct run_send *send = &plan->sends[i];

		send->passes = str_has_any(send->key, filters->given ? filters->items : NULL,
					   filters->count);
	}
	/* MaybeOutfeedQueue's rule: a final layer enqueues if anything has passed, its own output or
	 * that of a layer before. */
	for (int q = 0; q < plan->queue_count; q++) {
		bool any = false, placed = false;

		if (!plan->queues[q].wrapped)
			continue;
		for (int i = 0; i < plan->send_count; i++) {
			struct run_send *send = &plan->sends[i];

			if (send->queue != q)
				continue;
			send->sent = !placed && send->passes;
			any |= send->passes;
			placed |= any && send->final;
		}
		for (int i = 0; i < plan->send_count && !placed; i++)
			if (plan->sends[i].queue == q)
				plan->sends[i].sent = false;
	}
}

/* ---- gradients ------------------------------------------------------------------------------- */

static void plan_gradients(const struct planning *p)
{
	const struct run_texts *filters = &p->run->outfeed.gradients;
	const bool queue = filters->given && !p->run->outfeed.off;

	p->plan->gradients = arena_alloc(p->arena, (size_t)p->model->param_count + 1,
					 sizeof(*p->plan->gradients));
	if (!p->plan->gradients)
		err_nomem(p->err);
	for (int i = 0; i < p->model->param_count && !err_stuck(p->err); i++) {
		const struct model_param *param = &p->model->params[i];
		struct run_gradient *gradient = &p->plan->gradients[i];

		gradient->key = format_name(p, "%s_grad", param->name);
		gradient->sent = queue && param->trainable && gradient->key &&
				 str_has_any(gradient->key, filters->items, filters->count);
	}
}

enum status run_queues_plan(struct run_queues *out, struct arena *arena, const struct run_file *run,
			    const struct model *model, const struct run_layout *layout,
			    struct err *err)
{
	struct err own;
	struct planning p = {out, arena, run, model, layout, err_start(err, &own), NULL};

	*out = (struct run_queues){0};
	plan_gradients(&p);
	if (err_stuck(p.err) || run->outfeed.off)
		return p.err->status;
	p.placed = arena_alloc(arena, (size_t)model->layer_count + 1, sizeof(*p.placed));
	if (!p.placed)
		return err_nomem(err);
	read_layers(&p);
	if (!err_stuck(p.err))
		list_sends(&p);
	if (err_stuck(p.err))
		return p.err->status;
	assign_queues(&p);
	name_callbacks(&p);
	set_final(&p);
	set_sent(&p);
	return p.err->status;
}

/* ---- errors of a MaybeOutfeedQueue ----------------------------------------------------------- */

/* Check that keys of a queue are unique: layers' names are, but not the keys of outfeed.layers. */
static enum status check_key(const struct run_queues *plan, int number, const struct run_file *run,
			     const struct model *model, struct err *err)
{
	const struct run_send *send = &plan->sends[number];

	for (int i = 0; i < number; i++) {
		const struct run_send *other = &plan->sends[i];

		if (other->queue == send->queue && strcmp(other->key, send->key) == 0)
			return err_set(
				err, ST_INVALID,
				"%s: outfeed queue \"%s\": both layer \"%s\" and layer \"%s\" have "
				"the key \"%s\" (outfeed.layers may say {layer: key})",
				run->path, plan->queues[send->queue].name,
				model->layers[other->layer].name, model->layers[send->layer].name,
				send->key);
	}
	return ST_OK;
}

enum status run_queues_check(const struct run_queues *plan, const struct run_file *run,
			     const struct model *model, struct err *err)
{
	for (int q = 0; q < plan->queue_count; q++) {
		bool any = false, placed = false;

		for (int i = 0; plan->queues[q].wrapped && i < plan->send_count; i++) {
			const struct run_send *send = &plan->sends[i];

			if (send->queue != q)
				continue;
			if (send->passes && check_key(plan, i, run, model, err) != ST_OK)
				return ST_INVALID;
			any |= send->passes;
			if (placed && send->final)
				return err_set(
					err, ST_INVALID,
					"%s: outfeed queue \"%s\": a queue is enqueued in one "
					"place, so \"%s\" cannot be a second final outfeed (give "
					"all but the last layer final_outfeed=False)",
					run->path, plan->queues[q].name, send->key);
			placed |= any && send->final;
		}
	}
	return ST_OK;
}
