// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "ops/activation_gpu.hpp"
#include "ops/lstm/lstm.hpp"
#include "ops/lstm/lstm_node.hpp"
#include "ops/matrix_gpu.hpp"

namespace consonant::GPU_BUILD {

namespace {

constexpr int block_threads = 512, decode_threads = 256;

// w [4 n, n] of any type -> [n, 4 n] float32, so that neighbouring threads read neighbours.
template <DType Type>
GPU_KERNEL void decode_columns(Matrix<Type> w, int64_t rows, gpu::Ptr<float> columns) {
  const int64_t at = gpu::block() * gpu::threads() + gpu::thread(), row = at % rows;
  if (at < rows * (rows / 4 / Matrix<Type>::run))
    w.read(row, at / rows, [&](int64_t k, float value) { columns[k * rows + row] = value; });
}

// One row after another, so one block; a thread a gate. What bounds it is the reading of all weights, row after row:
// the first `kept` columns come from shared memory, at 128 bytes a cycle, the others from the cache.
GPU_KERNEL void lstm(Rows<const float> x, gpu::Ptr<const float> columns, int n, int kept, gpu::Ptr<const float> bias,
                     Rows<const float> state, Rows<float> y, Rows<float> new_state) {
  GPU_DYNAMIC_SHARED(float, memory);
  const int gates = 4 * n;
  const auto h = memory, c = h + n, gate = c + n, weights = gate + gates;
  for (int i = gpu::thread(); i < n; i += gpu::threads()) {
    h[i] = state.row(0)[i];
    c[i] = state.row(1)[i];
  }
  for (int i = gpu::thread(); i < kept * gates; i += gpu::threads()) weights[i] = columns[i];
  gpu::sync();
  for (int64_t t = 0; t < y.rows; ++t) {
    const auto from = x.row(t);
    const auto to = y.row(t);
    for (int r = gpu::thread(); r < gates; r += gpu::threads()) {
      const float given = from[r] + bias[r];
      float sum = 0;
      for (int k = 0; k < kept; ++k) sum = gpu::fma(weights[k * gates + r], h[k], sum);
      for (int k = kept; k < n; ++k) sum = gpu::fma(columns[static_cast<int64_t>(k) * gates + r], h[k], sum);
      gate[r] = sum + given;
    }
    gpu::sync();
    for (int i = gpu::thread(); i < n; i += gpu::threads()) {
      const float added = activated<Activation::sigmoid>(gate[i]) * gpu::tanh(gate[2 * n + i]);
      const float cell = gpu::fma(activated<Activation::sigmoid>(gate[n + i]), c[i], added);
      const float out = activated<Activation::sigmoid>(gate[3 * n + i]) * gpu::tanh(cell);
      c[i] = cell;
      h[i] = out;
      to[i] = out;
    }
    gpu::sync();
  }
  for (int i = gpu::thread(); i < n; i += gpu::threads()) {
    new_state.row(0)[i] = h[i];
    new_state.row(1)[i] = c[i];
  }
}

// h, c and the gates.
int64_t state_bytes(int64_t n) { return 6 * n * static_cast<int64_t>(sizeof(float)); }
int64_t column_bytes(int64_t n) { return 4 * n * static_cast<int64_t>(sizeof(float)); }

Refusal can_run(const Node& node, const Limits& limits) {
  const int64_t n = node.outputs[0].shape.last();
  if (state_bytes(n) > limits.shared_bytes)
    return {fmt::format("a width of {} needs {} bytes of shared memory, and a block has {}", n, state_bytes(n),
                        limits.shared_bytes)};
  return lstm_can_run(node);
}

int64_t scratch(const Node& node, const Limits&) {
  const int64_t n = node.outputs[0].shape.last();
  return n * column_bytes(n);
}

void launch(const Args& args, Accelerator& device, std::byte* memory) {
  const View &w = args.in[1], &y = args.out[0];
  const int64_t n = y.last(), room = device.limits().shared_bytes - state_bytes(n);
  const int64_t kept = n > 0 ? std::min(n, room / column_bytes(n)) : 0;
  const auto columns = gpu::pointer<float>(memory, n * column_bytes(n));
  with_matrix_type(w.type, [&](auto type) {
    constexpr DType Type = decltype(type)::value;
    gpu::launch<decode_columns<Type>, decode_threads>(
        device, {ceil_div(4 * n * (n / Matrix<Type>::run), decode_threads)}, 0, matrix_of<Type>(w), 4 * n, columns);
  });
  gpu::launch<lstm, block_threads>(device, {1}, state_bytes(n) + kept * column_bytes(n),
                                   rows_of<const float>(args.in[0]), gpu::Ptr<const float>(columns),
                                   static_cast<int>(n), static_cast<int>(kept), pointer<const float>(args.in[2]),
                                   rows_of<const float>(args.in[3]), rows_of<float>(y), rows_of<float>(args.out[1]));
}

}  // namespace

GpuKernel lstm_gpu() { return {"lstm", Op::lstm, can_run, scratch, launch}; }

}  // namespace consonant::GPU_BUILD
