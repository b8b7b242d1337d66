// SPDX-License-Identifier: Apache-2.0
// The products of a layer on one core: bytes of weights a second at one token (decode, from memory: the matrix is
// larger than the caches) and operations a second at many (prefill). Names:
// linear/<weights>/<activations>/<tokens>/<inputs>.
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "ops/kernel.hpp"
#include "ops/linear/linear.hpp"
#include "tensor/activations.hpp"

namespace consonant {

extern const Kernel linear_cpu;

namespace {

View matrix(std::byte* data, DType type, int64_t rows, int64_t columns, Layout layout = Layout::plain) {
  return {data, type, {rows, columns}, {columns, 1}, layout};
}

// A byte that makes a sane scale of whatever it falls on: 0.056 as a half.
constexpr int filling = 0x2B;

void product(benchmark::State& state, DType type, DType x_type, int64_t tokens, int64_t outputs, int64_t k) {
  const PackedShape shape = packed_shape(type, outputs, k);
  Buffer weights(shape.bytes()), x(tokens * k * 4), y(tokens * outputs * 4);
  std::memset(weights.data(), filling, static_cast<size_t>(shape.bytes()));
  std::memset(x.data(), filling, static_cast<size_t>(x.size()));
  Node node;
  node.op = id(Op::linear);
  node.attributes = LinearAttr{};
  const View in[] = {matrix(x.data(), x_type, tokens, k), matrix(weights.data(), type, outputs, k, Layout::rows8)};
  const View out[] = {matrix(y.data(), DType::f32, tokens, outputs)};
  const Args args{&node, in, out};
  const Work work = linear_cpu.work(args);
  Buffer scratch(work.scratch);
  for (auto _ : state)
    for (int64_t chunk = 0; chunk < work.chunks; ++chunk) linear_cpu.run(args, chunk, scratch.data());
  state.SetBytesProcessed(state.iterations() * shape.bytes());
  state.counters["flop/s"] =
      benchmark::Counter(static_cast<double>(2 * tokens * outputs * k), benchmark::Counter::kIsIterationInvariantRate);
}

void add(DType type, DType x_type, int64_t tokens, int64_t outputs, int64_t k) {
  const std::string label = "linear/" + std::string(name(type)) + "/" + std::string(name(x_type)) + "/" +
                            std::to_string(tokens) + "/" + std::to_string(k);
  benchmark::RegisterBenchmark(label.c_str(),
                               [=](benchmark::State& state) { product(state, type, x_type, tokens, outputs, k); })
      ->Unit(benchmark::kMillisecond)
      ->MinTime(0.2);
}

}  // namespace
}  // namespace consonant

int main(int argc, char** argv) {
  using namespace consonant;
  for (DType type :
       {DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::q8_0, DType::q2_k, DType::q3_k, DType::q4_k,
        DType::q5_k, DType::q6_k, DType::iq4_nl, DType::iq4_xs, DType::mxfp4, DType::f16, DType::bf16, DType::f32}) {
    const int64_t k = 1536, memory = int64_t{96} << 20;
    const int64_t outputs = memory / (packed_shape(type, 8, k).group_bytes / 8);
    for (DType x : {DType::q8_x, DType::q16_x, DType::f32}) {
      if (x != DType::f32 && !is_quantized(type)) continue;
      add(type, x, 1, outputs, k);
      add(type, x, 4, outputs, k);
      add(type, x, 512, 576, k);
      add(type, x, 512, 1536, 576 / info(type).block * info(type).block);
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
