// SPDX-License-Identifier: Apache-2.0
#include "decode/autoregressive.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "base/clock.hpp"
#include "text/stream.hpp"

namespace consonant {
namespace {

// Text on its way out: whole characters first, then what surely isn't a stop string, then the caller.
class Output {
 public:
  Output(const Tokenizer* tokenizer, const std::vector<std::string>& stop, const OnPiece& on_piece,
         Continuation& result)
      : stops_(stop), on_piece_(on_piece), result_(result) {
    if (tokenizer) stream_.emplace(*tokenizer);
  }

  void add(int32_t token) {
    if (stream_)
      send(stops_.push(stream_->push(token)));
    else
      call({});
  }
  bool stop_string() const { return stops_.matched(); }
  bool refused() const { return refused_; }

  // The end of the text: what was held back, and ids that came without text.
  void finish() {
    if (stream_) send(stops_.push(stream_->flush()));
    send(stops_.flush());
    if (sent_ < result_.tokens.size()) call({});
  }

 private:
  void send(std::string_view text) {
    if (text.empty()) return;
    result_.text += text;
    call(text);
  }
  void call(std::string_view text) {
    const std::span<const int32_t> tokens = std::span<const int32_t>(result_.tokens).subspan(sent_);
    sent_ = result_.tokens.size();
    if (on_piece_ && !refused_ && !on_piece_(text, tokens)) refused_ = true;
  }

  std::optional<TextStream> stream_;
  StopStrings stops_;
  const OnPiece& on_piece_;
  Continuation& result_;
  size_t sent_ = 0;
  bool refused_ = false;
};

// Reads all of the prompt but its last part; the reason if it has to stop on the way.
std::optional<Stop> read_prompt(NextLogits& model, std::span<const int32_t>& left, const StopRules& rules,
                                int64_t chunk) {
  while (true) {
    if (const std::optional<Stop> stop = rules.before_step(0)) return stop;
    if (int64_t(left.size()) <= chunk) return std::nullopt;
    model.read(left.first(size_t(chunk)));
    left = left.subspan(size_t(chunk));
  }
}

}  // namespace

Continuation generate(NextLogits& model, const Tokenizer* tokenizer, std::span<const int32_t> prompt, int64_t cached,
                      const Autoregression& options, const OnPiece& on_piece) {
  const Clock::time_point start = Clock::now();
  const StopRules rules(options.limits, int64_t(prompt.size()));
  if (cached < 0 || cached >= int64_t(prompt.size()))
    throw std::logic_error("no token of the prompt is left to evaluate");
  Sampler sampler(options.sampling);
  Continuation result;
  Output output(tokenizer, options.stop, on_piece, result);
  std::vector<int32_t> sequence(prompt.begin(), prompt.end());

  std::span<const int32_t> next = prompt.subspan(size_t(cached));
  std::optional<Stop> stop = read_prompt(model, next, rules, std::max<int64_t>(options.prompt_chunk, 1));
  while (!stop) {
    const auto [token, log_probability] = model.draw(next, {&sampler, sequence, options.logprobs});
    if (result.tokens.empty()) result.prompt_s = seconds_since(start);
    if (options.logprobs) result.logprobs.push_back(log_probability);
    sequence.push_back(token);
    result.tokens.push_back(token);
    if (result.tokens.size() == 1) result.first_token_s = seconds_since(start);
    if (!rules.is_end(token)) output.add(token);
    stop = output.refused() ? Stop::cancelled : rules.after(token, int64_t(result.tokens.size()), output.stop_string());
    next = std::span<const int32_t>(sequence).last(1);
  }
  output.finish();
  result.stop = *stop;
  result.generate_s = seconds_since(start) - result.prompt_s;
  return result;
}

}  // namespace consonant
