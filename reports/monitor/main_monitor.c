/*
 * ipu-monitor: the simulated IPUs and who has them.
 */
#include "common/cli.h"
#include "reports/monitor/report_monitor.h"

int main(int argc, char **argv)
{
	return cli_finish("ipu-monitor", report_monitor_command(argc, argv));
}
