// SPDX-License-Identifier: Apache-2.0
#include "formats/whisper/tensors.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "formats/names/names.hpp"

namespace consonant {

namespace {

constexpr int64_t taps = 3;  // of both convolutions

struct Wanted {
  std::string name;
  Sizes sizes;  // as files have them
};

// Weights of a linear layer, of a norm.
void add_linear(std::vector<Wanted>& out, const std::string& name, int64_t rows, int64_t columns, bool bias) {
  out.push_back({name + ".weight", {rows, columns}});
  if (bias) out.push_back({name + ".bias", {rows}});
}

void add_norm(std::vector<Wanted>& out, const std::string& name, int64_t d) {
  out.push_back({name + ".weight", {d}});
  out.push_back({name + ".bias", {d}});
}

void add_attention(std::vector<Wanted>& out, const std::string& name, int64_t d) {
  add_norm(out, name + "_norm", d);
  add_linear(out, name + "_q", d, d, true);
  add_linear(out, name + "_k", d, d, false);
  add_linear(out, name + "_v", d, d, true);
  add_linear(out, name + "_output", d, d, true);
}

void add_layers(std::vector<Wanted>& out, const std::string& side, int64_t layers, const WhisperSizes& sizes) {
  const int64_t d = sizes.width;
  for (int64_t i = 0; i < layers; ++i) {
    const std::string layer = fmt::format("{}.blk.{}.", side, i);
    add_attention(out, layer + "attn", d);
    if (side == "dec") add_attention(out, layer + "cross_attn", d);
    add_norm(out, layer + "ffn_norm", d);
    add_linear(out, layer + "ffn_up", sizes.feed_forward, d, true);
    add_linear(out, layer + "ffn_down", d, sizes.feed_forward, true);
  }
  add_norm(out, side + ".output_norm", d);
}

std::vector<Wanted> wanted_tensors(const WhisperSizes& sizes) {
  const int64_t d = sizes.width;
  std::vector<Wanted> out = {{"enc.conv1.weight", {d, sizes.mel_bins, taps}},
                             {"enc.conv1.bias", {d}},
                             {"enc.conv2.weight", {d, d, taps}},
                             {"enc.conv2.bias", {d}},
                             {"enc.position_embd.weight", {sizes.encoder.positions, d}}};
  add_layers(out, "enc", sizes.encoder.layers, sizes);
  out.push_back({"token_embd.weight", {sizes.vocabulary, d}});
  out.push_back({"dec.position_embd.weight", {sizes.decoder.positions, d}});
  add_layers(out, "dec", sizes.decoder.layers, sizes);
  return out;
}

// [d, inputs, taps] to [d, taps * inputs]: element k * inputs + c is tap k of channel c.
HostTensor taps_apart(const HostTensor& from) {
  const int64_t rows = from.sizes[0], inputs = from.sizes[1];
  HostTensor out = HostTensor::allocate(from.type, {rows, taps * inputs});
  const auto element = static_cast<size_t>(info(from.type).block_bytes);
  std::byte* to = out.mutable_bytes().data();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = 0; k < taps; ++k)
      for (int64_t c = 0; c < inputs; ++c, to += element)
        std::memcpy(to, from.bytes.data() + static_cast<size_t>((r * inputs + c) * taps + k) * element, element);
  return out;
}

// Kernels read elements by aligned loads; some kinds of files give no alignment.
HostTensor aligned(const HostTensor& from) {
  const auto alignment = is_quantized(from.type) ? uintptr_t{1} : static_cast<uintptr_t>(info(from.type).block_bytes);
  if (reinterpret_cast<uintptr_t>(from.bytes.data()) % alignment == 0) return from;
  HostTensor copy = HostTensor::allocate(from.type, from.sizes);
  std::memcpy(copy.mutable_bytes().data(), from.bytes.data(), from.bytes.size());
  return copy;
}

StoredTensor adapted(std::string name, WhisperPart part) {
  const bool convolution = part.sizes.size() == 3;
  const bool widened = part.sizes.size() == 1 || name.ends_with(".position_embd.weight") || part.type == DType::f64;
  const DType type = widened ? DType::f32 : part.type;
  const Sizes sizes = convolution ? Sizes{part.sizes[0], taps * part.sizes[1]} : part.sizes;
  const int64_t bytes = checked_mul(element_count(sizes) / sizes.back(), row_bytes(type, sizes.back()));
  return {std::move(name), type, sizes, bytes,
          [load = std::move(part.load), file = std::move(part.file), convolution, widened] {
            const HostTensor stored = load();
            HostTensor t = aligned(stored);
            if (widened) t = to_f32(t);
            if (convolution) t = taps_apart(t);
            if (t.bytes.data() != stored.bytes.data()) file->release(stored.bytes);
            return t;
          }};
}

void check_sizes(const WhisperSizes& s, std::string_view source) {
  for (const auto& [what, size] : {std::pair("width", s.width), std::pair("feed-forward width", s.feed_forward),
                                   std::pair("vocabulary", s.vocabulary), std::pair("number of mel bins", s.mel_bins),
                                   std::pair("number of audio positions", s.encoder.positions),
                                   std::pair("number of text positions", s.decoder.positions),
                                   std::pair("number of encoder layers", s.encoder.layers),
                                   std::pair("number of decoder layers", s.decoder.layers)})
    if (size < 1) bad_input("{}: the {} is {}", source, what, size);
  for (const auto& [what, side] : {std::pair("encoder", s.encoder), std::pair("decoder", s.decoder)})
    if (side.heads <= 0 || s.width % side.heads != 0)
      bad_input("{}: the width {} isn't a multiple of the {}'s {} heads", source, s.width, what, side.heads);
}

}  // namespace

std::vector<StoredTensor> whisper_tensors(const WhisperSizes& sizes, WhisperParts parts, std::string_view source,
                                          const std::function<std::string(std::string_view gguf)>& own_name) {
  check_sizes(sizes, source);
  // Each layer has tensors of its own, so more layers than tensors aren't there; what follows is as large as the file.
  const auto most = static_cast<int64_t>(parts.size());
  for (const auto& [what, layers] :
       {std::pair("encoder", sizes.encoder.layers), std::pair("decoder", sizes.decoder.layers)})
    if (layers > most) bad_input("{}: should have {} {} layers, but has {} tensors in all", source, layers, what, most);
  std::vector<StoredTensor> out;
  for (Wanted& w : wanted_tensors(sizes)) {
    const auto found = parts.find(w.name);
    if (found == parts.end()) bad_input("{}: no tensor \"{}\"", source, own_name(w.name));
    WhisperPart& part = found->second;
    if (part.sizes != w.sizes)
      bad_input("{}: tensor \"{}\" is {}, should be {}", source, part.own_name, to_string(part.sizes),
                to_string(w.sizes));
    if (!is_float(part.type) && !(is_quantized(part.type) && w.sizes.size() == 2))
      bad_input("{}: tensor \"{}\": type {} is no weight's", source, part.own_name, name(part.type));
    out.push_back(adapted(w.name, std::move(part)));
    parts.erase(found);
  }
  if (!parts.empty())
    bad_input("{}: tensor \"{}\" belongs to no layer of this model ({} encoder and {} decoder layers)", source,
              parts.begin()->second.own_name, sizes.encoder.layers, sizes.decoder.layers);
  return out;
}

void add_whisper_metadata(const WhisperSizes& sizes, std::string_view name, std::string_view source, Meta& meta) {
  constexpr double epsilon = 1e-5;  // PyTorch's default, which every checkpoint was trained with
  meta.source = std::string(source);
  add_string(meta, "general.architecture", "whisper");
  add_string(meta, "general.type", "model");
  add_string(meta, "general.name", std::string(name));
  add_u32(meta, "whisper.embedding_length", sizes.width);
  add_u32(meta, "whisper.feed_forward_length", sizes.feed_forward);
  add_u32(meta, "whisper.vocab_size", sizes.vocabulary);
  add_u32(meta, "whisper.mel_bins", sizes.mel_bins);
  for (const auto& [side, s] : {std::pair("encoder", sizes.encoder), std::pair("decoder", sizes.decoder)}) {
    add_u32(meta, fmt::format("whisper.{}.block_count", side), s.layers);
    add_u32(meta, fmt::format("whisper.{}.attention.head_count", side), s.heads);
    add_u32(meta, fmt::format("whisper.{}.context_length", side), s.positions);
  }
  add_f32(meta, "whisper.attention.layer_norm_epsilon", epsilon);
}

std::string with_layer(std::string_view pattern, int64_t layer) {
  std::string out(pattern);
  if (const size_t hole = out.find("{}"); hole != out.npos) out.replace(hole, 2, std::to_string(layer));
  return out;
}

}  // namespace consonant
