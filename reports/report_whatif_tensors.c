/*
 * Which tensors FIFOs and sums over replicas would move, from the variables of the run.
 *
 * Threading: none. Ownership: the lists are the inputs'.
 */
#include <string.h>

#include "common/mem.h"
#include "reports/report_whatif_internal.h"

static enum status tensors_add(struct whatif_tensors *tensors, int layer, int64_t bytes,
			       struct err *err)
{
	if (bytes <= 0 || bytes > WHATIF_BYTES_MAX)
		return ST_OK;
	if (mem_grow(&tensors->items, &tensors->capacity, tensors->count + 1,
		     sizeof(*tensors->items)))
		return err_nomem(err);
	tensors->items[tensors->count++] = (struct whatif_tensor){layer, bytes};
	return ST_OK;
}

/* --- gradients ---------------------------------------------------------------------------------
 */

static enum status take_gradient(struct report_whatif *whatif, const struct prof_query *query,
				 void *user, struct err *err)
{
	const char *layer = prof_column_text(query, 0);
	const int position = layer ? report__whatif_layer(whatif, layer) : -1;

	(void)user;
	return tensors_add(&whatif->gradients, position < 0 ? 0 : position,
			   prof_column_int(query, 1), err);
}

/* Summed are the accumulators; without them the gradients themselves. */
static enum status read_gradients(struct report_whatif *whatif, struct prof_db *db, struct err *err)
{
	const bool accumulated = whatif->measured.microbatches > 1;
	enum status status = report__whatif_rows(
		whatif, db,
		accumulated ? "SELECT layer, bytes FROM variables WHERE kind = 'accumulator'"
			    : "SELECT layer, bytes FROM variables WHERE kind = 'weight_gradient'",
		take_gradient, NULL, err);

	whatif->gradients_guessed = whatif->gradients.count == 0;
	for (int i = 0; status == ST_OK && whatif->gradients_guessed && i < whatif->layer_count;
	     i++)
		status = tensors_add(&whatif->gradients, i,
				     whatif->layers[i].parameters * (int64_t)sizeof(float), err);
	return status;
}

/* --- what backward passes read -----------------------------------------------------------------
 */

static int first_layer(const struct report_whatif *whatif, int stage)
{
	for (int i = 0; i < whatif->layer_count; i++)
		if (whatif->layers[i].stage == stage)
			return i;
	return 0;
}

/* Of the stage that keeps it: the layer that made it, or the stage's first, which got it. */
static int keeping_layer(const struct report_whatif *whatif, const char *variable, int stage)
{
	const int layer = report__whatif_layer(whatif, variable);

	return layer >= 0 && whatif->layers[layer].stage == stage ? layer
								  : first_layer(whatif, stage);
}

/* In a FIFO there are as many of it as the FIFO is deep. */
static enum status take_fifo(struct report_whatif *whatif, const struct prof_query *query,
			     void *user, struct err *err)
{
	const char *variable = prof_column_text(query, 0);
	const int64_t ipu = prof_column_int(query, 2);
	const int after = whatif->schedule == IPU_GROUPED ? 2 : 1;

	(void)user;
	for (int s = 0; variable && s + 1 < whatif->stages; s++)
		if (whatif->device[s] == ipu &&
		    (keeping_layer(whatif, variable, s) != first_layer(whatif, s) ||
		     s + 2 == whatif->stages || whatif->device[s + 1] != ipu))
			return tensors_add(&whatif->stashes, keeping_layer(whatif, variable, s),
					   prof_column_int(query, 1) /
						   (after * (whatif->stages - 1 - s)),
					   err);
	return ST_OK;
}

/* Without a FIFO: what lives until the stage's backward. */
static enum status take_kept(struct report_whatif *whatif, const struct prof_query *query,
			     void *user, struct err *err)
{
	const char *variable = prof_column_text(query, 0);
	const int64_t id = prof_column_int(query, 2);
	const struct whatif_program *program =
		id >= 0 && id < (int64_t)whatif->program_count ? &whatif->programs[id] : NULL;

	(void)user;
	if (!variable || !program || program->stage < 0 || program->stage >= whatif->stages ||
	    (program->function != (int)IPU_FUNCTION_B && program->function != (int)IPU_FUNCTION_R))
		return ST_OK;
	if (whatif->schedule != IPU_SEQUENTIAL && program->stage + 1 < whatif->stages)
		return ST_OK;
	return tensors_add(&whatif->stashes, keeping_layer(whatif, variable, program->stage),
			   prof_column_int(query, 1), err);
}

static const char sql_kept[] =
	"SELECT v.variable, v.bytes, l.program_id FROM variables v JOIN liveness l "
	"ON l.ipu = v.ipu AND l.program_step = v.last_program_step "
	"WHERE v.kind IN ('input', 'activation', 'kept') AND v.variable NOT LIKE '%/popped' AND "
	"v.variable NOT LIKE '%/recomputed' AND v.variable NOT LIKE '%/skip/%' AND "
	"v.variable NOT LIKE '%/io'";

enum status report__whatif_tensors(struct report_whatif *whatif, struct prof_db *db,
				   struct err *err)
{
	enum status status = read_gradients(whatif, db, err);

	if (status == ST_OK && whatif->schedule != IPU_SEQUENTIAL)
		status = report__whatif_rows(
			whatif, db,
			"SELECT variable, bytes, ipu FROM variables WHERE kind = 'fifo'", take_fifo,
			NULL, err);
	if (status == ST_OK)
		status = report__whatif_rows(whatif, db, sql_kept, take_kept, NULL, err);
	return status;
}
