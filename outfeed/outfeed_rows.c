/*
 * The output of the recorder: rows of the recording within the budget, rings of the last values,
 * and lines for people.
 *
 * Nothing is allocated after a tensor has been added. Threading: any thread; a tensor and replica
 * belong to the calling one, a ring to the holder of the replica's lock. The recorder's lock
 * guards lines, instants, hits and lowering; one atomic counts the bytes of the budget.
 * outfeed_flush() only increments a counter, so it is safe in a signal handler.
 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "outfeed/outfeed_internal.h"

enum status outfeed__failed(struct outfeed *outfeed, int status, struct err *err)
{
	char message[ERR_TEXT_SIZE];

	if (status == 0)
		return ST_OK;
	message[0] = '\0'; /* here: clearing all of it would slow down every recorded value */
	/* A failed recording stays failed: report it once, if the caller takes a message. */
	if (ips_recording_status(outfeed->params.recording, message, sizeof(message)) != 0 &&
	    (!err ? atomic_load(&outfeed->failed) : atomic_exchange(&outfeed->failed, true)))
		return ST_OK;
	if (message[0] == '\0')
		str_copy(message, sizeof(message), ips_status_text(status));
	return err_set(err, (enum status)status, "outfeed: %s", message);
}

/* ---- lines for people ------------------------------------------------------------------------ */

void outfeed__line_add(struct outfeed_line *line, const char *format, ...)
{
	const size_t left = sizeof(line->text) - line->length;
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(line->text + line->length, left, format, args);
	va_end(args);
	if (length > 0)
		line->length += (size_t)length < left ? (size_t)length : left - 1;
}

/* Every part is NAME=VALUE, for grep; unknown values are omitted. */
void outfeed__line_add_place(struct outfeed_line *line, const char *key, const char *layer,
			     const struct ips_keys *keys)
{
	const struct {
		const char *name;
		int64_t value;
	} parts[] = {
		{"epoch", keys->epoch},
		{"step", keys->step},
		{"weight_update", keys->weight_update},
		{"microbatch", keys->microbatch},
		{"replica", keys->replica},
		{"stage", keys->stage},
	};

	if (key)
		outfeed__line_add(line, " key=%.128s", key);
	if (layer)
		outfeed__line_add(line, " layer=%.128s", layer);
	if (keys->phase != 0)
		outfeed__line_add(line, " phase=%c", keys->phase);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (parts[i].value != IPS_NULL)
			outfeed__line_add(line, " %s=%" PRId64, parts[i].name, parts[i].value);
}

void outfeed__report(struct outfeed *outfeed, struct ips_site *site, const struct ips_keys *keys,
		     const struct outfeed_line *line)
{
	ips_track_set_keys(outfeed->track, keys);
	ips_instant(outfeed->track, site);
	if (outfeed->params.say && line->length > 0)
		outfeed->params.say(outfeed->params.user, line->text);
}

/* ---- the budget ------------------------------------------------------------------------------ */

/*
 * Each tier may spend up to a fraction of the budget, expensive tiers a smaller one, so that
 * something remains for cheaper tiers when values have used up theirs. The first tensor that finds
 * its tier's fraction spent lowers all tensors of that tier, permanently: one line, one instant, a
 * row per tensor.
 */
static const struct {
	enum outfeed_tier below; /* the next tier when its fraction is spent */
	double part;             /* of the budget */
} tiers[OUTFEED_TIERS] = {
	[OUTFEED_OFF] = {OUTFEED_OFF, 1},           [OUTFEED_HEALTH] = {OUTFEED_HEALTH, 1},
	[OUTFEED_COUNTS] = {OUTFEED_HEALTH, 0.995}, [OUTFEED_STATS] = {OUTFEED_COUNTS, 0.97},
	[OUTFEED_HISTOGRAM] = {OUTFEED_STATS, 0.9}, [OUTFEED_LAST_N] = {OUTFEED_STATS, 0.8},
	[OUTFEED_FULL] = {OUTFEED_HISTOGRAM, 0.8},
};

/* Bytes of rows in the database, including their share of contexts and of free space in pages:
 * measured, and checked by test_outfeed_budget.c. */
#define STATS_ROW   115.0
#define COUNTS_ROW  45.0
#define BIN_ROW     33.0
#define CAPTURE_ROW 64.0
#define PAGES       1.01 /* size of values in pages relative to memory */

/* Estimate the bins of a histogram not yet computed: for @count values of both signs about 0, whose
 * least is about 1/@count of the usual one, 2 (log2(count) + 2), rounded to whole bins. */
static int expected_bins(size_t count)
{
	int exponent;
	const double mantissa = frexp((double)count, &exponent);

	return count == 0 ? 0 : 2 * (exponent - 1) + (mantissa >= M_SQRT1_2) + 4;
}

double outfeed_bytes(const struct outfeed_choice *choice, size_t count, enum dtype dtype)
{
	switch (choice->tier) {
	case OUTFEED_COUNTS:
		return COUNTS_ROW;
	case OUTFEED_STATS:
	case OUTFEED_LAST_N:
		return STATS_ROW;
	case OUTFEED_HISTOGRAM:
		return STATS_ROW + BIN_ROW * expected_bins(count);
	case OUTFEED_FULL:
		return STATS_ROW + CAPTURE_ROW + PAGES * (double)count * dtype_bytes(dtype);
	default:
		return 0;
	}
}

double outfeed_memory(const struct outfeed_choice *choice, enum outfeed_kind kind, size_t count,
		      enum dtype dtype, int replicas)
{
	const double frame = sizeof(struct outfeed_frame) +
			     (choice->tier >= OUTFEED_COUNTS ? sizeof(struct outfeed_stats) : 0);
	double bytes = sizeof(struct outfeed_replica) + OUTFEED_FRAMES * frame;

	if (choice->tier == OUTFEED_OFF)
		return 0;
	if (choice->tier == OUTFEED_LAST_N)
		bytes += (double)choice->last * ((double)sizeof(struct outfeed_entry) +
						 (double)count * dtype_bytes(dtype));
	if (choice->tier >= OUTFEED_STATS &&
	    (kind == OUTFEED_WEIGHT || kind == OUTFEED_OPTIMIZER_STATE))
		bytes += (double)count * sizeof(float);
	return bytes * replicas;
}

/* Lower all tensors of @tier, once. Appending the next row reports a failure of the recording. */
static void lower_tier(struct outfeed *outfeed, enum outfeed_tier tier,
		       const struct outfeed_moment *moment)
{
	const char *from = outfeed_tier_text(tier), *to = outfeed_tier_text(tiers[tier].below);
	struct outfeed_line why = {.length = 0}, line = {.length = 0};
	char budget[FMT_SIZE], spent[FMT_SIZE], name[64];
	size_t lowered = 0;

	fmt_bytes(budget, (uint64_t)outfeed->params.budget);
	outfeed__line_add(&why, "budget of %s", budget);
	pthread_mutex_lock(&outfeed->lock);
	for (size_t i = 0; i < outfeed->count; i++) {
		struct outfeed_tensor *tensor = outfeed->tensors[i];

		if (outfeed__tier(tensor) != tier)
			continue;
		atomic_store_explicit(&tensor->tier, (int)tiers[tier].below, memory_order_relaxed);
		outfeed__append_tier(tensor, moment, why.text);
		lowered++;
	}
	if (lowered > 0) {
		fmt_bytes(spent,
			  (uint64_t)atomic_load_explicit(&outfeed->spent, memory_order_relaxed));
		outfeed__line_add(
			&line,
			"[OUTFEED] %s: %s are used, so %zu tensor%s of tier %s %s from now on kept "
			"as %s",
			why.text, spent, lowered, lowered == 1 ? "" : "s", from,
			lowered == 1 ? "is" : "are", to);
		outfeed__line_add_place(&line, NULL, NULL, &moment->keys);
		snprintf(name, sizeof(name), "%s lowered to %s", from, to);
		outfeed__report(outfeed, ips_site_intern("outfeed", name, NULL), &moment->keys,
				&line);
	}
	pthread_mutex_unlock(&outfeed->lock);
}

/* There is no tier below `health`: its values get no more rows, which one line reports. */
static void report_budget_spent(struct outfeed *outfeed, const struct outfeed_moment *moment)
{
	struct outfeed_line line = {.length = 0};
	char budget[FMT_SIZE];

	fmt_bytes(budget, (uint64_t)outfeed->params.budget);
	outfeed__line_add(&line,
			  "[OUTFEED] budget of %s: it is used up, so bad values have no more rows "
			  "of tensor_stats; rules and the first bad number go on",
			  budget);
	outfeed__line_add_place(&line, NULL, NULL, &moment->keys);
	pthread_mutex_lock(&outfeed->lock);
	outfeed__report(outfeed, ips_site_intern("outfeed", "budget used up", NULL), &moment->keys,
			&line);
	pthread_mutex_unlock(&outfeed->lock);
}

/* Charge @bytes. Return false, with all tensors of @tier lowered, if the budget does not allow
 * it. */
static bool charge(struct outfeed_tensor *tensor, enum outfeed_tier tier,
		   const struct outfeed_moment *moment, double bytes)
{
	struct outfeed *outfeed = tensor->outfeed;
	const int64_t more = (int64_t)ceil(bytes), budget = outfeed->params.budget;
	int64_t spent;

	if (budget == 0 || budget == INT64_MAX || !outfeed->params.recording)
		return true;
	/* Never exceed the budget, not even temporarily: that would lower other tensors. */
	spent = atomic_load_explicit(&outfeed->spent, memory_order_relaxed);
	while ((double)spent + (double)more <= tiers[tier].part * (double)budget)
		if (atomic_compare_exchange_weak_explicit(&outfeed->spent, &spent, spent + more,
							  memory_order_relaxed,
							  memory_order_relaxed))
			return true;
	if (tier != tiers[tier].below)
		lower_tier(outfeed, tier, moment);
	else if (!atomic_exchange(&outfeed->spent_up, true))
		report_budget_spent(outfeed, moment);
	return false;
}

enum outfeed_tier outfeed__afford(struct outfeed_tensor *tensor, enum outfeed_tier tier,
				  const struct outfeed_moment *moment, size_t count)
{
	struct outfeed_choice choice = tensor->choice;

	for (choice.tier = tier;
	     choice.tier > OUTFEED_HEALTH &&
	     !charge(tensor, choice.tier, moment, outfeed_bytes(&choice, count, tensor->dtype));
	     choice.tier = tiers[choice.tier].below)
		;
	return choice.tier;
}

bool outfeed__afford_health(struct outfeed_tensor *tensor, const struct outfeed_moment *moment,
			    size_t count, bool whole)
{
	const struct outfeed_choice choice = {.tier = whole ? OUTFEED_STATS : OUTFEED_COUNTS};

	return charge(tensor, OUTFEED_HEALTH, moment, outfeed_bytes(&choice, count, tensor->dtype));
}

/* ---- tensors and their statistics ------------------------------------------------------------ */

const char *outfeed__shape_text(char out[OUTFEED_SHAPE_TEXT], const int64_t *shape, int ndim)
{
	int length = snprintf(out, OUTFEED_SHAPE_TEXT, "(");

	for (int i = 0; i < ndim; i++)
		length += snprintf(out + length, OUTFEED_SHAPE_TEXT - (size_t)length, "%s%" PRId64,
				   i > 0 ? ", " : "", shape[i]);
	snprintf(out + length, OUTFEED_SHAPE_TEXT - (size_t)length, ndim == 1 ? ",)" : ")");
	return out;
}

int64_t outfeed__append_tensor(struct outfeed *outfeed, const struct outfeed_tensor_params *params)
{
	char shape[OUTFEED_SHAPE_TEXT];
	const struct ips_tensor row = {
		.queue = params->queue,
		.key = params->key,
		.kind = outfeed_kind_text(params->kind),
		.layer = params->layer,
		.stage = params->stage < 0 ? IPS_NULL : params->stage,
		.shape = outfeed__shape_text(shape, params->shape, params->ndim),
		.dtype = dtype_name(params->dtype),
		.activity = outfeed_activity_text(params->activity),
		.dims = params->dims};

	return !outfeed->params.recording ? IPS_NULL
					  : ips_tensor_add(outfeed->params.recording, &row);
}

int outfeed__append_tier(const struct outfeed_tensor *tensor, const struct outfeed_moment *moment,
			 const char *why)
{
	static const struct ips_keys none = IPS_KEYS_NULL;
	const enum outfeed_tier tier = outfeed__tier(tensor);
	const struct ips_tensor_tier row = {
		.keys = moment ? moment->keys : none,
		.tensor_id = tensor->tensor_id,
		.tier = outfeed_tier_text(tier),
		.every = tensor->choice.every,
		.keep = tier == OUTFEED_LAST_N ? tensor->choice.last : IPS_NULL,
		.time_ns = moment ? moment->time_ns : IPS_NULL,
		.why = why,
	};

	return ips_append_tensor_tier(tensor->outfeed->params.recording, &row);
}

int outfeed__append_stats(const struct outfeed_tensor *tensor, const struct outfeed_moment *moment,
			  const struct outfeed_measure *measure)
{
	struct ips_tensor_stats row = {.keys = moment->keys,
				       .tensor_id = tensor->tensor_id,
				       .time_ns = moment->time_ns,
				       .inactive = measure->inactive,
				       .update_ratio = measure->update_ratio,
				       .n_changed = measure->n_changed};

	OUTFEED_FILL_COLUMNS(&row, &measure->stats, measure->known >= OUTFEED_COUNTS);
	if (measure->known == OUTFEED_HEALTH)
		row.abs_max = outfeed__float(measure->abs_max);
	return ips_append_tensor_stats(tensor->outfeed->params.recording, &row);
}

/* ---- histograms ------------------------------------------------------------------------------ */

static void histogram_piece(void *user, const float *values, size_t at, size_t count)
{
	(void)at;
	outfeed_histogram_add(user, values, count);
}

#define BIN_ROWS 32 /* appended at once */

/* The budget was charged for the estimated number of bins: correct it by the difference. */
int outfeed__append_histogram(const struct outfeed_tensor *tensor,
			      const struct outfeed_moment *moment, const void *values, size_t count)
{
	struct outfeed *outfeed = tensor->outfeed;
	struct ips_tensor_histogram rows[BIN_ROWS];
	struct outfeed_histogram histogram = {{0}};
	int status = 0, waiting = 0, bins = 0;

	outfeed_pieces(tensor->dtype, values, count, histogram_piece, &histogram);
	for (int i = 0; i < OUTFEED_BINS && status == 0; i++) {
		struct ips_tensor_histogram *row = &rows[waiting];

		if (histogram.count[i] > 0) {
			*row = (struct ips_tensor_histogram){.keys = moment->keys,
							     .tensor_id = tensor->tensor_id,
							     .bin = i + OUTFEED_BIN_LEAST,
							     .count = histogram.count[i]};
			outfeed_histogram_range((int)row->bin, &row->low, &row->high);
			waiting++;
			bins++;
		}
		if (waiting == BIN_ROWS || (i == OUTFEED_BINS - 1 && waiting > 0)) {
			status = ips_append(outfeed->params.recording, IPS_TABLE_tensor_histogram,
					    rows, (size_t)waiting);
			waiting = 0;
		}
	}
	atomic_fetch_add_explicit(&outfeed->spent,
				  (int64_t)(BIN_ROW * (bins - expected_bins(count))),
				  memory_order_relaxed);
	return status;
}

/* ---- captures -------------------------------------------------------------------------------- */

/* With its texts a piece fits into one of the chunks of 256 KiB that the recording reuses, so it
 * needs no allocation. */
#define CAPTURE_PIECE ((size_t)255 * 1024)

int outfeed__append_capture(const struct outfeed_tensor *tensor, const struct ips_keys *keys,
			    const void *values, size_t count)
{
	const size_t bytes = count * (size_t)dtype_bytes(tensor->dtype);
	int64_t shape[OUTFEED_NDIM_MAX];
	char text[OUTFEED_SHAPE_TEXT];
	struct ips_capture row = {
		.keys = *keys, .tensor_id = tensor->tensor_id, .dtype = dtype_name(tensor->dtype)};
	int ndim = tensor->ndim, status;
	size_t at = 0;

	memcpy(shape, tensor->shape, sizeof(shape));
	if (count != tensor->count) {
		/* A last batch may have fewer whole cases; otherwise the shape is unknown. */
		const size_t rest = ndim > 0 && shape[0] > 0 ? tensor->count / (size_t)shape[0] : 0;
		const bool cases = rest > 0 && count % rest == 0;

		ndim = cases ? ndim : 1;
		shape[0] = (int64_t)(cases ? count / rest : count);
	}
	row.shape = outfeed__shape_text(text, shape, ndim);
	do {
		const size_t size = min(bytes - at, CAPTURE_PIECE);

		row.bytes = (int64_t)size;
		row.data = size > 0 ? (const unsigned char *)values + at : (const void *)"";
		status = ips_append_capture(tensor->outfeed->params.recording, &row);
		row.chunk++;
		at += size;
	} while (at < bytes && status == 0);
	return status;
}

/* ---- rings of the last values ---------------------------------------------------------------- */

static size_t value_bytes(const struct outfeed_tensor *tensor)
{
	return tensor->count * (size_t)dtype_bytes(tensor->dtype);
}

enum status outfeed__ring_new(struct outfeed_ring *ring, const struct outfeed_tensor *tensor,
			      struct err *err)
{
	ring->size = tensor->choice.last;
	ring->values = mem_aligned((size_t)ring->size, value_bytes(tensor));
	ring->entries = mem_calloc((size_t)ring->size, sizeof(*ring->entries));
	return ring->values && ring->entries ? ST_OK : err_nomem(err);
}

void outfeed__ring_free(struct outfeed_ring *ring)
{
	mem_free(ring->values);
	mem_free(ring->entries);
}

void outfeed__ring_push(const struct outfeed_tensor *tensor, struct outfeed_ring *ring,
			const struct outfeed_moment *moment, const void *values, size_t count)
{
	if (!ring->values)
		return;
	if (count > 0)
		memcpy(ring->values + (size_t)ring->next * value_bytes(tensor), values,
		       count * (size_t)dtype_bytes(tensor->dtype));
	ring->entries[ring->next] = (struct outfeed_entry){
		.keys = moment->keys, .time_ns = moment->time_ns, .count = count};
	ring->next = (ring->next + 1) % ring->size;
	ring->held += ring->held < ring->size;
}

/* An entry is written once: the ring is empty afterwards. */
int outfeed__ring_flush(struct outfeed_tensor *tensor, struct outfeed_ring *ring)
{
	static const struct outfeed_choice full = {.tier = OUTFEED_FULL};
	const uint64_t flushes =
		atomic_load_explicit(&tensor->outfeed->flushes, memory_order_relaxed);
	int status = 0;

	if (!ring->values || ring->flushed == flushes)
		return 0;
	ring->flushed = flushes;
	for (; ring->held > 0 && status == 0; ring->held--) {
		const int64_t at = (ring->next + ring->size - ring->held) % ring->size;
		const struct outfeed_entry *entry = &ring->entries[at];
		const struct outfeed_moment moment = {.keys = entry->keys,
						      .time_ns = entry->time_ns};

		if (!charge(tensor, OUTFEED_LAST_N, &moment,
			    outfeed_bytes(&full, entry->count, tensor->dtype) -
				    outfeed_bytes(&tensor->choice, entry->count, tensor->dtype)))
			break;
		status = outfeed__append_capture(tensor, &entry->keys,
						 ring->values + (size_t)at * value_bytes(tensor),
						 entry->count);
	}
	ring->held = 0;
	return status;
}

void outfeed_flush(struct outfeed *outfeed)
{
	atomic_fetch_add_explicit(&outfeed->flushes, 1, memory_order_relaxed);
}

int outfeed__rings_flush(struct outfeed *outfeed)
{
	const uint64_t flushes = atomic_load_explicit(&outfeed->flushes, memory_order_relaxed);
	int status = 0;

	if (outfeed->drained == flushes)
		return 0;
	for (size_t i = 0; i < outfeed->count; i++) {
		struct outfeed_tensor *tensor = outfeed->tensors[i];

		for (int r = 0; tensor->choice.tier == OUTFEED_LAST_N &&
				r < outfeed->params.replicas && status == 0;
		     r++) {
			struct outfeed_replica *replica = &tensor->replica[r];

			pthread_mutex_lock(&replica->lock);
			status = outfeed__ring_flush(tensor, &replica->ring);
			pthread_mutex_unlock(&replica->lock);
		}
	}
	outfeed->drained = flushes;
	return status;
}

/* ---- health rules ---------------------------------------------------------------------------- */

int outfeed__append_rules(struct outfeed *outfeed)
{
	struct ips_recording *recording = outfeed->params.recording;
	int status = 0;

	for (int id = 0; id < OUTFEED_HEALTH_RULES && recording && status == 0; id++) {
		const struct outfeed_health_about *about =
			outfeed_health_describe((enum outfeed_health_id)id);
		const struct outfeed_health_rule *rule = &outfeed->params.rules->rule[id];
		char parameters[OUTFEED_HEALTH_TEXT];
		const struct ips_health_rule row = {
			.rule = about->name,
			.threshold = rule->threshold,
			.patience = rule->patience,
			.enabled = rule->enabled,
			.why = about->why,
			.parameters = about->parameter[0] ? parameters : NULL,
		};

		outfeed_health_parameters(parameters, outfeed->params.rules,
					  (enum outfeed_health_id)id);
		outfeed->sites[id] = ips_site_intern("health", about->name, NULL);
		status = !outfeed->sites[id] ? (int)ST_NOMEM
					     : ips_append_health_rule(recording, &row);
	}
	return status;
}

/* Appending a tensor's next row reports a failure of the recording. */
void outfeed__hit(void *user, const struct outfeed_hit *hit)
{
	struct outfeed *outfeed = user;
	const char *rule = outfeed_health_describe(hit->rule)->name;
	const bool of_tensor = hit->tensor_id != IPS_NULL;
	const struct ips_health row = {.keys = hit->keys,
				       .rule = rule,
				       .tensor_id = hit->tensor_id,
				       .layer = of_tensor ? NULL : hit->layer,
				       .key = of_tensor ? NULL : hit->key,
				       .time_ns = hit->time_ns,
				       .value = hit->value,
				       .threshold = hit->threshold};
	struct outfeed_line line = {.length = 0};
	int64_t hits;

	pthread_mutex_lock(&outfeed->lock);
	if (!of_tensor && outfeed->params.first_replica > 0)
		goto known;
	ips_append_health(outfeed->params.recording, &row);
	hits = ++outfeed->hits[hit->rule];
	/* A network of many layers violates a rule in all of them: a few lines suffice. */
	if (hits <= OUTFEED_LINES) {
		outfeed__line_add(&line, "[HEALTH] rule=%s", rule);
		outfeed__line_add_place(&line, hit->key, hit->layer, &hit->keys);
		/* The sign of a NaN has no meaning. */
		outfeed__line_add(&line, " value=%g threshold=%g",
				  isnan(hit->value) ? (double)NAN : hit->value, hit->threshold);
	} else if (hits == OUTFEED_LINES + 1) {
		outfeed__line_add(&line, "[HEALTH] rule=%s more than %d times: further ones %s",
				  rule, OUTFEED_LINES,
				  outfeed->params.recording
					  ? "are in the view health of the report alone"
					  : "are not told");
	}
	outfeed__report(outfeed, outfeed->sites[hit->rule], &hit->keys, &line);
known:
	if (outfeed->params.hit)
		outfeed->params.hit(outfeed->params.user, hit);
	pthread_mutex_unlock(&outfeed->lock);
	outfeed_flush(outfeed);
}
