// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf_writer.hpp"

#include <limits>
#include <unordered_set>

#include "base/atomic_file.hpp"
#include "base/checked.hpp"
#include "formats/gguf_types.hpp"

namespace consonant {

namespace {

constexpr int64_t alignment = 32;

class Writer {
 public:
  explicit Writer(const std::filesystem::path& path) : path_(path), file_(path) {}

  void header(const Meta& meta, size_t tensors) {
    std::vector<const std::pair<std::string, MetaValue>*> kept;
    for (const auto& entry : meta.entries())
      if (entry.first != "general.alignment" && !entry.first.starts_with("split.")) kept.push_back(&entry);
    file_.write("GGUF");
    put<uint32_t>(3);
    put<uint64_t>(tensors);
    put<uint64_t>(kept.size());
    for (const auto* entry : kept) {
      string(entry->first);
      value(entry->first, entry->second);
    }
  }

  void table(const std::vector<GgufTensorPlan>& tensors) {
    std::unordered_set<std::string_view> names;
    int64_t offset = 0;
    for (const GgufTensorPlan& t : tensors) {
      if (t.name.empty() || !names.insert(t.name).second) fail("\"{}\" can't name a tensor, or stands twice", t.name);
      if (t.sizes.size() > 4) fail("tensor \"{}\" has {} dimensions, more than 4", t.name, t.sizes.size());
      const auto type = ggml_type_of(t.type);
      if (!type) fail("tensor \"{}\": GGUF has no type {}", t.name, consonant::name(t.type));
      string(t.name);
      put<uint32_t>(static_cast<uint32_t>(t.sizes.size()));
      for (auto size = t.sizes.rbegin(); size != t.sizes.rend(); ++size) put<uint64_t>(static_cast<uint64_t>(*size));
      put<uint32_t>(*type);
      put<uint64_t>(static_cast<uint64_t>(offset));
      offset = checked_add(offset, round_up(bytes_of(t), alignment));
    }
    pad();
  }

  void tensor(const GgufTensorPlan& plan, const std::function<void(const ByteSink&)>& data) {
    int64_t left = bytes_of(plan);
    data([&](std::span<const std::byte> part) {
      if (static_cast<int64_t>(part.size()) > left) fail("tensor \"{}\" gives more bytes than planned", plan.name);
      left -= static_cast<int64_t>(part.size());
      file_.write(part);
    });
    if (left != 0) fail("tensor \"{}\" gives {} bytes fewer than planned", plan.name, left);
    pad();
  }

  void commit() { file_.commit(); }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw_error(Exit::failed, "{}: {}", path_.string(), fmt::format(format, std::forward<Args>(args)...));
  }

  static int64_t bytes_of(const GgufTensorPlan& t) {
    const int64_t columns = t.sizes.empty() ? 1 : t.sizes.back();
    return columns == 0 ? 0 : checked_mul(element_count(t.sizes) / columns, row_bytes(t.type, columns));
  }

  template <class T>
  void put(T x) {
    file_.write(std::as_bytes(std::span<const T, 1>(&x, 1)));
  }

  void pad() { file_.write_zeros(round_up(file_.written(), alignment) - file_.written()); }

  void string(std::string_view text) {
    put<uint64_t>(text.size());
    file_.write(text);
  }

  template <class T>
  void narrow(std::string_view key, int64_t x) {
    // A u64 is never read past the range of int64.
    if constexpr (sizeof(T) < 8)
      if (x < int64_t{std::numeric_limits<T>::min()} || x > int64_t{std::numeric_limits<T>::max()})
        fail("metadata \"{}\": {} is out of the range of its type", key, x);
    if (std::is_unsigned_v<T> && x < 0) fail("metadata \"{}\": {} is out of the range of its type", key, x);
    put<T>(static_cast<T>(x));
  }

  void whole(std::string_view key, MetaType type, int64_t x) {
    switch (type) {
      case MetaType::u8:
        return narrow<uint8_t>(key, x);
      case MetaType::i8:
        return narrow<int8_t>(key, x);
      case MetaType::u16:
        return narrow<uint16_t>(key, x);
      case MetaType::i16:
        return narrow<int16_t>(key, x);
      case MetaType::u32:
        return narrow<uint32_t>(key, x);
      case MetaType::i32:
        return narrow<int32_t>(key, x);
      case MetaType::u64:
        return narrow<uint64_t>(key, x);
      case MetaType::i64:
        return narrow<int64_t>(key, x);
      default:
        fail("metadata \"{}\": an integer of type {}", key, consonant::name(type));
    }
  }

  void real(MetaType type, double x) { type == MetaType::f32 ? put(static_cast<float>(x)) : put(x); }

  void value(std::string_view key, const MetaValue& v) {
    put<uint32_t>(static_cast<uint32_t>(v.is_array ? MetaType::array : v.type));
    if (v.is_array) return array(key, v);
    if (const auto* i = std::get_if<int64_t>(&v.value)) return whole(key, v.type, *i);
    if (const auto* d = std::get_if<double>(&v.value)) return real(v.type, *d);
    if (const auto* b = std::get_if<bool>(&v.value)) return put<uint8_t>(*b);
    string(std::get<std::string_view>(v.value));
  }

  template <class T, class Put>
  bool elements(const MetaValue& v, const Put& put_one) {
    const auto* values = std::get_if<T>(&v.value);
    if (!values) return false;
    put<uint64_t>(values->size());
    for (const auto& x : *values) put_one(x);
    return true;
  }

  void array(std::string_view key, const MetaValue& v) {
    put<uint32_t>(static_cast<uint32_t>(v.type));
    if (elements<MetaInts>(v, [&](int64_t x) { whole(key, v.type, x); })) return;
    if (elements<MetaFloats>(v, [&](double x) { real(v.type, x); })) return;
    if (elements<MetaBools>(v, [&](bool x) { put<uint8_t>(x); })) return;
    if (elements<MetaStrings>(v, [&](std::string_view x) { string(x); })) return;
    const auto& nested = std::get<MetaNested>(v.value).values;
    put<uint64_t>(nested.size());
    for (const MetaValue& x : nested) array(key, x);
  }

  const std::filesystem::path& path_;
  AtomicFile file_;
};

}  // namespace

void write_gguf(const std::filesystem::path& path, const Meta& meta, const std::vector<GgufTensorPlan>& tensors,
                const std::function<void(size_t index, const ByteSink& sink)>& data) {
  Writer writer(path);
  writer.header(meta, tensors.size());
  writer.table(tensors);
  for (size_t i = 0; i < tensors.size(); ++i) writer.tensor(tensors[i], [&](const ByteSink& sink) { data(i, sink); });
  writer.commit();
}

}  // namespace consonant
