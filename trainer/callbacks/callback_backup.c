/*
 * BackupAndRestore: the options of Keras's callback. The training loop makes the backups itself
 * after calling all callbacks, since their state is part of a backup.
 */
#include <stddef.h>

#include "common/mem.h"
#include "trainer/callbacks/callback.h"

#define AT(member) .offset = offsetof(struct callback_backup, member)

static const struct callback_option backup_options[] = {
	{"backup_dir", CALLBACK_TEXT, AT(folder)},
	{"save_freq", CALLBACK_FREQUENCY, AT(every)},
	{"delete_checkpoint", CALLBACK_BOOL, AT(deletes), .number = true},
	{"double_checkpoint", .kind = CALLBACK_FALSE},
	{"save_before_preemption", .kind = CALLBACK_FALSE},
	{"name", .kind = CALLBACK_IGNORED},
};

static void backup_read(struct callback *callback, const struct json_at *config, struct err *err)
{
	const struct callback_backup *backup = callback->state;

	if (!backup->folder || !backup->folder[0])
		json_fail(config, err, "\"backup_dir\" is missing");
}

const struct callback_ops callback_backup_and_restore = {
	.class_name = "BackupAndRestore",
	.writes = true,
	.size = sizeof(struct callback_backup),
	.options = backup_options,
	.option_count = ARRAY_LEN(backup_options),
	.read = backup_read,
};

const struct callback_backup *callbacks_backup(const struct callbacks *callbacks)
{
	for (int i = 0; i < callbacks->count; i++)
		if (callbacks->items[i].ops == &callback_backup_and_restore)
			return callbacks->items[i].state;
	return NULL;
}
