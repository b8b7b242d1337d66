// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "cli/world.hpp"
#include "consonant/engine.hpp"

namespace consonant {

// What of a generation goes to the output while it runs.
enum class Streaming { nothing, text, tokens };

// Generates, with Ctrl-C stopping it and the pieces written as they come.
Generation answer(World& world, Session& session, std::span<const int32_t> prompt, const GenerateOptions& options,
                  Streaming streaming);

// One line of JSON: text, tokens, logprobs, prompt_tokens, stop_reason, timings, and the seed that repeats it.
std::string to_json(const Generation& generation, const GenerateOptions& options, const ModelInfo& info);

// Says on stderr what a user has to know of how it ended, and with -v how fast it was; returns the exit code.
int report(const Generation& generation, const GenerateOptions& options);

// Says on stderr that the answer is greedy if it is.
void announce(const GenerateOptions& options);

}  // namespace consonant
