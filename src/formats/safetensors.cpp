// SPDX-License-Identifier: Apache-2.0
#include "formats/safetensors.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/atomic_file.hpp"
#include "base/checked.hpp"
#include "base/utf8.hpp"
#include "formats/json.hpp"

namespace consonant {

namespace {

constexpr int64_t max_header_bytes = 100'000'000;  // the reference implementation's limit
constexpr size_t max_dimensions = 8;

struct TypeName {
  std::string_view name;
  DType type;
};
constexpr std::array<TypeName, 10> type_names = {{{"F32", DType::f32},
                                                  {"F16", DType::f16},
                                                  {"BF16", DType::bf16},
                                                  {"F64", DType::f64},
                                                  {"I8", DType::i8},
                                                  {"I16", DType::i16},
                                                  {"I32", DType::i32},
                                                  {"I64", DType::i64},
                                                  {"U8", DType::u8},
                                                  {"BOOL", DType::boolean}}};

struct Reader {
  const MappedFile& file;

  template <class... Args>
  [[noreturn]] void fail(const std::string& tensor, fmt::format_string<Args...> format, Args&&... args) const {
    bad_input("{}: tensor \"{}\": {}", file.name(), tensor, fmt::format(format, std::forward<Args>(args)...));
  }

  const Json& member(const std::string& tensor, const Json& object, const char* key) const {
    const auto at = object.find(key);
    if (at == object.end()) fail(tensor, "no \"{}\"", key);
    return *at;
  }

  int64_t whole_number(const std::string& tensor, const Json& value, const char* what) const {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > INT64_MAX)
      fail(tensor, "{} should be a whole number, not {}", what,
           value.dump(-1, ' ', false, Json::error_handler_t::replace));
    return value.get<int64_t>();
  }

  DType type(const std::string& tensor, const Json& value) const {
    if (!value.is_string()) fail(tensor, "dtype is no string");
    const auto& found = value.get_ref<const std::string&>();
    for (const TypeName& t : type_names)
      if (t.name == found) return t.type;
    fail(tensor, "dtype {} isn't supported", found);
  }

  Sizes sizes(const std::string& tensor, const Json& value) const {
    if (!value.is_array()) fail(tensor, "shape is no array");
    if (value.size() > max_dimensions) fail(tensor, "{} dimensions, more than {}", value.size(), max_dimensions);
    Sizes out;
    for (const Json& size : value) out.push_back(whole_number(tensor, size, "a size"));
    return out;
  }

  SafetensorsEntry entry(const std::string& name, const Json& object, int64_t data) const {
    if (name.empty()) bad_input("{}: a tensor without a name", file.name());
    if (!object.is_object()) fail(name, "described by something that is no object");
    SafetensorsEntry e{name, type(name, member(name, object, "dtype")), sizes(name, member(name, object, "shape")), 0,
                       0};
    const Json& offsets = member(name, object, "data_offsets");
    if (!offsets.is_array() || offsets.size() != 2) fail(name, "data_offsets should be two numbers");
    const int64_t begin = whole_number(name, offsets[0], "a data offset"),
                  end = whole_number(name, offsets[1], "a data offset");
    e.bytes = checked_mul(element_count(e.sizes), info(e.type).block_bytes);
    if (end < begin) fail(name, "data ends at {}, before it begins at {}", end, begin);
    if (end - begin != e.bytes)
      fail(name, "{} of {} takes {} bytes, but its data has {}", consonant::name(e.type), to_string(e.sizes), e.bytes,
           end - begin);
    if (end > file.size() - data)
      fail(name, "data ends at {}, but the file has {} bytes of data", end, file.size() - data);
    e.offset = data + begin;
    return e;
  }
};

void check_layout(const MappedFile& file, const std::vector<SafetensorsEntry>& entries, int64_t data) {
  int64_t expected = data;
  for (const SafetensorsEntry& e : entries) {
    if (e.offset < expected) bad_input("{}: tensor \"{}\" overlaps the one before it", file.name(), e.name);
    if (e.offset > expected)
      bad_input("{}: {} bytes before tensor \"{}\" belong to none", file.name(), e.offset - expected, e.name);
    expected += e.bytes;
  }
  if (expected != file.size())
    bad_input("{}: {} bytes at the end belong to no tensor", file.name(), file.size() - expected);
}

int64_t header_size(const MappedFile& file) {
  uint64_t size;
  std::memcpy(&size, file.range(0, 8, "the length of the header").data(), 8);
  if (size > max_header_bytes)
    bad_input("{}: not a safetensors file: a header of {} bytes, more than {}", file.name(), size, max_header_bytes);
  return static_cast<int64_t>(size);
}

}  // namespace

SafetensorsFile::SafetensorsFile(std::shared_ptr<const MappedFile> file) : file_(std::move(file)) {
  const int64_t size = header_size(*file_), data = 8 + size;
  const auto bytes = file_->range(8, size, "the header");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with('{')) bad_input("{}: not a safetensors file: the header is no JSON object", file_->name());
  const Json header = parse_json(text, file_->name() + ": header");

  const Reader reader{*file_};
  for (const auto& [name, value] : header.items()) {
    if (name != "__metadata__") {
      entries_.push_back(reader.entry(name, value, data));
      continue;
    }
    if (!value.is_object()) bad_input("{}: __metadata__ is no object", file_->name());
    for (const auto& [key, text_value] : value.items()) {
      if (!text_value.is_string()) bad_input("{}: metadata \"{}\" is no string", file_->name(), key);
      metadata_.emplace(key, text_value.get<std::string>());
    }
  }
  std::stable_sort(entries_.begin(), entries_.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
  });
  check_layout(*file_, entries_, data);
  for (size_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].name, i);
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto at = index_.find(std::string(name));
  return at == index_.end() ? nullptr : &entries_[at->second];
}

HostTensor SafetensorsFile::tensor(std::string_view name) const {
  const SafetensorsEntry* entry = find(name);
  if (!entry) bad_input("{}: no tensor \"{}\"", file_->name(), name);
  return tensor(*entry);
}

HostTensor SafetensorsFile::tensor(const SafetensorsEntry& entry) const {
  const auto bytes = file_->range(entry.offset, entry.bytes, entry.name);
  const auto alignment = static_cast<uintptr_t>(info(entry.type).block_bytes);
  if (reinterpret_cast<uintptr_t>(bytes.data()) % alignment == 0) return {entry.type, entry.sizes, bytes, file_};
  HostTensor copy = HostTensor::allocate(entry.type, entry.sizes);
  if (!bytes.empty()) std::memcpy(copy.mutable_bytes().data(), bytes.data(), bytes.size());
  return copy;
}

void write_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& t : tensors) order.push_back(&t);
  std::stable_sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    return info(a->tensor.type).block_bytes > info(b->tensor.type).block_bytes;
  });

  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  int64_t offset = 0;
  for (const NamedTensor* t : order) {
    const auto bytes = static_cast<int64_t>(t->tensor.bytes.size());
    const auto type =
        std::find_if(type_names.begin(), type_names.end(), [&](const TypeName& n) { return n.type == t->tensor.type; });
    if (type == type_names.end())
      throw_error(Exit::failed, "{}: tensor \"{}\": safetensors has no type {}", path.string(), t->name,
                  name(t->tensor.type));
    if (bytes != checked_mul(t->tensor.count(), info(t->tensor.type).block_bytes))
      throw_error(Exit::failed, "{}: tensor \"{}\": {} of {} with {} bytes", path.string(), t->name, type->name,
                  to_string(t->tensor.sizes), bytes);
    if (t->name.empty() || t->name == "__metadata__" || !is_utf8(t->name) || header.contains(t->name))
      throw_error(Exit::failed, "{}: \"{}\" can't name a tensor, or stands twice", path.string(),
                  sanitize_utf8(t->name));
    header[t->name] = {{"dtype", type->name}, {"shape", t->tensor.sizes}, {"data_offsets", {offset, offset + bytes}}};
    offset = checked_add(offset, bytes);
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize(static_cast<size_t>(round_up(static_cast<int64_t>(text.size()), 8)), ' ');

  AtomicFile file(path);
  const uint64_t size = text.size();
  file.write(std::as_bytes(std::span(&size, 1)));
  file.write(text);
  for (const NamedTensor* t : order) file.write(t->tensor.bytes);
  file.commit();
}

}  // namespace consonant
