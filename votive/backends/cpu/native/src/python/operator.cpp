// The operators that users call: arguments are bound and a plan is found and run without Python. Whatever is
// unusual (no plan yet, an observer, autocast, a wrong argument) goes to `general`, which Python defines.
#include "operator.h"

#include <vector>

namespace vt {

bool unusual = false;
PyTypeObject* wrapped = nullptr;

namespace name {
#define X(n) PyObject* n;
VT_NAMES(X)
#undef X
}  // namespace name

void intern_names() {
#define X(n) name::n = PyUnicode_InternFromString(#n);
  VT_NAMES(X)
#undef X
}

namespace {

// The general way, a method of the Python class: general(*args, **kwargs).
PyObject* general(PyObject* me, PyObject* const* args, Py_ssize_t n, PyObject* names, PyObject* how = name::general) {
  const Py_ssize_t all = n + (names == nullptr ? 0 : PyTuple_GET_SIZE(names));
  PyObject* few[MAX_ARGS + 1];
  std::vector<PyObject*> many(all > MAX_ARGS ? size_t(all) + 1 : 0);
  PyObject** stack = many.empty() ? few : many.data();
  stack[0] = me;
  for (Py_ssize_t i = 0; i < all; ++i) stack[i + 1] = args[i];
  return PyObject_VectorcallMethod(how, stack, size_t(n + 1), names);
}

// Arguments in schema order, defaults filled in; false: Python binds them, or says what is wrong.
bool bind(const Operator& op, PyObject* const* args, Py_ssize_t n, PyObject* names, PyObject** bound) {
  const Py_ssize_t count = Py_ssize_t(op.letters.size());
  if (n > op.positional || count > MAX_ARGS) return false;
  for (Py_ssize_t i = 0; i < n; ++i) bound[i] = args[i];
  for (Py_ssize_t i = n; i < count; ++i) bound[i] = PyTuple_GET_ITEM(op.defaults.get(), i);
  for (Py_ssize_t k = 0; names != nullptr && k < PyTuple_GET_SIZE(names); ++k) {
    PyObject* given = PyTuple_GET_ITEM(names, k);
    Py_ssize_t at = n;
    while (at < count && PyTuple_GET_ITEM(op.names.get(), at) != given) ++at;
    if (at == count) return false;  // `out`, another spelling, a name that is not interned, a mistake
    bound[at] = args[n + k];
  }
  for (Py_ssize_t i = n; i < count; ++i)
    if (bound[i] == Py_Ellipsis) return false;
  return true;
}

// 1 with `out` set, 0 for the general way, -1 with an error set.
int run_bound(const Operator& op, PyObject* const* args, PyObject** out) {
  Ref key(key_of(op, args));
  if (!key) {
    if (!PyErr_Occurred()) return 0;
    PyErr_Clear();
    return 0;
  }
  Ref plan = Ref::to(PyDict_GetItemWithError(op.plans.get(), key.get()));
  if (!plan) {
    PyErr_Clear();  // an unhashable argument: the general way says what is wrong
    return 0;
  }
  PyObject* values[MAX_ARGS];
  int at = 0;
  for (size_t i = 0; i < op.letters.size(); ++i)
    if (op.letters[i] != 's') values[at++] = args[i];
  if (op.writes) {
    const int done = write_usual(op, plan.get(), args[0], values);
    if (done > 0) *out = Py_NewRef(args[0]);
    return done;
  }
  if (op.kind == Operator::view) return view_usual(plan.get(), values[0], out);
  *out = execute(op, plan.get(), values);
  return *out == nullptr ? -1 : 1;
}

bool takes_itself(const Operator& op, PyObject* names) {
  if (names == nullptr || !op.special) return true;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(names); ++k)
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(op.special.get()); ++i)
      if (PyUnicode_Compare(PyTuple_GET_ITEM(names, k), PyTuple_GET_ITEM(op.special.get(), i)) == 0) return false;
  return true;
}

// An error whose cause may be an argument of a wrong type: Python looks and says which function was called.
PyObject* blamed(PyObject* me) {
  if (!PyErr_ExceptionMatches(PyExc_AttributeError) && !PyErr_ExceptionMatches(PyExc_TypeError)) return nullptr;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace != nullptr) PyException_SetTraceback(value, trace);
  PyObject* r = PyObject_CallMethodOneArg(me, name::blame, value);  // raises another error, or none
  if (r == nullptr) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return nullptr;
  }
  Py_DECREF(r);
  PyErr_Restore(type, value, trace);
  return nullptr;
}

// Whether an argument, or one in a list of them, is a tensor whose class computes in its own way (dispatch/wrapped.py).
bool any_wrapped(PyObject* const* args, Py_ssize_t n, bool nested = true) {
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (PyType_IsSubtype(Py_TYPE(args[i]), wrapped)) return true;
    if (nested && (PyList_CheckExact(args[i]) || PyTuple_CheckExact(args[i])) &&
        any_wrapped(PySequence_Fast_ITEMS(args[i]), PySequence_Fast_GET_SIZE(args[i]), false))
      return true;
  }
  return false;
}

PyObject* call_composite(PyObject* me, const Operator& op, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  Ref key;
  if (op.memory) {
    PyObject* out = nullptr;
    const int done = recall(op, args, n, names, &out, key);
    if (done != 0) return out;
  }
  for (Py_ssize_t k = 0, all = n + (names == nullptr ? 0 : PyTuple_GET_SIZE(names)); k < all; ++k)
    if (looks_after_itself(args[k])) return general(me, args, n, names, name::overridden);
  PyObject* out = PyObject_Vectorcall(op.fn.get(), args, size_t(n), names);
  if (out == nullptr) return blamed(me);
  if (key && !remember(op, key.get(), args[0], out)) Py_CLEAR(out);
  return out;
}

PyObject* operator_call(PyObject* me, PyObject* const* args, size_t nargsf, PyObject* names) {
  const Operator& op = unbox<Operator>(me);
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  if (unusual || op.kind == Operator::unset) {
    for (Py_ssize_t k = 0, all = n + (names == nullptr ? 0 : PyTuple_GET_SIZE(names)); k < all; ++k)
      if (looks_after_itself(args[k])) return general(me, args, n, names, name::overridden);
    return general(me, args, n, names);
  }
  if (op.kind == Operator::composite) {
    const bool plain = takes_itself(op, names) &&
                       (wrapped == nullptr || !any_wrapped(args, n + (names == nullptr ? 0 : PyTuple_GET_SIZE(names))));
    return plain ? call_composite(me, op, args, n, names) : general(me, args, n, names);
  }
  PyObject *bound[MAX_ARGS], *out = nullptr, *swapped[2];
  PyObject* const* given = args;
  if (op.reflected && n == 2) {
    swapped[0] = args[1], swapped[1] = args[0];
    given = swapped;
  }
  if (!bind(op, given, n, names, bound)) return general(me, args, n, names);
  const int done = run_bound(op, bound, &out);
  return done == 0 ? general(me, args, n, names) : out;
}

PyObject* operator_new(PyTypeObject* type, PyObject*, PyObject*) { return box<Operator>(type, operator_call); }

PyObject* operator_get(PyObject* me, PyObject* instance, PyObject*) {
  return instance == nullptr || instance == Py_None ? Py_NewRef(me) : PyMethod_New(me, instance);
}

// _configure(letters, names, defaults, positional, plans, kind, n_out, differentiable, writes, reflected)
PyObject* configure(PyObject* me, PyObject* args) {
  Operator& op = unbox<Operator>(me);
  const char *letters, *kind;
  PyObject *names, *defaults, *plans;
  Py_ssize_t positional;
  int n_out, differentiable, writes, reflected;
  if (!PyArg_ParseTuple(args, "sO!O!nO!sippp", &letters, &PyTuple_Type, &names, &PyTuple_Type, &defaults, &positional,
                        &PyDict_Type, &plans, &kind, &n_out, &differentiable, &writes, &reflected))
    return nullptr;
  op.letters = letters;
  op.names = Ref::to(names);
  op.defaults = Ref::to(defaults);
  op.plans = Ref::to(plans);
  op.positional = positional;
  op.values = 0;
  for (char c : op.letters) op.values += c != 's';
  op.n_out = n_out;
  op.differentiable = differentiable;
  op.writes = writes;
  op.reflected = reflected;
  op.kind = kind[0] == 'p' ? Operator::pointwise : kind[0] == 'v' ? Operator::view : Operator::structured;
  Py_RETURN_NONE;
}

// _compose(fn, special, memory or None, resolve or None, indexes)
PyObject* compose(PyObject* me, PyObject* args) {
  Operator& op = unbox<Operator>(me);
  PyObject *fn, *special, *memory, *resolve;
  int indexes;
  if (!PyArg_ParseTuple(args, "OO!OOp", &fn, &PyTuple_Type, &special, &memory, &resolve, &indexes)) return nullptr;
  op.fn = Ref::to(fn);
  op.special = Ref::to(special);
  op.memory = memory == Py_None ? Ref() : Ref::to(memory);
  op.resolve = resolve == Py_None ? Ref() : Ref::to(resolve);
  op.indexes = indexes;
  op.kind = Operator::composite;
  Py_RETURN_NONE;
}

// Classes that Python derives are called and bound as quickly as the type itself. They inherit that by themselves
// from Python 3.12 on.
PyObject* init_subclass(PyObject* cls, PyObject*, PyObject*) {
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
  PyType_Modified(type);
  Py_RETURN_NONE;
}

}  // namespace

PyObject* apply(PyObject* me, PyObject* const* args) {
  const Operator& op = unbox<Operator>(me);
  PyObject* out = nullptr;
  if (!unusual && op.kind != Operator::unset) {
    const int done = run_bound(op, args, &out);
    if (done != 0) return out;
  }
  PyObject* tuple = PyTuple_New(Py_ssize_t(op.letters.size()));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
  out = PyObject_CallMethodOneArg(me, name::apply_general, tuple);
  Py_DECREF(tuple);
  return out;
}

PyObject* apply_tuple(PyObject* me, PyObject* args) {
  const Operator& op = unbox<Operator>(me);
  if (PyTuple_CheckExact(args) && op.kind != Operator::unset && op.kind != Operator::composite &&
      PyTuple_GET_SIZE(args) == Py_ssize_t(op.letters.size()) && op.letters.size() <= MAX_ARGS)
    return apply(me, reinterpret_cast<PyTupleObject*>(args)->ob_item);
  if (PyTuple_CheckExact(args) && op.kind == Operator::composite) return PyObject_Call(me, args, nullptr);
  return PyObject_CallMethodOneArg(me, name::apply_general, args);
}

PyTypeObject* operator_type() {
  static PyMethodDef methods[] = {
      {"apply", apply_tuple, METH_O, "apply(args): run on arguments in schema order."},
      {"_configure", configure, METH_VARARGS, "What is known of the arguments, from the schema."},
      {"_compose", compose, METH_VARARGS, "The function of a composite, and the table of what its calls came down to."},
      {"__init_subclass__", as_method(init_subclass), METH_VARARGS | METH_KEYWORDS | METH_CLASS, nullptr},
      {nullptr, nullptr, 0, nullptr}};
  return make_type<Operator>({.name = "votive.NativeOperator",
                              .doc = "An operator as a callable; Python's classes of operators derive from it.",
                              .make = operator_new,
                              .call = operator_call,
                              .methods = methods,
                              .get = operator_get,
                              .flags = Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_BASETYPE});
}

}  // namespace vt
