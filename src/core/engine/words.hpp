// Numbers as few bytes
//
// A column of 64-bit words is stored as its least word and, for every word, the distance from it in as many
// whole bytes as the largest distance needs: none where all are equal. Counts, panes and the upper halves of 128-bit
// sums shrink to a byte or two; doubles stay 8 bytes. Decoding is one load and one add per word.
//
//   | width u8 | least i64 | distance x n |

#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "memory.hpp"

namespace sash::engine {

static_assert(std::endian::native == std::endian::little, "stored words are little-endian");

using Bytes = std::string;

[[noreturn]] inline void damaged(const char* what) {
  throw std::invalid_argument(std::string("these bytes are damaged: ") + what + ". Store and pass all of them, unchanged.");
}

// Reads forward through stored bytes and never past their end.
class Reader {
 public:
  Reader(const char* data, std::size_t size) : at_(data), end_(data + size) {}
  const char* take(std::size_t n) {
    if (n > static_cast<std::size_t>(end_ - at_)) damaged("they end too early");
    return std::exchange(at_, at_ + n);
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)), sizeof(T));
    return value;
  }
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  void done() const {
    if (at_ != end_) damaged("something follows the last column");
  }

 private:
  const char* at_;
  const char* end_;
};

// get(i) gives the word of place i.
template <class Get>
void pack_words(Bytes& out, std::size_t n, Get get) {
  std::int64_t least = n ? get(0) : 0, most = least;
  for (std::size_t i = 1; i < n; ++i) {
    std::int64_t word = get(i);
    least = word < least ? word : least;
    most = word > most ? word : most;
  }
  auto span = static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least);
  auto width = static_cast<std::size_t>((std::bit_width(span) + 7) / 8);
  std::size_t at = out.size();
  out.resize(at + 9 + n * width + 8);  // 8 to spare: every word is written whole
  char* to = out.data() + at;
  *to++ = static_cast<char>(width);
  std::memcpy(to, &least, 8);
  to += 8;
  for (std::size_t i = 0; i < n; ++i, to += width) {
    std::uint64_t distance = static_cast<std::uint64_t>(get(i)) - static_cast<std::uint64_t>(least);
    std::memcpy(to, &distance, 8);
  }
  out.resize(at + 9 + n * width);
}

template <std::size_t width, class Put>
void unpack_width(const char* from, std::int64_t least, std::size_t n, Put put) {
  for (std::size_t i = 0; i < n; ++i) {
    std::uint64_t distance = 0;
    if constexpr (width > 0) std::memcpy(&distance, from + i * width, width);
    put(i, static_cast<std::int64_t>(static_cast<std::uint64_t>(least) + distance));
  }
}

// put(i, word) takes them back.
template <class Put>
void unpack_words(Reader& in, std::size_t n, Put put) {
  auto width = in.number<std::uint8_t>();
  auto least = in.number<std::int64_t>();
  if (width > 8) damaged("a word is wider than 8 bytes");
  if (width && n > in.left() / width) damaged("they end too early");
  const char* from = in.take(n * width);
  switch (width) {
    case 0:
      return unpack_width<0>(from, least, n, put);
    case 1:
      return unpack_width<1>(from, least, n, put);
    case 2:
      return unpack_width<2>(from, least, n, put);
    case 3:
      return unpack_width<3>(from, least, n, put);
    case 4:
      return unpack_width<4>(from, least, n, put);
    case 5:
      return unpack_width<5>(from, least, n, put);
    case 6:
      return unpack_width<6>(from, least, n, put);
    case 7:
      return unpack_width<7>(from, least, n, put);
    default:
      return unpack_width<8>(from, least, n, put);
  }
}

// A partial as words: padding is cleared, so that equal partials are equal bytes.
template <class Partial>
struct Words {
  static_assert(std::is_trivially_copyable_v<Partial>);
  static constexpr std::size_t count = (sizeof(Partial) + 7) / 8;

  static void split(Partial p, std::int64_t* words) {
#if __has_builtin(__builtin_clear_padding)
    __builtin_clear_padding(&p);
#endif
    words[count - 1] = 0;
    std::memcpy(words, &p, sizeof(Partial));
  }
};

template <class Partial>
void pack_partials(Bytes& out, std::span<const Partial> partials) {
  constexpr std::size_t words = Words<Partial>::count;
  Vec<std::int64_t> split(partials.size() * words);
  for (std::size_t i = 0; i < partials.size(); ++i) Words<Partial>::split(partials[i], split.data() + i * words);
  for (std::size_t w = 0; w < words; ++w) pack_words(out, partials.size(), [&](std::size_t i) { return split[i * words + w]; });
}

template <class Partial>
void unpack_partials(Reader& in, std::span<Partial> partials) {
  constexpr std::size_t size = sizeof(Partial);
  for (std::size_t w = 0; w < Words<Partial>::count; ++w) {
    char* to = reinterpret_cast<char*>(partials.data()) + 8 * w;
    std::size_t width = std::min<std::size_t>(8, size - 8 * w);
    unpack_words(in, partials.size(), [&](std::size_t i, std::int64_t word) {
      if constexpr (size % 8 == 0)
        std::memcpy(to + i * size, &word, 8);
      else
        std::memcpy(to + i * size, &word, width);
    });
  }
}

}  // namespace sash::engine
