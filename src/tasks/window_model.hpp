// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace consonant {

// An encoder-decoder speech model as the loops see it: windows of sound that are encoded once, and sequences of text
// that each look at one window. The engine implements it.
class WindowModel {
 public:
  virtual ~WindowModel() = default;

  // Samples at 16 kHz that a window holds (480,000 for Whisper), and those of its neighbours that its features look at
  // on either side (200).
  virtual int64_t window_samples() const = 0;
  virtual int64_t margin_samples() const = 0;

  // Encodes a window. `samples` holds margin + window + margin samples; those before the recording begins are its
  // reflection (x[-i] = x[i]), those after it ends are zeros. `peak` is the greatest log10 energy of the recording so
  // far, -infinity at first: the features' floor lies 8 below it, and it is moved on. Returns the window's number.
  virtual int encode(std::span<const float> samples, float& peak) = 0;
  virtual void forget(int window) = 0;

  // A new, empty sequence that looks at `window`; a copy of a sequence; the end of one.
  virtual int open(int window) = 0;
  virtual int fork(int sequence) = 0;
  virtual void close(int sequence) = 0;

  // Tokens that a sequence reads in a step, after those it has read; logits of the last `wanted` of them are wanted.
  struct Piece {
    int sequence;
    std::span<const int32_t> tokens;
    int64_t wanted = 1;
  };
  // Reads the pieces, which belong to different sequences, in one step. Logits [sum of wanted, vocabulary], in the
  // order of the pieces; valid until the next call.
  virtual std::span<const float> evaluate(std::span<const Piece> pieces) = 0;

  // Cross-attention of the alignment heads for a text: softmax over all positions of the window, for every token.
  // weights [head, token, position]; probability [token] of tokens[i + 1] after tokens[0 ... i], among the ids below
  // `text_ids` (0 for the last token, and where tokens[i + 1] isn't one of them).
  struct Alignment {
    int64_t heads = 0, positions = 0;
    std::vector<float> weights;
    std::vector<float> probability;
  };
  virtual Alignment align(int window, std::span<const int32_t> tokens, int32_t text_ids) = 0;
};

}  // namespace consonant
