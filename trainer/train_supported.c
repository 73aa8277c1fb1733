/*
 * Prints headings and the rows of the tables below them. Threading: none. Ownership: the tables own
 * the names.
 */
#include "trainer/train_supported.h"

#include <string.h>

#include "common/mem.h"
#include "model/applications/application.h"
#include "model/layers/layer.h"
#include "model/learn/loss.h"
#include "model/learn/metric.h"
#include "model/learn/optimizer.h"
#include "model/learn/schedule.h"
#include "trainer/callbacks/callback.h"

#define WIDTH 80

/* Return the name in row @index of a table, or NULL after the last row. *@function receives its
 * alternative name, if any. */
typedef const char *(*supported_row)(int index, const char **function);

static const char *layer_row(int index, const char **function)
{
	int count;
	const char *const *names = layer_names(&count);

	(void)function;
	return index < count ? names[index] : NULL;
}

static const char *loss_row(int index, const char **function)
{
	const struct loss loss = {.kind = (enum loss_kind)index};

	if (index >= LOSS_KINDS)
		return NULL;
	*function = loss_name(&loss);
	return loss_class_name(&loss);
}

static const char *optimizer_row(int index, const char **function)
{
	const struct optimizer optimizer = {.kind = (enum optimizer_kind)index};

	(void)function;
	if (index == OPTIMIZER_KINDS)
		return OPTIMIZER_LOSS_SCALE;
	return index < OPTIMIZER_KINDS ? optimizer_name(&optimizer) : NULL;
}

static const char *schedule_row(int index, const char **function)
{
	(void)function;
	return schedule_kind_name(index);
}

static const char *metric_row(int index, const char **function)
{
	if (index == METRIC_KINDS)
		return "accuracy";
	if (index > METRIC_KINDS)
		return index == METRIC_KINDS + 1 ? "every loss" : NULL;
	*function = metric_kind_name((enum metric_kind)index);
	return metric_kind_class((enum metric_kind)index);
}

static const char *callback_row(int index, const char **function)
{
	(void)function;
	return callback_class_name(index);
}

static const char *application_row(int index, const char **function)
{
	int count;
	const char *const *names = application_names(&count);

	(void)function;
	return index < count ? names[index] : NULL;
}

static const struct {
	const char *heading;
	supported_row row;
} supported[] = {
	{"Layers", layer_row},
	{"Losses", loss_row},
	{"Optimizers", optimizer_row},
	{"Learning-rate schedules", schedule_row},
	{"Metrics", metric_row},
	{"Callbacks", callback_row},
	{"Applications (models of their own, or layers)", application_row},
};

void train_supported_write(FILE *out)
{
	for (size_t i = 0; i < ARRAY_LEN(supported); i++) {
		const char *name, *function = NULL;
		size_t column = WIDTH;

		fprintf(out, "\n%s:", supported[i].heading);
		for (int n = 0; (name = supported[i].row(n, &function)); n++, function = NULL) {
			const size_t length =
				strlen(name) + (function ? strlen(function) + strlen(" ()") : 0);

			fputs(n > 0 ? "," : "", out);
			if (column + strlen(", ,") + length > WIDTH) {
				fputs("\n ", out);
				column = 1;
			}
			fprintf(out, function ? " %s (%s)" : " %s", name, function);
			column += strlen(", ") + length;
		}
		fputc('\n', out);
	}
}
