/*
 * Which runs are shown: the list of those to compare with, and the change from one to two, from two
 * to one, and the swap of the two.
 *
 * Threading: the terminal's thread; no job may be running. Ownership: view_session.h.
 */
#include "viewer/view_session_internal.h"

#include <string.h>

#include "common/str.h"

/* Tags of the list, besides the indexes of runs. */
enum {
	RUNS_PATH = -3, /* the input is a path */
	RUNS_ALONE = -2,
	RUNS_SWAP = -1
};

/* ---- the change ------------------------------------------------------------------------------ */

/* Reset the screens, whose data is of other runs. On failure they are unchanged. */
static enum status runs_reset_screens(struct view_session *session, struct err *err)
{
	void *fresh[VIEW_SCREENS] = {NULL};
	enum status status = ST_OK;

	for (int i = 0; i < VIEW_SCREENS && status == ST_OK; i++) {
		fresh[i] = view_state_new(view_screen((enum view_screen)i));
		status = fresh[i] ? ST_OK : err_nomem(err);
	}
	for (int i = 0; i < VIEW_SCREENS; i++) {
		const struct view_screen_ops *ops = view_screen((enum view_screen)i);

		session->news[i] = true;
		if (status == ST_OK && !ops->stays) {
			void *old = session->state[i];

			session->state[i] = fresh[i];
			session->fresh[i] = false;
			fresh[i] = old;
		}
		view_state_free(ops, fresh[i]);
	}
	return status;
}

/* Show @source and @target (without a path: the source alone). The caller closes what is no longer
 * shown; false: nothing has changed, and a message says why. */
static bool runs_change(struct view_session *session, struct view_source source,
			struct view_source target, const char *text, const char *rest)
{
	struct view_context *context = &session->context;
	const struct view_source *compared = context->target;
	const struct view_source before[] = {session->source, session->target};
	struct view_place place;
	const bool known = view__current_place(session, &place);
	struct err err = {0};

	session->source = source;
	session->target = target;
	context->target = target.path[0] ? &session->target : NULL;
	if (runs_reset_screens(session, &err) != ST_OK) {
		session->source = before[0];
		session->target = before[1];
		context->target = compared ? &session->target : NULL;
		view__notify(session, "not compared: ", err.text);
		return false;
	}
	(void)view__poll_screens(session, NULL);
	context->runs++;
	context->differ = context->differ && context->target;
	view__notify(session, text, rest);
	/* Restore the cursor's place, as far as the new runs have it. */
	if (known && view__ops(session)->go && !view__ops(session)->stays &&
	    !session->frame.too_small) {
		view__go_to(session, &place);
	} else {
		session->stale = true;
	}
	return true;
}

static void runs_compare(struct view_session *session, const char *path)
{
	struct view_source before = session->target, target;
	struct err err = {0};

	if (view_source_open(&target, path, &err) != ST_OK)
		view__notify(session, "not compared: ", err.text);
	else if (runs_change(session, session->source, target, "R swaps or ends it; compared with ",
			     target.name))
		view_source_close(&before);
	else
		view_source_close(&target);
}

/* ---- the list -------------------------------------------------------------------------------- */

/* Add a line of @before and @text if @searched contains the input. */
static void runs_add(struct view_session *session, int tag, const char *before, const char *text,
		     const char *searched)
{
	char line[VIEW_PROMPT_SIZE + 512];

	if (!strcasestr(searched, session->input))
		return;
	str_copy(line, sizeof(line), before);
	str_copy(line + strlen(line), sizeof(line) - strlen(line), text);
	view_popup_add(&session->popup, tag, NULL, line);
}

void view__runs_fill(struct view_session *session)
{
	const struct view_source *target = session->context.target;

	view_popup_begin(&session->popup, VIEW_RUNS_POPUP, "Compare with",
			 "Enter takes it, what is typed filters, Esc stays");
	if (target) {
		runs_add(session, RUNS_SWAP, "swap: the source becomes ", target->name, "swap");
		runs_add(session, RUNS_ALONE, "none: alone is shown ", session->source.name,
			 "none");
	}
	for (size_t i = 0; i < session->runs.count; i++) {
		const struct view_run *run = &session->runs.items[i];

		runs_add(session, (int)i,
			 !target                               ? ""
			 : fs_is_same(target->path, run->path) ? "* "
							       : "  ",
			 run->text, run->text);
	}
	if (session->popup.count == 0 && session->input[0])
		runs_add(session, RUNS_PATH, "Enter opens ", session->input, session->input);
}

/* The runs have been found: list them. */
static void runs_list(struct view_session *session, const struct view_job *job)
{
	if (job->err.status != ST_OK) {
		view__notify(session, job->err.text, NULL);
		return;
	}
	session->prompt = VIEW_RUNS_PROMPT;
	session->input[0] = '\0';
	session->proposed = false;
	view__runs_fill(session);
	if (session->popup.count == 0)
		view_popup_add(&session->popup, RUNS_PATH, NULL,
			       "No other report here, nor beside this one: type a path.");
}

void view__runs(struct view_session *session)
{
	view__job(session, VIEW_RUNS_JOB, runs_list)->runs = &session->runs;
	view__start(session);
}

void view__runs_leave(struct view_session *session)
{
	session->prompt = VIEW_NO_PROMPT;
	view_popup_close(&session->popup);
}

void view__runs_enter(struct view_session *session)
{
	const struct view_popup *popup = &session->popup;
	const int tag = popup->count > 0 ? popup->items[popup->at].tag : RUNS_PATH;

	view__runs_leave(session);
	if (tag == RUNS_SWAP) {
		/* Bookmarks belong to the source. */
		if (runs_change(session, session->target, session->source,
				"swapped; the source is now ", session->source.name))
			view_marks_free(&session->marks);
	} else if (tag == RUNS_ALONE) {
		struct view_source before = session->target;

		if (runs_change(session, session->source, (struct view_source){.watch = -1},
				"alone: ", session->source.name))
			view_source_close(&before);
	} else if (tag != RUNS_PATH)
		runs_compare(session, session->runs.items[tag].path);
	else if (session->input[0])
		runs_compare(session, session->input);
}
