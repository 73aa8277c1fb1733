/*
 * What of the pool only its tests need to see.
 */
#ifndef COMMON_POOL_INTERNAL_H
#define COMMON_POOL_INTERNAL_H

/*
 * The least work of a run that each thread must get, in ns, for a helper that is awake and for one
 * that has to be woken. Of bench_pool: two threads are even with one at 3 and at 12 us, on a Xeon
 * (Sapphire Rapids, virtual machine), where slices touch no memory; twice as much where they do,
 * since lines of memory then move from core to core.
 */
#define POOL_LANE_WORK 3000
#define POOL_WAKE_WORK 12000

/*
 * Processors that a cgroup's quota allows, rounded up, 0: no limit. @membership is the file that
 * names the process's groups (/proc/self/cgroup), @mount the folder of the groups (/sys/fs/cgroup).
 */
unsigned pool__quota(const char *membership, const char *mount);

#endif /* COMMON_POOL_INTERNAL_H */
