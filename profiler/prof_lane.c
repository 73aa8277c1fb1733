/*
 * A track on the writer's side: from ring slots to rows of the database.
 *
 * Draining decodes events, maintains the stack of open spans, and buffers rows in the lane's own
 * arrays. Until a span has an id, its index in the array identifies it (struct prof_ref).
 * Flushing writes the arrays: spans get their ids in order of begin, so the rows of one track are
 * contiguous and one zone row describes them; references into the arrays become ids.
 *
 * Nesting: on one track spans are in order of start, and a span ends no later than its parent.
 * Spans with given times (ips_span_at) are pushed on the same stack, with their end known; those
 * that would violate the order are dropped and counted. If such spans and begun spans share a
 * track, a begin or end is moved to the end of the given spans before it.
 *
 * On the writer's thread.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"
#include "profiler/prof_internal.h"

#define PUSH(writer, list)                                                                         \
	append(writer, &(list).items, &(list).capacity, &(list).count, sizeof(*(list).items))

/* Append one zeroed element; false if out of memory. Inlined, since the size of an element is known
 * then: a call to clear it took longer than to fill it. */
static inline __attribute__((always_inline)) bool
append(struct prof_writer *writer, void *items, size_t *capacity, size_t *count, size_t size)
{
	unsigned char *base;

	if (*count == *capacity && mem_grow(items, capacity, *count + 1, size) != 0) {
		prof__writer_nomem(writer);
		return false;
	}
	memcpy(&base, items, sizeof(base));
	memset(base + *count * size, 0, size);
	++*count;
	return true;
}

/* ---- spans ----------------------------------------------------------------------------------- */

static struct prof_open_span *top_span(struct prof_lane *lane)
{
	return lane->stack.count == 0 ? NULL : &lane->stack.items[lane->stack.count - 1];
}

/* Convert @ticks, but never to a time before *@last: the clock's slope may have changed since. */
static int64_t time_of(const struct prof_writer *writer, uint64_t ticks, int64_t *last)
{
	int64_t ns = prof_clock_ns(&writer->clock, ticks);

	if (ns < *last)
		ns = *last;
	*last = ns;
	return ns;
}

/* Pop the spans with given times from the top of the stack, down to a begun one. Return @ns, moved
 * past their ends. */
static int64_t pop_given(struct prof_lane *lane, int64_t ns)
{
	for (struct prof_open_span *top = top_span(lane); top && top->end_ns != INT64_MAX;
	     top = top_span(lane)) {
		if (top->end_ns > ns)
			ns = top->end_ns;
		lane->stack.count--;
	}
	lane->last_ns = max(ns, lane->last_ns);
	return ns;
}

static void push_span(struct prof_writer *writer, struct prof_lane *lane, uint32_t site,
		      int64_t start_ns, int64_t end_ns)
{
	const struct prof_open_span *above = top_span(lane);
	const struct prof_ref parent = !above ? (struct prof_ref){0} : above->span;
	const int32_t depth = !above ? -1 : above->depth;
	struct prof_open_span *top;
	struct prof_span_row *row;

	if (!PUSH(writer, lane->stack))
		return;
	top = top_span(lane);
	top->start_ns = start_ns;
	top->end_ns = end_ns;
	top->site = site;
	top->depth = site == 0 ? depth : depth + 1;
	top->span = parent;
	if (site != 0) {
		if (!PUSH(writer, lane->spans))
			return;
		row = &lane->spans.items[lane->spans.count - 1];
		row->start_ns = start_ns;
		row->dur_ns = IPS_NULL;
		row->parent = parent;
		row->context = lane->context;
		row->site = site;
		row->depth = top->depth;
		top->span = prof_ref_here(lane->spans.count - 1);
	}
	lane->target = top->span;
}

/* End the span @top: set the duration in its row or update the row, and add it to the levels. */
static void end_span(struct prof_writer *writer, struct prof_lane *lane,
		     const struct prof_open_span *top, int64_t dur_ns)
{
	int level = prof_level_enter(dur_ns);

	if (top->span.value < 0) {
		lane->spans.items[-1 - top->span.value].dur_ns = dur_ns;
		prof_levels_add(&lane->levels, (uint32_t)top->depth, top->start_ns, dur_ns,
				top->site, 0);
	} else {
		prof_levels_add(&lane->late, (uint32_t)top->depth, top->start_ns, dur_ns, top->site,
				top->finest);
		if (!PUSH(writer, lane->ends))
			return;
		lane->ends.items[lane->ends.count - 1] =
			(struct prof_span_end){top->span.value, dur_ns};
	}
	if (level > 0) {
		if (!PUSH(writer, lane->longs))
			return;
		lane->longs.items[lane->longs.count - 1] =
			(struct prof_long_span){top->span, top->start_ns, level - 1};
	}
}

/* ---- events ---------------------------------------------------------------------------------- */

static void on_begin(struct prof_writer *writer, struct prof_lane *lane,
		     const struct ips_slot *slot)
{
	int64_t ns = pop_given(lane, time_of(writer, slot->ticks, &lane->last_ns));

	push_span(writer, lane, slot->site ? prof__writer_site(writer, slot->site) : 0, ns,
		  INT64_MAX);
}

static void on_end(struct prof_writer *writer, struct prof_lane *lane, const struct ips_slot *slot)
{
	int64_t ns = pop_given(lane, time_of(writer, slot->ticks, &lane->last_ns));
	const struct prof_open_span *top = top_span(lane);

	if (!top)
		return;
	if (top->site != 0)
		end_span(writer, lane, top, ns - top->start_ns);
	lane->stack.count--;
	top = top_span(lane);
	lane->target = !top ? (struct prof_ref){0} : top->span;
}

static void on_at(struct prof_writer *writer, struct prof_lane *lane, const struct ips_slot *slot)
{
	int64_t start_ns = (int64_t)slot->ticks, dur_ns = (int64_t)slot->value;
	const struct prof_open_span *top = top_span(lane);

	while (top && top->end_ns <= start_ns) {
		lane->stack.count--;
		top = top_span(lane);
	}
	if (start_ns < lane->last_ns || (top && start_ns + dur_ns > top->end_ns)) {
		writer->dropped_here++;
		lane->target = (struct prof_ref){0};
		return;
	}
	lane->last_ns = start_ns;
	push_span(writer, lane, prof__writer_site(writer, slot->site), start_ns, start_ns + dur_ns);
	if (prof__writer_ok(writer))
		end_span(writer, lane, top_span(lane), dur_ns);
}

/* Return the time of an instant or a sample, which may be a given one. */
static int64_t event_time(const struct prof_writer *writer, struct prof_lane *lane,
			  const struct ips_slot *slot)
{
	if (slot->kind >> PROF_KIND_BITS != PROF_AT)
		return time_of(writer, slot->ticks, &lane->last_point_ns);
	if ((int64_t)slot->ticks > lane->last_point_ns)
		lane->last_point_ns = (int64_t)slot->ticks;
	return lane->last_point_ns;
}

static void on_instant(struct prof_writer *writer, struct prof_lane *lane,
		       const struct ips_slot *slot)
{
	const uint32_t site = prof__writer_site(writer, slot->site);
	struct prof_instant *instant;

	if (!PUSH(writer, lane->instants))
		return;
	instant = &lane->instants.items[lane->instants.count - 1];
	instant->time_ns = event_time(writer, lane, slot);
	instant->context = lane->context;
	instant->site = site;
	lane->instant = prof_ref_here(lane->instants.count - 1);
}

static void on_counter(struct prof_writer *writer, struct prof_lane *lane,
		       const struct ips_slot *slot)
{
	const uint32_t site = prof__writer_site(writer, slot->site);
	struct prof_sample *sample;

	if (!PUSH(writer, lane->samples))
		return;
	sample = &lane->samples.items[lane->samples.count - 1];
	sample->time_ns = event_time(writer, lane, slot);
	sample->site = site;
	memcpy(&sample->value, &slot->value, sizeof(sample->value));
	prof_counters_add(&lane->counters, site, sample->time_ns, sample->value);
}

static void on_keys(struct prof_writer *writer, struct prof_lane *lane, const struct ips_slot *slot)
{
	struct ips_keys keys;

	writer->keys++;
	memcpy(&keys, slot + 1, sizeof(keys));
	lane->context = prof__writer_context(writer, &keys, false);
}

/* Keep the text of an argument, at most PROF_ARG_TEXT bytes, and return its place. */
static uint64_t copy_text(struct prof_writer *writer, struct prof_lane *lane, const char *text)
{
	const size_t length = strnlen(text, PROF_ARG_TEXT), at = lane->texts.count;

	if (mem_grow(&lane->texts.items, &lane->texts.capacity, at + length + 1, 1) != 0) {
		prof__writer_nomem(writer);
		return PROF_NO_TEXT;
	}
	memcpy(lane->texts.items + at, text, length);
	lane->texts.items[at + length] = 0;
	lane->texts.count += length + 1;
	return at;
}

/* Free the text that an argument of @type has on the heap if it is a long one. */
static void free_text(uint64_t type, uint64_t bits)
{
	if (type == PROF_ARG_LONG_TEXT)
		mem_free((void *)(uintptr_t)bits);
}

static void on_argument(struct prof_writer *writer, struct prof_lane *lane,
			const struct ips_slot *slot)
{
	const bool of_instant = (slot->kind & 0xff) == IPS_EVENT_INSTANT_ARGUMENT;
	const struct prof_ref owner = of_instant ? lane->instant : lane->target;
	const uint64_t type = slot->kind >> PROF_KIND_BITS;
	struct prof_arg *arg;

	writer->dropped_here += owner.value == 0;
	if (owner.value == 0 || !PUSH(writer, lane->args)) {
		free_text(type, slot->value);
		return;
	}
	arg = &lane->args.items[lane->args.count - 1];
	arg->owner = owner;
	arg->of_instant = of_instant;
	memcpy(&arg->name, &slot->site, sizeof(arg->name));
	arg->type = type;
	arg->bits = slot->value;
	if (arg->type == PROF_ARG_TEXT_TYPE)
		arg->bits = slot->value == 0 ? PROF_NO_TEXT
					     : copy_text(writer, lane, (const char *)(slot + 1));
}

static void on_flow(struct prof_writer *writer, struct prof_lane *lane, const struct ips_slot *slot)
{
	struct prof_flow *flow;

	if (slot->kind >> PROF_KIND_BITS == PROF_AT) {
		/* The target is the span open at ns; pop given spans that ended before. */
		const int64_t ns = (int64_t)slot->ticks;
		const struct prof_open_span *top = top_span(lane);

		while (top && top->end_ns < ns) {
			lane->stack.count--;
			top = top_span(lane);
		}
		lane->target = !top ? (struct prof_ref){0} : top->span;
	}
	if (lane->target.value == 0) {
		writer->dropped_here++;
		return;
	}
	if (!PUSH(writer, lane->flows))
		return;
	flow = &lane->flows.items[lane->flows.count - 1];
	flow->span = lane->target;
	flow->site = slot->site;
	flow->id = slot->value;
	flow->out = (slot->kind & 0xff) == IPS_EVENT_FLOW_OUT;
}

static void on_row(struct prof_writer *writer, struct prof_lane *lane, const struct ips_slot *slot)
{
	const unsigned table = (unsigned)(slot->kind >> PROF_KIND_BITS);
	const size_t size = prof_row_types[table].size;
	struct prof_about *about;

	if (lane->target.value == 0) {
		writer->dropped_here++;
		return;
	}
	if (mem_grow(&lane->rows.items, &lane->rows.capacity, lane->rows.count + size + 7, 1) !=
	    0) {
		prof__writer_nomem(writer);
		return;
	}
	if (!PUSH(writer, lane->abouts))
		return;
	about = &lane->abouts.items[lane->abouts.count - 1];
	*about = (struct prof_about){lane->target, lane->rows.count, table};
	memcpy(lane->rows.items + lane->rows.count, slot + 1, size);
	lane->rows.count += (size + 7) & ~(size_t)7;
}

static const struct {
	void (*run)(struct prof_writer *writer, struct prof_lane *lane,
		    const struct ips_slot *slot);
	bool counts; /* as an event that the program recorded */
} event_ops[] = {
	[IPS_EVENT_BEGIN] = {on_begin, true},
	[IPS_EVENT_END] = {on_end, true},
	[IPS_EVENT_INSTANT] = {on_instant, true},
	[IPS_EVENT_COUNTER] = {on_counter, true},
	[IPS_EVENT_KEYS] = {on_keys, false},
	[IPS_EVENT_AT] = {on_at, true},
	[IPS_EVENT_ARGUMENT] = {on_argument, true},
	[IPS_EVENT_FLOW_OUT] = {on_flow, true},
	[IPS_EVENT_FLOW_IN] = {on_flow, true},
	[IPS_EVENT_ROW] = {on_row, true},
	[IPS_EVENT_INSTANT_ARGUMENT] = {on_argument, true},
};
_Static_assert(ARRAY_LEN(event_ops) == IPS_EVENT_INSTANT_ARGUMENT + 1, "event table out of step");

/* ---- draining -------------------------------------------------------------------------------- */

static bool is_argument(const struct ips_slot *slot)
{
	const unsigned event = slot->kind & 0xff;

	return event == IPS_EVENT_ARGUMENT || event == IPS_EVENT_INSTANT_ARGUMENT;
}

static uint64_t slot_count(const struct ips_slot *slot)
{
	unsigned event = slot->kind & 0xff;

	if (event == IPS_EVENT_KEYS)
		return 1 + PROF_KEYS_SLOTS;
	if (is_argument(slot) && slot->kind >> PROF_KIND_BITS == PROF_ARG_TEXT_TYPE)
		return 1 + PROF_TEXT_SLOTS;
	if (event == IPS_EVENT_ROW)
		return 1 + prof_row_slots((unsigned)(slot->kind >> PROF_KIND_BITS));
	return 1;
}

static bool is_full(const struct prof_lane *lane)
{
	return lane->spans.count >= PROF_LANE_ROWS || lane->instants.count >= PROF_LANE_ROWS ||
	       lane->samples.count >= PROF_LANE_ROWS || lane->args.count >= PROF_LANE_ROWS ||
	       lane->flows.count >= PROF_LANE_ROWS || lane->abouts.count >= PROF_LANE_ROWS ||
	       lane->ends.count >= PROF_LANE_ROWS || lane->longs.count >= PROF_LANE_ROWS ||
	       lane->levels.count >= PROF_LANE_ROWS || lane->counters.count >= PROF_LANE_ROWS;
}

/* Decode one event, and return its number of slots. One that goes on at the ring's start is copied
 * to a contiguous array first. */
static uint64_t decode(struct prof_writer *writer, struct prof_lane *lane)
{
	const uint64_t at = lane->tail & lane->ring.mask;
	const struct ips_slot *slot = &lane->ring.slots[at];
	const uint64_t slots = slot_count(slot);
	struct ips_slot joined[1 + PROF_ROW_SLOTS];
	unsigned event = slot->kind & 0xff;

	if (at + slots > lane->ring.mask + 1) {
		for (uint64_t i = 0; i < slots; i++)
			joined[i] = lane->ring.slots[(at + i) & lane->ring.mask];
		slot = joined;
	}
	writer->events += event_ops[event].counts;
	event_ops[event].run(writer, lane, slot);
	return slots;
}

static void publish_consumed(struct prof_lane *lane)
{
	__atomic_store_n(&lane->ring.consumed, lane->tail, __ATOMIC_RELEASE);
}

void prof__lane_drain(struct prof_writer *writer, struct prof_lane *lane, uint64_t end, size_t most)
{
	for (size_t i = 0; i < most && lane->tail != end && prof__writer_ok(writer); i++) {
		lane->tail += decode(writer, lane);
		if (i % 256 == 255)
			publish_consumed(lane);
		if (is_full(lane))
			prof__lane_flush(writer, lane);
	}
	publish_consumed(lane);
}

void prof__lane_discard(struct prof_lane *lane)
{
	uint64_t published = __atomic_load_n(&lane->ring.published, __ATOMIC_ACQUIRE);

	while (lane->tail != published) {
		const struct ips_slot *slot = &lane->ring.slots[lane->tail & lane->ring.mask];

		if (is_argument(slot))
			free_text(slot->kind >> PROF_KIND_BITS, slot->value);
		lane->tail += slot_count(slot);
	}
	publish_consumed(lane);
}

/* ---- spans ----------------------------------------------------------------------------------- */

static void flush_track(struct prof_writer *writer, struct prof_lane *lane)
{
	struct prof_cell *cells;

	if (lane->known)
		return;
	cells = prof__writer_cells(writer, &writer->tracks);
	prof_cell_int(&cells[0], lane->track_id);
	prof_cell_int(&cells[1], writer->rank);
	prof_cell_int(&cells[2], lane->clock);
	prof_cell_int(&cells[3], lane->clock == IPS_HOST ? lane->pid : IPS_NULL);
	prof_cell_int(&cells[4], lane->clock == IPS_HOST ? lane->tid : IPS_NULL);
	prof_cell_int(&cells[5], lane->ipu);
	prof_cell_text(&cells[6], lane->track);
	prof_cell_text(&cells[7], lane->name);
	prof_cell_text(&cells[8], lane->parent);
	lane->known = prof__writer_ok(writer);
}

static void insert_spans(struct prof_writer *writer, struct prof_lane *lane, int64_t base)
{
	const int64_t count = (int64_t)lane->spans.count;

	for (int64_t i = 0; i < count; i++) {
		const struct prof_span_row *row = &lane->spans.items[i];
		const int64_t back = prof_span_back(row, base + i, base);
		struct prof_cell *cells = prof__writer_cells(writer, &writer->spans);

		prof_cell_int(&cells[0], lane->track_id);
		prof_cell_int(&cells[1], row->site);
		prof_cell_int(&cells[2], row->start_ns);
		prof_cell_int(&cells[3], row->dur_ns);
		prof_cell_int(&cells[4], row->context == 0 ? IPS_NULL : row->context);
		prof_cell_int(&cells[5], back == 0 ? IPS_NULL : back);
		prof_cell_int(&cells[6], row->depth);
	}
	prof__writer_flush(writer, &writer->spans);
	/* SQLite assigns the ids; the ids computed for parents and arguments rely on their
	 * order. */
	if (prof__writer_ok(writer) && !writer->bulk &&
	    sqlite3_last_insert_rowid(writer->db) != base + count - 1)
		err_set(&writer->err, ST_FAILED, "another program has written to the database");
}

static void insert_zone(struct prof_writer *writer, const struct prof_lane *lane, int kind,
			int64_t first_ns, int64_t last_ns, int64_t first_row, int64_t last_row,
			int64_t finest)
{
	struct prof_cell *cells = prof__writer_cells(writer, &writer->zones);

	prof_cell_int(&cells[0], kind);
	prof_cell_int(&cells[1], lane->track_id);
	prof_cell_int(&cells[2], first_ns);
	prof_cell_int(&cells[3], first_row);
	prof_cell_int(&cells[4], last_ns);
	prof_cell_int(&cells[5], last_row);
	prof_cell_int(&cells[6], finest);
}

/* Insert the increments of @levels, or sort them to be loaded. */
static void put_levels(struct prof_writer *writer, const struct prof_lane *lane,
		       struct prof_levels *levels, int finest)
{
	if (prof__writer_ok(writer) && writer->level_sort)
		prof_level_sort_put(writer->level_sort, lane->track_id, levels, finest,
				    &writer->err);
	else if (prof__writer_ok(writer))
		prof__insert_levels(&writer->levels, lane->track_id, levels, finest, &writer->err);
}

/* Write the spans, their zone, and their increments of the levels. */
static void flush_spans(struct prof_writer *writer, struct prof_lane *lane, int64_t base)
{
	size_t count = lane->spans.count;
	struct prof_cell *cells;
	int64_t first_ns, last_ns;
	int finest;

	if (count == 0)
		return;
	insert_spans(writer, lane, base);
	if (!prof__writer_ok(writer))
		return;
	writer->last_span = base + (int64_t)count - 1;
	first_ns = lane->spans.items[0].start_ns;
	last_ns = lane->spans.items[count - 1].start_ns;
	prof_levels_flush(&lane->levels);
	finest = prof_levels_finest(&lane->levels, last_ns - first_ns);
	/* References into the buffer become ids; open spans keep the finest level of their zone. */
	for (size_t i = 0; i < lane->stack.count; i++) {
		struct prof_open_span *open = &lane->stack.items[i];

		if (open->span.value < 0)
			open->finest = finest;
		open->span = (struct prof_ref){prof_span_id(open->span, base)};
	}
	lane->target = (struct prof_ref){prof_span_id(lane->target, base)};
	insert_zone(writer, lane, PROF_ZONE_SPANS, first_ns, last_ns, base, writer->last_span,
		    finest);
	if (finest > 0) {
		cells = prof__writer_cells(writer, &writer->sparse_zones);
		prof_cell_int(&cells[0], lane->track_id);
		prof_cell_int(&cells[1], finest);
		prof_cell_int(&cells[2], first_ns);
		prof_cell_int(&cells[3], base);
		prof_cell_int(&cells[4], last_ns);
		prof_cell_int(&cells[5], writer->last_span);
	}
	put_levels(writer, lane, &lane->levels, finest);
}

/* ---- arguments and flows --------------------------------------------------------------------- */

static void set_value(struct prof_cell *cell, const struct prof_lane *lane,
		      const struct prof_arg *arg)
{
	double real;

	memcpy(&real, &arg->bits, sizeof(real));
	if (arg->type == PROF_ARG_INT)
		prof_cell_int(cell, (int64_t)arg->bits);
	else if (arg->type == PROF_ARG_REAL)
		prof_cell_real(cell, real);
	else if (arg->type == PROF_ARG_LONG_TEXT)
		prof_cell_text(cell, (const char *)(uintptr_t)arg->bits);
	else
		prof_cell_text(cell,
			       arg->bits == PROF_NO_TEXT ? NULL : lane->texts.items + arg->bits);
}

static int compare_args(const void *a, const void *b)
{
	const struct prof_arg *x = a, *y = b;

	return SORTED_BY(x, y, of_instant, owner.value, name_id, number);
}

static int64_t name_id(struct prof_writer *writer, const char *name)
{
	struct prof_name *known = &writer->names[(uintptr_t)name / 8 % PROF_NAMES];

	if (known->name != name) {
		known->id = prof__writer_text(writer, name);
		known->name = prof__writer_ok(writer) ? name : NULL;
	}
	return known->id;
}

/* Set the ids of the arguments and of what they are of, and sort them by these: the order in which
 * their tables are loaded. @first: the id of the lane's first buffered instant. */
static void sort_args(struct prof_writer *writer, struct prof_lane *lane, int64_t base,
		      int64_t first)
{
	const struct prof_arg *last[2] = {NULL, NULL}; /* of a span, of an instant */
	bool sorted = true;

	for (size_t i = 0; i < lane->args.count && prof__writer_ok(writer); i++) {
		struct prof_arg *arg = &lane->args.items[i];

		arg->name_id = name_id(writer, arg->name);
		arg->owner.value = prof_span_id(arg->owner, arg->of_instant ? first : base);
		arg->number = (uint32_t)i;
		sorted = sorted && (!last[arg->of_instant] || SORTED_BY(last[arg->of_instant], arg,
									owner.value, name_id) < 0);
		last[arg->of_instant] = arg;
	}
	if (prof__writer_ok(writer) && !sorted)
		qsort(lane->args.items, lane->args.count, sizeof(*lane->args.items), compare_args);
}

static void flush_args(struct prof_writer *writer, struct prof_lane *lane, int64_t base,
		       int64_t first)
{
	sort_args(writer, lane, base, first);
	for (size_t i = 0; i < lane->args.count && prof__writer_ok(writer); i++) {
		const struct prof_arg *arg = &lane->args.items[i];
		struct prof_cell *cells;

		/* Of those given twice the last one stays. */
		if (i + 1 < lane->args.count && arg[1].of_instant == arg->of_instant &&
		    arg[1].owner.value == arg->owner.value && arg[1].name_id == arg->name_id)
			continue;
		cells = prof__writer_cells(writer,
					   arg->of_instant ? &writer->instant_args : &writer->args);
		prof_cell_int(&cells[0], arg->owner.value);
		prof_cell_int(&cells[1], arg->name_id);
		set_value(&cells[2], lane, arg);
	}
	/* The rows point to texts that the lane frees after this flush. */
	prof__writer_flush(writer, &writer->args);
	prof__writer_flush(writer, &writer->instant_args);
}

/* Free the long texts of arguments that are buffered. */
static void free_texts(struct prof_lane *lane)
{
	for (size_t i = 0; i < lane->args.count; i++)
		free_text(lane->args.items[i].type, lane->args.items[i].bits);
}

struct flow_key {
	uint64_t site, id;
};

/* The first side of a flow is stored under its key as its span id, negated for the out side. */
static void flush_flow(struct prof_writer *writer, const struct prof_flow *flow, int64_t span_id)
{
	const struct flow_key key = {prof_site_id(flow->site), flow->id};
	int64_t side = flow->out ? -span_id : span_id, other, name;
	struct prof_cell *cells;
	bool found = prof_recent_get(&writer->open_flows, &key, &other);

	if (!found || (other < 0) == flow->out) {
		writer->one_sided[flow->out]++;
		if (!prof_recent_put(&writer->open_flows, &key, side))
			prof__writer_nomem(writer);
		return;
	}
	writer->one_sided[!flow->out]--;
	prof_recent_remove(&writer->open_flows, &key);
	name = prof__writer_text(writer, flow->site->name);
	cells = prof__writer_cells(writer, &writer->flows);
	prof_cell_int(&cells[0], flow->out ? span_id : -other);
	prof_cell_int(&cells[1], flow->out ? other : span_id);
	prof_cell_int(&cells[2], name);
}

/* ---- points in time -------------------------------------------------------------------------- */

static void flush_instants(struct prof_writer *writer, struct prof_lane *lane)
{
	int64_t first = writer->last_row[PROF_ZONE_INSTANTS] + 1;
	size_t count = lane->instants.count;

	if (count == 0)
		return;
	for (size_t i = 0; i < count; i++) {
		const struct prof_instant *instant = &lane->instants.items[i];
		struct prof_cell *cells = prof__writer_cells(writer, &writer->instants);

		prof_cell_int(&cells[0], lane->track_id);
		prof_cell_int(&cells[1], instant->site);
		prof_cell_int(&cells[2], instant->time_ns);
		prof_cell_int(&cells[3], instant->context == 0 ? IPS_NULL : instant->context);
	}
	lane->instant = (struct prof_ref){prof_span_id(lane->instant, first)};
	writer->last_row[PROF_ZONE_INSTANTS] += (int64_t)count;
	insert_zone(writer, lane, PROF_ZONE_INSTANTS, lane->instants.items[0].time_ns,
		    lane->instants.items[count - 1].time_ns, first,
		    writer->last_row[PROF_ZONE_INSTANTS], IPS_NULL);
}

static void flush_samples(struct prof_writer *writer, struct prof_lane *lane)
{
	int64_t first = writer->last_row[PROF_ZONE_COUNTERS] + 1;
	size_t count = lane->samples.count;

	if (count == 0)
		return;
	for (size_t i = 0; i < count; i++) {
		const struct prof_sample *sample = &lane->samples.items[i];
		struct prof_cell *cells = prof__writer_cells(writer, &writer->samples);

		prof_cell_int(&cells[0], lane->track_id);
		prof_cell_int(&cells[1], sample->site);
		prof_cell_int(&cells[2], sample->time_ns);
		prof_cell_real(&cells[3], sample->value);
	}
	writer->last_row[PROF_ZONE_COUNTERS] += (int64_t)count;
	insert_zone(writer, lane, PROF_ZONE_COUNTERS, lane->samples.items[0].time_ns,
		    lane->samples.items[count - 1].time_ns, first,
		    writer->last_row[PROF_ZONE_COUNTERS], IPS_NULL);
}

/* ---- flushing a lane ------------------------------------------------------------------------- */

#define FREE_LIST(list) (mem_free((list).items), memset(&(list), 0, sizeof(list)))

static void free_rows(struct prof_lane *lane)
{
	FREE_LIST(lane->spans);
	FREE_LIST(lane->ends);
	FREE_LIST(lane->longs);
	FREE_LIST(lane->args);
	FREE_LIST(lane->texts);
	FREE_LIST(lane->flows);
	FREE_LIST(lane->abouts);
	FREE_LIST(lane->rows);
	FREE_LIST(lane->instants);
	FREE_LIST(lane->samples);
}

void prof__lane_free_buffers(struct prof_lane *lane)
{
	free_texts(lane);
	free_rows(lane);
	FREE_LIST(lane->stack);
	prof_levels_fini(&lane->levels);
	prof_levels_fini(&lane->late);
	prof_counters_fini(&lane->counters);
}

int64_t prof__lane_increments(const struct prof_lane *lane)
{
	return (int64_t)(lane->levels.count + lane->late.count + lane->counters.count);
}

size_t prof__lane_depths(const struct prof_lane *lane)
{
	return lane->levels.depth_capacity + lane->late.depth_capacity;
}

void prof__lane_free_empty(struct prof_lane *lane, bool depths)
{
	if (prof__lane_waits(lane) || prof__lane_increments(lane) > 0)
		return;
	free_rows(lane);
	prof_levels_free_empty(&lane->levels, depths);
	prof_levels_free_empty(&lane->late, depths);
	prof_counters_free_empty(&lane->counters);
}

bool prof__lane_waits(const struct prof_lane *lane)
{
	return !lane->known || lane->spans.count > 0 || lane->ends.count > 0 ||
	       lane->longs.count > 0 || lane->args.count > 0 || lane->flows.count > 0 ||
	       lane->abouts.count > 0 || lane->instants.count > 0 || lane->samples.count > 0 ||
	       lane->dropped_told != __atomic_load_n(&lane->ring.dropped, __ATOMIC_RELAXED);
}

void prof__lane_flush(struct prof_writer *writer, struct prof_lane *lane)
{
	int64_t base = writer->last_span + 1;

	prof__writer_begin(writer);
	if (!prof__writer_ok(writer))
		return; /* the lane keeps its rows, and frees their texts with itself */
	flush_track(writer, lane);
	flush_spans(writer, lane, base);
	for (size_t i = 0; i < lane->ends.count && prof__writer_ok(writer); i++) {
		sqlite3_bind_int64(writer->end_span, 1, lane->ends.items[i].dur_ns);
		sqlite3_bind_int64(writer->end_span, 2, lane->ends.items[i].span_id);
		prof_sql_execute(writer->end_span, &writer->err, "end a span");
	}
	for (size_t i = 0; i < lane->longs.count; i++) {
		const struct prof_long_span *span = &lane->longs.items[i];
		struct prof_cell *cells = prof__writer_cells(writer, &writer->longs);

		prof_cell_int(&cells[0], lane->track_id);
		prof_cell_int(&cells[1], span->level);
		prof_cell_int(&cells[2], span->start_ns);
		prof_cell_int(&cells[3], prof_span_id(span->span, base));
	}
	flush_args(writer, lane, base, writer->last_row[PROF_ZONE_INSTANTS] + 1);
	for (size_t i = 0; i < lane->flows.count && prof__writer_ok(writer); i++)
		flush_flow(writer, &lane->flows.items[i],
			   prof_span_id(lane->flows.items[i].span, base));
	for (size_t i = 0; i < lane->abouts.count && prof__writer_ok(writer); i++)
		prof__writer_row(writer, lane->abouts.items[i].table,
				 lane->rows.items + lane->abouts.items[i].at,
				 prof_span_id(lane->abouts.items[i].span, base));
	if (lane->abouts.count > 0)
		prof__writer_flush_rows(writer);
	flush_instants(writer, lane);
	flush_samples(writer, lane);
	prof_levels_flush(&lane->late);
	put_levels(writer, lane, &lane->late, 0);
	if (prof__writer_ok(writer))
		prof__insert_counters(&writer->counter_levels, lane->track_id, &lane->counters,
				      &writer->err);

	free_texts(lane);
	lane->spans.count = 0;
	lane->ends.count = 0;
	lane->longs.count = 0;
	lane->args.count = 0;
	lane->texts.count = 0;
	lane->flows.count = 0;
	lane->abouts.count = 0;
	lane->rows.count = 0;
	lane->instants.count = 0;
	lane->samples.count = 0;
}
