// SPDX-License-Identifier: Apache-2.0
#include "audio/microphone.hpp"

#include <fcntl.h>

#include <optional>

#include "audio/descriptor.hpp"
#include "audio/live.hpp"
#include "base/error.hpp"

#ifdef CONSONANT_PORTAUDIO
#include <portaudio.h>
#endif

namespace consonant {

#ifdef CONSONANT_PORTAUDIO

namespace {

// What may be heard while a slow model works on what came before.
constexpr double held_seconds = 120;

void check(PaError error, const char* what) {
  if (error != paNoError) throw_error(Exit::device, "microphone: {}: {}", what, Pa_GetErrorText(error));
}

// ALSA and JACK write dozens of lines to stderr for every device that isn't there; what matters of it is in the error.
class QuietStderr {
 public:
  QuietStderr() {
    const Descriptor nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    if (nowhere.value() < 0) return;
    kept_ = Descriptor(::fcntl(2, F_DUPFD_CLOEXEC, 3));
    if (kept_.value() >= 0) ::dup2(nowhere.value(), 2);
  }
  QuietStderr(const QuietStderr&) = delete;
  QuietStderr& operator=(const QuietStderr&) = delete;
  ~QuietStderr() {
    if (kept_.value() >= 0) ::dup2(kept_.value(), 2);
  }

 private:
  Descriptor kept_;
};

class Library {
 public:
  Library() { check(Pa_Initialize(), "PortAudio can't be started"); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() { Pa_Terminate(); }
};

class PortAudioMicrophone : public MicrophoneSource {
 public:
  PortAudioMicrophone() {
    PaStreamParameters input{};
    input.device = Pa_GetDefaultInputDevice();
    const PaDeviceInfo* device = input.device == paNoDevice ? nullptr : Pa_GetDeviceInfo(input.device);
    if (device == nullptr) throw_error(Exit::device, "microphone: this machine has no sound input");
    input.channelCount = 1;
    input.sampleFormat = paFloat32;
    input.suggestedLatency = device->defaultHighInputLatency;
    // Most devices convert to the rate that is asked for; the others give their own.
    const auto wanted = static_cast<double>(rate);
    const bool direct = Pa_IsFormatSupported(&input, nullptr, wanted) == paFormatIsSupported;
    const double got = direct ? wanted : device->defaultSampleRate;
    live_.emplace(static_cast<int64_t>(got), held_seconds, std::string("microphone (") + device->name + ")",
                  [this] { return stream_ != nullptr && Pa_IsStreamActive(stream_) == 1; });
    check(Pa_OpenStream(&stream_, &input, nullptr, got, paFramesPerBufferUnspecified, paNoFlag, heard, &*live_),
          device->name);
    const PaError started = Pa_StartStream(stream_);
    if (started != paNoError) {
      Pa_CloseStream(stream_);
      check(started, device->name);
    }
  }
  ~PortAudioMicrophone() override { Pa_CloseStream(stream_); }

  void stop() noexcept override { live_->stop(); }
  int64_t read(std::span<float> to) override { return live_->read(to); }
  int64_t length() const override { return -1; }
  const std::vector<std::string>& warnings() const override { return live_->warnings(); }
  std::string name() const override { return live_->name(); }

 private:
  static int heard(const void* input, void*, unsigned long frames, const PaStreamCallbackTimeInfo*,
                   PaStreamCallbackFlags, void* live) {
    if (input != nullptr) static_cast<LiveAudio*>(live)->push({static_cast<const float*>(input), frames});
    return paContinue;
  }

  Library library_;
  std::optional<LiveAudio> live_;
  PaStream* stream_ = nullptr;
};

}  // namespace

std::unique_ptr<MicrophoneSource> open_default_microphone() {
  const QuietStderr quiet;
  return std::make_unique<PortAudioMicrophone>();
}

#else

std::unique_ptr<MicrophoneSource> open_default_microphone() {
  throw_error(Exit::device, "microphone: this program was built without PortAudio");
}

#endif

}  // namespace consonant
