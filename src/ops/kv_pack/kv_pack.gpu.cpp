// SPDX-License-Identifier: Apache-2.0
// Bound by the bytes of k and v read and of the pages written.
#include "ops/kv_pack/kv_pack.hpp"
#include "ops/gpu_cache.hpp"
#include "ops/kv_cache.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

constexpr int block_threads = 256;

// A block a page and head: of the keys first, then of the values. Rows of keys are read across, but all of them for
// each number after the other, so that they stay in the processor's cache.
template <class T>
GPU_KERNEL void pack(Rows<const float> k, Rows<const float> v, gpu::Ptr<T> keys, gpu::Ptr<T> values, int64_t heads,
                     int64_t positions, int64_t blocks) {
  const bool of_keys = gpu::block() < blocks;
  const int64_t which = of_keys ? gpu::block() : gpu::block() - blocks;
  const int64_t first = which / heads * kv_page, head = which % heads;
  const Rows<const float>& from = of_keys ? k : v;
  const gpu::Ptr<T> to = (of_keys ? keys : values) + which * from.cols * kv_page;
  for (int64_t e = gpu::thread(); e < from.cols * kv_page; e += gpu::threads()) {
    const int64_t at = of_keys ? e % kv_page : e / from.cols, i = of_keys ? e / kv_page : e % from.cols;
    const int64_t position = first + at;
    const float x = position < positions ? static_cast<float>(from.row(position * heads + head)[i]) : 0.0f;
    to[e] = rounded_to<T>(x);
  }
}

template <class T>
void launch_as(const Args& args, Accelerator& device) {
  const View &k = args.in[0], &v = args.in[1];
  const int64_t blocks = args.out[0].shape[0] * args.out[0].shape[1];
  gpu::launch<pack<T>, block_threads>(device, {2 * blocks}, 0, rows_of<const float>(k), rows_of<const float>(v),
                                      pointer<T>(args.out[0]), pointer<T>(args.out[1]), k.shape[1], k.shape[0], blocks);
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  if (args.out[0].type == DType::f32)
    launch_as<float>(args, device);
  else
    launch_as<uint16_t>(args, device);
}

Refusal can_run(const Node& node, const Limits& limits) {
  if (Refusal refusal = wants_head_rows(node.inputs[0], "k")) return refusal;
  if (Refusal refusal = wants_head_rows(node.inputs[1], "v")) return refusal;
  const Shape& keys = node.outputs[0].shape;
  if (2 * keys[0] * keys[1] > limits.grid) return {"more pages than a grid has blocks"};
  return {};
}

}  // namespace

GpuKernel kv_pack_gpu() { return {"kv_pack", Op::kv_pack, can_run, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
