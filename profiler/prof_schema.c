/*
 * The embedded schema. Constant data; no threads, no ownership.
 */
#include "profiler/prof_schema.h"

static const char schema_sql[] = {
#include "prof_schema_text.h"
};

const char *prof_schema_sql(void)
{
	return schema_sql;
}
