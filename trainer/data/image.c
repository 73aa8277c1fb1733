/*
 * Decodes PNG with libpng and JPEG with libjpeg(-turbo), from memory to memory.
 *
 * Both libraries longjmp() on an error, so data that must survive is in a struct owned by the
 * caller of the function that calls setjmp(). Sizes are checked before memory is allocated for
 * them.
 *
 * Threading: see image.h.
 */
#include "trainer/data/image.h"

#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
/* Needs the types of jpeglib.h. */
#include <jerror.h>

#include "common/mem.h"
#include "common/minmax.h"

#define JPEG_SCANS_MOST 100 /* of a progressive file: each scan visits the whole image */
#define PNG_CHUNK_MOST  ((size_t)1 << 23)

struct reader {
	struct image *out;
	bool gray;
	const char *name;
	const uint8_t *at;
	size_t left;
	struct err *err;
	int passes; /* remaining passes of a PNG; one for each level of an interlaced one */
	size_t row; /* bytes of a row */
	jmp_buf leave;
};

static bool start_image(struct reader *reader, uint64_t height, uint64_t width)
{
	if (height == 0 || width == 0 || height > IMAGE_SIDE_MOST || width > IMAGE_SIDE_MOST ||
	    height * width > IMAGE_PIXELS_MOST) {
		err_set(reader->err, ST_LIMIT,
			"%s: says that it has %llu x %llu pixels; sides are from 1 to %d, and %d "
			"pixels are read at most",
			reader->name, (unsigned long long)width, (unsigned long long)height,
			IMAGE_SIDE_MOST, IMAGE_PIXELS_MOST);
		return false;
	}
	reader->out->height = (int64_t)height;
	reader->out->width = (int64_t)width;
	return true;
}

static bool start_pixels(struct reader *reader, int channels)
{
	struct image *out = reader->out;

	out->channels = channels;
	out->bytes = mem_calloc((size_t)(out->height * out->width), (size_t)channels);
	if (!out->bytes)
		err_nomem(reader->err);
	return out->bytes != NULL;
}

/* ---- PNG ------------------------------------------------------------------------------------- */

static void png_leave(png_structp png, png_const_charp text)
{
	struct reader *reader = png_get_error_ptr(png);

	if (!err_stuck(reader->err))
		err_set(reader->err, ST_FORMAT, "%s: is a damaged PNG: %s", reader->name, text);
	longjmp(reader->leave, 1);
}

static void png_ignore(png_structp png, png_const_charp text)
{
	(void)png;
	(void)text;
}

static void png_next(png_structp png, png_bytep out, png_size_t size)
{
	struct reader *reader = png_get_io_ptr(png);

	if (size > reader->left)
		png_error(png, "the file ends early");
	memcpy(out, reader->at, size);
	reader->at += size;
	reader->left -= size;
}

static void png_decode(struct reader *reader, png_structp png, png_infop info)
{
	struct image *out = reader->out;

	if (setjmp(reader->leave))
		return;
	/* Disable libpng's limits on sides: start_image() reports larger images. */
	png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
	png_set_chunk_malloc_max(png, PNG_CHUNK_MOST);
	png_set_read_fn(png, reader, png_next);
	png_read_info(png, info);
	if (!start_image(reader, png_get_image_height(png, info), png_get_image_width(png, info)))
		return;
	png_set_expand(png);
	png_set_strip_16(png);
	png_set_strip_alpha(png);
	reader->passes = png_set_interlace_handling(png);
	png_read_update_info(png, info);
	reader->row = png_get_rowbytes(png, info);
	if (!start_pixels(reader, png_get_channels(png, info)))
		return;
	if (reader->row != (size_t)(out->width * out->channels))
		png_error(png, "its rows have another length than its header says");
	for (; reader->passes > 0; reader->passes--)
		for (int64_t y = 0; y < out->height; y++)
			png_read_row(png, out->bytes + (size_t)y * reader->row, NULL);
	png_read_end(png, NULL);
}

static void read_png(struct reader *reader)
{
	png_structp png =
		png_create_read_struct(PNG_LIBPNG_VER_STRING, reader, png_leave, png_ignore);
	png_infop info = png ? png_create_info_struct(png) : NULL;

	if (info)
		png_decode(reader, png, info);
	else
		err_nomem(reader->err);
	png_destroy_read_struct(&png, &info, NULL);
}

/* ---- JPEG ------------------------------------------------------------------------------------ */

struct jpeg_reader {
	struct jpeg_decompress_struct jpeg;
	struct jpeg_error_mgr error;
	struct jpeg_progress_mgr progress;
	struct reader *reader;
};

static void jpeg_leave(j_common_ptr jpeg)
{
	struct reader *reader = ((struct jpeg_reader *)jpeg->client_data)->reader;
	char text[JMSG_LENGTH_MAX];

	jpeg->err->format_message(jpeg, text);
	if (!err_stuck(reader->err))
		err_set(reader->err, ST_FORMAT, "%s: is a damaged JPEG: %s", reader->name, text);
	longjmp(reader->leave, 1);
}

/* Treat warnings as errors: what a library substitutes for missing data depends on the library.
 * Extraneous bytes between two segments, which some cameras write, are harmless. */
static void jpeg_message(j_common_ptr jpeg, int level)
{
	if (level < 0 && jpeg->err->msg_code != JWRN_EXTRANEOUS_DATA)
		jpeg_leave(jpeg);
}

static void jpeg_step(j_common_ptr jpeg)
{
	struct jpeg_reader *from = jpeg->client_data;

	if (from->jpeg.input_scan_number <= JPEG_SCANS_MOST)
		return;
	err_set(from->reader->err, ST_LIMIT, "%s: has more than %d scans of the whole image",
		from->reader->name, JPEG_SCANS_MOST);
	longjmp(from->reader->leave, 1);
}

static void jpeg_decode(struct jpeg_reader *from)
{
	struct jpeg_decompress_struct *jpeg = &from->jpeg;
	struct reader *reader = from->reader;
	struct image *out = reader->out;

	if (setjmp(reader->leave))
		return;
	jpeg_create_decompress(jpeg);
	jpeg->progress = &from->progress;
	jpeg_mem_src(jpeg, reader->at, reader->left);
	jpeg_read_header(jpeg, TRUE);
	if (jpeg->num_components != 1 && jpeg->num_components != 3) {
		err_set(reader->err, ST_UNSUPPORTED,
			"%s: is a JPEG of %d components (CMYK, for printing): save it as RGB",
			reader->name, jpeg->num_components);
		return;
	}
	if (!start_image(reader, jpeg->image_height, jpeg->image_width) ||
	    !start_pixels(reader, reader->gray ? 1 : jpeg->num_components))
		return;
	jpeg->out_color_space = out->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
	jpeg->dct_method = JDCT_ISLOW;
	jpeg->do_fancy_upsampling = FALSE;
	jpeg->do_block_smoothing = FALSE;
	jpeg_start_decompress(jpeg);
	while (jpeg->output_scanline < jpeg->output_height) {
		JSAMPROW row = out->bytes + (size_t)jpeg->output_scanline * (size_t)out->width *
						    (size_t)out->channels;

		jpeg_read_scanlines(jpeg, &row, 1);
	}
	jpeg_finish_decompress(jpeg);
}

static void read_jpeg(struct reader *reader)
{
	struct jpeg_reader from = {.reader = reader};

	from.jpeg.err = jpeg_std_error(&from.error);
	from.jpeg.client_data = &from;
	from.error.error_exit = jpeg_leave;
	from.error.emit_message = jpeg_message;
	from.progress.progress_monitor = jpeg_step;
	jpeg_decode(&from);
	jpeg_destroy_decompress(&from.jpeg);
}

/* ---- both formats ---------------------------------------------------------------------------- */

/* Convert three channels to one, in place, or one to three. */
static enum status change_channels(struct image *image, int channels, struct err *err)
{
	const size_t count = (size_t)image->height * (size_t)image->width;
	uint8_t *to = image->bytes;

	if (image->channels == channels)
		return ST_OK;
	if (channels == 3)
		to = mem_resize(NULL, count, 3);
	if (!to)
		return err_nomem(err);
	for (size_t i = 0; i < count; i++) {
		const uint8_t *from = image->bytes + i * (size_t)image->channels;

		if (channels == 3)
			memset(to + 3 * i, *from, 3);
		else
			to[i] = (uint8_t)((299 * from[0] + 587 * from[1] + 114 * from[2] + 500) /
					  1000);
	}
	if (to != image->bytes)
		mem_free(image->bytes);
	image->bytes = to;
	image->channels = channels;
	return ST_OK;
}

enum status image_usable(const char *name, struct err *err)
{
	(void)name;
	(void)err;
	return ST_OK;
}

enum status image_decode(struct image *out, bool gray, const char *name, const void *bytes,
			 size_t length, struct err *err)
{
	struct reader reader = {
		.out = out, .gray = gray, .name = name, .at = bytes, .left = length};
	struct err own;

	reader.err = err = err_start(err, &own);
	*out = (struct image){0};
	if (length >= 8 && !memcmp(bytes, "\x89PNG\r\n\x1a\n", 8))
		read_png(&reader);
	else if (length >= 3 && !memcmp(bytes, "\xff\xd8\xff", 3))
		read_jpeg(&reader);
	else
		err_set(err, ST_FORMAT, "%s: is neither a PNG nor a JPEG, whatever its name says",
			name);
	if (!err_stuck(err))
		change_channels(out, gray ? 1 : 3, err);
	if (err_stuck(err)) {
		mem_free(out->bytes);
		*out = (struct image){0};
	}
	return err->status;
}
