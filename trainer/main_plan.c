#include "trainer/plan_command.h"

int main(int argc, char **argv)
{
	return plan_command(argc, argv);
}
