// What nearly every kernel includes, read by the compiler once. Files name what they need all the same.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "vt/cast.h"
#include "vt/copy.h"
#include "vt/kernel.h"
