/*
 * Variables for a tensor at a place, or for copies saved from it.
 *
 * Threads: none.
 */
#include "ipu/compile/ipu_memory_internal.h"

#include "common/minmax.h"

const struct ipu_tensor *memory__tensor(const struct memory_at *at)
{
	return &at->build->graph->tensors[at->tensor];
}

static bool grows_with_batch(enum ipu_tensor_kind kind)
{
	return !ipu_tensor_is_variable(kind) && kind != IPU_TENSOR_WEIGHT_GRADIENT;
}

int64_t memory__elements(const struct memory_build *build, const struct ipu_tensor *tensor)
{
	const int64_t elements = ipu_tensor_elements(tensor);

	if (build->batch_divisor == 1 || !grows_with_batch(tensor->kind))
		return elements;
	return (elements + build->batch_divisor - 1) / build->batch_divisor;
}

static bool too_large(int64_t elements, int64_t element_bytes, int64_t copies)
{
	return elements >= MEMORY_MOST_BYTES / element_bytes / copies;
}

enum status memory__add_piece(const struct memory_at *at, const struct memory_piece *piece)
{
	struct memory_build *build = at->build;
	const struct ipu_tensor *tensor = memory__tensor(at);
	struct memory_deal deal = {.elements = piece->elements,
				   .element_bytes = ipu_dtype_bytes(tensor->dtype)};
	struct ipu_tile_run runs[MEMORY_RUNS];
	struct ipu_variable variable = {
		.name = piece->name,
		.kind = piece->kind,
		.layer = tensor->layer,
		.tensor = tensor,
		.node = -1,
		.ipu = at->ipu,
		.category = piece->always_live ? IPU_MEMORY_VARIABLES : IPU_MEMORY_NOT_ALWAYS_LIVE,
		.always_live = piece->always_live,
		.crosses = piece->crosses,
		.first_step = piece->always_live ? -1 : piece->first,
		.last_step = piece->always_live ? -1 : piece->last,
		.runs = runs,
	};

	if (!piece->name)
		return err_nomem(build->err);
	if (piece->elements < 0 || too_large(piece->elements, deal.element_bytes, piece->copies))
		return err_set(build->err, ST_INVALID,
			       "%s has 4 TB or more, which no IPU has memory for", piece->name);
	deal.grain = build->target->vector_bytes / deal.element_bytes;
	deal.grain = max(1, deal.grain);
	if (piece->on_io_tiles)
		memory__map_on_io_tiles(build, &deal);
	else
		memory__map_linearly(build, &deal, at->tensor, at->ipu);
	variable.run_count = memory__deal(&deal, runs);
	variable.bytes = piece->elements * deal.element_bytes * piece->copies;
	for (int i = 0; i < variable.run_count; i++) {
		runs[i].bytes *= piece->copies;
		if (piece->on_io_tiles)
			runs[i].tile += build->compute_tiles;
	}
	return memory__add_variable(build, &variable);
}

const char *memory__name(const struct memory_at *at, const char *what)
{
	return arena_printf(&at->build->memory->arena, "%s%s%s", memory__tensor(at)->name,
			    at->suffix, what);
}

enum status memory__add_always(const struct memory_at *at, const char *what, const char *kind,
			       int64_t elements, int64_t copies)
{
	const struct memory_piece piece = {.name = memory__name(at, what),
					   .kind = kind,
					   .elements = elements,
					   .copies = copies,
					   .always_live = true};

	return memory__add_piece(at, &piece);
}

enum status memory__add_while(const struct memory_at *at, const char *what, int64_t elements,
			      int first, int last)
{
	const struct memory_piece piece = {.name = memory__name(at, what),
					   .kind = ipu_tensor_kind_name(memory__tensor(at)->kind),
					   .elements = elements,
					   .copies = 1,
					   .crosses = at->crosses && what[0] == '\0',
					   .first = first,
					   .last = max(first, last)};

	return memory__add_piece(at, &piece);
}
