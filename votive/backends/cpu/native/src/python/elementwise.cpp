// A formula bound to layouts: compute(*values) -> (storage, array); into(values, array).
#include "object.h"
#include "api.h"

#include "../vt/elementwise.h"

namespace vt {

namespace {

struct Elementwise {
  std::unique_ptr<Program> program;
  SpecPtr out;
  bool integers;
};

PyTypeObject* type = nullptr;

}  // namespace

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

bool read_inputs(const Program& p, bool integers, PyObject* const* values, Py_ssize_t n, const char** in, char (*slots)[8]) {
  if (n != p.inputs) {
    PyErr_Format(PyExc_TypeError, "formula of %d inputs called with %zd", p.inputs, n);
    return false;
  }
  for (int k = 0; k < p.inputs; ++k) {
    PyObject* v = values[k];
    if (PyArray_Check(v)) in[k] = PyArray_BYTES(reinterpret_cast<PyArrayObject*>(v));
    else if (!read_number(v, integers, slots[k])) return false;
    else in[k] = slots[k];
  }
  return true;
}

static bool run(const Elementwise* self, PyObject* const* values, Py_ssize_t n, char* out) {
  const Program& p = *self->program;
  const char* in[MAX_INPUTS];
  alignas(16) char slots[MAX_INPUTS][8];
  if (!read_inputs(p, self->integers, values, n, in, slots)) return false;
  return guarded(p.numel * p.cost > 65536, [&] { p.run(out, in); });
}

int run_elementwise(PyObject* kernel, PyObject* const* values, Py_ssize_t n, Result& out) {
  if (Py_TYPE(kernel) != type) return 0;
  const auto& self = unbox<Elementwise>(kernel);
  return filled(*self.out, out, [&](PyObject* array) {
    return run(&self, values, n, PyArray_BYTES(reinterpret_cast<PyArrayObject*>(array)));
  });
}

static PyObject* elementwise_call(PyObject* me, PyObject* const* args, size_t nargsf, PyObject*) {
  Result made;
  return run_elementwise(me, args, PyVectorcall_NARGS(nargsf), made) < 0 ? nullptr : as_pair(made);
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
  auto* self = &unbox<Elementwise>(me);
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
    ok = run(self, PySequence_Fast_ITEMS(values), PySequence_Fast_GET_SIZE(values), PyArray_BYTES(out));
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
static PyObject* elementwise_new(PyTypeObject*, PyObject* args, PyObject*) {
  PyObject *steps, *constants, *inputs, *spec;
  int compute_code, result, cost;
  if (!PyArg_ParseTuple(args, "iO!O!O!iOi", &compute_code, &PyTuple_Type, &steps, &PyTuple_Type, &constants, &PyTuple_Type, &inputs, &result, &spec, &cost)) return nullptr;
  auto p = std::make_unique<Program>();
  SpecPtr out = new_spec(spec);
  if (out == nullptr) return nullptr;
  p->compute = Dtype(compute_code);
  const bool integers = p->compute == Dtype::i32 || p->compute == Dtype::i64;
  p->result = result;
  std::vector<int64_t> shape(out->shape, out->shape + out->ndim), strides(out->strides, out->strides + out->ndim);
  std::vector<std::vector<int64_t>> in_strides;
  if (!read_program(*p, steps, constants, inputs, shape, in_strides)) return nullptr;
  p->out.dtype = dtype_of_descr(out->descr);
  p->out.cast = cast_fn(p->compute, p->out.dtype);
  p->out.scalar = false;
  p->cost = cost;
  if (PyTuple_GET_SIZE(steps) == 1) p->use_narrow(PyUnicode_AsUTF8(PyTuple_GET_ITEM(PyTuple_GET_ITEM(steps, 0), 0)));
  p->bind(shape, strides, in_strides);
  return box<Elementwise>(type, elementwise_call, std::move(p), std::move(out), integers);
}

PyTypeObject* elementwise_type() {
  static PyMethodDef methods[] = {
      {"into", as_method(elementwise_into), METH_FASTCALL, "into(values, out): write the result into an array."},
      {nullptr, nullptr, 0, nullptr}};
  static PyGetSetDef facts[] = {
      {"checks_overlap", [](PyObject*, void*) { return Py_NewRef(Py_True); }, nullptr, "into() may be given any array.", nullptr},
      {nullptr, nullptr, nullptr, nullptr, nullptr}};
  type = make_type<Elementwise>({.name = "votive.Elementwise",
                                 .doc = "A formula bound to layouts: compute(*values) -> (storage, array).",
                                 .make = elementwise_new,
                                 .call = elementwise_call,
                                 .methods = methods,
                                 .attributes = facts});
  return type;
}

}  // namespace vt
