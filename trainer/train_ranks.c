/*
 * The layout of a stage's gradients and of an execution's results in pieces, and their exchange.
 *
 * Ownership: the session. Threading: see the header.
 */
#include "trainer/train_ranks.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "trainer/train_reduce.h"
#include "trainer/train_session.h"

#define ADDED 4096 /* counts per gather */

/* A range of a stage's gradients that is exchanged separately. */
struct train_bucket {
	const struct train_session *session;
	struct train_bucket_range range;
	struct train_branch *all; /* what this rank receives, by rank */
	float *received;
	struct ranks_pieces out, in, mean;
	struct ranks_reduction *reduction;
	_Atomic int arrived; /* replicas of this rank */
};

struct train_exchange {
	struct train_branch *branches;  /* of the replicas of all ranks, by rank */
	int *first;                     /* by rank: its first of them; one more: their number */
	const struct train_branch *own; /* what this rank sends */
	int own_count;
	struct train_bucket *buckets; /* from the stage's end on */
	int bucket_count;
	float *send;
	struct ranks_line line;
	struct ranks_pieces weights; /* with sharded optimizer state: the stage's updated weights */
	struct ips_site *exchange, *gather; /* of their spans */
};

/* Return the first of @rank's replicas. */
static int first_replica(const struct train_session *session, int rank)
{
	return (int)ranks_cut(session->ranks, (size_t)session->layout->replicas, rank);
}

/* ---- replicas by rank ------------------------------------------------------------------------ */

void train_ranks_share(struct train_session *session)
{
	const int rank = ranks_rank(session->ranks);

	session->first_replica = first_replica(session, rank);
	session->replicas = first_replica(session, rank + 1) - session->first_replica;
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* Return where, in @range of @stage, the slice that @rank sums begins. With sharded optimizer state
 * the slice is what the rank's replicas update. */
static size_t slice_at(const struct train_session *session, const struct train_stage *stage,
		       const struct train_bucket_range *range, int rank)
{
	size_t at;

	if (!session->sharded)
		return ranks_cut(session->ranks, range->count, rank);
	at = train_shard_offset(session, stage, first_replica(session, rank));
	return min(max(at, range->first), range->first + range->count) - range->first;
}

/* Called on the transport's thread, when the branches of all ranks have arrived. */
static void sum_slice(void *user)
{
	const struct train_bucket *bucket = user;
	const int rank = ranks_rank(bucket->session->ranks);
	const int replicas = bucket->session->layout->replicas;
	const size_t slice = (size_t)bucket->mean.words[rank];
	float *mine = (float *)bucket->mean.base + bucket->mean.at[rank];

	train_tree_sums(mine, bucket->all, 0, slice, replicas);
	train_tree_divide(mine, slice, replicas);
}

/* Return the first layer with weights in the range: its backward pass comes last. */
static int layer_of(const struct model *model, const struct train_stage *stage,
		    const struct train_bucket_range *range)
{
	const size_t from = stage->first_weight + range->first;
	int layer = stage->first_layer + stage->layer_count;

	for (int p = 0; p < model->param_count; p++)
		if (model->params[p].offset < from + range->count &&
		    model->params[p].offset + model->params[p].count > from)
			layer = min(layer, model->params[p].layer);
	return layer;
}

/* Set which branches each rank sends, and the offsets of its slices. */
static enum status bucket_new(struct train_exchange *e, struct train_bucket *bucket,
			      struct train_session *session, const struct train_stage *stage,
			      struct err *err)
{
	struct ranks *ranks = session->ranks;
	const int mine = ranks_rank(ranks), all = e->first[ranks_count(ranks)];
	const struct train_bucket_range *range = &bucket->range;
	const size_t own = (size_t)e->own_count, at = stage->first_weight + range->first;
	const size_t slice =
		slice_at(session, stage, range, mine + 1) - slice_at(session, stage, range, mine);
	const bool gathers = !session->sharded || optimizer_needs_whole_norm(&session->optimizer);
	const struct ranks_reduction_params params = {.line = &e->line,
						      .out = &bucket->out,
						      .in = &bucket->in,
						      .all = gathers ? &bucket->mean : NULL,
						      .sum = sum_slice,
						      .user = bucket};
	float *received;

	if (own * range->count > INT32_MAX || (size_t)all * slice > INT32_MAX)
		return err_set(err, ST_LIMIT,
			       "distribution.bucket_bytes: %zu weights of %d replicas cannot be "
			       "exchanged at once: set it to less",
			       range->count, session->layout->replicas);
	bucket->all = arena_alloc(&session->arena, (size_t)all, sizeof(*bucket->all));
	bucket->received = mem_aligned((size_t)(all - e->own_count) * slice + 1, sizeof(float));
	if (!bucket->all || !bucket->received ||
	    ranks_pieces_new(&bucket->out, ranks, e->send + own * range->first, err) != ST_OK ||
	    ranks_pieces_new(&bucket->in, ranks, bucket->received, err) != ST_OK ||
	    ranks_pieces_new(&bucket->mean, ranks, session->reduced + at, err) != ST_OK)
		return err_nomem(err);
	received = bucket->received;
	for (int r = 0; r < ranks_count(ranks); r++) {
		const size_t from = slice_at(session, stage, range, r);
		const size_t length = slice_at(session, stage, range, r + 1) - from;
		const size_t count = (size_t)(e->first[r + 1] - e->first[r]);
		/* A rank sums its own branches where they are. */
		const float *values = r == mine ? e->send + own * (range->first + from) : received;

		bucket->mean.words[r] = (int)length;
		bucket->mean.at[r] = (int)from;
		bucket->out.at[r] = (int)(own * from);
		bucket->in.at[r] = (int)(received - bucket->received);
		if (r != mine) {
			bucket->out.words[r] = (int)(own * length);
			bucket->in.words[r] = (int)(count * slice);
			received += count * slice;
		}
		for (int b = e->first[r]; b < e->first[r + 1]; b++, values += slice) {
			bucket->all[b] = e->branches[b];
			bucket->all[b].values = values;
		}
	}
	return ranks_reduction_new(&bucket->reduction, &params, err);
}

static enum status weights_new(struct train_exchange *e, const struct train_session *session,
			       const struct train_stage *stage, struct err *err)
{
	const struct train_bucket_range whole = {.count = stage->weight_count};

	if (ranks_pieces_new(&e->weights, session->ranks, session->reduced + stage->first_weight,
			     err) != ST_OK)
		return ST_NOMEM;
	if (stage->weight_count > INT32_MAX)
		return err_set(err, ST_LIMIT,
			       "a stage has %zu weights: more than %d cannot be shared out between "
			       "ranks; give the model more stages",
			       stage->weight_count, INT32_MAX);
	for (int r = 0; r < ranks_count(session->ranks); r++) {
		e->weights.at[r] = (int)slice_at(session, stage, &whole, r);
		e->weights.words[r] =
			(int)slice_at(session, stage, &whole, r + 1) - e->weights.at[r];
	}
	return ST_OK;
}

static enum status exchange_new(struct train_exchange *e, struct train_session *session,
				const struct train_stage *stage, struct err *err)
{
	const int ranks = ranks_count(session->ranks), mine = ranks_rank(session->ranks);
	const size_t weights = stage->weight_count;
	const size_t each = (size_t)session->run->distribution.bucket_bytes / sizeof(float);
	const size_t count = max((weights + each - 1) / each, 1);
	struct arena *arena = &session->arena;
	enum status status = ST_OK;

	e->branches = arena_alloc(arena, (size_t)ranks * TRAIN_BRANCHES, sizeof(*e->branches));
	e->first = arena_alloc(arena, (size_t)ranks + 1, sizeof(*e->first));
	e->buckets = arena_alloc(arena, count, sizeof(*e->buckets));
	e->exchange = ips_site_intern("mpi", "MPI_Ialltoallv", NULL);
	e->gather = ips_site_intern("mpi", "MPI_Iallgatherv", NULL);
	if (!e->branches || !e->first || !e->buckets || !e->exchange || !e->gather)
		return err_nomem(err);
	for (int r = 0; r < ranks; r++)
		e->first[r + 1] = e->first[r] + train_tree_branches(e->branches + e->first[r],
								    session->layout->replicas,
								    first_replica(session, r),
								    first_replica(session, r + 1));
	e->own = e->branches + e->first[mine];
	e->own_count = e->first[mine + 1] - e->first[mine];
	e->send = mem_aligned((size_t)e->own_count * weights + 1, sizeof(float));
	if (!e->send)
		return err_nomem(err);
	for (; (size_t)e->bucket_count < count && status == ST_OK; e->bucket_count++) {
		struct train_bucket *bucket = &e->buckets[e->bucket_count];
		const size_t left = count - 1 - (size_t)e->bucket_count;
		const size_t first = weights / count * left + weights % count * left / count;
		const size_t end =
			weights / count * (left + 1) + weights % count * (left + 1) / count;

		bucket->session = session;
		bucket->range = (struct train_bucket_range){.first = first, .count = end - first};
		bucket->range.layer = layer_of(session->model, stage, &bucket->range);
		status = bucket_new(e, bucket, session, stage, err);
	}
	return status == ST_OK ? weights_new(e, session, stage, err) : status;
}

enum status train_ranks_new(struct train_session *session, struct err *err)
{
	const int stages = session->layout->stages;
	enum status status = ranks_channels(session->ranks, 2 * stages + 1, err);

	session->branch =
		arena_alloc(&session->arena, (size_t)session->replicas, sizeof(*session->branch));
	if (!session->branch)
		return err_nomem(err);
	for (int r = 0; r < session->replicas; r++)
		session->branch[r] =
			(struct train_branch){.first = session->first_replica + r,
					      .count = 1,
					      .values = session->replica[r].accumulated};
	if (!session->ranks || status != ST_OK)
		return status;
	session->exchange =
		arena_alloc(&session->arena, (size_t)stages, sizeof(*session->exchange));
	if (!session->exchange)
		return err_nomem(err);
	for (int s = 0; s < stages && status == ST_OK; s++) {
		session->exchange[s].line.channel = 1 + 2 * s;
		status = exchange_new(&session->exchange[s], session, &session->replica[0].stage[s],
				      err);
	}
	return status;
}

void train_ranks_free(struct train_session *session)
{
	for (int s = 0; session->exchange && s < session->layout->stages; s++) {
		struct train_exchange *e = &session->exchange[s];

		for (int b = 0; b < e->bucket_count; b++) {
			struct train_bucket *bucket = &e->buckets[b];

			mem_free(bucket->received);
			ranks_pieces_fini(&bucket->out);
			ranks_pieces_fini(&bucket->in);
			ranks_pieces_fini(&bucket->mean);
			ranks_reduction_free(bucket->reduction);
		}
		mem_free(e->send);
		ranks_pieces_fini(&e->weights);
	}
}

int train_ranks_buckets(const struct train_session *session, int stage)
{
	return session->exchange[stage].bucket_count;
}

const struct train_bucket_range *train_ranks_bucket(const struct train_session *session, int stage,
						    int bucket)
{
	return &session->exchange[stage].buckets[bucket].range;
}

void train_ranks_arrive(struct train_session *session, int stage, int number)
{
	const struct train_exchange *e = &session->exchange[stage];
	struct train_bucket *bucket = &e->buckets[number];
	const size_t first_weight = session->replica[0].stage[stage].first_weight;
	float *to = bucket->out.base;

	if (atomic_fetch_add(&bucket->arrived, 1) + 1 < session->replicas)
		return;
	atomic_store(&bucket->arrived, 0);
	/* What this rank sends of the bucket lies by receiving rank, then by branch. */
	for (int r = 0; r < ranks_count(session->ranks); r++) {
		const size_t length = (size_t)bucket->mean.words[r];
		const size_t at = first_weight + bucket->range.first + (size_t)bucket->mean.at[r];

		for (int b = 0; b < e->own_count; b++, to += length)
			train_tree_sums(
				to, session->branch + (e->own[b].first - session->first_replica),
				at, length, e->own[b].count);
	}
	ranks_reduce(session->ranks, bucket->reduction);
}

/* The report `communication` reads these arguments: see reports/named/report_communication.h. */
static void begin_span(const struct train_session *session, struct ips_track *track,
		       struct ips_site *site, const struct ranks_pieces *pieces, bool all)
{
	const int ranks = ranks_count(session->ranks), mine = ranks_rank(session->ranks);
	int64_t words = 0; /* sent to other ranks */

	for (int r = 0; r < ranks; r++)
		words += r == mine ? 0 : pieces->words[all ? mine : r];
	ips_span_begin(track, site);
	ips_span_arg_int(track, "bytes", words * (int64_t)sizeof(float));
	ips_span_arg_int(track, "ranks", ranks);
}

static void end_span(struct ips_track *track, size_t words)
{
	ips_span_arg_int(track, "size", (int64_t)(words * sizeof(float)));
	ips_span_end(track);
}

/* Record an operation that lasted from @from to @to. It was waited for since @waits, but in its own
 * span only since @begun: earlier buckets had their spans in between. */
static void record_operation(struct ips_track *track, int bucket, uint64_t from, uint64_t to,
			     uint64_t waits, uint64_t begun)
{
	const uint64_t until = min(to, waits);

	ips_span_arg_int(track, "bucket", bucket);
	ips_span_arg_int(track, "hidden_ns", until > from ? (int64_t)(until - from) : 0);
	ips_span_arg_int(track, "before_ns", (int64_t)begun - (int64_t)from);
	ips_span_arg_int(track, "length_ns", (int64_t)to - (int64_t)from);
}

void train_ranks_wait(struct train_session *session, int stage, struct ips_track *track)
{
	const struct train_exchange *e = &session->exchange[stage];
	const uint64_t waits = clock_ns();
	uint64_t begun;

	for (int b = 0; b < e->bucket_count; b++) {
		const struct train_bucket *bucket = &e->buckets[b];
		const struct ranks_times *times;

		begun = clock_ns();
		begin_span(session, track, e->exchange, &bucket->out, false);
		times = ranks_reduce_summed(session->ranks, bucket->reduction);
		record_operation(track, b, times->begun_ns, times->exchanged_ns, waits, begun);
		end_span(track, (size_t)e->own_count * bucket->range.count);
		if (session->sharded && !optimizer_needs_whole_norm(&session->optimizer)) {
			ranks_reduce_wait(session->ranks, bucket->reduction);
			continue;
		}
		begun = clock_ns();
		begin_span(session, track, e->gather, &bucket->mean, true);
		ranks_reduce_wait(session->ranks, bucket->reduction);
		record_operation(track, b, times->summed_ns, times->ended_ns, waits, begun);
		end_span(track, bucket->range.count);
	}
}

void train_ranks_gather(struct train_session *session, int stage, struct ips_track *track)
{
	const struct train_exchange *e = &session->exchange[stage];

	begin_span(session, track, e->gather, &e->weights, true);
	ranks_gather(session->ranks, e->line.channel + 1, &e->weights);
	end_span(track, session->replica[0].stage[stage].weight_count);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Broadcast the error of rank @from to all ranks' @err. @status: this rank's. */
static enum status share_failure(struct ranks *ranks, int from, enum status status, struct err *err)
{
	struct err failure = {.status = status};
	struct ranks_pieces pieces = {0};

	str_copy(failure.text, sizeof(failure.text),
		 err->text[0] ? err->text : status_text(status));
	if (ranks_pieces_new(&pieces, ranks, &failure, err) == ST_OK) {
		pieces.words[from] = sizeof(failure) / sizeof(int32_t);
		ranks_gather(ranks, 0, &pieces);
		err_set(err, failure.status, "%s", failure.text);
		if (from > 0)
			err_prefix(err, "rank %d", from);
	}
	ranks_pieces_fini(&pieces);
	return err->status;
}

/* ---- results --------------------------------------------------------------------------------- */

/* What a rank sends about itself at an execution's end, before its results. */
enum {
	SAYS_INTERRUPTED,
	SAYS_STATUS,
	SAYS
};

/* Copy the results of @rank's replicas, step by step, to or (@in) from @at. */
static void copy_rank(const struct train_session *session, int rank, double *at, bool in)
{
	const struct train_execution *execution = &session->execution;
	const int first = first_replica(session, rank), end = first_replica(session, rank + 1);
	const int64_t states = execution->program->metrics.states;

	for (int64_t step = 0; step < execution->steps; step++) {
		for (int r = first; r < end; r++, at += 1 + states) {
			const int64_t place = step * session->layout->replicas + r;
			double *mine = execution->sums + place * states;

			if (in) {
				execution->losses[place] = *at;
				memcpy(mine, at + 1, (size_t)states * sizeof(*at));
			} else {
				*at = execution->losses[place];
				memcpy(at + 1, mine, (size_t)states * sizeof(*at));
			}
		}
	}
}

/* Gather the outputs of a prediction step by step: in each a rank's replicas are contiguous. */
static enum status gather_outputs(const struct train_session *session, struct ranks_pieces *pieces,
				  struct err *err)
{
	const struct train_execution *execution = &session->execution;
	const int replicas = session->layout->replicas, ranks = ranks_count(session->ranks);
	const size_t width = execution->output_floats;

	if (width * (size_t)replicas > INT32_MAX)
		return err_set(err, ST_LIMIT,
			       "a step's predictions are too large to be gathered from ranks");
	for (int r = 0; r < ranks; r++) {
		pieces->at[r] = (int)(width * (size_t)first_replica(session, r));
		pieces->words[r] =
			(int)(width * (size_t)first_replica(session, r + 1)) - pieces->at[r];
	}
	for (int64_t step = 0; step < execution->steps; step++) {
		pieces->base = execution->outputs + (size_t)step * width * (size_t)replicas;
		ranks_gather(session->ranks, 0, pieces);
	}
	return ST_OK;
}

static enum status gather_results(struct train_session *session, enum status status,
				  struct ranks_pieces *pieces, struct err *err)
{
	const struct train_execution *execution = &session->execution;
	const int replicas = session->layout->replicas, ranks = ranks_count(session->ranks);
	const int mine = ranks_rank(session->ranks);
	const int64_t each = execution->outputs
				     ? 0
				     : execution->steps * (1 + execution->program->metrics.states);
	const int64_t words = (each * replicas + (int64_t)SAYS * ranks) * 2;
	double *values, *own;
	int failed = -1;

	if (words > INT32_MAX)
		return err_set(err, ST_LIMIT,
			       "the results of an execution are too many for ranks: use a "
			       "smaller compile.steps_per_execution");
	for (int r = 0; r < ranks; r++) {
		const int64_t at = each * first_replica(session, r) + (int64_t)SAYS * r;
		const int64_t end = each * first_replica(session, r + 1) + (int64_t)SAYS * (r + 1);

		pieces->at[r] = (int)at * 2;
		pieces->words[r] = (int)(end - at) * 2;
	}
	values = mem_calloc((size_t)words / 2, sizeof(*values));
	if (!values)
		return err_nomem(err);
	own = values + pieces->at[mine] / 2;
	own[SAYS_INTERRUPTED] = train_interrupted();
	own[SAYS_STATUS] = (double)status;
	if (!execution->outputs)
		copy_rank(session, mine, own + SAYS, false);
	pieces->base = values;
	ranks_gather(session->ranks, 0, pieces);
	for (int r = 0; r < ranks; r++) {
		double *reported = values + pieces->at[r] / 2;

		session->interrupted = session->interrupted || reported[SAYS_INTERRUPTED] != 0.0;
		if (reported[SAYS_STATUS] != (double)ST_OK && failed < 0)
			failed = r;
		if (!execution->outputs && r != mine)
			copy_rank(session, r, reported + SAYS, true);
	}
	mem_free(values);
	session->together = failed >= 0;
	if (failed < 0)
		return status;
	train_stop_ask(&session->stop_early);
	return share_failure(session->ranks, failed, status, err);
}

enum status train_ranks_results(struct train_session *session, enum status status, struct err *err)
{
	struct ranks_pieces pieces = {0};

	if (!session->ranks)
		return status;
	if (ranks_pieces_new(&pieces, session->ranks, NULL, err) != ST_OK)
		status = ST_NOMEM;
	else
		status = gather_results(session, status, &pieces, err);
	if (status == ST_OK && session->execution.outputs)
		status = gather_outputs(session, &pieces, err);
	ranks_pieces_fini(&pieces);
	return status;
}

/* ---- agreement ------------------------------------------------------------------------------- */

/* Gather @each words of every rank, in order of ranks. NULL: out of memory. */
static uint64_t *gather_rows(struct ranks *ranks, const void *row, size_t each)
{
	const int count = ranks_count(ranks);
	struct ranks_pieces pieces = {0};
	uint64_t *words = mem_calloc((size_t)count * each, sizeof(*words));
	struct err ignored;

	if (words && ranks_pieces_new(&pieces, ranks, words, &ignored) == ST_OK) {
		for (int r = 0; r < count; r++) {
			pieces.words[r] = 2 * (int)each;
			pieces.at[r] = 2 * (int)each * r;
		}
		memcpy(words + (size_t)ranks_rank(ranks) * each, row, each * sizeof(*words));
		ranks_gather(ranks, 0, &pieces);
	} else {
		mem_free(words);
		words = NULL;
	}
	ranks_pieces_fini(&pieces);
	return words;
}

static uint64_t *gather_words(struct ranks *ranks, uint64_t word)
{
	return gather_rows(ranks, &word, 1);
}

enum status train_ranks_add(struct ranks *ranks, int64_t *counts, size_t count, struct err *err)
{
	for (size_t at = 0, each; ranks && at < count; at += each) {
		uint64_t *rows;

		each = min(count - at, (size_t)ADDED);
		rows = gather_rows(ranks, counts + at, each);
		if (!rows)
			return err_nomem(err);
		for (size_t i = 0; i < each; i++)
			counts[at + i] = 0;
		for (int r = 0; r < ranks_count(ranks); r++)
			for (size_t i = 0; i < each; i++)
				counts[at + i] += (int64_t)rows[(size_t)r * each + i];
		mem_free(rows);
	}
	return ST_OK;
}

enum status train_ranks_agree(struct ranks *ranks, enum status status, bool *others,
			      struct err *err)
{
	uint64_t *statuses;
	int failed = -1;

	if (!ranks)
		return status;
	statuses = gather_words(ranks, status == ST_OK ? 0 : 1);
	if (!statuses)
		return err_nomem(err);
	for (int r = 0; r < ranks_count(ranks) && failed < 0; r++)
		failed = statuses[r] ? r : -1;
	mem_free(statuses);
	/* If all ranks have found the same error, only one line is printed. */
	if (others)
		*others = failed >= 0 && ranks_rank(ranks) > 0;
	return failed < 0 ? status : share_failure(ranks, failed, status, err);
}

enum status train_ranks_fail_together(struct train_session *session, enum status status,
				      struct err *err)
{
	status = train_ranks_agree(session->ranks, status, NULL, err);
	session->together = session->together || status != ST_OK;
	return status;
}

enum status train_ranks_clock(struct ranks *ranks, struct train_clock *out, struct err *err)
{
	struct clock_offset offset = CLOCK_OFFSET_UNKNOWN;

	*out = (struct train_clock){0, 0};
	for (int meeting = 0; ranks && meeting < CLOCK_MEETINGS; meeting++) {
		int64_t own[2] = {clock_epoch_ns()}, first[2];
		uint64_t *begins = gather_words(ranks, 0);

		mem_free(begins);
		if (!begins)
			return err_nomem(err);
		own[1] = clock_epoch_ns();
		memcpy(first, own, sizeof(first));
		ranks_broadcast(ranks, 0, first, sizeof(first));
		clock_offset_meet(&offset, own, first);
	}
	if (ranks_rank(ranks) > 0)
		*out = (struct train_clock){clock_offset_ns(&offset),
					    clock_offset_bound_ns(&offset)};
	return ST_OK;
}

enum status train_ranks_same(struct ranks *ranks, const char *text, bool *others, struct err *err)
{
	uint64_t *digests;
	int other = -1;

	if (!ranks)
		return ST_OK;
	digests = gather_words(ranks, XXH3_64bits(text, strlen(text)));
	if (!digests)
		return err_nomem(err);
	for (int r = 1; r < ranks_count(ranks) && other < 0; r++)
		other = digests[r] != digests[0] ? r : -1;
	mem_free(digests);
	if (other < 0)
		return ST_OK;
	*others = ranks_rank(ranks) > 0;
	return err_set(
		err, ST_INVALID,
		"rank %d has another run than rank 0: all ranks need the same run file, options, "
		"data and version of ipu-train",
		other);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

#define SHARED_BYTES (1u << 30) /* per broadcast */

enum status train_ranks_share_bytes(struct ranks *ranks, char **bytes, size_t *length,
				    struct err *err)
{
	uint64_t *lengths, length_sent;
	enum status status;
	size_t all, even;
	char last[4] = {0};

	if (!ranks)
		return ST_OK;
	lengths = gather_words(ranks, *bytes ? *length + 1 : 0);
	if (!lengths)
		return err_nomem(err);
	length_sent = lengths[0];
	mem_free(lengths);
	if (length_sent == 0)
		return ST_OK;
	all = length_sent - 1;
	even = all / 4 * 4;
	if (!*bytes)
		*bytes = mem_alloc(all + 1);
	status = train_ranks_agree(ranks, *bytes ? ST_OK : err_nomem(err), NULL, err);
	if (status != ST_OK)
		return status;
	*length = all;
	for (size_t at = 0; at < even; at += SHARED_BYTES)
		ranks_broadcast(ranks, 0, *bytes + at, min(even - at, (size_t)SHARED_BYTES));
	memcpy(last, *bytes + even, all - even);
	ranks_broadcast(ranks, 0, last, sizeof(last));
	memcpy(*bytes + even, last, all - even);
	return ST_OK;
}

enum status train_ranks_collect(struct ranks *ranks, const void *bytes, size_t length,
				void (*take)(void *user, const void *bytes, size_t length),
				void *user, struct err *err)
{
	const int count = ranks_count(ranks), mine = ranks_rank(ranks);
	struct ranks_pieces out = {0}, in = {0};
	enum status status = ST_NOMEM;
	uint64_t *lengths, most = 0;
	char *data = NULL;
	struct err own;

	if (!ranks)
		return ST_OK;
	err = err_start(err, &own);
	lengths = gather_words(ranks, length);
	for (int r = 1; lengths && r < count; r++)
		most = max(most, lengths[r]);
	if (lengths && ranks_pieces_new(&out, ranks, NULL, err) == ST_OK &&
	    ranks_pieces_new(&in, ranks, NULL, err) == ST_OK)
		data = mem_alloc((mine == 0 ? (size_t)most : length) + sizeof(int32_t));
	if (data)
		status = most / 4 < INT32_MAX
				 ? ST_OK
				 : err_set(err, ST_LIMIT,
					   "%" PRIu64 " bytes of a rank are too many", most);
	else
		err_nomem(err);
	status = train_ranks_agree(ranks, status, NULL, err);
	if (status == ST_OK && mine > 0 && length > 0)
		memcpy(data, bytes, length);
	/* Use different addresses even if nothing is sent or received: Open MPI takes equal ones
	 * for an in-place exchange. */
	out.base = mine == 0 ? (void *)out.words : data;
	in.base = mine == 0 ? data : (void *)in.words;
	for (int r = 1; r < count && status == ST_OK; r++) {
		const int words = (int)((lengths[r] + 3) / 4);

		if (words == 0)
			continue;
		out.words[0] = mine == r ? words : 0;
		in.words[r] = mine == 0 ? words : 0;
		ranks_exchange(ranks, 0, &out, &in);
		out.words[0] = in.words[r] = 0;
		if (mine == 0)
			take(user, data, (size_t)lengths[r]);
	}
	mem_free(data);
	mem_free(lengths);
	ranks_pieces_fini(&out);
	ranks_pieces_fini(&in);
	return status;
}

void train_ranks_weights(struct train_session *session, float *weights)
{
	ranks_broadcast(session->ranks, 0, weights, session->model->weights * sizeof(*weights));
}
