/*
 * Named reports on the simulated device at work: the execution trace and where the time went.
 *
 * Threading: constant data only. Ownership: literals.
 */
#include "reports/named/report_named.h"

/* ---- execution-trace ------------------------------------------------------------------------- */

/* Tile balances are means over the cycles of compute. The parallel efficiency counts all tiles of
 * an IPU: it is the share of their cycles in which they compute. */
static const char trace_execution_sql[] =
	"SELECT rank, mode, epoch, execution, replica, ipu, sum(cycles) AS cycles,\n"
	"       1.0 * sum(balanced) / nullif(sum(cycles), 0) AS parallel_efficiency,\n"
	"       total(cycles) FILTER (WHERE type = 'OnTileExecute')\n"
	"         / nullif(sum(cycles), 0) AS compute_share,\n"
	"       total(cycles) FILTER (WHERE type = 'DoExchange')\n"
	"         / nullif(sum(cycles), 0) AS exchange_share,\n"
	"       total(cycles) FILTER (WHERE type = 'GlobalExchange')\n"
	"         / nullif(sum(cycles), 0) AS global_exchange_share,\n"
	"       total(cycles) FILTER (WHERE type LIKE 'StreamCopy%')\n"
	"         / nullif(sum(cycles), 0) AS stream_copy_share,\n"
	"       total(cycles) FILTER (WHERE type LIKE '%Sync%')\n"
	"         / nullif(sum(cycles), 0) AS sync_share,\n"
	"       1.0 * sum(balanced) / nullif(sum(cycles) FILTER\n"
	"         (WHERE type = 'OnTileExecute'), 0) AS tile_balance,\n"
	"       1.0 * sum(active_balanced) / nullif(sum(cycles) FILTER\n"
	"         (WHERE type = 'OnTileExecute'), 0) AS active_tile_balance,\n"
	"       sum(bytes_in) FILTER (WHERE type LIKE 'StreamCopy%')\n"
	"         AS stream_copy_rx_bytes,\n"
	"       sum(bytes_out) FILTER (WHERE type LIKE 'StreamCopy%')\n"
	"         AS stream_copy_tx_bytes,\n"
	"       sum(bytes_in) FILTER (WHERE type = 'GlobalExchange')\n"
	"         AS global_exchange_rx_bytes,\n"
	"       sum(bytes_out) FILTER (WHERE type = 'GlobalExchange')\n"
	"         AS global_exchange_tx_bytes,\n"
	"       sum(program_steps) AS program_steps\n"
	"FROM (SELECT rank, mode, epoch, execution, replica, ipu, type,\n"
	"             sum(cycles) AS cycles, sum(cycles * tile_balance) AS balanced,\n"
	"             sum(cycles * active_tile_balance) AS active_balanced,\n"
	"             sum(bytes_in) AS bytes_in, sum(bytes_out) AS bytes_out,\n"
	"             count(*) AS program_steps\n"
	"      FROM device_steps\n"
	"      GROUP BY rank, mode, epoch, execution, replica, ipu, type)\n"
	"GROUP BY rank, mode, epoch, execution, replica, ipu";

static const char trace_type_sql[] =
	"SELECT rank, mode, ipu, type, count(*) AS program_steps, sum(cycles) AS cycles,\n"
	"       1.0 * sum(cycles) / nullif(sum(sum(cycles)) OVER (\n"
	"         PARTITION BY rank, mode, ipu), 0) AS share,\n"
	"       avg(cycles) AS mean_cycles, sum(cycles_overlapped) AS cycles_overlapped,\n"
	"       sum(bytes_in) AS rx_bytes, sum(bytes_out) AS tx_bytes\n"
	"FROM device_steps GROUP BY rank, mode, ipu, type";

static const char trace_operation_sql[] =
	"SELECT rank, mode, ipu, operation, phase, count(*) AS program_steps,\n"
	"       sum(cycles) AS cycles,\n"
	"       1.0 * sum(cycles) / nullif(sum(sum(cycles)) OVER (\n"
	"         PARTITION BY rank, mode, ipu), 0) AS share,\n"
	"       sum(cycles) FILTER (WHERE type = 'OnTileExecute') AS compute_cycles,\n"
	"       1.0 * sum(cycles * tile_balance) / nullif(sum(cycles) FILTER\n"
	"         (WHERE type = 'OnTileExecute'), 0) AS tile_balance\n"
	"FROM device_steps GROUP BY rank, mode, ipu, operation, phase";

const struct report_named report_named_execution_trace = {
	REPORT_NAMED("execution-trace", "where an execution's cycles go, by IPU; or by kind of "
					"program, or operation (reads every device step)"),
	{{"execution", trace_execution_sql,
	  "mode,execution,ipu,cycles,parallel_efficiency,compute_share,exchange_share,sync_share,"
	  "stream_copy_share,tile_balance",
	  "rank,execution,ipu"},
	 {"type", trace_type_sql, "mode,ipu,type,program_steps,cycles,share,rx_bytes,tx_bytes",
	  "rank,mode,ipu,-cycles,type"},
	 {"operation", trace_operation_sql, "mode,ipu,operation,phase,cycles,share,tile_balance",
	  "rank,mode,ipu,-cycles,operation,phase"}},
	"No device steps: the run recorded none of its executions, or had no simulated device "
	"(autoReport.outputExecutionProfile records them, "
	"autoReport.executionProfileProgramRunCount says of how many).",
};

/* ---- time-split ------------------------------------------------------------------------------ */

static const char split_ipu_sql[] =
	"SELECT clock, rank, mode, replica, ipu, executions, total_ns,\n"
	"       1.0 * compute_ns / nullif(total_ns, 0) AS compute_share,\n"
	"       1.0 * exchange_ns / nullif(total_ns, 0) AS exchange_share,\n"
	"       1.0 * sync_ns / nullif(total_ns, 0) AS sync_share,\n"
	"       1.0 * host_io_ns / nullif(total_ns, 0) AS host_io_share,\n"
	"       1.0 * idle_ns / nullif(total_ns, 0) AS idle_share,\n"
	"       compute_ns, exchange_ns, sync_ns, host_io_ns, idle_ns\n"
	"FROM (SELECT clock, rank, mode, replica, ipu, count(*) AS executions,\n"
	"             sum(total_ns) AS total_ns, sum(compute_ns) AS compute_ns,\n"
	"             sum(exchange_ns) AS exchange_ns, sum(sync_ns) AS sync_ns,\n"
	"             sum(host_io_ns) AS host_io_ns, sum(idle_ns) AS idle_ns\n"
	"      FROM (SELECT t.*, e.mode, e.epoch, t.compute_ns + t.exchange_ns + t.sync_ns\n"
	"               + t.host_io_ns + t.idle_ns AS total_ns\n"
	"             FROM time_split t LEFT JOIN executions e\n"
	"               ON e.execution = t.execution AND e.rank = t.rank)\n"
	"      GROUP BY clock, rank, mode, replica, ipu)";

static const char split_execution_sql[] =
	"SELECT clock, rank, mode, epoch, execution, replica, ipu, total_ns,\n"
	"       1.0 * compute_ns / nullif(total_ns, 0) AS compute_share,\n"
	"       1.0 * exchange_ns / nullif(total_ns, 0) AS exchange_share,\n"
	"       1.0 * sync_ns / nullif(total_ns, 0) AS sync_share,\n"
	"       1.0 * host_io_ns / nullif(total_ns, 0) AS host_io_share,\n"
	"       1.0 * idle_ns / nullif(total_ns, 0) AS idle_share,\n"
	"       compute_ns, exchange_ns, sync_ns, host_io_ns, idle_ns\n"
	"FROM (SELECT t.*, e.mode, e.epoch, t.compute_ns + t.exchange_ns + t.sync_ns\n"
	"               + t.host_io_ns + t.idle_ns AS total_ns\n"
	"             FROM time_split t LEFT JOIN executions e\n"
	"               ON e.execution = t.execution AND e.rank = t.rank)";

const struct report_named report_named_time_split = {
	REPORT_NAMED("time-split", "compute, exchange, sync, host I/O and idle, in percent of the "
				   "time of each IPU and worker"),
	{{"ipu", split_ipu_sql,
	  "clock,mode,replica,ipu,compute_share,exchange_share,sync_share,host_io_share,idle_share",
	  "-clock,rank,-mode,replica,ipu"},
	 {"execution", split_execution_sql,
	  "clock,execution,replica,ipu,compute_share,exchange_share,sync_share,host_io_share,"
	  "idle_share",
	  "-clock,rank,execution,replica,ipu"}},
	"No time split: no execution was finished while recording.",
};
