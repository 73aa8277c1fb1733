/*
 * Replays a corpus through a fuzz target, in every run of the tests and without libFuzzer: each
 * file as it is, cut at some places, and with some bytes changed, the same ones every time.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"

#define PLACES 64 /* cuts and changes for each file */

static uint8_t *read_file(const char *path, size_t *length)
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes = NULL;
	long size;

	if (!file)
		return NULL;
	if (!fseek(file, 0, SEEK_END) && (size = ftell(file)) >= 0 && !fseek(file, 0, SEEK_SET)) {
		bytes = malloc((size_t)size + 1);
		*length = bytes ? fread(bytes, 1, (size_t)size, file) : 0;
	}
	fclose(file);
	return bytes;
}

/* A copy of its own for each call, so that a sanitizer sees a step beyond the end. */
static void run(const uint8_t *bytes, size_t length, size_t change, uint8_t with)
{
	uint8_t *copy = malloc(length ? length : 1);

	if (!copy)
		return;
	memcpy(copy, bytes, length);
	if (change < length)
		copy[change] ^= with;
	LLVMFuzzerTestOneInput(copy, length);
	free(copy);
}

static void replay(const uint8_t *bytes, size_t length)
{
	size_t step = length / PLACES + 1;

	run(bytes, length, length, 0);
	for (size_t at = 0; at < length; at += step) {
		run(bytes, at, at, 0);
		run(bytes, length, at, 0xff);
		run(bytes, length, at, 0x01);
	}
}

int main(int argc, char **argv)
{
	int files = 0;

	for (int i = 1; i < argc; i++) {
		DIR *folder = opendir(argv[i]);
		const struct dirent *entry;

		while (folder && (entry = readdir(folder))) {
			char path[4096];
			uint8_t *bytes;
			size_t length = 0;

			if (entry->d_name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "%s/%s", argv[i], entry->d_name);
			bytes = read_file(path, &length);
			if (!bytes)
				continue;
			replay(bytes, length);
			free(bytes);
			files++;
		}
		if (folder)
			closedir(folder);
	}
	printf("%d files replayed\n", files);
	return files ? 0 : 1;
}
