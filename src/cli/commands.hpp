// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "cli/world.hpp"

namespace consonant {

// A command adds itself to the program and returns what runs it, which gives the exit code.
using Action = std::function<int(World&)>;

Action add_generate(CLI::App& app);
Action add_chat(CLI::App& app);
Action add_tokenize(CLI::App& app);
Action add_verify(CLI::App& app);
Action add_doctor(CLI::App& app);
Action add_bench(CLI::App& app);
Action add_inspect(CLI::App& app);
Action add_convert(CLI::App& app);
Action add_transcribe(CLI::App& app);
Action add_speak(CLI::App& app);
Action add_pull(CLI::App& app);

// A command without its logging options, its help ending in `example`.
CLI::App& add_command(CLI::App& program, const std::string& name, const std::string& what, const std::string& example);

}  // namespace consonant
