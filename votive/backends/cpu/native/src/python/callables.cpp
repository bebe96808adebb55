// The callables that plans hold: a formula, or a kernel, bound to layouts and static arguments.
#include "api.h"

#include <cstddef>
#include <memory>

#include "../vt/elementwise.h"
#include "../vt/kernel.h"

namespace vt {

// --- Elementwise: compute(*values) -> (storage, array); into(values, array) --------------------

struct Elementwise {
  PyObject_HEAD
  vectorcallfunc call;
  Program* program;
  OutSpec* out;
  bool integers;
};

// A number as one value of type int64 or float64.
bool read_number(PyObject* v, bool integers, char* slot) {
  if (integers) {
    PyObject* i = PyLong_Check(v) ? Py_NewRef(v) : PyNumber_Long(v);
    if (i == nullptr) return false;
    int overflow = 0;
    int64_t x = PyLong_AsLongLongAndOverflow(i, &overflow);
    if (overflow > 0) {
      x = int64_t(PyLong_AsUnsignedLongLong(i));
      if (PyErr_Occurred()) {
        PyErr_Clear();
        overflow = -1;
      }
    }
    if (overflow < 0) {
      PyErr_Format(PyExc_OverflowError, "the integer %S does not fit into 64 bits.", i);
      Py_DECREF(i);
      return false;
    }
    Py_DECREF(i);
    std::memcpy(slot, &x, 8);
    return true;
  }
  double x;
  if (PyFloat_CheckExact(v)) x = PyFloat_AS_DOUBLE(v);
  else if (PyComplex_Check(v)) x = PyComplex_RealAsDouble(v);
  else {
    x = PyFloat_AsDouble(v);
    if (x == -1.0 && PyErr_Occurred()) return false;
  }
  std::memcpy(slot, &x, 8);
  return true;
}

static bool run_elementwise(Elementwise* self, PyObject* const* values, Py_ssize_t n, char* out) {
  const Program& p = *self->program;
  if (n != p.inputs) {
    PyErr_Format(PyExc_TypeError, "formula of %d inputs called with %zd", p.inputs, n);
    return false;
  }
  const char* in[MAX_INPUTS];
  alignas(16) char slots[MAX_INPUTS][8];
  for (int k = 0; k < p.inputs; ++k) {
    PyObject* v = values[k];
    if (PyArray_Check(v)) in[k] = PyArray_BYTES(reinterpret_cast<PyArrayObject*>(v));
    else if (!read_number(v, self->integers, slots[k])) return false;
    else in[k] = slots[k];
  }
  return guarded(p.numel * p.cost > 65536, [&] { p.run(out, in); });
}

static PyObject* elementwise_call(PyObject* me, PyObject* const* args, size_t nargsf, PyObject*) {
  auto* self = reinterpret_cast<Elementwise*>(me);
  PyObject *storage, *array;
  if (!make_result(*self->out, &storage, &array)) return nullptr;
  if (!run_elementwise(self, args, PyVectorcall_NARGS(nargsf), PyArray_BYTES(reinterpret_cast<PyArrayObject*>(array)))) {
    Py_DECREF(storage);
    Py_DECREF(array);
    return nullptr;
  }
  PyObject* pair = PyTuple_New(2);
  PyTuple_SET_ITEM(pair, 0, storage);
  PyTuple_SET_ITEM(pair, 1, array);
  return pair;
}

// Whether writing `out` could change what is still to be read: memory that overlaps, other than the
// same elements in the same places.
static bool collides(PyArrayObject* in, PyArrayObject* out) {
  auto bounds = [](PyArrayObject* a, const char*& low, const char*& high) {
    low = high = PyArray_BYTES(a);
    for (int d = 0; d < PyArray_NDIM(a); ++d) {
      const npy_intp reach = (PyArray_DIM(a, d) - 1) * PyArray_STRIDE(a, d);
      (reach < 0 ? low : high) += reach;
    }
    high += PyArray_ITEMSIZE(a);
  };
  if (PyArray_SIZE(in) == 0 || PyArray_SIZE(out) == 0) return false;
  const char *in_low, *in_high, *out_low, *out_high;
  bounds(in, in_low, in_high);
  bounds(out, out_low, out_high);
  if (in_high <= out_low || out_high <= in_low) return false;
  if (PyArray_BYTES(in) != PyArray_BYTES(out) || PyArray_NDIM(in) != PyArray_NDIM(out) ||
      PyArray_ITEMSIZE(in) != PyArray_ITEMSIZE(out))
    return true;
  for (int d = 0; d < PyArray_NDIM(in); ++d)
    if (PyArray_DIM(in, d) != PyArray_DIM(out, d) || (PyArray_DIM(in, d) != 1 && PyArray_STRIDE(in, d) != PyArray_STRIDE(out, d)))
      return true;
  return false;
}

// into(values, out): `out` has the layout of the plan's result, or this one's strides.
static PyObject* elementwise_into(PyObject* me, PyObject* const* args, Py_ssize_t n) {
  auto* self = reinterpret_cast<Elementwise*>(me);
  if (n != 2 || !PyArray_Check(args[1])) {
    PyErr_SetString(PyExc_TypeError, "into(values, out array)");
    return nullptr;
  }
  auto* out = reinterpret_cast<PyArrayObject*>(args[1]);
  PyObject* values = PySequence_Fast(args[0], "values must be a sequence");
  if (values == nullptr) return nullptr;
  bool same = true;
  for (int d = 0; d < self->out->ndim && same; ++d)
    same = self->out->shape[d] == 1 || PyArray_STRIDE(out, d) == self->out->strides[d];
  for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(values) && same; ++k) {
    PyObject* v = PySequence_Fast_GET_ITEM(values, k);
    same = !PyArray_Check(v) || !collides(reinterpret_cast<PyArrayObject*>(v), out);
  }
  bool ok;
  if (same || self->program->numel == 0) {
    ok = run_elementwise(self, PySequence_Fast_ITEMS(values), PySequence_Fast_GET_SIZE(values), PyArray_BYTES(out));
  } else {
    // Written with other strides than planned, or over what is read: through a result of our own.
    PyObject* pair = elementwise_call(me, PySequence_Fast_ITEMS(values), size_t(PySequence_Fast_GET_SIZE(values)), nullptr);
    ok = pair != nullptr && PyArray_CopyInto(out, reinterpret_cast<PyArrayObject*>(PyTuple_GET_ITEM(pair, 1))) == 0;
    Py_XDECREF(pair);
  }
  Py_DECREF(values);
  if (!ok) return nullptr;
  Py_RETURN_NONE;
}

static Dtype dtype_by_code(PyObject* o) {
  return o == Py_None ? Dtype::none : Dtype(PyLong_AsLong(o));
}

//   steps: ((name, (register, ...)), ...), each makes the next register
//   inputs: ((dtype or None for a number, via or None, byte strides or None), ...)
bool read_program(Program& p, PyObject* steps, PyObject* constants, PyObject* inputs,
                  const std::vector<int64_t>& shape, std::vector<std::vector<int64_t>>& in_strides) {
  const bool integers = p.compute == Dtype::i32 || p.compute == Dtype::i64;
  p.inputs = int(PyTuple_GET_SIZE(inputs));
  const Py_ssize_t n_const = PyTuple_GET_SIZE(constants), n_steps = PyTuple_GET_SIZE(steps);
  p.registers = p.inputs + int(n_const) + int(n_steps);
  if (p.inputs > MAX_INPUTS || p.registers > 64) {
    PyErr_SetString(PyExc_ValueError, "formula too large for the tile engine");
    return false;
  }
  for (Py_ssize_t i = 0; i < n_const; ++i) {
    PyObject* v = PyTuple_GET_ITEM(constants, i);
    if (integers) p.int_constants.push_back(PyLong_AsLongLong(v));
    else p.constants.push_back(PyFloat_AsDouble(v));
  }
  if (PyErr_Occurred()) return false;
  std::vector<std::string> names;
  for (Py_ssize_t i = 0; i < n_steps; ++i) {
    PyObject* item = PyTuple_GET_ITEM(steps, i);
    Step s{};
    const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(item, 0));
    s.fn = name == nullptr ? nullptr : find_tile(name, p.compute);
    if (s.fn == nullptr) {
      if (!PyErr_Occurred()) PyErr_Format(PyExc_KeyError, "no tile function %s", name);
      return false;
    }
    PyObject* in = PyTuple_GET_ITEM(item, 1);
    s.arity = int(PyTuple_GET_SIZE(in));
    if (s.arity > 8) {
      PyErr_SetString(PyExc_ValueError, "a tile function takes at most 8 inputs");
      return false;
    }
    for (int j = 0; j < s.arity; ++j) s.in[j] = int(PyLong_AsLong(PyTuple_GET_ITEM(in, j)));
    s.out = p.inputs + int(n_const) + int(i);
    p.steps.push_back(s);
    names.push_back(name);
  }
  for (int k = 0; k < p.inputs; ++k) {
    PyObject* item = PyTuple_GET_ITEM(inputs, k);
    Operand& o = p.in[k];
    const Dtype have = dtype_by_code(PyTuple_GET_ITEM(item, 0));
    o.via = dtype_by_code(PyTuple_GET_ITEM(item, 1));
    PyObject* s = PyTuple_GET_ITEM(item, 2);
    o.dtype = have != Dtype::none ? have : integers ? Dtype::i64 : Dtype::f64;
    o.cast = cast_fn(o.dtype, o.via == Dtype::none ? p.compute : o.via);
    if (o.via != Dtype::none) o.back = cast_fn(o.via, p.compute);
    std::vector<int64_t> st(shape.size(), 0);
    bool scalar = true;
    if (s != Py_None)
      for (size_t d = 0; d < shape.size(); ++d) {
        st[d] = PyLong_AsLongLong(PyTuple_GET_ITEM(s, Py_ssize_t(d)));
        scalar = scalar && (st[d] == 0 || shape[d] == 1);
      }
    o.scalar = scalar;
    in_strides.push_back(st);
  }
  if (PyErr_Occurred()) return false;
  // Functions that take one value for the last inputs, where these are numbers.
  for (size_t i = 0; i < p.steps.size(); ++i) {
    Step& s = p.steps[i];
    int numbers = 0;
    if (p.compute == Dtype::f32) s.narrow = find_tile(names[i], Dtype::bf16);
    while (numbers < s.arity - 1 && p.is_number(s.in[s.arity - 1 - numbers])) ++numbers;
    for (; numbers > 0 && s.numbers == 0; --numbers)
      if (const TileFn fn = find_tile(names[i], p.compute, numbers)) {
        s.fn = fn;
        s.numbers = numbers;
      }
  }
  return true;
}

// Elementwise(compute, steps, constants, inputs, result, out spec, cost)
static PyObject* elementwise_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *steps, *constants, *inputs, *spec;
  int compute_code, result, cost;
  if (!PyArg_ParseTuple(args, "iO!O!O!iOi", &compute_code, &PyTuple_Type, &steps, &PyTuple_Type, &constants, &PyTuple_Type, &inputs, &result, &spec, &cost)) return nullptr;
  auto p = std::make_unique<Program>();
  auto out = std::make_unique<OutSpec>();
  p->compute = Dtype(compute_code);
  const bool integers = p->compute == Dtype::i32 || p->compute == Dtype::i64;
  p->result = result;
  if (!read_spec(spec, *out)) return nullptr;
  std::vector<int64_t> shape(out->shape, out->shape + out->ndim), strides(out->strides, out->strides + out->ndim);
  std::vector<std::vector<int64_t>> in_strides;
  if (!read_program(*p, steps, constants, inputs, shape, in_strides)) {
    clear_spec(*out);
    return nullptr;
  }
  p->out.dtype = dtype_of_descr(out->descr);
  p->out.cast = cast_fn(p->compute, p->out.dtype);
  p->out.scalar = false;
  p->cost = cost;
  p->use_narrow();
  p->bind(shape, strides, in_strides);
  auto* self = reinterpret_cast<Elementwise*>(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  self->call = elementwise_call;
  self->program = p.release();
  self->out = out.release();
  self->integers = integers;
  return reinterpret_cast<PyObject*>(self);
}

static void elementwise_dealloc(PyObject* me) {
  auto* self = reinterpret_cast<Elementwise*>(me);
  delete self->program;
  if (self->out != nullptr) clear_spec(*self->out);
  delete self->out;
  Py_TYPE(me)->tp_free(me);
}

PyTypeObject* elementwise_type() {
  static PyMethodDef methods[] = {
      {"into", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(elementwise_into)), METH_FASTCALL, "into(values, out): write the result into an array."},
      {nullptr, nullptr, 0, nullptr}};
  static PyTypeObject type = {PyVarObject_HEAD_INIT(nullptr, 0)};
  if (type.tp_name == nullptr) {
    static PyGetSetDef facts[] = {
        {"checks_overlap", [](PyObject*, void*) { return Py_NewRef(Py_True); }, nullptr, "into() may be given any array.", nullptr},
        {nullptr, nullptr, nullptr, nullptr, nullptr}};
    type.tp_getset = facts;
    type.tp_name = "votive.Elementwise";
    type.tp_basicsize = sizeof(Elementwise);
    type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL;
    type.tp_vectorcall_offset = offsetof(Elementwise, call);
    type.tp_call = PyVectorcall_Call;
    type.tp_new = elementwise_new;
    type.tp_dealloc = elementwise_dealloc;
    type.tp_methods = methods;
    type.tp_doc = "A formula bound to layouts: compute(*values) -> (storage, array).";
    if (PyType_Ready(&type) < 0) return nullptr;
  }
  return &type;
}

// --- arguments of kernels -------------------------------------------------------------------------

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

struct KernelObject {
  PyObject_HEAD
  vectorcallfunc call;
  KernelFn fn;
};

static PyObject* kernel_call(PyObject* me, PyObject* const* args, size_t nargsf, PyObject*) {
  auto* self = reinterpret_cast<KernelObject*>(me);
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
  auto* self = reinterpret_cast<KernelObject*>(type->tp_alloc(type, 0));
  self->call = kernel_call;
  self->fn = fn;
  return reinterpret_cast<PyObject*>(self);
}

PyTypeObject* kernel_type() {
  static PyTypeObject type = {PyVarObject_HEAD_INIT(nullptr, 0)};
  if (type.tp_name == nullptr) {
    type.tp_name = "votive.Kernel";
    type.tp_basicsize = sizeof(KernelObject);
    type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL;
    type.tp_vectorcall_offset = offsetof(KernelObject, call);
    type.tp_call = PyVectorcall_Call;
    type.tp_new = kernel_new;
    type.tp_dealloc = [](PyObject* o) { Py_TYPE(o)->tp_free(o); };
    type.tp_doc = "A kernel by name: arrays, None, ints, floats and lists of them, in its own order.";
    if (PyType_Ready(&type) < 0) return nullptr;
  }
  return &type;
}

// --- Launch: a kernel with static arguments in place and results made here ----------------------------

struct Entry {
  enum Kind { slot, out, fixed } kind;
  int index;
  PyObject* value;
};

struct Launch {
  PyObject_HEAD
  vectorcallfunc call;
  KernelFn fn;
  std::vector<Entry>* entries;
  std::vector<OutSpec>* outs;
};

static bool run_launch(Launch* self, PyObject* const* values, Py_ssize_t n, PyObject* const* outs) {
  CallFrame frame;
  for (const Entry& e : *self->entries) {
    PyObject* v = e.value;
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

static PyObject* launch_call(PyObject* me, PyObject* const* args, size_t nargsf, PyObject*) {
  auto* self = reinterpret_cast<Launch*>(me);
  const int n = int(self->outs->size());
  PyObject* result = PyTuple_New(n);
  PyObject* arrays[16];
  for (int k = 0; k < n; ++k) {
    PyObject *storage, *array;
    if (!make_result((*self->outs)[k], &storage, &array)) {
      Py_DECREF(result);
      return nullptr;
    }
    PyObject* part = PyTuple_New(3);
    PyTuple_SET_ITEM(part, 0, storage);
    PyTuple_SET_ITEM(part, 1, array);
    PyTuple_SET_ITEM(part, 2, Py_NewRef((*self->outs)[k].spec));
    PyTuple_SET_ITEM(result, k, part);
    arrays[k] = array;
  }
  if (!run_launch(self, args, PyVectorcall_NARGS(nargsf), arrays)) {
    Py_DECREF(result);
    return nullptr;
  }
  return result;
}

// into(values, out): one array, or a sequence of them.
static PyObject* launch_into(PyObject* me, PyObject* const* args, Py_ssize_t n) {
  auto* self = reinterpret_cast<Launch*>(me);
  if (n != 2) {
    PyErr_SetString(PyExc_TypeError, "into(values, out)");
    return nullptr;
  }
  PyObject* values = PySequence_Fast(args[0], "values must be a sequence");
  if (values == nullptr) return nullptr;
  PyObject* outs[16];
  if (PyArray_Check(args[1])) outs[0] = args[1];
  else {
    const Py_ssize_t m = PySequence_Fast_GET_SIZE(args[1]);
    for (Py_ssize_t i = 0; i < m && i < 16; ++i) outs[i] = PySequence_Fast_GET_ITEM(args[1], i);
  }
  const bool ok = run_launch(self, PySequence_Fast_ITEMS(values), PySequence_Fast_GET_SIZE(values), outs);
  Py_DECREF(values);
  if (!ok) return nullptr;
  Py_RETURN_NONE;
}

// Launch(name, entries, outs): entries are ("slot", i), ("out", i) or ("fixed", value).
static PyObject* launch_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *name, *entries, *outs;
  if (!PyArg_ParseTuple(args, "UO!O!", &name, &PyTuple_Type, &entries, &PyTuple_Type, &outs)) return nullptr;
  KernelFn fn = named(name);
  if (fn == nullptr) return nullptr;
  auto* self = reinterpret_cast<Launch*>(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  self->call = launch_call;
  self->fn = fn;
  self->entries = new std::vector<Entry>();
  self->outs = new std::vector<OutSpec>();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(entries); ++i) {
    PyObject* item = PyTuple_GET_ITEM(entries, i);
    const char* kind = PyUnicode_AsUTF8(PyTuple_GET_ITEM(item, 0));
    PyObject* value = PyTuple_GET_ITEM(item, 1);
    Entry e{Entry::fixed, 0, nullptr};
    if (kind[0] == 'f') e.value = Py_NewRef(value);
    else {
      e.kind = kind[0] == 's' ? Entry::slot : Entry::out;
      e.index = int(PyLong_AsLong(value));
    }
    self->entries->push_back(e);
  }
  const Py_ssize_t n = PyTuple_GET_SIZE(outs);
  if (n > 16) PyErr_SetString(PyExc_ValueError, "a kernel has at most 16 results");
  for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); ++i) {
    self->outs->emplace_back();
    read_spec(PyTuple_GET_ITEM(outs, i), self->outs->back());
  }
  if (PyErr_Occurred()) {
    Py_DECREF(self);
    return nullptr;
  }
  return reinterpret_cast<PyObject*>(self);
}

static void launch_dealloc(PyObject* me) {
  auto* self = reinterpret_cast<Launch*>(me);
  if (self->entries != nullptr)
    for (Entry& e : *self->entries) Py_XDECREF(e.value);
  if (self->outs != nullptr)
    for (OutSpec& o : *self->outs) clear_spec(o);
  delete self->entries;
  delete self->outs;
  Py_TYPE(me)->tp_free(me);
}

PyTypeObject* launch_type() {
  static PyMethodDef methods[] = {
      {"into", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(launch_into)), METH_FASTCALL, "into(values, out): write the results into arrays."},
      {nullptr, nullptr, 0, nullptr}};
  static PyTypeObject type = {PyVarObject_HEAD_INIT(nullptr, 0)};
  if (type.tp_name == nullptr) {
    type.tp_name = "votive.Launch";
    type.tp_basicsize = sizeof(Launch);
    type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL;
    type.tp_vectorcall_offset = offsetof(Launch, call);
    type.tp_call = PyVectorcall_Call;
    type.tp_new = launch_new;
    type.tp_dealloc = launch_dealloc;
    type.tp_methods = methods;
    type.tp_doc = "A kernel bound to static arguments: compute(*values) -> ((storage, array, spec), ...).";
    if (PyType_Ready(&type) < 0) return nullptr;
  }
  return &type;
}

}  // namespace vt
