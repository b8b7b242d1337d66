// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/hf_config.hpp"
#include "formats/mapped_file.hpp"
#include "formats/model_file.hpp"

namespace consonant {

struct WhisperSizes {
  struct Side {
    int64_t layers = 0, heads = 0, positions = 0;
  };
  int64_t width = 0, feed_forward = 0, vocabulary = 0, mel_bins = 0;
  Side encoder, decoder;
};

// Lists that the decoding rules want; empty optional: the file states none.
struct WhisperLists {
  MetaInts alignment_heads;  // layer, head, layer, head, ...
  bool has_suppressed = false, has_suppressed_at_begin = false;
  MetaInts suppressed, suppressed_at_begin;
};

// How a kind of file names a tensor. "{}" stands for the number of the layer.
struct WhisperName {
  std::string_view gguf, hf, ggml;
};
const std::vector<WhisperName>& whisper_names();

// GGUF's name for a tensor that one kind of file (`&WhisperName::hf`) calls `own`; nothing if it has no such tensor.
std::optional<std::string> whisper_gguf_name(std::string_view own, std::string_view WhisperName::*kind);
std::string whisper_own_name(std::string_view gguf, std::string_view WhisperName::*kind);

// One tensor of a file, with its sizes there: convolutions [d, inputs, 3].
struct WhisperPart {
  std::string own_name;  // in the file, for messages
  DType type;
  Sizes sizes;
  std::function<HostTensor()> load;
  std::shared_ptr<const MappedFile> file;  // where `load` looks: its pages are dropped once they are copied
};
using WhisperParts = std::map<std::string, WhisperPart>;  // by GGUF's name

// All tensors of a model of these sizes, in a fixed order, under GGUF's names and layouts: the taps of convolutions one
// after another, vectors and positions in f32. Bad input that names the tensor by `own_name(its GGUF name)` if one is
// missing or has other sizes, and if a tensor is left over.
std::vector<StoredTensor> whisper_tensors(const WhisperSizes& sizes, WhisperParts parts, std::string_view source,
                                          const std::function<std::string(std::string_view gguf)>& own_name);

// `general.*` and `whisper.*`, but for what the tokenizer tells.
void add_whisper_metadata(const WhisperSizes& sizes, std::string_view name, std::string_view source, Meta& meta);

// The lists that are stated, checked against the sizes; of those that aren't, what the published model of these sizes
// has (alignment heads) and what `texts` tell (suppressed tokens), if there are texts.
struct WhisperControls;
void add_whisper_lists(WhisperLists lists, const WhisperSizes& sizes, const std::vector<std::string>& texts,
                       const WhisperControls* controls, Meta& meta);

// Layer and head of each head that follows the sound, in a published model of these sizes; empty for others.
MetaInts published_alignment_heads(const WhisperSizes& sizes);

// "model.layers.{}.x" with the number in place.
std::string with_layer(std::string_view pattern, int64_t layer);

}  // namespace consonant
