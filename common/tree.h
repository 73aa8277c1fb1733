/*
 * The canonical binary tree in which values of numbered items (replicas) are summed.
 *
 * sum(first .. last) = sum(left branch) + sum(right branch); the left branch has the greatest power
 * of two below the number of items. So each complete range of 2^k items that begins at a multiple
 * of 2^k is a branch: a process that has such a range can sum it alone, and the total has the same
 * bytes however the ranges are distributed.
 */
#ifndef COMMON_TREE_H
#define COMMON_TREE_H

/* Number of @count items (2 to 2^30) in the left branch. */
static inline int tree_left(int count)
{
	int left = 1;

	while (2 * left < count)
		left *= 2;
	return left;
}

#endif
