// SPDX-License-Identifier: Apache-2.0
// Guesses by a draft change nothing but the number of steps: with it or without, a generation is the same to the bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "base/error.hpp"
#include "device/emu/faults.hpp"
#include "engine/draft.hpp"
#include "engine/model_setup.hpp"
#include "tests/golden.hpp"
#include "tests/head_file.hpp"

namespace consonant {
namespace {

using testing::HasSubstr;

constexpr const char* data = CONSONANT_TEST_DATA;

std::string path_of(const std::string& model) { return data + ("/" + model); }

const std::string llama = "llm/models/llama/model-f32.gguf", glm = "llm_mla/models/glm4_moe_lite/model-f32.gguf",
                  glm_q8 = "llm_mla/models/glm4_moe_lite/model-Q8_0.gguf",
                  nemotron = "llm_mamba/models/nemotron_h/model-f32.gguf",
                  nemotron_q8 = "llm_mamba/models/nemotron_h/model-Q8_0.gguf";

std::shared_ptr<Engine> load_path(const std::string& path, const std::string& draft, const std::string& device) {
  EngineOptions options;
  options.device = device, options.threads = device == "cpu" ? 1 : 2, options.context = 160, options.draft = draft;
  return Engine::load(path, options);
}

std::shared_ptr<Engine> load(const std::string& model, const std::string& draft, const std::string& device,
                             int draft_tokens = 4, int64_t context = 160) {
  EngineOptions options;
  options.device = device, options.threads = device == "cpu" ? 1 : 2, options.context = context;
  options.draft = draft.empty() ? draft : path_of(draft), options.draft_tokens = draft_tokens;
  return Engine::load(path_of(model), options);
}

std::vector<int32_t> some_ids(size_t count = 20) {
  const auto ids = Golden(llm_data + "models/llama/golden.safetensors").ids("input_ids");
  std::vector<int32_t> some;
  for (size_t i = 0; i < count; ++i) some.push_back(ids[i % ids.size()]);
  return some;
}

std::vector<GenerateOptions> settings() {
  GenerateOptions greedy;
  greedy.ignore_eos = greedy.logprobs = true, greedy.max_tokens = 21;
  GenerateOptions usual = greedy, penalties = greedy, to_the_end = greedy;
  usual.sampling = {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .seed = 7};
  penalties.sampling = {.temperature = 1.2f, .typical = 0.9f, .repeat_penalty = 1.3f, .frequency_penalty = 0.2f};
  penalties.sampling.logit_bias = {{3, 2.5f}, {5, -std::numeric_limits<float>::infinity()}};
  to_the_end.max_tokens = -1, to_the_end.sampling.temperature = 0.3f;
  return {greedy, usual, penalties, to_the_end};
}

// All that a caller sees of a generation, and of the sequence after it.
struct Seen {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  std::string text;
  StopReason stop_reason{};
  int64_t length = 0;
  std::vector<std::string> pieces;
  bool operator==(const Seen&) const = default;
};
Seen generate(Session& session, std::span<const int32_t> prompt, const GenerateOptions& options,
              Generation* made = nullptr) {
  Seen seen;
  const Generation g = session.generate(prompt, options, [&](std::string_view text, std::span<const int32_t> tokens) {
    seen.pieces.push_back(fmt::format("{} {}", tokens.size(), text));
    return true;
  });
  seen.tokens = g.tokens, seen.logprobs = g.logprobs, seen.text = g.text, seen.stop_reason = g.stop_reason;
  seen.length = session.length();
  if (made) *made = g;
  return seen;
}

struct Pair {
  const char* name;
  std::string model, draft;
  bool right, wrong;  // some guesses are right, some wrong
};
std::vector<Pair> pairs() {
  return {{"AttentionByItself", llama, llama, true, false},
          {"LatentByItsCompactForm", glm, glm_q8, true, true},
          {"HybridByItsCompactForm", nemotron, nemotron_q8, true, true},
          {"HybridByAttention", nemotron, llama, false, true},
          {"AttentionByHybrid", llama, nemotron, false, true}};
}

class SpeculativeModel : public testing::TestWithParam<Pair> {};

TEST_P(SpeculativeModel, GeneratesTheSame) {
  for (const std::string device : {"cpu", "emu32"}) {
    std::vector<GenerateOptions> all = settings();
    if (device == "emu32") all = {all[0], all[2]};  // which takes its time
    for (GenerateOptions& options : all)
      if (device == "emu32") options.max_tokens = 14;
    const auto plain = load(GetParam().model, "", device);
    std::vector<Seen> wanted;
    for (const GenerateOptions& options : all) wanted.push_back(generate(*plain->session(), some_ids(), options));
    for (const int draft_tokens : device == "cpu" ? std::vector{1, 4, 7} : std::vector{4}) {
      const auto engine = load(GetParam().model, GetParam().draft, device, draft_tokens);
      int64_t guessed = 0, accepted = 0;
      for (size_t i = 0; i < wanted.size(); ++i) {
        SCOPED_TRACE(fmt::format("{}, {} tokens, setting {}", device, draft_tokens, i));
        Generation made;
        EXPECT_EQ(generate(*engine->session(), some_ids(), all[i], &made), wanted[i]);
        EXPECT_GT(made.drafted, 0);
        EXPECT_LE(made.accepted, made.drafted);
        guessed += made.drafted, accepted += made.accepted;
      }
      if (GetParam().right) {
        EXPECT_GT(accepted, guessed / 4);
      }
      if (GetParam().wrong) {
        EXPECT_LT(accepted, guessed);
      }
    }
  }
}

// Turns of a conversation, one of which changes what came before it.
TEST_P(SpeculativeModel, GoesOnTheSame) {
  const auto plain = load(GetParam().model, "", "cpu"), engine = load(GetParam().model, GetParam().draft, "cpu");
  const auto a = plain->session(), b = engine->session();
  for (const GenerateOptions& setting : settings()) {
    GenerateOptions options = setting;
    options.max_tokens = 11, options.stable = 12;
    std::vector<int32_t> text = some_ids(17);
    for (int turn = 0; turn < 3; ++turn) {
      SCOPED_TRACE(turn);
      const Seen wanted = generate(*a, text, options);
      EXPECT_EQ(generate(*b, text, options), wanted);
      text.insert(text.end(), wanted.tokens.begin(), wanted.tokens.end());
      if (turn == 1) text.resize(text.size() - 8);
      text.push_back(9);
    }
  }
}

// The first character of the text that comes at the third token or later ends it.
TEST_P(SpeculativeModel, StopsAtTheSamePlace) {
  const auto plain = load(GetParam().model, "", "cpu"), engine = load(GetParam().model, GetParam().draft, "cpu");
  for (const GenerateOptions& setting : settings()) {
    const Seen whole = generate(*plain->session(), some_ids(), setting);
    for (size_t i = 3; i < whole.pieces.size(); i += 4) {
      GenerateOptions options = setting;
      options.stop = {whole.pieces[i].substr(whole.pieces[i].find(' ') + 1)};
      if (options.stop[0].empty()) continue;
      const Seen wanted = generate(*plain->session(), some_ids(), options);
      EXPECT_EQ(wanted.stop_reason, StopReason::stop_string);
      const auto session = engine->session();
      EXPECT_EQ(generate(*session, some_ids(), options), wanted);
      // and what the sequence holds is as sound as if there had been no guess
      std::vector<int32_t> text = some_ids();
      text.insert(text.end(), wanted.tokens.begin(), wanted.tokens.end());
      const Seen further = generate(*session, text, settings()[0]);
      EXPECT_EQ(further, generate(*plain->session(), text, settings()[0]));
    }
  }
}

TEST_P(SpeculativeModel, IsCancelledAtTheSameToken) {
  const auto plain = load(GetParam().model, "", "cpu"), engine = load(GetParam().model, GetParam().draft, "cpu");
  for (const size_t last : {1, 2, 3, 4, 9})
    for (const bool refuse : {true, false}) {
      std::vector<Generation> made;
      for (Engine* e : {plain.get(), engine.get()}) {
        const auto session = e->session();
        size_t seen = 0;
        made.push_back(session->generate(some_ids(), settings()[1], [&](std::string_view, std::span<const int32_t> t) {
          seen += t.size();
          if (seen >= last && !refuse) session->cancel();
          return seen < last || !refuse;
        }));
        EXPECT_EQ(made.back().stop_reason, StopReason::cancelled);
        EXPECT_EQ(session->length(), static_cast<int64_t>(some_ids().size() + made.back().tokens.size()) - 1);
      }
      EXPECT_EQ(made[0].tokens, made[1].tokens);
      EXPECT_EQ(made[0].text, made[1].text);
    }
}

TEST_P(SpeculativeModel, IsSavedAsWithout) {
  const auto plain = load(GetParam().model, "", "cpu"), engine = load(GetParam().model, GetParam().draft, "cpu");
  const auto bytes_after = [](Engine& e) {
    const auto path = std::filesystem::path(testing::TempDir()) / fmt::format("speculative-{}", ::getpid());
    const auto session = e.session();
    session->generate(some_ids(), settings()[1]);
    session->save(path.string());
    std::ifstream in(path, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    std::filesystem::remove(path);
    return bytes;
  };
  // What lies behind the last position of a page isn't part of the text: the sizes say that they hold as many tokens.
  EXPECT_EQ(bytes_after(*engine).size(), bytes_after(*plain).size());
}

INSTANTIATE_TEST_SUITE_P(All, SpeculativeModel, testing::ValuesIn(pairs()),
                         [](const auto& info) { return std::string(info.param.name); });

// A model whose state is one of all positions reads what comes after the lasting part of the last prompts, no more.
TEST(Reuse, AHybridModelReadsOnlyWhatIsNew) {
  for (const char* draft : {"", nemotron_q8.c_str()}) {
    const auto engine = load(nemotron, draft, "cpu", 4, 256);
    const auto session = engine->session();
    GenerateOptions options = settings()[1];
    options.max_tokens = 9;
    const auto ask = [&](const std::vector<int32_t>& prompt, int64_t stable) {
      options.stable = stable;
      Generation made;
      const Seen seen = generate(*session, prompt, options, &made);
      options.stable = 0;
      EXPECT_EQ(seen.tokens, generate(*load(nemotron, "", "cpu", 4, 256)->session(), prompt, options).tokens);
      return made;
    };
    const auto with = [](std::vector<int32_t> text, std::span<const int32_t> more) {
      text.insert(text.end(), more.begin(), more.end());
      return text;
    };
    // A question of 30 tokens and the answer's beginning of 3, which is rendered otherwise once it is answered.
    const std::vector<int32_t> question = some_ids(30), begins = {7, 8, 9}, answered = {7, 10, 11, 12},
                               second = {20, 21, 22, 23, 24};
    EXPECT_EQ(ask(with(question, begins), 30).timings.cached_tokens, 0);
    const std::vector<int32_t> next = with(with(question, answered), second);
    EXPECT_EQ(ask(with(next, begins), std::ssize(next)).timings.cached_tokens, 30);
    // Asked in another way, which the place before the first answer is still good for.
    const std::vector<int32_t> other = with(with(question, answered), some_ids(6));
    const Generation made = ask(with(other, begins), std::ssize(other));
    EXPECT_EQ(made.timings.cached_tokens, 30);
    // What was generated stays as it is: all of it is there but the last token, which was never read.
    const std::vector<int32_t> on = with(with(with(other, begins), made.tokens), second);
    EXPECT_EQ(ask(on, std::ssize(on) - 2).timings.cached_tokens, std::ssize(on) - std::ssize(second) - 1);
    EXPECT_EQ(ask(some_ids(5), 0).timings.cached_tokens, 0);
    // The place before the first guess is one as well.
    EXPECT_EQ(ask(question, 0).timings.cached_tokens, *draft ? 5 : 0);
  }
}

// The tiny models with a head whose layers are copies of their own.
std::unique_ptr<HeadFile> with_head(const std::string& architecture) {
  if (architecture == "deepseek2") {
    auto file = std::make_unique<HeadFile>(path_of(glm), architecture);
    file->copy_layer(2);
    return file;
  }
  auto file = std::make_unique<HeadFile>(path_of(nemotron), architecture);
  int64_t attention = -1, experts = -1;
  const ModelFile model = open_model(path_of(nemotron));
  for (int64_t i = 0; i < model.meta->integer(architecture + ".block_count"); ++i) {
    if (model.find(fmt::format("blk.{}.attn_q.weight", i))) attention = i;
    if (model.find(fmt::format("blk.{}.ffn_gate_inp.weight", i))) experts = i;
  }
  file->copy_layer(attention);
  file->copy_layer(experts, "attn_norm", "post_attention_norm");
  for (const char* part : {"ffn_", "exp_probs_b"}) file->copy_layer(experts, part, part);
  const auto& kv_heads = model.meta->integers(architecture + ".attention.head_count_kv");
  file->extend(architecture + ".attention.head_count_kv", kv_heads[static_cast<size_t>(attention)]);
  const auto& ff = model.meta->integers(architecture + ".feed_forward_length");
  file->extend(architecture + ".feed_forward_length", ff[static_cast<size_t>(experts)]);
  return file;
}

class OwnHead : public testing::TestWithParam<std::string> {};

TEST_P(OwnHead, GeneratesTheSame) {
  const auto file = with_head(GetParam());
  const std::string path = file->write();
  const std::string without = path_of(GetParam() == "deepseek2" ? glm : nemotron);
  for (const std::string device : {"cpu", "emu32"}) {
    const auto plain = load_path(without, "", device), engine = load_path(path, "mtp", device);
    const auto a = plain->session(), b = engine->session();
    std::vector<int32_t> text = some_ids();
    for (GenerateOptions options : settings()) {
      if (device == "emu32") options.max_tokens = 10;  // which takes its time
      if (options.max_tokens < 0) options.max_tokens = 60;
      options.stable = 12;
      const Seen wanted = generate(*a, text, options);
      Generation made;
      EXPECT_EQ(generate(*b, text, options, &made), wanted);
      EXPECT_GT(made.drafted, 0);
      EXPECT_LE(made.accepted, made.drafted);
      text.resize(14);
      text.insert(text.end(), wanted.tokens.begin() + 2, wanted.tokens.begin() + 7);
    }
  }
}

// What it guesses with is what it would guess with had it read the text at once.
TEST_P(OwnHead, GuessesTheSameHoweverItsTextCame) {
  const auto file = with_head(GetParam());
  const std::string path = file->write();
  const auto engine = load_path(path, "mtp", "cpu");
  LanguageEngine& language = language_engine(*engine);
  const std::vector<int32_t> text = some_ids(40), other = some_ids(9);
  std::vector<float> rows, logits;
  {
    const int sequence = language.runner().open();
    const Piece piece{sequence, std::span(text).first(39), false};
    const auto found = language.runner().evaluate({&piece, 1});
    logits.assign(found.begin(), found.end());
    rows.assign(language.runner().hidden().begin(), language.runner().hidden().end());
    language.runner().close(sequence);
  }
  const auto width = static_cast<size_t>(language.runner().model().width);
  ASSERT_EQ(rows.size(), 39 * width);
  // The states are those that the logits are made from.
  const auto output = open_model(path).find("output.weight")->load().to_floats();
  for (size_t token = 0; token < logits.size(); token += 50) {
    double sum = 0;
    for (size_t i = 0; i < width; ++i) sum += double{rows[38 * width + i]} * output[token * width + i];
    EXPECT_NEAR(sum, logits[token], 1e-2) << token;
  }
  const Sampler greedy{Sampling{}};
  const auto of = [&](size_t first, size_t count) {
    return std::span<const float>(rows).subspan(first * width, count * width);
  };
  std::vector<int32_t> wanted;
  {
    HeadGuesser guesser(*language.draft());
    guesser.take(0, of(0, 39));
    wanted = guesser.guess(text, 4, greedy);
    EXPECT_EQ(wanted.size(), 4U);
    EXPECT_EQ(guesser.guess(text, 4, greedy), std::vector<int32_t>{}) << "there is nothing new to go on from";
  }
  HeadGuesser guesser(*language.draft());
  guesser.take(0, of(0, 10));
  guesser.guess(std::span(text).first(10), 0, greedy);
  guesser.take(10, of(10, 5));
  EXPECT_EQ(guesser.guess(std::span(text).first(16), 3, greedy).size(), 3U);
  guesser.take(15, of(15, 20));
  guesser.cut(20);
  guesser.take(17, of(17, 22));  // of which some are known
  EXPECT_EQ(guesser.guess(text, 4, greedy), wanted);
  // A state that isn't there is passed over.
  guesser.cut(30);
  guesser.take(30, of(30, 9));
  EXPECT_EQ(guesser.guess(text, 4, greedy).size(), 4U);
}

INSTANTIATE_TEST_SUITE_P(All, OwnHead, testing::Values("deepseek2", "nemotron_h_moe"),
                         [](const auto& info) { return info.param; });

TEST(Speculative, TakesFewerSteps) {
  const auto engine = load(llama, llama, "emu32");
  Generation made;
  generate(*engine->session(), some_ids(), settings()[0], &made);
  EXPECT_EQ(made.accepted, made.drafted);  // its own guesses are right
  EXPECT_EQ(made.tokens.size(), 21U);
  EXPECT_EQ(made.accepted, 16);  // after the first one, 4 steps of 4 guessed and 1 more
}

std::string refusal_of(const std::function<void()>& f, Exit exit) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), exit) << error.what();
    return error.what();
  }
  return "accepted";
}

TEST(Speculative, OtherTokensAreRefused) {
  EXPECT_THAT(refusal_of([] { load(llama, "llm/models/qwen2/model-f32.gguf", "cpu"); }, Exit::input),
              HasSubstr("a draft with 520 tokens in its vocabulary for a model with 512"));
  EXPECT_THAT(refusal_of([] { load(llama, "llm/models/gemma3/model-f32.gguf", "cpu"); }, Exit::input),
              HasSubstr("a draft whose token 0 is '<pad>', but the model's is '!'"));
  EXPECT_THAT(refusal_of([] { load(llama, llama, "cpu", 0); }, Exit::usage), HasSubstr("0 draft tokens"));
  EXPECT_THAT(refusal_of([] { load(llama, llama, "cpu", 33); }, Exit::usage), HasSubstr("from 1 to 32"));
}

TEST(Speculative, AHeadThatIsNotThereIsRefused) {
  EXPECT_THAT(refusal_of([] { load_path(path_of(glm), "mtp", "cpu"); }, Exit::input),
              HasSubstr("deepseek2.nextn_predict_layers is 0, so there is no head for further tokens"));
  EXPECT_THAT(refusal_of([] { load_path(path_of(llama), "mtp", "cpu"); }, Exit::input),
              HasSubstr("no head for further tokens is known of 'llama'"));
  const auto two = with_head("deepseek2");
  two->set("deepseek2.block_count", 5), two->set("deepseek2.nextn_predict_layers", 2);
  EXPECT_THAT(refusal_of([&] { load_path(two->write(), "mtp", "cpu"); }, Exit::input),
              HasSubstr("is 2, so there is more than the one head that is known"));
  EXPECT_THAT(refusal_of([] { load_path(HeadFile(path_of(glm), "deepseek2").write(), "mtp", "cpu"); }, Exit::input),
              HasSubstr("blk.3.attn_norm.weight"));
}

// A draft without room for the text isn't asked any more.
TEST(Speculative, ATextLongerThanTheDraftsContextGoesOn) {
  const auto plain = load(llama, "", "cpu", 4, 1200), engine = load(llama, llama, "cpu", 4, 1200);
  Runner& draft = language_engine(*engine).draft()->runner();
  ASSERT_LT(draft.context(), 1200);
  const auto prompt = some_ids(static_cast<size_t>(draft.context()) - 6);
  GenerateOptions options = settings()[1];
  Generation made;
  EXPECT_EQ(generate(*engine->session(), prompt, options, &made), generate(*plain->session(), prompt, options));
  EXPECT_GT(made.drafted, 0);
  EXPECT_LT(made.drafted, 40);
  const auto longer = some_ids(static_cast<size_t>(draft.context()) + 20);
  EXPECT_EQ(generate(*engine->session(), longer, options, &made), generate(*plain->session(), longer, options));
  EXPECT_EQ(made.drafted, 0);
}

// All that both models will ever need is asked for before either is loaded.
TEST(Speculative, MemoryOfBothIsCounted) {
  EngineOptions options;
  options.device = "emu32", options.threads = 2, options.context = 600, options.draft = path_of(nemotron_q8);
  Target target = open_target("emu32");
  EmulatedDevice& device = emulated(*target.accelerator);
  {
    const auto engine = std::make_shared<LanguageEngine>(path_of(nemotron), options, target);
    const int64_t loaded = device.allocated_bytes();
    const auto session = engine->session();
    for (const size_t length : {7, 550}) generate(*session, some_ids(length), settings()[1]);
    EXPECT_EQ(device.allocated_bytes(), loaded);
    device.set_total_bytes(loaded - loaded / 8);
  }
  ASSERT_EQ(device.allocated_bytes(), 0);
  const std::string refusal =
      refusal_of([&] { std::make_shared<LanguageEngine>(path_of(nemotron), options, target); }, Exit::memory);
  EXPECT_THAT(refusal, HasSubstr("MB of it are for its draft, " + path_of(nemotron_q8)));
  EXPECT_EQ(device.allocated_bytes(), 0);
  options.draft.clear();
  std::make_shared<LanguageEngine>(path_of(nemotron), options, target);  // without it there is room
}

}  // namespace
}  // namespace consonant
