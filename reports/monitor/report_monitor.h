/*
 * ipu-monitor: the simulated partition, its IPUs, and the runs attached to them. Computed once from
 * the announcements, then rendered as text or JSON; docs/monitor.md documents the figures.
 */
#ifndef REPORT_MONITOR_H
#define REPORT_MONITOR_H

#include "common/jsonw.h"
#include "common/str.h"
#include "profiler/prof_announce.h"

#define REPORT_MONITOR_PARTITION "sim"

/* Simulated properties of a kind of IPU. */
struct report_monitor_kind {
	const char *target, *architecture, *board; /* "ipu2", "ipu2", "M2000" */
	double busy_watts;
};

struct report_monitor_device {
	int id;
	int users;                              /* number of attached runs */
	const struct prof_announcement *run;    /* the first one; NULL: none */
	const struct report_monitor_kind *kind; /* the run's target */
	int64_t clock_mhz;
	double utilisation;
	double watts, board_watts; /* of the IPU; of its board */
	double die_c, board_c;
};

struct report_monitor {
	struct prof_announcements runs;
	struct report_monitor_device *devices;
	int count;
	int64_t now_ms;
};

struct report_monitor_params {
	int64_t ipus;       /* minimum number of IPUs */
	const char *target; /* of unattached IPUs: a name that ipu_target_get() knows */
	int64_t now_ms;     /* since 1970 */
};

/* Take ownership of @runs, which is empty afterwards. A failure is ST_NOMEM. */
enum status report_monitor_new(struct report_monitor *out, struct prof_announcements *runs,
			       const struct report_monitor_params *params, struct err *err);
void report_monitor_free(struct report_monitor *monitor); /* accepts a zeroed one */

/* Location of IPU @id of the partition, named as gc-monitor does. A board has two IPUs, an IPU-M
 * two boards. */
#define REPORT_MONITOR_BOARD   2
#define REPORT_MONITOR_MACHINE 4
void report_monitor_address(int id, char *out, size_t size);
void report_monitor_serial(int id, char *out, size_t size);
int report_monitor_ipu(int id); /* index on its IPU-M */

/* Return true if another run is attached to any IPU of @run. */
bool report_monitor_shared(const struct report_monitor *monitor,
			   const struct prof_announcement *run);

/* Render the tables; an allocation failure is stored in @out. */
void report_monitor_text(const struct report_monitor *monitor, bool colour, struct str *out);
void report_monitor_json(const struct report_monitor *monitor, struct jsonw *out);

/* The command. */
int report_monitor_command(int argc, char **argv);

#endif /* REPORT_MONITOR_H */
