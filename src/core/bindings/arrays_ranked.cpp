// sash.slide over arrays of numbers by rank: quantiles, ith smallest, top and bottom k, distinct; no GIL

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "../arrays/ranked.hpp"
#include "module.hpp"

namespace sash {

namespace {

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

enum class Ask : std::uint8_t { quantile, ith_smallest, distinct, top, bottom };

struct Job {
  Ask ask = Ask::quantile;
  double q = 0.5;
  Interpolation rule = Interpolation::linear;
  std::size_t k = 1;     // which, or how many
  std::size_t size = 0;  // by count, if not 0
  Closed closed = Closed::right;
  const std::uint8_t* nulls = nullptr;
  const Time* int_times = nullptr;
  const double* float_times = nullptr;
  Time int_period = 0;
  double float_period = 0;
  std::int64_t* out_ints = nullptr;
  double* out_floats = nullptr;
  std::int64_t* out_counts = nullptr;  // of top and bottom: how many of the k there are
};

// The row before, once more.
template <class T>
void repeat(T* row, std::size_t k) {
  std::copy_n(row - k, k, row);
}

// Results [from, to) of the segment that begins at `base`.
template <class T, class Span>
void run(const Job& job, const Span& span, const T* values, const std::uint8_t* nulls, std::size_t base, std::size_t from, std::size_t to) {
  Ranks<T> ranks;
  std::size_t first = 0;  // the item that rank 0 of `ranks` counts from
  auto put = [&](std::size_t at, auto value) {
    if (job.out_ints)
      job.out_ints[at] = static_cast<std::int64_t>(value);
    else
      job.out_floats[at] = static_cast<double>(value);
  };
  auto put_none = [&](std::size_t at) {
    if (job.out_floats) job.out_floats[at] = std::numeric_limits<double>::quiet_NaN();
  };

  if (job.ask == Ask::distinct) {
    std::vector<std::uint32_t> counts;
    std::int64_t different = 0;
    slide_stretches(
        span, from, to,
        [&](std::size_t begin, std::size_t end) {
          first = begin;
          ranks.of(values + begin, nulls ? nulls + begin : nullptr, end - begin);
          ranks.group();
          counts.assign(ranks.size() + 1, 0);
          different = 0;
        },
        [&](std::size_t i) {
          if (std::uint32_t r = ranks[i - first]; r != Ranks<T>::none) different += counts[r]++ == 0;
        },
        [&](std::size_t i) {
          if (std::uint32_t r = ranks[i - first]; r != Ranks<T>::none) different -= --counts[r] == 0;
        },
        [&](std::size_t i) { put(base + i, different); });
    return;
  }

  RankSet window;
  bool top = job.ask == Ask::top;
  std::size_t edge = 0;    // the rank of the least of the top, of the greatest of the bottom
  bool unchanged = false;  // nothing came or went on this side of the edge: 9 of 10 windows of 100 have the top 5 of the one before
  auto touch = [&](std::size_t r) { unchanged = unchanged && (top ? r < edge : r > edge); };
  std::size_t known = 0;  // the window size that `at` is for: most windows are as long as the one before
  Place at{0, 0};
  auto emit = [&](std::size_t i) {
    std::size_t n = window.size();
    if (job.ask == Ask::quantile) {
      if (n == 0) return put_none(base + i);
      if (n != known) at = place(job.rule, known = n, job.q);
      std::size_t low = window.select(at.low);
      T a = ranks.value(low);
      if (picks(job.rule)) return put(base + i, a);
      double x = static_cast<double>(a);
      put(base + i, at.gap == 0 ? x : between(x, static_cast<double>(ranks.value(window.next(low))), at.gap));
    } else if (job.ask == Ask::ith_smallest) {
      if (n < job.k) return put_none(base + i);
      put(base + i, ranks.value(window.select(job.k - 1)));
    } else {
      std::size_t some = std::min(n, job.k), row = (base + i) * job.k, r = 0;
      job.out_counts[base + i] = static_cast<std::int64_t>(some);
      if (unchanged) return job.out_ints ? repeat(job.out_ints + row, job.k) : repeat(job.out_floats + row, job.k);
      for (std::size_t j = 0; j < some; ++j) {
        r = j == 0 ? window.select(top ? n - some : 0) : window.next(r);
        if (j == 0 || !top) edge = r;
        put(row + (top ? some - 1 - j : j), ranks.value(r));
      }
      unchanged = some == job.k;
    }
  };
  slide_stretches(
      span, from, to,
      [&](std::size_t begin, std::size_t end) {
        first = begin;
        ranks.of(values + begin, nulls ? nulls + begin : nullptr, end - begin);
        window.reset(ranks.size());
        unchanged = false;
      },
      [&](std::size_t i) {
        if (std::uint32_t r = ranks[i - first]; r != Ranks<T>::none) window.insert(r), touch(r);
      },
      [&](std::size_t i) {
        if (std::uint32_t r = ranks[i - first]; r != Ranks<T>::none) window.erase(r), touch(r);
      },
      emit);
}

template <class T>
void run_segment(const Job& job, const T* values, std::size_t begin, std::size_t end, std::size_t from, std::size_t to) {
  const T* x = values + begin;
  const std::uint8_t* nulls = job.nulls ? job.nulls + begin : nullptr;
  std::size_t n = end - begin;
  if (job.size > 0)
    run(job, CountSpan(job.size), x, nulls, begin, from, to);
  else if (job.float_times)
    run(job, TimeSpan<double>(job.float_times + begin, n, job.float_period, job.closed), x, nulls, begin, from, to);
  else
    run(job, TimeSpan<Time>(job.int_times + begin, n, job.int_period, job.closed), x, nulls, begin, from, to);
}

// Segments are shared among threads, long ones cut: stretches do not depend on each other.
template <class T>
void run_all(const Job& job, const T* values, const std::vector<std::size_t>& starts, std::size_t threads) {
  struct Task {
    std::size_t begin, end, from, to;
  };
  constexpr std::size_t long_one = std::size_t{1} << 18;
  std::vector<Task> tasks;
  for (std::size_t s = 0; s + 1 < starts.size(); ++s) {
    std::size_t n = starts[s + 1] - starts[s];
    std::size_t cuts = threads > 1 && n > 2 * long_one ? threads : 1;
    for (std::size_t c = 0; c < cuts; ++c) tasks.push_back({starts[s], starts[s + 1], n * c / cuts, n * (c + 1) / cuts});
  }
  std::atomic<std::size_t> next{0};
  auto work = [&] {
    for (std::size_t t = next.fetch_add(1); t < tasks.size(); t = next.fetch_add(1))
      run_segment(job, values, tasks[t].begin, tasks[t].end, tasks[t].from, tasks[t].to);
  };
  std::vector<std::thread> team;
  for (std::size_t i = 1; i < std::min(threads, tasks.size()); ++i) team.emplace_back(work);
  work();
  for (auto& t : team) t.join();
}

}  // namespace

static Binding bind(20, [](nb::module_& m) {
  m.def(
      "slide_ranked",
      [](int ask, double q, int rule, std::size_t k, nb::object values, nb::object nulls, nb::object times, nb::object period,
         std::size_t size, int closed, const std::vector<std::size_t>& starts, std::size_t threads, nb::object out, nb::object counts) {
        Job job;
        job.ask = static_cast<Ask>(ask);
        job.q = q;
        job.rule = static_cast<Interpolation>(rule);
        job.k = k;
        job.size = size;
        job.closed = static_cast<Closed>(closed);
        if (!nulls.is_none()) job.nulls = nb::cast<Array<std::uint8_t>>(nulls).data();
        if (size == 0) {
          if (nb::isinstance<Array<std::int64_t>>(times)) {
            job.int_times = nb::cast<Array<std::int64_t>>(times).data();
            job.int_period = nb::cast<Time>(period);
          } else {
            job.float_times = nb::cast<Array<double>>(times).data();
            job.float_period = nb::cast<double>(period);
          }
        }
        if (nb::isinstance<Out<std::int64_t>>(out))
          job.out_ints = nb::cast<Out<std::int64_t>>(out).data();
        else
          job.out_floats = nb::cast<Out<double>>(out).data();
        if (!counts.is_none()) job.out_counts = nb::cast<Out<std::int64_t>>(counts).data();
        if (nb::isinstance<Array<std::int64_t>>(values)) {
          auto x = nb::cast<Array<std::int64_t>>(values);
          nb::gil_scoped_release unlocked;
          run_all(job, x.data(), starts, threads);
        } else {
          auto x = nb::cast<Array<double>>(values);
          nb::gil_scoped_release unlocked;
          run_all(job, x.data(), starts, threads);
        }
      },
      nb::arg("ask"), nb::arg("q"), nb::arg("rule"), nb::arg("k"), nb::arg("values"), nb::arg("nulls").none(), nb::arg("times").none(),
      nb::arg("period").none(), nb::arg("size"), nb::arg("closed"), nb::arg("starts"), nb::arg("threads"), nb::arg("out"),
      nb::arg("counts").none(), "Slide an aggregation that looks at ranks over segments of a column.");
});

}  // namespace sash
