/*
 * A recorded run made by hand, with rows in every view, for the tests of reports/.
 *
 * Two replicas of a two-stage pipeline on four IPUs, accumulation 4, one epoch of training (one
 * execution, two weight updates) and an evaluation. Times are round numbers: see report_sample.c.
 */
#ifndef REPORT_SAMPLE_H
#define REPORT_SAMPLE_H

/* Record it into @path, which must not exist. */
void report_sample_write(const char *path);

/* The same by a process that kills itself before the file is finished. */
void report_sample_write_killed(const char *path);

/* A recording opened and closed: every view is empty but for meta and overhead. */
void report_sample_write_empty(const char *path);

#endif /* REPORT_SAMPLE_H */
