/*
 * Bookmarks of a report: places to return to, kept between sessions.
 *
 * Nothing is written to the report: the file is bookmarks/RUN.json (view_config.h), RUN being the
 * start time, process and rank of the run, so that a copy of the report has the same bookmarks.
 * Each change starts from the file's current content, so that viewers of one run share them.
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
	char path[FS_PATH_SIZE]; /* "": no file; the bookmarks last as long as this process */
};

/* Read the bookmarks of the report in @db, once; a missing file has none. Refresh adds what other
 * viewers changed since; if that fails, the bookmarks stay as they were. */
enum status view_marks_read(struct view_marks *marks, struct prof_db *db, struct err *err);
enum status view_marks_refresh(struct view_marks *marks, struct err *err);
void view_marks_free(struct view_marks *marks); /* accepts a zeroed struct */

/* Add or remove one, on top of what other viewers changed meanwhile, and write the file. ST_LIMIT:
 * VIEW_MARKS_MOST is reached. On any other failure the file is unchanged; an added bookmark lasts
 * as long as this process and is saved with the next one; one to be removed stays. */
enum status view_marks_add(struct view_marks *marks, const struct view_mark *mark, struct err *err);
enum status view_marks_remove(struct view_marks *marks, int at, struct err *err);

#endif /* VIEW_MARKS_H */
