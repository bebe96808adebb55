// The attribute names that calls look up, kept as Python keeps them.
#pragma once
#include <Python.h>

#define VT_NAMES(X)                                                                                             \
  /* of a Tensor and its storage */                                                                             \
  X(_storage) X(_offset) X(_base) X(_chain) X(_views) X(_remember_view) X(_no_grad_view) X(_seen) X(_rebased)   \
  X(_inference) X(_edge) X(version) X(readonly) X(shape) X(strides)                                             \
  /* of plans, operators and the dispatcher's state */                                                          \
  X(outs) X(window) X(offset) X(op) X(differentiable) X(general) X(_general) X(add) X(apply_general) X(blame)   \
  X(graph) X(record) X(failed) X(grad) X(overridden) X(__torch_function__)                                                                        \
  /* of nodes, what they keep, and the thread's modes */                                                        \
  X(recipes) X(slots) X(carries) X(kept) X(numbers) X(is_out) X(noted) X(special) X(module_path) X(grad_specs)  \
  /* operators that a view may have come from */                                                                \
  X(select) X(_slice) X(_window)

namespace vt {
namespace name {
#define X(n) extern PyObject* n;
VT_NAMES(X)
#undef X
}  // namespace name

void intern_names();

}  // namespace vt
