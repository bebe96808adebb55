// Results of kernels: arrays over cached, aligned blocks of memory.
//
// A block is a Python object that owns memory; arrays have it as their base, so it dies with the
// last array or view that sees it and the memory goes back to the free list. All of this happens
// under the GIL, which is the lock of the lists.
#include "api.h"
#include "object.h"

#include <sys/mman.h>

#include <cstdlib>
#include <unordered_map>

namespace vt {

#if defined(__SANITIZE_ADDRESS__)
// Exact sizes and no reuse, so that reading past a block or after its end is seen.
static constexpr bool EXACT = true;
#else
static constexpr bool EXACT = false;
#endif
static constexpr int64_t SMALL = EXACT ? 0 : 1024;  // below, NumPy's own cache is the fastest
static constexpr int64_t HUGE_PAGE = 1 << 21;

MemoryStats& memory_stats() {
  static MemoryStats s{0, 0, 0, 0, 0, -1};
  return s;
}

using FreeLists = std::unordered_map<int64_t, std::vector<void*>>;
static FreeLists& free_lists() {
  static FreeLists* lists = new FreeLists();  // outlives the interpreter's last blocks
  return *lists;
}

static int64_t size_class(int64_t n) {
  if (EXACT) return n > 0 ? n : 1;
  if (n <= 4096) return (n + 511) / 512 * 512;
  const int64_t step = int64_t(1) << (60 - __builtin_clzll(uint64_t(n)));
  return (n + step - 1) / step * step;
}

static void* fresh(int64_t align, int64_t size) {
  void* p = nullptr;
  if (!EXACT) size = (size + align - 1) / align * align;
  return posix_memalign(&p, size_t(align), size_t(size)) == 0 ? p : nullptr;
}

static void* take(int64_t size) {
  MemoryStats& s = memory_stats();
  auto it = free_lists().find(size);
  void* p = nullptr;
  if (it != free_lists().end() && !it->second.empty()) {
    p = it->second.back();
    it->second.pop_back();
    s.cached -= size;
    ++s.hits;
  } else {
    ++s.misses;
    const int64_t align = size >= 2 * HUGE_PAGE ? HUGE_PAGE : 64;
    p = fresh(align, size);
    if (p == nullptr) {
      empty_cache();
      p = fresh(align, size);
      if (p == nullptr) return nullptr;
    }
#if defined(MADV_HUGEPAGE)
    if (align == HUGE_PAGE) madvise(p, size_t(size), MADV_HUGEPAGE);
#endif
  }
  s.allocated += size;
  if (s.allocated > s.peak) s.peak = s.allocated;
  return p;
}

void empty_cache() {
  for (auto& [size, list] : free_lists()) {
    for (void* p : list) std::free(p);
    list.clear();
  }
  memory_stats().cached = 0;
}

struct Block {
  void* data;
  int64_t size;
  ~Block();
};

Block::~Block() {
  MemoryStats& s = memory_stats();
  s.allocated -= size;
  if (EXACT || (s.limit >= 0 && s.cached + size > s.limit)) std::free(data);
  else {
    free_lists()[size].push_back(data);
    s.cached += size;
  }
}

PyTypeObject* block_type() {
  static PyTypeObject* type = make_type<Block>(
      {.name = "votive.Block", .doc = "Memory that returns to the free list when nobody sees it any more."});
  return type;
}

static PyObject* new_block(int64_t nbytes) {
  const int64_t size = size_class(nbytes);
  void* p = take(size);
  if (p == nullptr) {
    PyErr_Format(PyExc_MemoryError,
                 "cpu: out of memory asking for %lld bytes; votive holds %lld bytes in tensors and "
                 "nothing in its cache.",
                 (long long)nbytes, (long long)memory_stats().allocated);
    return nullptr;
  }
  return box<Block>(block_type(), nullptr, p, size);
}

static PyObject* over_block(PyObject* block, PyArray_Descr* descr, int ndim, const npy_intp* shape, const npy_intp* strides) {
  Py_INCREF(descr);
  PyObject* a = PyArray_NewFromDescr(&PyArray_Type, descr, ndim, shape, strides, unbox<Block>(block).data, NPY_ARRAY_WRITEABLE | NPY_ARRAY_ALIGNED, nullptr);
  if (a == nullptr) {
    Py_DECREF(block);
    return nullptr;
  }
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(a), block) < 0) {
    Py_DECREF(a);
    return nullptr;
  }
  return a;
}

PyObject* new_block_array(int64_t nbytes) {
  PyObject* b = new_block(nbytes);
  if (b == nullptr) return nullptr;
  static PyArray_Descr* bytes = PyArray_DescrFromType(NPY_UINT8);
  const npy_intp n = unbox<Block>(b).size;
  return over_block(b, bytes, 1, &n, nullptr);
}

static PyObject* storage_class = nullptr;
void set_storage_class(PyObject* cls) {
  Py_XINCREF(cls);
  Py_XSETREF(storage_class, cls);
}

PyObject* new_storage(PyObject* memory) {
  auto* type = reinterpret_cast<PyTypeObject*>(storage_class);
  PyObject* s = type->tp_alloc(type, 0);
  static PyObject* name = PyUnicode_InternFromString("memory");
  if (s != nullptr && PyObject_GenericSetAttr(s, name, memory) < 0) Py_CLEAR(s);
  return s;
}

// The only element of an array as a Python number; nullptr with an error set.
PyObject* item_of(PyObject* o) {
  if (!PyArray_Check(o)) {
    PyErr_SetString(PyExc_TypeError, "item() takes an array");
    return nullptr;
  }
  auto* a = reinterpret_cast<PyArrayObject*>(o);
  const char* p = PyArray_BYTES(a);
  switch (dtype_of_array(a)) {
    case Dtype::f32: return PyFloat_FromDouble(*reinterpret_cast<const float*>(p));
    case Dtype::f64: return PyFloat_FromDouble(*reinterpret_cast<const double*>(p));
    case Dtype::f16: return PyFloat_FromDouble(to_float(*reinterpret_cast<const f16*>(p)));
    case Dtype::bf16: return PyFloat_FromDouble(to_float(*reinterpret_cast<const bf16*>(p)));
    case Dtype::i64: return PyLong_FromLongLong(*reinterpret_cast<const int64_t*>(p));
    case Dtype::i32: return PyLong_FromLong(*reinterpret_cast<const int32_t*>(p));
    case Dtype::b1: return PyBool_FromLong(*p != 0);
    default: return PyArray_GETITEM(a, p);
  }
}

bool make_result(const OutSpec& s, PyObject** storage, PyObject** array) {
  if (s.contiguous) {
    if (s.nbytes < SMALL) {
      Py_INCREF(s.descr);
      *array = PyArray_NewFromDescr(&PyArray_Type, s.descr, s.ndim, s.shape, nullptr, nullptr, 0, nullptr);
    } else {
      PyObject* b = new_block(s.nbytes);
      *array = b == nullptr ? nullptr : over_block(b, s.descr, s.ndim, s.shape, s.strides);
    }
    if (*array == nullptr) return false;
    *storage = Py_NewRef(Py_None);
    return true;
  }
  // Another order of dimensions: the storage is the block itself, the array a view of it.
  PyObject* b = new_block(s.nbytes > 0 ? s.nbytes : 1);
  if (b == nullptr) return false;
  static PyArray_Descr* bytes = PyArray_DescrFromType(NPY_UINT8);
  const npy_intp n = s.nbytes;
  Py_INCREF(b);
  PyObject* whole = over_block(b, bytes, 1, &n, nullptr);
  *array = over_block(b, s.descr, s.ndim, s.shape, s.strides);
  if (whole == nullptr || *array == nullptr) {
    Py_XDECREF(whole);
    Py_XDECREF(*array);
    return false;
  }
  *storage = PyObject_CallOneArg(storage_class, whole);
  Py_DECREF(whole);
  if (*storage == nullptr) {
    Py_DECREF(*array);
    return false;
  }
  return true;
}

PyObject* as_pair(const Result& made) {
  PyObject* pair = PyTuple_New(2);
  PyTuple_SET_ITEM(pair, 0, made.storage);
  PyTuple_SET_ITEM(pair, 1, made.array);
  return pair;
}

// --- dtypes and specs ------------------------------------------------------------------------

static std::unordered_map<int, Dtype>& user_types() {
  static std::unordered_map<int, Dtype> table;
  return table;
}
void register_dtype(int type_num, Dtype d) { user_types()[type_num] = d; }

Dtype dtype_of_descr(PyArray_Descr* descr) {
  switch (descr->type_num) {
    case NPY_BOOL: return Dtype::b1;
    case NPY_INT8: return Dtype::i8;
    case NPY_INT16: return Dtype::i16;
    case NPY_INT32: return Dtype::i32;
    case NPY_UINT8: return Dtype::u8;
    case NPY_UINT16: return Dtype::u16;
    case NPY_UINT32: return Dtype::u32;
    case NPY_LONG: return sizeof(long) == 8 ? Dtype::i64 : Dtype::i32;
    case NPY_LONGLONG: return Dtype::i64;
    case NPY_ULONG: return sizeof(long) == 8 ? Dtype::u64 : Dtype::u32;
    case NPY_ULONGLONG: return Dtype::u64;
    case NPY_HALF: return Dtype::f16;
    case NPY_FLOAT: return Dtype::f32;
    case NPY_DOUBLE: return Dtype::f64;
    case NPY_CFLOAT: return Dtype::c64;
    case NPY_CDOUBLE: return Dtype::c128;
    default: {
      auto it = user_types().find(descr->type_num);
      return it == user_types().end() ? Dtype::none : it->second;
    }
  }
}

Dtype dtype_of_array(PyArrayObject* a) { return dtype_of_descr(PyArray_DESCR(a)); }

static bool read_ints(PyObject* owner, const char* name, npy_intp* out, int* count) {
  PyObject* t = PyObject_GetAttrString(owner, name);
  if (t == nullptr) return false;
  const Py_ssize_t n = PyTuple_Check(t) ? PyTuple_GET_SIZE(t) : -1;
  if (n < 0 || n > 32) {
    Py_DECREF(t);
    PyErr_SetString(PyExc_ValueError, "native kernels take at most 32 dimensions");
    return false;
  }
  for (Py_ssize_t i = 0; i < n; ++i) out[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(t, i));
  *count = int(n);
  Py_DECREF(t);
  return !PyErr_Occurred();
}

bool read_spec(PyObject* spec, OutSpec& out) {
  int n = 0;
  if (!read_ints(spec, "shape", out.shape, &out.ndim) || !read_ints(spec, "byte_strides", out.strides, &n)) return false;
  PyObject* dtype = PyObject_GetAttrString(spec, "dtype");
  if (dtype == nullptr) return false;
  PyObject* np_dtype = PyObject_GetAttrString(dtype, "np");
  Py_DECREF(dtype);
  if (np_dtype == nullptr) return false;
  if (!PyArray_DescrCheck(np_dtype)) {
    Py_DECREF(np_dtype);
    PyErr_SetString(PyExc_TypeError, "a Spec's dtype must have a NumPy dtype as `np`");
    return false;
  }
  out.descr = reinterpret_cast<PyArray_Descr*>(np_dtype);
  PyObject* contiguous = PyObject_GetAttrString(spec, "contiguous");
  if (contiguous == nullptr) return false;
  out.contiguous = PyObject_IsTrue(contiguous) == 1;
  Py_DECREF(contiguous);
  out.nbytes = PyDataType_ELSIZE(out.descr);
  for (int d = 0; d < out.ndim; ++d) out.nbytes *= out.shape[d];
  out.spec = Py_NewRef(spec);
  return true;
}

void clear_spec(OutSpec& out) {
  Py_CLEAR(out.descr);
  Py_CLEAR(out.spec);
}

SpecPtr new_spec(PyObject* spec) {
  SpecPtr out(new OutSpec());
  return read_spec(spec, *out) ? std::move(out) : nullptr;
}

}  // namespace vt
