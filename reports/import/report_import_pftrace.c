/*
 * Perfetto's protobuf traces: the packets of a file, compressed ones too. Events are read by
 * report_import_pftrace_event.c, what GPUs did by report_import_pftrace_gpu.c; names and clocks are
 * those of report_import_pftrace_sequence.c.
 *
 * A file is a sequence of packets, each of a writer's sequence, which has its own interned names,
 * defaults and clocks until it clears them. Packets come in any order of time; names of tracks may
 * come behind their events.
 *
 * Threading: the calling thread only.
 */
#include "reports/import/report_import_pftrace.h"

#include <string.h>
#include <zlib.h>

#include "common/mem.h"

#define PACKET_MOST   ((size_t)16 << 20)
#define INFLATED_MOST ((size_t)32 << 20)

enum packet_field {
	PACKET_PROCESS_TREE = 2,
	PACKET_CLOCKS = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_FLAGS = 13,
	PACKET_CLEARED = 41,
	PACKET_DROPPED = 42,
	PACKET_PROCESS = 43,
	PACKET_THREAD = 44,
	PACKET_DEFLATED = 50,
	PACKET_GPU_SAMPLE = 52,
	PACKET_GPU_STAGE = 53,
	PACKET_CLOCK = 58,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK = 60,
	PACKET_ZSTD = 133
};

/* ---- interned names and defaults ------------------------------------------------------------- */

#define INTERNED_KERNELS 1000

/* The fields of InternedData that are read: the entries of most are {iid 1, text 2}. */
static const struct interned_field {
	uint32_t number;
	enum interned_kind kind;
	uint32_t value; /* field of a number, 0: none */
	/* NULL: of the others */
	void (*read)(struct pftrace *pf, struct sequence *sequence, struct import_wire entry);
} interned_fields[] = {
	{1, INTERNED_CATEGORY, 0, NULL},
	{2, INTERNED_NAME, 0, NULL},
	{3, INTERNED_ARGUMENT, 0, NULL},
	{23, INTERNED_GPU_CONTEXT, 2, NULL},
	{24, INTERNED_GPU_SPEC, 0, NULL},
	{29, INTERNED_TEXT, 0, NULL},
	{47, INTERNED_GPU_COUNTERS, 0, report__pftrace_gpu_counters},
	{INTERNED_KERNELS, INTERNED_GPU_KERNEL, 0, NULL},
	{1001, INTERNED_GPU_ARGUMENT, 0, NULL},
};

static void add_entry(struct pftrace *pf, struct sequence *sequence,
		      const struct interned_field *of, struct import_wire entry)
{
	struct interned item = {.kind = of->kind, .text = "", .number = IPS_NULL};
	struct import_wire_field field;

	while (import_wire_next(&entry, &field)) {
		if (field.number == 1)
			item.iid = field.value;
		else if (field.number == of->value)
			item.number = (int32_t)field.value;
		else if (field.number == 2 && pftrace_is_bytes(&field))
			item.text = report__pftrace_store(pf, &field.bytes);
	}
	report__pftrace_intern(pf, sequence, &item);
}

static void add_interned(struct pftrace *pf, struct sequence *sequence, struct import_wire data)
{
	const struct import_wire whole = data;
	struct import_wire_field field;
	bool kernels = false;

	while (!err_stuck(pf->err) && import_wire_next(&data, &field)) {
		const struct interned_field *of = interned_fields;
		const struct interned_field *end = of + ARRAY_LEN(interned_fields);

		while (of < end && of->number != field.number)
			of++;
		if (of == end || !pftrace_is_bytes(&field))
			continue;
		if (of->kind == INTERNED_GPU_KERNEL)
			kernels = true;
		else if (of->read)
			of->read(pf, sequence, field.bytes);
		else
			add_entry(pf, sequence, of, field.bytes);
	}
	/* their arguments are named by other entries, which may come behind them */
	for (data = whole; kernels && import_wire_next(&data, &field);) {
		if (field.number == INTERNED_KERNELS && pftrace_is_bytes(&field))
			report__pftrace_gpu_kernel(pf, sequence, field.bytes);
	}
}

static void read_defaults(struct sequence *sequence, struct import_wire defaults)
{
	struct import_wire_field field, inner;

	while (import_wire_next(&defaults, &field)) {
		struct import_wire event = field.bytes;

		if (field.number == PACKET_CLOCK)
			sequence->clock = field.value;
		if (field.number != PACKET_EVENT || !pftrace_is_bytes(&field))
			continue;
		while (import_wire_next(&event, &inner)) {
			if (inner.number == 11) {
				sequence->track = inner.value;
				sequence->has_track = true;
			} else if (inner.number == 31) {
				sequence->extra_count = report__pftrace_numbers(
					&inner, false, sequence->extra, ARRAY_LEN(sequence->extra),
					sequence->extra_count);
			}
		}
	}
}

/* ---- packets --------------------------------------------------------------------------------- */

static void read_packet(struct pftrace *pf, struct import_wire packet, bool compressed);

/* The packets in compressed bytes. */
static void read_compressed(struct pftrace *pf, struct import_wire bytes, bool zstd)
{
	const size_t packed = import_wire_size(&bytes);
	size_t size = INFLATED_MOST;
	bool whole;
	struct import_wire trace;
	struct import_wire_field field;

	if (!pf->inflated)
		pf->inflated = mem_alloc(INFLATED_MOST);
	if (!pf->inflated) {
		err_nomem(pf->err);
		return;
	}
	whole = zstd ? report__import_unpack_zstd(bytes.at, packed, pf->inflated, &size)
		     : uncompress(pf->inflated, &size, bytes.at, packed) == Z_OK;
	if (!whole) {
		pf->import->counts->events++;
		report__import_left_what(pf->import,
					 zstd ? "packets of Zstandard that are damaged or large, "
						"or that a build without libzstd cannot read"
					      : "compressed packets that are damaged or large",
					 1);
		return;
	}
	trace = (struct import_wire){pf->inflated, pf->inflated + size};
	while (!err_stuck(pf->err) && import_wire_next(&trace, &field))
		if (field.number == 1 && pftrace_is_bytes(&field))
			read_packet(pf, field.bytes, true);
}

/* What is read of a packet. */
enum packet_part {
	PART_NONE,
	PART_EVENT,
	PART_GPU_STAGE,
	PART_GPU_SAMPLE,
	PART_INTERNED,
	PART_DEFAULTS,
	PART_CLOCKS,
	PART_TRACK,
	PART_PROCESS_TREE,
	PART_PROCESS,
	PART_THREAD,
	PART_DEFLATED,
	PART_ZSTD,
	PARTS
};

/* The parts of a packet. Most have one or two: clearing all took a third of its time. */
struct parts {
	uint32_t has; /* a bit for each part */
	struct import_wire at[PARTS];
};

static bool has_part(const struct parts *parts, enum packet_part part)
{
	return (parts->has >> part & 1) != 0;
}

/* By field: the part that it is, or what packets of another kind are, which have no place here;
 * packets without either are about the trace itself. */
static const struct {
	enum packet_part part;
	const char *what;
} packet_fields[] = {
	[1] = {PART_NONE, "ftrace bundles"},
	[PACKET_PROCESS_TREE] = {PART_PROCESS_TREE, NULL},
	[PACKET_CLOCKS] = {PART_CLOCKS, NULL},
	[PACKET_EVENT] = {PART_EVENT, NULL},
	[PACKET_INTERNED] = {PART_INTERNED, NULL},
	[37] = {PART_NONE, "packages of Android"},
	[38] = {PART_NONE, "power rails"},
	[39] = {PART_NONE, "samples of batteries"},
	[PACKET_PROCESS] = {PART_PROCESS, NULL},
	[PACKET_THREAD] = {PART_THREAD, NULL},
	[46] = {PART_NONE, "protocol logs"},
	[48] = {PART_NONE, "samples of memory"},
	[PACKET_DEFLATED] = {PART_DEFLATED, NULL},
	[PACKET_GPU_SAMPLE] = {PART_GPU_SAMPLE, NULL},
	[PACKET_GPU_STAGE] = {PART_GPU_STAGE, NULL},
	[PACKET_DEFAULTS] = {PART_DEFAULTS, NULL},
	[PACKET_TRACK] = {PART_TRACK, NULL},
	[66] = {PART_NONE, "samples of stacks"},
	[75] = {PART_NONE, "heap graphs"},
	[77] = {PART_NONE, "heap profiles"},
	[PACKET_ZSTD] = {PART_ZSTD, NULL},
};

static void name_processes(struct pftrace *pf, struct import_wire tree)
{
	struct import_wire_field field, inner;

	while (!err_stuck(pf->err) && import_wire_next(&tree, &field)) {
		struct import_wire process = field.bytes;
		const char *name = NULL;
		int64_t pid = IPS_NULL;

		if (field.number != 1 || !pftrace_is_bytes(&field))
			continue;
		while (import_wire_next(&process, &inner)) {
			if (inner.number == 1) {
				pid = (int32_t)inner.value;
			} else if (inner.number == 3 && pftrace_is_bytes(&inner) && !name) {
				/* the program, without its arguments and folder */
				name = report__pftrace_store(pf, &inner.bytes);
				name = name && strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
			}
		}
		if (!report__pftrace_process_name(pf, pid))
			report__pftrace_name_process(pf, pid, name);
	}
}

/* The names of a process and of the sequence's thread in the form before tracks. */
static void read_old_names(struct pftrace *pf, struct sequence *sequence, const struct parts *parts)
{
	struct pf_track track = {.pid = IPS_NULL, .tid = IPS_NULL};

	if (has_part(parts, PART_PROCESS))
		report__pftrace_descriptor(pf, parts->at[PART_PROCESS], false, &track, NULL);
	if (!has_part(parts, PART_THREAD))
		return;
	sequence->reference_us = 0;
	report__pftrace_descriptor(pf, parts->at[PART_THREAD], true, &track,
				   &sequence->reference_us);
	sequence->pid = track.pid;
	sequence->tid = track.tid;
}

static void read_packet(struct pftrace *pf, struct import_wire packet, bool compressed)
{
	struct import_wire walk = packet;
	struct import_wire_field field;
	struct sequence *sequence;
	struct parts parts;
	int64_t time = 0;
	uint64_t id = 0, clock = 0, flags = 0;
	bool has_time = false, has_clock = false, dropped = false;
	const char *what = NULL;

	parts.has = 0;
	while (import_wire_next(&walk, &field)) {
		switch (field.number) {
		case PACKET_TIMESTAMP:
			time = import_wire_int(&field);
			has_time = true;
			break;
		case PACKET_CLOCK:
			clock = field.value;
			has_clock = true;
			break;
		case PACKET_SEQUENCE:
			id = field.value;
			break;
		case PACKET_FLAGS:
			flags |= field.value;
			break;
		case PACKET_CLEARED:
			flags |= field.value != 0;
			break;
		case PACKET_DROPPED:
			dropped = field.value != 0;
			break;
		default:
			if (field.number >= ARRAY_LEN(packet_fields))
				break;
			if (packet_fields[field.number].what)
				what = packet_fields[field.number].what;
			if (pftrace_is_bytes(&field)) {
				parts.at[packet_fields[field.number].part] = field.bytes;
				parts.has |= 1u << packet_fields[field.number].part;
			}
			break;
		}
	}
	if (import_wire_broken(&walk)) {
		pf->import->counts->events++;
		report__import_left_what(pf->import, "packets that are malformed", 1);
		return;
	}
	if ((has_part(&parts, PART_DEFLATED) || has_part(&parts, PART_ZSTD)) && !compressed) {
		const bool zstd = !has_part(&parts, PART_DEFLATED);

		read_compressed(pf, parts.at[zstd ? PART_ZSTD : PART_DEFLATED], zstd);
		return;
	}
	sequence = report__pftrace_sequence(pf, id);
	if (!sequence)
		return;
	if (dropped)
		sequence->whole = false;
	if (flags & 1)
		report__pftrace_clear(sequence);
	if (has_part(&parts, PART_DEFAULTS))
		read_defaults(sequence, parts.at[PART_DEFAULTS]);
	if (has_part(&parts, PART_INTERNED))
		add_interned(pf, sequence, parts.at[PART_INTERNED]);
	if (has_part(&parts, PART_CLOCKS))
		report__pftrace_snapshot(pf, sequence, parts.at[PART_CLOCKS]);
	if (has_part(&parts, PART_PROCESS_TREE))
		name_processes(pf, parts.at[PART_PROCESS_TREE]);
	if (has_part(&parts, PART_PROCESS) || has_part(&parts, PART_THREAD))
		read_old_names(pf, sequence, &parts);
	if (has_part(&parts, PART_TRACK))
		report__pftrace_track(pf, parts.at[PART_TRACK]);
	if (what) {
		pf->import->counts->events++;
		report__import_left_what(pf->import, what, 1);
	}
	if (err_stuck(pf->err) ||
	    (!has_part(&parts, PART_EVENT) && !has_part(&parts, PART_GPU_STAGE) &&
	     !has_part(&parts, PART_GPU_SAMPLE)))
		return;
	time = report__pftrace_ns(pf, sequence,
				  has_clock         ? clock
				  : sequence->clock ? sequence->clock
						    : PFTRACE_BOOTTIME,
				  time);
	if ((flags & 2) && !sequence->whole) {
		pf->import->counts->events++;
		report__import_left_what(pf->import, "events whose names were lost", 1);
		return;
	}
	if (has_part(&parts, PART_GPU_STAGE))
		report__pftrace_gpu_stage(pf, sequence, parts.at[PART_GPU_STAGE], has_time, time);
	else if (has_part(&parts, PART_GPU_SAMPLE))
		report__pftrace_gpu_sample(pf, sequence, parts.at[PART_GPU_SAMPLE], has_time, time);
	else
		report__pftrace_event(pf, sequence, parts.at[PART_EVENT], has_time, time);
}

static enum status read_pftrace(struct import *import, struct err *err)
{
	struct err own;
	struct pftrace pf = {.import = import,
			     .err = err_start(err, &own),
			     .stream = {.input = &import->input, .most = PACKET_MOST}};
	struct import_wire_field field;
	bool more = true;
	uint64_t packets = 0;

	err = pf.err;
	while (!err_stuck(err) &&
	       report__import_stream_next(&pf.stream, &more, &field, err) == ST_OK && more) {
		packets++;
		if (field.number == 1 && pftrace_is_bytes(&field)) {
			read_packet(&pf, field.bytes, false);
		} else if (field.number == 1) {
			import->counts->events++;
			report__import_left(import, REPORT_IMPORT_LEFT_TOO_LARGE);
		}
		if (packets % 4096 == 0)
			report__import_progress_read(import, import->input.taken,
						     import->input.size, err);
	}
	report__pftrace_nest(&pf);
	import->counts->bytes = pf.stream.offset + pf.stream.at;
	if (!err_stuck(err) && pf.stream.why)
		report__import_broken(import, pf.stream.begun, pf.stream.why);
	if (!err_stuck(err) && import->counts->broken && import->counts->events == 0)
		err_set(err, ST_FORMAT, "%s: byte %llu: %s", import->input.name,
			(unsigned long long)import->counts->broken_at, import->counts->why);
	for (size_t i = 0; i < pf.sequence_count; i++) {
		mem_free(pf.sequences[i].names);
		map_fini(&pf.sequences[i].map);
	}
	mem_free(pf.gpu_names.names);
	map_fini(&pf.gpu_names.map);
	mem_free(pf.stages);
	map_fini(&pf.stage_map);
	mem_free(pf.sequences);
	mem_free(pf.tracks);
	mem_free(pf.processes);
	mem_free(pf.inflated);
	map_fini(&pf.sequence_map);
	map_fini(&pf.track_map);
	map_fini(&pf.process_map);
	report__import_stream_fini(&pf.stream);
	return err->status;
}

/* Packets one after another, as far as the head has them, whose first fields are those of one. */
static bool is_pftrace(const unsigned char *head, size_t size)
{
	struct import_wire wire = {head, head + size};
	struct import_wire_field packet, field;

	if (size < 2 || head[0] != 0x0a || head[1] == 0)
		return false;
	if (!import_wire_next(&wire, &packet)) {
		/* longer than the head: its beginning must be a field, or that of a long one */
		const unsigned char *at = head + 1, *const end = head + size;

		while (at < end && (*at & 0x80) != 0)
			at++;
		if (end - at < 2 || size < IMPORT_HEAD)
			return false;
		packet.bytes = (struct import_wire){++at, end};
		return import_wire_next(&packet.bytes, &field) || (*at & 7) == IMPORT_WIRE_BYTES;
	}
	while (import_wire_next(&packet.bytes, &field))
		continue;
	return !import_wire_broken(&packet.bytes);
}

const struct import_format report__import_pftrace = {"perfetto", is_pftrace, read_pftrace};
