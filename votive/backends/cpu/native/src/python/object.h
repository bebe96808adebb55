// Python types from C++ structs: one template fills in what every type has.
#pragma once
#include <Python.h>
#include <structmember.h>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <new>
#include <utility>

namespace vt {

// An owned reference.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : p_(owned) {}
  Ref(Ref&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(p_, other.p_);
    return *this;
  }
  ~Ref() { Py_XDECREF(p_); }
  static Ref to(PyObject* borrowed) { return Ref(Py_XNewRef(borrowed)); }
  PyObject* get() const { return p_; }
  PyObject* release() { return std::exchange(p_, nullptr); }
  explicit operator bool() const { return p_ != nullptr; }
  int visit(visitproc visit, void* arg) const { return p_ == nullptr ? 0 : visit(p_, arg); }

 private:
  PyObject* p_ = nullptr;
};

// A field of a Python class with __slots__, read and written at its place.
struct Field {
  Py_ssize_t offset = 0;
  PyObject* get(PyObject* o) const { return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(o) + offset); }
  void set(PyObject* o, PyObject* stolen) const {
    auto& place = *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(o) + offset);
    PyObject* old = place;
    place = stolen;
    Py_XDECREF(old);
  }
};

// Finds the places of fields; false with an error set when the class has no such slot.
inline bool find_slots(PyObject* cls, std::initializer_list<std::pair<const char*, Field*>> wanted) {
  for (auto [name, field] : wanted) {
    const Ref found(PyObject_GetAttrString(cls, name));
    if (!found || Py_TYPE(found.get()) != &PyMemberDescr_Type) {
      PyErr_Format(PyExc_TypeError, "%R has no slot %s", cls, name);
      return false;
    }
    field->offset = reinterpret_cast<PyMemberDescrObject*>(found.get())->d_member->offset;
  }
  return true;
}

// A Python object around a T. Python calls it through `call` where the type says so.
template <class T> struct Box {
  PyObject_HEAD
  vectorcallfunc call;
  T value;
};

template <class T> T& unbox(PyObject* o) { return reinterpret_cast<Box<T>*>(o)->value; }

// What a type has beside its struct. A struct with `visit(visitproc, void*)` takes part in garbage collection.
struct TypeDef {
  const char* name;
  const char* doc;
  newfunc make = nullptr;
  vectorcallfunc call = nullptr;
  PyMethodDef* methods = nullptr;
  PyGetSetDef* attributes = nullptr;
  descrgetfunc get = nullptr;
  unsigned long flags = 0;
};

// A new object of a type, or of a class that Python derived from it; nullptr with an error set.
template <class T, class... A> PyObject* box(PyTypeObject* type, vectorcallfunc call, A&&... a) {
  PyObject* o = type->tp_alloc(type, 0);
  if (o == nullptr) return nullptr;
  auto* made = reinterpret_cast<Box<T>*>(o);
  made->call = call;
  new (&made->value) T{std::forward<A>(a)...};
  return o;
}

template <class T> PyTypeObject* make_type(const TypeDef& def) {
  static PyTypeObject type = {PyVarObject_HEAD_INIT(nullptr, 0)};
  constexpr bool collected = requires(T& t, visitproc v, void* arg) { t.visit(v, arg); };
  type.tp_name = def.name;
  type.tp_doc = def.doc;
  type.tp_basicsize = sizeof(Box<T>);
  type.tp_flags = Py_TPFLAGS_DEFAULT | def.flags;
  type.tp_new = def.make;
  type.tp_methods = def.methods;
  type.tp_getset = def.attributes;
  type.tp_descr_get = def.get;
  if (def.call != nullptr) {
    type.tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
    type.tp_vectorcall_offset = offsetof(Box<char>, call);  // the same for every T
    type.tp_call = PyVectorcall_Call;
  }
  type.tp_dealloc = [](PyObject* o) {
    if constexpr (requires(T& t, visitproc v, void* arg) { t.visit(v, arg); }) PyObject_GC_UnTrack(o);
    unbox<T>(o).~T();
    Py_TYPE(o)->tp_free(o);
  };
  if constexpr (collected) {
    type.tp_flags |= Py_TPFLAGS_HAVE_GC;
    type.tp_free = PyObject_GC_Del;
    type.tp_traverse = [](PyObject* o, visitproc visit, void* arg) { return unbox<T>(o).visit(visit, arg); };
    type.tp_clear = [](PyObject* o) {
      T empty{};
      std::swap(unbox<T>(o), empty);
      return 0;
    };
  }
  return PyType_Ready(&type) < 0 ? nullptr : &type;
}

template <class F> PyCFunction as_method(F* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

}  // namespace vt
