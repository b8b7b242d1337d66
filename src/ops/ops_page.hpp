// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace consonant {

// docs/ops.md: each op and its kernels, with the types that they take. Types are found by asking: every case of the op
// is built with every type in the place of every leaf, and a type is listed where the op's shape rule and the kernel's
// can_run take it.
std::string ops_page();

}  // namespace consonant
