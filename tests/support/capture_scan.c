/*
 * capture_scan RUN FULL: is the first bad number of RUN the one that FULL has?
 *
 * RUN is a database that a recorder judged while training, FULL one of the same run in which all
 * activations, gradients, weights and slots were captured. The captures of FULL are read one after
 * the other as the run made them, every value is looked at, and the first one that is not finite
 * must be the only row of RUN's first_nonfinite. Then every row of RUN's nonfinite_trail is
 * compared with statistics of the captured values, two plain passes in long double. Nothing of ours
 * is linked: sqlite3 and libm alone.
 *
 * Prints "KEY STEP WEIGHT_UPDATE ELEMENT VALUE ROWS", ROWS being those of the trail that were
 * compared; the exit code is 1 where something differs.
 */
#include <math.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A moment of training, in the order in which one processor would do it: micro-batches forward and
 * backward, then the update. Gradients come from the last layer to the first, a bias before its
 * kernel; slots and then variables from the first to the last, the other way. */
#define IN_ORDER                                                                                   \
	"SELECT c.key, c.kind, c.weight_update, c.step, c.microbatch, c.replica, c.chunk, c.data " \
	"FROM captures c LEFT JOIN layers l USING (layer) ORDER BY c.weight_update, c.microbatch " \
	"IS NULL, "                                                                                \
	"c.microbatch, c.kind, CASE c.kind WHEN 'optimizer_state' THEN substr(c.key, 1, "          \
	"instr(c.key, c.layer)) END, "                                                             \
	"CASE c.kind WHEN 'gradient' THEN -l.position ELSE l.position END, "                       \
	"c.key LIKE CASE c.kind WHEN 'gradient' THEN '%kernel%' ELSE '%bias%' END, c.replica, "    \
	"c.key, c.chunk"

/* What a weight was while a micro-batch went forward is what the update before had left. */
#define OF_MOMENT                                                                                  \
	"SELECT data FROM captures WHERE key = ?1 AND kind = ?2 AND "                              \
	"weight_update = ?3 - ?7 AND step IS ?4 AND microbatch IS ?5 AND replica IS ?6 "           \
	"ORDER BY chunk"

#define TRAIL                                                                                      \
	"SELECT key, kind, weight_update, CASE kind WHEN 'weight' THEN NULL ELSE step END, "       \
	"CASE kind WHEN 'weight' THEN NULL ELSE microbatch END, replica, role = 'weight', n, "     \
	"n_nan, n_pos_inf, n_neg_inf, n_zero, n_neg, n_pos, min, max, mean, std, l1, l2, "         \
	"abs_min_nonzero, abs_max, position, "                                                     \
	"role = 'input' OR role = 'weight' FROM nonfinite_trail"

enum {
	FIRST_COLUMN = 7,
	COUNTS = 7,
	COLUMNS = 15,
	ABS_MAX = COLUMNS - 1,
	POSITION = 22,
	SOURCE,
};

static int failed;

__attribute__((format(printf, 1, 2))) static void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	failed = 1;
}

static sqlite3 *open_db(const char *path)
{
	sqlite3 *db = NULL;

	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
		fprintf(stderr, "%s: %s\n", path, sqlite3_errmsg(db));
		exit(2);
	}
	return db;
}

static sqlite3_stmt *ask(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt = NULL;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK) {
		fprintf(stderr, "%s: %s\n", sqlite3_errmsg(db), sql);
		exit(2);
	}
	return stmt;
}

static const char *text(sqlite3_stmt *stmt, int column)
{
	const unsigned char *value = sqlite3_column_text(stmt, column);

	return !value ? "-" : (const char *)value;
}

/* Without sanitizers complaining of a blob's alignment. */
static float value_at(const char *data, size_t i)
{
	float value;

	memcpy(&value, data + sizeof(value) * i, sizeof(value));
	return value;
}

/* ---- the first bad number -------------------------------------------------------------------- */

static const char *name_of(float value)
{
	return isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

/* "KEY STEP WEIGHT_UPDATE ELEMENT VALUE" of the first one in @out. */
static bool scan(sqlite3 *full, char *out, size_t size)
{
	sqlite3_stmt *stmt = ask(full, IN_ORDER);
	bool found = false;
	size_t before = 0; /* elements of the chunks of the same value */

	while (!found && sqlite3_step(stmt) == SQLITE_ROW) {
		const size_t count = (size_t)sqlite3_column_bytes(stmt, 7) / sizeof(float);
		const char *data = sqlite3_column_blob(stmt, 7);

		if (sqlite3_column_int(stmt, 6) == 0)
			before = 0;
		for (size_t i = 0; i < count && !found; i++) {
			const float value = value_at(data, i);

			if (isfinite(value))
				continue;
			found = true;
			snprintf(out, size, "%s %s %s %zu %s", text(stmt, 0), text(stmt, 3),
				 text(stmt, 2), before + i, name_of(value));
		}
		before += count;
	}
	sqlite3_finalize(stmt);
	return found;
}

static void compare_first(sqlite3 *run, sqlite3 *full)
{
	sqlite3_stmt *stmt =
		ask(run, "SELECT key, step, weight_update, element, value FROM first_nonfinite");
	char seen[512] = "nothing", told[512] = "nothing";
	int rows = 0;

	scan(full, seen, sizeof(seen));
	for (; sqlite3_step(stmt) == SQLITE_ROW; rows++)
		snprintf(told, sizeof(told), "%s %s %s %s %s", text(stmt, 0), text(stmt, 1),
			 text(stmt, 2), text(stmt, 3), text(stmt, 4));
	sqlite3_finalize(stmt);
	if (rows != 1)
		fail("%d rows of first_nonfinite", rows);
	if (strcmp(seen, told) != 0)
		fail("first_nonfinite is %s; the captures have %s", told, seen);
	printf("%s", told);
}

/* ---- statistics ------------------------------------------------------------------------------ */

struct value {
	float *values;
	size_t count;
};

static struct value read_value(sqlite3 *full, sqlite3_stmt *row)
{
	sqlite3_stmt *stmt = ask(full, OF_MOMENT);
	struct value value = {NULL, 0};

	for (int i = 0; i < FIRST_COLUMN; i++)
		sqlite3_bind_value(stmt, i + 1, sqlite3_column_value(row, i));
	while (sqlite3_step(stmt) == SQLITE_ROW) {
		const size_t bytes = (size_t)sqlite3_column_bytes(stmt, 0);
		float *grown = realloc(value.values,
				       value.count * sizeof(float) + (bytes > 0 ? bytes : 1));

		if (!grown)
			exit(2);
		value.values = grown;
		if (bytes > 0)
			memcpy(grown + value.count, sqlite3_column_blob(stmt, 0), bytes);
		value.count += bytes / sizeof(float);
	}
	sqlite3_finalize(stmt);
	return value;
}

static void moments(const struct value *value, double *out)
{
	long double sum = 0, squares = 0, l1 = 0, l2 = 0, finite = 0, mean;
	double *const least = &out[COUNTS], *const most = &out[COUNTS + 1];
	double *const least_abs = &out[ABS_MAX - 1], *const most_abs = &out[ABS_MAX];

	for (size_t i = 0; i < value->count; i++) {
		const double x = (double)value->values[i], size = fabs(x);

		if (!isfinite(x))
			continue;
		finite += 1;
		sum += x;
		l1 += size;
		l2 += (long double)x * x;
		*least = !(x >= *least) ? x : *least; /* NAN: none yet */
		*most = !(x <= *most) ? x : *most;
		*least_abs = size > 0 && !(size >= *least_abs) ? size : *least_abs;
		*most_abs = !(size <= *most_abs) ? size : *most_abs;
	}
	mean = sum / finite;
	for (size_t i = 0; i < value->count; i++) {
		const long double off = (long double)value->values[i] - mean;

		squares += isfinite(value->values[i]) ? off * off : 0;
	}
	out[COUNTS + 2] = (double)mean;
	out[COUNTS + 3] = (double)sqrtl(squares / finite);
	out[COUNTS + 4] = finite > 0 ? (double)l1 : NAN;
	out[COUNTS + 5] = finite > 0 ? (double)sqrtl(l2) : NAN;
}

static void statistics(const struct value *value, double *out)
{
	for (int i = 0; i < COLUMNS; i++)
		out[i] = i < COUNTS ? 0 : NAN;
	out[0] = (double)value->count;
	for (size_t i = 0; i < value->count; i++) {
		const float x = value->values[i];
		const int kind = isnan(x) ? 1 : x == 0 ? 4 : x < 0 ? 5 : 6;

		out[kind]++;
		if (isinf(x))
			out[x > 0 ? 2 : 3]++;
	}
	moments(value, out);
}

/* Of the tier health: of all values, not of the finite ones. */
static double abs_max_of_all(const double *stats)
{
	return stats[1] > 0 ? NAN : stats[2] + stats[3] > 0 ? INFINITY : stats[ABS_MAX];
}

static void compare_row(sqlite3_stmt *row, const struct value *value)
{
	const bool health = sqlite3_column_type(row, FIRST_COLUMN + 1) == SQLITE_NULL;
	double stats[COLUMNS];

	statistics(value, stats);
	if (health)
		stats[ABS_MAX] = abs_max_of_all(stats);
	for (int i = 0; i < COLUMNS; i++) {
		const int column = FIRST_COLUMN + i;
		const bool is_null = sqlite3_column_type(row, column) == SQLITE_NULL;
		const double told = is_null ? (double)NAN : sqlite3_column_double(row, column);

		if (health && i != 0 && i != ABS_MAX) {
			if (!is_null)
				fail("%s: %s is known", text(row, 0),
				     sqlite3_column_name(row, column));
			continue;
		}
		/* A mean is as exact as the magnitudes that were added up. */
		if (isnan(told) ? !isnan(stats[i])
				: told != stats[i] &&
					  !(fabs(told - stats[i]) <=
					    1e-9 * (i < COUNTS + 2 ? 0
						    : i == COUNTS + 2
							    ? fabs(stats[COUNTS + 4] / stats[0])
							    : fabs(stats[i]))))
			fail("%s, position %s: %s is %.17g, of the captured values %.17g",
			     text(row, 0), text(row, POSITION), sqlite3_column_name(row, column),
			     told, stats[i]);
	}
}

/* Inputs that are not captured under a key of theirs (a layer that passes on) are left out, as are
 * the variables before the first update. */
static void compare_trail(sqlite3 *run, sqlite3 *full)
{
	sqlite3_stmt *stmt = ask(run, TRAIL);
	int rows = 0, bad = 0;

	while (sqlite3_step(stmt) == SQLITE_ROW) {
		struct value value = read_value(full, stmt);

		if (value.count > 0) {
			compare_row(stmt, &value);
			rows++;
			bad += sqlite3_column_int(stmt, POSITION) == 0;
		} else if (sqlite3_column_int(stmt, SOURCE) == 0) {
			fail("%s, position %s: not among the captures", text(stmt, 0),
			     text(stmt, POSITION));
		}
		free(value.values);
	}
	sqlite3_finalize(stmt);
	if (bad != 1)
		fail("%d rows of nonfinite_trail at position 0", bad);
	printf(" %d\n", rows);
}

int main(int argc, char **argv)
{
	sqlite3 *run, *full;

	if (argc != 3) {
		fprintf(stderr, "Usage: capture_scan RUN.db FULL.db\n");
		return 2;
	}
	run = open_db(argv[1]);
	full = open_db(argv[2]);
	compare_first(run, full);
	compare_trail(run, full);
	sqlite3_close(run);
	sqlite3_close(full);
	return failed;
}
