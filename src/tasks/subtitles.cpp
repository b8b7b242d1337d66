// SPDX-License-Identifier: Apache-2.0
#include "tasks/subtitles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/utf8.hpp"

namespace consonant {

namespace {

int64_t milliseconds(double seconds) { return std::llround(std::max(0.0, seconds) * 1000); }

std::string trimmed(std::string_view text) {
  constexpr std::string_view white = " \t\r\n\v\f";
  const size_t first = text.find_first_not_of(white);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(white) - first + 1));
}

// White space of any kind and length as one space: a text never breaks a line where the format doesn't.
std::string one_line(std::string_view text) {
  std::string line;
  bool space = false;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f) {
      space = !line.empty();
    } else {
      if (space) line += ' ';
      space = false;
      line += c;
    }
  }
  return sanitize_utf8(line);
}

// Columns that a text takes: two for the wide characters of East Asia, none for marks that combine.
int columns_of(std::string_view text) {
  int columns = 0;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = utf8_next(text, at);
    const bool wide = (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) || (c >= 0xac00 && c <= 0xd7a3) ||
                      (c >= 0xf900 && c <= 0xfaff) || (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
                      (c >= 0x20000 && c <= 0x3fffd);
    const bool none = (c >= 0x300 && c <= 0x36f) || (c >= 0x200b && c <= 0x200f);
    columns += none ? 0 : wide ? 2 : 1;
  }
  return columns;
}

struct Cue {
  double start = 0, end = 0;
  std::vector<std::string> lines;
  std::string speaker;
};

// Words of a text laid out in lines as long as may be; a word longer than a line has one of its own.
std::vector<std::string> laid_out(const std::vector<std::string>& words, int line) {
  std::vector<std::string> lines;
  for (const std::string& word : words) {
    if (trimmed(word).empty()) continue;
    if (lines.empty() || columns_of(lines.back() + word) > line) {
      lines.push_back(trimmed(word));
    } else {
      lines.back() += word;
    }
  }
  return lines;
}

// Of a text that takes two lines, the break that leaves them about as long as each other reads best.
std::vector<std::string> balanced(const std::vector<std::string>& words, int line) {
  std::vector<std::string> best = laid_out(words, line);
  for (int shorter = line - 1; best.size() == 2 && shorter > 0; --shorter) {
    auto lines = laid_out(words, shorter);
    if (lines.size() != 2 || columns_of(lines[0]) < columns_of(lines[1])) break;
    best = std::move(lines);
  }
  return best;
}

bool ends_with_any(std::string_view text, std::span<const std::string_view> marks) {
  return std::any_of(marks.begin(), marks.end(), [&](std::string_view mark) { return text.ends_with(mark); });
}

bool ends_sentence(std::string_view word) {
  static constexpr std::string_view marks[] = {".", "?", "!", "。", "？", "！", "।", "…"};
  const std::string text = trimmed(word);
  const std::string_view view = text;
  return ends_with_any(view, marks) || (view.size() > 1 && (view.ends_with('"') || view.ends_with(')')) &&
                                        ends_with_any(view.substr(0, view.size() - 1), marks));
}

bool ends_clause(std::string_view word) {
  static constexpr std::string_view marks[] = {",", ";", ":", "，", "、", "；", "："};
  const std::string text = trimmed(word);
  return ends_sentence(text) || ends_with_any(text, marks);
}

// How many words the next subtitle takes: as many as fit, or up to the end of a sentence, or of a clause if that fills
// half of it.
size_t next_words(std::span<const TimedWord> words, const CueOptions& options) {
  std::vector<std::string> texts;
  size_t fits = 0, sentence = 0, clause = 0;
  while (fits < words.size()) {
    texts.push_back(words[fits].word);
    if (fits > 0 && laid_out(texts, options.line).size() > static_cast<size_t>(options.lines)) break;
    ++fits;
    const std::string& word = words[fits - 1].word;
    if (ends_sentence(word)) sentence = fits;
    if (ends_clause(word)) clause = fits;
    if (options.sentences && sentence == fits) return fits;
  }
  if (fits == words.size()) return fits;
  if (sentence * 3 >= fits) return sentence;
  return clause * 2 >= fits ? clause : fits;
}

std::vector<Cue> cues_of(const TimedTranscript& transcript, const CueOptions& options) {
  std::vector<Cue> cues;
  for (const TimedSegment& s : transcript.segments) {
    if (one_line(s.text).empty()) continue;
    if (s.words.empty()) {
      cues.push_back({s.start, s.end, {one_line(s.text)}, one_line(s.speaker)});
      continue;
    }
    std::span<const TimedWord> words = s.words;
    while (!words.empty()) {
      const size_t count = next_words(words, options);
      std::vector<std::string> texts;
      for (const TimedWord& w : words.first(count)) {
        std::string text = one_line(w.word);
        texts.push_back(w.word.starts_with(' ') ? " " + text : text);
      }
      Cue cue{words.front().start, words[count - 1].end, balanced(texts, options.line), one_line(s.speaker)};
      if (!cue.lines.empty()) cues.push_back(std::move(cue));
      words = words.subspan(count);
    }
  }
  return cues;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string with_speaker(std::string_view speaker, std::string text) {
  return speaker.empty() ? text : fmt::format("{}: {}", speaker, text);
}

std::string write_txt(const TimedTranscript& transcript) {
  std::string out;
  for (const TimedSegment& s : transcript.segments) {
    const std::string text = one_line(s.text);
    if (!text.empty()) out += with_speaker(one_line(s.speaker), text) + "\n";
  }
  return out;
}

std::string write_srt(const TimedTranscript& transcript, const CueOptions& options) {
  std::string out;
  int number = 0;
  for (const Cue& cue : cues_of(transcript, options)) {
    out += fmt::format("{}{}\n{} --> {}\n", number > 0 ? "\n" : "", number + 1, clock_time(cue.start, ','),
                       clock_time(cue.end, ','));
    out += with_speaker(cue.speaker, fmt::format("{}\n", fmt::join(cue.lines, "\n")));
    ++number;
  }
  return out;
}

std::string write_vtt(const TimedTranscript& transcript, const CueOptions& options) {
  std::string out = "WEBVTT\n\n";  // the empty line belongs to the head, cues or not
  bool first = true;
  for (const Cue& cue : cues_of(transcript, options)) {
    out += fmt::format("{}{} --> {}\n", std::exchange(first, false) ? "" : "\n", clock_time(cue.start, '.'),
                       clock_time(cue.end, '.'));
    if (!cue.speaker.empty()) out += fmt::format("<v {}>", escaped(cue.speaker));
    out += escaped(fmt::format("{}\n", fmt::join(cue.lines, "\n")));
  }
  return out;
}

bool any_speaker(const TimedTranscript& transcript) {
  return std::any_of(transcript.segments.begin(), transcript.segments.end(),
                     [](const TimedSegment& s) { return !s.speaker.empty(); });
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

std::string write_table(const TimedTranscript& transcript, char separator) {
  const bool speakers = any_speaker(transcript), csv = separator == ',';
  const auto cell = [&](std::string_view text) { return csv ? in_quotes(one_line(text)) : one_line(text); };
  std::string out =
      fmt::format("start{0}end{0}{1}text\n", separator, speakers ? fmt::format("speaker{}", separator) : "");
  for (const TimedSegment& s : transcript.segments) {
    out += fmt::format("{1}{0}{2}{0}", separator, milliseconds(s.start), milliseconds(s.end));
    if (speakers) out += fmt::format("{}{}", cell(s.speaker), separator);
    out += cell(s.text) + "\n";
  }
  return out;
}

// NIST's rich transcription time marks: names there have no white space.
std::string write_rttm(const TimedTranscript& transcript) {
  const auto name = [](std::string_view text, std::string_view none) {
    std::string word = one_line(text);
    std::replace(word.begin(), word.end(), ' ', '_');
    return word.empty() ? std::string(none) : word;
  };
  const size_t slash = transcript.file.find_last_of('/');
  std::string file = slash == std::string::npos ? transcript.file : transcript.file.substr(slash + 1);
  file = name(file.substr(0, file.find_last_of('.')), "recording");
  std::string out;
  for (const TimedSegment& s : transcript.segments) {
    if (s.speaker.empty()) continue;
    out += fmt::format("SPEAKER {} 1 {:.3f} {:.3f} <NA> <NA> {} <NA> <NA>\n", file, s.start, s.end - s.start,
                       name(s.speaker, "<NA>"));
  }
  return out;
}

// As many digits as a time or a probability has: the shortest form would show how floating point rounds.
double time_of(double seconds) { return double(milliseconds(seconds)) / 1000; }
double number(double value) { return std::isfinite(value) ? std::round(value * 1e6) / 1e6 : 0; }

const char* name_of(Stop stop) {
  switch (stop) {
    case Stop::cancelled:
      return "cancelled";
    case Stop::deadline:
      return "deadline";
    default:
      return "end_token";
  }
}

nlohmann::ordered_json json_of(const TimedSegment& s) {
  auto words = nlohmann::ordered_json::array();
  for (const TimedWord& w : s.words) {
    words.push_back({{"word", sanitize_utf8(w.word)},
                     {"start", time_of(w.start)},
                     {"end", time_of(w.end)},
                     {"probability", number(w.probability)}});
  }
  return {{"id", s.id},
          {"start", time_of(s.start)},
          {"end", time_of(s.end)},
          {"text", sanitize_utf8(s.text)},
          {"speaker", sanitize_utf8(s.speaker)},
          {"avg_logprob", number(s.avg_logprob)},
          {"no_speech_prob", number(s.no_speech_prob)},
          {"tokens", s.tokens},
          {"words", std::move(words)},
          {"compression_ratio", number(s.compression_ratio)},
          {"temperature", number(s.temperature)}};
}

std::string write_json(const TimedTranscript& t) {
  auto segments = nlohmann::ordered_json::array();
  for (const TimedSegment& s : t.segments) segments.push_back(json_of(s));
  std::vector<std::string> warnings;
  for (const std::string& w : t.warnings) warnings.push_back(sanitize_utf8(w));
  const nlohmann::ordered_json document = {{"file", sanitize_utf8(t.file)},
                                           {"duration", time_of(t.duration)},
                                           {"language", t.language},
                                           {"language_probability", number(t.language_probability)},
                                           {"text", sanitize_utf8(t.text)},
                                           {"segments", std::move(segments)},
                                           {"warnings", std::move(warnings)},
                                           {"stop_reason", name_of(t.stop)},
                                           {"timings",
                                            {{"load_s", number(t.timings.load_s)},
                                             {"audio_s", number(t.timings.audio_s)},
                                             {"wall_s", number(t.timings.wall_s)},
                                             {"encode_s", number(t.timings.encode_s)},
                                             {"decode_s", number(t.timings.decode_s)},
                                             {"windows", t.timings.windows},
                                             {"fallbacks", t.timings.fallbacks},
                                             {"tokens", t.timings.tokens}}}};
  return document.dump(1) + "\n";
}

}  // namespace

std::string clock_time(double seconds, char point) {
  const int64_t ms = milliseconds(seconds);
  return fmt::format("{:02}:{:02}:{:02}{}{:03}", ms / 3600000, ms / 60000 % 60, ms / 1000 % 60, point, ms % 1000);
}

const std::vector<std::string>& transcript_kinds() {
  static const std::vector<std::string> kinds = {"txt", "srt", "vtt", "json", "csv", "tsv", "rttm"};
  return kinds;
}

std::string write_transcript(const TimedTranscript& transcript, std::string_view kind, const CueOptions& options) {
  if (kind == "txt") return write_txt(transcript);
  if (kind == "srt") return write_srt(transcript, options);
  if (kind == "vtt") return write_vtt(transcript, options);
  if (kind == "json") return write_json(transcript);
  if (kind == "csv") return write_table(transcript, ',');
  if (kind == "tsv") return write_table(transcript, '\t');
  if (kind == "rttm") return write_rttm(transcript);
  bad_usage("unknown format \"{}\"; there are {}", kind, fmt::join(transcript_kinds(), ", "));
}

}  // namespace consonant
