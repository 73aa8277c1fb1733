/*
 * Pair the halves of spans.
 *
 * Halves of one pair (a thread; or a category and id) have a stack. An end without a name ends the
 * innermost begin. One with a name ends the innermost begin of that name, and begins nested in it,
 * which are then unfinished. Begins without an end last until the end of the enclosing span. The
 * states of a track are a pair of their own: each lasts until the next one.
 *
 * Nearly every file has the halves of a pair in order of time. So they are paired while the file is
 * read, with a stack for each pair. Where a file turns out to be otherwise, or has so many pairs or
 * open spans that memory would grow with it, it is read again from its start, and the halves are
 * sorted by pair and time outside memory first: then one stack is enough. Both ways give the same
 * spans.
 *
 * Failures stick in @err, which is never NULL: nothing is pushed or popped after the first.
 */
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "reports/import/report_import_internal.h"

#define PAIRS_MOST ((size_t)1 << 16)
#define OPEN_BYTES ((size_t)8 << 20) /* of all open begins */

/* Open begins: copies of records with their arguments, in a stack of bytes. */
struct pair_stack {
	uint64_t pair;
	int64_t last_ns; /* of the last half */
	unsigned char *bytes;
	size_t used, capacity;
	size_t *at; /* offset of each */
	size_t count, at_capacity;
};

struct import_pairs {
	struct pair_stack *stacks;
	size_t count, capacity;
	struct map map;
	size_t open_bytes;
};

/* A half, and its arguments. */
struct half {
	const struct import_record *record;
	const void *args;
	size_t bytes;
};

static struct import_record *begin_at(const struct pair_stack *stack, size_t index)
{
	return (struct import_record *)(void *)(stack->bytes + stack->at[index]);
}

static void push(struct import *import, struct pair_stack *stack, const struct half *half,
		 struct err *err)
{
	const size_t bytes = sizeof(*half->record) + half->bytes;
	struct import_record *begin;

	if (err_stuck(err))
		return;
	if (stack->count == IMPORT_MOST_OPEN) {
		report__import_left(import, REPORT_IMPORT_LEFT_TOO_DEEP);
		return;
	}
	if (mem_grow(&stack->bytes, &stack->capacity, stack->used + bytes, 1) != 0 ||
	    mem_grow(&stack->at, &stack->at_capacity, stack->count + 1, sizeof(*stack->at)) != 0) {
		err_nomem(err);
		return;
	}
	stack->at[stack->count++] = stack->used;
	begin = begin_at(stack, stack->count - 1);
	*begin = *half->record;
	begin->bytes = (uint32_t)bytes;
	if (half->bytes > 0)
		memcpy(begin + 1, half->args, half->bytes);
	stack->used += bytes;
}

/* Convert the innermost begin to a span that ends at @end_ns (IPS_NULL: with the enclosing span),
 * and append the arguments of @end (may be NULL). */
static void pop(struct import *import, struct pair_stack *stack, int64_t end_ns,
		const struct half *end, struct err *err)
{
	const struct import_record *begin = begin_at(stack, stack->count - 1);
	const size_t more = !end ? 0 : end->bytes;
	struct import_record *out;

	if (err_stuck(err) ||
	    report__import_sorter_put(import->main, begin->bytes + more, &out, err) != ST_OK)
		return;
	memcpy(out, begin, begin->bytes);
	if (more > 0)
		memcpy((unsigned char *)out + begin->bytes, end->args, more);
	out->bytes = begin->bytes + (uint32_t)more;
	out->dur_ns = end_ns == IPS_NULL ? -1 : end_ns - begin->time_ns;
	out->kind = IMPORT_RECORD_SPAN;
	out->unfinished = !end;
	out->paired = 1;
	out->async = begin->async ? (uint8_t)min(stack->count, UINT8_MAX) : 0;
	stack->used = stack->at[--stack->count];
	import->records++;
	import_used(import, REPORT_IMPORT_BEGIN);
	if (!end)
		report__import_note(import, REPORT_IMPORT_NOTE_UNFINISHED);
}

static void pop_all(struct import *import, struct pair_stack *stack, struct err *err)
{
	while (stack->count > 0 && !err_stuck(err))
		pop(import, stack, IPS_NULL, NULL, err);
}

static bool same_name(const struct import *import, uint32_t a, uint32_t b)
{
	return a == b ||
	       strcmp(import->sites.items[a].site->name, import->sites.items[b].site->name) == 0;
}

/* The same state again goes on. A stack has one state at most. */
static void put_state(struct import *import, struct pair_stack *stack, const struct half *half,
		      struct err *err)
{
	const struct half end = {half->record, NULL, 0};
	const uint32_t site = half->record->site;

	if (stack->count > 0 && site != IMPORT_NO_ID &&
	    same_name(import, begin_at(stack, 0)->site, site)) {
		import_used(import, REPORT_IMPORT_STATE);
		return;
	}
	if (stack->count > 0)
		pop(import, stack, half->record->time_ns, &end, err);
	if (site != IMPORT_NO_ID)
		push(import, stack, half, err);
	else
		import_used(import, REPORT_IMPORT_STATE);
}

static void put_end(struct import *import, struct pair_stack *stack, const struct half *half,
		    struct err *err)
{
	const struct import_record *record = half->record;
	size_t match = stack->count;

	while (match > 0 && record->site != IMPORT_NO_ID &&
	       !same_name(import, begin_at(stack, match - 1)->site, record->site))
		match--;
	if (match == 0) {
		report__import_left(import, REPORT_IMPORT_LEFT_NO_BEGIN);
		return;
	}
	while (stack->count > match && !err_stuck(err))
		pop(import, stack, record->time_ns, NULL, err);
	pop(import, stack, record->time_ns, half, err);
	import_used(import, REPORT_IMPORT_END);
}

static void put_half(struct import *import, struct pair_stack *stack, const struct half *half,
		     struct err *err)
{
	if (half->record->kind == IMPORT_RECORD_BEGIN)
		push(import, stack, half, err);
	else if (half->record->kind == IMPORT_RECORD_STATE)
		put_state(import, stack, half, err);
	else
		put_end(import, stack, half, err);
}

/* ---- while the file is read ------------------------------------------------------------------ */

bool report__import_pairs_init(struct import *import)
{
	import->pairs = mem_calloc(1, sizeof(*import->pairs));
	return import->pairs != NULL;
}

void report__import_pairs_fini(struct import *import)
{
	struct import_pairs *pairs = import->pairs;

	for (size_t i = 0; pairs && i < pairs->count; i++) {
		mem_free(pairs->stacks[i].bytes);
		mem_free(pairs->stacks[i].at);
	}
	if (pairs) {
		mem_free(pairs->stacks);
		map_fini(&pairs->map);
	}
	mem_free(pairs);
	import->pairs = NULL;
}

/* The stack of @pair; NULL: there are too many, or a failure. */
static struct pair_stack *find_stack(struct import_pairs *pairs, uint64_t pair, struct err *err)
{
	struct pair_stack *stack;
	size_t at;

	MAP_FIND(at, &pairs->map, pair, pairs->stacks[at].pair == pair);
	if (at != MAP_NONE)
		return &pairs->stacks[at];
	if (pairs->count == PAIRS_MOST)
		return NULL;
	stack = report__import_append(&pairs->map, pair, &pairs->stacks, &pairs->count,
				      &pairs->capacity, sizeof(*stack), err);
	if (stack)
		*stack = (struct pair_stack){.pair = pair, .last_ns = INT64_MIN};
	return stack;
}

enum status report__import_half(struct import *import, const struct import_record *record,
				const struct import_args *args, struct err *err)
{
	struct import_pairs *pairs = import->pairs;
	const struct half half = {record, args ? args->bytes : NULL, args ? args->used : 0};
	struct pair_stack *stack = find_stack(pairs, record->value, err);
	size_t before;

	if (err_stuck(err))
		return err->status;
	if (!stack || record->time_ns < stack->last_ns || pairs->open_bytes > OPEN_BYTES) {
		import->unordered = true;
		return err_set(err, ST_LIMIT, "%s: must be sorted first", import->input.name);
	}
	stack->last_ns = record->time_ns;
	before = stack->used;
	put_half(import, stack, &half, err);
	pairs->open_bytes += stack->used - before;
	return err->status;
}

/* ---- sorted ---------------------------------------------------------------------------------- */

enum status report__import_pair(struct import *import, struct err *err)
{
	const struct import_record *record;
	struct pair_stack stack = {0};
	uint64_t done = 0;
	struct err own;

	err = err_start(err, &own);
	if (import->halves)
		report__import_sorter_read(import->halves, err);
	while (import->halves && (record = report__import_sorter_next(import->halves, err))) {
		const struct half half = {record, record + 1, record->bytes - sizeof(*record)};

		if (record->value != stack.pair)
			pop_all(import, &stack, err);
		stack.pair = record->value;
		put_half(import, &stack, &half, err);
		if (++done % 65536 == 0)
			report__import_progress(import, -1, err);
	}
	pop_all(import, &stack, err);
	mem_free(stack.bytes);
	mem_free(stack.at);
	for (size_t i = 0; import->pairs && i < import->pairs->count; i++)
		pop_all(import, &import->pairs->stacks[i], err);
	report__import_sorter_free(import->halves);
	import->halves = NULL;
	report__import_pairs_fini(import);
	return err->status;
}
