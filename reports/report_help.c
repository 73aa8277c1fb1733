/*
 * The manual page's section of the reports, from their definitions.
 *
 * Threading: none. Ownership: the text lives for one call.
 */
#include "reports/report_help.h"

#include "common/str.h"
#include "reports/named/report_named.h"

static void help_entry(const struct report_entry *entry, struct str *text)
{
	char by[256];

	str_addf(text, "%s: %s.", entry->name, entry->usage);
	if (entry->run == report_run_named) {
		report_named_groupings((const struct report_named *)entry, by, sizeof(by));
		str_addf(text, "%s%s%s", *by ? " Groupings (--by): " : "", by, *by ? "." : "");
	}
	str_add(text, "\n\n");
}

bool report_help(const struct cli_command *command, int argc, char **argv, FILE *out)
{
	struct cli_command described = *command;
	const struct report_entry *entry;
	struct str details = {0};
	enum report_group group;
	bool shown;

	str_add(&details, "REPORTS\n");
	for (int i = 0; (entry = report_entry_at(i, &group)) && group == REPORT_GROUP_REPORTS; i++)
		help_entry(entry, &details);
	str_add(&details, command->details);
	if (!details.failed)
		described.details = str_peek(&details);
	shown = cli_standard(&described, argc, argv, out);
	str_free(&details);
	return shown;
}
