// SPDX-License-Identifier: Apache-2.0
// Qwen3-TTS's talker and code predictor against the reference, stage by stage, from both kinds of files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "base/error.hpp"
#include "engine/model_setup.hpp"
#include "formats/convert.hpp"
#include "tests/tts_golden.hpp"

namespace consonant {
namespace {

using testing::HasSubstr;
using testing::Values;

constexpr size_t width = 64, groups = 16, codes = 1088, book = 64;  // of both models
const std::string models[] = {base_model, custom_model};

std::span<const float> rows_of(const std::vector<float>& all, size_t first, size_t count, size_t columns) {
  return std::span(all).subspan(first * columns, count * columns);
}

void expect_near(std::span<const float> made, std::span<const float> wanted, size_t columns, double most,
                 const std::string& what) {
  ASSERT_EQ(made.size(), wanted.size()) << what;
  const Distance distance = distance_of(wanted, made, columns);
  EXPECT_LE(distance.max_abs, most) << what;
  EXPECT_GE(distance.worst_cosine, 0.99999) << what;
}

// What was tapped of the node of that name; of several that begin so, the last.
std::vector<float> tap(const std::vector<TapRows>& taps, const std::string& name) {
  const std::vector<float>* found = nullptr;
  for (const TapRows& rows : taps)
    if (rows.name.starts_with(name)) found = &rows.rows;
  EXPECT_TRUE(found) << name;
  return found ? *found : std::vector<float>();
}

// ---- prompts

std::vector<int32_t> middle(const std::vector<int32_t>& ids, size_t after) {
  return {ids.begin() + 3, ids.end() - static_cast<std::ptrdiff_t>(after)};
}

void expect_ids(const std::string& path, const std::string& model) {
  SCOPED_TRACE(path);
  const LoadedTts loaded(path);
  const Golden golden = tts_golden(model);
  for (const TtsCase& c : tts_cases(model)) {
    const std::string name = c.name;
    EXPECT_EQ(speech_text(*loaded.tokenizer, c.text), middle(golden.ids(name + ".input_ids"), 5)) << name;
    if (c.instruction) {
      EXPECT_EQ(speech_text(*loaded.tokenizer, c.instruction), middle(golden.ids(name + ".instruct_ids"), 2));
    }
    const TtsPrompt prompt = tts_prompt(loaded, golden, c);
    EXPECT_EQ(prompt.prompt.rows.size(), golden.sizes(name + ".prefill")[0]) << name;
    EXPECT_EQ(std::ssize(prompt.prompt.trailing), golden.sizes(name + ".trailing")[0]) << name;
  }
}

TEST(TtsPrompt, TheIdsAreThoseOfTheReferencesTemplates) {
  for (const std::string& model : models) {
    expect_ids(tts_folder(model), model);
    expect_ids(tts_gguf(model), model);
  }
}

TEST(TtsPrompt, WhatIsNoTextOrNoNameIsRefused) {
  const LoadedTts loaded(tts_folder(custom_model));
  const TtsVocabulary& v = loaded.model->vocabulary();
  const auto said = [](auto&& f) {
    try {
      f();
    } catch (const Error& error) {
      EXPECT_EQ(error.exit(), Exit::input);
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_THAT(said([&] { speech_text(*loaded.tokenizer, " \n\t "); }), HasSubstr("empty"));
  EXPECT_THAT(said([&] { speech_language(v, "klingon", nullptr); }), HasSubstr("auto, beijing_dialect, chinese"));
  EXPECT_THAT(said([&] { speech_speaker(v, "nobody"); }), HasSubstr("aiden, dylan"));
  // A special token's name is text like any other.
  for (const int32_t id : speech_text(*loaded.tokenizer, "say <|im_end|> twice")) EXPECT_LT(id, 480);
  EXPECT_EQ(speech_text(*loaded.tokenizer, "\n Hello.  "), speech_text(*loaded.tokenizer, "Hello."));
}

TEST(TtsPrompt, ADialectTakesThePlaceOfChineseAlone) {
  const LoadedTts loaded(tts_folder(custom_model));
  const TtsVocabulary& v = loaded.model->vocabulary();
  const auto* dylan = v.speaker("Dylan");
  ASSERT_TRUE(dylan);
  EXPECT_EQ(speech_language(v, "Chinese", dylan), 90);
  EXPECT_EQ(speech_language(v, "auto", dylan), 90);
  EXPECT_EQ(speech_language(v, "english", dylan), 66);
  EXPECT_EQ(speech_language(v, "chinese", v.speaker("vivian")), 71);
  EXPECT_EQ(speech_language(v, "", nullptr), -1);
}

// ---- the talker

// What the talker reads, its states after each layer and after the last norm, and what it would read after the prompt.
void expect_prefill(const LoadedTts& loaded, const RunnerOptions& options, const Golden& golden, const TtsCase& c) {
  SCOPED_TRACE(c.name);
  const std::string name = c.name;
  const TtsPrompt prompt = tts_prompt(loaded, golden, c);
  const auto runner = loaded.runner(options);
  runner->watch({"input/add*", "talker/blk.*/*"});
  const int sequence = runner->open(prompt.voice);
  const auto hidden = runner->states(sequence, prompt.prompt.rows);
  const auto taps = runner->take_taps();
  const size_t rows = prompt.prompt.rows.text.size();
  const auto states = golden.floats(name + ".prefill_states");
  expect_near(tap(taps, "input/add"), golden.floats(name + ".prefill"), width, 1e-4, "the prompt");
  for (size_t layer = 0; layer < 3; ++layer)
    expect_near(tap(taps, fmt::format("talker/blk.{}/add", layer)), rows_of(states, (1 + layer) * rows, rows, width),
                width, 1e-4, fmt::format("layer {}", layer));
  expect_near(hidden, rows_of(states, 4 * rows, rows, width), width, 1e-4, "the last norm");

  FrameRows trailing;
  trailing.groups = groups, trailing.text = prompt.prompt.trailing;
  trailing.codes.assign(trailing.text.size() * groups, -1), trailing.voice.assign(trailing.text.size(), -1);
  runner->states(sequence, trailing);
  expect_near(tap(runner->take_taps(), "input/add"), golden.floats(name + ".trailing"), width, 1e-4, "trailing");
}

// Codes, logits and states of a run, and what was read for each frame.
void expect_run(const LoadedTts& loaded, const RunnerOptions& options, const Golden& golden, const TtsCase& c) {
  SCOPED_TRACE(c.name);
  const std::string name = c.name;
  const TtsPrompt prompt = tts_prompt(loaded, golden, c);
  const auto runner = loaded.runner(options);
  const Utterance u = greedy_utterance(loaded, prompt);
  const Spoken spoken = speak_frames(*runner, {&u, 1}, loaded.model->vocabulary().text_pad).at(0);
  EXPECT_EQ(spoken.stop, Stop::end_token);
  EXPECT_EQ(spoken.codes, golden.ids(name + ".codes"));
  expect_near(spoken.logits, golden.floats(name + ".logits"), codes, 1e-3, "logits");
  expect_near(spoken.code_logits, golden.floats(name + ".cp_logits"), book, 1e-3, "the predictor's logits");
  expect_near(spoken.hidden, golden.floats(name + ".hidden"), width, 1e-4, "states");
}

void expect_replay(const LoadedTts& loaded, const RunnerOptions& options, const Golden& golden, const TtsCase& c) {
  SCOPED_TRACE(std::string("replay on ") + c.name);
  const TtsPrompt prompt = tts_prompt(loaded, golden, c);
  const auto runner = loaded.runner(options);
  Utterance u = greedy_utterance(loaded, prompt);
  const auto forced = golden.ids("replay.codes");
  u.forced = forced;
  const Spoken spoken = speak_frames(*runner, {&u, 1}, loaded.model->vocabulary().text_pad).at(0);
  EXPECT_EQ(spoken.codes, forced);
  expect_near(spoken.logits, golden.floats("replay.logits"), codes, 1e-3, "logits");
  expect_near(spoken.code_logits, golden.floats("replay.cp_logits"), book, 1e-3, "the predictor's logits");
  expect_near(spoken.hidden, golden.floats("replay.hidden"), width, 1e-4, "states");
}

void expect_goldens(const std::string& path, const std::string& model, const RunnerOptions& options) {
  SCOPED_TRACE(path);
  const LoadedTts loaded(path);
  const Golden golden = tts_golden(model);
  for (const TtsCase& c : tts_cases(model)) {
    expect_prefill(loaded, options, golden, c);
    expect_run(loaded, options, golden, c);
    if (c.replay) expect_replay(loaded, options, golden, c);
  }
}

RunnerOptions on_device(const std::string& device, int sequences = 2) {
  return exact_tts(device == "reference" ? Target(DeviceKind::reference) : open_target(device), sequences);
}

class TtsFolder : public testing::TestWithParam<const char*> {};
class TtsGguf : public testing::TestWithParam<const char*> {};

TEST_P(TtsFolder, AgreesWithTheReferenceForCloning) {
  expect_goldens(tts_folder(base_model), base_model, on_device(GetParam()));
}
TEST_P(TtsFolder, AgreesWithTheReferenceWithSpeakers) {
  expect_goldens(tts_folder(custom_model), custom_model, on_device(GetParam()));
}
TEST_P(TtsGguf, AgreesWithTheReferenceForCloning) {
  expect_goldens(tts_gguf(base_model), base_model, on_device(GetParam()));
}
TEST_P(TtsGguf, AgreesWithTheReferenceWithSpeakers) {
  expect_goldens(tts_gguf(custom_model), custom_model, on_device(GetParam()));
}

// The files hold the same numbers: an emulated card of each width reads one of them.
const auto by_device = [](const auto& test) { return std::string(test.param); };
INSTANTIATE_TEST_SUITE_P(On, TtsFolder, Values("cpu", "reference", "emu32"), by_device);
INSTANTIATE_TEST_SUITE_P(On, TtsGguf, Values("cpu", "reference", "emu64"), by_device);

// The text is read on while frames are made; after it the padding.
TEST(TtsTalker, WhatIsReadForAFrameIsItsCodesAndTheNextOfTheText) {
  for (const std::string& model : models) {
    const LoadedTts loaded(tts_folder(model));
    const Golden golden = tts_golden(model);
    for (const TtsCase& c : tts_cases(model)) {
      if (!c.streaming) continue;
      const TtsPrompt prompt = tts_prompt(loaded, golden, c);
      const auto runner = loaded.runner(exact_tts());
      runner->watch({"input/add*"});
      const Utterance u = greedy_utterance(loaded, prompt);
      speak_frames(*runner, {&u, 1}, loaded.model->vocabulary().text_pad);
      auto read = tap(runner->take_taps(), "input/add.16");  // the prompt's has a voice besides
      const size_t frames = golden.floats(std::string(c.name) + ".step_embeds").size();
      ASSERT_GE(read.size(), frames);
      read.erase(read.begin(), read.end() - static_cast<std::ptrdiff_t>(frames));
      expect_near(read, golden.floats(std::string(c.name) + ".step_embeds"), width, 1e-4, c.name);
    }
  }
}

// ---- drawing

TEST(TtsDraws, TheDistributionIsThatOfTheReferencesChain) {
  for (const std::string& model : models) {
    const LoadedTts loaded(tts_folder(model));
    const TtsVocabulary& v = loaded.model->vocabulary();
    const Golden golden = tts_golden(model);
    for (const auto& [tag, temperature, top_k, top_p] :
         {std::tuple{"default", 0.9f, 50, 1.0f}, std::tuple{"tight", 0.7f, 20, 0.8f}}) {
      Sampling s{.temperature = temperature, .top_k = top_k, .top_p = top_p, .repeat_penalty = 1.05f};
      s.penalty_window = -1, s.temper_first = true;
      for (int64_t id = v.book; id < v.codes; ++id)
        if (id != v.end) s.logit_bias.emplace_back(static_cast<int32_t>(id), -INFINITY);
      std::vector<double> made(codes);
      for (const Candidate& c :
           Sampler(s).distribution(golden.floats("sampling.logits"), golden.ids("sampling.history")))
        made[static_cast<size_t>(c.token)] = c.probability;
      const auto wanted = golden.floats(std::string("sampling.probs_") + tag);
      for (size_t i = 0; i < codes; ++i)
        EXPECT_NEAR(made[i], double{wanted[i]}, 1e-5) << model << " " << tag << " " << i;
    }
  }
}

std::vector<int32_t> drawn(TtsRunner& runner, const LoadedTts& loaded, const TtsPrompt& prompt,
                           const std::function<void(Utterance&)>& change) {
  Utterance u = greedy_utterance(loaded, prompt, 30);
  u.record = false;
  for (Sampling* s : {&u.first, &u.others}) s->temperature = 0.9f, s->top_k = 50, s->temper_first = true, s->seed = 7;
  u.limits.end_tokens = {};
  change(u);
  return speak_frames(runner, {&u, 1}, loaded.model->vocabulary().text_pad).at(0).codes;
}

// One that reached only the talker, or nobody, was a fault of others.
TEST(TtsDraws, EveryOptionReachesTheTalkerAndThePredictor) {
  const LoadedTts loaded(tts_folder(custom_model));
  const Golden golden = tts_golden(custom_model);
  const TtsPrompt prompt = tts_prompt(loaded, golden, tts_cases(custom_model)[0]);
  const auto runner = loaded.runner(exact_tts());
  const auto plain = drawn(*runner, loaded, prompt, [](Utterance&) {});
  EXPECT_EQ(drawn(*runner, loaded, prompt, [](Utterance&) {}), plain) << "the same seed";
  const std::pair<const char*, std::function<void(Sampling&)>> changes[] = {
      {"seed", [](Sampling& s) { s.seed = 8; }},
      {"temperature", [](Sampling& s) { s.temperature = 30; }},
      {"top-k", [](Sampling& s) { s.temperature = 30, s.top_k = 2; }},
      {"top-p", [](Sampling& s) { s.temperature = 30, s.top_p = 0.05f; }}};
  std::vector<std::vector<int32_t>> all = {plain};
  for (const auto& [name, change] : changes)
    for (Sampling Utterance::*of : {&Utterance::first, &Utterance::others}) {
      const auto made = drawn(*runner, loaded, prompt, [&](Utterance& u) { change(u.*of); });
      for (const auto& other : all) EXPECT_NE(made, other) << name;
      all.push_back(made);
    }
  EXPECT_NE(drawn(*runner, loaded, prompt, [](Utterance& u) { u.first.repeat_penalty = 3; }), plain);
}

// ---- bounds

TEST(TtsBounds, ARunStopsAtEachOfItsBoundsAndSaysHowTheEndStood) {
  const LoadedTts loaded(tts_folder(base_model));
  const Golden golden = tts_golden(base_model);
  const TtsCase c = tts_cases(base_model)[2];  // ends after 12 frames
  const TtsPrompt prompt = tts_prompt(loaded, golden, c);
  const auto runner = loaded.runner(exact_tts());
  const auto spoken = [&](const std::function<void(StopLimits&)>& change) {
    Utterance u = greedy_utterance(loaded, prompt);
    u.record = false;
    u.limits.max_tokens = -1;
    change(u.limits);
    return speak_frames(*runner, {&u, 1}, loaded.model->vocabulary().text_pad).at(0);
  };
  Spoken made = spoken([](StopLimits& l) { l.input_bound = 11; });
  EXPECT_EQ(made.stop, Stop::input_bound);
  EXPECT_EQ(made.frames, 11);
  ASSERT_EQ(made.end.size(), 8u);
  EXPECT_EQ(made.frames, std::ssize(made.codes) / 16);
  for (const EndStanding& end : made.end) {
    EXPECT_GE(end.rank, 1);
    EXPECT_LE(end.probability, 1);
  }
  made = spoken([](StopLimits& l) { l.input_bound = 12; });
  EXPECT_EQ(made.stop, Stop::end_token) << "the step after the last frame may end it";
  EXPECT_EQ(made.frames, 12);
  EXPECT_EQ(made.end.back().rank, 1);
  made = spoken([](StopLimits& l) { l.max_tokens = 3; });
  EXPECT_EQ(made.stop, Stop::caller_limit);
  EXPECT_EQ(made.frames, 3);
  made = spoken([&](StopLimits& l) { l.context = prompt.prompt.rows.size() + 5; });
  EXPECT_EQ(made.stop, Stop::context_full);
  EXPECT_EQ(made.frames, 5);
}

// As it ships: the cache in halves, and of quantised weights 8-bit activations too.
TEST(TtsTalker, TheCodesAreTheSameWithAHalfPreciseCache) {
  for (const std::string& model : models) {
    const LoadedTts loaded(tts_gguf(model));
    const Golden golden = tts_golden(model);
    RunnerOptions options = exact_tts();
    options.kv = DType::f16, options.small_activations = true;
    const auto runner = loaded.runner(options);
    for (const TtsCase& c : tts_cases(model)) {
      const TtsPrompt prompt = tts_prompt(loaded, golden, c);
      const Utterance u = greedy_utterance(loaded, prompt);
      EXPECT_EQ(speak_frames(*runner, {&u, 1}, loaded.model->vocabulary().text_pad).at(0).codes,
                golden.ids(std::string(c.name) + ".codes"))
          << c.name;
    }
  }
}

TEST(TtsTalker, AConvertedFileSpeaksAsItsOriginal) {
  const std::filesystem::path out = std::filesystem::temp_directory_path() / fmt::format("tts-{}.gguf", getpid());
  for (const std::string& model : models)
    for (const char* type : {"f32", "f16", "q8_0", "q4_k_m"}) {
      SCOPED_TRACE(model + " as " + type);
      convert_model(open_model(tts_folder(model)), out, type, 2, {});
      const LoadedTts loaded(out);
      const Golden golden = tts_golden(model);
      const TtsCase c = tts_cases(model)[0];
      const TtsPrompt prompt = tts_prompt(loaded, golden, c);
      RunnerOptions options = exact_tts();
      options.small_activations = true;
      const auto runner = loaded.runner(options);
      Utterance u = greedy_utterance(loaded, prompt);
      const bool exact = type[0] == 'f';
      const auto forced = golden.ids("replay.codes");
      u.forced = forced;
      const Spoken spoken = speak_frames(*runner, {&u, 1}, loaded.model->vocabulary().text_pad).at(0);
      const double cosine = exact ? 0.99999 : type[1] == '8' ? 0.999 : 0.9;
      EXPECT_GE(distance_of(golden.floats("replay.logits"), spoken.logits, codes).worst_cosine, cosine);
      EXPECT_GE(distance_of(golden.floats("replay.cp_logits"), spoken.code_logits, book).worst_cosine, cosine);
      EXPECT_EQ(loaded.file.find("talker.blk.0.attn_q.weight")->type, type == std::string("f32")    ? DType::f32
                                                                      : type == std::string("f16")  ? DType::f16
                                                                      : type == std::string("q8_0") ? DType::q8_0
                                                                                                    : DType::q5_0);
    }
  std::filesystem::remove(out);
}

// More utterances than sequences, of different lengths, and each as it is alone.
TEST(TtsTalker, SeveralAtOnceAreWhatEachIsAlone) {
  for (const auto& [device, frames] : {std::pair{"cpu", 120}, std::pair{"emu32", 6}}) {
    const LoadedTts loaded(tts_folder(base_model));
    const Golden golden = tts_golden(base_model);
    const auto runner = loaded.runner(on_device(device, 3));
    std::vector<TtsPrompt> prompts;
    for (const TtsCase& c : tts_cases(base_model)) prompts.push_back(tts_prompt(loaded, golden, c));
    std::vector<Utterance> all;
    for (const TtsPrompt& prompt : prompts) all.push_back(greedy_utterance(loaded, prompt, frames));
    const auto together = speak_frames(*runner, all, loaded.model->vocabulary().text_pad);
    for (size_t i = 0; i < all.size(); ++i) {
      const auto alone = speak_frames(*runner, {&all[i], 1}, loaded.model->vocabulary().text_pad).at(0);
      EXPECT_EQ(together[i].codes, alone.codes) << i;
      EXPECT_EQ(together[i].logits, alone.logits) << device << i;
      EXPECT_EQ(together[i].code_logits, alone.code_logits) << device << i;
    }
  }
}

}  // namespace
}  // namespace consonant
