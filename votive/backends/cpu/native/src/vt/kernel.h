// How a kernel file offers its kernels by name, and dispatch from run-time to compile-time types.
#pragma once
#include "parallel.h"
#include "scratch.h"
#include "view.h"

namespace vt {

// Kernels by name; nullptr when there is none.
KernelFn find_kernel(const std::string& name);
void add_kernel(const char* name, KernelFn fn);

struct Registration {
  Registration(const char* name, KernelFn fn) { add_kernel(name, fn); }
};

// VT_KERNEL(softmax) { ... } defines and registers `void softmax(Call& c)`.
#define VT_KERNEL(name)                                        \
  static void kernel_##name(::vt::Call& c);                    \
  static ::vt::Registration register_##name(#name, kernel_##name); \
  static void kernel_##name([[maybe_unused]] ::vt::Call& c)

template <class T> struct Type { using type = T; };

[[noreturn]] inline void no_dtype(const char* what) {
  throw ValueError(std::string(what) + ": this kernel was not built for the given dtype");
}

// Calls f(Type<T>{}) with T the element type of `d`, among those named.
template <class F> void for_floats(const char* what, Dtype d, F&& f) {
  switch (d) {
    case Dtype::f32: return f(Type<float>{});
    case Dtype::f64: return f(Type<double>{});
    case Dtype::f16: return f(Type<f16>{});
    case Dtype::bf16: return f(Type<bf16>{});
    default: no_dtype(what);
  }
}

template <class F> void for_ints(const char* what, Dtype d, F&& f) {
  switch (d) {
    case Dtype::i8: return f(Type<int8_t>{});
    case Dtype::i16: return f(Type<int16_t>{});
    case Dtype::i32: return f(Type<int32_t>{});
    case Dtype::i64: return f(Type<int64_t>{});
    case Dtype::u8: return f(Type<uint8_t>{});
    default: no_dtype(what);
  }
}

// Floats and the usual integers and bool: what most kernels that compare or move by value need.
template <class F> void for_reals(const char* what, Dtype d, F&& f) {
  switch (d) {
    case Dtype::f32: case Dtype::f64: case Dtype::f16: case Dtype::bf16: return for_floats(what, d, f);
    case Dtype::b1: return f(Type<bool>{});
    default: return for_ints(what, d, f);
  }
}

// Index tensors.
template <class F> void for_index(const char* what, Dtype d, F&& f) {
  switch (d) {
    case Dtype::i32: return f(Type<int32_t>{});
    case Dtype::i64: return f(Type<int64_t>{});
    default: no_dtype(what);
  }
}

// By size only, for kernels that move elements without looking at them.
struct Bytes16 { uint64_t lo, hi; };
template <class F> void for_sizes(Dtype d, F&& f) {
  switch (itemsize(d)) {
    case 1: return f(Type<uint8_t>{});
    case 2: return f(Type<uint16_t>{});
    case 4: return f(Type<uint32_t>{});
    case 8: return f(Type<uint64_t>{});
    default: return f(Type<Bytes16>{});
  }
}

}  // namespace vt
