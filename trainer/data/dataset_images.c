/*
 * Folders of images by class, as Keras's image_dataset_from_directory() reads them. Images are
 * decoded (see dataset_decoder.c) once at the start and cached. If they do not fit the memory, they
 * are decoded whenever a feed needs them.
 *
 * Threading: several threads decode files; each writes its own item.
 */
#include "trainer/data/dataset_internal.h"

#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "common/fmt.h"
#include "common/mem.h"
#include "common/minmax.h"
#include "common/pool.h"
#include "trainer/data/image.h"

#define IMAGES_ROUND 256 /* files decoded between two checks for errors */

struct image_round {
	const struct dataset_decoder *decoder;
	uint8_t *bytes;    /* of all items */
	uint64_t *digests; /* of all files */
	int64_t first;
	struct err errors[IMAGES_ROUND];
};

static bool is_image(const char *name)
{
	static const char *const ends[] = {".png", ".jpg", ".jpeg", ".PNG", ".JPG", ".JPEG"};
	const size_t length = strlen(name);

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		const size_t end = strlen(ends[i]);

		if (length > end && !strcmp(name + length - end, ends[i]))
			return true;
	}
	return false;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void decode_item(void *context, unsigned slice)
{
	struct image_round *round = context;
	const int64_t item = round->first + slice;

	round->errors[slice] = (struct err){ST_OK, ""};
	dataset__decode(round->decoder, item,
			round->bytes + item * dataset__decoder_bytes(round->decoder),
			&round->errors[slice]);
}

static void digest_item(void *context, unsigned slice)
{
	struct image_round *round = context;
	const int64_t item = round->first + slice;
	struct err *err = &round->errors[slice];
	size_t length;
	char *bytes;

	*err = (struct err){ST_OK, ""};
	if (fs_read(round->decoder->paths[item], DATASET_FILE_LIMIT, &bytes, &length, err) == ST_OK)
		round->digests[item] = XXH3_64bits(bytes, length);
	mem_free(bytes);
}

/* Call @work for each item of @given. Reports the first file in order that fails, for any number of
 * threads. */
static void for_all(const struct image_round *given, void (*work)(void *context, unsigned slice),
		    const struct dataset_params *params, struct pool *pool, struct err *err)
{
	const struct dataset_decoder *decoder = given->decoder;
	struct image_round *round = mem_calloc(1, sizeof(*round));

	if (!round) {
		err_nomem(err);
		return;
	}
	*round = *given;
	while (!err_stuck(err) && round->first < decoder->count) {
		const int64_t left = decoder->count - round->first;
		const unsigned count = (unsigned)min(left, (int64_t)IMAGES_ROUND);

		if (params->progress)
			params->progress(params->user, round->first, decoder->count);
		pool_run(pool, work, round, count);
		for (unsigned i = 0; i < count && !err_stuck(err); i++)
			if (err_stuck(&round->errors[i]))
				*err = round->errors[i];
		round->first += count;
	}
	if (params->progress)
		params->progress(params->user, round->first, decoder->count);
	mem_free(round);
}

/* Digest of the files' names below @folder and of what is in them or, unless @params->identify,
 * their sizes: independent of caching. */
static uint64_t digest_files(const struct dataset_decoder *decoder, const char *folder,
			     const struct dataset_params *params, struct pool *pool,
			     struct err *err)
{
	uint64_t *digests = mem_calloc((size_t)decoder->count, sizeof(*digests)), digest = 1;
	const struct image_round round = {.decoder = decoder, .digests = digests};

	if (!digests) {
		err_nomem(err);
		return 0;
	}
	if (params->identify)
		for_all(&round, digest_item, params, pool, err);
	for (int64_t i = 0; i < decoder->count; i++) {
		const char *name = decoder->paths[i] + strlen(folder);
		struct stat file = {0};

		if (!params->identify && !stat(decoder->paths[i], &file))
			digests[i] = (uint64_t)file.st_size;
		digest = XXH3_64bits_withSeed(name, strlen(name), digest);
		digest = XXH3_64bits_withSeed(&digests[i], sizeof(digests[i]), digest);
	}
	mem_free(digests);
	return digest;
}

/* Allocate the cache only if the machine has that much memory available. */
static uint8_t *allocate_cache(const struct dataset_decoder *decoder, struct err *err)
{
	const int64_t bytes = decoder->count * dataset__decoder_bytes(decoder);
	const int64_t have = mem_available();
	char need_text[FMT_SIZE], have_text[FMT_SIZE];
	uint8_t *memory;

	if (bytes > have) {
		err_set(err, ST_LIMIT,
			"data.cache_bytes: %lld images of %lld x %lld pixels take %s of memory and "
			"this machine has %s: leave the key out, and they are decoded as they are "
			"needed; or data.resize makes them smaller, data.limit takes fewer",
			(long long)decoder->count, (long long)decoder->height,
			(long long)decoder->width, fmt_bytes(need_text, (uint64_t)bytes),
			fmt_bytes(have_text, (uint64_t)have));
		return NULL;
	}
	memory = mem_calloc((size_t)decoder->count, (size_t)dataset__decoder_bytes(decoder));
	if (!memory)
		err_nomem(err);
	return memory;
}

/* *@cache: bytes that may still be cached. */
static void open_part(struct dataset *out, const struct dataset_folder *folder,
		      struct dataset_files *files, const struct dataset_params *params,
		      struct pool *pool, int64_t *cache, struct err *err)
{
	struct dataset_array array = {.type = DATASET_U8, .ndim = 4};
	struct dataset_decoder *decoder = dataset__decoder_new(files, params, err);
	struct image_round round = {.decoder = decoder};
	uint64_t digest = 0;
	bool later;

	if (err_stuck(err)) {
		dataset__decoder_free(decoder);
		return;
	}
	array.dim[0] = decoder->count;
	array.dim[1] = decoder->height;
	array.dim[2] = decoder->width;
	array.dim[3] = decoder->channels;
	later = params->shapes || decoder->count * dataset__decoder_bytes(decoder) > *cache;
	if (!later) {
		*cache -= decoder->count * dataset__decoder_bytes(decoder);
		array.bytes = allocate_cache(decoder, err);
	}
	round.bytes = array.bytes;
	if (array.bytes)
		for_all(&round, decode_item, params, pool, err);
	if (!err_stuck(err))
		digest = digest_files(decoder, files->folder, params, pool, err);
	dataset__folder_join(out, folder, files, "images", 0, &array, err);
	if (!err_stuck(err)) {
		out->files_digest = digest;
		if (later)
			dataset__decode_later(out, decoder);
	}
	if (err_stuck(err) || !later)
		dataset__decoder_free(decoder);
}

void dataset__images_open(const struct dataset_opening *o)
{
	static const struct dataset_wanted wanted = {is_image, "*.png, *.jpg or *.jpeg"};
	const struct dataset_params *params = o->params;
	const unsigned threads = params->threads ? params->threads : pool_processors();
	int64_t cache = params->cache_bytes ? params->cache_bytes : mem_available() / 2;
	struct dataset_folder folder = {0};
	struct pool *pool = NULL;

	if (!o->path)
		err_set(o->err, ST_INVALID,
			"data set \"%s\": which images? Give a folder with a folder of PNG and "
			"JPEG files for each class with --data.path FOLDER",
			o->known->name);
	else if (image_usable(o->path, o->err) == ST_OK)
		dataset__folder_list(&folder, params, &wanted, o->err);
	if (!err_stuck(o->err) && !params->shapes)
		pool_new(&pool, threads - 1, o->err);
	for (int i = 0; i < 2 && !err_stuck(o->err); i++)
		if (folder.parts[i].count > 0)
			open_part(o->parts[i], &folder, &folder.parts[i], params, pool, &cache,
				  o->err);
	pool_free(pool);
	dataset__folder_free(&folder);
}
