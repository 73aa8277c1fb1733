/*
 * The entry point of ipu-plan. It links the trainer because some questions about a run need its
 * data sets.
 */
#include "common/cli.h"
#include "model/plan/plan_command.h"
#include "trainer/train_plan.h"

int main(int argc, char **argv)
{
	return cli_finish("ipu-plan", plan_command(argc, argv, &train_plan));
}
