/*
 * Which layer reads which, and which tensors FIFOs and sums over replicas would move: from the run
 * file and the variables of the run.
 *
 * Threading: none. Ownership: the lists are the inputs'.
 */
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "reports/whatif/report_whatif_internal.h"

#define NAME_SIZE 256

/* ---- who reads whose output ------------------------------------------------------------------ */

static enum status edge_add(struct report_whatif *whatif, int from, int to, struct err *err)
{
	if (mem_grow(&whatif->edges, &whatif->edge_capacity, whatif->edge_count + 1,
		     sizeof(*whatif->edges)))
		return err_nomem(err);
	whatif->edges[whatif->edge_count++] = (struct whatif_edge){from, to};
	if (whatif->layers[to].input < 0)
		whatif->layers[to].input = from;
	return ST_OK;
}

static int layer_called(const struct report_whatif *whatif, const char *name)
{
	for (int i = 0; name && i < whatif->layer_count; i++)
		if (!strcmp(whatif->layers[i].name, name))
			return i;
	return -1;
}

/* A text among a layer's inbound nodes that is a layer's name is an input of it. */
static enum status take_edge(struct report_whatif *whatif, const struct prof_query *query,
			     void *user, struct err *err)
{
	const int to = layer_called(whatif, prof_column_text(query, 0));
	const int from = layer_called(whatif, prof_column_text(query, 1));

	(void)user;
	return from < 0 || to <= from ? ST_OK : edge_add(whatif, from, to, err);
}

static enum status take_class(struct report_whatif *whatif, const struct prof_query *query,
			      void *user, struct err *err)
{
	const char *name = prof_column_text(query, 0);

	(void)user;
	(void)err;
	whatif->chain = !name || strcmp(name, "Sequential") != 0;
	return ST_OK;
}

/* Where nothing is said, a layer reads the one before: in a Sequential model that is so. */
static enum status read_edges(struct report_whatif *whatif, struct prof_db *db, struct err *err)
{
	enum status status;
	bool guessed = false;

	whatif->chain = true;
	status = report__whatif_rows(whatif, db,
				     "SELECT json_extract(value, '$.model.class_name') FROM meta "
				     "WHERE key = 'run' AND json_valid(value)",
				     take_class, NULL, err);
	if (status == ST_OK && whatif->chain)
		status = report__whatif_rows(
			whatif, db,
			"SELECT json_extract(l.value, '$.config.name'), n.value FROM meta m, "
			"json_each(m.value, '$.model.config.layers') l, "
			"json_tree(l.value, '$.inbound_nodes') n "
			"WHERE m.key = 'run' AND json_valid(m.value) AND n.type = 'text'",
			take_edge, NULL, err);
	for (int i = 1; status == ST_OK && i < whatif->layer_count; i++)
		if (whatif->layers[i].input < 0) {
			status = edge_add(whatif, i - 1, i, err);
			guessed |= i > 1;
		}
	whatif->chain = whatif->chain && guessed;
	for (int i = 0; i < whatif->layer_count; i++) {
		struct whatif_layer *layer = &whatif->layers[i];

		layer->maker = layer->computes || layer->input < 0
				       ? i
				       : whatif->layers[layer->input].maker;
	}
	return status;
}

/* ---- gradients ------------------------------------------------------------------------------- */

static enum status gradient_add(struct report_whatif *whatif, int layer, int64_t bytes, bool half,
				struct err *err)
{
	if (bytes <= 0 || bytes > WHATIF_BYTES_MAX)
		return ST_OK;
	if (mem_grow(&whatif->gradients, &whatif->gradient_capacity, whatif->gradient_count + 1,
		     sizeof(*whatif->gradients)))
		return err_nomem(err);
	whatif->gradients[whatif->gradient_count++] = (struct whatif_gradient){layer, bytes, half};
	return ST_OK;
}

static enum status take_gradient(struct report_whatif *whatif, const struct prof_query *query,
				 void *user, struct err *err)
{
	const int layer = layer_called(whatif, prof_column_text(query, 0));
	const char *dtype = prof_column_text(query, 2);

	(void)user;
	return gradient_add(whatif, layer < 0 ? 0 : layer, prof_column_int(query, 1),
			    dtype && !strcmp(dtype, "float16"), err);
}

/* Summed are the accumulators; without them the gradients themselves. */
static enum status read_gradients(struct report_whatif *whatif, struct prof_db *db, struct err *err)
{
	const bool accumulated = whatif->measured.microbatches > 1;
	enum status status = report__whatif_rows(
		whatif, db,
		accumulated ? "SELECT layer, bytes, dtype FROM variables WHERE kind = 'accumulator'"
			    : "SELECT layer, bytes, dtype FROM variables WHERE kind = "
			      "'weight_gradient'",
		take_gradient, NULL, err);

	whatif->gradients_guessed = whatif->gradient_count == 0;
	for (int i = 0; status == ST_OK && whatif->gradients_guessed && i < whatif->layer_count;
	     i++)
		status = gradient_add(whatif, i,
				      whatif->layers[i].parameters * (int64_t)sizeof(float), false,
				      err);
	return status;
}

/* ---- what backward passes read --------------------------------------------------------------- */

/* "Dense_1/output/Stage2", ".../IPU1" and ".../popped" are "Dense_1/output". */
static void base_name(char *out, size_t size, const char *variable)
{
	char *slash;

	str_copy(out, size, variable);
	while ((slash = strrchr(out, '/')) &&
	       (!strcmp(slash, "/popped") || str_starts_with(slash, "/Stage") ||
		str_starts_with(slash, "/IPU")))
		*slash = '\0';
}

static struct whatif_stash *stash_get(struct report_whatif *whatif, const char *name, int64_t bytes)
{
	struct whatif_stash *stash;

	for (size_t i = 0; i < whatif->stash_count; i++)
		if (!strcmp(whatif->stashes[i].name, name))
			return &whatif->stashes[i];
	if (mem_grow(&whatif->stashes, &whatif->stash_capacity, whatif->stash_count + 1,
		     sizeof(*stash)))
		return NULL;
	stash = &whatif->stashes[whatif->stash_count];
	*stash = (struct whatif_stash){.name = arena_strdup(&whatif->arena, name),
				       .made = report__whatif_layer(whatif, name),
				       .reader = -1,
				       .bytes = bytes};
	if (stash->made < 0)
		stash->made = whatif->layer_count - 1;
	if (!stash->name)
		return NULL;
	whatif->stash_count++;
	return stash;
}

/* A backward pass goes from the last layer to the first: the last operation that reads a tensor is
 * that of the first layer which does. */
static enum status take_kept(struct report_whatif *whatif, const struct prof_query *query,
			     void *user, struct err *err)
{
	const int64_t bytes = prof_column_int(query, 1), id = prof_column_int(query, 2);
	const struct whatif_program *program =
		id >= 0 && id < (int64_t)whatif->program_count ? &whatif->programs[id] : NULL;
	const char *variable = prof_column_text(query, 0);
	struct whatif_stash *stash;
	char name[NAME_SIZE];

	(void)user;
	if (!variable || !program || program->stage < 0 || bytes <= 0 || bytes > WHATIF_BYTES_MAX ||
	    (program->function != (int)IPU_FUNCTION_B && program->function != (int)IPU_FUNCTION_R))
		return ST_OK;
	base_name(name, sizeof(name), variable);
	stash = stash_get(whatif, name, bytes);
	if (!stash)
		return err_nomem(err);
	if (program->layer < 0 || program->layer == stash->made)
		stash->own = true;
	else
		stash->reader = program->layer;
	return ST_OK;
}

/* A tensor that its own layer reads again may be read by the next one too, before. */
static void find_readers(struct report_whatif *whatif)
{
	for (size_t s = 0; s < whatif->stash_count; s++) {
		struct whatif_stash *stash = &whatif->stashes[s];

		for (size_t i = 0; stash->own && stash->reader < 0 && i < whatif->edge_count; i++) {
			const int to = whatif->edges[i].to;

			if (whatif->layers[whatif->edges[i].from].maker == stash->made &&
			    whatif->layers[to].reads_input &&
			    stash->bytes == whatif->layers[stash->made].output_bytes)
				stash->reader = to;
		}
	}
}

static const char sql_kept[] =
	"SELECT v.variable, v.bytes, l.program_id FROM variables v JOIN liveness l "
	"ON l.ipu = v.ipu AND l.program_step = v.last_program_step "
	"WHERE v.kind IN ('input', 'activation', 'kept') AND v.variable NOT LIKE '%/recomputed' "
	"AND v.variable NOT LIKE '%/skip/%' AND v.variable NOT LIKE '%/io'";

enum status report__whatif_tensors(struct report_whatif *whatif, struct prof_db *db,
				   struct err *err)
{
	enum status status = read_edges(whatif, db, err);

	if (status == ST_OK)
		status = read_gradients(whatif, db, err);
	if (status == ST_OK)
		status = report__whatif_rows(whatif, db, sql_kept, take_kept, NULL, err);
	if (status == ST_OK)
		find_readers(whatif);
	return status;
}
