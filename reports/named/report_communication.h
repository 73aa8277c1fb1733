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
 * moment: the same for all ranks in a weight update of an execution and mode; meets: no rank leaves
 * the operation before all have entered it, and all its ranks are recorded; last_rank: the rank
 * that entered such an operation last; waited_ns: how long this call waited for it; transfer_ns:
 * the operation's length after that rank had entered.
 *
 * Sorting is most of the query's cost. So the columns that are sorted are numbers where they can
 * be, arguments are found by the numbers of their names, and what only the result needs is looked
 * up after the sorting. Calls are numbered by rank first: a merged file has them in that order. */
#pragma GCC diagnostic ignored "-Woverlength-strings" /* C11 promises 4095 bytes, compilers more */
#define REPORT_EXCHANGES                                                                           \
	"WITH argument AS MATERIALIZED (\n"                                                        \
	" SELECT max(string_id) FILTER (WHERE value = 'bytes') AS bytes,\n"                        \
	"  max(string_id) FILTER (WHERE value = 'size') AS size,\n"                                \
	"  max(string_id) FILTER (WHERE value = 'ranks') AS ranks,\n"                              \
	"  max(string_id) FILTER (WHERE value = 'bucket') AS bucket,\n"                            \
	"  max(string_id) FILTER (WHERE value = 'communicator') AS communicator,\n"                \
	"  max(string_id) FILTER (WHERE value = 'hidden_ns') AS hidden_ns,\n"                      \
	"  max(string_id) FILTER (WHERE value = 'before_ns') AS before_ns,\n"                      \
	"  max(string_id) FILTER (WHERE value = 'length_ns') AS length_ns\n"                       \
	" FROM strings),\n"                                                                        \
	"called AS MATERIALIZED (\n"                                                               \
	" SELECT *, kind = 'barrier' OR kind GLOB 'all*' OR kind GLOB 'reduce_scatter*' AS "       \
	"joins\n"                                                                                  \
	" FROM (SELECT s.site_id, s.name_id, n.value AS name, lower(substr(n.value,\n"             \
	"   CASE WHEN n.value GLOB 'MPI_I[a-z]*' THEN 6 ELSE 5 END)) AS kind\n"                    \
	"  FROM sites s JOIN strings g ON g.string_id = s.category_id\n"                           \
	"  JOIN strings n ON n.string_id = s.name_id WHERE g.value = 'mpi')),\n"                   \
	"moments AS MATERIALIZED (\n"                                                              \
	" SELECT context_id, stage,\n"                                                             \
	"  dense_rank() OVER (ORDER BY execution, weight_update, mode) AS moment\n"                \
	" FROM (SELECT context_id, mode, execution, weight_update, stage FROM contexts\n"          \
	"  UNION ALL SELECT NULL, NULL, NULL, NULL, NULL)),\n"                                     \
	"numbered AS MATERIALIZED (\n"                                                             \
	" SELECT r.*, t.rank, m.moment, s.name_id, m.stage, u.value AS bucket,\n"                  \
	"  c.value AS communicator, e.value AS ranks, s.joins AND z.value IS NOT NULL AS joint,\n" \
	"  r.start_ns - coalesce(f.value, 0) AS begun_ns,\n"                                       \
	"  row_number() OVER (\n"                                                                  \
	"   PARTITION BY t.rank, m.moment, s.name_id, m.stage, u.value, c.value\n"                 \
	"   ORDER BY r.start_ns, r.span_id) AS number\n"                                           \
	" FROM argument k\n"                                                                       \
	" CROSS JOIN (SELECT span_id, track_id, site_id, start_ns, dur_ns, context_id FROM "       \
	"span_rows) r\n"                                                                           \
	" CROSS JOIN called s USING (site_id)\n"                                                   \
	" CROSS JOIN moments m ON m.context_id IS r.context_id\n"                                  \
	" CROSS JOIN track_rows t USING (track_id)\n"                                              \
	" LEFT JOIN span_arg_rows u ON u.span_id = r.span_id AND u.name_id = k.bucket\n"           \
	" LEFT JOIN span_arg_rows c ON c.span_id = r.span_id AND c.name_id = k.communicator\n"     \
	" LEFT JOIN span_arg_rows e ON e.span_id = r.span_id AND e.name_id = k.ranks\n"            \
	" LEFT JOIN span_arg_rows z ON z.span_id = r.span_id AND z.name_id = k.size\n"             \
	" LEFT JOIN span_arg_rows f ON f.span_id = r.span_id AND f.name_id = k.before_ns\n"        \
	" WHERE r.dur_ns IS NOT NULL),\n"                                                          \
	"operation AS MATERIALIZED (\n"                                                            \
	" SELECT moment, name_id, stage, bucket, communicator, number, count(*) AS calls,\n"       \
	"  max(begun_ns) AS last_ns, rank AS last_rank\n"                                          \
	" FROM numbered WHERE joint GROUP BY 1, 2, 3, 4, 5, 6),\n"                                 \
	"met AS (\n"                                                                               \
	" SELECT n.*, joint AND calls = coalesce(n.ranks, calls) AS meets, last_ns, last_rank AS " \
	"last\n"                                                                                   \
	" FROM numbered n LEFT JOIN operation o\n"                                                 \
	"  ON n.joint AND o.moment = n.moment AND o.name_id = n.name_id AND o.number = n.number\n" \
	"  AND o.stage IS n.stage AND o.bucket IS n.bucket AND o.communicator IS "                 \
	"n.communicator),\n"                                                                       \
	"exchange AS (\n"                                                                          \
	" SELECT n.*, t.track, s.name, c.mode, c.epoch, c.execution, c.weight_update,\n"           \
	"  b.value AS bytes, z.value AS size,\n"                                                   \
	"  CASE WHEN kind = 'allreduce' THEN 2.0 * (n.ranks - 1) / n.ranks\n"                      \
	"   WHEN kind GLOB 'all*' OR kind GLOB 'reduce_scatter*'\n"                                \
	"   THEN 1.0 * (n.ranks - 1) / n.ranks ELSE 1.0 END AS bus,\n"                             \
	"  dur_ns AS exposed_ns, h.value AS hidden_ns, CASE WHEN meets THEN last END AS "          \
	"last_rank,\n"                                                                             \
	"  CASE WHEN meets THEN max(0, min(dur_ns, last_ns - start_ns)) END AS waited_ns,\n"       \
	"  coalesce(l.value, dur_ns) - CASE WHEN meets\n"                                          \
	"   THEN min(coalesce(l.value, dur_ns), last_ns - begun_ns) ELSE 0 END AS transfer_ns\n"   \
	" FROM argument k CROSS JOIN met n CROSS JOIN called s USING (site_id)\n"                  \
	" LEFT JOIN contexts c ON c.context_id = n.context_id\n"                                   \
	" LEFT JOIN track_rows t ON t.track_id = n.track_id\n"                                     \
	" LEFT JOIN span_arg_rows b ON b.span_id = n.span_id AND b.name_id = k.bytes\n"            \
	" LEFT JOIN span_arg_rows z ON z.span_id = n.span_id AND z.name_id = k.size\n"             \
	" LEFT JOIN span_arg_rows h ON h.span_id = n.span_id AND h.name_id = k.hidden_ns\n"        \
	" LEFT JOIN span_arg_rows l ON l.span_id = n.span_id AND l.name_id = k.length_ns)\n"

extern const struct report_named report_named_communication;

#endif /* REPORT_COMMUNICATION_H */
