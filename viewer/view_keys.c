/*
 * The table of requests, and lookups by request and by key.
 *
 * Threading: constant data. Ownership: none.
 */
#include "viewer/view_keys.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "viewer/draw/view_canvas.h"

static const struct view_request_info view_table[] = {
	[VIEW_NONE] = {.name = "NONE", .group = "", .bar = "", .help = ""},
#define VIEW_REQUEST_ROW(request, where, what, key1, key2, key3, in_bar, text)                     \
	[VIEW_##request##_REQUEST] = {.name = #request,                                            \
				      .screens = where,                                            \
				      .group = what,                                               \
				      .keys = {key1, key2, key3},                                  \
				      .bar = in_bar,                                               \
				      .help = text},
	VIEW_REQUEST_MAP(VIEW_REQUEST_ROW)
#undef VIEW_REQUEST_ROW
};
_Static_assert(ARRAY_LEN(view_table) == VIEW_REQUESTS, "request table out of step");

static const struct {
	uint32_t key;
	const char *name;
} view_key_names[] = {
	{VIEW_KEY_TAB, "Tab"},
	{VIEW_KEY_ENTER, "Enter"},
	{VIEW_KEY_ESCAPE, "Esc"},
	{VIEW_KEY_BACKSPACE, "Backspace"},
	{VIEW_KEY_UP, "Up"},
	{VIEW_KEY_DOWN, "Down"},
	{VIEW_KEY_LEFT, "Left"},
	{VIEW_KEY_RIGHT, "Right"},
	{VIEW_KEY_SHIFT_LEFT, "Shift-Left"},
	{VIEW_KEY_SHIFT_RIGHT, "Shift-Right"},
	{VIEW_KEY_PAGE_UP, "PgUp"},
	{VIEW_KEY_PAGE_DOWN, "PgDn"},
	{VIEW_KEY_HOME, "Home"},
	{VIEW_KEY_END, "End"},
	{VIEW_KEY_BACK_TAB, "Shift-Tab"},
	{VIEW_KEY_DELETE, "Del"},
	{VIEW_KEY_F1, "F1"},
	{VIEW_KEY_F3, "F3"},
	{VIEW_KEY_F4, "F4"},
	{VIEW_KEY_F5, "F5"},
	{VIEW_KEY_F6, "F6"},
	{VIEW_KEY_F10, "F10"},
	{VIEW_KEY_WHEEL_UP, "wheel up"},
	{VIEW_KEY_WHEEL_DOWN, "wheel down"},
	{' ', "Space"},
};

const struct view_request_info *view_request_info(enum view_request request)
{
	assert(request < VIEW_REQUESTS);
	return &view_table[request];
}

enum view_request view_request_of(uint32_t key)
{
	if (key == VIEW_KEY_NONE)
		return VIEW_NONE;
	if (key == '\n')
		key = VIEW_KEY_ENTER;
	for (int request = VIEW_NONE + 1; request < VIEW_REQUESTS; request++)
		for (int i = 0; i < VIEW_KEYS_EACH; i++)
			if (view_table[request].keys[i] == key)
				return (enum view_request)request;
	return VIEW_NONE;
}

int view_next_choice(int at, int count, enum view_request request)
{
	const bool back =
		request == VIEW_VIEW_BACK_REQUEST || request == VIEW_STATISTIC_BACK_REQUEST ||
		request == VIEW_SORT_BACK_REQUEST || request == VIEW_PREVIOUS_SCREEN_REQUEST;

	return (at + (back ? count - 1 : 1)) % count;
}

bool view_list_move(int64_t *at, enum view_request request, int64_t page, int64_t count)
{
	switch (request) {
	case VIEW_UP_REQUEST:
	case VIEW_DOWN_REQUEST:
		*at += request == VIEW_UP_REQUEST ? -1 : 1;
		return true;
	case VIEW_PAGE_UP_REQUEST:
	case VIEW_PAGE_DOWN_REQUEST:
		*at += request == VIEW_PAGE_UP_REQUEST ? -page : page;
		return true;
	case VIEW_HOME_REQUEST:
	case VIEW_END_REQUEST:
		*at = request == VIEW_HOME_REQUEST ? 0 : count - 1;
		return true;
	default:
		return false;
	}
}

void view_search_match(struct view_search *search, int64_t at)
{
	search->hits++;
	search->first = search->first < 0 ? at : search->first;
	search->last = at;
	if (search->forward ? at > search->from && search->found < 0 : at < search->from) {
		search->found = at;
		search->hit = search->hits;
	}
}

int64_t view_search_end(const struct view_search *search, int64_t *hit, int64_t *hits)
{
	*hits = search->hits;
	*hit = search->found >= 0 ? search->hit : search->forward ? *hits > 0 : *hits;
	if (search->found >= 0)
		return search->found;
	return search->forward ? search->first : search->last;
}

const char *view_key_name(uint32_t key, char out[VIEW_KEY_NAME_SIZE])
{
	for (size_t i = 0; i < ARRAY_LEN(view_key_names); i++)
		if (view_key_names[i].key == key) {
			str_copy(out, VIEW_KEY_NAME_SIZE, view_key_names[i].name);
			return out;
		}
	if (key < ' ')
		snprintf(out, VIEW_KEY_NAME_SIZE, "Ctrl-%c", (int)(key + '@'));
	else
		view_encode(key, out);
	return out;
}

const char *view_key_list(enum view_request request, char out[VIEW_KEY_LIST_SIZE])
{
	char name[VIEW_KEY_NAME_SIZE];
	size_t length = 0;

	out[0] = '\0';
	for (int i = 0; i < VIEW_KEYS_EACH; i++) {
		if (!view_table[request].keys[i])
			continue;
		length += (size_t)snprintf(out + length, VIEW_KEY_LIST_SIZE - length, "%s%s",
					   length ? " " : "",
					   view_key_name(view_table[request].keys[i], name));
		if (length >= VIEW_KEY_LIST_SIZE)
			break;
	}
	return out;
}

void view_keys_manual(struct str *out)
{
	char keys[VIEW_KEY_LIST_SIZE];
	const char *group = "";

	str_add(out, "KEYS\n");
	for (int request = VIEW_NONE + 1; request < VIEW_REQUESTS; request++) {
		const struct view_request_info *info = &view_table[request];

		if (strcmp(group, info->group) != 0)
			str_addf(out, "%s%s.\n\n", group[0] ? "\n" : "", info->group);
		if (strcmp(group, info->group) != 0 && strcmp(info->group, VIEW_SCREENS_GROUP) == 0)
			str_add(out, VIEW_SCREEN_KEYS " - " VIEW_SCREEN_KEYS_HELP ".\n\n");
		group = info->group;
		str_addf(out, "%s - %s.\n\n", view_key_list((enum view_request)request, keys),
			 info->help);
	}
}
