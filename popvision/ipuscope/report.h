/*
 * ipuscope/report.h: walk what a run recorded, in the words of libpva: target, graph, memory of
 * tiles, programs, liveness, runs and steps, operations; and the trace of the host.
 *
 * For any C11 or C++11 program (GCC or Clang). Link with `pkg-config --libs ipuscope-report` or
 * CMake's ipuscope::report; libipuscope comes with it.
 *
 *	#include <inttypes.h>
 *	#include <ipuscope/report.h>
 *	#include <stdio.h>
 *
 *	int print_steps(const char *path)
 *	{
 *		struct ips_report_step_filter filter = ips_report_step_filter_all();
 *		const struct ips_report_step *step;
 *		struct ips_report_steps *steps;
 *		struct ips_report *report;
 *		char message[512];
 *		int status = ips_report_open(&report, path, message, sizeof(message));
 *
 *		if (status != 0)
 *			return status;
 *		printf("%" PRId64 " tiles\n", ips_report_target(report)->num_tiles);
 *		filter.ipu = 0;
 *		status = ips_report_steps_open(report, &steps, &filter, message, sizeof(message));
 *		if (status == 0) {
 *			while ((step = ips_report_steps_next(steps)))
 *				printf("%s %" PRId64 "\n", step->name, step->cycles);
 *			ips_report_steps_close(steps);
 *		}
 *		ips_report_close(report);
 *		return status;
 *	}
 *
 * What is as large as the program (programs, variables, operations, ...) is a list: a count, and a
 * pointer to each item by index. It is read when it is first asked for, and stays as it was then:
 * open a file that is still recorded once more to see what has come since. What is as large as the
 * run (steps, spans) or as tiles times variables is a cursor: rows are read one by one from the
 * database, in bounded memory.
 *
 * Unknown or not applicable is IPS_NULL in an integer, NULL in a text, NaN in a real number, and
 * IPS_REPORT_NONE in an index. Bytes are bytes, times are ns from the run's start (the field's name
 * says where they are not), cycles are those of the device's clock.
 *
 * Where figures come from: target, graph, programs, memory, liveness, runs' cycles and steps are
 * SIMULATED by a cost model (docs/cost-model.md), and the plan is the simulator's own: nothing of
 * them was measured on hardware. `microseconds` of runs and the spans of host tracks are measured.
 * INFERRED marks what is not in the file as such and was concluded from names.
 *
 * Ownership: the report owns everything that it lends. Structs of lists and all texts live until
 * ips_report_close(), but where a function says otherwise; what a cursor lends lives until its next
 * row. Structs may get more members at their ends in later versions: do not allocate them.
 *
 * Threads: a report and its cursors belong to one thread at a time; different reports, also of the
 * same file, are independent.
 *
 * Errors: functions that can fail return 0 or a positive status; ips_status_text() of
 * ipuscope/profiler.h says it in words, and @message (may be NULL; of @size bytes) gets one line
 * that names the place, or "". A list that cannot be read has the count -1, an item that is not
 * there is NULL; the first failure to read is in ips_report_status(). Damaged databases are
 * answered with what can be read of them, or such an error.
 */
#ifndef IPUSCOPE_REPORT_H
#define IPUSCOPE_REPORT_H

#include <ipuscope/profiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An index of nothing. */
#define IPS_REPORT_NONE ((int64_t)-1)

/* ---- reports --------------------------------------------------------------------------------- */

struct ips_report; /* opaque */

enum ips_report_state {
	IPS_REPORT_RECORDING = 0, /* its writer lives */
	IPS_REPORT_KILLED = 1,    /* its writer died: at most the last moments are missing */
	IPS_REPORT_COMPLETE = 2
};

/* How finely the cycles of compute sets are known, as libpva names it. */
enum ips_report_instrumentation {
	IPS_REPORT_INSTRUMENTATION_OFF = 0, /* no execution has a timeline of the device */
	IPS_REPORT_INSTRUMENTATION_VERTEX = 1,
	IPS_REPORT_INSTRUMENTATION_TILE = 2,
	IPS_REPORT_INSTRUMENTATION_IPU = 3,
	IPS_REPORT_INSTRUMENTATION_DEVICE = 4,
	IPS_REPORT_INSTRUMENTATION_UNKNOWN = 5
};

struct ips_report_info {
	const char *path; /* of the database */
	enum ips_report_state state;
	int64_t schema_version;      /* libpva: version.major */
	const char *library_version; /* of the recorder, "0.9.0"; libpva: poplarVersion */
	int64_t library_major, library_minor, library_point;
	const char *command;                    /* that was recorded */
	const char *model, *dataset, *schedule; /* "Grouped" */
	const char *cost_model;                 /* NULL: no device was simulated */
	int64_t start_epoch_ns;                 /* wall clock of the run's start, since 1970 */
	/*
	 * libpva: instrumentationSettings. Simulated cycles cost nothing to know, so the engine
	 * options debug.instrument* change nothing: where a timeline was recorded these are TILE.
	 */
	enum ips_report_instrumentation compute, external_exchange;
};

/* @path: a database, or a report's directory; also one that is still recorded, or whose writer was
 * killed. On failure *@out is NULL. */
IPS_API int ips_report_open(struct ips_report **out, const char *path, char *message, size_t size);

/* Frees the report and all that it lent. Accepts NULL. Its cursors must be closed. */
IPS_API void ips_report_close(struct ips_report *report);

/* 0 while all is well, else the first failure to read, of any call; its text in @message. Requests
 * that are wrong (a NULL, a span that is not there) are told by the call alone. */
IPS_API int ips_report_status(const struct ips_report *report, char *message, size_t size);

/* Never NULL; read at the opening. */
IPS_API const struct ips_report_info *ips_report_info(struct ips_report *report);

/* The fact @key of the view `meta` (docs/schema.md), such as "batch_size". NULL: there is none. */
IPS_API const char *ips_report_fact(struct ips_report *report, const char *key);

/* ---- compilation: target and graph ----------------------------------------------------------- */

enum ips_report_target_type {
	IPS_REPORT_TARGET_UNKNOWN = 0, /* no device: a foreign program's recording */
	IPS_REPORT_TARGET_IPU = 1,     /* never: there is no hardware behind a recording */
	IPS_REPORT_TARGET_IPU_MODEL = 2,
	IPS_REPORT_TARGET_CPU = 3
};

struct ips_report_target {
	enum ips_report_target_type type;
	const char *type_name;    /* "IPU_MODEL", "UNKNOWN" */
	const char *name;         /* of the simulated machine, "ipu2" */
	const char *architecture; /* "Mk2" */
	int64_t num_ipus;         /* of all replicas */
	int64_t tiles_per_ipu, num_tiles;
	int64_t bytes_per_tile, bytes_per_ipu, total_memory;
	double clock_frequency; /* Hz */
	int64_t num_replicas, ipus_per_replica, tiles_per_replica, memory_per_replica;
};

/* Never NULL; all unknown where nothing is recorded or it cannot be read. Version 0.9.0 recorded no
 * architecture, tiles_per_ipu or bytes_per_tile: NULL and IPS_NULL. */
IPS_API const struct ips_report_target *ips_report_target(struct ips_report *report);

struct ips_report_graph {
	int64_t num_compute_sets, num_vertices, num_variables;
	int64_t num_edges; /* IPS_NULL: the simulator plans vertices, not their edges */
	int64_t num_programs, num_operations, num_layers;
};

/* Never NULL. Counts of the lists below; what cannot be read is unknown. num_vertices is the sum
 * over compute sets. */
IPS_API const struct ips_report_graph *ips_report_graph(struct ips_report *report);

/* ---- compilation: programs ------------------------------------------------------------------- */

enum ips_report_program_type {
	IPS_REPORT_UNKNOWN = 0, /* a switch, and types not listed here: see the struct's `type` */
	IPS_REPORT_SEQUENCE = 1,
	IPS_REPORT_REPEAT = 2,
	IPS_REPORT_CALL = 3,
	IPS_REPORT_ON_TILE_EXECUTE = 4,
	IPS_REPORT_DO_EXCHANGE = 5,
	IPS_REPORT_GLOBAL_EXCHANGE = 6,
	IPS_REPORT_SYNC = 7,
	IPS_REPORT_SYNC_ANS = 8,
	IPS_REPORT_SANS = 9,
	IPS_REPORT_STREAM_COPY_BEGIN = 10,
	IPS_REPORT_STREAM_COPY_MID = 11,
	IPS_REPORT_STREAM_COPY_END = 12,
	IPS_REPORT_WRITE_UNDEF = 13,
	IPS_REPORT_PROGRAM_TYPES
};

/*
 * A node of the program tree. Nodes without a parent, whose parent is missing, or (in a damaged
 * file) that would be their own ancestors, are roots: so every program is below exactly one root,
 * and going up or down always ends. Children are in order of position, then of id; the roots too.
 */
struct ips_report_program {
	int64_t index;      /* in the list, which is in order of program_id */
	int64_t program_id; /* of the database */
	int64_t parent_id;  /* as recorded */
	int64_t position;
	enum ips_report_program_type kind;
	const char *type, *name; /* "OnTileExecute", "Dense_128/MatMul/Convolve" */
	const char *operation;   /* that it belongs to */
	int64_t repeat_count;    /* of a Repeat */
	int64_t call_target;     /* the program_id that a Call calls */
	int64_t parent, first_child, next_sibling, num_children; /* indices, and a count */
	int64_t depth;                                           /* of a root: 0 */
	int64_t operation_index;                                 /* in the list of operations */
	int64_t next_of_operation; /* the next program of the same operation */
	int64_t compute_set;       /* index of what an OnTileExecute executes */
	int64_t called;            /* index of call_target */
	int64_t is_function;       /* 1: a root that Calls call; 0: a control program */
};

IPS_API int64_t ips_report_program_count(struct ips_report *report);
IPS_API const struct ips_report_program *ips_report_program(struct ips_report *report,
							    int64_t index);
/* By the database's number. NULL: there is none. */
IPS_API const struct ips_report_program *ips_report_program_by_id(struct ips_report *report,
								  int64_t program_id);
/* The first root, whose `next_sibling` is the next; IPS_REPORT_NONE: there are no programs. */
IPS_API int64_t ips_report_program_first_root(struct ips_report *report);

enum ips_report_visit {
	IPS_REPORT_VISIT_ON = 0,
	IPS_REPORT_VISIT_SKIP = 1, /* go on, but not to this program's children */
	IPS_REPORT_VISIT_STOP = 2
};

/* Called by ips_report_program_accept(); NULL members are left out. */
struct ips_report_visitor {
	/* By kind, a parent before its children. */
	enum ips_report_visit (*visit[IPS_REPORT_PROGRAM_TYPES])(
		void *user, const struct ips_report_program *program);
	/* Of kinds that have no function above. */
	enum ips_report_visit (*other)(void *user, const struct ips_report_program *program);
	/* After the children, of every program that was visited. */
	void (*leave)(void *user, const struct ips_report_program *program);
	void *user;
};

/* Visit the program @index and all below it; IPS_REPORT_NONE: all programs, root by root. Calls are
 * not followed (see `called`). Returns 0, also when stopped, or the status of a failure. */
IPS_API int ips_report_program_accept(struct ips_report *report, int64_t index,
				      const struct ips_report_visitor *visitor);

struct ips_report_compute_set {
	int64_t index;
	const char *name, *operation;
	int64_t program_id, program; /* that executes it: id and index */
	int64_t operation_index;
	int64_t num_vertices, num_tiles; /* in use */
	int64_t max_cycles;              /* of its tiles; estimated, as libpva's
					  * estimatedCyclesByTile, of which there is no more */
	double mean_cycles;
};

/* In the order recorded. */
IPS_API int64_t ips_report_compute_set_count(struct ips_report *report);
IPS_API const struct ips_report_compute_set *ips_report_compute_set(struct ips_report *report,
								    int64_t index);

/* ---- compilation: operations and layers ------------------------------------------------------ */

struct ips_report_layer {
	int64_t index;
	const char *name, *class_name; /* of Keras */
	int64_t position, stage;
	const char *output_shape; /* of one micro-batch, "(32, 128)" */
	int64_t params, trainable_params;
	int64_t flops; /* of one forward of a micro-batch */
};

/* In order of position. */
IPS_API int64_t ips_report_layer_count(struct ips_report *report);
IPS_API const struct ips_report_layer *ips_report_layer(struct ips_report *report, int64_t index);

/* Of one execution of the operation: its name and the columns that ipuscope/profiler.h lists.
 * Cycles are the plan's; what it took in a run is the sum over its steps. */
struct ips_report_operation {
	int64_t index, layer_index;
	int64_t first_program, num_programs; /* next: ips_report_program's next_of_operation */
	const char *name;
	IPS_FACTS_operation(IPS_MEMBER, ips_report_operation) /* layer, kind, phase, stage, ... */
};

/* In the order recorded. */
IPS_API int64_t ips_report_operation_count(struct ips_report *report);
IPS_API const struct ips_report_operation *ips_report_operation(struct ips_report *report,
								int64_t index);

/* ---- compilation: variables ------------------------------------------------------------------ */

/* A piece of memory with a name, on an IPU of the first replica (the others hold the same). Unlike
 * libpva's it may be code or descriptors: `kind` is then a category of memory. */
struct ips_report_variable {
	int64_t index;       /* in the list, which is in order of variable_id */
	int64_t variable_id; /* of the database */
	const char *name, *layer, *kind;
	const char *shape, *dtype; /* NULL: of no tensor */
	int64_t bytes, ipu;
	int64_t always_live;                           /* 1: through the whole program */
	int64_t first_program_step, last_program_step; /* of its IPU; IPS_NULL: always live */
};

IPS_API int64_t ips_report_variable_count(struct ips_report *report);
IPS_API const struct ips_report_variable *ips_report_variable(struct ips_report *report,
							      int64_t index);
IPS_API const struct ips_report_variable *ips_report_variable_by_id(struct ips_report *report,
								    int64_t variable_id);

/* 1: @variable lives at step @program_step of its IPU. */
static inline int ips_report_variable_alive(const struct ips_report_variable *variable,
					    int64_t program_step)
{
	if (variable->always_live == 1)
		return 1;
	return variable->first_program_step != IPS_NULL &&
	       variable->last_program_step != IPS_NULL &&
	       program_step >= variable->first_program_step &&
	       program_step <= variable->last_program_step;
}

/* 1: @variable belongs to @operation. INFERRED: its name begins with the operation's. */
IPS_API int ips_report_operation_has_variable(const struct ips_report_operation *operation,
					      const struct ips_report_variable *variable);

/* How much of a variable lies on a tile. */
struct ips_report_lowered_variable {
	int64_t variable_id, variable; /* id and index */
	int64_t ipu, tile, bytes;
};

struct ips_report_lowered_variables; /* opaque: a cursor */

/* The lowered variables, of one variable, one tile, or all (which may be millions); IPS_NULL: any.
 * In the order recorded: what is on one tile alone, then what is the same on neighbouring tiles. */
IPS_API int ips_report_lowered_variables_open(struct ips_report *report,
					      struct ips_report_lowered_variables **out,
					      int64_t variable_id, int64_t ipu, int64_t tile,
					      char *message, size_t size);
/* NULL: no more, or a failure, which ips_report_lowered_variables_close() returns. */
IPS_API const struct ips_report_lowered_variable *
ips_report_lowered_variables_next(struct ips_report_lowered_variables *cursor);
IPS_API int
ips_report_lowered_variables_close(struct ips_report_lowered_variables *cursor); /* accepts NULL */

/* ---- compilation: memory of IPUs and tiles --------------------------------------------------- */

struct ips_report_category {
	const char *name; /* "vertexCode"; all are in docs/schema.md, tile_memory */
	int64_t total;    /* the sum of its regions */
	int64_t non_interleaved, interleaved;
	int64_t overflowed; /* beyond what the tile has */
};

/*
 * `total` is what is needed: all that is always live, and the most of the rest at once. Reuse of
 * freed memory is simulated as perfect: there are no gaps, so libpva's includingGaps and
 * excludingGaps are the same number, and nothing is "overlapped".
 */
struct ips_report_memory {
	int64_t ipu, tile; /* tile IPS_NULL: the sum over an IPU's tiles; ipu too: over all IPUs */
	int64_t num_tiles; /* 1, or how many tiles are summed */
	int64_t capacity;  /* of the tiles */
	int64_t total_including_gaps, total_excluding_gaps;
	int64_t overflowed_including_gaps, overflowed_excluding_gaps;
	int64_t always_live_bytes;
	/* Of each tile the most at once, which tiles have at different steps: the liveness below
	 * is that of all tiles at one step. */
	int64_t not_always_live_bytes;
	int64_t non_interleaved, interleaved;
	const struct ips_report_category *categories; /* all that the file names, by name */
	int64_t num_categories;
};

/* IPUs of the first replica, whose memory all others' is like. Tiles are counted from 0; the number
 * is the same for all IPUs. Rows of IPUs or tiles from 4,096 on, which no machine has, are left
 * out. */
IPS_API int64_t ips_report_ipu_count(struct ips_report *report);
IPS_API int64_t ips_report_tile_count(struct ips_report *report);

/* The sum of IPU @ipu; IPS_NULL: of all. NULL: there is no such IPU. */
IPS_API const struct ips_report_memory *ips_report_ipu_memory(struct ips_report *report,
							      int64_t ipu);

/* Of one tile; lives until one of another IPU is asked for (one IPU's are held: go IPU by IPU).
 * NULL: there is no such tile. */
IPS_API const struct ips_report_memory *ips_report_tile_memory(struct ips_report *report,
							       int64_t ipu, int64_t tile);

/* ---- compilation: liveness ------------------------------------------------------------------- */

/* A program step of an IPU: IPUs have steps of their own, numbered from 0. Bytes of all its tiles
 * together, of one replica, as in libpva. The last has no program: there only what is always live
 * is. */
struct ips_report_liveness {
	int64_t ipu, program_step;
	int64_t program_id, program; /* id and index */
	int64_t always_live_bytes, not_always_live_bytes;
};

/* libpva: livenessProgramSteps, of the IPU @ipu. In order of program_step. */
IPS_API int64_t ips_report_liveness_count(struct ips_report *report, int64_t ipu);
IPS_API const struct ips_report_liveness *ips_report_liveness(struct ips_report *report,
							      int64_t ipu, int64_t index);

/* The first step of IPU @ipu (IPS_NULL: of any) at which most is live. NULL: there is none. */
IPS_API const struct ips_report_liveness *ips_report_liveness_peak(struct ips_report *report,
								   int64_t ipu);

/* libpva: notAlwaysLiveMemoryForTile: what is live on one tile at @program_step, in *@always_live
 * and *@not_always_live (either may be NULL). */
IPS_API int ips_report_liveness_tile(struct ips_report *report, int64_t ipu, int64_t program_step,
				     int64_t tile, int64_t *always_live, int64_t *not_always_live,
				     char *message, size_t size);

/* ---- execution ------------------------------------------------------------------------------- */

/* An Engine::run. */
struct ips_report_run {
	int64_t index;     /* in order of execution */
	int64_t execution; /* its number in the database */
	int64_t rank;
	enum ips_mode mode;
	int64_t epoch;                          /* from 1; of training */
	int64_t first_step, num_steps, updates; /* of Keras, per replica */
	int64_t start_ns, dur_ns;               /* measured, host clock */
	struct {
		double start, end;
	} microseconds;              /* the same */
	int64_t start_cycle, cycles; /* simulated */
	int64_t traced; /* 1: its steps are recorded (autoReport.executionProfileProgramRunCount) */
};

IPS_API int64_t ips_report_run_count(struct ips_report *report);
IPS_API const struct ips_report_run *ips_report_run(struct ips_report *report, int64_t index);

/* libpva: execution.totalCycles.total: of all runs whose cycles are known. IPS_NULL: of none. */
IPS_API int64_t ips_report_total_cycles(struct ips_report *report);

/* A step of the execution trace on one IPU. On an IPU steps follow each other without a gap; Sync
 * and SyncAns are its waits. */
struct ips_report_step {
	int64_t rank, execution;
	enum ips_mode mode;
	int64_t epoch, weight_update, step, microbatch, replica;
	int64_t ipu; /* over all replicas */
	int64_t stage;
	char phase;         /* enum ips_phase; 0: between stage programs */
	int64_t trace_step; /* its number in the part of the pipeline run that it stands in */
	int64_t program_id, program; /* id and index */
	enum ips_report_program_type kind;
	const char *type, *name, *operation;
	int64_t cycles, cycles_from,
		cycles_to;         /* libpva: allCycles; its activeCycles are not known */
	int64_t start_ns, dur_ns;  /* the same on the device's clock */
	int64_t cycles_overlapped; /* of its cycles, beside programs: streams through I/O tiles */
	int64_t active_tiles;
	double tile_balance, active_tile_balance; /* 0 to 1 */
	int64_t data_in, data_out;                /* bytes exchanged by this IPU */
};

/* Which steps; IPS_NULL: any. */
struct ips_report_step_filter {
	int64_t execution, ipu, replica, weight_update;
};

static inline struct ips_report_step_filter ips_report_step_filter_all(void)
{
	struct ips_report_step_filter filter = {IPS_NULL, IPS_NULL, IPS_NULL, IPS_NULL};

	return filter;
}

struct ips_report_steps; /* opaque: a cursor */

/* In the order recorded: of one IPU that of time. @filter may be NULL: all. While a cursor is open,
 * the log of a file that is still recorded cannot be emptied: step through and close. */
IPS_API int ips_report_steps_open(struct ips_report *report, struct ips_report_steps **out,
				  const struct ips_report_step_filter *filter, char *message,
				  size_t size);
/* NULL: no more, or a failure, which ips_report_steps_close() returns. Texts live until the
 * report's close. */
IPS_API const struct ips_report_step *ips_report_steps_next(struct ips_report_steps *cursor);
IPS_API int ips_report_steps_close(struct ips_report_steps *cursor); /* accepts NULL */

/* ---- the trace: PVTI's processes, threads and events ----------------------------------------- */

/* A lane of the timeline: a thread, or a simulated IPU. */
struct ips_report_track {
	int64_t index;
	const char *track; /* its unique name */
	const char *name;  /* as shown */
	const char *parent;
	enum ips_clock clock; /* IPS_DEVICE: simulated */
	int64_t rank, pid, tid, ipu;
};

/* In the order recorded. */
IPS_API int64_t ips_report_track_count(struct ips_report *report);
IPS_API const struct ips_report_track *ips_report_track(struct ips_report *report, int64_t index);

/* libpva: an event; its channel is the category, its label the name. */
struct ips_report_span {
	int64_t track; /* index */
	int64_t span_id, parent_id;
	int64_t depth; /* spans around it */
	const char *category, *name, *operation;
	int64_t start_ns, dur_ns; /* dur_ns IPS_NULL: still open, or its end was lost */
	struct ips_keys keys;     /* when and where */
};

/* Which spans; IPS_NULL: any. */
struct ips_report_span_filter {
	int64_t track;          /* index */
	int64_t from_ns, to_ns; /* that start at or after, and before */
	int64_t max_depth;      /* of so many spans around them or fewer */
};

static inline struct ips_report_span_filter ips_report_span_filter_all(void)
{
	struct ips_report_span_filter filter = {IPS_NULL, IPS_NULL, IPS_NULL, IPS_NULL};

	return filter;
}

struct ips_report_spans; /* opaque: a cursor */

/* In order of span_id, which on a track is that of start, a parent before its children. @filter may
 * be NULL: all. As for steps: close soon where the file is still recorded. */
IPS_API int ips_report_spans_open(struct ips_report *report, struct ips_report_spans **out,
				  const struct ips_report_span_filter *filter, char *message,
				  size_t size);
/* The children of span @span_id: those one deeper within it. */
IPS_API int ips_report_span_children(struct ips_report *report, struct ips_report_spans **out,
				     int64_t span_id, char *message, size_t size);
/* NULL: no more, or a failure, which ips_report_spans_close() returns. Texts live until the
 * report's close. */
IPS_API const struct ips_report_span *ips_report_spans_next(struct ips_report_spans *cursor);
IPS_API int ips_report_spans_close(struct ips_report_spans *cursor); /* accepts NULL */

#ifdef __cplusplus
}
#endif

#endif /* IPUSCOPE_REPORT_H */
