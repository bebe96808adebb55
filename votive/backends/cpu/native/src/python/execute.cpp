// How a call with a plan runs: the key that finds it, the kernel, the result as a tensor, the node that records it. The
// same steps as dispatch/execute.py, which serves whatever is unusual.
#include "operator.h"

namespace vt {

namespace {

// What every call looks at; set once from Python.
PyTypeObject* tensor_type = nullptr;
PyObject* state = nullptr;
PyObject* mode = nullptr;

bool is_list(PyObject* v) { return PyList_CheckExact(v) || PyTuple_CheckExact(v); }

PyObject* type_of(PyObject* v) { return Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(v))); }

}  // namespace

bool is_tensor(PyObject* o) { return Py_TYPE(o) == tensor_type || PyType_IsSubtype(Py_TYPE(o), tensor_type); }

PyObject* wrap(PyObject* storage, PyObject* data, PyObject* spec) {
  PyObject* t = tensor_type->tp_alloc(tensor_type, 0);
  if (t == nullptr) return nullptr;
  // The data first: attributes die in the order in which they were set, see dispatch.state.make.
  if (PyObject_GenericSetAttr(t, name::_data, data) < 0 ||
      (storage != Py_None && PyObject_GenericSetAttr(t, name::_storage, storage) < 0) ||
      PyObject_GenericSetAttr(t, name::_spec, spec) < 0) {
    Py_DECREF(t);
    return nullptr;
  }
  return t;
}

bool record(PyObject* plan, PyObject* const* values, Py_ssize_t n, PyObject* out) {
  const int done = record_usual(plan, values, n, out);
  if (done != 0) return done > 0;
  Ref graph(PyObject_GetAttr(state, name::graph));
  if (!graph) return false;
  Ref tuple(PyTuple_New(n));
  for (Py_ssize_t k = 0; k < n; ++k) PyTuple_SET_ITEM(tuple.get(), k, Py_NewRef(values[k]));
  return bool(Ref(PyObject_CallMethodObjArgs(graph.get(), name::record, plan, tuple.get(), out, nullptr)));
}

namespace {

// A kernel that ran out of memory, or was given a number that does not fit, knows neither its operator nor
// what the user called: dispatch/failure.py says it in their words. Gives nullptr, with an error set.
PyObject* failed(PyObject* plan) {
  if (!PyErr_ExceptionMatches(PyExc_MemoryError) && !PyErr_ExceptionMatches(PyExc_OverflowError) &&
      !PyErr_ExceptionMatches(PyExc_ValueError))
    return nullptr;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  Ref raised(PyObject_CallMethodObjArgs(state, name::failed, plan, value, nullptr));
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  return nullptr;
}

// The specs of a list of tensors, False for what is no list, nullptr without an error for a list that holds
// something else.
PyObject* list_specs(PyObject* v) {
  if (!is_list(v)) return Py_NewRef(Py_False);
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(v);
  Ref specs(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* t = PySequence_Fast_GET_ITEM(v, i);
    PyObject* spec = is_tensor(t) ? PyObject_GetAttr(t, name::_spec) : nullptr;
    if (spec == nullptr) return nullptr;
    PyTuple_SET_ITEM(specs.get(), i, spec);
  }
  return specs.release();
}

// What a plan depends on in a runtime argument.
PyObject* runtime_part(char letter, PyObject* v) {
  switch (letter) {
    case 'n': return type_of(v);
    case 'l': return list_specs(v);
    case 'o': return is_tensor(v) ? PyObject_GetAttr(v, name::_spec) : type_of(v);
    case 'T':
      if (v == Py_None) return Py_NewRef(v);
      [[fallthrough]];
    default: return is_tensor(v) ? PyObject_GetAttr(v, name::_spec) : nullptr;
  }
}

PyObject* data_of(PyObject* v) {
  if (is_tensor(v)) return PyObject_GetAttr(v, name::_data);
  if (!is_list(v)) return Py_NewRef(v);
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(v);
  Ref out(PyList_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* d = PyObject_GetAttr(PySequence_Fast_GET_ITEM(v, i), name::_data);
    if (d == nullptr) return nullptr;
    PyList_SET_ITEM(out.get(), i, d);
  }
  return out.release();
}

int wants_grad(PyObject* v) {
  if (is_tensor(v)) return flag(v, name::_rg);
  if (!is_list(v)) return 0;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(v); ++i) {
    PyObject* t = PySequence_Fast_GET_ITEM(v, i);
    const int r = is_tensor(t) ? flag(t, name::_rg) : 0;
    if (r != 0) return r;
  }
  return 0;
}

// The k-th of a structured kernel's results: (storage, data, spec).
PyObject* wrap_part(PyObject* parts, Py_ssize_t k) {
  PyObject* p = PyTuple_GET_ITEM(parts, k);
  return wrap(PyTuple_GET_ITEM(p, 0), PyTuple_GET_ITEM(p, 1), PyTuple_GET_ITEM(p, 2));
}

PyObject* wrap_results(const Operator& op, PyObject* plan, PyObject* parts) {
  Ref spec(PyObject_GetAttr(plan, name::out));
  if (!spec) return nullptr;
  if (op.kind == Operator::pointwise) return wrap(PyTuple_GET_ITEM(parts, 0), PyTuple_GET_ITEM(parts, 1), spec.get());
  bool single = spec.get() != Py_None;
  if (!single && op.n_out == 1) {
    Ref outs(PyObject_GetAttr(plan, name::outs));
    single = outs.get() == Py_None;
  }
  if (single) return wrap_part(parts, 0);
  const Py_ssize_t m = PyTuple_GET_SIZE(parts);
  Ref out(PyTuple_New(m));
  for (Py_ssize_t i = 0; i < m; ++i) {
    PyObject* t = wrap_part(parts, i);
    if (t == nullptr) return nullptr;
    PyTuple_SET_ITEM(out.get(), i, t);
  }
  return out.release();
}

}  // namespace

// (runtime parts..., then position, type and value of each static argument that is not its default). One part alone is
// the key itself. dispatch/arguments.py makes the same. nullptr, with or without an error, when the general way must look.
PyObject* key_of(const Operator& op, PyObject* const* args) {
  PyObject* parts[3 * MAX_ARGS];
  int m = 0;
  const size_t n = op.letters.size();
  for (size_t i = 0; i < n; ++i) {
    if (op.letters[i] == 's') continue;
    PyObject* part = runtime_part(op.letters[i], args[i]);
    if (part == nullptr) {
      while (m > 0) Py_DECREF(parts[--m]);
      return nullptr;
    }
    parts[m++] = part;
  }
  if (size_t(op.values) < n)
    for (size_t i = 0; i < n; ++i) {
      if (op.letters[i] != 's' || args[i] == PyTuple_GET_ITEM(op.defaults.get(), Py_ssize_t(i))) continue;
      parts[m++] = PyLong_FromSize_t(i);
      parts[m++] = type_of(args[i]);
      parts[m++] = Py_NewRef(args[i]);
    }
  if (m == 1) return parts[0];
  PyObject* key = PyTuple_New(m);
  for (int k = 0; k < m; ++k) PyTuple_SET_ITEM(key, k, parts[k]);
  return key;
}

PyObject* execute(const Operator& op, PyObject* plan, PyObject* const* values) {
  const int n = op.values;
  PyObject* data[MAX_ARGS + 1];
  Ref compute(PyObject_GetAttr(plan, name::compute)), out;
  if (!compute) return nullptr;
  int made = 0;
  while (made < n && (data[made + 1] = data_of(values[made])) != nullptr) ++made;
  Ref parts;
  if (made == n)
    parts = Ref(PyObject_Vectorcall(compute.get(), data + 1, size_t(n) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
  for (int k = 0; k < made; ++k) Py_DECREF(data[k + 1]);
  if (!parts) return failed(plan);
  out = Ref(wrap_results(op, plan, parts.get()));
  if (!out || !op.differentiable) return out.release();
  int wants = 0;
  for (int k = 0; k < n && wants == 0; ++k) wants = wants_grad(values[k]);
  if (wants > 0) wants = flag(mode, name::grad);
  if (wants < 0 || (wants > 0 && !record(plan, values, n, out.get()))) return nullptr;
  return out.release();
}

// --- writing in place -------------------------------------------------------------------------------------

namespace {

// Whether memory may be written. A view's array is writable when its base's is, so the array tells; a GPU's
// view leaves that to the storage.
bool writable(PyObject* x) {
  Ref data(PyObject_GetAttr(x, name::_data));
  if (!data) return false;
  if (PyArray_Check(data.get())) return PyArray_ISWRITEABLE(reinterpret_cast<PyArrayObject*>(data.get()));
  Ref storage(PyObject_GetAttr(x, name::_storage));
  return storage && flag(storage.get(), name::readonly) == 0;
}

// Whether the kernel may write straight into x: no history on it, its base or the values, memory that may
// be written.
bool plainly_writable(const Operator& op, PyObject* plan, PyObject* x, PyObject* const* values) {
  if (!is_tensor(x)) return false;
  Ref writes(PyObject_GetAttr(plan, name::writes));
  if (writes.get() != Py_True || flag(x, name::_inference) != 0) return false;
  Ref base(PyObject_GetAttr(x, name::_base));
  if (!base || (base.get() != Py_None && flag(base.get(), name::_rg) != 0) || !writable(x)) return false;
  for (int k = 0; k < op.values; ++k)
    if (wants_grad(values[k]) != 0) return false;
  return true;
}

bool count_write(PyObject* x) {
  Ref storage(PyObject_GetAttr(x, name::_storage));
  if (!storage) return false;
  Ref version(PyObject_GetAttr(storage.get(), name::version));
  if (!version) return false;
  Ref next(PyLong_FromSsize_t(PyLong_AsSsize_t(version.get()) + 1));
  return next && PyObject_SetAttr(storage.get(), name::version, next.get()) == 0;
}

}  // namespace

int write_usual(const Operator& op, PyObject* plan, PyObject* x, PyObject* const* values) {
  if (!plainly_writable(op, plan, x, values)) {
    PyErr_Clear();  // the general way says what is wrong
    return 0;
  }
  Ref into(PyObject_GetAttr(plan, name::into)), target(PyObject_GetAttr(x, name::_data)), data(PyTuple_New(op.values));
  if (!into || !target) return -1;
  for (int k = 0; k < op.values; ++k) {
    PyObject* d = data_of(values[k]);
    if (d == nullptr) return -1;
    PyTuple_SET_ITEM(data.get(), k, d);
  }
  PyObject* stack[2] = {data.get(), target.get()};
  if (!Ref(PyObject_Vectorcall(into.get(), stack, 2, nullptr))) {
    failed(plan);
    return -1;
  }
  return count_write(x) ? 1 : -1;
}

bool install_calls(PyObject* tensor, PyObject* state_, PyObject* mode_) {
  if (!PyType_Check(tensor)) {
    PyErr_SetString(PyExc_TypeError, "install_calls(Tensor class, state, mode)");
    return false;
  }
  tensor_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(tensor));
  state = Py_NewRef(state_);
  mode = Py_NewRef(mode_);
  install_views(mode);
  return true;
}

}  // namespace vt
