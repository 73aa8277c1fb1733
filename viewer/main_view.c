/*
 * ipu-view: the terminal viewer of reports.
 */
#include "common/cli.h"
#include "profiler/prof_db.h"
#include "viewer/view_command.h"

int main(int argc, char **argv)
{
	prof_db_limit_memory();
	return cli_main("ipu-view", view_command, argc, argv);
}
