// SPDX-License-Identifier: Apache-2.0
#include "tasks/whisper_transcribe.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "tasks/languages.hpp"
#include "tasks/speech_run.hpp"

namespace consonant {

namespace {

constexpr int64_t rate = AudioSource::rate;
constexpr int64_t step = 320;                      // samples of a timestamp's step
constexpr int64_t least_rest = rate / 10;          // what is shorter is not decoded
constexpr int64_t jump_after = 200, lead_in = 30;  // frames of silence that are passed over; that stay before speech

void check(const SpeechOptions& o) {
  if (o.beam < 1) bad_usage("--beam {}: wanted 1 (greedy) or more", o.beam);
  if (o.best_of < 1) bad_usage("best of {} samples: wanted 1 or more", o.best_of);
  if (o.batch < 1) bad_usage("--batch {}: wanted 1 or more", o.batch);
  if (o.batch > 1 && o.context) {
    bad_usage("--batch {} needs --no-context: with context a window waits for the one before it", o.batch);
  }
}

}  // namespace

void SpeechRun::Piece::forget() {
  if (model != nullptr && window >= 0) model->forget(window);
  window = -1;
}

SpeechRun::Piece& SpeechRun::Piece::operator=(Piece&& other) noexcept {
  if (this == &other) return *this;
  forget();
  at = other.at, length = other.length, quiet_before = other.quiet_before;
  levels = std::move(other.levels), samples = std::move(other.samples);
  window = std::exchange(other.window, -1), model = other.model;
  return *this;
}

SpeechRun::SpeechRun(const WhisperParts& parts, AudioSource& source, const SpeechOptions& options,
                     const SpeechCallbacks& callbacks)
    : parts_(parts),
      source_(source),
      options_(options),
      callbacks_(callbacks),
      decoder_(parts.model, parts.vocabulary, parts.tokenizer),
      speech_(options.voice == nullptr ? std::nullopt : std::make_optional<SpeechOnlySource>(source, *options.voice)),
      sound_(speech_ ? *speech_ : source, parts.model.window_samples(), parts.model.margin_samples()),
      peak_(-std::numeric_limits<float>::infinity()) {
  check(options);
  settings_ = {.translate = options.translate,
               .timestamps = options.timestamps,
               .beam = options.beam,
               .best_of = options.best_of,
               .fallback = options.fallback};
  set_language();
  initial_ = prompt_tokens(parts.tokenizer, parts.vocabulary, options.prompt);
}

void SpeechRun::set_language() {
  const WhisperVocabulary& v = parts_.vocabulary;
  const bool detect = options_.language.empty() || options_.language == "auto";
  const std::string code = detect ? "" : language_code(options_.language);
  if (!detect && code.empty()) bad_usage("unknown language \"{}\"", options_.language);
  if (!v.multilingual) {
    if (!detect && code != "en") {
      result_.warnings.push_back(fmt::format("the model knows English only: \"{}\" is ignored", options_.language));
    }
    if (options_.translate)
      result_.warnings.push_back("the model knows English only: it transcribes, and translates nothing");
    settings_.translate = false;
    result_.language = "en", result_.language_probability = 1;
    language_known_ = true;
  } else if (!detect) {
    settings_.language = language_token(v, options_.language);
    result_.language = code, result_.language_probability = 1;
    language_known_ = true;
  }
}

bool SpeechRun::go_on() {
  if (result_.stop != Stop::end_token) return false;
  if (options_.cancelled != nullptr && options_.cancelled->load()) {
    result_.stop = Stop::cancelled;
  } else if (options_.deadline.passed()) {
    result_.stop = Stop::deadline;
  }
  return result_.stop == Stop::end_token;
}

void SpeechRun::progress(int64_t at) {
  if (!callbacks_.on_progress) return;
  const double all = source_.length() >= 0 ? double(source_.length()) / rate : -1, done = recording_time(at);
  callbacks_.on_progress(done, all < 0 ? -1 : std::max(all, done));
}

// Moves `at` to the next window that may hold speech; false at the end.
bool SpeechRun::next_sound(int64_t& at, Piece& piece) {
  piece.quiet_before = 0;
  while (go_on()) {
    piece.at = at;
    piece.length = sound_.move(at);
    if (piece.length < least_rest) return false;
    piece.levels = SoundLevels(sound_.inside(), loudest_);
    const int64_t silent = piece.levels.silent_frames();
    const bool ends = piece.length < parts_.model.window_samples();
    const bool nothing_left = ends && piece.length < rate && !piece.levels.reaches(loudest_ - 30);
    if (silent == piece.levels.frames() || piece.levels.steady() || nothing_left) {
      at += piece.length;
      piece.quiet_before += piece.levels.frames();
      context_.clear();
      progress(at);
    } else if (silent >= jump_after) {
      at += (silent - lead_in) * SoundLevels::frame / step * step;
      piece.quiet_before += silent - lead_in;
    } else {
      return true;
    }
  }
  return false;
}

void SpeechRun::encode(Piece& piece, std::span<const float> samples) {
  const auto start = Clock::now();
  piece.model = &parts_.model;
  piece.window = parts_.model.encode(samples, peak_);
  result_.timings.encode_s += seconds_since(start);
  ++result_.timings.windows;
}

void SpeechRun::know_language(const Piece& piece) {
  if (language_known_) return;
  const auto p = decoder_.languages(piece.window);
  const auto best = std::max_element(p.begin(), p.end()) - p.begin();
  settings_.language = parts_.vocabulary.first_language + static_cast<int32_t>(best);
  result_.language = parts_.vocabulary.languages[static_cast<size_t>(best)];
  result_.language_probability = p[static_cast<size_t>(best)];
  language_known_ = true;
}

std::vector<double> SpeechRun::languages() {
  Piece piece;
  int64_t at = 0;
  if (!next_sound(at, piece)) return {};
  encode(piece, sound_.samples(piece.length, false));
  return decoder_.languages(piece.window);
}

WindowRequest SpeechRun::request(const Piece& piece, std::span<const int32_t> context) const {
  // Samples depend on the place of the window, not on what was decoded with or before it.
  const uint64_t seed = options_.seed * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(piece.at) * 64;
  return {piece.window, context, seed, initial_};
}

std::optional<std::vector<WindowText>> SpeechRun::decode(std::span<const WindowRequest> requests) {
  const auto start = Clock::now();
  auto texts = decoder_.decode(requests, settings_, [this] { return go_on(); });
  result_.timings.decode_s += seconds_since(start);
  if (!texts) return texts;
  for (const WindowText& t : *texts) {
    result_.timings.fallbacks += t.attempts - 1;
    result_.timings.tokens += static_cast<int64_t>(t.tokens.size());
  }
  return texts;
}

// With the context; without it if with it the text comes again, or tells little of a loud window.
std::optional<WindowText> SpeechRun::decode_one(const Piece& piece) {
  const WindowRequest first = request(piece, context_);
  auto texts = decode({&first, 1});
  if (!texts) return std::nullopt;
  WindowText& text = (*texts)[0];
  const bool misled = !context_.empty() && (leaves_out(piece, text) || (!no_speech(piece, text) && repeats(text)));
  if (!misled) return std::move(text);
  context_.clear();
  const WindowRequest second = request(piece, {});
  texts = decode({&second, 1});
  if (!texts) return std::nullopt;
  return std::move((*texts)[0]);
}

void SpeechRun::run_with_context() {
  int64_t at = 0;
  for (Piece piece; next_sound(at, piece); progress(at)) {
    encode(piece, sound_.samples(piece.length, false));
    know_language(piece);
    const auto text = decode_one(piece);
    if (!text) break;
    if (drops(piece, *text)) {
      context_.clear();
      at += piece.length;
    } else {
      const WindowCut parts = cut(piece, *text);
      accept(piece, *text, parts);
      remember(*text, parts);
      at += std::min(parts.advance * step, piece.length);
    }
    piece.forget();
  }
}

// Decodes what a text that reached its bound left of a piece, too. False: stopped.
bool SpeechRun::take_piece(Piece& piece, WindowText text) {
  for (;;) {
    if (drops(piece, text)) return true;
    const WindowCut parts = cut(piece, text);
    accept(piece, text, parts);
    const int64_t used = parts.advance * step;
    if (used >= piece.length - least_rest || !go_on()) return go_on();
    piece.forget();
    std::rotate(piece.samples.begin(), piece.samples.begin() + static_cast<std::ptrdiff_t>(used), piece.samples.end());
    std::fill(piece.samples.end() - static_cast<std::ptrdiff_t>(used), piece.samples.end(), 0.0f);
    piece.at += used, piece.length -= used;
    const auto margin = static_cast<size_t>(parts_.model.margin_samples());
    piece.levels = SoundLevels(std::span(piece.samples).subspan(margin, static_cast<size_t>(piece.length)), loudest_);
    encode(piece, piece.samples);
    const WindowRequest rest = request(piece, {});
    auto texts = decode({&rest, 1});
    if (!texts) return false;
    text = std::move((*texts)[0]);
  }
}

void SpeechRun::run_in_pieces() {
  int64_t at = 0;
  bool more = true;
  while (more) {
    std::vector<Piece> pieces;
    std::vector<WindowRequest> requests;
    while (pieces.size() < static_cast<size_t>(options_.batch)) {
      Piece piece;
      more = next_sound(at, piece);
      if (!more) break;
      if (piece.length == parts_.model.window_samples()) {
        const int64_t frames = piece.levels.frames();
        piece.length = std::min(piece.length, piece.levels.quietest(frames * 2 / 3, frames) * SoundLevels::frame);
      }
      const auto samples = sound_.samples(piece.length, true);
      piece.samples.assign(samples.begin(), samples.end());
      encode(piece, samples);
      at += piece.length;
      know_language(piece);
      requests.push_back(request(piece, {}));
      pieces.push_back(std::move(piece));
    }
    if (pieces.empty()) return;
    auto texts = decode(requests);
    if (!texts) return;
    for (size_t i = 0; i < pieces.size(); ++i) {
      slow_ = false;
      if (!take_piece(pieces[i], std::move((*texts)[i]))) return;
      const Piece done = std::move(pieces[i]);
      progress(done.at + done.length);
    }
  }
}

TimedTranscript SpeechRun::run() {
  const auto start = Clock::now();
  result_.file = source_.name();
  if (options_.context) {
    run_with_context();
  } else {
    run_in_pieces();
  }
  const auto& warnings = source_.warnings();
  result_.warnings.insert(result_.warnings.begin(), warnings.begin(), warnings.end());
  result_.duration = double(speech_ ? speech_->taken() : sound_.read()) / rate;
  for (const TimedSegment& s : result_.segments) result_.text += s.text;
  result_.timings.audio_s = result_.duration;
  result_.timings.wall_s = seconds_since(start);
  return std::move(result_);
}

TimedTranscript transcribe_speech(const WhisperParts& parts, AudioSource& source, const SpeechOptions& options,
                                  const SpeechCallbacks& callbacks) {
  return SpeechRun(parts, source, options, callbacks).run();
}

std::vector<std::pair<std::string, double>> detect_speech_language(const WhisperParts& parts, AudioSource& source) {
  const WhisperVocabulary& v = parts.vocabulary;
  if (!v.multilingual) return {{"en", 1.0}};
  const SpeechOptions options;
  const SpeechCallbacks callbacks;
  const auto p = SpeechRun(parts, source, options, callbacks).languages();
  std::vector<std::pair<std::string, double>> ranked;
  for (size_t i = 0; i < p.size(); ++i) ranked.push_back({v.languages[i], p[i]});
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return ranked;
}

}  // namespace consonant
