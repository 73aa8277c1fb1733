/*
 * The timeline's ways to look at it: which rows a lane has, which IPUs there are lanes of, and the
 * unit of the device's times.
 *
 * Threading: one thread. Ownership: none.
 */
#include "viewer/timeline/view_timeline_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/fmt.h"
#include "common/mem.h"

const char *const view__way_names[VIEW_WAYS] = {"Gantt", "Flame", "Flat", "BSP"};

/* ---- units ----------------------------------------------------------------------------------- */

bool view__in_cycles(const struct view_timeline *tl, int clock)
{
	return clock == IPS_DEVICE && tl->cycles && tl->hertz > 0;
}

int64_t view__cycles(const struct view_timeline *tl, int64_t ns)
{
	return llround((double)ns * tl->hertz / 1e9);
}

int64_t view__ns(const struct view_timeline *tl, int64_t cycles)
{
	return llround((double)cycles * 1e9 / tl->hertz);
}

struct view_window view__unit_window(const struct view_timeline *tl, int clock)
{
	const struct view_window window = tl->clock[clock].window;

	if (!view__in_cycles(tl, clock))
		return window;
	return (struct view_window){view__cycles(tl, window.from), view__cycles(tl, window.to)};
}

const char *view__moment_text(const struct view_timeline *tl, int clock, char out[VIEW_UNIT_SIZE],
			      int64_t ns, int64_t step)
{
	return view__tick_text(tl, clock, out,
			       view__in_cycles(tl, clock) ? view__cycles(tl, ns) : ns, step);
}

const char *view__tick_text(const struct view_timeline *tl, int clock, char out[VIEW_UNIT_SIZE],
			    int64_t at, int64_t step)
{
	if (!view__in_cycles(tl, clock))
		return view_tick_text(out, at, step, tl->clock[clock].window);
	return fmt_count(out, at);
}

const char *view__length_text(const struct view_timeline *tl, int clock, char out[VIEW_UNIT_SIZE],
			      int64_t ns)
{
	char number[FMT_SIZE];

	if (!view__in_cycles(tl, clock))
		return fmt_ns(out, ns);
	snprintf(out, VIEW_UNIT_SIZE, "%s cycles", fmt_count(number, view__cycles(tl, ns)));
	return out;
}

/* ---- which lanes ----------------------------------------------------------------------------- */

int64_t view__replica_of(const struct view_timeline *tl, int64_t ipu)
{
	const int64_t each = tl->replicas > 0 ? tl->ipus / tl->replicas : 0;

	return each > 0 && ipu != IPS_NULL ? ipu / each : IPS_NULL;
}

int64_t view__first_ipu(const struct view_timeline *tl, int64_t replica)
{
	return replica > 0 && tl->replicas > 0 ? replica * (tl->ipus / tl->replicas) : 0;
}

bool view__shows_track(const struct view_timeline *tl, const struct prof_track *track)
{
	if (track->depth < 1 || track->first_ns > track->last_ns || view__is_hidden(tl, track))
		return false;
	if (tl->way == VIEW_BSP && (track->clock != IPS_DEVICE || track->ipu == IPS_NULL))
		return false;
	if (tl->only_ipu != IPS_NULL)
		return track->ipu == tl->only_ipu;
	if (tl->only_replica != IPS_NULL)
		return track->ipu != IPS_NULL &&
		       view__replica_of(tl, track->ipu) == tl->only_replica;
	return true;
}

static bool view_shows_any(const struct view_timeline *tl)
{
	for (int i = 0; i < tl->track_count; i++)
		if (view__shows_track(tl, &tl->tracks[i]))
			return true;
	return false;
}

/* The least IPU above @after that has a track; IPS_NULL: none. */
static int64_t view_next_ipu(const struct view_timeline *tl, int64_t after)
{
	int64_t next = IPS_NULL;

	for (int i = 0; i < tl->track_count; i++) {
		const struct prof_track *track = &tl->tracks[i];

		if (track->depth > 0 && track->ipu > after &&
		    (next == IPS_NULL || track->ipu < next))
			next = track->ipu;
	}
	return next;
}

/* IPU after IPU, then replica after replica where there are several, then all. */
static void view_select_next(struct view_timeline *tl)
{
	if (tl->only_replica != IPS_NULL) {
		if (++tl->only_replica >= tl->replicas)
			tl->only_replica = IPS_NULL;
		return;
	}
	tl->only_ipu = view_next_ipu(tl, tl->only_ipu == IPS_NULL ? -1 : tl->only_ipu);
	if (tl->only_ipu == IPS_NULL && tl->replicas > 1)
		tl->only_replica = 0;
}

void view__filter_text(const struct view_timeline *tl, char *out, size_t size)
{
	if (tl->only_ipu != IPS_NULL)
		snprintf(out, size, "IPU %lld", (long long)tl->only_ipu);
	else if (tl->only_replica != IPS_NULL)
		snprintf(out, size, "replica %lld", (long long)tl->only_replica);
	else
		snprintf(out, size, "all IPUs");
}

static void view_select(struct view_timeline *tl, struct view_context *context)
{
	char text[32];

	if (view_next_ipu(tl, -1) == IPS_NULL) {
		snprintf(context->message, sizeof(context->message), "no lane is of an IPU");
		return;
	}
	do
		view_select_next(tl);
	while (!view_shows_any(tl));
	tl->relane = true;
	view__filter_text(tl, text, sizeof(text));
	snprintf(context->message, sizeof(context->message), "%s", text);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void view_turn(struct view_timeline *tl, struct view_context *context, int by)
{
	const enum view_way before = tl->way;

	do
		tl->way = (enum view_way)(((int)tl->way + by + VIEW_WAYS) % VIEW_WAYS);
	while (!view_shows_any(tl));
	tl->relane = (tl->way == VIEW_BSP) != (before == VIEW_BSP);
	tl->pinned = IPS_NULL;
	snprintf(context->message, sizeof(context->message), "view: %s", view__way_names[tl->way]);
}

static void view_change_unit(struct view_timeline *tl, struct view_context *context)
{
	if (tl->hertz <= 0) {
		snprintf(context->message, sizeof(context->message),
			 "the recording does not tell the device's clock");
		return;
	}
	tl->cycles = !tl->cycles;
	snprintf(context->message, sizeof(context->message), "device times in %s",
		 tl->cycles ? "cycles" : "ns");
}

/*
 * The bubble as a whole, by its causes, or sums by name; of steps, tiles at work or their balance.
 */
static void view_break_down(struct view_timeline *tl, struct view_context *context)
{
	if (tl->way == VIEW_BSP) {
		tl->bsp_balance = !tl->bsp_balance;
		snprintf(context->message, sizeof(context->message), "heights are %s",
			 tl->bsp_balance ? "tile balances" : "tiles at work");
		return;
	}
	if (tl->by_name) {
		tl->by_name = false;
	} else if (tl->by_cause || (tl->mean_bubble[0].runs == 0 && tl->mean_bubble[1].runs == 0)) {
		tl->by_cause = false;
		tl->by_name = tl->details = true;
	} else {
		tl->by_cause = true;
		tl->way = VIEW_GANTT;
	}
	if (view__sums_lack_room(tl, context, context->message, sizeof(context->message)))
		return;
	snprintf(context->message, sizeof(context->message), "%s",
		 tl->by_name    ? "sums by name, of this lane"
		 : tl->by_cause ? "the bubble by its causes"
				: "the bubble as a whole");
}

bool view__way_request(struct view_timeline *tl, struct view_context *context,
		       enum view_request request)
{
	switch (request) {
	case VIEW_VIEW_REQUEST:
	case VIEW_VIEW_BACK_REQUEST:
		view_turn(tl, context, request == VIEW_VIEW_REQUEST ? 1 : -1);
		return true;
	case VIEW_SELECT_REQUEST:
		view_select(tl, context);
		return true;
	case VIEW_BREAKDOWN_REQUEST:
		view_break_down(tl, context);
		return true;
	case VIEW_UNIT_REQUEST:
		view_change_unit(tl, context);
		return true;
	default:
		return false;
	}
}
