// What the short ways of a GPU's host side share: this thread's device, stream and pool, and the
// fields of the Python classes that hold its memory. Knows addresses, not the driver.
#pragma once
#include "object.h"

#include <cstdint>

namespace vt {

constexpr int MAX_DEVICES = 16;

// The thread's device, stream and pool as backends/cuda/runtime/__init__.py says; `pool` is kept alive there.
struct Current {
  int device = -1;  // not yet said
  void* stream = nullptr;
  PyObject* pool = nullptr;
  void* space = nullptr;  // scratch memory of products on this stream, once it is known
};
Current& current();

// data.View: address, spec and storage.
extern PyTypeObject* view_class;
extern Field view_ptr, view_spec, view_storage;
inline bool is_device_view(PyObject* o) { return view_class != nullptr && Py_TYPE(o) == view_class; }

// New memory of a device: the storage, or nullptr with an error set. `address` gets where it lies.
PyObject* device_storage(int64_t nbytes, int device, uint64_t& address);
PyObject* device_view(PyObject* address, PyObject* spec, PyObject* storage);
PyObject* device_part(PyObject* view, Py_ssize_t bytes, PyObject* spec);  // the same memory from there on
PyObject* storage_address(PyObject* storage);  // borrowed

PyTypeObject* launcher_type();
PyTypeObject* device_formula_type();
PyTypeObject* device_results_type();
PyTypeObject* device_product_type();
bool install_device(PyObject* classes);
PyObject* new_view_function();
PyObject* device_give(PyObject* storage_class);
void set_current(int device, uint64_t stream, PyObject* pool);
void set_space(uint64_t address);
void set_forked(bool forked);
void set_launch(uint64_t address);

}  // namespace vt
