// SPDX-License-Identifier: Apache-2.0
#include "ops/resample/resample.hpp"
#include "ops/gpu_rows.hpp"
#include "ops/resample/filter.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

constexpr int block_threads = 256;
constexpr int64_t most_weights = int64_t{1} << 26;

// [tap, phase]: neighbouring outputs read neighbouring memory, though not in order.
GPU_KERNEL void make_weights(ResampleFilter filter, gpu::Ptr<float> weights) {
  const int64_t i = gpu::block() * block_threads + gpu::thread();
  if (i < filter.up * filter.taps())
    weights[i] = resample_weight(filter.distance(i % filter.up, i / filter.up), filter.scale);
}

// A thread an output.
GPU_KERNEL void resample(ResampleFilter filter, gpu::Ptr<const float> weights, Rows<const float> x, Rows<float> y) {
  const int64_t parts = (y.cols + block_threads - 1) / block_threads, row = gpu::block() / parts;
  const int64_t m = gpu::block() % parts * block_threads + gpu::thread();
  if (m >= y.cols) return;
  const auto from = x.row(row);
  const int64_t first = filter.first(m), phase = filter.phase(m), n = x.cols;
  const int64_t begin = first < 0 ? -first : 0, end = n - first < filter.taps() ? n - first : filter.taps();
  float sum = 0;
  for (int64_t j = begin; j < end; ++j) sum += weights[j * filter.up + phase] * from[first + j];
  y.row(row)[m] = sum;
}

ResampleFilter filter_of(const ResampleAttr& attr) { return {attr.rate_in, attr.rate_out}; }

int64_t scratch_bytes(const Node& node, const Limits&) {
  const ResampleFilter filter = filter_of(node.attr<ResampleAttr>());
  return filter.up * filter.taps() * static_cast<int64_t>(sizeof(float));
}

Refusal can_run(const Node& node, const Limits& limits) {
  const ResampleFilter filter = filter_of(node.attr<ResampleAttr>());
  if (filter.up * filter.taps() > most_weights)
    return {fmt::format("the filter has {} phases of {} taps", filter.up, filter.taps())};
  const Shape& shape = node.outputs[0].shape;
  if (shape.rows() * ceil_div(shape.last(), block_threads) > limits.grid)
    return {fmt::format("{} has more than {} blocks of {}", to_string(shape), limits.grid, block_threads)};
  return wants_gpu_rows(node, limits);
}

// Bound by the loads of weights from the cache: two loads for each product.
void launch(const Args& args, Accelerator& device, std::byte* scratch) {
  const View& y = args.out[0];
  const ResampleFilter filter = filter_of(args.attr<ResampleAttr>());
  const int64_t count = filter.up * filter.taps();
  const auto weights = gpu::pointer<float>(scratch, count * 4);
  const gpu::Ptr<const float> made = weights;
  if (y.shape.count() == 0) return;
  gpu::launch<make_weights, block_threads>(device, {ceil_div(count, block_threads)}, 0, filter, weights);
  gpu::launch<resample, block_threads>(device, {y.rows() * ceil_div(y.last(), block_threads)}, 0, filter, made,
                                       rows_of<const float>(args.in[0]), rows_of<float>(y));
}

}  // namespace

GpuKernel resample_gpu() { return {"resample", Op::resample, can_run, scratch_bytes, launch}; }

}  // namespace consonant::GPU_BUILD
