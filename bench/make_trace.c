/*
 * For bench_import.sh and script/soak: recordings to import, of any size, as their profilers write
 * them.
 *
 *	make_trace chrome FILE EVENTS    spans in Chrome's JSON (about 125 bytes each)
 *	make_trace perfetto FILE EVENTS  packets of Perfetto's SDK (about 80 bytes for a begin and an end)
 *	make_trace xplane FILE EVENTS    an XSpace (about 30 bytes each)
 *	make_trace nsys FILE EVENTS      Nsight Systems' tables of calls and kernels, half each
 *	make_trace rpd FILE EVENTS       rocmProfileData's tables of calls and operations, half each
 */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define THREADS 16

static const char *const names[] = {"conv2d_fwd", "conv2d_bwd", "matmul",    "relu",
				    "maxpool",    "exchange",   "host_copy", "sgd"};
static const char *const categories[] = {"compute", "exchange", "host"};

#define VARIANTS 25 /* of each name */

/* The next number of a sequence that @seed begins. */
static uint64_t next(uint64_t *seed)
{
	return *seed = *seed * 6364136223846793005u + 1442695040888963407u;
}

/* Spans of 16 threads, each within or after the one before, two arguments each. */
static void make_chrome(FILE *file, long events)
{
	uint64_t seed = 1, ns = 0;

	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", file);
	for (long i = 0; i < events; i++) {
		uint64_t dur;

		next(&seed);
		/* Every other span of a thread encloses the next. */
		ns += 100 + (seed >> 33) % 1900;
		dur = i / THREADS % 2 == 0 ? 60000 : 50 + (seed >> 40) % 1000;
		fprintf(file,
			"{\"name\":\"%s/%d\",\"cat\":\"%s\",\"ph\":\"X\",\"ts\":%" PRIu64
			".%03d,\"dur\":%" PRIu64 ".%03d,\"pid\":1,\"tid\":%d,\"args\":{\"tile\":%d,"
			"\"bytes\":%d}}%s\n",
			names[seed >> 20 & 7], (int)((seed >> 24) % VARIANTS),
			categories[(seed >> 30) % 3], ns / 1000, (int)(ns % 1000), dur / 1000,
			(int)(dur % 1000), (int)(i % THREADS), (int)((seed >> 36) % 1472),
			(int)(seed >> 44 & 65535), i + 1 < events ? "," : "");
	}
	fputs("]}\n", file);
}

/* ---- protobuf -------------------------------------------------------------------------------- */

/* A message that is built in memory. */
struct message {
	unsigned char *bytes;
	size_t used, capacity;
};

static void put_varint(struct message *to, uint64_t value)
{
	if (mem_grow(&to->bytes, &to->capacity, to->used + 10, 1) != 0)
		abort();
	for (; value > 127; value >>= 7)
		to->bytes[to->used++] = (unsigned char)(value & 127) | 128;
	to->bytes[to->used++] = (unsigned char)value;
}

static void put_number(struct message *to, uint64_t field, uint64_t value)
{
	put_varint(to, field << 3);
	put_varint(to, value);
}

static void put_bytes(struct message *to, uint64_t field, const void *bytes, size_t size)
{
	put_varint(to, field << 3 | 2);
	put_varint(to, size);
	if (mem_grow(&to->bytes, &to->capacity, to->used + size, 1) != 0)
		abort();
	memcpy(to->bytes + to->used, bytes, size);
	to->used += size;
}

static void put_text(struct message *to, uint64_t field, const char *text)
{
	put_bytes(to, field, text, strlen(text));
}

/* Append @part as a field, and empty it. */
static void put_message(struct message *to, uint64_t field, struct message *part)
{
	put_bytes(to, field, part->bytes, part->used);
	part->used = 0;
}

/* {number, name} as an entry @field of @to. */
static void put_entry(struct message *to, uint64_t field, uint64_t number, const char *name)
{
	struct message entry = {NULL, 0, 0};

	put_number(&entry, 1, number);
	put_text(&entry, 2, name);
	put_message(to, field, &entry);
	mem_free(entry.bytes);
}

/* An entry @field of a map of metadata: {number, {number, name}}. */
static void put_pair(struct message *to, uint64_t field, uint64_t number, const char *name)
{
	struct message pair = {NULL, 0, 0};

	put_number(&pair, 1, number);
	put_entry(&pair, 2, number, name);
	put_message(to, field, &pair);
	mem_free(pair.bytes);
}

/* Write @part as the top-level field 1 of the file, and empty it. */
static void write_message(FILE *file, struct message *part)
{
	struct message head = {NULL, 0, 0};

	put_varint(&head, 1 << 3 | 2);
	put_varint(&head, part->used);
	fwrite(head.bytes, 1, head.used, file);
	fwrite(part->bytes, 1, part->used, file);
	part->used = 0;
	mem_free(head.bytes);
}

static uint64_t track_of(long thread)
{
	return 0x9e3779b97f4a7c15u * (uint64_t)(thread + 1); /* ids are hashes: ten bytes */
}

static void write_thread(FILE *file, long thread)
{
	struct message packet = {NULL, 0, 0}, part = {NULL, 0, 0}, inner = {NULL, 0, 0};
	char name[32];

	put_number(&inner, 1, 1);
	put_number(&inner, 2, (uint64_t)thread + 1);
	snprintf(name, sizeof(name), "worker %ld", thread);
	put_text(&inner, 5, name);
	put_number(&part, 1, track_of(thread));
	put_message(&part, 4, &inner);
	put_message(&packet, 60, &part);
	for (uint64_t i = 0; i < 8 * VARIANTS; i++) {
		snprintf(name, sizeof(name), "%s/%d", names[i / VARIANTS], (int)(i % VARIANTS));
		put_entry(&part, 2, i + 1, name);
	}
	for (uint64_t i = 0; i < 3; i++)
		put_entry(&part, 1, i + 1, categories[i]);
	put_entry(&part, 3, 1, "tile");
	put_entry(&part, 3, 2, "bytes");
	put_message(&packet, 12, &part);
	put_number(&packet, 10, (uint64_t)thread + 1);
	put_number(&packet, 13, 1);
	write_message(file, &packet);
	mem_free(packet.bytes);
	mem_free(part.bytes);
	mem_free(inner.bytes);
}

/* A packet of @thread; @random 0: an end. */
static void write_half(FILE *file, struct message parts[3], long thread, uint64_t ns,
		       uint64_t random)
{
	struct message *packet = &parts[0], *event = &parts[1], *argument = &parts[2];

	put_number(packet, 8, ns);
	put_number(event, 9, random == 0 ? 2 : 1);
	if (random != 0) {
		put_number(event, 10, 1 + (random >> 24) % (8 * VARIANTS));
		put_number(event, 3, 1 + (random >> 30) % 3);
		put_number(argument, 1, 1);
		put_number(argument, 4, (random >> 36) % 1472);
		put_message(event, 4, argument);
		put_number(argument, 1, 2);
		put_number(argument, 4, random >> 44 & 65535);
		put_message(event, 4, argument);
	}
	put_number(event, 11, track_of(thread));
	put_message(packet, 11, event);
	put_number(packet, 10, (uint64_t)thread + 1);
	put_number(packet, 13, 2);
	write_message(file, packet);
}

/* Spans of 16 threads in pairs, the second within the first, two arguments each. */
static void make_perfetto(FILE *file, long events)
{
	struct message parts[3] = {{NULL, 0, 0}, {NULL, 0, 0}, {NULL, 0, 0}};
	uint64_t seed = 1, ns = 1000;

	for (long thread = 0; thread < THREADS; thread++)
		write_thread(file, thread);
	for (long i = 0; i + 1 < events; i += 2) {
		const long thread = i / 2 % THREADS;

		write_half(file, parts, thread, ns, next(&seed) | 1);
		ns += 100 + (seed >> 33) % 1900;
		write_half(file, parts, thread, ns, next(&seed) | 1);
		write_half(file, parts, thread, ns + 50 + (seed >> 40) % 900, 0);
		write_half(file, parts, thread, ns + 950, 0);
		ns += 1000;
	}
	for (int i = 0; i < 3; i++)
		mem_free(parts[i].bytes);
}

/* As many planes as threads, each of one line; spans in pairs with two statistics. */
static void make_xplane(FILE *file, long events)
{
	struct message plane = {NULL, 0, 0}, line = {NULL, 0, 0}, event = {NULL, 0, 0};
	struct message stat = {NULL, 0, 0};
	uint64_t seed = 1;
	char name[32];

	for (long thread = 0; thread < THREADS; thread++) {
		uint64_t ps = 0;

		snprintf(name, sizeof(name), "/host:CPU %ld", thread);
		put_number(&plane, 1, (uint64_t)thread);
		put_text(&plane, 2, name);
		put_number(&line, 1, 1);
		put_text(&line, 2, "worker");
		put_number(&line, 3, 1000000);
		for (long i = 0; i < events / THREADS; i++) {
			next(&seed);
			ps += i % 2 == 0 ? 12000000 : 1000 + (seed >> 33) % 900000;
			put_number(&event, 1, 1 + (seed >> 24) % (8 * VARIANTS));
			put_number(&event, 2, ps);
			put_number(&event, 3, i % 2 == 0 ? 9000000 : (seed >> 40) % 2000000);
			for (uint64_t j = 1; j <= 2; j++) {
				put_number(&stat, 1, j);
				put_number(&stat, 4, (seed >> 36 >> j) % 65536);
				put_message(&event, 4, &stat);
			}
			put_message(&line, 4, &event);
		}
		put_message(&plane, 3, &line);
		for (uint64_t i = 0; i < 8 * VARIANTS; i++) {
			snprintf(name, sizeof(name), "%s/%d", names[i / VARIANTS],
				 (int)(i % VARIANTS));
			put_pair(&plane, 4, i + 1, name);
		}
		put_pair(&plane, 5, 1, "tile");
		put_pair(&plane, 5, 2, "bytes");
		write_message(file, &plane);
	}
	mem_free(plane.bytes);
	mem_free(line.bytes);
	mem_free(event.bytes);
	mem_free(stat.bytes);
}

/* ---- SQLite ---------------------------------------------------------------------------------- */

/* Calls of four threads and what they launched on four streams; the numbers go on for @1 rows. */
static const char nsys_sql[] =
	"CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);"
	"INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.25.0');"
	"CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
	"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)"
	" INSERT INTO StringIds SELECT i, 'void at::native::kernel_' || i || '<float>' FROM n;"
	"INSERT INTO StringIds VALUES (201, 'cudaLaunchKernel_v7000');"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL,"
	" eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER,"
	" nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL,"
	" deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL,"
	" correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL,"
	" shortName INTEGER NOT NULL, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL,"
	" gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL,"
	" blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,"
	" dynamicSharedMemory INTEGER NOT NULL);"
	"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)"
	" INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT i * 2000, i * 2000 + 1500, 0,"
	" (77 << 24) + 100 + i % 4, i, 201, 0, NULL FROM n;"
	"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)"
	" INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT i * 2000 + 5000, i * 2000 + 6900, 0, 1,"
	" 7 + i % 4, i, 77 << 24, 1 + i * 7919 % 200, 1 + i * 7919 % 200, 64, i % 1000, 1, 1, 256,"
	" 1, 1, 0, 4096 FROM n;";

static const char rpd_sql[] =
	"CREATE TABLE rocpd_metadata (id INTEGER PRIMARY KEY, tag TEXT, value TEXT);"
	"CREATE TABLE rocpd_string (id INTEGER PRIMARY KEY, string TEXT NOT NULL);"
	"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)"
	" INSERT INTO rocpd_string SELECT i, 'Cijk_Ailk_Bljk_' || i FROM n;"
	"INSERT INTO rocpd_string VALUES (201, 'hipLaunchKernel'), (202, ''),"
	" (203, 'KernelExecution');"
	"CREATE TABLE rocpd_api (id INTEGER PRIMARY KEY, pid INTEGER NOT NULL,"
	" tid INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL,"
	" apiName_id INTEGER NOT NULL, args_id INTEGER NOT NULL);"
	"CREATE TABLE rocpd_op (id INTEGER PRIMARY KEY, gpuId INTEGER NOT NULL,"
	" queueId INTEGER NOT NULL, sequenceId INTEGER NOT NULL,"
	" completionSignal varchar(18) NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL,"
	" description_id INTEGER NOT NULL, opType_id INTEGER NOT NULL);"
	"CREATE TABLE rocpd_api_ops (id INTEGER PRIMARY KEY, api_id INTEGER NOT NULL,"
	" op_id INTEGER NOT NULL);"
	"CREATE TABLE rocpd_kernelapi (api_ptr_id INTEGER NOT NULL PRIMARY KEY, stream TEXT,"
	" gridX INTEGER, gridY INTEGER, gridZ INTEGER, workgroupX INTEGER, workgroupY INTEGER,"
	" workgroupZ INTEGER, groupSegmentSize INTEGER);"
	"CREATE TABLE rocpd_copyapi (api_ptr_id INTEGER NOT NULL PRIMARY KEY, stream TEXT,"
	" size INTEGER, kind INTEGER, dstDevice INTEGER, srcDevice INTEGER);"
	"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)"
	" INSERT INTO rocpd_api SELECT i, 77, 100 + i % 4, i * 2000, i * 2000 + 1500, 201, 202"
	" FROM n;"
	"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)"
	" INSERT INTO rocpd_op SELECT i, 0, i % 4, 0, '', i * 2000 + 5000, i * 2000 + 6900,"
	" 1 + i * 7919 % 200, 203 FROM n;"
	"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)"
	" INSERT INTO rocpd_api_ops SELECT i, i, i FROM n;";

/* Run all statements of @sql in a new database; ?1 is @rows. */
static int make_database(const char *path, const char *sql, long rows)
{
	sqlite3_stmt *statement = NULL;
	sqlite3 *db;
	int code;

	remove(path);
	code = sqlite3_open(path, &db);
	if (code == SQLITE_OK)
		code = sqlite3_exec(db, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN",
				    NULL, NULL, NULL);
	while (code == SQLITE_OK && *sql != 0) {
		code = sqlite3_prepare_v2(db, sql, -1, &statement, &sql);
		if (code == SQLITE_OK && sqlite3_bind_parameter_count(statement) == 1)
			sqlite3_bind_int64(statement, 1, rows);
		if (code == SQLITE_OK)
			sqlite3_step(statement);
		if (code == SQLITE_OK)
			code = sqlite3_finalize(statement);
	}
	if (code == SQLITE_OK)
		code = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	if (code != SQLITE_OK)
		fprintf(stderr, "make_trace: %s\n", sqlite3_errmsg(db));
	sqlite3_close(db);
	return code != SQLITE_OK;
}

static int make_file(const char *path, void (*make)(FILE *file, long events), long events)
{
	FILE *file = fopen(path, "w");

	if (!file)
		return 1;
	setvbuf(file, NULL, _IOFBF, 1 << 20);
	make(file, events);
	return fclose(file) != 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*make)(FILE *file, long events);
		const char *sql;
	} formats[] = {{"chrome", make_chrome, NULL},
		       {"perfetto", make_perfetto, NULL},
		       {"xplane", make_xplane, NULL},
		       {"nsys", NULL, nsys_sql},
		       {"rpd", NULL, rpd_sql}};
	const long events = argc == 4 ? atol(argv[3]) : 0;

	for (size_t i = 0; i < ARRAY_LEN(formats) && events > 0; i++) {
		if (strcmp(argv[1], formats[i].name) != 0)
			continue;
		return formats[i].sql ? make_database(argv[2], formats[i].sql, events / 2)
				      : make_file(argv[2], formats[i].make, events);
	}
	fprintf(stderr, "make_trace: chrome, perfetto, xplane, nsys or rpd, FILE, EVENTS\n");
	return 2;
}
