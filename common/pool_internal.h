/*
 * What of the pool only its tests need to see.
 */
#ifndef COMMON_POOL_INTERNAL_H
#define COMMON_POOL_INTERNAL_H

/* Processors that a cgroup's quota allows, rounded up, 0: no limit. @membership is the file that
 * names the process's groups (/proc/self/cgroup), @mount the folder of the groups (/sys/fs/cgroup).
 */
unsigned pool__quota(const char *membership, const char *mount);

#endif /* COMMON_POOL_INTERNAL_H */
