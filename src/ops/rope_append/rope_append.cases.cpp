// SPDX-License-Identifier: Apache-2.0
#include "ops/rope_append/rope_append.hpp"

#include <algorithm>

#include "ops/cases.hpp"

namespace consonant {

namespace {

struct Sizes {
  int64_t q_heads, kv_heads, dim, value_dim;
};

struct Options {
  bool neighbours = false, q_norm = true, k_norm = true;
};

// A cache of few bits shows a rounding error of float32 where it decides between neighbours. So with `exact` there is
// none: turns are by right angles, and a norm halves numbers of magnitude 1.
OpCase make_case(DType type, const Sizes& s, int64_t turned, const std::vector<CaseBuilder::Sequence>& sequences,
                 const Options& o, bool exact) {
  OpCase c;
  c.name = fmt::format("{}, {} and {} heads of {} and {}, {} turned, {}{}{}, {}", name(type), s.q_heads, s.kv_heads,
                       s.dim, s.value_dim, turned, o.neighbours ? "neighbours" : "halves", o.q_norm ? ", q normed" : "",
                       o.k_norm ? ", k normed" : "", describe(sequences));
  c.reduction = s.dim;
  c.build = [=](CaseBuilder& b) {
    CaseBuilder::Cache cache = b.cache(type, s.kv_heads, s.dim, s.value_dim, sequences, false);
    const auto heads = [&](const char* role, int64_t n, bool normed) {
      const Shape shape = per_token(cache.tokens, n, s.dim);
      return exact && normed ? b.numbers(role, shape, {1, -1, -1, 1, 1, 1, -1}) : b.values(role, shape);
    };
    const Tensor q = heads("q", s.q_heads, o.q_norm), k = heads("k", s.kv_heads, o.k_norm),
                 v = b.values("v", per_token(cache.tokens, s.kv_heads, s.value_dim));
    // Cosines and sines are numbers like others to the kernel.
    const Shape lead = per_token(cache.tokens, turned);
    Tensor angles = b.values("angles", lead);
    if (exact) {
      std::vector<float> right(static_cast<size_t>(turned), 0.0f);
      for (int64_t i = 0; i < turned / 2; ++i)
        right[static_cast<size_t>(i % 3 == 0 ? i : turned / 2 + i)] = i % 2 == 0 ? 1.0f : -1.0f;
      angles = b.numbers("angles", lead, right);
    }
    const HeadNorms norms{o.q_norm ? b.vector("q norm", s.dim) : Tensor{},
                          o.k_norm ? b.vector("k norm", s.dim) : Tensor{}, exact ? 3.0f : 1e-6f};
    return rope_append(cache.kv, q, k, v, angles, {turned, o.neighbours}, norms, cache.mask);
  };
  return c;
}

}  // namespace

std::vector<OpCase> rope_append_cases() {
  std::vector<OpCase> cases;
  const auto add = [&](DType type, const Sizes& s, int64_t turned, const std::vector<CaseBuilder::Sequence>& sequences,
                       const Options& o) {
    cases.push_back(make_case(type, s, turned, sequences, o, type != DType::f32));
  };
  for (const DType type : {DType::f32, DType::f16, DType::q8_0}) {
    add(type, {1, 1, 32, 32}, 32, {{0, 1}}, {});
    add(type, {4, 2, 128, 128}, 128, {{1000, 1}}, {});
    add(type, {9, 3, 64, 64}, 64, {{60, 9}}, {true, false, false});
    add(type, {4, 2, 96, 32}, 48, {{0, 17}, {63, 1}, {128, 2}, {5, 130}}, {});
    add(type, {4, 1, 256, 256}, 256, {{1000, 3}}, {true, true, true});
    add(type, {2, 1, 320, 64}, 320, {{60, 11}}, {false, true, false});
    add(type, {2, 2, 64, 64}, 64, {{10, 0}}, {});
  }
  add(DType::f32, {2, 2, 2, 7}, 2, {{0, 3}}, {false, false, true});
  add(DType::f32, {3, 1, 3, 1}, 2, {{0, 9}}, {});
  add(DType::f32, {2, 1, 1100, 33}, 1100, {{62, 9}}, {});
  add(DType::f16, {6, 3, 80, 13}, 20, {{0, 3}, {70, 1}}, {true, true, false});
  add(DType::f16, {2, 1, 13, 13}, 6, {{50, 19}}, {});
  return cases;
}

}  // namespace consonant
