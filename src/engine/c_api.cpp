// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "consonant/consonant.h"
#include "consonant/engine.hpp"
#include "engine/c_api.hpp"
#include "engine/version.hpp"

struct consonant_engine {
  std::shared_ptr<consonant::Engine> engine;
};

struct consonant_session {
  std::shared_ptr<consonant::Engine> engine;  // lives as long as its sessions
  std::unique_ptr<consonant::Session> session;
};

namespace {

using namespace consonant;

static_assert(int(CONSONANT_END_TOKEN) == int(StopReason::end_token) &&
              int(CONSONANT_STOP_STRING) == int(StopReason::stop_string) &&
              int(CONSONANT_CALLER_LIMIT) == int(StopReason::caller_limit) &&
              int(CONSONANT_INPUT_BOUND) == int(StopReason::input_bound) &&
              int(CONSONANT_CONTEXT_FULL) == int(StopReason::context_full) &&
              int(CONSONANT_DEADLINE) == int(StopReason::deadline) &&
              int(CONSONANT_CANCELLED) == int(StopReason::cancelled));

// Fixed room: reporting that memory ran out takes none.
thread_local char last_error[2048] = "";
thread_local int last_code = 0;

}  // namespace

namespace consonant {

int c_api_fail(int code, const char* what) noexcept {
  last_code = code;
  size_t n = std::min(std::strlen(what), sizeof last_error - 1);
  while (what[n] != '\0' && n > 0 && (what[n] & 0xC0) == 0x80) --n;  // whole characters
  std::memcpy(last_error, what, n);
  last_error[n] = '\0';
  return code;
}

EngineOptions from_c(const consonant_engine_options* options) {
  const consonant_engine_options o = complete(options, consonant_engine_options_init);
  EngineOptions engine;
  if (o.device) engine.device = o.device;
  engine.threads = o.threads;
  if (o.precision) engine.precision = o.precision;
  if (o.kv) engine.kv = o.kv;
  engine.context = o.context;
  return engine;
}

}  // namespace consonant

namespace {

GenerateOptions convert(const consonant_generate_options& o) {
  GenerateOptions options;
  options.sampling = {.temperature = o.temperature,
                      .top_k = o.top_k,
                      .top_p = o.top_p,
                      .min_p = o.min_p,
                      .typical = o.typical,
                      .repeat_penalty = o.repeat_penalty,
                      .frequency_penalty = o.frequency_penalty,
                      .presence_penalty = o.presence_penalty,
                      .seed = o.seed};
  options.max_tokens = o.max_tokens;
  if (o.stop_count > 0) need(o.stop, "stop");
  for (size_t i = 0; i < o.stop_count; ++i) {
    need(o.stop[i], "a stop string");
    options.stop.emplace_back(o.stop[i]);
  }
  options.ignore_eos = o.ignore_eos != 0;
  options.deadline = o.deadline;
  return options;
}

}  // namespace

extern "C" {

const char* consonant_version(void) { return version; }
const char* consonant_last_error(void) { return last_error; }
int consonant_last_exit_code(void) { return last_code; }

void consonant_engine_options_init(consonant_engine_options* options) {
  if (options) *options = {sizeof *options, "auto", 0, "auto", nullptr, 0};
}

void consonant_generate_options_init(consonant_generate_options* options) {
  if (!options) return;
  *options = {};
  options->size = sizeof *options;
  options->top_p = options->typical = options->repeat_penalty = 1;
  options->max_tokens = -1;
}

consonant_engine* consonant_load(const char* path, const consonant_engine_options* options) {
  consonant_engine* result = nullptr;
  guarded([&] {
    need(path, "path");
    result = new consonant_engine{Engine::load(path, from_c(options))};
  });
  return result;
}

void consonant_free(consonant_engine* engine) { delete engine; }

int consonant_tokenize(const consonant_engine* engine, const char* text, size_t length, int add_special,
                       int32_t* tokens, size_t capacity, size_t* count) {
  return guarded([&] {
    need(engine, "engine");
    if (length > 0) need(text, "text");
    const std::vector<int32_t> ids = engine->engine->tokenize(std::string_view(text, length),
                                                              {.parse_special = true, .add_special = add_special != 0});
    copy_out(std::span<const int32_t>(ids), tokens, capacity, count);
  });
}

int consonant_detokenize(const consonant_engine* engine, const int32_t* tokens, size_t token_count, char* text,
                         size_t capacity, size_t* count) {
  return guarded([&] {
    need(engine, "engine");
    if (token_count > 0) need(tokens, "tokens");
    const std::string result = engine->engine->detokenize({tokens, token_count});
    copy_out(std::span<const char>(result), text, capacity, count);
  });
}

int consonant_render_chat(const consonant_engine* engine, const char* variables, char* text, size_t capacity,
                          size_t* count) {
  return guarded([&] {
    need(engine, "engine");
    need(variables, "variables");
    const std::string result = engine->engine->render_chat(variables);
    copy_out(std::span<const char>(result), text, capacity, count);
  });
}

consonant_session* consonant_session_new(consonant_engine* engine) {
  consonant_session* result = nullptr;
  guarded([&] {
    need(engine, "engine");
    result = new consonant_session{engine->engine, engine->engine->session()};
  });
  return result;
}

void consonant_session_free(consonant_session* session) { delete session; }

int consonant_generate(consonant_session* session, const int32_t* prompt, size_t prompt_count,
                       const consonant_generate_options* options, consonant_on_text on_text, void* user,
                       consonant_result* result) {
  return guarded([&] {
    need(session, "session");
    if (prompt_count > 0) need(prompt, "prompt");
    OnText callback;
    if (on_text)
      callback = [&](std::string_view text, std::span<const int32_t> tokens) {
        return on_text(text.empty() ? "" : text.data(), text.size(), tokens.data(), tokens.size(), user) == 0;
      };
    const Generation g = session->session->generate(
        {prompt, prompt_count}, convert(complete(options, consonant_generate_options_init)), callback);
    if (result)
      *result = {consonant_stop_reason(g.stop_reason),
                 g.timings.prompt_tokens,
                 g.timings.generated_tokens,
                 g.timings.prompt_s,
                 g.timings.generate_s,
                 g.timings.first_token_s};
  });
}

void consonant_cancel(consonant_session* session) {
  if (session) session->session->cancel();
}

}  // extern "C"
