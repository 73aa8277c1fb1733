/*
 * A build without libhdf5: refuse Keras's HDF5 files, with the alternatives.
 */
#include "trainer/models/keras_hdf5.h"

enum status keras_hdf5_usable(const char *name, struct err *err)
{
	return err_set(err, ST_UNSUPPORTED,
		       "%s: needs libhdf5, which this ipuscope was built without: build it with "
		       "libhdf5-dev, or keep the model as to_json() and the weights as .npz",
		       name);
}

struct apart keras_hdf5_reading(const char *name, size_t length)
{
	(void)length;
	return (struct apart){.name = name, .status = ST_FORMAT, .crash = "is not read"};
}

enum status keras_hdf5_check(const char *name, const void *bytes, size_t length, struct err *err)
{
	(void)bytes;
	(void)length;
	return keras_hdf5_usable(name, err);
}

enum status keras_hdf5_config(char **out, const char *name, const void *bytes, size_t length,
			      struct err *err)
{
	(void)bytes;
	(void)length;
	*out = NULL;
	return keras_hdf5_usable(name, err);
}

enum status keras_hdf5_open(struct weights_source *out, const struct model *model, const char *name,
			    const void *bytes, size_t length, bool by_name, struct err *err)
{
	(void)model;
	(void)bytes;
	(void)length;
	(void)by_name;
	*out = (struct weights_source){0};
	return keras_hdf5_usable(name, err);
}

enum status keras_hdf5_write(char **out, size_t *length, const struct model *model,
			     const float *weights, enum keras_layout layout, const char *config,
			     const char *name, struct err *err)
{
	(void)model;
	(void)weights;
	(void)layout;
	(void)config;
	*out = NULL;
	*length = 0;
	return keras_hdf5_usable(name, err);
}
