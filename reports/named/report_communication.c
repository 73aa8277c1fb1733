/*
 * The report `communication`: what ranks exchange, what it takes, and who waits for whom.
 *
 * Bandwidths are those of nccl-tests (doc/PERFORMANCE.md there): the algorithm bandwidth is S / t,
 * the bus bandwidth that times 2 (n - 1) / n of an all-reduce, (n - 1) / n of a reduce-scatter, an
 * all-gather and an all-to-all, 1 of the others. Its operations begin together; t here is counted
 * from when the last rank has come, also where the operation goes on behind other work.
 *
 * Threading: constant data only. Ownership: definitions are literals.
 */
#include "reports/named/report_communication.h"

/* Bytes by ns are GB/s; a barrier has no bytes. */
#define OF_SIZED "nullif(sum(CASE WHEN size IS NOT NULL THEN transfer_ns END), 0)"
/* NULL where no call says what was hidden. */
#define HIDDEN                                                                                     \
	"sum(hidden_ns) AS hidden_ns,\n"                                                           \
	"       1.0 * sum(hidden_ns) / nullif(sum(hidden_ns) + sum(exposed_ns), 0) AS "            \
	"hidden_share"

#define CALLS(keys)                                                                                \
	REPORT_EXCHANGES                                                                           \
	"SELECT " keys ", max(ranks) AS ranks, count(*) AS calls, sum(bytes) AS bytes,\n"          \
	"       avg(size) AS mean_size_bytes, sum(dur_ns) AS total_ns, avg(dur_ns) AS mean_ns,\n"  \
	"       sum(exposed_ns) AS exposed_ns, " HIDDEN ",\n"                                      \
	"       sum(waited_ns) AS waited_ns,\n"                                                    \
	"       sum(meets AND last_rank = rank) AS last_calls,\n"                                  \
	"       1.0 * nullif(sum(size), 0) / " OF_SIZED " AS algbw_gb_s,\n"                        \
	"       1.0 * nullif(sum(size * bus), 0) / " OF_SIZED " AS busbw_gb_s\n"                   \
	"FROM exchange GROUP BY " keys

#define OF_CALL "stage,bucket,communicator,name"

/* A rank's own time: of the lanes that exchange, from the first exchange's start to the last one's
 * end, what is not waited for. */
static const char rank_sql[] = REPORT_EXCHANGES
	"SELECT rank, calls, bytes, lanes * length_ns AS total_ns, exposed_ns,\n"
	"       1.0 * exposed_ns / nullif(lanes * length_ns, 0) AS exposed_share,\n"
	"       hidden_ns, hidden_share, waited_ns, transfer_ns, last_calls,\n"
	"       1.0 * last_calls / nullif(meetings, 0) AS last_share,\n"
	"       lanes * length_ns - exposed_ns AS own_ns,\n"
	"       1.0 * (lanes * length_ns - exposed_ns)\n"
	"         / nullif(avg(lanes * length_ns - exposed_ns) OVER (), 0) - 1 AS imbalance\n"
	"FROM (SELECT rank, count(*) AS calls, sum(bytes) AS bytes,\n"
	"             count(DISTINCT track) AS lanes,\n"
	"             max(start_ns + dur_ns) - min(start_ns) AS length_ns,\n"
	"             sum(exposed_ns) AS exposed_ns, " HIDDEN ",\n"
	"             sum(waited_ns) AS waited_ns,\n"
	"             sum(transfer_ns) AS transfer_ns, sum(meets) AS meetings,\n"
	"             sum(meets AND last_rank = rank) AS last_calls\n"
	"      FROM exchange GROUP BY rank)";

static const char straggler_sql[] = REPORT_EXCHANGES
	"SELECT rank, last_rank, count(*) AS calls, sum(waited_ns) AS waited_ns,\n"
	"       1.0 * sum(waited_ns) / nullif(sum(sum(waited_ns)) OVER (PARTITION BY rank), 0)\n"
	"         AS waited_share, max(waited_ns) AS longest_ns\n"
	"FROM exchange WHERE meets GROUP BY rank, last_rank";

/* Calls that belong to no weight update go by their number. With a bare min(), SQLite takes span_id
 * from the row of the minimum: the first call. */
static const char update_sql[] = REPORT_EXCHANGES
	"SELECT rank, mode, epoch, execution, weight_update,\n"
	"       CASE WHEN weight_update IS NULL THEN number END AS number,\n"
	"       min(start_ns) AS start_ns, span_id, count(*) AS calls, sum(bytes) AS bytes,\n"
	"       sum(dur_ns) AS total_ns, sum(exposed_ns) AS exposed_ns, " HIDDEN ",\n"
	"       sum(waited_ns) AS waited_ns, sum(transfer_ns) AS transfer_ns,\n"
	"       sum(meets AND last_rank = rank) AS last_calls\n"
	"FROM exchange GROUP BY rank, moment, epoch, 6";

const struct report_named report_named_communication = {
	REPORT_NAMED("communication", "what ranks exchange: bytes, bandwidth, waiting, stragglers, "
				      "imbalance (reads every span)"),
	{{"call", CALLS("name, stage, bucket, communicator, rank"),
	  "name,stage,rank,calls,bytes,mean_ns,exposed_ns,waited_ns,busbw_gb_s", OF_CALL ",rank"},
	 {"bucket", CALLS("name, stage, bucket, communicator"),
	  "name,stage,bucket,calls,bytes,mean_ns,exposed_ns,hidden_share,algbw_gb_s,busbw_gb_s",
	  OF_CALL},
	 {"rank", rank_sql,
	  "rank,calls,bytes,exposed_share,hidden_share,waited_ns,last_calls,own_ns,imbalance",
	  "rank"},
	 {"straggler", straggler_sql, "rank,last_rank,calls,waited_ns,waited_share,longest_ns",
	  "-waited_ns,rank,last_rank"},
	 {"update", update_sql,
	  "rank,weight_update,number,calls,bytes,exposed_ns,hidden_ns,waited_ns,last_calls",
	  "execution,weight_update,number,rank"}},
	"No calls of MPI were recorded (libipuscope-mpi records those of any program), or, with "
	"--by straggler, not those of all ranks: `ipu-report merge` joins the recordings of ranks.",
};
