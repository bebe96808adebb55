// The callables that plans of a GPU hold: a formula's kernel, or a function of new memory. The same steps as
// backends/cuda/programs/pointwise.py and rows.py, which serve whatever is not as planned.
#include "device_launch.h"

#include <cstddef>
#include <vector>

namespace vt {
namespace {

// --- DeviceFormula: compute(*values) -> (storage, view) -----------------------------------------------

struct DeviceFormula {
  PyObject_HEAD
  vectorcallfunc call;
  PyObject *program, *grid, *spec, *general, *into, *over;
  unsigned blocks[3];
  int64_t nbytes;
  int device, values;
  std::vector<uint64_t>* numbers;
};

// Packs the values behind the place of the result; where to launch, or nullptr: not as planned.
const Target* formula_values(DeviceFormula* self, PyObject* const* values, Py_ssize_t n, uint64_t bits, uint64_t* slots) {
  auto* program = reinterpret_cast<Launcher*>(self->program);
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
  std::memcpy(slots + 1 + n, self->numbers->data(), self->numbers->size() * sizeof(uint64_t));
  const Target& t = program->targets[(bits & 15) == 0][self->device];
  return t.function == nullptr ? nullptr : &t;
}

PyObject* formula_call(PyObject* me, PyObject* const* args, size_t nargsf, PyObject* names) {
  auto* self = reinterpret_cast<DeviceFormula*>(me);
  uint64_t slots[MAX_ARGUMENTS + 2];
  const Target* t = formula_values(self, args, PyVectorcall_NARGS(nargsf), 0, slots);  // new memory is aligned
  if (t == nullptr) return PyObject_Vectorcall(self->general, args, nargsf, names);
  PyObject* storage = device_storage(self->nbytes, self->device, slots[0]);
  if (storage == nullptr) return nullptr;
  PyObject* view = device_view(storage_address(storage), self->spec, storage);
  if (view == nullptr) {
    Py_DECREF(storage);
    return nullptr;
  }
  const int code = start(*t, self->blocks, slots, reinterpret_cast<Launcher*>(self->program)->n);
  PyObject* pair = code == 0 ? PyTuple_New(2) : launch_failed(self->program, self->grid, code);
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
  auto* self = reinterpret_cast<DeviceFormula*>(me);
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
      return PyObject_Vectorcall(self->over, args, 2, nullptr);
  }
  const Target* t = view_spec.get(to) == self->spec ? formula_values(self, values, count, slots[0], slots) : nullptr;
  if (t == nullptr) return PyObject_Vectorcall(self->into, args, 2, nullptr);
  const int code = start(*t, self->blocks, slots, reinterpret_cast<Launcher*>(self->program)->n);
  if (code != 0) return launch_failed(self->program, self->grid, code);
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
  auto* self = reinterpret_cast<DeviceFormula*>(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  self->call = formula_call;
  self->program = Py_NewRef(program);
  self->grid = Py_NewRef(grid);
  self->spec = Py_NewRef(spec);
  self->general = Py_NewRef(general);
  self->into = Py_NewRef(into);
  self->over = Py_NewRef(over);
  self->nbytes = nbytes;
  self->device = device;
  self->values = values;
  self->numbers = new std::vector<uint64_t>();
  const char* kinds = reinterpret_cast<Launcher*>(program)->kinds;
  const Py_ssize_t n = PyTuple_GET_SIZE(numbers);
  bool ok = read_grid(grid, self->blocks) && kinds != nullptr && reinterpret_cast<Launcher*>(program)->n == 1 + values + n;
  for (Py_ssize_t i = 0; ok && i < n; ++i) {
    uint64_t slot;
    ok = pack(kinds[1 + values + i], PyTuple_GET_ITEM(numbers, i), slot);
    self->numbers->push_back(slot);
  }
  if (!ok) {
    Py_DECREF(self);
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "DeviceFormula: grid or numbers do not fit the program");
    return nullptr;
  }
  return reinterpret_cast<PyObject*>(self);
}

void formula_dealloc(PyObject* me) {
  auto* self = reinterpret_cast<DeviceFormula*>(me);
  for (PyObject* o : {self->program, self->grid, self->spec, self->general, self->into, self->over}) Py_XDECREF(o);
  delete self->numbers;
  Py_TYPE(me)->tp_free(me);
}

// --- DeviceResults: compute(*values) -> ((storage, view, spec), ...) ----------------------------------

struct Made {
  PyObject* spec;
  int64_t nbytes;
  int device;
};

struct DeviceResults {
  PyObject_HEAD
  vectorcallfunc call;
  PyObject* run;
  std::vector<Made>* plan;
};

PyObject* results_call(PyObject* me, PyObject* const* args, size_t nargsf, PyObject*) {
  auto* self = reinterpret_cast<DeviceResults*>(me);
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf), m = Py_ssize_t(self->plan->size());
  PyObject *few[MAX_ARGUMENTS + 1], *result = nullptr, *done = nullptr;
  std::vector<PyObject*> many(n > MAX_ARGUMENTS ? size_t(n) + 1 : 0);
  PyObject** stack = many.empty() ? few : many.data();
  PyObject* outs = PyList_New(m);
  if (outs == nullptr) return nullptr;
  result = PyTuple_New(m);
  if (result == nullptr) goto end;
  for (Py_ssize_t i = 0; i < m; ++i) {
    const Made& made = (*self->plan)[size_t(i)];
    uint64_t address;
    PyObject* storage = device_storage(made.nbytes, made.device, address);
    if (storage == nullptr) goto fail;
    PyObject* view = device_view(storage_address(storage), made.spec, storage);
    if (view == nullptr) {
      Py_DECREF(storage);
      goto fail;
    }
    PyList_SET_ITEM(outs, i, Py_NewRef(view));
    PyObject* triple = PyTuple_Pack(3, storage, view, made.spec);
    Py_DECREF(storage);
    Py_DECREF(view);
    if (triple == nullptr) goto fail;
    PyTuple_SET_ITEM(result, i, triple);
  }
  stack[0] = outs;
  for (Py_ssize_t i = 0; i < n; ++i) stack[i + 1] = args[i];
  done = PyObject_Vectorcall(self->run, stack, size_t(n + 1), nullptr);
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
  auto* self = reinterpret_cast<DeviceResults*>(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  self->call = results_call;
  self->run = Py_NewRef(run);
  self->plan = new std::vector<Made>();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(plan); ++i) {
    PyObject* spec;
    long long nbytes;
    int device;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(plan, i), "OLi", &spec, &nbytes, &device)) {
      Py_DECREF(self);
      return nullptr;
    }
    self->plan->push_back({Py_NewRef(spec), nbytes, device});
  }
  return reinterpret_cast<PyObject*>(self);
}

void results_dealloc(PyObject* me) {
  auto* self = reinterpret_cast<DeviceResults*>(me);
  Py_XDECREF(self->run);
  if (self->plan != nullptr)
    for (Made& m : *self->plan) Py_DECREF(m.spec);
  delete self->plan;
  Py_TYPE(me)->tp_free(me);
}

}  // namespace

PyTypeObject* device_formula_type() {
  static PyMethodDef methods[] = {
      {"into", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(formula_into)), METH_FASTCALL, "into(values, view): write over a view."},
      {nullptr, nullptr, 0, nullptr}};
  static PyGetSetDef facts[] = {
      {"checks_overlap", [](PyObject*, void*) { return Py_NewRef(Py_True); }, nullptr, "into() may be given any view.", nullptr},
      {nullptr, nullptr, nullptr, nullptr, nullptr}};
  static PyTypeObject type = {PyVarObject_HEAD_INIT(nullptr, 0)};
  if (type.tp_name == nullptr) {
    callable(type, "votive.DeviceFormula", "A formula's kernel with new memory: compute(*values) -> (storage, view).",
             sizeof(DeviceFormula), offsetof(DeviceFormula, call), formula_new, formula_dealloc);
    type.tp_methods = methods;
    type.tp_getset = facts;
    if (PyType_Ready(&type) < 0) return nullptr;
  }
  return &type;
}

PyTypeObject* device_results_type() {
  static PyTypeObject type = {PyVarObject_HEAD_INIT(nullptr, 0)};
  if (type.tp_name == nullptr) {
    callable(type, "votive.DeviceResults", "A function of new memory: compute(*values) -> ((storage, view, spec), ...).",
             sizeof(DeviceResults), offsetof(DeviceResults, call), results_new, results_dealloc);
    if (PyType_Ready(&type) < 0) return nullptr;
  }
  return &type;
}

}  // namespace vt
