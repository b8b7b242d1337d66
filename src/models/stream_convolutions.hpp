// SPDX-License-Identifier: Apache-2.0
#pragma once

// Causal convolutions over a stream that comes in steps: what a step's windows reach back to is kept from the steps
// before it, so that cutting a stream anywhere changes nothing.
#include <vector>

#include "graph/inputs.hpp"
#include "models/weights.hpp"
#include "ops/patches/patches.hpp"

namespace consonant {

// What one convolution keeps of a stream.
struct KeptRows {
  int64_t rows, n;
};

// The numbers of a stream's step as values of a graph. All sizes are fixed.
struct StreamInputs {
  Tensor slot;               // [1] i32, the stream's among the states
  Mask mask;                 // pos [position], counted from the stream's beginning; its own pages
  std::vector<KvState> kv;   // an attention layer each
  std::vector<Tensor> kept;  // [slot, rows, n], a convolution each
};

// Taps of [outputs, inputs, taps] beside each other: [outputs, taps * inputs].
HostTensor taps_first(const HostTensor& from);

// A causal convolution, padded on the left with dilation (kernel - 1) + 1 - stride rows, and on the right with what
// makes the last window complete: the end of a stream.
struct CausalConv {
  Tensor w, b;  // [outputs, kernel * inputs]; b may be empty
  int64_t kernel = 1, stride = 1, dilation = 1;
  Edge edge = Edge::zeros;
  int state = -1;  // its place in `kept`; none if it looks at nothing before its input

  struct Form {
    int64_t outputs, inputs, kernel, stride = 1, dilation = 1;
    Edge edge = Edge::zeros;
  };
  // Tensors "<name><w>" and, unless `b` is empty, "<name><b>"; adds what it keeps.
  static CausalConv load(const Weights& w, const std::string& name, std::string_view b, const Form& form,
                         std::vector<KeptRows>& kept);

  Tensor operator()(Tensor x, StreamInputs& s, Location at = Location::current()) const;
};

// A transposed causal convolution of kernel `rate` or 2 rate, which loses its last outputs: each row becomes `rate`
// rows,
//
//   y[rate t + j] = b + sum_i w_{j + rate i} x[t - i]
//
// which is one product of overlapping windows of x.
struct Upsampling {
  Tensor w, b;  // [rate * outputs, windows * inputs], [rate * outputs]
  int64_t rate = 1, windows = 1;
  int state = -1;

  // Tensors "<name>w" [inputs, outputs, kernel] and "<name>b".
  static Upsampling load(const Weights& w, const std::string& name, int64_t inputs, int64_t outputs, int64_t rate,
                         int64_t kernel, std::vector<KeptRows>& kept);

  Tensor operator()(Tensor x, StreamInputs& s, Location at = Location::current()) const;
};

}  // namespace consonant
