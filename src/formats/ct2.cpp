// SPDX-License-Identifier: Apache-2.0
#include "formats/ct2.hpp"

#include <array>
#include <optional>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/utf8.hpp"
#include "formats/cursor.hpp"

namespace consonant {

namespace {

constexpr int64_t newest_version = 6;
constexpr int first_with_kind = 2, first_with_aliases = 3, first_with_types = 4;

std::optional<DType> type_of_code(uint8_t code) {
  constexpr std::array<DType, 6> types = {DType::f32, DType::i8, DType::i16, DType::i32, DType::f16, DType::bf16};
  return code < types.size() ? std::optional(types[code]) : std::nullopt;
}

// Files before version 4 tell only how wide an element is.
std::optional<DType> type_of_width(uint8_t bytes) {
  if (bytes == 4) return DType::f32;
  if (bytes == 2) return DType::i16;
  if (bytes == 1) return DType::i8;
  return std::nullopt;
}

class Reader {
 public:
  explicit Reader(std::shared_ptr<const MappedFile> file) : cursor_(file) { out_.file = std::move(file); }

  Ct2File read() {
    out_.version = cursor_.number<uint32_t>("the version");
    if (out_.version < 1 || out_.version > newest_version)
      fail("is no model.bin of CTranslate2 that can be read: version {}, should be 1 to {}", out_.version,
           newest_version);
    if (out_.version >= first_with_kind) {
      out_.kind = text("the kind of model");
      out_.revision = cursor_.number<uint32_t>("the revision");
    }
    const auto count = cursor_.number<uint32_t>("the number of variables");
    for (uint32_t i = 0; i < count; ++i) read_variable();
    if (out_.version >= first_with_aliases) read_aliases();
    if (cursor_.left() != 0) fail("{} bytes follow the last variable", cursor_.left());
    return std::move(out_);
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    bad_input("{}: {}", cursor_.file().name(), fmt::format(format, std::forward<Args>(args)...));
  }

  // A length that counts a closing zero, and the bytes.
  std::string text(std::string_view what) {
    const auto length = cursor_.number<uint16_t>(what);
    std::string_view bytes = cursor_.text(length, what);
    if (bytes.empty() || bytes.back() != '\0') fail("{} doesn't end with a zero", what);
    bytes.remove_suffix(1);
    if (!is_utf8(bytes) || bytes.find('\0') != bytes.npos) fail("{} is no text", what);
    return std::string(bytes);
  }

  void read_variable() {
    const std::string name = text("the name of a variable");
    Ct2Variable v{};
    v.sizes.resize(cursor_.number<uint8_t>("a rank"));
    for (int64_t& size : v.sizes) size = cursor_.number<uint32_t>("a size");
    const auto code = cursor_.number<uint8_t>("a type");
    const int64_t stated = cursor_.number<uint32_t>("a number of bytes");
    const bool coded = out_.version >= first_with_types;
    const auto type = coded ? type_of_code(code) : type_of_width(code);
    if (!type) fail("variable \"{}\": its type is {}, which isn't known", name, code);
    v.type = *type;
    v.bytes = coded ? stated : stated * code;
    const int64_t wanted = checked_mul(element_count(v.sizes), info(v.type).block_bytes);
    if (v.bytes != wanted)
      fail("variable \"{}\": {} bytes, but {} of {} has {}", name, v.bytes, consonant::name(v.type), to_string(v.sizes),
           wanted);
    v.offset = cursor_.at();
    cursor_.take(v.bytes, name);
    if (!out_.variables.emplace(name, std::move(v)).second) fail("variable \"{}\" stands twice", name);
  }

  void read_aliases() {
    const auto count = cursor_.number<uint32_t>("the number of aliases");
    for (uint32_t i = 0; i < count; ++i) {
      const std::string alias = text("an alias"), name = text("the name behind an alias");
      const Ct2Variable* found = out_.find(name);
      if (!found) fail("alias \"{}\" stands for \"{}\", which isn't there", alias, name);
      if (!out_.variables.emplace(alias, *found).second) fail("alias \"{}\" is another variable's name", alias);
    }
  }

  Cursor cursor_;
  Ct2File out_;
};

}  // namespace

const Ct2Variable* Ct2File::find(const std::string& name) const {
  const auto at = variables.find(name);
  return at == variables.end() ? nullptr : &at->second;
}

HostTensor Ct2File::tensor(const Ct2Variable& v) const {
  return {v.type, v.sizes, file->range(v.offset, v.bytes, "a variable"), file};
}

Ct2File parse_ct2(std::shared_ptr<const MappedFile> file) { return Reader(std::move(file)).read(); }

bool is_ct2(const MappedFile& file) {
  const std::string_view text = file.text();
  if (text.size() < 7 || text[0] < first_with_kind || text[0] > newest_version ||
      text.substr(1, 3) != std::string(3, '\0'))
    return false;
  const auto length =
      static_cast<size_t>(static_cast<uint8_t>(text[4])) | static_cast<size_t>(static_cast<uint8_t>(text[5])) << 8;
  return length > 0 && length < 64 && 6 + length <= text.size() && text[6 + length - 1] == '\0' &&
         text.substr(6, length - 1)
                 .find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") == text.npos;
}

bool is_ct2_folder(const std::filesystem::path& folder) {
  return file_exists(folder / "model.bin") && !file_exists(folder / "model.safetensors") &&
         !file_exists(folder / "model.safetensors.index.json");
}

}  // namespace consonant
