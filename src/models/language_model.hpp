// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "graph/inputs.hpp"
#include "models/weights.hpp"

namespace consonant {

// What the cache of one attention layer holds a position. Latent attention has rows that stand for keys and values of
// all heads: one head without keys, {1, 0, numbers of a row}.
struct KvShape {
  int64_t heads, key_dim, value_dim;
};

// What the slots of one Mamba layer hold a sequence.
struct MambaShape {
  int64_t channels, kernel;    // of its convolution
  int64_t heads, dim, states;  // of its scan
};

// A network that reads tokens and predicts the next one.
class LanguageModel {
 public:
  virtual ~LanguageModel() = default;

  // Logits [wanted, vocabulary] of the rows that `s` wants; appends to its cache.
  virtual Tensor logits(Inputs& s) const = 0;

  // The same, and of every token the hidden state [token, width], behind the last norm, that its logits come from: a
  // head for further tokens goes on from them. Such a head has `hidden` [token, width], of the position before each of
  // its tokens, and its own are what it goes on from itself. Wrong usage for models that there are no heads for.
  struct Outputs {
    Tensor logits, hidden;
  };
  virtual Outputs outputs(Inputs& s, const Tensor& hidden) const;
  bool reads_hidden = false;  // it is such a head, and has `outputs` alone

  std::vector<KvShape> kv;        // an attention layer each
  std::vector<MambaShape> mamba;  // a Mamba layer each
  int64_t layers = 0, width = 0, vocabulary = 0;
  int64_t context = 0;  // positions that it was trained for
};

// Builds the model that the file's `general.architecture` names; bad input for others, with those known.
std::unique_ptr<LanguageModel> load_language_model(const ModelFile& file, const Weights& weights);

// The head for the token after the next that the file has beside the model ("nextn", multi-token prediction): bad input
// where there is none, or of an architecture whose head isn't known.
std::unique_ptr<LanguageModel> load_next_token_head(const ModelFile& file, const Weights& weights);

}  // namespace consonant
