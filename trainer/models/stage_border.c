/*
 * What flows between stages, and what the model's output depends on. Both are asked of the whole
 * model, so that the stages on the two sides of a border agree. Threading: none.
 */
#include "trainer/models/stage_internal.h"

int stage__root(const struct model *model, int position)
{
	while (position != MODEL_INPUT && model->layers[position].ops->pass_through)
		position = model->layers[position].inputs[0];
	return position;
}

const struct model_shape *stage__shape(const struct model *model, int position)
{
	return position == MODEL_INPUT ? &model->input : &model->layers[position].output;
}

bool stage__reached(struct stage_plan *plan)
{
	const struct model *model = plan->params.model;

	plan->reached = stage__alloc(plan, (size_t)model->layer_count, sizeof(*plan->reached));
	if (!plan->reached)
		return false;
	plan->reached[model->layer_count - 1] = true;
	for (int i = model->layer_count - 1; i >= 0; i--) {
		const struct model_layer *layer = &model->layers[i];

		for (int k = 0; plan->reached[i] && k < layer->input_count; k++)
			if (layer->inputs[k] != MODEL_INPUT)
				plan->reached[layer->inputs[k]] = true;
	}
	return true;
}

/* What crosses a border, by position + 1. */
struct border_crossing {
	bool *read; /* made before it and read behind it */
	bool *live; /* by a layer that the model's output depends on */
	int count;
};

static void border_cross(const struct stage_plan *plan, int border,
			 struct border_crossing *crossing)
{
	const struct model *model = plan->params.model;
	int end = stage__root(model, border - 1) + 1;

	if (border == model->layer_count)
		crossing->read[end] = crossing->live[end] = true;
	for (int i = border; i < model->layer_count; i++) {
		const struct model_layer *layer = &model->layers[i];

		for (int k = 0; k < layer->input_count; k++) {
			int root = stage__root(model, layer->inputs[k]);

			if (root >= border)
				continue;
			crossing->read[root + 1] = true;
			crossing->live[root + 1] = crossing->live[root + 1] || plan->reached[i];
		}
	}
	for (int i = 0; i <= border; i++)
		crossing->count += crossing->read[i];
}

static void border_tensor(const struct stage_plan *plan, struct stage_border *border, int position,
			  bool live)
{
	size_t each = (size_t)model_shape_count(stage__shape(plan->params.model, position));
	size_t floats = stage__floats(plan, each), begin = model_align(border->floats);

	border->tensors[border->count++] =
		(struct stage_tensor){.position = position, .offset = begin, .live = live};
	/* Beyond the limit the sum stays there. */
	border->floats = floats >= STAGE_FLOATS || begin >= STAGE_FLOATS
				 ? STAGE_FLOATS
				 : begin + each * (size_t)plan->params.batch;
}

bool stage__border(struct stage_plan *plan, int border, struct stage_border *out)
{
	size_t positions = (size_t)plan->params.model->layer_count + 1;
	struct border_crossing crossing = {
		.read = stage__alloc(plan, positions, sizeof(*crossing.read)),
		.live = stage__alloc(plan, positions, sizeof(*crossing.live)),
	};

	if (!crossing.read || !crossing.live)
		return false;
	border_cross(plan, border, &crossing);
	out->tensors = stage__alloc(plan, (size_t)crossing.count, sizeof(*out->tensors));
	if (!out->tensors)
		return false;
	for (int i = 0; i <= border; i++)
		if (crossing.read[i])
			border_tensor(plan, out, i - 1, crossing.live[i]);
	return true;
}
