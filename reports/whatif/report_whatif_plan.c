/*
 * Patch the recorded run file and plan it again.
 *
 * Named changes are converted to words of ipu-train's command line; the run file's parser, rules
 * and planner do the rest. Threading: none. Ownership: words live for one call.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "outfeed/outfeed_health.h"
#include "outfeed/outfeed_policy.h"
#include "reports/whatif/report_whatif_internal.h"

#define CHUNKS_DEFAULT 2
/* Limit of pipeline.device_mapping; the rules of the run reject larger numbers. */
#define STAGES_MOST 256

/* ---- words ----------------------------------------------------------------------------------- */

struct words {
	char **list;
	size_t capacity;
	int count;
	bool failed;
	struct arena arena;
};

static void add_word(struct words *words, const char *word)
{
	char *copy = word ? arena_strdup(&words->arena, word) : NULL;

	if (!copy || mem_grow(&words->list, &words->capacity, (size_t)words->count + 1,
			      sizeof(*words->list)) != 0) {
		words->failed = true;
		return;
	}
	words->list[words->count++] = copy;
}

static void add_text(struct words *words, const char *key, const char *value)
{
	add_word(words, key);
	add_word(words, value);
}

static void add_number(struct words *words, const char *key, int64_t value)
{
	add_text(words, key, arena_printf(&words->arena, "%lld", (long long)value));
}

/* ---- the split ------------------------------------------------------------------------------- */

/* Add the layers that begin stages, as {layer: stage}. */
static int add_names(struct words *words, const char *split)
{
	cJSON *stages = cJSON_CreateObject();
	char *copy = arena_strdup(&words->arena, split), *rest = NULL, *text;
	int count = 1;

	for (char *name = copy ? strtok_r(copy, ",", &rest) : NULL; stages && name;
	     name = strtok_r(NULL, ",", &rest))
		words->failed |= !cJSON_AddNumberToObject(stages, name, count++);
	text = stages ? cJSON_PrintUnformatted(stages) : NULL;
	add_text(words, "--pipeline.stages", text);
	cJSON_free(text);
	cJSON_Delete(stages);
	return count;
}

/* Add stages assigned to @ipus round-robin, @chunks to each: 0, 1, 0, 1. */
static void add_round_robin(struct words *words, int ipus, int chunks)
{
	struct str list = {0};

	for (int s = 0; s < ipus * chunks; s++)
		str_addf(&list, "%s%d", s > 0 ? "," : "[", s % ipus);
	str_add(&list, "]");
	words->failed |= list.failed;
	add_text(words, "--pipeline.stages", "auto");
	add_number(words, "--pipeline.auto_stages", (int64_t)ipus * chunks);
	add_text(words, "--pipeline.device_mapping", str_peek(&list));
	str_free(&list);
}

/* Add the stages of @change; return the number of IPUs they need, or 0: as recorded. */
static int add_split(struct words *words, const struct report_whatif *whatif,
		     const struct report_whatif_change *change)
{
	const struct run_layout *layout = whatif->plan.layout;
	const char *split = change->split;
	const bool automatic = !split || !strcmp(split, "auto");
	int stages = change->stages > 0 ? change->stages : layout->stages;
	int chunks = change->chunks; /* of the model, per IPU; 0: one stage per IPU */

	if (chunks <= 0) {
		const char *name = ipu_schedule_name(IPU_1F1B_INTERLEAVED);
		const bool asked = change->schedule && !strcmp(change->schedule, name);
		const bool was = whatif->measured.schedule == IPU_1F1B_INTERLEAVED;

		chunks = asked && !was && !split ? CHUNKS_DEFAULT : 0;
	}
	if (chunks > 0 && automatic) {
		if (change->stages == 0)
			stages = layout->ipus_used;
		add_round_robin(words, stages, chunks);
		return stages;
	}
	if (!split && change->stages == 0)
		return 0;
	if (automatic && stages == 1) {
		add_text(words, "--pipeline", "null");
		return stages;
	}
	add_text(words, "--pipeline.device_mapping", "null");
	if (automatic) {
		add_text(words, "--pipeline.stages", "auto");
		add_number(words, "--pipeline.auto_stages", stages);
		return stages;
	}
	add_text(words, "--pipeline.auto_stages", "null");
	if (strspn(split, "0123456789, ") == strlen(split)) {
		long most = 0;

		/* "0,0,1": the stage of each layer. */
		for (const char *at = split; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
			most = max(most, strtol(at, NULL, 10));
		add_text(words, "--pipeline.stages", arena_printf(&words->arena, "[%s]", split));
		return (int)min(most, STAGES_MOST - 1L) + 1;
	}
	return add_names(words, split);
}

/* ---- the command line ------------------------------------------------------------------------ */

static void add_change(struct words *words, const struct report_whatif *whatif,
		       const struct report_whatif_change *change)
{
	const struct run_layout *layout = whatif->plan.layout;
	int ipus, each = 1;

	/* Health rules do not affect a plan, and a file of rules may not exist here. */
	add_text(words, "--health", "null");
	ipus = layout ? add_split(words, whatif, change) : 0;
	if (change->schedule)
		add_text(words, "--pipeline.schedule", change->schedule);
	if (change->microbatches)
		add_number(words, "--gradient_accumulation.steps_per_replica",
			   change->microbatches);
	if (change->target)
		add_text(words, "--ipu.target",
			 strcmp(change->target, "bow") != 0 ? change->target : "ipu21");
	if (layout && (ipus || change->replicas)) {
		if (!ipus)
			each = layout->ipus_per_replica;
		while (each < ipus)
			each *= 2;
		add_number(words, "--ipu.auto_select_ipus",
			   each * (change->replicas ? change->replicas : layout->replicas));
	}
	for (int i = 0; i < change->count; i++)
		add_word(words, change->words[i]);
}

static int64_t round_up(int64_t value, int64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

static void drop_forward(struct words *words)
{
	add_text(words, "--fit.validation", "false");
	add_text(words, "--evaluate", "null");
	add_text(words, "--predict", "null");
}

/* Keep the run's evaluation and prediction, with executions that @layout supports. */
static void adjust_forward(struct words *words, const struct report_whatif *whatif,
			   const struct run_layout *layout)
{
	const struct run_file *run = whatif->plan.run;
	const struct run_layout *was = whatif->plan.layout;
	const int64_t unit = 2 * (int64_t)layout->stages;
	const int64_t evaluate = round_up(was->evaluate_steps_per_execution, unit);
	const int64_t predict = round_up(was->predict_steps_per_execution, unit);

	if (run->evaluate.wanted || run->fit.validation) {
		add_number(words, "--evaluate.steps_per_execution", evaluate);
		add_number(words, "--evaluate.steps", evaluate * layout->replicas);
	}
	if (run->predict.wanted) {
		add_number(words, "--predict.steps_per_execution", predict);
		add_number(words, "--predict.steps", predict * layout->replicas);
	}
}

/* ---- planning -------------------------------------------------------------------------------- */

static const struct run_checks checks = {.capture = outfeed_policy_check,
					 .rules = outfeed_health_check};

/* What an earlier build left in @err is gone: the parser starts it anew. */
static enum status build(struct plan_run *plan, const struct report_whatif *whatif,
			 const struct words *words, struct err *err)
{
	enum status status;

	plan_run_fini(plan);
	*plan = (struct plan_run){.like = whatif->plan.device};
	if (words->failed)
		return err_nomem(err);
	status = run_file_parse(&plan->run, whatif->name, whatif->text, strlen(whatif->text),
				words->count, words->list, &checks, err);
	return status == ST_OK ? plan_run_build(plan, &whatif->data, false, err) : status;
}

/* Plan with adjusted numbers of steps. The caller has checked that the user did not set them. */
static enum status build_adjusted(struct plan_run *plan, const struct report_whatif *whatif,
				  struct words *words, struct err *err)
{
	const struct run_file *was = whatif->plan.run;
	struct plan_run forward = {0};
	const struct run_file *run = plan->run;
	const int64_t updates = whatif->plan.layout->updates_per_execution;
	const int64_t micro = run->accumulation.wanted ? run->accumulation.steps_per_replica : 1;
	enum status status;
	int count;

	/* Steps of training, so that an execution has as many weight updates as recorded. */
	add_text(words, "--data.repeat", "true");
	add_number(words, "--compile.steps_per_execution", micro * updates);
	add_number(words, "--fit.steps_per_epoch",
		   micro * updates * (run->ipu.wanted ? run->ipu.auto_select_ipus : 1));
	count = words->count;
	drop_forward(words);
	status = build(plan, whatif, words, err);
	if (status != ST_OK ||
	    (!was->evaluate.wanted && !was->fit.validation && !was->predict.wanted))
		return status;
	/* The layout is known now; try to keep evaluation and prediction. */
	words->count = count;
	adjust_forward(words, whatif, plan->layout);
	if (build(&forward, whatif, words, NULL) != ST_OK) {
		plan_run_fini(&forward);
		words->count = count;
		drop_forward(words);
		return ST_OK;
	}
	plan_run_fini(plan);
	*plan = forward;
	return ST_OK;
}

/* Append the word in single quotes, of which the shell accepts none inside. */
static void add_quoted(struct str *text, const char *word)
{
	str_add(text, "'");
	for (; *word; word++)
		if (*word == '\'')
			str_add(text, "'\\''");
		else
			str_add_bytes(text, word, 1);
	str_add(text, "'");
}

/* Write the words as shell arguments, except the health option, which does not affect a plan. */
static void write_flags(char flags[REPORT_WHATIF_FLAGS_SIZE], const struct words *words)
{
	struct str text = {0};

	for (int i = 0; i < words->count; i++) {
		const char *word = words->list[i];
		const bool plain =
			strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "0123456789_-.,:/+=") == strlen(word);

		if (i == 0 && !strcmp(word, "--health")) {
			i++;
			continue;
		}
		str_add(&text, text.length > 0 ? " " : "");
		if (plain)
			str_add(&text, word);
		else
			add_quoted(&text, word);
	}
	flags[0] = '\0';
	if (!text.failed && text.length < REPORT_WHATIF_FLAGS_SIZE)
		str_copy(flags, REPORT_WHATIF_FLAGS_SIZE, str_peek(&text));
	str_free(&text);
}

enum status report__whatif_plan(struct plan_run *plan, const struct report_whatif *whatif,
				const struct report_whatif_change *change, bool *suited,
				char flags[REPORT_WHATIF_FLAGS_SIZE], struct err *err)
{
	static const char *const steps[] = {"--compile.steps_per_execution",
					    "--fit.steps_per_epoch"};
	struct words words = {0};
	bool given = false;
	enum status status;

	*suited = false;
	if (arena_init(&words.arena, 0) != 0)
		return err_nomem(err);
	add_change(&words, whatif, change);
	for (int i = 0; i < words.count; i++)
		for (size_t s = 0; s < ARRAY_LEN(steps); s++)
			given = given || !strcmp(words.list[i], steps[s]);
	status = build(plan, whatif, &words, err);
	if (status == ST_INVALID && plan->run && whatif->plan.layout && !given) {
		status = build_adjusted(plan, whatif, &words, err);
		*suited = status == ST_OK;
	}
	if (status == ST_OK && whatif->clock == REPORT_WHATIF_DEVICE)
		status = plan_run_compile(plan, &whatif->data, err);
	write_flags(flags, &words);
	mem_free(words.list);
	arena_fini(&words.arena);
	return status;
}

/* ---- figures --------------------------------------------------------------------------------- */

void report__whatif_figures(struct report_whatif_prediction *out, const struct plan_run *plan)
{
	const struct plan_device *device = plan->device;
	const struct ipu_bubble *bubble = &plan->program[RUN_TRAIN].bubble.measured;
	int64_t slowest = -1, update = 0;

	for (int s = 0; s < plan->layout->stages; s++) {
		const struct ipu_function_cost *of = device->costs.stages[s].function;
		const int64_t cycles = of[IPU_FUNCTION_F].cycles + of[IPU_FUNCTION_PUSH].cycles +
				       of[IPU_FUNCTION_B].cycles + of[IPU_FUNCTION_R].cycles +
				       of[IPU_FUNCTION_W].cycles;

		update = max(update, of[IPU_FUNCTION_U].cycles);
		if (cycles <= slowest)
			continue;
		slowest = cycles;
		out->slowest = s;
	}
	out->target = device->target.name;
	out->run_ns = ipu_target_ns(&device->target, device->timeline[RUN_TRAIN]->cycles);
	out->update_ns = ipu_target_ns(&device->target, update);
	out->slowest_ns = ipu_target_ns(&device->target, slowest);
	out->makespan_ns = bubble->makespan_ns;
	out->busy_ns = bubble->busy_ns;
	out->idle_fraction = bubble->idle_fraction;
	out->bubble_rate = bubble->bubble_rate;
	out->bubble_over_ideal = bubble->bubble_over_ideal;
	out->memory_ipu_bytes = ipu_memory_peak(device->memory);
	for (int i = 0; i < device->memory->ipu_count; i++)
		out->memory_tile_bytes =
			max(out->memory_tile_bytes, device->memory->ipus[i].worst_bytes);
	out->memory_fits = ipu_memory_fits(device->memory);
}
