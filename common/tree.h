/*
 * The one binary tree over numbered things (replicas) in which what they have is summed up.
 *
 * sum(first .. last) = sum(left branch) + sum(right branch), where the left branch has as many as
 * the greatest power of two below their number. So each range of 2^k that begins at a multiple of
 * 2^k is a branch as soon as it is not the last: whoever has such a range sums it alone, and the
 * bytes of the whole are the same however the ranges were shared out.
 */
#ifndef COMMON_TREE_H
#define COMMON_TREE_H

/* How many of @count (2 to 2^30) are in the left branch. */
static inline int tree_left(int count)
{
	int left = 1;

	while (2 * left < count)
		left *= 2;
	return left;
}

#endif
