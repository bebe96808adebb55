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

Field tensor_data, tensor_spec, tensor_rg;

bool is_tensor(PyObject* o) { return Py_TYPE(o) == tensor_type || PyType_IsSubtype(Py_TYPE(o), tensor_type); }

bool looks_after_itself(PyObject* v, bool nested) {
  PyTypeObject* type = Py_TYPE(v);
  if (type == tensor_type) return false;
  if (is_list(v)) {
    for (Py_ssize_t i = 0; nested && i < PySequence_Fast_GET_SIZE(v); ++i)
      if (looks_after_itself(PySequence_Fast_GET_ITEM(v, i), false)) return true;
    return false;
  }
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return false;
  if (PyType_IsSubtype(type, tensor_type)) return tensor_spec.get(v) == nullptr;
  return _PyType_Lookup(type, name::__torch_function__) != nullptr;
}

PyObject* wrap(PyObject* storage, PyObject* data, PyObject* spec) {
  PyObject* t = tensor_type->tp_alloc(tensor_type, 0);
  if (t == nullptr) return nullptr;
  tensor_data.set(t, Py_NewRef(data));
  tensor_spec.set(t, Py_NewRef(spec));
  tensor_rg.set(t, Py_NewRef(Py_False));
  if (storage != Py_None && PyObject_GenericSetAttr(t, name::_storage, storage) < 0) Py_CLEAR(t);
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
    PyObject* spec = is_tensor(t) ? tensor_spec.get(t) : nullptr;
    if (spec == nullptr) return nullptr;
    PyTuple_SET_ITEM(specs.get(), i, Py_NewRef(spec));
  }
  return specs.release();
}

// What a plan depends on in a runtime argument.
PyObject* runtime_part(char letter, PyObject* v) {
  switch (letter) {
    case 'n': return type_of(v);
    case 'l': return list_specs(v);
    case 'o': return is_tensor(v) ? Py_XNewRef(tensor_spec.get(v)) : type_of(v);
    case 'T':
      if (v == Py_None) return Py_NewRef(v);
      [[fallthrough]];
    default: return is_tensor(v) ? Py_XNewRef(tensor_spec.get(v)) : nullptr;
  }
}

PyObject* data_of(PyObject* v) {
  if (is_tensor(v)) return Py_NewRef(tensor_data.get(v));
  if (!is_list(v)) return Py_NewRef(v);
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(v);
  Ref out(PyList_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyList_SET_ITEM(out.get(), i, Py_NewRef(tensor_data.get(PySequence_Fast_GET_ITEM(v, i))));
  }
  return out.release();
}

bool wants_grad(PyObject* v) {
  if (is_tensor(v)) return requires_grad(v);
  if (!is_list(v)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(v); ++i) {
    PyObject* t = PySequence_Fast_GET_ITEM(v, i);
    if (is_tensor(t) && requires_grad(t)) return true;
  }
  return false;
}

// Where plans have what calls need of them.
Field plan_out, plan_outs, plan_compute, plan_into, plan_writes;

// Whether a plan gives one tensor, not a tuple of them.
bool single(const Operator& op, PyObject* plan) {
  return op.kind == Operator::pointwise || plan_out.get(plan) != Py_None ||
         (op.n_out == 1 && plan_outs.get(plan) == Py_None);
}

// The k-th of a structured kernel's results: (storage, data, spec).
PyObject* wrap_part(PyObject* parts, Py_ssize_t k) {
  PyObject* p = PyTuple_GET_ITEM(parts, k);
  return wrap(PyTuple_GET_ITEM(p, 0), PyTuple_GET_ITEM(p, 1), PyTuple_GET_ITEM(p, 2));
}

PyObject* wrap_results(const Operator& op, PyObject* plan, PyObject* parts) {
  if (op.kind == Operator::pointwise)
    return wrap(PyTuple_GET_ITEM(parts, 0), PyTuple_GET_ITEM(parts, 1), plan_out.get(plan));
  if (single(op, plan)) return wrap_part(parts, 0);
  const Py_ssize_t m = PyTuple_GET_SIZE(parts);
  Ref out(PyTuple_New(m));
  for (Py_ssize_t i = 0; i < m; ++i) {
    PyObject* t = wrap_part(parts, i);
    if (t == nullptr) return nullptr;
    PyTuple_SET_ITEM(out.get(), i, t);
  }
  return out.release();
}

// The result of a plan for these data; nullptr with an error set.
PyObject* compute(const Operator& op, PyObject* plan, PyObject* const* data, int n) {
  const Ref kernel = Ref::to(plan_compute.get(plan));
  Result made;
  if (const int done = single(op, plan) ? run_directly(kernel.get(), data, n, made) : 0) {
    if (done < 0) return failed(plan);
    const Ref storage(made.storage), array(made.array);
    return wrap(made.storage, made.array, made.spec);
  }
  const Ref parts(PyObject_Vectorcall(kernel.get(), data, size_t(n) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
  return parts ? wrap_results(op, plan, parts.get()) : failed(plan);
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
  for (int k = 0; k < n; ++k) data[k + 1] = data_of(values[k]);
  Ref out(compute(op, plan, data + 1, n));
  for (int k = 0; k < n; ++k) Py_DECREF(data[k + 1]);
  if (!out || !op.differentiable) return out.release();
  bool tracked = false;
  for (int k = 0; k < n && !tracked; ++k) tracked = wants_grad(values[k]);
  const int wants = tracked ? flag(mode, name::grad) : 0;
  if (wants < 0 || (wants > 0 && !record(plan, values, n, out.get()))) return nullptr;
  return out.release();
}

// --- writing in place -------------------------------------------------------------------------------------

namespace {

// Whether memory may be written. A view's array is writable when its base's is, so the array tells; a GPU's
// view leaves that to the storage.
bool writable(PyObject* x) {
  PyObject* data = tensor_data.get(x);
  if (data == nullptr) return false;
  if (PyArray_Check(data)) return PyArray_ISWRITEABLE(reinterpret_cast<PyArrayObject*>(data));
  Ref storage(PyObject_GetAttr(x, name::_storage));
  return storage && flag(storage.get(), name::readonly) == 0;
}

// Whether the kernel may write straight into x: no history on it, its base or the values, memory that may
// be written.
bool plainly_writable(const Operator& op, PyObject* plan, PyObject* x, PyObject* const* values) {
  if (!is_tensor(x)) return false;
  if (plan_writes.get(plan) != Py_True || flag(x, name::_inference) != 0) return false;
  Ref base(PyObject_GetAttr(x, name::_base));
  if (!base || (base.get() != Py_None && requires_grad(base.get())) || !writable(x)) return false;
  for (int k = 0; k < op.values; ++k)
    if (wants_grad(values[k])) return false;
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
  const Ref into = Ref::to(plan_into.get(plan)), target = Ref::to(tensor_data.get(x)), data(PyTuple_New(op.values));
  for (int k = 0; k < op.values; ++k) PyTuple_SET_ITEM(data.get(), k, data_of(values[k]));
  PyObject* stack[2] = {data.get(), target.get()};
  if (!Ref(PyObject_Vectorcall(into.get(), stack, 2, nullptr))) {
    failed(plan);
    return -1;
  }
  return count_write(x) ? 1 : -1;
}

bool install_calls(PyObject* tensor, PyObject* plan, PyObject* state_, PyObject* mode_) {
  if (!find_slots(tensor, {{"_data", &tensor_data}, {"_spec", &tensor_spec}, {"_rg", &tensor_rg}}) ||
      !find_slots(plan, {{"out", &plan_out}, {"outs", &plan_outs}, {"compute", &plan_compute}, {"into", &plan_into}, {"writes", &plan_writes}}))
    return false;
  tensor_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(tensor));
  state = Py_NewRef(state_);
  mode = Py_NewRef(mode_);
  install_views(mode);
  return true;
}

}  // namespace vt
