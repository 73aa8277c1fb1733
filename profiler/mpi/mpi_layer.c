/*
 * libipuscope-mpi records a program's MPI calls as spans through MPI's profiling interface: each
 * MPI_X here records a span and calls PMPI_X. It is compiled once per implementation, because their
 * binary interfaces differ.
 *
 * A span has the arguments that the report `communication` reads
 * (reports/named/report_communication.h): `bytes` that the rank sends, `ranks`, `peer` (a rank of
 * the communicator), `communicator` if it is not MPI_COMM_WORLD, and `size` if the call returns
 * when the operation has ended.
 *
 * Threading: each thread that calls MPI has a track; a thread that ends leaves it to a later one.
 * Ownership: the layer owns the recording from MPI_Init to MPI_Finalize; a communicator's name is
 * its attribute and is freed with it.
 */
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <ipuscope/mpi.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"

#define LAYER_PATH 1024
#define LAYER_NAME 48

/* The name of a communicator, the same on all its ranks. */
struct name {
	char text[LAYER_NAME]; /* "3" of rank 0: the third one of which it was the first rank */
	int rank;              /* -1: MPI_COMM_WORLD or a copy of it */
	atomic_int copies;
};

static struct ips_recording *recording;
static bool naming; /* all ranks record, so communicators get names */
static int world_rank, name_key = MPI_KEYVAL_INVALID;
static atomic_int communicators; /* that this rank has named */

struct ips_recording *ips_mpi_recording(void)
{
	return recording;
}

/* ---- communicators --------------------------------------------------------------------------- */

static int free_name(MPI_Comm comm, int key, void *name, void *unused)
{
	(void)comm, (void)key, (void)unused;
	free(name);
	return MPI_SUCCESS;
}

static bool is_inter(MPI_Comm comm)
{
	int inter = 0;

	return recording && PMPI_Comm_test_inter(comm, &inter) == MPI_SUCCESS && inter;
}

static void set_name(MPI_Comm comm, int number, int rank)
{
	struct name *name = calloc(1, sizeof(*name));

	if (!name)
		return;
	snprintf(name->text, sizeof(name->text), rank < 0 ? "world" : "%d", number);
	name->rank = rank;
	if (PMPI_Comm_set_attr(comm, name_key, name) != MPI_SUCCESS)
		free(name);
}

/* Name a new communicator by its first rank and a number of that rank. Collective over @comm. */
static void name_communicator(MPI_Comm comm)
{
	int id[2] = {world_rank, 0};

	if (!naming || comm == MPI_COMM_NULL || is_inter(comm))
		return;
	id[1] = atomic_fetch_add(&communicators, 1) + 1;
	if (PMPI_Bcast(id, 2, MPI_INT, 0, comm) == MPI_SUCCESS)
		set_name(comm, id[1], id[0]);
}

/*
 * Called by MPI when a communicator is duplicated: name the copy by its number among all copies of
 * the original, which its ranks make in the same order. So a duplication that has not ended yet
 * (MPI_Comm_idup) needs no communication. A name that does not fit is left out.
 */
static int copy_name(MPI_Comm comm, int key, void *unused, void *original, void *out, int *copied)
{
	struct name *of = original, *name = calloc(1, sizeof(*name));
	int length;

	(void)comm, (void)key, (void)unused;
	*copied = 0;
	if (!name)
		return MPI_SUCCESS;
	length = snprintf(name->text, sizeof(name->text), "%s.%d", of->text,
			  atomic_fetch_add(&of->copies, 1) + 1);
	if (length < 0 || (size_t)length >= sizeof(name->text)) {
		free(name);
		return MPI_SUCCESS;
	}
	name->rank = of->rank;
	*(void **)out = name;
	*copied = 1;
	return MPI_SUCCESS;
}

/* Return NULL for MPI_COMM_WORLD, or if the layer did not see @comm being created. */
static const struct name *name_of(MPI_Comm comm)
{
	struct name *name = NULL;
	int found = 0;

	if (!naming || comm == MPI_COMM_WORLD ||
	    PMPI_Comm_get_attr(comm, name_key, &name, &found) || !found)
		return NULL;
	return name;
}

/* ---- spans ----------------------------------------------------------------------------------- */

static struct ips_track *track(void)
{
	return ips_thread_track(recording, "MPI");
}

static void add_arg(const char *what, int64_t value)
{
	if (value != IPS_NULL)
		ips_span_arg_int(track(), what, value);
}

/* The data that a call moves; IPS_NULL: unknown, not recorded. */
struct moved {
	MPI_Comm comm;
	int64_t bytes, size, peer;
};

static void begin(struct ips_site *site)
{
	ips_span_begin(track(), site);
}

static void begin_moving(struct ips_site *site, struct moved moved)
{
	const struct name *name;
	char text[LAYER_NAME + 32];
	int ranks = 0;

	if (!recording)
		return;
	PMPI_Comm_size(moved.comm, &ranks);
	name = name_of(moved.comm);
	ips_span_begin(track(), site);
	add_arg("bytes", moved.bytes);
	add_arg("ranks", ranks);
	add_arg("peer", moved.peer < 0 ? IPS_NULL : moved.peer); /* MPI_ANY_SOURCE, MPI_PROC_NULL */
	if (name) {
		snprintf(text, sizeof(text), name->rank < 0 ? "%s" : "%s of rank %d", name->text,
			 name->rank);
		ips_span_arg_text(track(), "communicator", text);
	}
	/* Without a name, the calls of several ranks cannot be matched as one operation. */
	if (ranks > 1 && (name || moved.comm == MPI_COMM_WORLD))
		add_arg("size", moved.size);
}

static void end(void)
{
	ips_span_end(track());
}

#define SPAN(name, ...)                                                                            \
	do {                                                                                       \
		IPS_SITE(site, "mpi", #name);                                                      \
		int code;                                                                          \
                                                                                                   \
		begin(&site);                                                                      \
		code = P##name(__VA_ARGS__);                                                       \
		end();                                                                             \
		return code;                                                                       \
	} while (0)

#define SPAN_MOVING(name, comm, bytes, size, peer, ...)                                            \
	do {                                                                                       \
		IPS_SITE(site, "mpi", #name);                                                      \
		int code;                                                                          \
                                                                                                   \
		begin_moving(&site, (struct moved){comm, bytes, size, peer});                      \
		code = P##name(__VA_ARGS__);                                                       \
		end();                                                                             \
		return code;                                                                       \
	} while (0)

/* ---- counting -------------------------------------------------------------------------------- */

static int64_t bytes_of(int64_t count, MPI_Datatype type)
{
	int size = 0;

	return recording && PMPI_Type_size(type, &size) == MPI_SUCCESS ? count * size : 0;
}

static int rank_in(MPI_Comm comm)
{
	int rank = 0;

	if (recording)
		PMPI_Comm_rank(comm, &rank);
	return rank;
}

/* Number of ranks that @comm exchanges with: of an intercommunicator those of the remote group. */
static int ranks_of(MPI_Comm comm)
{
	int ranks = 0;

	if (recording && is_inter(comm))
		PMPI_Comm_remote_size(comm, &ranks);
	else if (recording)
		PMPI_Comm_size(comm, &ranks);
	return ranks;
}

static int others_in(MPI_Comm comm)
{
	return ranks_of(comm) - (is_inter(comm) ? 0 : 1);
}

/* Return whether this rank is the root: of an intercommunicator the root passes MPI_ROOT, and other
 * ranks pass the number of a rank of the remote group. */
static bool is_root(MPI_Comm comm, int root)
{
	return is_inter(comm) ? root == MPI_ROOT : rank_in(comm) == root;
}

/* Sum @counts over all ranks that @comm exchanges with; with @others without this rank. */
static int64_t sum_of(const int *counts, MPI_Comm comm, bool others)
{
	const int ranks = ranks_of(comm), mine = is_inter(comm) ? -1 : rank_in(comm);
	int64_t sum = 0;

	for (int r = 0; r < ranks; r++)
		sum += others && r == mine ? 0 : counts[r];
	return sum;
}

/* ---- point to point -------------------------------------------------------------------------- */

#define SENDS(X) X(Send) X(Ssend) X(Bsend) X(Rsend)
#define SEND(kind)                                                                                 \
	IPS_API int MPI_##kind(const void *data, int count, MPI_Datatype type, int to, int tag,    \
			       MPI_Comm comm)                                                      \
	{                                                                                          \
		SPAN_MOVING(MPI_##kind, comm, bytes_of(count, type), IPS_NULL, to, data, count,    \
			    type, to, tag, comm);                                                  \
	}
SENDS(SEND)

#define ISENDS(X) X(Isend) X(Issend) X(Ibsend) X(Irsend)
#define ISEND(kind)                                                                                \
	IPS_API int MPI_##kind(const void *data, int count, MPI_Datatype type, int to, int tag,    \
			       MPI_Comm comm, MPI_Request *request)                                \
	{                                                                                          \
		SPAN_MOVING(MPI_##kind, comm, bytes_of(count, type), IPS_NULL, to, data, count,    \
			    type, to, tag, comm, request);                                         \
	}
ISENDS(ISEND)

IPS_API int MPI_Recv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
		     MPI_Status *status)
{
	SPAN_MOVING(MPI_Recv, comm, IPS_NULL, IPS_NULL, from, data, count, type, from, tag, comm,
		    status);
}

IPS_API int MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
		      MPI_Request *request)
{
	SPAN_MOVING(MPI_Irecv, comm, IPS_NULL, IPS_NULL, from, data, count, type, from, tag, comm,
		    request);
}

IPS_API int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status)
{
	SPAN_MOVING(MPI_Probe, comm, IPS_NULL, IPS_NULL, from, from, tag, comm, status);
}

IPS_API int MPI_Sendrecv(const void *data, int count, MPI_Datatype type, int to, int tag, void *in,
			 int in_count, MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm,
			 MPI_Status *status)
{
	SPAN_MOVING(MPI_Sendrecv, comm, bytes_of(count, type), IPS_NULL, to, data, count, type, to,
		    tag, in, in_count, in_type, from, in_tag, comm, status);
}

IPS_API int MPI_Sendrecv_replace(void *data, int count, MPI_Datatype type, int to, int tag,
				 int from, int in_tag, MPI_Comm comm, MPI_Status *status)
{
	SPAN_MOVING(MPI_Sendrecv_replace, comm, bytes_of(count, type), IPS_NULL, to, data, count,
		    type, to, tag, from, in_tag, comm, status);
}

IPS_API int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
	SPAN(MPI_Wait, request, status);
}

IPS_API int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
	SPAN(MPI_Waitall, count, requests, statuses);
}

IPS_API int MPI_Waitany(int count, MPI_Request requests[], int *which, MPI_Status *status)
{
	SPAN(MPI_Waitany, count, requests, which, status);
}

IPS_API int MPI_Waitsome(int count, MPI_Request requests[], int *done, int which[],
			 MPI_Status statuses[])
{
	SPAN(MPI_Waitsome, count, requests, done, which, statuses);
}

/* ---- collectives: blocking and nonblocking --------------------------------------------------- */

/* The blocking call @name and the nonblocking call @later. */
#define PAIR(name, later, parameters, comm, bytes, size, peer, ...)                                \
	IPS_API int MPI_##name(UNPACK parameters)                                                  \
	{                                                                                          \
		SPAN_MOVING(MPI_##name, comm, bytes, size, peer, __VA_ARGS__);                     \
	}                                                                                          \
	IPS_API int MPI_##later(UNPACK parameters, MPI_Request *request)                           \
	{                                                                                          \
		SPAN_MOVING(MPI_##later, comm, bytes, IPS_NULL, peer, __VA_ARGS__, request);       \
	}
#define UNPACK(...) __VA_ARGS__

PAIR(Barrier, Ibarrier, (MPI_Comm comm), comm, 0, 0, IPS_NULL, comm)

PAIR(Bcast, Ibcast, (void *data, int count, MPI_Datatype type, int root, MPI_Comm comm), comm,
     is_root(comm, root) ? bytes_of(count, type) : 0, bytes_of(count, type), root, data, count,
     type, root, comm)

PAIR(Reduce, Ireduce,
     (const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
     comm, is_root(comm, root) ? 0 : bytes_of(count, type), bytes_of(count, type), root, in, out,
     count, type, op, root, comm)

PAIR(Allreduce, Iallreduce,
     (const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm), comm,
     bytes_of(count, type), bytes_of(count, type), IPS_NULL, in, out, count, type, op, comm)

PAIR(Reduce_scatter, Ireduce_scatter,
     (const void *in, void *out, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     comm, bytes_of(sum_of(counts, comm, true), type), bytes_of(sum_of(counts, comm, false), type),
     IPS_NULL, in, out, counts, type, op, comm)

PAIR(Reduce_scatter_block, Ireduce_scatter_block,
     (const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm), comm,
     bytes_of(count, type) * others_in(comm), bytes_of(count, type) * ranks_of(comm), IPS_NULL, in,
     out, count, type, op, comm)

/* nccl-tests define no bandwidth for scans and for the calls below without a size. */
PAIR(Scan, Iscan,
     (const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm), comm,
     bytes_of(count, type), IPS_NULL, IPS_NULL, in, out, count, type, op, comm)

PAIR(Exscan, Iexscan,
     (const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm), comm,
     bytes_of(count, type), IPS_NULL, IPS_NULL, in, out, count, type, op, comm)

/* MPI_IN_PLACE makes the send count and type insignificant; all parts of a gather are equal. */
PAIR(Allgather, Iallgather,
     (const void *in, int count, MPI_Datatype type, void *out, int out_count, MPI_Datatype out_type,
      MPI_Comm comm),
     comm, bytes_of(out_count, out_type), bytes_of(out_count, out_type) * ranks_of(comm), IPS_NULL,
     in, count, type, out, out_count, out_type, comm)

PAIR(Allgatherv, Iallgatherv,
     (const void *in, int count, MPI_Datatype type, void *out, const int counts[], const int at[],
      MPI_Datatype out_type, MPI_Comm comm),
     comm,
     is_inter(comm) ? bytes_of(count, type)
		    : bytes_of(sum_of(counts, comm, false) - sum_of(counts, comm, true), out_type),
     bytes_of(sum_of(counts, comm, false), out_type), IPS_NULL, in, count, type, out, counts, at,
     out_type, comm)

PAIR(Alltoall, Ialltoall,
     (const void *in, int count, MPI_Datatype type, void *out, int out_count, MPI_Datatype out_type,
      MPI_Comm comm),
     comm, bytes_of(out_count, out_type) * others_in(comm),
     bytes_of(out_count, out_type) * ranks_of(comm), IPS_NULL, in, count, type, out, out_count,
     out_type, comm)

#define SENT(in, counts, type, out_counts, out_type, others)                                       \
	((in) == MPI_IN_PLACE ? bytes_of(sum_of(out_counts, comm, others), out_type)               \
			      : bytes_of(sum_of(counts, comm, others), type))
PAIR(Alltoallv, Ialltoallv,
     (const void *in, const int counts[], const int at[], MPI_Datatype type, void *out,
      const int out_counts[], const int out_at[], MPI_Datatype out_type, MPI_Comm comm),
     comm, SENT(in, counts, type, out_counts, out_type, true),
     SENT(in, counts, type, out_counts, out_type, false), IPS_NULL, in, counts, at, type, out,
     out_counts, out_at, out_type, comm)

PAIR(Gather, Igather,
     (const void *in, int count, MPI_Datatype type, void *out, int out_count, MPI_Datatype out_type,
      int root, MPI_Comm comm),
     comm, is_root(comm, root) ? 0 : bytes_of(count, type), IPS_NULL, root, in, count, type, out,
     out_count, out_type, root, comm)

PAIR(Gatherv, Igatherv,
     (const void *in, int count, MPI_Datatype type, void *out, const int counts[], const int at[],
      MPI_Datatype out_type, int root, MPI_Comm comm),
     comm, is_root(comm, root) ? 0 : bytes_of(count, type), IPS_NULL, root, in, count, type, out,
     counts, at, out_type, root, comm)

PAIR(Scatter, Iscatter,
     (const void *in, int count, MPI_Datatype type, void *out, int out_count, MPI_Datatype out_type,
      int root, MPI_Comm comm),
     comm, is_root(comm, root) ? bytes_of(count, type) * others_in(comm) : 0, IPS_NULL, root, in,
     count, type, out, out_count, out_type, root, comm)

PAIR(Scatterv, Iscatterv,
     (const void *in, const int counts[], const int at[], MPI_Datatype type, void *out,
      int out_count, MPI_Datatype out_type, int root, MPI_Comm comm),
     comm, is_root(comm, root) ? bytes_of(sum_of(counts, comm, true), type) : 0, IPS_NULL, root, in,
     counts, at, type, out, out_count, out_type, root, comm)

/* ---- creating communicators ------------------------------------------------------------------ */

#define MAKER(name, parameters, ...)                                                               \
	IPS_API int MPI_##name(UNPACK parameters, MPI_Comm *out)                                   \
	{                                                                                          \
		IPS_SITE(site, "mpi", "MPI_" #name);                                               \
		int code;                                                                          \
                                                                                                   \
		begin(&site);                                                                      \
		code = PMPI_##name(__VA_ARGS__, out);                                              \
		if (code == MPI_SUCCESS)                                                           \
			name_communicator(*out);                                                   \
		end();                                                                             \
		return code;                                                                       \
	}

MAKER(Comm_split, (MPI_Comm comm, int colour, int key), comm, colour, key)
MAKER(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info), comm, type, key, info)
MAKER(Comm_create, (MPI_Comm comm, MPI_Group group), comm, group)
MAKER(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag), comm, group, tag)
MAKER(Intercomm_merge, (MPI_Comm comm, int high), comm, high)
MAKER(Cart_create,
      (MPI_Comm comm, int dimensions, const int lengths[], const int periods[], int reorder), comm,
      dimensions, lengths, periods, reorder)
MAKER(Cart_sub, (MPI_Comm comm, const int remain[]), comm, remain)
MAKER(Graph_create, (MPI_Comm comm, int nodes, const int index[], const int edges[], int reorder),
      comm, nodes, index, edges, reorder)
MAKER(Dist_graph_create,
      (MPI_Comm comm, int count, const int sources[], const int degrees[], const int targets[],
       const int weights[], MPI_Info info, int reorder),
      comm, count, sources, degrees, targets, weights, info, reorder)
MAKER(Dist_graph_create_adjacent,
      (MPI_Comm comm, int in, const int sources[], const int in_weights[], int out_degree,
       const int targets[], const int out_weights[], MPI_Info info, int reorder),
      comm, in, sources, in_weights, out_degree, targets, out_weights, info, reorder)

/* copy_name() names what these make. */
IPS_API int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *out)
{
	SPAN(MPI_Comm_dup, comm, out);
}

IPS_API int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *out)
{
	SPAN(MPI_Comm_dup_with_info, comm, info, out);
}

IPS_API int MPI_Comm_idup(MPI_Comm comm, MPI_Comm *out, MPI_Request *request)
{
	SPAN(MPI_Comm_idup, comm, out, request);
}

/* ---- MPI_Init to MPI_Finalize ---------------------------------------------------------------- */

/* Rank 0 names the directory, because clocks may differ; each rank creates it on its own
 * machine. */
static bool report_path(char *out, size_t size)
{
	char directory[LAYER_PATH] = "";
	const char *asked = getenv("IPUSCOPE_MPI_REPORT");
	time_t now = time(NULL);
	struct tm local;
	int length = 0;

	if (world_rank == 0 && asked && *asked)
		length = snprintf(directory, sizeof(directory), "%s", asked);
	else if (world_rank == 0 && localtime_r(&now, &local))
		length = snprintf(directory, sizeof(directory),
				  "mpi_report__%04d-%02d-%02d__%02d-%02d-%02d__%ld",
				  local.tm_year + 1900, local.tm_mon + 1, local.tm_mday,
				  local.tm_hour, local.tm_min, local.tm_sec, (long)getpid());
	if (length < 0 || (size_t)length >= sizeof(directory))
		directory[0] = '\0';
	if (PMPI_Bcast(directory, sizeof(directory), MPI_CHAR, 0, MPI_COMM_WORLD) != MPI_SUCCESS ||
	    !directory[0]) {
		fprintf(stderr,
			"libipuscope-mpi: rank %d: no directory to record into: set "
			"IPUSCOPE_MPI_REPORT to a shorter path\n",
			world_rank);
		return false;
	}
	if (mkdir(directory, 0777) != 0 && errno != EEXIST) {
		fprintf(stderr, "libipuscope-mpi: %s: %s: nothing is recorded\n", directory,
			strerror(errno));
		return false;
	}
	length = snprintf(out, size, "%s/rank%d.db", directory, world_rank);
	return length > 0 && (size_t)length < size;
}

/* Measure how far this rank's wall clock is ahead of rank 0's: they meet at barriers. */
static void measure_clock(const char *offset_fact, const char *bound_fact)
{
	struct clock_offset offset = CLOCK_OFFSET_UNKNOWN;
	char number[32];

	for (int meeting = 0; meeting < CLOCK_MEETINGS; meeting++) {
		int64_t own[2], first[2];

		own[0] = clock_epoch_ns();
		PMPI_Barrier(MPI_COMM_WORLD);
		own[1] = clock_epoch_ns();
		memcpy(first, own, sizeof(first));
		PMPI_Bcast(first, 2, MPI_INT64_T, 0, MPI_COMM_WORLD);
		clock_offset_meet(&offset, own, first);
	}
	snprintf(number, sizeof(number), "%" PRId64,
		 world_rank == 0 ? 0 : clock_offset_ns(&offset));
	ips_meta_set(recording, offset_fact, number);
	snprintf(number, sizeof(number), "%" PRId64,
		 world_rank == 0 ? 0 : clock_offset_bound_ns(&offset));
	ips_meta_set(recording, bound_fact, number);
}

static void open_report(void)
{
	char path[LAYER_PATH + 32], message[512] = "", version[MPI_MAX_LIBRARY_VERSION_STRING];
	struct ips_recording_params params;
	int length, ranks = 0;

	PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
	PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (!report_path(path, sizeof(path)))
		return;
	ips_recording_params_defaults(&params);
	params.rank = world_rank;
	if (ips_recording_open(&recording, path, &params, message, sizeof(message)) != 0) {
		fprintf(stderr, "libipuscope-mpi: rank %d: %s: nothing is recorded\n", world_rank,
			message);
		return;
	}
	if (PMPI_Get_library_version(version, &length) == MPI_SUCCESS) {
		version[strcspn(version, ",\n")] = '\0';
		ips_meta_set(recording, "mpi", version);
	}
	snprintf(message, sizeof(message), "%d", ranks);
	ips_meta_set(recording, "mpi_ranks", message);
}

/* A rank that cannot record still takes part in the collective calls. */
static void start(void)
{
	int records, all = 0;

	open_report();
	records = recording != NULL;
	PMPI_Allreduce(&records, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	naming = all &&
		 PMPI_Comm_create_keyval(copy_name, free_name, &name_key, NULL) == MPI_SUCCESS;
	if (naming)
		set_name(MPI_COMM_WORLD, 0, -1);
	measure_clock("clock_offset_ns", "clock_bound_ns");
}

IPS_API int MPI_Init(int *argc, char ***argv)
{
	const int code = PMPI_Init(argc, argv);

	if (code == MPI_SUCCESS)
		start();
	return code;
}

IPS_API int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	const int code = PMPI_Init_thread(argc, argv, required, provided);

	if (code == MPI_SUCCESS)
		start();
	return code;
}

IPS_API int MPI_Abort(MPI_Comm comm, int code)
{
	ips_recording_flush(recording);
	return PMPI_Abort(comm, code);
}

static void finish(void)
{
	struct ips_recording *closing = recording;
	char message[512] = "";

	measure_clock("clock_offset_end_ns", "clock_bound_end_ns");
	recording = NULL;
	if (ips_recording_close(closing, message, sizeof(message)) != 0)
		fprintf(stderr, "libipuscope-mpi: rank %d: the report is incomplete: %s\n",
			world_rank, message);
}

IPS_API int MPI_Finalize(void)
{
	finish();
	return PMPI_Finalize();
}

/* ---- Fortran --------------------------------------------------------------------------------- */

/*
 * MPICH's mpif.h and `use mpi` call MPI_X, which is recorded above. Recorded here are
 *
 * - all of Open MPI's Fortran, which calls PMPI_X: the symbols of mpif.h and `use mpi` (mpi_x_) and
 *   those that `use mpi_f08` calls (ompi_x_f),
 * - those calls of MPICH's `use mpi_f08` that have no buffer (mpi_x_f08_): they call PMPI_X, while
 *   those with a buffer call MPI_X.
 *
 * Arguments are addresses, which the library's own function gets as they are, so that MPI_IN_PLACE
 * and MPI_BOTTOM keep their meaning.
 */
static int fint(const void *argument)
{
	return *(const MPI_Fint *)argument;
}

static MPI_Comm fcomm(const void *argument)
{
	return PMPI_Comm_f2c(*(const MPI_Fint *)argument);
}

/* @n arguments, a to l. */
#define P0
#define P1  P0 void *a,
#define P2  P1 void *b,
#define P3  P2 void *c,
#define P4  P3 void *d,
#define P5  P4 void *e,
#define P6  P5 void *f,
#define P7  P6 void *g,
#define P8  P7 void *h,
#define P9  P8 void *i,
#define P10 P9 void *j,
#define P11 P10 void *k,
#define P12 P11 void *l,
#define PASS0
#define PASS1  PASS0 a,
#define PASS2  PASS1 b,
#define PASS3  PASS2 c,
#define PASS4  PASS3 d,
#define PASS5  PASS4 e,
#define PASS6  PASS5 f,
#define PASS7  PASS6 g,
#define PASS8  PASS7 h,
#define PASS9  PASS8 i,
#define PASS10 PASS9 j,
#define PASS11 PASS10 k,
#define PASS12 PASS11 l,

/* A call of @n arguments before the error code; @before and @after are statements. */
#ifdef OPEN_MPI
/* pmpi_x_ is there in programs of Fortran only. */
#define FORTRAN(lower, n, before, after)                                                           \
	void pmpi_##lower##_(P##n void *error) __attribute__((weak));                              \
	IPS_API void mpi_##lower##_(P##n void *error);                                             \
	IPS_API void mpi_##lower##_(P##n void *error)                                              \
	{                                                                                          \
		before;                                                                            \
		pmpi_##lower##_(PASS##n error);                                                    \
		after;                                                                             \
	}                                                                                          \
	IPS_API void ompi_##lower##_f(P##n void *error) __attribute__((alias("mpi_" #lower "_")));
#else
/* Return the function of libmpichfort that this library's function of the same name hides. */
static void *hidden_by_layer(const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);

	assert(function);
	return function;
}

/* A caller may leave the error code out. */
#define FORTRAN(lower, n, before, after)                                                           \
	IPS_API void mpi_##lower##_f08_(P##n void *error);                                         \
	IPS_API void mpi_##lower##_f08_(P##n void *error)                                          \
	{                                                                                          \
		void (*original)(P##n void *) = NULL;                                              \
		MPI_Fint code = MPI_SUCCESS;                                                       \
                                                                                                   \
		*(void **)&original = hidden_by_layer("mpi_" #lower "_f08_");                      \
		error = error ? error : &code;                                                     \
		before;                                                                            \
		original(PASS##n error);                                                           \
		after;                                                                             \
	}
#endif

#define FSPAN(lower, name, n)                                                                      \
	FORTRAN(lower, n, IPS_SITE(site, "mpi", "MPI_" #name); begin(&site), end())
#define FMOVING(lower, name, n, comm, bytes, size, peer)                                           \
	FORTRAN(lower, n, IPS_SITE(site, "mpi", "MPI_" #name);                                     \
		if (recording)                                                                     \
			begin_moving(&site, (struct moved){fcomm(comm), bytes, size, peer}),       \
		end())
/* The blocking call, and the nonblocking one, which has @more arguments: a request. */
#define FPAIR(lower, name, n, more, comm, bytes, size, peer)                                       \
	FMOVING(lower, name, n, comm, bytes, size, peer)                                           \
	FMOVING(i##lower, I##lower, more, comm, bytes, IPS_NULL, peer)
/* @made: the new communicator. */
#define FMAKER(lower, name, n, made)                                                               \
	FORTRAN(lower, n, IPS_SITE(site, "mpi", "MPI_" #name);                                     \
		begin(&site), if (fint(error) == MPI_SUCCESS) name_communicator(fcomm(made));      \
		end())

FORTRAN(init, 0, , if (fint(error) == MPI_SUCCESS) start())
FORTRAN(init_thread, 2, , if (fint(error) == MPI_SUCCESS) start())
FORTRAN(abort, 2, ips_recording_flush(recording), )
FORTRAN(finalize, 0, finish(), )

FMOVING(probe, Probe, 4, c, IPS_NULL, IPS_NULL, fint(a))
FSPAN(wait, Wait, 2)
FSPAN(waitall, Waitall, 3)
FSPAN(waitany, Waitany, 4)
FSPAN(waitsome, Waitsome, 5)
FPAIR(barrier, Barrier, 1, 2, a, 0, 0, IPS_NULL)
FMAKER(comm_split, Comm_split, 4, d)
FMAKER(comm_split_type, Comm_split_type, 5, e)
FMAKER(comm_create, Comm_create, 3, c)
FMAKER(comm_create_group, Comm_create_group, 4, d)
FMAKER(intercomm_merge, Intercomm_merge, 3, c)
FMAKER(cart_create, Cart_create, 6, f)
FMAKER(cart_sub, Cart_sub, 3, c)
FMAKER(graph_create, Graph_create, 6, f)
FMAKER(dist_graph_create, Dist_graph_create, 9, i)
FMAKER(dist_graph_create_adjacent, Dist_graph_create_adjacent, 10, j)
FSPAN(comm_dup, Comm_dup, 2)
FSPAN(comm_dup_with_info, Comm_dup_with_info, 3)
FSPAN(comm_idup, Comm_idup, 3)

#ifdef OPEN_MPI

extern int mpi_fortran_in_place_;

static int64_t fbytes(int64_t count, const void *type)
{
	return bytes_of(count, PMPI_Type_f2c(*(const MPI_Fint *)type));
}

#define FSEND(lower, name)  FMOVING(lower, name, 6, f, fbytes(fint(b), c), IPS_NULL, fint(d))
#define FISEND(lower, name) FMOVING(lower, name, 7, f, fbytes(fint(b), c), IPS_NULL, fint(d))

FSEND(send, Send)
FSEND(ssend, Ssend)
FSEND(bsend, Bsend)
FSEND(rsend, Rsend)
FISEND(isend, Isend)
FISEND(issend, Issend)
FISEND(ibsend, Ibsend)
FISEND(irsend, Irsend)
FMOVING(recv, Recv, 7, f, IPS_NULL, IPS_NULL, fint(d))
FMOVING(irecv, Irecv, 7, f, IPS_NULL, IPS_NULL, fint(d))
FMOVING(sendrecv, Sendrecv, 12, k, fbytes(fint(b), c), IPS_NULL, fint(d))
FMOVING(sendrecv_replace, Sendrecv_replace, 9, h, fbytes(fint(b), c), IPS_NULL, fint(d))

#define FSUM(counts, comm, others) sum_of(counts, fcomm(comm), others)
FPAIR(bcast, Bcast, 5, 6, e, is_root(fcomm(e), fint(d)) ? fbytes(fint(b), c) : 0,
      fbytes(fint(b), c), fint(d))
FPAIR(reduce, Reduce, 7, 8, g, is_root(fcomm(g), fint(f)) ? 0 : fbytes(fint(c), d),
      fbytes(fint(c), d), fint(f))
FPAIR(allreduce, Allreduce, 6, 7, f, fbytes(fint(c), d), fbytes(fint(c), d), IPS_NULL)
FPAIR(reduce_scatter, Reduce_scatter, 6, 7, f, fbytes(FSUM(c, f, true), d),
      fbytes(FSUM(c, f, false), d), IPS_NULL)
FPAIR(reduce_scatter_block, Reduce_scatter_block, 6, 7, f, fbytes(fint(c), d) * others_in(fcomm(f)),
      fbytes(fint(c), d) * ranks_of(fcomm(f)), IPS_NULL)
FPAIR(scan, Scan, 6, 7, f, fbytes(fint(c), d), IPS_NULL, IPS_NULL)
FPAIR(exscan, Exscan, 6, 7, f, fbytes(fint(c), d), IPS_NULL, IPS_NULL)
FPAIR(allgather, Allgather, 7, 8, g, fbytes(fint(e), f), fbytes(fint(e), f) * ranks_of(fcomm(g)),
      IPS_NULL)
FPAIR(allgatherv, Allgatherv, 8, 9, h,
      is_inter(fcomm(h)) ? fbytes(fint(b), c) : fbytes(FSUM(e, h, false) - FSUM(e, h, true), g),
      fbytes(FSUM(e, h, false), g), IPS_NULL)
FPAIR(alltoall, Alltoall, 7, 8, g, fbytes(fint(e), f) * others_in(fcomm(g)),
      fbytes(fint(e), f) * ranks_of(fcomm(g)), IPS_NULL)
#define FSENT(others)                                                                              \
	(a == &mpi_fortran_in_place_ ? fbytes(FSUM(f, i, others), h)                               \
				     : fbytes(FSUM(b, i, others), d))
FPAIR(alltoallv, Alltoallv, 9, 10, i, FSENT(true), FSENT(false), IPS_NULL)
FPAIR(gather, Gather, 8, 9, h, is_root(fcomm(h), fint(g)) ? 0 : fbytes(fint(b), c), IPS_NULL,
      fint(g))
FPAIR(gatherv, Gatherv, 9, 10, i, is_root(fcomm(i), fint(h)) ? 0 : fbytes(fint(b), c), IPS_NULL,
      fint(h))
FPAIR(scatter, Scatter, 8, 9, h,
      is_root(fcomm(h), fint(g)) ? fbytes(fint(b), c) * others_in(fcomm(h)) : 0, IPS_NULL, fint(g))
FPAIR(scatterv, Scatterv, 9, 10, i, is_root(fcomm(i), fint(h)) ? fbytes(FSUM(b, i, true), d) : 0,
      IPS_NULL, fint(h))

#endif
