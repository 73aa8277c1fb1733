/*
 * The table of styles, and the palette.
 *
 * Threading: constant data. Ownership: none.
 */
#include "viewer/draw/view_style.h"

#include <assert.h>

#include "common/mem.h"

static const struct view_style_info {
	short dark256[2], light256[2], dark16[2], light[2], dark8[2]; /* text, ground */
	const char *attributes, *mono;
} view_styles[] = {
#define VIEW_STYLE_ROW(name, d, dg, l, lg, d16, dg16, b, bg, d8, dg8, attributes, mono)            \
	[VIEW_##name] = {{d, dg}, {l, lg}, {d16, dg16}, {b, bg}, {d8, dg8}, attributes, mono},
	VIEW_STYLE_MAP(VIEW_STYLE_ROW)
#undef VIEW_STYLE_ROW
};
_Static_assert(ARRAY_LEN(view_styles) == VIEW_STYLES, "style table out of step");
/* Terminals with 256 colours may support only 256 pairs, and the first one is fixed. */
_Static_assert(VIEW_STYLES_ALL < 256, "more styles than pairs of colours");
_Static_assert(VIEW_STYLES < 64, "more roles than a terminal with 8 colours has pairs");

/* From low to high: increasing contrast with the background. */
static const short view_heat_ramp[][VIEW_HEAT_STEPS] = {
	[VIEW_DARK] = {17, 18, 54, 90, 126, 162, 197, 203, 209, 215, 221, 228},
	[VIEW_LIGHT] = {254, 223, 216, 209, 203, 197, 161, 125, 89, 53, 17, 16},
};

static struct view_paint view_pair_paint(unsigned style, enum view_theme theme)
{
	const short *ramp = view_heat_ramp[theme];
	struct view_paint out = {-1, -1, ""};

	if (style >= VIEW_SERIES_PAIR) {
		const unsigned pair = style - VIEW_SERIES_PAIR;

		out = view_style_paint(VIEW_SERIES_1 + pair / VIEW_SERIES, theme, 256);
		out.ground = view_style_paint(VIEW_SERIES_1 + pair % VIEW_SERIES, theme, 256).text;
	} else if (style >= VIEW_HEAT_HALF) {
		out.text = ramp[style - VIEW_HEAT_HALF];
	} else {
		out.text = ramp[(style - VIEW_HEAT_PAIR) / VIEW_HEAT_STEPS];
		out.ground = ramp[(style - VIEW_HEAT_PAIR) % VIEW_HEAT_STEPS];
	}
	return out;
}

struct view_paint view_style_paint(unsigned style, enum view_theme theme, int colours)
{
	const struct view_style_info *info;
	const short *form;

	assert(style < VIEW_STYLES_ALL);
	if (style >= VIEW_STYLES)
		return view_pair_paint(style, theme);
	info = &view_styles[style];
	if (colours < 8)
		return (struct view_paint){-1, -1, info->mono};
	if (colours >= 256)
		form = theme == VIEW_LIGHT ? info->light256 : info->dark256;
	else if (theme == VIEW_LIGHT)
		form = info->light;
	else
		form = colours >= 16 ? info->dark16 : info->dark8;
	return (struct view_paint){form[0], form[1], info->attributes};
}

uint32_t view_palette(int colour, enum view_theme theme, bool text)
{
	static const uint32_t first[] = {0x000000, 0x800000, 0x008000, 0x808000, 0x000080, 0x800080,
					 0x008080, 0xc0c0c0, 0x808080, 0xff0000, 0x00ff00, 0xffff00,
					 0x0000ff, 0xff00ff, 0x00ffff, 0xffffff};
	static const uint8_t levels[] = {0, 95, 135, 175, 215, 255};
	uint32_t level;

	assert(colour >= -1 && colour < 256);
	if (colour < 0 && theme == VIEW_LIGHT)
		return text ? 0x1c1c1c : 0xffffff;
	if (colour < 0)
		return text ? 0xd0d0d0 : 0x121212;
	if (colour < 16)
		return first[colour];
	if (colour >= 232) {
		level = 8u + 10u * (uint32_t)(colour - 232);
		return level << 16 | level << 8 | level;
	}
	colour -= 16;
	return (uint32_t)levels[colour / 36] << 16 | (uint32_t)levels[colour / 6 % 6] << 8 |
	       levels[colour % 6];
}
