// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/few_products.hpp"

#include <algorithm>

#include "ops/linear/mma_few.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

using namespace mma;

int64_t units_of(int64_t columns) { return ceil_div(columns, unit_columns); }

template <DType Type>
Matrix<Type> matrix_of(const View& w) {
  const int64_t stride = is_quantized(Type) ? packed_shape(Type, w.shape[0], w.shape[1]).group_bytes
                                            : w.strides[0] * static_cast<int64_t>(sizeof(uint16_t));
  return {pointer<const uint8_t>(w), stride, static_cast<int>(w.shape[0]), static_cast<int>(w.shape[1])};
}

PlainInputs inputs_of(const View& x) {
  PlainInputs inputs{rows_of<const float>(x), false};
  inputs.aligned = inputs.x.outer_stride % 4 == 0 && reinterpret_cast<uintptr_t>(x.data) % 16 == 0;
  return inputs;
}

int team_of(int64_t units) { return units >= 8 ? 8 : units >= 4 ? 4 : units >= 2 ? 2 : 1; }

template <DType Type, int Together>
FewMemory<Type, Together> memory_of(int64_t tokens, int64_t columns) {
  const int64_t units = units_of(columns);
  return {tokens, units, few_warps / team_of(units)};
}

template <DType Type, int Together>
void launch_as(const FewProducts& p, Accelerator& device) {
  Matrices<Type> w;
  ProductOutputs outputs;
  outputs.activation = p.activation;
  if (p.residual) outputs.residual = rows_of<const float>(*p.residual);
  int tiles = 0;
  for (size_t i = 0; i < 3; ++i) {
    const size_t at = std::min(i, p.weights.size() - 1);
    w.all[i] = matrix_of<Type>(*p.weights[at]);
    w.first[i] = tiles;
    outputs.y[i] = rows_of<float>(*p.y[std::min(i, p.y.size() - 1)]);
    outputs.bias[i] = at < p.biases.size() && p.biases[at] ? pointer<const float>(*p.biases[at]) : nullptr;
    if (i < (p.gated ? 1 : p.weights.size())) tiles += static_cast<int>(ceil_div(w.all[i].rows, 16));
  }
  const int64_t tokens = p.x->shape[0], columns = w.all[0].columns, units = units_of(columns);
  const FewShape s{static_cast<int>(tokens), static_cast<int>(units), tiles, team_of(units)};
  const NormedInputs inputs{inputs_of(*p.x), p.norm ? pointer<const float>(*p.norm) : nullptr, p.epsilon};
  const int64_t shared = memory_of<Type, Together>(tokens, columns).end;
  const int64_t resident = std::clamp<int64_t>(device.limits().shared_bytes / (shared + 1024), 1, 3);
  const int64_t rounds = ceil_div(tiles, few_warps / s.team);
  const int64_t turns = ceil_div(rounds, resident * device.limits().processors);
  gpu::launch_early<few_products<Type, Together>, few_warps * 32>(device, {ceil_div(rounds, turns)}, shared, w, s,
                                                                  inputs, outputs);
}

// Calls fn.template operator()<type>().
template <class F>
void with_type(DType type, const F& fn) {
  switch (type) {
#define CASE(name)                         \
  case DType::name:                        \
    fn.template operator()<DType::name>(); \
    break;
    CASE(f16)
    CASE(bf16)
    CASE(q8_0)
    CASE(q4_0)
    CASE(q4_1)
    CASE(q5_0)
    CASE(q5_1)
    CASE(q2_k)
    CASE(q3_k)
    CASE(q4_k)
    CASE(q5_k)
    CASE(q6_k)
    CASE(iq4_nl)
    CASE(iq4_xs)
    CASE(mxfp4)
#undef CASE
    default:
      break;
  }
}

}  // namespace

bool takes_few_products(DType type, int64_t tokens, int64_t columns, bool gated, const Limits& limits) {
  if (tokens > most_few_tokens || limits.compute < 80) return false;
  int64_t bytes = limits.shared_bytes + 1;
  with_type(type, [&]<DType Type>() {
    bytes = gated ? memory_of<Type, 2>(tokens, columns).end : memory_of<Type, 1>(tokens, columns).end;
  });
  return bytes <= limits.shared_bytes;
}

void launch_few_products(const FewProducts& products, Accelerator& device) {
  with_type(products.weights[0]->type, [&]<DType Type>() {
    products.gated ? launch_as<Type, 2>(products, device) : launch_as<Type, 1>(products, device);
  });
}

}  // namespace consonant::GPU_BUILD
