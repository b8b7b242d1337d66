// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include "base/checked.hpp"
#include "base/utf8.hpp"
#include "formats/gguf_types.hpp"

namespace consonant {

namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian and read in place");

constexpr int max_dimensions = 4;
constexpr int max_nesting = 4;                           // arrays of arrays: no writer goes past two
constexpr int64_t max_alignment = 65536;                 // llama.cpp writes 32
constexpr int64_t max_elements = int64_t{1} << 26;       // of an array: the largest vocabularies have 2^18
constexpr int64_t min_entry_bytes = 8 + 1 + 4 + 1;       // key length, key, type, value
constexpr int64_t min_tensor_bytes = 8 + 1 + 4 + 4 + 8;  // name length, name, dimensions, type, offset

// Bytes that an element takes at least.
int64_t element_bytes(MetaType type) {
  switch (type) {
    case MetaType::u8:
    case MetaType::i8:
    case MetaType::boolean:
      return 1;
    case MetaType::u16:
    case MetaType::i16:
      return 2;
    case MetaType::u32:
    case MetaType::i32:
    case MetaType::f32:
      return 4;
    case MetaType::u64:
    case MetaType::i64:
    case MetaType::f64:
    case MetaType::string:
      return 8;
    case MetaType::array:
      return 12;
  }
  return 8;
}

class Parser {
 public:
  explicit Parser(GgufFile& out) : out_(out), file_(*out.file) {}

  void run() {
    header();
    const int64_t tensors = count("tensors", min_tensor_bytes), entries = count("metadata entries", min_entry_bytes);
    for (int64_t i = 0; i < entries; ++i) entry();
    read_alignment();
    for (int64_t i = 0; i < tensors; ++i) tensor();
    place_tensors();
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    bad_input("{}: {}", file_.name(), fmt::format(format, std::forward<Args>(args)...));
  }

  int64_t left() const { return file_.size() - at_; }

  const std::byte* take(int64_t bytes, std::string_view what) {
    if (bytes > left()) fail("cut short: {} at offset {} needs {} bytes, {} are left", what, at_, bytes, left());
    const std::byte* start = file_.bytes().data() + at_;
    at_ += bytes;
    return start;
  }

  template <class T>
  T number(std::string_view what) {
    T value;
    std::memcpy(&value, take(sizeof(T), what), sizeof(T));
    return value;
  }

  // A 64-bit count of things that take `each` bytes or more.
  int64_t count(std::string_view what, int64_t each) {
    const auto n = number<uint64_t>(what);
    if (n > static_cast<uint64_t>(left() / each))
      fail("declares {} {}, which can't fit in the {} bytes that are left", n, what, left());
    return static_cast<int64_t>(n);
  }

  std::string_view string(std::string_view what) {
    const int64_t size = count(what, 1);
    return {reinterpret_cast<const char*>(take(size, what)), static_cast<size_t>(size)};
  }

  std::string_view utf8_string(std::string_view what) {
    const std::string_view text = string(what);
    if (const size_t bad = find_bad_utf8(text); bad != text.npos) fail("{}: no UTF-8 at its byte {}", what, bad);
    return text;
  }

  void header() {
    const std::string_view magic(reinterpret_cast<const char*>(take(4, "the magic")), 4);
    if (magic == "FUGG") fail("is a big-endian GGUF file; only little-endian ones can be read");
    if (magic != "GGUF") fail("is no GGUF file: it doesn't begin with \"GGUF\"");
    const auto version = number<uint32_t>("the version");
    if (version == 0 || (version & 0xFFFF) == 0) fail("is a big-endian GGUF file; only little-endian ones can be read");
    if (version != 2 && version != 3) fail("is GGUF version {}; versions 2 and 3 can be read", version);
    out_.version = static_cast<int>(version);
  }

  MetaType type(std::string_view key) {
    const auto number_of_type = number<uint32_t>("a metadata type");
    if (number_of_type > static_cast<uint32_t>(MetaType::f64))
      fail("metadata \"{}\" has unknown type {}", key, number_of_type);
    return static_cast<MetaType>(number_of_type);
  }

  int64_t whole(MetaType type, std::string_view key) {
    switch (type) {
      case MetaType::u8:
        return number<uint8_t>(key);
      case MetaType::i8:
        return number<int8_t>(key);
      case MetaType::u16:
        return number<uint16_t>(key);
      case MetaType::i16:
        return number<int16_t>(key);
      case MetaType::u32:
        return number<uint32_t>(key);
      case MetaType::i32:
        return number<int32_t>(key);
      case MetaType::u64: {
        const auto value = number<uint64_t>(key);
        if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
          fail("metadata \"{}\" is {}, past the range of 64-bit integers with sign", key, value);
        return static_cast<int64_t>(value);
      }
      default:
        return number<int64_t>(key);
    }
  }

  bool boolean(std::string_view key) {
    const auto value = number<uint8_t>(key);
    if (value > 1) fail("metadata \"{}\" is a bool of {}, neither 0 nor 1", key, value);
    return value == 1;
  }

  MetaValue value(MetaType t, std::string_view key, int depth) {
    switch (t) {
      case MetaType::f32:
        return {t, false, static_cast<double>(number<float>(key))};
      case MetaType::f64:
        return {t, false, number<double>(key)};
      case MetaType::boolean:
        return {t, false, boolean(key)};
      case MetaType::string:
        return {t, false, utf8_string(key)};
      case MetaType::array:
        return array(key, depth + 1);
      default:
        return {t, false, whole(t, key)};
    }
  }

  template <class Vector, class Read>
  MetaValue elements(MetaType t, int64_t n, Read&& read) {
    Vector values;
    values.reserve(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) values.push_back(read());
    return {t, true, std::move(values)};
  }

  MetaValue array(std::string_view key, int depth) {
    if (depth > max_nesting) fail("metadata \"{}\": arrays nested deeper than {}", key, max_nesting);
    const MetaType t = type(key);
    const int64_t n = count(key, element_bytes(t));
    if (n > max_elements) fail("metadata \"{}\": an array of {} elements, more than {}", key, n, max_elements);
    // Pieces of a vocabulary may be any bytes: byte-level and byte-fallback tokens needn't be whole characters.
    const bool any_bytes = key.starts_with("tokenizer.");
    switch (t) {
      case MetaType::f32:
        return elements<MetaFloats>(t, n, [&] { return static_cast<double>(number<float>(key)); });
      case MetaType::f64:
        return elements<MetaFloats>(t, n, [&] { return number<double>(key); });
      case MetaType::boolean:
        return elements<MetaBools>(t, n, [&] { return boolean(key); });
      case MetaType::string:
        return elements<MetaStrings>(t, n, [&] { return any_bytes ? string(key) : utf8_string(key); });
      case MetaType::array: {
        MetaNested nested;
        for (int64_t i = 0; i < n; ++i) nested.values.push_back(array(key, depth + 1));
        return {t, true, std::move(nested)};
      }
      default:
        return elements<MetaInts>(t, n, [&] { return whole(t, key); });
    }
  }

  void entry() {
    std::string key(utf8_string("a metadata key"));
    const MetaType t = type(key);
    MetaValue read = value(t, key, 0);
    out_.meta.add(std::move(key), std::move(read));
  }

  void read_alignment() {
    out_.alignment = 32;
    const MetaValue* found = out_.meta.find("general.alignment");
    if (!found) return;
    const int64_t a = out_.meta.integer("general.alignment");
    if (a < 8 || a > max_alignment || !std::has_single_bit(static_cast<uint64_t>(a)))
      fail("general.alignment is {}, should be a power of two from 8 to {}", a, max_alignment);
    out_.alignment = a;
  }

  void tensor() {
    GgufTensor t;
    t.name = utf8_string("the name of a tensor");
    if (t.name.empty()) fail("a tensor without a name");
    if (!names_.insert(t.name).second) fail("tensor \"{}\" stands twice", t.name);
    const auto dimensions = number<uint32_t>("the dimensions of a tensor");
    if (dimensions > max_dimensions)
      fail("tensor \"{}\" has {} dimensions, more than {}", t.name, dimensions, max_dimensions);
    for (uint32_t i = 0; i < dimensions; ++i) {
      const auto size = number<uint64_t>("a dimension");
      if (size == 0 || size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        fail("tensor \"{}\": dimension {} is {}", t.name, i, size);
      t.sizes.insert(t.sizes.begin(), static_cast<int64_t>(size));
    }
    const auto type_number = number<uint32_t>("the type of a tensor");
    const auto type = dtype_of_ggml(type_number);
    if (!type) {
      const std::string_view known = ggml_type_name(type_number);
      if (known.empty()) fail("tensor \"{}\" has unknown type {}", t.name, type_number);
      fail("tensor \"{}\" has type {}, which isn't supported", t.name, known);
    }
    t.type = *type;
    const int64_t columns = t.sizes.empty() ? 1 : t.sizes.back();
    if (columns % info(t.type).block != 0)
      fail("tensor \"{}\": rows of {} elements can't be {}, whose blocks have {}", t.name, columns, name(t.type),
           info(t.type).block);
    t.bytes = checked_mul(element_count(t.sizes) / columns, row_bytes(t.type, columns));
    const auto offset = number<uint64_t>("the offset of a tensor");
    if (offset % static_cast<uint64_t>(out_.alignment) != 0)
      fail("tensor \"{}\": offset {} isn't a multiple of the alignment {}", t.name, offset, out_.alignment);
    if (offset > static_cast<uint64_t>(file_.size()))
      fail("tensor \"{}\": offset {} lies past the end of the file ({} bytes)", t.name, offset, file_.size());
    t.offset = static_cast<int64_t>(offset);
    out_.tensors.push_back(std::move(t));
  }

  // Offsets count from the first aligned byte after the table.
  void place_tensors() {
    const int64_t data = round_up(at_, out_.alignment);
    std::vector<const GgufTensor*> order;
    for (GgufTensor& t : out_.tensors) {
      t.offset += data;
      if (t.offset > file_.size() || t.bytes > file_.size() - t.offset)
        fail("cut short: tensor \"{}\" takes {} bytes at offset {}, but the file has {}", t.name, t.bytes, t.offset,
             file_.size());
      order.push_back(&t);
    }
    std::sort(order.begin(), order.end(),
              [](const GgufTensor* a, const GgufTensor* b) { return a->offset < b->offset; });
    for (size_t i = 1; i < order.size(); ++i)
      if (order[i]->offset < order[i - 1]->offset + order[i - 1]->bytes)
        fail("tensors \"{}\" and \"{}\" overlap", order[i - 1]->name, order[i]->name);
  }

  GgufFile& out_;
  const MappedFile& file_;
  int64_t at_ = 0;
  std::unordered_set<std::string> names_;
};

}  // namespace

GgufFile parse_gguf(std::shared_ptr<const MappedFile> file) {
  GgufFile out;
  out.file = std::move(file);
  out.meta.source = out.file->name();
  Parser(out).run();
  return out;
}

}  // namespace consonant
