/*
 * view_make FILE [UPDATES]: write the viewer's test recording, for scripts.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/view_fixture.h"

int main(int argc, char **argv)
{
	if (argc < 2) {
		fputs("usage: view_make FILE [UPDATES]\n", stderr);
		return 2;
	}
	return view_fixture_write(argv[1], argc > 2 ? atoi(argv[2]) : 0) ? 0 : 1;
}
