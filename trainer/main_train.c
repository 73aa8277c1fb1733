/*
 * The entry point of ipu-train.
 */
#include "common/cli.h"
#include "trainer/train_command.h"

int main(int argc, char **argv)
{
	return cli_main("ipu-train", train_command, argc, argv);
}
