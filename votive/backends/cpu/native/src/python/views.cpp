// Views: the same memory seen through another spec. The same steps as `_execute_view` in
// dispatch/call.py, and a memory of which plan a call with given arguments led to.
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

int flag(PyObject* owner, PyObject* name) {
  PyObject* v = PyObject_GetAttr(owner, name);
  if (v == nullptr) return -1;
  const int r = v == Py_True ? 1 : v == Py_False ? 0 : PyObject_IsTrue(v);
  Py_DECREF(v);
  return r;
}

bool set(PyObject* o, PyObject* name, PyObject* v) { return PyObject_GenericSetAttr(o, name, v) == 0; }

}  // namespace

// 1 done, 0 unusual, -1 error.
int view_usual(PyObject* plan, PyObject* x, PyObject** result) {
  PyObject* win = PyObject_GetAttr(plan, s_into);
  if (win == nullptr) return -1;
  if (Py_TYPE(win) != window()) {
    Py_DECREF(win);
    return 0;
  }
  const OutSpec& o = *reinterpret_cast<Window*>(win)->out;
  PyObject *shift = PyObject_GetAttr(plan, s_compute), *data = PyObject_GetAttr(x, s_data),
           *storage = PyObject_GetAttr(x, s_storage), *offset = PyObject_GetAttr(x, s_offset),
           *base = PyObject_GetAttr(x, s_base), *chain = PyObject_GetAttr(x, s_chain);
  PyObject *array = nullptr, *out = nullptr, *longer = nullptr;
  int done = -1;
  if (!shift || !data || !storage || !offset || !base || !chain || !PyArray_Check(data)) goto end;
  {
    auto* a = reinterpret_cast<PyArrayObject*>(data);
    const Py_ssize_t by = PyLong_AsSsize_t(shift);
    const Py_ssize_t at = PyLong_AsSsize_t(offset) + by;
    Py_INCREF(o.descr);
    array = PyArray_NewFromDescr(&PyArray_Type, o.descr, o.ndim, o.shape, o.strides,
                                 PyArray_BYTES(a) + by * PyDataType_ELSIZE(o.descr),
                                 PyArray_FLAGS(a) & NPY_ARRAY_WRITEABLE, nullptr);
    if (array == nullptr || PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), Py_NewRef(data)) < 0) goto end;
    out = wrap(storage, array, o.spec);
    if (out == nullptr) goto end;
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
    PyTuple_SET_ITEM(longer, n, Py_NewRef(plan));
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
      if (differentiable < 0) goto end;
      if (differentiable > 0) {
        PyObject* const values[1] = {x};
        int recorded = record_usual(plan, values, 1, out);
        if (recorded == 0) {
          PyObject* graph = PyObject_GetAttr(state, s_graph);
          PyObject* pack = PyTuple_Pack(1, x);
          PyObject* r = graph == nullptr ? nullptr : PyObject_CallMethodObjArgs(graph, s_record, plan, pack, out, nullptr);
          Py_XDECREF(graph);
          Py_DECREF(pack);
          if (r == nullptr) goto end;
          Py_DECREF(r);
        } else if (recorded < 0) {
          goto end;
        } else {
          PyObject* times = PyObject_GetAttr(base, s_rebased);
          const bool ok = times != nullptr && set(out, s_seen, times);
          Py_XDECREF(times);
          if (!ok) goto end;
        }
      }
    }
  }
  *result = Py_NewRef(out);
  done = 1;
end:
  Py_DECREF(win);
  Py_XDECREF(shift);
  Py_XDECREF(data);
  Py_XDECREF(storage);
  Py_XDECREF(offset);
  Py_XDECREF(base);
  Py_XDECREF(chain);
  Py_XDECREF(array);
  Py_XDECREF(longer);
  Py_XDECREF(out);
  return done;
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

// --- Memo: functions that give views -----------------------------------------------------------------------

namespace {

struct Memo {
  PyObject_HEAD
  vectorcallfunc call;
  PyObject* fallback;
  PyObject* plans;
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

// Memo(function, plans)
PyObject* memo_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *fallback, *plans;
  if (!PyArg_ParseTuple(args, "OO!", &fallback, &PyDict_Type, &plans)) return nullptr;
  auto* self = reinterpret_cast<Memo*>(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  self->call = memo_call;
  self->fallback = Py_NewRef(fallback);
  self->plans = Py_NewRef(plans);
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
