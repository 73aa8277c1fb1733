/*
 * oneDNN's convolutions by its C interface of version 2.
 */
#include "peer_conv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"

#if defined(BENCH_ONEDNN)

#include <oneapi/dnnl/dnnl.h>
#include <omp.h>

#define ARGS_MAX 4

struct peer_conv {
	int threads;
	dnnl_engine_t engine;
	dnnl_stream_t stream;
	dnnl_primitive_desc_t forward, pd; /* of the pass; it may be the forward one */
	dnnl_primitive_t primitive;
	dnnl_exec_arg_t args[ARGS_MAX];
	int arg_count;
};

const char *peer_conv_name(void)
{
	static char name[32];
	const dnnl_version_t *version = dnnl_version();

	snprintf(name, sizeof(name), "oneDNN %d.%d.%d", version->major, version->minor,
		 version->patch);
	return name;
}

struct conv_descs {
	dnnl_memory_desc_t x, w, bias, y;
	dnnl_dims_t strides, dilates, before, after;
};

static bool descs(const struct kernel_conv *c, struct conv_descs *d)
{
	const dnnl_dims_t x = {c->batch, c->channels, c->height, c->width};
	const dnnl_dims_t w = {c->filters, c->channels, c->kernel_height, c->kernel_width};
	const dnnl_dims_t y = {c->batch, c->filters, c->out_height, c->out_width};
	const dnnl_dims_t bias = {c->filters};

	*d = (struct conv_descs){
		.strides = {c->stride_y, c->stride_x},
		.before = {c->pad_top, c->pad_left},
		.after = {(c->out_height - 1) * c->stride_y + c->kernel_height - c->height -
				  c->pad_top,
			  (c->out_width - 1) * c->stride_x + c->kernel_width - c->width -
				  c->pad_left},
	};
	return !dnnl_memory_desc_init_by_tag(&d->x, 4, x, dnnl_f32, dnnl_format_tag_any) &&
	       !dnnl_memory_desc_init_by_tag(&d->w, 4, w, dnnl_f32, dnnl_format_tag_any) &&
	       !dnnl_memory_desc_init_by_tag(&d->y, 4, y, dnnl_f32, dnnl_format_tag_any) &&
	       !dnnl_memory_desc_init_by_tag(&d->bias, 1, bias, dnnl_f32, dnnl_x);
}

static bool open_forward(struct peer_conv *peer, const struct conv_descs *d, bool relu)
{
	dnnl_convolution_desc_t conv;
	dnnl_primitive_attr_t attr = NULL;
	dnnl_post_ops_t ops = NULL;
	bool failed =
		dnnl_primitive_attr_create(&attr) || dnnl_post_ops_create(&ops) ||
		(relu && dnnl_post_ops_append_eltwise(ops, 1.0f, dnnl_eltwise_relu, 0.0f, 0.0f)) ||
		dnnl_primitive_attr_set_post_ops(attr, ops) ||
		dnnl_dilated_convolution_forward_desc_init(
			&conv, dnnl_forward_training, dnnl_convolution_auto, &d->x, &d->w, &d->bias,
			&d->y, d->strides, d->dilates, d->before, d->after) ||
		dnnl_primitive_desc_create(&peer->forward, &conv, attr, peer->engine, NULL);

	dnnl_post_ops_destroy(ops);
	dnnl_primitive_attr_destroy(attr);
	return !failed;
}

static bool open_backward(struct peer_conv *peer, const struct conv_descs *d, enum conv_pass pass)
{
	dnnl_convolution_desc_t conv;
	dnnl_status_t status;

	if (pass == PASS_KERNEL)
		status = dnnl_dilated_convolution_backward_weights_desc_init(
			&conv, dnnl_convolution_direct, &d->x, &d->w, &d->bias, &d->y, d->strides,
			d->dilates, d->before, d->after);
	else
		status = dnnl_dilated_convolution_backward_data_desc_init(
			&conv, dnnl_convolution_direct, &d->x, &d->w, &d->y, d->strides, d->dilates,
			d->before, d->after);
	return !status &&
	       !dnnl_primitive_desc_create(&peer->pd, &conv, NULL, peer->engine, peer->forward);
}

/* An array in the layout that the primitive wants. */
static bool add_arg(struct peer_conv *peer, int arg, dnnl_query_t query)
{
	const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(peer->pd, query, 0);
	size_t count = dnnl_memory_desc_get_size(md) / sizeof(float);
	dnnl_memory_t memory;
	void *data;
	float *values;

	if (dnnl_memory_create(&memory, md, peer->engine, DNNL_MEMORY_ALLOCATE))
		return false;
	peer->args[peer->arg_count++] = (dnnl_exec_arg_t){arg, memory};
	if (dnnl_memory_get_data_handle(memory, &data))
		return false;
	values = data;
	for (size_t i = 0; i < count; i++)
		values[i] = (float)(i * 2654435761u % 1000) * 1e-3f - 0.5f;
	return true;
}

static bool add_args(struct peer_conv *peer, enum conv_pass pass)
{
	if (pass == PASS_FORWARD)
		return add_arg(peer, DNNL_ARG_SRC, dnnl_query_src_md) &&
		       add_arg(peer, DNNL_ARG_WEIGHTS, dnnl_query_weights_md) &&
		       add_arg(peer, DNNL_ARG_DST, dnnl_query_dst_md);
	if (pass == PASS_KERNEL)
		return add_arg(peer, DNNL_ARG_SRC, dnnl_query_src_md) &&
		       add_arg(peer, DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md) &&
		       add_arg(peer, DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md);
	return add_arg(peer, DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md) &&
	       add_arg(peer, DNNL_ARG_WEIGHTS, dnnl_query_weights_md) &&
	       add_arg(peer, DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md);
}

/* The bias is the second of the weights. */
static bool add_bias(struct peer_conv *peer, enum conv_pass pass, const struct conv_descs *d)
{
	dnnl_memory_t memory;
	void *data;

	if (pass == PASS_INPUT)
		return true;
	if (dnnl_memory_create(&memory, &d->bias, peer->engine, DNNL_MEMORY_ALLOCATE))
		return false;
	peer->args[peer->arg_count++] = (dnnl_exec_arg_t){
		pass == PASS_FORWARD ? DNNL_ARG_BIAS : DNNL_ARG_DIFF_BIAS, memory};
	if (dnnl_memory_get_data_handle(memory, &data))
		return false;
	for (int64_t i = 0; i < d->bias.dims[0]; i++)
		((float *)data)[i] = 0.0f;
	return true;
}

struct peer_conv *peer_conv_new(const struct kernel_conv *conv, enum conv_pass pass, bool relu,
				unsigned threads)
{
	struct peer_conv *peer = calloc(1, sizeof(*peer));
	struct conv_descs d;

	if (!peer)
		return NULL;
	peer->threads = (int)threads;
	omp_set_num_threads(peer->threads); /* kernels are chosen for them */
	if (!descs(conv, &d) || dnnl_engine_create(&peer->engine, dnnl_cpu, 0) ||
	    dnnl_stream_create(&peer->stream, peer->engine, dnnl_stream_default_flags) ||
	    !open_forward(peer, &d, relu))
		goto failed;
	peer->pd = peer->forward;
	if (pass != PASS_FORWARD && !open_backward(peer, &d, pass)) {
		peer->pd = NULL;
		goto failed;
	}
	if (dnnl_primitive_create(&peer->primitive, peer->pd) || !add_args(peer, pass) ||
	    !add_bias(peer, pass, &d))
		goto failed;
	return peer;
failed:
	peer_conv_free(peer);
	return NULL;
}

double peer_conv_time(struct peer_conv *peer, int times)
{
	double least = INFINITY;

	omp_set_num_threads(peer->threads);
	for (int i = 0; i < times; i++) {
		uint64_t begin = clock_ns();
		double ns;

		if (dnnl_primitive_execute(peer->primitive, peer->stream, peer->arg_count,
					   peer->args) ||
		    dnnl_stream_wait(peer->stream))
			return INFINITY;
		ns = (double)(clock_ns() - begin);
		least = ns < least ? ns : least;
	}
	return least;
}

void peer_conv_free(struct peer_conv *peer)
{
	if (!peer)
		return;
	for (int i = 0; i < peer->arg_count; i++)
		dnnl_memory_destroy(peer->args[i].memory);
	if (peer->primitive)
		dnnl_primitive_destroy(peer->primitive);
	if (peer->pd && peer->pd != peer->forward)
		dnnl_primitive_desc_destroy(peer->pd);
	if (peer->forward)
		dnnl_primitive_desc_destroy(peer->forward);
	if (peer->stream)
		dnnl_stream_destroy(peer->stream);
	if (peer->engine)
		dnnl_engine_destroy(peer->engine);
	free(peer);
}

#else

const char *peer_conv_name(void)
{
	return NULL;
}

struct peer_conv *peer_conv_new(const struct kernel_conv *conv, enum conv_pass pass, bool relu,
				unsigned threads)
{
	(void)conv;
	(void)pass;
	(void)relu;
	(void)threads;
	return NULL;
}

double peer_conv_time(struct peer_conv *peer, int times)
{
	(void)peer;
	(void)times;
	return INFINITY;
}

void peer_conv_free(struct peer_conv *peer)
{
	(void)peer;
}

#endif
