/*
 * Parts of the pool that its tests use.
 */
#ifndef COMMON_POOL_INTERNAL_H
#define COMMON_POOL_INTERNAL_H

/*
 * The least work per thread in a run, in ns, to use a helper that is awake and one that has to be
 * woken. Measured with bench_pool on a Xeon (Sapphire Rapids, virtual machine): two threads break
 * even with one at 3 and at 12 us if slices touch no memory, and at twice that if they do, since
 * cache lines then move between cores.
 */
#define POOL_LANE_WORK 3000
#define POOL_WAKE_WORK 12000

/*
 * CPU quota of the process's cgroup in processors, rounded up; 0: no limit. @membership is the file
 * that names the process's groups (/proc/self/cgroup), @mount their mount point (/sys/fs/cgroup).
 */
unsigned pool__quota(const char *membership, const char *mount);

#endif /* COMMON_POOL_INTERNAL_H */
