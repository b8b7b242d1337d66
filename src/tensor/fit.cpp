// SPDX-License-Identifier: Apache-2.0
#include "tensor/fit.hpp"

#include <cmath>
#include <limits>

#include "tensor/blocks.hpp"

namespace consonant::encoding {

namespace {

// Sums over a block of its weights w times levels q and elements x.
struct Sums {
  float w = 0, q = 0, qq = 0, x = 0, qx = 0, xx = 0;

  // sum of w (scale q - min - x)^2, multiplied out
  float error(float scale, float min) const {
    return scale * scale * qq + min * min * w + xx - 2 * (scale * min * q + scale * qx - min * x);
  }
};

template <class Level>
Sums sum(std::span<const float> x, const Weights& weights, Level level) {
  float w[lanes] = {}, q[lanes] = {}, qq[lanes] = {}, sx[lanes] = {}, qx[lanes] = {}, xx[lanes] = {};
  for (size_t i = 0; i < x.size(); i += lanes)
    for (size_t l = 0; l < lanes; ++l) {
      const float weight = weights[i + l], element = x[i + l], k = level(element);
      w[l] += weight;
      q[l] += weight * k;
      qq[l] += weight * k * k;
      sx[l] += weight * element;
      qx[l] += weight * k * element;
      xx[l] += weight * element * element;
    }
  Sums total;
  for (size_t l = 0; l < lanes; ++l) {
    total.w += w[l];
    total.q += q[l];
    total.qq += qq[l];
    total.x += sx[l];
    total.qx += qx[l];
    total.xx += xx[l];
  }
  return total;
}

// Keeps the scale that leaves the least error. With the best scale qx / qq for its levels, the error is xx - qx^2 / qq.
struct BestScale {
  float most = 0, scale = 0;

  float consider(const Sums& sums) {
    if (!(sums.qq > 0)) return 0;
    const float candidate = sums.qx / sums.qq;
    if (sums.qx * candidate > most) {
      most = sums.qx * candidate;
      scale = candidate;
    }
    return candidate;
  }
};

constexpr float step = 0.1f;

constexpr float iq4_middle(size_t i) { return 0.5f * static_cast<float>(iq4_values[i] + iq4_values[i + 1]); }

}  // namespace

float extreme(std::span<const float> x) {
  float result = 0;
  for (float v : x)
    if (std::fabs(v) > std::fabs(result)) result = v;
  return result;
}

Affine fit_affine(std::span<const float> x, const Weights& weights, int levels) {
  float low = 0, high = -std::numeric_limits<float>::infinity();
  for (float v : x) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
  const float range = high - low, top = static_cast<float>(levels);
  if (inverse(range) == 0.f) return {0, -low};
  Affine best;
  float least = std::numeric_limits<float>::infinity();
  const auto consider = [&](const Sums& sums, float scale, float min) {
    const float error = sums.error(scale, min);
    if (error >= least) return;
    least = error;
    best = {scale, min};
  };
  for (int k = -10; k <= 10; ++k) {
    const float to_level = (top + step * static_cast<float>(k)) * inverse(range);
    const Sums sums = sum(x, weights, [=](float v) { return round_level(to_level * (v - low), 0, top); });
    if (k == 0) consider(sums, range / top, -low);
    const float determinant = sums.w * sums.qq - sums.q * sums.q;
    if (!(determinant > 1e-5f * sums.w * sums.qq)) continue;  // all on one level, as far as the sums can tell
    const float scale = (sums.w * sums.qx - sums.q * sums.x) / determinant;
    const float min = (sums.q * sums.qx - sums.qq * sums.x) / determinant;
    if (min >= 0)
      consider(sums, scale, min);
    else
      consider(sums, sums.qx / sums.qq, 0);
  }
  return best;
}

float fit_symmetric(std::span<const float> x, const Weights& weights, int n) {
  const float end = extreme(x), low = static_cast<float>(-n), high = static_cast<float>(n - 1);
  if (inverse(end) == 0.f) return 0;
  BestScale best;
  for (int k = -9; k <= 9; ++k) {
    float to_level = (low + step * static_cast<float>(k)) * inverse(end);
    // The best scale for some levels may round elements to other levels, to be fitted again. With few levels that pays.
    for (int turns = n <= 4 ? 3 : 1; turns > 0; --turns)
      to_level = inverse(best.consider(sum(x, weights, [=](float v) { return round_level(to_level * v, low, high); })));
  }
  return best.scale;
}

int nearest_iq4(float x) {
  int index = 0;
  for (size_t i = 0; i + 1 < iq4_values.size(); ++i) index += x > iq4_middle(i) ? 1 : 0;
  return index;
}

// Sums the steps up to x: without a look-up the loops over elements can go in vectors.
float level_iq4(float x) {
  float level = iq4_values.front();
  for (size_t i = 0; i + 1 < iq4_values.size(); ++i)
    level += x > iq4_middle(i) ? static_cast<float>(iq4_values[i + 1] - iq4_values[i]) : 0.f;
  return level;
}

float fit_iq4(std::span<const float> x, const Weights& weights) {
  const float end = extreme(x);
  if (inverse(end) == 0.f) return 0;
  BestScale best;
  // The levels reach further down than up, and the extreme may stand at either end.
  for (float outermost : {static_cast<float>(iq4_values.front()), static_cast<float>(iq4_values.back())})
    for (int k = -7; k <= 7; ++k) {
      const float to_level = (outermost + static_cast<float>(k)) * inverse(end);
      best.consider(sum(x, weights, [=](float v) { return level_iq4(to_level * v); }));
    }
  return best.scale;
}

}  // namespace consonant::encoding
