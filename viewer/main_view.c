/*
 * ipu-view: the terminal viewer of reports.
 */
#include "common/cli.h"
#include "viewer/view_command.h"

int main(int argc, char **argv)
{
	return cli_main("ipu-view", view_command, argc, argv);
}
