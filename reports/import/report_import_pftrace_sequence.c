/*
 * What the packets of a Perfetto trace refer to: interned names and clocks of their sequences, and
 * names of processes. See report_import_pftrace.h.
 *
 * Threading: the calling thread only.
 */
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "reports/import/report_import_pftrace.h"

#define SEQUENCES_MOST ((size_t)65536)
#define INTERNED_MOST  ((size_t)1 << 20) /* names of a sequence */

/* ---- values ---------------------------------------------------------------------------------- */

const char *report__pftrace_text(struct pftrace *pf, const struct import_wire *bytes)
{
	const size_t length = min(import_wire_size(bytes), sizeof(pf->text) - 1);

	memcpy(pf->text, bytes->at, length);
	pf->text[length] = '\0';
	return pf->text;
}

const char *report__pftrace_store(struct pftrace *pf, const struct import_wire *bytes)
{
	const char *kept = report__import_store(pf->import, report__pftrace_text(pf, bytes));

	if (!kept)
		err_nomem(pf->err);
	return kept;
}

size_t report__pftrace_numbers(const struct import_wire_field *field, bool fixed, uint64_t *out,
			       size_t most, size_t count)
{
	struct import_wire packed = field->bytes;

	if (!pftrace_is_bytes(field)) {
		if (count < most)
			out[count++] = field->value;
		return count;
	}
	while (packed.at < packed.end && count < most) {
		uint64_t value = 0;
		unsigned shift = 0;

		if (fixed && packed.end - packed.at < 8)
			break;
		if (fixed) {
			memcpy(&value, packed.at, sizeof(value));
			packed.at += 8;
		} else {
			do {
				value |= shift < 64 ? (uint64_t)(*packed.at & 0x7f) << shift : 0;
				shift += 7;
			} while ((*packed.at++ & 0x80) != 0 && packed.at < packed.end);
		}
		out[count++] = value;
	}
	return count;
}

/* ---- sequences ------------------------------------------------------------------------------- */

struct sequence *report__pftrace_sequence(struct pftrace *pf, uint64_t id)
{
	struct sequence *sequence;
	size_t at;

	MAP_FIND(at, &pf->sequence_map, id, pf->sequences[at].id == id);
	if (at != MAP_NONE)
		return &pf->sequences[at];
	if (pf->sequence_count == SEQUENCES_MOST) {
		err_set(pf->err, ST_FORMAT, "%s: more than %zu sequences of packets",
			pf->import->input.name, SEQUENCES_MOST);
		return NULL;
	}
	sequence = report__import_append(&pf->sequence_map, id, &pf->sequences, &pf->sequence_count,
					 &pf->sequence_capacity, sizeof(*sequence), pf->err);
	if (sequence)
		*sequence = (struct sequence){.id = id, .pid = IPS_NULL, .tid = IPS_NULL};
	return sequence;
}

void report__pftrace_clear(struct sequence *sequence)
{
	sequence->count = 0;
	map_clear(&sequence->map);
	sequence->clock = 0;
	sequence->has_track = false;
	sequence->extra_count = 0;
	sequence->whole = true;
}

const struct interned *report__pftrace_find(const struct sequence *sequence,
					    enum interned_kind kind, uint64_t iid)
{
	size_t at;

	MAP_FIND(at, &sequence->map, iid << 8 | kind,
		 sequence->names[at].iid == iid && sequence->names[at].kind == kind);
	return at == MAP_NONE ? NULL : &sequence->names[at];
}

const char *report__pftrace_interned(const struct sequence *sequence, enum interned_kind kind,
				     uint64_t iid)
{
	const struct interned *found = report__pftrace_find(sequence, kind, iid);

	return found ? found->text : NULL;
}

void report__pftrace_intern(struct pftrace *pf, struct sequence *sequence,
			    const struct interned *item)
{
	struct interned *added;

	if (!item->text || sequence->count == INTERNED_MOST ||
	    report__pftrace_find(sequence, item->kind, item->iid))
		return;
	added = report__import_append(&sequence->map, item->iid << 8 | item->kind, &sequence->names,
				      &sequence->count, &sequence->capacity, sizeof(*added),
				      pf->err);
	if (added)
		*added = *item;
}

/* ---- clocks ---------------------------------------------------------------------------------- */

static struct pf_clock *clock_of(struct pftrace *pf, struct sequence *sequence, uint64_t id)
{
	if (id < 64)
		return &pf->clocks[id];
	return id < PFTRACE_CLOCKS ? &sequence->clocks[id - 64] : NULL;
}

/* Times beyond 146 years are damage. So differences of two times do not overflow. */
static bool is_time(int64_t ns)
{
	return ns >= 0 && ns <= INT64_MAX / 2;
}

/* All clocks of a snapshot show the same instant: boot time, or what the file has instead of it. */
void report__pftrace_snapshot(struct pftrace *pf, struct sequence *sequence,
			      struct import_wire snapshot)
{
	struct {
		struct pf_clock *clock;
		int64_t ns;
	} seen[32];
	size_t count = 0;
	struct import_wire_field field, inner;
	int64_t now = IPS_NULL, wall = IPS_NULL, any = 0;

	while (count < ARRAY_LEN(seen) && import_wire_next(&snapshot, &field)) {
		struct import_wire message = field.bytes;
		int64_t multiplier = 1, ticks = 0;
		uint64_t id = 0;
		bool incremental = false;
		struct pf_clock *clock;

		if (field.number != 1 || !pftrace_is_bytes(&field))
			continue;
		while (import_wire_next(&message, &inner)) {
			if (inner.number == 1)
				id = inner.value;
			else if (inner.number == 2)
				ticks = import_wire_int(&inner);
			else if (inner.number == 3)
				incremental = inner.value != 0;
			else if (inner.number == 4 && inner.value > 0)
				multiplier = import_wire_int(&inner);
		}
		clock = clock_of(pf, sequence, id);
		if (!clock || __builtin_mul_overflow(ticks, multiplier, &ticks) || !is_time(ticks))
			continue;
		clock->multiplier = multiplier;
		clock->incremental = incremental;
		clock->last_ns = ticks;
		if (id == PFTRACE_BOOTTIME)
			now = ticks;
		else if (now == IPS_NULL && clock->known && is_time(ticks + clock->offset_ns))
			now = ticks + clock->offset_ns;
		if (id == 1)
			wall = ticks;
		any = any == 0 ? ticks : any;
		seen[count].clock = clock;
		seen[count++].ns = ticks;
	}
	now = now == IPS_NULL ? any : now;
	for (size_t i = 0; i < count; i++) {
		seen[i].clock->offset_ns = now - seen[i].ns;
		seen[i].clock->known = true;
	}
	if (wall != IPS_NULL && pf->import->epoch_ns == IPS_NULL)
		pf->import->epoch_ns = wall - now;
}

int64_t report__pftrace_ns(struct pftrace *pf, struct sequence *sequence, uint64_t id,
			   int64_t ticks)
{
	struct pf_clock *clock = clock_of(pf, sequence, id);
	int64_t ns;

	if (!clock || !clock->known)
		return ticks;
	if (__builtin_mul_overflow(ticks, clock->multiplier, &ns) ||
	    (clock->incremental && __builtin_add_overflow(ns, clock->last_ns, &ns)))
		return IPS_NULL;
	if (clock->incremental)
		clock->last_ns = ns;
	return __builtin_add_overflow(ns, clock->offset_ns, &ns) ? IPS_NULL : ns;
}

/* ---- processes ------------------------------------------------------------------------------- */

struct pf_process *report__pftrace_process(struct pftrace *pf, int64_t pid)
{
	struct pf_process *process;
	size_t at;

	MAP_FIND(at, &pf->process_map, (uint64_t)pid, pf->processes[at].pid == pid);
	if (at != MAP_NONE)
		return &pf->processes[at];
	if (pid == IPS_NULL || pf->process_count == PFTRACE_MOST)
		return NULL;
	process = report__import_append(&pf->process_map, (uint64_t)pid, &pf->processes,
					&pf->process_count, &pf->process_capacity, sizeof(*process),
					pf->err);
	if (process)
		*process = (struct pf_process){.pid = pid};
	return process;
}

void report__pftrace_name_process(struct pftrace *pf, int64_t pid, const char *name)
{
	struct pf_process *process;

	if (!name || name[0] == '\0')
		return;
	process = report__pftrace_process(pf, pid);
	if (process)
		process->name = name;
}

const char *report__pftrace_process_name(const struct pftrace *pf, int64_t pid)
{
	size_t at;

	MAP_FIND(at, &pf->process_map, (uint64_t)pid, pf->processes[at].pid == pid);
	return at == MAP_NONE ? NULL : pf->processes[at].name;
}
