/*
 * The formats that can be imported, the most specific first. See report_import_reader.h.
 */
#include "common/mem.h"
#include "reports/import/report_import_internal.h"

static const struct import_format formats[] = {
	{NULL, report__import_is_sqlite, report__import_read_sqlite},
	{"xplane", report__import_is_xplane, report__import_read_xplane},
	{"perfetto", report__import_is_pftrace, report__import_read_pftrace},
	{"folded stacks", report__import_is_folded, report__import_read_folded},
	{"chrome trace", report__import_is_chrome, report__import_read_chrome},
};

const struct import_format *report__import_format(const unsigned char *head, size_t size)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		if (formats[i].recognise(head, size))
			return &formats[i];
	}
	return NULL;
}
