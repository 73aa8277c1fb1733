/*
 * Insights on tile memory: exceeded, nearly exhausted, its peak, and what recomputation frees.
 *
 * Threading: none. Ownership: arrays belong to the insights' arena.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/sat.h"
#include "common/str.h"
#include "ipu/ipu_schedule.h"
#include "reports/insights/report_insights_internal.h"

static const char sql_tiles[] =
	"SELECT ipu, tile, bytes, capacity, sum(bytes) AS in_use_bytes,\n"
	"       sum(bytes > capacity) AS tiles_over, max(bytes) AS fullest_bytes,\n"
	"       count(*) AS tiles\n"
	"FROM (SELECT ipu, tile, sum(bytes) AS bytes, max(capacity) AS capacity\n"
	"      FROM tile_memory GROUP BY ipu, tile) GROUP BY ipu ORDER BY ipu";

static const char sql_peak[] =
	"SELECT l.ipu, l.program_step, p.name AS program, l.bytes, l.always_live_bytes\n"
	"FROM (SELECT ipu, program_step, program_id, always_live_bytes,\n"
	"             max(always_live_bytes + not_always_live_bytes) AS bytes\n"
	"      FROM liveness GROUP BY ipu) l\n"
	"LEFT JOIN programs p ON p.program_id = l.program_id ORDER BY l.ipu";

/* Bytes in FIFOs except inputs of stages and random draws of layers: recomputation keeps these. */
static const char sql_fifos[] =
	"SELECT ipu, sum(bytes) AS bytes FROM variables\n"
	"WHERE kind = 'fifo' AND always_live AND variable NOT LIKE 'infeed%'\n"
	"  AND variable NOT GLOB '*/Stage[0-9]*/fifo' AND variable NOT LIKE '%/skip/%'\n"
	"  AND variable NOT GLOB '*/random/fifo' GROUP BY ipu";

/* Code size of the stages' forward functions, which recomputation duplicates; words per instruction
 * as in docs/cost-model.md. */
static const char sql_replay[] =
	"WITH RECURSIVE f(program_id, type, name) AS (\n"
	"  SELECT program_id, type, name FROM programs\n"
	"    WHERE parent_id IS NULL AND name GLOB 'Stage*/F'\n"
	"  UNION ALL SELECT p.program_id, p.type, f.name\n"
	"    FROM programs p JOIN f ON p.parent_id = f.program_id)\n"
	"SELECT CAST(substr(name, 6) AS INTEGER) AS stage,\n"
	"       4 * sum(CASE type WHEN 'OnTileExecute' THEN 4 WHEN 'DoExchange' THEN 3\n"
	"               WHEN 'Sync' THEN 1 ELSE 0 END) AS bytes\n"
	"FROM f GROUP BY name";

/* ---- reading --------------------------------------------------------------------------------- */

static struct insight_memory *find_memory(struct insight_facts *facts, int64_t ipu)
{
	for (int i = 0; i < facts->memory_count; i++)
		if (facts->memory[i].ipu == ipu)
			return &facts->memory[i];
	return NULL;
}

void report__insight_memory(struct insight_facts *facts)
{
	struct report_table table;

	if (report__insight_rows(facts, &table, sql_tiles)) {
		facts->memory =
			report__insight_alloc(facts, table.row_count, sizeof(*facts->memory));
		for (int64_t row = 0; row < table.row_count && facts->memory; row++)
			if (report__insight_int(&table, row, 3) > 0)
				facts->memory[facts->memory_count++] = (struct insight_memory){
					.ipu = report__insight_int(&table, row, 0),
					.tile = report__insight_int(&table, row, 1),
					.bytes = report__insight_int(&table, row, 2),
					.capacity = report__insight_int(&table, row, 3),
					.tiles_over = report__insight_int(&table, row, 5),
					.tiles = report__insight_int(&table, row, 7),
					.peak_bytes = IPS_NULL,
					.peak_step = IPS_NULL,
				};
		report_table_free(&table);
	}
	report__insight_rows(facts, &table, sql_peak);
	for (int64_t row = 0; row < table.row_count; row++) {
		struct insight_memory *memory =
			find_memory(facts, report__insight_int(&table, row, 0));
		const char *program = report__insight_word(&table, row, 2);

		if (!memory)
			continue;
		memory->peak_step = report__insight_int(&table, row, 1);
		memory->peak_bytes = report__insight_int(&table, row, 3);
		memory->always_live = report__insight_int(&table, row, 4);
		if (program)
			memory->peak_program = report__insight_text(facts, "%s", program);
	}
	report_table_free(&table);
	report__insight_rows(facts, &table, sql_fifos);
	for (int64_t row = 0; row < table.row_count; row++) {
		struct insight_memory *memory =
			find_memory(facts, report__insight_int(&table, row, 0));

		if (memory)
			memory->recompute_bytes = report__insight_int(&table, row, 1);
	}
	report_table_free(&table);
}

/* ---- insights -------------------------------------------------------------------------------- */

/* A remedy for too little memory that this run's options leave open. */
static const char *memory_remedy(const struct insight_facts *facts,
				 const struct insight_memory *memory)
{
	if ((facts->has & INSIGHT_PIPELINE) && !facts->options.recompute &&
	    memory->recompute_bytes > 0)
		return "`--ipu.allow_recompute true`; a smaller `--data.batch_size`; "
		       "`--ipu.matmuls.availableMemoryProportion` and that of "
		       "ipu.convolutions below 0.6.";
	return "A smaller `--data.batch_size`; more stages (`--pipeline.stages auto` with more "
	       "`--ipu.auto_select_ipus`); `--ipu.matmuls.availableMemoryProportion` and that of "
	       "ipu.convolutions below 0.6.";
}

static struct report_insight *add_memory(struct insight_facts *facts, const char *id,
					 enum report_insight_severity severity,
					 const struct insight_memory *memory)
{
	struct report_insight *insight =
		report__insight_add(facts, id, severity, "tile_memory", "", sql_tiles);

	report__insight_subject(facts, insight, "ipu", memory->ipu);
	insight->keys =
		report__insight_text(facts, "%s tile=%" PRId64, insight->keys, memory->tile);
	report__insight_number(insight, "tile", (double)memory->tile, REPORT_NUMBER);
	report__insight_number(insight, "tile_bytes", (double)memory->bytes, REPORT_BYTES);
	report__insight_number(insight, "capacity_bytes", (double)memory->capacity, REPORT_BYTES);
	return insight;
}

void report__insight_out_of_memory(struct insight_facts *facts)
{
	for (int i = 0; i < facts->memory_count; i++) {
		const struct insight_memory *memory = &facts->memory[i];
		struct report_insight *insight;
		char count[FMT_SIZE], over[FMT_SIZE], capacity[FMT_SIZE];

		if (memory->tiles_over <= 0)
			continue;
		insight = add_memory(facts, "out_of_memory", REPORT_INSIGHT_PROBLEM, memory);
		insight->sentence = report__insight_text(
			facts,
			"%s of IPU %" PRId64 " %s more memory than the %s that a tile has: tile "
			"%" PRId64 ", the fullest, %s too much (simulated). The device would not "
			"take this program.",
			memory->tiles_over == 1
				? "1 tile"
				: report__insight_text(facts, "%s tiles",
						       fmt_count(count, memory->tiles_over)),
			memory->ipu, memory->tiles_over == 1 ? "needs" : "need",
			fmt_bytes(capacity, (uint64_t)memory->capacity), memory->tile,
			fmt_bytes(over, (uint64_t)(sat_sub(memory->bytes, memory->capacity))));
		report__insight_number(insight, "tiles_over", (double)memory->tiles_over,
				       REPORT_COUNT);
		report__insight_number(insight, "over_bytes",
				       (double)(sat_sub(memory->bytes, memory->capacity)),
				       REPORT_BYTES);
		insight->share = 1;
		insight->remedy = memory_remedy(facts, memory);
	}
}

static double used_fraction(const struct insight_memory *memory)
{
	return (double)memory->bytes / (double)memory->capacity;
}

static const struct insight_memory *find_fullest(const struct insight_facts *facts)
{
	const struct insight_memory *most = &facts->memory[0];

	for (int i = 1; i < facts->memory_count; i++)
		if (used_fraction(&facts->memory[i]) > used_fraction(most))
			most = &facts->memory[i];
	return most;
}

void report__insight_tile_memory(struct insight_facts *facts)
{
	const struct insight_memory *memory = find_fullest(facts);
	struct report_insight *insight;
	char share[FMT_SIZE], rest[FMT_SIZE];

	if (used_fraction(memory) < report_insight_limit(REPORT_LIMIT_TILE_USED) ||
	    memory->tiles_over > 0)
		return;
	insight = add_memory(facts, "tile_memory", REPORT_INSIGHT_ADVICE, memory);
	insight->share = used_fraction(memory);
	insight->sentence = report__insight_text(
		facts,
		"The fullest tile, %" PRId64 " of IPU %" PRId64 ", has %s of its memory in use and "
		"%s left (simulated; gaps and alignment are not counted).",
		memory->tile, memory->ipu, fmt_percent(share, used_fraction(memory)),
		fmt_bytes(rest, (uint64_t)(memory->capacity - memory->bytes)));
	report__insight_number(insight, "used_share", used_fraction(memory), REPORT_FRACTION);
	insight->remedy = memory_remedy(facts, memory);
}

void report__insight_memory_peak(struct insight_facts *facts)
{
	const struct insight_memory *memory = find_fullest(facts);
	struct report_insight *insight;
	char tile[FMT_SIZE], share[FMT_SIZE], peak[FMT_SIZE], always[FMT_SIZE];

	for (int i = 0; i < facts->memory_count; i++)
		if (facts->memory[i].peak_bytes > memory->peak_bytes)
			memory = &facts->memory[i];
	insight = add_memory(facts, "memory_peak", REPORT_INSIGHT_NOTE, memory);
	insight->share = used_fraction(memory);
	report__insight_number(insight, "used_share", used_fraction(memory), REPORT_FRACTION);
	if (memory->peak_bytes == IPS_NULL) {
		insight->sentence = report__insight_text(
			facts,
			"The fullest tile of IPU %" PRId64 ", %" PRId64 ", uses %s, %s of "
			"what it has (simulated).",
			memory->ipu, memory->tile, fmt_bytes(tile, (uint64_t)memory->bytes),
			fmt_percent(share, used_fraction(memory)));
		return;
	}
	insight->view = "liveness";
	insight->keys = report__insight_text(facts, "ipu=%" PRId64 " program_step=%" PRId64,
					     memory->ipu, memory->peak_step);
	insight->sql = sql_peak;
	report__insight_number(insight, "peak_bytes", (double)memory->peak_bytes, REPORT_BYTES);
	insight->sentence = report__insight_text(
		facts,
		"Memory is at its peak on IPU %" PRId64 " in program step %" PRId64 "%s%.200s: %s, "
		"of which %s always live; its fullest tile uses %s of what it has "
		"(simulated).",
		memory->ipu, memory->peak_step, memory->peak_program ? ", " : "",
		memory->peak_program ? memory->peak_program : "",
		fmt_bytes(peak, (uint64_t)memory->peak_bytes),
		fmt_bytes(always, (uint64_t)memory->always_live),
		fmt_percent(share, used_fraction(memory)));
}

/* ---- recomputation --------------------------------------------------------------------------- */

/* If the stage never ran: the default of pipeline.device_mapping. */
static int64_t stage_ipu(const struct insight_facts *facts, int64_t stage)
{
	for (int64_t i = 0; i < facts->summary.stages; i++)
		if (facts->summary.stage[i].stage == stage &&
		    facts->summary.stage[i].ipu != IPS_NULL)
			return facts->summary.stage[i].ipu;
	return stage;
}

static void add_recomputation(struct insight_facts *facts, const struct insight_memory *memory,
			      double code)
{
	const bool wanted = used_fraction(memory) >= report_insight_limit(REPORT_LIMIT_TILE_USED);
	const double saved = (double)memory->recompute_bytes - code;
	struct report_insight *insight;
	char fifo[FMT_SIZE], rest[FMT_SIZE], share[FMT_SIZE], extra[FMT_SIZE];

	if (!(saved > report_insight_limit(REPORT_LIMIT_RECOMPUTE) * (double)memory->peak_bytes))
		return;
	insight = add_memory(facts, "recomputation",
			     wanted ? REPORT_INSIGHT_ADVICE : REPORT_INSIGHT_NOTE, memory);
	insight->sql = sql_fifos;
	insight->view = "variables";
	insight->keys = report__insight_text(facts, "ipu=%" PRId64 " kind=fifo", memory->ipu);
	insight->share = saved / (double)memory->peak_bytes;
	insight->sentence = report__insight_text(
		facts,
		"On IPU %" PRId64 " activations that wait for their backward pass take %s besides "
		"the stage's inputs (simulated). Recomputed, they would leave %s, %s of the peak, "
		"for %s of code and each forward pass done twice.",
		memory->ipu, fmt_bytes(fifo, (uint64_t)memory->recompute_bytes),
		fmt_bytes(rest, (uint64_t)saved), fmt_percent(share, insight->share),
		fmt_bytes(extra, (uint64_t)code));
	report__insight_number(insight, "fifo_bytes", (double)memory->recompute_bytes,
			       REPORT_BYTES);
	report__insight_number(insight, "saved_bytes", saved, REPORT_BYTES);
	insight->gain.bytes[0] = (double)memory->always_live;
	insight->gain.bytes[1] = (double)memory->always_live - saved;
	insight->remedy = wanted ? "`--ipu.allow_recompute true`."
				 : "`--ipu.allow_recompute true`, where memory is wanted, for a "
				   "larger batch or fewer IPUs: it costs time.";
}

/* Return false for schedules that read activations again in W: they cannot release any. */
static bool schedule_recomputes(const struct insight_facts *facts)
{
	enum ipu_schedule_kind kind;

	return !facts->summary.schedule ||
	       ipu_schedule_kind_get(facts->summary.schedule, &kind, NULL) != ST_OK ||
	       ipu_schedule_row(kind)->replays != 0;
}

void report__insight_recomputation(struct insight_facts *facts)
{
	struct report_table table;

	if (facts->options.recompute || !schedule_recomputes(facts))
		return;
	report__insight_rows(facts, &table, sql_replay);
	for (int i = 0; i < facts->memory_count; i++) {
		const struct insight_memory *memory = &facts->memory[i];

		if (memory->recompute_bytes > 0 && memory->peak_bytes != IPS_NULL) {
			double bytes = 0;

			/* Code size of the replays on all tiles of @memory's IPU. */
			for (int64_t row = 0; row < table.row_count; row++)
				if (stage_ipu(facts, report__insight_int(&table, row, 0)) ==
				    memory->ipu)
					bytes += report__insight_real(&table, row, 1) *
						 (double)memory->tiles;
			add_recomputation(facts, memory, bytes);
		}
	}
	report_table_free(&table);
}
