// SPDX-License-Identifier: Apache-2.0
#include "models/silero_vad.hpp"

#include <fmt/format.h>

#include "ops/ops.hpp"

namespace consonant {

namespace {

constexpr std::array<int64_t, 4> strides = {1, 2, 2, 1};  // of the encoder's convolutions

int64_t size(const Meta& meta, const std::string& key, int64_t most) {
  const int64_t n = meta.integer("silero_vad." + key);
  if (n < 1 || n > most) bad_input("{}: silero_vad.{} is {}, not 1 to {}", meta.source, key, n, most);
  return n;
}

// Sizes of a matrix that only the file knows; where it has another rank, asking for the tensor by these says so.
Sizes sizes_of(const ModelFile& file, const std::string& name) {
  const StoredTensor* t = file.find(name);
  if (t == nullptr || t->sizes.size() != 2) return {1, 1};
  return t->sizes;
}

}  // namespace

SileroVad::SileroVad(const ModelFile& file, const Weights& w) {
  const Meta& meta = *file.meta;
  constexpr int64_t most = 1 << 16;
  rate = size(meta, "sample_rate", most);
  window = size(meta, "window", most);
  context = size(meta, "context", most);
  width = size(meta, "embedding_length", most);
  n_fft_ = sizes_of(file, "stft.weight")[1];
  if (n_fft_ % 4 != 0 || n_fft_ > context + window || context > window)
    bad_input("{}: frames of {} samples in windows of {} and {}", meta.source, n_fft_, context, window);
  int64_t frames = (context + window + n_fft_ / 4 - n_fft_) / (n_fft_ / 2) + 1;
  for (const int64_t stride : strides) frames = (frames - 1) / stride + 1;
  if (frames != 1)
    bad_input("{}: the convolutions leave {} vectors of a window of {} samples, not 1", meta.source, frames, window);
  int64_t inputs = n_fft_ / 2 + 1;
  stft_ = {w("stft", {2 * inputs, n_fft_}), {}};
  const Weights enc = w.under("enc.");
  for (size_t i = 0; i < encoder_.size(); ++i) {
    const int64_t outputs = sizes_of(file, fmt::format("enc.{}.weight", i))[0];
    encoder_[i] = {enc(std::to_string(i), {outputs, 3 * inputs}), enc.bias(std::to_string(i), {outputs})};
    inputs = outputs;
  }
  input_ = {w("lstm.input", {4 * width, inputs}), w.bias("lstm.input", {4 * width})};
  hidden_ = {w("lstm.hidden", {4 * width, width}), w.bias("lstm.hidden", {4 * width})};
  output_ = {w("output", {1, width}), w.bias("output", {1})};
}

std::pair<Tensor, Tensor> SileroVad::probabilities(Tensor samples, Tensor state) const {
  const Tensor windows = unfold(samples, context + window, window);  // [window, sample]
  const int64_t count = windows.shape()[0];
  const PatchesAttr frames{n_fft_, n_fft_ / 2, 0, n_fft_ / 4, Edge::mirror};
  Tensor x = magnitude(linear(patches(split_heads(windows, windows.shape()[1]), frames), stft_.w));
  for (size_t i = 0; i < encoder_.size(); ++i) {
    const Layer& l = encoder_[i];
    x = relu(add(linear(patches(split_rows(x, count), {3, strides[i], 1, 1, Edge::zeros}), l.w), l.b));
  }
  auto [h, next] = lstm(add(linear(x, input_.w), input_.b), hidden_.w, hidden_.b, state);
  return {sigmoid(add(linear(relu(h), output_.w), output_.b)), next};
}

}  // namespace consonant
