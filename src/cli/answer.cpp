// SPDX-License-Identifier: Apache-2.0
#include "cli/answer.hpp"

#include <exception>
#include <nlohmann/json.hpp>

#include "base/log.hpp"
#include "cli/interrupt.hpp"
#include "cli/options.hpp"

namespace consonant {

Generation answer(World& world, Session& session, std::span<const int32_t> prompt, const GenerateOptions& options,
                  Streaming streaming) {
  std::exception_ptr failure;  // of a write: the engine must not see it, it only stops
  const OnText on_text = [&](std::string_view text, std::span<const int32_t> tokens) {
    try {
      if (streaming == Streaming::text && !text.empty()) world.out.write(text);
      if (streaming == Streaming::tokens)
        for (const int32_t token : tokens) world.out.line(std::to_string(token));
      return Interrupts::count() == 0;  // one that came before the session ran had nothing to cancel
    } catch (...) {
      failure = std::current_exception();
      return false;
    }
  };
  GenerateOptions bounded = options;
  bounded.deadline = deadline_left(world, options.deadline);
  const Interrupts::Cancels cancels(session);
  Generation generation = session.generate(prompt, bounded, on_text);
  if (failure) std::rethrow_exception(failure);
  return generation;
}

std::string to_json(const Generation& g, const GenerateOptions& options, const ModelInfo& info) {
  nlohmann::ordered_json json;
  json["text"] = g.text;
  json["tokens"] = g.tokens;
  json["logprobs"] = g.logprobs;
  json["prompt_tokens"] = g.timings.prompt_tokens;
  json["cached_tokens"] = g.timings.cached_tokens;
  json["stop_reason"] = name(g.stop_reason);
  json["timings"] = {{"load_s", g.timings.load_s},
                     {"prompt_s", g.timings.prompt_s},
                     {"generate_s", g.timings.generate_s},
                     {"first_token_s", g.timings.first_token_s},
                     {"generated_tokens", g.timings.generated_tokens}};
  if (g.drafted > 0) json["draft"] = {{"drafted", g.drafted}, {"accepted", g.accepted}};
  json["seed"] = options.sampling.seed;
  json["device"] = info.device;
  json["passed_over"] = info.passed_over;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

int report(const Generation& g, const GenerateOptions& options) {
  const int code = exit_code(g.stop_reason);
  const Timings& t = g.timings;
  const auto rate = [](int64_t n, double s) { return s > 0 ? double(n) / s : 0; };
  if (code != 0) {
    const int64_t n = int64_t(g.tokens.size());
    switch (g.stop_reason) {
      case StopReason::context_full:
        log_warning(
            "the answer was cut after {} tokens: the context is full (--context gives it more, -n bounds the answer)",
            n);
        break;
      case StopReason::input_bound:
        log_warning("the answer was cut after {} tokens, the bound from its input", n);
        break;
      case StopReason::deadline:
        log_warning("the answer was cut after {} tokens: its deadline passed", n);
        break;
      default:
        log_warning("the answer was cut after {} tokens: {}", n, name(g.stop_reason));
        break;
    }
  }
  log_verbose(
      "stop reason {}, {} tokens; first token after {:.0f} ms; prompt {} tokens, {:.1f}/s; answer {:.1f}/s; seed {}",
      name(g.stop_reason), g.tokens.size(), t.first_token_s * 1e3, t.prompt_tokens, rate(t.prompt_tokens, t.prompt_s),
      rate(t.generated_tokens - 1, t.generate_s), options.sampling.seed);
  if (g.drafted > 0)
    log_verbose("draft: {} of {} guessed tokens accepted ({:.0f}%)", g.accepted, g.drafted,
                100 * double(g.accepted) / double(g.drafted));
  return code;
}

void announce(const GenerateOptions& options) {
  if (options.sampling.temperature == 0 && log_level() >= LogLevel::normal)
    log_line("greedy (--temp 0): always the likeliest token, the seed plays no part");
}

}  // namespace consonant
