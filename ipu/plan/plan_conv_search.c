/*
 * The search for the cheapest way to cut a convolution over tiles. Pure functions: any thread.
 *
 * The set of candidates depends on the convolution only; the number of tiles of a target only
 * excludes cuts with more parts. So a target with more tiles has all candidates of a smaller one,
 * and the estimate of plans that fit a tile's memory never grows with more tiles. A candidate is
 * skipped only if a bound proves that its estimate cannot be the least.
 *
 * As in poplibs' planner, the estimate has no cost of a phase (its sync and launch), so of two
 * plans the one with more phases may be chosen and take longer.
 */
#include "ipu/plan/plan_conv_internal.h"

#include <assert.h>
#include <math.h>

#include "common/minmax.h"
#include "common/sorted.h"

#define PARTS_MOST  1472 /* tiles of the largest target */
#define CUTS_MOST   512  /* of one dimension */
#define COARSE      64   /* beyond so many parts of so many elements, parts grow by 1/64 */
#define FIELDS_MOST 1024
#define WAYS_MOST   24
#define SERIAL_MOST 64
#define SERIAL_SIDE 8 /* of both channels if nothing fits */

/* ---- candidates ------------------------------------------------------------------------------ */

/* Numbers of parts of a dimension of @size: among those with the same largest part only the
 * smallest number. */
struct cuts {
	int32_t part[CUTS_MOST];
	int count;
};

static void list_cuts(int64_t size, struct cuts *cuts)
{
	int64_t last = 0, last_part = 0;

	cuts->count = 0;
	for (int64_t parts = 1; parts <= PARTS_MOST && parts <= size; parts++) {
		int64_t part = ipu__ceil_div(size, parts);
		bool coarse = parts > COARSE && part > COARSE && parts - last < last / COARSE + 1;

		if (part == last_part)
			continue;
		/* A divisor of a target's tiles stays: its cut can use all of them. */
		if (coarse && 1472 % parts != 0 && 1216 % parts != 0)
			continue;
		last_part = part;
		last = parts;
		assert(cuts->count < CUTS_MOST);
		cuts->part[cuts->count++] = (int32_t)parts;
	}
}

/* Methods to compute a form on a tile. */
struct ways {
	struct conv_way way[WAYS_MOST];
	int count;
};

static void add_way(struct ways *ways, struct conv_way way)
{
	assert(ways->count < WAYS_MOST);
	way.conv_group = way.conv_group > 0 ? way.conv_group : 1;
	ways->way[ways->count++] = way;
}

enum ipu_amp_mode ipu__conv_amp_mode(const struct conv_form *form)
{
	return form->dtype != IPU_FLOAT16      ? IPU_AMP_FLOAT
	       : form->partials == IPU_FLOAT16 ? IPU_AMP_HALF_HALF
					       : IPU_AMP_HALF;
}

static void add_amp_way(const struct ipu_target *target, const struct conv_form *form, double units,
			double passes, double height, struct ways *ways)
{
	const enum ipu_amp_mode mode = ipu__conv_amp_mode(form);
	double in_group = (double)target->amp[mode].in_group / height;

	add_way(ways, (struct conv_way){
			      .method = form->flat ? IPU_METHOD_AMP_1X1 : IPU_METHOD_AMP_NX1,
			      .amp = {.mode = mode,
				      .units = units,
				      .in_group = in_group,
				      .passes = passes,
				      .height = height},
			      .in_group = in_group,
			      .out_group = units * passes,
		      });
}

/* All units or half of them; output groups as large as input groups; few input channels padded with
 * taps. */
static void add_amp_ways(const struct ipu_target *target, const struct conv_form *form,
			 struct ways *ways)
{
	const struct ipu_amp *amp = &target->amp[ipu__conv_amp_mode(form)];
	double units = (double)amp->units;

	if (form->depthwise)
		return;
	add_amp_way(target, form, units, 1, 1, ways);
	if (amp->in_group > amp->units)
		add_amp_way(target, form, units, (double)(amp->in_group / amp->units), 1, ways);
	if (amp->units > 8)
		add_amp_way(target, form, units / 2, 1, 1, ways);
	for (double height = 2; height <= 4; height *= 2)
		if (!form->flat && form->kernel[0] > 1 &&
		    (double)form->in <= (double)amp->in_group / height)
			add_amp_way(target, form, units, 1, height, ways);
}

static void add_vector_ways(const struct ipu_target *target, const struct conv_form *form,
			    struct ways *ways)
{
	const double lanes = (double)(target->vector_bytes / ipu_dtype_bytes(form->dtype));
	const double grain = form->dtype == IPU_FLOAT16 ? 2 : 1;
	const double out = form->partials == IPU_FLOAT16 ? 2 : 1;
	double last = 0;

	for (int64_t parts = 1; parts <= HMAC_PARTS; parts *= 2) {
		const double in = ceil(ceil((double)form->in / (double)parts) / grain) * grain;

		if (fabs(in - last) > 0)
			add_way(ways, (struct conv_way){.method = IPU_METHOD_HORIZONTAL_MAC,
							.in_group = in,
							.out_group = out});
		last = in;
	}
	if (form->depthwise && form->dtype == IPU_FLOAT16)
		for (double chans = 4; chans <= (form->partials == IPU_FLOAT16 ? 16 : 4);
		     chans *= 2)
			add_way(ways, (struct conv_way){.method = IPU_METHOD_VERTICAL_MAC,
							.in_group = 1,
							.out_group = 1,
							.conv_group = chans});
	if (form->flat && form->in == 1)
		add_way(ways, (struct conv_way){.method = IPU_METHOD_OUTER_PRODUCT,
						.in_group = 1,
						.out_group = lanes});
}

/* Groups of few channels, each entirely on one tile. Float16 partials can use four columns of
 * output units, and then also groups of 8 and 16. */
static void add_slic_ways(const struct ipu_target *target, const struct conv_form *form,
			  struct ways *ways)
{
	const bool wide =
		form->partials == IPU_FLOAT16 && target->amp[IPU_AMP_HALF_HALF].units >= 16;

	if (form->dtype != IPU_FLOAT16 || form->flat || form->stride[1] > 2 || form->stride[0] > 2)
		return;
	for (int64_t groups = 1; groups <= (wide ? 16 : 4); groups *= 2) {
		const int64_t channels = groups < 4 ? 4 / groups : 1;

		if (form->in <= channels && form->out <= channels)
			add_way(ways, (struct conv_way){.method = IPU_METHOD_SLIC,
							.in_group = (double)channels,
							.out_group = (double)channels,
							.conv_group = (double)groups});
	}
}

/* ---- field ----------------------------------------------------------------------------------- */

struct fields {
	struct conv_field field[FIELDS_MOST];
	int count;
};

/* A tile's input size for @outputs positions and @taps of dimension @i. SLIC reads its padding from
 * memory, and that of the kernel to rows of four taps (ConvModel.cpp,
 * addTileLevelTransformEstimates); the others skip it. */
static double input_size(const struct conv_form *form, const struct conv_way *way, int i,
			 double outputs, double taps)
{
	const bool slic = way->method == IPU_METHOD_SLIC;
	const double read = slic && i == 1 ? ceil(taps / IPU_SLIC_TAPS) * IPU_SLIC_TAPS : taps;
	double size = (outputs - 1) * (double)form->stride[i] +
		      (read - 1) * (double)form->dilation[i] + 1;

	if (slic)
		return size;
	return fmin(ceil(size / (double)form->input_dilation[i]), (double)form->in_field[i]);
}

static void make_field(const struct ipu_target *target, const struct conv_form *form,
		       const struct conv_way *way, const struct conv_cut *cut,
		       const int32_t split[3], struct conv_field *out)
{
	double size[3], whole = 1;

	*out = (struct conv_field){.parts = 1, .positions = 1};
	for (int i = 0; i < 3; i++) {
		out->split[i] = split[i];
		size[i] = ceil((double)form->position[i] / (double)split[i]);
		out->parts *= (double)split[i];
		out->positions *= size[i];
		whole *= (double)form->position[i];
	}
	out->balance = whole / (out->parts * out->positions);
	out->inputs = size[0];
	for (int i = 0; i < 2; i++)
		out->inputs *= form->flat ? 1
					  : input_size(form, way, i, size[1 + i],
						       i == 0 ? ceil((double)form->kernel[0] /
								     (double)cut->kernel)
							      : (double)form->kernel[1]);
	out->worker = out->positions;
	if (way->method == IPU_METHOD_AMP_NX1)
		out->worker = ipu__amp_nx1_worker(
			target, &way->amp,
			size[0] * ceil(size[1] / (double)form->input_dilation[0]),
			ceil(size[2] / (double)form->input_dilation[1]));
	if (way->method == IPU_METHOD_SLIC)
		out->worker = ipu__slic_worker(target, form->partials, way->conv_group,
					       form->stride[1], size[0] * size[1], size[2]);
}

/* Return whether a cut with at most as many parts is as good in all respects. */
static bool is_dominated(const struct fields *fields, const struct conv_field *field)
{
	for (int i = fields->count - 1; i >= 0; i--) {
		const struct conv_field *other = &fields->field[i];

		if (other->worker <= field->worker && other->positions <= field->positions &&
		    other->inputs <= field->inputs)
			return true;
	}
	return false;
}

static void add_field(struct fields *fields, const struct conv_field *field)
{
	struct conv_field *now, *before;

	if (fields->count == FIELDS_MOST || is_dominated(fields, field))
		return;
	now = &fields->field[fields->count++];
	*now = *field;
	now->least_worker = now->worker;
	now->least_positions = now->positions;
	now->least_inputs = now->inputs;
	if (fields->count == 1)
		return;
	before = now - 1;
	now->least_worker = fmin(now->worker, before->least_worker);
	now->least_positions = fmin(now->positions, before->least_positions);
	now->least_inputs = fmin(now->inputs, before->least_inputs);
}

/* The best cuts for one number of parts: by the vertex's time, and by the input's size. */
struct field_choice {
	struct {
		double first, second; /* the criterion, and the tie-breaker */
		int16_t split[3];     /* 0: none yet */
	} best[2];
};

static void update_choice(struct field_choice *choice, const struct conv_field *field)
{
	const double worths[] = {field->worker, field->inputs};

	for (int by = 0; by < 2; by++) {
		double first = worths[by], second = worths[1 - by];

		if (choice->best[by].split[0] > 0 &&
		    (first > choice->best[by].first ||
		     (first >= choice->best[by].first && second >= choice->best[by].second)))
			continue;
		choice->best[by].first = first;
		choice->best[by].second = second;
		for (int i = 0; i < 3; i++)
			choice->best[by].split[i] = (int16_t)field->split[i];
	}
}

/* Find the cuts of the field, in ascending order of parts, that the rows of taps' cut leaves tiles
 * for. */
static void list_fields(const struct ipu_target *target, const struct conv_form *form,
			const struct conv_way *way, const struct conv_cut *cut,
			struct fields *fields)
{
	struct field_choice choices[PARTS_MOST + 1] = {0};
	const int64_t most = PARTS_MOST / cut->kernel;
	struct conv_field field;
	struct cuts cuts[3];

	for (int i = 0; i < 3; i++)
		list_cuts(form->position[i], &cuts[i]);
	for (int b = 0; b < cuts[0].count; b++) {
		for (int r = 0; r < cuts[1].count; r++) {
			for (int c = 0; c < cuts[2].count; c++) {
				const int32_t split[] = {cuts[0].part[b], cuts[1].part[r],
							 cuts[2].part[c]};

				if ((int64_t)split[0] * split[1] * split[2] > most)
					break;
				make_field(target, form, way, cut, split, &field);
				update_choice(&choices[split[0] * split[1] * split[2]], &field);
			}
		}
	}
	fields->count = 0;
	for (int64_t parts = 1; parts <= most; parts++) {
		for (int by = 0; by < 2 && choices[parts].best[by].split[0] > 0; by++) {
			const int16_t *best = choices[parts].best[by].split;
			const int32_t split[] = {best[0], best[1], best[2]};

			make_field(target, form, way, cut, split, &field);
			add_field(fields, &field);
		}
	}
}

/* ---- search ---------------------------------------------------------------------------------- */

struct search {
	const struct ipu_target *target;
	const struct conv_form *form;
	struct ways ways;           /* of @form */
	const struct conv_way *way; /* one of @ways */
	struct fields fields;
	struct cuts groups, in, out;
	double limit;   /* bytes of a tile */
	double fastest; /* estimate of the best choice without regard to memory */
	bool fits;      /* @best is within the limit */
	bool forced;    /* nothing fits: what takes least memory is searched for, however slow */
	struct conv_choice *best;
};

static bool is_better(const struct search *search, const struct conv_cost *cost)
{
	bool fits = cost->memory <= search->limit;

	if (search->best->cost.tiles <= 0 || fits != search->fits)
		return fits || search->best->cost.tiles <= 0;
	if (fits)
		return cost->estimate < search->best->cost.estimate ||
		       (!(cost->estimate > search->best->cost.estimate) &&
			cost->memory < search->best->cost.memory);
	return cost->memory < search->best->cost.memory ||
	       (!(cost->memory > search->best->cost.memory) &&
		cost->estimate < search->best->cost.estimate);
}

static void try_field(struct search *search, const struct conv_cut *cut,
		      const struct conv_field *field)
{
	struct conv_cost cost;

	ipu__conv_cost(search->target, search->form, search->way, cut, field, &cost);
	search->fastest = fmin(search->fastest, cost.estimate);
	if (!is_better(search, &cost))
		return;
	search->fits = cost.memory <= search->limit;
	*search->best = (struct conv_choice){*search->form, *search->way, *cut, *field, cost};
}

/* Try all fields from the finest, until no coarser one can be faster, or small enough. */
static void try_fields(struct search *search, const struct conv_cut *cut)
{
	double others = (double)(cut->groups * cut->in * cut->out * cut->kernel);
	double tiles = (double)search->target->tiles;
	struct conv_cut once = *cut;
	bool tried = false;
	int above;

	/* The fields from @above on have no tiles for @others parts each. */
	SORTED_FIRST(above, 0, search->fields.count,
		     search->fields.field[above].parts * others <= tiles);
	for (int at = above - 1; at >= 0; at--) {
		const struct conv_field *field = &search->fields.field[at];

		if (search->fits &&
		    ipu__conv_least_cycles(search->target, search->form, search->way, cut,
					   field->least_positions,
					   field->least_worker) >= search->best->cost.estimate)
			return;
		if (tried || search->forced) {
			const double least = ipu__conv_least_memory(
				search->target, search->form, search->way, cut,
				field->least_positions, field->least_inputs);

			if (tried && least > search->limit)
				return;
			if (search->forced && !search->fits && search->best->cost.tiles > 0 &&
			    least > search->best->cost.memory)
				return;
		}
		try_field(search, cut, field);
		if (cut->serial_out > 1 && cut->serial_in == 1 && !search->form->move_in) {
			once.input_first = true;
			try_field(search, &once, field);
		}
		tried = true;
	}
}

static void try_channels(struct search *search, struct conv_cut cut)
{
	int64_t tiles = search->target->tiles / cut.kernel;

	for (int g = 0; g < search->groups.count; g++) {
		cut.groups = search->groups.part[g];
		for (int o = 0; o < search->out.count; o++) {
			cut.out = search->out.part[o];
			if (cut.groups * cut.out > tiles)
				break;
			for (int i = 0; i < search->in.count; i++) {
				cut.in = search->in.part[i];
				if (cut.groups * cut.out * cut.in > tiles)
					break;
				try_fields(search, &cut);
			}
		}
	}
}

/* Number of channel groups of one serial split. */
static int64_t channel_groups(int64_t channels, double group, int64_t serial)
{
	return ipu__ceil_div(ipu__ceil_div(channels, (int64_t)group), serial);
}

/* Rows of taps are cut into any number of parts to eight, then into powers of two, and all. */
static void try_kernels(struct search *search, int64_t serial_in, int64_t serial_out)
{
	const struct conv_form *form = search->form;
	struct conv_cut cut = {.serial_in = serial_in, .serial_out = serial_out};
	struct cuts rows;

	list_cuts(channel_groups(form->groups, search->way->conv_group, 1), &search->groups);
	list_cuts(channel_groups(form->in, search->way->in_group, serial_in), &search->in);
	list_cuts(channel_groups(form->out, search->way->out_group, serial_out), &search->out);
	list_cuts(form->kernel[0], &rows);
	for (int r = 0; r < rows.count && rows.part[r] <= search->target->tiles; r++) {
		const int64_t parts = rows.part[r];

		if (parts > 8 && (parts & (parts - 1)) != 0 && r < rows.count - 1)
			continue;
		cut.kernel = parts;
		list_fields(search->target, form, search->way, &cut, &search->fields);
		try_channels(search, cut);
	}
}

/* Return whether a tile could hold its share if each dimension could be split over all tiles. */
static bool can_fit(const struct search *search, int64_t serial_in, int64_t serial_out)
{
	const struct conv_form *form = search->form;
	const int64_t tiles = search->target->tiles;
	const struct conv_cut finest = {.groups = tiles,
					.in = tiles,
					.out = tiles,
					.kernel = tiles,
					.serial_in = serial_in,
					.serial_out = serial_out};
	double positions = 1;

	for (int i = 0; i < 3; i++)
		positions *= ceil((double)form->position[i] / (double)tiles);
	return ipu__conv_least_memory(search->target, form, search->way, &finest, positions, 1) <=
	       search->limit;
}

/* Return whether the vector pipe, with all lanes on all tiles, could be faster than the best. */
static bool can_be_fastest(const struct search *search)
{
	const struct conv_form *form = search->form;
	const double lanes = (double)(search->target->vector_bytes / ipu_dtype_bytes(form->dtype));
	const double products = form->weights * (double)form->position[0] *
				(double)form->position[1] * (double)form->position[2];

	return search->way->method != IPU_METHOD_HORIZONTAL_MAC || !search->fits ||
	       products / (lanes * (double)search->target->tiles) < search->best->cost.estimate;
}

/* Try every form with every method for one pair of serial splits. @forced: reduce the splits to
 * what the channels allow, and try even if nothing can fit. */
static void try_forms(struct search *search, const struct conv_form *forms, int count,
		      int64_t serial_in, int64_t serial_out, bool forced)
{
	for (int f = 0; f < count; f++) {
		search->form = &forms[f];
		search->forced = forced;
		search->ways.count = 0;
		add_amp_ways(search->target, search->form, &search->ways);
		add_slic_ways(search->target, search->form, &search->ways);
		add_vector_ways(search->target, search->form, &search->ways);
		for (int w = 0; w < search->ways.count; w++) {
			int64_t in, out;

			search->way = &search->ways.way[w];
			in = channel_groups(search->form->in, search->way->in_group, 1);
			out = channel_groups(search->form->out, search->way->out_group, 1);
			if (forced)
				try_kernels(search, min(in, serial_in), min(out, serial_out));
			else if (in >= serial_in && out >= serial_out && can_be_fastest(search) &&
				 can_fit(search, serial_in, serial_out))
				try_kernels(search, serial_in, serial_out);
		}
	}
}

void ipu__conv_search(const struct ipu_target *target, const struct conv_form *forms, int count,
		      double limit, struct conv_choice *best)
{
	struct search search = {
		.target = target, .limit = limit, .fastest = INFINITY, .best = best};

	*best = (struct conv_choice){.cost = {.tiles = 0}};
	try_forms(&search, forms, count, 1, 1, false);
	/* Serial splits cost time and save memory. */
	for (int64_t splits = 2; splits <= SERIAL_MOST; splits *= 2) {
		if (search.fits && !(search.best->cost.estimate > search.fastest))
			return;
		try_forms(&search, forms, count, 1, splits, false);
		try_forms(&search, forms, count, splits, 1, false);
	}
	if (!search.fits)
		try_forms(&search, forms, count, SERIAL_SIDE, SERIAL_SIDE, true);
}
