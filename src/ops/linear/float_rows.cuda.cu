// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/float_rows.hpp"

namespace consonant::GPU_BUILD::mma {

namespace {

// Rows that short_norm doesn't cut into units are normalised by a launch of their own, as are gated products.
int64_t few_memory(int64_t tokens, int64_t columns, bool gated) {
  return gated || columns <= short_norm ? INT64_MAX : float_memory(tokens, columns, true);
}

void launch_few(const FewProducts& products, Accelerator& device) {
  for (size_t i = 0; i < products.weights.size(); ++i) {
    FloatProduct p = float_product(*products.x, *products.weights[i], *products.y[i]);
    if (products.norm) {
      p.norm = pointer<const float>(*products.norm), p.epsilon = products.epsilon;
      p.aligned = p.aligned && reinterpret_cast<uintptr_t>(products.norm->data) % 16 == 0;
    }
    if (i < products.biases.size() && products.biases[i]) p.bias = pointer<const float>(*products.biases[i]);
    if (products.residual) p.residual = lines_of<const float>(*products.residual);
    launch_floats(p, device);
  }
}

int64_t scratch(int64_t, int64_t, int64_t, const Limits&) { return 0; }

DType launch(const Args& args, Accelerator& device, std::byte*, DType made) {
  const LinearAttr& attr = args.attr<LinearAttr>();
  FloatProduct p = float_product(args.in[0], args.in[1], args.out[0]);
  if (attr.bias) p.bias = pointer<const float>(args.in[2]);
  if (attr.residual) p.residual = lines_of<const float>(args.in.back());
  launch_floats(p, device);
  return made;
}

}  // namespace

Forms forms_f32() { return {float_memory(8, 0, false), few_memory, launch_few, scratch, launch}; }

}  // namespace consonant::GPU_BUILD::mma
