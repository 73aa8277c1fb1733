/*
 * `export folded`: stacks of spans with their self time, for flame graphs.
 *
 * Stacks form a tree with a node per distinct stack, looked up by parent and name in a hash table.
 * Memory grows with the number of distinct stacks, not of spans. Lines are in the order in which
 * the stacks first occur, track by track. Threading: none. Ownership: an export owns its tree.
 */
#include <string.h>

#include "common/fmt.h"
#include "common/map.h"
#include "common/mem.h"
#include "reports/export/report_sink.h"
#include "reports/export/report_sites.h"
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
	const struct report_export_request *request;
	struct report_sink sink;
	struct report_walk walk;
	struct report_sites sites;
	struct node *nodes;
	size_t count, capacity;
	struct map map; /* index of the nodes */
	struct path paths[REPORT_WALK_LANES];
	size_t track; /* node of the current track */
	int64_t lines;
};

/* ---- the tree -------------------------------------------------------------------------------- */

static enum status get_node(struct folded *folded, size_t parent, const char *name, size_t *out,
			    struct err *err)
{
	const uint64_t hash = map_text(MAP_SEED ^ parent, name);
	const struct node *nodes = folded->nodes;

	MAP_FIND(*out, &folded->map, hash,
		 nodes[*out].parent == parent && strcmp(nodes[*out].name, name) == 0);
	if (*out != MAP_NONE)
		return ST_OK;
	if (mem_grow(&folded->nodes, &folded->capacity, folded->count + 1,
		     sizeof(*folded->nodes)) != 0 ||
	    map_add(&folded->map, hash, folded->count) != 0)
		return err_nomem(err);
	*out = folded->count++;
	folded->nodes[*out] = (struct node){parent, name, 0};
	return ST_OK;
}

static enum status enter_span(void *user, const struct prof_track *track,
			      const struct report_walk_span *span, struct err *err)
{
	struct folded *folded = user;
	struct path *path = &folded->paths[span->lane];
	const size_t depth = span->depth < DEPTH_MOST ? span->depth : DEPTH_MOST - 1;
	const size_t parent = depth == 0 ? folded->track : path->nodes[depth - 1];
	const size_t site = report_sites_find(&folded->sites, span->site_id);
	const char *name = folded->sites.items[site].name;
	enum status status;
	size_t node = NONE;

	(void)track;
	if (mem_grow(&path->nodes, &path->capacity, depth + 1, sizeof(*path->nodes)) != 0)
		return err_nomem(err);
	if (span->depth >= DEPTH_MOST)
		return ST_OK;
	status = get_node(folded, parent, !name ? "" : name, &node, err);
	if (status != ST_OK)
		return status;
	path->nodes[depth] = node;
	folded->nodes[node].self_ns += span->dur_ns;
	if (depth > 0)
		folded->nodes[parent].self_ns -= span->dur_ns;
	return ST_OK;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Write a name within a line, with separators replaced. */
static void write_name(struct report_sink *sink, const char *name)
{
	for (; *name != '\0'; name++) {
		const unsigned char c = (unsigned char)*name;

		*report_sink_room(sink) = c == ';' ? ':' : c < 0x20 || c == 0x7f ? ' ' : (char)c;
		sink->used++;
	}
}

static void write_node(struct folded *folded, size_t at)
{
	size_t names[DEPTH_MOST + 1], count = 0;

	if (folded->nodes[at].self_ns <= 0)
		return;
	for (size_t node = at; node != NONE; node = folded->nodes[node].parent)
		names[count++] = node;
	while (count > 0) {
		write_name(&folded->sink, folded->nodes[names[--count]].name);
		report_sink_text(&folded->sink, count > 0 ? ";" : " ");
	}
	report_sink_int(&folded->sink, folded->nodes[at].self_ns);
	report_sink_text(&folded->sink, "\n");
	folded->lines++;
}

static enum status write_all(struct folded *folded, struct err *err)
{
	const struct report_walk_callbacks callbacks = {enter_span, NULL, folded};
	struct report_walk *walk = &folded->walk;
	enum status status = ST_OK;

	for (int i = 0; i < walk->track_count && status == ST_OK; i++) {
		if (!report_walk_selects_track(walk, &walk->tracks[i]))
			continue;
		status = get_node(folded, NONE, walk->tracks[i].track, &folded->track, err);
		if (status == ST_OK)
			status = report_walk_spans(walk, &walk->tracks[i], &callbacks, err);
	}
	for (size_t i = 0; i < folded->count && status == ST_OK; i++)
		write_node(folded, i);
	return status;
}

static enum status report_result(const struct folded *folded, const char *path, struct err *err)
{
	char lines[FMT_SIZE], spans[FMT_SIZE];
	struct str what = {0};
	enum status status;

	str_addf(&what, "%s stack%s of %s span%s", fmt_count(lines, folded->lines),
		 folded->lines == 1 ? "" : "s", fmt_count(spans, folded->walk.counts.spans),
		 folded->walk.counts.spans == 1 ? "" : "s");
	status = what.failed
			 ? err_nomem(err)
			 : report_walk_print_result(&folded->walk, path, str_peek(&what), "", err);
	str_free(&what);
	return status;
}

enum status report_export_folded(const struct report_export_request *request, const char *path,
				 struct err *err)
{
	struct folded folded = {.request = request};
	enum status status = report_walk_open(&folded.walk, request, err);

	if (status == ST_OK)
		status = report_sites_read(&folded.sites, request->db, err);
	if (status == ST_OK)
		status = report_sink_open(&folded.sink, path, err);
	if (status == ST_OK)
		status = report_sink_close(&folded.sink, write_all(&folded, err));
	if (status == ST_OK)
		status = report_result(&folded, path, err);
	for (int i = 0; i < REPORT_WALK_LANES; i++)
		mem_free(folded.paths[i].nodes);
	mem_free(folded.nodes);
	map_fini(&folded.map);
	report_sites_free(&folded.sites);
	report_walk_close(&folded.walk);
	return status;
}
