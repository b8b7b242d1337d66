// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/model_file.hpp"

namespace consonant {

// Latent attention (deepseek2) makes keys and values of all heads from one row a position. GGUF has the matrices that
// do it as two stacks: attn_k_b [head, latent, key], transposed, so that queries can be brought to the rows' space, and
// attn_v_b [head, value, latent]. Older GGUF files and Hugging Face folders have both in one matrix, attn_kv_b
// [head * (key + value), latent], a head's keys before its values: it is replaced by the two. What changes its order
// keeps its type, but transposed blocks become f16.
void split_latent_projections(ModelFile& file);

}  // namespace consonant
