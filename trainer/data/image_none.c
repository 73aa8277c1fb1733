/*
 * Replaces image.c in a build without libpng and libjpeg: rejects images with a hint.
 */
#include "trainer/data/image.h"

enum status image_usable(const char *name, struct err *err)
{
	return err_set(err, ST_UNSUPPORTED,
		       "%s: needs libpng and libjpeg, which this ipuscope was built without: build "
		       "it with libpng-dev and libjpeg-dev, or keep the images as an .npz file",
		       name);
}

enum status image_decode(struct image *out, bool gray, const char *name, const void *bytes,
			 size_t length, struct err *err)
{
	(void)gray;
	(void)bytes;
	(void)length;
	*out = (struct image){0};
	return image_usable(name, err);
}
