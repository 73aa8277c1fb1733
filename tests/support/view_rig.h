/*
 * A viewer's session without a terminal, for tests: keys in, text and numbers out.
 */
#ifndef SUPPORT_VIEW_RIG_H
#define SUPPORT_VIEW_RIG_H

#include "support/support.h"
#include "viewer/view_session.h"

struct view_rig {
	char folder[SUPPORT_PATH_SIZE];     /* "": none of its own */
	char path[SUPPORT_PATH_SIZE + 16];  /* the source */
	char other[SUPPORT_PATH_SIZE + 16]; /* the target, for those that compare */
	struct view_session session;
};

/* cmocka: @*state becomes a rig with a folder, where bookmarks and statements are kept too. Its
 * recordings are not written yet, nor is its session open. */
struct view_rig *view_rig_new(void **state);
/* Open the session on the rig's recordings, and press @keys. */
void view_rig_start(struct view_rig *rig, bool compared, int width, int height, const char *keys);

/* A session on @path (and @target or NULL), @width x @height, drawn once. */
void view_rig_open(struct view_rig *rig, const char *path, const char *target, int width,
		   int height);
void view_rig_close(struct view_rig *rig);

/* cmocka: @*state becomes a rig on the fixture's recording (support/view_fixture.h) at 80x24. */
int view_rig_setup(void **state);
/* The same on what @write makes of @source, compared with what it makes of @target (NULL: not
 * compared), after @keys. */
typedef bool (*view_rig_write)(const char *path, const void *params);
int view_rig_setup_with(void **state, view_rig_write write, const void *source, const void *target,
			const char *keys);
/* On the model of support/view_fixture_model.h, or on two of it, with @keys pressed. */
int view_rig_setup_model(void **state, bool compared, int width, int height, const char *keys);
/* For any rig: closes its session, removes its folder. */
int view_rig_teardown(void **state);

/* Press the characters of @keys, drawing after each. */
void view_rig_press(struct view_rig *rig, const char *keys);
void view_rig_key(struct view_rig *rig, uint32_t key);
void view_rig_size(struct view_rig *rig, int width, int height);

/* What is on the screen, lines parted by \n; the caller's (free). */
char *view_rig_text(const struct view_session *session);
#define assert_shows(rig, part) view_rig_assert_shows((rig), (part), __FILE__, __LINE__)
void view_rig_assert_shows(struct view_rig *rig, const char *part, const char *file, int line);
#define assert_hides(rig, part) view_rig_assert_hides((rig), (part), __FILE__, __LINE__)
void view_rig_assert_hides(struct view_rig *rig, const char *part, const char *file, int line);
/* Some line shows all these texts, one after the other. */
#define assert_line_shows(rig, ...)                                                                \
	view_rig_assert_line_shows((rig), (const char *const[]){__VA_ARGS__, NULL}, __FILE__,      \
				   __LINE__)
void view_rig_assert_line_shows(struct view_rig *rig, const char *const *parts, const char *file,
				int line);
/* The first line with @part has, behind it the first column of @sql, as counts are shown. */
#define assert_count(rig, part, sql) view_rig_assert_count((rig), (part), (sql), __FILE__, __LINE__)
void view_rig_assert_count(struct view_rig *rig, const char *part, const char *sql,
			   const char *file, int line);
/* The first column of @sql is shown, as reals are. */
#define assert_shows_real(rig, sql) view_rig_assert_real((rig), (sql), __FILE__, __LINE__)
void view_rig_assert_real(struct view_rig *rig, const char *sql, const char *file, int line);

/* The first column of the first row of @sql. */
int64_t view_rig_sql_int(struct view_rig *rig, const char *sql);
double view_rig_sql_real(struct view_rig *rig, const char *sql);
char *view_rig_sql_text(struct view_rig *rig, const char *sql); /* the caller's; NULL: NULL */

/* Press every key that is for @screen, in each of the ways it can be looked at (v): none is
 * refused. */
void view_rig_press_every_key(struct view_rig *rig, enum view_screen screen);

/* Run @press at every size and in every look that a terminal may have: nothing fails. */
void view_rig_each_look(struct view_rig *rig, void (*press)(struct view_rig *rig));

#endif /* SUPPORT_VIEW_RIG_H */
