// What the files of the Python module share: NumPy's C interface and the making of arrays.
#pragma once
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL votive_native_numpy
#ifndef VT_OWNS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include <cxxabi.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "../vt/view.h"

namespace vt {

// How a result looks: filled from Python once per plan.
struct OutSpec {
  PyArray_Descr* descr = nullptr;
  int ndim = 0;
  npy_intp shape[32];
  npy_intp strides[32];
  int64_t nbytes = 0;
  bool contiguous = true;
  PyObject* spec = nullptr;  // votive's Spec, handed back beside the array
};

// Element type of an array; Dtype::none when kernels do not know it.
Dtype dtype_of_array(PyArrayObject* a);
Dtype dtype_of_descr(PyArray_Descr* d);
void register_dtype(int type_num, Dtype d);

// From votive's Spec; false with a Python error set when it cannot be read.
bool read_spec(PyObject* spec, OutSpec& out);
void clear_spec(OutSpec& out);

struct ClearSpec {
  void operator()(OutSpec* out) const {
    clear_spec(*out);
    delete out;
  }
};
using SpecPtr = std::unique_ptr<OutSpec, ClearSpec>;
SpecPtr new_spec(PyObject* spec);  // null with an error set when it cannot be read

// New memory: `array` gets the view, `storage` None or a Storage. False with an error set.
bool make_result(const OutSpec& s, PyObject** storage, PyObject** array);
PyObject* new_block_array(int64_t nbytes);  // uint8
void set_storage_class(PyObject* cls);
PyObject* new_storage(PyObject* memory);  // votive's Storage over an array

struct MemoryStats { int64_t allocated, peak, cached, hits, misses, limit; };
MemoryStats& memory_stats();
void empty_cache();

// What callables that run formulas share. A number as one value of type int64 or float64; a formula
// as Python gives it, with `compute` and `result` set before. False with an error set.
struct Program;
bool read_number(PyObject* v, bool integers, char* slot);
// Where each input lies; numbers are put into `slots`.
bool read_inputs(const Program& p, bool integers, PyObject* const* values, Py_ssize_t n, const char** in, char (*slots)[8]);
bool read_program(Program& p, PyObject* steps, PyObject* constants, PyObject* inputs,
                  const std::vector<int64_t>& shape, std::vector<std::vector<int64_t>>& in_strides);

// What a native kernel with one result gives, without a tuple around it: `storage` and `array` are owned.
struct Result {
  PyObject *storage, *array, *spec;
};
PyObject* as_pair(const Result& made);  // (storage, array)
// New memory, filled by `run(array)`: 1 done, -1 with an error set.
template <class F> int filled(const OutSpec& spec, Result& out, F&& run) {
  if (!make_result(spec, &out.storage, &out.array)) return -1;
  out.spec = spec.spec;
  if (run(out.array)) return 1;
  Py_DECREF(out.storage);
  Py_DECREF(out.array);
  return -1;
}
// 1 done, 0 when this callable has to be called through Python, -1 with an error set.
int run_elementwise(PyObject* kernel, PyObject* const* values, Py_ssize_t n, Result& out);
int run_launch(PyObject* kernel, PyObject* const* values, Py_ssize_t n, Result& out);
inline int run_directly(PyObject* kernel, PyObject* const* values, Py_ssize_t n, Result& out) {
  const int done = run_elementwise(kernel, values, n, out);
  return done != 0 ? done : run_launch(kernel, values, n, out);
}

PyObject* item_of(PyObject* array);

PyTypeObject* block_type();
PyTypeObject* elementwise_type();
PyTypeObject* launch_type();
PyTypeObject* map_reduce_type();
PyTypeObject* kernel_type();
PyTypeObject* operator_type();
PyTypeObject* late_storage_type();
PyTypeObject* window_type();

// What calls look at: the Tensor class, dispatch's state, the per-thread modes; the dtype class, and the list of devices
// that `with` blocks have set; the table of windows that basic indexes ask for, and the function that makes one.
bool install_calls(PyObject* tensor, PyObject* plan, PyObject* state, PyObject* mode);
void install_recall(PyObject* dtype, PyObject* stack);
void install_views(PyObject* mode);
void install_windows(PyObject* mode, PyObject* table, PyObject* make);
bool install_record(PyObject* node, PyObject* saved, PyObject* edge, PyObject* sequence, PyObject* ever,
                    PyObject* edge_of, PyObject* mode);
PyObject* cut_function();
void intern_names();
extern bool unusual;
extern PyTypeObject* wrapped;  // base class of tensors that compute in their own way, see operator.h

// PyEval_RestoreThread. While the interpreter ends, Python stops a thread that comes back by unwinding its stack, and
// destructors on the way would give references back without the lock: such a thread sleeps instead until the process
// is gone.
inline void restore_thread(PyThreadState* state) {
#if defined(__GLIBCXX__)
  try {
    PyEval_RestoreThread(state);
  } catch (const abi::__forced_unwind&) {
    for (;;) pause();
  }
#else
  PyEval_RestoreThread(state);
#endif
}

// Runs f; C++ exceptions become Python errors. Releases the GIL when `release`.
template <class F> bool guarded(bool release, F&& f) {
  PyObject* type = nullptr;
  std::string message;
  PyThreadState* state = release ? PyEval_SaveThread() : nullptr;
  try {
    f();
  } catch (const IndexError& e) {
    type = PyExc_IndexError, message = e.what();
  } catch (const ValueError& e) {
    type = PyExc_ValueError, message = e.what();
  } catch (const std::bad_alloc&) {
    type = PyExc_MemoryError, message = "cpu: out of memory for a kernel's scratch space.";
  } catch (const std::exception& e) {
    type = PyExc_RuntimeError, message = e.what();
  }
  if (state) restore_thread(state);
  if (type == nullptr) return true;
  PyErr_SetString(type, message.c_str());
  return false;
}

}  // namespace vt
