// SPDX-License-Identifier: Apache-2.0
#pragma once

// A small Whisper written, for tests, in each of the formats that are read. Its numbers are exact in half precision.

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/byte_level.hpp"
#include "formats/gguf_types.hpp"
#include "formats/json.hpp"
#include "formats/safetensors.hpp"
#include "formats/whisper/tensors.hpp"
#include "formats/whisper/tokens.hpp"
#include "tensor/convert.hpp"

namespace consonant::testing_whisper {

class Bytes {
 public:
  template <class T>
  Bytes& number(T value) {
    const auto* from = reinterpret_cast<const char*>(&value);
    bytes_.append(from, sizeof value);
    return *this;
  }
  Bytes& i32(int64_t value) { return number(static_cast<int32_t>(value)); }
  Bytes& raw(std::string_view text) {
    bytes_.append(text);
    return *this;
  }
  Bytes& string(std::string_view text) {
    return number(static_cast<uint16_t>(text.size() + 1)).raw(text).raw(std::string_view("", 1));
  }
  const std::string& bytes() const { return bytes_; }
  void write(const std::filesystem::path& path) const { std::ofstream(path, std::ios::binary) << bytes_; }
  std::shared_ptr<const MappedFile> file(const std::string& name) const {
    const auto* from = reinterpret_cast<const std::byte*>(bytes_.data());
    return MappedFile::of_bytes(name, {from, from + bytes_.size()});
  }

 private:
  std::string bytes_;
};

struct Values {
  Sizes sizes;
  std::vector<float> values;
};

inline std::string as_type(DType type, const Values& v) {
  const int64_t columns = v.sizes.back(), rows = static_cast<int64_t>(v.values.size()) / columns;
  const auto stride = static_cast<size_t>(row_bytes(type, columns));
  std::string out(static_cast<size_t>(rows) * stride, '\0');
  for (int64_t r = 0; r < rows; ++r)
    encode_row(type, v.values.data() + r * columns,
               reinterpret_cast<std::byte*>(out.data()) + static_cast<size_t>(r) * stride, columns);
  return out;
}

struct SmallModel {
  WhisperSizes sizes{32, 64, 0, 80, {2, 2, 20}, {1, 4, 16}};
  std::map<std::string, Values> tensors;  // by GGUF's name, with the sizes that files have

  explicit SmallModel(int64_t vocabulary) {
    sizes.vocabulary = vocabulary;
    const int64_t d = sizes.width;
    add("enc.conv1.weight", {d, sizes.mel_bins, 3});
    add("enc.conv1.bias", {d});
    add("enc.conv2.weight", {d, d, 3});
    add("enc.conv2.bias", {d});
    add("enc.position_embd.weight", {sizes.encoder.positions, d});
    add("dec.position_embd.weight", {sizes.decoder.positions, d});
    add("token_embd.weight", {vocabulary, d});
    for (const std::string side : {"enc", "dec"}) {
      norm(side + ".output_norm");
      for (int64_t i = 0; i < (side == "enc" ? sizes.encoder : sizes.decoder).layers; ++i) {
        const std::string layer = fmt::format("{}.blk.{}.", side, i);
        attention(layer + "attn");
        if (side == "dec") attention(layer + "cross_attn");
        norm(layer + "ffn_norm");
        linear(layer + "ffn_up", sizes.feed_forward, d);
        linear(layer + "ffn_down", d, sizes.feed_forward);
      }
    }
  }

  // What the reader should make of a tensor: the taps of convolutions one after another.
  std::vector<float> expected(const std::string& name) const {
    const Values& v = tensors.at(name);
    if (v.sizes.size() != 3) return v.values;
    std::vector<float> out;
    for (int64_t r = 0; r < v.sizes[0]; ++r)
      for (int64_t k = 0; k < 3; ++k)
        for (int64_t c = 0; c < v.sizes[1]; ++c)
          out.push_back(v.values[static_cast<size_t>((r * v.sizes[1] + c) * 3 + k)]);
    return out;
  }

  // The bytes, further words of two of them, then the control tokens: "" for those that a file may leave out.
  std::vector<std::string> texts(int32_t end) const {
    std::vector<std::string> out(static_cast<size_t>(sizes.vocabulary));
    for (int32_t b = 0; b < 256; ++b)
      append_chars_of(std::string(1, static_cast<char>(b)), out[static_cast<size_t>(b)]);
    for (int32_t i = 256; i < end; ++i)
      out[static_cast<size_t>(i)] = out[static_cast<size_t>(i / 256 - 1)] + out[static_cast<size_t>(i % 256)];
    return out;
  }

 private:
  void add(const std::string& name, Sizes sizes) {
    Values v{std::move(sizes), {}};
    for (int64_t i = element_count(v.sizes); i > 0; --i) {
      state_ = state_ * 6364136223846793005u + 1442695040888963407u;
      v.values.push_back(static_cast<float>(static_cast<int>(state_ >> 56) - 128) / 64);
    }
    tensors.emplace(name, std::move(v));
  }
  void linear(const std::string& name, int64_t rows, int64_t columns, bool bias = true) {
    add(name + ".weight", {rows, columns});
    if (bias) add(name + ".bias", {rows});
  }
  void norm(const std::string& name) {
    add(name + ".weight", {sizes.width});
    add(name + ".bias", {sizes.width});
  }
  void attention(const std::string& name) {
    norm(name + "_norm");
    for (const char* part : {"_q", "_k", "_v", "_output"})
      linear(name + part, sizes.width, sizes.width, part != std::string("_k"));
  }

  uint64_t state_ = 1;
};

inline Json hf_config(const WhisperSizes& s) {
  return {{"model_type", "whisper"},
          {"architectures", {"WhisperForConditionalGeneration"}},
          {"d_model", s.width},
          {"vocab_size", s.vocabulary},
          {"num_mel_bins", s.mel_bins},
          {"encoder_ffn_dim", s.feed_forward},
          {"decoder_ffn_dim", s.feed_forward},
          {"encoder_layers", s.encoder.layers},
          {"encoder_attention_heads", s.encoder.heads},
          {"max_source_positions", s.encoder.positions},
          {"decoder_layers", s.decoder.layers},
          {"decoder_attention_heads", s.decoder.heads},
          {"max_target_positions", s.decoder.positions}};
}

inline void write_hf(const SmallModel& m, const std::filesystem::path& folder) {
  std::vector<NamedTensor> out;
  for (const auto& [name, v] : m.tensors) {
    HostTensor t = HostTensor::allocate(DType::f32, v.sizes);
    std::memcpy(t.mutable_bytes().data(), v.values.data(), v.values.size() * sizeof(float));
    out.push_back({"model." + whisper_own_name(name, &WhisperName::hf), t});
  }
  write_safetensors(folder / "model.safetensors", out);
  std::ofstream(folder / "config.json") << hf_config(m.sizes).dump();
}

// CTranslate2's model.bin, as a version and a type of the matrices ask.
class Ct2Writer {
 public:
  Ct2Writer(const SmallModel& model, DType type, uint32_t version = 6) : m_(model), type_(type), version_(version) {
    for (const char* conv : {"conv1", "conv2"})
      for (const char* leaf : {"weight", "bias"})
        add(fmt::format("encoder/{}/{}", conv, leaf), {fmt::format("enc.{}.{}", conv, leaf)});
    add("decoder/embeddings/weight", {"token_embd.weight"});
    side("encoder", "enc", m_.sizes.encoder);
    side("decoder", "dec", m_.sizes.decoder);
  }

  Bytes bytes() const {
    Bytes out;
    out.number(version_);
    if (version_ >= 2) out.string(kind).number(uint32_t{3});
    out.number(count_).raw(variables_.bytes());
    if (version_ >= 3) out.number(uint32_t{1}).string("decoder/projection/weight").string("decoder/embeddings/weight");
    return out;
  }

  void scalar(const std::string& name, int16_t value) {
    head(name, {}, 2, 2, 1);
    variables_.number(value);
  }

  std::string kind = "WhisperSpec";

 private:
  void head(const std::string& name, const Sizes& sizes, uint8_t code, uint8_t width, int64_t elements) {
    variables_.string(name).number(static_cast<uint8_t>(sizes.size()));
    for (const int64_t size : sizes) variables_.number(static_cast<uint32_t>(size));
    if (version_ >= 4)
      variables_.number(code).number(static_cast<uint32_t>(elements * width));
    else
      variables_.number(width).number(static_cast<uint32_t>(elements));
    ++count_;
  }

  // Tensors one after another, by rows; "" stands for as many zeros as the first has numbers.
  void add(const std::string& name, const std::vector<std::string>& ggufs) {
    Values all;
    for (const std::string& gguf : ggufs) {
      const Values& v = m_.tensors.at(gguf.empty() ? ggufs[0] : gguf);
      if (all.sizes.empty())
        all.sizes = v.sizes;
      else
        all.sizes[0] += v.sizes[0];
      all.values.insert(all.values.end(), v.values.begin(), v.values.end());
      if (gguf.empty())
        std::fill(all.values.end() - static_cast<std::ptrdiff_t>(v.values.size()), all.values.end(), 0.0f);
    }
    const auto count = static_cast<int64_t>(all.values.size());
    if (type_ == DType::i8 && all.sizes.size() > 1) return add_bytes(name, all);
    const bool half = type_ == DType::f16;
    head(name, all.sizes, half ? 4 : 0, half ? 2 : 4, count);
    variables_.raw(as_type(half ? DType::f16 : DType::f32, all));
  }

  // q = round(127 / greatest * x), row by row.
  void add_bytes(const std::string& name, const Values& all) {
    const auto rows = static_cast<size_t>(all.sizes[0]), columns = all.values.size() / rows;
    std::vector<float> scales;
    std::string quants;
    for (size_t r = 0; r < rows; ++r) {
      float greatest = 0;
      for (size_t c = 0; c < columns; ++c) greatest = std::max(greatest, std::abs(all.values[r * columns + c]));
      scales.push_back(greatest > 0 ? 127 / greatest : 1);
      for (size_t c = 0; c < columns; ++c)
        quants += static_cast<char>(static_cast<int8_t>(std::nearbyint(all.values[r * columns + c] * scales.back())));
    }
    head(name, all.sizes, 1, 1, static_cast<int64_t>(quants.size()));
    variables_.raw(quants);
    head(name + "_scale", {static_cast<int64_t>(rows)}, 0, 4, static_cast<int64_t>(rows));
    for (const float s : scales) variables_.number(s);
  }

  void norm(const std::string& name, const std::string& gguf) {
    add(name + "/gamma", {gguf + ".weight"});
    add(name + "/beta", {gguf + ".bias"});
  }
  void linear(const std::string& name, const std::vector<std::string>& ggufs) {
    std::vector<std::string> weights, biases;
    for (const std::string& g : ggufs) {
      weights.push_back(g + ".weight");
      // The keys' share of a bias is zeros; it stands second, or first of two.
      biases.push_back(g.ends_with("_k") ? "" : g + ".bias");
    }
    if (biases[0].empty()) {
      zeros_first(name + "/bias", biases[1]);
    } else {
      add(name + "/bias", biases);
    }
    add(name + "/weight", weights);
  }
  void zeros_first(const std::string& name, const std::string& gguf) {
    Values v = m_.tensors.at(gguf);
    v.values.insert(v.values.begin(), v.values.size(), 0.0f);
    v.sizes[0] *= 2;
    const bool half = type_ == DType::f16;
    head(name, v.sizes, half ? 4 : 0, half ? 2 : 4, v.sizes[0]);
    variables_.raw(as_type(half ? DType::f16 : DType::f32, v));
  }
  void side(const std::string& name, const std::string& gguf, const WhisperSizes::Side& s) {
    scalar(name + "/num_heads", static_cast<int16_t>(s.heads));
    add(name + "/position_encodings/encodings", {gguf + ".position_embd.weight"});
    norm(name + "/layer_norm", gguf + ".output_norm");
    for (int64_t i = 0; i < s.layers; ++i) {
      const std::string to = fmt::format("{}/layer_{}/", name, i), from = fmt::format("{}.blk.{}.", gguf, i);
      norm(to + "self_attention/layer_norm", from + "attn_norm");
      linear(to + "self_attention/linear_0", {from + "attn_q", from + "attn_k", from + "attn_v"});
      linear(to + "self_attention/linear_1", {from + "attn_output"});
      if (name == "decoder") {
        norm(to + "attention/layer_norm", from + "cross_attn_norm");
        linear(to + "attention/linear_0", {from + "cross_attn_q"});
        linear(to + "attention/linear_1", {from + "cross_attn_k", from + "cross_attn_v"});
        linear(to + "attention/linear_2", {from + "cross_attn_output"});
      }
      norm(to + "ffn/layer_norm", from + "ffn_norm");
      linear(to + "ffn/linear_0", {from + "ffn_up"});
      linear(to + "ffn/linear_1", {from + "ffn_down"});
    }
  }

  const SmallModel& m_;
  DType type_;
  uint32_t version_, count_ = 0;
  Bytes variables_;
};

// A file of whisper.cpp with matrices of a type.
inline Bytes ggml_file(const SmallModel& m, DType type, const std::vector<std::string>& words,
                       int64_t blocks_version = 2) {
  const WhisperSizes& s = m.sizes;
  Bytes out;
  out.i32(0x67676D6C).i32(s.vocabulary);
  out.i32(s.encoder.positions).i32(s.width).i32(s.encoder.heads).i32(s.encoder.layers);
  out.i32(s.decoder.positions).i32(s.width).i32(s.decoder.heads).i32(s.decoder.layers);
  out.i32(s.mel_bins).i32(is_quantized(type) ? 7 + 1000 * blocks_version : type == DType::f16);
  out.i32(s.mel_bins).i32(201).raw(std::string(static_cast<size_t>(s.mel_bins * 201 * 4), '\0'));
  out.i32(static_cast<int64_t>(words.size()));
  for (const std::string& word : words) {
    std::string bytes;
    append_bytes_of(word, bytes);
    out.i32(static_cast<int64_t>(bytes.size())).raw(bytes);
  }
  for (const auto& [gguf, v] : m.tensors) {
    const bool bias_of_conv = gguf.ends_with("conv1.bias") || gguf.ends_with("conv2.bias");
    const bool plain = v.sizes.size() == 1 || gguf.ends_with("position_embd.weight");
    const DType stored = plain ? DType::f32 : v.sizes.size() == 3 && is_quantized(type) ? DType::f16 : type;
    const std::string name = whisper_own_name(gguf, &WhisperName::ggml);
    Sizes sizes = v.sizes;
    if (bias_of_conv) sizes.push_back(1);
    out.i32(static_cast<int64_t>(sizes.size())).i32(static_cast<int64_t>(name.size())).i32(*ggml_type_of(stored));
    for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) out.i32(*size);
    out.raw(name).raw(as_type(stored, v));
  }
  return out;
}

}  // namespace consonant::testing_whisper
