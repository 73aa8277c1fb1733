/*
 * Backups: fields of any sizes behind a digest, which is made to fit, since it stops nobody.
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "fuzz_target.h"
#include "trainer/data/snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct snapshot *snapshot;
	uint8_t *bytes = malloc(size + 1);
	int64_t number = 0;
	uint64_t digest;
	char field[16];
	struct err err;

	if (!bytes)
		return 0;
	if (size > 0)
		memcpy(bytes, data, size);
	if (size > sizeof(digest)) {
		digest = XXH3_64bits(bytes, size - sizeof(digest));
		memcpy(bytes + size - sizeof(digest), &digest, sizeof(digest));
	}
	if (snapshot_parse(&snapshot, "fuzz", bytes, size, &err) == ST_OK) {
		const char *text = snapshot_text(snapshot, "text", NULL);

		if (text)
			number = (int64_t)strlen(text);
		snapshot_integer(snapshot, "number", &number, 0, 9);
		snapshot_field(snapshot, "values", field, sizeof(field));
		snapshot_close(snapshot);
	}
	free(bytes);
	return 0;
}
