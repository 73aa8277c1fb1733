/*
 * Events and lanes of `export chrome`. See report_chrome.h.
 *
 * Threading: none. Ownership: the export's.
 */
#include "reports/export/report_chrome.h"

#include <string.h>

#include "reports/table/report_internal.h"

#define SORT_GROUP 10000 /* places of the lanes of one IPU */

int64_t report_chrome_pid(int64_t rank, int clock)
{
	return 2 * (rank == IPS_NULL ? 0 : rank & INT32_MAX) + (clock == IPS_HOST ? 1 : 2);
}

int64_t report_chrome_tid(const struct prof_track *track, int lane)
{
	return track->track_id % INT32_MAX + (int64_t)lane * REPORT_CHROME_LANE;
}

int64_t report_chrome_sort(int64_t ipu, int64_t place)
{
	const int64_t group = ipu == IPS_NULL ? 0 : 1 + (ipu & UINT16_MAX);

	return group * SORT_GROUP + place % SORT_GROUP;
}

void report_chrome_event(struct report_chrome *chrome, char phase, int64_t pid, int64_t tid)
{
	static const char begin[] = ",\n{\"ph\":\"X\",\"pid\":";
	struct report_sink *sink = &chrome->sink;
	char *at = report_sink_room(sink);
	/* What is written first has nothing before it. */
	const size_t skipped = chrome->begun ? 0 : 2, length = sizeof(begin) - 1 - skipped;

	memcpy(at, begin + skipped, length);
	at[9 - skipped] = phase;
	chrome->begun = true;
	sink->used += length;
	report_sink_int(sink, pid);
	report_sink_text(sink, ",\"tid\":");
	report_sink_int(sink, tid);
}

void report_chrome_metadata(struct report_chrome *chrome, int64_t pid, int64_t tid,
			    const char *name, struct str *args)
{
	report_chrome_event(chrome, 'M', pid, tid);
	report_sink_text(&chrome->sink, ",\"name\":\"");
	report_sink_text(&chrome->sink, name);
	report_sink_text(&chrome->sink, "\",\"args\":");
	report_sink_add(&chrome->sink, str_peek(args), args->length);
	report_sink_text(&chrome->sink, "}");
	if (args->failed)
		report_sink_fail(&chrome->sink, err_nomem(chrome->sink.err));
	str_free(args);
}

void report_chrome_thread(struct report_chrome *chrome, int64_t pid, int64_t tid, int64_t sort,
			  struct str *args)
{
	struct str index = {0};

	report_chrome_metadata(chrome, pid, tid, "thread_name", args);
	str_addf(&index, "{\"sort_index\":%lld}", (long long)sort);
	report_chrome_metadata(chrome, pid, tid, "thread_sort_index", &index);
}

void report_chrome_piece(struct report_chrome *chrome, const struct report_piece *piece,
			 bool *comma)
{
	if (piece->length == 0)
		return;
	if (*comma)
		report_sink_add(&chrome->sink, ",", 1);
	*comma = true;
	report_sink_add(&chrome->sink, piece->bytes, piece->length);
}
