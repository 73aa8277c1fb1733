/*
 * How our own programs open a recorded run: through ipuscope/report.h as foreign programs do, with
 * access to the database for data that this header does not offer.
 *
 * Threading and ownership: as ipuscope/report.h says. The report owns the database.
 */
#ifndef REPORT_PUBLIC_H
#define REPORT_PUBLIC_H

#include <ipuscope/report.h>

#include "common/err.h"
#include "profiler/prof_db.h"

/* ips_report_open() with an err. On failure *@out is NULL. */
enum status report_public_open(struct ips_report **out, const char *path, struct err *err);

/* Never NULL; valid until ips_report_close(). */
struct prof_db *report_public_db(struct ips_report *report);

#endif /* REPORT_PUBLIC_H */
