// The codebooks of the IQ formats, as they were printed.
#include "quantized_points.h"

namespace vt::blocks {
#include "codebooks.inc"
}  // namespace vt::blocks
