// The short way of a call: find the plan, run it, wrap the result. The same steps as
// dispatch/call.py, which serves whatever is unusual: no plan yet, observers, autocast, wrong types.
#include "record.h"

#include <cstddef>
#include <string>

namespace vt {
namespace {

// What every call looks at; set once from Python.
PyTypeObject* tensor_type = nullptr;
PyObject* state = nullptr;
PyObject* mode = nullptr;
PyObject* general = nullptr;  // the long way

PyObject *s_spec, *s_data, *s_storage, *s_rg, *s_hooks, *s_grad, *s_graph, *s_compute, *s_out, *s_outs, *s_record,
    *s_access, *s_failed;

}  // namespace

bool is_tensor(PyObject* o) { return Py_TYPE(o) == tensor_type || PyType_IsSubtype(Py_TYPE(o), tensor_type); }

PyObject* wrap(PyObject* storage, PyObject* data, PyObject* spec) {
  PyObject* t = tensor_type->tp_alloc(tensor_type, 0);
  if (t == nullptr) return nullptr;
  // The data first: attributes die in the order in which they were set, see dispatch.state.make.
  if (PyObject_GenericSetAttr(t, s_data, data) < 0 ||
      (storage != Py_None && PyObject_GenericSetAttr(t, s_storage, storage) < 0) ||
      PyObject_GenericSetAttr(t, s_spec, spec) < 0) {
    Py_DECREF(t);
    return nullptr;
  }
  return t;
}

namespace {

// Records a call; false with an error set.
bool record(PyObject* plan, PyObject* const* values, Py_ssize_t n, PyObject* out) {
  const int done = record_usual(plan, values, n, out);
  if (done != 0) return done > 0;
  PyObject* graph = PyObject_GetAttr(state, s_graph);
  if (graph == nullptr) return false;
  PyObject* tuple = PyTuple_New(n);
  for (Py_ssize_t k = 0; k < n; ++k) PyTuple_SET_ITEM(tuple, k, Py_NewRef(values[k]));
  PyObject* stack[4] = {graph, plan, tuple, out};
  PyObject* r = PyObject_VectorcallMethod(s_record, stack, 4 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
  Py_DECREF(tuple);
  Py_DECREF(graph);
  Py_XDECREF(r);
  return r != nullptr;
}

// A kernel that ran out of memory, or was given a number that does not fit, knows neither its operator nor
// what the user called: dispatch/failure.py says it in their words. Gives nullptr, with an error set.
PyObject* failed(PyObject* plan) {
  if (!PyErr_ExceptionMatches(PyExc_MemoryError) && !PyErr_ExceptionMatches(PyExc_OverflowError) &&
      !PyErr_ExceptionMatches(PyExc_ValueError))
    return nullptr;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  PyObject* r = PyObject_CallMethodObjArgs(state, s_failed, plan, value, nullptr);  // raises
  Py_XDECREF(r);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  return nullptr;
}

// --- Fast: elementwise operators of one tensor or of two operands -----------------------------------

struct Fast {
  PyObject_HEAD
  vectorcallfunc call;
  PyObject* plans;
  PyObject* fallback;
  int arity;
  bool differentiable;
};

PyObject* fast_call(PyObject* me, PyObject* const* args, size_t nargsf, PyObject* names) {
  auto* self = reinterpret_cast<Fast*>(me);
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  auto slow = [&] { return PyObject_Vectorcall(self->fallback, args, nargsf, names); };
  if (n != self->arity || names != nullptr) return slow();
  const bool first = is_tensor(args[0]);
  const bool second = n == 2 && is_tensor(args[1]);
  if (!first && !second) return slow();
  if (n == 2 && first != second) {
    PyObject* number = first ? args[1] : args[0];
    if (!PyFloat_CheckExact(number) && !PyLong_CheckExact(number) && !PyBool_Check(number)) return slow();
  }
  const int hooks = flag(state, s_hooks);
  if (hooks != 0) return hooks < 0 ? nullptr : slow();
  PyObject* parts[2] = {nullptr, nullptr};
  PyObject* plan = nullptr;
  parts[0] = first ? PyObject_GetAttr(args[0], s_spec) : Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(args[0])));
  if (parts[0] == nullptr) return nullptr;
  if (n == 1) {
    plan = PyDict_GetItemWithError(self->plans, parts[0]);
    Py_DECREF(parts[0]);
  } else {
    parts[1] = second ? PyObject_GetAttr(args[1], s_spec) : Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(args[1])));
    if (parts[1] == nullptr) {
      Py_DECREF(parts[0]);
      return nullptr;
    }
    PyObject* key = PyTuple_New(2);
    PyTuple_SET_ITEM(key, 0, parts[0]);
    PyTuple_SET_ITEM(key, 1, parts[1]);
    plan = PyDict_GetItemWithError(self->plans, key);
    Py_DECREF(key);
  }
  if (plan == nullptr) return PyErr_Occurred() ? nullptr : slow();
  Py_INCREF(plan);
  PyObject* out = nullptr;
  PyObject* compute = PyObject_GetAttr(plan, s_compute);
  PyObject* data[3] = {nullptr, nullptr, nullptr};
  PyObject* result = nullptr;
  PyObject* spec = nullptr;
  if (compute == nullptr) goto done;
  for (Py_ssize_t k = 0; k < n; ++k) {
    const bool tensor = k == 0 ? first : second;
    data[k + 1] = tensor ? PyObject_GetAttr(args[k], s_data) : Py_NewRef(args[k]);
    if (data[k + 1] == nullptr) goto done;
  }
  result = PyObject_Vectorcall(compute, data + 1, size_t(n) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
  if (result == nullptr) {
    failed(plan);
    goto done;
  }
  spec = PyObject_GetAttr(plan, s_out);
  if (spec == nullptr) goto done;
  out = wrap(PyTuple_GET_ITEM(result, 0), PyTuple_GET_ITEM(result, 1), spec);
  if (out != nullptr && self->differentiable) {
    int wants = first ? flag(args[0], s_rg) : 0;
    if (wants == 0 && second) wants = flag(args[1], s_rg);
    if (wants > 0) wants = flag(mode, s_grad);
    const bool ok = wants == 0 || (wants > 0 && record(plan, args, n, out));
    if (!ok) Py_CLEAR(out);
  }
done:
  Py_DECREF(plan);
  Py_XDECREF(compute);
  Py_XDECREF(data[1]);
  Py_XDECREF(data[2]);
  Py_XDECREF(result);
  Py_XDECREF(spec);
  return out;
}

// Fast(plans, fallback, arity, differentiable)
PyObject* fast_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *plans, *fallback;
  int arity, differentiable;
  if (!PyArg_ParseTuple(args, "O!Oip", &PyDict_Type, &plans, &fallback, &arity, &differentiable)) return nullptr;
  auto* self = reinterpret_cast<Fast*>(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  self->call = fast_call;
  self->plans = Py_NewRef(plans);
  self->fallback = Py_NewRef(fallback);
  self->arity = arity;
  self->differentiable = differentiable;
  return reinterpret_cast<PyObject*>(self);
}

int fast_traverse(PyObject* me, visitproc visit, void* arg) {
  auto* self = reinterpret_cast<Fast*>(me);
  Py_VISIT(self->plans);
  Py_VISIT(self->fallback);
  return 0;
}
int fast_clear(PyObject* me) {
  auto* self = reinterpret_cast<Fast*>(me);
  Py_CLEAR(self->plans);
  Py_CLEAR(self->fallback);
  return 0;
}
void fast_dealloc(PyObject* me) {
  PyObject_GC_UnTrack(me);
  fast_clear(me);
  Py_TYPE(me)->tp_free(me);
}
PyObject* fast_get(PyObject* me, PyObject* instance, PyObject*) {
  if (instance == nullptr || instance == Py_None) return Py_NewRef(me);
  return PyMethod_New(me, instance);
}

// --- Access: how an operator's arguments become a key and values ------------------------------------------

// One letter per argument: t tensor, T optional tensor, l list of tensors, o tensor or number,
// n number, s static.
struct Access {
  PyObject_HEAD
  std::string* kinds;
  PyObject* plans;
  bool differentiable, pointwise, view;
  int n_out;
  Py_ssize_t key_size, value_count;
};

PyObject* access_new(PyTypeObject* type, PyObject* args, PyObject*) {
  const char* kinds;
  PyObject* plans;
  const char* kind;
  int differentiable, n_out;
  if (!PyArg_ParseTuple(args, "sO!psi", &kinds, &PyDict_Type, &plans, &differentiable, &kind, &n_out))
    return nullptr;
  auto* self = reinterpret_cast<Access*>(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  self->kinds = new std::string(kinds);
  self->plans = Py_NewRef(plans);
  self->differentiable = differentiable;
  self->pointwise = kind[0] == 'p';
  self->view = kind[0] == 'v';
  self->n_out = n_out;
  self->key_size = self->value_count = 0;
  for (char k : *self->kinds) {
    self->key_size += k == 's' ? 2 : 1;
    self->value_count += k == 's' ? 0 : 1;
  }
  return reinterpret_cast<PyObject*>(self);
}
int access_traverse(PyObject* me, visitproc visit, void* arg) {
  Py_VISIT(reinterpret_cast<Access*>(me)->plans);
  return 0;
}
int access_clear(PyObject* me) {
  Py_CLEAR(reinterpret_cast<Access*>(me)->plans);
  return 0;
}
void access_dealloc(PyObject* me) {
  PyObject_GC_UnTrack(me);
  access_clear(me);
  delete reinterpret_cast<Access*>(me)->kinds;
  Py_TYPE(me)->tp_free(me);
}

// The specs of a list of tensors, False for what is no list, nullptr without an error for a list
// that holds something else.
PyObject* list_specs(PyObject* v) {
  if (!PyList_CheckExact(v) && !PyTuple_CheckExact(v)) return Py_NewRef(Py_False);
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(v);
  PyObject* specs = PyTuple_New(n);
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* t = PySequence_Fast_GET_ITEM(v, i);
    PyObject* spec = is_tensor(t) ? PyObject_GetAttr(t, s_spec) : nullptr;
    if (spec == nullptr) {
      Py_DECREF(specs);
      return nullptr;
    }
    PyTuple_SET_ITEM(specs, i, spec);
  }
  return specs;
}

// The key of a plan, or nullptr (with or without an error) when the long way must look.
PyObject* make_key(const Access* self, PyObject* args) {
  PyObject* key = PyTuple_New(self->key_size);
  Py_ssize_t at = 0;
  for (size_t i = 0; i < self->kinds->size(); ++i) {
    PyObject* v = PyTuple_GET_ITEM(args, Py_ssize_t(i));
    PyObject* part = nullptr;
    switch ((*self->kinds)[i]) {
      case 's':
        PyTuple_SET_ITEM(key, at++, Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(v))));
        part = Py_NewRef(v);
        break;
      case 'n': part = Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(v))); break;
      case 'l': part = list_specs(v); break;
      case 'o':
        part = is_tensor(v) ? PyObject_GetAttr(v, s_spec) : Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(v)));
        break;
      case 'T':
        part = v == Py_None ? Py_NewRef(v) : is_tensor(v) ? PyObject_GetAttr(v, s_spec) : nullptr;
        break;
      default: part = is_tensor(v) ? PyObject_GetAttr(v, s_spec) : nullptr;
    }
    if (part == nullptr) {
      Py_DECREF(key);
      return nullptr;
    }
    PyTuple_SET_ITEM(key, at++, part);
  }
  return key;
}

PyObject* data_of(PyObject* v) {
  if (is_tensor(v)) return PyObject_GetAttr(v, s_data);
  if (!PyList_CheckExact(v) && !PyTuple_CheckExact(v)) return Py_NewRef(v);
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(v);
  PyObject* out = PyList_New(n);
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* d = PyObject_GetAttr(PySequence_Fast_GET_ITEM(v, i), s_data);
    if (d == nullptr) {
      Py_DECREF(out);
      return nullptr;
    }
    PyList_SET_ITEM(out, i, d);
  }
  return out;
}

int wants_grad(PyObject* v) {
  if (is_tensor(v)) return flag(v, s_rg);
  if (!PyList_CheckExact(v) && !PyTuple_CheckExact(v)) return 0;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(v); ++i) {
    PyObject* t = PySequence_Fast_GET_ITEM(v, i);
    const int r = is_tensor(t) ? flag(t, s_rg) : 0;
    if (r != 0) return r;
  }
  return 0;
}

// Runs a plan; `values` are the runtime arguments.
PyObject* execute(const Access* self, PyObject* plan, PyObject* const* values) {
  const Py_ssize_t n = self->value_count;
  PyObject* data[24];
  PyObject *compute = PyObject_GetAttr(plan, s_compute), *result = nullptr, *out = nullptr;
  if (compute == nullptr) return nullptr;
  Py_ssize_t made = 0;
  for (; made < n; ++made) {
    data[made + 1] = data_of(values[made]);
    if (data[made + 1] == nullptr) break;
  }
  if (made == n) result = PyObject_Vectorcall(compute, data + 1, size_t(n) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
  for (Py_ssize_t k = 0; k < made; ++k) Py_DECREF(data[k + 1]);
  Py_DECREF(compute);
  if (result == nullptr) return failed(plan);
  PyObject* spec = PyObject_GetAttr(plan, s_out);
  if (spec == nullptr) {
    Py_DECREF(result);
    return nullptr;
  }
  if (self->pointwise) {
    out = wrap(PyTuple_GET_ITEM(result, 0), PyTuple_GET_ITEM(result, 1), spec);
  } else {
    bool single = spec != Py_None;
    if (!single && self->n_out == 1) {
      PyObject* outs = PyObject_GetAttr(plan, s_outs);
      single = outs == Py_None;
      Py_XDECREF(outs);
    }
    auto part = [&](Py_ssize_t i) {
      PyObject* p = PyTuple_GET_ITEM(result, i);
      return wrap(PyTuple_GET_ITEM(p, 0), PyTuple_GET_ITEM(p, 1), PyTuple_GET_ITEM(p, 2));
    };
    if (single) out = part(0);
    else {
      const Py_ssize_t m = PyTuple_GET_SIZE(result);
      out = PyTuple_New(m);
      for (Py_ssize_t i = 0; i < m; ++i) {
        PyObject* t = part(i);
        if (t == nullptr) {
          Py_CLEAR(out);
          break;
        }
        PyTuple_SET_ITEM(out, i, t);
      }
    }
  }
  Py_DECREF(spec);
  Py_DECREF(result);
  if (out == nullptr || !self->differentiable) return out;
  int wants = 0;
  for (Py_ssize_t k = 0; k < n && wants == 0; ++k) wants = wants_grad(values[k]);
  if (wants > 0) wants = flag(mode, s_grad);
  if (wants > 0 && !record(plan, values, n, out)) wants = -1;
  if (wants < 0) Py_CLEAR(out);
  return out;
}

// call(op, args)
PyObject* call(PyObject*, PyObject* const* a, Py_ssize_t n) {
  if (n != 2 || !PyTuple_CheckExact(a[1])) {
    PyErr_SetString(PyExc_TypeError, "call(op, args) takes an operator and a tuple");
    return nullptr;
  }
  PyObject *op = a[0], *args = a[1];
  PyObject* found = PyObject_GetAttr(op, s_access);
  if (found == nullptr) return nullptr;
  PyObject* const pair[2] = {op, args};
  if (found == Py_None) {  // not called before, or an operator that writes
    Py_DECREF(found);
    return PyObject_Vectorcall(general, pair, 2, nullptr);
  }
  auto* self = reinterpret_cast<Access*>(found);
  PyObject* plan = nullptr;
  PyObject* values[24];
  if (PyTuple_GET_SIZE(args) == Py_ssize_t(self->kinds->size()) && self->value_count <= 22) {
    const int hooks = flag(state, s_hooks);
    if (hooks == 0) {
      PyObject* key = make_key(self, args);
      if (key != nullptr) {
        plan = PyDict_GetItemWithError(self->plans, key);
        Py_XINCREF(plan);
        Py_DECREF(key);
      }
      if (PyErr_Occurred()) PyErr_Clear();  // an unhashable argument: the long way says what is wrong
    } else if (hooks < 0) {
      Py_DECREF(found);
      return nullptr;
    }
  }
  PyObject* out;
  if (plan == nullptr) out = PyObject_Vectorcall(general, pair, 2, nullptr);
  else {
    Py_ssize_t at = 0;
    for (size_t i = 0; i < self->kinds->size(); ++i)
      if ((*self->kinds)[i] != 's') values[at++] = PyTuple_GET_ITEM(args, Py_ssize_t(i));
    out = nullptr;
    if (!self->view) out = execute(self, plan, values);
    else if (view_usual(plan, values[0], &out) == 0) out = PyObject_Vectorcall(general, pair, 2, nullptr);
    Py_DECREF(plan);
  }
  Py_DECREF(found);
  return out;
}

// --- writing in place -------------------------------------------------------------------------------------

PyObject* general_write = nullptr;  // the long way: dispatch/write.py
PyObject *s_into, *s_writes, *s_base, *s_inference, *s_version, *s_readonly;

// Whether memory may be written. A view's array is writable when its base's is, so the array tells; a GPU's
// view leaves that to the storage.
bool writable(PyObject* x) {
  PyObject* data = PyObject_GetAttr(x, s_data);
  if (data == nullptr) return false;
  const bool array = PyArray_Check(data);
  const bool yes = array && PyArray_ISWRITEABLE(reinterpret_cast<PyArrayObject*>(data));
  Py_DECREF(data);
  if (array) return yes;
  PyObject* storage = PyObject_GetAttr(x, s_storage);
  const int readonly = storage == nullptr ? -1 : flag(storage, s_readonly);
  Py_XDECREF(storage);
  return readonly == 0;
}

// Whether the kernel may write straight into x: no history on it, its base or the values, memory that may
// be written.
bool plainly_writable(const Access* self, PyObject* plan, PyObject* args) {
  PyObject* x = PyTuple_GET_ITEM(args, 0);
  if (!is_tensor(x)) return false;
  PyObject* writes = PyObject_GetAttr(plan, s_writes);
  Py_XDECREF(writes);
  if (writes != Py_True || flag(x, s_inference) != 0) return false;
  PyObject* base = PyObject_GetAttr(x, s_base);
  const bool untracked = base != nullptr && (base == Py_None || flag(base, s_rg) == 0);
  Py_XDECREF(base);
  if (!untracked) return false;
  if (!writable(x)) return false;
  for (size_t i = 0; i < self->kinds->size(); ++i)
    if ((*self->kinds)[i] != 's' && wants_grad(PyTuple_GET_ITEM(args, Py_ssize_t(i))) != 0) return false;
  return true;
}

// Runs the kernel into x and counts the write; nullptr with an error set.
PyObject* write_plainly(const Access* self, PyObject* plan, PyObject* args) {
  PyObject* x = PyTuple_GET_ITEM(args, 0);
  PyObject *into = PyObject_GetAttr(plan, s_into), *target = PyObject_GetAttr(x, s_data);
  PyObject* values = PyTuple_New(self->value_count);
  bool ok = into != nullptr && target != nullptr;
  Py_ssize_t at = 0;
  for (size_t i = 0; ok && i < self->kinds->size(); ++i) {
    if ((*self->kinds)[i] == 's') continue;
    PyObject* d = data_of(PyTuple_GET_ITEM(args, Py_ssize_t(i)));
    ok = d != nullptr;
    if (ok) PyTuple_SET_ITEM(values, at++, d);
  }
  if (ok) {
    PyObject* stack[2] = {values, target};
    PyObject* r = PyObject_Vectorcall(into, stack, 2, nullptr);
    ok = r != nullptr;
    Py_XDECREF(r);
  }
  Py_XDECREF(into);
  Py_XDECREF(target);
  Py_DECREF(values);
  if (!ok) return failed(plan);
  PyObject* storage = PyObject_GetAttr(x, s_storage);
  PyObject* version = storage == nullptr ? nullptr : PyObject_GetAttr(storage, s_version);
  if (version != nullptr) {
    PyObject* next = PyLong_FromSsize_t(PyLong_AsSsize_t(version) + 1);
    ok = next != nullptr && PyObject_SetAttr(storage, s_version, next) == 0;
    Py_XDECREF(next);
    Py_DECREF(version);
  } else {
    ok = false;
  }
  Py_XDECREF(storage);
  return ok ? Py_NewRef(x) : nullptr;
}

// write(op, args, any_cast=False)
PyObject* write(PyObject*, PyObject* const* a, Py_ssize_t n) {
  PyObject* out = nullptr;
  bool done = false;
  if (n >= 2 && PyTuple_CheckExact(a[1]) && PyTuple_GET_SIZE(a[1]) > 0) {
    PyObject* found = PyObject_GetAttr(a[0], s_access);
    if (found == nullptr) return nullptr;
    auto* self = reinterpret_cast<Access*>(found);
    if (found != Py_None && !self->view && PyTuple_GET_SIZE(a[1]) == Py_ssize_t(self->kinds->size()) &&
        flag(state, s_hooks) == 0) {
      PyObject* key = make_key(self, a[1]);
      PyObject* plan = key == nullptr ? nullptr : PyDict_GetItemWithError(self->plans, key);
      Py_XINCREF(plan);
      Py_XDECREF(key);
      if (plan != nullptr && plainly_writable(self, plan, a[1])) {
        out = write_plainly(self, plan, a[1]);
        done = true;
      } else if (PyErr_Occurred()) {
        PyErr_Clear();  // the long way says what is wrong
      }
      Py_XDECREF(plan);
    }
    Py_DECREF(found);
  }
  return done ? out : PyObject_Vectorcall(general_write, a, size_t(n), nullptr);
}

// --- Bound: an operator as a function of its arguments ------------------------------------------------------

struct Bound {
  PyObject_HEAD
  vectorcallfunc call;
  PyObject* op;
};

PyObject* bound_call(PyObject* me, PyObject* const* args, size_t nargsf, PyObject* names) {
  auto* self = reinterpret_cast<Bound*>(me);
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  PyObject* found = names == nullptr ? PyObject_GetAttr(self->op, s_access) : Py_NewRef(Py_None);
  if (found == nullptr) return nullptr;
  const bool usual = found != Py_None && Py_ssize_t(reinterpret_cast<Access*>(found)->kinds->size()) == n;
  Py_DECREF(found);
  if (!usual) return PyObject_Vectorcall(self->op, args, nargsf, names);
  PyObject* tuple = PyTuple_New(n);
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
  PyObject* const pair[2] = {self->op, tuple};
  PyObject* out = call(nullptr, pair, 2);
  Py_DECREF(tuple);
  return out;
}

PyObject* bound_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* op;
  if (!PyArg_ParseTuple(args, "O", &op)) return nullptr;
  auto* self = reinterpret_cast<Bound*>(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  self->call = bound_call;
  self->op = Py_NewRef(op);
  return reinterpret_cast<PyObject*>(self);
}
int bound_traverse(PyObject* me, visitproc visit, void* arg) {
  Py_VISIT(reinterpret_cast<Bound*>(me)->op);
  return 0;
}
int bound_clear(PyObject* me) {
  Py_CLEAR(reinterpret_cast<Bound*>(me)->op);
  return 0;
}
void bound_dealloc(PyObject* me) {
  PyObject_GC_UnTrack(me);
  bound_clear(me);
  Py_TYPE(me)->tp_free(me);
}
PyObject* bound_getattro(PyObject* me, PyObject* name) {
  return PyObject_GetAttr(reinterpret_cast<Bound*>(me)->op, name);
}

}  // namespace

PyTypeObject* bound_type() {
  static PyTypeObject type = {PyVarObject_HEAD_INIT(nullptr, 0)};
  if (type.tp_name == nullptr) {
    type.tp_name = "votive.Bound";
    type.tp_basicsize = sizeof(Bound);
    type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC;
    type.tp_vectorcall_offset = offsetof(Bound, call);
    type.tp_call = PyVectorcall_Call;
    type.tp_getattro = bound_getattro;
    type.tp_new = bound_new;
    type.tp_dealloc = bound_dealloc;
    type.tp_traverse = bound_traverse;
    type.tp_clear = bound_clear;
    type.tp_free = PyObject_GC_Del;
    type.tp_doc = "An operator as a function; all arguments by position take the short way.";
    if (PyType_Ready(&type) < 0) return nullptr;
  }
  return &type;
}

PyTypeObject* fast_type() {
  static PyTypeObject type = {PyVarObject_HEAD_INIT(nullptr, 0)};
  if (type.tp_name == nullptr) {
    type.tp_name = "votive.Fast";
    type.tp_basicsize = sizeof(Fast);
    type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_HAVE_GC;
    type.tp_vectorcall_offset = offsetof(Fast, call);
    type.tp_call = PyVectorcall_Call;
    type.tp_descr_get = fast_get;
    type.tp_new = fast_new;
    type.tp_dealloc = fast_dealloc;
    type.tp_traverse = fast_traverse;
    type.tp_clear = fast_clear;
    type.tp_free = PyObject_GC_Del;
    type.tp_doc = "An elementwise operator: plan lookup, kernel and result without leaving C++.";
    if (PyType_Ready(&type) < 0) return nullptr;
  }
  return &type;
}

PyTypeObject* access_type() {
  static PyTypeObject type = {PyVarObject_HEAD_INIT(nullptr, 0)};
  if (type.tp_name == nullptr) {
    type.tp_name = "votive.Access";
    type.tp_basicsize = sizeof(Access);
    type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
    type.tp_new = access_new;
    type.tp_dealloc = access_dealloc;
    type.tp_traverse = access_traverse;
    type.tp_clear = access_clear;
    type.tp_free = PyObject_GC_Del;
    type.tp_doc = "How an operator's arguments become the key of a plan and the values it runs on.";
    if (PyType_Ready(&type) < 0) return nullptr;
  }
  return &type;
}

bool install_calls(PyObject* tensor, PyObject* state_, PyObject* mode_, PyObject* general_) {
  if (!PyType_Check(tensor)) {
    PyErr_SetString(PyExc_TypeError, "install_calls(Tensor class, state, mode, call)");
    return false;
  }
  tensor_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(tensor));
  state = Py_NewRef(state_);
  mode = Py_NewRef(mode_);
  general = Py_NewRef(general_);
  struct { PyObject** at; const char* text; } names[] = {
      {&s_spec, "_spec"}, {&s_data, "_data"}, {&s_storage, "_storage"}, {&s_rg, "_rg"}, {&s_hooks, "hooks"},
      {&s_grad, "grad"}, {&s_graph, "graph"}, {&s_compute, "compute"}, {&s_out, "out"}, {&s_outs, "outs"},
      {&s_record, "record"}, {&s_access, "access"}, {&s_failed, "failed"}};
  for (auto& n : names) *n.at = PyUnicode_InternFromString(n.text);
  install_views(state, mode);
  return true;
}

PyObject* call_operator(PyObject* op, PyObject* args) {
  PyObject* const pair[2] = {op, args};
  return call(nullptr, pair, 2);
}

void install_write(PyObject* general) {
  general_write = Py_NewRef(general);
  struct { PyObject** at; const char* text; } names[] = {
      {&s_into, "into"}, {&s_writes, "writes"}, {&s_base, "_base"}, {&s_inference, "_inference"}, {&s_version, "version"},
      {&s_readonly, "readonly"}};
  for (auto& n : names) *n.at = PyUnicode_InternFromString(n.text);
}

PyObject* write_function() {
  static PyMethodDef def = {"write", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(write)), METH_FASTCALL,
                            "write(op, args, any_cast=False): run an operator and write over its first argument."};
  return PyCFunction_New(&def, nullptr);
}

PyObject* call_function() {
  static PyMethodDef def = {"call", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call)), METH_FASTCALL,
                            "call(op, args): run an operator on arguments in schema order."};
  return PyCFunction_New(&def, nullptr);
}

}  // namespace vt
