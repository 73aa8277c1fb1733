/*
 * The gradients of a convolution's kernel and bias: sums over all pixels of all images.
 *
 * The gradient of a small kernel is summed in parts: each slice handles some rows of output pixels
 * and the whole kernel, in its own memory, and the parts are added from first to last. A large
 * kernel is itself cut: each slice handles a piece of it and all pixels. Either way the pixels are
 * processed in blocks that stay in the cache.
 */
#include <math.h>

#include "trainer/kernels/kernel_conv_internal.h"
#include "trainer/kernels/kernel_work.h"
#include "trainer/kernels/kernel_conv.h"

#define SUM_PIXELS 256       /* of a block, about: the packed gradient stays in the L1 cache */
#define SUM_PARTS  16        /* maximum pixel slices */
#define SUM_PART   512       /* minimum pixels of a part */
#define SUM_SMALL  (1 << 16) /* maximum floats of a kernel that is summed in parts */
#define SUM_LARGE  (1 << 18) /* the same with at least SUM_MANY pixels */
#define SUM_MANY   8192
#define SUM_SLICES 8 /* target slices of a large kernel */

struct sum_plan {
	const struct kernel_conv *conv;
	const struct conv_body *body;
	struct conv_view view;
	struct kernel_conv_relu relu;
	float most; /* upper bound of the ReLU */
	float *dy, *dkernel, *dbias;
	float *memory, *parts;
	int64_t lane, band;         /* floats */
	int64_t lines, block;       /* output rows: all, and of a block */
	int64_t part_count, part;   /* part: floats; part_count 1: no parts */
	int64_t unit;               /* output rows that must stay within one part */
	int64_t filters, panels;    /* per group */
	int64_t run_pieces, pieces; /* per run; of all runs */
	int64_t piece_slices;
	struct conv_band shared;
	bool is_shared; /* all slices read one band */
};

static int64_t sum_block(const struct conv_view *v, int64_t pixels)
{
	int64_t lines = max(1, pixels / v->out_columns);

	/* Whole images, or rows of one image. */
	return lines > v->out_rows ? lines / v->out_rows * v->out_rows : lines;
}

/* The number of parts; a smaller batch never has more. */
static int64_t sum_parts(const struct sum_plan *p)
{
	int64_t min_units = conv__ceil(conv__ceil(SUM_PART, p->view.out_columns), p->unit);
	int64_t units = p->lines / p->unit, floats = conv__kernel_floats(p->conv);

	if (floats > SUM_LARGE || (floats > SUM_SMALL && p->lines * p->view.out_columns < SUM_MANY))
		return 1;
	return min(SUM_PARTS, conv__ceil(units, min_units));
}

static struct sum_plan sum_plan(const struct kernel_conv *c)
{
	int64_t pixels = SUM_PIXELS;
	struct sum_plan p = {
		.conv = c,
		.body = conv__body(),
		.view = conv__forward_view(c, NULL),
		.filters = c->filters / c->groups,
	};

	if (conv__kernel_floats(c) <= SUM_SMALL)
		pixels = SUM_PIXELS / 2;
	conv__flatten(&p.view, pixels);
	p.lines = p.view.images * p.view.out_rows;
	p.panels = conv__ceil(p.filters, p.body->panel);
	p.block = sum_block(&p.view, pixels);
	p.unit = p.block >= p.view.out_rows ? p.view.out_rows : 1;
	p.part_count = sum_parts(&p);
	p.part = conv__part_floats(c);

	p.band = conv__band_floats(&p.view, p.block);
	p.lane = p.band + max(p.block * p.view.out_columns, SUM_PIXELS) * p.body->panel;
	return p;
}

int64_t conv__sum_scratch(const struct kernel_conv *conv, unsigned lanes)
{
	struct sum_plan p = sum_plan(conv);
	int64_t floats = conv__dense_floats(&p.view) + conv__shared_floats(&p.view) +
			 p.lane * lanes + (p.part_count > 1 ? p.part_count * p.part : 0);

	if (conv__winograd_applies(&p.view, conv->filters, conv->groups))
		floats = max(floats, conv__winograd_sum_scratch(conv, lanes));
	return floats;
}

/* ---- a block of pixels ----------------------------------------------------------------------- */

/* Output rows that are processed together: rows of one image, or whole images. */
struct sum_block {
	int64_t images, lines, columns;
	int64_t first, pixels; /* counted over all images */
	const float *b;        /* the gradient of one panel */
	bool add;
};

/* Pack the gradient's columns of one panel. */
static void sum_pack(const struct sum_plan *p, struct sum_block *block, int columns, int64_t offset,
		     float *b)
{
	int64_t first = block->first * p->conv->filters + offset;
	const struct kernel_conv_relu *relu = &p->relu;

	block->b = b;
	if (relu->y)
		p->body->pack_relu(p->dy + first, relu->y + first, p->most, relu->keep,
				   p->conv->filters, block->pixels, columns, b);
	else if (p->conv->filters == p->body->panel)
		block->b = p->dy + first;
	else
		p->body->pack(p->dy + first, p->conv->filters, block->pixels, columns, b);
}

/* Sum piece @piece of the kernel's rows. */
static void sum_piece(const struct sum_plan *p, const struct conv_band *band,
		      const struct sum_block *block, int64_t piece, int64_t columns, float *c)
{
	int64_t run = piece / p->run_pieces, part = piece % p->run_pieces;
	int64_t first = conv__piece(band->length, p->run_pieces, part);
	int64_t rows = conv__piece(band->length, p->run_pieces, part + 1) - first;
	struct conv_sum_tile tile = {
		.a = band->base + run / band->runs_x * band->tap_y +
		     run % band->runs_x * band->tap_x + first,
		.images = block->images,
		.a_image = band->image,
		.lines = block->lines,
		.a_line = band->line,
		.pixels = block->columns,
		.a_pixel = band->pixel,
		.b = block->b,
		.b_step = p->body->panel,
		.c = c + (run * band->length + first) * p->conv->filters,
		.c_row = p->conv->filters,
		.columns = (int)columns,
		.add = block->add,
	};

	p->body->sum[columns > p->body->lanes][rows - 1](&tile);
}

/* The block of output rows that starts at @line and ends at @end at the latest. */
static struct sum_block sum_block_at(const struct sum_plan *p, int64_t line, int64_t end, bool add)
{
	const struct conv_view *v = &p->view;
	int64_t lines = min(p->block, end - line);
	struct sum_block block = {
		.images = 1,
		.columns = line == p->lines - 1 ? v->last_columns : v->out_columns,
		.first = line * v->out_columns,
		.add = add,
	};

	block.lines = min(lines, v->out_rows - line % v->out_rows);
	if (lines > v->out_rows) {
		block.images = lines / v->out_rows;
		block.lines = v->out_rows;
	}
	/* A flat view's last row may be shorter than the others. */
	if (v->last_columns < v->out_columns && line + block.lines == p->lines && block.lines > 1)
		block.lines--;
	block.pixels = block.images * block.lines * block.columns;
	return block;
}

struct sum_range {
	int64_t group;
	int64_t panel, panel_end, piece, piece_end;
};

/* Sum output rows @line .. @end - 1 for @range of the kernel into @dkernel and @dbias. */
static void sum_lines(const struct sum_plan *p, const struct sum_range *range, int64_t line,
		      int64_t end, float *memory, float *dkernel, float *dbias)
{
	struct conv_view view = p->view;

	view.source += range->group * view.depth;
	for (bool add = false; line < end; add = true) {
		struct sum_block block = sum_block_at(p, line, end, add);
		struct conv_band band = p->shared;

		if (p->is_shared)
			band.base = conv__band_line(&view, &p->shared, line);
		else
			band = conv__band(&view, line, block.images * block.lines, memory);
		for (int64_t panel = range->panel; panel < range->panel_end; panel++) {
			int64_t column = panel * p->body->panel;
			int64_t columns = min(p->body->panel, p->filters - column);
			int64_t offset = range->group * p->filters + column;

			sum_pack(p, &block, (int)columns, offset, memory + p->band);
			if (dbias && !range->piece)
				p->body->sums(block.b, block.pixels, (int)columns, add,
					      dbias + offset);
			for (int64_t piece = range->piece; piece < range->piece_end; piece++)
				sum_piece(p, &band, &block, piece, columns, dkernel + offset);
		}
		line += block.images * block.lines;
	}
}

/* ---- slices ---------------------------------------------------------------------------------- */

static void sum_part_slice(void *context, unsigned slice, unsigned lane)
{
	const struct sum_plan *p = context;
	int64_t units = p->lines / p->unit;
	int64_t line = conv__piece(units, p->part_count, slice) * p->unit;
	int64_t end = conv__piece(units, p->part_count, slice + 1) * p->unit;
	float *part = p->parts + slice * p->part;
	struct sum_range range = {.panel_end = p->panels, .piece_end = p->pieces};

	for (; range.group < p->conv->groups; range.group++)
		sum_lines(p, &range, line, end, p->memory + lane * p->lane, part,
			  conv__part_bias(p->conv, part));
}

static void sum_kernel_slice(void *context, unsigned slice, unsigned lane)
{
	const struct sum_plan *p = context;
	int64_t part = slice % p->piece_slices, rest = slice / p->piece_slices;
	struct sum_range range = {
		.group = rest / p->panels,
		.panel = rest % p->panels,
		.piece = conv__piece(p->pieces, p->piece_slices, part),
		.piece_end = conv__piece(p->pieces, p->piece_slices, part + 1),
	};

	range.panel_end = range.panel + 1;
	sum_lines(p, &range, 0, p->lines, p->memory + lane * p->lane, p->dkernel, p->dbias);
}

/* For a large kernel several slices read all of dy: apply the ReLU's gradient before them. */
static void sum_relu(struct sum_plan *p, const struct kernel_room *room)
{
	const struct kernel_conv *c = p->conv;

	if (!p->relu.y || p->part_count > 1 || !p->relu.keep)
		return;
	kernel_conv_grad_relu(&p->relu, room->pool, p->dy,
			      (size_t)(c->batch * c->out_height * c->out_width * c->filters));
	p->relu.y = NULL;
}

void kernel_conv_grad_kernel(const struct kernel_conv *conv, const struct kernel_room *room,
			     const float *x, float *dy, const struct kernel_conv_relu *relu,
			     float *dkernel, float *dbias)
{
	struct sum_plan p = sum_plan(conv);
	uint64_t work = kernel_work_products(conv->batch * conv->out_height * conv->out_width *
					     conv__kernel_floats(conv));
	float *shared;
	struct conv_band shape;

	if (kernel_is_depthwise(conv)) {
		kernel_depthwise_grad_kernel(conv, room, x, dy, relu, dkernel, dbias);
		return;
	}
	if (conv__winograd_applies(&p.view, conv->filters, conv->groups) &&
	    conv__winograd_sum(conv, room, x, dy, relu, dkernel, dbias))
		return;
	p.relu = *relu;
	p.most = isinf(relu->most) ? NAN : relu->most; /* no value compares >= NaN */
	p.view.source = x;
	p.dy = dy;
	p.dkernel = dkernel;
	p.dbias = dbias;
	shared = (float *)room->scratch + conv__dense_floats(&p.view);
	p.memory = shared + conv__shared_floats(&p.view);
	conv__dense(&p.view, room->pool, room->scratch);
	if (p.part_count == 1 && conv->groups == 1)
		p.is_shared = conv__shared(&p.view, room->pool, shared, &p.shared);
	p.parts = p.memory + p.lane * pool_lanes(room->pool);
	sum_relu(&p, room);
	shape = conv__band_shape(&p.view, 0, 1, p.memory);
	p.run_pieces = conv__ceil(shape.length, p.body->rows);
	p.pieces = p.run_pieces * shape.runs_y * shape.runs_x;
	if (p.part_count > 1) {
		pool_share_lanes(room->pool, work, sum_part_slice, &p, (unsigned)p.part_count);
		conv__add_parts(conv, room->pool, p.parts, p.part_count, dkernel, dbias);
		return;
	}
	p.piece_slices = min(p.pieces, conv__ceil(SUM_SLICES, p.panels * conv->groups));
	pool_share_lanes(room->pool, work, sum_kernel_slice, &p,
			 (unsigned)(conv->groups * p.panels * p.piece_slices));
}
