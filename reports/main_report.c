/*
 * ipu-report: print what a run recorded, as text, CSV or JSON.
 */
#include <signal.h>

#include "common/cli.h"
#include "reports/report_command.h"

int main(int argc, char **argv)
{
	/* A write beyond the file size limit must fail with EFBIG, like a full disk, instead of
	 * killing the process: then the error is reported and the partial file removed. */
	signal(SIGXFSZ, SIG_IGN);
	return cli_finish("ipu-report", report_command(argc, argv));
}
