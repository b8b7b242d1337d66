// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "graph/inputs.hpp"
#include "models/language_model.hpp"
#include "models/qwen3_tts_vocabulary.hpp"
#include "models/weights.hpp"
#include "ops/rope_angles/rope_angles.hpp"

namespace consonant {

// The numbers of a talker's step as values of a graph. A token is a position of a sequence: what is heard there and
// what is read there, added.
struct FrameInputs {
  Tensor text;                // [token] i32: a text token's id
  std::vector<Tensor> codes;  // [token] i32, one a codebook: a row of its table, -1 for none
  Tensor voices, voice;       // [voice, width] float32 and [token] i32, -1 for none; null: no token has one
  Tensor wanted;              // [wanted] i32, tokens after which a frame is to be made
  Tensor pos;                 // [token] i32
  Mask mask;
  std::vector<KvState> kv;  // of the talker, a layer each

  // Of the code predictor, which reads `groups` positions a frame and forgets them.
  std::vector<Tensor> places;  // [wanted] i32, one a position: 0, 1, ... for every row
  Tensor frame;                // [wanted] i32, row of frame_pages
  Tensor frame_pages;          // [wanted, 1] i32
  std::vector<KvState> frame_kv;
};

// Qwen3-TTS (Qwen team 2026): a Qwen3 decoder, the talker, reads text and earlier frames and gives the first code of
// the next frame; a small decoder, the code predictor, the others one by one.
class Qwen3Tts {
 public:
  Qwen3Tts(const ModelFile& file, const Weights& weights);

  const TtsVocabulary& vocabulary() const { return vocabulary_; }

  // The talker's inputs [token, width].
  Tensor embed(const FrameInputs& s) const;
  // The talker's state [wanted, width] after its final norm; appends to its cache.
  Tensor hidden(FrameInputs& s) const;
  // Logits [wanted, codes] of codebook 0, raw; and with minus infinity for what is never drawn.
  Tensor logits(Tensor hidden) const;
  Tensor allowed(Tensor logits) const;
  // The other codes [wanted] of the frames that begin with `first` [wanted]; `draw` takes a codebook's number, from 1
  // on, and its logits [wanted, book], and gives its code.
  using DrawCode = std::function<Tensor(int64_t group, Tensor logits)>;
  std::vector<Tensor> predict(Tensor hidden, Tensor first, FrameInputs& s, const DrawCode& draw) const;

  // Whether it was trained to do what an instruction says: the small ones, whose decoders have one width, weren't.
  bool follows_instructions() const { return bool{narrow_}; }

  int64_t width = 0, layers = 0, context = 0;
  std::vector<KvShape> kv, frame_kv;  // a layer each

 private:
  struct Dims {
    int64_t layers, width, ff, heads, kv_heads, head;
  };
  struct Layer {
    Tensor attn_norm, wq, wk, wv, wo, q_norm, k_norm, ffn_norm, gate, up, down;
  };
  struct Decoder {
    Dims sizes{};
    std::vector<Layer> layers;
    Tensor norm;
    Rotary rotary;
    float eps = 0;

    void load(const Weights& w, const Dims& s);
    Tensor attention(const Layer& w, Tensor x, const Tensor& pos, const Mask& mask, KvState& kv) const;
    Tensor run(Tensor x, const Tensor& pos, const Mask& mask, std::vector<KvState>& kv) const;
  };

  Tensor narrow(Tensor x) const;

  TtsVocabulary vocabulary_;
  Decoder talker_, predictor_;
  Tensor text_embed_, fc1_, fc1_bias_, fc2_, fc2_bias_, head_, forbidden_;
  Tensor narrow_, narrow_bias_;  // null where both decoders have the same width
  std::vector<Tensor> tables_, heads_;
};

}  // namespace consonant
