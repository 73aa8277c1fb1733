/*
 * Pieces of a stage's gradients and of an execution's results, and what is done with them.
 *
 * Ownership: the session's. Threading: as the header says.
 */
#include "trainer/train_ranks.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "trainer/train_phase.h"
#include "trainer/train_reduce.h"
#include "trainer/train_session.h"
#include "trainer/train_shard.h"

struct train_exchange {
	struct train_branch own[TRAIN_BRANCHES]; /* what this rank sends */
	int own_count;
	struct train_branch *all; /* what it gets, by rank */
	int all_count;
	float *send, *received;
	struct ranks_pieces out, in, mean;
	struct ips_site *exchange, *gather; /* of their spans */
};

/* The first of @rank's replicas. */
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

/* Where the slice of @stage that @rank sums begins: with sharded optimizer state, what its replicas
 * update. */
static size_t slice_at(const struct train_session *session, const struct train_stage *stage,
		       int rank)
{
	return session->sharded ? train_shard_at(session, stage, first_replica(session, rank))
				: ranks_cut(session->ranks, stage->weight_count, rank);
}

/* Which branches each rank sends, and where a slice of them begins. */
static void lay_out(const struct train_session *session, struct train_exchange *e,
		    const struct train_stage *stage)
{
	const int ranks = ranks_count(session->ranks), mine = ranks_rank(session->ranks);
	const int replicas = session->layout->replicas;
	const size_t slice = slice_at(session, stage, mine + 1) - slice_at(session, stage, mine);
	struct train_branch branches[TRAIN_BRANCHES];
	size_t in = 0;

	for (int r = 0; r < ranks; r++) {
		const size_t from = slice_at(session, stage, r),
			     to = slice_at(session, stage, r + 1);
		const int count = train_tree_branches(branches, replicas, first_replica(session, r),
						      first_replica(session, r + 1));

		e->out.words[r] = (int)((size_t)e->own_count * (to - from));
		e->out.at[r] = (int)((size_t)e->own_count * from);
		e->mean.words[r] = (int)(to - from);
		e->mean.at[r] = (int)from;
		e->in.words[r] = (int)((size_t)count * slice);
		e->in.at[r] = (int)in;
		for (int b = 0; b < count; b++, in += slice) {
			e->all[e->all_count] = branches[b];
			e->all[e->all_count++].values = e->received + in;
		}
	}
}

static int count_branches(const struct train_session *session)
{
	const int ranks = ranks_count(session->ranks), replicas = session->layout->replicas;
	struct train_branch branches[TRAIN_BRANCHES];
	int all = 0;

	for (int r = 0; r < ranks; r++)
		all += train_tree_branches(branches, replicas, first_replica(session, r),
					   first_replica(session, r + 1));
	return all;
}

static enum status exchange_new(struct train_exchange *e, const struct train_session *session,
				const struct train_stage *stage, struct err *err)
{
	const size_t weights = stage->weight_count;
	float *reduced = session->reduced + stage->first_weight;
	const int all = count_branches(session), mine = ranks_rank(session->ranks);
	const size_t slice = slice_at(session, stage, mine + 1) - slice_at(session, stage, mine);

	e->own_count =
		train_tree_branches(e->own, session->layout->replicas, session->first_replica,
				    session->first_replica + session->replicas);
	if ((size_t)e->own_count * weights > INT32_MAX || (size_t)all * slice > INT32_MAX)
		return err_set(err, ST_LIMIT,
			       "a stage has %zu weights: more than %d cannot be exchanged between "
			       "ranks; give "
			       "the model more stages",
			       weights, INT32_MAX);
	e->all = mem_calloc((size_t)all, sizeof(*e->all));
	e->send = mem_aligned((size_t)e->own_count * weights + 1, sizeof(float));
	e->received = mem_aligned((size_t)all * slice + 1, sizeof(float));
	if (!e->all || !e->send || !e->received ||
	    ranks_pieces_new(&e->out, session->ranks, e->send, err) != ST_OK ||
	    ranks_pieces_new(&e->in, session->ranks, e->received, err) != ST_OK ||
	    ranks_pieces_new(&e->mean, session->ranks, reduced, err) != ST_OK)
		return err_nomem(err);
	lay_out(session, e, stage);
	e->exchange = ips_site_intern("mpi", "MPI_Ialltoallv", NULL);
	e->gather = ips_site_intern("mpi", "MPI_Iallgatherv", NULL);
	return e->exchange && e->gather ? ST_OK : err_nomem(err);
}

enum status train_ranks_new(struct train_session *session, struct err *err)
{
	const int stages = session->layout->stages;
	enum status status = ranks_channels(session->ranks, stages + 1, err);

	session->branch = mem_calloc((size_t)session->replicas, sizeof(*session->branch));
	if (!session->branch)
		return err_nomem(err);
	for (int r = 0; r < session->replicas; r++)
		session->branch[r] =
			(struct train_branch){.first = session->first_replica + r,
					      .count = 1,
					      .values = session->replica[r].accumulated};
	if (!session->ranks || status != ST_OK)
		return status;
	session->exchange = mem_calloc((size_t)stages, sizeof(*session->exchange));
	if (!session->exchange)
		return err_nomem(err);
	for (int s = 0; s < stages && status == ST_OK; s++)
		status = exchange_new(&session->exchange[s], session, &session->replica[0].stage[s],
				      err);
	return status;
}

void train_ranks_free(struct train_session *session)
{
	mem_free(session->branch);
	for (int s = 0; session->exchange && s < session->layout->stages; s++) {
		struct train_exchange *e = &session->exchange[s];

		mem_free(e->all);
		mem_free(e->send);
		mem_free(e->received);
		ranks_pieces_fini(&e->out);
		ranks_pieces_fini(&e->in);
		ranks_pieces_fini(&e->mean);
	}
	mem_free(session->exchange);
}

void train_ranks_sum(struct train_session *session, int stage, size_t share, size_t shares)
{
	const struct train_exchange *e = &session->exchange[stage];
	const struct train_stage *of = &session->replica[0].stage[stage];
	const size_t first = of->weight_count * share / shares;
	const size_t last = of->weight_count * (share + 1) / shares;

	for (int r = 0; r < ranks_count(session->ranks); r++) {
		const size_t begin = (size_t)e->mean.at[r], length = (size_t)e->mean.words[r];
		const size_t from = max(first, begin), to = min(last, begin + length);

		for (int b = 0; b < e->own_count && from < to; b++)
			train_tree_sums(
				e->send + e->out.at[r] + (size_t)b * length + (from - begin),
				session->branch + (e->own[b].first - session->first_replica),
				of->first_weight + from, to - from, e->own[b].count);
	}
}

/* Bytes that go to other ranks. */
static int64_t bytes_sent(const struct train_session *session, const struct ranks_pieces *pieces,
			  bool all)
{
	const int ranks = ranks_count(session->ranks), mine = ranks_rank(session->ranks);
	int64_t words = 0;

	for (int r = 0; r < ranks; r++)
		words += r == mine ? 0 : pieces->words[all ? mine : r];
	return words * (int64_t)sizeof(float);
}

/* What the report `communication` reads: see reports/named/report_communication.h. */
static void begin_span(const struct train_session *session, struct ips_track *track,
		       struct ips_site *site, const struct ranks_pieces *pieces, bool all)
{
	const int ranks = ranks_count(session->ranks);
	int64_t words = 0;

	if (!track || !site)
		return;
	for (int r = 0; r < ranks; r++)
		words += pieces->words[r];
	ips_span_begin(track, site);
	ips_span_arg_int(track, "bytes", bytes_sent(session, pieces, all));
	ips_span_arg_int(track, "size", words * (int64_t)sizeof(float));
	ips_span_arg_int(track, "ranks", ranks);
}

static void end_span(struct ips_track *track, const struct ips_site *site)
{
	if (track && site)
		ips_span_end(track);
}

void train_ranks_gather(struct train_session *session, int stage, struct ips_track *track)
{
	const struct train_exchange *e = &session->exchange[stage];

	begin_span(session, track, e->gather, &e->mean, true);
	ranks_gather(session->ranks, stage + 1, &e->mean);
	end_span(track, e->gather);
}

void train_ranks_reduce(struct train_session *session, int stage, struct ips_track *track)
{
	const struct train_exchange *e = &session->exchange[stage];
	const int rank = ranks_rank(session->ranks), replicas = session->layout->replicas;
	const size_t slice = (size_t)e->mean.words[rank];
	float *mine = (float *)e->mean.base + e->mean.at[rank];

	begin_span(session, track, e->exchange, &e->out, false);
	ranks_exchange(session->ranks, stage + 1, &e->out, &e->in);
	end_span(track, e->exchange);
	train_tree_sums(mine, e->all, 0, slice, replicas);
	train_tree_divide(mine, slice, replicas);
	if (!session->sharded || optimizer_needs_whole_norm(&session->optimizer))
		train_ranks_gather(session, stage, track);
}

/* ---- results --------------------------------------------------------------------------------- */

/* What a rank says of itself at an execution's end, before its results. */
enum {
	SAYS_STOP,
	SAYS_INTERRUPTED,
	SAYS_STATUS,
	SAYS
};

/* Results of replica @r in step @step, from or to @at; returns where the next ones are. */
static double *copy_results(struct train_phase *phase, int64_t step, int64_t r, double *at, bool in)
{
	const int64_t place = step * phase->session->layout->replicas + r;
	const int64_t states = phase->measure->metrics.states;
	double *mine = phase->sums + place * states;

	if (in)
		phase->losses[place] = *at;
	else
		*at = phase->losses[place];
	if (in)
		memcpy(mine, at + 1, (size_t)states * sizeof(*at));
	else
		memcpy(at + 1, mine, (size_t)states * sizeof(*at));
	return at + 1 + states;
}

static void copy_rank(struct train_phase *phase, int rank, double *at, bool in)
{
	const struct train_session *session = phase->session;

	for (int64_t step = 0; step < session->execution.steps; step++)
		for (int r = first_replica(session, rank); r < first_replica(session, rank + 1);
		     r++)
			at = copy_results(phase, step, r, at, in);
}

/* Outputs of a prediction, step by step: a rank's replicas lie together in each. */
static enum status gather_outputs(struct train_phase *phase, struct ranks_pieces *pieces,
				  struct err *err)
{
	const struct train_session *session = phase->session;
	const int replicas = session->layout->replicas, ranks = ranks_count(session->ranks);
	const size_t width = train_phase_output_floats(phase);

	if (width * (size_t)replicas > INT32_MAX)
		return err_set(err, ST_LIMIT,
			       "a step's predictions are too large to be gathered from ranks");
	for (int r = 0; r < ranks; r++) {
		pieces->at[r] = (int)(width * (size_t)first_replica(session, r));
		pieces->words[r] =
			(int)(width * (size_t)first_replica(session, r + 1)) - pieces->at[r];
	}
	for (int64_t step = 0; step < session->execution.steps; step++) {
		pieces->base = phase->outputs + (size_t)step * width * (size_t)replicas;
		ranks_gather(session->ranks, 0, pieces);
	}
	return ST_OK;
}

static enum status gather_results(struct train_phase *phase, enum status status,
				  struct ranks_pieces *pieces, struct err *err)
{
	struct train_session *session = phase->session;
	const int replicas = session->layout->replicas, ranks = ranks_count(session->ranks);
	const int mine = ranks_rank(session->ranks);
	const int64_t each =
		phase->outputs ? 0
			       : session->execution.steps * (1 + phase->measure->metrics.states);
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
	own[SAYS_STOP] = train_stop_asked(&session->stop_early);
	own[SAYS_INTERRUPTED] = train_interrupted();
	own[SAYS_STATUS] = (double)status;
	if (!phase->outputs)
		copy_rank(phase, mine, own + SAYS, false);
	pieces->base = values;
	ranks_gather(session->ranks, 0, pieces);
	for (int r = 0; r < ranks; r++) {
		double *said = values + pieces->at[r] / 2;

		if (said[SAYS_STOP] != 0.0)
			train_stop_ask(&session->stop_early);
		session->interrupted = session->interrupted || said[SAYS_INTERRUPTED] != 0.0;
		if (said[SAYS_STATUS] != (double)ST_OK && failed < 0)
			failed = r;
		if (!phase->outputs && r != mine)
			copy_rank(phase, r, said + SAYS, true);
	}
	mem_free(values);
	session->together = failed >= 0 || train_stop_asked(&session->stop_early);
	if (failed >= 0 && status == ST_OK)
		return err_set(err, ST_FAILED, "rank %d failed", failed);
	return status;
}

enum status train_ranks_results(struct train_phase *phase, enum status status, struct err *err)
{
	struct ranks_pieces pieces = {0};

	if (!phase->session->ranks)
		return status;
	if (ranks_pieces_new(&pieces, phase->session->ranks, NULL, err) != ST_OK)
		status = ST_NOMEM;
	else
		status = gather_results(phase, status, &pieces, err);
	if (status == ST_OK && phase->outputs)
		status = gather_outputs(phase, &pieces, err);
	ranks_pieces_fini(&pieces);
	return status;
}

/* ---- all go on ------------------------------------------------------------------------------- */

/* By rank, in all ranks: what each of them says. NULL: out of memory. */
static uint64_t *gather_words(struct ranks *ranks, uint64_t word)
{
	const int count = ranks_count(ranks);
	struct ranks_pieces pieces = {0};
	uint64_t *words = mem_calloc((size_t)count, sizeof(*words));
	struct err ignored;

	if (words && ranks_pieces_new(&pieces, ranks, words, &ignored) == ST_OK) {
		for (int r = 0; r < count; r++) {
			pieces.words[r] = 2;
			pieces.at[r] = 2 * r;
		}
		words[ranks_rank(ranks)] = word;
		ranks_gather(ranks, 0, &pieces);
	} else {
		mem_free(words);
		words = NULL;
	}
	ranks_pieces_fini(&pieces);
	return words;
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
	/* One line for what all ranks have found wrong: the first one's. */
	*others = failed >= 0 && failed != ranks_rank(ranks);
	if (failed >= 0 && status == ST_OK)
		return err_set(err, ST_FAILED, "rank %d failed", failed);
	return status;
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

#define SHARED_BYTES (1u << 30) /* at once */

enum status train_ranks_share_bytes(struct ranks *ranks, char **bytes, size_t *length,
				    struct err *err)
{
	uint64_t *lengths, said;
	size_t all, even;
	char last[4] = {0};
	bool others;

	if (!ranks)
		return ST_OK;
	lengths = gather_words(ranks, *bytes ? *length + 1 : 0);
	said = lengths ? lengths[0] : 1;
	mem_free(lengths);
	if (said == 0)
		return ST_OK;
	all = said - 1;
	even = all / 4 * 4;
	if (!*bytes)
		*bytes = mem_alloc(all + 1);
	if (train_ranks_agree(ranks, *bytes ? ST_OK : err_nomem(err), &others, err) != ST_OK)
		return ST_FAILED;
	*length = all;
	for (size_t at = 0; at < even; at += SHARED_BYTES)
		ranks_broadcast(ranks, 0, *bytes + at, min(even - at, (size_t)SHARED_BYTES));
	memcpy(last, *bytes + even, all - even);
	ranks_broadcast(ranks, 0, last, sizeof(last));
	memcpy(*bytes + even, last, all - even);
	return ST_OK;
}

/* Rank @from's @words, from the place of @out to that of rank 0's @in. */
static void send_words(struct ranks *ranks, int from, int words, struct ranks_pieces *out,
		       struct ranks_pieces *in)
{
	const int mine = ranks_rank(ranks);

	out->words[0] = mine == from ? words : 0;
	in->words[from] = mine == 0 ? words : 0;
	ranks_exchange(ranks, 0, out, in);
	out->words[0] = in->words[from] = 0;
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
	bool others;

	if (!ranks)
		return ST_OK;
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
	status = train_ranks_agree(ranks, status, &others, err);
	if (status == ST_OK && mine > 0 && length > 0)
		memcpy(data, bytes, length);
	/* Where nothing is sent or got, another place: Open MPI takes equal ones for an exchange in
	 * place. */
	out.base = mine == 0 ? (void *)out.words : data;
	in.base = mine == 0 ? data : (void *)in.words;
	for (int r = 1; r < count && status == ST_OK; r++) {
		send_words(ranks, r, (int)((lengths[r] + 3) / 4), &out, &in);
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
