// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "graph/inputs.hpp"
#include "models/language_model.hpp"
#include "models/weights.hpp"

namespace consonant {

// The numbers of an encoder's step as values of a graph. A step is one window.
struct EncoderInputs {
  Tensor samples;             // [window + margins] f32, see Whisper::samples()
  Tensor peak;                // [1] f32, greatest log10 energy so far
  Tensor index;               // [position] i32: 0, 1, ...
  Mask self;                  // every position sees all of its own window: kv_pack's pages
  Mask cross;                 // where the decoder's view of the window goes
  DType packed = DType::f32;  // of keys and values on their way through the encoder
  std::vector<KvState> cross_kv;
};

// Whisper (Radford et al. 2022): an encoder of log-mel features and a decoder of text that looks at its output.
class Whisper final : public LanguageModel {
 public:
  Whisper(const ModelFile& file, const Weights& weights);

  // What the features of a window are made of.
  static constexpr int64_t n_fft = 400, hop = 160, margin = n_fft / 2;
  int64_t window_samples() const { return 2 * positions * hop; }
  int64_t samples() const { return window_samples() + n_fft - hop; }  // of the input: margin, window, rest of a frame

  // The encoder's output [position, width] and the new peak; what the decoder looks at is appended to s.cross_kv.
  std::pair<Tensor, Tensor> encode(EncoderInputs& s) const;
  // The same from features [2 * position, mel].
  Tensor encode_features(Tensor features, EncoderInputs& s) const;

  // Logits [wanted, vocabulary].
  Tensor logits(Inputs& s) const override;

  // The attention [token, head, position] of the alignment heads, a layer each; before it the logits.
  std::vector<Tensor> align(Inputs& s) const;

  int64_t positions = 0, mels = 0;
  std::vector<std::pair<int64_t, int64_t>> alignment_heads;  // layer, head; ascending
  std::vector<KvShape> cross_kv;                             // a layer each

 private:
  struct Norm {
    Tensor w, b;
    Tensor operator()(Tensor x, Location at = Location::current()) const;
  };
  struct Linear {
    Tensor w, b;
    Tensor operator()(Tensor x, Location at = Location::current()) const;
  };
  struct Attention {
    Norm norm;
    Linear q, k, v, o;
  };
  struct Layer {
    Attention self, cross;
    Norm ffn_norm;
    Linear up, down;
  };

  Norm load_norm(const Weights& w, std::string_view name) const;
  Attention load_attention(const Weights& w, const std::string& name) const;
  Layer load_layer(const Weights& w, int64_t ff, bool cross) const;
  Tensor decode(Inputs& s, std::vector<Tensor>* weights) const;
  Tensor heads_of(Tensor x, Location at = Location::current()) const;
  void read_alignment_heads(const Meta& meta);

  int64_t heads_ = 0;
  float scale_ = 0;
  Tensor window_, filters_, encoder_positions_, decoder_positions_, embed_;
  Linear conv1_, conv2_;
  Norm encoder_norm_, decoder_norm_;
  std::vector<Layer> encoder_, decoder_;
};

}  // namespace consonant
