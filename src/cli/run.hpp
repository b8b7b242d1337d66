// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/world.hpp"

namespace consonant {

// The program: `arguments` without its own name; returns its exit code. Errors go to stderr as one line.
int run(const std::vector<std::string>& arguments, World& world);

}  // namespace consonant
