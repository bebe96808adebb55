// Matrix products for kernels: any strides, several element types, float accumulation.
#pragma once
#include <cstdint>

#include "dtype.h"

namespace vt {

// A matrix anywhere in memory; strides in elements.
template <class T> struct Matrix {
  T* data;
  int64_t row, col;
};

// C = A B, or C += A B when `accumulate`, with A of M x K, B of K x N. Uses the pool when it is free
// (inside a parallel region it runs on the calling thread). Narrow inputs are widened while packed.
void gemm(int64_t M, int64_t N, int64_t K, Matrix<const float> A, Matrix<const float> B, Matrix<float> C,
          bool accumulate = false);
void gemm(int64_t M, int64_t N, int64_t K, Matrix<const double> A, Matrix<const double> B, Matrix<double> C,
          bool accumulate = false);
void gemm(int64_t M, int64_t N, int64_t K, Matrix<const bf16> A, Matrix<const bf16> B, Matrix<float> C,
          bool accumulate = false);
void gemm(int64_t M, int64_t N, int64_t K, Matrix<const f16> A, Matrix<const f16> B, Matrix<float> C,
          bool accumulate = false);

}  // namespace vt
