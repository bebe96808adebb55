// What views and indexes share.
#pragma once
#include "api.h"
#include "object.h"

namespace vt {

// How a plan's result looks.
struct Window {
  std::unique_ptr<OutSpec, ClearSpec> out;
};
PyTypeObject* window_type();

bool set(PyObject* o, PyObject* name, PyObject* v);

// A tensor that looks at the memory of x from element `by` on, known to its base (given back in `base`).
// `step` says how it came from x: a plan, or (name of an operator, arguments...). nullptr with an error
// set, or without one when x's array does not show where its memory is.
PyObject* bare_view(const OutSpec& o, Py_ssize_t by, PyObject* x, PyObject* step, PyObject** base);

// Records a view, or views, of x; false with an error set.
bool record_view(PyObject* plan, PyObject* x, PyObject* base, PyObject* out);

}  // namespace vt
