/*
 * The tables of ipu-monitor in the layout of gc-monitor: the same column widths, centred texts, a
 * rule between IPU-Ms. Always ASCII.
 *
 * Threading: none. Ownership: text is appended to the caller's string.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "reports/table/report_internal.h"
#include "reports/monitor/report_monitor.h"

#define CELL_SIZE 4096
#define BOLD      "\033[1m"
#define PLAIN     "\033[0m"

struct monitor_column {
	const char *head;
	int width;
};

static const struct monitor_column device_columns[] = {
	{"IPU-M", 13}, {"Serial", 20}, {"IPU-M SW", 8}, {"Server version", 14}, {"ICU FW", 10},
	{"Type", 7},   {"ID", 4},      {"IPU#", 6},     {"Routing", 7},
};
static const struct monitor_column device_title[] = {{"ipu-monitor", 15}, {NULL, 81}};
static const struct monitor_column device_none[] = {{NULL, 97}};

static const struct monitor_column process_columns[] = {
	{"PID", 8},    {"Command", 108}, {"Time", 8}, {"User", 12}, {"ID", 4},
	{"Clock", 10}, {"Temp", 8},      {"Temp", 8}, {"Power", 8},
};
static const struct monitor_column process_title[] = {{NULL, 139}, {"IPU", 24}, {"Board", 17}};

/* ---- boxes ----------------------------------------------------------------------------------- */

static void add_rule(struct str *out, const struct monitor_column *columns, size_t count)
{
	static const char dashes[] = "------------------------------------------------------------"
				     "------------------------------------------------------------"
				     "--------------------";

	for (size_t i = 0; i < count; i++)
		str_addf(out, "+%.*s", columns[i].width, dashes);
	str_add(out, "+\n");
}

/* Centre each text in its column, cut with "..." if it is longer. @cells NULL: the headings. */
static void add_row(struct str *out, const struct monitor_column *columns, size_t count,
		    const char *const *cells)
{
	for (size_t i = 0; i < count; i++) {
		char clean[CELL_SIZE];
		const struct report_cell cell = {.type = PROF_TEXT,
						 .text = cells ? cells[i] : columns[i].head};
		const int width = columns[i].width;
		int length, left;

		report_cell_text(&cell, REPORT_TEXT, clean, sizeof(clean));
		length = utf8_columns(clean);
		if (length > width) {
			const int kept = utf8_cut(clean, width - 3);

			/* A blank pads where a wide character does not fit. */
			str_addf(out, "|%.*s...%*s", kept, clean,
				 width - 3 - length + utf8_columns(clean + kept), "");
			continue;
		}
		left = (width - length) / 2;
		str_addf(out, "|%*s%s%*s", left, "", clean, width - length - left, "");
	}
	str_add(out, "|\n");
}

static void add_title(struct str *out, const struct monitor_column *columns, size_t count,
		      const char *const *cells, bool colour)
{
	add_rule(out, columns, count);
	str_add(out, colour ? BOLD : "");
	add_row(out, columns, count, cells);
	str_add(out, colour ? PLAIN : "");
}

/* ---- IPUs ------------------------------------------------------------------------------------ */

static void add_devices(struct str *out, const struct report_monitor *monitor, bool colour)
{
	char partition[96];
	const char *title[] = {device_title[0].head, partition};

	snprintf(partition, sizeof(partition), "Partition: %s [active] has %d reconfigurable IPUs",
		 REPORT_MONITOR_PARTITION, monitor->count);
	add_title(out, device_title, ARRAY_LEN(device_title), title, colour);
	add_rule(out, device_columns, ARRAY_LEN(device_columns));
	add_row(out, device_columns, ARRAY_LEN(device_columns), NULL);
	for (int i = 0; i < monitor->count; i++) {
		const struct report_monitor_device *device = &monitor->devices[i];
		char address[64], serial[64], id[16], ipu[16];
		const char *const cells[] = {
			address,
			serial,
			IPUSCOPE_VERSION,
			IPUSCOPE_VERSION,
			IPUSCOPE_VERSION,
			device->kind->board,
			id,
			ipu,
			"DNC",
		};

		_Static_assert(ARRAY_LEN(cells) == ARRAY_LEN(device_columns), "a cell a column");
		if (i % REPORT_MONITOR_MACHINE == 0)
			add_rule(out, device_columns, ARRAY_LEN(device_columns));
		report_monitor_address(device->id, address, sizeof(address));
		report_monitor_serial(device->id, serial, sizeof(serial));
		snprintf(id, sizeof(id), "%d", device->id);
		snprintf(ipu, sizeof(ipu), "%d", report_monitor_ipu(device->id));
		add_row(out, device_columns, ARRAY_LEN(device_columns), cells);
	}
	add_rule(out, device_columns, ARRAY_LEN(device_columns));
}

/* ---- processes ------------------------------------------------------------------------------- */

static void format_duration(char *out, size_t size, int64_t ms)
{
	const int64_t s = ms > 0 ? ms / 1000 : 0;

	if (s < 60)
		snprintf(out, size, "%" PRId64 "s", s);
	else if (s < 3600)
		snprintf(out, size, "%" PRId64 "m%02ds", s / 60, (int)(s % 60));
	else if (s < 86400)
		snprintf(out, size, "%" PRId64 "h%02dm", s / 3600, (int)(s / 60 % 60));
	else
		snprintf(out, size, "%" PRId64 "d%02dh", s / 86400, (int)(s / 3600 % 24));
}

static void add_process(struct str *out, const struct report_monitor *monitor,
			const struct prof_announcement *run,
			const struct report_monitor_device *device)
{
	char pid[32], time[32], id[32], clock[32], die[32], board[32], power[32];
	const char *const cells[] = {pid,   run->command, time,  run->user, id,
				     clock, die,          board, power};

	_Static_assert(ARRAY_LEN(cells) == ARRAY_LEN(process_columns), "a cell a column");
	snprintf(pid, sizeof(pid), "%" PRId64, run->pid);
	format_duration(time, sizeof(time), monitor->now_ms - run->started_ms);
	snprintf(id, sizeof(id), "%d%s", device->id, device->users > 1 ? "*" : "");
	snprintf(clock, sizeof(clock), "%" PRId64 "MHz", run->clock_mhz);
	snprintf(die, sizeof(die), "%.1f C", device->die_c);
	snprintf(board, sizeof(board), "%.1f C", device->board_c);
	snprintf(power, sizeof(power), "%.1f W", device->board_watts);
	add_row(out, process_columns, ARRAY_LEN(process_columns), cells);
}

static void add_processes(struct str *out, const struct report_monitor *monitor, bool colour)
{
	char partition[96];
	const char *title[] = {partition, process_title[1].head, process_title[2].head};

	if (monitor->runs.count == 0) {
		snprintf(partition, sizeof(partition), "No attached processes in partition %s",
			 REPORT_MONITOR_PARTITION);
		add_title(out, device_none, ARRAY_LEN(device_none), title, colour);
		add_rule(out, device_none, ARRAY_LEN(device_none));
		return;
	}
	snprintf(partition, sizeof(partition), "Attached processes in partition %s",
		 REPORT_MONITOR_PARTITION);
	add_title(out, process_title, ARRAY_LEN(process_title), title, colour);
	add_rule(out, process_columns, ARRAY_LEN(process_columns));
	add_row(out, process_columns, ARRAY_LEN(process_columns), NULL);
	add_rule(out, process_columns, ARRAY_LEN(process_columns));
	for (int i = 0; i < monitor->runs.count; i++) {
		const struct prof_announcement *run = &monitor->runs.items[i];

		for (int64_t id = run->first_id; id < run->first_id + run->ipus; id++)
			add_process(out, monitor, run, &monitor->devices[id]);
	}
	add_rule(out, process_columns, ARRAY_LEN(process_columns));
}

/* ---- progress of the runs -------------------------------------------------------------------- */

void report_monitor_text(const struct report_monitor *monitor, bool colour, struct str *out)
{
	bool shared = false;

	add_devices(out, monitor, colour);
	add_processes(out, monitor, colour);
	if (monitor->runs.count > 0)
		str_add(out, "Temp and Power are simulated, as is all of the partition.\n");
	else
		str_add(out, "The partition is simulated.\n");
	for (int i = 0; i < monitor->runs.count; i++)
		shared |= report_monitor_shared(monitor, &monitor->runs.items[i]);
	if (shared)
		str_add(out, "* more than one run has this IPU\n");
	for (int i = 0; i < monitor->runs.count; i++) {
		const struct prof_announcement *run = &monitor->runs.items[i];
		const struct report_progress *progress = &run->progress;
		const struct report_cell cell = {.type = PROF_TEXT, .text = run->report};
		char report[CELL_SIZE];

		/* "1653623: training, epoch 2/3, step 120/500; ipu-view /home/..." */
		str_addf(out, "%" PRId64 ": %s", run->pid, report_run_state_text(progress->state));
		if (progress->epoch > 0)
			str_addf(out, ", epoch %" PRId64 "/%" PRId64, progress->epoch,
				 progress->epochs);
		if (progress->steps > 0)
			str_addf(out, ", step %" PRId64 "/%" PRId64, progress->step,
				 progress->steps);
		if (run->report[0])
			str_addf(out, "; ipu-view %s",
				 report_cell_text(&cell, REPORT_TEXT, report, sizeof(report)));
		str_add(out, "\n");
	}
}
