// SPDX-License-Identifier: Apache-2.0
// Whisper as CTranslate2 has it: queries, keys and values in one matrix, eight-bit matrices with a scale a row.
#include <cmath>
#include <cstring>
#include <utility>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "formats/ct2.hpp"
#include "formats/hf_tokenizer.hpp"
#include "formats/whisper/tensors.hpp"
#include "formats/whisper/tokens.hpp"
#include "formats/whisper/vocabulary_files.hpp"
#include "tensor/blocks.hpp"
#include "tensor/half.hpp"

namespace consonant {

namespace {

constexpr int64_t gelu = 3;  // CTranslate2's number of the exact form

// A number of rows of a variable, or of all of it.
struct Rows {
  int64_t first, count;
};

class WhisperReader {
 public:
  explicit WhisperReader(std::shared_ptr<const Ct2File> ct2) : ct2_(std::move(ct2)) {}

  ModelFile read(WhisperSizes& sizes) {
    if (ct2_->kind != "WhisperSpec")
      fail("is a model of kind {}; of CTranslate2's only WhisperSpec is supported",
           ct2_->kind.empty() ? "TransformerBase" : ct2_->kind);
    check_options();
    sizes = read_sizes();
    add_top();
    add_side("encoder", "enc", sizes.encoder.layers);
    add_side("decoder", "dec", sizes.decoder.layers);
    ModelFile model;
    model.tensors = whisper_tensors(sizes, std::move(parts_), source(), [](std::string_view gguf) {
      return std::string(gguf);  // each has been added, so none is missing
    });
    model.format = fmt::format("CTranslate2 folder (version {})", ct2_->version);
    model.file_bytes = ct2_->file->size();
    model.release = [ct2 = ct2_](std::span<const std::byte> part) { ct2->file->release(part); };
    return model;
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    bad_input("{}: {}", source(), fmt::format(format, std::forward<Args>(args)...));
  }

  const std::string& source() const { return ct2_->file->name(); }

  const Ct2Variable& need(const std::string& name) const {
    const Ct2Variable* found = ct2_->find(name);
    if (!found) fail("no variable \"{}\"", name);
    return *found;
  }

  // A whole number kept as a variable without sizes.
  int64_t scalar(const std::string& name, int64_t fallback) const {
    const Ct2Variable* v = ct2_->find(name);
    if (!v) return fallback;
    if (element_count(v->sizes) != 1) fail("\"{}\" is {}, should be one number", name, to_string(v->sizes));
    const HostTensor t = ct2_->tensor(*v);
    if (v->type == DType::i8) return static_cast<int8_t>(t.bytes[0]);
    if (v->type == DType::i16) return load<int16_t>(t.bytes);
    if (v->type == DType::i32) return load<int32_t>(t.bytes);
    fail("\"{}\" is {}, should be a whole number", name, consonant::name(v->type));
  }

  template <class T>
  static T load(std::span<const std::byte> from) {
    T value;
    std::memcpy(&value, from.data(), sizeof value);
    return value;
  }

  // What a file may state of the network besides its weights, with the one value that Whisper has.
  void check_options() const {
    const std::pair<std::string, int64_t> wanted[] = {{"decoder/activation", gelu},
                                                      {"decoder/pre_norm", 1},
                                                      {"decoder/scale_embeddings", 0},
                                                      {"decoder/alibi", 0},
                                                      {"decoder/start_from_zero_embedding", 0}};
    for (const auto& [name, value] : wanted)
      if (const int64_t found = scalar(name, value); found != value)
        fail("\"{}\" is {}, where Whisper has {}", name, found, value);
  }

  Sizes sizes_of(const std::string& name, size_t rank) const {
    const Ct2Variable& v = need(name);
    if (v.sizes.size() != rank) fail("\"{}\" is {}, should have {} dimensions", name, to_string(v.sizes), rank);
    return v.sizes;
  }

  int64_t layers(const std::string& side) const {
    int64_t n = 0;
    while (ct2_->find(fmt::format("{}/layer_{}/self_attention/linear_0/weight", side, n))) ++n;
    return n;
  }

  WhisperSizes read_sizes() const {
    constexpr int64_t usual_head = 64;
    WhisperSizes s;
    const Sizes embedding = sizes_of("decoder/embeddings/weight", 2);
    s.vocabulary = embedding[0], s.width = embedding[1];
    s.mel_bins = sizes_of("encoder/conv1/weight", 3)[1];
    s.feed_forward = sizes_of("encoder/layer_0/ffn/linear_0/weight", 2)[0];
    for (const auto& [name, side] : {std::pair("encoder", &s.encoder), std::pair("decoder", &s.decoder)}) {
      const std::string prefix(name);
      side->layers = layers(prefix);
      side->heads = scalar(prefix + "/num_heads", s.width / usual_head);
      side->positions = sizes_of(prefix + "/position_encodings/encodings", 2)[0];
    }
    return s;
  }

  // The scales of a matrix of whole numbers: one for all rows or one a row. A number of the file is
  // round(value * scale).
  std::vector<float> scales_of(const std::string& name, const Ct2Variable& v) const {
    const Ct2Variable& s = need(name + "_scale");
    const int64_t rows = v.sizes.empty() ? 1 : v.sizes[0], count = element_count(s.sizes);
    if (!is_float(s.type) || (count != 1 && count != rows))
      fail("\"{}_scale\" is {} of {}, should be a float for each of {} rows", name, consonant::name(s.type),
           to_string(s.sizes), rows);
    std::vector<float> scales = ct2_->tensor(s).to_floats();
    constexpr float least = 1 / 65504.0f;  // its inverse is the greatest number of half precision
    for (const float x : scales)
      if (!std::isfinite(x) || !(x >= least)) fail("\"{}_scale\" holds {}, should be {} at least", name, x, least);
    if (count != rows) scales.assign(static_cast<size_t>(rows), scales[0]);
    return scales;
  }

  // Some rows of a variable, as a tensor of GGUF's: a view, or made of whole numbers and scales.
  void add(const std::string& gguf, const std::string& name, std::optional<Rows> rows = std::nullopt) {
    const Ct2Variable& v = need(name);
    if (v.sizes.empty() || element_count(v.sizes) == 0) fail("\"{}\" is {}", name, to_string(v.sizes));
    const Rows part = rows.value_or(Rows{0, v.sizes[0]});
    Sizes sizes = v.sizes;
    sizes[0] = part.count;
    WhisperPart out{name, v.type, std::move(sizes), nullptr, ct2_->file};
    const int64_t stride = v.bytes / v.sizes[0];
    const auto view = [ct2 = ct2_, v, part, stride, sizes = out.sizes] {
      return HostTensor{v.type, sizes, ct2->file->range(v.offset + part.first * stride, part.count * stride, "rows"),
                        ct2->file};
    };
    if (is_float(v.type)) {
      out.load = view;
    } else if (v.type == DType::i8 || v.type == DType::i16) {
      const std::vector<float> all = scales_of(name, v);
      std::vector<float> scales(all.begin() + part.first, all.begin() + part.first + part.count);
      const bool blocks = v.type == DType::i8 && v.sizes.size() == 2 && v.sizes[1] % BlockQ8_0::size == 0;
      out.type = blocks ? DType::q8_0 : DType::f32;
      out.load = [view, ct2 = ct2_, scales = std::move(scales), blocks] {
        const HostTensor stored = view();
        HostTensor made = blocks ? to_blocks(stored, scales) : to_floats(stored, scales);
        ct2->file->release(stored.bytes);
        return made;
      };
    } else {
      fail("\"{}\" is {}: no weight's type", name, consonant::name(v.type));
    }
    parts_.emplace(gguf, std::move(out));
  }

  // The whole numbers stay as they are, and each block of 32 gets its row's step in half precision, off by 2^-12 of
  // itself at most. What rounding to eight bits cost is fifty times that.
  static HostTensor to_blocks(const HostTensor& stored, const std::vector<float>& scales) {
    HostTensor out = HostTensor::allocate(DType::q8_0, stored.sizes);
    const std::byte* from = stored.bytes.data();
    std::byte* to = out.mutable_bytes().data();
    const int64_t blocks = stored.columns() / BlockQ8_0::size;
    for (const float scale : scales)
      for (int64_t b = 0; b < blocks; ++b, from += BlockQ8_0::size, to += sizeof(BlockQ8_0)) {
        const Half step = to_half(1 / scale);
        std::memcpy(to, &step, sizeof step);
        std::memcpy(to + sizeof step, from, BlockQ8_0::size);
      }
    return out;
  }

  static HostTensor to_floats(const HostTensor& stored, const std::vector<float>& scales) {
    HostTensor out = HostTensor::allocate(DType::f32, stored.sizes);
    const auto per_row = static_cast<size_t>(stored.count()) / scales.size();
    auto* to = reinterpret_cast<float*>(out.mutable_bytes().data());
    for (size_t i = 0; i < scales.size() * per_row; ++i) {
      const float q = stored.type == DType::i8 ? static_cast<float>(static_cast<int8_t>(stored.bytes[i]))
                                               : static_cast<float>(load<int16_t>(stored.bytes.subspan(2 * i, 2)));
      to[i] = q / scales[i / per_row];
    }
    return out;
  }

  void add_norm(const std::string& gguf, const std::string& name) {
    add(gguf + ".weight", name + "/gamma");
    add(gguf + ".bias", name + "/beta");
  }

  // A matrix that holds the rows of several projections.
  void add_joined(const std::string& name, const std::vector<std::string>& ggufs) {
    const Ct2Variable &weight = need(name + "/weight"), &bias = need(name + "/bias");
    const auto count = static_cast<int64_t>(ggufs.size());
    const int64_t rows = weight.sizes.empty() ? 0 : weight.sizes[0];
    if (rows % count != 0)
      fail("\"{}/weight\" is {}: {} matrices can't share it", name, to_string(weight.sizes), count);
    if (bias.sizes != Sizes{rows})
      fail("\"{}/bias\" is {}, should be {}", name, to_string(bias.sizes), to_string({rows}));
    for (int64_t i = 0; i < count; ++i) {
      const Rows part{i * rows / count, rows / count};
      const std::string& gguf = ggufs[static_cast<size_t>(i)];
      add(gguf + ".weight", name + "/weight", part);
      if (gguf.ends_with("_k"))
        check_zero(name + "/bias", bias, part);
      else
        add(gguf + ".bias", name + "/bias", part);
    }
  }

  // Whisper's keys have no bias; in a joined one their share is zeros.
  void check_zero(const std::string& name, const Ct2Variable& bias, Rows part) const {
    if (!is_float(bias.type)) fail("\"{}\" is {}: no bias's type", name, consonant::name(bias.type));
    const std::vector<float> values = ct2_->tensor(bias).to_floats();
    for (int64_t i = part.first; i < part.first + part.count; ++i)
      if (values[static_cast<size_t>(i)] != 0)
        fail("\"{}\": element {} is {}: the keys of Whisper have no bias", name, i, values[static_cast<size_t>(i)]);
  }

  void add_top() {
    for (const char* conv : {"conv1", "conv2"})
      for (const char* leaf : {"weight", "bias"})
        add(fmt::format("enc.{}.{}", conv, leaf), fmt::format("encoder/{}/{}", conv, leaf));
    add("token_embd.weight", "decoder/embeddings/weight");
  }

  void add_side(const std::string& name, const std::string& gguf, int64_t layers) {
    add(gguf + ".position_embd.weight", name + "/position_encodings/encodings");
    add_norm(gguf + ".output_norm", name + "/layer_norm");
    for (int64_t i = 0; i < layers; ++i) {
      const std::string from = fmt::format("{}/layer_{}/", name, i), to = fmt::format("{}.blk.{}.", gguf, i);
      add_norm(to + "attn_norm", from + "self_attention/layer_norm");
      add_joined(from + "self_attention/linear_0", {to + "attn_q", to + "attn_k", to + "attn_v"});
      add_joined(from + "self_attention/linear_1", {to + "attn_output"});
      if (name == "decoder") {
        add_norm(to + "cross_attn_norm", from + "attention/layer_norm");
        add_joined(from + "attention/linear_0", {to + "cross_attn_q"});
        add_joined(from + "attention/linear_1", {to + "cross_attn_k", to + "cross_attn_v"});
        add_joined(from + "attention/linear_2", {to + "cross_attn_output"});
      }
      add_norm(to + "ffn_norm", from + "ffn/layer_norm");
      add_joined(from + "ffn/linear_0", {to + "ffn_up"});
      add_joined(from + "ffn/linear_1", {to + "ffn_down"});
    }
  }

  std::shared_ptr<const Ct2File> ct2_;
  WhisperParts parts_;
};

}  // namespace

ModelFile read_ct2_whisper(const std::shared_ptr<const Ct2File>& ct2, WhisperSizes& sizes) {
  return WhisperReader(ct2).read(sizes);
}

ModelFile open_ct2_folder(const std::filesystem::path& folder) {
  const auto path = folder / "model.bin";
  const auto ct2 = std::make_shared<const Ct2File>(parse_ct2(MappedFile::open(path)));
  WhisperSizes sizes;
  ModelFile model = read_ct2_whisper(ct2, sizes);
  model.files = {path};
  model.meta = std::make_shared<Meta>();
  add_whisper_folder(folder, sizes, *model.meta);
  return model;
}

}  // namespace consonant
