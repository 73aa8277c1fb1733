#include "trainer/train_command.h"

int main(int argc, char **argv)
{
	return train_command(argc, argv);
}
