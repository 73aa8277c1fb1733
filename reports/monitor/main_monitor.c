/*
 * ipu-monitor: show the simulated IPUs and the runs attached to them.
 */
#include "common/cli.h"
#include "reports/monitor/report_monitor.h"

int main(int argc, char **argv)
{
	return cli_main("ipu-monitor", report_monitor_command, argc, argv);
}
