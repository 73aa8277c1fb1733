/*
 * Replays a corpus through a fuzz target, in every run of the tests and without libFuzzer: each
 * file as it is, cut at some places, and with some bytes changed, the same ones every time. Files
 * that the fuzzer has found are such changes already, and are replayed as they are. Where bytes
 * are no format but draws (runs that are trained, keys), one is worth the other: of a cut and two
 * changes at a place a sample (support_stride()) has one, in turn.
 *
 *	tests_fuzz TARGET FOLDER...
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "support/support.h"

/* modules_list.h is generated: MODULE(fuzz_x) for each target, whose LLVMFuzzerTestOneInput() is
 * compiled as main_fuzz_x(). */
#define MODULE(name) int main_##name(const uint8_t *data, size_t size);
#include "modules_list.h"
#undef MODULE
#define MODULE(name) {#name, main_##name},

typedef int target_fn(const uint8_t *data, size_t size);

static const struct {
	const char *name;
	target_fn *target;
} targets[] = {
#include "modules_list.h"
};

/* Cuts and changes for each file; sanitizers take several times as long. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PLACES 12
#else
#define PLACES 64
#endif

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
static void run(target_fn *target, const uint8_t *bytes, size_t length, size_t change, uint8_t with)
{
	uint8_t *copy = malloc(length ? length : 1);

	if (!copy)
		return;
	memcpy(copy, bytes, length);
	if (change < length)
		copy[change] ^= with;
	target(copy, length);
	free(copy);
}

/* libFuzzer names a file by the SHA-1 of its bytes. */
static bool was_found(const char *name)
{
	return strlen(name) == 40 && strspn(name, "0123456789abcdef") == 40;
}

static bool draws(const char *name)
{
	return strcmp(name, "fuzz_training") == 0 || strcmp(name, "fuzz_view_keys") == 0;
}

static void replay(target_fn *target, const uint8_t *bytes, size_t length, bool as_it_is, bool all)
{
	static unsigned turn; /* goes on from file to file */
	size_t step = length / PLACES + 1;

	run(target, bytes, length, length, 0);
	for (size_t at = 0; at < length && !as_it_is; at += step, turn++) {
		if (all || turn % 3 == 0)
			run(target, bytes, at, at, 0);
		if (all || turn % 3 == 1)
			run(target, bytes, length, at, 0xff);
		if (all || turn % 3 == 2)
			run(target, bytes, length, at, 0x01);
	}
	turn++;
}

int main(int argc, char **argv)
{
	const bool all = support_stride() == 1 || argc < 2 || !draws(argv[1]);
	target_fn *target = NULL;
	int files = 0;

	for (size_t i = 0; argc > 1 && i < ARRAY_LEN(targets); i++)
		if (!strcmp(argv[1], targets[i].name))
			target = targets[i].target;
	for (int i = 2; target && i < argc; i++) {
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
			replay(target, bytes, length, was_found(entry->d_name), all);
			free(bytes);
			files++;
		}
		if (folder)
			closedir(folder);
	}
	printf("%d files replayed\n", files);
	return files ? 0 : 1;
}
