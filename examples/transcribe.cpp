// SPDX-License-Identifier: Apache-2.0
// Prints what is said in a recording, while it is found out, through the C++ interface: transcribe MODEL RECORDING
#include <consonant/transcribe.hpp>
#include <cstdio>
#include <iostream>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: " << argv[0] << " MODEL RECORDING\n";
    return 2;
  }
  try {
    const auto transcriber = consonant::Transcriber::load(argv[1]);
    const auto recording = consonant::open_audio(argv[2]);
    consonant::TranscribeCallbacks callbacks;
    callbacks.on_segment = [](const consonant::Segment& segment) {
      return std::printf("[%7.2f - %7.2f]%s\n", segment.start, segment.end, segment.text.c_str()) > 0;
    };
    const auto transcript = transcriber->transcribe(*recording, {}, callbacks);
    std::printf("%.1f s, language %s (%.2f)\n", transcript.duration, transcript.language.c_str(),
                transcript.language_probability);
    return consonant::exit_code(transcript.stop_reason);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return consonant::exit_code(error);
  }
}
