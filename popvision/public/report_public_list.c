/*
 * Lists of the public report: each is one query, run on first use and read by a table of fields.
 *
 * Programs, operations, layers and compute sets are linked when they are read: the program tree,
 * operations with their programs. Parents and children come from ids, and are a tree even in a
 * damaged file: a program that would be its own ancestor is detached from its parent once, so all
 * traversals end without a stack.
 *
 * Threading and ownership: as ipuscope/report.h says.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"
#include "popvision/public/report_public_internal.h"

#define NO_INDEX SIZE_MAX

/* ---- rows ------------------------------------------------------------------------------------ */

static const char *const kind_names[IPS_REPORT_PROGRAM_TYPES] = {
	[IPS_REPORT_SEQUENCE] = "Sequence",
	[IPS_REPORT_REPEAT] = "Repeat",
	[IPS_REPORT_CALL] = "Call",
	[IPS_REPORT_ON_TILE_EXECUTE] = "OnTileExecute",
	[IPS_REPORT_DO_EXCHANGE] = "DoExchange",
	[IPS_REPORT_GLOBAL_EXCHANGE] = "GlobalExchange",
	[IPS_REPORT_SYNC] = "Sync",
	[IPS_REPORT_SYNC_ANS] = "SyncAns",
	[IPS_REPORT_SANS] = "Sans",
	[IPS_REPORT_STREAM_COPY_BEGIN] = "StreamCopyBegin",
	[IPS_REPORT_STREAM_COPY_MID] = "StreamCopyMid",
	[IPS_REPORT_STREAM_COPY_END] = "StreamCopyEnd",
	[IPS_REPORT_WRITE_UNDEF] = "WriteUndef",
};

static enum ips_report_program_type parse_kind(const char *type)
{
	for (int i = 0; type && i < IPS_REPORT_PROGRAM_TYPES; i++)
		if (kind_names[i] && strcmp(kind_names[i], type) == 0)
			return (enum ips_report_program_type)i;
	return IPS_REPORT_UNKNOWN;
}

static enum ips_mode parse_mode(const char *mode)
{
	static const char *const names[] = {
		[IPS_TRAIN] = "train", [IPS_EVALUATE] = "evaluate", [IPS_PREDICT] = "predict"};

	for (size_t i = 0; mode && i < ARRAY_LEN(names); i++)
		if (names[i] && strcmp(names[i], mode) == 0)
			return (enum ips_mode)i;
	return IPS_MODE_NULL;
}

static void read_member(struct ips_report *report, const struct prof_query *query, int column,
			enum report_public__member member, void *to, struct err *err)
{
	const char *text;

	switch (member) {
	case PUBLIC_INT:
		*(int64_t *)to = prof_column_int(query, column);
		break;
	case PUBLIC_REAL:
		*(double *)to = prof_column_real(query, column);
		break;
	case PUBLIC_TEXT:
		*(const char **)to =
			report_public__text(report, prof_column_text(query, column), err);
		break;
	case PUBLIC_KIND:
		*(enum ips_report_program_type *)to = parse_kind(prof_column_text(query, column));
		break;
	case PUBLIC_MODE:
		*(enum ips_mode *)to = parse_mode(prof_column_text(query, column));
		break;
	case PUBLIC_MODE_BYTE:
		*(uint8_t *)to = (uint8_t)parse_mode(prof_column_text(query, column));
		break;
	case PUBLIC_CLOCK:
		*(enum ips_clock *)to = prof_column_int(query, column) == 0 ? IPS_HOST : IPS_DEVICE;
		break;
	case PUBLIC_PHASE:
		text = prof_column_text(query, column);
		*(char *)to = !text ? '\0' : text[0];
		break;
	}
}

void report_public__row(struct ips_report *report, const struct prof_query *query,
			const struct report_public__field *fields, size_t count, void *item,
			struct err *err)
{
	for (size_t i = 0; i < count && !err_stuck(err); i++)
		read_member(report, query, (int)i, fields[i].member,
			    (unsigned char *)item + fields[i].offset, err);
}

/* ---- lists ----------------------------------------------------------------------------------- */

#define PROGRAM(name, member)     PUBLIC_FIELD(program, name, member)
#define COMPUTE_SET(name, member) PUBLIC_FIELD(compute_set, name, member)
#define LAYER(name, member)       PUBLIC_FIELD(layer, name, member)
#define VARIABLE(name, member)    PUBLIC_FIELD(variable, name, member)
#define LIVENESS(name, member)    PUBLIC_FIELD(liveness, name, member)
#define RUN(name, member)         PUBLIC_FIELD(run, name, member)
#define TRACK(name, member)       PUBLIC_FIELD(track, name, member)

static const struct report_public__field program_fields[] = {
	PROGRAM(program_id, INT), PROGRAM(parent_id, INT),    PROGRAM(position, INT),
	PROGRAM(type, TEXT),      PROGRAM(kind, KIND),        PROGRAM(name, TEXT),
	PROGRAM(operation, TEXT), PROGRAM(repeat_count, INT), PROGRAM(call_target, INT),
};

static const struct report_public__field compute_set_fields[] = {
	COMPUTE_SET(name, TEXT),        COMPUTE_SET(operation, TEXT), COMPUTE_SET(program_id, INT),
	COMPUTE_SET(num_vertices, INT), COMPUTE_SET(num_tiles, INT),  COMPUTE_SET(max_cycles, INT),
	COMPUTE_SET(mean_cycles, REAL),
};

/* Generated from the list of columns in ipuscope/profiler.h, as the struct is. */
#define OPERATION(t, kind, name, about) PUBLIC_FIELD(operation, name, kind),
#define SELECTED(t, kind, name, about)  ", " #name

static const struct report_public__field operation_fields[] = {PUBLIC_FIELD(operation, name, TEXT),
							       IPS_FACTS_operation(OPERATION, )};

static const struct report_public__field layer_fields[] = {
	LAYER(name, TEXT),
	LAYER(class_name, TEXT),
	LAYER(position, INT),
	LAYER(stage, INT),
	LAYER(output_shape, TEXT),
	LAYER(params, INT),
	LAYER(trainable_params, INT),
	LAYER(flops, INT),
};

static const struct report_public__field variable_fields[] = {
	VARIABLE(variable_id, INT),
	VARIABLE(name, TEXT),
	VARIABLE(layer, TEXT),
	VARIABLE(kind, TEXT),
	VARIABLE(shape, TEXT),
	VARIABLE(dtype, TEXT),
	VARIABLE(bytes, INT),
	VARIABLE(ipu, INT),
	VARIABLE(always_live, INT),
	VARIABLE(first_program_step, INT),
	VARIABLE(last_program_step, INT),
};

static const struct report_public__field liveness_fields[] = {
	LIVENESS(ipu, INT),
	LIVENESS(program_step, INT),
	LIVENESS(program_id, INT),
	LIVENESS(always_live_bytes, INT),
	LIVENESS(not_always_live_bytes, INT),
};

static const struct report_public__field run_fields[] = {
	RUN(execution, INT),
	RUN(rank, INT),
	RUN(mode, MODE),
	RUN(epoch, INT),
	RUN(first_step, INT),
	RUN(num_steps, INT),
	RUN(updates, INT),
	RUN(start_ns, INT),
	RUN(dur_ns, INT),
	RUN(start_cycle, INT),
	RUN(cycles, INT),
	RUN(traced, INT),
	RUN(microseconds.start, REAL),
	RUN(microseconds.end, REAL),
};

static const struct report_public__field track_fields[] = {
	TRACK(track, TEXT),
	TRACK(name, TEXT),
	TRACK(parent, TEXT),
	TRACK(rank, INT),
	TRACK(pid, INT),
	TRACK(tid, INT),
	TRACK(ipu, INT),
	TRACK(clock, CLOCK),
	{offsetof(struct report_public__track, track_id), PUBLIC_INT},
};

static const struct {
	const char *sql;
	const struct report_public__field *fields;
	size_t field_count, size, index_at;
} kinds[PUBLIC_LISTS] = {
	[PUBLIC_PROGRAMS] = {"SELECT program_id, parent_id, position, type, type, name, operation, "
			     "repeat_count, call_target FROM programs ORDER BY program_id",
			     program_fields, ARRAY_LEN(program_fields),
			     sizeof(struct ips_report_program),
			     offsetof(struct ips_report_program, index)},
	[PUBLIC_COMPUTE_SETS] = {"SELECT compute_set, operation, program_id, vertices, tiles, "
				 "max_cycles, mean_cycles FROM compute_sets",
				 compute_set_fields, ARRAY_LEN(compute_set_fields),
				 sizeof(struct ips_report_compute_set),
				 offsetof(struct ips_report_compute_set, index)},
	[PUBLIC_OPERATIONS] = {"SELECT operation" IPS_FACTS_operation(
				       SELECTED, ) " FROM operations",
			       operation_fields, ARRAY_LEN(operation_fields),
			       sizeof(struct ips_report_operation),
			       offsetof(struct ips_report_operation, index)},
	[PUBLIC_LAYERS] = {"SELECT layer, class, position, stage, output_shape, params, "
			   "trainable_params, flops FROM layers ORDER BY position, layer",
			   layer_fields, ARRAY_LEN(layer_fields), sizeof(struct ips_report_layer),
			   offsetof(struct ips_report_layer, index)},
	[PUBLIC_VARIABLES] = {"SELECT variable_id, variable, layer, kind, shape, dtype, bytes, "
			      "ipu, always_live, first_program_step, last_program_step "
			      "FROM variables ORDER BY variable_id",
			      variable_fields, ARRAY_LEN(variable_fields),
			      sizeof(struct ips_report_variable),
			      offsetof(struct ips_report_variable, index)},
	[PUBLIC_LIVENESS] = {"SELECT ipu, program_step, program_id, always_live_bytes, "
			     "not_always_live_bytes FROM liveness "
			     "ORDER BY ipu, program_step, program_id",
			     liveness_fields, ARRAY_LEN(liveness_fields),
			     sizeof(struct ips_report_liveness), NO_INDEX},
	[PUBLIC_RUNS] = {"SELECT execution, rank, mode, epoch, first_step, steps, updates, "
			 "start_ns, dur_ns, start_cycle, cycles, traced, start_ns / 1e3, "
			 "(start_ns + dur_ns) / 1e3 FROM executions ORDER BY rank, execution",
			 run_fields, ARRAY_LEN(run_fields), sizeof(struct ips_report_run),
			 offsetof(struct ips_report_run, index)},
	[PUBLIC_TRACKS] = {"SELECT track, name, parent, rank, pid, tid, ipu, clock, "
			   "track_id "
			   "FROM track_rows ORDER BY track_id",
			   track_fields, ARRAY_LEN(track_fields),
			   sizeof(struct report_public__track),
			   offsetof(struct ips_report_track, index)},
};

/* ---- reading --------------------------------------------------------------------------------- */

/* Read a list without linking it to others. */
static void read_once(struct ips_report *report, enum report_public__list_id id)
{
	struct report_public__list *list = &report->lists[id];
	const size_t size = kinds[id].size;
	struct err err = {ST_OK, ""};
	struct prof_query *query;

	if (list->loaded)
		return;
	list->loaded = true;
	prof_query_open(&query, report->db, kinds[id].sql, &err);
	while (prof_query_next(query, &err.status, &err)) {
		unsigned char *item;

		if (mem_grow(&list->items, &list->capacity, list->count + 1, size) != 0) {
			err_nomem(&err);
			break;
		}
		item = list->items + list->count * size;
		memset(item, 0, size);
		if (kinds[id].index_at != NO_INDEX)
			*(int64_t *)(void *)(item + kinds[id].index_at) = (int64_t)list->count;
		list->count++;
		report_public__row(report, query, kinds[id].fields, kinds[id].field_count, item,
				   &err);
	}
	prof_query_close(query);
	list->status = err.status;
	if (err_stuck(&err)) {
		list->count = 0;
		err_prefix(&err, "%s", prof_db_path(report->db));
		report_public__status(report, &err, NULL, 0);
	}
}

/* ---- tree ------------------------------------------------------------------------------------ */

static struct ips_report_program *programs_of(struct ips_report *report)
{
	return (void *)report->lists[PUBLIC_PROGRAMS].items;
}

/* @seen: zeroed; for each program, the number of the walk towards the root that reached it. */
static void cut_cycles(struct ips_report_program *programs, size_t count, int64_t *seen)
{
	for (int64_t i = 0; i < (int64_t)count; i++) {
		int64_t at = i;

		while (at != IPS_REPORT_NONE && seen[at] == 0) {
			seen[at] = i + 1;
			at = programs[at].parent;
		}
		if (at != IPS_REPORT_NONE && seen[at] == i + 1) {
			int64_t least = at;

			/* A cycle is cut at its least index. */
			for (int64_t next = programs[at].parent; next != at;
			     next = programs[next].parent)
				least = min(next, least);
			programs[least].parent = IPS_REPORT_NONE;
		}
	}
}

static int by_parent(const void *a, const void *b)
{
	const struct ips_report_program *p = *(const struct ips_report_program *const *)a;
	const struct ips_report_program *q = *(const struct ips_report_program *const *)b;

	return SORTED_BY(p, q, parent, position, index);
}

/* @order has room for all programs. */
static void link_children(struct ips_report *report, struct ips_report_program **order)
{
	struct ips_report_program *programs = programs_of(report);
	const size_t count = report->lists[PUBLIC_PROGRAMS].count;

	for (size_t i = 0; i < count; i++)
		order[i] = &programs[i];
	qsort(order, count, sizeof(*order), by_parent);
	report->first_root = count > 0 ? order[0]->index : IPS_REPORT_NONE;
	for (size_t i = 0; i < count; i++) {
		struct ips_report_program *program = order[i];

		if (i + 1 < count && order[i + 1]->parent == program->parent)
			program->next_sibling = order[i + 1]->index;
		if (program->parent == IPS_REPORT_NONE)
			continue;
		if (programs[program->parent].num_children++ == 0)
			programs[program->parent].first_child = program->index;
	}
}

/* The program visited after @at and its descendants; IPS_REPORT_NONE: the end. */
static int64_t next_after_subtree(const struct ips_report_program *programs, int64_t at)
{
	for (; at != IPS_REPORT_NONE; at = programs[at].parent)
		if (programs[at].next_sibling != IPS_REPORT_NONE)
			return programs[at].next_sibling;
	return IPS_REPORT_NONE;
}

/* Link the programs. Their list is marked as loaded, so looking one up does not load it again. */
static void link_tree(struct ips_report *report, struct err *err)
{
	struct ips_report_program *programs = programs_of(report);
	const size_t count = report->lists[PUBLIC_PROGRAMS].count;
	int64_t *seen = mem_calloc(count + 1, sizeof(*seen));
	struct ips_report_program **order =
		mem_calloc(count + 1, sizeof(struct ips_report_program *));

	for (size_t i = 0; i < count && seen && order; i++) {
		struct ips_report_program *program = &programs[i];

		program->parent = report_public__program_index(report, program->parent_id);
		program->called = report_public__program_index(report, program->call_target);
		program->first_child = program->next_sibling = IPS_REPORT_NONE;
		program->operation_index = program->next_of_operation = IPS_REPORT_NONE;
		program->compute_set = IPS_REPORT_NONE;
	}
	report->first_root = IPS_REPORT_NONE;
	if (seen && order) {
		cut_cycles(programs, count, seen);
		link_children(report, order);
		/* Parents precede their children, so a parent's depth is known. */
		for (int64_t at = report->first_root; at != IPS_REPORT_NONE;) {
			const int64_t parent = programs[at].parent,
				      child = programs[at].first_child;

			programs[at].depth =
				parent == IPS_REPORT_NONE ? 0 : programs[parent].depth + 1;
			at = child != IPS_REPORT_NONE ? child : next_after_subtree(programs, at);
		}
		for (size_t i = 0; i < count; i++)
			if (programs[i].called != IPS_REPORT_NONE)
				programs[programs[i].called].is_function = 1;
	}
	if (!seen || !order)
		err_nomem(err);
	mem_free(order);
	mem_free(seen);
}

/* ---- operations ------------------------------------------------------------------------------ */

/* Index of names; equal texts are equal pointers (report_public__text()). */
struct name {
	const char *text;
	int64_t index;
};

static int by_name(const void *a, const void *b)
{
	const struct name *p = a, *q = b;
	const int order = SORTED_ORDER((uintptr_t)p->text, (uintptr_t)q->text);

	return order != 0 ? order : SORTED_BY(p, q, index);
}

/* The least index of an item named @text. */
static int64_t find_name(const struct name *names, size_t count, const char *text)
{
	size_t at;

	SORTED_FIRST(at, 0, count, (uintptr_t)names[at].text < (uintptr_t)text);
	return text && at < count && names[at].text == text ? names[at].index : IPS_REPORT_NONE;
}

/* Linear search: there are few layers. */
static int64_t find_layer(struct ips_report *report, const char *layer)
{
	const struct ips_report_layer *layers = (void *)report->lists[PUBLIC_LAYERS].items;

	for (size_t i = 0; i < report->lists[PUBLIC_LAYERS].count; i++)
		if (layer && layers[i].name == layer)
			return (int64_t)i;
	return IPS_REPORT_NONE;
}

/* Link operations with their programs and layers, and compute sets with both. */
static void link_operations(struct ips_report *report, struct err *err)
{
	struct ips_report_operation *operations = (void *)report->lists[PUBLIC_OPERATIONS].items;
	const size_t count = report->lists[PUBLIC_OPERATIONS].count;
	struct name *names = mem_calloc(count + 1, sizeof(*names));
	struct ips_report_program *programs;
	struct ips_report_compute_set *sets;

	if (!names) {
		err_nomem(err);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		operations[i].first_program = IPS_REPORT_NONE;
		operations[i].layer_index = find_layer(report, operations[i].layer);
		names[i] = (struct name){operations[i].name, (int64_t)i};
	}
	qsort(names, count, sizeof(*names), by_name);
	/* Link from last to first, so that each chain is sorted by index. */
	programs = programs_of(report);
	for (size_t i = report->lists[PUBLIC_PROGRAMS].count; i-- > 0;) {
		const int64_t index = find_name(names, count, programs[i].operation);

		programs[i].operation_index = index;
		if (index == IPS_REPORT_NONE)
			continue;
		programs[i].next_of_operation = operations[index].first_program;
		operations[index].first_program = (int64_t)i;
		operations[index].num_programs++;
	}
	sets = (void *)report->lists[PUBLIC_COMPUTE_SETS].items;
	for (size_t i = report->lists[PUBLIC_COMPUTE_SETS].count; i-- > 0;) {
		sets[i].operation_index = find_name(names, count, sets[i].operation);
		sets[i].program = report_public__program_index(report, sets[i].program_id);
		if (sets[i].program != IPS_REPORT_NONE)
			programs[sets[i].program].compute_set = (int64_t)i;
	}
	mem_free(names);
}

/* ---- items ----------------------------------------------------------------------------------- */

/* Read the list @id on first use, and link it with the other lists. */
static enum status load_list(struct ips_report *report, enum report_public__list_id id)
{
	if (report->lists[id].loaded)
		return report->lists[id].status;
	if (id <= PUBLIC_LAYERS) {
		struct err err = {ST_OK, ""};

		/* Programs, compute sets, operations and layers are linked: read them together,
		 * each as far as possible. */
		for (int each = PUBLIC_PROGRAMS; each <= PUBLIC_LAYERS; each++)
			read_once(report, (enum report_public__list_id)each);
		link_tree(report, &err);
		if (!err_stuck(&err))
			link_operations(report, &err);
		for (int each = PUBLIC_PROGRAMS; each <= PUBLIC_LAYERS && err_stuck(&err); each++)
			report->lists[each].status = err.status;
		report_public__status(report, &err, NULL, 0);
	} else {
		read_once(report, id);
	}
	if (id == PUBLIC_LIVENESS) {
		const struct report_public__list *list = &report->lists[PUBLIC_LIVENESS];
		struct ips_report_liveness *steps = (void *)list->items;

		for (size_t i = 0; i < list->count; i++)
			steps[i].program =
				report_public__program_index(report, steps[i].program_id);
	}
	return report->lists[id].status;
}

int64_t report_public__count(struct ips_report *report, enum report_public__list_id id)
{
	if (!report || load_list(report, id) != ST_OK)
		return -1;
	return (int64_t)report->lists[id].count;
}

void *report_public__item(struct ips_report *report, enum report_public__list_id id, int64_t index)
{
	if (index < 0 || index >= report_public__count(report, id))
		return NULL;
	return report->lists[id].items + (size_t)index * kinds[id].size;
}

/* Find @key in a list that is sorted by the number at offset @key_at of its items. */
static int64_t find_by_number(struct ips_report *report, enum report_public__list_id id,
			      size_t key_at, int64_t key)
{
	const int64_t count = report_public__count(report, id);
	int64_t at;

	SORTED_FIRST(at, 0, count,
		     sorted_number(report_public__item(report, id, at), key_at) < key);
	if (at >= count || sorted_number(report_public__item(report, id, at), key_at) != key)
		return IPS_REPORT_NONE;
	return at;
}

int64_t report_public__program_index(struct ips_report *report, int64_t program_id)
{
	return find_by_number(report, PUBLIC_PROGRAMS,
			      offsetof(struct ips_report_program, program_id), program_id);
}

int64_t report_public__variable_index(struct ips_report *report, int64_t variable_id)
{
	return find_by_number(report, PUBLIC_VARIABLES,
			      offsetof(struct ips_report_variable, variable_id), variable_id);
}

int64_t report_public__track_index(struct ips_report *report, int64_t track_id)
{
	return find_by_number(report, PUBLIC_TRACKS,
			      offsetof(struct report_public__track, track_id), track_id);
}

/* ---- public functions ------------------------------------------------------------------------ */

/* Count and items of a list, as ipuscope/report.h declares them. */
#define LIST(name, id)                                                                             \
	int64_t ips_report_##name##_count(struct ips_report *report)                               \
	{                                                                                          \
		return report_public__count(report, PUBLIC_##id);                                  \
	}                                                                                          \
	const struct ips_report_##name *ips_report_##name(struct ips_report *report,               \
							  int64_t index)                           \
	{                                                                                          \
		return report_public__item(report, PUBLIC_##id, index);                            \
	}

LIST(program, PROGRAMS)
LIST(compute_set, COMPUTE_SETS)
LIST(operation, OPERATIONS)
LIST(layer, LAYERS)
LIST(variable, VARIABLES)
LIST(run, RUNS)
LIST(track, TRACKS)

const struct ips_report_program *ips_report_program_by_id(struct ips_report *report,
							  int64_t program_id)
{
	return report_public__item(report, PUBLIC_PROGRAMS,
				   report_public__program_index(report, program_id));
}

const struct ips_report_variable *ips_report_variable_by_id(struct ips_report *report,
							    int64_t variable_id)
{
	return report_public__item(report, PUBLIC_VARIABLES,
				   report_public__variable_index(report, variable_id));
}

int ips_report_operation_has_variable(const struct ips_report_operation *operation,
				      const struct ips_report_variable *variable)
{
	size_t length;

	if (!operation || !variable || !operation->name || !variable->name)
		return 0;
	length = strlen(operation->name);
	return strncmp(variable->name, operation->name, length) == 0 &&
	       (variable->name[length] == '\0' || variable->name[length] == '/');
}

/* ---- traversal ------------------------------------------------------------------------------- */

int64_t ips_report_program_first_root(struct ips_report *report)
{
	return report_public__count(report, PUBLIC_PROGRAMS) > 0 ? report->first_root
								 : IPS_REPORT_NONE;
}

/* Call leave() for @at and for every ancestor whose last child it completes, up to and including
 * @top. Return the next program to visit; IPS_REPORT_NONE: the traversal is complete. */
static int64_t leave_completed(const struct ips_report_program *programs,
			       const struct ips_report_visitor *visitor, int64_t at, int64_t top)
{
	for (;;) {
		if (visitor->leave)
			visitor->leave(visitor->user, &programs[at]);
		if (at == top)
			return IPS_REPORT_NONE;
		if (programs[at].next_sibling != IPS_REPORT_NONE)
			return programs[at].next_sibling;
		at = programs[at].parent;
		if (at == IPS_REPORT_NONE)
			return IPS_REPORT_NONE;
	}
}

int ips_report_program_accept(struct ips_report *report, int64_t index,
			      const struct ips_report_visitor *visitor)
{
	const struct ips_report_program *programs;
	struct err err = {ST_OK, ""};
	int64_t at = index;

	if (!report)
		return report_public__null_argument("report", NULL, 0);
	if (!visitor)
		return report_public__null_argument("visitor", NULL, 0);
	if (report_public__count(report, PUBLIC_PROGRAMS) < 0)
		return (int)report->lists[PUBLIC_PROGRAMS].status;
	if (index == IPS_REPORT_NONE) {
		at = report->first_root;
	} else if (!report_public__item(report, PUBLIC_PROGRAMS, index)) {
		err_set(&err, ST_INVALID, "program %lld, where there are %lld", (long long)index,
			(long long)report->lists[PUBLIC_PROGRAMS].count);
		return report_public__status(report, &err, NULL, 0);
	}
	programs = programs_of(report);
	while (at != IPS_REPORT_NONE) {
		enum ips_report_visit next;
		const struct ips_report_program *program = &programs[at];

		if (visitor->visit[program->kind])
			next = visitor->visit[program->kind](visitor->user, program);
		else
			next = visitor->other ? visitor->other(visitor->user, program)
					      : IPS_REPORT_VISIT_ON;
		if (next == IPS_REPORT_VISIT_STOP)
			break;
		if (next == IPS_REPORT_VISIT_ON && programs[at].first_child != IPS_REPORT_NONE)
			at = programs[at].first_child;
		else
			at = leave_completed(programs, visitor, at, index);
	}
	return 0;
}
