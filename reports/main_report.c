/*
 * ipu-report: what a run recorded, as text, CSV or JSON.
 */
#include <signal.h>

#include "common/cli.h"
#include "reports/report_command.h"

int main(int argc, char **argv)
{
	/* A file that may grow no further is an error to tell and to clear up after, as a full disk
	 * is. */
	signal(SIGXFSZ, SIG_IGN);
	return cli_finish("ipu-report", report_command(argc, argv));
}
