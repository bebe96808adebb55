// Recording a call for autograd: the same steps as autograd/record.py, for the usual case.
#include "record.h"

#include "names.h"

namespace vt {

namespace {

PyTypeObject *node_type = nullptr, *saved_type = nullptr;
PyObject *edge_class, *sequence, *ever, *edge_of, *mode;
Field node_recipe, node_edges, node_seq, saved_tensor, saved_version;

// A Saved; `is_out` < 0 for an input. nullptr with an error, or without one when Python must do it.
PyObject* save(PyObject* t, Py_ssize_t is_out) {
  const int inference = flag(t, name::_inference);
  if (inference != 0) return nullptr;
  PyObject* storage = PyObject_GetAttr(t, name::_storage);
  if (storage == nullptr) return nullptr;
  PyObject* version = PyObject_GetAttr(storage, name::version);
  PyObject* kept = Py_NewRef(t);
  if (version != nullptr && is_out >= 0) {
    // The result itself would make a cycle result -> node -> result; keep a bare alias.
    Py_DECREF(kept);
    kept = wrap(storage, tensor_data.get(t), tensor_spec.get(t));
  }
  Py_DECREF(storage);
  PyObject* s = version == nullptr || kept == nullptr ? nullptr : saved_type->tp_alloc(saved_type, 0);
  if (s != nullptr) {
    saved_version.set(s, Py_NewRef(version));
    saved_tensor.set(s, Py_NewRef(kept));
    if (is_out >= 0 && PyObject_GenericSetAttr(s, name::is_out, Ref(PyLong_FromSsize_t(is_out)).get()) < 0) Py_CLEAR(s);
  }
  Py_XDECREF(version);
  Py_XDECREF(kept);
  return s;
}

// Where a gradient for t goes.
PyObject* edge(PyObject* t) {
  PyObject* base = PyObject_GetAttr(t, name::_base);
  if (base == nullptr) return nullptr;
  const bool view = base != Py_None;
  Py_DECREF(base);
  if (view) return PyObject_CallOneArg(edge_of, t);
  PyObject* e = PyObject_GetAttr(t, name::_edge);
  if (e == Py_None) {
    Py_DECREF(e);
    return Py_NewRef(t);
  }
  return e;
}

bool is_list(PyObject* v) { return PyList_CheckExact(v) || PyTuple_CheckExact(v); }

}  // namespace

int record_usual(PyObject* plan, PyObject* const* values, Py_ssize_t n, PyObject* out) {
  if (node_type == nullptr) return 0;
  int noted = flag(ever, name::noted);
  if (noted > 0) noted = flag(mode, name::noted);
  if (noted < 0) return -1;
  if (noted > 0) {
    const int special = flag(mode, name::special);
    if (special != 0) return special < 0 ? -1 : 0;
  }
  // The inputs, with lists spelled out, and which of them want a gradient.
  PyObject* flat[64];
  Py_ssize_t count = 0;
  bool has_numbers = false;
  for (Py_ssize_t k = 0; k < n; ++k) {
    PyObject* v = values[k];
    if (is_list(v)) {
      const Py_ssize_t m = PySequence_Fast_GET_SIZE(v);
      if (count + m > 60) return 0;
      for (Py_ssize_t i = 0; i < m; ++i) flat[count++] = PySequence_Fast_GET_ITEM(v, i);
      has_numbers = true;
    } else {
      if (count > 60) return 0;
      flat[count++] = v;
      has_numbers = has_numbers || !is_tensor(v);
    }
  }
  PyObject* mask = PyTuple_New(count);
  for (Py_ssize_t k = 0; k < count; ++k)
    PyTuple_SET_ITEM(mask, k, PyBool_FromLong(is_tensor(flat[k]) && requires_grad(flat[k])));
  PyObject* recipes = PyObject_GetAttr(plan, name::recipes);
  PyObject* recipe = recipes == nullptr ? nullptr : PyDict_GetItemWithError(recipes, mask);
  Py_XINCREF(recipe);
  Py_XDECREF(recipes);
  if (recipe == nullptr) {
    Py_DECREF(mask);
    return PyErr_Occurred() ? -1 : 0;
  }
  int done = 0;
  PyObject *node = nullptr, *edges = nullptr, *kept = nullptr;
  PyObject* specs = PyObject_GetAttr(recipe, name::outs);
  PyObject* slots = PyObject_GetAttr(recipe, name::slots);      // ((key, flat index or -1 - output), ...)
  PyObject* carries = PyObject_GetAttr(recipe, name::carries);  // per output: can it carry a gradient
  const bool many = PyTuple_CheckExact(out);
  const Py_ssize_t outs = many ? PyTuple_GET_SIZE(out) : 1;
  auto result = [&](Py_ssize_t k) { return many ? PyTuple_GET_ITEM(out, k) : out; };
  if (slots == nullptr || carries == nullptr || specs == nullptr) {
    done = -1;
    goto end;
  }
  if (carries == Py_None || PyTuple_GET_SIZE(carries) != outs) goto end;
  edges = PyTuple_New(count);
  for (Py_ssize_t k = 0; k < count; ++k) {
    PyObject* e = PyTuple_GET_ITEM(mask, k) == Py_True ? edge(flat[k]) : Py_NewRef(Py_None);
    if (e == nullptr) {
      done = -1;
      goto end;
    }
    PyTuple_SET_ITEM(edges, k, e);
  }
  if (PyTuple_GET_SIZE(slots) > 0) {
    kept = PyDict_New();
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(slots); ++k) {
      PyObject* item = PyTuple_GET_ITEM(slots, k);
      const Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GET_ITEM(item, 1));
      PyObject* s = at >= 0 ? save(flat[at], -1) : save(result(-1 - at), -1 - at);
      if (s == nullptr) {
        done = PyErr_Occurred() ? -1 : 0;
        goto end;
      }
      PyDict_SetItem(kept, PyTuple_GET_ITEM(item, 0), s);
      Py_DECREF(s);
    }
  }
  node = node_type->tp_alloc(node_type, 0);
  {
    PyObject* seq = PyIter_Next(sequence);
    if (node == nullptr || seq == nullptr || PyObject_GenericSetAttr(node, name::grad_specs, specs) < 0 ||
        (kept != nullptr && PyObject_GenericSetAttr(node, name::kept, kept) < 0)) {
      Py_XDECREF(seq);
      done = -1;
      goto end;
    }
    node_recipe.set(node, Py_NewRef(recipe));
    node_edges.set(node, Py_NewRef(edges));
    node_seq.set(node, seq);
  }
  if (has_numbers) {
    PyObject* numbers = PyTuple_New(n);
    for (Py_ssize_t k = 0; k < n; ++k) {
      const bool hidden = is_list(values[k]) || is_tensor(values[k]);
      PyTuple_SET_ITEM(numbers, k, Py_NewRef(hidden ? Py_None : values[k]));
    }
    PyObject_GenericSetAttr(node, name::numbers, numbers);
    Py_DECREF(numbers);
  }
  if (noted > 0) {
    PyObject* path = PyObject_GetAttr(mode, name::module_path);
    if (path == nullptr || PyObject_GenericSetAttr(node, name::module_path, path) < 0) done = -1;
    Py_XDECREF(path);
    if (done < 0) goto end;
  }
  for (Py_ssize_t k = 0; k < outs; ++k) {
    if (PyTuple_GET_ITEM(carries, k) != Py_True) continue;
    PyObject* o = result(k);
    PyObject* e = k == 0 ? Py_NewRef(node) : PyObject_CallFunction(edge_class, "On", node, k);
    tensor_rg.set(o, Py_NewRef(Py_True));
    if (e == nullptr || PyObject_SetAttr(o, name::_edge, e) < 0) done = -1;
    Py_XDECREF(e);
    if (done < 0) goto end;
  }
  done = 1;
end:
  Py_XDECREF(specs);
  Py_XDECREF(slots);
  Py_XDECREF(carries);
  Py_XDECREF(edges);
  Py_XDECREF(kept);
  Py_XDECREF(node);
  Py_DECREF(recipe);
  Py_DECREF(mask);
  return done;
}

bool install_record(PyObject* node, PyObject* saved, PyObject* edge_, PyObject* sequence_, PyObject* ever_,
                    PyObject* edge_of_, PyObject* mode_) {
  if (!find_slots(node, {{"recipe", &node_recipe}, {"edges", &node_edges}, {"seq", &node_seq}}) ||
      !find_slots(saved, {{"tensor", &saved_tensor}, {"version", &saved_version}}))
    return false;
  saved_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(saved));
  edge_class = Py_NewRef(edge_);
  sequence = Py_NewRef(sequence_);
  ever = Py_NewRef(ever_);
  edge_of = Py_NewRef(edge_of_);
  mode = Py_NewRef(mode_);
  node_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(node));
  return true;
}

}  // namespace vt
