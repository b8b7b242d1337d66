// SPDX-License-Identifier: Apache-2.0
#include "ops/argsort/argsort.hpp"
#include "ops/gpu_sort.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

struct StoreIndices {
  Rows<int32_t> y;
  GPU_FN void operator()(int64_t r, int64_t i, uint64_t key) const { y.row(r)[i] = index_of(key); }
};

Refusal can_run(const Node& node, const Limits& limits) {
  const Refusal refusal = wants_sortable(node, limits);
  return refusal ? refusal : wants_rows_of(node, {DType::f32}, {DType::i32});
}

int64_t scratch_bytes(const Node& node, const Limits&) {
  const Shape& shape = node.inputs[0].shape();
  return shape.rows() * sort_scratch_keys(shape.last(), shape.last()) * static_cast<int64_t>(sizeof(uint64_t));
}

void launch(const Args& args, Accelerator& device, std::byte* scratch) {
  const View& y = args.out[0];
  if (y.shape.count() == 0) return;
  const KeysOfFloats keys{rows_of<const float>(args.in[0]), args.attr<ArgsortAttr>().order == Order::descending};
  launch_sort(device, y.rows(), keys, y.last(), y.last(), StoreIndices{rows_of<int32_t>(y)}, scratch);
}

}  // namespace

GpuKernel argsort_gpu() { return {"argsort", Op::argsort, can_run, scratch_bytes, launch}; }

}  // namespace consonant::GPU_BUILD
