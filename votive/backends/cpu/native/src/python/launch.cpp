// A kernel by name, and bound to static arguments: compute(*values) -> ((storage, array, spec), ...).
#include "object.h"
#include "api.h"

#include "../vt/kernel.h"

namespace vt {

// Appends one Python value to a call; false with an error set.
static bool append(Call& c, PyObject* v) {
  if (PyArray_Check(v)) {
    auto* a = reinterpret_cast<PyArrayObject*>(v);
    View w;
    w.data = PyArray_BYTES(a);
    w.ndim = PyArray_NDIM(a);
    w.shape = PyArray_DIMS(a);
    w.strides = PyArray_STRIDES(a);
    w.dtype = dtype_of_array(a);
    c.views.push_back(w);
    return true;
  }
  if (v == Py_None) {
    c.views.emplace_back();
    return true;
  }
  if (PyFloat_Check(v)) {
    c.floats.push_back(PyFloat_AS_DOUBLE(v));
    return true;
  }
  if (PyLong_Check(v)) {
    int overflow = 0;
    int64_t x = PyLong_AsLongLongAndOverflow(v, &overflow);
    // Keys and counters of random numbers have all 64 bits.
    if (overflow > 0) x = int64_t(PyLong_AsUnsignedLongLong(v));
    else if (overflow < 0) PyLong_AsLongLong(v);
    c.ints.push_back(x);
    return !PyErr_Occurred();
  }
  if (PyList_Check(v) || PyTuple_Check(v)) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(v);
    for (Py_ssize_t i = 0; i < n; ++i)
      if (!append(c, PySequence_Fast_GET_ITEM(v, i))) return false;
    return true;
  }
  const double x = PyFloat_AsDouble(v);
  if (x == -1.0 && PyErr_Occurred()) return false;
  c.floats.push_back(x);
  return true;
}

static bool large(const Call& c) {
  int64_t n = 0;
  for (const View& v : c.views)
    if (v) n += v.numel();
  return n > 8192;
}

// Calls that are not nested reuse their vectors.
struct CallFrame {
  Call* c;
  CallFrame() {
    static std::vector<Call*> spare;
    pool = &spare;
    if (spare.empty()) c = new Call();
    else c = spare.back(), spare.pop_back();
  }
  ~CallFrame() {
    c->views.clear();
    c->ints.clear();
    c->floats.clear();
    pool->push_back(c);
  }
  std::vector<Call*>* pool;
};

// --- Kernel: kernel(*arguments), by name ------------------------------------------------------------

namespace {

struct NamedKernel {
  KernelFn fn;
};

}  // namespace

static PyObject* kernel_call(PyObject* me, PyObject* const* args, size_t nargsf, PyObject*) {
  auto* self = &unbox<NamedKernel>(me);
  CallFrame frame;
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!append(*frame.c, args[i])) return nullptr;
  if (!guarded(large(*frame.c), [&] { self->fn(*frame.c); })) return nullptr;
  Py_RETURN_NONE;
}

static KernelFn named(PyObject* name) {
  const char* s = PyUnicode_AsUTF8(name);
  KernelFn fn = s == nullptr ? nullptr : find_kernel(s);
  if (fn == nullptr && !PyErr_Occurred()) PyErr_Format(PyExc_KeyError, "no native kernel %S", name);
  return fn;
}

static PyObject* kernel_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* name;
  if (!PyArg_ParseTuple(args, "U", &name)) return nullptr;
  KernelFn fn = named(name);
  if (fn == nullptr) return nullptr;
  return box<NamedKernel>(type, kernel_call, fn);
}

PyTypeObject* kernel_type() {
  return make_type<NamedKernel>({.name = "votive.Kernel",
                                 .doc = "A kernel by name: arrays, None, ints, floats and lists of them, in its own order.",
                                 .make = kernel_new,
                                 .call = kernel_call});
}

// --- Launch: a kernel with static arguments in place and results made here ----------------------------

namespace {

struct Entry {
  enum Kind { slot, out, fixed } kind;
  int index;
  Ref value;
};

constexpr int MAX_RESULTS = 64;

struct Launch {
  KernelFn fn = nullptr;
  std::vector<Entry> entries;
  std::vector<SpecPtr> outs;
};

PyTypeObject* type = nullptr;

}  // namespace

static bool run(const Launch* self, PyObject* const* values, Py_ssize_t n, PyObject* const* outs) {
  CallFrame frame;
  for (const Entry& e : self->entries) {
    PyObject* v = e.value.get();
    if (e.kind == Entry::slot) {
      if (e.index >= n) {
        PyErr_SetString(PyExc_TypeError, "kernel called with too few values");
        return false;
      }
      v = values[e.index];
    } else if (e.kind == Entry::out) v = outs[e.index];
    if (!append(*frame.c, v)) return false;
  }
  return guarded(large(*frame.c), [&] { self->fn(*frame.c); });
}

int run_launch(PyObject* kernel, PyObject* const* values, Py_ssize_t n, Result& out) {
  if (Py_TYPE(kernel) != type) return 0;
  const auto& self = unbox<Launch>(kernel);
  if (self.outs.size() != 1) return 0;
  return filled(*self.outs[0], out, [&](PyObject* array) { return run(&self, values, n, &array); });
}

static PyObject* launch_call(PyObject* me, PyObject* const* args, size_t nargsf, PyObject*) {
  auto* self = &unbox<Launch>(me);
  const int n = int(self->outs.size());
  PyObject* result = PyTuple_New(n);
  PyObject* arrays[MAX_RESULTS];
  for (int k = 0; k < n; ++k) {
    PyObject *storage, *array;
    if (!make_result(*self->outs[size_t(k)], &storage, &array)) {
      Py_DECREF(result);
      return nullptr;
    }
    PyObject* part = PyTuple_New(3);
    PyTuple_SET_ITEM(part, 0, storage);
    PyTuple_SET_ITEM(part, 1, array);
    PyTuple_SET_ITEM(part, 2, Py_NewRef(self->outs[size_t(k)]->spec));
    PyTuple_SET_ITEM(result, k, part);
    arrays[k] = array;
  }
  if (!run(self, args, PyVectorcall_NARGS(nargsf), arrays)) {
    Py_DECREF(result);
    return nullptr;
  }
  return result;
}

// into(values, out): one array, or a sequence of them.
static PyObject* launch_into(PyObject* me, PyObject* const* args, Py_ssize_t n) {
  auto* self = &unbox<Launch>(me);
  if (n != 2) {
    PyErr_SetString(PyExc_TypeError, "into(values, out)");
    return nullptr;
  }
  PyObject* values = PySequence_Fast(args[0], "values must be a sequence");
  if (values == nullptr) return nullptr;
  PyObject* outs[MAX_RESULTS];
  if (PyArray_Check(args[1])) outs[0] = args[1];
  else {
    const Py_ssize_t m = PySequence_Fast_GET_SIZE(args[1]);
    for (Py_ssize_t i = 0; i < m && i < MAX_RESULTS; ++i) outs[i] = PySequence_Fast_GET_ITEM(args[1], i);
  }
  const bool ok = run(self, PySequence_Fast_ITEMS(values), PySequence_Fast_GET_SIZE(values), outs);
  Py_DECREF(values);
  if (!ok) return nullptr;
  Py_RETURN_NONE;
}

// Launch(name, entries, outs): entries are ("slot", i), ("out", i) or ("fixed", value).
static PyObject* launch_new(PyTypeObject*, PyObject* args, PyObject*) {
  PyObject *name, *entries, *outs;
  if (!PyArg_ParseTuple(args, "UO!O!", &name, &PyTuple_Type, &entries, &PyTuple_Type, &outs)) return nullptr;
  Launch made{named(name), {}, {}};
  if (made.fn == nullptr) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(entries); ++i) {
    PyObject* item = PyTuple_GET_ITEM(entries, i);
    const char kind = PyUnicode_AsUTF8(PyTuple_GET_ITEM(item, 0))[0];
    PyObject* value = PyTuple_GET_ITEM(item, 1);
    if (kind == 'f') made.entries.push_back({Entry::fixed, 0, Ref::to(value)});
    else made.entries.push_back({kind == 's' ? Entry::slot : Entry::out, int(PyLong_AsLong(value)), Ref()});
  }
  const Py_ssize_t n = PyTuple_GET_SIZE(outs);
  if (n > MAX_RESULTS) PyErr_Format(PyExc_ValueError, "a kernel has at most %d results", MAX_RESULTS);
  for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); ++i) made.outs.push_back(new_spec(PyTuple_GET_ITEM(outs, i)));
  return PyErr_Occurred() ? nullptr : box<Launch>(type, launch_call, std::move(made));
}

PyTypeObject* launch_type() {
  static PyMethodDef methods[] = {
      {"into", as_method(launch_into), METH_FASTCALL, "into(values, out): write the results into arrays."},
      {nullptr, nullptr, 0, nullptr}};
  type = make_type<Launch>({.name = "votive.Launch",
                            .doc = "A kernel bound to static arguments: compute(*values) -> ((storage, array, spec), ...).",
                            .make = launch_new,
                            .call = launch_call,
                            .methods = methods});
  return type;
}

}  // namespace vt
