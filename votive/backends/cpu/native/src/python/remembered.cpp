// Thin composites: `x.view(4, 4)`, `x.float()`, `zeros(3)` come down to one view or one call of an operator. What the
// same arguments came down to is remembered, so that the function itself runs once.
#include "operator.h"

namespace vt {
namespace {

PyTypeObject* dtype_type = nullptr;
PyObject* device_stack = nullptr;  // a list: the devices of `with` blocks

// An argument as part of a key, or nullptr without an error when it is not one we remember. Types are
// exact, because True and 1 mean different things; truth values are `flags`, or parts of an index that is looked at anew.
PyObject* part_of(PyObject* v, bool flags, int depth = 0) {
  if (flags && PyBool_Check(v)) return PyTuple_Pack(2, reinterpret_cast<PyObject*>(&PyBool_Type), v);
  if (PyLong_CheckExact(v) || PyUnicode_CheckExact(v) || v == Py_None || v == Py_Ellipsis || Py_TYPE(v) == dtype_type) return Py_NewRef(v);
  if (PySlice_Check(v)) {
    auto* s = reinterpret_cast<PySliceObject*>(v);
    for (PyObject* end : {s->start, s->stop, s->step})
      if (end != Py_None && !PyLong_CheckExact(end)) return nullptr;
    return PyTuple_Pack(4, reinterpret_cast<PyObject*>(&PySlice_Type), s->start, s->stop, s->step);
  }
  if ((PyTuple_CheckExact(v) || PyList_CheckExact(v)) && depth < 2) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(v);
    Ref t(PyTuple_New(n + 1));
    PyTuple_SET_ITEM(t.get(), 0, Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(v))));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* p = part_of(PySequence_Fast_GET_ITEM(v, i), flags, depth + 1);
      if (p == nullptr) return nullptr;
      PyTuple_SET_ITEM(t.get(), i + 1, p);
    }
    return t.release();
  }
  return nullptr;
}

// The first argument's spec where it is a tensor, the others as they are, and the names of those given by name.
PyObject* call_key(PyObject* const* args, Py_ssize_t n, PyObject* names, bool flags) {
  const Py_ssize_t all = n + (names == nullptr ? 0 : PyTuple_GET_SIZE(names));
  Ref key(PyTuple_New(all + (names != nullptr)));
  for (Py_ssize_t k = 0; k < all; ++k) {
    PyObject* part = k == 0 && is_tensor(args[0]) ? Py_XNewRef(tensor_spec.get(args[0])) : part_of(args[k], flags);
    if (part == nullptr) return nullptr;
    PyTuple_SET_ITEM(key.get(), k, part);
  }
  if (names != nullptr) PyTuple_SET_ITEM(key.get(), all, Py_NewRef(names));
  return key.release();
}

// A call that `resolve` gave, (operator or None, arguments), without the tensor it was found with: Ellipsis stands
// for the one that is given each time.
PyObject* without_tensor(PyObject* call) {
  PyObject* given = PyTuple_GET_ITEM(call, 1);
  const Py_ssize_t m = PyTuple_GET_SIZE(given);
  if (m == 0 || !is_tensor(PyTuple_GET_ITEM(given, 0))) return Py_NewRef(call);
  Ref rest(PyTuple_New(m));
  PyTuple_SET_ITEM(rest.get(), 0, Py_NewRef(Py_Ellipsis));
  for (Py_ssize_t i = 1; i < m; ++i) PyTuple_SET_ITEM(rest.get(), i, Py_NewRef(PyTuple_GET_ITEM(given, i)));
  return PyTuple_Pack(2, PyTuple_GET_ITEM(call, 0), rest.get());
}

// The remembered call; nullptr: the function itself must run (an error says it better with the function on the stack).
PyObject* repeat(PyObject* found, PyObject* x) {
  PyObject *op = PyTuple_GET_ITEM(found, 0), *given = PyTuple_GET_ITEM(found, 1);
  if (op == Py_None) return Py_NewRef(x);
  PyObject* out;
  const Py_ssize_t m = PyTuple_GET_SIZE(given);
  if (m == 0 || PyTuple_GET_ITEM(given, 0) != Py_Ellipsis) out = apply_tuple(op, given);
  else {
    Ref full(PyTuple_New(m));
    PyTuple_SET_ITEM(full.get(), 0, Py_NewRef(x));
    for (Py_ssize_t i = 1; i < m; ++i) PyTuple_SET_ITEM(full.get(), i, Py_NewRef(PyTuple_GET_ITEM(given, i)));
    out = apply_tuple(op, full.get());
  }
  if (out == nullptr && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();
  return out;
}

bool store(PyObject* memory, PyObject* key, PyObject* value) {
  if (PyDict_GET_SIZE(memory) >= MOST_REMEMBERED) PyDict_Clear(memory);
  return PyDict_SetItem(memory, key, value) == 0;
}

}  // namespace

int recall(const Operator& op, PyObject* const* args, Py_ssize_t n, PyObject* names, PyObject** out, Ref& key) {
  const bool tensor = n > 0 && is_tensor(args[0]);
  if (n < 1 || n > 8 || !(tensor || op.resolve)) return 0;
  if (op.resolve && PyList_GET_SIZE(device_stack) > 0) return 0;
  if (op.indexes && n == 2)
    if (const int done = item_usual(args[0], args[1], out)) return done;
  key = Ref(call_key(args, n, names, bool(op.resolve)));
  if (!key) return PyErr_Occurred() ? -1 : 0;
  Ref found = Ref::to(PyDict_GetItemWithError(op.memory.get(), key.get()));
  if (!found && PyErr_Occurred()) return -1;
  if (!found && op.resolve) {
    found = Ref(PyObject_Vectorcall(op.resolve.get(), args, size_t(n), names));
    if (!found) {
      PyErr_Clear();  // wrong or unusual arguments: the function itself says what is wrong with them
      found = Ref::to(Py_None);
    }
    if (found.get() != Py_None) found = Ref(without_tensor(found.get()));
    if (!found || !store(op.memory.get(), key.get(), found.get())) return -1;
  }
  if (found) {
    Ref spent = std::move(key);  // nothing more to remember
    if (found.get() == Py_None) return 0;
    if (!PyTuple_CheckExact(found.get())) return view_usual(found.get(), args[0], out);
    *out = repeat(found.get(), args[0]);
    return *out != nullptr ? 1 : PyErr_Occurred() ? -1 : 0;
  }
  if (op.resolve) key = Ref();
  return 0;
}

bool remember(const Operator& op, PyObject* key, PyObject* x, PyObject* out) {
  if (!is_tensor(out)) return true;
  Ref chain(PyObject_GetAttr(out, name::_chain)), before(PyObject_GetAttr(x, name::_chain)),
      base(PyObject_GetAttr(out, name::_base)), x_base(PyObject_GetAttr(x, name::_base));
  if (!chain || !before || !base || !x_base) return false;
  const Py_ssize_t steps = PyTuple_GET_SIZE(chain.get());
  const bool one_step = base.get() != Py_None && base.get() == (x_base.get() == Py_None ? x : x_base.get()) &&
                        steps == PyTuple_GET_SIZE(before.get()) + 1;
  if (!one_step) return true;
  PyObject* plan = PyTuple_GET_ITEM(chain.get(), steps - 1);
  return PyTuple_CheckExact(plan) || store(op.memory.get(), key, plan);  // a tuple: made without a plan
}

void install_recall(PyObject* dtype, PyObject* stack) {
  dtype_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(dtype));
  device_stack = Py_NewRef(stack);
}

}  // namespace vt
