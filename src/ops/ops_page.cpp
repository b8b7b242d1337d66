// SPDX-License-Identifier: Apache-2.0
#include "ops/ops_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/error.hpp"
#include "ops/op_case.hpp"

namespace consonant {

namespace {

// Types that a kernel takes, by role.
struct Taken {
  std::set<std::string> roles;
  std::map<std::string, std::set<DType>> types;
  std::set<std::string> vectors;  // weights of one dimension, which a device holds in float32 whatever the file has
};

using Takes = std::function<bool(const Node& node)>;

void ask(const Takes& takes, const OpCase& c, const std::string& role, Taken& taken) {
  for (int i = 0; i < dtype_count; ++i) {
    const auto type = static_cast<DType>(i);
    if (taken.types[role].contains(type)) continue;
    CaseBuilder builder({false, role, type});
    try {
      if (takes(*c.build(builder).node)) taken.types[role].insert(type);
    } catch (const Error&) {
      // The shape rule refuses the type.
    }
  }
}

Taken ask_all(const Takes& takes, Op op) {
  Taken taken;
  for (const OpCase& c : cases_of(op)) {
    CaseBuilder usual;
    c.build(usual);
    for (const std::string& role : usual.roles()) {
      taken.roles.insert(role);
      for (const CaseBuilder::Leaf& leaf : usual.leaves())
        if (leaf.node->op == op_weight && leaf.node->name == role && leaf.node->outputs[0].shape.rank() == 1)
          taken.vectors.insert(role);
      ask(takes, c, role, taken);
    }
  }
  return taken;
}

std::string describe(const Taken& taken) {
  std::string text;
  for (const std::string& role : taken.roles) {
    text += fmt::format("{}`{}`: ", text.empty() ? "" : "; ", role);
    if (taken.vectors.contains(role) && taken.types.at(role).size() == dtype_count) {
      text += "any, held as f32";
      continue;
    }
    std::string_view separator;
    for (const DType type : taken.types.at(role)) {
      text += fmt::format("{}{}", separator, name(type));
      separator = ", ";
    }
  }
  return text;
}

int64_t count(const Takes& takes, Op op) {
  const std::vector<OpCase> cases = cases_of(op);
  return std::count_if(cases.begin(), cases.end(), [&](const OpCase& c) {
    CaseBuilder builder;
    return takes(*c.build(builder).node);
  });
}

Takes asking(const Kernel& kernel) {
  return [&kernel](const Node& node) { return !kernel.can_run(node); };
}
Takes asking(const GpuKernel& kernel, const Limits& limits) {
  return [&kernel, &limits](const Node& node) { return !kernel.can_run(node, limits); };
}

std::string_view run_on(DeviceKind device) {
  return device == DeviceKind::reference ? "x86-64" : "x86-64, on each instruction set that the kernel is compiled for";
}

constexpr std::string_view head = R"(# Ops and their kernels

Made by `consonant verify ops --list`, which asks each kernel what it takes; a test keeps this page current. `reference` is the oracle:
naive loops that accumulate in double. `consonant verify ops --device D` runs every kernel of a device over the op's cases on the machine at
hand and compares it with the reference: within the tolerance, every element written, the same bits whatever the order of its chunks, the
number of threads and the tokens that share a batch, and on an accelerator whether it is launched or replayed. (CUDA's tensor cores multiply
steps of 128 tokens and more in another way than smaller ones: there the bits are the same among those, and within the tolerance of these.)

The kernels of accelerators have one source. The tests run it on two emulators, with 32 and with 64 lanes a warp; it is compiled for CUDA
(sm_90) and for HIP (gfx90a, gfx1030).

| op | device | takes | cases | run on |
|---|---|---|---|---|
)";

// tools/render_docs.py fills it in.
constexpr std::string_view tail = R"(
## On cards
What `consonant verify ops` found on the cards that it was run on. What isn't here was compiled, and run on the emulators.

<!-- cards: from docs/measured/verify_ops*.json by tools/render_docs.py -->
<!-- end cards -->
)";

}  // namespace

std::string what_it_takes(const Kernel& kernel) { return describe(ask_all(asking(kernel), kernel.op)); }

std::string what_it_takes(const GpuKernel& kernel, const Limits& limits) {
  return describe(ask_all(asking(kernel, limits), kernel.op));
}

std::string ops_page(std::span<const GpuKernel> emulated, const Limits& limits) {
  std::string page(head);
  for (OpId op = first_op; op < id(Op::count); ++op) {
    for (const Kernel* kernel : all_kernels())
      if (id(kernel->op) == op)
        page += fmt::format("| `{}` | {} | {} | {} | {} |\n", op_name(op), name(kernel->device), what_it_takes(*kernel),
                            count(asking(*kernel), kernel->op), run_on(kernel->device));
    for (const GpuKernel& kernel : emulated)
      if (id(kernel.op) == op)
        page += fmt::format("| `{}`{} | cuda, hip | {} | {} | emulated with 32 and with 64 lanes |\n", op_name(op),
                            kernel.name == op_name(op) ? "" : fmt::format(" as `{}`", kernel.name),
                            what_it_takes(kernel, limits), count(asking(kernel, limits), kernel.op));
  }
  return page.append(tail);
}

}  // namespace consonant
