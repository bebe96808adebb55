// Basic indexes and pieces along a dimension as views, without a plan for each position.
#include "views.h"

#include "device.h"
#include "operator.h"

namespace vt {
namespace {

PyObject* mode;
PyObject *windows, *describe;  // (spec, what an index asks for) -> Window, and the function that makes one
PyObject* zero;

constexpr Py_ssize_t WINDOWS = 4096;

// The sizes of what a tensor's data shows. False: nothing is there, or too many dimensions.
struct Sizes {
  int ndim = 0;
  Py_ssize_t of[16];

  bool read(PyObject* data) {
    if (PyArray_Check(data)) {
      auto* a = reinterpret_cast<PyArrayObject*>(data);
      if (PyArray_SIZE(a) == 0 || PyArray_NDIM(a) > 16) return false;
      for (ndim = 0; ndim < PyArray_NDIM(a); ++ndim) of[ndim] = PyArray_DIM(a, ndim);
      return true;
    }
    if (!is_device_view(data)) return false;
    PyObject* shape = PyObject_GetAttr(view_spec.get(data), name::shape);
    if (shape == nullptr) PyErr_Clear();
    bool ok = shape != nullptr && PyTuple_Check(shape) && PyTuple_GET_SIZE(shape) <= 16;
    for (Py_ssize_t d = 0; ok && d < PyTuple_GET_SIZE(shape); ++d) {
      of[d] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, d));
      ok = of[d] > 0;
      ndim = int(d) + 1;
    }
    Py_XDECREF(shape);
    return ok;
  }
};

// What an index asks for along one dimension of x, or of a new one.
struct Part {
  enum Kind { pick, range, fresh } kind;
  Py_ssize_t start, length, step;
};

// The window of these parts on a tensor of this spec; borrowed. nullptr with an error set.
PyObject* window_of(PyObject* spec, const Part* parts, int n) {
  Py_ssize_t words[3 * 32];
  Py_ssize_t m = 0;
  for (int k = 0; k < n; ++k) {
    words[m++] = parts[k].kind;
    if (parts[k].kind == Part::range) {
      words[m++] = parts[k].length;
      words[m++] = parts[k].step;
    }
  }
  PyObject* text = PyBytes_FromStringAndSize(reinterpret_cast<const char*>(words), m * Py_ssize_t(sizeof(Py_ssize_t)));
  if (text == nullptr) return nullptr;
  PyObject* key = PyTuple_New(2);
  PyTuple_SET_ITEM(key, 0, Py_NewRef(spec));
  PyTuple_SET_ITEM(key, 1, text);
  PyObject* found = PyDict_GetItemWithError(windows, key);
  if (found == nullptr && !PyErr_Occurred()) {
    PyObject* index = PyTuple_New(n);
    for (int k = 0; k < n; ++k) {
      const Part& p = parts[k];
      PyTuple_SET_ITEM(index, k,
                       p.kind == Part::pick    ? Py_NewRef(zero)
                       : p.kind == Part::fresh ? Py_NewRef(Py_None)
                                               : Py_BuildValue("(inn)", 0, p.length * p.step, p.step));
    }
    PyObject* made = PyObject_CallFunctionObjArgs(describe, spec, index, nullptr);
    Py_DECREF(index);
    if (made != nullptr) {
      if (PyDict_GET_SIZE(windows) >= WINDOWS) PyDict_Clear(windows);
      if (PyDict_SetItem(windows, key, made) == 0) found = made;
      Py_DECREF(made);  // the table has it
    }
  }
  Py_DECREF(key);
  return found;
}

bool read_slice(PyObject* v, Py_ssize_t size, Part& p) {
  auto* s = reinterpret_cast<PySliceObject*>(v);
  for (PyObject* end : {s->start, s->stop, s->step})
    if (end != Py_None && !PyLong_CheckExact(end)) return false;
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(v, &start, &stop, &step) < 0) {
    PyErr_Clear();
    return false;
  }
  if (step <= 0) return false;
  p = {Part::range, 0, PySlice_AdjustIndices(size, &start, &stop, step), step};
  p.start = start;
  return p.length > 0;
}

bool read_pick(PyObject* v, Py_ssize_t size, Part& p) {
  Py_ssize_t i = PyLong_AsSsize_t(v);
  if (i == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  if (i < -size || i >= size) return false;
  p = {Part::pick, i < 0 ? i + size : i, 1, 1};
  return true;
}

// Elements from the first of x to the first of the window; the parts name the dimensions in order.
bool shift_of(PyObject* spec, const Part* parts, int n, Py_ssize_t* shift) {
  PyObject* strides = PyObject_GetAttr(spec, name::strides);
  if (strides == nullptr) return false;
  Py_ssize_t d = 0;
  *shift = 0;
  for (int k = 0; k < n; ++k) {
    if (parts[k].kind == Part::fresh) continue;
    if (parts[k].start) *shift += parts[k].start * PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, d));
    ++d;
  }
  Py_DECREF(strides);
  return true;
}

// How the view came about, for those who must make it again: along one dimension.
PyObject* step_along(int dim, const Part& p) {
  const bool pick = p.kind == Part::pick;
  PyObject* step = PyTuple_New(pick ? 3 : 5);
  PyTuple_SET_ITEM(step, 0, Py_NewRef(pick ? name::select : name::_slice));
  PyTuple_SET_ITEM(step, 1, PyLong_FromLong(dim));
  PyTuple_SET_ITEM(step, 2, PyLong_FromSsize_t(p.start));
  if (!pick) {
    PyTuple_SET_ITEM(step, 3, PyLong_FromSsize_t(p.start + p.length * p.step));
    PyTuple_SET_ITEM(step, 4, PyLong_FromSsize_t(p.step));
  }
  return step;
}

PyObject* step_of(const Part* parts, int n, bool whole) {
  if (!whole) return step_along(0, parts[0]);
  PyObject* index = PyTuple_New(n);
  for (int k = 0; k < n; ++k) {
    const Part& p = parts[k];
    PyTuple_SET_ITEM(index, k,
                     p.kind == Part::pick    ? PyLong_FromSsize_t(p.start)
                     : p.kind == Part::fresh ? Py_NewRef(Py_None)
                                             : Py_BuildValue("(nnn)", p.start, p.start + p.length * p.step, p.step));
  }
  PyObject* step = PyTuple_Pack(2, name::_window, index);
  Py_DECREF(index);
  return step;
}

}  // namespace

// x[index] for integers, slices, None and Ellipsis when nothing is recorded: no plan per position.
// 1 done, 0 unusual, -1 error.
int item_usual(PyObject* x, PyObject* index, PyObject** result) {
  if (windows == nullptr) return 0;
  const bool single = PyLong_CheckExact(index) || PySlice_Check(index);
  if (!single && !PyTuple_CheckExact(index)) return 0;
  const int grad = flag(mode, name::grad);
  if (grad < 0) return -1;
  if (grad && requires_grad(x)) return 0;
  PyObject *data = tensor_data.get(x), *spec = tensor_spec.get(x);
  Sizes sizes;
  bool ok = data != nullptr && spec != nullptr && sizes.read(data);
  const int ndim = sizes.ndim;
  Part parts[32];
  int n = 0, d = 0;
  ok = ok && ndim > 0;
  if (ok && single) {
    ok = PyLong_CheckExact(index) ? read_pick(index, sizes.of[0], parts[0]) : read_slice(index, sizes.of[0], parts[0]);
    n = d = 1;
  } else if (ok) {
    const Py_ssize_t count = PyTuple_GET_SIZE(index);
    Py_ssize_t used = 0;
    int dots = 0;
    ok = count <= 14;
    for (Py_ssize_t k = 0; ok && k < count; ++k) {
      PyObject* v = PyTuple_GET_ITEM(index, k);
      if (PyLong_CheckExact(v) || PySlice_Check(v)) ++used;
      else if (v == Py_Ellipsis) ++dots;
      else ok = v == Py_None;
    }
    ok = ok && dots <= 1 && used <= ndim;
    for (Py_ssize_t k = 0; ok && k < count; ++k) {
      PyObject* v = PyTuple_GET_ITEM(index, k);
      if (v == Py_None) parts[n++] = {Part::fresh, 0, 1, 1};
      else if (v == Py_Ellipsis) {
        for (Py_ssize_t j = used; j < ndim; ++j, ++d) parts[n++] = {Part::range, 0, sizes.of[d], 1};
      } else {
        ok = PyLong_CheckExact(v) ? read_pick(v, sizes.of[d], parts[n]) : read_slice(v, sizes.of[d], parts[n]);
        ++n, ++d;
      }
    }
  }
  for (; ok && d < ndim; ++d) parts[n++] = {Part::range, 0, sizes.of[d], 1};
  if (!ok) return 0;
  Py_ssize_t by;
  PyObject* win = window_of(spec, parts, n);
  if (win == nullptr || !shift_of(spec, parts, n, &by)) return -1;
  Py_INCREF(win);
  PyObject *step = step_of(parts, n, !single), *base = nullptr;
  PyObject* out = step == nullptr ? nullptr : bare_view(*unbox<Window>(win).out, by, x, step, &base);
  Py_DECREF(win);
  Py_XDECREF(step);
  Py_XDECREF(base);
  if (out != nullptr && !grad && !set(out, name::_no_grad_view, Py_True)) Py_CLEAR(out);
  *result = out;
  return out != nullptr ? 1 : PyErr_Occurred() ? -1 : 0;
}

namespace {

// cut(x, dim, bounds, plan): the ranges (start, end) of a dimension, or its single elements when bounds is
// a number of them, as views that share the node of `plan`. None when Python must do it.
PyObject* cut(PyObject*, PyObject* const* args, Py_ssize_t n_args) {
  if (n_args != 4 || !is_tensor(args[0])) Py_RETURN_NONE;
  PyObject *x = args[0], *bounds = args[2], *plan = args[3];
  const int grad = flag(mode, name::grad);
  if (grad < 0) return nullptr;
  const bool wants = requires_grad(x);
  PyObject *data = tensor_data.get(x), *spec = tensor_spec.get(x);
  Sizes sizes;
  const bool usual = !unusual && data != nullptr && spec != nullptr && sizes.read(data);
  const int ndim = usual ? sizes.ndim : 0;
  const int dim = int(PyLong_AsLong(args[1]));
  Part parts[32];
  for (int d = 0; d < ndim; ++d) parts[d] = {Part::range, 0, sizes.of[d], 1};
  if (!usual || dim < 0 || dim >= ndim) Py_RETURN_NONE;
  const bool single = PyLong_CheckExact(bounds);
  const Py_ssize_t count = single ? PyLong_AsSsize_t(bounds) : PyTuple_GET_SIZE(bounds);
  PyObject *out = PyTuple_New(count), *base = nullptr;
  // How far one step along the dimension leads.
  Py_ssize_t stride = 0;
  parts[dim].start = 1;
  PyObject* win = nullptr;
  bool ok = shift_of(spec, parts, ndim, &stride);
  for (Py_ssize_t k = 0; ok && k < count; ++k) {
    Part p{Part::pick, k, 1, 1};
    if (!single) {
      PyObject* pair = PyTuple_GET_ITEM(bounds, k);
      const Py_ssize_t b = PyLong_AsSsize_t(PyTuple_GET_ITEM(pair, 0)), e = PyLong_AsSsize_t(PyTuple_GET_ITEM(pair, 1));
      p = {Part::range, b, e - b, 1};
      if (e <= b) {  // an empty piece has no memory to look at
        ok = false;
        break;
      }
    }
    if (win == nullptr || p.length != parts[dim].length) {
      parts[dim] = p;
      Py_XDECREF(win);
      win = window_of(spec, parts, ndim);
      Py_XINCREF(win);
    }
    PyObject *step = win == nullptr ? nullptr : step_along(dim, p), *view = nullptr;
    Py_CLEAR(base);
    if (step != nullptr) view = bare_view(*unbox<Window>(win).out, p.start * stride, x, step, &base);
    Py_XDECREF(step);
    if (view != nullptr && !grad && !set(view, name::_no_grad_view, Py_True)) Py_CLEAR(view);
    ok = view != nullptr;
    if (ok) PyTuple_SET_ITEM(out, k, view);
  }
  Py_XDECREF(win);
  if (!ok) Py_CLEAR(out);
  if (out != nullptr && grad && wants && count > 0 && !record_view(plan, x, base, out)) Py_CLEAR(out);
  Py_XDECREF(base);
  if (out == nullptr && !PyErr_Occurred()) Py_RETURN_NONE;
  return out;
}

}  // namespace

PyObject* cut_function() {
  static PyMethodDef def = {"cut", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(cut)), METH_FASTCALL,
                            "cut(x, dim, bounds, plan): views of pieces along a dimension, or None."};
  return PyCFunction_New(&def, nullptr);
}

void install_windows(PyObject* mode_, PyObject* table, PyObject* make) {
  mode = Py_NewRef(mode_);
  windows = Py_NewRef(table);
  describe = Py_NewRef(make);
  zero = PyLong_FromLong(0);
}

}  // namespace vt
