// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "runtime/backends.hpp"
#include "runtime/passes/passes.hpp"
#include "runtime/test_graph.hpp"

namespace consonant {
namespace {

using namespace testing_runtime;
using testing::ElementsAre;

struct Sizes {
  int64_t heads = 4, kv_heads = 2, dim = 64, value_dim = 32;
};

// One layer's attention, whose q, k and v are looked up by token.
struct Layer : TestGraph {
  explicit Layer(bool normed = true, DType cache = DType::f32, Sizes s = {}, int64_t capacity = 40)
      : TestGraph(capacity), cache(cache), sizes(s) {
    mask = {pos, seq, pages};
    q = heads_of("q", s.heads, s.dim), k = heads_of("k", s.kv_heads, s.dim), v = heads_of("v", s.kv_heads, s.value_dim);
    if (normed) {
      q_norm = rms_norm(q, weight_of("q_norm", DType::f32, {s.dim}), 1e-6f);
      k_norm = rms_norm(k, weight_of("k_norm", DType::f32, {s.dim}), 1e-6f);
    }
    const Rotary rotary{s.dim, 10000, 1, false, {}};
    q_rope = rope(normed ? q_norm : q, pos, rotary), k_rope = rope(normed ? k_norm : k, pos, rotary);
    finish(q_rope, k_rope);
  }

  void finish(const Tensor& queries, const Tensor& keys) {
    kv = {state({StateKind::keys, 0}, cache, state_shape(StateKind::keys)),
          state({StateKind::values, 0}, cache, state_shape(StateKind::values))};
    std::tie(all_keys, all_values) = kv_append(kv, keys, v, mask);
    y = attend(queries, all_keys, all_values, mask, 0.125f);
  }

  Tensor heads_of(const std::string& name, int64_t heads, int64_t dim) {
    return split_heads(rows(weight_of(name, DType::f32, {48, heads * dim}), tokens), heads);
  }
  Shape state_shape(StateKind kind) const {
    return kind == StateKind::keys ? Shape{3, sizes.kv_heads, sizes.dim, kv_page}
                                   : Shape{3, sizes.kv_heads, kv_page, sizes.value_dim};
  }
  // As the plan hands it to the pass.
  std::vector<Tensor> fused(std::vector<Tensor> outputs) const {
    outputs = merge_equal(outputs);
    name_nodes(outputs);
    return fuse_heads(outputs);
  }

  // Attention's output for n tokens, then all that the cache holds, as bits.
  struct Result {
    std::vector<float> y;
    std::vector<std::byte> keys, values;
    bool operator==(const Result&) const = default;
  };
  Result compute(DeviceKind kind, const std::vector<Tensor>& outputs, int32_t n, size_t want_fused) {
    const Backend& backend = find_backend(kind);
    const Target target(backend.open(0), backend.kernels());
    const WeightStore weights(sources, target, pool);
    Result result;
    std::map<StateKind, std::vector<std::byte>*> states = {{StateKind::keys, &result.keys},
                                                           {StateKind::values, &result.values}};
    std::map<StateKind, std::unique_ptr<Buffer>> buffers;
    for (const auto& [which, bytes] : states) {
      bytes->resize(static_cast<size_t>(
          3 * kv_page_bytes(cache, sizes.kv_heads, which == StateKind::keys ? sizes.dim : sizes.value_dim)));
      buffers[which] = std::make_unique<Buffer>(static_cast<int64_t>(bytes->size()), target.accelerator.get());
      target.accelerator->upload_now(buffers[which]->data(), bytes->data(), static_cast<int64_t>(bytes->size()));
    }
    PlanOptions options;
    options.device = target, options.weights = &weights;
    options.states = [&](const StateAttr& s) {
      const Shape shape = state_shape(s.kind);
      return View{buffers.at(s.kind)->data(), cache, shape, dense(cache, shape).strides};
    };
    Program program(make_plan(outputs, options));
    EXPECT_EQ(count(program.plan(), Op::rope_append), want_fused);
    program.run(batch(n), pool);
    result.y = numbers(program.output(0));
    for (const auto& [which, bytes] : states)  // an emulator's memory is the host's
      std::memcpy(bytes->data(), buffers.at(which)->data(), bytes->size());
    return result;
  }
  static size_t count(const Plan& plan, Op op) {
    size_t n = 0;
    for (const auto& wave : plan.waves)
      for (const PlannedNode& planned : wave) n += is(*planned.node, op);
    return n;
  }

  DType cache;
  Sizes sizes;
  Mask mask;
  KvState kv;
  Tensor q, k, v, q_norm, k_norm, q_rope, k_rope, all_keys, all_values, y;
};

TEST(FuseHeads, JoinsNormsRotationsAndTheAppend) {
  Layer g;
  const auto fused = g.fused({g.y});
  ASSERT_TRUE(is(*fused[0].node, Op::attend));
  EXPECT_EQ(fused[0].name(), "attend");
  const Tensor queries = fused[0].node->inputs[0];
  const Node& node = *queries.node;
  ASSERT_TRUE(is(node, Op::rope_append));
  EXPECT_EQ(queries.output, 0);
  EXPECT_THAT(fused[0].node->inputs, ElementsAre(Tensor{queries.node, 0}, Tensor{queries.node, 1},
                                                 Tensor{queries.node, 2}, g.pos, g.seq, g.pages));
  EXPECT_THAT(node.inputs, ElementsAre(g.all_keys.node->inputs[0], g.all_keys.node->inputs[1], g.q, g.k, g.v,
                                       g.q_rope.node->inputs[1], g.pos, g.seq, g.pages, g.q_norm.node->inputs[1],
                                       g.k_norm.node->inputs[1]));
  EXPECT_EQ(node.attr<RopeAppendAttr>().epsilon, 1e-6f);
  EXPECT_EQ(node.name, "rope");
  EXPECT_EQ(node.location.line, g.q_rope.node->location.line);
  EXPECT_THAT(node.covers, ElementsAre("rms_norm(k_norm)", "rope.2", "rms_norm(q_norm)", "rope", "kv_append"));
  EXPECT_EQ(node.outputs[1].alias, 0);
  EXPECT_EQ(node.outputs[2].alias, 1);
  EXPECT_TRUE(is(*g.y.node->inputs[0].node, Op::rope)) << "the graph itself stays";
}

TEST(FuseHeads, JoinsRotationsWithoutNorms) {
  Layer g(false);
  const auto fused = g.fused({g.y});
  const Node& node = *fused[0].node->inputs[0].node;
  ASSERT_TRUE(is(node, Op::rope_append));
  EXPECT_EQ(node.inputs.size(), 9u);
  EXPECT_THAT(node.covers, ElementsAre("rope.2", "rope", "kv_append"));
}

TEST(FuseHeads, LeavesWhatOthersUse) {
  Layer g;
  for (const Tensor& other : {g.q_rope, g.k_rope})
    EXPECT_TRUE(nodes_of(g.fused({g.y, other}), Op::rope_append).empty()) << other.name();
  for (const Tensor& other : {g.q_rope, g.k_rope, g.all_keys, g.all_values})
    EXPECT_TRUE(nodes_of(g.fused({g.y, scale(other, 2)}), Op::rope_append).empty()) << other.name();
  // A norm that others use stays, and what follows it is joined.
  const auto fused = g.fused({g.y, g.k_norm});
  const Node& node = *nodes_of(fused, Op::rope_append).at(0);
  EXPECT_TRUE(node.attr<RopeAppendAttr>().q_norm);
  EXPECT_FALSE(node.attr<RopeAppendAttr>().k_norm);
  EXPECT_EQ(node.inputs[3], g.k_norm);
  EXPECT_EQ(node.inputs[9], g.q_norm.node->inputs[1]);
}

// So a runner asks for them, since it keeps the caches.
TEST(FuseHeads, GivesTheCacheAsTheGraphsOutputs) {
  Layer g;
  const auto fused = g.fused({g.y, g.all_keys, g.all_values});
  const std::shared_ptr<Node>& node = fused[0].node->inputs[0].node;
  ASSERT_TRUE(is(*node, Op::rope_append));
  EXPECT_THAT(fused, ElementsAre(fused[0], Tensor{node, 1}, Tensor{node, 2}));
  EXPECT_TRUE(nodes_of(fused, Op::kv_append).empty());
  EXPECT_TRUE(nodes_of(fused, Op::rope).empty());
}

// A decoder that runs several times within a step appends to what it appended before.
TEST(FuseHeads, JoinsAnAppendThatALaterOneGoesOnFrom) {
  Layer g;
  const Tensor first = g.y;
  const Rotary rotary{64, 10000, 1, false, {}};
  const Tensor k = rope(g.heads_of("more k", 2, 64), g.pos, rotary),
               q = rope(g.heads_of("more q", 4, 64), g.pos, rotary);
  const auto [keys, values] = kv_append(g.kv, k, g.heads_of("more v", 2, 32), g.mask);
  const auto fused = g.fused({first, attend(q, keys, values, g.mask, 0.125f), keys, values});
  const auto nodes = nodes_of(fused, Op::rope_append);
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[1]->inputs[0].node.get(), nodes[0]);
  EXPECT_EQ(nodes[1]->inputs[1].node.get(), nodes[0]);
  EXPECT_TRUE(nodes_of(fused, Op::kv_append).empty());
}

TEST(FuseHeads, LeavesACacheThatIsWrittenBeforeTheQueriesAreMade) {
  Layer g;
  EXPECT_TRUE(nodes_of(g.fused({g.all_keys, g.y}), Op::rope_append).empty());
}

TEST(FuseHeads, LeavesHeadsThatTurnApart) {
  Layer g;
  const Rotary rotary{64, 10000, 1, false, {}}, other{64, 500000, 1, false, {}}, neighbours{64, 10000, 1, true, {}};
  for (const Rotary& r : {other, neighbours}) {
    g.finish(rope(g.q, g.pos, rotary), rope(g.k, g.pos, r));
    EXPECT_TRUE(nodes_of(g.fused({g.y}), Op::rope_append).empty());
  }
  g.finish(rope(g.q, g.pos, rotary), g.k);
  EXPECT_TRUE(nodes_of(g.fused({g.y}), Op::rope_append).empty());
  g.finish(g.q, rope(g.k, g.pos, rotary));
  EXPECT_TRUE(nodes_of(g.fused({g.y}), Op::rope_append).empty());
}

TEST(FuseHeads, KeepsANormOfAnotherEpsilon) {
  Layer g;
  const Rotary rotary{64, 10000, 1, false, {}};
  g.finish(g.q_rope, rope(rms_norm(g.k, g.weight_of("w", DType::f32, {64}), 1e-5f), g.pos, rotary));
  const Node& node = *nodes_of(g.fused({g.y}), Op::rope_append).at(0);
  EXPECT_TRUE(node.attr<RopeAppendAttr>().q_norm);
  EXPECT_FALSE(node.attr<RopeAppendAttr>().k_norm);
  EXPECT_EQ(node.attr<RopeAppendAttr>().epsilon, 1e-6f);
}

TEST(FuseHeads, ChangesNoBit) {
  for (const DeviceKind device : {DeviceKind::emu32, DeviceKind::emu64})
    for (const DType cache : {DType::f32, DType::f16, DType::q8_0})
      for (const Sizes& sizes : {Sizes{}, Sizes{3, 3, 96, 64}, Sizes{2, 1, 320, 32}})
        for (const bool normed : {false, true})
          for (const int32_t n : {1, 11}) {
            SCOPED_TRACE(fmt::format("{}, {}, heads of {}, {}, {} tokens", name(device), name(cache), sizes.dim,
                                     normed ? "normed" : "not normed", n));
            Layer g(normed, cache, sizes);
            // Asked for as well, the rotated queries stay a value of their own.
            EXPECT_EQ(g.compute(device, {g.y}, n, 1), g.compute(device, {g.y, g.q_rope}, n, 0));
          }
}

TEST(FuseHeads, IsForAcceleratorsAlone) {
  Layer g;
  PlanOptions options = g.options();
  std::vector<std::byte> memory(3 * 2 * 64 * kv_page * sizeof(float));
  options.states = [&](const StateAttr& s) {
    const Shape shape = g.state_shape(s.kind);
    return View{memory.data(), g.cache, shape, dense(g.cache, shape).strides};
  };
  EXPECT_EQ(Layer::count(make_plan({g.y}, options), Op::rope_append), 0u);
}

}  // namespace
}  // namespace consonant
