// The callables that plans of a GPU hold: a formula's kernel, or a function of new memory. The same steps as
// backends/cuda/programs/pointwise.py and rows.py, which serve whatever is not as planned.
#include "device_launch.h"

#include <vector>

namespace vt {
namespace {

// --- DeviceFormula: compute(*values) -> (storage, view) -----------------------------------------------

struct DeviceFormula {
  Ref program, grid, spec, general, into, over;
  int64_t nbytes;
  int device, values;
  unsigned blocks[3] = {};
  std::vector<uint64_t> numbers = {};
};

// Packs the values behind the place of the result; where to launch, or nullptr: not as planned.
const Target* formula_values(DeviceFormula* self, PyObject* const* values, Py_ssize_t n, uint64_t bits, uint64_t* slots) {
  const Launcher* program = &unbox<Launcher>(self->program.get());
  if (launch == nullptr || current().device != self->device || n != self->values) return nullptr;
  for (int i = 0; i < self->values; ++i) {
    const char kind = program->kinds[i + 1];
    const bool view = Py_TYPE(values[i]) == view_class;
    if (view != (kind == 'p') || !pack(kind, view ? view_ptr.get(values[i]) : values[i], slots[i + 1])) {
      PyErr_Clear();
      return nullptr;
    }
    if (view) bits |= slots[i + 1];
  }
  std::memcpy(slots + 1 + n, self->numbers.data(), self->numbers.size() * sizeof(uint64_t));
  const Target& t = program->targets[(bits & 15) == 0][self->device];
  return t.function == nullptr ? nullptr : &t;
}

PyObject* formula_call(PyObject* me, PyObject* const* args, size_t nargsf, PyObject* names) {
  auto* self = &unbox<DeviceFormula>(me);
  uint64_t slots[MAX_ARGUMENTS + 2];
  const Target* t = formula_values(self, args, PyVectorcall_NARGS(nargsf), 0, slots);  // new memory is aligned
  if (t == nullptr) return PyObject_Vectorcall(self->general.get(), args, nargsf, names);
  PyObject* storage = device_storage(self->nbytes, self->device, slots[0]);
  if (storage == nullptr) return nullptr;
  PyObject* view = device_view(storage_address(storage), self->spec.get(), storage);
  if (view == nullptr) {
    Py_DECREF(storage);
    return nullptr;
  }
  const int code = start(*t, self->blocks, slots, unbox<Launcher>(self->program.get()).n);
  PyObject* pair = code == 0 ? PyTuple_New(2) : launch_failed(self->program.get(), self->grid.get(), code);
  if (pair == nullptr) {
    Py_DECREF(storage);
    Py_DECREF(view);
    return nullptr;
  }
  PyTuple_SET_ITEM(pair, 0, storage);
  PyTuple_SET_ITEM(pair, 1, view);
  return pair;
}

// into(values, view): the result is written over a view, which may be one of the values.
PyObject* formula_into(PyObject* me, PyObject* const* args, Py_ssize_t n) {
  auto* self = &unbox<DeviceFormula>(me);
  if (n != 2 || Py_TYPE(args[1]) != view_class || !(PyTuple_Check(args[0]) || PyList_Check(args[0]))) {
    PyErr_SetString(PyExc_TypeError, "into(values, view)");
    return nullptr;
  }
  PyObject* to = args[1];
  PyObject** values = PySequence_Fast_ITEMS(args[0]);
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(args[0]);
  uint64_t slots[MAX_ARGUMENTS + 2];
  if (!pack('p', view_ptr.get(to), slots[0])) return nullptr;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* v = values[i];
    if (Py_TYPE(v) != view_class || view_storage.get(v) != view_storage.get(to)) continue;
    uint64_t address;
    // The same elements in the same places are read before they are written; others need not be.
    if (view_spec.get(v) != view_spec.get(to) || !pack('p', view_ptr.get(v), address) || address != slots[0])
      return PyObject_Vectorcall(self->over.get(), args, 2, nullptr);
  }
  const Target* t = view_spec.get(to) == self->spec.get() ? formula_values(self, values, count, slots[0], slots) : nullptr;
  if (t == nullptr) return PyObject_Vectorcall(self->into.get(), args, 2, nullptr);
  const int code = start(*t, self->blocks, slots, unbox<Launcher>(self->program.get()).n);
  if (code != 0) return launch_failed(self->program.get(), self->grid.get(), code);
  Py_RETURN_NONE;
}

// DeviceFormula(program, grid, number of values, numbers, spec, nbytes, device, general, into, over): the
// last three are the long ways of new memory, of memory that is there, and of memory that overlaps.
PyObject* formula_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *program, *grid, *numbers, *spec, *general, *into, *over;
  int values, device;
  long long nbytes;
  if (!PyArg_ParseTuple(args, "O!O!iO!OLiOOO", launcher_type(), &program, &PyTuple_Type, &grid, &values, &PyTuple_Type, &numbers,
                        &spec, &nbytes, &device, &general, &into, &over))
    return nullptr;
  DeviceFormula made{Ref::to(program), Ref::to(grid), Ref::to(spec), Ref::to(general), Ref::to(into), Ref::to(over), nbytes, device, values};
  const Launcher& launcher = unbox<Launcher>(program);
  const Py_ssize_t n = PyTuple_GET_SIZE(numbers);
  bool ok = read_grid(grid, made.blocks) && launcher.n == 1 + values + n;
  for (Py_ssize_t i = 0; ok && i < n; ++i) {
    uint64_t slot;
    ok = pack(launcher.kinds[size_t(1 + values + i)], PyTuple_GET_ITEM(numbers, i), slot);
    made.numbers.push_back(slot);
  }
  if (ok) return box<DeviceFormula>(type, formula_call, std::move(made));
  if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "DeviceFormula: grid or numbers do not fit the program");
  return nullptr;
}

// --- DeviceResults: compute(*values) -> ((storage, view, spec), ...) ----------------------------------

struct Made {
  Ref spec;
  int64_t nbytes;
  int device;
};

struct DeviceResults {
  Ref run;
  std::vector<Made> plan;
};

PyObject* results_call(PyObject* me, PyObject* const* args, size_t nargsf, PyObject*) {
  auto* self = &unbox<DeviceResults>(me);
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf), m = Py_ssize_t(self->plan.size());
  PyObject *few[MAX_ARGUMENTS + 1], *result = nullptr, *done = nullptr;
  std::vector<PyObject*> many(n > MAX_ARGUMENTS ? size_t(n) + 1 : 0);
  PyObject** stack = many.empty() ? few : many.data();
  PyObject* outs = PyList_New(m);
  if (outs == nullptr) return nullptr;
  result = PyTuple_New(m);
  if (result == nullptr) goto end;
  for (Py_ssize_t i = 0; i < m; ++i) {
    const Made& made = self->plan[size_t(i)];
    uint64_t address;
    PyObject* storage = device_storage(made.nbytes, made.device, address);
    if (storage == nullptr) goto fail;
    PyObject* view = device_view(storage_address(storage), made.spec.get(), storage);
    if (view == nullptr) {
      Py_DECREF(storage);
      goto fail;
    }
    PyList_SET_ITEM(outs, i, Py_NewRef(view));
    PyObject* triple = PyTuple_Pack(3, storage, view, made.spec.get());
    Py_DECREF(storage);
    Py_DECREF(view);
    if (triple == nullptr) goto fail;
    PyTuple_SET_ITEM(result, i, triple);
  }
  stack[0] = outs;
  for (Py_ssize_t i = 0; i < n; ++i) stack[i + 1] = args[i];
  done = PyObject_Vectorcall(self->run.get(), stack, size_t(n + 1), nullptr);
  if (done == nullptr) goto fail;
  Py_DECREF(done);
end:
  Py_DECREF(outs);
  return result;
fail:
  Py_DECREF(outs);
  Py_DECREF(result);
  return nullptr;
}

// DeviceResults(run, ((spec, nbytes, device), ...))
PyObject* results_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *run, *plan;
  if (!PyArg_ParseTuple(args, "OO!", &run, &PyTuple_Type, &plan)) return nullptr;
  DeviceResults made{Ref::to(run), {}};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(plan); ++i) {
    PyObject* spec;
    long long nbytes;
    int device;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(plan, i), "OLi", &spec, &nbytes, &device)) return nullptr;
    made.plan.push_back({Ref::to(spec), nbytes, device});
  }
  return box<DeviceResults>(type, results_call, std::move(made));
}

}  // namespace

PyTypeObject* device_formula_type() {
  static PyMethodDef methods[] = {
      {"into", as_method(formula_into), METH_FASTCALL, "into(values, view): write over a view."},
      {nullptr, nullptr, 0, nullptr}};
  static PyGetSetDef facts[] = {
      {"checks_overlap", [](PyObject*, void*) { return Py_NewRef(Py_True); }, nullptr, "into() may be given any view.", nullptr},
      {nullptr, nullptr, nullptr, nullptr, nullptr}};
  return make_type<DeviceFormula>({.name = "votive.DeviceFormula",
                                   .doc = "A formula's kernel with new memory: compute(*values) -> (storage, view).",
                                   .make = formula_new,
                                   .call = formula_call,
                                   .methods = methods,
                                   .attributes = facts});
}

PyTypeObject* device_results_type() {
  return make_type<DeviceResults>({.name = "votive.DeviceResults",
                                   .doc = "A function of new memory: compute(*values) -> ((storage, view, spec), ...).",
                                   .make = results_new,
                                   .call = results_call});
}

}  // namespace vt
