/*
 * The planned operations as a weight update runs them: what reports and viewer rank operations by.
 *
 * A row of the view operations is what one execution takes. A weight update executes each operation
 * of a forward or backward pass once for each micro-batch, and those of the update (phase U) once:
 * summed over all it is what device_steps has of one weight update and one replica
 * (tests/viewer/view_numbers.sh compares them).
 */
#ifndef REPORT_OPERATIONS_H
#define REPORT_OPERATIONS_H

/* Micro-batches of a replica's weight update; NULL: what was recorded does not say. @at stands
 * before the views: "", or what a comparison has in place of its two files. */
#define REPORT_MICROBATCHES_AT(at)                                                                 \
	"coalesce((SELECT CAST(value AS INTEGER) FROM " at                                         \
	"meta WHERE key = 'gradient_accumulation'), (SELECT max(microbatches) FROM " at            \
	"bubble_sums WHERE mode = 'train'))"
#define REPORT_MICROBATCHES REPORT_MICROBATCHES_AT("")

/* Executions of an operation in a weight update. */
#define REPORT_TIMES_AT(at)                                                                        \
	"CASE phase WHEN 'U' THEN 1 ELSE ifnull(" REPORT_MICROBATCHES_AT(at) ", 1) END"

/* Of one IPU, in the number format that the model's products have. NULL: the recorder had no
 * simulated device, or is older than this fact. */
#define REPORT_FACT_REAL(key)  "(SELECT CAST(value AS REAL) FROM meta WHERE key = '" key "')"
#define REPORT_CLOCK_HZ        REPORT_FACT_REAL("clock_hz")
#define REPORT_PEAK_FLOP_CYCLE REPORT_FACT_REAL("peak_flops_per_cycle")

/* What @flops in @cycles of one IPU are: TFLOP/s by its simulated clock, and of its peak. */
#define REPORT_TFLOPS(flops, cycles) "1e-12 * " flops " / nullif(" cycles ", 0) * " REPORT_CLOCK_HZ
#define REPORT_PEAK_SHARE(flops, cycles)                                                           \
	"1.0 * " flops " / nullif(" cycles ", 0) / " REPORT_PEAK_FLOP_CYCLE

/* The operations that train outside of their layer's own name: Keras's picture of a step has the
 * optimizer and the accumulation of gradients beside the layers. */
#define REPORT_OPERATION_APART                                                                     \
	"(phase = 'U' OR operation LIKE 'GradientAccumulation/%') AND instr(operation, '/') > 1"

/* The view's columns, `times` (executions in a weight update) and what those take together.
 * `owner` is the layer; what is in none has a name in brackets, which no layer can have. `part` is
 * the owner, or the optimizer or the accumulation of gradients by their own names. */
#define REPORT_OPERATIONS                                                                          \
	"(SELECT *, CASE WHEN " REPORT_OPERATION_APART                                             \
	" THEN substr(operation, 1, instr(operation, '/') - 1) ELSE owner END AS part, "           \
	"cycles * times AS update_cycles, compute_cycles * times AS update_compute, "              \
	"exchange_cycles * times AS update_exchange, sync_cycles * times AS update_sync, "         \
	"flops * times AS update_flops, bytes_exchanged * times AS update_bytes "                  \
	"FROM (SELECT *, coalesce(layer, CASE WHEN operation LIKE 'infeed/%' THEN '(infeed)' "     \
	"WHEN operation LIKE 'metrics/%' THEN '(metrics)' WHEN phase = 'U' THEN '(optimizer)' "    \
	"WHEN operation LIKE '%loss/%' THEN '(loss)' ELSE '(other)' END) AS "                      \
	"owner, " REPORT_TIMES_AT("") " AS times FROM operations))"

#endif /* REPORT_OPERATIONS_H */
