/*
 * A place in a report: what is under the cursor, as far as its screen knows.
 *
 * Screens pass places to each other: one describes its cursor, the others report what they can show
 * of that, and move there. What a screen leaves out is looked up (view_place_complete): a span
 * leads to its operation, that to its layer and program, a step to its time, and back.
 *
 * A value: no pointers, nothing to free. Names that do not fit are cut and then match nothing.
 */
#ifndef VIEW_PLACE_H
#define VIEW_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiler/prof_db.h"

#define VIEW_PLACE_NAME 256
#define VIEW_PLACE_SQL  4096

/* X(number), each IPS_NULL where unknown. */
#define VIEW_PLACE_NUMBERS(X)                                                                      \
	X(rank)                                                                                    \
	X(execution)                                                                               \
	X(epoch)                                                                                   \
	X(weight_update)                                                                           \
	X(step)                                                                                    \
	X(microbatch)                                                                              \
	X(replica)                                                                                 \
	X(ipu)                                                                                     \
	X(stage)                                                                                   \
	X(span_id)                                                                                 \
	X(track_id)                                                                                \
	X(program_id)                                                                              \
	X(program_step)                                                                            \
	X(variable_id)                                                                             \
	X(tile)                                                                                    \
	X(time_ns)     /* on `clock` */                                                            \
	X(until_ns)    /* the end, if the place is a range of time */                              \
	X(hit_ns)      /* when a rule was broken at that step, on the host's clock */              \
	X(layer_hits)  /* 0: no rule was broken in the layer */                                    \
	X(target_only) /* 1: of two reports, only the target has it */

/* X(text), each "" where unknown. */
#define VIEW_PLACE_TEXTS(X)                                                                        \
	X(clock) /* "host", "device" */                                                            \
	X(mode)  /* "train", "evaluate", "predict" */                                              \
	X(phase) /* "F" ... */                                                                     \
	X(layer)                                                                                   \
	X(operation)                                                                               \
	X(queue) /* with key: a tensor */                                                          \
	X(key)                                                                                     \
	X(rule)                                                                                    \
	X(metric)                                                                                  \
	X(view) /* rows of a view of the contract ... */                                           \
	X(keys) /* ... these rows: "clock=device stage=1", as an insight gives them */

struct view_place {
#define VIEW_PLACE_NUMBER(name) int64_t name;
	VIEW_PLACE_NUMBERS(VIEW_PLACE_NUMBER)
#undef VIEW_PLACE_NUMBER
#define VIEW_PLACE_TEXT(name) char name[VIEW_PLACE_NAME];
	VIEW_PLACE_TEXTS(VIEW_PLACE_TEXT)
#undef VIEW_PLACE_TEXT
	char sql[VIEW_PLACE_SQL]; /* a query to be run */
};

/* Make every field unknown. */
void view_place_clear(struct view_place *place);

/* Copy @text (NULL: "") into one of the place's texts. */
void view_place_text(char out[VIEW_PLACE_NAME], const char *text);

/* The fields by name, for queries whose columns have these names. */
struct view_place_field {
	const char *name;
	size_t offset; /* of its int64_t, or of its char[VIEW_PLACE_NAME] */
	bool text;
};

const struct view_place_field *view_place_fields(int *count);
const struct view_place_field *view_place_field(const char *name); /* NULL: none */
int64_t *view_place_number(struct view_place *place, const struct view_place_field *field);
char *view_place_chars(struct view_place *place, const struct view_place_field *field);
bool view_place_knows(const struct view_place *place, const struct view_place_field *field);

bool view_place_same(const struct view_place *a, const struct view_place *b);

/* Parse "clock=device stage=1" into the fields of these names that are unknown; other names are
 * ignored. A value extends to the next name, so it may contain blanks. */
void view_place_keys(struct view_place *place, const char *keys);

/* Look up unknown fields from known ones, which stay. Bounded: range and index queries only. */
enum status view_place_complete(struct view_place *place, struct prof_db *db, struct err *err);

#endif /* VIEW_PLACE_H */
