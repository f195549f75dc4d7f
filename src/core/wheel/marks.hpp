// One bit per tick: whether anything arrived for it
//
// A partial does not tell: a sum of 0 may be of no items or of 5 and -5. Sessions and empty windows must know, also
// when a merge opens closed ticks again.

#pragma once

#include <algorithm>
#include <bit>

#include "../archive.hpp"
#include "slots.hpp"
#include "ticks.hpp"

namespace sash {

class Marks {
 public:
  explicit Marks(Tick first) : words_(first >> 6, 64, 0), begin_(first), end_(first) {}

  Tick begin() const { return begin_; }
  Tick end() const { return end_; }

  void push(bool marked) {
    open_ |= static_cast<std::uint64_t>(marked) << (end_ & 63);
    if ((++end_ & 63) == 0) close();
  }

  // The next n ticks are not marked.
  void gap(Tick n) {
    Tick words = ((end_ + n) >> 6) - (end_ >> 6);
    if (words > 0) {
      close();
      words_.fill(words - 1, 0, true);
    }
    end_ += n;
  }

  void drop_before(Tick t) {
    begin_ = std::max(begin_, t);
    words_.drop_before(t >> 6);
  }

  bool operator[](Tick t) const { return word(t >> 6) >> (t & 63) & 1; }

  // The last marked tick before t, or begin() - 1.
  Tick last(Tick t) const {
    while (t > begin_) {
      std::int64_t at = (t - 1) >> 6;
      std::uint64_t below = word(at) << (63 - ((t - 1) & 63));
      if (below) return std::max(t - 1 - std::countl_zero(below), begin_ - 1);
      if (at < words_.touched()) break;
      t = at << 6;
    }
    return begin_ - 1;
  }

  std::size_t bytes() const { return words_.bytes(); }

  template <class Archive>
  void archive(Archive& ar) {
    if constexpr (Archive::loading) {
      Tick begin = 0, end = 0;
      ar.number(begin);
      ar.number(end);
      if (end < begin) throw std::invalid_argument("the stored wheel has marks that end before they begin");
      *this = Marks(begin);
      while (end_ < end) {
        std::int64_t words = 0, bits = 0;
        ar.number(words);
        ar.number(bits);
        if (words < 1 || words > (end - end_ + 63) / 64 + 1) throw std::invalid_argument("the stored wheel has more marks than it says");
        if (bits == 0)
          gap(std::min(((end_ >> 6) + words) << 6, end) - end_);
        else
          for (Tick stop = std::min(((end_ >> 6) + 1) << 6, end); end_ < stop;) push(static_cast<std::uint64_t>(bits) >> (end_ & 63) & 1);
      }
    } else {
      ar.number(begin_);
      ar.number(end_);
      if (begin_ == end_) return;
      words_.runs(begin_ >> 6, words_.end(), [&](const std::uint64_t* first, std::size_t n, bool blank) {
        for (std::size_t i = 0; i < (blank ? 1 : n); ++i) put(ar, blank ? static_cast<std::int64_t>(n) : 1, first[i]);
      });
      if (end_ & 63) put(ar, 1, open_);
    }
  }

 private:
  template <class Archive>
  static void put(Archive& ar, std::int64_t words, std::uint64_t bits) {
    auto number = static_cast<std::int64_t>(bits);
    ar.number(words);
    ar.number(number);
  }

  std::uint64_t word(std::int64_t at) const { return at == end_ >> 6 ? open_ : words_[at]; }

  void close() {
    if (open_)
      words_.push(open_);
    else
      words_.fill(1, 0, true);
    open_ = 0;
  }

  Slots<std::uint64_t> words_;
  Tick begin_, end_;
  std::uint64_t open_ = 0;
};

}  // namespace sash
