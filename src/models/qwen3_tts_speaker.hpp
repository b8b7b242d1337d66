// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "models/weights.hpp"

namespace consonant {

// Qwen3-TTS's speaker encoder, an ECAPA-TDNN (Desplanques et al. 2020): one vector of how a recording's voice sounds.
class SpeakerEncoder {
 public:
  // Whether the file has one: only models that clone voices do.
  static bool is_in(const ModelFile& file);
  SpeakerEncoder(const ModelFile& file, const Weights& weights);

  // What the features are made of: frames of `hop` samples at `rate`, windows of n_fft around them.
  static constexpr int64_t rate = 24000, n_fft = 1024, hop = 256, margin = (n_fft - hop) / 2, mels = 128;
  // Samples that a recording needs, since convolutions mirror it at its ends.
  int64_t least_samples() const { return (reach_ + 1) * hop; }

  // samples [margin + n + margin], mirrored at their ends without repeating them -> [n / hop, mels], the logarithm of
  // mel magnitudes.
  Tensor features(Tensor samples) const;
  // features [frame, mels] -> [1, width]; the whole recording is heard at once.
  Tensor embedding(Tensor features) const;

  int64_t width = 0;

 private:
  struct Conv {
    Tensor w, b;
    int64_t kernel = 1, dilation = 1;
    Tensor operator()(Tensor x, Location at = Location::current()) const;
  };
  struct Block {
    Conv before, after, squeeze, excite;
    std::vector<Conv> inner;
  };

  Conv load(const ModelFile& file, const Weights& w, const std::string& name, int64_t inputs, int64_t dilation = 1);
  Tensor res2net(const Block& w, Tensor x) const;

  int64_t reach_ = 0;  // frames that the widest convolution mirrors
  Tensor window_, filters_;
  Conv first_, aggregate_, attend_, score_, out_;
  std::vector<Block> blocks_;
};

}  // namespace consonant
