// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/error.hpp"
#include "formats/whisper/tensors.hpp"
#include "formats/whisper/tokens.hpp"

namespace consonant {

namespace {

// Facts of the published checkpoints (openai/whisper), which their files state or, in whisper.cpp's, leave out. Sizes
// tell the models apart but for the first large one, whose successor took its place.
struct Published {
  int64_t layers, heads, vocabulary;  // of the decoder
  MetaInts alignment_heads;
};

const std::vector<Published>& published() {
  static const std::vector<Published> all = {
      {4, 6, 51864, {1, 0, 2, 0, 2, 5, 3, 0, 3, 1, 3, 2, 3, 3, 3, 4}},
      {4, 6, 51865, {2, 2, 3, 0, 3, 2, 3, 3, 3, 4, 3, 5}},
      {6, 8, 51864, {3, 3, 4, 7, 5, 1, 5, 5, 5, 7}},
      {6, 8, 51865, {3, 1, 4, 2, 4, 3, 4, 7, 5, 1, 5, 2, 5, 4, 5, 6}},
      {12, 12, 51864, {6, 6, 7,  0,  7, 3,  7, 8,  8, 2,  8, 5,  8, 7,  9,  0,  9, 4,  9,
                       8, 9, 10, 10, 0, 10, 1, 10, 2, 10, 3, 10, 6, 10, 11, 11, 2, 11, 4}},
      {12, 12, 51865, {5, 3, 5, 9, 8, 0, 8, 4, 8, 7, 8, 8, 9, 0, 9, 7, 9, 9, 10, 5}},
      {24, 16, 51864, {11, 4,  14, 1, 14, 12, 14, 14, 15, 4, 16, 0, 16, 4, 16, 9,  17, 12,
                       17, 14, 18, 7, 18, 10, 18, 15, 20, 0, 20, 3, 20, 9, 20, 14, 21, 12}},
      {24, 16, 51865, {13, 15, 15, 4, 15, 15, 16, 1, 20, 0, 23, 4}},
      {32, 20, 51865, {10, 12, 13, 17, 16, 11, 16, 12, 16, 13, 17, 15, 17, 16, 18, 4,  18, 11, 18, 19, 19, 11, 21,
                       2,  21, 3,  22, 3,  22, 9,  22, 12, 23, 5,  23, 7,  23, 13, 25, 5,  26, 1,  26, 12, 27, 15}},
      {32, 20, 51866, {7, 0, 10, 17, 12, 18, 13, 12, 16, 1, 17, 14, 19, 11, 21, 4, 24, 1, 25, 6}},
      {4, 20, 51866, {2, 4, 2, 11, 3, 3, 3, 6, 3, 11, 3, 14}},
  };
  return all;
}

void check_heads(const MetaInts& heads, const WhisperSizes& sizes, const Meta& meta) {
  if (heads.size() % 2 != 0)
    bad_input("{}: alignment heads: {} numbers, should be pairs of layer and head", meta.source, heads.size());
  for (size_t i = 0; i < heads.size(); i += 2)
    if (heads[i] < 0 || heads[i] >= sizes.decoder.layers || heads[i + 1] < 0 || heads[i + 1] >= sizes.decoder.heads)
      bad_input("{}: alignment head {} of layer {}: the decoder has {} layers of {} heads", meta.source, heads[i + 1],
                heads[i], sizes.decoder.layers, sizes.decoder.heads);
}

void check_ids(std::string_view what, const MetaInts& ids, const WhisperSizes& sizes, const Meta& meta) {
  for (const int64_t id : ids)
    if (id < 0 || id >= sizes.vocabulary)
      bad_input("{}: {} names token {}: the vocabulary has {}", meta.source, what, id, sizes.vocabulary);
}

}  // namespace

MetaInts published_alignment_heads(const WhisperSizes& sizes) {
  for (const Published& p : published())
    if (p.layers == sizes.decoder.layers && p.heads == sizes.decoder.heads && p.vocabulary == sizes.vocabulary)
      return p.alignment_heads;
  return {};
}

void add_whisper_lists(WhisperLists lists, const WhisperSizes& sizes, const std::vector<std::string>& texts,
                       const WhisperControls* controls, Meta& meta) {
  if (lists.alignment_heads.empty()) lists.alignment_heads = published_alignment_heads(sizes);
  if (!lists.has_suppressed && controls) {
    lists.suppressed = whisper_suppressed(texts, *controls);
    lists.has_suppressed = true;
  }
  if (!lists.has_suppressed_at_begin && controls) {
    lists.suppressed_at_begin = whisper_suppressed_at_begin(texts, *controls);
    lists.has_suppressed_at_begin = true;
  }
  check_heads(lists.alignment_heads, sizes, meta);
  check_ids("suppress_tokens", lists.suppressed, sizes, meta);
  check_ids("begin_suppress_tokens", lists.suppressed_at_begin, sizes, meta);
  const auto add = [&](const char* key, MetaInts values) { meta.add(key, {MetaType::i32, true, std::move(values)}); };
  if (!lists.alignment_heads.empty()) add("whisper.alignment_heads", std::move(lists.alignment_heads));
  if (lists.has_suppressed) add("whisper.suppress_tokens", std::move(lists.suppressed));
  if (lists.has_suppressed_at_begin) add("whisper.begin_suppress_tokens", std::move(lists.suppressed_at_begin));
}

}  // namespace consonant
