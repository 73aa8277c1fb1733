/*
 * Finds the databases that rank 0 cannot see, fetches them in pieces, and merges all.
 *
 * Threading: the main thread of each rank.
 */
#include "trainer/train_ranks.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "profiler/prof_merge.h"

#define PIECE_BYTES (1 << 20) /* of a database, in memory at a time */

/* What a file has on every machine that sees it. Devices have other numbers on each. */
struct file_identity {
	int64_t bytes, inode, changed_ns;
};

static enum status identify(const char *path, struct file_identity *out, struct err *err)
{
	struct stat file;

	if (stat(path, &file) != 0)
		return err_set(err, ST_FAILED, "%s: %s", path, strerror(errno));
	out->bytes = (int64_t)file.st_size;
	out->inode = (int64_t)file.st_ino;
	out->changed_ns = (int64_t)file.st_mtim.tv_sec * 1000000000 + file.st_mtim.tv_nsec;
	return ST_OK;
}

/* Format the path of @rank's database below rank 0's @directory; 0: of the one in @directory. */
static enum status database_path(char out[FS_PATH_SIZE], const char *directory, int rank,
				 struct err *err)
{
	const bool fits = rank == 0 ? fs_path(out, "%s/profile.db", directory)
				    : fs_path(out, "%s/rank%d/profile.db", directory, rank);

	return fits ? ST_OK : err_set(err, ST_INVALID, "%s: the path is too long", directory);
}

/* ---- what rank 0 does not see ---------------------------------------------------------------- */

struct survey {
	const char *directory; /* rank 0's */
	int rank;              /* whose identity is next */
	int64_t *bytes;        /* by rank: of the database if rank 0 does not see it, otherwise 0 */
};

static void compare_identity(void *user, const void *bytes, size_t length)
{
	struct survey *survey = user;
	const int rank = survey->rank++;
	struct file_identity theirs, here = {0};
	char path[FS_PATH_SIZE];
	struct err ignored;

	memcpy(&theirs, bytes, min(length, sizeof(theirs)));
	if (database_path(path, survey->directory, rank, &ignored) != ST_OK ||
	    identify(path, &here, &ignored) != ST_OK || here.bytes != theirs.bytes ||
	    here.inode != theirs.inode || here.changed_ns != theirs.changed_ns)
		survey->bytes[rank] = theirs.bytes;
}

/* ---- fetching -------------------------------------------------------------------------------- */

/* A database on its way from one rank to rank 0. */
struct transfer {
	struct ranks *ranks;
	const char *directory;   /* of this rank */
	char path[FS_PATH_SIZE]; /* where this rank reads or writes it */
	FILE *file;              /* on the rank that sends it */
	struct fs_writer writer; /* on rank 0 */
	char piece[PIECE_BYTES];
	struct err *err; /* the first failure: of this rank, until all have agreed on one */
};

static enum status agree(const struct transfer *transfer)
{
	return train_ranks_agree(transfer->ranks, transfer->err->status, NULL, transfer->err);
}

static void write_piece(void *user, const void *bytes, size_t length)
{
	struct transfer *transfer = user;

	fs_writer_put(&transfer->writer, bytes, length, transfer->err);
}

/* Each piece is sent after all have agreed that the one before was read and written. */
static void send_pieces(struct transfer *transfer, int rank, int64_t bytes)
{
	const bool sends = ranks_rank(transfer->ranks) == rank;
	struct err *err = transfer->err;

	for (int64_t left = bytes; left > 0; left -= min(left, (int64_t)PIECE_BYTES)) {
		const size_t length = (size_t)min(left, (int64_t)PIECE_BYTES);

		if (!err_stuck(err) && sends &&
		    fread(transfer->piece, 1, length, transfer->file) != length)
			err_set(err, ST_FAILED, "%s: %s", transfer->path,
				ferror(transfer->file) ? strerror(errno)
						       : "became shorter while it was sent");
		if (agree(transfer) != ST_OK ||
		    train_ranks_collect(transfer->ranks, transfer->piece, sends ? length : 0,
					write_piece, transfer, err) != ST_OK)
			return;
	}
}

static void begin_writing(struct transfer *transfer, int rank)
{
	char folder[FS_PATH_SIZE];

	if (database_path(transfer->path, transfer->directory, rank, transfer->err) != ST_OK)
		return;
	fs_path(folder, "%.*s", (int)(strrchr(transfer->path, '/') - transfer->path),
		transfer->path);
	if (fs_make_dirs(folder, transfer->err) == ST_OK)
		fs_writer_open(&transfer->writer, transfer->path, transfer->err);
}

static void begin_reading(struct transfer *transfer)
{
	if (database_path(transfer->path, transfer->directory, 0, transfer->err) != ST_OK)
		return;
	transfer->file = fopen(transfer->path, "re");
	if (!transfer->file)
		err_set(transfer->err, ST_FAILED, "%s: %s", transfer->path, strerror(errno));
}

/* Copy @rank's database to rank 0. */
static void fetch(struct transfer *transfer, int rank, int64_t bytes)
{
	const bool writes = ranks_rank(transfer->ranks) == 0;

	transfer->file = NULL;
	transfer->writer.fd = -1;
	if (writes)
		begin_writing(transfer, rank);
	else if (ranks_rank(transfer->ranks) == rank)
		begin_reading(transfer);
	send_pieces(transfer, rank, bytes);
	if (writes && !err_stuck(transfer->err))
		fs_writer_close(&transfer->writer, transfer->err);
	else if (writes)
		fs_writer_drop(&transfer->writer);
	if (transfer->file)
		fclose(transfer->file);
	agree(transfer);
}

/* Copy to rank 0 the databases that it does not see. */
static enum status fetch_unseen(struct ranks *ranks, const char *directory, struct err *err)
{
	const int count = ranks_count(ranks);
	int64_t *bytes = mem_calloc((size_t)count, sizeof(*bytes));
	struct transfer *transfer = mem_alloc(sizeof(*transfer));
	struct survey survey = {.directory = directory, .rank = 1, .bytes = bytes};
	struct file_identity mine = {0};
	char path[FS_PATH_SIZE];
	enum status status =
		!bytes || !transfer ? err_nomem(err) : database_path(path, directory, 0, err);

	if (train_ranks_agree(ranks, status, NULL, err) != ST_OK ||
	    train_ranks_agree(ranks, identify(path, &mine, err), NULL, err) != ST_OK ||
	    train_ranks_collect(ranks, &mine, sizeof(mine), compare_identity, &survey, err) !=
		    ST_OK)
		goto end;
	ranks_broadcast(ranks, 0, bytes, (size_t)count * sizeof(*bytes));
	transfer->ranks = ranks;
	transfer->directory = directory;
	transfer->err = err;
	for (int r = 1; r < count && !err_stuck(err); r++)
		if (bytes[r] > 0)
			fetch(transfer, r, bytes[r]);
end:
	mem_free(bytes);
	mem_free(transfer);
	return err->status;
}

/* ---- merging --------------------------------------------------------------------------------- */

enum status train_ranks_report(struct ranks *ranks, const char *directory, const char *command,
			       char out[FS_PATH_SIZE], struct err *err)
{
	const struct prof_merge_params params = {.command = command};
	const size_t count = (size_t)ranks_count(ranks);
	struct prof_merge_source *sources;
	char(*paths)[FS_PATH_SIZE];
	struct fs_writer writer;

	if (fetch_unseen(ranks, directory, err) != ST_OK || ranks_rank(ranks) > 0)
		return err->status;
	if (!fs_path(out, "%s/ranks.db", directory))
		return err_set(err, ST_INVALID, "%s: the path is too long", directory);
	sources = mem_calloc(count, sizeof(*sources));
	paths = mem_calloc(count, sizeof(*paths));
	if (!sources || !paths)
		err_nomem(err);
	for (size_t r = 0; r < count && !err_stuck(err); r++) {
		database_path(paths[r], directory, (int)r, err);
		sources[r].path = paths[r];
	}
	if (err_stuck(err) || fs_writer_open(&writer, out, err) != ST_OK)
		goto end;
	if (prof_merge(writer.temporary, sources, count, &params, err) == ST_OK)
		fs_writer_close(&writer, err);
	else
		fs_writer_drop(&writer);
end:
	mem_free(sources);
	mem_free(paths);
	return err->status;
}
