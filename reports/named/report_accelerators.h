/*
 * Queries on accelerators that insights use, too. Their definitions are Holistic Trace Analysis's,
 * see report_accelerators.c.
 */
#ifndef REPORT_ACCELERATORS_H
#define REPORT_ACCELERATORS_H

/* A row for each device, of the time from its first kernel's or copy's start to the last one's end:
 * rank, device, total_ns, busy_ns, idle_ns, idle_share, compute_ns, compute_share, non_compute_ns,
 * communication_ns, overlap_ns, overlap_share, copy_ns. */
extern const char report_accelerator_split_sql[];

/* A row for each device, of the gaps in all its streams: rank, device, idle_ns, and the part of it
 * in gaps that end with a call that began after the gap (host_wait_ns), or are neither that nor a
 * switch between kernels (other_wait_ns). */
extern const char report_accelerator_gaps_sql[];

/* In SQL, the column `name` of ranges without what PyTorch's emit_nvtx() adds to it
 * (getNvtxStr() in torch/csrc/profiler/util.cpp): "aten::mm, seq = 3, op_id = 17,
 * sizes = [[2, 3], [3, 4]]" is a call of aten::mm. */
#define REPORT_RANGE_NAME                                                                          \
	"CASE WHEN instr(name, ', seq = ')\n"                                                      \
	"       THEN substr(name, 1, instr(name, ', seq = ') - 1)\n"                               \
	"       WHEN instr(name, ', op_id = ')\n"                                                  \
	"       THEN substr(name, 1, instr(name, ', op_id = ') - 1)\n"                             \
	"       ELSE name END"

#endif /* REPORT_ACCELERATORS_H */
