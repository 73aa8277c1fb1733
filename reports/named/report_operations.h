/*
 * Planned operations weighted by their executions in a weight update: reports and viewer rank
 * operations by these.
 *
 * A row of the view operations is the cost of one execution. A weight update executes each
 * operation of a forward or backward pass once per micro-batch, and each operation of the update
 * (phase U) once. The sum over all operations equals device_steps of one weight update and one
 * replica (tests/viewer/view_numbers.sh compares them).
 */
#ifndef REPORT_OPERATIONS_H
#define REPORT_OPERATIONS_H

/* Micro-batches of a replica's weight update; NULL: not recorded. @at is a prefix of the views: "",
 * or the schema of one of the two files of a comparison. */
#define REPORT_MICROBATCHES_AT(at)                                                                 \
	"coalesce((SELECT CAST(value AS INTEGER) FROM " at                                         \
	"meta WHERE key = 'gradient_accumulation'), (SELECT max(microbatches) FROM " at            \
	"bubble_sums WHERE mode = 'train'))"
#define REPORT_MICROBATCHES REPORT_MICROBATCHES_AT("")

/* Number of executions of an operation in a weight update. */
#define REPORT_TIMES_AT(at)                                                                        \
	"CASE phase WHEN 'U' THEN 1 ELSE ifnull(" REPORT_MICROBATCHES_AT(at) ", 1) END"

/* Facts on one IPU, in the number format of the model's products. NULL: the recorder had no
 * simulated device, or is older than this fact. */
#define REPORT_FACT_REAL(key)  "(SELECT CAST(value AS REAL) FROM meta WHERE key = '" key "')"
#define REPORT_CLOCK_HZ        REPORT_FACT_REAL("clock_hz")
#define REPORT_PEAK_FLOP_CYCLE REPORT_FACT_REAL("peak_flops_per_cycle")

/* Rate of @flops in @cycles of one IPU: in TFLOP/s of its simulated clock, and as a share of its
 * peak. */
#define REPORT_TFLOPS(flops, cycles) "1e-12 * " flops " / nullif(" cycles ", 0) * " REPORT_CLOCK_HZ
#define REPORT_PEAK_SHARE(flops, cycles)                                                           \
	"1.0 * " flops " / nullif(" cycles ", 0) / " REPORT_PEAK_FLOP_CYCLE

/* Training operations outside their layer's name. Keras's view of a step has the optimizer and the
 * accumulation of gradients beside the layers. */
#define REPORT_OPERATION_APART                                                                     \
	"(phase = 'U' OR operation LIKE 'GradientAccumulation/%') AND instr(operation, '/') > 1"

/* The view's columns, `times` (executions in a weight update) and their cost in total. `owner` is
 * the layer; an operation outside any layer gets a name in brackets, which no layer can have.
 * `part` is the owner, or the optimizer or the accumulation of gradients by their names. */
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
