// Views: the same memory seen through another spec. The same steps as `_execute_view` in
// dispatch/call.py, and a memory of which plan a call with given arguments led to.
#include "device.h"
#include "record.h"

#include <cstddef>

namespace vt {
namespace {

PyObject *state, *mode, *s_hooks, *s_into, *s_compute, *s_out, *s_data, *s_spec, *s_storage, *s_offset, *s_base,
    *s_chain, *s_views, *s_remember, *s_rg, *s_grad, *s_no_grad_view, *s_seen, *s_rebased, *s_record, *s_graph,
    *s_differentiable, *s_op;

// --- Window: how a plan's result looks ---------------------------------------------------------------

struct Window {
  PyObject_HEAD
  OutSpec* out;
};

PyTypeObject* window() { return window_type(); }

PyObject* window_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* spec;
  if (!PyArg_ParseTuple(args, "O", &spec)) return nullptr;
  auto* out = new OutSpec();
  if (!read_spec(spec, *out)) {
    clear_spec(*out);
    delete out;
    return nullptr;
  }
  auto* self = reinterpret_cast<Window*>(type->tp_alloc(type, 0));
  self->out = out;
  return reinterpret_cast<PyObject*>(self);
}

void window_dealloc(PyObject* me) {
  auto* self = reinterpret_cast<Window*>(me);
  clear_spec(*self->out);
  delete self->out;
  Py_TYPE(me)->tp_free(me);
}

inline bool set(PyObject* o, PyObject* name, PyObject* v) { return PyObject_GenericSetAttr(o, name, v) == 0; }

}  // namespace

namespace {

// A tensor that looks at the memory of x from element `by` on, known to its base (given back in `base`).
// `step` says how it came from x: a plan, or (name of an operator, arguments...). nullptr with an error
// set, or without one when x's array does not show where its memory is.
PyObject* bare_view(const OutSpec& o, Py_ssize_t by, PyObject* x, PyObject* step, PyObject** of) {
  PyObject *data = PyObject_GetAttr(x, s_data), *storage = PyObject_GetAttr(x, s_storage),
           *offset = PyObject_GetAttr(x, s_offset), *base = PyObject_GetAttr(x, s_base),
           *chain = PyObject_GetAttr(x, s_chain);
  PyObject *array = nullptr, *out = nullptr, *longer = nullptr, *made = nullptr;
  if (!data || !storage || !offset || !base || !chain || o.nbytes == 0) goto end;
  if (is_device_view(data)) {
    array = device_part(data, by * PyDataType_ELSIZE(o.descr), o.spec);
    if (array == nullptr) goto end;
  } else {
    auto* a = reinterpret_cast<PyArrayObject*>(data);
    if (!PyArray_Check(data) || PyArray_SIZE(a) == 0) goto end;
    Py_INCREF(o.descr);
    array = PyArray_NewFromDescr(&PyArray_Type, o.descr, o.ndim, o.shape, o.strides,
                                 PyArray_BYTES(a) + by * PyDataType_ELSIZE(o.descr),
                                 PyArray_FLAGS(a) & NPY_ARRAY_WRITEABLE, nullptr);
    if (array == nullptr) goto end;
    // Who owns the memory, not who looks at it: chains of views stay short.
    PyObject* owner = PyArray_BASE(a) != nullptr ? PyArray_BASE(a) : data;
    reinterpret_cast<PyArrayObject_fields*>(array)->base = Py_NewRef(owner);
  }
  out = wrap(storage, array, o.spec);
  if (out == nullptr) goto end;
  {
    const Py_ssize_t at = PyLong_AsSsize_t(offset) + by;
    if (at != 0) {
      PyObject* v = PyLong_FromSsize_t(at);
      const bool ok = set(out, s_offset, v);
      Py_DECREF(v);
      if (!ok) goto end;
    }
  }
  if (base == Py_None) {
    Py_DECREF(base);
    base = Py_NewRef(x);
  }
  {
    const Py_ssize_t n = PyTuple_GET_SIZE(chain);
    longer = PyTuple_New(n + 1);
    for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(longer, i, Py_NewRef(PyTuple_GET_ITEM(chain, i)));
    PyTuple_SET_ITEM(longer, n, Py_NewRef(step));
    if (!set(out, s_base, base) || !set(out, s_chain, longer)) goto end;
    // The base knows its views, weakly; the list is tidied up now and then by Python.
    PyObject* views = PyObject_GetAttr(base, s_views);
    if (views == nullptr) goto end;
    const Py_ssize_t known = PyList_CheckExact(views) ? PyList_GET_SIZE(views) : -1;
    bool ok;
    if (known >= 0 && !(known + 1 >= 64 && ((known + 1) & known) == 0)) {
      PyObject* ref = PyWeakref_NewRef(out, nullptr);
      ok = ref != nullptr && PyList_Append(views, ref) == 0;
      Py_XDECREF(ref);
    } else {
      PyObject* r = PyObject_CallMethodOneArg(base, s_remember, out);
      ok = r != nullptr;
      Py_XDECREF(r);
    }
    Py_DECREF(views);
    if (!ok) goto end;
  }
  made = Py_NewRef(out);
  *of = Py_NewRef(base);
end:
  Py_XDECREF(data);
  Py_XDECREF(storage);
  Py_XDECREF(offset);
  Py_XDECREF(base);
  Py_XDECREF(chain);
  Py_XDECREF(array);
  Py_XDECREF(longer);
  Py_XDECREF(out);
  return made;
}

// Records a view, or views, of x; false with an error set.
bool record_view(PyObject* plan, PyObject* x, PyObject* base, PyObject* out) {
  PyObject* const values[1] = {x};
  const int recorded = record_usual(plan, values, 1, out);
  if (recorded < 0) return false;
  if (recorded == 0) {
    PyObject* graph = PyObject_GetAttr(state, s_graph);
    PyObject* pack = PyTuple_Pack(1, x);
    PyObject* r = graph == nullptr ? nullptr : PyObject_CallMethodObjArgs(graph, s_record, plan, pack, out, nullptr);
    Py_XDECREF(graph);
    Py_DECREF(pack);
    Py_XDECREF(r);
    return r != nullptr;
  }
  PyObject* times = PyObject_GetAttr(base, s_rebased);
  if (times == nullptr) return false;
  bool ok = true;
  if (!PyTuple_CheckExact(out)) ok = set(out, s_seen, times);
  else
    for (Py_ssize_t i = 0; ok && i < PyTuple_GET_SIZE(out); ++i) ok = set(PyTuple_GET_ITEM(out, i), s_seen, times);
  Py_DECREF(times);
  return ok;
}

}  // namespace

// 1 done, 0 unusual, -1 error.
int view_usual(PyObject* plan, PyObject* x, PyObject** result) {
  PyObject* win = PyObject_GetAttr(plan, s_into);
  if (win == nullptr) return -1;
  if (Py_TYPE(win) != window()) {
    Py_DECREF(win);
    return 0;
  }
  PyObject *shift = PyObject_GetAttr(plan, s_compute), *base = nullptr, *out = nullptr;
  int done = -1;
  if (shift == nullptr) goto end;
  out = bare_view(*reinterpret_cast<Window*>(win)->out, PyLong_AsSsize_t(shift), x, plan, &base);
  if (out == nullptr) {
    done = PyErr_Occurred() ? -1 : 0;
    goto end;
  }
  {
    const int grad = flag(mode, s_grad);
    const int wants = grad > 0 ? flag(x, s_rg) : 0;
    if (grad < 0 || wants < 0) goto end;
    if (grad == 0) {
      if (!set(out, s_no_grad_view, Py_True)) goto end;
    } else if (wants > 0) {
      PyObject* op = PyObject_GetAttr(plan, s_op);
      const int differentiable = op == nullptr ? -1 : flag(op, s_differentiable);
      Py_XDECREF(op);
      if (differentiable < 0 || (differentiable > 0 && !record_view(plan, x, base, out))) goto end;
    }
  }
  *result = Py_NewRef(out);
  done = 1;
end:
  Py_DECREF(win);
  Py_XDECREF(shift);
  Py_XDECREF(base);
  Py_XDECREF(out);
  return done;
}

// --- basic indexes without a plan ------------------------------------------------------------------------

namespace {

PyObject *windows, *describe;  // (spec, what an index asks for) -> Window, and the function that makes one
PyObject *s_select, *s_slice, *s_window, *s_strides, *s_shape, *zero;

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
    PyObject* shape = PyObject_GetAttr(view_spec.get(data), s_shape);
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
Window* window_of(PyObject* spec, const Part* parts, int n) {
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
  return reinterpret_cast<Window*>(found);
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
  PyObject* strides = PyObject_GetAttr(spec, s_strides);
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
  PyTuple_SET_ITEM(step, 0, Py_NewRef(pick ? s_select : s_slice));
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
  PyObject* step = PyTuple_Pack(2, s_window, index);
  Py_DECREF(index);
  return step;
}

// x[index] for integers, slices, None and Ellipsis when nothing is recorded: no plan per position.
// 1 done, 0 unusual, -1 error.
int item_usual(PyObject* x, PyObject* index, PyObject** result) {
  const bool single = PyLong_CheckExact(index) || PySlice_Check(index);
  if (!single && !PyTuple_CheckExact(index)) return 0;
  const int grad = flag(mode, s_grad), wants = flag(x, s_rg);
  if (grad < 0 || wants < 0) return -1;
  if (grad && wants) return 0;
  PyObject* data = PyObject_GetAttr(x, s_data);
  if (data == nullptr) return -1;
  Sizes sizes;
  bool ok = sizes.read(data);
  Py_DECREF(data);
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
  PyObject* spec = PyObject_GetAttr(x, s_spec);
  if (spec == nullptr) return -1;
  Py_ssize_t by;
  Window* win = window_of(spec, parts, n);
  const bool fine = win != nullptr && shift_of(spec, parts, n, &by);
  Py_DECREF(spec);
  if (!fine) return -1;
  Py_INCREF(win);
  PyObject *step = step_of(parts, n, !single), *base = nullptr;
  PyObject* out = step == nullptr ? nullptr : bare_view(*win->out, by, x, step, &base);
  Py_DECREF(win);
  Py_XDECREF(step);
  Py_XDECREF(base);
  if (out != nullptr && !grad && !set(out, s_no_grad_view, Py_True)) Py_CLEAR(out);
  *result = out;
  return out != nullptr ? 1 : PyErr_Occurred() ? -1 : 0;
}

// cut(x, dim, bounds, plan): the ranges (start, end) of a dimension, or its single elements when bounds is
// a number of them, as views that share the node of `plan`. None when Python must do it.
PyObject* cut(PyObject*, PyObject* const* args, Py_ssize_t n_args) {
  if (n_args != 4 || !is_tensor(args[0])) Py_RETURN_NONE;
  PyObject *x = args[0], *bounds = args[2], *plan = args[3];
  const int hooks = flag(state, s_hooks), grad = flag(mode, s_grad), wants = flag(x, s_rg);
  if (hooks < 0 || grad < 0 || wants < 0) return nullptr;
  PyObject* data = PyObject_GetAttr(x, s_data);
  if (data == nullptr) return nullptr;
  Sizes sizes;
  const bool usual = !hooks && sizes.read(data);
  const int ndim = usual ? sizes.ndim : 0;
  const int dim = int(PyLong_AsLong(args[1]));
  Part parts[32];
  for (int d = 0; d < ndim; ++d) parts[d] = {Part::range, 0, sizes.of[d], 1};
  Py_DECREF(data);
  if (!usual || dim < 0 || dim >= ndim) Py_RETURN_NONE;
  const bool single = PyLong_CheckExact(bounds);
  const Py_ssize_t count = single ? PyLong_AsSsize_t(bounds) : PyTuple_GET_SIZE(bounds);
  PyObject* spec = PyObject_GetAttr(x, s_spec);
  if (spec == nullptr) return nullptr;
  PyObject *out = PyTuple_New(count), *base = nullptr;
  // How far one step along the dimension leads.
  Py_ssize_t stride = 0;
  parts[dim].start = 1;
  Window* win = nullptr;
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
    if (step != nullptr) view = bare_view(*win->out, p.start * stride, x, step, &base);
    Py_XDECREF(step);
    if (view != nullptr && !grad && !set(view, s_no_grad_view, Py_True)) Py_CLEAR(view);
    ok = view != nullptr;
    if (ok) PyTuple_SET_ITEM(out, k, view);
  }
  Py_XDECREF(win);
  if (!ok) Py_CLEAR(out);
  Py_DECREF(spec);
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

void install_windows(PyObject* table, PyObject* make) {
  windows = Py_NewRef(table);
  describe = Py_NewRef(make);
  s_select = PyUnicode_InternFromString("select");
  s_slice = PyUnicode_InternFromString("_slice");
  s_window = PyUnicode_InternFromString("_window");
  s_strides = PyUnicode_InternFromString("strides");
  s_shape = PyUnicode_InternFromString("shape");
  zero = PyLong_FromLong(0);
}

PyTypeObject* window_type() {
  static PyTypeObject type = {PyVarObject_HEAD_INIT(nullptr, 0)};
  if (type.tp_name == nullptr) {
    type.tp_name = "votive.Window";
    type.tp_basicsize = sizeof(Window);
    type.tp_flags = Py_TPFLAGS_DEFAULT;
    type.tp_new = window_new;
    type.tp_dealloc = window_dealloc;
    type.tp_doc = "The spec of a view in the form that arrays are made from.";
    if (PyType_Ready(&type) < 0) return nullptr;
  }
  return &type;
}

// --- LateStorage: the storage of a result, made when it is first asked for -----------------------------------

namespace {

PyObject* late_get(PyObject* me, PyObject* tensor, PyObject*) {
  if (tensor == nullptr || tensor == Py_None) return Py_NewRef(me);
  // Nothing here lets another thread run, so that all get the same storage.
  PyObject* data = PyObject_GetAttr(tensor, s_data);
  PyObject* storage = data == nullptr ? nullptr : new_storage(data);
  Py_XDECREF(data);
  if (storage != nullptr && !set(tensor, s_storage, storage)) Py_CLEAR(storage);
  return storage;
}

}  // namespace

PyTypeObject* late_storage_type() {
  static PyTypeObject type = {PyVarObject_HEAD_INIT(nullptr, 0)};
  if (type.tp_name == nullptr) {
    type.tp_name = "votive.LateStorage";
    type.tp_basicsize = sizeof(PyObject);
    type.tp_flags = Py_TPFLAGS_DEFAULT;
    type.tp_new = PyType_GenericNew;
    type.tp_descr_get = late_get;
    type.tp_doc = "The storage of a result, made on first use: most results die without one.";
    if (PyType_Ready(&type) < 0) return nullptr;
  }
  return &type;
}

// --- Memo: functions that give views -----------------------------------------------------------------------

namespace {

struct Memo {
  PyObject_HEAD
  vectorcallfunc call;
  PyObject* fallback;
  PyObject* plans;
  bool indexes;  // x[index]: most need no plan
};

constexpr Py_ssize_t MOST = 4096;

// An argument as part of a key, or nullptr without an error when it is not one we remember. Types are
// exact, because True and 1 mean different things in an index.
PyObject* part_of(PyObject* v, int depth = 0) {
  if (PyLong_CheckExact(v) || v == Py_None || v == Py_Ellipsis) return Py_NewRef(v);
  if (PySlice_Check(v)) {
    auto* s = reinterpret_cast<PySliceObject*>(v);
    for (PyObject* end : {s->start, s->stop, s->step})
      if (end != Py_None && !PyLong_CheckExact(end)) return nullptr;
    return PyTuple_Pack(4, reinterpret_cast<PyObject*>(&PySlice_Type), s->start, s->stop, s->step);
  }
  if ((PyTuple_CheckExact(v) || PyList_CheckExact(v)) && depth < 2) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(v);
    PyObject* t = PyTuple_New(n + 1);
    PyTuple_SET_ITEM(t, 0, Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(v))));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* p = part_of(PySequence_Fast_GET_ITEM(v, i), depth + 1);
      if (p == nullptr) {
        Py_DECREF(t);
        return nullptr;
      }
      PyTuple_SET_ITEM(t, i + 1, p);
    }
    return t;
  }
  return nullptr;
}

// After the long way: the plan that leads from x to out in one step, if that is how it went.
PyObject* plan_between(PyObject* x, PyObject* out) {
  if (!is_tensor(out)) return nullptr;
  PyObject *chain = PyObject_GetAttr(out, s_chain), *before = PyObject_GetAttr(x, s_chain),
           *base = PyObject_GetAttr(out, s_base), *x_base = PyObject_GetAttr(x, s_base);
  PyObject* plan = nullptr;
  if (chain && before && base && x_base && base != Py_None && base == (x_base == Py_None ? x : x_base) &&
      PyTuple_GET_SIZE(chain) == PyTuple_GET_SIZE(before) + 1)
    plan = Py_NewRef(PyTuple_GET_ITEM(chain, PyTuple_GET_SIZE(chain) - 1));
  if (plan != nullptr && PyTuple_CheckExact(plan)) Py_CLEAR(plan);  // made without one
  Py_XDECREF(chain);
  Py_XDECREF(before);
  Py_XDECREF(base);
  Py_XDECREF(x_base);
  PyErr_Clear();
  return plan;
}

PyObject* memo_call(PyObject* me, PyObject* const* args, size_t nargsf, PyObject* names) {
  auto* self = reinterpret_cast<Memo*>(me);
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  auto slow = [&] { return PyObject_Vectorcall(self->fallback, args, nargsf, names); };
  if (n < 1 || n > 8 || names != nullptr || !is_tensor(args[0])) return slow();
  const int hooks = flag(state, s_hooks);
  if (hooks != 0) return hooks < 0 ? nullptr : slow();
  if (self->indexes && n == 2 && windows != nullptr) {
    PyObject* item = nullptr;
    if (item_usual(args[0], args[1], &item) != 0) return item;
  }
  PyObject* key = PyTuple_New(n);
  PyObject* spec = PyObject_GetAttr(args[0], s_spec);
  if (spec == nullptr) {
    Py_DECREF(key);
    return nullptr;
  }
  PyTuple_SET_ITEM(key, 0, spec);
  for (Py_ssize_t k = 1; k < n; ++k) {
    PyObject* part = part_of(args[k]);
    if (part == nullptr) {
      Py_DECREF(key);
      return PyErr_Occurred() ? nullptr : slow();
    }
    PyTuple_SET_ITEM(key, k, part);
  }
  PyObject* plan = PyDict_GetItemWithError(self->plans, key);
  PyObject* out = nullptr;
  if (plan != nullptr) {
    Py_INCREF(plan);
    const int done = view_usual(plan, args[0], &out);
    Py_DECREF(plan);
    Py_DECREF(key);
    return done == 0 ? slow() : out;
  }
  if (PyErr_Occurred()) {
    Py_DECREF(key);
    return nullptr;
  }
  out = slow();
  if (out != nullptr && (plan = plan_between(args[0], out)) != nullptr) {
    if (PyDict_GET_SIZE(self->plans) >= MOST) PyDict_Clear(self->plans);
    if (PyDict_SetItem(self->plans, key, plan) < 0) Py_CLEAR(out);
    Py_DECREF(plan);
  }
  Py_DECREF(key);
  return out;
}

// Memo(function, plans, indexes=False)
PyObject* memo_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *fallback, *plans;
  int indexes = 0;
  if (!PyArg_ParseTuple(args, "OO!|p", &fallback, &PyDict_Type, &plans, &indexes)) return nullptr;
  auto* self = reinterpret_cast<Memo*>(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  self->call = memo_call;
  self->fallback = Py_NewRef(fallback);
  self->plans = Py_NewRef(plans);
  self->indexes = indexes;
  return reinterpret_cast<PyObject*>(self);
}
int memo_traverse(PyObject* me, visitproc visit, void* arg) {
  Py_VISIT(reinterpret_cast<Memo*>(me)->fallback);
  Py_VISIT(reinterpret_cast<Memo*>(me)->plans);
  return 0;
}
int memo_clear(PyObject* me) {
  Py_CLEAR(reinterpret_cast<Memo*>(me)->fallback);
  Py_CLEAR(reinterpret_cast<Memo*>(me)->plans);
  return 0;
}
void memo_dealloc(PyObject* me) {
  PyObject_GC_UnTrack(me);
  memo_clear(me);
  Py_TYPE(me)->tp_free(me);
}
PyObject* memo_get(PyObject* me, PyObject* instance, PyObject*) {
  if (instance == nullptr || instance == Py_None) return Py_NewRef(me);
  return PyMethod_New(me, instance);
}
// Looks like the function it stands for: name, docstring, signature.
PyObject* memo_getattro(PyObject* me, PyObject* name) {
  PyObject* fallback = reinterpret_cast<Memo*>(me)->fallback;
  if (PyUnicode_CompareWithASCIIString(name, "__wrapped__") == 0) return Py_NewRef(fallback);
  if (PyUnicode_CompareWithASCIIString(name, "__doc__") == 0) return PyObject_GetAttr(fallback, name);
  PyObject* found = PyObject_GenericGetAttr(me, name);
  if (found != nullptr || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();
  return PyObject_GetAttr(fallback, name);
}
int memo_setattro(PyObject* me, PyObject* name, PyObject* value) {
  return PyObject_SetAttr(reinterpret_cast<Memo*>(me)->fallback, name, value);
}

}  // namespace

PyTypeObject* memo_type() {
  static PyTypeObject type = {PyVarObject_HEAD_INIT(nullptr, 0)};
  if (type.tp_name == nullptr) {
    type.tp_name = "votive.Memo";
    type.tp_basicsize = sizeof(Memo);
    type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_HAVE_GC;
    type.tp_vectorcall_offset = offsetof(Memo, call);
    type.tp_call = PyVectorcall_Call;
    type.tp_descr_get = memo_get;
    type.tp_getattro = memo_getattro;
    type.tp_setattro = memo_setattro;
    type.tp_new = memo_new;
    type.tp_dealloc = memo_dealloc;
    type.tp_traverse = memo_traverse;
    type.tp_clear = memo_clear;
    type.tp_free = PyObject_GC_Del;
    if (PyType_Ready(&type) < 0) return nullptr;
  }
  return &type;
}

// --- Recall: functions that come down to one call of an operator ---------------------------------------------

namespace {

PyTypeObject* dtype_type = nullptr;
PyObject* device_stack = nullptr;  // a list: the devices of `with` blocks

// The first fields are those of a Memo.
struct Recall {
  PyObject_HEAD
  vectorcallfunc call;
  PyObject* fallback;
  PyObject* known;  // key -> (operator or None, arguments), or None for the long way
  PyObject* resolve;
};

PyObject* recall_part(PyObject* v, bool first) {
  if (Py_TYPE(v) == dtype_type) return Py_NewRef(v);
  if (first && is_tensor(v)) return PyObject_GetAttr(v, s_spec);
  if (PyLong_CheckExact(v) || PyTuple_CheckExact(v) || PyList_CheckExact(v)) return part_of(v);
  return nullptr;
}

PyObject* recall_call(PyObject* me, PyObject* const* args, size_t nargsf, PyObject* names) {
  auto* self = reinterpret_cast<Recall*>(me);
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  auto slow = [&] { return PyObject_Vectorcall(self->fallback, args, nargsf, names); };
  const Py_ssize_t named = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  if (n < 1 || n > 6 || named > 1 || PyList_GET_SIZE(device_stack) > 0) return slow();
  if (named == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "dtype") != 0) return slow();
  const int hooks = flag(state, s_hooks);
  if (hooks != 0) return hooks < 0 ? nullptr : slow();
  // A dtype by name has its place behind None, which no other key has.
  PyObject* key = PyTuple_New(n + 2 * named);
  for (Py_ssize_t k = 0; k < n + named; ++k) {
    PyObject* part = recall_part(args[k], k == 0);
    if (part == nullptr || (k >= n && Py_TYPE(part) != dtype_type)) {
      Py_XDECREF(part);
      Py_DECREF(key);
      return PyErr_Occurred() ? nullptr : slow();
    }
    PyTuple_SET_ITEM(key, k < n ? k : k + 1, part);
  }
  if (named) PyTuple_SET_ITEM(key, n, Py_NewRef(Py_None));
  PyObject* found = PyDict_GetItemWithError(self->known, key);
  Py_XINCREF(found);
  if (found == nullptr && !PyErr_Occurred()) {
    found = PyObject_Vectorcall(self->resolve, args, nargsf, names);
    if (found != nullptr) {
      if (PyDict_GET_SIZE(self->known) >= MOST) PyDict_Clear(self->known);
      if (found != Py_None && PyTuple_GET_SIZE(PyTuple_GET_ITEM(found, 1)) > 0 &&
          is_tensor(PyTuple_GET_ITEM(PyTuple_GET_ITEM(found, 1), 0))) {
        // Not this tensor, but the one given each time.
        PyObject* given = PyTuple_GET_ITEM(found, 1);
        PyObject* rest = PyTuple_New(PyTuple_GET_SIZE(given));
        PyTuple_SET_ITEM(rest, 0, Py_NewRef(Py_Ellipsis));
        for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(given); ++i)
          PyTuple_SET_ITEM(rest, i, Py_NewRef(PyTuple_GET_ITEM(given, i)));
        PyObject* kept = PyTuple_Pack(2, PyTuple_GET_ITEM(found, 0), rest);
        Py_DECREF(rest);
        Py_DECREF(found);
        found = kept;
      }
      if (found == nullptr || PyDict_SetItem(self->known, key, found) < 0) Py_CLEAR(found);
    } else {
      PyErr_Clear();  // wrong arguments: the function itself says what is wrong with them
      Py_DECREF(key);
      return slow();
    }
  }
  Py_DECREF(key);
  if (found == nullptr) return nullptr;
  PyObject* out = nullptr;
  if (found == Py_None) out = slow();
  else {
    PyObject *op = PyTuple_GET_ITEM(found, 0), *given = PyTuple_GET_ITEM(found, 1);
    const Py_ssize_t m = PyTuple_GET_SIZE(given);
    const bool tensor = m > 0 && PyTuple_GET_ITEM(given, 0) == Py_Ellipsis;
    if (op == Py_None) out = Py_NewRef(args[0]);
    else if (!tensor) out = call_operator(op, given);
    else {
      PyObject* full = PyTuple_New(m);
      PyTuple_SET_ITEM(full, 0, Py_NewRef(args[0]));
      for (Py_ssize_t i = 1; i < m; ++i) PyTuple_SET_ITEM(full, i, Py_NewRef(PyTuple_GET_ITEM(given, i)));
      out = call_operator(op, full);
      Py_DECREF(full);
    }
    if (out == nullptr && PyErr_ExceptionMatches(PyExc_Exception)) {
      PyErr_Clear();  // with the function on the stack, the error names what was called
      out = slow();
    }
  }
  Py_DECREF(found);
  return out;
}

// Recall(function, table, resolve)
PyObject* recall_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *fallback, *known, *resolve;
  if (!PyArg_ParseTuple(args, "OO!O", &fallback, &PyDict_Type, &known, &resolve)) return nullptr;
  auto* self = reinterpret_cast<Recall*>(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  self->call = recall_call;
  self->fallback = Py_NewRef(fallback);
  self->known = Py_NewRef(known);
  self->resolve = Py_NewRef(resolve);
  return reinterpret_cast<PyObject*>(self);
}
int recall_traverse(PyObject* me, visitproc visit, void* arg) {
  Py_VISIT(reinterpret_cast<Recall*>(me)->resolve);
  return memo_traverse(me, visit, arg);
}
int recall_clear(PyObject* me) {
  Py_CLEAR(reinterpret_cast<Recall*>(me)->resolve);
  return memo_clear(me);
}
void recall_dealloc(PyObject* me) {
  PyObject_GC_UnTrack(me);
  recall_clear(me);
  Py_TYPE(me)->tp_free(me);
}

}  // namespace

PyTypeObject* recall_type() {
  static PyTypeObject type = {PyVarObject_HEAD_INIT(nullptr, 0)};
  if (type.tp_name == nullptr) {
    type.tp_name = "votive.Recall";
    type.tp_basicsize = sizeof(Recall);
    type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_HAVE_GC;
    type.tp_vectorcall_offset = offsetof(Recall, call);
    type.tp_call = PyVectorcall_Call;
    type.tp_descr_get = memo_get;
    type.tp_getattro = memo_getattro;
    type.tp_setattro = memo_setattro;
    type.tp_new = recall_new;
    type.tp_dealloc = recall_dealloc;
    type.tp_traverse = recall_traverse;
    type.tp_clear = recall_clear;
    type.tp_free = PyObject_GC_Del;
    if (PyType_Ready(&type) < 0) return nullptr;
  }
  return &type;
}

void install_recall(PyObject* dtype, PyObject* stack) {
  dtype_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(dtype));
  device_stack = Py_NewRef(stack);
}

void install_views(PyObject* state_, PyObject* mode_) {
  struct { PyObject** at; const char* text; } names[] = {
      {&s_hooks, "hooks"}, {&s_into, "into"}, {&s_compute, "compute"}, {&s_out, "out"}, {&s_data, "_data"},
      {&s_spec, "_spec"}, {&s_storage, "_storage"}, {&s_offset, "_offset"}, {&s_base, "_base"}, {&s_chain, "_chain"},
      {&s_views, "_views"}, {&s_remember, "_remember_view"}, {&s_rg, "_rg"}, {&s_grad, "grad"},
      {&s_no_grad_view, "_no_grad_view"}, {&s_seen, "_seen"}, {&s_rebased, "_rebased"}, {&s_record, "record"},
      {&s_graph, "graph"}, {&s_differentiable, "differentiable"}, {&s_op, "op"}};
  for (auto& n : names) *n.at = PyUnicode_InternFromString(n.text);
  state = Py_NewRef(state_);
  mode = Py_NewRef(mode_);
}

}  // namespace vt
