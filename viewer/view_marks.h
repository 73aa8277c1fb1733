/*
 * Bookmarks of a report: places to come back to, kept from one look to the next.
 *
 * Nothing is written to the report: the file is bookmarks/RUN.json (view_config.h), RUN being when
 * and where the run was recorded, so that a copy of the report has the same bookmarks. Each change
 * begins with what is in the file by then, so that viewers of one run share them.
 *
 * Threading: none. Ownership: the struct owns its items.
 */
#ifndef VIEW_MARKS_H
#define VIEW_MARKS_H

#include "common/fs.h"
#include "viewer/view_place.h"

#define VIEW_MARKS_MOST 200
#define VIEW_MARK_NAME  96

struct view_mark {
	char name[VIEW_MARK_NAME];
	char screen[16]; /* by name */
	struct view_place place;
	bool unkept; /* not in the file */
};

struct view_marks {
	struct view_mark *items; /* oldest first */
	int count;
	bool read;
	char path[FS_PATH_SIZE]; /* "": there is no place for them; they last as long as we do */
};

/* Those of the report in @db; a file that is not there has none. Read once, then refreshed with
 * what other viewers did to it, or as they were where that fails. */
enum status view_marks_read(struct view_marks *marks, struct prof_db *db, struct err *err);
enum status view_marks_refresh(struct view_marks *marks, struct err *err);
void view_marks_free(struct view_marks *marks); /* accepts a zeroed struct */

/* Add or take out one, with what others did to the file meanwhile, and write it. ST_LIMIT: there
 * are enough. On any other failure the file is as it was; what was added lasts as long as we do and
 * goes to the file with the next one, and what should be taken out stays. */
enum status view_marks_add(struct view_marks *marks, const struct view_mark *mark, struct err *err);
enum status view_marks_remove(struct view_marks *marks, int at, struct err *err);

#endif /* VIEW_MARKS_H */
