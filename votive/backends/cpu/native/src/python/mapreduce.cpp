// MapReduce: a formula whose values are reduced as they come. compute(*values) -> (storage, array).
#include "object.h"
#include "api.h"

#include "../vt/reduce.h"

namespace vt {
namespace {

struct MapReduce {
  std::unique_ptr<Program> program;
  SpecPtr out;
  std::vector<ReduceDim> dims;
  const Reducer* reducer;
  StoreValue store;
  int64_t numel;
  bool integers;
};

bool run(MapReduce* self, PyObject* const* values, Py_ssize_t n, char* out) {
  const Program& p = *self->program;
  const char* in[MAX_INPUTS];
  alignas(16) char slots[MAX_INPUTS][8];
  if (!read_inputs(p, self->integers, values, n, in, slots)) return false;
  return guarded(self->numel * p.cost > 65536, [&] {
    FormulaSource source(p, in);
    char* outs[2] = {out, nullptr};
    reduce(self->dims, source, *self->reducer, self->store, outs);
  });
}

PyObject* call(PyObject* me, PyObject* const* args, size_t nargsf, PyObject*) {
  auto* self = &unbox<MapReduce>(me);
  Result made;
  const int done = filled(*self->out, made, [&](PyObject* array) {
    return run(self, args, PyVectorcall_NARGS(nargsf), PyArray_BYTES(reinterpret_cast<PyArrayObject*>(array)));
  });
  return done < 0 ? nullptr : as_pair(made);
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
  SpecPtr out = new_spec(spec);
  if (out == nullptr) return nullptr;
  std::vector<ReduceDim> dims;
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
  if (PyErr_Occurred()) return nullptr;
  if (!read_program(*p, steps, constants, inputs, shape, strides)) return nullptr;
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
    dims.push_back(dim);
  }
  // The order among reduced elements does not matter: any steps that join when memory does.
  for (ReduceDim& d : dims)
    if (d.reduced)
      for (int k = p->inputs - 1; k >= 0; --k)
        if (!p->in[k].scalar) d.logical = d.in[k];
  const bool integers = p->compute == Dtype::i32 || p->compute == Dtype::i64;
  StoreValue store(accumulator_of(Reduction(kind), p->compute), dtype_of_descr(out->descr), divisor);
  return box<MapReduce>(type, call, std::move(p), std::move(out), std::move(dims), reducer, store, numel, integers);
}

}  // namespace

PyTypeObject* map_reduce_type() {
  return make_type<MapReduce>({.name = "votive.MapReduce",
                               .doc = "A formula and a reduction bound to layouts: compute(*values) -> (storage, array).",
                               .make = create,
                               .call = call});
}

}  // namespace vt
