/*
 * The groups of each kind: finding them, writing those that changed. See prof_sums.h. On the
 * writer's thread.
 */
#include "profiler/prof_sums.h"

#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "profiler/prof_internal.h"

/* ---- groups ---------------------------------------------------------------------------------- */

static uint64_t hash_of(const int64_t *key)
{
	return map_bytes(MAP_SEED, key, PROF_SUM_KEYS * sizeof(*key));
}

static struct prof_sum_group *group_of(const struct prof_sums *sums, const int64_t *key)
{
	size_t at;

	MAP_FIND(at, &sums->map, hash_of(key),
		 memcmp(sums->groups[at].key, key, sizeof(sums->groups->key)) == 0);
	return at == MAP_NONE ? NULL : &sums->groups[at];
}

static struct prof_sum_group *group_new(struct prof_sums *sums, const struct prof_sum_type *type,
					const int64_t *key)
{
	struct prof_sum_group *group;

	if (mem_grow(&sums->groups, &sums->capacity, sums->count + 1, sizeof(*group)) != 0 ||
	    map_add(&sums->map, hash_of(key), sums->count) != 0)
		return NULL;
	group = &sums->groups[sums->count];
	memcpy(group->key, key, sizeof(group->key));
	for (size_t i = 0; i < type->values; i++) {
		if (type->columns[type->keys + i].kind == PROF_SUM_REAL)
			group->value[i].r = (double)NAN;
		else
			group->value[i].i = IPS_NULL;
	}
	group->changed = false;
	sums->count++;
	return group;
}

/* ---- writing --------------------------------------------------------------------------------- */

static enum status prepare(struct prof_writer *writer, struct prof_sums *sums,
			   const struct prof_sum_type *type)
{
	size_t columns = type->keys + type->values;
	struct str head = {0};
	enum status status;

	str_addf(&head, "INSERT OR REPLACE INTO %s (sum_id, rank", type->table);
	for (size_t i = 0; i < columns; i++)
		str_addf(&head, ", %s", type->columns[i].name);
	str_add(&head, ")");
	status = head.failed ? err_nomem(&writer->err)
			     : prof_insert_init(&sums->insert, writer->db, str_peek(&head),
						columns + 2, NULL, &writer->err);
	str_free(&head);
	return status;
}

static void fill(struct prof_cell *cell, enum prof_sum_column_kind kind, union prof_sum_value value)
{
	switch (kind) {
	case PROF_SUM_INT:
		prof_cell_int(cell, value.i);
		break;
	case PROF_SUM_REAL:
		prof_cell_real(cell, value.r);
		break;
	case PROF_SUM_MODE:
		prof_cell_text(cell, prof_mode_text(value.i));
		break;
	case PROF_SUM_PHASE:
		prof_cell_text(cell, prof__phase_text(value.i));
		break;
	}
}

static enum status write_group(struct prof_writer *writer, struct prof_sums *sums,
			       const struct prof_sum_type *type, uint32_t index)
{
	struct prof_sum_group *group = &sums->groups[index];
	struct prof_cell *cells;
	enum status status = prof_insert_row(&sums->insert, &cells, &writer->err);

	if (status != ST_OK)
		return status;
	group->changed = false;
	prof_cell_int(&cells[0], sums->forgotten + index + 1);
	prof_cell_int(&cells[1], writer->rank);
	for (size_t i = 0; i < type->keys; i++)
		fill(&cells[2 + i], type->columns[i].kind,
		     (union prof_sum_value){.i = group->key[i]});
	for (size_t i = type->keys; i < type->keys + type->values; i++)
		fill(&cells[2 + i], type->columns[i].kind, group->value[i - type->keys]);
	return ST_OK;
}

static enum status flush(struct prof_writer *writer, struct prof_sums *sums,
			 const struct prof_sum_type *type)
{
	enum status status = ST_OK;

	if (sums->changed_count == 0)
		return ST_OK;
	if (!sums->insert.many)
		status = prepare(writer, sums, type);
	if (status == ST_OK)
		status = prof__writer_begin(writer);
	for (size_t i = 0; i < sums->changed_count && status == ST_OK; i++)
		status = write_group(writer, sums, type, sums->changed[i]);
	sums->changed_count = 0;
	return status == ST_OK ? prof_insert_flush(&sums->insert, &writer->err) : status;
}

static enum status forget(struct prof_writer *writer, struct prof_sums *sums,
			  const struct prof_sum_type *type)
{
	enum status status = flush(writer, sums, type);

	sums->forgotten += (int64_t)sums->count;
	sums->count = 0;
	map_clear(&sums->map);
	return status;
}

/* ---- the whole ------------------------------------------------------------------------------- */

enum status prof__sums_add(struct prof_writer *writer, enum prof_sum_kind kind, const void *row)
{
	const struct prof_sum_type *type = &prof_sum_types[kind];
	struct prof_sums *sums = &writer->sums[kind];
	struct prof_sum_group *group = NULL;
	int64_t key[PROF_SUM_KEYS] = {0};
	enum status status = type->key(writer, row, key);

	if (status == ST_OK)
		group = group_of(sums, key);
	if (status == ST_OK && !group) {
		if (type->forget && sums->count == PROF_SUM_GROUPS)
			status = forget(writer, sums, type);
		if (status == ST_OK) {
			group = group_new(sums, type, key);
			status = !group ? err_nomem(&writer->err) : ST_OK;
		}
	}
	if (status != ST_OK)
		return status;
	if (!group->changed) {
		if (mem_grow(&sums->changed, &sums->changed_capacity, sums->changed_count + 1,
			     sizeof(*sums->changed)) != 0)
			return err_nomem(&writer->err);
		sums->changed[sums->changed_count++] = (uint32_t)(group - sums->groups);
		group->changed = true;
	}
	type->add(writer, group->value, row);
	return ST_OK;
}

enum status prof__sums_row(struct prof_writer *writer, unsigned table, const void *row)
{
	static const unsigned char kind_of[PROF_TABLES] = {
		[IPS_TABLE_stage_timing] = 1 + PROF_SUM_STAGE,
		[IPS_TABLE_bubble] = 1 + PROF_SUM_BUBBLE,
		[IPS_TABLE_execution] = 1 + PROF_SUM_EXECUTION,
		[IPS_TABLE_metric] = 1 + PROF_SUM_METRIC,
		[IPS_TABLE_health] = 1 + PROF_SUM_HEALTH,
		[IPS_TABLE_tensor_stats] = 1 + PROF_SUM_TENSOR,
	};

	if (kind_of[table] == 0)
		return ST_OK;
	return prof__sums_add(writer, (enum prof_sum_kind)(kind_of[table] - 1), row);
}

enum status prof__sums_flush(struct prof_writer *writer)
{
	enum status status = ST_OK;

	for (size_t i = 0; i < PROF_SUM_KINDS && status == ST_OK; i++)
		status = flush(writer, &writer->sums[i], &prof_sum_types[i]);
	return status;
}

void prof__sums_fini(struct prof_writer *writer)
{
	for (size_t i = 0; i < PROF_SUM_KINDS; i++) {
		struct prof_sums *sums = &writer->sums[i];

		prof_insert_fini(&sums->insert);
		mem_free(sums->groups);
		map_fini(&sums->map);
		mem_free(sums->changed);
		memset(sums, 0, sizeof(*sums));
	}
}
