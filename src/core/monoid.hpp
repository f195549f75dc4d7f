// What an algorithm may ask of an aggregation
//
// A monoid is a Partial type, its identity, and an associative combine. Everything else (an inverse,
// commutativity, being selective) is a trait that an algorithm must ask for by name, so that the
// compiler refuses an algorithm on an aggregation that lacks what it needs.
//
// Partials are ordinary values: copyable, movable, perhaps with a destructor (Python objects).
// combine may throw (a Python callable did). An operation that touches a constant number of partials must
// then have changed nothing (see Rollback); one that touches more may leave torn() true (see Tear).

#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <utility>

namespace sash {

using Time = std::int64_t;

template <class M>
concept Monoid = requires(const M m, const typename M::Partial& a, const typename M::Partial& b) {
  typename M::Partial;
  { m.identity() } -> std::convertible_to<typename M::Partial>;
  { m.combine(a, b) } -> std::convertible_to<typename M::Partial>;
};

// inverse(combine(a, b), a) == b: takes the oldest part away from the left of the whole.
template <class M>
concept Invertible = Monoid<M> && requires(const M m, const typename M::Partial& whole, const typename M::Partial& oldest) {
  { m.inverse(whole, oldest) } -> std::convertible_to<typename M::Partial>;
};

// Where some partials can't be taken away again (a NaN among floats), an invertible, commutative monoid also
// has removable(partial), which says so of an item's partial or of a whole.

// combine returns one of its arguments; keeps_left says whether it is the older one.
template <class M>
concept Selective = Monoid<M> && requires(const M m, const typename M::Partial& a, const typename M::Partial& b) {
  { m.keeps_left(a, b) } -> std::convertible_to<bool>;
};

template <class M>
inline constexpr bool is_commutative = [] {
  if constexpr (requires { M::commutative; })
    return static_cast<bool>(M::commutative);
  else
    return false;
}();

// Whether combine can throw: only Python callables do.
template <class M>
inline constexpr bool may_throw = [] {
  if constexpr (requires { M::may_throw; })
    return static_cast<bool>(M::may_throw);
  else
    return false;
}();

// Counts what a bound is stated in, for tests; a monoid that wants it declares `using Probe = CountingProbe`.
struct NoProbe {
  static constexpr bool counting = false;
  void visit(std::size_t = 1) const {}
  void restructure(std::size_t = 1) const {}
  void reach(const char*) const {}
};

struct CountingProbe {
  static constexpr bool counting = true;
  mutable std::uint64_t visited = 0;       // nodes looked at
  mutable std::uint64_t restructured = 0;  // splits, merges and moves
  void visit(std::size_t n = 1) const { visited += n; }
  void restructure(std::size_t n = 1) const { restructured += n; }
  void reach(const char* branch) const { ++reached[branch]; }
  mutable std::map<std::string, std::uint64_t> reached;  // how often a named branch was taken
};

template <class M>
struct ProbeOfImpl {
  using type = NoProbe;
};
template <class M>
  requires requires { typename M::Probe; }
struct ProbeOfImpl<M> {
  using type = typename M::Probe;
};
template <class M>
using ProbeOf = typename ProbeOfImpl<M>::type;

// Marks a structure as torn while a step that touches many partials is under way: if combine throws in
// the middle, the mark stays, and the window refuses every call until it is cleared. Where combine
// can't throw, it compiles to nothing.
template <class M>
class Tear {
 public:
  explicit Tear(bool& torn) : torn_(torn) {
    if constexpr (may_throw<M>) torn_ = true;
  }
  void mend() {
    if constexpr (may_throw<M>) torn_ = false;
  }

 private:
  [[maybe_unused]] bool& torn_;
};

// Does n steps that are one to the caller. Each leaves all as it was if it throws; so does the first. After that, what was
// done can't be taken back, and the mark says so.
template <class Step>
void together(bool& torn, std::size_t n, Step step) {
  std::size_t done = 0;
  try {
    for (; done < n; ++done) step(done);
  } catch (...) {
    torn |= done > 0;
    throw;
  }
}

// Undoes a step that touches few partials if combine throws before done(): the window stays as it was.
template <class M, class Undo>
class Rollback {
 public:
  Rollback(const M&, Undo undo) : undo_(std::move(undo)) {}
  ~Rollback() {
    if constexpr (may_throw<M>) {
      if (!done_) undo_();
    }
  }
  void done() {
    if constexpr (may_throw<M>) done_ = true;
  }

 private:
  Undo undo_;
  bool done_ = false;
};

}  // namespace sash
