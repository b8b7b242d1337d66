// SPDX-License-Identifier: Apache-2.0
// In two forms with the same bits, since the order of a sum in `multiply_int8` and `multiply_float` depends on no
// neighbour:
//   few tokens   a chunk is some rows of the expert of one (token, slot) pair: only what was chosen is read
//   many tokens  a chunk is some rows of one expert and all pairs that chose it: their x are gathered, and the weights
//                read once for a block of them. An expert that nobody chose costs a look at the ids.
#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "ops/linear/product.hpp"
#include "ops/linear_of/linear_of_node.hpp"
#include "tensor/activations.hpp"

namespace consonant {

namespace {

// A step's sizes, and how it is cut.
class Step {
 public:
  explicit Step(const Args& args)
      : ids_(args.in[0]),
        x_(args.in[1]),
        w_(args.in[2]),
        y_(args.out[0]),
        experts_(packed_shape(w_.type, w_.shape.sizes())),
        used_(ids_.last()),
        pairs_(ids_.shape.count()),
        is_few_(ids_.shape[0] == 1 || 2 * pairs_ <= experts_.matrices),
        cut_(rows_of(0, 0, experts_.rows, is_few_ ? 1 : ceil_div(pairs_, experts_.matrices))) {}

  int64_t chunks() const {
    if (pairs_ == 0 || experts_.rows == 0) return 0;
    return (is_few_ ? pairs_ : experts_.matrices) * cut_.group_blocks;
  }
  int64_t scratch() const {
    const Product p = rows_of(0, 0, experts_.rows, cut_.token_block);
    const int64_t kernel = p.x_is_int8 ? int8_scratch(p, cut_) : float_scratch(p, cut_);
    return round_up(kernel, 64) + (is_few_ ? 0 : gathered_bytes() + sums_bytes());
  }
  void run(int64_t chunk, std::byte* scratch) const {
    const int64_t owner = chunk / cut_.group_blocks, first = chunk % cut_.group_blocks * cut_.group_block * 8;
    const int64_t rows = std::min(cut_.group_block * 8, experts_.rows - first);
    if (!is_few_) return run_expert(owner, first, rows, scratch);
    Product p = rows_of(expert_of(owner), first, rows, 1);
    p.x = x_row(owner);
    p.y = y_.row<float>(owner) + first;
    multiply(p, scratch);
  }

 private:
  int64_t expert_of(int64_t pair) const { return ids_.row<int32_t>(pair / used_)[pair % used_]; }
  int64_t x_bytes(int64_t elements) const {
    return x_.type == DType::f32 ? elements * 4 : ActivationRow::bytes(elements, activation_parts(x_.type));
  }
  const std::byte* x_row(int64_t pair) const {
    return x_.data + x_bytes(x_.row_offset(x_.shape.rank() == 3 ? pair : pair / used_));
  }
  int64_t gathered_bytes() const { return round_up(cut_.token_block * x_bytes(x_.last()), 64); }
  int64_t sums_bytes() const { return round_up(cut_.token_block * cut_.group_block * 8 * 4, 64); }

  // A product of rows first ... first + rows - 1 of an expert, `first` a multiple of eight; x and y are to be set.
  Product rows_of(int64_t expert, int64_t first, int64_t rows, int64_t tokens) const {
    Product p;
    p.weights = {experts_.type, rows, experts_.k, experts_.group_bytes};
    if (w_.layout == Layout::rows8)
      p.packed = w_.data + expert * experts_.matrix_bytes() + first / 8 * experts_.group_bytes;
    else
      p.plain = w_.data + (expert * experts_.rows + first) * row_bytes(w_.type, experts_.k);
    p.x_stride = x_bytes(x_.last());
    p.x_is_int8 = x_.type != DType::f32;
    p.parts = activation_parts(x_.type);
    p.tokens = tokens;
    return p;
  }

  static void multiply(const Product& p, std::byte* scratch) {
    const Patch patch{0, p.weights.groups(), 0, p.tokens};
    if (p.x_is_int8)
      multiply_int8(p, patch, scratch);
    else
      multiply_float(p, patch, scratch);
  }

  void run_expert(int64_t expert, int64_t first, int64_t rows, std::byte* scratch) const {
    std::byte* const gathered = scratch;
    auto* const sums = reinterpret_cast<float*>(gathered + gathered_bytes());
    std::byte* const room = gathered + gathered_bytes() + sums_bytes();
    const int64_t bytes = x_bytes(x_.last());
    int64_t pairs[Cut::most_tokens];
    for (int64_t pair = 0; pair < pairs_;) {
      int64_t count = 0;
      for (; pair < pairs_ && count < cut_.token_block; ++pair) {
        if (expert_of(pair) != expert) continue;
        std::memcpy(gathered + count * bytes, x_row(pair), static_cast<size_t>(bytes));
        pairs[count++] = pair;
      }
      if (count == 0) return;
      Product p = rows_of(expert, first, rows, count);
      p.x = gathered;
      p.y = sums;
      p.y_stride = rows;
      multiply(p, room);
      for (int64_t i = 0; i < count; ++i) std::copy_n(sums + i * rows, rows, y_.row<float>(pairs[i]) + first);
    }
  }

  const View &ids_, &x_, &w_, &y_;
  PackedShape experts_;
  int64_t used_, pairs_;
  bool is_few_;
  Cut cut_;
};

Refusal can_run(const Node& node) {
  if (node.attr<LinearOfAttr>().gated) return {"gated products are nodes of their own here"};
  return wants_experts(node);
}

Work work(const Args& args) {
  const Step step(args);
  return {step.chunks(), step.scratch()};
}

void run(const Args& args, int64_t chunk, std::byte* scratch) { Step(args).run(chunk, scratch); }

}  // namespace

extern const Kernel linear_of_cpu = {DeviceKind::cpu, Op::linear_of, can_run, work, run};

}  // namespace consonant
