// One callable per operator: what it knows of its arguments and of the plans they led to.
#pragma once
#include "names.h"
#include "object.h"
#include "record.h"

#include <string>

namespace vt {

constexpr int MAX_ARGS = 24;
constexpr Py_ssize_t MOST_REMEMBERED = 4096;

struct Operator {
  enum Kind { unset, pointwise, structured, view, composite } kind = unset;
  // One letter per argument of the schema: t tensor, T optional tensor, l list of tensors, o tensor or number,
  // n number, s static.
  std::string letters;
  Ref names, defaults;  // tuples; a default of Ellipsis means: required
  Ref plans;            // key -> plan
  Py_ssize_t positional = 0;
  int values = 0;  // arguments that a plan runs on
  int n_out = 1;
  bool differentiable = false;
  bool writes = false;     // an in-place form
  bool reflected = false;  // `b - a`, asked of a
  // A composite: the function, the names among keywords that it leaves to Python, and what calls came down to.
  Ref fn, special, memory, resolve;
  bool indexes = false;  // x[index]

  int visit(visitproc visit, void* arg) const {
    for (const Ref* r : {&names, &defaults, &plans, &fn, &special, &memory, &resolve})
      if (const int stop = r->visit(visit, arg)) return stop;
    return 0;
  }
};

// Whether calls must take the general way: somebody observes, or inference mode or autocast is on.
extern bool unusual;
// Base class of tensors whose class computes in its own way (sparse, masked, nested); null until there is one. Such
// tensors lead to no plan by themselves, because no plan has their specs; only functions of composites must not see them.
extern PyTypeObject* wrapped;

// Whether an argument, or one in a list, may answer calls itself: a tensor whose spec is not in its slot (which leads to no
// plan, so only composites have to ask), or any other object with `__torch_function__`.
bool looks_after_itself(PyObject* v, bool nested = true);

// The one place that every call passes. `args` in schema order and complete.
PyObject* apply(PyObject* me, PyObject* const* args);
PyObject* apply_tuple(PyObject* me, PyObject* args);

// How a plan runs; `values` are the runtime arguments.
PyObject* execute(const Operator& op, PyObject* plan, PyObject* const* values);
// In place: 1 done, 0 unusual: Python must do it, -1 with an error set.
int write_usual(const Operator& op, PyObject* plan, PyObject* x, PyObject* const* values);
PyObject* key_of(const Operator& op, PyObject* const* args);

// A composite whose arguments are known: 1 with `out` set, or 0 when the function must run. -1 with an error set.
// What to remember about the run is left in `key`.
int recall(const Operator& op, PyObject* const* args, Py_ssize_t n, PyObject* names, PyObject** out, Ref& key);
// After the function ran: the plan that led from its first argument to the result, if that is all there was.
bool remember(const Operator& op, PyObject* key, PyObject* x, PyObject* out);
// x[index] without a plan: 1 done, 0 unusual, -1 error.
int item_usual(PyObject* x, PyObject* index, PyObject** result);

}  // namespace vt
