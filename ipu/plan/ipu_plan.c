/*
 * The planner: one row per kind of operation, and the cache of plans.
 *
 * Operations that differ only in name, layer, phase and stage share a plan.
 */
#include "ipu/plan/ipu_plan.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "common/mem.h"
#include "ipu/plan/plan_internal.h"

#define PLAN_NUMBERS 20
#define PLAN_BUCKETS 1024

/* All parameters of a plan, as numbers without padding: compared and hashed as bytes. */
struct plan_key {
	double available_memory_proportion;
	int64_t partials, kind, dtype;
	int64_t number[PLAN_NUMBERS];
};

struct plan_entry {
	struct plan_key key;
	struct ipu_plan plan;
	struct plan_entry *next; /* in the same bucket */
};

struct ipu_planner {
	struct ipu_target target;
	struct plan_entry *bucket[PLAN_BUCKETS];
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

/* ---- keys and validation --------------------------------------------------------------------- */

#define PLAN_MOST (INT64_C(1) << 40) /* of one dimension */

/* Parameters of an operation: dimensions first, then all others. */
struct op_numbers {
	int64_t number[PLAN_NUMBERS];
	int dimensions, count;
};

static void add_number(struct op_numbers *numbers, int64_t number)
{
	assert(numbers->count < PLAN_NUMBERS);
	numbers->number[numbers->count++] = number;
}

static void add_dimensions(struct op_numbers *numbers, const int64_t *dimensions, int count)
{
	for (int i = 0; i < count; i++)
		add_number(numbers, dimensions[i]);
	numbers->dimensions += count;
}

static void conv_numbers(const struct ipu_conv *conv, struct op_numbers *numbers)
{
	const int64_t sizes[] = {conv->batch, conv->groups, conv->in_channels, conv->out_channels};

	add_dimensions(numbers, sizes, (int)ARRAY_LEN(sizes));
	add_dimensions(numbers, conv->in, 2);
	add_dimensions(numbers, conv->out, 2);
	add_dimensions(numbers, conv->kernel, 2);
	add_dimensions(numbers, conv->stride, 2);
	add_dimensions(numbers, conv->dilation, 2);
	add_number(numbers, conv->pass);
}

static void pool_numbers(const struct ipu_pool *pool, struct op_numbers *numbers)
{
	const int64_t sizes[] = {pool->batch, pool->channels};

	add_dimensions(numbers, sizes, (int)ARRAY_LEN(sizes));
	add_dimensions(numbers, pool->in, 2);
	add_dimensions(numbers, pool->out, 2);
	add_dimensions(numbers, pool->kernel, 2);
	add_dimensions(numbers, pool->stride, 2);
	add_number(numbers, pool->max * 2 + pool->backward);
}

static void elements_numbers(const struct ipu_elements *elements, struct op_numbers *numbers)
{
	int64_t times[2] = {0, 0};

	_Static_assert(IPU_FUNCTIONS <= 16, "functions' times do not fit their numbers");
	memcpy(times, elements->times, sizeof(elements->times));
	add_dimensions(numbers, &elements->count, 1);
	add_number(numbers, elements->operands);
	add_number(numbers, elements->broadcast);
	add_number(numbers, times[0]);
	add_number(numbers, times[1]);
}

static void op_numbers(const struct ipu_op *op, struct op_numbers *numbers)
{
	*numbers = (struct op_numbers){0};
	switch (op->kind) {
	case IPU_OP_CONV:
		conv_numbers(&op->conv, numbers);
		break;
	case IPU_OP_MATMUL:
		add_dimensions(numbers, (const int64_t[]){op->matmul.m, op->matmul.k, op->matmul.n},
			       3);
		add_number(numbers, op->pass * 2 + op->trained);
		break;
	case IPU_OP_ELEMENTWISE:
		elements_numbers(&op->elements, numbers);
		break;
	case IPU_OP_REDUCE:
		add_dimensions(numbers, (const int64_t[]){op->reduce.inputs, op->reduce.outputs},
			       2);
		break;
	case IPU_OP_POOL:
		pool_numbers(&op->pool, numbers);
		break;
	case IPU_OP_ROWS:
		add_dimensions(numbers, (const int64_t[]){op->rows.rows, op->rows.columns}, 2);
		add_number(numbers, op->rows.work);
		break;
	case IPU_OP_COPY:
		add_dimensions(numbers, (const int64_t[]){op->copy.count, op->copy.atom}, 2);
		break;
	case IPU_OP_SLICE:
		add_dimensions(
			numbers,
			(const int64_t[]){op->slice.entries, op->slice.columns, op->slice.lookups},
			3);
		add_number(numbers, op->slice.update);
		add_number(numbers, op->slice.tables);
		break;
	case IPU_OP_KINDS:
		break;
	}
	add_number(numbers, op->repeats);
}

/* ---- cache ----------------------------------------------------------------------------------- */

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

	/* Compare all fields of a target that planning reads. */
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

static void make_key(const struct ipu_op *op, const struct ipu_plan_options *options,
		     struct plan_key *key)
{
	struct op_numbers numbers;

	op_numbers(op, &numbers);
	*key = (struct plan_key){
		options->available_memory_proportion, options->partials, op->kind, op->dtype, {0}};
	memcpy(key->number, numbers.number, sizeof(key->number));
}

/* Return the link to @key's plan, or the NULL link at the end of its bucket. */
static struct plan_entry **find_entry(struct ipu_planner *planner, const struct plan_key *key)
{
	struct plan_entry **at = &planner->bucket[XXH3_64bits(key, sizeof(*key)) % PLAN_BUCKETS];

	while (*at && memcmp(&(*at)->key, key, sizeof(*key)) != 0)
		at = &(*at)->next;
	return at;
}

/* Plan @op, and the operations that are planned jointly with it; store all plans in the cache. */
static enum status add_plans(struct ipu_planner *planner, const struct ipu_op *op,
			     const struct ipu_plan_options *options, struct err *err)
{
	const bool layer = op->kind == IPU_OP_MATMUL && op->trained;
	struct ipu_op ops[IPU_PASSES] = {*op};
	struct ipu_plan plans[IPU_PASSES];

	for (int i = 0; i < IPU_PASSES; i++) {
		plans[i] = (struct ipu_plan){.split_batch = 1,
					     .split_field = 1,
					     .split_in = 1,
					     .split_out = 1,
					     .split_kernel = 1,
					     .serial_splits = 1};
	}
	if (layer)
		ipu__plan_layer(&planner->target, op, options, ops, plans);
	else
		plan_kinds[op->kind](&planner->target, op, options, &plans[0]);
	for (int i = 0; i < (layer ? IPU_PASSES : 1); i++) {
		struct plan_entry **at, *entry;
		struct plan_key key;

		make_key(&ops[i], options, &key);
		at = find_entry(planner, &key);
		if (*at)
			continue;
		entry = mem_calloc(1, sizeof(*entry));
		if (!entry)
			return err_nomem(err);
		ipu__plan_finish(&planner->target, &ops[i], &plans[i]);
		entry->key = key;
		entry->plan = plans[i];
		*at = entry;
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
	enum status status = ST_OK;

	*out = NULL;
	op_numbers(op, &numbers);
	for (int i = 0; i < numbers.dimensions; i++)
		if (numbers.number[i] < 1 || numbers.number[i] > PLAN_MOST)
			return err_set(err, ST_INVALID,
				       "%s %s: a dimension of %lld cannot be planned (1 to 2^40)",
				       ipu_op_kind_name(op->kind), op->name ? op->name : "",
				       (long long)numbers.number[i]);
	ipu_plan_options_defaults(&defaults);
	options = options ? options : &defaults;
	make_key(op, options, &key);
	if (!*find_entry(planner, &key))
		status = add_plans(planner, op, options, err);
	if (status == ST_OK)
		*out = &(*find_entry(planner, &key))->plan;
	return status;
}
