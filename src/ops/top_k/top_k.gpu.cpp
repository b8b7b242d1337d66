// SPDX-License-Identifier: Apache-2.0
#include "ops/top_k/top_k.hpp"
#include "ops/gpu_sort.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

struct StoreTop {
  Rows<const float> x;
  Rows<float> values;
  Rows<int32_t> columns;
  GPU_FN void operator()(int64_t r, int64_t i, uint64_t key) const {
    const int32_t column = index_of(key);
    columns.row(r)[i] = column;
    values.row(r)[i] = x.row(r)[column];
  }
};

Refusal can_run(const Node& node, const Limits& limits) {
  const Refusal refusal = wants_sortable(node, limits);
  return refusal ? refusal : wants_rows_of(node, {DType::f32}, {DType::f32, DType::i32});
}

int64_t scratch_bytes(const Node& node, const Limits&) {
  const Shape& shape = node.inputs[0].shape();
  return shape.rows() * sort_scratch_keys(shape.last(), node.attr<TopKAttr>().k) *
         static_cast<int64_t>(sizeof(uint64_t));
}

// A vocabulary of 150,000 is 37 tiles at once: with k = 40 what they keep is one more, with k = 1000 it takes three
// more rounds of 10, 3 and 1 tiles.
void launch(const Args& args, Accelerator& device, std::byte* scratch) {
  const auto x = rows_of<const float>(args.in[0]);
  if (args.out[0].shape.count() == 0) return;
  launch_sort(device, x.rows, KeysOfFloats{x, true}, x.cols, args.out[0].last(),
              StoreTop{x, rows_of<float>(args.out[0]), rows_of<int32_t>(args.out[1])}, scratch);
}

}  // namespace

GpuKernel top_k_gpu() { return {"top_k", Op::top_k, can_run, scratch_bytes, launch}; }

}  // namespace consonant::GPU_BUILD
