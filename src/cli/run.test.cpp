// SPDX-License-Identifier: Apache-2.0
#include "cli/run.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/fake_engine.hpp"
#include "cli/interrupt.hpp"

namespace consonant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_cli::FakeEngine;
using testing_cli::FakeState;
using Json = nlohmann::json;

// Runs commands with a fake engine, standard output and input in files.
class Cli : public testing::Test {
 protected:
  Cli() : folder_(std::filesystem::temp_directory_path() / ("consonant-cli-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Cli() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return (folder_ / name).string();
  }

  int run(const std::vector<std::string>& arguments, const std::string& input = "") {
    const std::string out = (folder_ / "stdout").string();
    const int out_fd = open(out.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    const int in_fd = open(file("stdin", input).c_str(), O_RDONLY);
    World world = make_world(out_fd, in_fd);
    testing::internal::CaptureStderr();
    const int code = consonant::run(arguments, world);
    err = testing::internal::GetCapturedStderr();
    close(in_fd);
    close(out_fd);
    std::ifstream stream(out, std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(stream), {});
    return code;
  }

  World make_world(int out_fd, int in_fd) {
    World world{Output(out_fd), in_fd};
    world.speech.holds_speech = [](const std::string&) { return false; };
    world.load = [this](const std::string& path, const EngineOptions& options) {
      state->loaded_path = path;
      state->loaded = options;
      return std::make_shared<FakeEngine>(state);
    };
    world.bench = [](Engine& engine, const BenchOptions& o) {
      BenchResult r{.threads = engine.info().threads,
                    .prompt = o.prompt,
                    .generated = o.generate,
                    .depth = o.depth,
                    .batch = o.batch};
      r.prefill_tokens_per_s = {300, 100, 200};
      r.decode_tokens_per_s = {10, 40, 20, 30};
      r.time_to_first_token_ms = {5};
      r.decode_bytes_per_token = 100;
      return r;
    };
    world.soak = [](Engine&, const SoakOptions& o) {
      SoakResult r{.generations = o.generations, .warm_up = 20, .tokens = 7, .seconds = {1, 2}};
      r.warm = {100, 50}, r.last = {100 + o.generations % 2, 50};
      return r;
    };
    world.bandwidth = [](int) { return 5000.0; };
    world.record = [this](Engine&, const RecordOptions& options, const std::string& path) {
      recorded = options;
      recorded_path = path;
    };
    world.verify_ops = [this](const OpsOptions& options) {
      swept = options.device + "/" + options.op + (options.reduced ? "/reduced" : "");
      return OpsReport{"a card", kernels};
    };
    world.compare = [this](const std::string&, const std::string&) { return comparison; };
    return world;
  }

  std::filesystem::path folder_;
  std::shared_ptr<FakeState> state = std::make_shared<FakeState>();
  std::string text, err;
  RecordOptions recorded;
  std::string recorded_path;
  Comparison comparison;
  std::string swept;
  std::vector<KernelReport> kernels = {{"add", "add", "cpu", "`a`: f32", 12, 1e-7, 2e-7, {}},
                                       {"rope", "rope_pairs", "cpu", "`x`: f32", 5, 0.5, 1e-6, {}}};
};

TEST_F(Cli, HelpOfEveryCommandHasAnExample) {
  EXPECT_EQ(run({"--help"}), 0);
  const std::string all = text;
  for (const char* command :
       {"generate", "chat", "transcribe", "tokenize", "inspect", "convert", "verify", "doctor", "bench", "pull"}) {
    EXPECT_THAT(all, HasSubstr(command));
    EXPECT_EQ(run({command, "--help"}), 0);
    EXPECT_THAT(text, HasSubstr(std::string("Example:\n  consonant ") + command));
    EXPECT_EQ(err, "");
    EXPECT_EQ(run({command, "--version"}), 0);
    EXPECT_THAT(text, testing::StartsWith("consonant "));
  }
  EXPECT_EQ(run({"verify", "record", "--help"}), 0);
  EXPECT_THAT(text, HasSubstr("Example:"));
  EXPECT_EQ(run({"--version"}), 0);
}

TEST_F(Cli, WrongUsageIsTwoAndOnStderr) {
  const std::vector<std::vector<std::string>> cases = {
      {},
      {"sing"},
      {"dance", "a.wav"},
      {"generate"},
      {"generate", "-m", "m"},
      {"generate", "-p", "x"},
      {"generate", "-m", "m", "-p", "x", "-f", "y"},
      {"generate", "-m", "m", "-p", "x", "--tokens", "y"},
      {"generate", "-m", "m", "-p", "x", "--frobnicate"},
      {"generate", "-m", "m", "-p", "x", "extra"},
      {"generate", "-m", "m", "-p", "x", "-n", "-1"},
      {"generate", "-m", "m", "-p", "x", "--threads", "1025"},
      {"generate", "-m", "m", "-p", "x", "-n", "many"},
      {"generate", "-m", "m", "-p", "x", "--temp", "-1"},
      {"generate", "-m", "m", "-p", "x", "--temp", "nan"},
      {"generate", "-m", "m", "-p", "x", "--top-p", "1.5"},
      {"generate", "-m", "m", "-p", "x", "--top-k", "-3"},
      {"generate", "-m", "m", "-p", "x", "--min-p", "2"},
      {"generate", "-m", "m", "-p", "x", "--typical", "0"},
      {"generate", "-m", "m", "-p", "x", "--repeat-penalty", "0"},
      {"generate", "-m", "m", "-p", "x", "--logit-bias", "5"},
      {"generate", "-m", "m", "-p", "x", "--logit-bias", "5=x"},
      {"generate", "-m", "m", "-p", "x", "--logit-bias", "-5=1"},
      {"generate", "-m", "m", "-p", "x", "--stop", ""},
      {"generate", "-m", "m", "-p", "x", "--deadline", "0"},
      {"generate", "-m", "m", "-p", "x", "--threads", "0"},
      {"generate", "-m", "m", "-p", "x", "--precision", "f8"},
      {"generate", "-m", "m", "-p", "x", "--kv", "q2"},
      {"generate", "-m", "m", "-p", "x", "--seed", "-1"},
      {"generate", "-m", "m", "-p", "x", "--device", "cuda:x"},
      {"generate", "-m", "m", "-p", "x", "--device", "toaster"},
      {"generate", "-m", "m", "-p", "x", "--allow-split"},
      {"generate", "-m", "m", "-p", "x", "--json", "--emit-tokens"},
      {"generate", "-m", "m", "-p", "x", "-v", "-q"},
      {"generate", "-m", "m", "-p", "x", "--draft-tokens", "4"},
      {"generate", "-m", "m", "-p", "x", "--draft", "y", "--draft-tokens", "33"},
      {"generate", "-m", "m", "-p", "x", "--save-state", "y"},
      {"chat"},
      {"chat", "--render", "x.json", "--system", "s"},
      {"tokenize", "-m", "m"},
      {"tokenize", "-m", "m", "a", "-f", "b"},
      {"tokenize", "-m", "m", "--decode", "--add-special", "1"},
      {"verify"},
      {"verify", "-m", "m", "ops"},
      {"verify", "replay", "x"},
      {"verify", "bisect", "x"},
      {"verify", "record", "-m", "m", "-o", "x"},
      {"verify", "record", "-m", "m", "--text", "x"},
      {"verify", "compare", "x"},
      {"bench", "-m", "m", "--threads", "1,x"},
      {"bench", "-m", "m", "--threads", "0"},
      {"bench", "-m", "m", "--repeat", "0"},
      {"bench", "-m", "m", "--deadline", "3"},
      {"inspect"},
      {"convert", "a"},
  };
  for (const auto& arguments : cases) {
    std::string line;
    for (const std::string& a : arguments) line += a + " ";
    EXPECT_EQ(run(arguments), 2) << line;
    EXPECT_EQ(text, "") << line;
    EXPECT_THAT(err, testing::StartsWith("error: ")) << line;
  }
  run({"dance", "a.wav"});
  EXPECT_THAT(err, HasSubstr("'dance'"));
  run({"generate", "-m", "m", "-p", "x", "--device", "toaster"});
  EXPECT_THAT(err, HasSubstr("the device 'toaster'; there are auto, cpu, reference, cuda, hip, emu32 and emu64"));
}

TEST_F(Cli, GenerateUsesTheChatTemplateUnlessRaw) {
  EXPECT_EQ(run({"generate", "-m", "m", "-p", "hi"}), 0);
  EXPECT_EQ(text, "fine\n");
  EXPECT_EQ(run({"generate", "-m", "m", "-p", "hi", "--raw"}), 0);
  state->has_template = false;
  EXPECT_EQ(run({"generate", "-m", "m", "-f", file("p", "two\nlines\n")}), 0);
  EXPECT_EQ(run({"generate", "-m", "m", "--tokens", file("t", "104 105\n")}), 0);
  EXPECT_THAT(state->prompts, ElementsAre("user:hi|assistant:", "^hi", "^two\nlines\n", "hi"));
}

TEST_F(Cli, GenerateEmitsTokens) {
  EXPECT_EQ(run({"generate", "-m", "m", "-p", "hi", "--emit-tokens"}), 0);
  EXPECT_EQ(text, "102\n105\n110\n101\n256\n");
}

TEST_F(Cli, GenerateJsonHasTheNamedKeys) {
  EXPECT_EQ(run({"generate", "-m", "m", "-p", "hi", "--json", "--seed", "18446744073709551615"}), 0);
  const Json json = Json::parse(text);
  EXPECT_EQ(json.at("text"), "fine");
  EXPECT_EQ(json.at("tokens").size(), 5u);
  EXPECT_EQ(json.at("logprobs").size(), 5u);
  EXPECT_EQ(json.at("prompt_tokens"), 18);
  EXPECT_EQ(json.at("stop_reason"), "end_token");
  EXPECT_TRUE(json.at("timings").is_object());
  EXPECT_EQ(json.at("seed"), 18446744073709551615u);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST_F(Cli, GreedySaysSo) {
  EXPECT_EQ(run({"generate", "-m", "m", "-p", "hi", "--temp", "0"}), 0);
  EXPECT_THAT(err, HasSubstr("greedy"));
  EXPECT_EQ(run({"generate", "-m", "m", "-p", "hi", "--temp", "0", "-q"}), 0);
  EXPECT_EQ(err, "");
  EXPECT_EQ(run({"generate", "-m", "m", "-p", "hi"}), 0);
  EXPECT_EQ(err, "");
}

TEST_F(Cli, OptionsReachTheEngine) {
  EXPECT_EQ(run({"generate",
                 "-m",
                 "m",
                 "-p",
                 "hi",
                 "--device",
                 "reference",
                 "--threads",
                 "3",
                 "--precision",
                 "f32",
                 "--kv",
                 "q8_0",
                 "--context",
                 "100",
                 "--override-kv",
                 "a=int:1",
                 "--override-kv",
                 "b=int:2",
                 "--temp",
                 "0.5",
                 "--top-k",
                 "7",
                 "--top-p",
                 "0.9",
                 "--min-p",
                 "0.1",
                 "--typical",
                 "0.8",
                 "--repeat-penalty",
                 "1.1",
                 "--frequency-penalty",
                 "0.2",
                 "--presence-penalty",
                 "0.3",
                 "--seed",
                 "9",
                 "-n",
                 "3",
                 "--stop",
                 "a",
                 "--stop",
                 "b",
                 "--ignore-eos",
                 "--logit-bias",
                 "5=-inf",
                 "--logit-bias",
                 "6=1.5"}),
            0);
  const EngineOptions& e = state->loaded;
  EXPECT_EQ(e.device, "reference");
  EXPECT_EQ(e.threads, 3);
  EXPECT_EQ(e.precision, "f32");
  EXPECT_EQ(e.kv, "q8_0");
  EXPECT_EQ(e.context, 100);
  EXPECT_THAT(e.override_kv, ElementsAre("a=int:1", "b=int:2"));
  const GenerateOptions& g = state->asked.at(0);
  const SamplingOptions& s = g.sampling;
  EXPECT_EQ(s.temperature, 0.5f);
  EXPECT_EQ(s.top_k, 7);
  EXPECT_EQ(s.top_p, 0.9f);
  EXPECT_EQ(s.min_p, 0.1f);
  EXPECT_EQ(s.typical, 0.8f);
  EXPECT_EQ(s.repeat_penalty, 1.1f);
  EXPECT_EQ(s.frequency_penalty, 0.2f);
  EXPECT_EQ(s.presence_penalty, 0.3f);
  EXPECT_EQ(s.seed, 9u);
  EXPECT_THAT(s.logit_bias, ElementsAre(std::pair<int32_t, float>(5, -INFINITY), std::pair<int32_t, float>(6, 1.5f)));
  EXPECT_EQ(g.max_tokens, 3);
  EXPECT_TRUE(g.ignore_eos);
  EXPECT_THAT(g.stop, ElementsAre("a", "b"));
}

TEST_F(Cli, AReasonDecidesTheExitCode) {
  EXPECT_EQ(run({"generate", "-m", "m", "-p", "hi", "-n", "2"}), 0);
  EXPECT_EQ(text, "fi\n");
  state->context = 20;
  EXPECT_EQ(run({"generate", "-m", "m", "-p", "hi"}), 5);
  EXPECT_EQ(text, "fi\n");
  EXPECT_THAT(err, HasSubstr("context is full"));
  state->context = 200;
  EXPECT_EQ(run({"generate", "-m", "m", "-p", "hi", "--deadline", "1e-9"}), 1);
  EXPECT_THAT(err, HasSubstr("deadline"));
}

TEST_F(Cli, BadInputIsThree) {
  state->context = 30;
  const std::string long_prompt(100, 'x');
  const std::vector<std::vector<std::string>> cases = {
      {"generate", "-m", "m", "-p", ""},
      {"generate", "-m", "m", "-p", "\xff"},
      {"generate", "-m", "m", "-p", long_prompt},
      {"generate", "-m", "m", "-f", "/nonexistent"},
      {"generate", "-m", "m", "-f", folder_.string()},
      {"generate", "-m", "m", "-f", file("empty", "")},
      {"generate", "-m", "m", "-f", file("latin1", "caf\xe9")},
      {"generate", "-m", "m", "--tokens", file("words", "12 b 3")},
      {"generate", "-m", "m", "--tokens", file("huge", "99999999999")},
      {"generate", "-m", "m", "--tokens", file("beyond", "257")},
      {"generate", "-m", "m", "--tokens", file("none", " \n")},
      {"chat", "-m", "m", "-p", " "},
      {"chat", "-m", "m", "-p", long_prompt},
      {"tokenize", "-m", "m", "\xc3"},
      {"tokenize", "-m", "m", "--decode", "1 -2"},
      {"tokenize", "-m", "m", "--decode", "1 300"},
      {"verify", "record", "-m", "m", "--tokens", file("none", " \n"), "-o", "x"},
      {"verify", "record", "-m", "m", "--tokens", file("beyond", "257"), "-o", "x"},
  };
  for (const auto& arguments : cases) {
    std::string line;
    for (const std::string& a : arguments) line += a + " ";
    EXPECT_EQ(run(arguments), 3) << line;
    EXPECT_EQ(text, "") << line;
    EXPECT_THAT(err, testing::StartsWith("error: ")) << line;
  }
}

TEST_F(Cli, TokenizeGoesBothWays) {
  EXPECT_EQ(run({"tokenize", "-m", "m", "hi"}), 0);
  EXPECT_EQ(text, "[104,105]\n");
  EXPECT_EQ(run({"tokenize", "-m", "m", "--add-special", "--no-special", "--", "-hi"}), 0);
  EXPECT_EQ(text, "[94,45,104,105,33]\n");
  EXPECT_EQ(run({"tokenize", "-m", "m", ""}), 0);
  EXPECT_EQ(text, "[]\n");
  EXPECT_EQ(run({"tokenize", "-m", "m", "-f", file("t", "a\n")}), 0);
  EXPECT_EQ(text, "[97,10]\n");
  EXPECT_EQ(run({"tokenize", "-m", "m", "--decode", "[104, 105,10]"}), 0);
  EXPECT_EQ(text, "hi\n");
  EXPECT_EQ(run({"tokenize", "-m", "m", "--decode", "--json", "104 105 10"}), 0);
  EXPECT_EQ(text, "\"hi\\n\"\n");
}

TEST_F(Cli, ChatOnceHasASystemMessage) {
  EXPECT_EQ(run({"chat", "-m", "m", "--system", "be brief", "-p", "hi"}), 0);
  EXPECT_EQ(text, "fine\n");
  EXPECT_THAT(state->prompts, ElementsAre("system:be brief|user:hi|assistant:"));
  EXPECT_EQ(state->asked[0].stable, std::ssize("system:be brief|user:hi|") - 1);  // what any answer leaves as it is
}

TEST_F(Cli, ChatRemembersUntilReset) {
  EXPECT_EQ(run({"chat", "-m", "m"}, "one\n\n/help\n/nothing\ntwo\r\n/reset\nthree\n/exit\nfour\n"), 0);
  EXPECT_EQ(text, "fine\nfine\nfine\n");
  EXPECT_THAT(
      state->prompts,
      ElementsAre("user:one|assistant:", "user:one|assistant:fine|user:two|assistant:", "user:three|assistant:"));
  EXPECT_THAT(err, HasSubstr("/reset"));
  EXPECT_THAT(err, HasSubstr("no command /nothing"));
}

TEST_F(Cli, ChatEndsWithItsInputAndTakesALastLineWithoutNewline) {
  EXPECT_EQ(run({"chat", "-m", "m"}, "one"), 0);
  EXPECT_EQ(state->prompts.size(), 1u);
  EXPECT_EQ(run({"chat", "-m", "m"}, ""), 0);
}

TEST_F(Cli, AQuestionThatFailsLeavesTheConversation) {
  state->context = 80;
  EXPECT_EQ(run({"chat", "-m", "m"}, "one\n" + std::string(100, 'x') + "\n\xff\ntwo\n"), 1);
  EXPECT_THAT(state->prompts.back(), "user:one|assistant:fine|user:two|assistant:");
  EXPECT_THAT(err, HasSubstr("leaves no room"));
  EXPECT_THAT(err, HasSubstr("not UTF-8"));
}

TEST_F(Cli, ChatWithoutATemplateIsRefused) {
  state->has_template = false;
  EXPECT_EQ(run({"chat", "-m", "m", "-p", "hi"}), 3);
  EXPECT_THAT(err, HasSubstr("--template"));
  EXPECT_EQ(run({"chat", "-m", "m", "-p", "hi", "--template", file("t", "T:"), "--now", "NOW:"}), 0);
  EXPECT_THAT(state->prompts, ElementsAre("T:NOW:user:hi|assistant:"));
}

TEST_F(Cli, ChatJsonIsALineAnAnswer) {
  EXPECT_EQ(run({"chat", "-m", "m", "--json"}, "one\ntwo\n"), 0);
  const size_t newline = text.find('\n');
  EXPECT_EQ(Json::parse(text.substr(0, newline)).at("text"), "fine");
  EXPECT_EQ(Json::parse(text.substr(newline + 1)).at("stop_reason"), "end_token");
}

TEST_F(Cli, RenderPrintsThePromptExactly) {
  const std::string variables = file("v.json", R"({"messages": [{"role": "user", "content": "hi"}]})");
  EXPECT_EQ(run({"chat", "-m", "m", "--render", variables}), 0);
  EXPECT_EQ(text, "user:hi|");
  const std::string source = file("t.jinja", "{{ messages[0].content }}, {{ strftime_now('%Y') }}");
  EXPECT_EQ(run({"chat", "--template", source, "--render", variables, "--now", "2026-01-02T03:04:05"}), 0);
  EXPECT_EQ(text, "hi, 2026");
  EXPECT_EQ(run({"chat", "--render", variables}), 2);
  EXPECT_EQ(run({"chat", "--template", source, "--render", file("no.json", "{")}), 3);
  EXPECT_EQ(run({"chat", "--template", source, "--render", file("list.json", "[]")}), 3);
  const std::string deep = "{\"messages\": " + std::string(200000, '[') + std::string(200000, ']') + "}";
  EXPECT_EQ(run({"chat", "--template", source, "--render", file("deep.json", deep)}), 3);
  EXPECT_EQ(run({"chat", "--template", file("bad.jinja", "{% if %}"), "--render", variables}), 3);
}

TEST_F(Cli, MessagesSayWhatIsWrongAndWhere) {
  const std::string v = file("v.json", R"({"messages": []})"), t = file("t.jinja", "x"), no = file("no.json", "{");
  const std::string list = file("list.json", "[]"), bad = file("bad.jinja", "{% if %}");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"chat", "--template", t, "--render", no}, no + ": is no JSON from byte 2 on"},
      {{"chat", "--template", t, "--render", list}, list + ": has to be a JSON object, not array"},
      {{"chat", "--template", bad, "--render", v}, bad + ": chat template, line 1: "},
      {{"generate", "-m", "m", "-p", "x", "-n", "abc"}, "'abc' has to be a whole number from 0 "},
      {{"verify", "repeat", "x"}, "no command 'verify repeat' in this version"},
      {{"inspect"}, "consonant inspect FILE"},
      {{"inspect", "a.gguf", "-m", "b.gguf"}, "one file"}};
  for (const auto& [arguments, message] : cases) {
    EXPECT_NE(run(arguments), 0);
    EXPECT_THAT(err, HasSubstr(message));
  }
}

TEST_F(Cli, BenchReportsMediansWithTheirRange) {
  EXPECT_EQ(run({"bench", "-m", "m", "--threads", "1,2", "--prompt", "8", "--gen", "4", "--depth", "2", "--json"}), 0);
  const Json results = Json::parse(text).at("results");
  ASSERT_EQ(results.size(), 2u);
  const Json& r = results.at(1);
  EXPECT_EQ(results.at(0).at("threads"), 1);
  EXPECT_EQ(r.at("threads"), 2);
  EXPECT_EQ(r.at("model"), "m");
  EXPECT_EQ(r.at("device"), "cpu");
  EXPECT_EQ(r.at("prompt"), 8);
  EXPECT_EQ(r.at("gen"), 4);
  EXPECT_EQ(r.at("depth"), 2);
  EXPECT_EQ(r.at("batch"), 1);
  EXPECT_EQ(r.at("prefill_tokens_per_s"), 200);
  EXPECT_EQ(r.at("prefill_tokens_per_s_min"), 100);
  EXPECT_EQ(r.at("prefill_tokens_per_s_max"), 300);
  EXPECT_EQ(r.at("decode_tokens_per_s"), 25);
  EXPECT_EQ(r.at("time_to_first_token_ms"), 5);
  EXPECT_EQ(r.at("load_ms"), 250);
  EXPECT_GT(r.at("peak_bytes"), 1000000);
  EXPECT_DOUBLE_EQ(r.at("decode_share_of_bandwidth"), 100.0 * 25 / 5000);
  EXPECT_EQ(r.at("launches_per_token"), 0);
  EXPECT_EQ(r.at("waits_per_token"), 0);
  EXPECT_EQ(run({"bench", "-m", "m"}), 0);
  EXPECT_THAT(text, HasSubstr("200.0 (100.0-300.0)"));
}

TEST_F(Cli, ASoakWhoseMemoryGrewIsAFailure) {
  EXPECT_EQ(run({"bench", "-m", "m", "--soak", "30", "--json"}), 0);
  EXPECT_FALSE(Json::parse(text).at("grew"));
  EXPECT_EQ(Json::parse(text).at("memory").at("last").at("device_bytes"), 100);
  EXPECT_EQ(run({"bench", "-m", "m", "--soak", "31", "--json"}), 1);
  EXPECT_TRUE(Json::parse(text).at("grew"));
  EXPECT_THAT(err, HasSubstr("the device's by 1 bytes"));
  EXPECT_EQ(run({"bench", "-m", "m", "--soak", "0"}), 2);
}

TEST_F(Cli, VerifyRecordTakesTokensOrText) {
  EXPECT_EQ(run({"verify", "record", "-m", "m", "--text", "hi", "-o", "rec", "--tap", "blk.0/*", "--tap", "blk.1/*",
                 "--steps", "4", "--precision", "f32"}),
            0);
  EXPECT_THAT(recorded.tokens, ElementsAre('^', 'h', 'i'));
  EXPECT_THAT(recorded.taps, ElementsAre("blk.0/*", "blk.1/*"));
  EXPECT_EQ(recorded.steps, 4);
  EXPECT_EQ(recorded_path, "rec");
  EXPECT_EQ(recorded.options_text, "--device auto --precision f32 --steps 4");
  EXPECT_EQ(run({"verify", "record", "-m", "m", "--tokens", file("t", "1 2"), "-o", "rec"}), 0);
  EXPECT_THAT(recorded.tokens, ElementsAre(1, 2));
}

TEST_F(Cli, VerifyCompareExitsSevenOnDisagreement) {
  comparison.worst_cosine = 0.5, comparison.decisions = 3;
  comparison.nodes = {{"logits", "llama.cpp:7", 0.5, 1, 2, 1, false}};
  EXPECT_EQ(run({"verify", "compare", "a", "b"}), 0);
  EXPECT_THAT(text, HasSubstr("agree"));
  EXPECT_THAT(text, testing::Not(HasSubstr("not compared")));
  comparison.not_compared = {"blk.0/add"};
  EXPECT_EQ(run({"verify", "compare", "a", "b"}), 0);
  EXPECT_THAT(text, HasSubstr("only one recording has them: 1 node, the first blk.0/add"));
  comparison.agree = false;
  comparison.disagreements = 1;
  comparison.first_divergent_node = "logits", comparison.source = "llama.cpp:7";
  EXPECT_EQ(run({"verify", "compare", "a", "b"}), 7);
  EXPECT_THAT(text, HasSubstr("first node past tolerance: logits (llama.cpp:7)"));
  EXPECT_EQ(run({"verify", "compare", "a", "b", "--json"}), 7);
  const Json json = Json::parse(text);
  EXPECT_EQ(json.at("worst_cosine"), 0.5);
  EXPECT_EQ(json.at("max_abs"), 0);
  EXPECT_EQ(Json({json.at("decisions"), json.at("disagreements")}), Json({3, 1}));
  EXPECT_EQ(Json({json.at("first_divergent_node"), json.at("source")}), Json({"logits", "llama.cpp:7"}));
  EXPECT_EQ(json.at("positive_control"), true);
  EXPECT_EQ(json.at("not_compared"), Json({"blk.0/add"}));
  comparison.positive_control = false;
  EXPECT_EQ(run({"verify", "compare", "a", "b"}), 7);
  EXPECT_THAT(text, HasSubstr("lacks its positive control"));
}

TEST_F(Cli, VerifyOpsExitsSevenIfAKernelIsWrong) {
  EXPECT_EQ(run({"verify", "ops"}), 0);
  EXPECT_EQ(swept, "cpu/");
  EXPECT_THAT(text, testing::StartsWith("a card\n"));
  EXPECT_THAT(text, HasSubstr("1.00e-07     2.00e-07\n"));
  EXPECT_THAT(text, HasSubstr("rope_pairs "));
  EXPECT_EQ(run({"verify", "ops", "--device", "cuda:1", "--op", "add", "--reduced"}), 0);
  EXPECT_EQ(swept, "cuda:1/add/reduced");
  kernels[1].faults = {"17 tokens: differs"};
  EXPECT_EQ(run({"verify", "ops"}), 7);
  EXPECT_THAT(text, HasSubstr("WRONG\n  17 tokens: differs\n"));
  EXPECT_EQ(run({"verify", "ops", "--json"}), 7);
  EXPECT_EQ(Json::parse(text).at("machine"), "a card");
  const Json json = Json::parse(text).at("kernels");
  EXPECT_EQ(json.at(0), (Json{{"op", "add"},
                              {"kernel", "add"},
                              {"device", "cpu"},
                              {"takes", "`a`: f32"},
                              {"cases", 12},
                              {"worst_error", 1e-7},
                              {"tolerance", 2e-7},
                              {"faults", Json::array()}}));
  EXPECT_EQ(json.at(1).at("faults"), Json({"17 tokens: differs"}));
}

TEST_F(Cli, AFullDiskIsAFailure) {
  const int full = open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  World world = make_world(full, STDIN_FILENO);
  testing::internal::CaptureStderr();
  EXPECT_EQ(consonant::run({"generate", "-m", "m", "-p", "hi"}, world), 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("No space left"));
  EXPECT_EQ(consonant::run({"--version"}, world), 1);
  close(full);
}

TEST_F(Cli, AReaderThatLeavesEndsItQuietly) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  state->endless = true;
  World world = make_world(ends[1], STDIN_FILENO);
  testing::internal::CaptureStderr();
  EXPECT_EQ(consonant::run({"generate", "-m", "m", "-p", "hi"}, world), 1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  std::signal(SIGPIPE, before);
  close(ends[1]);
}

TEST_F(Cli, CtrlCStopsAnAnswer) {
  Interrupts::install();
  Interrupts::forget();
  state->endless = true;
  std::thread finger([this] {
    while (state->generated < 4) std::this_thread::yield();
    kill(getpid(), SIGINT);
  });
  EXPECT_EQ(run({"generate", "-m", "m", "-p", "hi"}), 130);
  finger.join();
  EXPECT_THAT(text, testing::StartsWith("fine"));
  EXPECT_THAT(err, HasSubstr("cancelled"));
  Interrupts::forget();
  std::signal(SIGINT, SIG_DFL);
}

TEST_F(Cli, CtrlCBeforeTheSessionRunsStopsTheAnswerToo) {
  Interrupts::install();
  Interrupts::forget();
  state->endless = true;
  {
    const Interrupts::Deferred deferred;
    raise(SIGINT);
    EXPECT_EQ(run({"generate", "-m", "m", "-p", "hi"}), 130);
  }
  EXPECT_THAT(err, HasSubstr("cancelled"));
  Interrupts::forget();
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace
}  // namespace consonant
