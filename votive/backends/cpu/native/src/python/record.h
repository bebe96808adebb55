// Recording of calls for autograd, and what it shares with running them.
#pragma once
#include "api.h"
#include "object.h"

namespace vt {

// An attribute as a truth value: 1, 0, or -1 with an error set.
inline int flag(PyObject* owner, PyObject* name) {
  PyObject* v = PyObject_GetAttr(owner, name);
  if (v == nullptr) return -1;
  const int r = v == Py_True ? 1 : v == Py_False ? 0 : PyObject_IsTrue(v);
  Py_DECREF(v);
  return r;
}

// The slots of a Tensor. Empty ones belong to tensors that are not ready to be computed with.
extern Field tensor_data, tensor_spec, tensor_rg;
bool is_tensor(PyObject* o);
inline bool requires_grad(PyObject* tensor) { return tensor_rg.get(tensor) == Py_True; }
// A tensor over a kernel's result (storage may be None); takes no references.
PyObject* wrap(PyObject* storage, PyObject* data, PyObject* spec);

// Attaches a node to the result (a tensor or a tuple of them) of a plan run on `values`; false with an error set.
bool record(PyObject* plan, PyObject* const* values, Py_ssize_t n, PyObject* out);
// The same: 1 done, 0 unusual: Python must record it, -1 with an error set.
int record_usual(PyObject* plan, PyObject* const* values, Py_ssize_t n, PyObject* out);

// A view of x by a plan: 1 done, 0 unusual: Python must make it, -1 with an error set.
int view_usual(PyObject* plan, PyObject* x, PyObject** result);

}  // namespace vt
