// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the tests of language models ask of their goldens alike.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "ops/op.hpp"
#include "tests/golden.hpp"

namespace consonant {

// Tokens that greedy decoding adds to a prompt, with a cache, no token ending it.
inline std::vector<int32_t> greedy(Engine& engine, std::span<const int32_t> prompt, int64_t n = 16) {
  GenerateOptions options;
  options.max_tokens = n, options.ignore_eos = true;
  const Generation made = engine.session()->generate(prompt, options);
  EXPECT_EQ(made.stop_reason, StopReason::caller_limit);
  return made.tokens;
}

// Logits of every position, the last ones of a second prompt, and what both go on with.
inline void expect_goldens(Engine& engine, const Golden& golden) {
  Runner& runner = language_engine(engine).runner();
  const auto columns = static_cast<size_t>(engine.info().vocabulary);
  const auto ids = golden.ids("input_ids"), other = golden.ids("input_ids_b");
  const auto logits = all_logits(runner, ids), wanted = golden.floats("logits");
  ASSERT_EQ(logits.size(), wanted.size());
  const Distance distance = distance_of(wanted, logits, columns);
  EXPECT_LE(distance.max_abs, 1e-4);
  EXPECT_GE(distance.worst_cosine, 1 - 1e-6);
  const auto other_logits = all_logits(runner, other), last = golden.floats("last_logits_b");
  ASSERT_LE(last.size(), other_logits.size());
  EXPECT_LE(distance_of(last, std::span(other_logits).last(last.size()), columns).max_abs, 1e-4);
  EXPECT_EQ(greedy(engine, ids), golden.ids("greedy_ids"));
  EXPECT_EQ(greedy(engine, other), golden.ids("greedy_ids_b"));
}

// The experts that each token of the first prompt goes to in each of `layers` layers, and their weights; `by_weight`:
// the router chooses by what becomes the weight, so that the greatest comes first.
inline void expect_routing(Runner& runner, const Golden& golden, size_t layers, bool by_weight = false) {
  std::map<int, std::vector<std::vector<std::pair<int32_t, float>>>> made;  // by layer and token
  runner.observe([&](const PlannedNode& planned, std::span<const View> outputs) {
    if (!is(*planned.node, Op::route)) return false;
    auto& tokens = made[std::stoi(planned.node->name.substr(std::string("blk.").size()))];
    for (int64_t t = 0; t < outputs[0].rows(); ++t) {
      auto& pairs = tokens.emplace_back();
      for (int64_t u = 0; u < outputs[0].last(); ++u)
        pairs.emplace_back(outputs[0].row<int32_t>(t)[u], outputs[1].row<float>(t)[u]);
    }
    return false;
  });
  all_logits(runner, golden.ids("input_ids"));
  runner.observe({});
  ASSERT_EQ(made.size(), layers);
  for (auto& [layer, tokens] : made) {
    const auto ids = golden.ids(fmt::format("moe.{}.experts", layer));  // sorted by expert
    const auto weights = golden.floats(fmt::format("moe.{}.weights", layer));
    ASSERT_FALSE(tokens.empty());
    const size_t used = tokens[0].size();
    ASSERT_EQ(tokens.size() * used, ids.size());
    for (size_t t = 0; t < tokens.size(); ++t) {
      for (size_t u = 1; by_weight && u < used; ++u)
        EXPECT_GE(tokens[t][u - 1].second, tokens[t][u].second) << "the better one comes first";
      std::sort(tokens[t].begin(), tokens[t].end());
      for (size_t u = 0; u < used; ++u) {
        EXPECT_EQ(tokens[t][u].first, ids[t * used + u]) << "layer " << layer << ", token " << t;
        EXPECT_NEAR(tokens[t][u].second, weights[t * used + u], 1e-5) << "layer " << layer << ", token " << t;
      }
    }
  }
}

// Any cut of a prompt, any number of threads, and any neighbours give a token the bits that it has alone.
inline void expect_same_bits_in_any_step(Engine& engine, std::span<const int32_t> ids, std::span<const int32_t> other) {
  LanguageEngine& language = language_engine(engine);
  const auto whole = all_logits(language.runner(), ids);
  const auto columns = static_cast<size_t>(engine.info().vocabulary);
  const auto shared = language.make_runner(3, 3);
  EXPECT_EQ(all_logits(*shared, ids), whole) << "three threads";
  // One token a step, then pieces of odd sizes, always with two neighbours at other positions.
  for (const size_t cut : {size_t{1}, size_t{7}}) {
    const int a = shared->open(), b = shared->open(), c = shared->open();
    std::vector<float> together;
    for (size_t at = 0; at < ids.size(); at += cut) {
      const auto part = ids.subspan(at, std::min(cut, ids.size() - at));
      const int32_t neighbour = other[at % other.size()];
      const Piece pieces[] = {{b, {&neighbour, 1}, false}, {a, part, true}, {c, other.first(3), false}};
      const auto logits = shared->evaluate(pieces);
      const auto mine = logits.subspan(columns, part.size() * columns);
      together.insert(together.end(), mine.begin(), mine.end());
    }
    EXPECT_EQ(together, whole) << "cut into " << cut;
    for (const int sequence : {a, b, c}) shared->close(sequence);
  }
}

}  // namespace consonant
