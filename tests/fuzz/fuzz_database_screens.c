/*
 * A damaged database through the screens of ipu-view: the first byte chooses one, the second says
 * how many of the bytes after it are keys.
 */
#include "common/mem.h"
#include "fuzz_target.h"
#include "support/damaged_database.h"
#include "viewer/view_session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct view_session session;
	static const uint32_t keys[] = {VIEW_KEY_DOWN,
					VIEW_KEY_UP,
					VIEW_KEY_LEFT,
					VIEW_KEY_RIGHT,
					VIEW_KEY_ENTER,
					VIEW_KEY_TAB,
					VIEW_KEY_PAGE_DOWN,
					VIEW_KEY_PAGE_UP,
					VIEW_KEY_ESCAPE,
					VIEW_KEY_END,
					'b',
					's',
					'+',
					'o',
					'>',
					'n'}; /* none that writes a file */
	size_t presses;
	const char *path;

	if (size < 2)
		return 0;
	presses = data[1] % 16;
	presses = presses < size - 2 ? presses : size - 2;
	path = damaged_database(data + 2 + presses, size - 2 - presses);
	if (!path || view_session_open(&session, path, NULL, false, NULL) != ST_OK)
		return 0;
	view_session_show(&session, (enum view_screen)(data[0] % VIEW_SCREENS));
	view_session_size(&session, 100, 30, NULL);
	view_session_draw(&session);
	for (size_t i = 0; i < presses && !session.quit; i++) {
		view_session_key(&session, keys[data[2 + i] % ARRAY_LEN(keys)]);
		view_session_draw(&session);
	}
	view_session_close(&session);
	return 0;
}
