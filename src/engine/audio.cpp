// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "audio/microphone.hpp"
#include "audio/read.hpp"
#include "audio/write.hpp"
#include "consonant/speak.hpp"
#include "consonant/transcribe.hpp"

namespace consonant {

namespace {

static_assert(AudioInput::rate == AudioSource::rate);

template <class Public, class Source>
class Adapter : public Public {
 public:
  explicit Adapter(std::unique_ptr<Source> source) : source_(std::move(source)) {}
  int64_t read(std::span<float> to) override { return source_->read(to); }
  int64_t length() const override { return source_->length(); }
  const std::vector<std::string>& warnings() const override { return source_->warnings(); }
  std::string name() const override { return source_->name(); }

 protected:
  std::unique_ptr<Source> source_;
};

class MicrophoneInput : public Adapter<Microphone, MicrophoneSource> {
 public:
  using Adapter::Adapter;
  void stop() noexcept override { source_->stop(); }
};

class WrittenSpeech final : public SpeechFile {
 public:
  WrittenSpeech(const std::string& path, SpeechFileKind kind, int64_t rate, const std::string& comment)
      : writer_(path, kind == SpeechFileKind::wav ? SoundKind::wav_s16 : SoundKind::flac, rate, 1, comment) {}
  void write(std::span<const float> samples) override { writer_.write(samples); }
  void commit() override { writer_.commit(); }

 private:
  SoundWriter writer_;
};

std::unique_ptr<AudioInput> input_of(std::unique_ptr<AudioSource> source) {
  return std::make_unique<Adapter<AudioInput, AudioSource>>(std::move(source));
}

ReadSettings settings_of(const AudioOptions& options) {
  ReadSettings settings;
  settings.offset = options.offset;
  settings.duration = options.duration;
  return settings;
}

}  // namespace

std::unique_ptr<AudioInput> open_audio(const std::string& path, const AudioOptions& options) {
  return input_of(read_audio(path, settings_of(options)));
}

std::unique_ptr<AudioInput> open_audio_stream(int descriptor, const std::string& pcm, const AudioOptions& options) {
  return input_of(read_audio_stream(descriptor, pcm, settings_of(options)));
}

std::unique_ptr<AudioInput> audio_of(std::vector<float> samples, std::string name) {
  return input_of(audio_of_samples(std::move(samples), std::move(name)));
}

std::unique_ptr<SpeechFile> create_speech_file(const std::string& path, SpeechFileKind kind, int64_t rate,
                                               const std::string& comment) {
  return std::make_unique<WrittenSpeech>(path, kind, rate, comment);
}

std::unique_ptr<Microphone> open_microphone() { return std::make_unique<MicrophoneInput>(open_default_microphone()); }

}  // namespace consonant
