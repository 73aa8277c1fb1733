/*
 * What Perfetto's traces have of GPUs: render stages and compute kernels on hardware queues, the
 * track events that submitted or waited for them, and counters. See report_import_pftrace.h.
 *
 * A stage names its queue, its kind and its kernel by interned ids of its sequence, or, in the old
 * form, by places in a list that the trace has once. Its event_id is the trace's own: a track
 * event lists those that it submitted (one call, many kernels) and those that it waited for.
 *
 * Threading: the calling thread only.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "reports/import/report_import_pftrace.h"

#define STAGES_MOST ((size_t)1 << 18) /* whose waits and calls are known */
#define QUEUE_SORT  1000000           /* queues are below the threads of their process */

/* Fields of GpuRenderStageEvent. */
enum stage_field {
	STAGE_ID = 1,
	STAGE_DURATION = 2,
	STAGE_OLD_QUEUE = 3,
	STAGE_OLD_STAGE = 4,
	STAGE_CONTEXT = 5,
	STAGE_EXTRA = 6,
	STAGE_OLD_NAMES = 7,
	STAGE_SUBMISSION = 10,
	STAGE_GPU = 11,
	STAGE_QUEUE = 13,
	STAGE_STAGE = 14,
	STAGE_NAME = 17,
	STAGE_WAITS = 18,
	STAGE_KERNEL = 19,
	STAGE_NAME_IID = 20,
	STAGE_LAUNCH = 21
};

/* ---- interned data --------------------------------------------------------------------------- */

/* {counter_id 1, name 2} of each; @above: the number of the descriptor, 0 for the trace's. */
static void name_counters(struct pftrace *pf, struct sequence *sequence, uint64_t above,
			  struct import_wire descriptor)
{
	struct import_wire_field field, inner;

	while (!err_stuck(pf->err) && import_wire_next(&descriptor, &field)) {
		struct interned counter = {.kind = INTERNED_GPU_COUNTER, .number = IPS_NULL};
		struct import_wire spec = field.bytes;

		if (field.number != 1 || !pftrace_is_bytes(&field))
			continue;
		while (import_wire_next(&spec, &inner)) {
			if (inner.number == 1)
				counter.iid = above << 32 | (uint32_t)inner.value;
			else if (inner.number == 2 && pftrace_is_bytes(&inner))
				counter.text = report__pftrace_store(pf, &inner.bytes);
		}
		report__pftrace_intern(pf, sequence, &counter);
	}
}

void report__pftrace_gpu_counters(struct pftrace *pf, struct sequence *sequence,
				  struct import_wire interned)
{
	struct import_wire_field field;
	struct interned gpu = {.kind = INTERNED_GPU_COUNTERS, .text = "", .number = IPS_NULL};
	struct import_wire descriptor = {NULL, NULL};

	while (import_wire_next(&interned, &field)) {
		if (field.number == 1)
			gpu.iid = (uint32_t)field.value;
		else if (field.number == 2 && pftrace_is_bytes(&field))
			descriptor = field.bytes;
		else if (field.number == 3)
			gpu.number = (int32_t)field.value;
	}
	report__pftrace_intern(pf, sequence, &gpu);
	if (descriptor.at)
		name_counters(pf, sequence, gpu.iid, descriptor);
}

/* What a kernel's own arguments and those of its launch say, by their names. */
struct launch {
	int64_t grid[3], block[3], registers, shared_bytes;
};

/* One ExtraComputeArg: into @launch, and as an argument of the next span if @arguments. */
static void read_launch_argument(struct pftrace *pf, const struct sequence *sequence,
				 struct import_wire message, bool arguments, struct launch *launch)
{
	struct import_wire_field field, value = {0};
	const char *name = NULL;
	uint32_t id;

	while (import_wire_next(&message, &field)) {
		if (field.number == 1)
			name = report__pftrace_interned(sequence, INTERNED_GPU_ARGUMENT,
							field.value);
		else if (field.number == 2 && pftrace_is_bytes(&field))
			name = report__pftrace_store(pf, &field.bytes);
		else if (field.number <= 7)
			value = field;
	}
	if (!name || value.number == 0)
		return;
	if (value.number == 3 || value.number == 4) {
		int64_t *into = strcmp(name, "registers_per_thread") == 0 ? &launch->registers
				: str_starts_with(name, "shared_mem_")    ? &launch->shared_bytes
									  : NULL;
		if (into == &launch->shared_bytes && *into != IPS_NULL)
			*into = (int64_t)((uint64_t)*into + value.value); /* dynamic and static */
		else if (into)
			*into = import_wire_int(&value);
	}
	if (!arguments || report__import_arg_name(pf->import, name, &id, pf->err) != ST_OK)
		return;
	if (value.number == 5)
		report__import_arg_real(pf->import, id, import_wire_double(&value));
	else if (value.number == 6 && pftrace_is_bytes(&value))
		report__import_arg_text(pf->import, id, report__pftrace_text(pf, &value.bytes));
	else if (value.number == 7)
		report__import_arg_text(
			pf->import, id,
			report__pftrace_interned(sequence, INTERNED_TEXT, value.value));
	else
		report__import_arg_int(pf->import, id, import_wire_int(&value));
}

void report__pftrace_gpu_kernel(struct pftrace *pf, struct sequence *sequence,
				struct import_wire kernel)
{
	struct interned item = {.kind = INTERNED_GPU_KERNEL};
	struct launch launch = {.registers = IPS_NULL, .shared_bytes = IPS_NULL};
	struct import_wire_field field;
	const char *demangled = NULL;

	while (import_wire_next(&kernel, &field)) {
		if (field.number == 1)
			item.iid = field.value;
		else if (field.number == 2 && pftrace_is_bytes(&field))
			item.text = report__pftrace_store(pf, &field.bytes);
		else if (field.number == 3 && pftrace_is_bytes(&field))
			demangled = report__pftrace_store(pf, &field.bytes);
		else if (field.number == 5 && pftrace_is_bytes(&field))
			read_launch_argument(pf, sequence, field.bytes, false, &launch);
	}
	item.text = demangled && demangled[0] != '\0' ? demangled : item.text;
	item.number = launch.registers;
	report__pftrace_intern(pf, sequence, &item);
}

/* The old form's {context_spec 1 {context 1, pid 2}, hw_queue 2 {name 1}, stage 3 {name 1}}. */
static void read_old_names(struct pftrace *pf, struct import_wire specifications)
{
	uint64_t counts[4] = {0};
	struct import_wire_field field, inner;

	while (!err_stuck(pf->err) && import_wire_next(&specifications, &field)) {
		struct import_wire message = field.bytes;
		struct interned item = {.text = "", .number = IPS_NULL};

		if (field.number > 3 || !pftrace_is_bytes(&field))
			continue;
		item.kind = field.number == 1   ? INTERNED_GPU_CONTEXT
			    : field.number == 2 ? INTERNED_GPU_OLD_QUEUE
						: INTERNED_GPU_OLD_STAGE;
		item.iid = counts[field.number]++;
		while (import_wire_next(&message, &inner)) {
			if (field.number == 1 && inner.number == 1)
				item.iid = inner.value;
			else if (field.number == 1 && inner.number == 2)
				item.number = (int32_t)inner.value;
			else if (inner.number == 1 && pftrace_is_bytes(&inner))
				item.text = report__pftrace_store(pf, &inner.bytes);
		}
		report__pftrace_intern(pf, &pf->gpu_names, &item);
	}
}

/* ---- calls and waits ------------------------------------------------------------------------- */

/* The stage of an event_id; NULL: not known. */
static struct pf_stage *find_stage(struct pftrace *pf, uint64_t id)
{
	size_t at;

	MAP_FIND(at, &pf->stage_map, id, pf->stages[at].id == id);
	return at == MAP_NONE ? NULL : &pf->stages[at];
}

/* The stage of an event_id, new with @key if it is not known; NULL: too many, or out of memory. */
static struct pf_stage *get_stage(struct pftrace *pf, uint64_t id, uint64_t key)
{
	struct pf_stage *stage = find_stage(pf, id);

	if (stage || pf->stage_count == STAGES_MOST)
		return stage;
	stage = report__import_append(&pf->stage_map, id, &pf->stages, &pf->stage_count,
				      &pf->stage_capacity, sizeof(*stage), pf->err);
	if (stage)
		*stage = (struct pf_stage){.id = id, .key = key, .track = IMPORT_NO_ID};
	return stage;
}

/* The event_ids of field @number of a GpuCorrelation into pf->ids; return how many there are. */
static size_t read_ids(struct pftrace *pf, struct import_wire correlation, uint32_t number)
{
	struct import_wire_field field;
	size_t count = 0;

	while (import_wire_next(&correlation, &field))
		if (field.number == number)
			count = report__pftrace_numbers(&field, false, pf->ids, PFTRACE_IDS, count);
	return count;
}

/* Arrows from the @count stages of pf->ids, as far as they were read, to what is on @track at
 * @ns. */
static void put_waits(struct pftrace *pf, size_t count, uint32_t track, int64_t ns)
{
	uint32_t site;

	if (count == 0 ||
	    report__import_name_site(pf->import, NULL, "wait", &site, pf->err) != ST_OK)
		return;
	for (size_t i = 0; i < count && !err_stuck(pf->err); i++) {
		const struct pf_stage *stage = find_stage(pf, pf->ids[i]);

		pf->import->counts->events++;
		if (!stage || stage->track == IMPORT_NO_ID) {
			report__import_left_what(pf->import, "waits for what came later or never",
						 1);
			continue;
		}
		pf->import->counts->events++;
		pf->waits++;
		/* the keys of other flows are ids of the file; these are beyond what they use */
		if (report__import_flow(pf->import, stage->track, site, stage->start_ns,
					IMPORT_FLOW_START, UINT64_MAX - pf->waits,
					pf->err) == ST_OK)
			report__import_flow(pf->import, track, site, ns, IMPORT_FLOW_END,
					    UINT64_MAX - pf->waits, pf->err);
	}
}

void report__pftrace_gpu_call(struct pftrace *pf, struct import_wire correlation)
{
	const size_t count = read_ids(pf, correlation, 1);

	for (size_t i = 0; i < count && !err_stuck(pf->err); i++)
		get_stage(pf, pf->ids[i], pf->ids[0]);
	if (!err_stuck(pf->err) && count > 0) {
		const struct ips_call call = {import_launch_key(0, (int64_t)pf->ids[0])};

		report__import_row(pf->import, IPS_TABLE_call, &call, sizeof(call));
	}
}

void report__pftrace_gpu_wait(struct pftrace *pf, struct import_wire correlation, uint32_t track,
			      int64_t ns)
{
	put_waits(pf, read_ids(pf, correlation, 2), track, ns);
}

/* ---- stages ---------------------------------------------------------------------------------- */

struct stage_event {
	uint64_t id;
	size_t waits; /* in pf->ids */
	int64_t duration, gpu, pid;
	const char *queue, *stage, *name, *kernel; /* NULL: not given */
	int64_t queue_number, stage_number;
	struct launch launch;
};

static void read_size(struct import_wire message, int64_t out[3])
{
	struct import_wire_field field;

	out[0] = out[1] = out[2] = 1;
	while (import_wire_next(&message, &field))
		if (field.number <= 3)
			out[field.number - 1] = import_wire_int(&field);
}

static void read_stage(struct pftrace *pf, const struct sequence *sequence,
		       struct import_wire message, struct stage_event *stage)
{
	struct import_wire_field field, inner;
	const struct interned *found;

	while (import_wire_next(&message, &field)) {
		struct import_wire bytes = field.bytes;

		switch (field.number) {
		case STAGE_ID:
			stage->id = field.value;
			break;
		case STAGE_DURATION:
			stage->duration = import_wire_int(&field);
			break;
		case STAGE_OLD_QUEUE:
			stage->queue_number = (int32_t)field.value;
			stage->queue = report__pftrace_interned(
				&pf->gpu_names, INTERNED_GPU_OLD_QUEUE, field.value);
			break;
		case STAGE_OLD_STAGE:
			stage->stage_number = (int32_t)field.value;
			stage->stage = report__pftrace_interned(
				&pf->gpu_names, INTERNED_GPU_OLD_STAGE, field.value);
			break;
		case STAGE_QUEUE:
			stage->queue_number = import_wire_int(&field);
			stage->queue =
				report__pftrace_interned(sequence, INTERNED_GPU_SPEC, field.value);
			break;
		case STAGE_STAGE:
			stage->stage_number = import_wire_int(&field);
			stage->stage =
				report__pftrace_interned(sequence, INTERNED_GPU_SPEC, field.value);
			break;
		case STAGE_CONTEXT:
			found = report__pftrace_find(sequence, INTERNED_GPU_CONTEXT, field.value);
			if (!found)
				found = report__pftrace_find(&pf->gpu_names, INTERNED_GPU_CONTEXT,
							     field.value);
			stage->pid = found ? found->number : IPS_NULL;
			break;
		case STAGE_GPU:
			stage->gpu = (int32_t)field.value;
			break;
		case STAGE_NAME:
			if (pftrace_is_bytes(&field))
				stage->name = report__pftrace_store(pf, &field.bytes);
			break;
		case STAGE_NAME_IID:
			stage->name =
				report__pftrace_interned(sequence, INTERNED_NAME, field.value);
			break;
		case STAGE_KERNEL:
			found = report__pftrace_find(sequence, INTERNED_GPU_KERNEL, field.value);
			stage->kernel = found ? found->text : NULL;
			if (found && stage->launch.registers == IPS_NULL)
				stage->launch.registers = found->number;
			break;
		case STAGE_WAITS:
			stage->waits = report__pftrace_numbers(&field, false, pf->ids, PFTRACE_IDS,
							       stage->waits);
			break;
		case STAGE_LAUNCH:
			while (pftrace_is_bytes(&field) && import_wire_next(&bytes, &inner)) {
				if (inner.number <= 2 && pftrace_is_bytes(&inner))
					read_size(inner.bytes, inner.number == 1
								       ? stage->launch.grid
								       : stage->launch.block);
				else if (inner.number == 3 && pftrace_is_bytes(&inner))
					read_launch_argument(pf, sequence, inner.bytes, true,
							     &stage->launch);
			}
			break;
		default:
			break;
		}
	}
}

/* What a stage has beside: its submission, and extra_data {name 1, value 2}. */
static void put_arguments(struct pftrace *pf, struct import_wire message)
{
	struct import_wire_field field, inner;
	uint32_t id;

	while (!err_stuck(pf->err) && import_wire_next(&message, &field)) {
		struct import_wire extra = field.bytes, value = {0};
		const char *name = NULL;

		if (field.number == STAGE_SUBMISSION &&
		    report__import_arg_name(pf->import, "submission_id", &id, pf->err) == ST_OK)
			report__import_arg_int(pf->import, id, import_wire_int(&field));
		if (field.number != STAGE_EXTRA || !pftrace_is_bytes(&field))
			continue;
		while (import_wire_next(&extra, &inner)) {
			if (inner.number == 1 && pftrace_is_bytes(&inner))
				name = report__pftrace_store(pf, &inner.bytes);
			else if (inner.number == 2 && pftrace_is_bytes(&inner))
				value = inner.bytes;
		}
		if (name && report__import_arg_name(pf->import, name, &id, pf->err) == ST_OK)
			report__import_arg_text(pf->import, id,
						value.at ? report__pftrace_text(pf, &value) : NULL);
	}
}

/* The row of a hardware queue: one for all contexts of a process on a GPU. */
static uint32_t queue_track(struct pftrace *pf, const struct stage_event *stage, const char *device)
{
	char process[32], thread[96], shown[64];
	uint32_t out = IMPORT_NO_ID;
	struct import_track track = {.kind = IMPORT_THREAD,
				     .process = stage->pid == IPS_NULL ? NULL : process,
				     .process_name = report__pftrace_process_name(pf, stage->pid),
				     .thread = thread,
				     .name = stage->queue,
				     .sort = QUEUE_SORT + stage->gpu,
				     .process_sort = IPS_NULL,
				     .device = device};

	snprintf(process, sizeof(process), "%" PRId64, stage->pid);
	if (!stage->queue || stage->queue[0] == '\0') {
		snprintf(shown, sizeof(shown), "queue %" PRId64, stage->queue_number);
		track.name = shown;
	}
	snprintf(thread, sizeof(thread), "%" PRId64 "/%.64s", stage->gpu, track.name);
	report__import_track(pf->import, &track, &out, pf->err);
	return out;
}

void report__pftrace_gpu_stage(struct pftrace *pf, struct sequence *sequence,
			       struct import_wire message, bool has_time, int64_t ns)
{
	struct import *import = pf->import;
	struct stage_event stage = {.pid = IPS_NULL,
				    .queue_number = IPS_NULL,
				    .launch = {.grid = {IPS_NULL, IPS_NULL, IPS_NULL},
					       .block = {IPS_NULL, IPS_NULL, IPS_NULL},
					       .registers = IPS_NULL,
					       .shared_bytes = IPS_NULL}};
	struct import_wire walk = message;
	struct import_wire_field field;
	struct pf_stage *known;
	struct ips_kernel row;
	const char *device;
	uint32_t track, site;
	char shown[64];

	while (import_wire_next(&walk, &field))
		if (field.number == STAGE_OLD_NAMES && pftrace_is_bytes(&field))
			read_old_names(pf, field.bytes);
	read_stage(pf, sequence, message, &stage);
	if (err_stuck(pf->err) || stage.queue_number == IPS_NULL) /* names alone */
		return;
	import->counts->events++;
	if (!has_time || ns == IPS_NULL) {
		report__import_left(import, REPORT_IMPORT_LEFT_NO_TIME);
		return;
	}
	device = report__import_gpu(import, stage.gpu);
	if (!device) {
		err_nomem(pf->err);
		return;
	}
	snprintf(shown, sizeof(shown), "stage %" PRId64, stage.stage_number);
	if (!stage.name)
		stage.name = stage.kernel ? stage.kernel : stage.stage ? stage.stage : shown;
	track = queue_track(pf, &stage, device);
	if (err_stuck(pf->err) ||
	    report__import_name_site(import, stage.kernel ? "kernel" : "render_stage", stage.name,
				     &site, pf->err) != ST_OK)
		return;
	put_arguments(pf, message);
	known = get_stage(pf, stage.id, stage.id);
	if (err_stuck(pf->err))
		return;
	if (track == IMPORT_NO_ID) {
		report__import_left(import, REPORT_IMPORT_LEFT_TOO_MANY);
		return;
	}
	row = report__import_kernel(device, stage.queue_number,
				    report__import_kernel_kind(stage.name),
				    import_launch_key(0, (int64_t)(known ? known->key : stage.id)));
	row.grid_x = stage.launch.grid[0];
	row.grid_y = stage.launch.grid[1];
	row.grid_z = stage.launch.grid[2];
	row.block_x = stage.launch.block[0];
	row.block_y = stage.launch.block[1];
	row.block_z = stage.launch.block[2];
	row.registers = stage.launch.registers;
	row.shared_bytes = stage.launch.shared_bytes;
	report__import_row(import, IPS_TABLE_kernel, &row, sizeof(row));
	if (known) {
		known->track = track;
		known->start_ns = ns;
	}
	if (report__import_span(import, track, site, ns, stage.duration < 0 ? 0 : stage.duration,
				pf->err) == ST_OK)
		put_waits(pf, stage.waits, track, ns);
}

/* ---- counters -------------------------------------------------------------------------------- */

void report__pftrace_gpu_sample(struct pftrace *pf, struct sequence *sequence,
				struct import_wire message, bool has_time, int64_t ns)
{
	struct import_wire walk = message;
	struct import_wire_field field, inner;
	const struct interned *descriptor = NULL;
	struct sequence *names = &pf->gpu_names;
	int64_t gpu = 0;
	uint32_t track = IMPORT_NO_ID, site;
	char thread[48];

	while (import_wire_next(&walk, &field)) {
		if (field.number == 1 && pftrace_is_bytes(&field)) {
			name_counters(pf, &pf->gpu_names, 0, field.bytes);
		} else if (field.number == 3) {
			gpu = (int32_t)field.value;
		} else if (field.number == 4) {
			names = sequence;
			descriptor =
				report__pftrace_find(sequence, INTERNED_GPU_COUNTERS, field.value);
		}
	}
	if (descriptor && descriptor->number != IPS_NULL)
		gpu = descriptor->number;
	while (!err_stuck(pf->err) && import_wire_next(&message, &field)) {
		struct import_wire counter = field.bytes;
		uint64_t id = 0;
		double value = (double)NAN;
		const char *name;

		if (field.number != 2 || !pftrace_is_bytes(&field))
			continue;
		while (import_wire_next(&counter, &inner)) {
			if (inner.number == 1)
				id = (uint32_t)inner.value;
			else if (inner.number == 2)
				value = (double)import_wire_int(&inner);
			else if (inner.number == 3)
				value = import_wire_double(&inner);
		}
		pf->import->counts->events++;
		name = report__pftrace_interned(names, INTERNED_GPU_COUNTER,
						descriptor ? descriptor->iid << 32 | id : id);
		if (!name) {
			report__import_left_what(pf->import, "samples of counters without a name",
						 1);
			continue;
		}
		if (!has_time || ns == IPS_NULL || !isfinite(value)) {
			report__import_left(pf->import, isfinite(value)
								? REPORT_IMPORT_LEFT_NO_TIME
								: REPORT_IMPORT_LEFT_NO_NUMBER);
			continue;
		}
		if (track == IMPORT_NO_ID) {
			snprintf(thread, sizeof(thread), "GPU %" PRId64 " counters", gpu);
			if (report__import_track(pf->import,
						 &(struct import_track){.kind = IMPORT_THREAD,
									.thread = thread,
									.name = thread,
									.sort = QUEUE_SORT + gpu,
									.process_sort = IPS_NULL},
						 &track, pf->err) == ST_OK)
				report__import_track_shows(pf->import, track,
							   report__import_gpu(pf->import, gpu),
							   pf->err);
		}
		if (err_stuck(pf->err) ||
		    report__import_name_site(pf->import, NULL, name, &site, pf->err) != ST_OK)
			return;
		if (track == IMPORT_NO_ID)
			report__import_left(pf->import, REPORT_IMPORT_LEFT_TOO_MANY);
		else
			report__import_sample(pf->import, track, site, ns, value, pf->err);
	}
}
