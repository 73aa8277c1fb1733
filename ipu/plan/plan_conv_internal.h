/*
 * Between the parts of the convolutions' planner: a problem's forms (plan_conv_form.c), what a way
 * to cut one costs (plan_conv_cost.c), the search for the cheapest (plan_conv_search.c).
 */
#ifndef PLAN_CONV_INTERNAL_H
#define PLAN_CONV_INTERNAL_H

#include "ipu/plan/plan_internal.h"
#include "ipu/plan/plan_vertex.h"

/* A convolution as it can be computed. Passes, taps turned into input channels and operands that
 * change places are all behind it. Sizes saturate at CONV_MOST. */
struct conv_form {
	int64_t groups, in, out;   /* channels of a group */
	int64_t position[3];       /* outputs: batch, rows, columns; @flat: all in the first */
	int64_t kernel[2];         /* taps left to loop over */
	int64_t stride[2];         /* input positions from an output to the next */
	int64_t dilation[2];       /* input positions from a tap to the next */
	int64_t input_dilation[2]; /* > 1: inputs that far apart, zeros between (a fractional
				      stride); only each so-manieth position of a tap is work */
	int64_t in_field[2];       /* rows and columns there are, without padding */
	bool depthwise;            /* groups of one channel in and one out: nothing for the AMP */
	bool flat;                 /* no taps left: a product of matrices */
	bool move_in, move_weights, move_out;   /* operands that are laid out anew */
	int64_t in_atom, weight_atom, out_atom; /* bytes that stay together in that */
	bool regroup; /* a convolution reads the result: in the AMP's groups of channels */
	double inputs, weights, outputs; /* elements of all operands and of the result */
	double fill_elements;            /* outputs that no position computes: zeros */
	enum ipu_dtype dtype, partials;
};

#define CONV_MOST  (INT64_C(1) << 60)
#define CONV_FORMS 16
#define HMAC_PARTS 512 /* groups of input channels of the horizontal MAC, at most */

/* The forms of @op, a convolution or a matmul: how many. */
int ipu__conv_forms(const struct ipu_op *op, const struct ipu_plan_options *options,
		    struct conv_form forms[CONV_FORMS]);

int64_t ipu__times(int64_t a, int64_t b); /* of what is positive: at most CONV_MOST */

/* How a form is computed on a tile. */
struct conv_way {
	enum ipu_method method;
	struct ipu_amp_use amp; /* of AMP methods */
	double in_group;        /* channels: what a tile's share is a multiple of */
	double out_group;
	double conv_group; /* groups that a vertex does at once: 1 but for VMAC */
};

/* A cut of batch, rows and columns; and what a tile gets by it. */
struct conv_field {
	int32_t split[3];
	double parts, positions; /* product of the splits; outputs of a tile */
	double inputs;           /* positions of the input, halo and all */
	double worker;           /* AMP nx1: slowest worker's cycles of a tap */
	double balance;          /* mean positions by @positions */
	/* Least of this cut and all of fewer parts. */
	double least_worker, least_positions, least_inputs;
};

struct conv_cut {
	int64_t groups, in, out;       /* parts */
	int64_t kernel;                /* of the rows of taps */
	int64_t serial_in, serial_out; /* one after the other */
};

enum conv_part {
	CONV_PRE_EXCHANGE,
	CONV_PRE_COPY,
	CONV_SLICE,
	CONV_EXCHANGE,
	CONV_COMPUTE,
	CONV_REDUCE_EXCHANGE_0,
	CONV_REDUCE_0,
	CONV_REDUCE_EXCHANGE_1,
	CONV_REDUCE_1,
	CONV_REDUCE_EXCHANGE_2,
	CONV_REDUCE_2,
	CONV_ADD,
	CONV_UPDATE,
	CONV_CAST,
	CONV_FILL,
	CONV_POST_EXCHANGE,
	CONV_POST_COPY,
	CONV_PARTS
};

bool ipu__conv_part_loops(enum conv_part part); /* once for each serial split? */

struct conv_cost {
	double cycles;            /* all in all, target->phase_cycles of each phase included */
	double memory;            /* bytes of a tile that are held to the limit */
	double temporary;         /* of these beside the result */
	double tiles, balance;    /* with work; mean share by the largest */
	double part[CONV_PARTS];  /* cycles */
	double bytes[CONV_PARTS]; /* received by a tile: exchanges */
	double sources;           /* tiles that a tile receives from, in all exchanges */
};

void ipu__conv_cost(const struct ipu_target *target, const struct conv_form *form,
		    const struct conv_way *way, const struct conv_cut *cut,
		    const struct conv_field *field, struct conv_cost *cost);
/* What no cut of the field of so few positions, inputs and worker's cycles costs less than; and
 * holds less than on a tile. */
double ipu__conv_least_cycles(const struct ipu_target *target, const struct conv_form *form,
			      const struct conv_way *way, const struct conv_cut *cut,
			      double positions, double worker);
double ipu__conv_least_memory(const struct conv_form *form, const struct conv_way *way,
			      const struct conv_cut *cut, double positions, double inputs);

struct conv_choice {
	struct conv_form form;
	struct conv_way way;
	struct conv_cut cut;
	struct conv_field field;
	struct conv_cost cost;
};

/* The cheapest of all forms that fits in @limit bytes; where none does, that of least memory. */
void ipu__conv_search(const struct ipu_target *target, const struct conv_form *forms, int count,
		      double limit, struct conv_choice *best);

/* Of a layer that learns: the products of its passes, one of which is @op, and their choices. */
void ipu__conv_joint(const struct ipu_target *target, const struct ipu_op *op,
		     const struct ipu_plan_options *options, double limit,
		     struct ipu_op ops[IPU_PASSES], struct conv_choice choices[IPU_PASSES]);

#endif /* PLAN_CONV_INTERNAL_H */
