/*
 * One report of all ranks: at the end of a run rank 0 merges their databases, and fetches through
 * the transport those that it cannot see: on another machine, or below another folder.
 */
#ifndef TRAIN_RANKS_REPORT_H
#define TRAIN_RANKS_REPORT_H

#include "common/fs.h"
#include "trainer/ranks/ranks.h"

/*
 * Called by all ranks once their recordings are closed. @directory is this rank's; those of other
 * ranks are rank1, rank2, ... below rank 0's, and what rank 0 fetches is written there. @out
 * receives the path of the merged database, which rank 0 has. After a failure all ranks return the
 * same error, unless only the merge has failed.
 */
enum status train_ranks_report(struct ranks *ranks, const char *directory, const char *command,
			       char out[FS_PATH_SIZE], struct err *err);

#endif /* TRAIN_RANKS_REPORT_H */
