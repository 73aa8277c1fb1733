/*
 * ipu-monitor: the simulated IPUs and who has them.
 */
#include "reports/report_monitor.h"

int main(int argc, char **argv)
{
	return report_monitor_command(argc, argv);
}
