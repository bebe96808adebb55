// Memory of a thread that kernels use while they run: grows, is kept, is given back in reverse order.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace vt {

// scratch<float>(n) is n floats, aligned to 64 bytes, until the Scratch object goes out of scope.
class Arena {
 public:
  char* take(size_t bytes);
  void give(char* p);
  ~Arena();

 private:
  struct Chunk { char* base; size_t size, used; };
  Chunk chunks[24];
  int count = 0;
};
Arena& arena();

template <class T> class Scratch {
 public:
  explicit Scratch(int64_t n) : p(reinterpret_cast<T*>(arena().take(size_t(n) * sizeof(T)))) {}
  ~Scratch() { arena().give(reinterpret_cast<char*>(p)); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  operator T*() const { return p; }
  T* get() const { return p; }

 private:
  T* p;
};

}  // namespace vt
