/*
 * BackupAndRestore: the options of Keras's callback. The training loop makes the backups itself
 * after calling all callbacks, since their state is part of a backup.
 */
#include <stddef.h>

#include "common/mem.h"
#include "trainer/callbacks/callback.h"

#define AT(member) .offset = offsetof(struct callback_backup, member)

static const struct model_option backup_options[] = {
	{"backup_dir", MODEL_TEXT, AT(folder)},
	{"save_freq", .rule = MODEL_ANY},
	{"delete_checkpoint", MODEL_BOOL, AT(deletes), .fallback = true},
	{"double_checkpoint", .rule = MODEL_FALSE},
	{"save_before_preemption", .rule = MODEL_FALSE},
	{"name", .rule = MODEL_ANY},
};

static void backup_read(struct callback *callback, const struct json_at *config, struct err *err)
{
	struct callback_backup *backup = callback->state;

	callback_read_frequency(config, &backup->every, err);
	if (!backup->folder || !backup->folder[0])
		json_fail(config, err, "\"backup_dir\" is missing");
}

const struct callback_ops callback_backup_and_restore = {
	.class_name = "BackupAndRestore",
	.writes = true,
	.size = sizeof(struct callback_backup),
	.options = MODEL_OPTIONS(backup_options),
	.read = backup_read,
};

const struct callback_backup *callbacks_backup(const struct callbacks *callbacks)
{
	for (int i = 0; i < callbacks->count; i++)
		if (callbacks->items[i].ops == &callback_backup_and_restore)
			return callbacks->items[i].state;
	return NULL;
}
