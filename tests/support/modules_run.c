/*
 * The program of a room's tests: `tests_ROOM test_x` runs the module test_x, which is the cmocka
 * group of test_x.c. A process runs one module, so that none harms another.
 */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"

/* modules_list.h is generated: MODULE(test_x) for each. */
#define MODULE(name) int main_##name(void);
#include "modules_list.h"
#undef MODULE
#define MODULE(name) {#name, main_##name},

static const struct module {
	const char *name;
	int (*main)(void);
} modules[] = {
#include "modules_list.h"
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < ARRAY_LEN(modules); i++)
		if (!strcmp(argv[1], modules[i].name))
			return modules[i].main();

	fprintf(stderr, "usage: %s MODULE, one of\n", argv[0]);
	for (size_t i = 0; i < ARRAY_LEN(modules); i++)
		fprintf(stderr, "\t%s\n", modules[i].name);
	return 2;
}
