/*
 * Arguments of events. See report_import_args.h.
 */
#include "reports/import/report_import_args.h"

#include <math.h>
#include <string.h>

/* false: a text. */
static bool put_number(struct import_arg *arg, const struct import_token *token)
{
	bool is_int;
	double r;

	arg->type = IMPORT_ARG_INT;
	arg->value.i = token->kind == IMPORT_TRUE;
	if (token->kind == IMPORT_TRUE || token->kind == IMPORT_FALSE)
		return true;
	arg->type = IMPORT_ARG_NULL;
	if (token->kind == IMPORT_NULL)
		return true;
	/* NaN would become NULL in the database: it stays as the word. */
	if (!report__import_number(token, &is_int, &arg->value.i, &r) || isnan(r))
		return false;
	arg->type = is_int ? IMPORT_ARG_INT : IMPORT_ARG_REAL;
	if (!is_int)
		arg->value.r = r;
	return true;
}

void report__import_args_put(struct import_args *args, uint32_t name,
			     const struct import_token *token)
{
	struct import_arg *arg = (struct import_arg *)(void *)(args->bytes + args->used);
	size_t room = sizeof(args->bytes) - args->used;
	bool cut = false;

	if (room < sizeof(*arg) + 8) {
		args->left++;
		return;
	}
	arg->name = name;
	if (!put_number(arg, token)) {
		size_t size = room - sizeof(*arg);

		if (size > IMPORT_ARG_TEXT + 1)
			size = IMPORT_ARG_TEXT + 1;
		arg->type = IMPORT_ARG_STRING;
		arg->value.i = (int64_t)report__import_unescape(token, (char *)(arg + 1), size,
								NULL, &cut);
		args->left += cut;
	}
	args->used += import_arg_size(arg);
}
