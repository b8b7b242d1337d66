// SPDX-License-Identifier: Apache-2.0
#include "verify/lockstep.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/backends.hpp"
#include "runtime/test_graph.hpp"

namespace consonant {
namespace {

using namespace testing_runtime;

// A layer's attention: an accelerator joins the norms, the rotations and the append, the processor doesn't.
struct Attention : TestGraph {
  explicit Attention(DType cache) : TestGraph(16), cache(cache) {
    const auto heads = [&](const char* name, int64_t n) {
      return split_heads(rows(weight_of(name, DType::f32, {16, n * 64}), tokens), n);
    };
    const auto turned = [&](const char* name, int64_t n) {
      return rope(rms_norm(heads(name, n), weight_of("norm", DType::f32, {64}), 1e-6f), pos, {64, 10000, 1, false, {}});
    };
    const Mask mask{pos, seq, pages};
    KvState kv{state({StateKind::keys, 0}, cache, {3, 2, 64, kv_page}),
               state({StateKind::values, 0}, cache, {3, 2, kv_page, 64})};
    const Tensor q = turned("q", 4), k = turned("k", 2), v = heads("v", 2);
    const auto [keys, values] = kv_append(kv, k, v, mask);
    y = attend(q, keys, values, mask, 0.125f);
  }

  // Runs a step of 9 tokens, a node at a time.
  void run(const Target& target, const Program::Observer& seen) {
    const WeightStore weights(sources, target, pool);
    const int64_t bytes = 3 * kv_page_bytes(cache, 2, 64);
    Buffer keys(bytes, target.accelerator.get()), values(bytes, target.accelerator.get());
    const std::vector<std::byte> zeros(static_cast<size_t>(bytes));
    for (Buffer* buffer : {&keys, &values}) std::copy(zeros.begin(), zeros.end(), buffer->data());  // emulated memory
    PlanOptions options;
    options.device = target, options.weights = &weights;
    options.states = [&](const StateAttr& s) {
      const bool is_keys = s.kind == StateKind::keys;
      const Shape shape = is_keys ? Shape{3, 2, 64, kv_page} : Shape{3, 2, kv_page, 64};
      return View{(is_keys ? keys : values).data(), cache, shape, dense(cache, shape).strides};
    };
    Program(make_plan({y}, options)).run_observed(batch(9), pool, seen);
  }

  // Both in lockstep; `spoil` may change what the device's joined node made, knowing the reference's keys.
  using Spoil = std::function<void(std::span<const View> outputs, const std::vector<std::byte>& keys)>;
  void compare(Lockstep& lockstep, const Spoil& spoil) {
    std::vector<std::byte> keys;
    const Program::Observer keep = lockstep.reference();
    run(DeviceKind::cpu, [&](const PlannedNode& planned, std::span<const View> outputs) {
      if (is(*planned.node, Op::kv_append)) keys.assign(outputs[0].data, outputs[0].data + extent(outputs[0]));
      return keep(planned, outputs);
    });
    const Backend& backend = find_backend(DeviceKind::emu32);
    const Program::Observer compare = lockstep.device();
    run({backend.open(0), backend.kernels()}, [&](const PlannedNode& planned, std::span<const View> outputs) {
      if (is(*planned.node, Op::rope_append)) spoil(outputs, keys);
      return compare(planned, outputs);
    });
  }

  DType cache;
  Tensor y;
};

constexpr DType caches[] = {DType::f32, DType::f16, DType::q8_0};

TEST(Lockstep, ComparesAllThatAJoinedNodeMakes) {
  for (const DType cache : caches) {
    SCOPED_TRACE(name(cache));
    Lockstep lockstep(true);
    Attention(cache).compare(lockstep,
                             [](std::span<const View> outputs, const auto&) { ASSERT_EQ(outputs.size(), 3u); });
    EXPECT_TRUE(lockstep.not_compared().empty());
    size_t joined = 0;
    for (const NodeDifference& node : lockstep.nodes()) {
      EXPECT_TRUE(node.within()) << node.name << " differs by " << node.error;
      if (node.op != "rope_append") continue;
      ++joined;
      EXPECT_EQ(node.rows, 9 * 4 + 2 * 3 * 2 * 64) << "queries, keys and values";
    }
    EXPECT_EQ(joined, 1u);
  }
}

TEST(Lockstep, FindsAFaultInEachOutputOfAJoinedNode) {
  for (const DType cache : caches)
    for (size_t wrong = 0; wrong < 3; ++wrong) {
      SCOPED_TRACE(fmt::format("{}, output {}", name(cache), wrong));
      Lockstep lockstep(true);
      Attention(cache).compare(lockstep, [&](std::span<const View> outputs, const auto&) {
        const View& out = outputs[wrong];
        if (out.type == DType::f32)
          out.as<float>()[0] += 0.1f;
        else if (out.type == DType::f16)
          out.as<uint16_t>()[0] ^= 0x40;  // a sixteenth of it
        else
          out.as<int8_t>()[0] = static_cast<int8_t>(out.as<int8_t>()[0] ^ 2);
      });
      for (const NodeDifference& node : lockstep.nodes())
        EXPECT_EQ(node.within(), node.op != "rope_append") << node.name;
    }
}

// A number of few bits may round to either neighbour where it's computed: one step is no error, two are.
TEST(Lockstep, LetsAJoinedNodeRoundToEitherNeighbour) {
  for (const DType cache : {DType::f16, DType::q8_0})
    for (const int steps : {1, 2}) {
      SCOPED_TRACE(fmt::format("{}, {} steps", name(cache), steps));
      Lockstep lockstep(true);
      Attention(cache).compare(lockstep, [&](std::span<const View> outputs, const std::vector<std::byte>& want) {
        if (cache == DType::f16) {
          uint16_t bits;
          std::memcpy(&bits, want.data(), sizeof bits);
          *outputs[1].as<uint16_t>() = static_cast<uint16_t>(bits + steps);
        } else {
          const auto number = static_cast<int8_t>(want[0]);
          *outputs[1].as<int8_t>() = static_cast<int8_t>(number > 0 ? number - steps : number + steps);
        }
      });
      for (const NodeDifference& node : lockstep.nodes()) {
        if (node.op != "rope_append") continue;
        EXPECT_EQ(node.error > 1e-5, steps == 2) << node.error;
      }
    }
}

}  // namespace
}  // namespace consonant
