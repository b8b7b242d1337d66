// SPDX-License-Identifier: Apache-2.0
#include "models/qwen3_tts_speaker.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "audio/mel.hpp"
#include "base/checked.hpp"
#include "graph/views.hpp"
#include "models/stream_convolutions.hpp"
#include "ops/ops.hpp"

namespace consonant {

namespace {

constexpr float least_mel = 1e-5f, under_root = 1e-9f;
constexpr double highest = 12000;
constexpr int64_t dilations[] = {2, 3, 4};  // no file has them

}  // namespace

bool SpeakerEncoder::is_in(const ModelFile& file) { return file.find("speaker.fc.weight"); }

// Its sizes are those of its tensors.
SpeakerEncoder::Conv SpeakerEncoder::load(const ModelFile& file, const Weights& w, const std::string& name,
                                          int64_t inputs, int64_t dilation) {
  const StoredTensor* t = file.find("speaker." + name + ".weight");
  const bool sized = t && t->sizes.size() == 3;
  const int64_t outputs = sized ? t->sizes[0] : 1, kernel = sized ? t->sizes[2] : 1;
  if (kernel % 2 == 0 || kernel > 63) bad_input("{}: speaker.{} has {} taps", file.meta->source, name, kernel);
  reach_ = std::max(reach_, dilation * (kernel - 1) / 2);
  return {w.changed(name + ".weight", {outputs, inputs, kernel}, {outputs, checked_mul(kernel, inputs)}, taps_first),
          w.bias(name, {outputs}), kernel, dilation};
}

SpeakerEncoder::SpeakerEncoder(const ModelFile& file, const Weights& weights) {
  const Weights w = weights.under("speaker.");
  window_ = w.constant("speaker.hann", {n_fft}, hann_window(n_fft));
  filters_ = w.constant("speaker.mel_filters", {mels, n_fft / 2 + 1}, mel_filters(mels, n_fft, rate, 0, highest));
  first_ = load(file, w, "blocks.0.conv", mels);
  int64_t n = first_.w.shape()[0], joined = 0;
  for (const int64_t dilation : dilations) {
    const std::string name = fmt::format("blocks.{}.", blocks_.size() + 1);
    Block b;
    b.before = load(file, w, name + "tdnn1.conv", n);
    int64_t groups = 1;
    while (file.find(fmt::format("speaker.{}res2net_block.blocks.{}.conv.weight", name, groups - 1))) ++groups;
    if (n % groups != 0)
      bad_input("{}: {} channels of speaker.{}res2net_block in {} groups", file.meta->source, n, name, groups);
    for (int64_t i = 0; i + 1 < groups; ++i)
      b.inner.push_back(load(file, w, fmt::format("{}res2net_block.blocks.{}.conv", name, i), n / groups, dilation));
    b.after = load(file, w, name + "tdnn2.conv", n);
    b.squeeze = load(file, w, name + "se_block.conv1", n);
    b.excite = load(file, w, name + "se_block.conv2", b.squeeze.w.shape()[0]);
    blocks_.push_back(b);
    joined += n;
  }
  aggregate_ = load(file, w, "mfa.conv", joined);
  const int64_t all = aggregate_.w.shape()[0];
  attend_ = load(file, w, "asp.tdnn.conv", 3 * all);
  score_ = load(file, w, "asp.conv", attend_.w.shape()[0]);
  out_ = load(file, w, "fc", 2 * all);
  width = out_.w.shape()[0];
}

Tensor SpeakerEncoder::Conv::operator()(Tensor x, Location at) const {
  const int64_t pad = dilation * (kernel - 1) / 2;
  if (pad > 0) x = pad_rows(x, pad, pad, Edge::mirror, at);
  if (dilation > 1) return conv(x, w, b, {kernel, 1, dilation}, {}, at);
  return add(linear(kernel > 1 ? unfold(x, kernel, 1, at) : x, w, at), b, at);
}

Tensor SpeakerEncoder::features(Tensor samples) const {
  Scope mel("mel");
  const Tensor magnitudes = root(power_spectrum(samples, window_, hop), under_root);
  return log_floor(linear(magnitudes, filters_), least_mel);
}

// Each group of channels but the first hears what the one before it has found.
Tensor SpeakerEncoder::res2net(const Block& w, Tensor x) const {
  const auto groups = static_cast<int64_t>(w.inner.size()) + 1;
  std::vector<Tensor> parts = split(x, std::vector<int64_t>(static_cast<size_t>(groups), x.shape()[1] / groups));
  for (size_t i = 1; i < parts.size(); ++i)
    parts[i] = relu(w.inner[i - 1](i == 1 ? parts[i] : parts[i] + parts[i - 1]));
  return beside(parts);
}

Tensor SpeakerEncoder::embedding(Tensor features) const {
  Scope speaker("speaker");
  Tensor x = relu(first_(features));
  std::vector<Tensor> found;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    Scope blk("blk", static_cast<int>(i));
    const Block& w = blocks_[i];
    Tensor h = relu(w.after(res2net(w, relu(w.before(x)))));
    Tensor gate = sigmoid(w.excite(relu(w.squeeze(part_of_rows(pool(h), 0, 1)))));
    x = x + h * as_vector(gate);
    found.push_back(x);
  }
  x = relu(aggregate_(beside(found)));
  const Tensor statistics = pool(x);
  const Tensor heard = beside({x, part_of_rows(statistics, 0, 1), part_of_rows(statistics, 1, 1)});
  const Tensor pooled = pool(x, score_(tanh(relu(attend_(heard)))));
  return out_(merge_heads(split_rows(pooled, 1)));
}

}  // namespace consonant
