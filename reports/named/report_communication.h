/*
 * Calls of MPI as their spans have them, and which of them are one exchange of several ranks.
 *
 * A span of the category `mpi` says in its arguments: `bytes` (what the rank sends to others),
 * `size` (the data of the whole operation as nccl-tests count it; only of a span that lasts as long
 * as the operation), `ranks` (of the communicator), `bucket`, `communicator` (its name, where
 * stage and bucket do not say it), `waited_ns` (as long nobody did anything else; without it all of
 * the span).
 */
#ifndef REPORT_COMMUNICATION_H
#define REPORT_COMMUNICATION_H

#include "reports/named/report_named.h"

/* Call sites are few: what asks this of every recording does not read its spans. */
#define REPORT_HAS_CALLS                                                                           \
	"SELECT EXISTS (SELECT 1 FROM sites s JOIN strings g "                                     \
	"ON g.string_id = s.category_id WHERE g.value = 'mpi')"

#define REPORT_CALL_ARGUMENT(name) "max(CASE a.name WHEN '" name "' THEN a.value END) AS " name

/* Of one operation: a weight update's, or else by their number. */
#define REPORT_EXCHANGE_KEYS "name, stage, bucket, communicator, mode, execution, weight_update"

/* Begins a query: the table `exchange` has a row for each call of a rank. last_rank: who came last
 * of those that met in it (of calls that nobody leaves before all have come); waited_ns: as long
 * the call waited for that rank; transfer_ns: the rest. */
#define REPORT_EXCHANGES                                                                                        \
	"WITH spoken AS (\n"                                                                                    \
	"  SELECT s.span_id, s.rank, s.track, s.name, s.mode, s.epoch, s.execution,\n"                          \
	"         s.weight_update, s.stage, s.start_ns, s.dur_ns,\n"                                            \
	"         " REPORT_CALL_ARGUMENT("bytes") ", " REPORT_CALL_ARGUMENT(                                    \
		"size") ",\n"                                                                                   \
			"         " REPORT_CALL_ARGUMENT("ranks") ", " REPORT_CALL_ARGUMENT(                    \
				"bucket") ",\n"                                                                 \
					  "         " REPORT_CALL_ARGUMENT(                                     \
						  "communicator") ",\n"                                         \
								  "        "                                    \
								  " " REPORT_CALL_ARGUMENT(                     \
									  "waited_ns") "\n"                     \
										       "  FROM "                \
										       "spans s "               \
										       "LEFT "                  \
										       "JOIN "                  \
										       "span_"                  \
										       "args a "                \
										       "ON "                    \
										       "a.span_"                \
										       "id = "                  \
										       "s.span_"                \
										       "id\n"                   \
										       "  WHERE "               \
										       "s."                     \
										       "category "              \
										       "= 'mpi' "               \
										       "AND "                   \
										       "s.dur_ns "              \
										       "IS NOT "                \
										       "NULL "                  \
										       "GROUP BY "              \
										       "s.span_"                \
										       "id),\n"                 \
										       "named AS "              \
										       "(\n"                    \
										       "  SELECT "              \
										       "*, "                    \
										       "coalesce("              \
										       "waited_"                \
										       "ns, "                   \
										       "dur_ns) "               \
										       "AS "                    \
										       "exposed_"               \
										       "ns,\n"                  \
										       "         "              \
										       "lower("                 \
										       "substr("                \
										       "name, "                 \
										       "CASE "                  \
										       "WHEN "                  \
										       "name "                  \
										       "GLOB "                  \
										       "'MPI_I[a-"              \
										       "z]*' "                  \
										       "THEN 6 "                \
										       "ELSE 5 "                \
										       "END))\n"                \
										       "         "              \
										       "  AS "                  \
										       "kind\n"                 \
										       "  FROM "                \
										       "spoken),"               \
										       "\n"                     \
										       "numbered "              \
										       "AS (\n"                 \
										       "  SELECT "              \
										       "*, CASE "               \
										       "WHEN "                  \
										       "kind = "                \
										       "'allreduc"              \
										       "e' THEN "               \
										       "2.0 * "                 \
										       "(ranks - "              \
										       "1) / "                  \
										       "ranks\n"                \
										       "         "              \
										       "        "               \
										       "WHEN "                  \
										       "kind "                  \
										       "GLOB "                  \
										       "'all*' "                \
										       "OR kind "               \
										       "GLOB "                  \
										       "'reduce_"               \
										       "scatter*'"              \
										       "\n"                     \
										       "         "              \
										       "        "               \
										       "THEN 1.0 "              \
										       "* (ranks "              \
										       "- 1) / "                \
										       "ranks "                 \
										       "ELSE 1 "                \
										       "END AS "                \
										       "bus,\n"                 \
										       "         "              \
										       "CASE "                  \
										       "WHEN "                  \
										       "size IS "               \
										       "NOT NULL "              \
										       "AND "                   \
										       "(kind = "               \
										       "'barrier'"              \
										       " OR kind "              \
										       "GLOB "                  \
										       "'all*'\n"               \
										       "         "              \
										       "         "              \
										       " OR kind "              \
										       "GLOB "                  \
										       "'reduce_"               \
										       "scatter*'"              \
										       ")\n"                    \
										       "         "              \
										       "     "                  \
										       "THEN 0 "                \
										       "ELSE "                  \
										       "span_id "               \
										       "END AS "                \
										       "apart,\n"               \
										       "         "              \
										       "row_"                   \
										       "number() "              \
										       "OVER "                  \
										       "(PARTITIO"              \
										       "N BY "                  \
										       "rank,"                  \
										       " " REPORT_EXCHANGE_KEYS \
										       "\n"                     \
										       "         "              \
										       "         "              \
										       "         "              \
										       " ORDER "                \
										       "BY "                    \
										       "start_ns,"              \
										       " span_id)"              \
										       " AS "                   \
										       "number\n"               \
										       "  FROM "                \
										       "named),\n"              \
										       "met AS "                \
										       "(\n"                    \
										       "  SELECT "              \
										       "*, "                    \
										       "max("                   \
										       "start_ns)"              \
										       " OVER w "               \
										       "AS "                    \
										       "last_ns,"               \
										       "\n"                     \
										       "         "              \
										       "first_"                 \
										       "value("                 \
										       "rank) "                 \
										       "OVER (w "               \
										       "ORDER BY "              \
										       "start_ns "              \
										       "DESC, "                 \
										       "rank) AS "              \
										       "last_"                  \
										       "rank\n"                 \
										       "  FROM "                \
										       "numbered"               \
										       "\n"                     \
										       "  WINDOW "              \
										       "w AS "                  \
										       "(PARTITIO"              \
										       "N "                     \
										       "BY"                     \
										       " " REPORT_EXCHANGE_KEYS \
										       ", "                     \
										       "number, "               \
										       "apart)),"               \
										       "\n"                     \
										       "exchange "              \
										       "AS (\n"                 \
										       "  SELECT "              \
										       "span_id, "              \
										       "rank, "                 \
										       "track, "                \
										       "name, "                 \
										       "mode, "                 \
										       "epoch, "                \
										       "execution"              \
										       ", "                     \
										       "weight_"                \
										       "update, "               \
										       "stage,\n"               \
										       "         "              \
										       "bucket, "               \
										       "communica"              \
										       "tor, "                  \
										       "number, "               \
										       "start_ns,"              \
										       " dur_ns, "              \
										       "bytes, "                \
										       "size, "                 \
										       "ranks, "                \
										       "bus,\n"                 \
										       "         "              \
										       "exposed_"               \
										       "ns, "                   \
										       "apart = "               \
										       "0 AS "                  \
										       "meets,\n"               \
										       "         "              \
										       "CASE "                  \
										       "apart "                 \
										       "WHEN 0 "                \
										       "THEN "                  \
										       "last_"                  \
										       "rank END "              \
										       "AS "                    \
										       "last_"                  \
										       "rank,\n"                \
										       "         "              \
										       "min(dur_"               \
										       "ns, "                   \
										       "last_ns "               \
										       "- "                     \
										       "start_ns)"              \
										       " AS "                   \
										       "waited_"                \
										       "ns,\n"                  \
										       "         "              \
										       "dur_ns - "              \
										       "min(dur_"               \
										       "ns, "                   \
										       "last_ns "               \
										       "- "                     \
										       "start_ns)"              \
										       " AS "                   \
										       "transfer_"              \
										       "ns\n"                   \
										       "  FROM "                \
										       "met)\n"

extern const struct report_named report_named_communication;

#endif /* REPORT_COMMUNICATION_H */
