/*
 * The execution trace of a training run, taken apart: what the functions of each stage take, layer
 * by layer; what is streamed; what goes between IPUs.
 *
 * Every run of a trace is the same, and so is every run of a function in it: one of each is read,
 * from the traces themselves, whatever the number of micro-batches. Threading: none.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "reports/whatif/report_whatif_internal.h"

#define PROGRAMS_MAX (1 << 22)

struct operation {
	const char *name;
	int layer;
	bool matrix;
};

struct reading {
	struct report_whatif *whatif;
	struct operation *operations;
	size_t operation_count, operation_capacity;
	int64_t (*seen)[IPU_FUNCTION_PHASES]; /* by stage: the run of a function that is read */
	bool *updated;                        /* by IPU: its weight update has passed */
	int *time_step;                       /* by IPU: steps passed */
	int64_t *received; /* by time step and IPU: bytes, of the first @stages */
};

/* ---- operations ------------------------------------------------------------------------------ */

/* What no layer asked for: the loss and its like come last, inputs and counters first. */
static int layer_of_none(const struct report_whatif *whatif, const char *operation)
{
	const bool first = !strcmp(operation, "infeed/arg0") || strstr(operation, "/iter/");

	return first ? 0 : whatif->layer_count - 1;
}

static enum status take_operation(struct report_whatif *whatif, const struct prof_query *query,
				  void *user, struct err *err)
{
	struct reading *reading = user;
	const char *name = prof_column_text(query, 0), *layer = prof_column_text(query, 1);
	const char *kind = prof_column_text(query, 2);
	struct operation *operation;

	if (!name)
		return ST_OK;
	if (mem_grow(&reading->operations, &reading->operation_capacity,
		     reading->operation_count + 1, sizeof(*operation)))
		return err_nomem(err);
	operation = &reading->operations[reading->operation_count];
	operation->name = arena_strdup(&whatif->arena, name);
	if (!operation->name)
		return err_nomem(err);
	operation->layer = layer ? report__whatif_layer(whatif, layer) : -1;
	if (operation->layer < 0)
		operation->layer = layer_of_none(whatif, name);
	operation->matrix = kind && (!strcmp(kind, "matmul") || str_starts_with(kind, "conv"));
	reading->operation_count++;
	return ST_OK;
}

static int compare_operations(const void *left, const void *right)
{
	const struct operation *a = left, *b = right;

	return strcmp(a->name, b->name);
}

static const struct operation *find_operation(const struct reading *reading, const char *name)
{
	const struct operation key = {.name = name};

	return !name || reading->operation_count == 0
		       ? NULL
		       : bsearch(&key, reading->operations, reading->operation_count, sizeof(key),
				 compare_operations);
}

/* ---- programs -------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	enum ipu_function_phase function;
} functions[] = {
	{"F", IPU_FUNCTION_F}, {"B", IPU_FUNCTION_B},       {"U", IPU_FUNCTION_U},
	{"R", IPU_FUNCTION_R}, {"FIFO", IPU_FUNCTION_PUSH}, {"Start", IPU_FUNCTION_START},
};

static const struct {
	const char *prefix;
	enum whatif_move move;
} moves[] = {
	{"FIFO/Push/", WHATIF_FIFO},
	{"FIFO/Pop/", WHATIF_FIFO},
	{"FIFO/RemoteStore/", WHATIF_FIFO},
	{"FIFO/RemoteLoad/", WHATIF_FIFO},
	{"CrossReplicaSum/", WHATIF_COLLECTIVE},
	{"ReplicatedAllGather/", WHATIF_COLLECTIVE},
	{"RemoteLoad/", WHATIF_REMOTE},
	{"RemoteStore/", WHATIF_REMOTE},
};

/* A stage's function is called "Stage1/F". */
static void program_root(struct whatif_program *program, const char *name)
{
	const char *slash = strchr(name, '/');
	char number[16];
	long long stage;

	if (!str_starts_with(name, "Stage") || !slash || slash - name - 4 > (int)sizeof(number))
		return;
	str_copy(number, (size_t)(slash - name - 4), name + 5);
	if (!str_to_int(number, &stage) || stage < 0 || stage >= IPU_PIPELINE_STAGES_MAX)
		return;
	for (size_t i = 0; i < ARRAY_LEN(functions); i++)
		if (!strcmp(functions[i].name, slash + 1)) {
			program->stage = (int)stage;
			program->function = (int)functions[i].function;
		}
}

static void program_move(struct whatif_program *program, const struct report_whatif *whatif,
			 const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(moves); i++)
		if (str_starts_with(name, moves[i].prefix)) {
			program->move = moves[i].move;
			program->layer =
				report__whatif_layer(whatif, name + strlen(moves[i].prefix));
			return;
		}
}

/* Parents come before their children. */
static enum status take_program(struct report_whatif *whatif, const struct prof_query *query,
				void *user, struct err *err)
{
	const int64_t id = prof_column_int(query, 0), parent = prof_column_int(query, 1);
	const char *name = prof_column_text(query, 2);
	const struct operation *operation = find_operation(user, prof_column_text(query, 3));
	struct whatif_program *program;

	if (id < 0 || id >= PROGRAMS_MAX)
		return ST_OK;
	if (mem_grow(&whatif->programs, &whatif->program_capacity, (size_t)id + 1,
		     sizeof(*program)))
		return err_nomem(err);
	while (whatif->program_count <= (size_t)id)
		whatif->programs[whatif->program_count++] =
			(struct whatif_program){.stage = -1, .layer = -1};
	program = &whatif->programs[id];
	if (parent >= 0 && parent < id)
		*program = whatif->programs[parent];
	else if (name)
		program_root(program, name);
	if (name && parent >= 0 && program->move == WHATIF_OPERATION)
		program_move(program, whatif, name);
	if (operation)
		program->layer = operation->layer;
	return ST_OK;
}

/* ---- steps ----------------------------------------------------------------------------------- */

enum {
	STEP_IPU,
	STEP_STAGE,
	STEP_MICROBATCH,
	STEP_PROGRAM,
	STEP_TYPE,
	STEP_OPERATION,
	STEP_CYCLES,
	STEP_IN,
	STEP_OUT,
	STEP_TRACE
};

/* The template rows: the view multiplies them by the runs, which may be millions. */
static const char sql_steps[] =
	"SELECT d.ipu, d.stage, d.microbatch, d.program_id, t.value, o.value, d.cycles, "
	"d.bytes_in, d.bytes_out, d.trace_id FROM device_step_rows d "
	"LEFT JOIN strings t ON t.string_id = d.type_id "
	"LEFT JOIN strings o ON o.string_id = d.operation_id "
	"WHERE d.trace_id IN (SELECT a.trace_id FROM device_traces a, "
	"(SELECT trace_id FROM device_run_rows WHERE mode = 'train' ORDER BY row_id LIMIT 1) f "
	"WHERE a.trace_id BETWEEN f.trace_id AND f.trace_id + 2 AND a.name LIKE 'train%') "
	"ORDER BY d.row_id";

static int64_t *cycles_of_type(struct whatif_cycles *cycles, const char *type)
{
	if (!strcmp(type, "OnTileExecute"))
		return &cycles->compute;
	if (!strcmp(type, "DoExchange"))
		return &cycles->exchange;
	if (!strcmp(type, "GlobalExchange"))
		return &cycles->links;
	return !strcmp(type, "Sync") ? &cycles->sync : &cycles->host;
}

static bool same_piece(const struct whatif_piece *a, const struct whatif_piece *b)
{
	return a->stage == b->stage && a->layer == b->layer && a->function == b->function &&
	       a->move == b->move && a->matrix == b->matrix && a->weights == b->weights &&
	       a->accumulates == b->accumulates;
}

/* The pieces of a function follow each other: the last few are looked through. */
static struct whatif_piece *piece_get(struct report_whatif *whatif, const struct whatif_piece *key)
{
	for (size_t back = 1; back <= 16 && back <= whatif->piece_count; back++)
		if (same_piece(&whatif->pieces[whatif->piece_count - back], key))
			return &whatif->pieces[whatif->piece_count - back];
	if (mem_grow(&whatif->pieces, &whatif->piece_capacity, whatif->piece_count + 1,
		     sizeof(*key)))
		return NULL;
	whatif->pieces[whatif->piece_count] = *key;
	return &whatif->pieces[whatif->piece_count++];
}

/* What outfeeds give the host is copied to the stream's layout by an operation. */
static void take_outfeed(struct whatif_layer *layer, bool update, const char *operation,
			 const struct prof_query *query)
{
	const size_t length = strlen(operation), tail = strlen("/outfeed");
	const int64_t bytes = prof_column_int(query, STEP_IN);

	if (length < tail || strcmp(operation + length - tail, "/outfeed") || bytes <= 0 ||
	    strcmp(prof_column_text(query, STEP_TYPE), "DoExchange"))
		return;
	*(update ? &layer->update_bytes : &layer->outfeed_bytes) += bytes;
}

/* What a zero-bubble schedule would put off: gradients of weights, and adding them up. */
static bool is_weights(const char *operation)
{
	return strstr(operation, "/GradW") || strstr(operation, "BiasAdd/Grad") ||
	       str_starts_with(operation, "GradientAccumulation/");
}

static enum status take_function_step(struct reading *reading, const struct whatif_program *program,
				      const struct prof_query *query, struct err *err)
{
	struct report_whatif *whatif = reading->whatif;
	const char *name = prof_column_text(query, STEP_OPERATION);
	const struct operation *operation = find_operation(reading, name);
	const int64_t cycles = prof_column_int(query, STEP_CYCLES);
	const int64_t run = (prof_column_int(query, STEP_TRACE) << 32) +
			    (prof_column_type(query, STEP_MICROBATCH) == PROF_NULL
				     ? 0
				     : prof_column_int(query, STEP_MICROBATCH) + 1);
	int64_t *seen = &reading->seen[program->stage][program->function], *sum;
	struct whatif_piece key = {.stage = program->stage,
				   .function = (enum ipu_function_phase)program->function,
				   .move = program->move,
				   .layer = program->layer};
	struct whatif_piece *piece;

	if (*seen == IPS_NULL)
		*seen = run;
	if (*seen != run)
		return ST_OK;
	if (key.layer < 0)
		key.layer = operation ? operation->layer : whatif->layer_count - 1;
	if (name)
		take_outfeed(&whatif->layers[key.layer], key.function == IPU_FUNCTION_U, name,
			     query);
	key.matrix = operation && operation->matrix;
	key.weights = name && is_weights(name);
	key.accumulates = name && str_starts_with(name, "GradientAccumulation/");
	piece = piece_get(whatif, &key);
	if (!piece)
		return err_nomem(err);
	sum = cycles_of_type(&piece->cycles, prof_column_text(query, STEP_TYPE));
	*sum += cycles;
	if (*sum > WHATIF_CYCLES_MAX)
		return err_set(err, ST_FORMAT, "a function of stage %d takes %lld cycles",
			       key.stage, (long long)*sum);
	return ST_OK;
}

static void take_stream(struct reading *reading, int ipu, const struct prof_query *query)
{
	const int64_t stage = prof_column_int(query, STEP_STAGE);
	const int64_t in = prof_column_int(query, STEP_IN), out = prof_column_int(query, STEP_OUT);
	const bool late =
		prof_column_type(query, STEP_MICROBATCH) == PROF_NULL && reading->updated[ipu];
	struct whatif_stream *stream;

	if (stage < 0 || stage >= reading->whatif->stages)
		return;
	stream = &reading->whatif->streams[stage];
	if (in > 0)
		stream->infeed = in;
	else if (late)
		stream->update = out;
	else
		stream->outfeed = out;
}

/* Between the functions. */
static void take_transfer(struct reading *reading, int ipu, const struct prof_query *query)
{
	const struct report_whatif *whatif = reading->whatif;
	const char *type = prof_column_text(query, STEP_TYPE);
	const int64_t in = prof_column_int(query, STEP_IN);
	/* Through I/O tiles the first infeed of a pipeline has a step of its own. */
	const int lead = whatif->options.overlap && whatif->stages > 1;
	const int step = reading->time_step[ipu] - 1 - lead;

	if (!strcmp(type, "StreamCopyMid"))
		take_stream(reading, ipu, query);
	else if (!strcmp(type, "Sync"))
		reading->time_step[ipu]++;
	else if (!strcmp(type, "GlobalExchange") && step >= 0 && step < whatif->stages && in > 0)
		reading->received[(size_t)step * (size_t)whatif->ipus + (size_t)ipu] = in;
}

static enum status check_step(const struct report_whatif *whatif, const struct prof_query *query,
			      struct err *err)
{
	const int64_t cycles = prof_column_int(query, STEP_CYCLES);
	const int64_t ipu = prof_column_int(query, STEP_IPU);
	const int64_t in = prof_column_int(query, STEP_IN), out = prof_column_int(query, STEP_OUT);

	if (ipu < 0 || ipu >= whatif->ipus || !prof_column_text(query, STEP_TYPE))
		return err_set(err, ST_FORMAT, "a device step is on IPU %lld of %d", (long long)ipu,
			       whatif->ipus);
	if (cycles < 0 || cycles > WHATIF_CYCLES_MAX || in > WHATIF_BYTES_MAX ||
	    out > WHATIF_BYTES_MAX)
		return err_set(err, ST_FORMAT,
			       "a device step takes %lld cycles and moves %lld bytes",
			       (long long)cycles, (long long)(in > out ? in : out));
	return ST_OK;
}

static enum status take_step(struct report_whatif *whatif, const struct prof_query *query,
			     void *user, struct err *err)
{
	struct reading *reading = user;
	const int64_t id = prof_column_int(query, STEP_PROGRAM);
	const struct whatif_program *program =
		id >= 0 && id < (int64_t)whatif->program_count ? &whatif->programs[id] : NULL;
	enum status status = check_step(whatif, query, err);
	int ipu;

	if (status != ST_OK)
		return status;
	ipu = (int)prof_column_int(query, STEP_IPU);
	if (!program || program->stage < 0 || program->stage >= whatif->stages) {
		take_transfer(reading, ipu, query);
		return ST_OK;
	}
	whatif->device[program->stage] = ipu;
	if (program->function == (int)IPU_FUNCTION_U)
		reading->updated[ipu] = true;
	return take_function_step(reading, program, query, err);
}

/* ---- what goes between IPUs ------------------------------------------------------------------ */

/* Of micro-batch 0 stage s is in time step s, beside forwards of stages before it alone: what these
 * send is known, the rest is its own. */
static enum status find_sends(struct reading *reading, struct err *err)
{
	struct report_whatif *whatif = reading->whatif;
	const size_t stages = (size_t)whatif->stages, ipus = (size_t)whatif->ipus;
	struct ipu_schedule *schedule = NULL;
	const struct ipu_schedule_params params = {.kind = whatif->schedule,
						   .stages = whatif->stages,
						   .microbatches =
							   (int)whatif->measured.microbatches,
						   .training = true,
						   .ipus = whatif->ipus,
						   .device = whatif->device};
	enum status status = ipu_schedule_new(&schedule, &params, err);

	whatif->sends = arena_alloc(&whatif->arena, stages * stages + 1, sizeof(*whatif->sends));
	if (status == ST_OK && !whatif->sends)
		status = err_nomem(err);
	for (int s = 0; status == ST_OK && s < whatif->stages; s++) {
		int64_t *received = reading->received + (size_t)s * ipus;

		for (int i = 0; i < schedule->first[whatif->ipus]; i++)
			for (int n = 0;
			     n < whatif->send_count && schedule->works[i].time_step == s &&
			     schedule->works[i].phase == 'F';
			     n++)
				if (whatif->sends[n].from == schedule->works[i].stage)
					received[whatif->device[whatif->sends[n].to]] -=
						whatif->sends[n].bytes;
		for (int to = s + 1; to < whatif->stages; to++) {
			const int ipu = whatif->device[to];

			if (ipu == whatif->device[s] || received[ipu] <= 0)
				continue;
			whatif->sends[whatif->send_count++] =
				(struct ipu_send){s, to, received[ipu]};
			received[ipu] = 0;
		}
	}
	ipu_schedule_free(schedule);
	return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int reading_init(struct reading *reading)
{
	struct report_whatif *whatif = reading->whatif;
	const size_t stages = (size_t)whatif->stages, ipus = (size_t)whatif->ipus;

	whatif->device = arena_alloc(&whatif->arena, stages, sizeof(*whatif->device));
	whatif->streams = arena_alloc(&whatif->arena, stages, sizeof(*whatif->streams));
	reading->seen = arena_alloc(&whatif->arena, stages, sizeof(*reading->seen));
	reading->updated = arena_alloc(&whatif->arena, ipus, sizeof(*reading->updated));
	reading->time_step = arena_alloc(&whatif->arena, ipus, sizeof(*reading->time_step));
	reading->received = arena_alloc(&whatif->arena, stages * ipus, sizeof(int64_t));
	if (!whatif->device || !whatif->streams || !reading->seen || !reading->updated ||
	    !reading->time_step || !reading->received)
		return -1;
	for (size_t s = 0; s < stages; s++) {
		whatif->device[s] = -1;
		for (int f = 0; f < IPU_FUNCTION_PHASES; f++)
			reading->seen[s][f] = IPS_NULL;
	}
	return 0;
}

static enum status check_stages(const struct report_whatif *whatif, struct err *err)
{
	for (int s = 0; s < whatif->stages; s++)
		if (whatif->device[s] < 0)
			return err_set(err, ST_NOTFOUND,
				       "the execution trace has nothing of stage %d%s", s,
				       whatif->piece_count > 0
					       ? ""
					       : " (no execution was traced: "
						 "autoReport.executionProfileProgramRunCount)");
	return ST_OK;
}

enum status report__whatif_trace(struct report_whatif *whatif, struct prof_db *db, struct err *err)
{
	struct reading reading = {.whatif = whatif};
	enum status status = reading_init(&reading) ? err_nomem(err) : ST_OK;

	if (status == ST_OK)
		status = report__whatif_rows(whatif, db,
					     "SELECT operation, layer, kind FROM operations",
					     take_operation, &reading, err);
	if (status == ST_OK && reading.operation_count > 0)
		qsort(reading.operations, reading.operation_count, sizeof(*reading.operations),
		      compare_operations);
	if (status == ST_OK)
		status = report__whatif_rows(
			whatif, db,
			"SELECT program_id, parent_id, name, operation FROM programs "
			"ORDER BY program_id",
			take_program, &reading, err);
	if (status == ST_OK)
		status = report__whatif_rows(whatif, db, sql_steps, take_step, &reading, err);
	if (status == ST_OK)
		status = check_stages(whatif, err);
	if (status == ST_OK)
		status = find_sends(&reading, err);
	mem_free(reading.operations);
	return status;
}
