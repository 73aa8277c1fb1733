/*
 * What RUN --help says of a run file: its description, and its own flags.
 *
 * Threading: none; prints to the stream it is given.
 */
#include <stdio.h>
#include <string.h>

#include "model/run/run_options.h"

/* What a flag sets, one "path = value" a line: its patch down to the keys of the table. */
static enum status run_help_patch(const cJSON *patch, const struct run_key *section, FILE *out,
				  struct err *err)
{
	enum status status = ST_OK;

	for (const cJSON *item = patch->child; item && status == ST_OK; item = item->next) {
		char path[256], *text;
		const struct run_key *key;

		snprintf(path, sizeof(path), "%s%s%s", section ? section->path : "",
			 section ? "." : "", item->string);
		key = run__key_find(path);
		if (key && key->kind == RUN_KEY_SECTION && item->child) {
			status = run_help_patch(item, key, out, err);
			continue;
		}
		text = cJSON_PrintUnformatted(item);
		if (!text)
			return err_nomem(err);
		if (strlen(text) > 60)
			fprintf(out, "      sets %s (see the run file)\n", path);
		else
			fprintf(out, "      sets %s = %s\n", path, text);
		cJSON_free(text);
	}
	return status;
}

/* "--name VALUE", or "--name A|B" with what each sets. */
static enum status run_help_flag(const cJSON *flag, FILE *out)
{
	static const char *const arguments[] = {"", " VALUE", " VALUE..."};
	const cJSON *choices = cJSON_GetObjectItemCaseSensitive(flag, "$choice");
	enum status status = ST_OK;

	fprintf(out, "  %s", flag->string);
	if (!choices) {
		fprintf(out, "%s\n", arguments[run__takes(flag)]);
		return run_help_patch(flag, NULL, out, NULL);
	}
	for (const cJSON *choice = choices->child; choice; choice = choice->next)
		fprintf(out, "%c%s", choice == choices->child ? ' ' : '|', choice->string);
	fputc('\n', out);
	for (const cJSON *choice = choices->child; choice && status == ST_OK;
	     choice = choice->next) {
		if (choice->child)
			fprintf(out, "    %s\n", choice->string);
		status = run_help_patch(choice, NULL, out, NULL);
	}
	return status;
}

enum status run_file_help(const struct run_file *run, FILE *out)
{
	const cJSON *flags = cJSON_GetObjectItemCaseSensitive(run->json, "flags");
	enum status status = ST_OK;

	if (run->description)
		fprintf(out, "%s: %s\n", run->path, run->description);
	if (cJSON_IsObject(flags) && flags->child)
		fprintf(out, "Flags of %s:\n", run->path);
	for (const cJSON *flag = cJSON_IsObject(flags) ? flags->child : NULL;
	     flag && status == ST_OK; flag = flag->next)
		status = run_help_flag(flag, out);
	if (status == ST_OK && ferror(out))
		status = ST_IO;
	return status;
}
