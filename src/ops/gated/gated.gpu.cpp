// SPDX-License-Identifier: Apache-2.0
#include "ops/gated/gated.hpp"
#include "ops/activation_gpu.hpp"

namespace consonant::GPU_BUILD {

namespace {

template <Activation f>
GPU_KERNEL void multiply_activated(Rows<const float> gate, Rows<const float> x, Rows<float> y) {
  for_elements(y.rows, y.cols, [&](int64_t r, int64_t i) { y.row(r)[i] = activated<f>(gate.row(r)[i]) * x.row(r)[i]; });
}

template <Activation f>
void launch_one(const Args& args, Accelerator& device) {
  gpu::launch<multiply_activated<f>, elementwise_threads>(
      device, elementwise_grid(args.out[0]), 0, rows_of<const float>(args.in[0]), rows_of<const float>(args.in[1]),
      rows_of<float>(args.out[0]));
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  switch (args.attr<GatedAttr>().activation) {
    case Activation::silu:
      return launch_one<Activation::silu>(args, device);
    case Activation::gelu:
      return launch_one<Activation::gelu>(args, device);
    case Activation::gelu_erf:
      return launch_one<Activation::gelu_erf>(args, device);
    case Activation::relu:
      return launch_one<Activation::relu>(args, device);
    case Activation::relu_squared:
      return launch_one<Activation::relu_squared>(args, device);
    case Activation::sigmoid:
      return launch_one<Activation::sigmoid>(args, device);
    case Activation::elu:
      return launch_one<Activation::elu>(args, device);
    case Activation::tanh:
      return launch_one<Activation::tanh>(args, device);
  }
}

}  // namespace

GpuKernel gated_gpu() { return {"gated", Op::gated, wants_gpu_rows, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
