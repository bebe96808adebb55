// Products of batches of matrices.
#include "vt/gemm.h"
#include "vt/kernel.h"

namespace vt {
namespace {

VT_KERNEL(matmul) {
  const View &a = c.view(0), &b = c.view(1), &out = c.view(2);
  const auto go = [&](auto t) {
    using T = decltype(t);
    gemm(a.size(0), b.size(1), a.size(1), Matrix<const T>{a.as<T>(), a.stride(0), a.stride(1)},
         Matrix<const T>{b.as<T>(), b.stride(0), b.stride(1)}, Matrix<T>{out.as<T>(), out.stride(0), out.stride(1)});
  };
  if (a.dtype == Dtype::f32) go(0.0f);
  else go(0.0);
}

}  // namespace
}  // namespace vt
