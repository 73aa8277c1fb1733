/*
 * The JSON output of ipu-monitor. Devices have the attributes of gc-info, each a string in the form
 * of gc-inventory; processes have numbers.
 *
 * Threading: none.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/mem.h"
#include "reports/monitor/report_monitor.h"

/* Add a key with a formatted text of less than 128 bytes. */
__attribute__((format(printf, 3, 4))) static void add_attribute(struct jsonw *w, const char *key,
								const char *format, ...)
{
	char text[128];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	jsonw_key_text(w, key, text);
}

static void add_device(struct jsonw *w, const struct report_monitor_device *device)
{
	const struct prof_announcement *run = device->run;
	char text[64];

	jsonw_begin_object(w);
	add_attribute(w, "id", "%d", device->id);
	jsonw_key_text(w, "target", "Fabric");
	report_monitor_address(device->id, text, sizeof(text));
	jsonw_key_text(w, "ipu-m host", text);
	add_attribute(w, "board ipu index", "%d", report_monitor_ipu(device->id));
	report_monitor_serial(device->id, text, sizeof(text));
	jsonw_key_text(w, "board serial number", text);
	jsonw_key_text(w, "board type", device->kind->board);
	jsonw_key_text(w, "ipu architecture", device->kind->architecture);
	add_attribute(w, "clock", "%" PRId64 "MHz", device->clock_mhz);
	add_attribute(w, "average die temp", "%.1f C", device->die_c);
	add_attribute(w, "average board temp", "%.1f C", device->board_c);
	add_attribute(w, "ipu power", "%.1f W", device->watts);
	add_attribute(w, "total board power", "%.1f W", device->board_watts);
	add_attribute(w, "ipu utilisation", "%.2f%%", 100 * device->utilisation);
	if (run) {
		jsonw_key_text(w, "user executable", run->command);
		jsonw_key_text(w, "user name", run->user);
		add_attribute(w, "user process id", "%" PRId64, run->pid);
	}
	jsonw_end_object(w);
}

static void add_run(struct jsonw *w, const struct report_monitor *monitor,
		    const struct prof_announcement *run)
{
	const int64_t ms = monitor->now_ms - run->started_ms;
	const struct {
		const char *key;
		int64_t value, of;
	} counts[] = {
		{"epoch", run->progress.epoch, run->progress.epochs},
		{"epochs", run->progress.epochs, run->progress.epochs},
		{"step", run->progress.step, run->progress.steps},
		{"steps", run->progress.steps, run->progress.steps},
	};

	jsonw_begin_object(w);
	jsonw_key_int(w, "pid", run->pid);
	jsonw_key_text(w, "command", run->command);
	jsonw_key_text(w, "user", run->user);
	jsonw_key_int(w, "started_ms", run->started_ms);
	jsonw_key_real(w, "seconds", ms > 0 ? (double)ms * 1e-3 : 0);
	jsonw_key_text(w, "target", run->target);
	jsonw_key_int(w, "clock_mhz", run->clock_mhz);
	jsonw_key_array(w, "ipus");
	for (int64_t id = run->first_id; id < run->first_id + run->ipus; id++)
		jsonw_int(w, id);
	jsonw_end_array(w);
	jsonw_key_bool(w, "shared", report_monitor_shared(monitor, run));
	jsonw_key_int(w, "replicas", run->replicas);
	jsonw_key_int(w, "stages", run->stages);
	jsonw_key_text(w, "state", report_run_state_text(run->progress.state));
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		jsonw_key(w, counts[i].key);
		if (counts[i].of > 0)
			jsonw_int(w, counts[i].value);
		else
			jsonw_null(w);
	}
	jsonw_key_real(w, "utilisation", run->progress.utilisation);
	jsonw_key_text(w, "report", run->report[0] ? run->report : NULL);
	jsonw_end_object(w);
}

void report_monitor_json(const struct report_monitor *monitor, struct jsonw *w)
{
	jsonw_begin_object(w);
	jsonw_key_text(w, "tool", "ipu-monitor");
	jsonw_key_text(w, "version", IPUSCOPE_VERSION);
	jsonw_key_object(w, "partition");
	jsonw_key_text(w, "name", REPORT_MONITOR_PARTITION);
	jsonw_key_text(w, "state", "active");
	jsonw_key_bool(w, "reconfigurable", true);
	jsonw_key_int(w, "ipus", monitor->count);
	jsonw_key_bool(w, "simulated", true);
	jsonw_end_object(w);
	jsonw_key_array(w, "devices");
	for (int i = 0; i < monitor->count; i++)
		add_device(w, &monitor->devices[i]);
	jsonw_end_array(w);
	jsonw_key_array(w, "processes");
	for (int i = 0; i < monitor->runs.count; i++)
		add_run(w, monitor, &monitor->runs.items[i]);
	jsonw_end_array(w);
	jsonw_end_object(w);
}
