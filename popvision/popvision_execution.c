/*
 * execution.json: the device's work in the traced executions. docs/json.md lists its paths.
 *
 * The device repeats the same work: as in the database, the steps of each trace are written once,
 * and each pass over a trace is a row. Threading: none. Ownership: nothing outlives a call.
 */
#include "popvision/popvision_internal.h"

#define OF_REPLICA "(:replica IS NULL OR r.replica = :replica)"

/* Index of a row's trace; there are few traces. */
#define TRACE_OF(row) "(SELECT count(*) FROM device_traces x WHERE x.trace_id < " row ".trace_id)"

static void execution_steps(struct popvision *pv)
{
	popvision__objects(
		pv, "steps",
		"SELECT " TRACE_OF(
			"d") " AS trace, t.value AS type, n.value AS name, "
			     "d.program_id AS program, o.value AS operation, d.ipu, d.stage, "
			     "d.phase, "
			     "d.microbatch, d.start_cycle AS cyclesFrom, d.start_cycle + d.cycles "
			     "AS cyclesTo, "
			     "d.cycles, d.cycles_overlapped AS cyclesOverlapped, "
			     "d.active_tiles AS activeTiles, d.tile_balance AS tileBalance, "
			     "d.active_tile_balance AS activeTileBalance, d.bytes_in AS dataIn, "
			     "d.bytes_out AS dataOut FROM device_step_rows d "
			     "JOIN device_traces e ON e.trace_id = d.trace_id "
			     "LEFT JOIN strings t ON t.string_id = d.type_id "
			     "LEFT JOIN strings n ON n.string_id = d.name_id "
			     "LEFT JOIN strings o ON o.string_id = d.operation_id "
			     "ORDER BY d.trace_id, d.ipu, d.trace_step");
}

static void execution_body(struct popvision *pv)
{
	struct jsonw *w = &pv->w;

	jsonw_key_text(w, "profilerMode", pv->target->name ? "IPU_MODEL" : "CPU");
	jsonw_key(w, "replicaToProfile");
	if (pv->replica == POPVISION_ALL_REPLICAS)
		jsonw_null(w);
	else
		jsonw_int(w, pv->replica);
	popvision__compute_set_cycles(pv, "computeSetCyclesByTile");

	jsonw_key_object(w, "simulation");
	popvision__fields(
		pv,
		"WITH passes AS (SELECT trace_id, count(*) AS n FROM device_run_rows r "
		"WHERE " OF_REPLICA " GROUP BY trace_id), "
		"types AS (SELECT t.value AS type, sum(d.cycles * p.n) AS cycles FROM passes p "
		"JOIN device_step_rows d ON d.trace_id = p.trace_id "
		"LEFT JOIN strings t ON t.string_id = d.type_id GROUP BY t.value) "
		"SELECT (SELECT sum(cycles) FROM executions WHERE traced) AS cycles, "
		"sum(cycles) FILTER (WHERE type = 'OnTileExecute') AS \"tileCycles.compute\", "
		"sum(cycles) FILTER (WHERE type = 'DoExchange') AS \"tileCycles.doExchange\", "
		"sum(cycles) FILTER (WHERE type = 'GlobalExchange') "
		"AS \"tileCycles.globalExchange\", "
		"sum(cycles) FILTER (WHERE type LIKE 'StreamCopy%') AS \"tileCycles.streamCopy\", "
		"sum(cycles) FILTER (WHERE type IN ('Sync', 'SyncAns', 'Sans')) "
		"AS \"tileCycles.sync\" FROM types");
	popvision__objects(
		pv, "runs",
		"SELECT rank, execution, mode, epoch, first_step AS firstStep, steps AS numSteps, "
		"updates AS weightUpdates, start_cycle AS cyclesFrom, "
		"start_cycle + cycles AS cyclesTo, cycles, "
		"start_ns / 1000.0 AS \"microseconds.start\", "
		"(start_ns + dur_ns) / 1000.0 AS \"microseconds.end\" "
		"FROM executions WHERE traced ORDER BY rank, execution");
	popvision__objects(
		pv, "traces",
		"WITH n AS (SELECT trace_id, count(*) AS steps FROM device_step_rows "
		"GROUP BY trace_id) "
		"SELECT t.name, t.clock_hz AS clockFrequency, ifnull(sum(n.steps) OVER (ORDER BY "
		"t.trace_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS firstStep, "
		"ifnull(n.steps, 0) AS numSteps, (SELECT count(*) FROM device_run_rows r "
		"WHERE r.trace_id = t.trace_id AND " OF_REPLICA ") AS numPasses "
		"FROM device_traces t LEFT JOIN n ON n.trace_id = t.trace_id ORDER BY t.trace_id");
	execution_steps(pv);
	popvision__objects(
		pv, "passes",
		"SELECT " TRACE_OF(
			"r") " AS trace, r.rank, r.execution, "
			     "r.weight_update AS weightUpdate, r.replica, r.first_ipu AS firstIpu, "
			     "r.first_step AS firstStep, r.first_microbatch AS firstMicrobatch, "
			     "r.start_cycle AS cyclesFrom FROM device_run_rows r "
			     "WHERE " OF_REPLICA
			     " AND r.trace_id IN (SELECT trace_id FROM device_traces) "
			     "ORDER BY r.row_id");
	jsonw_end_object(w);
}

enum status popvision_execution(struct ips_report *report, const char *path, int64_t replica,
				struct err *err)
{
	return popvision__write(report, path, replica, execution_body, err);
}
