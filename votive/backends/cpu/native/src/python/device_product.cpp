// The short way of a product by cuBLASLt: say where the operands of the epilogue lie, call the library.
// The same steps as backends/cuda/libraries/cublas.py, which serves first calls, captures, factors and odd addresses.
//
// A product's description holds the addresses of its epilogue. Here they are set and used in one step
// to every other thread; `busy` says that the long way is between the two.
#include "device_launch.h"

#include "names.h"

#include <vector>

namespace vt {
namespace {

using MatmulFn = int (*)(void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, void*,
                         void*, void*, const void*, void*, size_t, void*);
using SetFn = int (*)(void*, int, const void*, size_t);

// What a call may say beside its operands: "add", or one of these, by the library's number.
constexpr int MAX_PLACES = 8;
struct Place {
  PyObject* name;
  int attribute;
  uint64_t address;
};

struct Way {
  void *handle, *algorithm;
};

struct Product {
  MatmulFn matmul = nullptr;
  SetFn set = nullptr;
  void *desc = nullptr, *layouts[4] = {};
  const void *one = nullptr, *zero = nullptr;
  size_t space = 0;
  int busy = 0, n_places = 0;
  Place places[MAX_PLACES] = {};
  Way ways[MAX_DEVICES] = {};
};

bool address_of(PyObject* v, uint64_t& out) {
  if (!PyLong_Check(v)) return false;
  int overflow;
  out = uint64_t(PyLong_AsLongLongAndOverflow(v, &overflow));
  return overflow == 0;
}

PyObject* product_call(PyObject* me, PyObject* const* args, size_t nargsf, PyObject* names) {
  auto* self = &unbox<Product>(me);
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf), named = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  const Current& c = current();
  uint64_t left, right, out, add = 0, where[MAX_PLACES] = {};
  bool usual = n == 3 && c.device >= 0 && c.space != nullptr && self->busy == 0 && self->matmul != nullptr &&
               self->ways[c.device].algorithm != nullptr && address_of(args[0], left) && address_of(args[1], right) &&
               address_of(args[2], out);
  for (Py_ssize_t i = 0; usual && i < named; ++i) {
    PyObject* name = PyTuple_GET_ITEM(names, i);
    uint64_t* to = name == name::add ? &add : nullptr;
    for (int k = 0; to == nullptr && k < self->n_places; ++k)
      if (self->places[k].name == name) to = &where[k];
    usual = to != nullptr && address_of(args[n + i], *to);
  }
  usual = usual && ((left | right | out | add) & 15) == 0;
  if (!usual) {
    PyErr_Clear();
    std::vector<PyObject*> stack(size_t(n + named) + 1);
    stack[0] = me;
    for (Py_ssize_t i = 0; i < n + named; ++i) stack[size_t(i) + 1] = args[i];
    return PyObject_VectorcallMethod(name::_general, stack.data(), size_t(n) + 1, names);
  }
  int code = 0;
  for (int k = 0; code == 0 && k < self->n_places; ++k) {
    Place& p = self->places[k];
    if (where[k] == 0 || where[k] == p.address) continue;
    code = self->set(self->desc, p.attribute, &where[k], sizeof(uint64_t));
    p.address = code == 0 ? where[k] : 0;
  }
  auto at = [](uint64_t a) { return reinterpret_cast<void*>(a); };
  const Way& way = self->ways[c.device];
  void** l = self->layouts;
  if (code == 0)
    code = self->matmul(way.handle, self->desc, self->one, at(left), l[0], at(right), l[1], self->zero, at(add ? add : out),
                        l[2], at(out), l[3], way.algorithm, c.space, self->space, c.stream);
  if (code == 0) Py_RETURN_NONE;
  PyObject* raised = PyObject_CallMethod(me, "_failed", "i", code);
  Py_XDECREF(raised);
  return nullptr;
}

// _arrange(matmul, set, desc, (layouts of left, right, added, out), one, zero, bytes of scratch memory,
// ((name, attribute), ...)): addresses as integers.
PyObject* product_arrange(PyObject* me, PyObject* args) {
  auto* self = &unbox<Product>(me);
  unsigned long long matmul, set, desc, layouts[4], one, zero, space;
  PyObject* places;
  if (!PyArg_ParseTuple(args, "KKK(KKKK)KKKO!", &matmul, &set, &desc, &layouts[0], &layouts[1], &layouts[2], &layouts[3], &one,
                        &zero, &space, &PyTuple_Type, &places))
    return nullptr;
  self->set = reinterpret_cast<SetFn>(set);
  self->desc = reinterpret_cast<void*>(desc);
  for (int i = 0; i < 4; ++i) self->layouts[i] = reinterpret_cast<void*>(layouts[i]);
  self->one = reinterpret_cast<void*>(one);
  self->zero = reinterpret_cast<void*>(zero);
  self->space = size_t(space);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(places) && self->n_places < MAX_PLACES; ++i) {
    PyObject* name;
    int attribute;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(places, i), "Ui", &name, &attribute)) return nullptr;
    Py_INCREF(name);
    PyUnicode_InternInPlace(&name);  // as names of arguments are: never freed
    self->places[self->n_places++] = Place{name, attribute, 0};
  }
  self->matmul = reinterpret_cast<MatmulFn>(matmul);
  Py_RETURN_NONE;
}

// _settle(device, handle, address of the algorithm): aligned products take the short way from now on.
PyObject* product_settle(PyObject* me, PyObject* args) {
  auto* self = &unbox<Product>(me);
  int device;
  unsigned long long handle, algorithm;
  if (!PyArg_ParseTuple(args, "iKK", &device, &handle, &algorithm)) return nullptr;
  if (device >= 0 && device < MAX_DEVICES)
    self->ways[device] = Way{reinterpret_cast<void*>(handle), reinterpret_cast<void*>(algorithm)};
  Py_RETURN_NONE;
}

// _hold(more): the long way begins (1) or ends (-1); it sets addresses by itself.
PyObject* product_hold(PyObject* me, PyObject* more) {
  auto* self = &unbox<Product>(me);
  const long step = PyLong_AsLong(more);
  if (step == -1 && PyErr_Occurred()) return nullptr;
  self->busy += int(step);
  for (int k = 0; k < self->n_places; ++k) self->places[k].address = 0;
  Py_RETURN_NONE;
}

PyObject* product_new(PyTypeObject* type, PyObject*, PyObject*) { return box<Product>(type, product_call); }

}  // namespace

PyTypeObject* device_product_type() {
  static PyMethodDef methods[] = {
      {"_arrange", product_arrange, METH_VARARGS, "What the library is told with every call."},
      {"_settle", product_settle, METH_VARARGS, "_settle(device, handle, algorithm): how aligned operands are multiplied."},
      {"_hold", product_hold, METH_O, "_hold(1), _hold(-1): around the long way."},
      {nullptr, nullptr, 0, nullptr}};
  return make_type<Product>({.name = "votive.DeviceProduct",
                             .doc = "product(left, right, out, **places) multiplies on the current stream.",
                             .make = product_new,
                             .call = product_call,
                             .methods = methods,
                             .flags = Py_TPFLAGS_BASETYPE});
}

}  // namespace vt
