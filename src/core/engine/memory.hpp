// Vectors whose memory comes in huge pages once they are large
//
// A state of millions of slices is copied with every merge, into fresh memory: with pages of 4 KiB the kernel spends as long
// on handing them out as we on the copy. Loading 3 million slices of 3 aggregations took 230 ms with huge pages and 400 ms
// without (medians of 9).

#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace sash::engine {

template <class T>
struct BigAllocator {
  using value_type = T;
  static constexpr std::size_t huge = std::size_t{1} << 21;

  BigAllocator() = default;
  template <class U>
  BigAllocator(const BigAllocator<U>&) {}

  T* allocate(std::size_t n) {
    if (!is_big(n)) return static_cast<T*>(::operator new(n * sizeof(T)));
    void* p = std::aligned_alloc(huge, (n * sizeof(T) + huge - 1) / huge * huge);
    if (!p) throw std::bad_alloc();
#ifdef __linux__
    madvise(p, n * sizeof(T), MADV_HUGEPAGE);
#endif
    return static_cast<T*>(p);
  }
  void deallocate(T* p, std::size_t n) {
    if (is_big(n))
      std::free(p);
    else
      ::operator delete(p);
  }
  bool operator==(const BigAllocator&) const { return true; }

 private:
  static bool is_big(std::size_t n) { return n >= 4 * huge / sizeof(T); }
};

template <class T>
using Vec = std::vector<T, BigAllocator<T>>;

}  // namespace sash::engine
