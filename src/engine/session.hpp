// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "decode/autoregressive.hpp"
#include "engine/language_engine.hpp"

namespace consonant {

// One sequence of a language engine's runner.
class LanguageSession final : public Session, private NextLogits {
 public:
  explicit LanguageSession(std::shared_ptr<LanguageEngine> engine);
  ~LanguageSession() override;

  Generation generate(std::span<const int32_t> prompt, const GenerateOptions& options, const OnText& on_text) override;
  void cancel() noexcept override { cancelled_ = true; }
  int64_t length() const override;
  void reset() override;
  void save(const std::string& path) override;
  void restore(const std::string& path) override;

 private:
  std::span<const float> step(std::span<const int32_t> tokens) override;
  Drawn draw(std::span<const int32_t> tokens, const Draw& how) override;

  std::shared_ptr<LanguageEngine> engine_;  // lives as long as its sessions
  int sequence_;
  std::vector<int32_t> cached_;  // tokens whose positions the cache holds
  std::atomic<bool> cancelled_{false};
};

}  // namespace consonant
