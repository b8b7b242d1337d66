// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "base/clock.hpp"
#include "engine/bench_tokens.hpp"
#include "engine/language_engine.hpp"
#include "engine/memory_info.hpp"

namespace consonant {

namespace {

// Lengths of a round, as shares of the longest prompt and of the longest answer. Programs are made for sizes in powers
// of two, and captured the second time that a size comes: after two rounds there is nothing left to make.
constexpr int prompts[] = {10, 1, 7, 3, 9, 2, 8, 5, 6, 4}, answers[] = {1, 10, 4, 8, 2, 9, 3, 7, 5, 6};
constexpr int64_t round_of = std::size(prompts), warm_up = 2 * round_of;
// Of the host: what an allocator keeps of what was given back to it.
constexpr int64_t host_slack = int64_t{16} << 20;

}  // namespace

MemoryInUse memory_in_use(Engine& engine) {
  MemoryInUse used;
  if (Accelerator* device = language_engine(engine).target().accelerator.get())
    used.device = device->info().total_bytes - device->free_bytes();
  used.host = resident_memory();
  return used;
}

bool SoakResult::grew() const { return last.device > warm.device || last.host > warm.host + host_slack; }

SoakResult run_soak(Engine& engine, const SoakOptions& options) {
  if (options.generations <= warm_up || options.prompt < 1 || options.generate < 1)
    bad_usage(
        "a soak of {} generations from {} tokens to {} more: wanted are more than {}, the first of which make what "
        "is kept",
        options.generations, options.prompt, options.generate, warm_up);
  if (options.prompt + options.generate > engine.info().context)
    bad_input("{} tokens don't fit the context of {}", options.prompt + options.generate, engine.info().context);
  SoakResult result;
  result.generations = options.generations, result.warm_up = warm_up;
  result.loaded = memory_in_use(engine);
  const std::unique_ptr<Session> session = engine.session();
  for (int64_t i = 0; i < options.generations; ++i) {
    const auto at = static_cast<size_t>(i % round_of);
    const auto length = [&](int64_t longest, int tenths) { return std::max<int64_t>(1, longest * tenths / 10); };
    GenerateOptions generate;
    generate.ignore_eos = true, generate.max_tokens = length(options.generate, answers[at]);
    generate.sampling = {.temperature = 1, .seed = static_cast<uint64_t>(i)};
    const auto start = Clock::now();
    session->reset();
    const Generation made =
        session->generate(some_tokens(length(options.prompt, prompts[at]), engine.info().vocabulary, i), generate);
    result.seconds.push_back(seconds_since(start));
    result.tokens += static_cast<int64_t>(made.tokens.size());
    if (i == 0) result.first = memory_in_use(engine);
    if (i + 1 == warm_up) result.warm = memory_in_use(engine);
  }
  result.last = memory_in_use(engine);
  return result;
}

}  // namespace consonant
