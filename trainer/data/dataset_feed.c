/*
 * Batches: the order in which they use items (a permutation per pass, keyed by (seed, pass)),
 * gathering their floats from a data set, and the feed, which prepares them ahead.
 *
 * Threading: an order belongs to one thread at a time; a data set is read-only. A feed's mutex
 * guards its order, its failure and the state of the ring's slots. Batches are gathered and copied
 * without the mutex: the feeding thread owns a slot while it is empty, the consumers own it while
 * it is filled.
 */
#include "trainer/data/dataset_feed.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/pool.h"
#include "common/rng.h"
#include "trainer/data/dataset.h"
#include "trainer/data/dataset_internal.h"
#include "trainer/kernels/kernel_clones.h"

/* ---- order ----------------------------------------------------------------------------------- */

enum status dataset_order_new(struct dataset_order **out, const struct dataset_order_params *params,
			      struct err *err)
{
	const int64_t count = params->count, batch = params->batch, shuffle = params->shuffle;
	struct dataset_order *order;

	*out = NULL;
	if (count < 1 || count > UINT32_MAX || batch < 1 || (batch > count && !params->pad) ||
	    shuffle < -1)
		return err_set(err, ST_INVALID, "batches of %lld from %lld items cannot be ordered",
			       (long long)batch, (long long)count);

	order = mem_calloc(1, sizeof(*order));
	if (!order)
		return err_nomem(err);
	for (int i = 0; i < 2; i++) {
		order->items[i] = mem_calloc((size_t)count, sizeof(*order->items[i]));
		order->pass[i] = -1;
	}
	/* A buffer larger than the set holds all of it. */
	order->shuffle = shuffle >= count ? -1 : shuffle;
	if (order->shuffle > 0)
		order->buffer = mem_calloc((size_t)shuffle, sizeof(*order->buffer));
	if (!order->items[0] || !order->items[1] || (order->shuffle > 0 && !order->buffer)) {
		dataset_order_free(order);
		return err_nomem(err);
	}
	order->count = count;
	order->batch = batch;
	order->batches = count / batch + ((params->partial || params->pad) && count % batch);
	if (params->pad)
		order->batches = (order->batches + params->pad - 1) / params->pad * params->pad;
	order->seed = params->seed;
	*out = order;
	return ST_OK;
}

void dataset_order_free(struct dataset_order *order)
{
	if (!order)
		return;
	mem_free(order->items[0]);
	mem_free(order->items[1]);
	mem_free(order->buffer);
	mem_free(order);
}

/* tf.data's rule: the buffer is filled in order; each output is drawn from it and replaced by the
 * next input. */
static void order_through_buffer(struct dataset_order *order, uint32_t *items, struct rng *rng)
{
	uint32_t *buffer = order->buffer;
	uint32_t held = (uint32_t)order->shuffle, next = held;

	for (uint32_t i = 0; i < held; i++)
		buffer[i] = i;
	for (int64_t i = 0; i < order->count; i++) {
		uint32_t taken = rng_below(rng, held);

		items[i] = buffer[taken];
		if (next < order->count)
			buffer[taken] = next++;
		else
			buffer[taken] = buffer[--held];
	}
}

static const uint32_t *order_pass(struct dataset_order *order, int64_t pass)
{
	uint32_t *items = order->items[pass & 1];
	struct rng rng;

	if (order->pass[pass & 1] == pass)
		return items;
	order->pass[pass & 1] = pass;
	rng_init(&rng, order->seed, rng_stream("data.order"), (uint64_t)pass, 0);
	if (order->shuffle > 0) {
		order_through_buffer(order, items, &rng);
		return items;
	}
	for (int64_t i = 0; i < order->count; i++)
		items[i] = (uint32_t)i;
	if (order->shuffle < 0)
		rng_shuffle(&rng, items, (size_t)order->count);
	return items;
}

int64_t dataset_order_size(const struct dataset_order *order, int64_t number)
{
	int64_t left = order->count - number % order->batches * order->batch;

	return max(min(left, order->batch), 0);
}

const uint32_t *dataset_order_batch(struct dataset_order *order, int64_t number, int64_t *count)
{
	assert(number >= 0);
	*count = dataset_order_size(order, number);
	return order_pass(order, number / order->batches) +
	       (*count ? number % order->batches * order->batch : 0);
}

/* ---- floats ---------------------------------------------------------------------------------- */

struct target_kind dataset_targets(const struct dataset *dataset)
{
	struct target_kind kind;

	if (dataset->one_hot)
		return (struct target_kind){.width = max(dataset->width, 1) * dataset->classes,
					    .weights = dataset->weight_width};
	kind = (struct target_kind){.classes = dataset->classes,
				    .width = dataset->width,
				    .weights = dataset->weight_width,
				    .part_count = dataset->part_count};
	memcpy(kind.parts, dataset->parts, sizeof(kind.parts));
	for (int i = 0; i < kind.part_count; i++) {
		const int64_t numbers = max(kind.parts[i].width, 1);

		if (!dataset->one_hot_parts[i])
			continue;
		kind.parts[i].classes = 0;
		kind.parts[i].width = numbers * dataset->parts[i].classes;
		kind.width += kind.parts[i].width - numbers;
	}
	return kind;
}

bool dataset_gives_classes(const struct dataset *dataset)
{
	return dataset->labels && !dataset->one_hot;
}

/*
 * value / 255, rounded once. With 1 / 255 = 257 / 65536 + 1 / (255 x 65536) the first product is
 * exact (at most 16 bits), so that only the rounding of the sum matters. A test compares all 256
 * values with the division, which takes several times as long.
 */
KERNEL_CLONES static void gather_bytes(const uint8_t *restrict from, size_t count,
				       float *restrict to)
{
	for (size_t i = 0; i < count; i++) {
		float value = (float)from[i];

		to[i] = value * DATASET_BYTE_HIGH + value * DATASET_BYTE_LOW;
	}
}

void dataset_gather_inputs(const struct dataset *dataset, const uint32_t *items, int64_t count,
			   float *inputs)
{
	size_t floats = dataset_item_floats(dataset), stored = dataset__stored_floats(dataset);

	for (int64_t i = 0; i < count; i++) {
		const size_t at = (size_t)items[i] * stored;
		const uint8_t *bytes = dataset->bytes ? dataset->bytes + at : NULL;
		const float *values = dataset->floats ? dataset->floats + at : NULL;
		float *to = inputs + (size_t)i * floats;

		assert(items[i] < dataset->count);
		if (dataset->resize)
			dataset__resize(dataset->resize, bytes, values, to);
		else if (bytes)
			gather_bytes(bytes, stored, to);
		else
			memcpy(to, values, stored * sizeof(*to));
	}
}

/* Copy the values of an item, with class numbers as vectors where the batch has those. */
static void gather_parts(const struct dataset *dataset, const float *from, float *to)
{
	for (int i = 0; i < dataset->part_count; i++) {
		const size_t numbers = (size_t)max(dataset->parts[i].width, 1);
		const size_t length =
			dataset->one_hot_parts[i] ? (size_t)dataset->parts[i].classes : 0;

		memset(to, 0, numbers * length * sizeof(*to));
		for (size_t n = 0; n < numbers && length; n++)
			to[n * length + (size_t)from[n]] = 1.0f;
		if (!length)
			memcpy(to, from, numbers * sizeof(*to));
		to += numbers * max(length, 1);
		from += numbers;
	}
}

void dataset_gather_targets(const struct dataset *dataset, const uint32_t *items, int64_t count,
			    int32_t *classes, float *values)
{
	const size_t width = (size_t)dataset_targets(dataset).width;

	for (int64_t i = 0; i < count; i++) {
		float *to = values ? values + (size_t)i * width : NULL;

		assert(items[i] < dataset->count);
		if (dataset_gives_classes(dataset)) {
			classes[i] = dataset->labels[items[i]];
		} else if (dataset->one_hot) {
			const size_t length = (size_t)dataset->classes;

			memset(to, 0, width * sizeof(*to));
			for (size_t place = 0; place * length < width; place++) {
				const size_t at = items[i] * (size_t)dataset->width + place;
				const size_t class = dataset->labels
							     ? (size_t)dataset->labels[items[i]]
							     : (size_t)dataset->values[at];

				to[place * length + class] = 1.0f;
			}
		} else if (dataset->part_count) {
			gather_parts(dataset, dataset->values + items[i] * (size_t)dataset->width,
				     to);
		} else {
			memcpy(to, dataset->values + items[i] * width, width * sizeof(*to));
		}
	}
}

/* ---- the feed -------------------------------------------------------------------------------- */

enum feed_part {
	FEED_INPUTS = 1,
	FEED_TARGETS = 2
};

/* Buffers for targets, one of the first two, and for the weights of rows. */
struct feed_targets {
	int32_t *classes;
	float *values;
	float *weights; /* NULL: 1 each */
};

/* A slot of the ring: the batch of one replica and step. */
struct feed_place {
	int64_t step; /* -1: empty */
	int wanted;   /* set of enum feed_part not consumed yet */
	float *inputs;
	struct feed_targets targets;
};

/* Buffers of one replica's consumers. */
struct feed_taker {
	struct feed_targets targets;
	uint32_t *items
		[2]; /* without a thread: items of the current batch, for inputs and for targets */
};

struct dataset_feed {
	struct dataset_feed_params params;
	struct target_kind kind;
	size_t input_floats, target_values; /* of one item */
	struct dataset_order *order;
	struct feed_place *places; /* depth x replicas */
	struct feed_taker *takers; /* replicas */
	uint32_t *items;           /* of the batch that the thread prepares */
	struct pool *pool;         /* that helps the thread to decode */
	uint8_t *decoded;          /* the items of a batch, as bytes */
	struct err failure;        /* of the first item, in order, that could not be decoded */
	pthread_mutex_t lock;
	pthread_cond_t filled, emptied;
	pthread_t thread;
	bool synchronized, started, stop;
};

/* ---- batches --------------------------------------------------------------------------------- */

static int64_t feed_number(const struct dataset_feed *feed, int replica, int64_t step)
{
	const struct dataset_feed_params *params = &feed->params;
	int64_t pass = 0;

	assert(replica >= 0 && replica < params->replicas && step >= params->first_step);
	step -= params->first_step;
	if (params->pass_steps) {
		pass = step / params->pass_steps;
		step %= params->pass_steps;
	}
	return pass * feed->order->batches + step * params->replicas + replica;
}

int64_t dataset_feed_items(const struct dataset_feed *feed, int replica, int64_t step)
{
	return dataset_order_size(feed->order, feed_number(feed, replica, step));
}

int64_t dataset_feed_given(const struct dataset_feed *feed, int replica, int64_t step)
{
	return feed->params.pad ? feed->params.batch : dataset_feed_items(feed, replica, step);
}

/* Copy the batch's items out of the order, which other threads use too. */
static int64_t feed_copy_items(struct dataset_feed *feed, int replica, int64_t step,
			       uint32_t *items)
{
	const uint32_t *chosen;
	int64_t count;

	pthread_mutex_lock(&feed->lock);
	chosen = dataset_order_batch(feed->order, feed_number(feed, replica, step), &count);
	memcpy(items, chosen, (size_t)count * sizeof(*items));
	pthread_mutex_unlock(&feed->lock);
	return count;
}

/* Return the class of targets as Keras determines it: the number, or the index of a vector's
 * maximum. */
static int64_t class_of(const float *values, int64_t width)
{
	int64_t at = 0;

	if (width <= 1)
		return values[0] >= 0.0f && values[0] < (float)INT32_MAX ? (int64_t)values[0] : -1;
	for (int64_t j = 1; j < width; j++)
		at = values[j] > values[at] ? j : at;
	return at;
}

struct feed_decoding {
	struct dataset_feed *feed;
	const uint32_t *items;
	float *to;
	_Atomic int64_t failed; /* index in the batch of its first item that cannot be decoded */
};

static void decode_one(void *context, unsigned slice)
{
	struct feed_decoding *decoding = context;
	const struct dataset_feed *feed = decoding->feed;
	const struct dataset *set = feed->params.set;
	const size_t count = feed->input_floats;
	uint8_t *bytes = feed->decoded + slice * count;
	int64_t first = atomic_load(&decoding->failed);
	struct err err;

	if (dataset__decode(set->decoder, set->decoder_first + decoding->items[slice], bytes,
			    &err) != ST_OK) {
		memset(bytes, 0, count);
		while (slice < first &&
		       !atomic_compare_exchange_weak(&decoding->failed, &first, (int64_t)slice))
			;
	}
	gather_bytes(bytes, count, decoding->to + slice * count);
}

/* Called by the feed's thread. Decodes the batch's first failed item again to get the message. */
static void decode_inputs(struct dataset_feed *feed, const uint32_t *items, int64_t count,
			  float *to)
{
	const struct dataset *set = feed->params.set;
	struct feed_decoding decoding = {.feed = feed, .items = items, .to = to, .failed = count};
	struct err err = {ST_OK, ""};
	int64_t failed;

	pool_run(feed->pool, decode_one, &decoding, (unsigned)count);
	failed = atomic_load(&decoding.failed);
	if (failed == count || feed->failure.status != ST_OK)
		return;
	if (dataset__decode(set->decoder, set->decoder_first + items[failed], feed->decoded,
			    &err) == ST_OK)
		err_set(&err, ST_FAILED, "%s: an image could not be decoded the first time",
			set->source);
	pthread_mutex_lock(&feed->lock);
	feed->failure = err;
	pthread_mutex_unlock(&feed->lock);
}

enum status dataset_feed_failure(struct dataset_feed *feed, struct err *err)
{
	enum status status;

	if (!feed->params.set->decoder)
		return ST_OK;
	pthread_mutex_lock(&feed->lock);
	status = feed->failure.status;
	if (status != ST_OK)
		err_set(err, status, "%s", feed->failure.text);
	pthread_mutex_unlock(&feed->lock);
	return status;
}

static void feed_gather_inputs(const struct dataset_feed *feed, const uint32_t *items,
			       int64_t count, float *to)
{
	const size_t rest = feed->params.pad ? (size_t)(feed->params.batch - count) : 0;

	if (!feed->params.set->decoder)
		dataset_gather_inputs(feed->params.set, items, count, to);
	memset(to + (size_t)count * feed->input_floats, 0, rest * feed->input_floats * sizeof(*to));
}

/* Return the number of weights of an item: one for each row, or for each part of several
 * outputs. */
static int64_t item_weights(const struct dataset_feed *feed)
{
	const struct dataset *set = feed->params.set;

	if (set->part_count > 0)
		return feed->params.weigh_parts ? set->part_count : max(set->weight_width, 1);
	return feed->params.positions;
}

/* Return the class weights that hold for weight @row of a batch, and the class in @class; NULL:
 * none. */
static const struct class_weight *find_class(const struct dataset_feed *feed,
					     const struct feed_targets *from, int64_t row,
					     int64_t *class)
{
	const struct class_weight *of = feed->params.class_weights->parts;
	const struct target_part *parts = feed->kind.parts;
	const int count = feed->params.set->part_count;
	const int64_t width = feed->kind.width / feed->params.positions;
	const float *values;

	if (count) {
		values = from->values + row / count * feed->kind.width;
		for (int i = 0; i < row % count; i++)
			values += max(parts[i].width, 1);
		of += row % count;
		*class = class_of(values, parts[row % count].width);
	} else {
		*class = from->classes ? from->classes[row]
				       : class_of(from->values + row * width, width);
	}
	return of->items ? of : NULL;
}

static void feed_gather_targets(const struct dataset_feed *feed, const uint32_t *items,
				int64_t count, const struct feed_targets *to)
{
	const struct dataset *set = feed->params.set;
	const int64_t positions = item_weights(feed), width = set->weight_width;
	const size_t rest = feed->params.pad ? (size_t)(feed->params.batch - count) : 0;
	const struct class_weight *by;
	int64_t class;

	dataset_gather_targets(set, items, count, to->classes, to->values);
	if (rest > 0 && to->classes)
		memset(to->classes + count, 0, rest * sizeof(*to->classes));
	else if (rest > 0)
		memset(to->values + (size_t)count * feed->target_values, 0,
		       rest * feed->target_values * sizeof(*to->values));
	if (rest > 0)
		memset(to->weights + count * positions, 0,
		       rest * (size_t)positions * sizeof(*to->weights));
	for (int64_t r = 0; to->weights && r < count * positions; r++) {
		const int64_t at = width > 1 ? r % positions : 0;

		to->weights[r] = set->weights ? set->weights[items[r / positions] * width + at] : 1;
		by = feed->params.class_weights ? find_class(feed, to, r, &class) : NULL;
		if (by)
			to->weights[r] *= by->items[class];
	}
}

/* Check once that each target's class has a weight; gathering a batch does not check again. */
static enum status check_classes(const struct dataset_feed *feed, struct err *err)
{
	const struct feed_targets *to = &feed->takers[0].targets;
	const struct class_weight *by;
	int64_t class;

	for (uint32_t item = 0; item < feed->params.set->count; item++) {
		dataset_gather_targets(feed->params.set, &item, 1, to->classes, to->values);
		for (int64_t r = 0; r < item_weights(feed); r++) {
			by = find_class(feed, to, r, &class);
			if (by && (class < 0 || class >= by->count))
				return err_set(err, ST_INVALID,
					       "%s: fit.class_weight: it has no weight for item "
					       "%u, whose class is %lld: give the classes from 0 "
					       "to the greatest",
					       feed->params.set->source, item, (long long)class);
		}
	}
	return ST_OK;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static struct feed_place *feed_place(const struct dataset_feed *feed, int replica, int64_t step)
{
	int64_t at = (step - feed->params.first_step) % feed->params.depth;

	return &feed->places[at * feed->params.replicas + replica];
}

/* Fill the slot of @step; return false when the feed is stopped. */
static bool feed_fill(struct dataset_feed *feed, int replica, int64_t step)
{
	struct feed_place *place = feed_place(feed, replica, step);
	int64_t count;
	bool stop;

	pthread_mutex_lock(&feed->lock);
	while (place->step >= 0 && !feed->stop)
		pthread_cond_wait(&feed->emptied, &feed->lock);
	stop = feed->stop;
	pthread_mutex_unlock(&feed->lock);
	if (stop)
		return false;

	count = feed_copy_items(feed, replica, step, feed->items);
	if (feed->params.set->decoder) {
		if (feed->params.decoding)
			feed->params.decoding(feed->params.user, replica, step, count, false);
		decode_inputs(feed, feed->items, count, place->inputs);
		if (feed->params.decoding)
			feed->params.decoding(feed->params.user, replica, step, count, true);
	}
	feed_gather_inputs(feed, feed->items, count, place->inputs);
	if (!feed->params.no_targets)
		feed_gather_targets(feed, feed->items, count, &place->targets);

	pthread_mutex_lock(&feed->lock);
	place->step = step;
	place->wanted = feed->params.no_targets ? FEED_INPUTS : FEED_INPUTS | FEED_TARGETS;
	pthread_cond_broadcast(&feed->filled);
	pthread_mutex_unlock(&feed->lock);
	return true;
}

static void *feed_main(void *argument)
{
	struct dataset_feed *feed = argument;
	const struct dataset_feed_params *params = &feed->params;
	const int end = params->taken > 0 ? params->first_taken + params->taken : params->replicas;

	for (int64_t i = params->skip; !params->steps || i < params->steps; i++)
		for (int r = params->first_taken; r < end; r++)
			if (!feed_fill(feed, r, params->first_step + i))
				return NULL;
	return NULL;
}

/* Wait for the batch of @step. */
static struct feed_place *feed_wait(struct dataset_feed *feed, int replica, int64_t step)
{
	struct feed_place *place = feed_place(feed, replica, step);

	assert(!feed->params.steps || step - feed->params.first_step < feed->params.steps);
	pthread_mutex_lock(&feed->lock);
	while (place->step != step)
		pthread_cond_wait(&feed->filled, &feed->lock);
	pthread_mutex_unlock(&feed->lock);
	return place;
}

static void feed_release(struct dataset_feed *feed, struct feed_place *place, enum feed_part part)
{
	pthread_mutex_lock(&feed->lock);
	assert(place->wanted & (int)part);
	place->wanted &= ~(int)part;
	if (!place->wanted) {
		place->step = -1;
		pthread_cond_signal(&feed->emptied);
	}
	pthread_mutex_unlock(&feed->lock);
}

bool dataset_feed_lags(struct dataset_feed *feed, int replica, int64_t step)
{
	bool lags;

	if (!feed->params.set->decoder)
		return false;
	pthread_mutex_lock(&feed->lock);
	lags = feed_place(feed, replica, step)->step != step;
	pthread_mutex_unlock(&feed->lock);
	return lags;
}

/* ---- consumers ------------------------------------------------------------------------------- */

int64_t dataset_feed_inputs(struct dataset_feed *feed, int replica, int64_t step, float *inputs)
{
	struct feed_place *place;
	int64_t count;

	if (!feed->params.depth) {
		uint32_t *items = feed->takers[replica].items[0];

		count = feed_copy_items(feed, replica, step, items);
		feed_gather_inputs(feed, items, count, inputs);
		return dataset_feed_given(feed, replica, step);
	}
	count = dataset_feed_given(feed, replica, step);
	place = feed_wait(feed, replica, step);
	memcpy(inputs, place->inputs, (size_t)count * feed->input_floats * sizeof(*inputs));
	feed_release(feed, place, FEED_INPUTS);
	return count;
}

int64_t dataset_feed_targets(struct dataset_feed *feed, int replica, int64_t step,
			     struct targets *out)
{
	const struct feed_taker *taker = &feed->takers[replica];
	const struct feed_targets *to = &taker->targets;
	struct feed_place *place;
	int64_t count;

	assert(!feed->params.no_targets);
	*out = (struct targets){.classes = to->classes,
				.values = to->values,
				.width = feed->kind.width / feed->params.positions,
				.weights = to->weights};
	if (!feed->params.depth) {
		count = feed_copy_items(feed, replica, step, taker->items[1]);
		feed_gather_targets(feed, taker->items[1], count, to);
		return dataset_feed_given(feed, replica, step);
	}
	count = dataset_feed_given(feed, replica, step);
	place = feed_wait(feed, replica, step);
	if (to->classes)
		memcpy(to->classes, place->targets.classes, (size_t)count * sizeof(*to->classes));
	else
		memcpy(to->values, place->targets.values,
		       (size_t)count * feed->target_values * sizeof(*to->values));
	if (to->weights)
		memcpy(to->weights, place->targets.weights,
		       (size_t)(count * item_weights(feed)) * sizeof(*to->weights));
	feed_release(feed, place, FEED_TARGETS);
	return count;
}

/* ---- life cycle ------------------------------------------------------------------------------ */

static bool feed_new_targets(const struct dataset_feed *feed, struct feed_targets *targets)
{
	const size_t batch = (size_t)feed->params.batch;

	if (feed->params.no_targets)
		return true;
	if (dataset_gives_classes(feed->params.set))
		targets->classes = mem_calloc(batch, sizeof(*targets->classes));
	else
		targets->values = mem_aligned(batch * feed->target_values, sizeof(float));
	if (!feed->params.set->weights && !feed->params.class_weights && !feed->params.pad)
		return targets->classes || targets->values;
	targets->weights = mem_calloc(batch, (size_t)item_weights(feed) * sizeof(float));
	return targets->weights && (targets->classes || targets->values);
}

static void feed_free_targets(struct feed_targets *targets)
{
	mem_free(targets->classes);
	mem_free(targets->values);
	mem_free(targets->weights);
}

static bool feed_new_places(struct dataset_feed *feed)
{
	const size_t count = (size_t)feed->params.depth * (size_t)feed->params.replicas;

	if (!count)
		return true;
	feed->items = mem_calloc((size_t)feed->params.batch, sizeof(*feed->items));
	feed->places = mem_calloc(count, sizeof(*feed->places));
	if (feed->params.set->decoder)
		feed->decoded = mem_alloc((size_t)feed->params.batch * feed->input_floats);
	if (!feed->items || !feed->places || (feed->params.set->decoder && !feed->decoded))
		return false;
	for (size_t i = 0; i < count; i++) {
		struct feed_place *place = &feed->places[i];

		place->step = -1;
		place->inputs = mem_aligned((size_t)feed->params.batch * feed->input_floats,
					    sizeof(*place->inputs));
		if (!place->inputs || !feed_new_targets(feed, &place->targets))
			return false;
	}
	return true;
}

static bool feed_new_takers(struct dataset_feed *feed)
{
	feed->takers = mem_calloc((size_t)feed->params.replicas, sizeof(*feed->takers));
	for (int r = 0; feed->takers && r < feed->params.replicas; r++) {
		struct feed_taker *taker = &feed->takers[r];

		if (!feed_new_targets(feed, &taker->targets))
			return false;
		for (int part = 0; part < 2 && !feed->params.depth; part++) {
			taker->items[part] =
				mem_calloc((size_t)feed->params.batch, sizeof(uint32_t));
			if (!taker->items[part])
				return false;
		}
	}
	return feed->takers != NULL;
}

/* Make the order and the memory, check the classes, and start the thread. */
static enum status feed_start(struct dataset_feed *feed, const struct dataset_order_params *order,
			      struct err *err)
{
	if (dataset_order_new(&feed->order, order, err) != ST_OK)
		return err->status;
	if (!feed_new_places(feed) || !feed_new_takers(feed))
		return err_nomem(err);
	if (feed->params.class_weights && check_classes(feed, err) != ST_OK)
		return err->status;
	if (pthread_mutex_init(&feed->lock, NULL) != 0)
		return err_set(err, ST_FAILED, "data.prefetch: cannot make a lock");
	/* Without attributes these cannot fail on Linux. */
	pthread_cond_init(&feed->filled, NULL);
	pthread_cond_init(&feed->emptied, NULL);
	feed->synchronized = true;
	if (!feed->params.depth)
		return ST_OK;
	if (feed->params.set->decoder) {
		const unsigned threads =
			feed->params.threads ? feed->params.threads : pool_processors();

		if (pool_new(&feed->pool, threads - 1, err) != ST_OK)
			return err->status;
	}
	if (thread_start(&feed->thread, feed_main, feed) != 0)
		return err_set(err, ST_FAILED, "data.prefetch: cannot start a thread");
	feed->started = true;
	return ST_OK;
}

enum status dataset_feed_new(struct dataset_feed **out, const struct dataset_feed_params *params,
			     struct err *err)
{
	const struct dataset_order_params order = {.count = params->set->count,
						   .batch = params->batch,
						   .shuffle = params->shuffle,
						   .seed = params->seed,
						   .partial = params->partial,
						   .pad = params->pad};
	struct dataset_feed *feed = mem_calloc(1, sizeof(*feed));
	struct err own;

	err = err_start(err, &own);
	assert(params->replicas > 0 && params->depth >= 0 && params->first_step >= 0);
	assert(!params->class_weights || !params->no_targets);
	assert(!params->class_weights || !params->set->part_count || params->weigh_parts);
	*out = NULL;
	if (!feed)
		return err_nomem(err);
	feed->params = *params;
	feed->params.positions = max(params->positions, 1);
	feed->params.depth = max(params->depth, params->set->decoder ? 1 : 0);
	feed->kind = dataset_targets(params->set);
	feed->input_floats = dataset_item_floats(params->set);
	feed->target_values = (size_t)feed->kind.width;
	if (feed_start(feed, &order, err) != ST_OK) {
		dataset_feed_free(feed);
		return err->status;
	}
	*out = feed;
	return ST_OK;
}

void dataset_feed_free(struct dataset_feed *feed)
{
	if (!feed)
		return;
	if (feed->started) {
		pthread_mutex_lock(&feed->lock);
		feed->stop = true;
		pthread_cond_broadcast(&feed->emptied);
		pthread_mutex_unlock(&feed->lock);
		pthread_join(feed->thread, NULL);
	}
	if (feed->synchronized) {
		pthread_cond_destroy(&feed->filled);
		pthread_cond_destroy(&feed->emptied);
		pthread_mutex_destroy(&feed->lock);
	}
	for (int i = 0; feed->places && i < feed->params.depth * feed->params.replicas; i++) {
		mem_free(feed->places[i].inputs);
		feed_free_targets(&feed->places[i].targets);
	}
	for (int r = 0; feed->takers && r < feed->params.replicas; r++) {
		feed_free_targets(&feed->takers[r].targets);
		mem_free(feed->takers[r].items[0]);
		mem_free(feed->takers[r].items[1]);
	}
	pool_free(feed->pool);
	mem_free(feed->decoded);
	mem_free(feed->places);
	mem_free(feed->takers);
	mem_free(feed->items);
	dataset_order_free(feed->order);
	mem_free(feed);
}
