// Launches as device_launch.cpp and device_callables.cpp see them: what is packed, and where it goes.
#pragma once
#include "device.h"
#include "object.h"

#include <cstring>
#include <string>

namespace vt {

// cuLaunchKernel
using LaunchFn = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
extern LaunchFn launch;  // null: everything goes the long way

constexpr int MAX_ARGUMENTS = 64;

struct Target {
  void* function;
  unsigned threads, shared;
};

// The base of program.Program.
struct Launcher {
  std::string kinds;  // per argument: p address, i integer, f float32, d float64
  int n = -1;         // no call has so few arguments: all take the general way
  Target targets[2][MAX_DEVICES] = {};  // [every address is a multiple of 16][device]
};

// One argument's bits; false: not what was expected, or an error is set.
inline bool pack(char kind, PyObject* v, uint64_t& slot) {
  if (kind == 'p' || kind == 'i') {
    if (!PyLong_Check(v)) return false;
    int overflow;
    slot = uint64_t(PyLong_AsLongLongAndOverflow(v, &overflow));
    return overflow == 0;
  }
  double x;
  if (PyFloat_Check(v)) x = PyFloat_AS_DOUBLE(v);
  else if (PyLong_Check(v)) {
    x = PyLong_AsDouble(v);
    if (x == -1.0 && PyErr_Occurred()) return false;
  } else return false;
  slot = 0;
  if (kind == 'f') {
    const float narrow = float(x);
    std::memcpy(&slot, &narrow, 4);
  } else std::memcpy(&slot, &x, 8);
  return true;
}

// Launches; 0, or what the driver answered.
inline int start(const Target& t, const unsigned* grid, uint64_t* slots, int n) {
  void* params[MAX_ARGUMENTS + 2];
  for (int i = 0; i < n + 2; ++i) params[i] = slots + i;
  slots[n] = slots[n + 1] = 0;  // scratch that such a kernel does not have
  return launch(t.function, grid[0], grid[1], grid[2], t.threads, 1, 1, t.shared, current().stream, params, nullptr);
}

bool read_grid(PyObject* grid, unsigned* out);  // false: not one to three sizes
PyObject* launch_failed(PyObject* program, PyObject* grid, int code);  // nullptr, with an error set

}  // namespace vt
