/*
 * Named reports on the model as planned: operations.
 *
 * Threading: constant data only. Ownership: literals.
 */
#include "reports/report_named.h"

/* Of one part of a whole, 0 .. 1; NULL where either is unknown. */
#define SHARE(part, whole) part " * 1.0 / nullif(" whole ", 0)"

/* --- operations --------------------------------------------------------------------------------
 */

#define OPERATION_NUMBERS                                                                                     \
	"	" SHARE(                                                                                      \
		"cycles",                                                                                     \
		"sum(cycles) OVER ()") " AS cycles_share,\n"                                                  \
				       "	" SHARE(                                                      \
					       "compute_cycles",                                              \
					       "cycles") " AS compute_share,\n"                               \
							 "	" SHARE(                                      \
								 "exchange_cycles",                           \
								 "cycles") " AS exchange_share,\n"            \
									   "	" SHARE(                      \
										   "sync_cycles",             \
										   "cycles") " AS"            \
											     " sy"            \
											     "nc_"            \
											     "sha"            \
											     "re,"            \
											     "\n"             \
											     "	" SHARE(      \
												     "flops", \
												     "cycles") " AS flops_per_cycle"

/* Several operations as one row; tile_balance is the mean over cycles. */
#define OPERATION_SUMS(keys)                                                                       \
	"SELECT *,\n" OPERATION_NUMBERS "\n"                                                       \
	"FROM (SELECT " keys ", count(*) AS operations, sum(flops) AS flops,\n"                    \
	"	sum(cycles) AS cycles, sum(compute_cycles) AS compute_cycles,\n"                         \
	"	sum(exchange_cycles) AS exchange_cycles, sum(sync_cycles) AS sync_cycles,\n"             \
	"	sum(bytes_exchanged) AS bytes_exchanged,\n"                                              \
	"	" SHARE("sum(tile_balance * cycles)",                                              \
			"sum(CASE WHEN tile_balance IS NOT NULL THEN "                             \
			"cycles END)") " AS tile_balance,\n"                                       \
				       "	sum(code_bytes) AS code_bytes\n"                          \
				       "FROM operations GROUP BY " keys ")"

const struct report_named report_named_operations = {
	REPORT_NAMED("operations", "cycles, FLOPs and code by operation, layer, stage or phase"),
	{{"operation",
	  "SELECT operation, layer, kind, phase, stage, flops, cycles, compute_cycles,\n"
	  "	exchange_cycles, sync_cycles, bytes_exchanged, tiles_used, tile_balance,\n"
	  "	code_bytes,\n" OPERATION_NUMBERS "\n"
	  "FROM operations",
	  "operation,phase,stage,cycles,cycles_share,code_bytes,tile_balance", "-cycles,operation"},
	 {"layer", OPERATION_SUMS("layer"),
	  "layer,cycles,cycles_share,compute_share,exchange_share,flops,flops_per_cycle",
	  "-cycles,layer"},
	 {"stage", OPERATION_SUMS("stage"),
	  "stage,operations,cycles,cycles_share,compute_share,exchange_share,flops,flops_per_cycle",
	  "stage"},
	 {"phase", OPERATION_SUMS("phase"),
	  "phase,operations,cycles,cycles_share,compute_share,exchange_share,flops,flops_per_cycle",
	  "-cycles,phase"}},
	"No operations: the run planned none (a recording without a simulated device), or was "
	"killed before its plan was written.",
};
