// SPDX-License-Identifier: Apache-2.0
#include "ops/slots.hpp"

namespace consonant {

Refusal wants_float_inputs(const Node& node, size_t count) {
  Node floats;
  floats.inputs.assign(node.inputs.begin(), node.inputs.begin() + static_cast<int64_t>(count));
  floats.outputs = node.outputs;
  const Refusal refusal = wants_float_rows(floats);
  floats.inputs.clear();
  return refusal;
}

}  // namespace consonant
