/*
 * More instances: the recorded training on other numbers of ranks, each with a link to a network.
 *
 * The model is LogGP's (Alexandrov et al., 1995): a message of k bytes takes its sender and its
 * receiver o each, occupies a link for k G, and arrives L later; messages of a rank follow each
 * other after the longer of 2 o (one thread sends and receives) and k G. An exchange or a gather of
 * n ranks is n - 1 messages in each direction. The recording says when the buckets of a weight
 * update are ready and how long they are summed; all ranks are alike, so one of them is followed.
 *
 * Times of an update count from the end of the one before, which all ranks see at once.
 *
 * Threading: any thread after reading. Ownership: the recording's arena.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/tree.h"
#include "reports/whatif/report_whatif_internal.h"

#define BUCKETS_MOST 4096
#define RANKS_MOST   65536
#define TCP_SHARE    (1448.0 / 1538.0) /* of Ethernet's 1,500-byte frames, their gaps included */
#define EAGER_BYTES  65536             /* Open MPI announces larger messages first */
#define SUM_BYTES_NS 5.0               /* assumed for one process, and said so */
#define OVERHEAD_NS  1000.0

/* ---- the network ----------------------------------------------------------------------------- */

struct unit {
	const char *name;
	double factor;
};

/* Parse a number with a unit, up to a comma or the end; move *@text behind it. */
static bool parse_measure(const char **text, const struct unit *units, size_t count, double *out)
{
	const size_t length = strcspn(*text, ",");
	char *end;
	const double value = strtod(*text, &end);
	const char *unit = end;

	if (end == *text || !isfinite(value) || value < 0 || (size_t)(end - *text) > length)
		return false;
	for (size_t i = 0; i < count; i++)
		if (strlen(units[i].name) == length - (size_t)(unit - *text) &&
		    strncmp(units[i].name, unit, strlen(units[i].name)) == 0) {
			*out = value * units[i].factor;
			*text += length + ((*text)[length] == ',');
			return true;
		}
	return false;
}

enum status report_whatif_network_parse(struct report_whatif_network *out, const char *text,
					struct err *err)
{
	static const struct unit rates[] = {
		{"bit", 1e-9}, {"kbit", 1e-6}, {"Mbit", 1e-3}, {"Gbit", 1}, {"Tbit", 1e3}};
	static const struct unit times[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	const char *at = text;

	bool known;

	*out = (struct report_whatif_network){.overhead_ns = OVERHEAD_NS};
	out->recorded = strncmp(text, "recorded", 8) == 0 && (text[8] == ',' || !text[8]);
	if (out->recorded)
		at += 8 + (text[8] == ',');
	known = out->recorded || (parse_measure(&at, rates, ARRAY_LEN(rates), &out->bits_ns) &&
				  out->bits_ns > 0 && *at);
	known = known && (!*at || parse_measure(&at, times, ARRAY_LEN(times), &out->latency_ns));
	known = known && (!*at || parse_measure(&at, times, ARRAY_LEN(times), &out->overhead_ns));
	if (!known || *at)
		return err_set(
			err, ST_INVALID,
			"--network: \"%s\" is not a bandwidth (bit, kbit, Mbit, Gbit, Tbit; or "
			"\"recorded\") and a latency (ns, us, ms, s), as in 25Gbit,20us, with or "
			"without the time that a message takes its sender (25Gbit,20us,1us)",
			text);
	return ST_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

enum row_kind {
	ROW_EXCHANGE, /* of a bucket */
	ROW_GATHER,
	ROW_SHARES, /* the gather of updated weights, with sharded optimizer state */
	ROW_LAYER,  /* one process: a layer's last backward pass */
	ROW_UPDATE  /* and the weight update of a stage */
};

struct row {
	int64_t execution, update, rank, stage;
	double begun_ns; /* the execution */
	enum row_kind kind;
	int64_t bucket;
	const char *layer;
	double start, end, size, before, length;
};

struct reading {
	struct report_whatif *whatif;
	struct err *err; /* sticky: every step returns at once after a failure */
	struct whatif_ranks *into;
	int *layers; /* one process, by bucket: whose backward pass completes it; -1: the last one */
	int64_t execution, update;
	bool open; /* an update is being read */
	/* By rank: the end of its last update and of the current one, and the start of the
	 * execution. */
	struct rank_clock {
		int64_t execution, update;
		double anchor, end;
	} * clocks;
	double *ready, *exchanged; /* by bucket: of the current update, the last rank's */
	double waits, done, total_waits, total_done, total_shares;
	int64_t updates;
};

/* Find or add a bucket; -1: failed. */
static int get_bucket(struct reading *r, int64_t stage, int64_t bucket)
{
	struct whatif_ranks *ranks = r->into;

	for (int i = 0; i < ranks->count; i++)
		if (ranks->buckets[i].stage == stage && ranks->buckets[i].bucket == bucket)
			return i;
	if (ranks->count == BUCKETS_MOST) {
		err_set(r->err, ST_LIMIT, "a weight update has more than %d buckets", BUCKETS_MOST);
		return -1;
	}
	ranks->buckets[ranks->count] =
		(struct whatif_bucket){.stage = (int)stage, .bucket = bucket};
	return ranks->count++;
}

/* Add the update that has been read to the totals. */
static void end_update(struct reading *r)
{
	if (!r->open)
		return;
	r->open = false;
	r->updates++;
	r->total_waits += r->waits;
	r->total_done += max(r->done, r->waits);
	for (int i = 0; i < r->into->count; i++)
		r->into->buckets[i].ready_ns += r->ready[i];
}

static void add_call(struct reading *r, const struct row *row, double anchor)
{
	struct whatif_bucket *bucket;
	const double begun = row->start - row->before;
	int at;

	if (row->kind == ROW_SHARES) {
		r->into->shares_bytes[row->stage] = row->size;
		r->total_shares += row->end - row->start;
		return;
	}
	at = get_bucket(r, row->stage, row->bucket);
	if (at < 0)
		return;
	bucket = &r->into->buckets[at];
	r->done = max(r->done, row->end - anchor);
	if (row->kind == ROW_EXCHANGE) {
		r->ready[at] = max(r->ready[at], begun - anchor);
		r->exchanged[at] = begun + row->length;
		bucket->exchange_bytes = row->size;
		if (row->bucket == 0)
			r->waits = max(r->waits, row->start - anchor);
	} else {
		bucket->bytes = row->size;
		bucket->sum_ns += max(0.0, begun - r->exchanged[at]);
		bucket->sums++;
	}
}

static void add_span(struct reading *r, const struct row *row, double anchor)
{
	const struct model *model = r->whatif->plan.model;

	if (row->kind == ROW_UPDATE) {
		r->waits = max(r->waits, row->start - anchor);
		for (int i = 0; i < r->into->count; i++)
			if (r->into->buckets[i].stage == row->stage && r->ready[i] <= 0)
				r->ready[i] = row->start - anchor;
		return;
	}
	for (int i = 0; row->layer && i < r->into->count; i++)
		if (r->layers[i] >= 0 && strcmp(model->layers[r->layers[i]].name, row->layer) == 0)
			r->ready[i] = max(r->ready[i], row->end - anchor);
}

static void add_row(struct reading *r, const struct row *row)
{
	double anchor;
	struct rank_clock *clock;

	if (row->rank < 0 || row->rank >= r->into->ranks || row->stage < 0 ||
	    row->stage >= r->whatif->plan.layout->stages) {
		err_set(r->err, ST_FORMAT, "a weight update has rank %" PRId64 ", stage %" PRId64,
			row->rank, row->stage);
		return;
	}
	if (!r->open || row->execution != r->execution || row->update != r->update) {
		end_update(r);
		r->open = true;
		r->execution = row->execution;
		r->update = row->update;
		r->waits = r->done = 0;
		memset(r->ready, 0, BUCKETS_MOST * sizeof(*r->ready));
	}
	/* The end of @row's rank's previous update, from which the times of this one count. */
	clock = &r->clocks[row->rank];
	if (clock->execution != row->execution || clock->update != row->update) {
		clock->anchor = clock->execution == row->execution ? clock->end : row->begun_ns;
		clock->execution = row->execution;
		clock->update = row->update;
		clock->end = clock->anchor;
	}
	if (row->kind != ROW_LAYER)
		clock->end = max(clock->end, row->end);
	anchor = clock->anchor;
	if (row->kind <= ROW_SHARES)
		add_call(r, row, anchor);
	else
		add_span(r, row, anchor);
}

#define ROW_FROM                                                                                   \
	"JOIN executions e ON e.rank = s.rank AND e.mode = s.mode AND e.execution = s.execution "  \
	"WHERE s.mode = 'train' AND s.clock = 'host' AND s.weight_update IS NOT NULL AND "         \
	"s.stage IS NOT NULL AND s.dur_ns IS NOT NULL AND "

static const char calls_sql[] =
	"SELECT s.execution, s.weight_update, s.rank, s.stage, e.start_ns,"
	" CASE WHEN s.name = 'MPI_Ialltoallv' THEN 0"
	"  WHEN sum(a.name = 'bucket') THEN 1 ELSE 2 END,"
	" max(CASE a.name WHEN 'bucket' THEN a.value END), NULL, s.start_ns,"
	" s.start_ns + s.dur_ns, max(CASE a.name WHEN 'size' THEN a.value END),"
	" max(CASE a.name WHEN 'before_ns' THEN a.value END),"
	" max(CASE a.name WHEN 'length_ns' THEN a.value END) "
	"FROM spans s JOIN span_args a ON a.span_id = s.span_id " ROW_FROM
	"s.category = 'mpi' AND s.name IN ('MPI_Ialltoallv', 'MPI_Iallgatherv') "
	"GROUP BY s.span_id ORDER BY 1, 2, 3, s.start_ns";

/* add_span() uses a layer's latest backward pass: of the last micro-batch and replica. */
static const char layers_sql[] =
	"SELECT s.execution, s.weight_update, s.rank, s.stage, e.start_ns,"
	" CASE s.category WHEN 'layer' THEN 3 ELSE 4 END, NULL, s.name, s.start_ns,"
	" s.start_ns + s.dur_ns, 0, 0, 0 FROM spans s " ROW_FROM
	"(s.category = 'layer' AND s.phase IN ('B', 'W')"
	" OR s.category = 'stage' AND s.phase = 'U') ORDER BY 1, 2, 3, s.start_ns";

static void read_rows(struct reading *r, struct prof_db *db)
{
	struct prof_query *query;

	if (err_stuck(r->err))
		return;
	prof_query_open(&query, db, r->into->ranks > 1 ? calls_sql : layers_sql, r->err);
	while (prof_query_next(query, &r->err->status, r->err)) {
		const struct row row = {.execution = prof_column_int(query, 0),
					.update = prof_column_int(query, 1),
					.rank = prof_column_int(query, 2),
					.stage = prof_column_int(query, 3),
					.begun_ns = prof_column_real(query, 4),
					.kind = (enum row_kind)prof_column_int(query, 5),
					.bucket = prof_column_int(query, 6),
					.layer = prof_column_text(query, 7),
					.start = prof_column_real(query, 8),
					.end = prof_column_real(query, 9),
					.size = prof_column_real(query, 10),
					.before = prof_column_real(query, 11),
					.length = prof_column_real(query, 12)};

		add_row(r, &row);
	}
	prof_query_close(query);
	end_update(r);
}

/* One process has no buckets: cut the stages as ranks would (trainer/train_ranks.c). */
static void cut_buckets(struct reading *r)
{
	const struct plan_run *plan = &r->whatif->plan;
	const struct model *model = plan->model;
	const size_t each = (size_t)plan->run->distribution.bucket_bytes / sizeof(float);

	for (int s = 0; s < plan->layout->stages; s++) {
		size_t first = model->weights, end = 0, weights, count;
		bool regularized = false;

		for (int p = 0; p < model->param_count; p++) {
			const struct model_param *param = &model->params[p];

			if (plan->layout->stage[param->layer] != s)
				continue;
			first = min(first, param->offset);
			end = max(end, param->offset + param->count);
			regularized = regularized || param->l1 > 0 || param->l2 > 0;
		}
		weights = end > first ? end - first : 0;
		count = max((weights + each - 1) / each, (size_t)1);
		for (size_t b = 0; b < count; b++) {
			const size_t left = count - 1 - b;
			const size_t from =
				first + weights / count * left + weights % count * left / count;
			const size_t to = first + weights / count * (left + 1) +
					  weights % count * (left + 1) / count;
			const int at = get_bucket(r, s, (int64_t)b);
			int layer = model->layer_count;

			if (at < 0)
				return;
			for (int p = 0; p < model->param_count; p++)
				if (model->params[p].offset < to &&
				    model->params[p].offset + model->params[p].count > from)
					layer = min(layer, model->params[p].layer);
			r->layers[at] = regularized || layer == model->layer_count ? -1 : layer;
			r->into->buckets[at].bytes = (double)(to - from) * sizeof(float);
			r->into->buckets[at].exchange_bytes = r->into->buckets[at].bytes;
		}
	}
}

/* Count the largest branches of the tree over @count replicas from @first on in [@from, @to). */
static int count_branches(int first, int count, int from, int to)
{
	int left;

	if (from <= first && first + count <= to)
		return 1;
	if (to <= first || first + count <= from)
		return 0;
	left = tree_left(count);
	return count_branches(first, left, from, to) +
	       count_branches(first + left, count - left, from, to);
}

/* Of @instances with @each replicas, the one that has the most branches: its number of them. */
static int most_branches(int instances, int each)
{
	int most = 1;

	for (int i = 0; i < instances && (each & (each - 1)) != 0; i++)
		most = max(most, count_branches(0, instances * each, i * each, (i + 1) * each));
	return most;
}

static void read_count(struct report_whatif *whatif, struct prof_db *db, struct err *err)
{
	const int replicas = whatif->plan.layout->replicas;
	struct prof_query *query;
	int64_t count = 0, last = 0;

	prof_query_open(
		&query, db,
		"SELECT count(DISTINCT rank), max(rank) FROM executions WHERE mode = 'train'", err);
	if (prof_query_next(query, &err->status, err)) {
		count = prof_column_int(query, 0);
		last = prof_column_int(query, 1);
	}
	prof_query_close(query);
	if (err_stuck(err))
		return;
	if (count < 1 || count > RANKS_MOST || last != count - 1)
		err_set(err, ST_NOTFOUND,
			"--instances: the recording has %" PRId64 " ranks, the last of which "
			"is %" PRId64 ": take the report of all ranks (ranks.db)",
			count, last);
	else if (replicas % count != 0)
		err_set(err, ST_INVALID,
			"--instances: its %" PRId64 " ranks have different numbers of the %d "
			"replicas",
			count, replicas);
	if (err_stuck(err))
		return;
	whatif->ranks.ranks = (int)count;
	whatif->ranks.replicas = replicas / (int)count;
}

/* Turn totals into means. */
static void average(struct reading *r)
{
	struct whatif_ranks *ranks = r->into;
	const double updates = (double)r->updates;
	const int branches = most_branches(ranks->ranks, ranks->replicas);

	if (r->updates == 0 || ranks->count == 0) {
		err_set(r->err, ST_NOTFOUND,
			ranks->ranks > 1 ? "--instances: no exchange of a weight update is recorded"
					 : "--instances: no layer's backward pass is recorded");
		return;
	}
	ranks->waits_ns = r->total_waits / updates;
	ranks->exposed_ns =
		(r->total_done - r->total_waits + r->total_shares / ranks->ranks) / updates;
	/* On a busy machine the ranks' mean wait may exceed what an update takes on average. */
	ranks->exposed_ns = fmin(ranks->exposed_ns, (double)r->whatif->measured.run_ns);
	for (int i = 0; i < ranks->count; i++) {
		struct whatif_bucket *bucket = &ranks->buckets[i];

		bucket->ready_ns /= updates;
		if (bucket->bytes <= 0) /* sharded: it is not gathered */
			bucket->bytes = bucket->exchange_bytes / branches;
		else
			bucket->gathers = true;
		bucket->sum_ns = bucket->sums > 0 ? bucket->sum_ns / (double)bucket->sums / branches
						  : bucket->bytes / SUM_BYTES_NS;
	}
	r->whatif->assumptions |= ranks->ranks == 1 ? 1u << REPORT_WHATIF_RANKS_SUMS : 0;
	r->whatif->measured.instances = ranks->ranks;
	r->whatif->measured.exposed_ns = llround(ranks->exposed_ns);
}

enum status report_whatif_read_ranks(struct report_whatif *whatif, struct prof_db *db,
				     struct err *err)
{
	struct whatif_ranks *ranks = &whatif->ranks;
	const size_t stages = (size_t)whatif->plan.layout->stages;
	struct err own;
	struct reading r = {.whatif = whatif, .into = ranks, .err = err_start(err, &own)};

	read_count(whatif, db, r.err);
	if (err_stuck(r.err))
		return r.err->status;
	r.layers = mem_calloc(BUCKETS_MOST, sizeof(*r.layers));
	r.ready = mem_calloc(BUCKETS_MOST, sizeof(*r.ready));
	r.exchanged = mem_calloc(BUCKETS_MOST, sizeof(*r.exchanged));
	r.clocks = mem_calloc((size_t)ranks->ranks, sizeof(*r.clocks));
	ranks->buckets = arena_alloc(&whatif->arena, BUCKETS_MOST, sizeof(*ranks->buckets));
	ranks->shares_bytes = arena_alloc(&whatif->arena, stages, sizeof(*ranks->shares_bytes));
	if (!r.layers || !r.ready || !r.exchanged || !r.clocks || !ranks->buckets ||
	    !ranks->shares_bytes) {
		err_nomem(r.err);
	} else {
		for (int i = 0; i < ranks->ranks; i++)
			r.clocks[i].execution = -1;
		if (ranks->ranks == 1)
			cut_buckets(&r);
		read_rows(&r, db);
		if (!err_stuck(r.err))
			average(&r);
	}
	mem_free(r.layers);
	mem_free(r.ready);
	mem_free(r.exchanged);
	mem_free(r.clocks);
	return r.err->status;
}

/* ---- predicting ------------------------------------------------------------------------------ */

/* A rank's link and the thread that sums, in the course of an update. */
struct course {
	const struct report_whatif_network *network;
	int instances;
	double link_free, thread_free, link_ns;
};

/* Send @bytes to every other rank, not before @ready, and receive as much; return when all is
 * there. */
static double transfer(struct course *c, double ready, double bytes)
{
	const double gap = 8 * bytes / (c->network->bits_ns * TCP_SHARE);
	const double busy = (c->instances - 1) * max(gap, 2 * c->network->overhead_ns);
	const double latencies = bytes > EAGER_BYTES ? 3 : 1;

	c->link_free = max(c->link_free, ready) + busy;
	c->link_ns += (c->instances - 1) * gap;
	return c->link_free + latencies * c->network->latency_ns + 2 * c->network->overhead_ns;
}

/* Return the time by which the last bucket is there. Operations begin in the order in which they
 * are ready; gathers of a stage in the order of its buckets. */
static double exchange(struct course *c, const struct whatif_ranks *ranks, int branches,
		       double *gather_ready)
{
	bool begun[2 * BUCKETS_MOST] = {false};
	double done = 0;

	for (int i = 0; i < ranks->count; i++)
		gather_ready[i] = INFINITY;
	for (;;) {
		const struct whatif_bucket *bucket;
		double ready = INFINITY, slice;
		int next = -1;

		for (int i = 0; i < 2 * ranks->count; i++) {
			const int b = i / 2;
			const double at = i % 2 ? gather_ready[b] : ranks->buckets[b].ready_ns;

			if (!begun[i] && at < ready) {
				ready = at;
				next = i;
			}
		}
		if (next < 0)
			return done;
		begun[next] = true;
		bucket = &ranks->buckets[next / 2];
		slice = bucket->bytes / c->instances;
		if (next % 2) {
			done = max(done, transfer(c, ready, slice));
			continue;
		}
		c->thread_free = max(c->thread_free, transfer(c, ready, branches * slice)) +
				 branches * bucket->sum_ns;
		if (bucket->gathers)
			gather_ready[next / 2] = c->thread_free;
		done = max(done, c->thread_free);
	}
}

/* Return how long an update of @instances waits for the exchange, and in *@link_ns how long its
 * messages occupy a link; -1: out of memory. */
static double wait_of(const struct report_whatif *whatif,
		      const struct report_whatif_network *network, int instances, double *link_ns)
{
	const struct whatif_ranks *ranks = &whatif->ranks;
	struct course c = {.network = network, .instances = instances};
	double *ready, wait;

	*link_ns = 0;
	if (instances < 2)
		return 0;
	ready = mem_calloc((size_t)ranks->count, sizeof(*ready));
	if (!ready)
		return -1;
	wait = exchange(&c, ranks, most_branches(instances, ranks->replicas), ready);
	wait = max(0.0, wait - ranks->waits_ns);
	mem_free(ready);
	for (int s = 0; s < whatif->plan.layout->stages; s++)
		if (ranks->shares_bytes[s] > 0) {
			c.link_free = 0;
			wait += transfer(&c, 0, ranks->shares_bytes[s] / instances);
		}
	*link_ns = c.link_ns;
	return wait;
}

enum status report_whatif_fit_network(struct report_whatif_network *network,
				      const struct report_whatif *whatif, struct err *err)
{
	const struct whatif_ranks *ranks = &whatif->ranks;
	double least = -9 * log(10), most = 6 * log(10), link, wait;

	if (ranks->ranks < 2)
		return err_set(err, ST_INVALID,
			       "--network recorded: one process has used no network: give a "
			       "bandwidth and a latency, as in 25Gbit,20us");
	for (int i = 0; i < 40; i++) {
		network->bits_ns = exp((least + most) / 2);
		wait = wait_of(whatif, network, ranks->ranks, &link);
		if (wait < 0)
			return err_nomem(err);
		if (wait > ranks->exposed_ns)
			least = (least + most) / 2;
		else
			most = (least + most) / 2;
	}
	if (network->bits_ns > 1e5 || ranks->exposed_ns <= 0)
		return err_set(err, ST_INVALID,
			       "--network recorded: the recorded ranks have waited too shortly to "
			       "say what their network carries: give a bandwidth and a latency, as "
			       "in 25Gbit,20us");
	return ST_OK;
}

enum status report__whatif_ranks_predict(struct report_whatif_prediction *out,
					 const struct report_whatif *whatif,
					 const struct report_whatif_change *change, struct err *err)
{
	const struct whatif_ranks *ranks = &whatif->ranks;
	double link;
	const double wait = wait_of(whatif, &change->network, change->instances, &link);

	if (wait < 0)
		return err_nomem(err);
	out->instances = change->instances;
	out->replicas = (int64_t)change->instances * ranks->replicas;
	out->run_ns += llround(wait - ranks->exposed_ns);
	out->exposed_ns = llround(wait);
	out->link_ns = llround(link);
	out->assumptions |= 1u << REPORT_WHATIF_RANKS_ALIKE | 1u << REPORT_WHATIF_RANKS_NETWORK;
	return ST_OK;
}
