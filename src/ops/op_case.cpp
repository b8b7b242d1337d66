// SPDX-License-Identifier: Apache-2.0
#include "ops/op_case.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/checked.hpp"
#include "ops/kv_cache.hpp"
#include "tensor/convert.hpp"

namespace consonant {

namespace {

// Elements before and after a slice, so that its rows are aligned to nothing.
constexpr int64_t before = 5, after = 8;

}  // namespace

DType CaseBuilder::type_of(const std::string& role, DType usual) {
  if (std::find(roles_.begin(), roles_.end(), role) == roles_.end()) roles_.push_back(role);
  return role == options_.probed ? options_.probe : usual;
}

Tensor CaseBuilder::keep(Tensor leaf, Fill fill) {
  leaves_.push_back({leaf.node, std::move(fill)});
  return leaf;
}

Tensor CaseBuilder::floats(const std::string& role, const Shape& shape, std::function<float(std::mt19937&)> next) {
  const DType type = type_of(role, DType::f32);
  if (!options_.apart || shape.axis() == Axis::fixed || shape.rank() < 2) {
    return keep(input(role, type, shape), [next](const View& leaf, std::mt19937& random) {
      std::generate_n(leaf.as<float>(), leaf.shape.count(), [&] { return next(random); });
    });
  }
  has_slices_ = true;
  const int64_t n = shape.rank() == 2 ? shape[1] : shape[1] * shape[2];
  const Tensor wide =
      keep(input(role, type, per_token(shape[0], before + n + after)), [next, n](const View& leaf, auto& random) {
        std::fill_n(leaf.as<float>(), leaf.shape.count(), std::numeric_limits<float>::quiet_NaN());
        for (int64_t r = 0; r < leaf.shape[0]; ++r)
          std::generate_n(leaf.row<float>(r) + before, n, [&] { return next(random); });
      });
  const Tensor slice = split(wide, {before, n, after})[1];
  return shape.rank() == 2 ? slice : split_heads(slice, shape[1]);
}

Tensor CaseBuilder::values(const std::string& role, const Shape& shape, float spread) {
  return floats(role, shape,
                [spread](std::mt19937& random) { return std::normal_distribution<float>(0, spread)(random); });
}

Tensor CaseBuilder::numbers(const std::string& role, const Shape& shape, std::vector<float> numbers) {
  auto at = std::make_shared<size_t>(0);
  return floats(role, shape,
                [numbers = std::move(numbers), at](std::mt19937&) { return numbers[(*at)++ % numbers.size()]; });
}

Tensor CaseBuilder::integers(const std::string& role, const Shape& shape, int32_t least, int32_t greatest) {
  return keep(input(role, type_of(role, DType::i32), shape), [=](const View& leaf, std::mt19937& random) {
    std::uniform_int_distribution<int32_t> any(least, greatest);
    std::generate_n(leaf.as<int32_t>(), leaf.shape.count(), [&] { return any(random); });
  });
}

Tensor CaseBuilder::integers(const std::string& role, const Shape& shape, std::vector<int32_t> numbers) {
  return keep(input(role, type_of(role, DType::i32), shape),
              [numbers = std::move(numbers)](const View& leaf, std::mt19937&) {
                for (int64_t i = 0; i < leaf.shape.count(); ++i)
                  leaf.as<int32_t>()[i] = numbers[static_cast<size_t>(i) % numbers.size()];
              });
}

Tensor CaseBuilder::matrix(const std::string& role, DType type, int64_t rows, int64_t columns) {
  return matrices(role, type, {rows, columns});
}

Tensor CaseBuilder::matrices(const std::string& role, DType type, const Shape& shape) {
  const DType actual = type_of(role, type);
  return keep(weight(role, actual, shape, -1), [](const View& leaf, std::mt19937& random) {
    std::normal_distribution<float> normal;
    std::vector<float> row(static_cast<size_t>(leaf.last()));
    for (int64_t r = 0; r < leaf.rows(); ++r) {
      std::generate(row.begin(), row.end(), [&] { return normal(random); });
      encode_row(leaf.type, row.data(), leaf.data + r * row_bytes(leaf.type, leaf.last()), leaf.last());
    }
  });
}

Tensor CaseBuilder::vector(const std::string& role, int64_t n) {
  return keep(weight(role, type_of(role, DType::f32), {n}, -1), [](const View& leaf, std::mt19937& random) {
    std::normal_distribution<float> normal;
    std::generate_n(leaf.as<float>(), leaf.shape.count(), [&] { return normal(random); });
  });
}

CaseBuilder::Cache CaseBuilder::cache(DType type, int64_t heads, int64_t key_dim, int64_t value_dim,
                                      const std::vector<Sequence>& sequences, bool holds_batch) {
  std::vector<int32_t> pos, seq, pages;
  std::vector<int64_t> held;  // positions that the cache holds when the node runs
  int64_t longest = 0, used = 0;
  for (const Sequence& s : sequences) {
    for (int64_t i = 0; i < s.tokens; ++i) {
      pos.push_back(static_cast<int32_t>(s.before + i));
      seq.push_back(static_cast<int32_t>(held.size()));
    }
    held.push_back(s.before + (holds_batch ? s.tokens : 0));
    longest = std::max(longest, ceil_div(s.before + s.tokens, kv_page));
    used += ceil_div(s.before + s.tokens, kv_page);
  }
  std::vector<int32_t> order(static_cast<size_t>(used + 2));  // two that nobody has
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(17));
  auto next = order.begin();
  for (const Sequence& s : sequences)
    for (int64_t page = 0; page < longest; ++page)
      pages.push_back(page < ceil_div(s.before + s.tokens, kv_page) ? *next++ : -1);

  const auto tokens = static_cast<int64_t>(pos.size()), rows = static_cast<int64_t>(sequences.size());
  const DType actual = type_of("cache", type);
  const auto fill = [held, pages, longest](const View& leaf, StateKind kind, std::mt19937& random) {
    std::memset(leaf.data, 0xFF, static_cast<size_t>(leaf.rows() * row_bytes(leaf.type, leaf.last())));
    std::normal_distribution<float> normal;
    std::vector<float> row(static_cast<size_t>(kind == StateKind::keys ? leaf.shape[2] : leaf.shape[3]));
    for (size_t s = 0; s < held.size(); ++s)
      for (int64_t p = 0; p < held[s]; ++p) {
        const KvPage page(leaf, kind, pages[s * static_cast<size_t>(longest) + static_cast<size_t>(p / kv_page)]);
        for (int64_t head = 0; head < page.heads(); ++head) {
          std::generate(row.begin(), row.end(), [&] { return normal(random); });
          page.write(head, p % kv_page, row.data());
        }
      }
  };
  Cache c;
  c.tokens = tokens;
  const Shape lead({tokens}, Axis::token);
  if (key_dim > 0)
    c.kv.keys = keep(state({StateKind::keys, 0}, actual, {used + 2, heads, key_dim, kv_page}),
                     [fill](const View& leaf, auto& random) { fill(leaf, StateKind::keys, random); });
  c.kv.values = keep(state({StateKind::values, 0}, actual, {used + 2, heads, kv_page, value_dim}),
                     [fill](const View& leaf, auto& random) { fill(leaf, StateKind::values, random); });
  c.mask.pos = integers("pos", lead, std::move(pos));
  c.mask.seq = integers("seq", lead, std::move(seq));
  c.mask.pages = integers("pages", {rows, longest}, std::move(pages));
  return c;
}

namespace {

// Two more than there are sequences.
std::vector<int32_t> scattered_slots(size_t sequences) {
  std::vector<int32_t> slots(sequences + 2);
  std::iota(slots.begin(), slots.end(), 0);
  std::shuffle(slots.begin(), slots.end(), std::mt19937(18));
  slots.resize(sequences);
  return slots;
}

}  // namespace

Slots CaseBuilder::slots(const std::vector<Sequence>& sequences) {
  std::vector<int32_t> pos, seq;
  for (size_t s = 0; s < sequences.size(); ++s)
    for (int64_t i = 0; i < sequences[s].tokens; ++i) {
      pos.push_back(static_cast<int32_t>(sequences[s].before + i));
      seq.push_back(static_cast<int32_t>(s));
    }
  const Shape lead({static_cast<int64_t>(pos.size())}, Axis::token), rows = {static_cast<int64_t>(sequences.size())};
  Slots slots;
  slots.pos = integers("pos", lead, std::move(pos));
  slots.seq = integers("seq", lead, std::move(seq));
  slots.slots = integers("slots", rows, scattered_slots(sequences.size()));
  return slots;
}

Tensor CaseBuilder::slot_state(StateKind kind, const std::vector<Sequence>& sequences,
                               std::initializer_list<int64_t> sizes) {
  std::vector<int64_t> all = {static_cast<int64_t>(sequences.size() + 2)};
  all.insert(all.end(), sizes);
  const auto fill = [sequences](const View& leaf, std::mt19937& random) {
    std::fill_n(leaf.as<float>(), leaf.shape.count(), std::numeric_limits<float>::quiet_NaN());
    std::normal_distribution<float> normal;
    const std::vector<int32_t> places = scattered_slots(sequences.size());
    const int64_t n = leaf.shape.count() / leaf.shape[0];
    for (size_t s = 0; s < sequences.size(); ++s)
      if (sequences[s].before > 0) std::generate_n(leaf.as<float>() + places[s] * n, n, [&] { return normal(random); });
  };
  return keep(
      state({kind, 0}, type_of("state", DType::f32), make_shape(all.data(), static_cast<int>(all.size()), Axis::fixed)),
      fill);
}

std::vector<OpCase> cases_of(Op op) {
  switch (op) {
#define OP(name) \
  case Op::name: \
    return name##_cases();
#include "ops/all.def"
#undef OP
    default:
      return {};
  }
}

}  // namespace consonant
