// The thread pool, scratch memory and the table of kernels.
#include <pthread.h>
#include <sched.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "vt/kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define VT_PAUSE() _mm_pause()
#else
#define VT_PAUSE() std::this_thread::yield()
#endif

namespace vt {

// --- kernels by name ---------------------------------------------------------------------------

static std::unordered_map<std::string, KernelFn>& kernels() {
  static std::unordered_map<std::string, KernelFn> table;
  return table;
}
void add_kernel(const char* name, KernelFn fn) { kernels()[name] = fn; }
KernelFn find_kernel(const std::string& name) {
  auto it = kernels().find(name);
  return it == kernels().end() ? nullptr : it->second;
}

// --- scratch -----------------------------------------------------------------------------------

#if defined(__SANITIZE_ADDRESS__)
// Each piece on its own, so that reading past it is seen.
char* Arena::take(size_t bytes) {
  void* p = nullptr;
  if (posix_memalign(&p, 64, bytes > 0 ? bytes : 1) != 0) throw std::bad_alloc();
  return static_cast<char*>(p);
}
void Arena::give(char* p) { std::free(p); }
#else
char* Arena::take(size_t bytes) {
  bytes = (bytes + 127) & ~size_t(63);  // room for the size in front would misalign: keep a footer
  if (count == 0 || chunks[count - 1].used + bytes + 64 > chunks[count - 1].size) {
    // An unused last chunk that is too small is replaced.
    if (count > 0 && chunks[count - 1].used == 0) std::free(chunks[--count].base);
    if (count == int(sizeof(chunks) / sizeof(chunks[0]))) throw std::bad_alloc();
    size_t size = count > 0 ? chunks[count - 1].size * 2 : size_t(1) << 18;
    while (size < bytes + 64) size *= 2;
    constexpr size_t HUGE_PAGE = size_t(1) << 21;
    const bool huge = size >= 2 * HUGE_PAGE;
    char* base = static_cast<char*>(std::aligned_alloc(huge ? HUGE_PAGE : 64, size));
    if (base == nullptr) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
    if (huge) madvise(base, size, MADV_HUGEPAGE);
#endif
    chunks[count++] = {base, size, 0};
  }
  Chunk& c = chunks[count - 1];
  char* p = c.base + c.used;
  *reinterpret_cast<size_t*>(p) = bytes + 64;
  c.used += bytes + 64;
  return p + 64;
}

void Arena::give(char* p) {
  // Chunks on top may be empty: kept, since giving them back and touching fresh pages again is slow.
  int k = count - 1;
  while (chunks[k].used == 0) --k;
  chunks[k].used -= *reinterpret_cast<size_t*>(p - 64);
  // Keep one empty chunk, the largest, and not a huge one.
  while (count > 1 && chunks[count - 1].used == 0 && chunks[count - 2].used == 0) {
    if (chunks[count - 2].size > chunks[count - 1].size) std::swap(chunks[count - 2], chunks[count - 1]);
    std::free(chunks[count - 2].base);
    chunks[count - 2] = chunks[count - 1];
    --count;
  }
  if (chunks[count - 1].used == 0 && chunks[count - 1].size > (size_t(1) << 26)) std::free(chunks[--count].base);
}
#endif

Arena::~Arena() {
  while (count > 0) std::free(chunks[--count].base);
}

Arena& arena() {
  static thread_local Arena a;
  return a;
}

// --- threads -----------------------------------------------------------------------------------

namespace {

constexpr int SPINS = 4000;  // some ten microseconds: longer than the pause between two kernels
thread_local bool inside = false;

struct Job {
  const Body* body = nullptr;
  int64_t n = 0, chunk = 0;
  std::atomic<int64_t> next{0};
  std::exception_ptr error;
  std::atomic<bool> failed{false};

  void work() {
    while (!failed.load(std::memory_order_relaxed)) {
      const int64_t b = next.fetch_add(chunk, std::memory_order_relaxed);
      if (b >= n) break;
      try {
        (*body)(b, b + chunk < n ? b + chunk : n);
      } catch (...) {
        if (!failed.exchange(true)) error = std::current_exception();
      }
    }
  }
};

// A worker, as the pool's mutex lets others see it.
struct Seat {
  bool asleep = false;
#if defined(__linux__)
  pthread_t thread{};
  cpu_set_t usual;         // where it may run
  bool kept_away = false;  // from the caller's core, until it is awake

  // The system likes to wake a thread on the core of the one who calls it, where it must wait for the caller to stop.
  void keep_from(int cpu) {
    if (!asleep || kept_away || pthread_getaffinity_np(thread, sizeof(usual), &usual) != 0) return;
    cpu_set_t others = usual;
    CPU_CLR(cpu, &others);
    if (CPU_COUNT(&others) == 0) return;
    kept_away = pthread_setaffinity_np(thread, sizeof(others), &others) == 0;
  }
  bool is_free_again(cpu_set_t& where) {
    const bool was = std::exchange(kept_away, false);
    if (was) where = usual;
    return was;
  }
#endif
};

struct Pool {
  std::atomic<uint32_t> epoch{0};   // counts jobs; workers wait for it to change
  std::atomic<Job*> open{nullptr};  // the job that may be entered
  std::atomic<int> within{0};       // workers that may be looking at it
  std::atomic<int> sleeping{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<std::thread> threads;
  std::deque<Seat> seats;  // stay where they are
  int workers = 0;

  void grow(int want) {
    try {
      for (; workers < want; ++workers) {
        Seat& seat = seats.emplace_back();
        threads.emplace_back([this, &seat] { loop(seat); });
#if defined(__linux__)
        std::lock_guard lock(mutex);
        seat.thread = threads.back().native_handle();
#endif
      }
    } catch (const std::system_error&) {
      // The system gives no more threads: those there are do the work.
    }
  }

  void sleep(Seat& seat, uint32_t seen) {
    std::unique_lock lock(mutex);
    sleeping.fetch_add(1);
    seat.asleep = true;
    wake.wait(lock, [&] { return epoch.load() != seen; });
    seat.asleep = false;
    sleeping.fetch_sub(1);
#if defined(__linux__)
    cpu_set_t where;
    const bool again = seat.is_free_again(where);
    lock.unlock();
    if (again) pthread_setaffinity_np(pthread_self(), sizeof(where), &where);
#endif
  }

  void rouse() {
    {
      std::lock_guard lock(mutex);
#if defined(__linux__)
      const int here = sched_getcpu();
      if (here >= 0 && here < CPU_SETSIZE)
        for (Seat& seat : seats) seat.keep_from(here);
#endif
    }
    wake.notify_all();
  }

  void loop(Seat& seat) {
    inside = true;
    uint32_t seen = 0;
    for (;;) {
      for (int i = 0; i < SPINS && epoch.load(std::memory_order_acquire) == seen; ++i) VT_PAUSE();
      if (epoch.load() == seen) sleep(seat, seen);
      seen = epoch.load();
      if (stop.load()) return;
      // Enter first, look second: the owner closes first and then waits until nobody is within.
      within.fetch_add(1);
      if (Job* job = open.load()) job->work();
      within.fetch_sub(1);
    }
  }

  void run(Job& job) {
    open.store(&job);
    epoch.fetch_add(1);
    if (sleeping.load() > 0) rouse();
    inside = true;
    job.work();
    inside = false;
    open.store(nullptr);
    // Who holds a piece may have lost its core, perhaps to us.
    for (int spins = 0; within.load() != 0; ++spins)
      if (spins < SPINS) VT_PAUSE();
      else std::this_thread::yield();
  }

  void shut() {
    stop.store(true);
    {
      std::lock_guard lock(mutex);
      epoch.fetch_add(1);
    }
    wake.notify_all();
    for (std::thread& t : threads) t.join();
    threads.clear();
    seats.clear();
    workers = 0;
  }
};

int initial_threads() {
  if (const char* s = std::getenv("OMP_NUM_THREADS")) {
    const int n = std::atoi(s);
    if (n > 0) return n;
  }
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
#endif
  const int n = int(std::thread::hardware_concurrency());
  return n > 0 ? n : 1;
}

// Never destroyed: kernels may run while the process ends. Replaced in a forked child, where the
// threads are gone.
Pool* pool = nullptr;
std::atomic<int> wanted{0};
std::atomic_flag busy = ATOMIC_FLAG_INIT;

void after_fork() {
  pool = nullptr;
  busy.clear();
  inside = false;
}

}  // namespace

int num_threads() {
  int n = wanted.load(std::memory_order_relaxed);
  if (n == 0) {
    n = initial_threads();
    wanted.store(n);
  }
  return n;
}

void set_num_threads(int n) {
  while (busy.test_and_set(std::memory_order_acquire)) VT_PAUSE();
  wanted.store(n);
  if (pool != nullptr && n - 1 < pool->workers) {
    pool->shut();
    delete pool;
    pool = nullptr;
  }
  busy.clear(std::memory_order_release);
}

void parallel_pieces(int64_t n, int64_t grain, Body body) {
  const int threads = num_threads();
  if (threads == 1 || inside || busy.test_and_set(std::memory_order_acquire)) return body(0, n);
  if (pool == nullptr) {
    static bool registered = false;
    if (!registered) {
      pthread_atfork(nullptr, nullptr, after_fork);
      registered = true;
    }
    pool = new Pool();
  }
  pool->grow(threads - 1);
  Job job;
  job.body = &body;
  job.n = n;
  // A few pieces per thread, so that one that is late does not hold the others up.
  const int64_t even = (n + 4 * threads - 1) / (4 * threads);
  job.chunk = even > grain ? even : grain;
  if (job.chunk * (threads - 1) >= n) job.chunk = (n + threads - 1) / threads;
  pool->run(job);
  busy.clear(std::memory_order_release);
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace vt
