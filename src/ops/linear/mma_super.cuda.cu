// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/mma_launch.hpp"

namespace consonant::GPU_BUILD::mma {

FORMS(q4_k)
FORMS(q5_k)
FORMS(q6_k)

}  // namespace consonant::GPU_BUILD::mma

namespace consonant::GPU_BUILD {

// The mixtures that llama.cpp's Q4_K_M and Q5_K_M make of q, k and v.
bool launch_few_products(const FewProducts& first, const FewProducts& second, Accelerator& device) {
  const DType a = first.weights[0]->type, b = second.weights[0]->type;
  if (a == DType::q4_k && b == DType::q6_k)
    mma::launch_few_of_two<DType::q4_k, DType::q6_k>(first, second, device);
  else if (a == DType::q5_k && b == DType::q6_k)
    mma::launch_few_of_two<DType::q5_k, DType::q6_k>(first, second, device);
  else
    return false;
  return true;
}

}  // namespace consonant::GPU_BUILD
