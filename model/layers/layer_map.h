/*
 * The kinds of layers, a row each: the internal name, Keras's name, and how it computes.
 *
 * The row `dense` has struct layer_ops layer_dense in layer_dense.c here, and struct compute_ops
 * compute_dense in trainer/layers/compute_dense.c. Several kinds may share a compute_ops; `none` is
 * for layers that only pass their input through.
 */
#ifndef LAYER_MAP_H
#define LAYER_MAP_H

#define LAYER_MAP(X)                                                                               \
	X(activation, "Activation", activation)                                                    \
	X(add, "Add", add)                                                                         \
	X(alpha_dropout, "AlphaDropout", noise)                                                    \
	X(attention, "Attention", attention)                                                       \
	X(average, "Average", average)                                                             \
	X(average_pooling1d, "AveragePooling1D", average_pooling2d)                                \
	X(average_pooling2d, "AveragePooling2D", average_pooling2d)                                \
	X(batch_normalization, "BatchNormalization", batch_normalization)                          \
	X(center_crop, "CenterCrop", sampling)                                                     \
	X(concatenate, "Concatenate", concatenate)                                                 \
	X(conv1d, "Conv1D", conv2d)                                                                \
	X(conv1d_transpose, "Conv1DTranspose", conv2d_transpose)                                   \
	X(conv2d, "Conv2D", conv2d)                                                                \
	X(conv2d_transpose, "Conv2DTranspose", conv2d_transpose)                                   \
	X(cropping1d, "Cropping1D", rearrange)                                                     \
	X(cropping2d, "Cropping2D", rearrange)                                                     \
	X(dense, "Dense", dense)                                                                   \
	X(depthwise_conv1d, "DepthwiseConv1D", depthwise_conv2d)                                   \
	X(depthwise_conv2d, "DepthwiseConv2D", depthwise_conv2d)                                   \
	X(dropout, "Dropout", dropout)                                                             \
	X(elu, "ELU", relu)                                                                        \
	X(embedding, "Embedding", embedding)                                                       \
	X(flatten, "Flatten", none)                                                                \
	X(gaussian_dropout, "GaussianDropout", noise)                                              \
	X(gaussian_noise, "GaussianNoise", noise)                                                  \
	X(global_average_pooling1d, "GlobalAveragePooling1D", global_average_pooling2d)            \
	X(global_average_pooling2d, "GlobalAveragePooling2D", global_average_pooling2d)            \
	X(global_max_pooling1d, "GlobalMaxPooling1D", global_max_pooling2d)                        \
	X(global_max_pooling2d, "GlobalMaxPooling2D", global_max_pooling2d)                        \
	X(group_normalization, "GroupNormalization", group_normalization)                          \
	X(gru, "GRU", recurrent)                                                                   \
	X(input, "InputLayer", rearrange)                                                          \
	X(layer_normalization, "LayerNormalization", layer_normalization)                          \
	X(leaky_relu, "LeakyReLU", relu)                                                           \
	X(lstm, "LSTM", recurrent)                                                                 \
	X(masking, "Masking", masking)                                                             \
	X(maximum, "Maximum", merge)                                                               \
	X(max_pooling1d, "MaxPooling1D", max_pooling2d)                                            \
	X(max_pooling2d, "MaxPooling2D", max_pooling2d)                                            \
	X(maybe_outfeed, "MaybeOutfeed", none)                                                     \
	X(minimum, "Minimum", merge)                                                               \
	X(multi_head_attention, "MultiHeadAttention", attention)                                   \
	X(multiply, "Multiply", merge)                                                             \
	X(normalization, "Normalization", normalization)                                           \
	X(outfeed, "Outfeed", none)                                                                \
	X(p_relu, "PReLU", p_relu)                                                                 \
	X(permute, "Permute", rearrange)                                                           \
	X(position_embedding, "PositionEmbedding", position_embedding)                             \
	X(random_crop, "RandomCrop", sampling)                                                     \
	X(random_flip, "RandomFlip", sampling)                                                     \
	X(random_rotation, "RandomRotation", sampling)                                             \
	X(random_translation, "RandomTranslation", sampling)                                       \
	X(random_zoom, "RandomZoom", sampling)                                                     \
	X(relu, "ReLU", relu)                                                                      \
	X(repeat_vector, "RepeatVector", rearrange)                                                \
	X(rescaling, "Rescaling", rescaling)                                                       \
	X(reshape, "Reshape", none)                                                                \
	X(resizing, "Resizing", sampling)                                                          \
	X(separable_conv1d, "SeparableConv1D", separable_conv2d)                                   \
	X(separable_conv2d, "SeparableConv2D", separable_conv2d)                                   \
	X(simple_rnn, "SimpleRNN", recurrent)                                                      \
	X(softmax, "Softmax", activation)                                                          \
	X(spatial_dropout1d, "SpatialDropout1D", dropout)                                          \
	X(spatial_dropout2d, "SpatialDropout2D", dropout)                                          \
	X(subtract, "Subtract", subtract)                                                          \
	X(up_sampling1d, "UpSampling1D", rearrange)                                                \
	X(up_sampling2d, "UpSampling2D", sampling)                                                 \
	X(zero_padding1d, "ZeroPadding1D", zero_padding2d)                                         \
	X(zero_padding2d, "ZeroPadding2D", zero_padding2d)

#endif /* LAYER_MAP_H */
