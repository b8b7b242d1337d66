// SPDX-License-Identifier: Apache-2.0
#include "tasks/whisper_rules.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "base/exponential.hpp"

namespace consonant {

namespace {

constexpr int32_t block_size = 256;
constexpr int64_t lanes = 16;  // partial results that loops keep, so that they vectorise with sums of one fixed order
constexpr int32_t last_first_stamp = 50;  // 1.00 s
constexpr float none = -std::numeric_limits<float>::infinity();

// `bad` where one is NaN or +infinity: seen in its bits, as comparisons of floats would keep the loop from vectorising.
float largest(const float* x, int64_t n, bool& bad) {
  constexpr int32_t infinity = 0x7f800000;
  std::array<float, lanes> top;
  std::array<int32_t, lanes> wrong{};
  top.fill(none);
  const auto look = [&](int64_t lane, float value) {
    const auto l = static_cast<size_t>(lane);
    const auto bits = std::bit_cast<int32_t>(value);
    top[l] = value > top[l] ? value : top[l];
    wrong[l] |= (bits >= infinity ? -1 : 0) | ((bits & 0x7fffffff) > infinity ? -1 : 0);
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (int64_t l = 0; l < lanes; ++l) look(l, x[i + l]);
  }
  for (; i < n; ++i) look(i % lanes, x[i]);
  for (const int32_t w : wrong) bad |= w != 0;
  return *std::max_element(top.begin(), top.end());
}

// Sum of exp((x - top) scale).
double exponentials(const float* x, int64_t n, float top, float scale) {
  std::array<float, lanes> sums{};
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (int64_t l = 0; l < lanes; ++l) sums[static_cast<size_t>(l)] += exp_of_negative((x[i + l] - top) * scale);
  }
  for (; i < n; ++i) sums[static_cast<size_t>(i % lanes)] += exp_of_negative((x[i] - top) * scale);
  double sum = 0;
  for (const float s : sums) sum += double(s);
  return sum;
}

}  // namespace

WhisperRules::WhisperRules(const WhisperVocabulary& vocabulary, bool timestamps)
    : vocabulary_(vocabulary), timestamps_(timestamps) {
  text_ = text_blocks(false);
  first_text_ = text_blocks(true);
}

std::vector<WhisperRules::Block> WhisperRules::text_blocks(bool begin) const {
  std::vector<bool> allowed(static_cast<size_t>(vocabulary_.end) + 1, true);
  const auto suppress = [&](const std::vector<int32_t>& ids) {
    for (const int32_t id : ids) {
      // A list may name control tokens too, which lie above and are never allowed. The end is, but as the first.
      if (id >= 0 && (id < vocabulary_.end || (begin && id == vocabulary_.end)))
        allowed[static_cast<size_t>(id)] = false;
    }
  };
  suppress(vocabulary_.suppress);
  if (begin) suppress(vocabulary_.suppress_at_begin);
  std::vector<Block> blocks;
  for (int32_t id = 0; id <= vocabulary_.end; ++id) {
    if (!allowed[static_cast<size_t>(id)]) continue;
    const bool joins = !blocks.empty() && blocks.back().end == id && id - blocks.back().begin < block_size;
    if (joins) {
      ++blocks.back().end;
    } else {
      blocks.push_back({id, id + 1});
    }
  }
  return blocks;
}

void WhisperRules::add_stamps(int32_t from, int32_t to) {
  for (int32_t at = from; at < to; at += block_size) allowed_.push_back({at, std::min(at + block_size, to)});
}

void WhisperRules::allow(std::span<const int32_t> generated) {
  allowed_.clear();
  text_blocks_ = 0;
  const int32_t zero = vocabulary_.first_timestamp, past = static_cast<int32_t>(vocabulary_.size);
  const auto text = [&](const std::vector<Block>& blocks) {
    allowed_ = blocks;
    text_blocks_ = blocks.size();
  };
  if (!timestamps_) return text(generated.empty() ? first_text_ : text_);
  if (generated.empty()) return add_stamps(zero, std::min(zero + last_first_stamp + 1, past));
  const size_t n = generated.size();
  const bool stamp = generated[n - 1] >= zero, opens = n < 2 || generated[n - 2] >= zero;
  if (stamp && !opens) {
    text({{vocabulary_.end, vocabulary_.end + 1}});
  } else {
    text(text_);
  }
  if (stamp && opens) return;
  const auto seen = std::find_if(generated.rbegin(), generated.rend(), [&](int32_t id) { return id >= zero; });
  const int32_t least = seen == generated.rend() ? zero : stamp ? *seen : *seen + 1;
  add_stamps(least, past);
}

void WhisperRules::weigh(std::span<const float> logits, std::span<const int32_t> generated) {
  if (static_cast<int64_t>(logits.size()) < vocabulary_.size) {
    throw_error(Exit::failed, "the model gave {} logits; its vocabulary has {} tokens", logits.size(),
                vocabulary_.size);
  }
  allow(generated);
  bool bad = false;
  float text_top = none, stamp_top = none;
  for (size_t i = 0; i < allowed_.size(); ++i) {
    Block& b = allowed_[i];
    b.top = largest(logits.data() + b.begin, b.end - b.begin, bad);
    float& top = i < text_blocks_ ? text_top : stamp_top;
    top = std::max(top, b.top);
  }
  top_ = std::max(text_top, stamp_top);
  if (bad || top_ == none) {
    throw_error(Exit::failed, "the model's logits after {} tokens of the text are not numbers (NaN or infinite)",
                generated.size());
  }
  if (text_blocks_ > 0 && text_blocks_ < allowed_.size() && stamp_top > none) {
    double stamps = 0;
    for (size_t i = text_blocks_; i < allowed_.size(); ++i) {
      const Block& b = allowed_[i];
      stamps += exponentials(logits.data() + b.begin, b.end - b.begin, stamp_top, 1);
    }
    if (double(stamp_top) + std::log(stamps) > double(text_top)) {
      allowed_.erase(allowed_.begin(), allowed_.begin() + static_cast<std::ptrdiff_t>(text_blocks_));
      text_blocks_ = 0;
      top_ = stamp_top;
    }
  }
  double sum = 0;
  for (const Block& b : allowed_) sum += exponentials(logits.data() + b.begin, b.end - b.begin, top_, 1);
  log_sum_ = std::log(sum);
}

void WhisperRules::best(std::span<const float> logits, std::span<const int32_t> generated, int count,
                        std::vector<NextToken>& to) {
  weigh(logits, generated);
  to.clear();
  float least = none;  // that a token must exceed to be among the best; ids ascend, so equal ones come too late
  for (const Block& b : allowed_) {
    if (!(b.top > least)) continue;
    for (int32_t id = b.begin; id < b.end; ++id) {
      const float x = logits[static_cast<size_t>(id)];
      if (!(x > least)) continue;
      const auto place = std::find_if(to.begin(), to.end(), [&](const NextToken& t) { return double(x) > t.logprob; });
      to.insert(place, {id, double(x)});
      if (to.size() > static_cast<size_t>(count)) to.pop_back();
      if (to.size() == static_cast<size_t>(count)) least = static_cast<float>(to.back().logprob);
    }
  }
  for (NextToken& t : to) t.logprob -= double(top_) + log_sum_;
}

void WhisperRules::draw(std::span<const float> logits, std::span<const int32_t> generated, double temperature,
                        std::span<Random> randoms, std::vector<NextToken>& to) {
  weigh(logits, generated);
  const auto scale = static_cast<float>(1 / temperature);
  double sum = 0;
  for (Block& b : allowed_) {
    const bool none = exp_of_negative((b.top - top_) * scale) == 0;  // at low temperatures most have none
    sum += b.mass = none ? 0 : exponentials(logits.data() + b.begin, b.end - b.begin, top_, scale);
  }
  to.clear();
  for (Random& random : randoms) to.push_back(draw(logits, scale, random.uniform() * sum));
}

// The token at which the masses of the allowed, taken in order, exceed `left`. Rounding may leave that past the end of
// its block, or of all blocks: the last token that has a probability takes it.
NextToken WhisperRules::draw(std::span<const float> logits, float scale, double left) const {
  const Block* block = nullptr;
  for (const Block& b : allowed_) {
    if (b.mass == 0) continue;
    block = &b;
    if (left < b.mass) break;
    left -= b.mass;
  }
  int32_t drawn = block->begin;  // the largest logit has a mass, so its block does
  for (int32_t id = block->begin; id < block->end; ++id) {
    const float weight = exp_of_negative((logits[static_cast<size_t>(id)] - top_) * scale);
    if (weight == 0) continue;
    drawn = id;
    if ((left -= double(weight)) < 0) break;
  }
  return {drawn, double(logits[static_cast<size_t>(drawn)] - top_) - log_sum_};
}

}  // namespace consonant
