// SPDX-License-Identifier: Apache-2.0
#include "tasks/whisper_window.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "decode/beam.hpp"
#include "tasks/languages.hpp"
#include "tasks/whisper_rules.hpp"

namespace consonant {

namespace {

constexpr std::array temperatures = {0.0, 0.2, 0.4, 0.6, 0.8, 1.0};
constexpr double too_repetitive = 2.4, too_improbable = -1.0;

// The model as a search sees it.
class Branches : public BranchingModel {
 public:
  explicit Branches(WindowModel& model) : model_(model) {}
  int fork(int sequence) override { return model_.fork(sequence); }
  void close(int sequence) override { model_.close(sequence); }
  std::span<const float> evaluate(std::span<const Piece> pieces) override {
    pieces_.clear();
    for (const Piece& p : pieces) pieces_.push_back({p.sequence, p.tokens, 1});
    return model_.evaluate(pieces_);
  }

 private:
  WindowModel& model_;
  std::vector<WindowModel::Piece> pieces_;
};

// Softmax over [from, to) of the logits; in float64.
std::vector<double> softmax(std::span<const float> logits, int64_t from, int64_t to) {
  const auto part = logits.subspan(static_cast<size_t>(from), static_cast<size_t>(to - from));
  const double top = *std::max_element(part.begin(), part.end());
  std::vector<double> p;
  double sum = 0;
  for (const float x : part) sum += p.emplace_back(std::exp(double(x) - top));
  for (double& x : p) x /= sum;
  return p;
}

void check_logits(std::span<const float> logits, size_t rows, const WhisperVocabulary& v) {
  if (logits.size() < rows * static_cast<size_t>(v.size)) {
    throw_error(Exit::failed, "the model gave {} logits for {} rows; its vocabulary has {} tokens", logits.size(), rows,
                v.size);
  }
}

std::string text_of(const Tokenizer& tokenizer, const WhisperVocabulary& v, std::span<const int32_t> tokens) {
  std::string bytes;
  for (const int32_t id : tokens) {
    if (id < v.end) tokenizer.append_bytes(id, bytes);
  }
  return sanitize_utf8(bytes);
}

int attempts(const WindowSettings& settings) { return settings.fallback ? static_cast<int>(temperatures.size()) : 1; }

bool failed(const WindowText& t) {
  if (t.compression_ratio > too_repetitive) return true;
  return t.avg_logprob < too_improbable && !t.silent();  // silence is what it is at any temperature
}

// The less repetitive, and of such the likelier.
bool better(const WindowText& a, const WindowText& b) {
  const bool a_repeats = a.compression_ratio > too_repetitive, b_repeats = b.compression_ratio > too_repetitive;
  return a_repeats != b_repeats ? b_repeats : a.avg_logprob > b.avg_logprob;
}

}  // namespace

int32_t language_token(const WhisperVocabulary& vocabulary, const std::string& language) {
  const std::string code = language_code(language);
  if (code.empty()) bad_usage("unknown language \"{}\"", language);
  const auto& known = vocabulary.languages;
  const auto found = std::find(known.begin(), known.end(), code);
  if (found == known.end()) bad_usage("the model doesn't know the language \"{}\"", language);
  return vocabulary.first_language + static_cast<int32_t>(found - known.begin());
}

std::vector<int32_t> prompt_tokens(const Tokenizer& tokenizer, const WhisperVocabulary& vocabulary,
                                   const std::string& prompt) {
  if (prompt.empty()) return {};
  std::vector<int32_t> tokens = tokenizer.encode(" " + prompt, {.parse_special = false});
  std::erase_if(tokens, [&](int32_t id) { return id >= vocabulary.end; });
  return tokens;
}

double compression_ratio(std::string_view text) {
  constexpr std::string_view white = " \t\r\n\v\f";
  const size_t first = text.find_first_not_of(white);
  if (first == std::string_view::npos) return 0;
  text = text.substr(first, text.find_last_not_of(white) - first + 1);
  uLongf size = compressBound(static_cast<uLong>(text.size()));
  std::vector<Bytef> packed(size);
  const int status = compress2(packed.data(), &size, reinterpret_cast<const Bytef*>(text.data()),
                               static_cast<uLong>(text.size()), Z_DEFAULT_COMPRESSION);
  if (status != Z_OK) throw_error(Exit::failed, "zlib can't compress {} bytes: error {}", text.size(), status);
  return double(text.size()) / double(size);
}

std::vector<double> WindowDecoder::languages(int window) {
  const auto count = static_cast<int64_t>(v_.languages.size());
  if (count == 0) return {};
  const int sequence = model_.open(window);
  try {
    const WindowModel::Piece piece{sequence, std::span(&v_.start, 1), 1};
    const auto logits = model_.evaluate({&piece, 1});
    check_logits(logits, 1, v_);
    auto p = softmax(logits, v_.first_language, v_.first_language + count);
    model_.close(sequence);
    if (!std::isfinite(p[0])) throw_error(Exit::failed, "the model's logits of the languages are not numbers");
    return p;
  } catch (...) {
    model_.close(sequence);
    throw;
  }
}

std::vector<int32_t> WindowDecoder::prompt(const WindowRequest& request, const WindowSettings& settings) const {
  std::vector<int32_t> ids;
  const auto room = static_cast<size_t>(std::max<int64_t>(0, v_.text_positions / 2 - 1));
  // Of an initial text that is too long the end counts, as of any context; it leaves half to what follows it.
  const auto& initial = request.initial;
  const auto& context = request.context;
  const size_t wanted =
      std::min(initial.size(), context.empty() ? room : std::max(room / 2, room - std::min(room, context.size())));
  const size_t after = std::min(context.size(), room - wanted);
  if (wanted + after > 0) {
    ids.push_back(v_.previous);
    ids.insert(ids.end(), initial.end() - static_cast<std::ptrdiff_t>(wanted), initial.end());
    ids.insert(ids.end(), context.end() - static_cast<std::ptrdiff_t>(after), context.end());
  }
  ids.push_back(v_.start);
  if (v_.multilingual) {
    ids.push_back(settings.language >= 0 ? settings.language : v_.first_language);
    ids.push_back(settings.translate ? v_.translate : v_.transcribe);
  }
  if (!settings.timestamps) ids.push_back(v_.no_timestamps);
  return ids;
}

// A sequence that has read a request's prompt, and what the model gave after it. Every attempt starts from a copy.
class WindowDecoder::Prompt {
 public:
  Prompt(WindowModel& model, int window, std::vector<int32_t> tokens)
      : tokens(std::move(tokens)), model_(model), sequence_(model.open(window)) {}
  ~Prompt() {
    if (sequence_ >= 0) model_.close(sequence_);
  }
  Prompt(const Prompt&) = delete;
  Prompt& operator=(const Prompt&) = delete;

  int sequence() const { return sequence_; }
  int copy() { return model_.fork(sequence_); }
  int give_away() { return std::exchange(sequence_, -1); }

  const std::vector<int32_t> tokens;
  std::vector<float> logits;
  double no_speech_prob = 0;

 private:
  WindowModel& model_;
  int sequence_;
};

std::vector<std::unique_ptr<WindowDecoder::Prompt>> WindowDecoder::read(std::span<const WindowRequest> requests,
                                                                        const WindowSettings& settings) {
  std::vector<std::unique_ptr<Prompt>> prompts;
  std::vector<WindowModel::Piece> pieces;
  size_t rows = 0;
  for (const WindowRequest& r : requests) {
    prompts.push_back(std::make_unique<Prompt>(model_, r.window, prompt(r, settings)));
    const std::vector<int32_t>& tokens = prompts.back()->tokens;
    const auto from_start = tokens.end() - std::find(tokens.begin(), tokens.end(), v_.start);
    pieces.push_back({prompts.back()->sequence(), tokens, from_start});
    rows += static_cast<size_t>(from_start);
  }
  const auto logits = model_.evaluate(pieces);
  check_logits(logits, rows, v_);
  const size_t columns = logits.size() / rows;
  size_t row = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    prompts[i]->no_speech_prob =
        softmax(logits.subspan(row * columns, columns), 0, v_.size)[static_cast<size_t>(v_.no_speech)];
    row += static_cast<size_t>(pieces[i].wanted);
    const auto last = logits.subspan((row - 1) * columns, columns);
    prompts[i]->logits.assign(last.begin(), last.end());
  }
  return prompts;
}

std::optional<std::vector<WindowText>> WindowDecoder::attempt(std::span<const Start> starts,
                                                              const WindowSettings& settings, int attempt,
                                                              const std::function<bool()>& go_on) {
  const double temperature = temperatures[static_cast<size_t>(attempt)];
  const bool last = attempt + 1 == attempts(settings);
  WhisperRules rules(v_, settings.timestamps);
  Branches branches(model_);
  std::vector<std::unique_ptr<Search>> searches;
  for (const Start& s : starts) {
    const auto length = static_cast<int64_t>(s.prompt.tokens.size());
    const SearchOptions options{.end = v_.end,
                                .max_tokens = std::min(v_.text_positions / 2, v_.text_positions - length),
                                .width = temperature > 0 ? settings.best_of : settings.beam,
                                .temperature = temperature,
                                .seed = s.seed + static_cast<uint64_t>(attempt)};
    const int sequence = last ? s.prompt.give_away() : s.prompt.copy();
    searches.push_back(std::make_unique<Search>(branches, rules, sequence, options));
    searches.back()->start(s.prompt.logits);
  }
  if (!run_searches(branches, searches, go_on)) return std::nullopt;
  std::vector<WindowText> texts(starts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    Hypothesis best = searches[i]->best();
    WindowText& t = texts[i];
    t.no_speech_prob = starts[i].prompt.no_speech_prob;
    t.avg_logprob = best.mean(), t.ended = best.ended, t.temperature = temperature, t.attempts = attempt + 1;
    t.tokens = std::move(best.tokens), t.logprobs = std::move(best.logprobs);
    t.text = text_of(tokenizer_, v_, t.tokens);
    t.compression_ratio = compression_ratio(t.text);
  }
  return texts;
}

std::optional<std::vector<WindowText>> WindowDecoder::decode(std::span<const WindowRequest> requests,
                                                             const WindowSettings& settings,
                                                             const std::function<bool()>& go_on) {
  if (!go_on()) return std::nullopt;
  auto prompts = read(requests, settings);
  std::vector<WindowText> done(requests.size());
  std::vector<size_t> open(requests.size());  // requests that have no good text yet
  for (size_t i = 0; i < open.size(); ++i) open[i] = i;
  for (int a = 0; a < attempts(settings) && !open.empty(); ++a) {
    std::vector<Start> starts;
    for (const size_t i : open) starts.push_back({*prompts[i], requests[i].seed});
    auto texts = attempt(starts, settings, a, go_on);
    if (!texts) return std::nullopt;
    std::vector<size_t> again;
    for (size_t k = 0; k < open.size(); ++k) {
      WindowText& best = done[open[k]];
      WindowText& text = (*texts)[k];
      const bool bad = failed(text);
      if (a == 0 || !bad || better(text, best)) best = std::move(text);
      best.attempts = a + 1;
      best.doubtful = bad;
      if (bad) {
        again.push_back(open[k]);
      } else {
        prompts[open[k]].reset();
      }
    }
    open = std::move(again);
  }
  return done;
}

}  // namespace consonant
