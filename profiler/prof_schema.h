/*
 * The text of schema.sql, put into the library when it was built.
 */
#ifndef PROF_SCHEMA_H
#define PROF_SCHEMA_H

const char *prof_schema_sql(void);

#endif /* PROF_SCHEMA_H */
