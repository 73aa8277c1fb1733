/*
 * Reading --columns, --sort and --where.
 *
 * Threading: none. Ownership: what is read lives in the caller's arena.
 */
#include "reports/table/report_choice.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "reports/table/report_internal.h"

#define BLANKS    " \t\r\n"
#define NAME_SIZE 128

bool report_choice_selects(const struct report_choice *choice)
{
	return choice->columns || choice->sort || choice->where_count > 0;
}

/* ---- names of columns ------------------------------------------------------------------------ */

static enum status name_unknown(const struct report_names *names, const char *option,
				const char *name, struct err *err)
{
	const char *near = str_nearest(name, names->names, (size_t)names->count);
	struct str list = {0};
	enum status status;

	if (near)
		return err_set(err, ST_INVALID, "%s: no column \"%s\" (did you mean \"%s\"?)",
			       option, name, near);
	for (int i = 0; i < names->count; i++)
		str_addf(&list, "%s%s", i ? ", " : "", names->names[i]);
	status = err_set(err, ST_INVALID, "%s: no column \"%s\" (there are %s)", option, name,
			 str_peek(&list));
	str_free(&list);
	return status;
}

static enum status name_find(int *out, const struct report_names *names, const char *option,
			     const char *name, struct err *err)
{
	for (*out = 0; *out < names->count; ++*out)
		if (!strcmp(names->names[*out], name))
			return ST_OK;
	return name_unknown(names, option, name, err);
}

/* The next name of the list *@at, without the blanks around it. */
static void name_next(const char **at, char out[NAME_SIZE])
{
	size_t length;

	*at += strspn(*at, BLANKS);
	length = strcspn(*at, ",");
	str_copy(out, min(length + 1, NAME_SIZE), *at);
	for (size_t n = strlen(out); n > 0 && strchr(BLANKS, out[n - 1]); n--)
		out[n - 1] = '\0';
	*at += length + ((*at)[length] == ',');
}

/* No more names than this. */
static size_t name_count(const char *list)
{
	size_t count = 1;

	for (; *list; list++)
		count += *list == ',';
	return count;
}

enum status report__choose_columns(int **out, int *count, const struct report_names *names,
				   const char *list, struct arena *arena, struct err *err)
{
	bool all = !strcmp(list, "all");
	char name[NAME_SIZE];

	*count = 0;
	*out = arena_alloc(arena, all ? (size_t)names->count : name_count(list), sizeof(**out));
	if (!*out)
		return err_nomem(err);
	for (; all && *count < names->count; ++*count)
		(*out)[*count] = *count;
	while (!all && *list) {
		enum status status;

		name_next(&list, name);
		status = name_find(&(*out)[*count], names, "--columns", name, err);
		if (status != ST_OK)
			return status;
		for (int i = 0; i < *count; i++)
			if ((*out)[i] == (*out)[*count])
				return err_set(err, ST_INVALID, "--columns: \"%s\" twice", name);
		++*count;
	}
	return *count ? ST_OK : err_set(err, ST_INVALID, "--columns: no column named");
}

enum status report__choose_order(struct report_order **out, int *count,
				 const struct report_names *names, const char *list,
				 struct arena *arena, struct err *err)
{
	char name[NAME_SIZE];

	*count = 0;
	*out = arena_alloc(arena, name_count(list), sizeof(**out));
	if (!*out)
		return err_nomem(err);
	while (*list) {
		struct report_order *order = &(*out)[*count];
		enum status status;

		name_next(&list, name);
		order->descending = name[0] == '-';
		status = name_find(&order->column, names, "--sort",
				   name + (name[0] == '-' || name[0] == '+'), err);
		if (status != ST_OK)
			return status;
		++*count;
	}
	return *count ? ST_OK : err_set(err, ST_INVALID, "--sort: no column named");
}

/* ---- values ---------------------------------------------------------------------------------- */

static const struct {
	const char *unit;
	enum report_quantity quantity;
	double factor;
} units[] = {
	{"%", REPORT_FRACTION, 0.01},
	{"ns", REPORT_NS, 1},
	{"us", REPORT_NS, 1e3},
	{"ms", REPORT_NS, 1e6},
	{"s", REPORT_NS, 1e9},
	{"min", REPORT_NS, 60e9},
	{"h", REPORT_NS, 3600e9},
	{"B", REPORT_BYTES, 1},
	{"kB", REPORT_BYTES, 1024},
	{"MB", REPORT_BYTES, 1048576},
	{"GB", REPORT_BYTES, 1073741824},
};

static const struct {
	const char *word;
	int value;
} truths[] = {{"yes", 1}, {"no", 0}, {"true", 1}, {"false", 0}};

/* What a unit behind a value of this column means: moments are written in ns too. */
static enum report_quantity value_quantity(const char *column)
{
	size_t length = strlen(column);

	if (length > 3 && !strcmp(column + length - 3, "_ns"))
		return REPORT_NS;
	return report__quantity(column, PROF_NULL);
}

static void value_number(struct report_cell *out, double value)
{
	if (value == floor(value) && fabs(value) < 9e15)
		*out = (struct report_cell){.type = PROF_INT, .integer = (int64_t)value};
	else
		*out = (struct report_cell){.type = PROF_REAL, .real = value};
}

/* "1.5 ms": a number and a unit of @quantity. */
static bool value_with_unit(struct report_cell *out, const char *text,
			    enum report_quantity quantity)
{
	size_t length = strlen(text);
	char number[64];
	double value;

	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		size_t unit = strlen(units[i].unit), digits;

		if (units[i].quantity != quantity || length <= unit ||
		    strcmp(text + length - unit, units[i].unit) != 0)
			continue;
		digits = length - unit;
		while (digits && strchr(BLANKS, text[digits - 1]))
			digits--;
		str_copy(number, min(digits + 1, sizeof(number)), text);
		if (str_to_double(number, &value) && isfinite(value)) {
			value_number(out, value * units[i].factor);
			return true;
		}
	}
	return false;
}

/* What is written without quotes. */
static bool value_bare(struct report_cell *out, const char *column, const char *text)
{
	enum report_quantity quantity = value_quantity(column);
	long long whole;
	double real;

	for (size_t i = 0; quantity == REPORT_BOOL && i < ARRAY_LEN(truths); i++) {
		if (!strcmp(text, truths[i].word)) {
			value_number(out, truths[i].value);
			return true;
		}
	}
	if (str_to_int(text, &whole)) {
		*out = (struct report_cell){.type = PROF_INT, .integer = whole};
		return true;
	}
	if (str_to_double(text, &real) && !isnan(real)) {
		*out = (struct report_cell){.type = PROF_REAL, .real = real};
		return true;
	}
	return value_with_unit(out, text, quantity);
}

/* 'it''s' is the text it's. false: no memory. */
static bool value_quoted(struct report_cell *out, const char *text, size_t length,
			 struct arena *arena)
{
	char *copy = arena_alloc(arena, length + 1, 1), *end = copy;

	if (!copy)
		return false;
	for (size_t i = 0; i < length; i++) {
		*end++ = text[i];
		i += text[i] == '\'' && i + 1 < length && text[i + 1] == '\'';
	}
	*out = (struct report_cell){.type = PROF_TEXT, .text = copy};
	return true;
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* Longer before what they begin with. */
static const struct {
	const char *written, *sql;
	bool has_value, is_pattern;
} operators[] = {
	{"is not null", "IS NOT NULL", false, false},
	{"is null", "IS NULL", false, false},
	{"!=", "<>", true, false},
	{"<>", "<>", true, false},
	{"<=", "<=", true, false},
	{">=", ">=", true, false},
	{"==", "=", true, false},
	{"!~", "NOT GLOB", true, true},
	{"=", "=", true, false},
	{"<", "<", true, false},
	{">", ">", true, false},
	{"~", "GLOB", true, true},
};

/* How many bytes of @text are the operator @written, whose blanks stand for any; 0: it is not. */
static size_t operator_length(const char *text, const char *written)
{
	const char *at = text;

	for (; *written; written++) {
		if (*written == ' ') {
			if (!strspn(at, BLANKS))
				return 0;
			at += strspn(at, BLANKS);
		} else if (tolower((unsigned char)*at++) != *written) {
			return 0;
		}
	}
	return (size_t)(at - text);
}

static enum status condition_value(struct report_condition *out, const char *column,
				   const char *text, bool is_pattern, struct arena *arena,
				   struct err *err)
{
	size_t length = strlen(text);
	char *copy;

	while (length && strchr(BLANKS, text[length - 1]))
		length--;
	if (!length)
		return err_set(err, ST_INVALID, "--where: %s needs a value (the empty text is '')",
			       column);
	if (length > 1 && text[0] == '\'' && text[length - 1] == '\'')
		return value_quoted(&out->value, text + 1, length - 2, arena) ? ST_OK
									      : err_nomem(err);
	copy = arena_alloc(arena, length + 1, 1);
	if (!copy)
		return err_nomem(err);
	memcpy(copy, text, length);
	out->value = (struct report_cell){.type = PROF_TEXT, .text = copy};
	if (is_pattern || value_bare(&out->value, column, copy))
		return ST_OK;
	if (report__quantity(column, PROF_NULL) != REPORT_TEXT)
		return err_set(err, ST_INVALID, "--where: %s: \"%s\" is not a number", column,
			       copy);
	return ST_OK;
}

enum status report__choose_condition(struct report_condition *out, const struct report_names *names,
				     const char *text, struct arena *arena, struct err *err)
{
	const char *at = text + strspn(text, BLANKS), *rest;
	size_t length = strcspn(at, BLANKS "=!<>~"), used = 0, i;
	char name[NAME_SIZE];
	enum status status;

	*out = (struct report_condition){0};
	str_copy(name, min(length + 1, sizeof(name)), at);
	status = name_find(&out->column, names, "--where", name, err);
	if (status != ST_OK)
		return status;
	at += length;
	at += strspn(at, BLANKS);
	for (i = 0; i < ARRAY_LEN(operators) && !used; i++)
		used = operator_length(at, operators[i].written);
	if (!used)
		return err_set(err, ST_INVALID,
			       "--where: \"%s\" is not `column OP value` (OP: = != < <= > >= ~ !~, "
			       "`is null`, `is not null`)",
			       text);

	out->sql = operators[i - 1].sql;
	out->has_value = operators[i - 1].has_value;
	rest = at + used + strspn(at + used, BLANKS);
	if (!out->has_value)
		return *rest ? err_set(err, ST_INVALID, "--where: \"%s\": \"%s\" too much", text,
				       rest)
			     : ST_OK;
	return condition_value(out, name, rest, operators[i - 1].is_pattern, arena, err);
}
