/*
 * Control programs, derived from the timelines: a run of repeated time steps becomes one Repeat
 * over a Sequence, which holds the programs of all IPUs.
 *
 * Threads: none.
 */
#include "ipu/compile/ipu_program.h"

#include <stdlib.h>

#include "common/mem.h"
#include "common/sorted.h"
#include "ipu/compile/ipu_program_internal.h"

/* A program of a time step, for all IPUs; sorted in the order of execution within the step. */
struct item {
	int slot, order, copy, stage;
	int program;  /* once it exists; for a stream the first of three */
	int function; /* -1: the item is a transfer */
	enum ipu_transfer_kind kind;
};

struct control {
	struct ipu_lowering lowering;
	const struct ipu_mode *mode;
	struct ipu_folding folding;
	struct item *items;
	int count;
};

/* ---- folding --------------------------------------------------------------------------------- */

/* Micro-batches per period: the number that begin in the first one. */
static int microbatches_per_period(const struct ipu_schedule *schedule, int period)
{
	const int ipu = schedule->device[0];
	int lines = 0;

	for (int w = schedule->first[ipu]; w < schedule->first[ipu + 1]; w++)
		lines += schedule->works[w].stage == 0 && schedule->works[w].phase == IPU_PHASE_F &&
			 schedule->works[w].time_step < period;
	return lines;
}

/* Return whether steps @a and @b run the same stages in the same phases. */
static bool same_steps(const struct ipu_schedule *schedule, int a, int b)
{
	const int *first = schedule->step_first;
	const int count = first[a + 1] - first[a];

	if (first[b + 1] - first[b] != count)
		return false;
	for (int i = 0; i < count; i++) {
		const struct ipu_work *x = &schedule->works[schedule->by_step[first[a] + i]];
		const struct ipu_work *y = &schedule->works[schedule->by_step[first[b] + i]];

		if (x->stage != y->stage || x->phase != y->phase)
			return false;
	}
	return true;
}

/* Find the repetition of time steps that saves most steps. It includes the step after the last
 * repeated one, because that step uses what the recomputation before it produced. */
static struct ipu_folding find_folding(const struct ipu_schedule *schedule)
{
	const int steps = schedule->time_steps, longest = 3 * schedule->stages;
	struct ipu_folding best = {.lead = steps, .slots = steps};
	int saved = 0;

	for (int period = 1; period <= longest; period++) {
		for (int t = 0, run = 0; t + period < steps; t++) {
			int repeats;

			run = same_steps(schedule, t, t + period) ? run + 1 : 0;
			repeats = (run + period - 1) / period;
			if ((repeats - 1) * period <= saved)
				continue;
			saved = (repeats - 1) * period;
			best = (struct ipu_folding){.lead = t + 1 - run,
						    .period = period,
						    .repeats = repeats,
						    .slots = steps - saved};
		}
	}
	return best;
}

struct ipu_folding ipu_control_fold(const struct ipu_schedule *schedule,
				    const struct ipu_timeline *timeline)
{
	const int period = schedule->round;
	const int more = timeline->time_steps - schedule->time_steps;
	struct ipu_folding folding = {.period = period,
				      .microbatches = microbatches_per_period(schedule, period)};

	if (period == 0)
		return find_folding(schedule);
	if (ipu_schedule_row(schedule->kind)->pace == IPU_PACE_ALONE) {
		folding.repeats = timeline->time_steps / period;
	} else {
		const int rounds = schedule->microbatches / folding.microbatches;

		folding.lead = period + more;
		folding.repeats = (rounds * period - folding.lead) / period;
	}
	if (folding.repeats < 1) {
		folding.repeats = 0;
		folding.lead = timeline->time_steps;
	}
	folding.slots = timeline->time_steps;
	if (folding.repeats > 0)
		folding.slots -= (folding.repeats - 1) * period;
	return folding;
}

static int slot_of(const struct ipu_folding *folding, int time_step)
{
	const int main_end = folding->lead + folding->repeats * folding->period;

	if (time_step < folding->lead)
		return time_step;
	if (time_step < main_end)
		return folding->lead + (time_step - folding->lead) % folding->period;
	return time_step - (folding->repeats > 0 ? folding->repeats - 1 : 0) * folding->period;
}

/* ---- items ----------------------------------------------------------------------------------- */

/* Execution order within a time step. */
enum {
	ORDER_START,
	ORDER_INFEED,
	ORDER_COPY_IN,
	ORDER_WAIT,
	ORDER_RECEIVE,
	ORDER_FORWARD,
	ORDER_BACKWARD, /* R comes right before it */
	ORDER_WEIGHT,
	ORDER_PUSH,
	ORDER_RECOMPUTE,
	ORDER_UPDATE,
	ORDER_COPY_OUT,
	ORDER_SYNC,
	ORDER_COPY, /* between IPUs: per stage a sync (if not in step yet), then its copies */
	ORDER_SYNC_ANS,
	ORDER_OUTFEED
};

static struct item event_item(const struct control *control, const struct ipu_event *event)
{
	static const int orders[] = {
		[IPU_FUNCTION_F] = ORDER_FORWARD,       [IPU_FUNCTION_B] = ORDER_BACKWARD,
		[IPU_FUNCTION_U] = ORDER_UPDATE,        [IPU_FUNCTION_R] = ORDER_RECOMPUTE,
		[IPU_FUNCTION_PUSH] = ORDER_PUSH,       [IPU_FUNCTION_START] = ORDER_START,
		[IPU_FUNCTION_W] = ORDER_WEIGHT,        [IPU_FUNCTION_EVALUATE] = ORDER_FORWARD,
		[IPU_FUNCTION_PREDICT] = ORDER_FORWARD,
	};
	const struct ipu_layout *layout = &control->lowering.executable->graph->layout;
	struct item item = {.slot = slot_of(&control->folding, event->time_step),
			    .order = orders[event->function],
			    .stage = 2 * event->stage + 1,
			    .function = (int)event->function,
			    .program = -1};

	_Static_assert(ARRAY_LEN(orders) == IPU_FUNCTION_PHASES, "orders out of step");
	if (event->function == IPU_FUNCTION_R &&
	    layout->recompute == IPU_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED) {
		item.order = ORDER_BACKWARD;
		item.stage--;
	}
	if (event->function == IPU_FUNCTION_START)
		item.slot = -1;
	return item;
}

static struct item transfer_item(const struct control *control, const struct ipu_transfer *transfer)
{
	static const int orders[] = {
		[IPU_TRANSFER_INFEED] = ORDER_INFEED,     [IPU_TRANSFER_COPY_IN] = ORDER_COPY_IN,
		[IPU_TRANSFER_COPY_OUT] = ORDER_COPY_OUT, [IPU_TRANSFER_SYNC] = ORDER_SYNC,
		[IPU_TRANSFER_GLOBAL] = ORDER_COPY,       [IPU_TRANSFER_SYNC_ANS] = ORDER_SYNC_ANS,
		[IPU_TRANSFER_OUTFEED] = ORDER_OUTFEED,   [IPU_TRANSFER_WAIT] = ORDER_WAIT,
		[IPU_TRANSFER_RECEIVE] = ORDER_RECEIVE,
	};
	struct item item = {.slot = slot_of(&control->folding, transfer->time_step),
			    .order = orders[transfer->kind],
			    .stage = 2 * transfer->stage + 1,
			    .function = -1,
			    .kind = transfer->kind,
			    .program = -1};

	_Static_assert(ARRAY_LEN(orders) == IPU_TRANSFER_KINDS, "orders out of step");
	if (transfer->kind == IPU_TRANSFER_SYNC && transfer->stage >= 0)
		item.order = ORDER_COPY;
	/* Forward copies by stage, then gradient copies; each sync before the copies it serves. */
	if (item.order == ORDER_COPY)
		item.copy = 2 * (transfer->stage +
				 transfer->backward * control->mode->schedule->stages) +
			    (transfer->kind == IPU_TRANSFER_GLOBAL);
	/* The outfeed of a whole run precedes its last sync. */
	if (item.slot == control->folding.slots && transfer->kind == IPU_TRANSFER_OUTFEED)
		item.order = ORDER_UPDATE + 1;
	return item;
}

static int compare_items(const void *left, const void *right)
{
	const struct item *a = left, *b = right;

	return SORTED_BY(a, b, slot, order, copy, stage);
}

static void collect_items(struct control *control)
{
	const struct ipu_timeline *timeline = control->mode->timeline;
	struct ipu_walk walk = {.timeline = timeline};
	int kept = 0;

	control->items = mem_calloc((size_t)timeline->count + (size_t)timeline->transfer_count + 1,
				    sizeof(*control->items));
	if (!control->items) {
		control->lowering.failed = true;
		return;
	}
	while (ipu_walk_next(&walk))
		control->items[control->count++] = walk.event
							   ? event_item(control, walk.event)
							   : transfer_item(control, walk.transfer);
	qsort(control->items, (size_t)control->count, sizeof(*control->items), compare_items);
	for (int i = 0; i < control->count; i++)
		if (i == 0 || compare_items(&control->items[kept - 1], &control->items[i]) != 0)
			control->items[kept++] = control->items[i];
	control->count = kept;
}

/* ---- programs -------------------------------------------------------------------------------- */

static void add_call(struct ipu_lowering *lowering, int parent, int target, const char *name)
{
	const int call = ipu__program_add(lowering, parent, IPU_CALL, name, -1);

	if (!lowering->failed)
		lowering->programs[call].call_target = target;
}

/* Return the first of the three programs. */
static int add_stream(struct ipu_lowering *lowering, int parent, const char *name)
{
	const int begin = ipu__program_add(lowering, parent, IPU_STREAM_COPY_BEGIN, name, -1);

	ipu__program_add(lowering, parent, IPU_STREAM_COPY_MID, name, -1);
	ipu__program_add(lowering, parent, IPU_STREAM_COPY_END, name, -1);
	return begin;
}

static void add_transfer(struct ipu_lowering *lowering, int parent, struct item *item)
{
	static const char *const names[] = {
		[IPU_TRANSFER_INFEED] = "Infeed",
		[IPU_TRANSFER_COPY_IN] = "Infeed/InterTilesetCopy",
		[IPU_TRANSFER_COPY_OUT] = "Outfeed/InterTilesetCopy",
		[IPU_TRANSFER_OUTFEED] = "Outfeed",
		[IPU_TRANSFER_WAIT] = "External",
		[IPU_TRANSFER_RECEIVE] = "InterIpuCopy/Receive",
		[IPU_TRANSFER_SYNC] = "External",
		[IPU_TRANSFER_GLOBAL] = "InterIpuCopy/GlobalExchange",
		[IPU_TRANSFER_SYNC_ANS] = "InterIpuCopy/SyncAns",
	};
	const enum ipu_program_type type = ipu_transfer_type(item->kind);
	const char *name = names[item->kind];

	_Static_assert(ARRAY_LEN(names) == IPU_TRANSFER_KINDS, "transfer names out of step");
	if (item->stage > 0)
		name = ipu__name(lowering, "Stage%d/%s", item->stage / 2, name);
	item->program = type == IPU_STREAM_COPY_MID
				? add_stream(lowering, parent, name)
				: ipu__program_add(lowering, parent, type, name, -1);
}

static void add_items(struct control *control, int parent, int slot)
{
	struct ipu_lowering *lowering = &control->lowering;

	for (int i = 0; i < control->count; i++) {
		struct item *item = &control->items[i];
		const int stage = item->stage / 2;
		int target;

		if (item->slot != slot)
			continue;
		if (item->function < 0) {
			add_transfer(lowering, parent, item);
			continue;
		}
		target = lowering->executable->code[stage][item->function].program;
		add_call(lowering, parent, target, lowering->programs[target].name);
	}
}

/* Add time steps @first .. @end - 1 of the folding. */
static void add_time_steps(struct control *control, int parent, int first, int end)
{
	for (int slot = first; slot < end; slot++)
		add_items(control,
			  ipu__sequence_add(&control->lowering, parent, "step%d", slot - first),
			  slot);
}

static void add_run(struct control *control, int parent)
{
	const struct ipu_folding *folding = &control->folding;
	const struct ipu_graph *graph = control->lowering.executable->graph;
	struct ipu_lowering *lowering = &control->lowering;
	const int main_end = folding->lead + (folding->repeats > 0 ? folding->period : 0);

	for (int s = 0; s < graph->layout.stages && control->mode->schedule->training; s++)
		if (lowering->executable->code[s][IPU_FUNCTION_PUSH].program >= 0)
			ipu__program_add(lowering, parent, IPU_WRITE_UNDEF,
					 ipu__name(lowering, "Stage%d/FIFO", s), -1);
	add_items(control, parent, -1);
	if (folding->lead > 0)
		add_time_steps(control, ipu__sequence_add(lowering, parent, "RampUp"), 0,
			       folding->lead);
	if (folding->repeats > 0)
		add_time_steps(control,
			       ipu__sequence_add(lowering,
						 ipu__repeat_add(lowering, parent, folding->repeats,
								 "Main", -1),
						 "MicroBatches"),
			       folding->lead, main_end);
	if (main_end < folding->slots)
		add_time_steps(control, ipu__sequence_add(lowering, parent, "RampDown"), main_end,
			       folding->slots);
	add_items(control,
		  ipu__sequence_add(lowering, parent, "%s",
				    control->mode->schedule->training ? "WeightUpdate" : "End"),
		  folding->slots);
}

/* Return the root program of the mode. */
static int add_mode(struct control *control, const struct ipu_mode *mode)
{
	struct ipu_lowering *lowering = &control->lowering;
	int root;

	control->mode = mode;
	control->count = 0;
	control->folding = ipu_control_fold(mode->schedule, mode->timeline);
	collect_items(control);
	root = ipu__sequence_add(lowering, -1, "%s", mode->name);
	add_run(control,
		ipu__sequence_add(lowering,
				  ipu__repeat_add(lowering, root, mode->runs, "PipelineRuns", -1),
				  "PipelineRun"));
	if (!lowering->failed) {
		/* A transfer knows its program. */
		struct ipu_timeline *timeline = control->mode->timeline;

		for (int i = 0; i < timeline->transfer_count; i++) {
			const struct item key = transfer_item(control, &timeline->transfers[i]);
			const struct item *found =
				bsearch(&key, control->items, (size_t)control->count,
					sizeof(*control->items), compare_items);

			timeline->transfers[i].program = found ? found->program : -1;
		}
	}
	mem_free(control->items);
	control->items = NULL;
	return root;
}

/* Start from the executable's current programs. */
static void resume_lowering(struct ipu_lowering *lowering, struct ipu_executable *executable)
{
	const size_t count = (size_t)executable->program_count;

	*lowering =
		(struct ipu_lowering){.executable = executable, .roots = executable->root_count};
	if (mem_grow(&lowering->programs, &lowering->program_capacity, count + 1,
		     sizeof(*lowering->programs)) != 0) {
		lowering->failed = true;
		return;
	}
	for (size_t i = 0; i < count; i++)
		lowering->programs[i] = executable->programs[i];
	lowering->program_count = count;
}

enum status ipu_control_add(struct ipu_executable *executable, const struct ipu_mode *modes,
			    int count, struct err *err)
{
	struct control control = {0};
	struct ipu_lowering *lowering = &control.lowering;
	int *roots = mem_calloc((size_t)count + 1, sizeof(*roots));
	int root, choice;
	enum status status;

	if (!roots)
		return err_nomem(err);
	resume_lowering(lowering, executable);
	for (int m = 0; m < count && !lowering->failed; m++)
		if (modes[m].timeline)
			roots[m] = add_mode(&control, &modes[m]);
	root = ipu__sequence_add(lowering, -1, "Engine::run");
	add_stream(lowering, root, "controlProgram/flag");
	add_stream(lowering, root, "controlProgram/id");
	ipu__program_add(lowering, root, IPU_DO_EXCHANGE, "controlProgram/broadcast", -1);
	choice = ipu__program_add(lowering, root, IPU_SWITCH, "controlProgram/switch", -1);
	for (int m = 0; m < count; m++)
		if (modes[m].timeline)
			add_call(lowering, choice, roots[m], modes[m].name);
	status = ipu__programs_store(lowering, err);
	mem_free(lowering->programs);
	mem_free(roots);
	return status;
}
