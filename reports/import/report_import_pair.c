/*
 * Begins and ends become spans.
 *
 * The halves come by pair (a thread; a category and id), in order of time: each pair needs a stack
 * and nothing of another. An end without a name ends the innermost begin; one with a name the
 * innermost of that name, and those within it, which are unfinished. Begins that never end last to
 * the end of what encloses them.
 */
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "reports/import/report_import_internal.h"

/* Begun, not ended: copies of records with their arguments, in a stack of bytes. */
struct pair_stack {
	uint64_t pair;
	unsigned char *bytes;
	size_t used, capacity;
	size_t *at; /* where each begins */
	size_t count, at_capacity;
};

static struct import_record *begin_at(const struct pair_stack *stack, size_t index)
{
	return (struct import_record *)(void *)(stack->bytes + stack->at[index]);
}

static enum status push(struct import *import, struct pair_stack *stack,
			const struct import_record *record, struct err *err)
{
	if (stack->count == IMPORT_MOST_OPEN) {
		import_left(import, REPORT_IMPORT_LEFT_TOO_DEEP);
		return ST_OK;
	}
	if (mem_grow(&stack->bytes, &stack->capacity, stack->used + record->bytes, 1) != 0 ||
	    mem_grow(&stack->at, &stack->at_capacity, stack->count + 1, sizeof(*stack->at)) != 0)
		return err_nomem(err);
	stack->at[stack->count++] = stack->used;
	memcpy(stack->bytes + stack->used, record, record->bytes);
	stack->used += record->bytes;
	return ST_OK;
}

/* The innermost begin becomes a span that ends at @end_ns (IPS_NULL: with what encloses it), with
 * the arguments of @end too (may be NULL). */
static enum status pop(struct import *import, struct pair_stack *stack, int64_t end_ns,
		       const struct import_record *end, struct err *err)
{
	const struct import_record *begin = begin_at(stack, stack->count - 1);
	size_t more = !end ? 0 : end->bytes - sizeof(*end), depth;
	struct import_record *out;
	enum status status =
		report__import_sorter_put(import->main, begin->bytes + more, &out, err);

	if (status != ST_OK)
		return status;
	memcpy(out, begin, begin->bytes);
	if (more > 0)
		memcpy((unsigned char *)out + begin->bytes, end + 1, more);
	depth = min(stack->count, UINT8_MAX);
	out->bytes = begin->bytes + (uint32_t)more;
	out->dur_ns = end_ns == IPS_NULL ? -1 : end_ns - begin->time_ns;
	out->kind = IMPORT_RECORD_SPAN;
	out->unfinished = !end;
	out->paired = 1;
	out->async = begin->async ? (uint8_t)depth : 0;
	stack->used = stack->at[--stack->count];
	import->records++;
	import_used(import, REPORT_IMPORT_BEGIN);
	if (!end)
		import_note(import, REPORT_IMPORT_NOTE_UNFINISHED);
	return ST_OK;
}

static enum status pop_all(struct import *import, struct pair_stack *stack, struct err *err)
{
	enum status status = ST_OK;

	while (stack->count > 0 && status == ST_OK)
		status = pop(import, stack, IPS_NULL, NULL, err);
	return status;
}

static bool same_name(const struct import *import, uint32_t a, uint32_t b)
{
	return a == b ||
	       strcmp(import->sites.items[a].site->name, import->sites.items[b].site->name) == 0;
}

static enum status end_one(struct import *import, struct pair_stack *stack,
			   const struct import_record *end, struct err *err)
{
	size_t match = stack->count;
	enum status status = ST_OK;

	while (match > 0 && end->site != IMPORT_NO_ID &&
	       !same_name(import, begin_at(stack, match - 1)->site, end->site))
		match--;
	if (match == 0) {
		import_left(import, REPORT_IMPORT_LEFT_NO_BEGIN);
		return ST_OK;
	}
	while (stack->count > match && status == ST_OK)
		status = pop(import, stack, end->time_ns, NULL, err);
	if (status == ST_OK)
		status = pop(import, stack, end->time_ns, end, err);
	import_used(import, REPORT_IMPORT_END);
	return status;
}

enum status report__import_pair(struct import *import, struct err *err)
{
	struct pair_stack stack = {0};
	const struct import_record *record;
	enum status status = ST_OK;
	uint64_t done = 0;

	if (import->pairs_put == 0)
		return ST_OK;
	status = report__import_sorter_turn(import->pairs, err);
	while (status == ST_OK) {
		status = report__import_sorter_next(import->pairs, &record, err);
		if (status != ST_OK || !record)
			break;
		if (record->value != stack.pair)
			status = pop_all(import, &stack, err);
		stack.pair = record->value;
		if (status == ST_OK && record->kind == IMPORT_RECORD_BEGIN)
			status = push(import, &stack, record, err);
		else if (status == ST_OK)
			status = end_one(import, &stack, record, err);
		if (status == ST_OK && ++done % 65536 == 0)
			status = report__import_progress(import, -1, err);
	}
	if (status == ST_OK)
		status = pop_all(import, &stack, err);
	mem_free(stack.bytes);
	mem_free(stack.at);
	report__import_sorter_free(import->pairs);
	import->pairs = NULL;
	return status;
}
