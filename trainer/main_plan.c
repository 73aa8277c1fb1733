/*
 * The entry of the command ipu-plan.
 */
#include "common/cli.h"
#include "trainer/plan_command.h"

int main(int argc, char **argv)
{
	return cli_finish("ipu-plan", plan_command(argc, argv));
}
