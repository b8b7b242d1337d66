// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "consonant/engine.hpp"

// An engine for tests of the commands: a token is a byte, 256 ends a text, and the answer to a prompt is the one that
// was told before. What it is asked is kept.
namespace consonant::testing_cli {

constexpr int32_t fake_end = 256;

struct FakeState {
  std::string answer = "fine";
  bool endless = false;  // answers until it is cancelled
  bool has_template = true;
  int64_t context = 200;
  std::string loaded_path;
  EngineOptions loaded;
  std::vector<std::string> prompts;  // detokenised
  std::vector<GenerateOptions> asked;
  std::atomic<int> generated{0};  // tokens of the present answer that were handed over
  std::atomic<Session*> session{nullptr};
};

inline std::string text_of(std::span<const int32_t> tokens) {
  std::string text;
  for (const int32_t t : tokens) {
    if (t < 0 || t > fake_end) bad_input("token id {}, but the model's go from 0 to {}", t, fake_end);
    if (t < fake_end) text += char(t);
  }
  return text;
}

class FakeSession : public Session {
 public:
  explicit FakeSession(std::shared_ptr<FakeState> state) : state_(std::move(state)) { state_->session = this; }
  ~FakeSession() override { state_->session = nullptr; }

  Generation generate(std::span<const int32_t> prompt, const GenerateOptions& options, const OnText& on_text) override {
    state_->prompts.push_back(text_of(prompt));
    state_->asked.push_back(options);
    if (int64_t(prompt.size()) >= state_->context)
      bad_input("the prompt has {} tokens, which leaves no room in a context of {}", prompt.size(), state_->context);
    cancelled_ = false;
    state_->generated = 0;
    Generation g;
    g.timings.prompt_tokens = int64_t(prompt.size());
    g.stop_reason = run(g, int64_t(prompt.size()), options, on_text);
    g.timings.generated_tokens = int64_t(g.tokens.size());
    if (options.logprobs) g.logprobs.assign(g.tokens.size(), -0.5f);
    return g;
  }
  void cancel() noexcept override { cancelled_ = true; }
  int64_t length() const override { return 0; }
  void reset() override {}
  void save(const std::string&) override { bad_usage("a fake session can't be saved"); }
  void restore(const std::string&) override { bad_usage("a fake session can't be restored"); }

 private:
  StopReason run(Generation& g, int64_t prompt, const GenerateOptions& options, const OnText& on_text) {
    for (size_t i = 0;; ++i) {
      if (cancelled_) return StopReason::cancelled;
      if (options.deadline > 0 && options.deadline < 1e-6) return StopReason::deadline;
      if (options.max_tokens >= 0 && int64_t(i) >= options.max_tokens) return StopReason::caller_limit;
      if (prompt + int64_t(i) >= state_->context && !state_->endless) return StopReason::context_full;
      const bool end = !state_->endless && i == state_->answer.size();
      const int32_t token =
          end ? fake_end : int32_t(static_cast<unsigned char>(state_->answer[i % state_->answer.size()]));
      g.tokens.push_back(token);
      const std::string piece = end ? "" : std::string(1, char(token));
      g.text += piece;
      if (on_text && !on_text(piece, std::span(g.tokens).last(1))) return StopReason::cancelled;
      ++state_->generated;
      if (end) return StopReason::end_token;
      if (state_->endless) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  std::shared_ptr<FakeState> state_;
  std::atomic<bool> cancelled_{false};
};

class FakeEngine : public Engine {
 public:
  explicit FakeEngine(std::shared_ptr<FakeState> state) : state_(std::move(state)) {
    info_ = {.architecture = "fake",
             .name = "Fake",
             .path = state_->loaded_path,
             .format = "none",
             .device = "cpu",
             .precision = "auto",
             .kv = "f16"};
    info_.vocabulary = fake_end + 1;
    info_.context = state_->context;
    info_.threads = state_->loaded.threads > 0 ? state_->loaded.threads : 4;
    info_.has_chat_template = state_->has_template;
  }
  const ModelInfo& info() const override { return info_; }
  double load_seconds() const override { return 0.25; }
  std::string sha256() const override { return std::string(64, '0'); }
  std::vector<int32_t> tokenize(std::string_view text, const TokenizeOptions& options) const override {
    std::vector<int32_t> tokens;
    if (options.add_special) tokens.push_back('^');
    for (const char c : text) tokens.push_back(int32_t(static_cast<unsigned char>(c)));
    if (!options.parse_special) tokens.push_back('!');
    return tokens;
  }
  std::string detokenize(std::span<const int32_t> tokens, bool) const override { return text_of(tokens); }

  // "system:S|user:U|assistant:", and the template and the time if they are given.
  std::string render_chat(std::string_view variables, std::string_view source, std::string_view now) const override {
    const auto json = nlohmann::json::parse(variables);
    std::string text(source);
    text += now;
    for (const auto& m : json.at("messages"))
      text += m.at("role").get<std::string>() + ":" + m.at("content").get<std::string>() + "|";
    return text + (json.value("add_generation_prompt", false) ? "assistant:" : "");
  }
  std::unique_ptr<Session> session() override { return std::make_unique<FakeSession>(state_); }

 private:
  std::shared_ptr<FakeState> state_;
  ModelInfo info_;
};

}  // namespace consonant::testing_cli
