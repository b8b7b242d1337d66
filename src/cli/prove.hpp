// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/commands.hpp"

namespace consonant {

// `verify bisect`, `verify replay`, and `verify` itself, which is what runs if no subcommand was given.
Action add_prove(CLI::App& verify);

// The report of one page, in Markdown, and as one JSON object.
std::string agreement_page(const Agreement& agreement);
std::string agreement_json(const Agreement& agreement);

}  // namespace consonant
