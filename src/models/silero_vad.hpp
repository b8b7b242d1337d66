// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <utility>

#include "models/weights.hpp"

namespace consonant {

// Silero VAD: how probable it is that somebody speaks in a window of 32 ms. Each window, together with the end of the
// one before, becomes four frames of a short-time spectrum, which convolutions reduce to one vector; a recurrent layer
// goes over the windows' vectors.
class SileroVad {
 public:
  SileroVad(const ModelFile& file, const Weights& weights);

  int64_t rate = 0, window = 0, context = 0;  // samples; those of the window before that a window is read with
  int64_t width = 0;                          // of the state

  // samples [context + windows * window, 1] f32 and state [2, width], zeros at first -> probabilities [windows, 1] and
  // the state after them.
  std::pair<Tensor, Tensor> probabilities(Tensor samples, Tensor state) const;

 private:
  struct Layer {
    Tensor w, b;
  };

  Layer stft_, input_, hidden_, output_;
  std::array<Layer, 4> encoder_;
  int64_t n_fft_ = 0;
};

}  // namespace consonant
