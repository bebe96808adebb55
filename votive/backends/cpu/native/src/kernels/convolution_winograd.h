// 3 x 3 convolution with stride 1 by 16 products instead of 36 per 2 x 2 outputs: Winograd's F(2x2, 3x3),
// Lavin and Gray 2016, "Fast algorithms for convolutional neural networks", section 4.1.
#pragma once
#include "convolution_geometry.h"

namespace vt::conv {

// Whether it saves time: y has M channels from K channels of x.
bool winograd_pays(const Geometry& g, const Image& x, const Image& y, int64_t groups, bool rotated);

// y = x * w + bias. The weight is (M, K, 3, 3), or (K, M, 3, 3) read backwards when `rotated`: the transpose of a
// convolution is one with the kernel rotated. False where a result is not finite: a tile mixes its elements,
// so that one NaN or infinity spreads over all of it, and the convolution has to be made in another way.
bool winograd(const Geometry& g, const Image& x, const Image& y, const float* w, bool rotated, const float* bias);

// The weight's gradient (O, C, 3, 3) from x and the gradient of the output; false likewise.
bool winograd_weight_pays(const Geometry& g, const Image& x, const Image& grad, int64_t groups);
bool winograd_weight(const Geometry& g, const Image& x, const Image& grad, float* out);

}  // namespace vt::conv
