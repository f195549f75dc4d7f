// Exact sums, and steps that break off, under the address and undefined-behaviour sanitizers: tests/asan.sh builds and runs this

#include <sanitizer/lsan_interface.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <new>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "adapters/by_time.hpp"
#include "adapters/in_order.hpp"
#include "monoids/exact.hpp"
#include "monoids/moments.hpp"
#include "swag/amta.hpp"
#include "swag/bint.hpp"
#include "swag/block_fiba.hpp"
#include "swag/daba.hpp"
#include "swag/daba_lite.hpp"
#include "swag/fiba.hpp"
#include "swag/flat_fat.hpp"
#include "swag/flat_fit.hpp"
#include "swag/recalc.hpp"
#include "swag/two_stacks.hpp"
#include "swag/two_stacks_lite.hpp"

using namespace sash;

// Memory that runs out: the allocation after so many more throws; below 0, none does.
static long allocations_left = -1;
static void* allocated(std::size_t n) {
  if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
  void* p = std::malloc(n ? n : 1);
  if (!p) throw std::bad_alloc();
  return p;
}
void* operator new(std::size_t n) { return allocated(n); }
void* operator new[](std::size_t n) { return allocated(n); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }

static int failures = 0;
#define EXPECT(holds)                                                     \
  do {                                                                    \
    if (!(holds)) {                                                       \
      std::printf("%s:%d: %s does not hold\n", __FILE__, __LINE__, #holds); \
      ++failures;                                                         \
    }                                                                     \
  } while (0)

static bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

// --- exact sums: against an integer of another form, digits of 32 bits, rounded by hand

struct Digits {
  std::vector<std::int64_t> d = std::vector<std::int64_t>(72, 0);  // digit i counts 2^(32 i - 1074)
  void add(double x) {
    Parts p(x);
    for (int i = 0; i < 53; ++i)
      if (p.m >> i & 1) d[static_cast<std::size_t>((p.shift + i) / 32)] += (p.negative ? -1 : 1) * (std::int64_t{1} << (p.shift + i) % 32);
  }
  double rounded() const {
    std::vector<std::int64_t> n = d;
    bool negative = false;
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t i = 0; i + 1 < n.size(); ++i) {
        std::int64_t carry = n[i] >> 32;
        n[i] -= carry * (std::int64_t{1} << 32);
        n[i + 1] += carry;
      }
      if (n.back() >= 0) break;
      negative = true;
      for (auto& digit : n) digit = -digit;
    }
    int high = -1;
    for (int i = 0; i < static_cast<int>(n.size()) * 32; ++i)
      if (n[static_cast<std::size_t>(i / 32)] >> i % 32 & 1) high = i;
    if (high < 0) return 0;
    auto bit = [&](int i) { return i >= 0 && (n[static_cast<std::size_t>(i / 32)] >> i % 32 & 1); };
    std::uint64_t m = 0;
    int low = std::max(high - 52, 0);
    for (int i = high; i >= low; --i) m = m << 1 | static_cast<std::uint64_t>(bit(i));
    bool more = false;
    for (int i = 0; i < low - 1; ++i) more |= bit(i);
    if (bit(low - 1) && (more || (m & 1))) ++m;
    double x = std::ldexp(static_cast<double>(m), low - 1074);
    return negative ? -x : x;
  }
};

static double drawn(std::mt19937_64& random, int kind) {
  for (;;) {
    double x = kind == 0   ? std::bit_cast<double>(random())  // any exponent
               : kind == 1 ? std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 40) - 90) * (random() % 2 ? 1 : -1)
               : kind == 2 ? std::bit_cast<double>(random() >> 12)  // subnormal
                           : static_cast<double>(static_cast<std::int64_t>(random()));
    if (std::isfinite(x)) return x;
  }
}

static void exact_sums() {
  ExactSum<double> kernel;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    std::mt19937_64 random(seed);
    std::size_t n = 1 + random() % 40;
    std::vector<double> items;
    for (std::size_t i = 0; i < n; ++i) {
      items.push_back(drawn(random, static_cast<int>(seed % 5 == 4 ? random() % 4 : seed % 5)));
      if (seed % 3 == 0 && i % 2) items.back() = -items[i - 1];
    }
    Digits reference;
    for (double x : items) reference.add(x);
    auto left = kernel.identity();
    for (double x : items) left = kernel.combine(left, kernel.lift(x, 0));
    double sum = kernel.lower(Lower::sum, left).f;
    EXPECT(same_bits(sum, reference.rounded()));
    std::shuffle(items.begin(), items.end(), random);
    std::vector<ExactSum<double>::Partial> parts;
    for (double x : items) parts.push_back(kernel.lift(x, 0));
    while (parts.size() > 1) {  // any grouping
      std::size_t i = random() % (parts.size() - 1);
      parts[i] = kernel.combine(parts[i], parts[i + 1]);
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
    EXPECT(same_bits(sum, kernel.lower(Lower::sum, parts[0]).f));
    auto rest = parts[0];
    for (double x : items) rest = kernel.inverse(rest, kernel.lift(x, 0));
    EXPECT(kernel.lower(Lower::sum, rest).f == 0 && rest.n == 0);
    // A variance, in two orders; two items have one that is known.
    ExactMoments<double> moments;
    auto a = moments.identity(), b = moments.identity();
    for (double x : items) a = moments.combine(a, moments.lift(x, 0));
    for (std::size_t i = items.size(); i-- > 0;) b = moments.combine(moments.lift(items[i], 0), b);
    if (n > 1) EXPECT(same_bits(moments.lower(Lower::var, a).f, moments.lower(Lower::var, b).f));
  }
  constexpr double infinity = std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::max();
  auto of = [&](std::vector<double> items, Lower how) {
    auto p = kernel.identity();
    for (double x : items) p = kernel.combine(p, kernel.lift(x, 0));
    return kernel.lower(how, p).f;
  };
  EXPECT(of({infinity, 1}, Lower::sum) == infinity);
  EXPECT(std::isnan(of({infinity, -infinity}, Lower::sum)));
  EXPECT(of({most, most}, Lower::sum) == infinity);
  EXPECT(of({most, most}, Lower::mean) == most);
  EXPECT(of({most, most, -most}, Lower::sum) == most);
  EXPECT(of({5e-324, 5e-324}, Lower::sum) == 1e-323);
  EXPECT(of({1, 1e-16, 1e-16}, Lower::sum) > 1);
  ExactMoments<double> moments;
  auto pair = [&](double x, double y) { return moments.lower(Lower::var, moments.combine(moments.lift(x, 0), moments.lift(y, 0))).f; };
  EXPECT(pair(1, 3) == 2);
  EXPECT(pair(1e9, 1e9 + 1) == 0.5);
  EXPECT(pair(0.1, 0.1) == 0);
  EXPECT(pair(1e200, 1) == infinity);
  EXPECT(pair(1e-200, 3e-200) == 0);
  EXPECT(std::isnan(pair(infinity, 1)));
  ExactMoments<std::int64_t> integers;
  auto p = integers.combine(integers.lift(INT64_MIN, 0), integers.lift(INT64_MAX, 0));
  EXPECT(same_bits(integers.lower(Lower::var, p).f, std::ldexp(1.0, 127)));
  auto promoted = ExactSum<std::int64_t>::promote({Wide(INT64_MIN), 1});
  EXPECT(kernel.lower(Lower::sum, promoted).f == -9223372036854775808.0);
  EXPECT(kernel.lower(Lower::sum, kernel.lift_integer(INT64_MIN)).f == -9223372036854775808.0);
}

// --- steps that break off: text under concatenation, of which the k-th combine throws

struct Broke {};
struct Text {
  using Partial = std::string;
  static constexpr bool may_throw = true;
  int* fuse;
  Partial identity() const { return {}; }
  Partial combine(const Partial& a, const Partial& b) const {
    if (*fuse >= 0 && (*fuse)-- == 0) throw Broke{};
    return a + b;
  }
};

struct NoOptions {
  int min_arity = 0;
};

template <class Adapter>
static std::string content(Adapter& window, int& fuse) {
  int kept = std::exchange(fuse, -1);
  std::string out = window.size() ? window.query() : "";
  fuse = kept;
  return out;
}

// Whole, or not at all, or torn: after a throw the window holds what it held, or says that it is torn.
template <class Adapter>
static void breaks_off() {
  for (unsigned seed = 0; seed < 400; ++seed)
    for (int at = 0; at < 24; ++at) {
      std::mt19937 random(seed);
      int fuse = -1;
      Adapter window(Text{&fuse}, NoOptions{});
      Time time = 0;
      auto grow = [&](std::size_t n) {
        std::vector<Time> times;
        std::vector<std::string> items;
        for (std::size_t i = 0; i < n; ++i) {
          times.push_back(++time);
          items.push_back(std::string(1, static_cast<char>('a' + time % 26)));
        }
        if constexpr (requires { window.bulk_insert(times, items); })
          window.bulk_insert(times, items);
        else
          window.insert_all(times.data(), items);
      };
      grow(random() % 12);
      if (window.size() > 2) window.bulk_evict(window.oldest() + static_cast<Time>(random() % 3));
      std::string before = content(window, fuse);
      std::size_t size = window.size();
      fuse = at;
      bool broke = false;
      bool inserts = random() % 2;
      try {
        if (inserts)
          grow(1 + random() % 6);
        else
          window.bulk_evict(time - static_cast<Time>(random() % 6));
      } catch (const Broke&) {
        broke = true;
      }
      fuse = -1;
      if (broke && !window.torn()) {
        EXPECT(window.size() == size);
        EXPECT(content(window, fuse) == before);
      }
      if (window.torn()) window.clear();
      EXPECT(!window.torn());
      time += 100;
      grow(3);
      EXPECT(window.size() >= 3);
    }
}

// Whatever a lack of memory breaks off, the window can be cleared, used again, and taken down.
template <class Adapter, class M, class Item>
static void runs_out_of_memory(M monoid, Item item) {
  int broke = 0;
  for (unsigned seed = 0; seed < 40; ++seed)
    for (long at = 0; at < 60; ++at) {
      std::mt19937 random(seed);
      Adapter window(monoid, NoOptions{});
      Time time = 0;
      auto grow = [&](std::size_t n) {
        std::vector<Time> times;
        std::vector<typename Adapter::Partial> items;
        for (std::size_t i = 0; i < n; ++i) {
          times.push_back(++time);
          items.push_back(item(time));
        }
        if constexpr (requires { window.bulk_insert(times, items); })
          window.bulk_insert(times, items);
        else
          window.insert_all(times.data(), std::move(items));
      };
      grow(random() % 300);
      allocations_left = at;
      try {
        for (int step = 0; step < 20; ++step) {
          if (random() % 3)
            grow(1 + random() % 200);
          else
            window.bulk_evict(time - static_cast<Time>(random() % 300));
          if (window.size()) window.query();
        }
      } catch (const std::bad_alloc&) {
        ++broke;
        allocations_left = -1;
        window.clear();
      }
      allocations_left = -1;
      grow(5);
      EXPECT(window.size() >= 5);
      if (window.size()) window.query();
    }
  EXPECT(broke > 100);
}

int main() {
  exact_sums();
  breaks_off<InOrder<Recalc<Text>>>();
  breaks_off<InOrder<TwoStacks<Text>>>();
  breaks_off<InOrder<TwoStacksLite<Text>>>();
  breaks_off<InOrder<Daba<Text>>>();
  breaks_off<InOrder<DabaLite<Text>>>();
  breaks_off<ByTime<Fiba<Text, Time>, Time>>();
  auto number = [](Time t) { return static_cast<double>(t); };
  runs_out_of_memory<InOrder<Recalc<Sum<double>>>>(Sum<double>{}, number);
  runs_out_of_memory<InOrder<TwoStacksLite<Sum<double>>>>(Sum<double>{}, number);
  runs_out_of_memory<InOrder<Daba<Sum<double>>>>(Sum<double>{}, number);
  runs_out_of_memory<InOrder<DabaLite<Sum<double>>>>(Sum<double>{}, number);
  runs_out_of_memory<InOrder<FlatFat<Sum<double>>>>(Sum<double>{}, number);
  runs_out_of_memory<InOrder<FlatFit<Sum<double>>>>(Sum<double>{}, number);
  runs_out_of_memory<InOrder<BInt<Sum<double>>>>(Sum<double>{}, number);
  runs_out_of_memory<InOrder<Amta<Sum<double>>>>(Sum<double>{}, number);
  __lsan_disable();  // of a tree, the nodes that the step had in hand are lost with it
  runs_out_of_memory<ByTime<Fiba<Sum<double>, Time>, Time>>(Sum<double>{}, number);
  runs_out_of_memory<ByTime<BlockFiba<Sum<double>, Time>, Time>>(Sum<double>{}, number);
  __lsan_enable();
  std::printf("%d failures\n", failures);
  return failures != 0;
}
