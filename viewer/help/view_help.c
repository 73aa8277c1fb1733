/*
 * The screen Help: what the screen shows that it was opened on, its terms, and its keys, made from
 * the key table; in text output, of all screens. Definitions are those of docs/schema.md and
 * docs/cost-model.md.
 *
 * Threading: that of the session. Ownership: the blocks own their texts.
 */
#include "viewer/view_screen.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/str.h"
#include "viewer/draw/view_blocks.h"

/* ---- texts ----------------------------------------------------------------------------------- */

static const struct view_help_word summary_words[] = {
	{"step",
	 "one batch through the whole model; with a pipeline such a batch is a micro-batch"},
	{"weight update",
	 "the optimizer changes the weights, after as many micro-batches as gradient accumulation "
	 "says"},
	{"stage", "a part of the layers on an IPU of its own; micro-batches go through all stages"},
	{"bubble", "of the time of all IPUs within weight updates, that without work of a stage"},
	{"waiting",
	 "of one IPU's time in executions, that with nothing to do (ipu-report time-split)"},
	{"idle", "of the window of the Timeline, what a lane has no work in"},
	{"bubble rate",
	 "over the longest time from a stage's first work to its last; the mean of updates"},
	{"over ideal",
	 "time without work over time with work: the mean of updates; can exceed 100 %"},
	{"theory", "the bubble that the schedule has with these stages if sending cost nothing"},
	{"ramp-up, -down", "the bubble before an IPU's first work, and after its last"},
	{"imbalance", "the bubble while another stage takes longer"},
	{"communication", "the bubble while the input is on its way"},
	{"device (sim)",
	 "the simulated IPUs; their time, from 0, comes from a cost model, not from a clock"},
	{"host",
	 "this machine, whose workers play the IPUs; its time is measured from the run's start"},
	{"written", "of a run that goes on: up to when, by these two, the file has what is seen"},
	{"local", "the time of day, here: when the run was started"},
	{"training", "its arithmetic over all its time; the peak is of all IPUs that are attached"},
	{"own cost", "what recording took of the run"},
	{0}};

static const struct view_help_key summary_keys[] = {
	{VIEW_UP_REQUEST, "The line before that leads on"},
	{VIEW_DOWN_REQUEST, "The next line that leads on"},
	{VIEW_ENTER_REQUEST, "Go where the line leads"},
	{0}};

static const struct view_help_word insights_words[] = {
	{"problem", "the run is wrong, or its recording is not whole"},
	{"advice", "it could be faster or smaller"},
	{"note", "to be known before figures are believed"},
	{"about, which", "what it is about: an IPU, a stage, a rule, an operation; and which one"},
	{"at stake", "the share of the time (or of the memory) that it is about; shares overlap"},
	{"recorded, predicted", "as it was simulated, and as it would be after the change"},
	{"step", "one batch (with a pipeline a micro-batch) through the whole model"},
	{"bubble", "of the time of all IPUs within weight updates, that without work of a stage"},
	{"waiting", "of one IPU's time in executions, that with nothing to do"},
	{"ramps", "the beginning and end of a weight update, when not all stages have work"},
	{"compute_share", "of an IPU's time, in which it computes"},
	{0}};

static const struct view_help_key insights_keys[] = {
	{VIEW_ENTER_REQUEST, "Go to the screen that shows what it is about"},
	{VIEW_VIEW_REQUEST, "List and text, the list alone, the text alone"},
	{VIEW_BREAKDOWN_REQUEST, "Problems, advice or notes alone, and all"},
	{VIEW_SELECT_REQUEST, "What is about one IPU, and all"},
	{VIEW_LEFT_REQUEST, "The text alone: the insight before"},
	{VIEW_RIGHT_REQUEST, "The text alone: the next insight"},
	{0}};

static const struct view_help_word whatif_words[] = {
	{"change", "what is other than in the recorded run; all else stays"},
	{"speedup", "samples a second over those of the recorded run"},
	{"update", "from weight update to weight update, all its micro-batches included"},
	{"bubble", "of a weight update the time in which IPUs of the pipeline have nothing to do"},
	{"IPU memory", "of the IPU that needs most; fits 0: some tile has too little"},
	{"split auto", "the stages that the trainer would cut"},
	{"stages", "so many, each on an IPU of its own, cut as split auto does"},
	{0}};

static const struct view_help_key whatif_keys[] = {
	{VIEW_ENTER_REQUEST, "The flags of ipu-train that make it so, to be copied"}, {0}};

static const struct view_help_word accelerators_words[] = {
	{"self", "what a kernel adds to the time in which its device works"},
	{"overlap", "of communication: the share during which compute kernels ran, too"},
	{"host late", "idle since the kernel behind it was launched too late"},
	{"short", "launches of what ran for less time than the call took"},
	{"critical path", "what determined how long a step took; nothing else shortens it"},
	{"range", "what the program named: NVTX, ROCTx, record_function"},
	{"reserved", "what the allocator held, used or not"},
	{0}};

static const struct view_help_key accelerators_keys[] = {
	{VIEW_ENTER_REQUEST, "The row's span on the Timeline, or the longest of its name"},
	{VIEW_VIEW_REQUEST, "The next report: temporal, launch, critical path ..."},
	{VIEW_BREAKDOWN_REQUEST, "Its rows by another column"},
	{0}};

static const struct view_help_word communication_words[] = {
	{"rank", "a process of the training, or of a program, that MPI has started"},
	{"exposed", "how long calls of MPI kept the rank from its own work"},
	{"hidden", "how long the exchange went on behind the backward pass; share hidden: of that "
		   "and exposed"},
	{"waited", "of exposed, until the last rank came to the same operation"},
	{"came last", "how often the others had to wait for this rank"},
	{"bucket", "gradients that are exchanged together, the last layers' first"},
	{"own time, imbalance", "the time outside of calls; over the mean of all ranks, less 1"},
	{"algbw, busbw", "bytes of the operation over its time; the same as a ring's links see it"},
	{0}};

static const struct view_help_key communication_keys[] = {
	{VIEW_ENTER_REQUEST, "Go to the rank's calls of that weight update on the Timeline ..."},
	{VIEW_LEFT_REQUEST, "A weight update earlier"},
	{VIEW_RIGHT_REQUEST, "A weight update later"},
	{VIEW_UP_REQUEST, "The row above; the map alone: the rank above"},
	{VIEW_DOWN_REQUEST, "The row below; the map alone: the rank below"},
	{VIEW_STATISTIC_REQUEST, "The map: exposed, share hidden, waited, bytes, came last"},
	{VIEW_VIEW_REQUEST, "Map and table, the map alone, the table alone"},
	{VIEW_BREAKDOWN_REQUEST, "The table by rank, straggler, update, call, bucket"},
	{VIEW_SELECT_REQUEST, "The next rank"},
	{VIEW_LONGEST_GAP_REQUEST, "Where the map has most; of the share hidden, least"},
	{0}};

static const struct view_help_word memory_words[] = {
	{"tile", "a core of an IPU with 624 kB of memory of its own; 0,986 is tile 986 of IPU 0"},
	{"all tiles", "summed over the tiles of all IPUs"},
	{"vertexCode", "code of the vertices, the small programs that compute on a tile"},
	{"controlCode", "the program that calls them; exchange codes move data between tiles"},
	{"variables", "weights and whatever else is there all the time"},
	{"notAlwaysLive...", "what lives from its first write to its last use, at the most"},
	{"always live", "needed during the whole run; see Liveness"},
	{"excluding gaps", "what is needed; holes between variables are not known"},
	{"interleaved", "the part of a tile's memory that is read twice as wide"},
	{0}};

static const struct view_help_key memory_keys[] = {
	{VIEW_ENTER_REQUEST, "To the details and back; on a variable: its tiles"},
	{VIEW_VIEW_REQUEST, "Curve, floor plan of the chip, histogram, table"},
	{VIEW_BREAKDOWN_REQUEST, "By category, by region, by liveness, all as one"},
	{VIEW_STATISTIC_REQUEST, "One part of the breakdown alone, then the next"},
	{VIEW_MARK_ROW_REQUEST, "Hold this tile, to see others beside it"},
	{VIEW_UNIT_REQUEST, "Tiles in physical order, or by number"},
	{VIEW_LONGEST_GAP_REQUEST, "The tile that has most of what is shown"},
	{VIEW_ZOOM_ALL_REQUEST, "All tiles; then up to what a tile has"},
	{VIEW_SEARCH_REQUEST, "A tile (37, or 1,37) or a variable's name"},
	{0}};

static const struct view_help_word liveness_words[] = {
	{"step", "a program that runs: a copy, an exchange, a compute set; in their order"},
	{"always live", "weights, optimizer state, code: there at every step"},
	{"not always live", "activations, gradients, temporaries: from first write to last use"},
	{"peak", "the step at which most is live, which decides whether the program fits"},
	{"from, to", "the steps between which a variable is live"},
	{0}};

static const struct view_help_key liveness_keys[] = {
	{VIEW_LEFT_REQUEST, "A step earlier"},
	{VIEW_RIGHT_REQUEST, "A step later"},
	{VIEW_UP_REQUEST, "The variable above"},
	{VIEW_DOWN_REQUEST, "The variable below"},
	{VIEW_VIEW_REQUEST, "Chart and table, the chart alone, the table alone"},
	{VIEW_BREAKDOWN_REQUEST, "Always live or not always live variables alone, and both"},
	{VIEW_MARK_ROW_REQUEST, "Hold this step, to see others beside it"},
	{VIEW_LONGEST_GAP_REQUEST, "The peak"},
	{0}};

static const struct view_help_word programs_words[] = {
	{"Sequence", "programs that run one after the other"},
	{"OnTileExecute", "a compute set: vertices compute on their tiles"},
	{"DoExchange", "data move between the tiles of an IPU"},
	{"GlobalExchange", "data move between IPUs"},
	{"StreamCopy", "data come from the host or go to it"},
	{"Sync", "tiles or IPUs wait for each other"},
	{"Stage0/F", "forward of stage 0; B backward, U weight update, FIFO what is kept between"},
	{"times", "how often a weight update runs it"},
	{"cycles", "simulated clock ticks in a weight update, all that is below included"},
	{0}};

static const struct view_help_key programs_keys[] = {
	{VIEW_ENTER_REQUEST, "Open or close; in the list: show it in the tree"},
	{VIEW_VIEW_REQUEST, "The tree, or all programs as one list"},
	{VIEW_BREAKDOWN_REQUEST, "What is below, by kind of program"},
	{VIEW_LEFT_REQUEST, "Close it, or to what it is in"},
	{VIEW_RIGHT_REQUEST, "Open it, or into it"},
	{VIEW_PARENT_REQUEST, "To what it is in"},
	{0}};

static const struct view_help_word operations_words[] = {
	{"operation", "a part of a layer: MatMul, its gradients GradW and GradX, SGD, a loss"},
	{"cycles", "simulated clock ticks; compute + exchange + sync"},
	{"compute", "vertices at work on the tiles"},
	{"exchange", "data on their way between tiles"},
	{"sync", "waiting for the slowest tile, and the next start"},
	{"FLOP", "floating point operations (additions and multiplications)"},
	{"TFLOP/s", "FLOP over the time in which an operation runs, beside one IPU's peak"},
	{"tiles", "how many of the IPU's tiles have work"},
	{"balance", "mean work of all tiles over the most that one has; 100 % is even; of a "
		    "compute set only the tiles at work count"},
	{"compute set", "what the tiles do at the same time, between two syncs"},
	{0}};

static const struct view_help_key operations_keys[] = {
	{VIEW_ENTER_REQUEST, "The operations of a layer or stage; of one: its details"},
	{VIEW_VIEW_REQUEST, "By operation, layer, kind or stage"},
	{VIEW_BREAKDOWN_REQUEST, "Bars of compute, exchange and sync"},
	{VIEW_SELECT_REQUEST, "One stage alone, and all"},
	{VIEW_UNIT_REQUEST, "Cycles or time"},
	{0}};

static const struct view_help_word timeline_words[] = {
	{"F0 B0 W0 R0", "forward, backward, weight part, recomputation of micro-batch 0"},
	{"U", "weight update"},
	{"Infeed, Outfeed", "data from the host, and to it"},
	{"legend",
	 "the second line names the colours of the picture: phases of work, then idle time"},
	{"shaded", "the bubble: an IPU without work of its stage, within a weight update"},
	{"column", "many spans in one cell: its height is the share of time busy"},
	{"idle", "of the window, the share in which the lane has no work"},
	{"no run", "of the window, the share between runs of the device's programs (BSP)"},
	{"Engine::run", "one call of the device's program: an execution of many steps"},
	{"written", "Summary: up to when, by these two clocks, the file of a run that goes on is"},
	{"device (sim)",
	 "the simulated clock; its window shows the same executions as that of host, which "
	 "is measured"},
	{"theory", "the bubble that the schedule has with these stages if sending cost nothing"},
	{"up, down",
	 "ramp-up and ramp-down: the bubble before an IPU's first work, after its last"},
	{"imb., comm.",
	 "the bubble while another stage takes longer; while the input is on its way"},
	{"tile balance", "mean of the tiles' work over the most that one has"},
	{"critical path", "what determined how long a step of a GPU program took"},
	{0}};

static const struct view_help_key timeline_keys[] = {
	{VIEW_ENTER_REQUEST, "Details of the span, with and without"},
	{VIEW_VIEW_REQUEST, "Gantt, flame, flat, BSP (what the tiles do)"},
	{VIEW_BREAKDOWN_REQUEST, "The bubble by its causes; the critical path; sums by name"},
	{VIEW_ALWAYS_LIVE_REQUEST, "To the other end of an arrow: launch, kernel; and back"},
	{VIEW_UP_REQUEST, "The lane or depth above"},
	{VIEW_DOWN_REQUEST, "The lane or depth below"},
	{VIEW_LEFT_REQUEST, "Earlier"},
	{VIEW_RIGHT_REQUEST, "Later"},
	{VIEW_HOME_REQUEST, "The beginning of the run"},
	{VIEW_END_REQUEST, "Its end"},
	{VIEW_UNIT_REQUEST, "Device times in ns or cycles"},
	{VIEW_LONGEST_GAP_REQUEST, "The longest idle time of the lane in the window"},
	{VIEW_SEARCH_REQUEST, "The next span whose name has the text"},
	{0}};

static const struct view_help_word tensors_words[] = {
	{"kind", "activation (a layer's output), gradient, weight, optimizer state"},
	{"..._grad", "the gradient of the weight before it; bias:0 and kernel:0 are weights"},
	{"std, mean", "standard deviation and mean of a tensor's elements"},
	{"max std", "the largest that any step or weight update had"},
	{"NaN, Inf", "elements that are no number, and infinite ones"},
	{"rows", "statistics that were recorded: a row for each time"},
	{"tier", "how much of a tensor is kept: health, counts, stats, histogram, full"},
	{"histograms", "how many elements have which size; a column for each time, darker is more"},
	{"values", "elements of a tensor that was kept whole (captured)"},
	{0}};

static const struct view_help_key tensors_keys[] = {
	{VIEW_ENTER_REQUEST, "Give it the screen; then: go to other screens"},
	{VIEW_VIEW_REQUEST, "Below: curve, histograms, values, rules broken, rows"},
	{VIEW_STATISTIC_REQUEST, "Another statistic (std, mean ...); values: another time"},
	{VIEW_BREAKDOWN_REQUEST, "Only gradients, another kind, all; values: as a picture"},
	{VIEW_UNIT_REQUEST, "Curve: a logarithmic axis; attention: shades by row"},
	{VIEW_SELECT_REQUEST, "The next replica, and all together"},
	{0}};

static const struct view_help_word metrics_words[] = {
	{"mode", "train, or evaluate: on data that the model was not trained with"},
	{"per", "a value for each step, or for an epoch: the whole of the data once"},
	{"rank", "the process, where several train together"},
	{"least, greatest", "of all values"},
	{"loss", "how wrong the model is; training makes it less"},
	{"accuracy", "the share of samples that the model is right about"},
	{"trend", "all values at a small size"},
	{"falling, rising", "the mean of the last quarter of the values beside that of the quarter "
			    "before; level: no more "
			    "than noise parts them"},
	{0}};

static const struct view_help_key metrics_keys[] = {
	{VIEW_ENTER_REQUEST, "The curve alone, and with the list"},
	{VIEW_VIEW_REQUEST, "Over steps, epochs or time"},
	{VIEW_BREAKDOWN_REQUEST, "Every point, or means of several: smoother"},
	{VIEW_STATISTIC_REQUEST, "The curve of the next metric"},
	{VIEW_UNIT_REQUEST, "A logarithmic axis, and a linear one"},
	{VIEW_LEFT_REQUEST, "The point before"},
	{VIEW_RIGHT_REQUEST, "The next point"},
	{0}};

static const struct view_help_word health_words[] = {
	{"rule", "what a sound training does not do; each is explained under the list"},
	{"hits", "how often it was broken"},
	{"threshold", "how much is too much"},
	{"patience", "how many times in a row, before it counts"},
	{"first in, at", "the layer where it was broken first, and when (host time)"},
	{"found", "what was there, to be held against the threshold"},
	{"phase", "F forward, B backward, U weight update"},
	{"NaN, Inf", "no number, and infinite: a model with such weights is lost"},
	{"trail", "where bad numbers began, and what was the last good before"},
	{0}};

static const struct view_help_key health_keys[] = {
	{VIEW_ENTER_REQUEST, "The hits of the rule; of a hit: go to other screens"},
	{VIEW_VIEW_REQUEST, "Rules, hits, hits by layer, where bad numbers began"},
	{VIEW_VIEW_BACK_REQUEST, "Backwards: first where bad numbers began"},
	{VIEW_BREAKDOWN_REQUEST, "Hits by layer, tensor, stage, phase or epoch"},
	{0}};

static const struct view_help_word sql_words[] = {
	{"view", "a table to ask for; the list says what a row of each is"},
	{"read-only", "no statement can change the report or write a file"},
	{"ns", "names that end so are nanoseconds"},
	{0}};

static const struct view_help_key sql_keys[] = {
	{VIEW_ENTER_REQUEST, "The views: ask for it; a row: edit the statement"},
	{VIEW_VIEW_REQUEST, "The statement, the views, the rows"},
	{0}};

static const struct view_help_told help_texts[VIEW_SCREENS] = {
	[VIEW_SUMMARY] = {"what ran, how fast, is it sound, what to look at next",
			  "The run at a glance. The arrows stop at lines that lead on, and Enter "
			  "goes there.",
			  summary_words, summary_keys},
	[VIEW_INSIGHTS] = {"what is wrong, what to do, what that is worth",
			   "What the numbers of this run say, the most important first: the list, "
			   "and of the one under the cursor what to do about it.",
			   insights_words, insights_keys},
	[VIEW_WHATIF] = {"how fast would another schedule, split or target be",
			 "The recorded training, and what is predicted had it been made otherwise: "
			 "planned again as `ipu-report what-if` does. Simulated.",
			 whatif_words, whatif_keys},
	[VIEW_MEMORY] = {"does it fit, which tile is fullest, with what",
			 "Memory of the simulated IPUs, tile by tile; below, what the tile under "
			 "the cursor holds.",
			 memory_words, memory_keys},
	[VIEW_LIVENESS] = {"what is in memory at each step, where the peak is",
			   "How much memory is in use at each step of the program, and by which "
			   "variables at the step under the cursor. Simulated.",
			   liveness_words, liveness_keys},
	[VIEW_PROGRAMS] = {"what the device does, as a tree of programs",
			   "The program that the simulated device runs, and the cycles of its "
			   "parts.",
			   programs_words, programs_keys},
	[VIEW_OPERATIONS] = {"which operation or layer takes the time, and why",
			     "Operations of the model, the longest first, and of the one under the "
			     "cursor how it is spread over the tiles. Simulated.",
			     operations_words, operations_keys},
	[VIEW_TIMELINE] =
		{"what ran when, how large the bubble is and why",
		 "A lane for each IPU, on the device's clock and on the host's; time runs "
		 "to the right. Below, the span under the cursor.",
		 timeline_words, timeline_keys},
	[VIEW_TENSORS] = {"how large activations and gradients are, and their values",
			  "Statistics of the tensors that were recorded, and below, those of the "
			  "one under the cursor over the training. Measured.",
			  tensors_words, tensors_keys},
	[VIEW_METRICS] =
		{"loss and accuracy as curves: does it still learn",
		 "Loss, accuracy and other measures of the model, and the curve of the one "
		 "under the cursor. Measured.",
		 metrics_words, metrics_keys},
	[VIEW_HEALTH] = {"which rules were broken, where bad numbers began",
			 "Rules that watch the training. Bad numbers are NaN and Inf. Below, when "
			 "rules were broken.",
			 health_words, health_keys},
	[VIEW_RANKS] = {"what ranks exchange, who waits for whom, what is hidden",
			"Calls of MPI: a map of ranks by weight updates, in shades of what "
			"was waited for, hidden or sent, and the same as a table. Measured.",
			communication_words, communication_keys},
	[VIEW_ACCELERATORS] =
		{"which kernel to fix first, why the GPU is idle",
		 "Recordings of GPUs: the reports on kernels, a device's time, launches, "
		 "the critical path, steps, ranges and memory, one at a time. Measured.",
		 accelerators_words, accelerators_keys},
	[VIEW_SQL] = {"anything else: queries on the recording",
		      "The report is a SQLite database. Type a statement with a ; at its end, and "
		      "Enter; Tab completes names, Up brings back earlier statements, Esc leaves "
		      "the line.",
		      sql_words, sql_keys},
	[VIEW_HELP_SCREEN] = {"what a screen shows, its words, its keys", "", NULL, NULL},
};

const struct view_help_told *view_help_told(enum view_screen screen)
{
	return &help_texts[screen];
}

/* ---- the screen ------------------------------------------------------------------------------ */

#define KEYS_WIDTH 20
#define TWO_FROM   110 /* in narrower columns most texts would be folded */
#define LINE_MOST  100 /* longer ones are hard to read */

struct view_help {
	struct view_blocks blocks;
	int about, width; /* what the blocks are of; width 0: nothing yet */
	int line;         /* columns of a line, the name included */
};

static void view_help_fini(void *state)
{
	view_blocks_fini(&((struct view_help *)state)->blocks);
}

static void view_help_width(struct view_help *help, bool head)
{
	const int line = view_blocks_line_width(&help->blocks, head, help->width);

	help->line = min(line, LINE_MOST);
}

static void view_help_fact(struct view_help *help, const char *name, const char *text)
{
	const int width = help->line - KEYS_WIDTH;
	const char *copy = arena_strdup(&help->blocks.arena, name);

	if (copy)
		view_blocks_fold(&help->blocks, copy, VIEW_NORMAL, width, text);
	else
		help->blocks.failed = true;
}

static void view_help_begin(struct view_help *help, const char *title, const char *of)
{
	const char *text = arena_printf(&help->blocks.arena, "%s%s", title, of);

	if (!text)
		help->blocks.failed = true;
	view_blocks_begin(&help->blocks, text ? text : "", KEYS_WIDTH);
}

/* Add what @screen shows, and its terms. */
static void view_help_screen(struct view_help *help, enum view_screen screen)
{
	const struct view_help_told *told = view_help_told(screen);
	const struct view_help_word *word = told->words;

	view_help_begin(help, "The screen ", view_screen(screen)->title);
	view_blocks_fold(&help->blocks, NULL, VIEW_BOLD, help->line, told->shows);
	view_blocks_text(&help->blocks, VIEW_NORMAL, "%s", "");
	for (; word->text; word++)
		view_help_fact(help, word->word, word->text);
}

/* Add the keys that apply to the screens @where, grouped as in the table, with @screen's texts; and
 * the screens with their keys. */
static void view_help_keys(struct view_help *help, unsigned where, enum view_screen screen)
{
	const char *group = "";

	for (int i = VIEW_NONE + 1; i < VIEW_REQUESTS; i++) {
		const enum view_request request = (enum view_request)i;
		const struct view_request_info *info = view_request_info(request);
		const struct view_help_key *told = help_texts[screen].keys;
		char keys[VIEW_KEY_LIST_SIZE], name[VIEW_KEY_NAME_SIZE + 32];
		const bool begins = strcmp(group, info->group) != 0;
		const int screens =
			begins && strcmp(info->group, VIEW_SCREENS_GROUP) == 0 ? VIEW_SCREENS : 0;

		if (!(info->screens & where))
			continue;
		if (begins)
			view_help_begin(help, info->group, "");
		for (int s = 0; s < screens; s++) {
			const struct view_screen_ops *ops = view_screen((enum view_screen)s);

			snprintf(name, sizeof(name), "%s %s", view_key_name(ops->key, keys),
				 ops->title);
			view_help_fact(help, name, help_texts[s].answers);
		}
		group = info->group;
		while (told && told->text && told->request != request)
			told++;
		view_help_fact(help, view_key_list(request, keys),
			       told && told->text ? told->text : info->help);
	}
}

static enum status view_help_load(void *state, struct view_context *context, bool news,
				  struct err *err)
{
	struct view_help *help = state;

	(void)news;
	if (help->width == 0 || help->blocks.failed || help->about != context->about ||
	    help->width != context->body.width) {
		const enum view_screen about = (enum view_screen)context->about;

		if (help->about != context->about)
			help->blocks.scroll = 0;
		help->about = context->about;
		help->width = context->body.width;
		view_blocks_clear(&help->blocks);
		help->blocks.two_from = TWO_FROM;
		help->blocks.heads = context->whole ? VIEW_HELP_SCREEN : 1;
		view_help_width(help, true);
		for (int i = 0; i < VIEW_HELP_SCREEN; i++)
			if (context->whole || i == (int)about)
				view_help_screen(help, (enum view_screen)i);
		view_help_width(help, false);
		if (context->whole)
			view_help_keys(help, VIEW_ON_ALL, VIEW_HELP_SCREEN);
		else
			view_help_keys(help, view_screen_where(about, context), about);
	}
	return view_blocks_fit(&help->blocks, context->body.width, context->body.height, err);
}

static void view_help_draw(const void *state, const struct view_context *context,
			   struct view_pane *pane)
{
	(void)context;
	view_blocks_draw(&((const struct view_help *)state)->blocks, pane);
}

static enum view_answer view_help_request(void *state, struct view_context *context,
					  enum view_request request)
{
	return view_blocks_request(&((struct view_help *)state)->blocks, context->body.height,
				   request);
}

static bool view_help_search(void *state, struct view_context *context, const char *text,
			     bool forward)
{
	return view_blocks_search(&((struct view_help *)state)->blocks, context,
				  context->body.height, text, forward);
}

static void view_help_status(const void *state, const struct view_context *context, char *out,
			     size_t size)
{
	const struct view_help *help = state;
	char rows[64];

	view_blocks_status(&help->blocks, context->body.height, rows, sizeof(rows));
	snprintf(out, size, "of %s; Esc goes back%s%s%s",
		 view_screen((enum view_screen)help->about)->title, rows[0] ? "; " : "", rows,
		 rows[0] ? ", Space: more" : "");
}

static int view_help_height(const void *state, const struct view_context *context)
{
	(void)context;
	return ((const struct view_help *)state)->blocks.height;
}

const struct view_screen_ops view_help_ops = {
	.name = "help",
	.title = "Help",
	.brief = "Help",
	.key = '?',
	.stays = true,
	.where = VIEW_ON_HELP,
	.least_ns = UINT64_MAX,
	.size = sizeof(struct view_help),
	.fini = view_help_fini,
	.load = view_help_load,
	.draw = view_help_draw,
	.request = view_help_request,
	.search = view_help_search,
	.status = view_help_status,
	.height = view_help_height,
};
