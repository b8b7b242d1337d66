// SPDX-License-Identifier: Apache-2.0
#include "formats/ggml.hpp"

#include <array>
#include <utility>

#include "base/byte_level.hpp"
#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/utf8.hpp"
#include "formats/cursor.hpp"
#include "formats/gguf_types.hpp"
#include "formats/names/whisper.hpp"
#include "formats/whisper/tokens.hpp"

namespace consonant {

namespace {

constexpr int64_t spectrum_bins = 201;  // of a window of 400 samples
constexpr int32_t version_factor = 1000, block_version = 2;

class Reader {
 public:
  explicit Reader(std::shared_ptr<const MappedFile> file) : cursor_(file) { out_.file = std::move(file); }

  GgmlFile read() {
    cursor_.take(4, "the magic number");
    read_sizes();
    read_filters();
    read_words();
    while (cursor_.left() > 0) read_tensor();
    const auto up = out_.parts.find("enc.blk.0.ffn_up.weight");
    if (up == out_.parts.end()) fail("no tensor \"encoder.blocks.0.mlp.0.weight\"");
    if (up->second.sizes.size() != 2) fail("tensor \"encoder.blocks.0.mlp.0.weight\" is no matrix");
    out_.sizes.feed_forward = up->second.sizes[0];
    return std::move(out_);
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    bad_input("{}: {}", cursor_.file().name(), fmt::format(format, std::forward<Args>(args)...));
  }

  int64_t number(std::string_view what) { return cursor_.number<int32_t>(what); }

  int64_t positive(std::string_view what, int64_t most) {
    const int64_t n = number(what);
    if (n < 1 || n > most) fail("is no Whisper model of whisper.cpp: {} is {}, should be 1 to {}", what, n, most);
    return n;
  }

  void read_sizes() {
    constexpr int64_t widest = 1 << 16, most_layers = 1024, most_positions = 1 << 20;
    WhisperSizes& s = out_.sizes;
    s.vocabulary = positive("the size of the vocabulary", 1 << 20);
    s.encoder.positions = positive("the number of audio positions", most_positions);
    s.width = positive("the width of the encoder", widest);
    s.encoder.heads = positive("the number of encoder heads", widest);
    s.encoder.layers = positive("the number of encoder layers", most_layers);
    s.decoder.positions = positive("the number of text positions", most_positions);
    if (const int64_t width = positive("the width of the decoder", widest); width != s.width)
      fail("is no Whisper model of whisper.cpp: widths of {} and {}", s.width, width);
    s.decoder.heads = positive("the number of decoder heads", widest);
    s.decoder.layers = positive("the number of decoder layers", most_layers);
    s.mel_bins = positive("the number of mel bins", 1024);
    const int64_t type = number("the type");
    if (type < 0) fail("the type is {}", type);
    blocks_version_ = type / version_factor;
  }

  // The filters are a table that the engine has too; they only have to fit.
  void read_filters() {
    const int64_t rows = number("the number of mel filters"), columns = number("the length of a mel filter");
    if (rows != out_.sizes.mel_bins || columns != spectrum_bins)
      fail("mel filters of [{}, {}], should be [{}, {}]", rows, columns, out_.sizes.mel_bins, spectrum_bins);
    cursor_.take(rows * columns * static_cast<int64_t>(sizeof(float)), "the mel filters");
  }

  void read_words() {
    const int64_t count = number("the number of words");
    if (count < 0 || count > out_.sizes.vocabulary)
      fail("{} words for a vocabulary of {}", count, out_.sizes.vocabulary);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t bytes = number("the length of a word");
      out_.words.push_back(cursor_.text(bytes, "a word"));
    }
  }

  DType type_of(int64_t number, std::string_view name) const {
    const auto type = number < 0 ? std::nullopt : dtype_of_ggml(static_cast<uint32_t>(number));
    if (!type || !(is_float(*type) || is_quantized(*type))) {
      const auto known = number < 0 ? std::string_view() : ggml_type_name(static_cast<uint32_t>(number));
      fail("tensor \"{}\" is of type {}{}, which isn't supported", name, number,
           known.empty() ? "" : fmt::format(" ({})", known));
    }
    if (is_quantized(*type) && blocks_version_ != block_version)
      fail("tensor \"{}\": blocks of version {}; only version {} is supported, so quantise the original anew", name,
           blocks_version_, block_version);
    return *type;
  }

  void read_tensor() {
    const int64_t rank = number("a number of dimensions"), length = number("the length of a name"),
                  code = number("an element type");
    if (rank < 1 || rank > 4) fail("a tensor has {} dimensions, should have 1 to 4", rank);
    Sizes sizes(static_cast<size_t>(rank));
    for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) *size = number("a dimension");
    const std::string name(cursor_.text(length, "the name of a tensor"));
    if (!is_utf8(name)) fail("the name of a tensor is no text");
    const DType type = type_of(code, name);
    for (const int64_t size : sizes)
      if (size < 1) fail("tensor \"{}\" is {}", name, to_string(sizes));
    const auto gguf = whisper_gguf_name(name, &WhisperName::ggml);
    if (!gguf) fail("tensor \"{}\" isn't one of Whisper's", name);
    const int64_t columns = sizes.back();
    if (columns % info(type).block != 0)
      fail("tensor \"{}\": rows of {} can't be {}, whose blocks have {}", name, columns, consonant::name(type),
           info(type).block);
    const auto bytes = cursor_.take(checked_mul(element_count(sizes) / columns, row_bytes(type, columns)),
                                    fmt::format("tensor \"{}\"", name));
    // The biases of the convolutions are [d, 1] there.
    if (gguf->ends_with(".bias") && sizes.size() == 2 && sizes[1] == 1) sizes.pop_back();
    WhisperPart part{name, type, sizes,
                     [type, sizes, bytes, file = out_.file] {
                       return HostTensor{type, sizes, bytes, file};
                     },
                     out_.file};
    if (!out_.parts.emplace(*gguf, std::move(part)).second) fail("tensor \"{}\" stands twice", name);
  }

  Cursor cursor_;
  GgmlFile out_;
  int64_t blocks_version_ = 0;
};

// The words in byte-level BPE's alphabet, with room for the control tokens.
std::vector<std::string> texts_of(const GgmlFile& ggml, const WhisperControls& controls) {
  if (ggml.words.size() < static_cast<size_t>(controls.end))
    bad_input("{}: {} words; a vocabulary of {} has {} before its control tokens", ggml.file->name(), ggml.words.size(),
              ggml.sizes.vocabulary, controls.end);
  std::vector<std::string> texts(static_cast<size_t>(ggml.sizes.vocabulary));
  for (size_t i = 0; i < static_cast<size_t>(controls.end); ++i) append_chars_of(ggml.words[i], texts[i]);
  return texts;
}

}  // namespace

GgmlFile parse_ggml(std::shared_ptr<const MappedFile> file) { return Reader(std::move(file)).read(); }

ModelFile read_ggml(GgmlFile ggml) {
  const std::string& source = ggml.file->name();
  ModelFile model;
  model.format = "whisper.cpp file";
  model.files = {source};
  model.file_bytes = ggml.file->size();
  model.tensors = whisper_tensors(ggml.sizes, std::move(ggml.parts), source,
                                  [](std::string_view gguf) { return whisper_own_name(gguf, &WhisperName::ggml); });
  const WhisperControls controls = whisper_controls(ggml.sizes.vocabulary, source);
  WhisperTokens tokens;
  tokens.texts = texts_of(ggml, controls);
  tokens.multilingual = ggml.sizes.vocabulary != 51864;
  model.meta = std::make_shared<Meta>();
  add_whisper_metadata(ggml.sizes, sanitize_utf8(std::filesystem::path(source).stem().string()), source, *model.meta);
  add_whisper_lists({}, ggml.sizes, tokens.texts, &controls, *model.meta);
  add_whisper_tokenizer(std::move(tokens), controls, *model.meta);
  model.release = [file = ggml.file](std::span<const std::byte> part) { file->release(part); };
  return model;
}

ModelFile open_ggml(const std::filesystem::path& path) { return read_ggml(parse_ggml(MappedFile::open(path))); }

}  // namespace consonant
