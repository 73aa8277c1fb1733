/*
 * Offsets of buffers: one after the other in a slot, by lifetime in the shared area.
 *
 * The shared area is first fit by size: the largest buffer first, each at the lowest offset where
 * none that is in use at the same time lies. Ties go by number, so that a plan is always the same.
 * Quadratic in the buffers, of which there are a few per layer. Threading: none.
 */
#include <stdlib.h>

#include "common/minmax.h"
#include "common/sorted.h"
#include "trainer/models/stage_internal.h"

struct memory_item {
	struct stage_buffer *buffer;
	int number;
};

static bool memory_append(size_t *total, struct stage_buffer *buffer)
{
	buffer->offset = *total;
	return !__builtin_add_overflow(*total, buffer->floats, total) && *total < STAGE_FLOATS;
}

/* What comes in has its place already. */
static bool memory_place_slot(struct stage_plan *plan)
{
	plan->slot_floats = model_align(plan->in.floats);
	for (int i = plan->in.count; i < plan->buffer_count; i++)
		if (plan->buffers[i].area == STAGE_SLOT &&
		    !memory_append(&plan->slot_floats, &plan->buffers[i]))
			return false;
	return true;
}

static int memory_larger_first(const void *a, const void *b)
{
	const struct memory_item *left = a, *right = b;
	const int order = SORTED_BY(right, left, buffer->floats);

	return order != 0 ? order : SORTED_BY(left, right, number);
}

static bool memory_together(const struct stage_buffer *a, const struct stage_buffer *b)
{
	return a->first <= b->last && b->first <= a->last;
}

/* Put @buffer in among the @count that have a place, which are in the order of their offsets. */
static void memory_fit(struct stage_buffer **placed, int count, struct stage_buffer *buffer)
{
	size_t offset = 0;
	int at = count;

	for (int i = 0; i < count; i++) {
		size_t end = placed[i]->offset + placed[i]->floats;

		if (!memory_together(placed[i], buffer))
			continue;
		if (offset + buffer->floats <= placed[i]->offset)
			break;
		offset = max(end, offset);
	}
	buffer->offset = offset;
	for (; at > 0 && placed[at - 1]->offset > offset; at--)
		placed[at] = placed[at - 1];
	placed[at] = buffer;
}

static enum status memory_place_shared(struct stage_plan *plan)
{
	size_t most = (size_t)plan->buffer_count + 1, sum = 0;
	struct memory_item *items = arena_alloc(&plan->arena, most, sizeof(*items));
	struct stage_buffer **placed =
		arena_alloc(&plan->arena, most, sizeof(struct stage_buffer *));
	int count = 0;

	if (!items || !placed)
		return ST_NOMEM;
	/* While the sum of all is in bounds, no offset can be out of them. */
	for (int i = 0; i < plan->buffer_count; i++) {
		if (plan->buffers[i].area != STAGE_SHARED)
			continue;
		if (!memory_append(&sum, &plan->buffers[i]))
			return ST_LIMIT;
		items[count] = (struct memory_item){&plan->buffers[i], count};
		count++;
	}
	plan->shared_floats = sum;
	if (plan->params.unshared)
		return ST_OK;

	qsort(items, (size_t)count, sizeof(*items), memory_larger_first);
	plan->shared_floats = 0;
	for (int i = 0; i < count; i++) {
		struct stage_buffer *buffer = items[i].buffer;

		memory_fit(placed, i, buffer);
		if (buffer->offset + buffer->floats > plan->shared_floats)
			plan->shared_floats = buffer->offset + buffer->floats;
	}
	return ST_OK;
}

enum status stage__place(struct stage_plan *plan)
{
	if (plan->in.floats >= STAGE_FLOATS || plan->out.floats >= STAGE_FLOATS ||
	    plan->scratch_floats >= STAGE_FLOATS || !memory_place_slot(plan))
		return ST_LIMIT;
	return memory_place_shared(plan);
}
