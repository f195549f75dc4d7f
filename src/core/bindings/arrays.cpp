// sash.slide over arrays of numbers: one kernel, many segments, no GIL

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <thread>

#include "../arrays/deviations.hpp"
#include "../arrays/scans.hpp"
#include "../arrays/slide.hpp"
#include "../monoids/erased.hpp"
#include "../swag/block_fiba.hpp"
#include "module.hpp"

namespace sash {

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

namespace {

// The mean of windows without nulls: a sum, and a count that is known.
template <class T>
struct DenseMean : Sum<T> {
  double mean_of(const typename Sum<T>::Partial& p, std::size_t count) const {
    return count ? static_cast<double>(p) / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
  }
};

// Loops over columns of doubles, made for several processors.
SASH_CLONES void sums_by_count(const double* x, std::size_t size, std::size_t from, std::size_t to, double* out) {
  scans::slide(scans::Sums{}, x, size, from, to, out);
}
SASH_CLONES void means_by_count(const double* x, std::size_t size, std::size_t from, std::size_t to, double* out) {
  scans::slide(scans::Means(static_cast<double>(size)), x, size, from, to, out);
}
SASH_CLONES void vars_by_count(const double* x, std::size_t size, std::size_t from, std::size_t to, double* out) {
  scans::slide(scans::Deviations<false>(static_cast<double>(size)), x, size, from, to, out);
}
SASH_CLONES void stds_by_count(const double* x, std::size_t size, std::size_t from, std::size_t to, double* out) {
  scans::slide(scans::Deviations<true>(static_cast<double>(size)), x, size, from, to, out);
}

// Every kernel that has no loop of its own here; nulls are its identity.
struct AnySlide : ErasedMonoid {
  explicit AnySlide(std::shared_ptr<const AnyKernel> kernel) : ErasedMonoid(std::move(kernel)) {}
  Scalar lower(Lower how, const Erased& p) const { return kernel().lower(how, p.data()); }
};

template <class K>
inline constexpr bool takes_nulls = std::is_same_v<K, DenseSum> || std::is_same_v<K, Sum<std::int64_t>>;
template <class K>
inline constexpr bool arrives = takes_nulls<K> || std::is_same_v<K, AnySlide>;

struct Job {
  std::size_t size = 0;  // by count, if not 0
  Closed closed = Closed::right;
  bool arrival = false;
  Lower how = Lower::value;
  const std::uint8_t* nulls = nullptr;
  const Time* int_times = nullptr;
  const double* float_times = nullptr;
  Time int_period = 0;
  double float_period = 0;
  std::int64_t* out_ints = nullptr;
  double* out_floats = nullptr;
  std::uint8_t* out_nulls = nullptr;  // beside integers: 1 where there is no result
  std::atomic<bool> overflow{false};
  std::atomic<bool> rounded{false};  // an integer went into a double that does not hold it
};

constexpr std::int64_t exact = std::int64_t{1} << 53;  // up to here a double holds every integer

void store(Job& job, std::size_t at, const Scalar& s) {
  if (s.kind == Scalar::overflow) job.overflow.store(true, std::memory_order_relaxed);
  if (job.out_nulls) job.out_nulls[at] = s.kind == Scalar::none;
  if (s.kind == Scalar::integer && job.out_floats && (s.i > exact || s.i < -exact)) job.rounded.store(true, std::memory_order_relaxed);
  if (job.out_ints)
    job.out_ints[at] = s.i;
  else
    job.out_floats[at] = s.kind == Scalar::real   ? s.f
                         : s.kind == Scalar::none ? std::numeric_limits<double>::quiet_NaN()
                                                  : static_cast<double>(s.i);
}

// A segment of the columns, and which of its windows are asked for: those that end in [from, to), places in the segment. By time they
// are all of them.
struct Piece {
  std::size_t begin, from, to;
};

// The loop of a piece: read gives partials, by place in the segment.
template <class K, class Read>
void run_loop(Job& job, const K& kernel, Piece piece, Read read) {
  std::size_t begin = piece.begin, n = piece.to;
  [[maybe_unused]] auto* out = [&] {
    if constexpr (std::is_same_v<typename K::Partial, std::int64_t>)
      return job.out_ints + begin;
    else
      return job.out_floats + begin;
  }();
  auto emit = [&, out](std::size_t i, const typename K::Partial& p, [[maybe_unused]] std::size_t count) {
    if constexpr (requires { K::plain; })
      out[i] = p;
    else if constexpr (requires { kernel.mean_of(p, count); })
      out[i] = kernel.mean_of(p, count);
    else
      store(job, begin + i, kernel.lower(job.how, p));
  };
  if (job.size > 0) return slide_by_count(kernel, piece.from, n, job.size, read, emit);
  if (job.float_times) return slide_by_time(kernel, job.float_times + begin, n, job.float_period, job.closed, read, emit);
  if constexpr (arrives<K>) {
    if (job.arrival) {
      BlockFiba<K> window{kernel};
      return slide_by_arrival(window, kernel.identity(), job.int_times + begin, n, job.int_period, job.closed, read, emit);
    }
  }
  slide_by_time(kernel, job.int_times + begin, n, job.int_period, job.closed, read, emit);
}

// var and std have loops of their own.
struct Deviations {
  template <bool root, class Input>
  void run(Job& job, const Input* values, Piece piece) const {
    const Input* x = values + piece.begin;
    double* out = job.out_floats + piece.begin;
    std::size_t n = piece.to;
    if (job.size > 0) {
      auto by_count = root ? stds_by_count : vars_by_count;
      if constexpr (std::is_same_v<Input, double>) return by_count(x, job.size, piece.from, n, out);
      std::size_t first = piece.from < job.size ? 0 : piece.from - job.size;  // the block before is read too
      std::vector<double> reals(x + first, x + n);
      return by_count(reals.data(), job.size, piece.from - first, n - first, out + first);
    }
    if (job.float_times) return deviations_by_time<root>(x, job.float_times + piece.begin, n, job.float_period, job.closed, out);
    deviations_by_time<root>(x, job.int_times + piece.begin, n, job.int_period, job.closed, out);
  }
};

template <class Input>
void run(Job& job, const Deviations& loops, const Input* values, Piece piece) {
  job.how == Lower::std_dev ? loops.run<true>(job, values, piece) : loops.run<false>(job, values, piece);
}

template <class K, class Input>
void run(Job& job, const K& kernel, const Input* values, Piece piece) {
  std::size_t begin = piece.begin;
  const Time* times = job.int_times ? job.int_times + begin : nullptr;
  const Input* x = values + begin;
  if constexpr (std::is_same_v<Input, double> && std::is_same_v<K, DenseMean<double>>)
    if (job.size > 0) return means_by_count(x, job.size, piece.from, piece.to, job.out_floats + begin);
  if constexpr (std::is_same_v<Input, double> && std::is_same_v<K, DenseSum>)  // in between, its chains of sums are as fast: 1,250 to 1,100
    if (!job.nulls && (job.size >= 64 || (job.size > 0 && job.size <= 10)))
      return sums_by_count(x, job.size, piece.from, piece.to, job.out_floats + begin);
  if constexpr (std::is_same_v<K, AnySlide>) {
    const std::uint8_t* nulls = job.nulls ? job.nulls + begin : nullptr;
    run_loop(job, kernel, piece, [=, &kernel](std::size_t i) {
      Item item = nulls && nulls[i] ? Item{} : Item::of(x[i]);
      return kernel.ErasedMonoid::lift(&item, times ? times[i] : static_cast<Time>(i));
    });
  } else if constexpr (takes_nulls<K>) {
    using In = typename K::Input;
    if (const std::uint8_t* nulls = job.nulls ? job.nulls + begin : nullptr)
      return run_loop(job, kernel, piece,
                      [=, &kernel](std::size_t i) { return nulls[i] ? kernel.identity() : kernel.lift(static_cast<In>(x[i]), 0); });
    run_loop(job, kernel, piece, [=, &kernel](std::size_t i) { return kernel.lift(static_cast<In>(x[i]), 0); });
  } else {
    using In = typename K::Input;
    run_loop(job, kernel, piece, [=, &kernel](std::size_t i) { return kernel.lift(static_cast<In>(x[i]), 0); });
  }
}

template <class K, class Input>
void run_all(Job& job, const K& kernel, const Input* values, const std::vector<std::size_t>& starts, std::size_t threads) {
  constexpr std::size_t many = std::size_t{1} << 16;  // rows that are worth a piece
  threads = std::max<std::size_t>(threads, 1);
  std::vector<Piece> pieces;
  pieces.reserve(starts.size());
  for (std::size_t s = 0; s + 1 < starts.size(); ++s) {
    std::size_t begin = starts[s], n = starts[s + 1] - begin, length = n;
    // By count, a long segment is cut where blocks begin. A piece reads the block before it once more.
    if (threads > 1 && job.size > 0 && n >= 2 * many && job.size <= n / 8) {
      length = std::max({n / (4 * threads), many, 4 * job.size});
      length = (length + job.size - 1) / job.size * job.size;
    }
    for (std::size_t from = 0; from < n; from += length) pieces.push_back({begin, from, std::min(n, from + length)});
  }
  std::size_t grab = std::clamp<std::size_t>(pieces.size() / (4 * threads), 1, 16);  // at a time: keys are many and short
  std::atomic<std::size_t> next{0};
  auto work = [&] {
    for (std::size_t s = next.fetch_add(grab); s < pieces.size(); s = next.fetch_add(grab))
      for (std::size_t k = s; k < pieces.size() && k < s + grab; ++k) run(job, kernel, values, pieces[k]);
  };
  threads = std::min(threads, (pieces.size() + grab - 1) / grab);
  std::vector<std::thread> team;
  for (std::size_t i = 1; i < threads; ++i) team.emplace_back(work);
  work();
  for (auto& t : team) t.join();
}

// The loop for a kernel: the fastest that gives its results, else one that runs any kernel.
template <class Input>
void run_kernel(Job& job, const KernelSpec& spec, bool dense, const Input* values, const std::vector<std::size_t>& starts,
                std::size_t threads) {
  auto go = [&](auto kernel) { run_all(job, kernel, values, starts, threads); };
  auto extreme = [&]<Wants wants>() {
    if constexpr (std::is_floating_point_v<Input>) {
      bool nan = false;
      for (std::size_t i = starts.front(); i < starts.back(); ++i) nan |= values[i] != values[i];
      if (nan) return go(DenseExtreme<Input, wants, true>{});
    }
    go(DenseExtreme<Input, wants, false>{});
  };
  bool plain = !job.nulls && !job.arrival;
  auto own_loop = [&]<class K>(const K&) {
    if constexpr (std::is_same_v<K, Sum<Input>>) {
      go(std::conditional_t<std::is_floating_point_v<Input>, DenseSum, Sum<Input>>{});
      return true;
    } else if constexpr (std::is_same_v<K, Min<Input>> || std::is_same_v<K, Max<Input>>) {
      if (!dense || job.arrival) return false;
      extreme.template operator()<std::is_same_v<K, Max<Input>> ? Wants::greatest : Wants::least>();
      return true;
    } else if constexpr (std::is_same_v<K, Mean<Input>>) {
      if (plain) go(DenseMean<Input>{});
      return plain;
    } else if constexpr (std::is_same_v<K, Moments<Input>>) {
      if (plain && (job.how == Lower::std_dev || job.how == Lower::var))
        go(Deviations{});
      else if (plain)
        go(Moments<double>{});
      return plain;
    }
    return false;
  };
  if (!run_time_kernel(spec) && with_kernel(spec, own_loop)) return;
  go(AnySlide(erase(spec)));
}

}  // namespace

static Binding bind(20, [](nb::module_& m) {
  m.def(
      "slide_array",
      [](const std::string& kernel, const std::string& lower, nb::object values, nb::object nulls, nb::object times, nb::object period,
         std::size_t size, int closed, bool arrival, bool dense, const std::vector<std::size_t>& starts, std::size_t threads,
         nb::object out, nb::object gone, const std::vector<double>& params) {
        Job job;
        job.size = size;
        job.closed = static_cast<Closed>(closed);
        job.arrival = arrival;
        job.how = lower_named(lower);
        if (!nulls.is_none()) job.nulls = nb::cast<Array<std::uint8_t>>(nulls).data();
        if (!times.is_none()) {
          if (nb::isinstance<Array<std::int64_t>>(times)) {
            job.int_times = nb::cast<Array<std::int64_t>>(times).data();
            if (size == 0) job.int_period = nb::cast<Time>(period);
          } else {
            job.float_times = nb::cast<Array<double>>(times).data();
            if (size == 0) job.float_period = nb::cast<double>(period);
          }
        }
        if (nb::isinstance<Out<std::int64_t>>(out))
          job.out_ints = nb::cast<Out<std::int64_t>>(out).data();
        else
          job.out_floats = nb::cast<Out<double>>(out).data();
        if (!gone.is_none()) job.out_nulls = nb::cast<Out<std::uint8_t>>(gone).data();
        if (nb::isinstance<Array<std::int64_t>>(values)) {
          auto x = nb::cast<Array<std::int64_t>>(values);
          nb::gil_scoped_release unlocked;
          run_kernel(job, {kernel, ItemType::int64, params}, dense, x.data(), starts, threads);
        } else {
          auto x = nb::cast<Array<double>>(values);
          nb::gil_scoped_release unlocked;
          run_kernel(job, {kernel, ItemType::float64, params}, dense, x.data(), starts, threads);
        }
        return job.overflow.load() ? "overflow" : job.rounded.load() ? "rounded" : "fits";
      },
      nb::arg("kernel"), nb::arg("lower"), nb::arg("values"), nb::arg("nulls").none(), nb::arg("times").none(), nb::arg("period").none(),
      nb::arg("size"), nb::arg("closed"), nb::arg("arrival"), nb::arg("dense"), nb::arg("starts"), nb::arg("threads"), nb::arg("out"),
      nb::arg("gone") = nb::none(), nb::arg("params") = std::vector<double>{},
      "Slide a kernel over segments of a column: 'fits', 'overflow' where a result does not fit int64, 'rounded' where out does not hold "
      "it.");
});

}  // namespace sash
