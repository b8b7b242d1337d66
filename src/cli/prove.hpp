// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/commands.hpp"

namespace consonant {

// `verify` itself, `verify bisect` and `verify replay`, as options and subcommands of `verify`. What runs them gives -1
// if none of them was asked for.
Action add_prove(CLI::App& verify);

// The report of one page, in Markdown, and as one JSON object.
std::string agreement_page(const Agreement& agreement);
std::string agreement_json(const Agreement& agreement);

}  // namespace consonant
