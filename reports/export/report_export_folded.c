/*
 * `export folded`: stacks of spans with their self time, for flame graphs.
 *
 * Stacks form a tree with a node per distinct stack, looked up by parent and name in a hash table.
 * Memory grows with the number of distinct stacks, not of spans. Lines are in the order in which
 * the stacks first occur, track by track. Threading: none. Ownership: an export owns its tree.
 */
#include <string.h>
#include <unistd.h>

#include "common/fmt.h"
#include "common/map.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/sat.h"
#include "common/str.h"
#include "reports/export/report_sink.h"
#include "reports/export/report_walk.h"

#define NONE       SIZE_MAX
#define DEPTH_MOST 4096 /* maximum names in a line; deeper spans count for their ancestor there */

struct node {
	size_t parent; /* NONE: a track */
	const char *name;
	int64_t self_ns;
};

struct path {
	size_t *nodes; /* nodes of the enclosing spans, by depth */
	size_t capacity;
};

struct folded {
	struct err *err; /* sticky, shared with the walk */
	struct report_sink sink;
	struct report_walk walk;
	struct report_sites sites;
	struct node *nodes;
	size_t count, capacity;
	struct map map; /* index of the nodes */
	struct path paths[REPORT_WALK_LANES];
	size_t track; /* node of the current track */
	int64_t lines;
	bool terminal; /* it is written to one */
};

/* ---- the tree -------------------------------------------------------------------------------- */

/* Find or add the node of @name below @parent. */
static size_t get_node(struct folded *folded, size_t parent, const char *name)
{
	const uint64_t hash = map_text(MAP_SEED ^ parent, name);
	const struct node *nodes = folded->nodes;
	size_t at;

	MAP_FIND(at, &folded->map, hash,
		 nodes[at].parent == parent && strcmp(nodes[at].name, name) == 0);
	if (at != MAP_NONE)
		return at;
	if (mem_grow(&folded->nodes, &folded->capacity, folded->count + 1,
		     sizeof(*folded->nodes)) != 0 ||
	    map_add(&folded->map, hash, folded->count) != 0) {
		err_nomem(folded->err);
		return NONE;
	}
	folded->nodes[folded->count] = (struct node){parent, name, 0};
	return folded->count++;
}

static void enter_span(void *user, const struct prof_track *track,
		       const struct report_walk_span *span)
{
	struct folded *folded = user;
	struct path *path = &folded->paths[span->lane];
	const size_t depth = span->depth < DEPTH_MOST ? span->depth : DEPTH_MOST - 1;
	const size_t parent = depth == 0 ? folded->track : path->nodes[depth - 1];
	const size_t site = report_sites_find(&folded->sites, span->site_id);
	const char *name = folded->sites.items[site].name;
	size_t node;

	(void)track;
	if (mem_grow(&path->nodes, &path->capacity, depth + 1, sizeof(*path->nodes)) != 0) {
		err_nomem(folded->err);
		return;
	}
	if (span->depth >= DEPTH_MOST)
		return;
	node = path->nodes[depth] = get_node(folded, parent, !name ? "" : name);
	if (node == NONE)
		return;
	folded->nodes[node].self_ns = sat_add(folded->nodes[node].self_ns, span->dur_ns);
	if (depth > 0)
		folded->nodes[parent].self_ns =
			sat_sub(folded->nodes[parent].self_ns, span->dur_ns);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* A separator within a name would split it, or the line. What hides is not for a terminal. */
static void write_name(struct folded *folded, const char *name)
{
	struct report_sink *sink = &folded->sink;
	uint32_t character;
	size_t bytes;

	for (; *name != '\0'; name += bytes) {
		const unsigned char c = (unsigned char)*name;
		char *at = report_sink_room(sink);

		bytes = (size_t)max(utf8_read(name, &character), 1);
		if (c >= 0x80 && folded->terminal && (bytes == 1 || utf8_is_hidden(character))) {
			*at = '?';
			sink->used++;
			continue;
		}
		memcpy(at, name, bytes);
		if (bytes == 1)
			*at = c == ';' ? ':' : c < 0x20 || c == 0x7f ? ' ' : (char)c;
		sink->used += bytes;
	}
}

static void write_node(struct folded *folded, size_t at)
{
	struct report_sink *sink = &folded->sink;
	size_t names[DEPTH_MOST + 1], count = 0;

	if (folded->nodes[at].self_ns <= 0)
		return;
	for (size_t node = at; node != NONE; node = folded->nodes[node].parent)
		names[count++] = node;
	while (count > 0) {
		write_name(folded, folded->nodes[names[--count]].name);
		report_sink_text(sink, count > 0 ? ";" : " ");
	}
	report_sink_int(sink, folded->nodes[at].self_ns);
	report_sink_text(sink, "\n");
	folded->lines++;
}

enum status report_export_folded(const struct report_export_request *request, const char *path,
				 struct err *err)
{
	struct err own;
	struct folded folded = {.err = err_start(err, &own)};
	const struct report_walk_counts *counts = &folded.walk.counts;
	char lines[FMT_SIZE], spans[FMT_SIZE];
	struct str notes = {0};

	err = folded.err;
	report_walk_open(&folded.walk, request, err);
	report_sites_read(&folded.sites, request->db, err);
	folded.terminal = strcmp(path, "-") == 0 && isatty(STDOUT_FILENO);
	if (!err_stuck(err) && report_sink_open(&folded.sink, path, err) == ST_OK) {
		const struct report_walk_callbacks callbacks = {enter_span, NULL, &folded};
		struct report_walk *walk = &folded.walk;

		for (int i = 0; i < walk->track_count && !err_stuck(folded.err); i++) {
			if (!report_walk_selects_track(walk, &walk->tracks[i]))
				continue;
			folded.track = get_node(&folded, NONE, walk->tracks[i].track);
			report_walk_spans(walk, &walk->tracks[i], &callbacks);
		}
		for (size_t i = 0; i < folded.count && !err_stuck(folded.err); i++)
			write_node(&folded, i);
		report_sink_close(&folded.sink, err->status);
	}
	report_walk_notes(&folded.walk, &notes);
	report_export_print_result(request, path, &notes, err, "%s stack%s of %s span%s",
				   fmt_count(lines, folded.lines), folded.lines == 1 ? "" : "s",
				   fmt_count(spans, counts->spans), counts->spans == 1 ? "" : "s");
	for (int i = 0; i < REPORT_WALK_LANES; i++)
		mem_free(folded.paths[i].nodes);
	mem_free(folded.nodes);
	map_fini(&folded.map);
	report_sites_free(&folded.sites);
	report_walk_close(&folded.walk);
	return err->status;
}
