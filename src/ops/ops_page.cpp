// SPDX-License-Identifier: Apache-2.0
#include "ops/ops_page.hpp"

#include <fmt/format.h>

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

void ask(const Kernel& kernel, const OpCase& c, const std::string& role, Taken& taken) {
  for (int i = 0; i < dtype_count; ++i) {
    const auto type = static_cast<DType>(i);
    if (taken.types[role].contains(type)) continue;
    CaseBuilder builder({false, role, type});
    try {
      if (!kernel.can_run(*c.build(builder).node)) taken.types[role].insert(type);
    } catch (const Error&) {
      // The shape rule refuses the type.
    }
  }
}

Taken what_it_takes(const Kernel& kernel, const std::vector<OpCase>& cases) {
  Taken taken;
  for (const OpCase& c : cases) {
    CaseBuilder usual;
    c.build(usual);
    for (const std::string& role : usual.roles()) {
      taken.roles.insert(role);
      for (const CaseBuilder::Leaf& leaf : usual.leaves())
        if (leaf.node->op == op_weight && leaf.node->name == role && leaf.node->outputs[0].shape.rank() == 1)
          taken.vectors.insert(role);
      ask(kernel, c, role, taken);
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

std::string_view run_on(DeviceKind device) {
  return device == DeviceKind::reference ? "x86-64" : "x86-64, on each instruction set that the kernel is compiled for";
}

constexpr std::string_view head = R"(# Ops and their kernels

Made by `consonant verify ops --list`, which asks each kernel what it takes; a test keeps this page current. `reference` is the oracle:
naive loops that accumulate in double. `consonant verify ops --device D` runs every kernel of a device over the op's cases on the machine at
hand and compares it with the reference: within the tolerance, every element written, the same bits whatever the order of its chunks, the
number of threads and the tokens that share a batch.

| op | device | takes | cases | run on |
|---|---|---|---|---|
)";

}  // namespace

std::string ops_page() {
  std::string page(head);
  for (OpId op = first_op; op < id(Op::count); ++op) {
    const std::vector<OpCase> cases = cases_of(static_cast<Op>(op));
    for (const Kernel* kernel : all_kernels())
      if (id(kernel->op) == op)
        page += fmt::format("| `{}` | {} | {} | {} | {} |\n", op_name(op), name(kernel->device),
                            describe(what_it_takes(*kernel, cases)), cases.size(), run_on(kernel->device));
  }
  return page;
}

}  // namespace consonant
