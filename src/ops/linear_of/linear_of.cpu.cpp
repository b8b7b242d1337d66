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
        w_{&args.in[2], args.attr<LinearOfAttr>().gated ? &args.in[3] : nullptr},
        y_(args.out[0]),
        activation_(args.attr<LinearOfAttr>().activation),
        experts_(packed_shape(w_[0]->type, w_[0]->shape.sizes())),
        used_(ids_.last()),
        pairs_(ids_.shape.count()),
        is_few_(ids_.shape[0] == 1 || 2 * pairs_ <= experts_.matrices),
        cut_(rows_of(0, 0, experts_.rows, is_few_ ? 1 : ceil_div(pairs_, experts_.matrices))) {}

  int64_t chunks() const {
    if (pairs_ == 0 || experts_.rows == 0) return 0;
    return (is_few_ ? pairs_ : experts_.matrices) * cut_.group_blocks;
  }
  int64_t scratch() const {
    int64_t kernel = 0;
    for (int i = 0; i < products(); ++i) {
      const Product p = rows_of(0, 0, experts_.rows, cut_.token_block, i);
      kernel = std::max(kernel, p.x_is_int8 ? int8_scratch(p, cut_) : float_scratch(p, cut_));
    }
    return round_up(kernel, 64) + (is_few_ ? gated() * sums_bytes() : gathered_bytes() + products() * sums_bytes());
  }
  void run(int64_t chunk, std::byte* scratch) const {
    const int64_t owner = chunk / cut_.group_blocks, first = chunk % cut_.group_blocks * cut_.group_block * 8;
    const int64_t rows = std::min(cut_.group_block * 8, experts_.rows - first);
    if (!is_few_) return run_expert(owner, first, rows, scratch);
    float* const y = y_.row<float>(owner) + first;
    auto* const second = reinterpret_cast<float*>(scratch);
    for (int i = 0; i < products(); ++i) {
      Product p = rows_of(expert_of(owner), first, rows, 1, i);
      p.x = x_row(owner);
      p.y = i == 0 ? y : second;
      multiply(p, scratch + gated() * sums_bytes());
    }
    if (gated()) activate(activation_, y, second, y, rows);
  }

 private:
  bool gated() const { return w_[1] != nullptr; }
  int products() const { return gated() ? 2 : 1; }
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
  // `which`: of w, or of the second one.
  Product rows_of(int64_t expert, int64_t first, int64_t rows, int64_t tokens, int which = 0) const {
    const View& w = *w_[which];
    const PackedShape experts = packed_shape(w.type, w.shape.sizes());
    Product p;
    p.weights = {experts.type, rows, experts.k, experts.group_bytes};
    if (w.layout == Layout::rows8)
      p.packed = w.data + expert * experts.matrix_bytes() + first / 8 * experts.group_bytes;
    else
      p.plain = w.data + (expert * experts.rows + first) * row_bytes(w.type, experts.k);
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
    const auto sums_of = [&](int which) {
      return reinterpret_cast<float*>(gathered + gathered_bytes() + which * sums_bytes());
    };
    std::byte* const room = gathered + gathered_bytes() + products() * sums_bytes();
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
      for (int which = 0; which < products(); ++which) {
        Product p = rows_of(expert, first, rows, count, which);
        p.x = gathered;
        p.y = sums_of(which);
        p.y_stride = rows;
        multiply(p, room);
      }
      for (int64_t i = 0; i < count; ++i) {
        const float* const sums = sums_of(0) + i * rows;
        float* const y = y_.row<float>(pairs[i]) + first;
        if (gated())
          activate(activation_, sums, sums_of(1) + i * rows, y, rows);
        else
          std::copy_n(sums, rows, y);
      }
    }
  }

  const View &ids_, &x_;
  const View* w_[2];  // the second of a gated node
  const View& y_;
  Activation activation_;
  PackedShape experts_;
  int64_t used_, pairs_;
  bool is_few_;
  Cut cut_;
};

Work work(const Args& args) {
  const Step step(args);
  return {step.chunks(), step.scratch()};
}

void run(const Args& args, int64_t chunk, std::byte* scratch) { Step(args).run(chunk, scratch); }

}  // namespace

extern const Kernel linear_of_cpu = {DeviceKind::cpu, Op::linear_of, wants_experts, work, run};

}  // namespace consonant
