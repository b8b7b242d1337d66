// SPDX-License-Identifier: Apache-2.0
#include "tasks/speech_prompt.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "base/utf8.hpp"

namespace consonant {

namespace {

class Builder {
 public:
  Builder(const TtsVocabulary& v, const Tokenizer& tokenizer, const SpeechRequest& request)
      : v_(v), tokenizer_(tokenizer), r_(request) {
    prompt_.rows.groups = v.groups;
    newline_ = single("\n");
    assistant_ = v.assistant >= 0 ? v.assistant : single("assistant");
  }

  SpeechPrompt build() {
    if (!r_.instruction.empty()) {
      for (const int32_t id : {v_.turn_start, single("user"), newline_}) read(id);
      for (const int32_t id : r_.instruction) read(id);
      for (const int32_t id : {v_.turn_end, newline_}) read(id);
    }
    for (const int32_t id : {v_.turn_start, assistant_, newline_}) read(id);
    add_tags();
    if (!r_.reference_codes.empty())
      add_with_reference();
    else
      add_text();
    return std::move(prompt_);
  }

 private:
  int32_t single(const char* text) const {
    const std::vector<int32_t> ids = tokenizer_.encode(text, {.parse_special = false});
    if (ids.size() != 1)
      bad_input("the tokenizer makes {} tokens of a word of the model's template, not one: '{}'", ids.size(), text);
    return ids[0];
  }

  // A position with a text token and nothing heard; what else is heard there is added after.
  void read(int32_t text) {
    prompt_.rows.text.push_back(text);
    prompt_.rows.codes.insert(prompt_.rows.codes.end(), static_cast<size_t>(v_.groups), -1);
    prompt_.rows.voice.push_back(-1);
  }
  void read_and_hear(int32_t text, int32_t code) {
    read(text);
    prompt_.rows.codes[prompt_.rows.codes.size() - static_cast<size_t>(v_.groups)] = code;
  }
  void read_and_hear(int32_t text, std::span<const int32_t> frame) {
    read(text);
    std::copy(frame.begin(), frame.end(), prompt_.rows.codes.end() - v_.groups);
  }

  // The last tag is read with the beginning of the text; the codec's beginning comes later.
  void add_tags() {
    if (r_.language < 0)
      for (const int32_t id : {v_.no_think, v_.think_bos, v_.think_eos}) read_and_hear(v_.text_pad, id);
    else
      for (const int32_t id : {v_.think, v_.think_bos, r_.language, v_.think_eos}) read_and_hear(v_.text_pad, id);
    if (r_.voice == PromptVoice::speaker) read_and_hear(v_.text_pad, r_.speaker);
    if (r_.voice == PromptVoice::vector) {
      read(v_.text_pad);
      prompt_.rows.voice.back() = 0;
    }
    read_and_hear(v_.text_bos, v_.pad);
  }

  void add_text() {
    if (r_.streaming_text) {
      read_and_hear(r_.text[0], v_.bos);
      prompt_.trailing.assign(r_.text.begin() + 1, r_.text.end());
      prompt_.trailing.push_back(v_.text_eos);
      return;
    }
    for (const int32_t id : r_.text) read_and_hear(id, v_.pad);
    read_and_hear(v_.text_eos, v_.pad);
    read_and_hear(v_.text_pad, v_.bos);
    prompt_.trailing = {v_.text_pad};
  }

  void add_with_reference() {
    std::vector<int32_t> read_side(r_.reference_text.begin(), r_.reference_text.end());
    read_side.insert(read_side.end(), r_.text.begin(), r_.text.end());
    read_side.push_back(v_.text_eos);
    const auto groups = static_cast<size_t>(v_.groups);
    const size_t heard = r_.reference_codes.size() / groups + 1;  // its beginning, and the frames
    const auto hear = [&](size_t i, int32_t text) {
      if (i == 0)
        read_and_hear(text, v_.bos);
      else
        read_and_hear(text, r_.reference_codes.subspan((i - 1) * groups, groups));
    };
    prompt_.trailing = {v_.text_pad};
    if (!r_.streaming_text) {
      for (const int32_t id : read_side) read_and_hear(id, v_.pad);
      for (size_t i = 0; i < heard; ++i) hear(i, v_.text_pad);
      return;
    }
    if (read_side.size() > heard) prompt_.trailing.assign(read_side.begin() + std::ptrdiff_t(heard), read_side.end());
    read_side.resize(heard, v_.text_pad);
    for (size_t i = 0; i < heard; ++i) hear(i, read_side[i]);
  }

  const TtsVocabulary& v_;
  const Tokenizer& tokenizer_;
  const SpeechRequest& r_;
  SpeechPrompt prompt_;
  int32_t newline_, assistant_;
};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

template <class T>
std::string names_of(const std::vector<T>& all) {
  std::string out;
  for (const T& one : all) out += (out.empty() ? "" : ", ") + one.name;
  return out;
}

}  // namespace

SpeechPrompt speech_prompt(const TtsVocabulary& vocabulary, const Tokenizer& tokenizer, const SpeechRequest& request) {
  if (request.text.empty()) bad_input("there is no text to speak");
  if (static_cast<int64_t>(request.reference_codes.size()) % vocabulary.groups != 0)
    throw_error(Exit::failed, "{} codes of a reference in frames of {}", request.reference_codes.size(),
                vocabulary.groups);
  return Builder(vocabulary, tokenizer, request).build();
}

std::vector<int32_t> speech_text(const Tokenizer& tokenizer, std::string_view text) {
  constexpr std::string_view blank = " \t\r\n\f\v";
  const size_t first = text.find_first_not_of(blank);
  if (first == text.npos) bad_input("the text to speak is empty");
  // Blanks at the end would only ask for silence, and those in front would join with the template's line end.
  text = text.substr(first, text.find_last_not_of(blank) - first + 1);
  return tokenizer.encode(text, {.parse_special = false});
}

int32_t speech_language(const TtsVocabulary& vocabulary, std::string_view name, const TtsVocabulary::Speaker* speaker) {
  const bool automatic = name.empty() || lower(name) == "auto";
  const int32_t dialect = speaker ? speaker->dialect : -1;
  if (automatic) return dialect;
  const TtsVocabulary::Language* language = vocabulary.language(name);
  if (!language)
    bad_input("the model doesn't know the language '{}'; it knows auto{}{}", sanitize_utf8(std::string(name)),
              vocabulary.languages.empty() ? "" : ", ", names_of(vocabulary.languages));
  return dialect >= 0 && lower(language->name) == "chinese" ? dialect : language->id;
}

const TtsVocabulary::Speaker& speech_speaker(const TtsVocabulary& vocabulary, std::string_view name) {
  const TtsVocabulary::Speaker* speaker = vocabulary.speaker(name);
  if (!speaker)
    bad_input("the model has no speaker '{}'; it has {}", sanitize_utf8(std::string(name)),
              vocabulary.speakers.empty() ? "none" : names_of(vocabulary.speakers));
  return *speaker;
}

}  // namespace consonant
