// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <vector>

#include "consonant/transcribe.hpp"
#include "engine/c_api.hpp"

struct consonant_transcriber {
  std::shared_ptr<consonant::Transcriber> transcriber;
};

struct consonant_transcript {
  consonant::Transcript transcript;
};

namespace {

using namespace consonant;

TranscribeOptions convert(const consonant_transcribe_options& o) {
  TranscribeOptions options;
  if (o.language) options.language = o.language;
  options.task = o.translate ? SpeechTask::translate : SpeechTask::transcribe;
  if (o.prompt) options.prompt = o.prompt;
  options.beam = o.beam;
  options.best_of = o.best_of;
  options.fallback = o.fallback != 0;
  options.context = o.context != 0;
  options.batch = o.batch;
  options.word_times = o.word_times != 0;
  options.vad = o.vad_model != nullptr;
  if (o.vad_model) options.vad_model = o.vad_model;
  options.deadline = o.deadline;
  options.seed = o.seed;
  return options;
}

consonant_segment to_c(const Segment& s) {
  return {s.start,          s.end,           s.text.c_str(),  s.text.size(), s.avg_logprob,
          s.no_speech_prob, s.tokens.data(), s.tokens.size(), s.words.size()};
}

consonant_transcript* run(consonant_transcriber& transcriber, AudioInput& audio,
                          const consonant_transcribe_options& o) {
  TranscribeCallbacks callbacks;
  if (o.on_segment)
    callbacks.on_segment = [&](const Segment& segment) {
      const consonant_segment c = to_c(segment);
      return o.on_segment(&c, o.user) == 0;
    };
  if (o.on_progress) callbacks.on_progress = [&](double done, double all) { o.on_progress(done, all, o.user); };
  auto result = std::make_unique<consonant_transcript>();
  result->transcript = transcriber.transcriber->transcribe(audio, convert(o), callbacks);
  return result.release();
}

// The element of a list, or wrong usage.
template <class T>
const T& at(const std::vector<T>& list, size_t index, const char* what) {
  if (index >= list.size()) bad_usage("{} {}, but there are {}", what, index, list.size());
  return list[index];
}

}  // namespace

extern "C" {

void consonant_transcribe_options_init(consonant_transcribe_options* options) {
  if (!options) return;
  *options = {};
  options->size = sizeof *options;
  options->language = "auto";
  options->beam = options->best_of = 5;
  options->fallback = options->context = options->batch = 1;
  options->duration = -1;
}

consonant_transcriber* consonant_transcriber_load(const char* path, const consonant_engine_options* options) {
  consonant_transcriber* result = nullptr;
  guarded([&] {
    need(path, "path");
    result = new consonant_transcriber{Transcriber::load(path, from_c(options))};
  });
  return result;
}

void consonant_transcriber_free(consonant_transcriber* transcriber) { delete transcriber; }

int consonant_transcriber_is_multilingual(const consonant_transcriber* transcriber) {
  return transcriber && transcriber->transcriber->multilingual() ? 1 : 0;
}

consonant_transcript* consonant_transcribe_file(consonant_transcriber* transcriber, const char* path,
                                                const consonant_transcribe_options* options) {
  consonant_transcript* result = nullptr;
  guarded([&] {
    need(transcriber, "transcriber");
    need(path, "path");
    const consonant_transcribe_options o = complete(options, consonant_transcribe_options_init);
    const std::unique_ptr<AudioInput> audio = open_audio(path, {o.offset, o.duration});
    result = run(*transcriber, *audio, o);
  });
  return result;
}

consonant_transcript* consonant_transcribe_samples(consonant_transcriber* transcriber, const float* samples,
                                                   size_t count, const consonant_transcribe_options* options) {
  consonant_transcript* result = nullptr;
  guarded([&] {
    need(transcriber, "transcriber");
    if (count > 0) need(samples, "samples");
    const consonant_transcribe_options o = complete(options, consonant_transcribe_options_init);
    if (o.offset > 0 || o.duration >= 0)
      bad_usage("offset and duration are for files: hand over the samples that are meant");
    const std::unique_ptr<AudioInput> audio = audio_of(std::vector<float>(samples, samples + count));
    result = run(*transcriber, *audio, o);
  });
  return result;
}

void consonant_transcriber_cancel(consonant_transcriber* transcriber) {
  if (transcriber) transcriber->transcriber->cancel();
}

void consonant_transcript_free(consonant_transcript* transcript) { delete transcript; }

int consonant_transcript_info(const consonant_transcript* transcript, consonant_transcript_facts* facts) {
  return guarded([&] {
    need(transcript, "transcript");
    need(facts, "facts");
    const Transcript& t = transcript->transcript;
    *facts = {consonant_stop_reason(t.stop_reason),
              t.text.c_str(),
              t.text.size(),
              t.language.c_str(),
              t.language_probability,
              t.duration,
              t.segments.size()};
  });
}

int consonant_transcript_segment(const consonant_transcript* transcript, size_t index, consonant_segment* segment) {
  return guarded([&] {
    need(transcript, "transcript");
    need(segment, "segment");
    *segment = to_c(at(transcript->transcript.segments, index, "segment"));
  });
}

int consonant_transcript_word(const consonant_transcript* transcript, size_t segment, size_t index,
                              consonant_word* word) {
  return guarded([&] {
    need(transcript, "transcript");
    need(word, "word");
    const SpokenWord& w = at(at(transcript->transcript.segments, segment, "segment").words, index, "word");
    *word = {w.start, w.end, w.word.c_str(), w.word.size(), w.probability};
  });
}

int consonant_transcript_format(const consonant_transcript* transcript, const char* format, char* text, size_t capacity,
                                size_t* count) {
  return guarded([&] {
    need(transcript, "transcript");
    need(format, "format");
    const std::string result = format_transcript(transcript->transcript, format);
    copy_out(std::span<const char>(result), text, capacity, count);
  });
}

}  // extern "C"
