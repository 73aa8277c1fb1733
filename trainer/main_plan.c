/*
 * The entry point of ipu-plan. It links the trainer because some questions about a run need its
 * data sets.
 */
#include "common/cli.h"
#include "model/plan/plan_command.h"
#include "trainer/train_job.h"

static int command(int argc, char **argv)
{
	return plan_command(argc, argv, &train_plan);
}

int main(int argc, char **argv)
{
	return cli_main("ipu-plan", command, argc, argv);
}
