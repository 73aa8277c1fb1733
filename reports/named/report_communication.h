/*
 * Calls of MPI as their spans have them, and which of them are one exchange of several ranks.
 *
 * A span of the category `mpi` says in its arguments: `bytes` (what the rank sends to others),
 * `size` (the data of the whole operation as nccl-tests count it; only where its length is known),
 * `ranks` (of the communicator), `bucket`, `communicator` (its name, where stage and bucket do not
 * say it). Where the span is only the wait for an operation that went on behind other work:
 * `before_ns` (how long before the span the operation began), `length_ns` (the operation's; without
 * both it is the span's), `hidden_ns` (of it, behind the backward pass).
 */
#ifndef REPORT_COMMUNICATION_H
#define REPORT_COMMUNICATION_H

#include "reports/named/report_named.h"

/* Call sites are few: what asks this of every recording does not read its spans. */
#define REPORT_HAS_CALLS                                                                           \
	"SELECT EXISTS (SELECT 1 FROM sites s JOIN strings g "                                     \
	"ON g.string_id = s.category_id WHERE g.value = 'mpi')"

/* The begin of a query. The table `exchange` has a row for each call of a rank. Calls of several
 * ranks are one operation if they have the same weight update and the same number within it.
 * meets: no rank leaves the operation before all have entered it, and all its ranks are recorded;
 * last_rank: the rank that entered such an operation last; waited_ns: how long this call waited
 * for it; transfer_ns: the operation's length after that rank had entered. */
#define REPORT_EXCHANGES                                                                           \
	"WITH spoken AS (\n"                                                                       \
	"  SELECT s.span_id, s.rank, s.track, s.name, s.mode, s.epoch, s.execution,\n"             \
	"         s.weight_update, s.stage, s.start_ns, s.dur_ns,\n"                               \
	"         max(CASE a.name WHEN 'bytes' THEN a.value END) AS bytes,\n"                      \
	"         max(CASE a.name WHEN 'size' THEN a.value END) AS size,\n"                        \
	"         max(CASE a.name WHEN 'ranks' THEN a.value END) AS ranks,\n"                      \
	"         max(CASE a.name WHEN 'bucket' THEN a.value END) AS bucket,\n"                    \
	"         max(CASE a.name WHEN 'communicator' THEN a.value END) AS communicator,\n"        \
	"         max(CASE a.name WHEN 'hidden_ns' THEN a.value END) AS hidden_ns,\n"              \
	"         max(CASE a.name WHEN 'before_ns' THEN a.value END) AS before_ns,\n"              \
	"         max(CASE a.name WHEN 'length_ns' THEN a.value END) AS length_ns\n"               \
	"  FROM spans s LEFT JOIN span_args a ON a.span_id = s.span_id\n"                          \
	"  WHERE s.category = 'mpi' AND s.dur_ns IS NOT NULL GROUP BY s.span_id),\n"               \
	"named AS (\n"                                                                             \
	"  SELECT *, start_ns - coalesce(before_ns, 0) AS begun_ns,\n"                             \
	"         coalesce(length_ns, dur_ns) AS took_ns,\n"                                       \
	"         lower(substr(name, CASE WHEN name GLOB 'MPI_I[a-z]*' THEN 6 ELSE 5 END))\n"      \
	"           AS kind\n"                                                                     \
	"  FROM spoken),\n"                                                                        \
	"numbered AS (\n"                                                                          \
	"  SELECT *, CASE WHEN kind = 'allreduce' THEN 2.0 * (ranks - 1) / ranks\n"                \
	"                 WHEN kind GLOB 'all*' OR kind GLOB 'reduce_scatter*'\n"                  \
	"                 THEN 1.0 * (ranks - 1) / ranks ELSE 1.0 END AS bus,\n"                   \
	"         CASE WHEN size IS NOT NULL AND (kind = 'barrier' OR kind GLOB 'all*'\n"          \
	"                   OR kind GLOB 'reduce_scatter*')\n"                                     \
	"              THEN 0 ELSE span_id END AS apart,\n"                                        \
	"         row_number() OVER (\n"                                                           \
	"           PARTITION BY rank, name, stage, bucket, communicator, mode, execution,\n"      \
	"                        weight_update ORDER BY start_ns, span_id) AS number\n"            \
	"  FROM named),\n"                                                                         \
	"met AS (\n"                                                                               \
	"  SELECT *, max(begun_ns) OVER w AS last_ns,\n"                                           \
	"         first_value(rank) OVER (w ORDER BY begun_ns DESC, rank) AS last_rank,\n"         \
	"         apart = 0 AND count(*) OVER w = coalesce(ranks, count(*) OVER w) AS meets\n"     \
	"  FROM numbered\n"                                                                        \
	"  WINDOW w AS (PARTITION BY name, stage, bucket, communicator, mode, execution,\n"        \
	"                            weight_update, number, apart)),\n"                            \
	"exchange AS (\n"                                                                          \
	"  SELECT span_id, rank, track, name, mode, epoch, execution, weight_update, stage,\n"     \
	"         bucket, communicator, number, start_ns, dur_ns, bytes, size, ranks, bus,\n"      \
	"         dur_ns AS exposed_ns, hidden_ns, meets,\n"                                       \
	"         CASE WHEN meets THEN last_rank END AS last_rank,\n"                              \
	"         CASE WHEN meets THEN max(0, min(dur_ns, last_ns - start_ns)) END\n"              \
	"           AS waited_ns,\n"                                                               \
	"         took_ns - CASE WHEN meets THEN min(took_ns, last_ns - begun_ns)\n"               \
	"           ELSE 0 END AS transfer_ns\n"                                                   \
	"  FROM met)\n"

extern const struct report_named report_named_communication;

#endif /* REPORT_COMMUNICATION_H */
