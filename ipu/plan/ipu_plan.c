/*
 * The planner: one row for each kind of operation, and the plans that were asked for.
 *
 * Operations that are the same but for their name, layer, phase and stage share a plan.
 */
#include "ipu/plan/ipu_plan.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "ipu/plan/plan_internal.h"

#define PLAN_NUMBERS 20
#define PLAN_BUCKETS 1024

/* What a plan depends on, as numbers without padding between: compared and hashed as bytes. */
struct plan_key {
	double available_memory_proportion;
	int64_t partials, kind, dtype;
	int64_t number[PLAN_NUMBERS];
};

struct plan_entry {
	struct plan_key key;
	struct ipu_plan plan;
	struct plan_entry *next; /* of the same bucket */
};

struct ipu_planner {
	struct ipu_target target;
	struct plan_entry *bucket[PLAN_BUCKETS];
	int64_t planned, cached;
};

static const ipu_plan_fn plan_kinds[] = {
	[IPU_OP_CONV] = ipu__plan_conv,
	[IPU_OP_MATMUL] = ipu__plan_matmul,
	[IPU_OP_ELEMENTWISE] = ipu__plan_elementwise,
	[IPU_OP_REDUCE] = ipu__plan_reduce,
	[IPU_OP_POOL] = ipu__plan_pool,
	[IPU_OP_ROWS] = ipu__plan_rows,
	[IPU_OP_COPY] = ipu__plan_copy,
	[IPU_OP_SLICE] = ipu__plan_slice,
};
_Static_assert(ARRAY_LEN(plan_kinds) == IPU_OP_KINDS, "planner table out of step");

const char *ipu_method_name(enum ipu_method method)
{
	static const char *const names[] = {
		[IPU_METHOD_NONE] = "-",
		[IPU_METHOD_AMP_1X1] = "AMP 1x1",
		[IPU_METHOD_AMP_NX1] = "AMP nx1",
		[IPU_METHOD_HORIZONTAL_MAC] = "HMAC",
		[IPU_METHOD_VERTICAL_MAC] = "VMAC",
		[IPU_METHOD_OUTER_PRODUCT] = "OUTER_PRODUCT",
		[IPU_METHOD_SLIC] = "SLIC",
	};

	_Static_assert(ARRAY_LEN(names) == IPU_METHODS, "method names out of step");
	assert((unsigned)method < IPU_METHODS);
	return names[method];
}

void ipu_plan_options_defaults(struct ipu_plan_options *options)
{
	*options = (struct ipu_plan_options){.available_memory_proportion = 0.6,
					     .partials = IPU_FLOAT32};
}

int64_t ipu__whole(double value)
{
	assert(value >= 0);
	return value < 0x1p50 ? (int64_t)ceil(value) : INT64_C(1) << 50;
}

void ipu__plan_add(struct ipu_plan *plan, const struct ipu_phase *phase)
{
	if (phase->cycles == 0 && phase->bytes == 0)
		return;
	assert(plan->phase_count < IPU_PHASES);
	assert(phase->repeats >= 1 && phase->cycles >= 0 && phase->bytes >= 0);
	plan->phases[plan->phase_count++] = *phase;
}

/* ---- what an operation may be ---------------------------------------------------------------- */

#define PLAN_MOST (INT64_C(1) << 40) /* of a dimension */

/* What a kind of operation is described by: dimensions, then whatever else. */
struct op_numbers {
	int64_t number[PLAN_NUMBERS];
	int dimensions, count;
};

static void number_add(struct op_numbers *numbers, int64_t number)
{
	assert(numbers->count < PLAN_NUMBERS);
	numbers->number[numbers->count++] = number;
}

static void dimensions_add(struct op_numbers *numbers, const int64_t *dimensions, int count)
{
	for (int i = 0; i < count; i++)
		number_add(numbers, dimensions[i]);
	numbers->dimensions += count;
}

static void conv_numbers(const struct ipu_conv *conv, struct op_numbers *numbers)
{
	const int64_t sizes[] = {conv->batch, conv->groups, conv->in_channels, conv->out_channels};

	dimensions_add(numbers, sizes, (int)ARRAY_LEN(sizes));
	dimensions_add(numbers, conv->in, 2);
	dimensions_add(numbers, conv->out, 2);
	dimensions_add(numbers, conv->kernel, 2);
	dimensions_add(numbers, conv->stride, 2);
	dimensions_add(numbers, conv->dilation, 2);
	number_add(numbers, conv->pass);
}

static void pool_numbers(const struct ipu_pool *pool, struct op_numbers *numbers)
{
	const int64_t sizes[] = {pool->batch, pool->channels};

	dimensions_add(numbers, sizes, (int)ARRAY_LEN(sizes));
	dimensions_add(numbers, pool->in, 2);
	dimensions_add(numbers, pool->out, 2);
	dimensions_add(numbers, pool->kernel, 2);
	dimensions_add(numbers, pool->stride, 2);
	number_add(numbers, pool->max * 2 + pool->backward);
}

static void elements_numbers(const struct ipu_elements *elements, struct op_numbers *numbers)
{
	int64_t times[2] = {0, 0};

	_Static_assert(IPU_FUNCTIONS <= 16, "functions' times do not fit their numbers");
	memcpy(times, elements->times, sizeof(elements->times));
	dimensions_add(numbers, &elements->count, 1);
	number_add(numbers, elements->operands);
	number_add(numbers, elements->broadcast);
	number_add(numbers, times[0]);
	number_add(numbers, times[1]);
}

static void op_numbers(const struct ipu_op *op, struct op_numbers *numbers)
{
	*numbers = (struct op_numbers){0};
	switch (op->kind) {
	case IPU_OP_CONV:
		conv_numbers(&op->conv, numbers);
		break;
	case IPU_OP_MATMUL:
		dimensions_add(numbers, (const int64_t[]){op->matmul.m, op->matmul.k, op->matmul.n},
			       3);
		number_add(numbers, op->pass * 2 + op->trained);
		break;
	case IPU_OP_ELEMENTWISE:
		elements_numbers(&op->elements, numbers);
		break;
	case IPU_OP_REDUCE:
		dimensions_add(numbers, (const int64_t[]){op->reduce.inputs, op->reduce.outputs},
			       2);
		break;
	case IPU_OP_POOL:
		pool_numbers(&op->pool, numbers);
		break;
	case IPU_OP_ROWS:
		dimensions_add(numbers, (const int64_t[]){op->rows.rows, op->rows.columns}, 2);
		number_add(numbers, op->rows.work);
		break;
	case IPU_OP_COPY:
		dimensions_add(numbers, (const int64_t[]){op->copy.count, op->copy.atom}, 2);
		break;
	case IPU_OP_SLICE:
		dimensions_add(
			numbers,
			(const int64_t[]){op->slice.entries, op->slice.columns, op->slice.lookups},
			3);
		number_add(numbers, op->slice.update);
		number_add(numbers, op->slice.tables);
		break;
	case IPU_OP_KINDS:
		break;
	}
	number_add(numbers, op->repeats);
}

static enum status op_check(const struct ipu_op *op, const struct op_numbers *numbers,
			    struct err *err)
{
	for (int i = 0; i < numbers->dimensions; i++)
		if (numbers->number[i] < 1 || numbers->number[i] > PLAN_MOST)
			return err_set(err, ST_INVALID,
				       "%s %s: a dimension of %lld cannot be planned (1 to 2^40)",
				       ipu_op_kind_name(op->kind), op->name ? op->name : "",
				       (long long)numbers->number[i]);
	return ST_OK;
}

/* ---- one plan -------------------------------------------------------------------------------- */

static void plan_sum(const struct ipu_target *target, struct ipu_plan *plan)
{
	double work = 0, busiest = 0;

	for (int i = 0; i < plan->phase_count; i++) {
		const struct ipu_phase *phase = &plan->phases[i];
		int64_t cycles = phase->cycles * phase->repeats;

		plan->sync_cycles += ipu__whole(target->phase_cycles) * phase->repeats;
		plan->bytes_exchanged += phase->bytes * phase->repeats;
		if (phase->tiles > plan->tiles_used)
			plan->tiles_used = phase->tiles;
		if (phase->kind == IPU_EXCHANGE) {
			plan->exchange_cycles += cycles;
			continue;
		}
		plan->compute_cycles += cycles;
		busiest += (double)cycles;
		work += phase->mean_cycles * (double)(phase->tiles * phase->repeats);
	}
	plan->cycles = plan->compute_cycles + plan->exchange_cycles + plan->sync_cycles;
	plan->tile_balance = busiest > 0 ? work / (busiest * (double)target->tiles) : NAN;
}

static void plan_begin(struct ipu_plan *plan)
{
	*plan = (struct ipu_plan){.split_batch = 1,
				  .split_field = 1,
				  .split_in = 1,
				  .split_out = 1,
				  .split_kernel = 1,
				  .serial_splits = 1};
}

static void plan_end(const struct ipu_target *target, const struct ipu_op *op,
		     struct ipu_plan *plan)
{
	for (int i = 0; i < plan->phase_count; i++)
		plan->phases[i].repeats *= max(op->repeats, 1);
	plan->flops = ipu_op_flops(op);
	plan_sum(target, plan);
}

/* ---- the cache ------------------------------------------------------------------------------- */

enum status ipu_planner_new(struct ipu_planner **out, const struct ipu_target *target,
			    struct err *err)
{
	*out = mem_calloc(1, sizeof(**out));
	if (!*out)
		return err_nomem(err);
	(*out)->target = *target;
	return ST_OK;
}

bool ipu_planner_suits(const struct ipu_planner *planner, const struct ipu_target *target)
{
	const struct ipu_target *own = &planner->target;

	/* All that planning reads of a target. */
	return own->tiles == target->tiles && own->bytes_per_tile == target->bytes_per_tile &&
	       own->workers == target->workers && own->vector_bytes == target->vector_bytes &&
	       own->load_bytes_cycle == target->load_bytes_cycle &&
	       !memcmp(own->amp, target->amp, sizeof(own->amp)) &&
	       !(fabs(own->exchange_bytes_cycle - target->exchange_bytes_cycle) > 0) &&
	       !(fabs(own->phase_cycles - target->phase_cycles) > 0);
}

void ipu_planner_free(struct ipu_planner *planner)
{
	if (!planner)
		return;
	for (size_t i = 0; i < PLAN_BUCKETS; i++) {
		while (planner->bucket[i]) {
			struct plan_entry *entry = planner->bucket[i];

			planner->bucket[i] = entry->next;
			mem_free(entry);
		}
	}
	mem_free(planner);
}

static void key_of(const struct ipu_op *op, const struct ipu_plan_options *options,
		   struct plan_key *key)
{
	struct op_numbers numbers;

	op_numbers(op, &numbers);
	*key = (struct plan_key){
		options->available_memory_proportion, options->partials, op->kind, op->dtype, {0}};
	memcpy(key->number, numbers.number, sizeof(key->number));
}

/* Where @key's plan hangs, or NULL would: the end of its bucket. */
static struct plan_entry **entry_at(struct ipu_planner *planner, const struct plan_key *key)
{
	struct plan_entry **at = &planner->bucket[XXH3_64bits(key, sizeof(*key)) % PLAN_BUCKETS];

	while (*at && memcmp(&(*at)->key, key, sizeof(*key)) != 0)
		at = &(*at)->next;
	return at;
}

/* Plans @op and what is planned with it; these lie beside it, to be asked for. */
static enum status plan_new(struct ipu_planner *planner, const struct ipu_op *op,
			    const struct ipu_plan_options *options, struct err *err)
{
	const bool layer = op->kind == IPU_OP_MATMUL && op->trained;
	struct ipu_op ops[IPU_PASSES] = {*op};
	struct ipu_plan plans[IPU_PASSES];

	for (int i = 0; i < IPU_PASSES; i++)
		plan_begin(&plans[i]);
	if (layer)
		ipu__plan_layer(&planner->target, op, options, ops, plans);
	else
		plan_kinds[op->kind](&planner->target, op, options, &plans[0]);
	for (int i = 0; i < (layer ? IPU_PASSES : 1); i++) {
		struct plan_entry **at, *entry;
		struct plan_key key;

		key_of(&ops[i], options, &key);
		at = entry_at(planner, &key);
		if (*at)
			continue;
		entry = mem_calloc(1, sizeof(*entry));
		if (!entry)
			return err_nomem(err);
		plan_end(&planner->target, &ops[i], &plans[i]);
		entry->key = key;
		entry->plan = plans[i];
		*at = entry;
		planner->planned++;
	}
	return ST_OK;
}

enum status ipu_planner_plan(struct ipu_planner *planner, const struct ipu_op *op,
			     const struct ipu_plan_options *options, const struct ipu_plan **out,
			     struct err *err)
{
	struct ipu_plan_options defaults;
	struct op_numbers numbers;
	struct plan_key key;
	enum status status;

	*out = NULL;
	op_numbers(op, &numbers);
	status = op_check(op, &numbers, err);
	if (status != ST_OK)
		return status;
	ipu_plan_options_defaults(&defaults);
	options = options ? options : &defaults;
	key_of(op, options, &key);
	if (*entry_at(planner, &key))
		planner->cached++;
	else
		status = plan_new(planner, op, options, err);
	if (status == ST_OK)
		*out = &(*entry_at(planner, &key))->plan;
	return status;
}

void ipu_planner_counts(const struct ipu_planner *planner, int64_t *planned, int64_t *cached)
{
	*planned = planner->planned;
	*cached = planner->cached;
}
