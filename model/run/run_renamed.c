/*
 * Names that users bring along from other versions, as a run file or the command line tells of
 * them.
 *
 * Threading: no state.
 */
#include <stdio.h>

#include "model/model_legacy.h"
#include "model/run/run_internal.h"

bool run__renamed_text(const char *name, char *out, size_t size)
{
	const struct model_legacy_option *row = model_legacy_option(name);

	if (!row)
		return false;

	switch (row->kind) {
	case MODEL_LEGACY_PLACE:
		snprintf(out, size, "is \"%s\" in a run file", row->what);
		break;
	case MODEL_LEGACY_REMOVED:
		snprintf(out, size, "was removed after TensorFlow 2.1: %s", row->what);
		break;
	case MODEL_LEGACY_REFUSED:
		snprintf(out, size, "cannot be given for a Keras model: %s", row->what);
		break;
	}
	return true;
}
