// SPDX-License-Identifier: Apache-2.0
#include "cli/transcript_output.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "formats/json.hpp"

namespace consonant {

std::vector<std::string> chosen_formats(const World& world, const std::vector<std::string>& given, bool json) {
  std::vector<std::string> formats;
  for (const std::string& list : given)
    for (size_t at = 0; at <= list.size();) {
      const size_t comma = std::min(list.find(',', at), list.size());
      const std::string format = list.substr(at, comma - at);
      at = comma + 1;
      std::vector<std::string> known = world.speech.formats();
      std::erase(known, "rttm");
      if (format == "rttm") bad_usage("--format rttm: is about speakers, which this version doesn't tell apart");
      if (std::find(known.begin(), known.end(), format) == known.end())
        bad_usage("--format {}: there is no such format; there are: {}", format, fmt::join(known, ", "));
      if (std::find(formats.begin(), formats.end(), format) == formats.end()) formats.push_back(format);
    }
  if (json && !formats.empty() && formats != std::vector<std::string>{"json"})
    bad_usage("--json and --format {} exclude each other", fmt::join(formats, ","));
  if (formats.empty()) formats.push_back(json ? "json" : "txt");
  return formats;
}

Segment shifted(Segment segment, double offset) {
  segment.start += offset;
  segment.end += offset;
  for (SpokenWord& word : segment.words) {
    word.start += offset;
    word.end += offset;
  }
  return segment;
}

void shift(Transcript& transcript, double offset) {
  for (Segment& segment : transcript.segments) segment = shifted(std::move(segment), offset);
  transcript.duration += offset;
}

namespace {

std::string in_format(const World& world, const Transcript& transcript, const std::string& format,
                      const SubtitleOptions& subtitles, const ModelInfo& info, int indent) {
  using Json = nlohmann::ordered_json;
  std::string text = world.speech.format(transcript, format, subtitles);
  if (format != "json") return text;
  Json json = Json::parse(text);
  json["device"] = info.device;
  json["passed_over"] = info.passed_over;
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string file_document(const World& world, const Transcript& transcript, const std::string& format,
                          const SubtitleOptions& subtitles, const ModelInfo& info) {
  return in_format(world, transcript, format, subtitles, info, 1);
}

std::string document(const World& world, const Transcript& transcript, const std::string& format,
                     const SubtitleOptions& subtitles, const ModelInfo& info) {
  std::string text = in_format(world, transcript, format, subtitles, info, -1);
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  return text;
}

std::string text_of_segment(const World& world, const Segment& segment) {
  if (segment.text.find_first_not_of(" \t\r\n") == std::string::npos) return "";
  Transcript one;
  one.text = segment.text;
  one.segments = {segment};
  return document(world, one, "txt", {}, {});
}

}  // namespace consonant
