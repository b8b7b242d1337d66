// SPDX-License-Identifier: Apache-2.0
#include "engine/sequence_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "device/accelerator.hpp"
#include "formats/json.hpp"
#include "formats/mapped_file.hpp"
#include "formats/sha256.hpp"

namespace consonant {

namespace {

constexpr std::string_view magic = "CNSNTSEQ";
constexpr uint32_t version = 1;
constexpr int64_t prefix_bytes = 16, digest_bytes = 32, at_once = int64_t{16} << 20;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string number(uint32_t n) {
  std::string bytes(4, '\0');
  for (int i = 0; i < 4; ++i) bytes[static_cast<size_t>(i)] = static_cast<char>(n >> 8 * i & 255);
  return bytes;
}

uint32_t number_at(std::span<const std::byte> bytes, size_t at) {
  uint32_t n = 0;
  for (size_t i = 0; i < 4; ++i) n |= std::to_integer<uint32_t>(bytes[at + i]) << 8 * i;
  return n;
}

// A file whose end is the checksum of what precedes.
class SummedFile {
 public:
  explicit SummedFile(const std::filesystem::path& path) : file_(path) {}

  void write(std::span<const std::byte> bytes) {
    sum_.add(bytes);
    file_.write(bytes);
  }
  void commit() {
    file_.write(std::span<const std::byte>(sum_.finish()));
    file_.commit();
  }

 private:
  AtomicFile file_;
  Sha256 sum_;
};

// Calls fn(piece of the part, piece in the host's memory to fill or to read) piece by piece.
template <class F>
void in_pieces(std::span<std::byte> part, const F& fn) {
  for (size_t at = 0; at < part.size(); at += static_cast<size_t>(at_once))
    fn(part.subspan(at, std::min(part.size() - at, static_cast<size_t>(at_once))));
}

struct Saved {
  std::shared_ptr<const MappedFile> file;
  std::string model, kv;
  std::vector<int32_t> tokens;
  int64_t first = 0, end = 0;  // of the parts
};

std::vector<int32_t> tokens_of(const Json& header, const std::string& name) {
  const auto found = header.find("tokens");
  if (found == header.end() || !found->is_array()) bad_input("{}: its header has no list \"tokens\"", name);
  std::vector<int32_t> tokens;
  for (const Json& token : *found) {
    if (!token.is_number_unsigned() || token.get<uint64_t>() > INT32_MAX)
      bad_input("{}: its \"tokens\" aren't all token ids", name);
    tokens.push_back(token.get<int32_t>());
  }
  return tokens;
}

Saved open_saved(const std::filesystem::path& path) {
  Saved saved;
  saved.file = MappedFile::open(path);
  const std::string& name = saved.file->name();
  const auto bytes = saved.file->bytes();
  if (!saved.file->text().starts_with(magic)) bad_input("{}: is no saved sequence", name);
  if (saved.file->size() < prefix_bytes + digest_bytes) bad_input("{}: is cut short", name);
  const auto content = bytes.first(bytes.size() - static_cast<size_t>(digest_bytes));
  Sha256 sum;
  sum.add(content);
  const Sha256::Digest digest = sum.finish();
  if (!std::equal(digest.begin(), digest.end(), bytes.end() - digest_bytes))
    bad_input("{}: is damaged or cut short: its checksum isn't that of its content", name);
  if (const uint32_t found = number_at(bytes, magic.size()); found != version)
    bad_input("{}: is of version {}; this program knows version {}", name, found, version);
  const int64_t header_bytes = number_at(bytes, magic.size() + 4);
  saved.end = static_cast<int64_t>(content.size());
  saved.first = prefix_bytes + header_bytes;
  if (saved.first > saved.end) bad_input("{}: a header of {} bytes", name, header_bytes);
  const Json header = parse_json(saved.file->text().substr(prefix_bytes, static_cast<size_t>(header_bytes)), name);
  const auto text = [&](const char* key) {
    if (!header.is_object() || !header.contains(key) || !header[key].is_string())
      bad_input("{}: its header has no text \"{}\"", name, key);
    return header[key].get<std::string>();
  };
  saved.model = text("model"), saved.kv = text("kv"), saved.tokens = tokens_of(header, name);
  return saved;
}

}  // namespace

void save_sequence(const std::filesystem::path& path, Runner& runner, int sequence, std::span<const int32_t> tokens,
                   const std::string& model) {
  const std::string header = Json{{"model", model},
                                  {"kv", name(runner.cache().layout().type)},
                                  {"tokens", std::vector<int32_t>(tokens.begin(), tokens.end())}}
                                 .dump();
  if (header.size() > UINT32_MAX) bad_usage("a sequence of {} tokens can't be saved", tokens.size());
  SummedFile file(path);
  file.write(bytes_of(std::string(magic) + number(version) + number(static_cast<uint32_t>(header.size())) + header));
  Accelerator* const accelerator = runner.device().accelerator.get();
  const PinnedBuffer staging = accelerator ? PinnedBuffer(at_once, *accelerator) : PinnedBuffer();
  for (const std::span<std::byte> part : runner.parts(sequence))
    in_pieces(part, [&](std::span<std::byte> piece) {
      if (!accelerator) return file.write(piece);
      accelerator->download(staging.data(), piece.data(), static_cast<int64_t>(piece.size()));
      accelerator->wait();
      file.write({staging.data(), piece.size()});
    });
  file.commit();
}

std::vector<int32_t> restore_sequence(const std::filesystem::path& path, Runner& runner, int sequence,
                                      const std::string& model) {
  const Saved saved = open_saved(path);
  const std::string& name = saved.file->name();
  if (saved.model != model) bad_input("{}: was saved with another model", name);
  const std::string_view kv = consonant::name(runner.cache().layout().type);
  if (saved.kv != kv) bad_input("{}: was saved with a cache of {}, but this one is of {}", name, saved.kv, kv);
  const auto length = static_cast<int64_t>(saved.tokens.size());
  if (length > runner.context())
    bad_input("{}: its {} tokens don't fit the context of {}", name, length, runner.context());
  for (const int32_t token : saved.tokens)
    if (token >= runner.model().vocabulary)
      bad_input("{}: token id {}: the vocabulary has {} tokens", name, token, runner.model().vocabulary);
  const int64_t wanted = runner.parts_bytes(length), held = saved.end - saved.first;
  if (held != wanted) bad_input("{}: holds {} bytes of state, but {} tokens have {}", name, held, length, wanted);

  runner.truncate(sequence, 0);
  runner.cache().extend(sequence, length);
  Accelerator* const accelerator = runner.device().accelerator.get();
  const std::byte* from = saved.file->bytes().data() + saved.first;
  for (const std::span<std::byte> part : runner.parts(sequence)) {
    if (accelerator)
      accelerator->upload_now(part.data(), from, static_cast<int64_t>(part.size()));
    else
      std::memcpy(part.data(), from, part.size());
    from += part.size();
  }
  return saved.tokens;
}

std::string fingerprint(const ModelFile& file, const std::vector<std::string>& overrides) {
  constexpr int64_t samples = 64, sample_bytes = 65536;
  Sha256 sum;
  std::vector<std::filesystem::path> paths = file.files;
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    const auto mapped = MappedFile::open(path);
    const int64_t size = mapped->size();
    sum.add(fmt::format("{} bytes\n", size));
    if (size <= samples * sample_bytes) {
      sum.add(mapped->bytes());
      continue;
    }
    for (int64_t i = 0; i < samples; ++i)
      sum.add(mapped->range((size - sample_bytes) / (samples - 1) * i, sample_bytes, "a sample"));
  }
  for (const std::string& text : overrides) sum.add(text + "\n");
  return hexadecimal(sum.finish());
}

}  // namespace consonant
