/*
 * Shared by the planners on the vector pipe: distribution of elements, worker cycles, and the
 * phases made of them. Pure functions: any thread.
 */
#include "ipu/plan/plan_vector.h"

#include <assert.h>
#include <math.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "ipu/plan/plan_vertex.h"

/* A send carries at most 64 words; it takes 8 bytes of code with its address. */

/* Candidate numbers of tiles: all small ones, then in steps of about a twentieth. They do not
 * depend on the target, so a target with more tiles has all choices of one with fewer. */
int ipu__tile_choices(const struct ipu_target *target, int64_t most, int64_t *out)
{
	static const int64_t whole[] = {1216, 1472};
	int64_t limit = min(most, target->tiles);
	int count = 0;

	for (int64_t t = 1; t <= limit && count < IPU_TILE_CHOICES - 3; t += t / 20 + 1)
		out[count++] = t;
	for (size_t i = 0; i < ARRAY_LEN(whole); i++)
		if (whole[i] <= limit)
			out[count++] = whole[i];
	return count;
}

int64_t ipu__product(int64_t a, int64_t b)
{
	assert(a >= 0 && b >= 0 && a <= IPU_COUNT_MOST && b <= IPU_COUNT_MOST);
	return b > 0 && a > IPU_COUNT_MOST / b ? IPU_COUNT_MOST : a * b;
}

struct ipu__spread ipu__spread_over(const struct ipu_target *target, int64_t count, int64_t grain,
				    int64_t tiles)
{
	const int64_t grains = ipu__ceil_div(count, grain);
	const int64_t each = ipu__ceil_div(grains, min(tiles, target->tiles));
	struct ipu__spread spread;

	spread.tiles = ipu__ceil_div(grains, each);
	spread.most = min(each * grain, count);
	spread.mean = (double)count / (double)spread.tiles;
	return spread;
}

int64_t ipu__lanes(const struct ipu_target *target, enum ipu_dtype dtype)
{
	return target->vector_bytes / ipu_dtype_bytes(dtype);
}

/* Cycles of a tile with @elements on average. */
static double mean_cycles(const struct ipu_target *target, const struct ipu__vertex *vertex,
			  enum ipu_dtype dtype, double elements)
{
	const double lanes = (double)ipu__lanes(target, dtype);
	const double workers = (double)target->workers;

	return vertex->supervisor +
	       workers * (vertex->prologue + elements / (workers * lanes) * vertex->cycles_each);
}

int64_t ipu__busiest(const struct ipu_target *target, const struct ipu__vertex *vertex,
		     enum ipu_dtype dtype, int64_t elements)
{
	const int64_t lanes = ipu__lanes(target, dtype);
	const int64_t loops = ipu__ceil_div(ipu__ceil_div(elements, target->workers), lanes);

	return ipu__whole(vertex->supervisor +
			  (double)target->workers *
				  (vertex->prologue + (double)loops * vertex->cycles_each));
}

void ipu__add_compute(struct ipu_plan *plan, const struct ipu_target *target, const char *part,
		      const struct ipu__vertex *vertex, enum ipu_dtype dtype,
		      const struct ipu__spread *spread)
{
	const int64_t busiest = ipu__busiest(target, vertex, dtype, spread->most);
	const double mean = mean_cycles(target, vertex, dtype, spread->mean);
	const struct ipu_phase phase = {
		.kind = IPU_COMPUTE,
		.part = part,
		.vertex = vertex->name,
		.cycles = busiest,
		.mean_cycles =
			fmin(mean, (double)busiest), /* which saturates at the end of the range */
		.tiles = spread->tiles,
		.vertices = spread->tiles,
		.repeats = 1};

	ipu__plan_add(plan, &phase);
}

void ipu__add_exchange(struct ipu_plan *plan, const struct ipu_target *target, const char *part,
		       int64_t bytes_most, double bytes_all, int64_t tiles)
{
	const double mean = bytes_all / (double)tiles;
	const struct ipu_phase phase = {
		.kind = IPU_EXCHANGE,
		.part = part,
		.cycles = ipu__whole((double)bytes_most / target->exchange_bytes_cycle),
		.mean_cycles = fmin(mean, (double)bytes_most) / target->exchange_bytes_cycle,
		.tiles = tiles,
		.bytes = ipu__whole(bytes_all),
		.sent = ipu__whole(bytes_all),
		.repeats = 1};

	if (bytes_most == 0)
		return;
	if (bytes_most > plan->temporary_bytes)
		plan->temporary_bytes = bytes_most;
	ipu__plan_add(plan, &phase);
}

void ipu__add_arrange(struct ipu_plan *plan, const struct ipu_target *target, const char *part,
		      int64_t atom_bytes, int64_t bytes_most, double bytes_all, int64_t tiles)
{
	const double mean = fmin(bytes_all / (double)tiles, (double)bytes_most);
	const struct ipu_phase phase = {
		.kind = IPU_COMPUTE,
		.part = part,
		.vertex = "poplar::OnTileCopy",
		.cycles = ipu__whole(ipu__rearrange(target, (double)bytes_most, atom_bytes)),
		.mean_cycles = ipu__rearrange(target, mean, atom_bytes),
		.tiles = tiles,
		.vertices = tiles,
		.repeats = 1};

	if (bytes_most == 0)
		return;
	ipu__plan_add(plan, &phase);
}

int64_t ipu__plan_time(const struct ipu_target *target, const struct ipu_plan *plan)
{
	int64_t cycles = 0;

	for (int i = 0; i < plan->phase_count; i++)
		cycles += (plan->phases[i].cycles + ipu__whole(target->phase_cycles)) *
			  plan->phases[i].repeats;
	return cycles;
}
