// Matrix products.
#include "vt/gemm.h"

#include "vt/parallel.h"

namespace vt {

template <class S, class T>
static void plain(int64_t M, int64_t N, int64_t K, Matrix<const S> A, Matrix<const S> B, Matrix<T> C, bool accumulate) {
  parallel_for(M, grain_for(N * K), [&](int64_t begin, int64_t end) {
    for (int64_t m = begin; m < end; ++m)
      for (int64_t n = 0; n < N; ++n) {
        T sum = accumulate ? C.data[m * C.row + n * C.col] : T(0);
        for (int64_t k = 0; k < K; ++k)
          sum += convert<T>(A.data[m * A.row + k * A.col]) * convert<T>(B.data[k * B.row + n * B.col]);
        C.data[m * C.row + n * C.col] = sum;
      }
  });
}

void gemm(int64_t M, int64_t N, int64_t K, Matrix<const float> A, Matrix<const float> B, Matrix<float> C, bool accumulate) {
  plain(M, N, K, A, B, C, accumulate);
}
void gemm(int64_t M, int64_t N, int64_t K, Matrix<const double> A, Matrix<const double> B, Matrix<double> C, bool accumulate) {
  plain(M, N, K, A, B, C, accumulate);
}
void gemm(int64_t M, int64_t N, int64_t K, Matrix<const bf16> A, Matrix<const bf16> B, Matrix<float> C, bool accumulate) {
  plain(M, N, K, A, B, C, accumulate);
}
void gemm(int64_t M, int64_t N, int64_t K, Matrix<const f16> A, Matrix<const f16> B, Matrix<float> C, bool accumulate) {
  plain(M, N, K, A, B, C, accumulate);
}

}  // namespace vt
