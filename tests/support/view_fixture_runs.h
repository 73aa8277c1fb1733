/*
 * A recording of executions as they are asked for: training and evaluation, traced or not, with as
 * many micro-batches as wanted, on a pipeline of three IPUs with uneven times.
 */
#ifndef SUPPORT_VIEW_FIXTURE_RUNS_H
#define SUPPORT_VIEW_FIXTURE_RUNS_H

#include <stdbool.h>

#define VIEW_RUNS_STAGES   3
#define VIEW_RUNS_HERTZ    500000000 /* a cycle is 2 ns */
#define VIEW_RUNS_PAUSE_NS 40000     /* between two executions */

struct view_runs_execution {
	bool train, traced;
	int updates; /* pipeline runs; an evaluation is one */
	int batches; /* micro-batches of each */
};

/* Write @path, which must not exist. false: it could not be written. */
bool view_fixture_runs_write(const char *path, const struct view_runs_execution *executions,
			     int count);
/* The same with a lane of the device, of no IPU, that has each execution as a whole and ends a ns
 * later: cycles are rounded. */
bool view_fixture_runs_engine_write(const char *path, const struct view_runs_execution *executions,
				    int count);

#endif /* SUPPORT_VIEW_FIXTURE_RUNS_H */
