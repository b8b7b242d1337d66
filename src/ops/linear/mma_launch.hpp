// SPDX-License-Identifier: Apache-2.0
#pragma once

// Launches of linear's forms on tensor cores, for one type of weights. Each type's are compiled once, in mma_x.cuda.cu;
// the product of halves is the same for all, in mma_halves.cuda.cu.
#include <algorithm>
#include <type_traits>

#include "ops/linear/linear.hpp"
#include "ops/linear/mma_few.hpp"
#include "ops/linear/mma_forms.hpp"
#include "ops/linear/mma_prepare.hpp"
#include "ops/linear/mma_some.hpp"

namespace consonant::GPU_BUILD::mma {

// By the tiling that suits the sizes.
void launch_halves(const HalvesProduct& p, const PlainOutputs& outputs, Accelerator& device);

// 64 rows by some tokens; fewer teams where weights are wide.
template <DType Type, int Tokens>
using Small = Tiling<4, 1, 1, Tokens / 8, has_blocks(Type) ? 4 : 2>;
// 16 rows, for matrices that would make fewer blocks than there are processors: a block's warps are teams of their own.
template <int Tokens>
using Narrow = Tiling<1, 1, 1, Tokens / 8, Tokens == 8 ? 4 : 8>;

inline int64_t units_of(int64_t columns) { return ceil_div(columns, unit_columns); }

inline PlainOutputs outputs_of(const Args& args) {
  const LinearAttr& attr = args.attr<LinearAttr>();
  PlainOutputs outputs{rows_of<float>(args.out[0]), nullptr, {}, has_aligned_rows(args.out[0])};
  if (attr.bias) {
    outputs.bias = pointer<const float>(args.in[2]);
    outputs.fours = outputs.fours && reinterpret_cast<uintptr_t>(args.in[2].data) % 16 == 0;
  }
  if (attr.residual) {
    const View& residual = args.in[attr.bias ? 3 : 2];
    outputs.residual = rows_of<const float>(residual);
    outputs.fours = outputs.fours && has_aligned_rows(residual);
  }
  return outputs;
}

inline PlainInputs inputs_of(const View& x) { return {rows_of<const float>(x), has_aligned_rows(x)}; }

template <DType Type>
Matrix<Type> matrix_of(const View& w) {
  const int64_t stride = is_quantized(Type) ? packed_shape(Type, w.shape[0], w.shape[1]).group_bytes
                                            : w.strides[0] * static_cast<int64_t>(sizeof(uint16_t));
  return {pointer<const uint8_t>(w), stride, static_cast<int>(w.shape[0]), static_cast<int>(w.shape[1])};
}

// ---- few tokens

// A processor has so many blocks, of this kernel or of the next one, which asks for its weights before this one has
// ended: if it can, a block takes no more memory than this.
constexpr int few_resident = 2;
constexpr int64_t few_bytes = 110 * 1024;

// With the largest teams: what needs the least memory.
template <DType Type, int Together>
void place_largest(FewShape& s) {
  s.team = std::clamp(s.units, 1, few_warps), s.teams = few_warps / s.team;
  place<Type, Together>(s);
}
template <DType Type, int Together>
int64_t least_memory(int64_t tokens, int64_t columns) {
  FewShape s = {static_cast<int>(tokens), static_cast<int>(units_of(columns)), 0};
  place_largest<Type, Together>(s);
  return s.end;
}

// Chooses how many warps share a tile: what leaves a warp the fewest units to do one after the other. Large teams where
// that is the same, as they bring a tile sooner. Returns the blocks of one of so many copies, which run side by side.
template <DType Type, int Together>
int64_t spread_few(FewShape& best, const Limits& limits, int64_t copies = 1) {
  int64_t least = INT64_MAX, blocks = 1;
  place_largest<Type, Together>(best);
  FewShape s = best;
  for (const int largest = s.team; s.team > 0; --s.team) {
    s.teams = few_warps / s.team;
    place<Type, Together>(s);
    if (s.team < largest && s.end > std::min(few_bytes, limits.shared_bytes)) break;
    const int64_t all = std::clamp<int64_t>(limits.shared_bytes / (s.end + 1024), 1, few_resident) *
                        std::max<int64_t>(limits.processors, 1),
                  places = std::max<int64_t>(all / copies, 1);
    s.teams = static_cast<int>(std::clamp<int64_t>(ceil_div(s.tiles, places), 1, s.teams));
    const int64_t rounds = ceil_div(s.tiles, s.teams), turns = std::max<int64_t>(ceil_div(rounds, places), 1);
    const int64_t cost = turns * Together * ceil_div(s.units, s.team);
    if (cost < least) least = cost, best = s, blocks = ceil_div(rounds, turns);
  }
  place<Type, Together>(best);
  return blocks;
}

template <class T>
Lines<T> lines_of(const View& v) {
  return {pointer<T>(v), v.strides[0]};
}

// The arguments of a launch, but for how it is spread.
template <DType Type>
FewPart<Type> few_part(const FewProducts& p) {
  FewPart<Type> part{};
  part.outputs.activation = p.activation;
  if (p.residual) part.outputs.residual = lines_of<const float>(*p.residual);
  int tiles = 0;
  for (size_t i = 0; i < 3; ++i) {
    const size_t at = std::min(i, p.weights.size() - 1);
    part.w.all[i] = matrix_of<Type>(*p.weights[at]);
    part.w.first[i] = tiles;
    part.outputs.y[i] = lines_of<float>(*p.y[std::min(i, p.y.size() - 1)]);
    part.outputs.bias[i] = at < p.biases.size() && p.biases[at] ? pointer<const float>(*p.biases[at]) : nullptr;
    if (i < (p.gated ? 1 : p.weights.size())) tiles += static_cast<int>(ceil_div(part.w.all[i].rows, 16));
  }
  part.s = {static_cast<int>(p.x->shape[0]), static_cast<int>(units_of(part.w.all[0].columns)), tiles};
  return part;
}

inline NormedInputs normed_inputs(const FewProducts& p) {
  return {lines_of<const float>(*p.x), p.norm ? pointer<const float>(*p.norm) : nullptr, p.epsilon,
          static_cast<int>(p.x->shape[1]), has_aligned_rows(*p.x)};
}

template <DType Type, int Together>
void launch_few_as(const FewProducts& p, Accelerator& device) {
  FewPart<Type> part = few_part<Type>(p);
  const int64_t blocks = spread_few<Type, Together>(part.s, device.limits());
  const auto launch = [&](auto most) {
    gpu::launch_early<few_products<Type, Together, decltype(most)::value>, few_warps * 32, few_resident>(
        device, {blocks}, part.s.end, part.w, part.s, normed_inputs(p), part.outputs);
  };
  using Most = std::integral_constant<int, static_cast<int>(most_few_tokens)>;
  part.s.tokens == 1 ? launch(std::integral_constant<int, 1>()) : launch(Most());
}

template <DType First, DType Second>
void launch_few_of_two(const FewProducts& a, const FewProducts& b, Accelerator& device) {
  FewPart<First> first = few_part<First>(a);
  FewPart<Second> second = few_part<Second>(b);
  place_largest<First, 1>(first.s), place_largest<Second, 1>(second.s);
  const int64_t shared = std::max(first.s.end, second.s.end);
  const int64_t rounds[] = {ceil_div(first.s.tiles, first.s.teams), ceil_div(second.s.tiles, second.s.teams)};
  const int64_t places = few_resident * std::max<int64_t>(device.limits().processors, 1);
  int64_t turns = 1;
  while (ceil_div(rounds[0], turns) + ceil_div(rounds[1], turns) > places) ++turns;
  first.blocks = static_cast<int>(ceil_div(rounds[0], turns));
  second.blocks = static_cast<int>(ceil_div(rounds[1], turns));
  const auto launch = [&](auto most) {
    gpu::launch_early<few_products_of_two<First, Second, decltype(most)::value>, few_warps * 32, few_resident>(
        device, {first.blocks + second.blocks}, shared, first, second, normed_inputs(a));
  };
  using Most = std::integral_constant<int, static_cast<int>(most_few_tokens)>;
  first.s.tokens == 1 ? launch(std::integral_constant<int, 1>()) : launch(Most());
}

template <DType Type>
void launch_few(const FewProducts& products, Accelerator& device) {
  products.gated ? launch_few_as<Type, 2>(products, device) : launch_few_as<Type, 1>(products, device);
}

template <DType Type>
int64_t few_memory(int64_t tokens, int64_t columns, bool gated) {
  return gated ? least_memory<Type, 2>(tokens, columns) : least_memory<Type, 1>(tokens, columns);
}

// ---- some tokens

template <DType Type>
int64_t records_scratch(int64_t tokens, int64_t columns) {
  return tokens * units_of(columns) * (record_bytes<Type> + static_cast<int64_t>(sizeof(float)));
}

template <DType Type>
Records launch_records(const View& x, Accelerator& device, std::byte* scratch, bool made = false) {
  const int64_t tokens = x.shape[0], units = units_of(x.shape[1]), bytes = tokens * units * record_bytes<Type>;
  const Records records{gpu::pointer<uint8_t>(scratch, bytes),
                        gpu::pointer<float>(scratch + bytes, tokens * units * static_cast<int64_t>(sizeof(float))),
                        static_cast<int>(tokens), static_cast<int>(units)};
  if (made) return records;
  gpu::launch_early<make_records<Type, PlainInputs>, record_warps * 32>(
      device, {ceil_div(tokens * units, record_warps)}, 0, inputs_of(x), records);
  return records;
}

// False if a block has too little memory.
template <DType Type, class T>
bool launch_some_as(const Args& args, Accelerator& device, const Records& records) {
  constexpr int64_t shared = split_memory<Type, T>;
  if (shared > device.limits().shared_bytes) return false;
  const Matrix<Type> w = matrix_of<Type>(args.in[1]);
  const int64_t token_tiles = ceil_div(records.tokens, T::tokens);
  gpu::launch_early<some_tokens<Type, T, PlainOutputs>, T::threads * T::split>(
      device, {ceil_div(w.rows, T::rows) * token_tiles}, shared, w, records, static_cast<int>(token_tiles),
      outputs_of(args));
  return true;
}

template <DType Type, int Tokens>
bool launch_some(const Args& args, Accelerator& device, const Records& records) {
  using Wide = Small<Type, Tokens>;
  const int64_t blocks = ceil_div(args.in[1].shape[0], Wide::rows) * ceil_div(records.tokens, Wide::tokens);
  return (blocks < device.limits().processors && launch_some_as<Type, Narrow<Tokens>>(args, device, records)) ||
         launch_some_as<Type, Wide>(args, device, records);
}

// Whether records that were made for another type are those of this one: they differ in what the minima multiply.
template <DType Type>
bool can_share_records(DType made) {
  if (made == Type) return true;
  if (!has_blocks(Type) || !has_blocks(made)) return false;
  constexpr BlockLayout layout = block_layout(Type);
  const BlockLayout other = block_layout(made);
  return !layout.minimum() || (other.minimum() && layout.halves() == other.halves());
}

// ---- many tokens

// Whether weights are decoded first. If so, then for more tokens too.
inline bool many(int64_t tokens, int64_t rows, const Limits& limits) {
  return tokens >= halves_tokens && rows >= halves_rows && SmallTile::shared_bytes <= limits.shared_bytes;
}

// Where halves lie in scratch memory, all that a slab of `slab` rows (a multiple of 8) takes behind the tokens'.
struct HalvesScratch {
  int64_t columns, x_undo, w, w_undo, end;

  HalvesScratch(int64_t tokens, int64_t slab, int64_t k) {
    columns = ceil_div(k, step_columns) * step_columns;
    const auto aligned = [](int64_t bytes) { return ceil_div(bytes, 256) * 256; };
    x_undo = aligned(tokens * columns * 2);
    w = x_undo + aligned(tokens * 4);
    w_undo = w + aligned(slab * columns * 2);
    end = w_undo + aligned(slab * 4);
  }
};

// Rows of a slab, from the matrix alone, since scratch memory is asked for before the tokens are known: as many in each
// but the last. Halves are no slabs.
template <DType Type>
int64_t slab_of(int64_t rows, int64_t k) {
  if (Type == DType::f16 || rows == 0) return 0;
  const int64_t most = std::max(slab_rows, slab_bytes / std::max<int64_t>(2 * k, 1));
  return ceil_div(ceil_div(rows, ceil_div(rows, most)), WideTile::rows) * WideTile::rows;
}

// `multiply` launches the product of halves.
template <DType Type, class Multiply>
void launch_many(const Args& args, Accelerator& device, std::byte* scratch, int64_t slab, const Multiply& multiply) {
  const View& x = args.in[0];
  const Matrix<Type> w = matrix_of<Type>(args.in[1]);
  const int64_t tokens = x.shape[0];
  const HalvesScratch at(tokens, slab, w.columns);
  const auto rows_at = [&](int64_t data, int64_t undo, int64_t rows) -> HalvesRows {
    return {gpu::pointer<uint8_t>(scratch + data, rows * at.columns * 2),
            gpu::pointer<float>(scratch + undo, rows * static_cast<int64_t>(sizeof(float))),
            static_cast<int>(at.columns)};
  };
  const HalvesRows halves = rows_at(0, at.x_undo, tokens), decoded = rows_at(at.w, at.w_undo, slab);
  HalvesProduct p = {};
  p.x = {halves.data, at.columns * 2, static_cast<int>(tokens), halves.columns}, p.x_undo = halves.undo;
  const int all = w.rows, most = slab ? static_cast<int>(slab) : all;
  for (int first = 0; first < all; first += most) {
    const int rows = std::min(most, all - first), here = first == 0 ? static_cast<int>(tokens) : 0;
    gpu::launch_early<prepare_halves<Type, PlainInputs>, prepare_threads>(
        device, {here + (slab ? ceil_div(rows, 8) : 0)}, 0, inputs_of(x), halves, here, w, decoded, first / 8);
    p.first_row = first;
    if (slab)
      p.w = {decoded.data, at.columns * 2, rows, decoded.columns}, p.w_undo = decoded.undo;
    else
      p.w = {w.data, w.stride, rows, w.columns};
    multiply(p, outputs_of(args));
  }
}

// ---- a type's

template <DType Type>
DType launch_form(const Args& args, Accelerator& device, std::byte* scratch, DType made) {
  const View &x = args.in[0], &w = args.in[1];
  const int64_t tokens = x.shape[0], rows = w.shape[0], k = w.shape[1];
  if (many(tokens, rows, device.limits())) {
    launch_many<Type>(args, device, scratch, slab_of<Type>(rows, k),
                      [&](const HalvesProduct& p, const PlainOutputs& outputs) { launch_halves(p, outputs, device); });
    return DType::f32;
  }
  const bool shared = can_share_records<Type>(made);
  const Records records = launch_records<Type>(x, device, scratch, shared);
  const DType now = shared ? made : Type;
  if (tokens > 16 && launch_some<Type, 32>(args, device, records)) return now;
  if (tokens > 8 && launch_some<Type, 16>(args, device, records)) return now;
  launch_some<Type, 8>(args, device, records);  // its memory is the least that can_run asks for
  return now;
}

// At a node's capacity, for any number of tokens up to that.
template <DType Type>
int64_t form_scratch(int64_t tokens, int64_t rows, int64_t k, const Limits& limits) {
  if (!many(tokens, rows, limits)) return records_scratch<Type>(tokens, k);
  return std::max(HalvesScratch(tokens, slab_of<Type>(rows, k), k).end, records_scratch<Type>(halves_tokens - 1, k));
}

#define FORMS(type)                                                                                       \
  Forms forms_##type() {                                                                                  \
    constexpr DType t = DType::type;                                                                      \
    return {split_memory<t, Small<t, 8>>, few_memory<t>, launch_few<t>, form_scratch<t>, launch_form<t>}; \
  }

}  // namespace consonant::GPU_BUILD::mma
