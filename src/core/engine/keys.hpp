// Keys: from Arrow columns to dense numbers and back
//
// A key is the tuple of its columns' values. Each column's values are numbered first (a table of words, or of
// bytes for text), then pairs of numbers are numbered, column by column; only the distinct keys are ever written out, as
// canonical bytes:
//
//   per column   0                      null
//                1 | value              of fixed width: 1, 2, 4, 8 or 16 bytes, or the type's own
//                1 | length u32 | bytes text and binary
//
// Equal keys have equal bytes: all NaNs are one key and -0.0 is 0.0, as in Spark. The hash of those bytes is the same in
// every process; a bucket is a range of hashes, so a table that is sorted by hash is sorted by bucket.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "memory.hpp"
#include "words.hpp"

namespace sash::engine {

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  auto wide = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(wide) ^ static_cast<std::uint64_t>(wide >> 64);
}

inline std::uint64_t hash_of(const char* data, std::size_t n) {
  constexpr std::uint64_t k1 = 0x9E3779B97F4A7C15u, k2 = 0xD6E8FEB86659FD93u;
  std::uint64_t h = k2 ^ (n * k1);
  for (; n >= 8; n -= 8, data += 8) {
    std::uint64_t word;
    std::memcpy(&word, data, 8);
    h = mix(h ^ word, k1);
  }
  std::uint64_t tail = 0;
  if (n) std::memcpy(&tail, data, n);
  return mix(h ^ tail, k2) ^ (h >> 29);
}

inline std::uint32_t bucket_of(std::uint64_t hash, std::uint32_t buckets) {
  return static_cast<std::uint32_t>((static_cast<unsigned __int128>(hash) * buckets) >> 64);
}

inline std::uint64_t hash_of(std::uint64_t word) { return mix(word ^ 0x9E3779B97F4A7C15u, 0xD6E8FEB86659FD93u); }

// Numbers things in the order they first appear; same(id) tells whether a stored thing is the one looked for. A slot
// carries half of the hash, so that a look-up touches the slot and the thing, and nothing between.
class Numbering {
 public:
  explicit Numbering(std::size_t expected = 64) { resize(std::bit_ceil(std::max<std::size_t>(expected * 2, 64))); }

  std::uint32_t size() const { return static_cast<std::uint32_t>(hashes_.size()); }

  std::size_t memory() const { return slots_.capacity() * sizeof(Slot) + hashes_.capacity() * sizeof(std::uint64_t); }

  template <class Same>
  std::optional<std::uint32_t> find(std::uint64_t hash, Same same) const {
    auto tag = static_cast<std::uint32_t>(hash >> 32);
    for (std::size_t at = hash & mask_; slots_[at].id != none; at = (at + 1) & mask_)
      if (slots_[at].tag == tag && same(slots_[at].id)) return slots_[at].id;
    return std::nullopt;
  }

  template <class Same>
  std::uint32_t find_or_add(std::uint64_t hash, Same same) {
    auto tag = static_cast<std::uint32_t>(hash >> 32);
    for (std::size_t at = hash & mask_;; at = (at + 1) & mask_) {
      Slot& slot = slots_[at];
      if (slot.id == none) {
        slot = {tag, size()};
        hashes_.push_back(hash);
        if (hashes_.size() * 2 > slots_.size()) resize(slots_.size() * 2);
        return size() - 1;
      }
      if (slot.tag == tag && same(slot.id)) return slot.id;
    }
  }

 private:
  static constexpr std::uint32_t none = 0xFFFFFFFFu;
  struct Slot {
    std::uint32_t tag;
    std::uint32_t id;
  };

  void resize(std::size_t slots) {
    slots_.assign(slots, {0, none});
    mask_ = slots - 1;
    for (std::uint32_t id = 0; id < hashes_.size(); ++id) {
      std::size_t at = hashes_[id] & mask_;
      while (slots_[at].id != none) at = (at + 1) & mask_;
      slots_[at] = {static_cast<std::uint32_t>(hashes_[id] >> 32), id};
    }
  }

  Vec<Slot> slots_;
  Vec<std::uint64_t> hashes_;
  std::size_t mask_ = 0;
};

// A view of one Arrow column of keys.
struct KeyColumn {
  enum Kind { bits, fixed, real32, real64, text32, text64 };
  Kind kind;
  std::size_t width = 0;  // of fixed
  const std::uint8_t* validity = nullptr;
  const char* data = nullptr;
  const char* offsets = nullptr;
  std::int64_t offset = 0;  // of the first row, in all buffers

  bool valid(std::size_t i) const {
    if (!validity) return true;
    auto at = static_cast<std::size_t>(offset) + i;
    return (validity[at >> 3] >> (at & 7)) & 1;
  }

  bool is_word() const { return kind == bits || kind == real32 || kind == real64 || (kind == fixed && width <= 8); }

  std::size_t stored_width() const { return kind == bits ? 1 : kind == real32 ? 4 : kind == real64 ? 8 : width; }

  std::uint64_t word(std::size_t i) const {
    std::size_t at = static_cast<std::size_t>(offset) + i;
    std::uint64_t value = 0;
    switch (kind) {
      case bits:
        return (static_cast<std::uint8_t>(data[at >> 3]) >> (at & 7)) & 1;
      case real32:
        return canonical<float, std::uint32_t>(at);
      case real64:
        return canonical<double, std::uint64_t>(at);
      default:
        if (width == 8)
          std::memcpy(&value, data + at * 8, 8);
        else
          std::memcpy(&value, data + at * width, width);
        return value;
    }
  }

  // Where the bytes of n rows end.
  const char* data_end(std::size_t n) const { return n == 0 ? data : bytes(n - 1).data() + bytes(n - 1).size(); }

  std::string_view bytes(std::size_t i) const {
    std::size_t at = static_cast<std::size_t>(offset) + i;
    if (kind == fixed) return {data + at * width, width};
    return kind == text32 ? between<std::int32_t>(at) : between<std::int64_t>(at);
  }

 private:
  template <class Real, class Word>
  std::uint64_t canonical(std::size_t at) const {
    Real value;
    std::memcpy(&value, data + at * sizeof(Real), sizeof(Real));
    if (value != value) value = std::numeric_limits<Real>::quiet_NaN();
    if (value == 0) value = 0;
    return std::bit_cast<Word>(value);
  }
  template <class Offset>
  std::string_view between(std::size_t at) const {
    Offset from, to;
    std::memcpy(&from, offsets + at * sizeof(Offset), sizeof(Offset));
    std::memcpy(&to, offsets + (at + 1) * sizeof(Offset), sizeof(Offset));
    return {data + from, static_cast<std::size_t>(to - from)};
  }
};

// Distinct keys, sorted by hash and then by bytes.
class KeyTable {
 public:
  std::size_t size() const { return hashes_.size(); }
  std::uint64_t hash(std::size_t i) const { return hashes_[i]; }
  std::string_view key(std::size_t i) const { return {bytes_.data() + offsets_[i], offsets_[i + 1] - offsets_[i]}; }
  std::size_t memory() const { return hashes_.capacity() * 8 + offsets_.capacity() * 8 + bytes_.capacity(); }

  void push_back(std::uint64_t hash, std::string_view key) {
    hashes_.push_back(hash);
    bytes_.append(key);
    offsets_.push_back(bytes_.size());
  }

  // < 0, 0 or > 0, as this key comes before, is, or comes after the other.
  int compare(std::size_t i, const KeyTable& other, std::size_t j) const {
    if (hashes_[i] != other.hashes_[j]) return hashes_[i] < other.hashes_[j] ? -1 : 1;
    return key(i).compare(other.key(j));
  }

  // The place of another table's key here, -1 if it is not.
  std::int64_t find(const KeyTable& other, std::size_t j) const {
    auto at = static_cast<std::size_t>(std::lower_bound(hashes_.begin(), hashes_.end(), other.hashes_.at(j)) - hashes_.begin());
    for (; at < size() && hashes_[at] == other.hashes_[j]; ++at)
      if (key(at) == other.key(j)) return static_cast<std::int64_t>(at);
    return -1;
  }

  // The first place whose bucket is not before this one.
  std::size_t bucket_start(std::uint32_t bucket, std::uint32_t buckets) const {
    return static_cast<std::size_t>(
        std::partition_point(hashes_.begin(), hashes_.end(), [&](std::uint64_t h) { return bucket_of(h, buckets) < bucket; }) -
        hashes_.begin());
  }

  void pack(Bytes& out, std::size_t from, std::size_t to) const {
    pack_words(out, to - from, [&](std::size_t i) { return static_cast<std::int64_t>(key(from + i).size()); });
    out.append(bytes_, offsets_[from], offsets_[to] - offsets_[from]);
  }

  static KeyTable unpack(Reader& in, std::size_t n) {
    KeyTable table;
    table.offsets_.resize(n + 1);
    unpack_words(in, n, [&](std::size_t i, std::int64_t length) {
      if (length < 0 || static_cast<std::size_t>(length) > in.left()) damaged("a key is longer than what is stored");
      table.offsets_[i + 1] = table.offsets_[i] + static_cast<std::size_t>(length);
    });
    table.bytes_.assign(in.take(table.offsets_[n]), table.offsets_[n]);
    table.hashes_.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      table.hashes_[i] = hash_of(table.key(i).data(), table.key(i).size());
      if (i && table.compare(i - 1, table, i) >= 0) damaged("the keys are out of order");
    }
    return table;
  }

 private:
  Vec<std::uint64_t> hashes_;
  Vec<std::size_t> offsets_{0};
  std::string bytes_;
};

// The number of every row's key, and the keys in order.
struct Encoded {
  Vec<std::int32_t> ids;
  KeyTable keys;
};

namespace detail {

inline constexpr std::uint32_t null_id = 0xFFFFFFFFu;

// Text as its first 16 bytes and its length: most keys are no longer, and then that is all of it.
struct Text {
  std::uint64_t head[2] = {0, 0};
  std::string_view bytes;

  // Loads 16 bytes at once unless the buffer ends before: memcpy of a varying length is a call.
  Text(std::string_view text, const char* end) : bytes(text) {
    std::size_t n = text.size();
    if (n && text.data() + 16 <= end) {
      std::memcpy(head, text.data(), 16);
      if (n < 8) head[0] &= (std::uint64_t{1} << (8 * n)) - 1;
      if (n <= 8)
        head[1] = 0;
      else if (n < 16)
        head[1] &= (std::uint64_t{1} << (8 * (n - 8))) - 1;
    } else if (n) {
      std::memcpy(head, text.data(), std::min<std::size_t>(n, 16));
    }
  }
  std::uint64_t hash() const {
    std::uint64_t h = mix(head[0] ^ 0x9E3779B97F4A7C15u, head[1] ^ 0xD6E8FEB86659FD93u ^ (bytes.size() << 56));
    return bytes.size() <= 16 ? h : hash_of(h ^ hash_of(bytes.data() + 16, bytes.size() - 16));
  }
  bool operator==(const Text& other) const {
    return head[0] == other.head[0] && head[1] == other.head[1] && bytes.size() == other.bytes.size() &&
           (bytes.size() <= 16 || bytes.substr(16) == other.bytes.substr(16));
  }
};

// Numbers values in the order they first appear, null_id for null. Rows of one key often follow each other.
template <class Value, class Get>
void number(std::size_t n, std::size_t expected, Get get, Vec<std::uint32_t>& ids, Vec<std::size_t>& firsts) {
  Numbering numbers(expected);
  Vec<Value> values;
  firsts.clear();
  std::uint32_t last = null_id;
  for (std::size_t i = 0; i < n; ++i) {
    auto [there, value, hash] = get(i);
    if (!there) {
      ids[i] = null_id;
      continue;
    }
    if (last == null_id || !(values[last] == value)) {
      std::uint32_t before = numbers.size();
      last = numbers.find_or_add(hash(value), [&](std::uint32_t id) { return values[id] == value; });
      if (last == before) {
        values.push_back(value);
        firsts.push_back(i);
      }
    }
    ids[i] = last;
  }
}

// Words that lie close together are looked up in a table by their distance from the least; false where they do not. 20 million
// rows of 100,000 keys: 0.1 s, against 0.9 s through hashes.
template <class Word>
bool number_dense(std::size_t n, Word word, Vec<std::uint32_t>& ids, Vec<std::size_t>& firsts) {
  if (n < 1024) return false;
  auto least = static_cast<std::int64_t>(word(0)), most = least;
  for (std::size_t i = 1; i < n; ++i) {
    auto value = static_cast<std::int64_t>(word(i));
    least = std::min(least, value), most = std::max(most, value);
  }
  std::uint64_t range = static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least);
  if (range >= n) return false;
  Vec<std::uint32_t> table(range + 1, null_id);
  firsts.clear();
  for (std::size_t i = 0; i < n; ++i) {
    std::uint32_t& id = table[word(i) - static_cast<std::uint64_t>(least)];
    if (id == null_id) {
      id = static_cast<std::uint32_t>(firsts.size());
      firsts.push_back(i);
    }
    ids[i] = id;
  }
  return true;
}

inline void number_column(const KeyColumn& column, std::size_t n, Vec<std::uint32_t>& ids, Vec<std::size_t>& firsts) {
  ids.resize(n);
  if (column.is_word()) {
    auto hash = [](std::uint64_t word) { return hash_of(word); };
    if (column.kind == KeyColumn::fixed && column.width == 8 && !column.validity) {
      auto words = column.data + column.offset * 8;
      auto word = [&](std::size_t i) {
        std::uint64_t value;
        std::memcpy(&value, words + i * 8, 8);
        return value;
      };
      if (number_dense(n, word, ids, firsts)) return;
      number<std::uint64_t>(n, 64, [&](std::size_t i) { return std::tuple(true, word(i), hash); }, ids, firsts);
    } else {
      number<std::uint64_t>(
          n, 64, [&](std::size_t i) { return std::tuple(column.valid(i), column.valid(i) ? column.word(i) : 0, hash); }, ids, firsts);
    }
  } else {
    auto hash = [](const Text& text) { return text.hash(); };
    const char* end = column.data_end(n);
    number<Text>(
        n, 64,
        [&](std::size_t i) { return std::tuple(column.valid(i), Text(column.valid(i) ? column.bytes(i) : std::string_view(), end), hash); },
        ids, firsts);
  }
}

inline void append_value(std::string& out, const KeyColumn& column, std::size_t row) {
  if (!column.valid(row)) {
    out.push_back(0);
    return;
  }
  out.push_back(1);
  if (column.is_word()) {
    std::uint64_t word = column.word(row);
    out.append(reinterpret_cast<const char*>(&word), column.stored_width());
  } else {
    std::string_view bytes = column.bytes(row);
    if (column.kind != KeyColumn::fixed) {
      auto length = static_cast<std::uint32_t>(bytes.size());
      out.append(reinterpret_cast<const char*>(&length), 4);
    }
    out.append(bytes);
  }
}

}  // namespace detail

inline Encoded encode_keys(const std::vector<KeyColumn>& columns, std::size_t n) {
  Vec<std::uint32_t> ids(n, 0);
  Vec<std::size_t> firsts;  // the first row of every key so far
  if (columns.empty() && n) firsts.push_back(0);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    Vec<std::uint32_t> next;
    Vec<std::size_t> next_firsts;
    detail::number_column(columns[c], n, next, next_firsts);
    bool nulls = columns[c].validity != nullptr;
    if (c == 0 && !nulls) {
      ids = std::move(next);
      firsts = std::move(next_firsts);
      continue;
    }
    auto hash = [](std::uint64_t pair) { return hash_of(pair); };
    std::size_t expected = firsts.size();
    detail::number<std::uint64_t>(
        n, expected, [&](std::size_t i) { return std::tuple(true, (static_cast<std::uint64_t>(ids[i]) << 32) | next[i], hash); }, ids,
        firsts);
  }

  // The distinct keys as bytes, then in order; ids become places in that order.
  std::string bytes;
  Vec<std::size_t> offsets{0};
  Vec<std::uint64_t> hashes;
  for (std::size_t row : firsts) {
    for (const KeyColumn& column : columns) detail::append_value(bytes, column, row);
    hashes.push_back(hash_of(bytes.data() + offsets.back(), bytes.size() - offsets.back()));
    offsets.push_back(bytes.size());
  }
  auto key = [&](std::size_t i) { return std::string_view(bytes).substr(offsets[i], offsets[i + 1] - offsets[i]); };
  struct Ranked {
    std::uint64_t hash;
    std::uint32_t id;
  };
  Vec<Ranked> order(firsts.size());
  for (std::uint32_t id = 0; id < order.size(); ++id) order[id] = {hashes[id], id};
  std::sort(order.begin(), order.end(),
            [&](const Ranked& a, const Ranked& b) { return a.hash != b.hash ? a.hash < b.hash : key(a.id) < key(b.id); });
  Encoded out;
  Vec<std::int32_t> place(firsts.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[order[i].id] = static_cast<std::int32_t>(i);
    out.keys.push_back(order[i].hash, key(order[i].id));
  }
  out.ids.resize(n);
  for (std::size_t i = 0; i < n; ++i) out.ids[i] = place[ids[i]];
  return out;
}

// One column of the keys as Arrow keeps it: values of fixed width, or offsets and bytes; and whether each is there.
struct Decoded {
  std::vector<std::uint8_t> valid;
  std::vector<std::int64_t> offsets;  // text only
  std::string data;
};

// widths: what each column stores per value, 0 for text.
inline std::vector<Decoded> decode_keys(const KeyTable& keys, const std::vector<std::size_t>& widths) {
  std::vector<Decoded> columns(widths.size());
  for (std::size_t c = 0; c < widths.size(); ++c)
    if (widths[c] == 0) columns[c].offsets.push_back(0);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Reader in(keys.key(i).data(), keys.key(i).size());
    for (std::size_t c = 0; c < widths.size(); ++c) {
      Decoded& out = columns[c];
      auto present = in.number<std::uint8_t>();
      out.valid.push_back(present);
      if (widths[c]) {
        if (present)
          out.data.append(in.take(widths[c]), widths[c]);
        else
          out.data.append(widths[c], '\0');
      } else {
        if (present) {
          auto length = in.number<std::uint32_t>();
          out.data.append(in.take(length), length);
        }
        out.offsets.push_back(static_cast<std::int64_t>(out.data.size()));
      }
    }
    in.done();
  }
  return columns;
}

}  // namespace sash::engine
