// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/world.hpp"

namespace consonant {

// The formats of --format, which may be given several times and as lists with commas; with `json` nothing but that.
std::vector<std::string> chosen_formats(const World& world, const std::vector<std::string>& given, bool json);

// Times of what was read from `offset` seconds on, counted from the start of the recording.
Segment shifted(Segment segment, double offset);
void shift(Transcript& transcript, double offset);

// A document for a file. JSON says also where the model ran, and what `--device auto` passed over.
std::string file_document(const World& world, const Transcript& transcript, const std::string& format,
                          const SubtitleOptions& subtitles, const ModelInfo& info);

// The same for standard output: JSON on one line, so that those of several recordings are a line each.
std::string document(const World& world, const Transcript& transcript, const std::string& format,
                     const SubtitleOptions& subtitles, const ModelInfo& info);

// A segment as it goes to standard output while the rest is being transcribed; empty if nothing was said.
std::string text_of_segment(const World& world, const Segment& segment);

}  // namespace consonant
