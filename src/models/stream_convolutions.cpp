// SPDX-License-Identifier: Apache-2.0
#include "models/stream_convolutions.hpp"

#include <cstring>

#include "base/checked.hpp"
#include "graph/views.hpp"
#include "ops/ops.hpp"

namespace consonant {

namespace {

// Elements of `from` in another order: number i of the result comes from number at(i).
template <class At>
HostTensor reordered(const HostTensor& from, const Sizes& to, const At& at) {
  HostTensor t = HostTensor::allocate(from.type, to);
  const auto size = static_cast<size_t>(info(from.type).block_bytes);
  std::byte* write = t.mutable_bytes().data();
  for (int64_t i = 0; i < t.count(); ++i, write += size)
    std::memcpy(write, from.bytes.data() + static_cast<size_t>(at(i)) * size, size);
  return t;
}

int keep(std::vector<KeptRows>& kept, int64_t rows, int64_t n) {
  if (rows == 0) return -1;
  kept.push_back({rows, n});
  return static_cast<int>(kept.size()) - 1;
}

Tensor& kept_of(StreamInputs& s, int state) { return s.kept[static_cast<size_t>(state)]; }

}  // namespace

HostTensor taps_first(const HostTensor& from) {
  const int64_t inputs = from.sizes[1], taps = from.sizes[2], row = inputs * taps;
  return reordered(from, {from.sizes[0], row}, [=](int64_t i) {
    const int64_t at = i % row;
    return i - at + at % inputs * taps + at / inputs;
  });
}

CausalConv CausalConv::load(const Weights& w, const std::string& name, std::string_view b, const Form& f,
                            std::vector<KeptRows>& kept) {
  CausalConv c;
  c.w =
      w.changed(name + "w", {f.outputs, f.inputs, f.kernel}, {f.outputs, checked_mul(f.kernel, f.inputs)}, taps_first);
  if (!b.empty()) c.b = w.named(name + std::string(b), {f.outputs});
  c.kernel = f.kernel, c.stride = f.stride, c.dilation = f.dilation, c.edge = f.edge;
  c.state = keep(kept, f.dilation * (f.kernel - 1) + 1 - f.stride, f.inputs);
  return c;
}

Tensor CausalConv::operator()(Tensor x, StreamInputs& s, Location at) const {
  const int64_t steps = (x.shape()[0] + stride - 1) / stride;
  if (state >= 0) x = carry(kept_of(s, state), x, s.mask.pos, s.slot, edge, at);
  const int64_t missing = (steps - 1) * stride + dilation * (kernel - 1) + 1 - x.shape()[0];
  if (missing > 0) x = pad_rows(x, 0, missing, edge, at);
  if (kernel > 1) return conv(x, w, b, {kernel, stride, dilation}, {}, at);
  const Tensor y = linear(x, w, at);
  return b ? add(y, b, at) : y;
}

Upsampling Upsampling::load(const Weights& w, const std::string& name, int64_t inputs, int64_t outputs, int64_t rate,
                            int64_t kernel, std::vector<KeptRows>& kept) {
  Upsampling u;
  u.rate = rate, u.windows = kernel / rate;
  const int64_t windows = u.windows, row = windows * inputs;
  // Row j * outputs + o holds, window by window, the oldest first, tap j + rate (windows - 1 - window) of each input.
  u.w = w.changed(name + "w", {inputs, outputs, kernel}, {checked_mul(rate, outputs), checked_mul(windows, inputs)},
                  [=](const HostTensor& from) {
                    return reordered(from, {rate * outputs, row}, [=](int64_t i) {
                      const int64_t j = i / row / outputs, o = i / row % outputs;
                      const int64_t window = i % row / inputs, input = i % inputs;
                      return (input * outputs + o) * kernel + j + rate * (windows - 1 - window);
                    });
                  });
  u.b = w.derived(name + "b", {outputs}, name + "b", {rate * outputs}, [rate](std::vector<float> b) {
    std::vector<float> all;
    for (int64_t j = 0; j < rate; ++j) all.insert(all.end(), b.begin(), b.end());
    return all;
  });
  u.state = keep(kept, windows - 1, inputs);
  return u;
}

Tensor Upsampling::operator()(Tensor x, StreamInputs& s, Location at) const {
  if (state >= 0) x = carry(kept_of(s, state), x, s.mask.pos, s.slot, Edge::zeros, at);
  const Tensor y = windows > 1 ? conv(x, w, b, {windows}, {}, at) : add(linear(x, w, at), b, at);
  return merge_rows(split_heads(y, rate, at), at);
}

}  // namespace consonant
