// Views: the same memory seen through another spec. The same steps as ViewPlan.run in dispatch/plan.py.
#include "views.h"

#include "device.h"
#include "operator.h"

namespace vt {
namespace {

PyObject* mode;

PyObject* window_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* spec;
  if (!PyArg_ParseTuple(args, "O", &spec)) return nullptr;
  auto out = new_spec(spec);
  return out == nullptr ? nullptr : box<Window>(type, nullptr, std::move(out));
}

}  // namespace

bool set(PyObject* o, PyObject* name, PyObject* v) { return PyObject_GenericSetAttr(o, name, v) == 0; }

namespace {

// The base knows its views, weakly; the list is tidied up now and then by Python.
bool add_view(PyObject* base, PyObject* view) {
  Ref views(PyObject_GetAttr(base, name::_views));
  if (!views) return false;
  const Py_ssize_t known = PyList_CheckExact(views.get()) ? PyList_GET_SIZE(views.get()) : -1;
  if (known < 0 || (known + 1 >= 64 && ((known + 1) & known) == 0))
    return bool(Ref(PyObject_CallMethodOneArg(base, name::_remember_view, view)));
  Ref weak(PyWeakref_NewRef(view, nullptr));
  return weak && PyList_Append(views.get(), weak.get()) == 0;
}

// The same memory from element `by` on; nullptr without an error when the data does not show where it is.
PyObject* part_of_data(const OutSpec& o, Py_ssize_t by, PyObject* data) {
  if (is_device_view(data)) return device_part(data, by * PyDataType_ELSIZE(o.descr), o.spec);
  auto* a = reinterpret_cast<PyArrayObject*>(data);
  if (!PyArray_Check(data) || PyArray_SIZE(a) == 0) return nullptr;
  Py_INCREF(o.descr);
  PyObject* array =
      PyArray_NewFromDescr(&PyArray_Type, o.descr, o.ndim, o.shape, o.strides, PyArray_BYTES(a) + by * PyDataType_ELSIZE(o.descr),
                           PyArray_FLAGS(a) & NPY_ARRAY_WRITEABLE, nullptr);
  if (array == nullptr) return nullptr;
  // Who owns the memory, not who looks at it: chains of views stay short.
  PyObject* owner = PyArray_BASE(a) != nullptr ? PyArray_BASE(a) : data;
  reinterpret_cast<PyArrayObject_fields*>(array)->base = Py_NewRef(owner);
  return array;
}

}  // namespace

PyObject* bare_view(const OutSpec& o, Py_ssize_t by, PyObject* x, PyObject* step, PyObject** of) {
  const Ref data = Ref::to(tensor_data.get(x));
  Ref storage(PyObject_GetAttr(x, name::_storage)),
      offset(PyObject_GetAttr(x, name::_offset)), base(PyObject_GetAttr(x, name::_base)),
      chain(PyObject_GetAttr(x, name::_chain));
  if (!data || !storage || !offset || !base || !chain || o.nbytes == 0) return nullptr;
  Ref array(part_of_data(o, by, data.get()));
  Ref out(array ? wrap(storage.get(), array.get(), o.spec) : nullptr);
  if (!out) return nullptr;
  const Py_ssize_t at = PyLong_AsSsize_t(offset.get()) + by;
  if (at != 0 && !set(out.get(), name::_offset, Ref(PyLong_FromSsize_t(at)).get())) return nullptr;
  if (base.get() == Py_None) base = Ref::to(x);
  const Py_ssize_t n = PyTuple_GET_SIZE(chain.get());
  Ref longer(PyTuple_New(n + 1));
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(longer.get(), i, Py_NewRef(PyTuple_GET_ITEM(chain.get(), i)));
  PyTuple_SET_ITEM(longer.get(), n, Py_NewRef(step));
  if (!set(out.get(), name::_base, base.get()) || !set(out.get(), name::_chain, longer.get())) return nullptr;
  if (!add_view(base.get(), out.get())) return nullptr;
  *of = base.release();
  return out.release();
}

bool record_view(PyObject* plan, PyObject* x, PyObject* base, PyObject* out) {
  PyObject* const values[1] = {x};
  if (!record(plan, values, 1, out)) return false;
  PyObject* times = PyObject_GetAttr(base, name::_rebased);
  if (times == nullptr) return false;
  bool ok = true;
  if (!PyTuple_CheckExact(out)) ok = set(out, name::_seen, times);
  else
    for (Py_ssize_t i = 0; ok && i < PyTuple_GET_SIZE(out); ++i) ok = set(PyTuple_GET_ITEM(out, i), name::_seen, times);
  Py_DECREF(times);
  return ok;
}

int view_usual(PyObject* plan, PyObject* x, PyObject** result) {
  Ref window(PyObject_GetAttr(plan, name::window)), offset(PyObject_GetAttr(plan, name::offset));
  if (!window || !offset) return -1;
  if (Py_TYPE(window.get()) != window_type()) return 0;
  PyObject* of = nullptr;
  Ref out(bare_view(*unbox<Window>(window.get()).out, PyLong_AsSsize_t(offset.get()), x, plan, &of));
  Ref base(of);
  if (!out) return PyErr_Occurred() ? -1 : 0;
  const int grad = flag(mode, name::grad);
  const bool wants = grad > 0 && requires_grad(x);
  if (grad < 0) return -1;
  if (grad == 0) {
    if (!set(out.get(), name::_no_grad_view, Py_True)) return -1;
  } else if (wants) {
    Ref op(PyObject_GetAttr(plan, name::op));
    const int differentiable = op ? flag(op.get(), name::differentiable) : -1;
    if (differentiable < 0 || (differentiable > 0 && !record_view(plan, x, base.get(), out.get()))) return -1;
  }
  *result = out.release();
  return 1;
}

// --- LateStorage: the storage of a result, made when it is first asked for -----------------------------------

namespace {

struct LateStorage {};

PyObject* late_get(PyObject* me, PyObject* tensor, PyObject*) {
  if (tensor == nullptr || tensor == Py_None) return Py_NewRef(me);
  // Nothing here lets another thread run, so that all get the same storage.
  PyObject* data = tensor_data.get(tensor);
  PyObject* storage = data == nullptr ? nullptr : new_storage(data);
  if (storage != nullptr && !set(tensor, name::_storage, storage)) Py_CLEAR(storage);
  return storage;
}

}  // namespace

PyTypeObject* window_type() {
  static PyTypeObject* type = make_type<Window>({.name = "votive.Window",
                                                 .doc = "The spec of a view in the form that arrays are made from.",
                                                 .make = window_new});
  return type;
}

PyTypeObject* late_storage_type() {
  return make_type<LateStorage>({.name = "votive.LateStorage",
                                 .doc = "The storage of a result, made on first use: most results die without one.",
                                 .make = [](PyTypeObject* type, PyObject*, PyObject*) { return box<LateStorage>(type, nullptr); },
                                 .get = late_get});
}

void install_views(PyObject* mode_) { mode = Py_NewRef(mode_); }

}  // namespace vt
