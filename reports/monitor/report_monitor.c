/*
 * The simulated partition, from the announcements of the runs on it.
 *
 * Threading: none. Ownership: the monitor owns its runs and devices; kinds are constant.
 */
#include "reports/monitor/report_monitor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "ipu/ipu_target.h"

/* ---- heat: docs/monitor.md, "Temperatures and power" ----------------------------------------- */

/* Published power draw of one IPU under load: of its card or machine, divided by its IPUs. A Bow
 * board is called M2000, too. */
static const struct report_monitor_kind monitor_kinds[] = {
	{"ipu1", "ipu1", "C2", 150},
	{"ipu2", "ipu2", "M2000", 375},
	{"ipu21", "ipu2", "M2000", 312.5},
	{"c600", "ipu21", "C600", 185},
};

#define IDLE_PART       0.16 /* share of the busy power */
#define AMBIENT_C       25.0
#define DIE_C_WATT      0.14   /* degrees above ambient per watt of the IPU */
#define BOARD_C_WATT    0.0413 /* degrees above ambient per watt of the board */
#define WARM_UP_SECONDS 20.0

static const struct report_monitor_kind *monitor_kind(const char *target)
{
	for (size_t i = 0; i < ARRAY_LEN(monitor_kinds); i++)
		if (strcmp(monitor_kinds[i].target, target) == 0)
			return &monitor_kinds[i];
	return &monitor_kinds[1];
}

/* Power that determines the temperature: rises from idle to the current power with a time
 * constant. */
static double effective_watts(const struct report_monitor_device *device, int64_t now_ms)
{
	const double idle = IDLE_PART * device->kind->busy_watts;
	double seconds;

	if (!device->run || now_ms <= device->run->started_ms)
		return idle;
	seconds = (double)(now_ms - device->run->started_ms) * 1e-3;
	return idle + (device->watts - idle) * (1 - exp(-seconds / WARM_UP_SECONDS));
}

static void monitor_heat_board(struct report_monitor *monitor, int first)
{
	const int end = min(first + REPORT_MONITOR_BOARD, monitor->count);
	double watts = 0, felt = 0;

	for (int i = first; i < end; i++) {
		struct report_monitor_device *device = &monitor->devices[i];
		const double idle = IDLE_PART * device->kind->busy_watts;
		double own;

		device->watts = idle + (device->kind->busy_watts - idle) * device->utilisation;
		own = effective_watts(device, monitor->now_ms);
		device->die_c = AMBIENT_C + DIE_C_WATT * own;
		watts += device->watts;
		felt += own;
	}
	for (int i = first; i < end; i++) {
		monitor->devices[i].board_watts = watts;
		monitor->devices[i].board_c = AMBIENT_C + BOARD_C_WATT * felt;
	}
}

/* ---- the partition --------------------------------------------------------------------------- */

enum status report_monitor_new(struct report_monitor *out, struct prof_announcements *runs,
			       const struct report_monitor_params *params, struct err *err)
{
	struct ipu_target target;
	enum status status = ipu_target_get(params->target, 0, &target, err);
	int64_t ipus = 0;

	*out = (struct report_monitor){.now_ms = params->now_ms};
	if (status != ST_OK)
		return status;
	for (int i = 0; i < runs->count; i++) {
		const int64_t end = runs->items[i].first_id + runs->items[i].ipus;

		ipus = max(end, ipus);
	}
	if (ipus > 0)
		ipus = prof_announce_machine(ipus);
	out->count = (int)max(ipus, params->ipus);
	out->devices = mem_calloc((size_t)out->count, sizeof(*out->devices));
	if (!out->devices)
		return err_nomem(err);
	out->runs = *runs;
	*runs = (struct prof_announcements){0};
	for (int i = 0; i < out->count; i++)
		out->devices[i] = (struct report_monitor_device){
			.id = i,
			.kind = monitor_kind(params->target),
			.clock_mhz = llround(target.clock_hz * 1e-6),
		};
	for (int i = 0; i < out->runs.count; i++) {
		const struct prof_announcement *run = &out->runs.items[i];

		for (int64_t id = run->first_id; id < run->first_id + run->ipus; id++) {
			struct report_monitor_device *device = &out->devices[id];

			if (device->users++ == 0) {
				device->run = run;
				device->kind = monitor_kind(run->target);
				device->clock_mhz = run->clock_mhz;
			}
			device->utilisation =
				fmin(1, device->utilisation + run->progress.utilisation);
		}
	}
	for (int i = 0; i < out->count; i += REPORT_MONITOR_BOARD)
		monitor_heat_board(out, i);
	return ST_OK;
}

void report_monitor_free(struct report_monitor *monitor)
{
	prof_announcements_free(&monitor->runs);
	mem_free(monitor->devices);
	*monitor = (struct report_monitor){0};
}

/* ---- locations ------------------------------------------------------------------------------- */

/* From the block reserved for network benchmarks (198.18.0.0/15), which belongs to no host. */
void report_monitor_address(int id, char *out, size_t size)
{
	const int machine = id / REPORT_MONITOR_MACHINE;

	snprintf(out, size, "198.18.%d.%d", machine / 250 % 250, machine % 250 + 1);
}

void report_monitor_serial(int id, char *out, size_t size)
{
	const int board = id % REPORT_MONITOR_MACHINE / REPORT_MONITOR_BOARD;

	snprintf(out, size, "%04d.%04d.0000000", id / REPORT_MONITOR_MACHINE + 1, 2 - board);
}

int report_monitor_ipu(int id)
{
	return REPORT_MONITOR_MACHINE - 1 - id % REPORT_MONITOR_MACHINE;
}

bool report_monitor_shared(const struct report_monitor *monitor,
			   const struct prof_announcement *run)
{
	for (int64_t id = run->first_id; id < run->first_id + run->ipus; id++)
		if (monitor->devices[id].users > 1)
			return true;
	return false;
}
