/*
 * Interface between the parts of the convolution planner: the forms of a problem
 * (plan_conv.c), the cost of a cut (plan_conv_cost.c), the search for the cheapest
 * (plan_conv_search.c).
 */
#ifndef PLAN_CONV_INTERNAL_H
#define PLAN_CONV_INTERNAL_H

#include "ipu/plan/plan_internal.h"
#include "ipu/plan/plan_vertex.h"

/* A convolution in the form in which it is computed: passes, taps turned into input channels and
 * exchanged operands are already applied. Sizes saturate at CONV_MOST. */
struct conv_form {
	int64_t groups, in, out;   /* in, out: channels per group */
	int64_t position[3];       /* outputs: batch, rows, columns; @flat: all in the first */
	int64_t kernel[2];         /* remaining taps */
	int64_t stride[2];         /* input positions from an output to the next */
	int64_t dilation[2];       /* input positions from a tap to the next */
	int64_t input_dilation[2]; /* > 1: distance of inputs, with zeros between (a fractional
				      stride); only every n-th position of a tap is work */
	int64_t in_field[2];       /* rows and columns without padding */
	bool depthwise;            /* groups of one channel in and one out: no AMP */
	bool flat;                 /* no taps left: a matrix product */
	bool move_in, move_weights, move_out; /* operands that change layout */
	bool activations; /* of a layer, or their gradient: what is read first and what is made */
	/* Rows and columns of the blocks in which what a tile reads is transposed there; 0: as it is. */
	int64_t transposed[2];
	bool apart; /* on tiles in another pass's order: neighbours listen to no common stream */
	double inputs, weights, outputs; /* elements of all operands and of the result */
	double fill_elements;            /* outputs that no position computes: zeros */
	enum ipu_dtype dtype, partials;
};

#define CONV_MOST  (INT64_C(1) << 60)
#define CONV_FORMS 24
#define HMAC_PARTS 512 /* most groups of input channels of the horizontal MAC */

int64_t ipu__times(int64_t a, int64_t b); /* positive factors; saturates at CONV_MOST */

/* The method by which a tile computes a form. */
struct conv_way {
	enum ipu_method method;
	struct ipu_amp_use amp; /* of AMP methods */
	double in_group;        /* a tile's channels are a multiple of this */
	double out_group;
	double conv_group; /* groups that a vertex processes at once: 1 except for VMAC */
};

/* Mode of the matrix unit for the types of @form. */
enum ipu_amp_mode ipu__conv_amp_mode(const struct conv_form *form);

/* A cut of batch, rows and columns, and the resulting share of a tile. */
struct conv_field {
	int32_t split[3];
	double parts, positions; /* product of the splits; outputs of a tile */
	double inputs;           /* input positions, including the halo */
	double worker;           /* AMP nx1: the slowest worker's cycles per tap */
	double balance;          /* mean positions / @positions */
	/* Minima over this cut and all with fewer parts. */
	double least_worker, least_positions, least_inputs;
};

struct conv_cut {
	int64_t groups, in, out;       /* parts */
	int64_t kernel;                /* of the rows of taps */
	int64_t serial_in, serial_out; /* serial splits */
	bool input_first; /* serial splits of output channels: the input is sent once, before them */
};

enum conv_part {
	CONV_INPUT_EXCHANGE,
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

bool ipu__conv_part_loops(enum conv_part part); /* runs once per serial split */

struct conv_cost {
	double estimate;            /* cycles of all parts; what a phase costs beside is left out */
	double memory;              /* bytes of a tile, which must not exceed the limit */
	double temporary;           /* part of these that is not the result */
	double tiles, balance;      /* with work; mean share / largest */
	double part[CONV_PARTS];    /* cycles */
	double bytes[CONV_PARTS];   /* exchanges: received by a tile */
	double sources[CONV_PARTS]; /* exchanges: tiles from which a tile receives */
	double sent[CONV_PARTS];    /* exchanges: bytes that a tile sends, to however many */
	double vertices;            /* of a tile's product */
	double lists;               /* bytes of the vertex's lists of work, constants of the tile */
	double pointers;            /* bytes of all its pointers to operands and lists */
};

void ipu__conv_cost(const struct ipu_target *target, const struct conv_form *form,
		    const struct conv_way *way, const struct conv_cut *cut,
		    const struct conv_field *field, struct conv_cost *cost);
/* Lower bounds of the cycles, and of a tile's memory, over all cuts of the field with at least
 * these positions, inputs and worker cycles. */
double ipu__conv_least_cycles(const struct ipu_target *target, const struct conv_form *form,
			      const struct conv_way *way, const struct conv_cut *cut,
			      double positions, double worker);
double ipu__conv_least_memory(const struct ipu_target *target, const struct conv_form *form,
			      const struct conv_way *way, const struct conv_cut *cut,
			      double positions, double inputs);

struct conv_choice {
	struct conv_form form;
	struct conv_way way;
	struct conv_cut cut;
	struct conv_field field;
	struct conv_cost cost;
};

/* Find the choice of the least estimate over all forms within @limit bytes; if none fits, that of
 * least memory. */
void ipu__conv_search(const struct ipu_target *target, const struct conv_form *forms, int count,
		      double limit, struct conv_choice *best);

#endif /* PLAN_CONV_INTERNAL_H */
