/*
 * Lists of the public report: each is one query, run on first use and read by a table of fields.
 *
 * Threading and ownership: as ipuscope/report.h says.
 */
#include <string.h>

#include "common/mem.h"
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

static enum status read_member(struct ips_report *report, const struct prof_query *query,
			       int column, enum report_public__member member, void *to,
			       struct err *err)
{
	const char *text;

	switch (member) {
	case PUBLIC_INT:
		*(int64_t *)to = prof_column_int(query, column);
		return ST_OK;
	case PUBLIC_REAL:
		*(double *)to = prof_column_real(query, column);
		return ST_OK;
	case PUBLIC_TEXT:
		return report_public__text(report, (const char **)to,
					   prof_column_text(query, column), err);
	case PUBLIC_KIND:
		*(enum ips_report_program_type *)to = parse_kind(prof_column_text(query, column));
		return ST_OK;
	case PUBLIC_MODE:
		*(enum ips_mode *)to = parse_mode(prof_column_text(query, column));
		return ST_OK;
	case PUBLIC_MODE_BYTE:
		*(uint8_t *)to = (uint8_t)parse_mode(prof_column_text(query, column));
		return ST_OK;
	case PUBLIC_CLOCK:
		*(enum ips_clock *)to = prof_column_int(query, column) == 0 ? IPS_HOST : IPS_DEVICE;
		return ST_OK;
	case PUBLIC_PHASE:
		text = prof_column_text(query, column);
		*(char *)to = !text ? '\0' : text[0];
		return ST_OK;
	}
	return ST_OK;
}

enum status report_public__row(struct ips_report *report, const struct prof_query *query,
			       const struct report_public__field *fields, size_t count, void *item,
			       struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		enum status status = read_member(report, query, (int)i, fields[i].member,
						 (unsigned char *)item + fields[i].offset, err);

		if (status != ST_OK)
			return status;
	}
	return ST_OK;
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

static enum status add_row(struct ips_report *report, enum report_public__list_id id,
			   const struct prof_query *query, struct err *err)
{
	struct report_public__list *list = &report->lists[id];
	const size_t size = kinds[id].size;
	unsigned char *item;

	if (mem_grow(&list->items, &list->capacity, list->count + 1, size) != 0)
		return err_nomem(err);
	item = list->items + list->count * size;
	memset(item, 0, size);
	if (kinds[id].index_at != NO_INDEX)
		*(int64_t *)(void *)(item + kinds[id].index_at) = (int64_t)list->count;
	list->count++;
	return report_public__row(report, query, kinds[id].fields, kinds[id].field_count, item,
				  err);
}

/* Read a list without linking it to others. */
static void read_once(struct ips_report *report, enum report_public__list_id id)
{
	struct report_public__list *list = &report->lists[id];
	struct err err = {ST_OK, ""};
	struct prof_query *query;
	enum status status;

	if (list->loaded)
		return;
	list->loaded = true;
	status = prof_query_open(&query, report->db, kinds[id].sql, &err);
	while (prof_query_next(query, &status, &err))
		status = add_row(report, id, query, &err);
	prof_query_close(query);
	list->status = status;
	if (list->status != ST_OK) {
		list->count = 0;
		err_prefix(&err, "%s", prof_db_path(report->db));
		report_public__status(report, list->status, &err, NULL, 0);
	}
}

/* Read the list @id on first use, and link it with the other lists. */
static enum status load_list(struct ips_report *report, enum report_public__list_id id)
{
	if (report->lists[id].loaded)
		return report->lists[id].status;
	if (id <= PUBLIC_LAYERS) {
		struct err err = {ST_OK, ""};
		enum status status;

		/* Programs, compute sets, operations and layers are linked: read them together,
		 * each as far as possible. */
		for (int each = PUBLIC_PROGRAMS; each <= PUBLIC_LAYERS; each++)
			read_once(report, (enum report_public__list_id)each);
		status = report_public__link_tree(report, &err);
		if (status == ST_OK)
			status = report_public__link_operations(report, &err);
		for (int each = PUBLIC_PROGRAMS; each <= PUBLIC_LAYERS && status != ST_OK; each++)
			report->lists[each].status = status;
		report_public__status(report, status, &err, NULL, 0);
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
