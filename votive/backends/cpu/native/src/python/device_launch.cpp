// The short way of a launch: pack the arguments, call the driver. The same steps as
// backends/cuda/programs/program.py, which serves first calls, descriptors, waiting launches and emulation.
#include "device_launch.h"

#include "names.h"

#include <vector>

namespace vt {

LaunchFn launch = nullptr;

bool read_grid(PyObject* grid, unsigned* out) {
  if (!PyTuple_Check(grid)) return false;
  const Py_ssize_t n = PyTuple_GET_SIZE(grid);
  out[0] = out[1] = out[2] = 1;
  if (n < 1 || n > 3) return false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* v = PyTuple_GET_ITEM(grid, i);
    if (!PyLong_Check(v)) return false;
    const long x = PyLong_AsLong(v);
    if (x < 0 || x > 0xffffffffL) {
      PyErr_Clear();
      return false;
    }
    out[i] = unsigned(x);
  }
  return true;
}

PyObject* launch_failed(PyObject* me, PyObject* grid, int code) {
  PyObject* r = PyObject_CallMethod(me, "_failed", "Oi", grid, code);
  Py_XDECREF(r);
  return nullptr;
}

namespace {

PyObject* launcher_call(PyObject* me, PyObject* const* args, size_t nargsf, PyObject* names) {
  auto* self = &unbox<Launcher>(me);
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf) - 1;
  const int device = current().device;
  unsigned grid[3];
  uint64_t slots[MAX_ARGUMENTS + 2], bits = 0;
  bool usual = launch != nullptr && device >= 0 && n >= 0 && n == self->n && names == nullptr && read_grid(args[0], grid);
  for (Py_ssize_t i = 0; usual && i < n; ++i) {
    usual = pack(self->kinds[i], args[i + 1], slots[i]);
    if (self->kinds[i] == 'p') bits |= slots[i];
  }
  if (usual) {
    const Target& t = self->targets[(bits & 15) == 0][device];
    if (t.function != nullptr) {
      const int code = start(t, grid, slots, self->n);
      if (code != 0) return launch_failed(me, args[0], code);
      Py_RETURN_NONE;
    }
  }
  PyErr_Clear();
  std::vector<PyObject*> stack(size_t(n) + 2);
  stack[0] = me;
  for (Py_ssize_t i = 0; i <= n; ++i) stack[size_t(i) + 1] = args[i];
  return PyObject_VectorcallMethod(name::_general, stack.data(), stack.size(), names);
}

// _arrange(kinds): said once, by __init__.
PyObject* launcher_arrange(PyObject* me, PyObject* kinds) {
  auto* self = &unbox<Launcher>(me);
  Py_ssize_t n;
  const char* text = PyUnicode_AsUTF8AndSize(kinds, &n);
  if (text == nullptr) return nullptr;
  if (n > MAX_ARGUMENTS || !self->kinds.empty()) {
    self->n = -1;
    Py_RETURN_NONE;
  }
  self->kinds = text;
  self->n = int(n);
  Py_RETURN_NONE;
}

// _settle(aligned, device, function, threads, shared): such launches take the short way from now on.
PyObject* launcher_settle(PyObject* me, PyObject* args) {
  auto* self = &unbox<Launcher>(me);
  int aligned, device;
  unsigned long long function;
  unsigned threads, shared;
  if (!PyArg_ParseTuple(args, "piKII", &aligned, &device, &function, &threads, &shared)) return nullptr;
  if (device >= 0 && device < MAX_DEVICES)
    self->targets[aligned][device] = Target{reinterpret_cast<void*>(function), threads, shared};
  Py_RETURN_NONE;
}

PyObject* launcher_new(PyTypeObject* type, PyObject*, PyObject*) { return box<Launcher>(type, launcher_call); }

}  // namespace

void set_launch(uint64_t address) { launch = reinterpret_cast<LaunchFn>(address); }

PyTypeObject* launcher_type() {
  static PyMethodDef methods[] = {
      {"_arrange", launcher_arrange, METH_O, "_arrange(kinds): the kinds of the arguments."},
      {"_settle", launcher_settle, METH_VARARGS, "_settle(aligned, device, function, threads, shared): what is launched."},
      {nullptr, nullptr, 0, nullptr}};
  static PyTypeObject* type = make_type<Launcher>({.name = "votive.Launcher",
                                                   .doc = "launcher(grid, *arguments) launches a kernel on the current stream.",
                                                   .make = launcher_new,
                                                   .call = launcher_call,
                                                   .methods = methods,
                                                   .flags = Py_TPFLAGS_BASETYPE});
  return type;
}

}  // namespace vt
