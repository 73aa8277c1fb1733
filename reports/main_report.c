/*
 * ipu-report: what a run recorded, as text, CSV or JSON.
 */
#include "reports/report_command.h"

int main(int argc, char **argv)
{
	return report_command(argc, argv);
}
