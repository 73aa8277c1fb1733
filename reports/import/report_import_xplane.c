/*
 * XPlane (*.xplane.pb): what the profilers of JAX, TensorFlow and PyTorch/XLA write.
 *
 * A file is one message, XSpace, of planes (a host, a device); a plane has lines (threads,
 * streams), whose events name their metadata by number. A writer puts the metadata behind the
 * lines, so a plane is read twice: the content is copied to an unnamed file and mapped from there,
 * and pages that have been read are given back. Times are of the session, whose wall clock the
 * plane "Task Environment" has.
 *
 * Threading: the calling thread only.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "reports/import/report_import_internal.h"
#include "reports/import/report_import_wire.h"

#define GIVE_BACK     ((size_t)16 << 20) /* bytes of pages that are kept */
#define METADATA_MOST ((size_t)1 << 20)  /* of events or statistics of a plane */

/* A metadata entry of a plane: of events, or of statistics. */
struct metadata {
	int64_t id;
	struct import_wire message; /* of an event's: its XEventMetadata */
	const char *name;           /* interned; NULL: none */
	uint32_t index;             /* site of events, argument's name of statistics */
	bool indexed, has_stats;
	enum {
		STAT_PLAIN,
		STAT_CORRELATION,
		STAT_GROUP,
		STAT_ALLOCATED
	} says; /* what a statistic says beyond an argument */
};

struct metadata_table {
	struct metadata *items;
	size_t count, capacity;
	struct map map;
};

struct xplane {
	struct import *import;
	struct err *err; /* sticky: after a failure nothing more is read */
	int fd;
	unsigned char *bytes;
	size_t size, kept; /* kept: pages before it are given back */
	struct metadata_table events, stats;
	int64_t planes;
	char text[IMPORT_TEXT_SIZE];
	uint32_t step_name;
	bool broken;
};

/* What the statistics of an event say beyond arguments. */
struct event_facts {
	int64_t correlation; /* IPS_NULL: none */
	double allocated;    /* NaN: none */
};

/* ---- the content ----------------------------------------------------------------------------- */

/* Give back the pages before @at where they are many; they are read again if they are needed. */
static void pass(struct xplane *x, const unsigned char *at)
{
	const size_t here = (size_t)(at - x->bytes);
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), until = here / page * page;

	if (here < x->kept)
		x->kept = until;
	if (here - x->kept < GIVE_BACK || err_stuck(x->err))
		return;
	madvise(x->bytes + x->kept / page * page, until - x->kept / page * page, MADV_DONTNEED);
	x->kept = until;
	report__import_progress_read(x->import, here, x->size, x->err);
}

/* Whether @wire was walked to its end; if not, the file is broken there. */
static bool ends_well(struct xplane *x, const struct import_wire *wire)
{
	if (import_wire_broken(wire) && !x->broken) {
		x->broken = true;
		report__import_broken(x->import, (uint64_t)(wire->at - x->bytes),
				      "a message that is malformed");
	}
	return !import_wire_broken(wire);
}

/* A copy in x->text, cut where it is too long. */
static const char *text_of(struct xplane *x, const struct import_wire *bytes)
{
	const size_t length = min(import_wire_size(bytes), sizeof(x->text) - 1);

	memcpy(x->text, bytes->at, length);
	x->text[length] = '\0';
	return x->text;
}

/* A copy that lives as long as the import; NULL: out of memory. */
static const char *copy_bytes(struct xplane *x, const struct import_wire *bytes)
{
	const char *kept = report__import_store(x->import, text_of(x, bytes));

	if (import_wire_size(bytes) > sizeof(x->text) - 1)
		report__import_note(x->import, REPORT_IMPORT_NOTE_CUT_NAMES);

	if (!kept)
		err_nomem(x->err);
	return kept;
}

/* ---- metadata -------------------------------------------------------------------------------- */

static struct metadata *find_metadata(const struct metadata_table *table, int64_t id)
{
	size_t at;

	MAP_FIND(at, &table->map, (uint64_t)id, table->items[at].id == id);
	return at == MAP_NONE ? NULL : &table->items[at];
}

static void clear_metadata(struct metadata_table *table)
{
	table->count = 0;
	map_clear(&table->map);
}

/* An entry of a map: {key 1, value 2}, whose message has id 1, name 2 and display name 4. */
static void add_metadata(struct xplane *x, struct metadata_table *table, struct import_wire entry,
			 bool of_events)
{
	struct metadata item = {.id = 0}, *added;
	struct import_wire_field field;
	struct import_wire name = {0}, shown = {0}, walk;

	while (import_wire_next(&entry, &field)) {
		if (field.number == 1 && field.type == IMPORT_WIRE_VARINT)
			item.id = import_wire_int(&field);
		else if (field.number == 2 && field.type == IMPORT_WIRE_BYTES)
			item.message = field.bytes;
	}
	walk = item.message;
	while (item.message.at && import_wire_next(&walk, &field)) {
		if (field.type != IMPORT_WIRE_BYTES)
			continue;
		if (field.number == 2)
			name = field.bytes;
		else if (field.number == 4 && of_events)
			shown = field.bytes;
		item.has_stats = item.has_stats || (of_events && field.number == 5);
	}
	if (!ends_well(x, &entry) || !ends_well(x, &walk))
		return;
	if (shown.at && import_wire_size(&shown) > 0)
		name = shown;
	if (table->count == METADATA_MOST || find_metadata(table, item.id))
		return;
	if (name.at)
		item.name = copy_bytes(x, &name);
	added = report__import_append(&table->map, (uint64_t)item.id, &table->items, &table->count,
				      &table->capacity, sizeof(*added), x->err);
	if (added)
		*added = item;
}

/* The site of the events that have @metadata; NULL: they have none, and @id names the site. */
static uint32_t site_of(struct xplane *x, int64_t id, struct metadata *metadata)
{
	uint32_t site = 0;
	char number[40];

	if (metadata && metadata->indexed)
		return metadata->index;
	snprintf(number, sizeof(number), "event %" PRId64, id);
	report__import_name_site(x->import, NULL,
				 metadata && metadata->name ? metadata->name : number, &site,
				 x->err);
	if (metadata && !err_stuck(x->err)) {
		metadata->index = site;
		metadata->indexed = true;
	}
	return site;
}

/* ---- statistics ------------------------------------------------------------------------------ */

/* Number the argument that a statistic becomes, and note what else it says. */
static void index_stat(struct xplane *x, struct metadata *stat)
{
	report__import_arg_name(x->import, stat->name, &stat->index, x->err);
	stat->indexed = !err_stuck(x->err);
	if (strcmp(stat->name, "correlation_id") == 0)
		stat->says = STAT_CORRELATION;
	else if (strcmp(stat->name, "group_id") == 0)
		stat->says = STAT_GROUP;
	else if (strcmp(stat->name, "bytes_allocated") == 0)
		stat->says = STAT_ALLOCATED;
}

static void read_stat(struct xplane *x, struct import_wire stat, struct event_facts *facts)
{
	static const enum import_wire_type types[] = {
		[2] = IMPORT_WIRE_FIXED64, [3] = IMPORT_WIRE_VARINT, [4] = IMPORT_WIRE_VARINT,
		[5] = IMPORT_WIRE_BYTES,   [7] = IMPORT_WIRE_VARINT,
	};
	struct import *import = x->import;
	const struct metadata *text;
	struct import_wire_field field, value = {.number = 0};
	struct metadata *name;
	int64_t id = 0;

	while (import_wire_next(&stat, &field)) {
		if (field.number == 1)
			id = import_wire_int(&field);
		else
			value = field;
	}
	name = find_metadata(&x->stats, id);
	if (!ends_well(x, &stat) || !name || !name->name || value.number == 0)
		return;
	if (!name->indexed)
		index_stat(x, name);
	if (err_stuck(x->err))
		return;
	if (value.number >= ARRAY_LEN(types) || value.type != types[value.number])
		return;
	switch (value.number) {
	case 2:
		report__import_arg_real(import, name->index, import_wire_double(&value));
		break;
	case 3: /* unsigned, signed */
	case 4:
		report__import_arg_int(import, name->index, import_wire_int(&value));
		if (name->says == STAT_CORRELATION)
			facts->correlation = import_wire_int(&value);
		else if (name->says == STAT_GROUP)
			report__import_arg_int(import, x->step_name, import_wire_int(&value));
		else if (name->says == STAT_ALLOCATED)
			facts->allocated = (double)import_wire_int(&value);
		break;
	case 5:
		report__import_arg_text(import, name->index, text_of(x, &value.bytes));
		break;
	case 7: /* the name of a statistic */
		text = find_metadata(&x->stats, import_wire_int(&value));
		report__import_arg_text(import, name->index, !text ? NULL : text->name);
		break;
	default:
		break;
	}
}

/* The statistics of a message in its fields @number. */
static void read_stats(struct xplane *x, struct import_wire message, uint32_t number,
		       struct event_facts *facts)
{
	struct import_wire_field field;

	while (!err_stuck(x->err) && import_wire_next(&message, &field))
		if (field.number == number && field.type == IMPORT_WIRE_BYTES)
			read_stat(x, field.bytes, facts);
	ends_well(x, &message);
}

/* ---- lines ----------------------------------------------------------------------------------- */

struct line {
	uint32_t track;
	int64_t plane, timestamp_ns;
	int64_t stream;     /* of a GPU; IPS_NULL: no stream */
	const char *device; /* interned; NULL: no stream, no operations */
	enum {
		LINE_PLAIN,
		LINE_OPERATIONS, /* of a TPU: "XLA Ops" */
		LINE_MODULES     /* of a TPU: "XLA Modules" */
	} kind;
};

/* Whether an operation of XLA encloses others. */
static bool encloses(const char *name)
{
	return str_starts_with(name, "while") || str_starts_with(name, "conditional") ||
	       str_starts_with(name, "call");
}

/* What a span is beside a span: a kernel, or the call that launched it; @correlation IPS_NULL:
 * nothing links them. On a TPU the operations are the kernels. */
static void put_row(struct xplane *x, const struct line *line, int64_t correlation, uint32_t site)
{
	const int64_t key = correlation == IPS_NULL ? IPS_NULL : import_launch_key(1, correlation);
	const struct ips_range range = {.kind = "device"};

	if (line->kind == LINE_MODULES) {
		report__import_row(x->import, IPS_TABLE_range, &range, sizeof(range));
	} else if (line->kind == LINE_OPERATIONS
			   ? !encloses(x->import->sites.items[site].site->name)
			   : line->device && key != IPS_NULL) {
		const struct ips_kernel kernel = report__import_kernel(
			line->device, line->stream, x->import->sites.items[site].kernel_kind, key);

		report__import_row(x->import, IPS_TABLE_kernel, &kernel, sizeof(kernel));
	} else if (!line->device && key != IPS_NULL) {
		const struct ips_call call = {.launch_key = key};

		report__import_row(x->import, IPS_TABLE_call, &call, sizeof(call));
	}
}

static void read_line_event(struct xplane *x, const struct line *line, struct import_wire event)
{
	struct event_facts facts = {IPS_NULL, (double)NAN};
	struct import *import = x->import;
	int64_t id = 0, offset_ps = 0, dur_ps = 0, start_ps, end_ps, start_ns;
	struct import_wire walk = event;
	struct import_wire_field field;
	struct metadata *metadata;
	bool aggregate = false, has_stats = false;
	uint32_t site;

	while (import_wire_next(&walk, &field)) {
		has_stats = has_stats || field.number == 4;
		if (!has_stats)
			event.at = walk.at; /* its statistics are read from here on */
		if (field.type != IMPORT_WIRE_VARINT)
			continue;
		if (field.number == 1)
			id = import_wire_int(&field);
		else if (field.number == 2)
			offset_ps = import_wire_int(&field);
		else if (field.number == 3)
			dur_ps = import_wire_int(&field);
		else if (field.number == 5)
			aggregate = true;
	}
	if (!ends_well(x, &walk))
		return;
	import->counts->events++;
	if (aggregate) {
		report__import_left_what(import, "sums of events, without a time", 1);
		return;
	}
	if (dur_ps < 0) {
		report__import_left(import, REPORT_IMPORT_LEFT_NEGATIVE);
		return;
	}
	if (line->track == IMPORT_NO_ID) {
		report__import_left(import, REPORT_IMPORT_LEFT_TOO_MANY);
		return;
	}
	if (__builtin_mul_overflow(line->timestamp_ns, 1000, &start_ps) ||
	    __builtin_add_overflow(start_ps, offset_ps, &start_ps) ||
	    __builtin_add_overflow(start_ps, dur_ps, &end_ps) || start_ps < 0) {
		report__import_left(import, REPORT_IMPORT_LEFT_TIME_RANGE);
		return;
	}
	metadata = find_metadata(&x->events, id);
	site = site_of(x, id, metadata);
	if (metadata && metadata->has_stats)
		read_stats(x, metadata->message, 5, &facts);
	read_stats(x, event, 4, &facts);
	if (err_stuck(x->err))
		return;
	start_ns = start_ps / 1000;
	if (dur_ps > 0) {
		put_row(x, line, facts.correlation > 0 ? facts.correlation : IPS_NULL, site);
		report__import_span(import, line->track, site, start_ns, end_ps / 1000 - start_ns,
				    x->err);
	} else if (isnan(facts.allocated)) {
		report__import_instant(import, line->track, site, start_ns, x->err);
	} else {
		import->args.used = 0;
		if (report__import_name_site(import, "memory", "bytes_allocated", &site, x->err) ==
		    ST_OK)
			report__import_sample(import, line->track, site, start_ns, facts.allocated,
					      x->err);
	}
}

static void read_line(struct xplane *x, const char *plane, int64_t number,
		      struct import_wire message)
{
	struct line line = {IMPORT_NO_ID, number, 0, IPS_NULL, NULL, LINE_PLAIN};
	struct import_track track = {.kind = IMPORT_THREAD, .process_sort = number};
	struct import_wire walk = message;
	struct import_wire_field field;
	const char *name = NULL, *shown = NULL, *tpu = NULL;
	char process[32], thread[32];
	int64_t id = 0, sort = 0, gpu, stream;
	bool any = false;

	while (import_wire_next(&walk, &field)) {
		const char **text = field.number == 2 ? &name : field.number == 11 ? &shown : NULL;

		if (field.type == IMPORT_WIRE_BYTES && text) {
			*text = copy_bytes(x, &field.bytes);
		} else if (field.number == 4) {
			any = true;
		} else if (field.number == 1) {
			id = import_wire_int(&field);
		} else if (field.number == 3) {
			line.timestamp_ns = import_wire_int(&field);
		} else if (field.number == 10) {
			sort = import_wire_int(&field);
		}
		pass(x, walk.at);
	}
	if (!any) {
		ends_well(x, &walk);
		return;
	}
	snprintf(process, sizeof(process), "%" PRId64, number);
	snprintf(thread, sizeof(thread), "%" PRId64, id);
	name = shown && shown[0] != '\0' ? shown : name;
	/* "Stream #16(Kernel)" of the plane of a GPU: 16. */
	if (strstr(plane, "/device:GPU") && name && sscanf(name, "Stream #%" SCNd64, &stream) == 1)
		line.stream = stream;
	if (line.stream != IPS_NULL && sscanf(plane, "/device:GPU:%" SCNd64, &gpu) == 1) {
		line.device = report__import_gpu(x->import, gpu);
		if (!line.device)
			err_nomem(x->err);
	}
	if (sscanf(plane, "/device:TPU:%" SCNd64, &gpu) == 1 && name) {
		tpu = report__import_accelerator(x->import, "TPU", gpu);
		if (!tpu)
			err_nomem(x->err);
		line.kind = strcmp(name, "XLA Ops") == 0       ? LINE_OPERATIONS
			    : strcmp(name, "XLA Modules") == 0 ? LINE_MODULES
							       : LINE_PLAIN;
	}
	track.process = process;
	track.thread = thread;
	track.name = name && name[0] != '\0' ? name : NULL;
	track.process_name = plane;
	track.sort = sort != 0 ? sort : id;
	track.device = line.device;
	if (!err_stuck(x->err) &&
	    report__import_track(x->import, &track, &line.track, x->err) == ST_OK && tpu)
		report__import_track_shows(x->import, line.track, tpu, x->err);
	if (line.kind == LINE_OPERATIONS)
		line.device = tpu;
	walk = message;
	while (!err_stuck(x->err) && !x->broken && import_wire_next(&walk, &field)) {
		if (field.number == 4 && field.type == IMPORT_WIRE_BYTES)
			read_line_event(x, &line, field.bytes);
		pass(x, walk.at);
	}
	ends_well(x, &walk);
}

/* ---- planes ---------------------------------------------------------------------------------- */

/* The wall clock of the session's start, of the plane "Task Environment". */
static void read_session_start(struct xplane *x, struct import_wire stat)
{
	struct import_wire_field field;
	const struct metadata *name = NULL;
	int64_t value = IPS_NULL;

	while (import_wire_next(&stat, &field)) {
		if (field.number == 1)
			name = find_metadata(&x->stats, import_wire_int(&field));
		else if (field.number == 3 || field.number == 4)
			value = import_wire_int(&field);
	}
	if (name && name->name && strcmp(name->name, "profile_start_time") == 0 && value > 0)
		x->import->epoch_ns = value;
}

static void read_plane(struct xplane *x, struct import_wire message)
{
	const int64_t number = x->planes++;
	const char *name = "";
	struct import_wire walk = message;
	struct import_wire_field field;

	clear_metadata(&x->events);
	clear_metadata(&x->stats);
	while (!err_stuck(x->err) && import_wire_next(&walk, &field)) {
		if (field.type != IMPORT_WIRE_BYTES)
			continue;
		if (field.number == 2) {
			name = copy_bytes(x, &field.bytes);
		} else if (field.number == 4) {
			add_metadata(x, &x->events, field.bytes, true);
		} else if (field.number == 5) {
			add_metadata(x, &x->stats, field.bytes, false);
		}
		pass(x, walk.at);
	}
	ends_well(x, &walk);
	/* Of a broken plane what comes before the break is read. */
	message.end = import_wire_broken(&walk) ? walk.at : message.end;
	x->broken = false;
	while (!err_stuck(x->err) && !x->broken && import_wire_next(&message, &field)) {
		if (field.type != IMPORT_WIRE_BYTES)
			continue;
		if (field.number == 3)
			read_line(x, name, number, field.bytes);
		else if (field.number == 6 && strcmp(name, "Task Environment") == 0)
			read_session_start(x, field.bytes);
	}
	x->broken = x->broken || x->import->counts->broken;
}

static enum status read_xplane(struct import *import, struct err *err)
{
	struct err own;
	struct xplane x = {.import = import, .err = err_start(err, &own), .fd = -1};
	struct import_wire space = {0};
	struct import_wire_field field;

	err = x.err;
	/* What is mapped must not be truncated by somebody else. */
	if (report__import_copy(import, NULL, &x.fd, &x.size, err) == ST_OK && x.size > 0)
		x.bytes = mmap(NULL, x.size, PROT_READ, MAP_PRIVATE, x.fd, 0);
	if (x.bytes == MAP_FAILED) {
		x.bytes = NULL;
		err_set(err, ST_NOMEM, "%s: cannot map: %s", import->input.name, strerror(errno));
	}
	if (!err_stuck(err))
		report__import_arg_name(import, "step", &x.step_name, err);
	if (x.bytes)
		space = (struct import_wire){x.bytes, x.bytes + x.size};
	while (!err_stuck(err) && !x.broken && import_wire_next(&space, &field)) {
		if (field.number == 1 && field.type == IMPORT_WIRE_BYTES)
			read_plane(&x, field.bytes);
		else if (field.number == 4) /* names of hosts */
			report__import_note(import, REPORT_IMPORT_NOTE_PRIVATE);
	}
	ends_well(&x, &space);
	import->counts->bytes = x.size;
	if (!err_stuck(err) && import->input.cut && !import->counts->broken)
		report__import_broken(import, x.size, "the compressed data are damaged");
	if (!err_stuck(err) && import->counts->broken && import->counts->events == 0)
		err_set(err, ST_FORMAT, "%s: byte %llu: %s", import->input.name,
			(unsigned long long)import->counts->broken_at, import->counts->why);
	mem_free(x.events.items);
	mem_free(x.stats.items);
	map_fini(&x.events.map);
	map_fini(&x.stats.map);
	if (x.bytes)
		munmap(x.bytes, x.size);
	if (x.fd >= 0)
		close(x.fd);
	return err->status;
}

/* The first plane: an id or none, and a name of letters, "/host:CPU", "Task Environment". */
static bool is_xplane(const unsigned char *head, size_t size)
{
	struct import_wire wire = {head, head + size};
	uint64_t length = 0;
	unsigned shift = 0;
	bool named = false;

	if (size < 4 || head[0] != 0x0a)
		return false;
	for (wire.at++; wire.at < wire.end && shift < 63; shift += 7) {
		length |= (uint64_t)(*wire.at & 0x7f) << shift;
		if ((*wire.at++ & 0x80) == 0)
			break;
	}
	if (length < import_wire_size(&wire))
		wire.end = wire.at + length;
	if (wire.at < wire.end && *wire.at == 0x08) { /* the id */
		while (++wire.at < wire.end && (*wire.at & 0x80) != 0)
			continue;
		wire.at++;
	}
	if (wire.end - wire.at < 3 || wire.at[0] != 0x12 || wire.at[1] == 0 || wire.at[1] > 127)
		return false;
	length = min((uint64_t)wire.at[1], (uint64_t)(wire.end - wire.at - 2));
	for (wire.at += 2; length > 0; length--, wire.at++) {
		if (*wire.at < ' ' || *wire.at > '~')
			return false;
		named = true;
	}
	return named;
}

const struct import_format report__import_xplane = {"xplane", is_xplane, read_xplane};
