// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "tensor/encode.hpp"
#include "tensor/fit.hpp"

// The formats whose scales are worth a search. Super-blocks hold the scales of their sub-blocks as integers too. Their
// encoders all go the same way: bring the elements to magnitudes up to 1, fit every sub-block alone, quantise the
// scales that come out, then round the elements to what those quantised scales can reach.

namespace consonant::encoding {

namespace {

struct Normalised {
  float unit;  // 0 if there is nothing but zeros, or as good as
  float x[super_size];

  explicit Normalised(const float* from) {
    const float end = std::fabs(extreme({from, super_size})), factor = inverse(end);
    unit = factor == 0.f ? 0.f : end;
    for (int i = 0; i < super_size; ++i) x[i] = from[i] * factor;
  }
  std::span<const float> part(int j, int sub) const { return {x + j * sub, static_cast<size_t>(sub)}; }
};

// A super-block of sub-blocks x ~ d s q - dmin t.
struct AffineBlock {
  Half d, dmin;
  int scales[16], mins[16];
  int q[super_size];
};

float mean_square(std::span<const float> x) {
  float sum = 0;
  for (float v : x) sum += v * v;
  return sum / static_cast<float>(x.size());
}

Weights linear_weights(std::span<const float> x) {
  const float base = std::sqrt(mean_square(x));
  Weights weights{};
  for (size_t i = 0; i < x.size(); ++i) weights[i] = base + std::fabs(x[i]);
  return weights;
}

Weights square_weights(std::span<const float> x) {
  const float base = mean_square(x);
  Weights weights{};
  for (size_t i = 0; i < x.size(); ++i) weights[i] = base + x[i] * x[i];
  return weights;
}

struct AffineScales {
  int scale, min;
};

// The integers nearest to a fitted scale and minimum, or neighbours of theirs if these suit the elements better.
AffineScales quantise_affine(const Affine& fit, float d, float dmin, int top, int levels, std::span<const float> x,
                             const Weights& weights) {
  const int scale = round_between(fit.scale * inverse(d), 0, top), min = round_between(fit.min * inverse(dmin), 0, top);
  AffineScales best{scale, min};
  float least = std::numeric_limits<float>::infinity();
  for (int s = std::max(scale - 1, 0); s <= std::min(scale + 1, top); ++s)
    for (int t = std::max(min - 1, 0); t <= std::min(min + 1, top); ++t) {
      const float ds = d * static_cast<float>(s), dt = dmin * static_cast<float>(t), to_level = inverse(ds);
      const float error = weighted_error(x, weights, [=](float v) {
        return ds * round_level((v + dt) * to_level, 0, static_cast<float>(levels)) - dt;
      });
      if (error >= least) continue;
      least = error;
      best = {s, t};
    }
  return best;
}

AffineBlock encode_affine(const float* from, int sub, int levels, int scale_levels) {
  const Normalised n(from);
  AffineBlock block;
  const int count = super_size / sub;
  Affine fits[16];
  Weights weights[16];
  float max_scale = 0, max_min = 0;
  for (int j = 0; j < count; ++j) {
    weights[j] = linear_weights(n.part(j, sub));
    fits[j] = fit_affine(n.part(j, sub), weights[j], levels);
    max_scale = std::max(max_scale, fits[j].scale);
    max_min = std::max(max_min, fits[j].min);
  }
  block.d = scale_half(n.unit * (max_scale / static_cast<float>(scale_levels)));
  block.dmin = scale_half(n.unit * (max_min / static_cast<float>(scale_levels)));
  const float d = to_float(block.d) * inverse(n.unit), dmin = to_float(block.dmin) * inverse(n.unit);
  for (int j = 0; j < count; ++j) {
    const AffineScales s = quantise_affine(fits[j], d, dmin, scale_levels, levels, n.part(j, sub), weights[j]);
    block.scales[j] = s.scale;
    block.mins[j] = s.min;
    const float to_level = inverse(d * static_cast<float>(s.scale)), min = dmin * static_cast<float>(s.min);
    for (int i = j * sub; i < (j + 1) * sub; ++i) block.q[i] = round_between((n.x[i] + min) * to_level, 0, levels);
  }
  return block;
}

// A super-block of sub-blocks x ~ d s level, s in [-m, m - 1].
struct SymmetricBlock {
  Half d;
  int scales[16];
  float levels[super_size];  // x / (d s), to be rounded to a level
};

// `fit` gives the scale of a sub-block, `level` the level nearest to a number.
template <class Fit, class Level>
SymmetricBlock encode_symmetric(const float* from, int sub, int m, Fit fit, Level level) {
  const Normalised n(from);
  SymmetricBlock block;
  const int count = super_size / sub;
  float fits[16] = {};
  Weights weights[16];
  for (int j = 0; j < count; ++j) {
    weights[j] = square_weights(n.part(j, sub));
    fits[j] = fit(n.part(j, sub), weights[j]);
  }
  block.d = scale_half(n.unit * (extreme(fits) / static_cast<float>(-m)));
  const float d = to_float(block.d) * inverse(n.unit);
  for (int j = 0; j < count; ++j) {
    const int near = round_between(fits[j] * inverse(d), -m, m - 1);
    float least = std::numeric_limits<float>::infinity();
    for (int s = std::max(near - 1, -m); s <= std::min(near + 1, m - 1); ++s) {
      const float scale = d * static_cast<float>(s), to_level = inverse(scale);
      const float error =
          weighted_error(n.part(j, sub), weights[j], [=](float v) { return scale * level(v * to_level); });
      if (error >= least) continue;
      least = error;
      block.scales[j] = s;
    }
    const float to_level = inverse(d * static_cast<float>(block.scales[j]));
    for (int i = j * sub; i < (j + 1) * sub; ++i) block.levels[i] = n.x[i] * to_level;
  }
  return block;
}

SymmetricBlock encode_integers(const float* from, int m, int n) {
  return encode_symmetric(
      from, 16, m, [n](std::span<const float> x, const Weights& weights) { return fit_symmetric(x, weights, n); },
      [n](float v) { return round_level(v, static_cast<float>(-n), static_cast<float>(n - 1)); });
}

void put(uint8_t& byte, int value, int shift) { byte = static_cast<uint8_t>(byte | value << shift); }

void put_two_bits(uint8_t* bits, int i, int value) { put(bits[i / 128 * 32 + i % 32], value, i / 32 % 4 * 2); }

void put_k_scales(uint8_t* packed, int j, int scale, int min) {
  if (j < 4) {
    put(packed[j], scale, 0);
    put(packed[j + 4], min, 0);
  } else {
    put(packed[j + 4], scale & 15, 0);
    put(packed[j + 4], min & 15, 4);
    put(packed[j - 4], scale >> 4, 6);
    put(packed[j], min >> 4, 6);
  }
}

}  // namespace

void encode(const float* x, BlockQ2_K& block) {
  const AffineBlock a = encode_affine(x, 16, 3, 15);
  block.d = a.d;
  block.dmin = a.dmin;
  for (int j = 0; j < 16; ++j) block.scales[j] = static_cast<uint8_t>(a.scales[j] | a.mins[j] << 4);
  for (int i = 0; i < super_size; ++i) put_two_bits(block.q, i, a.q[i]);
}

void encode(const float* x, BlockQ3_K& block) {
  const SymmetricBlock s = encode_integers(x, 32, 4);
  block.d = s.d;
  for (int j = 0; j < 16; ++j) {
    const int scale = s.scales[j] + 32;
    put(block.scales[j % 8], scale & 15, j / 8 * 4);
    put(block.scales[8 + j % 4], scale >> 4, j / 4 * 2);
  }
  for (int i = 0; i < super_size; ++i) {
    const int q = round_between(s.levels[i], -4, 3) + 4;
    put_two_bits(block.q, i, q & 3);
    put(block.high[i % 32], q >> 2, i / 32);
  }
}

void encode(const float* x, BlockQ4_K& block) {
  const AffineBlock a = encode_affine(x, 32, 15, 63);
  block.d = a.d;
  block.dmin = a.dmin;
  for (int j = 0; j < 8; ++j) put_k_scales(block.scales, j, a.scales[j], a.mins[j]);
  for (int i = 0; i < super_size; ++i) put(block.q[i / 64 * 32 + i % 32], a.q[i], i / 32 % 2 * 4);
}

void encode(const float* x, BlockQ5_K& block) {
  const AffineBlock a = encode_affine(x, 32, 31, 63);
  block.d = a.d;
  block.dmin = a.dmin;
  for (int j = 0; j < 8; ++j) put_k_scales(block.scales, j, a.scales[j], a.mins[j]);
  for (int i = 0; i < super_size; ++i) {
    put(block.q[i / 64 * 32 + i % 32], a.q[i] & 15, i / 32 % 2 * 4);
    put(block.high[i % 32], a.q[i] >> 4, i / 32);
  }
}

void encode(const float* x, BlockQ6_K& block) {
  const SymmetricBlock s = encode_integers(x, 128, 32);
  block.d = s.d;
  for (int j = 0; j < 16; ++j) block.scales[j] = static_cast<int8_t>(s.scales[j]);
  for (int i = 0; i < super_size; ++i) {
    const int q = round_between(s.levels[i], -32, 31) + 32;
    put(block.q[i / 128 * 64 + i % 64], q & 15, i / 64 % 2 * 4);
    put_two_bits(block.high, i, q >> 4);
  }
}

void encode(const float* x, BlockIQ4_NL& block) {
  const float end = std::fabs(extreme({x, block_size})), factor = inverse(end);
  float part[block_size];
  for (int i = 0; i < block_size; ++i) part[i] = x[i] * factor;
  block.d = factor == 0.f ? Half{} : scale_half(end * fit_iq4(part, square_weights(part)));
  const float to_level = inverse(to_float(block.d));
  for (int i = 0; i < block_size; ++i) put(block.q[i % 16], nearest_iq4(x[i] * to_level), i / 16 * 4);
}

void encode(const float* x, BlockIQ4_XS& block) {
  const SymmetricBlock s = encode_symmetric(x, 32, 32, fit_iq4, level_iq4);
  block.d = s.d;
  for (int j = 0; j < 8; ++j) {
    const int scale = s.scales[j] + 32;
    put(block.scales_low[j / 2], scale & 15, j % 2 * 4);
    block.scales_high = static_cast<uint16_t>(block.scales_high | scale >> 4 << j * 2);
  }
  for (int i = 0; i < super_size; ++i) put(block.q[i / 32 * 16 + i % 16], nearest_iq4(s.levels[i]), i / 16 % 2 * 4);
}

}  // namespace consonant::encoding
