// Which level this processor can run. Built for the baseline, so it can ask on any machine.
#include <nanobind/nanobind.h>

#include "../vt/level.h"

NB_MODULE(_probe, m) { m.def("level", &vt::level); }
