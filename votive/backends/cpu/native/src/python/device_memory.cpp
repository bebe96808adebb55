// The short way to a GPU's memory: a block of the size that was asked for lies in its bin, and goes
// back there. The same steps as backends/cuda/runtime/allocator.py, which serves whatever else there is.
//
// Python's lock is held throughout and nothing here runs Python code in between, so these steps are
// one to every other thread; while one of those changes the lists (`busy`), the long way waits for it.
#include "device.h"


#include <initializer_list>
#include <utility>

namespace vt {

PyTypeObject* view_class = nullptr;
Field view_ptr, view_spec, view_storage;

namespace {

PyTypeObject *storage_class = nullptr, *block_class = nullptr, *pool_class = nullptr, *allocator_class = nullptr;
Field storage_block, storage_ptr, storage_nbytes, storage_device;
Field block_ptr, block_nbytes, block_wanted, block_free, block_streams, block_pool;
Field pool_bins, pool_allocator;
Field all_busy, all_late, all_allocated, all_peak, all_taken;
PyObject *s_give, *s_nbytes, *s_device, *s_index;
bool forked = false;

int64_t number(PyObject* o) { return o == nullptr ? 0 : PyLong_AsLongLong(o); }
PyObject* number(int64_t v) { return PyLong_FromLongLong(v); }

PyObject* bin(PyObject* pool, int64_t nbytes) {
  PyObject* key = number(nbytes <= 0 ? 512 : (nbytes + 511) / 512 * 512);
  PyObject* found = PyDict_GetItemWithError(pool_bins.get(pool), key);
  Py_DECREF(key);
  return found;  // borrowed
}

// A block from its bin, or nullptr: the long way must serve.
PyObject* take(PyObject* pool, int64_t nbytes) {
  PyObject* allocator = pool_allocator.get(pool);
  if (number(all_busy.get(allocator)) != 0 || PyList_GET_SIZE(all_late.get(allocator)) != 0) return nullptr;
  PyObject* list = bin(pool, nbytes);
  const Py_ssize_t n = list == nullptr ? 0 : PyList_GET_SIZE(list);
  if (n == 0) return nullptr;
  PyObject* block = Py_NewRef(PyList_GET_ITEM(list, n - 1));
  if (PyList_SetSlice(list, n - 1, n, nullptr) < 0) {
    PyErr_Clear();
    Py_DECREF(block);
    return nullptr;
  }
  block_free.set(block, Py_NewRef(Py_False));
  block_wanted.set(block, number(nbytes));
  const int64_t allocated = number(all_allocated.get(allocator)) + number(block_nbytes.get(block));
  all_allocated.set(allocator, number(allocated));
  all_taken.set(allocator, number(number(all_taken.get(allocator)) + 1));
  if (allocated > number(all_peak.get(allocator))) all_peak.set(allocator, number(allocated));
  return block;
}

// Whether a block went back to its bin.
bool give(PyObject* block) {
  PyObject* pool = block_pool.get(block);
  PyObject* allocator = pool_allocator.get(pool);
  if (number(all_busy.get(allocator)) != 0) return PyList_Append(all_late.get(allocator), block) == 0;
  if (block_streams.get(block) != Py_None) return false;
  PyObject* list = bin(pool, number(block_wanted.get(block)));
  if (list == nullptr || PyList_Append(list, block) < 0) return false;
  all_allocated.set(allocator, number(number(all_allocated.get(allocator)) - number(block_nbytes.get(block))));
  block_free.set(block, Py_NewRef(Py_True));
  return true;
}

// CudaStorage.__del__
PyObject* finalize(PyObject* storage, PyObject*) {
  PyObject* block = storage_block.get(storage);
  if (block == nullptr || block == Py_None || forked) Py_RETURN_NONE;
  if (Py_TYPE(block) == block_class && give(block)) Py_RETURN_NONE;
  PyErr_Clear();
  PyObject* pool = PyObject_GetAttrString(block, "pool");
  if (pool == nullptr) return nullptr;
  PyObject* done = PyObject_CallMethodOneArg(pool, s_give, block);
  Py_DECREF(pool);
  return done;
}

}  // namespace

Current& current() {
  static thread_local Current here;
  return here;
}

void set_current(int device, uint64_t stream, PyObject* pool) {
  Current& c = current();
  c.device = device < MAX_DEVICES ? device : -1;
  c.stream = reinterpret_cast<void*>(stream);
  c.pool = Py_TYPE(pool) == pool_class ? pool : nullptr;
  c.space = nullptr;
}

void set_space(uint64_t address) { current().space = reinterpret_cast<void*>(address); }

void set_forked(bool yes) {
  forked = yes;
  if (yes) current() = Current{};
}

PyObject* device_view(PyObject* address, PyObject* spec, PyObject* storage) {
  PyObject* view = view_class->tp_alloc(view_class, 0);
  if (view == nullptr) return nullptr;
  view_ptr.set(view, Py_NewRef(address));
  view_spec.set(view, Py_NewRef(spec));
  view_storage.set(view, Py_NewRef(storage));
  return view;
}

PyObject* device_part(PyObject* view, Py_ssize_t bytes, PyObject* spec) {
  if (bytes == 0) return device_view(view_ptr.get(view), spec, view_storage.get(view));
  PyObject* address = PyLong_FromUnsignedLongLong(PyLong_AsUnsignedLongLong(view_ptr.get(view)) + uint64_t(bytes));
  if (address == nullptr) return nullptr;
  PyObject* part = device_view(address, spec, view_storage.get(view));
  Py_DECREF(address);
  return part;
}

PyObject* storage_address(PyObject* storage) { return storage_ptr.get(storage); }

PyObject* device_storage(int64_t nbytes, int device, uint64_t& address) {
  const Current& c = current();
  PyObject* block = c.device == device && c.pool != nullptr ? take(c.pool, nbytes) : nullptr;
  PyObject* made;
  if (block == nullptr) {
    made = PyObject_CallFunction(reinterpret_cast<PyObject*>(storage_class), "Li", (long long)nbytes, device);
    if (made == nullptr) return nullptr;
  } else {
    made = storage_class->tp_alloc(storage_class, 0);
    if (made == nullptr) {
      give(block);
      Py_DECREF(block);
      return nullptr;
    }
    storage_ptr.set(made, Py_NewRef(block_ptr.get(block)));
    storage_block.set(made, block);
    storage_nbytes.set(made, number(nbytes));
    storage_device.set(made, number(int64_t(device)));
  }
  address = PyLong_AsUnsignedLongLong(storage_ptr.get(made));
  return made;
}

namespace {

// new_view(spec): memory of the spec's size on its device.
PyObject* new_view(PyObject*, PyObject* spec) {
  PyObject *nbytes = PyObject_GetAttr(spec, s_nbytes), *device = PyObject_GetAttr(spec, s_device);
  PyObject* index = device == nullptr ? nullptr : PyObject_GetAttr(device, s_index);
  PyObject *view = nullptr, *storage = nullptr;
  if (nbytes != nullptr && index != nullptr) {
    const int64_t size = PyLong_AsLongLong(nbytes);
    const int where = index == Py_None ? 0 : int(PyLong_AsLong(index));
    uint64_t address;
    if (!PyErr_Occurred()) storage = device_storage(size, where, address);
    if (storage != nullptr) view = device_view(storage_address(storage), spec, storage);
  }
  for (PyObject* o : {nbytes, device, index, storage}) Py_XDECREF(o);
  return view;
}

}  // namespace

PyObject* new_view_function() {
  static PyMethodDef def = {"new_view", new_view, METH_O, "new_view(spec): new memory seen through a spec."};
  return PyCFunction_New(&def, nullptr);
}

// classes: (View, CudaStorage, Block, Pool, Allocator)
bool install_device(PyObject* classes) {
  PyTypeObject** to[] = {&view_class, &storage_class, &block_class, &pool_class, &allocator_class};
  for (Py_ssize_t i = 0; i < 5; ++i) *to[i] = reinterpret_cast<PyTypeObject*>(Py_NewRef(PyTuple_GET_ITEM(classes, i)));
  s_give = PyUnicode_InternFromString("give");
  s_nbytes = PyUnicode_InternFromString("nbytes");
  s_device = PyUnicode_InternFromString("device");
  s_index = PyUnicode_InternFromString("index");
  return find_slots(reinterpret_cast<PyObject*>(view_class), {{"ptr", &view_ptr}, {"spec", &view_spec}, {"storage", &view_storage}}) &&
         find_slots(reinterpret_cast<PyObject*>(storage_class), {{"block", &storage_block}, {"ptr", &storage_ptr}, {"_nbytes", &storage_nbytes}, {"device", &storage_device}}) &&
         find_slots(reinterpret_cast<PyObject*>(block_class), {{"ptr", &block_ptr}, {"nbytes", &block_nbytes}, {"wanted", &block_wanted}, {"free", &block_free},
                              {"streams", &block_streams}, {"pool", &block_pool}}) &&
         find_slots(reinterpret_cast<PyObject*>(pool_class), {{"bins", &pool_bins}, {"allocator", &pool_allocator}}) &&
         find_slots(reinterpret_cast<PyObject*>(allocator_class), {{"busy", &all_busy}, {"late", &all_late}, {"allocated", &all_allocated}, {"peak", &all_peak},
                                  {"taken", &all_taken}});
}

PyObject* device_give(PyObject* cls) {
  static PyMethodDef def = {"__del__", finalize, METH_NOARGS, "Give the block back to its pool."};
  return PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(cls), &def);
}

}  // namespace vt
