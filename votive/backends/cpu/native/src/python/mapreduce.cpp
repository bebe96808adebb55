// MapReduce: a formula whose values are reduced as they come. compute(*values) -> (storage, array).
#include "api.h"

#include <cstddef>
#include <memory>

#include "../vt/reduce.h"

namespace vt {
namespace {

struct MapReduce {
  PyObject_HEAD
  vectorcallfunc call;
  Program* program;
  OutSpec* out;
  std::vector<ReduceDim>* dims;
  const Reducer* reducer;
  StoreValue* store;
  int64_t numel;
  bool integers;
};

bool run(MapReduce* self, PyObject* const* values, Py_ssize_t n, char* out) {
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
  return guarded(self->numel * p.cost > 65536, [&] {
    FormulaSource source(p, in);
    char* outs[2] = {out, nullptr};
    reduce(*self->dims, source, *self->reducer, *self->store, outs);
  });
}

PyObject* call(PyObject* me, PyObject* const* args, size_t nargsf, PyObject*) {
  auto* self = reinterpret_cast<MapReduce*>(me);
  PyObject *storage, *array;
  if (!make_result(*self->out, &storage, &array)) return nullptr;
  if (!run(self, args, PyVectorcall_NARGS(nargsf), PyArray_BYTES(reinterpret_cast<PyArrayObject*>(array)))) {
    Py_DECREF(storage);
    Py_DECREF(array);
    return nullptr;
  }
  PyObject* pair = PyTuple_New(2);
  PyTuple_SET_ITEM(pair, 0, storage);
  PyTuple_SET_ITEM(pair, 1, array);
  return pair;
}

// MapReduce(compute, steps, constants, inputs, result, shape, mask of reduced dims, kind, divisor,
//           out spec, cost). `shape` is that of the formula's values; the rest as for Elementwise.
PyObject* create(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *steps, *constants, *inputs, *lengths, *spec;
  int compute, result, kind, cost;
  long long mask;
  double divisor;
  if (!PyArg_ParseTuple(args, "iO!O!O!iO!LidOi", &compute, &PyTuple_Type, &steps, &PyTuple_Type, &constants,
                        &PyTuple_Type, &inputs, &result, &PyTuple_Type, &lengths, &mask, &kind, &divisor, &spec, &cost))
    return nullptr;
  auto p = std::make_unique<Program>();
  auto out = std::make_unique<OutSpec>();
  auto dims = std::make_unique<std::vector<ReduceDim>>();
  p->compute = Dtype(compute);
  p->result = result;
  p->cost = cost;
  const Reducer* reducer = find_reducer(Reduction(kind), p->compute);
  if (reducer == nullptr) {
    PyErr_SetString(PyExc_ValueError, "no reducer for the type of the formula");
    return nullptr;
  }
  std::vector<int64_t> shape;
  for (Py_ssize_t d = 0; d < PyTuple_GET_SIZE(lengths); ++d)
    shape.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(lengths, d)));
  std::vector<std::vector<int64_t>> strides;
  if (PyErr_Occurred() || !read_spec(spec, *out)) return nullptr;
  if (!read_program(*p, steps, constants, inputs, shape, strides)) {
    clear_spec(*out);
    return nullptr;
  }
  const bool keep = size_t(out->ndim) == shape.size();
  int64_t numel = 1;
  int at = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    ReduceDim dim{};
    dim.n = shape[d];
    dim.reduced = mask >> d & 1;
    for (int k = 0; k < p->inputs; ++k) dim.in[k] = p->in[k].scalar ? 0 : strides[k][d];
    if (!dim.reduced) {
      dim.out[0] = out->strides[keep ? int(d) : at];
      ++at;
    }
    numel *= dim.n;
    dims->push_back(dim);
  }
  // The order among reduced elements does not matter: any steps that join when memory does.
  for (ReduceDim& d : *dims)
    if (d.reduced)
      for (int k = p->inputs - 1; k >= 0; --k)
        if (!p->in[k].scalar) d.logical = d.in[k];
  auto* self = reinterpret_cast<MapReduce*>(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  self->call = call;
  self->integers = p->compute == Dtype::i32 || p->compute == Dtype::i64;
  self->reducer = reducer;
  self->store = new StoreValue(accumulator_of(Reduction(kind), p->compute), dtype_of_descr(out->descr), divisor);
  self->numel = numel;
  self->program = p.release();
  self->out = out.release();
  self->dims = dims.release();
  return reinterpret_cast<PyObject*>(self);
}

void destroy(PyObject* me) {
  auto* self = reinterpret_cast<MapReduce*>(me);
  delete self->program;
  if (self->out != nullptr) clear_spec(*self->out);
  delete self->out;
  delete self->dims;
  delete self->store;
  Py_TYPE(me)->tp_free(me);
}

}  // namespace

PyTypeObject* map_reduce_type() {
  static PyTypeObject type = {PyVarObject_HEAD_INIT(nullptr, 0)};
  if (type.tp_name == nullptr) {
    type.tp_name = "votive.MapReduce";
    type.tp_basicsize = sizeof(MapReduce);
    type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL;
    type.tp_vectorcall_offset = offsetof(MapReduce, call);
    type.tp_call = PyVectorcall_Call;
    type.tp_new = create;
    type.tp_dealloc = destroy;
    type.tp_doc = "A formula and a reduction bound to layouts: compute(*values) -> (storage, array).";
    if (PyType_Ready(&type) < 0) return nullptr;
  }
  return &type;
}

}  // namespace vt
