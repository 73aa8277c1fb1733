/*
 * Formats the fields of a file name. No state.
 */
#include "trainer/callbacks/callback_name.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/str.h"
#include "trainer/callbacks/callback.h"

#define FIELD_SIZE  64
#define FIELD_DIGIT 40 /* maximum width and precision of a field */

struct field {
	char name[FIELD_SIZE];
	bool zero;
	int width, precision; /* precision -1: not given */
	char conversion;      /* d, f, e, g; 0: not given */
};

static int read_number(const char **text)
{
	int value = 0;

	while (isdigit((unsigned char)**text) && value < 1000)
		value = value * 10 + (*(*text)++ - '0');
	return value;
}

/* "02d", ".4f", "8.3f", "" */
static bool read_format(struct field *field, const char *text)
{
	field->zero = *text == '0';
	field->width = read_number(&text);
	if (*text == '.') {
		text++;
		if (!isdigit((unsigned char)*text))
			return false;
		field->precision = read_number(&text);
	}
	if (*text && strchr("dfeg", *text))
		field->conversion = *text++;
	return !*text && field->width <= FIELD_DIGIT && field->precision <= FIELD_DIGIT;
}

/* Parse a field; @text is after "{". Return the text after "}", or NULL if it is no field. */
static const char *read_field(struct field *field, const char *text)
{
	const char *end = strchr(text, '}');
	char inside[FIELD_SIZE], *colon;
	size_t length = end ? (size_t)(end - text) : 0;

	*field = (struct field){.precision = -1};
	if (!end || !length || length >= sizeof(inside))
		return NULL;
	memcpy(inside, text, length);
	inside[length] = '\0';
	colon = strchr(inside, ':');
	if (colon)
		*colon = '\0';
	str_copy(field->name, sizeof(field->name), inside);
	if (!*field->name || (colon && !read_format(field, colon + 1)))
		return NULL;
	return end + 1;
}

enum status callback_name_check(const char *pattern, struct err *err)
{
	for (const char *c = pattern; *c;) {
		struct field field;
		const char *next = *c == '{' ? read_field(&field, c + 1) : c + 1;

		if (!next || *c == '}')
			return err_set(err, ST_INVALID,
				       "\"%s\": a field is {NAME} or {NAME:FORMAT}, as in "
				       "{epoch:02d} or {val_loss:.4f}",
				       c);
		c = next;
	}
	return ST_OK;
}

/* "d" cuts off the fraction; nan and inf have no whole part and stay what they are. */
static int format_value(const struct field *field, double value, char *out, size_t size)
{
	const int precision = field->precision < 0 ? 6 : field->precision, width = field->width;
	const bool zero = field->zero;

	value = isnan(value) ? (double)NAN : value; /* "-nan" is "nan" */

	switch (field->conversion) {
	case 'f':
		return snprintf(out, size, zero ? "%0*.*f" : "%*.*f", width, precision, value);
	case 'e':
		return snprintf(out, size, zero ? "%0*.*e" : "%*.*e", width, precision, value);
	case 'd':
		return snprintf(out, size, zero ? "%0*.0f" : "%*.0f", width, trunc(value) + 0.0);
	default:
		return snprintf(out, size, zero ? "%0*.*g" : "%*.*g", width, precision, value);
	}
}

static enum status report_unknown_field(const struct field *field, const struct ips_logs *logs,
					struct err *err)
{
	char known[256] = "epoch";

	for (int i = 0; i < logs->count; i++) {
		size_t used = strlen(known);

		snprintf(known + used, sizeof(known) - used, ", %s", logs->items[i].name);
	}
	return err_set(err, ST_INVALID, "there is no {%s} among the logs (%s)", field->name, known);
}

enum status callback_name(const char *pattern, int64_t epoch, const struct ips_logs *logs,
			  char *out, size_t size, struct err *err)
{
	size_t used = 0;

	for (const char *c = pattern; *c;) {
		struct field field;
		const double *value;
		double number;
		int put;

		if (used + 1 >= size)
			return err_set(err, ST_INVALID, "the file's name is too long");
		if (*c != '{') {
			out[used++] = *c++;
			continue;
		}
		c = read_field(&field, c + 1);
		if (!c)
			return err_set(err, ST_INVALID, "\"%s\" has a field that is none", pattern);
		value = callback_log(logs, field.name);
		if (!strcmp(field.name, "epoch")) {
			field.conversion = field.conversion ? field.conversion : 'd';
			number = (double)epoch;
			value = &number;
		}
		if (!value)
			return report_unknown_field(&field, logs, err);
		put = format_value(&field, *value, out + used, size - used);
		if (put < 0 || (size_t)put >= size - used)
			return err_set(err, ST_INVALID, "the file's name is too long");
		used += (size_t)put;
	}
	out[used] = '\0';
	return ST_OK;
}
