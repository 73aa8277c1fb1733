/*
 * Windows that slide over an image, as convolutions and pools have them: how their options are
 * read, and how many there are. No state.
 *
 * Sizes are TensorFlow's (tf.nn.convolution, tf.nn.pool): a window that reaches r pixels far has
 * (size - r) / stride + 1 places with "valid"; with "same" it has ceil(size / stride), and
 * max((places - 1) stride + r - size, 0) pixels outside of the image, the smaller half of them
 * before.
 */
#ifndef LAYER_WINDOW_H
#define LAYER_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "common/json.h"

enum {
	LAYER_Y,
	LAYER_X,
	LAYER_WAYS
};

/* One whole number for both, or a list of two; each @least to @most. */
enum status layer__pair(const struct json_at *at, int64_t least, int64_t most, int64_t out[2],
			struct err *err);
/* An option of height and width; @absent where it is not given (0: it must be). */
enum status layer__pair_option(const struct json_at *config, const char *key, int64_t least,
			       int64_t most, int64_t absent, int64_t out[LAYER_WAYS],
			       struct err *err);
/* "padding": is it "same"? Absent, it is "valid". */
enum status layer__padding(const struct json_at *config, bool *same, struct err *err);

/* How many places a window has along a side of @size, 0: it does not fit; @before is what the first
 * has outside of the image. */
int64_t layer__windows(int64_t size, int64_t reach, int64_t stride, bool same, int64_t *before);

#endif /* LAYER_WINDOW_H */
