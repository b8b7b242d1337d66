// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "ops/ops.hpp"
#include "runtime/program.hpp"
#include "tensor/convert.hpp"

// A graph for tests of the passes and the plan, with weights that are really there.
namespace consonant::testing_runtime {

inline std::vector<float> random_floats(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float& v : x) v = normal(random);
  return x;
}

class TestGraph {
 public:
  explicit TestGraph(int64_t capacity = 8) {
    const Shape lead({capacity}, Axis::token);
    tokens = input("tokens", DType::i32, lead);
    pos = input("pos", DType::i32, lead);
    seq = input("seq", DType::i32, lead);
    pages = input("pages", DType::i32, {2, 3});
    wanted = input("wanted", DType::i32, Shape({capacity}, Axis::wanted));
  }

  Tensor weight_of(const std::string& name, DType type, const Sizes& sizes) {
    HostTensor tensor = HostTensor::allocate(type, sizes);
    const int64_t columns = tensor.columns(), stride = row_bytes(type, columns);
    for (int64_t r = 0; r < tensor.rows(); ++r)
      encode_row(type,
                 random_floats(static_cast<size_t>(columns), static_cast<uint32_t>(sources.size() * 977 + r)).data(),
                 tensor.mutable_bytes().data() + r * stride, columns);
    sources.push_back({name, type, sizes, [tensor] { return tensor; }, [](std::span<const std::byte>) {}});
    return weight(name, type, make_shape(sizes.data(), static_cast<int>(sizes.size()), Axis::fixed),
                  static_cast<int>(sources.size()) - 1);
  }

  // A table of embeddings by token: where the values of the test graphs come from.
  Tensor embed(int64_t columns = 64) { return rows(weight_of("token_embd.weight", DType::f32, {16, columns}), tokens); }

  PlanOptions options(DeviceKind device = DeviceKind::cpu) {
    if (!weights_[device]) weights_[device] = std::make_unique<WeightStore>(sources, device, pool);
    PlanOptions options;
    options.device = device;
    options.weights = weights_[device].get();
    return options;
  }

  // The first output for tokens 0, 1, 2, ...
  std::vector<float> run(const std::vector<Tensor>& outputs, const PlanOptions& options, int32_t n = 5) {
    Program program(make_plan(outputs, options));
    program.run(batch(n), pool);
    return numbers(program.output(0));
  }

  static Batch batch(int32_t n) {
    Batch b;
    for (int32_t i = 0; i < n; ++i) b.tokens.push_back(i), b.positions.push_back(i), b.sequences.push_back(0);
    b.wanted = {n - 1};
    b.pages = {0, 1, -1, 2, -1, -1};
    b.pages_per_sequence = 3;
    return b;
  }

  static std::vector<float> numbers(const View& view) {
    return {view.as<float>(), view.as<float>() + view.shape.count()};
  }

  Tensor tokens, pos, seq, pages, wanted;
  std::vector<WeightSource> sources;
  ThreadPool pool{2};

 private:
  std::map<DeviceKind, std::unique_ptr<WeightStore>> weights_;
};

// Nodes of an op in a graph.
inline std::vector<Node*> nodes_of(const std::vector<Tensor>& outputs, Op op) {
  std::vector<Node*> found;
  for (Node* node : walk(outputs))
    if (is(*node, op)) found.push_back(node);
  return found;
}

}  // namespace consonant::testing_runtime
