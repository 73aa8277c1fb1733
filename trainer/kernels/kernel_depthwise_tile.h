/*
 * Depthwise rows for one vector type: included by kernel_conv_BODY.c after kernel_conv_tile.h,
 * whose names it uses. PIXELS pixels by two vectors of channels are accumulated in registers.
 */
INLINE VEC depth_load(const float *p, int count)
{
	return count >= LANES ? vec_load(p) : vec_load_part(p, count);
}

INLINE void depth_store(const struct conv_depth_row *r, VEC sum, int64_t channel, float *c,
			int count)
{
	if (r->finish.bias)
		sum = vec_add(sum, depth_load(r->finish.bias + channel, count));
	if (r->add)
		sum = vec_add(sum, depth_load(c, count));
	if (r->finish.relu)
		sum = vec_min(vec_all(r->finish.most), vec_max(vec_zero(), sum));
	if (count >= LANES)
		vec_store(c, sum);
	else
		vec_store_part(c, sum, count);
}

/* @pixels pixels by @vectors vectors of channels, the last one of @count lanes. */
INLINE void depth_block(const struct conv_depth_row *r, int64_t pixel, int64_t channel, int count,
			const int pixels, const int vectors)
{
	const float *a = r->a + pixel * r->pixel + channel;
	float *c = r->c + pixel * r->c_pixel + channel;
	const int64_t s = r->pixel;
	VEC acc[PIXELS][2];

#pragma GCC unroll 8
	for (int p = 0; p < pixels; p++)
		acc[p][0] = acc[p][1] = vec_zero();
	for (int64_t i = 0; i < r->taps_y; i++) {
		for (int64_t j = 0; j < r->taps_x; j++) {
			const float *w = r->w + i * r->w_y + j * r->w_x + channel;
			const float *x = a + i * r->tap_y + j * r->tap_x;
			VEC w0 = depth_load(w, vectors > 1 ? LANES : count);
			VEC w1 = vectors > 1 ? depth_load(w + LANES, count) : w0;

#pragma GCC unroll 8
			for (int p = 0; p < pixels; p++) {
				acc[p][0] =
					vec_fma(depth_load(x + p * s, vectors > 1 ? LANES : count),
						w0, acc[p][0]);
				if (vectors > 1)
					acc[p][1] = vec_fma(depth_load(x + p * s + LANES, count),
							    w1, acc[p][1]);
			}
		}
	}
#pragma GCC unroll 8
	for (int p = 0; p < pixels; p++) {
		depth_store(r, acc[p][0], channel, c + p * r->c_pixel, vectors > 1 ? LANES : count);
		if (vectors > 1)
			depth_store(r, acc[p][1], channel + LANES, c + p * r->c_pixel + LANES,
				    count);
	}
}

/* All channels of @pixels pixels. */
INLINE void depth_pixels(const struct conv_depth_row *r, int64_t pixel, const int pixels)
{
	int64_t channel = 0;

	for (; channel + PANEL <= r->channels; channel += PANEL)
		depth_block(r, pixel, channel, LANES, pixels, 2);
	if (channel + LANES <= r->channels) {
		depth_block(r, pixel, channel, LANES, pixels, 1);
		channel += LANES;
	}
	if (channel < r->channels)
		depth_block(r, pixel, channel, (int)(r->channels - channel), pixels, 1);
}

static TARGET void conv_depth_row(const struct conv_depth_row *r)
{
	int64_t pixel = 0;

	for (; pixel + PIXELS <= r->pixels; pixel += PIXELS)
		depth_pixels(r, pixel, PIXELS);
	for (; pixel < r->pixels; pixel++)
		depth_pixels(r, pixel, 1);
}

/* sums[taps, filters] += x dy over the row, for @taps adjacent taps. */
INLINE void depth_sum_block(const struct conv_depth_sum *s, const float *x, int64_t f, float *sums,
			    int count, const int taps)
{
	const float *dy = s->dy + f;
	VEC acc[5];

	x += f;
#pragma GCC unroll 5
	for (int t = 0; t < taps; t++)
		acc[t] = depth_load(sums + t * s->filters + f, count);
	for (int64_t p = 0; p < s->pixels; p++) {
		VEC g = depth_load(dy, count);

#pragma GCC unroll 5
		for (int t = 0; t < taps; t++)
			acc[t] = vec_fma(depth_load(x + t * s->tap_x, count), g, acc[t]);
		x += s->pixel;
		dy += s->filters;
	}
#pragma GCC unroll 5
	for (int t = 0; t < taps; t++) {
		if (count >= LANES)
			vec_store(sums + t * s->filters + f, acc[t]);
		else
			vec_store_part(sums + t * s->filters + f, acc[t], count);
	}
}

INLINE void depth_sum_taps(const struct conv_depth_sum *s, const float *x, float *sums,
			   const int taps)
{
	int64_t f = 0;

	for (; f + LANES <= s->filters; f += LANES)
		depth_sum_block(s, x, f, sums, LANES, taps);
	if (f < s->filters)
		depth_sum_block(s, x, f, sums, (int)(s->filters - f), taps);
}

static TARGET void conv_depth_sum(const struct conv_depth_sum *s)
{
	for (int64_t i = 0; i < s->taps_y; i++) {
		const float *x = s->x + i * s->tap_y;
		float *sums = s->sums + i * s->taps_x * s->filters;
		int64_t j = 0;

		for (; j + 5 <= s->taps_x; j += 5)
			depth_sum_taps(s, x + j * s->tap_x, sums + j * s->filters, 5);
		for (; j + 3 <= s->taps_x; j += 3)
			depth_sum_taps(s, x + j * s->tap_x, sums + j * s->filters, 3);
		for (; j < s->taps_x; j++)
			depth_sum_taps(s, x + j * s->tap_x, sums + j * s->filters, 1);
	}
}
