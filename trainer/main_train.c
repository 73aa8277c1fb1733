/*
 * The entry point of ipu-train.
 */
#include "common/cli.h"
#include "profiler/prof_db.h"
#include "trainer/train_command.h"

int main(int argc, char **argv)
{
	prof_db_limit_memory();
	return cli_main("ipu-train", train_command, argc, argv);
}
