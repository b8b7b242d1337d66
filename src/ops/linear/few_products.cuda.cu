// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/few_products.hpp"

#include "ops/linear/mma_forms.hpp"

namespace consonant::GPU_BUILD {

bool takes_few_products(DType type, int64_t tokens, int64_t columns, bool gated, const Limits& limits) {
  if (tokens > most_few_tokens || limits.compute < 80) return false;
  const mma::Forms forms = mma::forms_of(type);
  return forms.few_memory && forms.few_memory(tokens, columns, gated) <= limits.shared_bytes;
}

void launch_few_products(const FewProducts& products, Accelerator& device) {
  mma::forms_of(products.weights[0]->type).launch_few(products, device);
}

}  // namespace consonant::GPU_BUILD
