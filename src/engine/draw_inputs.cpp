// SPDX-License-Identifier: Apache-2.0
#include "engine/draw_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "ops/sample/sample.hpp"

namespace consonant {

namespace {

// The order of sample's columns.
void put_numbers(std::vector<float>& numbers, const DrawOptions& o) {
  const size_t first = numbers.size();
  numbers.resize(first + SampleNumbers::count);
  float* row = numbers.data() + first;
  row[SampleNumbers::temperature] = o.temperature;
  row[SampleNumbers::top_p] = o.top_p;
  row[SampleNumbers::min_p] = o.min_p;
  row[SampleNumbers::typical] = o.typical;
  row[SampleNumbers::repeat_penalty] = o.repeat_penalty;
  row[SampleNumbers::frequency_penalty] = o.frequency_penalty;
  row[SampleNumbers::presence_penalty] = o.presence_penalty;
  row[SampleNumbers::first_temperature] = o.first_temperature;
}

void put_integers(std::vector<int32_t>& integers, const DrawOptions& o, uint64_t number) {
  const size_t first = integers.size();
  integers.resize(first + SampleIntegers::count);
  int32_t* row = integers.data() + first;
  row[SampleIntegers::top_k] = o.top_k;
  row[SampleIntegers::number_high] = static_cast<int32_t>(static_cast<uint32_t>(number >> 32));
  row[SampleIntegers::number_low] = static_cast<int32_t>(static_cast<uint32_t>(number));
}

template <class T>
NamedNumbers part(const char* name, std::string_view suffix, const std::vector<T>& all, size_t first, size_t count,
                  int64_t per_row) {
  const auto each = static_cast<size_t>(per_row);
  return {fmt::format("{}{}", name, suffix), std::as_bytes(std::span(all).subspan(first * each, count * each))};
}

}  // namespace

void DrawColumns::add(const DrawOptions& options, uint64_t number, std::vector<Adjustment> adjustments) {
  if (std::ssize(adjustments) > slots_)
    throw_error(Exit::failed, "{} logits change before a draw that has room for {}", adjustments.size(), slots_);
  put_numbers(numbers_, options);
  put_integers(integers_, options, number);
  adjustments.resize(static_cast<size_t>(slots_), {-1, 0, 0});
  for (const Adjustment& a : adjustments) {
    adjusted_.insert(adjusted_.end(), {a.token, a.count});
    bias_.push_back(a.bias);
  }
}

std::vector<NamedNumbers> DrawColumns::rows(size_t first, size_t count, std::string_view suffix) const {
  return {part("draw_numbers", suffix, numbers_, first, count, SampleNumbers::count),
          part("draw_integers", suffix, integers_, first, count, SampleIntegers::count),
          part("adjusted", suffix, adjusted_, first, count, slots_ * SampleAdjustment::count),
          part("bias", suffix, bias_, first, count, slots_)};
}

std::pair<Tensor, Tensor> DrawColumns::sample_from(const Tensor& logits, int64_t rows, int64_t slots,
                                                   std::string_view suffix) {
  const auto per_row = [&](const char* name, DType type, std::initializer_list<int64_t> sizes) {
    return input(fmt::format("{}{}", name, suffix), type, Shape(sizes, Axis::wanted));
  };
  return sample(logits, per_row("draw_numbers", DType::f32, {rows, SampleNumbers::count}),
                per_row("draw_integers", DType::i32, {rows, SampleIntegers::count}),
                per_row("adjusted", DType::i32, {rows, slots, SampleAdjustment::count}),
                per_row("bias", DType::f32, {rows, slots}));
}

DrawInputs::DrawInputs(std::span<const Draw> draws, int64_t vocabulary) {
  std::vector<std::vector<Adjustment>> all;
  int64_t slots = least_slots;
  for (const Draw& draw : draws) {
    all.push_back(draw.sampler->adjustments(draw.history, static_cast<size_t>(vocabulary)));
    while (slots < std::ssize(all.back())) slots *= 8;
  }
  if (slots > most_slots) return;
  columns_ = DrawColumns(slots);
  for (size_t i = 0; i < draws.size(); ++i)
    columns_.add(draws[i].sampler->options(), draws[i].sampler->next_number(), std::move(all[i]));
}

}  // namespace consonant
