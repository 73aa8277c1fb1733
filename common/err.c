/*
 * Error records (truncated, without control characters) and the texts of enum status.
 *
 * Threading: stateless. Ownership: the caller's struct err is written; nothing is retained.
 */
#include "common/err.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"

static const struct {
	enum status status;
	const char *text;
} status_rows[] = {
#define STATUS_ROW(name, value, text) {name, text},
	STATUS_MAP(STATUS_ROW)
#undef STATUS_ROW
};

/* Values from here on: the work failed; below: the request was wrong. */
#define STATUS_FIRST_WORK 20

const char *status_text(enum status status)
{
	for (size_t i = 0; i < ARRAY_LEN(status_rows); i++)
		if (status_rows[i].status == status)
			return status_rows[i].text;

	return "unknown status";
}

int status_exit_code(enum status status)
{
	if (status == ST_OK)
		return 0;

	return status == ST_NOMEM || (int)status >= STATUS_FIRST_WORK ? 1 : 2;
}

static void err_store(struct err *err, const char *text)
{
	str_copy(err->text, sizeof(err->text), text);
	/* Text from files reaches terminals. */
	err->text[utf8_show(err->text, strlen(err->text), "")] = '\0';
}

enum status err_set(struct err *err, enum status status, const char *format, ...)
{
	/* Longer than err->text, so that str_copy() truncates between characters. The arguments may
	 * point into err->text, so format into a separate buffer. */
	char text[ERR_TEXT_SIZE + 8];
	va_list args;

	if (!err)
		return status;

	va_start(args, format);
	if (vsnprintf(text, sizeof(text), format, args) < 0)
		str_copy(text, sizeof(text), status_text(status));
	va_end(args);

	err->status = status;
	err_store(err, text);
	return status;
}

enum status err_prefix(struct err *err, const char *format, ...)
{
	char text[2 * ERR_TEXT_SIZE + 8];
	va_list args;
	size_t length;

	if (!err)
		return ST_FAILED;

	va_start(args, format);
	if (vsnprintf(text, ERR_TEXT_SIZE, format, args) < 0)
		text[0] = '\0';
	va_end(args);

	length = strlen(text);
	snprintf(text + length, sizeof(text) - length, ": %s", err->text);
	err_store(err, text);
	return err->status;
}

enum status err_nomem(struct err *err)
{
	return err_set(err, ST_NOMEM, "%s", status_text(ST_NOMEM));
}
