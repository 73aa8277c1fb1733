/*
 * --where: a condition in SQL over the columns of a report.
 *
 * SQLite parses the condition (prof_expression_check()) and rejects anything but an expression.
 * Before that, this file checks that brackets are balanced and rejects comments, so that the text
 * can be put in brackets of a longer statement. It also replaces ns('1 ms'), bytes('64 kB') and
 * percent('20 %') by their numbers, so that the statement runs in any sqlite3.
 *
 * In 0.9.0 a condition was `column OP value` in a separate language, with `~` for globs and units
 * behind numbers. Such a condition is rejected, and the error gives the equivalent SQL.
 *
 * The error for a column that a report lacks is here, too: every option that names columns uses it.
 *
 * Threading: none. Ownership: results belong to the caller's arena.
 */
#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "common/jsonw.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "profiler/prof_guard.h"
#include "reports/table/report_internal.h"
#include "reports/table/report_select.h"

#define BLANKS     " \t\r\n"
#define NO_COLUMN  "no such column: "
#define TOKEN_SIZE 128

/* ---- unknown columns ------------------------------------------------------------------------- */

enum status report__no_column(const struct report_names *names, const char *option,
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

/* ---- numbers with units ---------------------------------------------------------------------- */

static const struct {
	const char *unit;
	enum report_quantity quantity;
	double factor;
} units[] = {
	{"%", REPORT_FRACTION, 0.01},  {"ns", REPORT_NS, 1},          {"us", REPORT_NS, 1e3},
	{"ms", REPORT_NS, 1e6},        {"s", REPORT_NS, 1e9},         {"min", REPORT_NS, 60e9},
	{"h", REPORT_NS, 3600e9},      {"B", REPORT_BYTES, 1},        {"kB", REPORT_BYTES, 1024},
	{"MB", REPORT_BYTES, 1048576}, {"GB", REPORT_BYTES, 1 << 30},
};

static const struct unit_function {
	const char *name;
	enum report_quantity quantity;
	const char *example;
} unit_functions[] = {
	{"ns", REPORT_NS, "ns('1.5 ms'), with ns, us, ms, s, min or h"},
	{"bytes", REPORT_BYTES, "bytes('64 kB'), with B, kB, MB or GB"},
	{"percent", REPORT_FRACTION, "percent('20 %')"},
};

static const struct unit_function *find_unit_function(const char *name, size_t length)
{
	for (size_t i = 0; i < ARRAY_LEN(unit_functions); i++)
		if (strlen(unit_functions[i].name) == length &&
		    !strncasecmp(unit_functions[i].name, name, length))
			return &unit_functions[i];
	return NULL;
}

/* Parse the first @length bytes of @text as a number with a unit of @quantity, like "1.5 ms". */
static bool parse_unit_number(double *out, const char *text, size_t length,
			      enum report_quantity quantity)
{
	char number[64];

	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		size_t unit = strlen(units[i].unit), digits = length - unit;

		if (units[i].quantity != quantity || length <= unit ||
		    memcmp(text + digits, units[i].unit, unit) != 0)
			continue;
		while (digits > 0 && strchr(BLANKS, text[digits - 1]))
			digits--;
		str_copy(number, min(digits + 1, sizeof(number)), text);
		if (str_to_double(number, out) && isfinite(*out)) {
			*out *= units[i].factor;
			return true;
		}
	}
	return false;
}

/* ---- parsing a condition --------------------------------------------------------------------- */

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* Length of the quoted text at @text including its quotes (inner quotes are doubled), or 0 if it is
 * unterminated. */
static size_t quoted_length(const char *text)
{
	const char close = *text == '[' ? ']' : *text;
	const char *end = text + 1;

	while ((end = strchr(end, close)) && close != ']' && end[1] == close)
		end += 2;
	return end ? (size_t)(end - text) + 1 : 0;
}

/* Replace a call of @function by its number, separated from neighbours that would merge with it
 * into another token ("1.2", or the comment "--2"). *@at points behind the function's name, and
 * afterwards behind the call. */
static enum status replace_unit_call(struct str *sql, const struct unit_function *function,
				     const char **at, struct err *err)
{
	const char *text = *at + strspn(*at, BLANKS) + 1, *end;
	size_t length = 0;
	struct jsonw w;
	double value;

	text += strspn(text, BLANKS);
	if (*text == '\'')
		length = quoted_length(text);
	end = text + length + strspn(text + length, BLANKS);
	if (length < 2 || *end != ')' ||
	    !parse_unit_number(&value, text + 1, length - 2, function->quantity))
		return err_set(err, ST_INVALID, "%s() is written as %s", function->name,
			       function->example);
	*at = end + 1;
	if (sql->length && !strchr(BLANKS "(,=<>+-*/", sql->text[sql->length - 1]))
		str_add(sql, " ");
	str_add(sql, value < 0 ? "(" : "");
	jsonw_init_str(&w, sql, 0);
	if (value == floor(value) && fabs(value) < 9e15)
		jsonw_int(&w, (int64_t)value);
	else
		jsonw_real(&w, value);
	str_add(sql, value < 0 ? ")" : "");
	if (is_word(**at) || **at == '.')
		str_add(sql, " ");
	return ST_OK;
}

/* Copy the condition to @sql: reject what SQLite would accept, replace the unit functions. */
static enum status parse_condition(struct str *sql, const char *text, struct err *err)
{
	int depth = 0;

	if (!text[strspn(text, BLANKS)])
		return err_set(err, ST_INVALID, "a condition is needed");
	for (const char *at = text; *at;) {
		size_t length = 1;

		if (strchr("'\"`[", *at)) {
			length = quoted_length(at);
			if (!length)
				return err_set(err, ST_INVALID, "%c does not end: %s", *at, at);
		} else if (is_word(*at)) {
			const struct unit_function *function;

			while (is_word(at[length]))
				length++;
			function = find_unit_function(at, length);
			if (function && at[length + strspn(at + length, BLANKS)] == '(') {
				enum status status;

				at += length;
				status = replace_unit_call(sql, function, &at, err);
				if (status != ST_OK)
					return status;
				continue;
			}
		} else if (*at == ';') {
			return err_set(err, ST_INVALID, "one condition, without \";\"");
		} else if ((at[0] == '-' && at[1] == '-') || (at[0] == '/' && at[1] == '*')) {
			return err_set(err, ST_INVALID, "a comment is not allowed: %s", at);
		}
		depth += (*at == '(') - (*at == ')');
		if (depth < 0)
			break;
		str_add_bytes(sql, at, length);
		at += length;
	}
	if (depth != 0)
		return err_set(err, ST_INVALID, depth < 0 ? ") without (" : "( without )");
	return sql->failed ? err_nomem(err) : ST_OK;
}

/* ---- conditions of 0.9.0 --------------------------------------------------------------------- */

/* Longer operators before their prefixes. */
static const struct {
	const char *written, *sql;
} old_operators[] = {
	{"!=", "<>"},       {"<>", "<>"}, {"<=", "<="}, {">=", ">="}, {"==", "="},
	{"!~", "NOT GLOB"}, {"=", "="},   {"<", "<"},   {">", ">"},   {"~", "GLOB"},
};

static const struct {
	const char *word;
	int value;
} truths[] = {{"yes", 1}, {"no", 0}, {"true", 1}, {"false", 0}};

/* Translate @value of @column to SQL; false if it was invalid in 0.9.0, too. */
static bool translate_old_value(struct str *sql, const char *column, const char *value)
{
	const size_t length = strlen(column);
	/* Points in time are written in ns, too, though they are shown as counts. */
	const bool is_time = length > 3 && !strcmp(column + length - 3, "_ns");
	const enum report_quantity quantity =
		is_time ? REPORT_NS : report__quantity(column, PROF_NULL);
	double number;

	if (value[0] == '\'' || (str_to_double(value, &number) && !isnan(number))) {
		str_add(sql, value);
		return true;
	}
	for (size_t i = 0; quantity == REPORT_BOOL && i < ARRAY_LEN(truths); i++)
		if (!strcmp(value, truths[i].word)) {
			str_addf(sql, "%d", truths[i].value);
			return true;
		}
	for (size_t i = 0; i < ARRAY_LEN(unit_functions); i++)
		if (unit_functions[i].quantity == quantity &&
		    parse_unit_number(&number, value, strlen(value), quantity)) {
			str_addf(sql, "%s('%s')", unit_functions[i].name, value);
			return true;
		}
	if (quantity != REPORT_TEXT)
		return false;
	if (value[0] == '"' && strlen(value) > 1 && value[strlen(value) - 1] == '"')
		str_add_sql_bytes(sql, value + 1, strlen(value) - 2);
	else
		str_add_sql(sql, value);
	return true;
}

/* Translate `column OP value` of 0.9.0 to SQL; false if @text has another form. */
static bool translate_old_condition(struct str *sql, const struct report_names *names,
				    const char *text)
{
	const char *at = text + strspn(text, BLANKS);
	size_t length = strcspn(at, BLANKS "=!<>~");
	char column[TOKEN_SIZE], value[TOKEN_SIZE];
	bool known = false;

	str_copy(column, min(length + 1, sizeof(column)), at);
	for (int i = 0; i < names->count; i++)
		known |= !strcmp(names->names[i], column);
	at += length + strspn(at + length, BLANKS);
	for (size_t i = 0; known && i < ARRAY_LEN(old_operators); i++) {
		if (!str_starts_with(at, old_operators[i].written))
			continue;
		at += strlen(old_operators[i].written);
		str_copy(value, sizeof(value), at + strspn(at, BLANKS));
		for (length = strlen(value); length && strchr(BLANKS, value[length - 1]); length--)
			value[length - 1] = '\0';
		str_addf(sql, "%s %s ", column, old_operators[i].sql);
		if (!strstr(old_operators[i].sql, "GLOB"))
			return *value && translate_old_value(sql, column, value);
		if (value[0] == '\'')
			str_add(sql, value);
		else
			str_add_sql(sql, value);
		return *value != '\0';
	}
	return false;
}

/* Improve the error in @err for the condition @text: give the SQL of a condition of 0.9.0, or the
 * known column nearest to an unknown one. */
static enum status explain_condition(const struct report_names *names, const char *text,
				     struct err *err)
{
	struct str old = {0}, sql = {0};
	char name[TOKEN_SIZE];
	enum status status;

	if (translate_old_condition(&old, names, text) &&
	    parse_condition(&sql, str_peek(&old), NULL) == ST_OK &&
	    prof_expression_check(str_peek(&sql), names->names, (size_t)names->count, NULL) ==
		    ST_OK) {
		status = err_set(err, ST_INVALID, "--where: \"%s\" is not SQL: write \"%s\"", text,
				 str_peek(&old));
	} else if (str_starts_with(err->text, NO_COLUMN)) {
		const char *at = err->text + strlen(NO_COLUMN);

		/* Newer versions of SQLite quote the name and append more text. */
		at += *at == '"';
		str_copy(name, min(strcspn(at, "\" ") + 1, sizeof(name)), at);
		status = report__no_column(names, "--where", name, err);
	} else {
		status = err_prefix(err, "--where: \"%s\"", text);
	}
	str_free(&old);
	str_free(&sql);
	return status;
}

enum status report__where(const char **out, const struct report_names *names, const char *text,
			  struct arena *arena, struct err *err)
{
	struct str sql = {0};
	struct err own;

	err = err_start(err, &own);
	*out = NULL;
	if (parse_condition(&sql, text, err) == ST_OK &&
	    prof_expression_check(str_peek(&sql), names->names, (size_t)names->count, err) ==
		    ST_OK) {
		*out = arena_strdup(arena, str_peek(&sql));
		if (!*out)
			err_nomem(err);
	} else if (err->status == ST_INVALID) {
		explain_condition(names, text, err);
	}
	str_free(&sql);
	return err->status;
}
