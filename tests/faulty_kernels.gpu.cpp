// SPDX-License-Identifier: Apache-2.0
#include "tests/faulty_kernels.hpp"

#include "ops/gpu_rows.hpp"

namespace consonant::GPU_BUILD {

namespace {

constexpr int threads = 64;
constexpr int64_t scratch_bytes = 8;

struct Faults {
  bool wrong, skips, shifted, neighbours;
};

GPU_KERNEL void scaled(Rows<const float> x, Rows<float> y, Faults faults) {
  const auto from = x.row(gpu::block());
  const auto to = y.row(gpu::block());
  const float factor = faults.wrong ? 25.3f : 25.298221f;
  for (int64_t i = gpu::thread(); i < x.cols; i += threads) {
    if (faults.skips && gpu::block() == 2 && i == 0) continue;
    float v = from[i] * factor;
    if (faults.shifted || (faults.neighbours && gpu::blocks() == 1)) v *= 1 + 0x1p-23f;
    to[i] = v;
  }
}

GPU_KERNEL void write_at(gpu::Ptr<float> data, int64_t i) {
  if (gpu::thread() == 0) data[i] = 7;
}

template <Fault fault>
void launch(const Args& args, Accelerator& device, std::byte* scratch) {
  const View &x = args.in[0], &y = args.out[0];
  Faults faults{fault == Fault::wrong_factor, fault == Fault::skips_an_element, false, fault == Fault::sees_the_batch};
  // Only an emulator's memory can be read here.
  if (fault == Fault::captures_data) faults.shifted = x.shape.count() > 0 && *x.as<float>() == 0;
  gpu::launch<scaled, threads>(device, {y.rows()}, 0, rows_of<const float>(x), rows_of<float>(y), faults);
  const auto write = [&](std::byte* data, int64_t bytes, int64_t room) {
    gpu::launch<write_at, threads>(device, {1}, 0, gpu::pointer<float>(data, bytes + room), bytes / 4);
  };
  if (fault == Fault::passes_scratch) write(scratch, scratch_bytes, 4);
  if (fault == Fault::passes_output) write(y.data, extent(y), 4);
  if (fault == Fault::passes_everything) write(y.data, extent(y), 0);
  if (fault == Fault::writes_input && x.shape.count() > 0) write(x.data, 0, 4);
}

Refusal takes_all(const Node&, const Limits&) { return {}; }

template <Fault fault>
GpuKernel make() {
  return {"scaled", Op::scale, takes_all, [](const Node&, const Limits&) { return scratch_bytes; }, launch<fault>};
}

}  // namespace

GpuKernel faulty_kernel(Fault fault) {
  switch (fault) {
    case Fault::none:
      return make<Fault::none>();
    case Fault::wrong_factor:
      return make<Fault::wrong_factor>();
    case Fault::skips_an_element:
      return make<Fault::skips_an_element>();
    case Fault::sees_the_batch:
      return make<Fault::sees_the_batch>();
    case Fault::captures_data:
      return make<Fault::captures_data>();
    case Fault::passes_scratch:
      return make<Fault::passes_scratch>();
    case Fault::passes_output:
      return make<Fault::passes_output>();
    case Fault::passes_everything:
      return make<Fault::passes_everything>();
    case Fault::writes_input:
      return make<Fault::writes_input>();
  }
  return make<Fault::none>();
}

}  // namespace consonant::GPU_BUILD
