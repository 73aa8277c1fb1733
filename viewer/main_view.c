/*
 * ipu-view: the terminal viewer of reports.
 */
#include "viewer/view_command.h"

int main(int argc, char **argv)
{
	return view_command(argc, argv);
}
