// SPDX-License-Identifier: Apache-2.0
// The experts' products on CUDA's tensor cores, on an emulator that plays the tensor cores, over the cases of
// linear_of: against the reference, and with the same bits whichever form, tile and neighbours a token has.
#include <gtest/gtest.h>

#include "ops/linear_of/experts_mma.hpp"
#include "ops/linear_of/linear_of_node.hpp"
#include "ops/sweep_gpu.hpp"
#include "runtime/backends.hpp"

namespace consonant::GPU_BUILD {
namespace {

template <DType Type>
Refusal can_run(const Node& node, const Limits&) {
  const Tensor& w = node.inputs[2];
  if (Refusal refusal = wants_experts(node)) return refusal;
  if (w.type() != Type || node.inputs[1].type() != DType::f32) return {"of another type"};
  if (!is_quantized(Type) && w.shape()[2] % 8 != 0) return {"rows aren't aligned"};
  return {};
}

template <DType Type>
int64_t scratch(const Node& node, const Limits&) {
  const Shape& w = node.inputs[2].shape();
  return mma::experts_scratch<Type>(node.inputs[0].shape().count(), w[0], w[1], w[2], node.attr<LinearOfAttr>().gated);
}

template <DType Type>
void expect_right() {
  const std::unique_ptr<Accelerator> device = find_backend(DeviceKind::emu32).open(0);
  const_cast<Limits&>(device->limits()).shared_bytes = 227 * 1024;  // what a card with tensor cores has
  const GpuKernel kernel = {"linear_of_mma",           Op::linear_of, can_run<Type>, scratch<Type>,
                            mma::launch_experts<Type>, 0x1p-11};
  // Cases that a card takes at once are minutes here.
  const SweepResult result = sweep(kernel, *device, int64_t{40} << 20);
  EXPECT_GT(result.cases, 3);
  for (const std::string& fault : result.faults) ADD_FAILURE() << fault;
}

TEST(ExpertsOnTensorCores, HalfWeights) { expect_right<DType::bf16>(); }
TEST(ExpertsOnTensorCores, Blocks) { expect_right<DType::q8_0>(); }
TEST(ExpertsOnTensorCores, SuperBlocks) { expect_right<DType::q4_k>(); }
TEST(ExpertsOnTensorCores, Levels) { expect_right<DType::mxfp4>(); }

}  // namespace
}  // namespace consonant::GPU_BUILD
