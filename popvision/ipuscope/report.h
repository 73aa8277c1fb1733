/*
 * ipuscope/report.h: read what a run recorded, in the terms of libpva: target, graph, memory of
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
 * Data as large as the program (programs, variables, operations, ...) is a list: a count, and a
 * pointer to each item by index. A list is read on first use and does not change afterwards: to see
 * what a run in progress has added since, open the file again. Data as large as the run (steps,
 * spans) or as tiles times variables is a cursor: rows are read one by one from the database, in
 * bounded memory.
 *
 * An unknown or inapplicable value is IPS_NULL for an integer, NULL for a text, NaN for a real
 * number, and IPS_REPORT_NONE for an index. Sizes are in bytes, times in ns from the run's start
 * (unless the field's name says otherwise), cycles are those of the device's clock.
 *
 * Sources: target, graph, programs, memory, liveness, cycles of runs, and steps are SIMULATED by a
 * cost model (docs/cost-model.md), and the plan is the simulator's: none of them was measured on
 * hardware. `microseconds` of runs and the spans of host tracks are measured. INFERRED marks values
 * that are not in the file but were concluded from names.
 *
 * Ownership: the report owns everything that it returns. Structs of lists and all texts are valid
 * until ips_report_close(), unless a function says otherwise; a cursor's row is valid until the
 * next one. Structs may get more members at their ends in later versions: do not allocate them.
 *
 * Threads: a report and its cursors belong to one thread at a time; different reports, even of the
 * same file, are independent.
 *
 * Errors: functions that can fail return 0 or a positive status, for which ips_status_text() of
 * ipuscope/profiler.h has the text; @message (may be NULL; of @size bytes) gets one line that names
 * the place, or "". A list that cannot be read has the count -1, a missing item is NULL;
 * ips_report_status() returns the first read failure. Of a damaged database the readable part is
 * returned, or such an error.
 */
#ifndef IPUSCOPE_REPORT_H
#define IPUSCOPE_REPORT_H

#include <ipuscope/profiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The index of no item. */
#define IPS_REPORT_NONE ((int64_t)-1)

/* ---- reports --------------------------------------------------------------------------------- */

struct ips_report; /* opaque */

enum ips_report_state {
	IPS_REPORT_RECORDING = 0, /* its writer is alive */
	IPS_REPORT_KILLED = 1,    /* its writer died: at most the last moments are missing */
	IPS_REPORT_COMPLETE = 2
};

/* The level at which cycles of compute sets are known, with libpva's names. */
enum ips_report_instrumentation {
	IPS_REPORT_INSTRUMENTATION_OFF = 0, /* no execution has a device timeline */
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
	const char *command;                    /* the recorded command */
	const char *model, *dataset, *schedule; /* "Grouped" */
	const char *cost_model;                 /* NULL: no device was simulated */
	int64_t start_epoch_ns;                 /* wall clock of the run's start, since 1970 */
	/*
	 * libpva: instrumentationSettings. Simulated cycles are always known, so the engine options
	 * debug.instrument* have no effect: if a timeline was recorded, these are TILE.
	 */
	enum ips_report_instrumentation compute, external_exchange;
};

/* @path: a database, or a report's directory; recording may be in progress, or its writer may have
 * been killed. On failure *@out is NULL. */
IPS_API int ips_report_open(struct ips_report **out, const char *path, char *message, size_t size);

/* Free the report and everything that it returned. Accepts NULL. Its cursors must be closed. */
IPS_API void ips_report_close(struct ips_report *report);

/* Return 0, or the first read failure of any call, with its text in @message. Wrong requests (a
 * NULL, a missing span) are reported by their call only. */
IPS_API int ips_report_status(const struct ips_report *report, char *message, size_t size);

/* Never NULL; read when the report is opened. */
IPS_API const struct ips_report_info *ips_report_info(struct ips_report *report);

/* The value of @key in the view `meta` (docs/schema.md), such as "batch_size", or NULL. */
IPS_API const char *ips_report_fact(struct ips_report *report, const char *key);

/* ---- compilation: target and graph ----------------------------------------------------------- */

enum ips_report_target_type {
	IPS_REPORT_TARGET_UNKNOWN = 0, /* no device: the recording of a foreign program */
	IPS_REPORT_TARGET_IPU = 1,     /* never: no recording is from hardware */
	IPS_REPORT_TARGET_IPU_MODEL = 2,
	IPS_REPORT_TARGET_CPU = 3
};

struct ips_report_target {
	enum ips_report_target_type type;
	const char *type_name;    /* "IPU_MODEL", "UNKNOWN" */
	const char *name;         /* of the simulated machine, "ipu2" */
	const char *architecture; /* "Mk2" */
	int64_t num_ipus;         /* in all replicas */
	int64_t tiles_per_ipu, num_tiles;
	int64_t bytes_per_tile, bytes_per_ipu, total_memory;
	double clock_frequency; /* Hz */
	int64_t num_replicas, ipus_per_replica, tiles_per_replica, memory_per_replica;
};

/* Never NULL; members are unknown if nothing was recorded or it cannot be read. Version 0.9.0
 * recorded no architecture, tiles_per_ipu or bytes_per_tile: NULL and IPS_NULL. */
IPS_API const struct ips_report_target *ips_report_target(struct ips_report *report);

struct ips_report_graph {
	int64_t num_compute_sets, num_vertices, num_variables;
	int64_t num_edges; /* IPS_NULL: the simulator plans vertices without their edges */
	int64_t num_programs, num_operations, num_layers;
};

/* Never NULL. Counts of the lists below; IPS_NULL if a list cannot be read. num_vertices is the sum
 * over compute sets. */
IPS_API const struct ips_report_graph *ips_report_graph(struct ips_report *report);

/* ---- compilation: programs ------------------------------------------------------------------- */

enum ips_report_program_type {
	IPS_REPORT_UNKNOWN = 0, /* a switch, or a type not listed here: see the struct's `type` */
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
 * A node of the program tree. A node is a root if it has no parent, if its parent is missing, or if
 * it would be its own ancestor (in a damaged file): so every program is below exactly one root, and
 * walks up or down always end. Children are sorted by position, then id; so are the roots.
 */
struct ips_report_program {
	int64_t index;      /* in the list, which is sorted by program_id */
	int64_t program_id; /* in the database */
	int64_t parent_id;  /* as recorded */
	int64_t position;
	enum ips_report_program_type kind;
	const char *type, *name; /* "OnTileExecute", "Dense_128/MatMul/Convolve" */
	const char *operation;   /* to which it belongs */
	int64_t repeat_count;    /* of a Repeat */
	int64_t call_target;     /* the program_id that a Call calls */
	int64_t parent, first_child, next_sibling, num_children; /* indices, and a count */
	int64_t depth;                                           /* of a root: 0 */
	int64_t operation_index;                                 /* in the list of operations */
	int64_t next_of_operation; /* the next program of the same operation */
	int64_t compute_set;       /* index of the one that an OnTileExecute executes */
	int64_t called;            /* index of call_target */
	int64_t is_function;       /* 1: the target of a Call; 0: a control program */
};

IPS_API int64_t ips_report_program_count(struct ips_report *report);
IPS_API const struct ips_report_program *ips_report_program(struct ips_report *report,
							    int64_t index);
/* Look up a program by its number in the database; NULL if there is none. */
IPS_API const struct ips_report_program *ips_report_program_by_id(struct ips_report *report,
								  int64_t program_id);
/* The first root; `next_sibling` leads to the next. IPS_REPORT_NONE: there are no programs. */
IPS_API int64_t ips_report_program_first_root(struct ips_report *report);

enum ips_report_visit {
	IPS_REPORT_VISIT_ON = 0,
	IPS_REPORT_VISIT_SKIP = 1, /* continue without this program's children */
	IPS_REPORT_VISIT_STOP = 2
};

/* Callbacks of ips_report_program_accept(); NULL members are skipped. */
struct ips_report_visitor {
	/* By kind; parents before children. */
	enum ips_report_visit (*visit[IPS_REPORT_PROGRAM_TYPES])(
		void *user, const struct ips_report_program *program);
	/* For kinds without a callback above. */
	enum ips_report_visit (*other)(void *user, const struct ips_report_program *program);
	/* After the children of every visited program. */
	void (*leave)(void *user, const struct ips_report_program *program);
	void *user;
};

/* Visit program @index and its descendants; IPS_REPORT_NONE: all programs, root by root. Calls are
 * not followed (see `called`). Return 0, even if stopped, or the status of a failure. */
IPS_API int ips_report_program_accept(struct ips_report *report, int64_t index,
				      const struct ips_report_visitor *visitor);

struct ips_report_compute_set {
	int64_t index;
	const char *name, *operation;
	int64_t program_id, program; /* that executes it: id and index */
	int64_t operation_index;
	int64_t num_vertices, num_tiles; /* in use */
	int64_t max_cycles;              /* over its tiles; estimated, a part of libpva's
					  * estimatedCyclesByTile, of which no more is known */
	double mean_cycles;
};

/* In recording order. */
IPS_API int64_t ips_report_compute_set_count(struct ips_report *report);
IPS_API const struct ips_report_compute_set *ips_report_compute_set(struct ips_report *report,
								    int64_t index);

/* ---- compilation: operations and layers ------------------------------------------------------ */

struct ips_report_layer {
	int64_t index;
	const char *name, *class_name; /* in Keras */
	int64_t position, stage;
	const char *output_shape; /* for one micro-batch, "(32, 128)" */
	int64_t params, trainable_params;
	int64_t flops; /* of one forward of a micro-batch */
};

/* Sorted by position. */
IPS_API int64_t ips_report_layer_count(struct ips_report *report);
IPS_API const struct ips_report_layer *ips_report_layer(struct ips_report *report, int64_t index);

/* One execution of the operation: its name and the columns that ipuscope/profiler.h lists. Cycles
 * are those of the plan; for those of a run sum over its steps. */
struct ips_report_operation {
	int64_t index, layer_index;
	int64_t first_program, num_programs; /* next: ips_report_program's next_of_operation */
	const char *name;
	IPS_FACTS_operation(IPS_MEMBER, ips_report_operation) /* layer, kind, phase, stage, ... */
};

/* In recording order. */
IPS_API int64_t ips_report_operation_count(struct ips_report *report);
IPS_API const struct ips_report_operation *ips_report_operation(struct ips_report *report,
								int64_t index);

/* ---- compilation: variables ------------------------------------------------------------------ */

/* A named allocation on an IPU of the first replica (the others hold the same). Unlike libpva's it
 * may be code or descriptors: `kind` is then a memory category. */
struct ips_report_variable {
	int64_t index;       /* in the list, which is sorted by variable_id */
	int64_t variable_id; /* in the database */
	const char *name, *layer, *kind;
	const char *shape, *dtype; /* NULL: not a tensor */
	int64_t bytes, ipu;
	int64_t always_live;                           /* 1: through the whole program */
	int64_t first_program_step, last_program_step; /* of its IPU; IPS_NULL: always live */
};

IPS_API int64_t ips_report_variable_count(struct ips_report *report);
IPS_API const struct ips_report_variable *ips_report_variable(struct ips_report *report,
							      int64_t index);
IPS_API const struct ips_report_variable *ips_report_variable_by_id(struct ips_report *report,
								    int64_t variable_id);

/* Return 1 if @variable is live at step @program_step of its IPU, else 0. */
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

/* Return 1 if @variable belongs to @operation. INFERRED: its name begins with the operation's. */
IPS_API int ips_report_operation_has_variable(const struct ips_report_operation *operation,
					      const struct ips_report_variable *variable);

/* The part of a variable on one tile. */
struct ips_report_lowered_variable {
	int64_t variable_id, variable; /* id and index */
	int64_t ipu, tile, bytes;
};

struct ips_report_lowered_variables; /* opaque: a cursor */

/* Open a cursor over the lowered variables of one variable, of one tile, or over all (which may be
 * millions); IPS_NULL: any. In recording order: parts on a single tile, then equal parts on
 * adjacent tiles. */
IPS_API int ips_report_lowered_variables_open(struct ips_report *report,
					      struct ips_report_lowered_variables **out,
					      int64_t variable_id, int64_t ipu, int64_t tile,
					      char *message, size_t size);
/* NULL: no more rows, or a failure, which ips_report_lowered_variables_close() returns. */
IPS_API const struct ips_report_lowered_variable *
ips_report_lowered_variables_next(struct ips_report_lowered_variables *cursor);
IPS_API int
ips_report_lowered_variables_close(struct ips_report_lowered_variables *cursor); /* accepts NULL */

/* ---- compilation: memory of IPUs and tiles --------------------------------------------------- */

struct ips_report_category {
	const char *name; /* "vertexCode"; docs/schema.md lists all under tile_memory */
	int64_t total;    /* the sum of its regions */
	int64_t non_interleaved, interleaved;
	int64_t overflowed; /* beyond the tile's memory */
};

/*
 * `total` is the memory needed: all variables that are always live, plus the most of the others at
 * once. The simulator reuses freed memory without gaps, so libpva's includingGaps and excludingGaps
 * are equal, and nothing is "overlapped".
 */
struct ips_report_memory {
	int64_t ipu, tile; /* tile IPS_NULL: the sum over an IPU's tiles; ipu too: over all IPUs */
	int64_t num_tiles; /* 1, or the number of tiles in the sum */
	int64_t capacity;  /* of the tiles */
	int64_t total_including_gaps, total_excluding_gaps;
	int64_t overflowed_including_gaps, overflowed_excluding_gaps;
	int64_t always_live_bytes;
	/* The maximum of each tile, which tiles reach at different steps; the liveness below is
	 * that of all tiles at one step. */
	int64_t not_always_live_bytes;
	int64_t non_interleaved, interleaved;
	const struct ips_report_category *categories; /* all in the file, sorted by name */
	int64_t num_categories;
};

/* Numbers of IPUs of the first replica (the memory of the others is the same) and of tiles per IPU,
 * which is the same for all IPUs. Rows of IPUs or tiles from 4,096 on, which no machine has, are
 * ignored. */
IPS_API int64_t ips_report_ipu_count(struct ips_report *report);
IPS_API int64_t ips_report_tile_count(struct ips_report *report);

/* The sum over IPU @ipu, or over all if IPS_NULL. NULL: there is no such IPU. */
IPS_API const struct ips_report_memory *ips_report_ipu_memory(struct ips_report *report,
							      int64_t ipu);

/* Memory of one tile; valid until a tile of another IPU is requested (the tiles of one IPU are
 * held: iterate IPU by IPU). NULL: there is no such tile. */
IPS_API const struct ips_report_memory *ips_report_tile_memory(struct ips_report *report,
							       int64_t ipu, int64_t tile);

/* ---- compilation: liveness ------------------------------------------------------------------- */

/* A program step of an IPU; each IPU has its own steps, numbered from 0. Bytes are summed over all
 * its tiles in one replica, as in libpva. The last step has no program: only variables that are
 * always live are live there. */
struct ips_report_liveness {
	int64_t ipu, program_step;
	int64_t program_id, program; /* id and index */
	int64_t always_live_bytes, not_always_live_bytes;
};

/* libpva: livenessProgramSteps, for IPU @ipu. Sorted by program_step. */
IPS_API int64_t ips_report_liveness_count(struct ips_report *report, int64_t ipu);
IPS_API const struct ips_report_liveness *ips_report_liveness(struct ips_report *report,
							      int64_t ipu, int64_t index);

/* The first step of IPU @ipu (IPS_NULL: of any) with the most live bytes, or NULL. */
IPS_API const struct ips_report_liveness *ips_report_liveness_peak(struct ips_report *report,
								   int64_t ipu);

/* libpva: notAlwaysLiveMemoryForTile. Store the bytes live on one tile at @program_step in
 * *@always_live and *@not_always_live (either may be NULL). */
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
	int64_t epoch;                          /* from 1; in training */
	int64_t first_step, num_steps, updates; /* Keras steps, per replica */
	int64_t start_ns, dur_ns;               /* measured, host clock */
	struct {
		double start, end;
	} microseconds;              /* the same times */
	int64_t start_cycle, cycles; /* simulated */
	int64_t traced; /* 1: its steps are recorded (autoReport.executionProfileProgramRunCount) */
};

IPS_API int64_t ips_report_run_count(struct ips_report *report);
IPS_API const struct ips_report_run *ips_report_run(struct ips_report *report, int64_t index);

/* libpva: execution.totalCycles.total: the sum over runs with known cycles. IPS_NULL: none. */
IPS_API int64_t ips_report_total_cycles(struct ips_report *report);

/* A step of the execution trace on one IPU. Steps of an IPU follow each other without gaps; Sync
 * and SyncAns are its waits. */
struct ips_report_step {
	int64_t rank, execution;
	enum ips_mode mode;
	int64_t epoch, weight_update, step, microbatch, replica;
	int64_t ipu; /* over all replicas */
	int64_t stage;
	char phase;                  /* enum ips_phase; 0: between stage programs */
	int64_t trace_step;          /* its number in its part of the pipeline run */
	int64_t program_id, program; /* id and index */
	enum ips_report_program_type kind;
	const char *type, *name, *operation;
	int64_t cycles, cycles_from,
		cycles_to;         /* libpva: allCycles; its activeCycles are not known */
	int64_t start_ns, dur_ns;  /* the same on the device's clock */
	int64_t cycles_overlapped; /* part concurrent with programs: streams through I/O tiles */
	int64_t active_tiles;
	double tile_balance, active_tile_balance; /* 0 to 1 */
	int64_t data_in, data_out;                /* bytes exchanged by this IPU */
};

/* Selection of steps; IPS_NULL: any. */
struct ips_report_step_filter {
	int64_t execution, ipu, replica, weight_update;
};

static inline struct ips_report_step_filter ips_report_step_filter_all(void)
{
	struct ips_report_step_filter filter = {IPS_NULL, IPS_NULL, IPS_NULL, IPS_NULL};

	return filter;
}

struct ips_report_steps; /* opaque: a cursor */

/* In recording order, which is the order of time for one IPU. @filter may be NULL: all steps. An
 * open cursor prevents the log of a file in recording from being truncated: read and close soon. */
IPS_API int ips_report_steps_open(struct ips_report *report, struct ips_report_steps **out,
				  const struct ips_report_step_filter *filter, char *message,
				  size_t size);
/* NULL: no more rows, or a failure, which ips_report_steps_close() returns. Texts are valid until
 * the report is closed. */
IPS_API const struct ips_report_step *ips_report_steps_next(struct ips_report_steps *cursor);
IPS_API int ips_report_steps_close(struct ips_report_steps *cursor); /* accepts NULL */

/* ---- trace: PVTI's processes, threads and events --------------------------------------------- */

/* A lane of the timeline: a thread, or a simulated IPU. */
struct ips_report_track {
	int64_t index;
	const char *track; /* its unique name */
	const char *name;  /* for display */
	const char *parent;
	enum ips_clock clock; /* IPS_DEVICE: simulated */
	int64_t rank, pid, tid, ipu;
};

/* In recording order. */
IPS_API int64_t ips_report_track_count(struct ips_report *report);
IPS_API const struct ips_report_track *ips_report_track(struct ips_report *report, int64_t index);

/* libpva: an event; its channel is the category, its label the name. */
struct ips_report_span {
	int64_t track; /* index */
	int64_t span_id, parent_id;
	int64_t depth; /* number of enclosing spans */
	const char *category, *name, *operation;
	int64_t start_ns, dur_ns; /* dur_ns IPS_NULL: still open, or its end was lost */
	struct ips_keys keys;     /* epoch, step, IPU ... */
};

/* Selection of spans; IPS_NULL: any. */
struct ips_report_span_filter {
	int64_t track;          /* index */
	int64_t from_ns, to_ns; /* start in [from_ns, to_ns) */
	int64_t max_depth;      /* at most so many enclosing spans */
};

static inline struct ips_report_span_filter ips_report_span_filter_all(void)
{
	struct ips_report_span_filter filter = {IPS_NULL, IPS_NULL, IPS_NULL, IPS_NULL};

	return filter;
}

struct ips_report_spans; /* opaque: a cursor */

/* Sorted by span_id, which on a track is the order of start with parents before children. @filter
 * may be NULL: all spans. As for steps: close soon if the file is still being recorded. */
IPS_API int ips_report_spans_open(struct ips_report *report, struct ips_report_spans **out,
				  const struct ips_report_span_filter *filter, char *message,
				  size_t size);
/* The children of span @span_id: spans directly inside it. */
IPS_API int ips_report_span_children(struct ips_report *report, struct ips_report_spans **out,
				     int64_t span_id, char *message, size_t size);
/* NULL: no more rows, or a failure, which ips_report_spans_close() returns. Texts are valid until
 * the report is closed. */
IPS_API const struct ips_report_span *ips_report_spans_next(struct ips_report_spans *cursor);
IPS_API int ips_report_spans_close(struct ips_report_spans *cursor); /* accepts NULL */

#ifdef __cplusplus
}
#endif

#endif /* IPUSCOPE_REPORT_H */
