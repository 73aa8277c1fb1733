/*
 * ipu-report: print what a run recorded, as text, CSV or JSON.
 */
#include "common/cli.h"
#include "profiler/prof_db.h"
#include "reports/report_verbs.h"

int main(int argc, char **argv)
{
	prof_db_limit_memory();
	return cli_main("ipu-report", report_command, argc, argv);
}
