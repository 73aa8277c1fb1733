/*
 * The rows of levels. See prof_inserts.h.
 */
#include "profiler/prof_inserts.h"

enum status prof__insert_levels(struct prof_insert *rows, int64_t track_id,
				struct prof_levels *levels, int finest, struct err *err)
{
	prof_levels_keep(levels, finest);
	if (levels->failed)
		return err_nomem(err);
	for (size_t i = 0; i < levels->count; i++) {
		const struct prof_increment *increment = &levels->increments[i];
		struct prof_cell *cells;
		enum status status = prof_insert_row(rows, &cells, err);

		if (status != ST_OK)
			return status;
		prof_cell_int(&cells[0], track_id);
		prof_cell_int(&cells[1], increment->level);
		prof_cell_int(&cells[2], increment->bucket);
		prof_cell_int(&cells[3], increment->depth);
		prof_cell_int(&cells[4], increment->busy_ns);
		prof_cell_int(&cells[5], increment->count);
		prof_cell_int(&cells[6], increment->share.site);
		prof_cell_int(&cells[7], increment->share.ns);
	}
	levels->count = 0;
	return ST_OK;
}

enum status prof__insert_counters(struct prof_insert *rows, int64_t track_id,
				  struct prof_counters *counters, struct err *err)
{
	prof_counters_flush(counters);
	if (counters->failed)
		return err_nomem(err);
	for (size_t i = 0; i < counters->count; i++) {
		const struct prof_sample_increment *increment = &counters->increments[i];
		struct prof_cell *cells;
		enum status status = prof_insert_row(rows, &cells, err);

		if (status != ST_OK)
			return status;
		prof_cell_int(&cells[0], track_id);
		prof_cell_int(&cells[1], increment->site);
		prof_cell_int(&cells[2], increment->level);
		prof_cell_int(&cells[3], increment->samples.index);
		prof_cell_int(&cells[4], increment->samples.count);
		prof_cell_real(&cells[5], increment->samples.least);
		prof_cell_real(&cells[6], increment->samples.greatest);
		prof_cell_real(&cells[7], increment->samples.total);
	}
	counters->count = 0;
	return ST_OK;
}
