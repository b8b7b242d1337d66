// SPDX-License-Identifier: Apache-2.0
// On tensor cores: few tokens in one launch for each type of weights, more of them part by part.
#include "ops/linear/few_products.hpp"
#include "ops/linear_set/linear_set_parts.hpp"

namespace consonant::GPU_BUILD {

GpuKernel linear_mma_gpu();

namespace {

LinearSetParts parts() { return LinearSetParts(linear_mma_gpu()); }

Refusal can_run(const Node& node, const Limits& limits) { return parts().can_run(node, limits); }

int64_t scratch(const Node& node, const Limits& limits) { return parts().scratch(node, limits); }

// Whether all of it can go through few_products.
bool few(const Args& args, const Limits& limits) {
  const LinearSetAttr& attr = args.attr<LinearSetAttr>();
  const View& x = args.in[0];
  for (int i = 0; i < attr.count; ++i) {
    const View &w = args.in[static_cast<size_t>(weight_input(attr, i))],
               &first = args.in[static_cast<size_t>(weight_input(attr, 0))];
    if (!takes_few_products(w.type, x.shape[0], x.shape[1], attr.gated, limits)) return false;
    if (attr.gated && w.type != first.type) return false;
  }
  return !attr.gated || attr.activation == Activation::silu || attr.activation == Activation::gelu;
}

// Those of the set's products whose weights have a type.
struct OfType {
  const View *weights[LinearSetAttr::most], *biases[LinearSetAttr::most], *y[LinearSetAttr::most];
  FewProducts products;

  OfType(const Args& args, DType type) {
    const LinearSetAttr& attr = args.attr<LinearSetAttr>();
    size_t n = 0;
    for (int i = 0; i < attr.count; ++i) {
      const View& w = args.in[static_cast<size_t>(weight_input(attr, i))];
      if (w.type != type) continue;
      const int bias = bias_input(attr, i);
      weights[n] = &w, biases[n] = bias < 0 ? nullptr : &args.in[static_cast<size_t>(bias)];
      y[n] = &args.out[attr.gated ? 0 : static_cast<size_t>(i)];
      ++n;
    }
    products = {.x = &args.in[0],
                .norm = attr.norm ? &args.in[1] : nullptr,
                .epsilon = attr.epsilon,
                .weights = {weights, n},
                .biases = {biases, n},
                .y = {y, attr.gated ? 1 : n},
                .gated = attr.gated,
                .activation = attr.activation};
  }
  OfType(const OfType&) = delete;
  OfType& operator=(const OfType&) = delete;
};

void launch(const Args& args, Accelerator& device, std::byte* scratch) {
  if (args.in[0].shape[0] == 0) return;
  if (!few(args, device.limits())) {
    DType made = DType::f32;
    const LinearSetParts all(linear_mma_gpu(), [&](const Args& product, Accelerator& on, std::byte* memory) {
      made = launch_linear_mma(product, on, memory, made);
    });
    return all.launch(args, device, scratch);
  }
  const LinearSetAttr& attr = args.attr<LinearSetAttr>();
  std::vector<DType> types;
  for (int i = 0; i < attr.count; ++i) {
    const DType type = args.in[static_cast<size_t>(weight_input(attr, i))].type;
    if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
  }
  if (types.size() == 2 &&
      launch_few_products(OfType(args, types[0]).products, OfType(args, types[1]).products, device))
    return;
  for (const DType type : types) launch_few_products(OfType(args, type).products, device);
}

}  // namespace

GpuKernel linear_set_mma_gpu() {
  return {"linear_set_mma", Op::linear_set, can_run, scratch, launch, 0x1p-11, linear_mma_gpu().same_bits_to};
}

}  // namespace consonant::GPU_BUILD
