/*
 * BackupAndRestore: the options of Keras's callback. The training loop makes the backups itself
 * after calling all callbacks, since their state is part of a backup.
 */
#include <string.h>

#include "common/mem.h"
#include "model/model_config.h"
#include "trainer/callbacks/callback.h"

static void backup_read(struct callback *callback, const struct json_at *config, struct err *err)
{
	static const struct model_option options[] = {{"backup_dir", MODEL_ANY},
						      {"save_freq", MODEL_ANY},
						      {"delete_checkpoint", MODEL_ANY},
						      {"double_checkpoint", MODEL_FALSE},
						      {"save_before_preemption", MODEL_FALSE},
						      {"name", MODEL_ANY}};
	struct callback_backup *backup = mem_calloc(1, sizeof(*backup));

	callback->state = backup;
	if (!backup) {
		err_nomem(err);
		return;
	}
	backup->deletes = true;
	model_config_check(config, options, ARRAY_LEN(options), NULL, 0, err);
	callback_read_text(config, "backup_dir", &backup->folder, err);
	if (!err_stuck(err) && (!backup->folder || !backup->folder[0]))
		json_fail(config, err, "\"backup_dir\" is missing");
	callback_read_frequency(config, &backup->every, err);
	model_option_bool(config, "delete_checkpoint", &backup->deletes, err);
}

static void backup_fini(struct callback *callback)
{
	struct callback_backup *backup = callback->state;

	if (backup)
		mem_free(backup->folder);
	mem_free(backup);
}

const struct callback_ops callback_backup_and_restore = {
	.class_name = "BackupAndRestore",
	.writes = true,
	.read = backup_read,
	.fini = backup_fini,
};

const struct callback_backup *callbacks_backup(const struct callbacks *callbacks)
{
	for (int i = 0; i < callbacks->count; i++)
		if (callbacks->items[i].ops == &callback_backup_and_restore)
			return callbacks->items[i].state;
	return NULL;
}
