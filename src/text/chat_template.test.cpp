// SPDX-License-Identifier: Apache-2.0
// Published templates over conversations, against what transformers makes of them.
#include "text/chat_template.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/error.hpp"

namespace consonant {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw_error(Exit::failed, "can't read {}", path);
  return {std::istreambuf_iterator<char>(file), {}};
}

const std::string data = CONSONANT_TEST_DATA;

std::string refusal(const ChatTemplate& chat, const Json& variables, const TemplateTokens& tokens = {}) {
  try {
    ADD_FAILURE() << "rendered: " << chat.render(variables, tokens);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::input);
    return error.what();
  }
  return {};
}

TEST(ChatTemplate, PublishedTemplates) {
  const Json golden = Json::parse(read(data + "/templates/cases.json"));
  const auto tokens = golden.at("special_tokens").get<TemplateTokens>();
  const LocalTime now = LocalTime::parse(golden.at("now").get<std::string>());
  int texts = 0, refusals = 0;
  for (const Json& c : golden.at("cases")) {
    const std::string name = c.at("template"), what = name + ", " + c.at("case").get<std::string>();
    SCOPED_TRACE(what);
    const ChatTemplate chat(read(data + "/templates/" + name));
    if (c.contains("text")) {
      EXPECT_EQ(chat.render(c.at("variables"), tokens, now), c.at("text").get<std::string>());
      ++texts;
      continue;
    }
    const std::string message = refusal(chat, c.at("variables"), tokens), raised = "raise_exception: ";
    const std::string wanted = c.at("error");
    if (wanted.compare(0, raised.size(), raised) == 0) {
      EXPECT_THAT(message, HasSubstr(wanted.substr(raised.size())));
    }
    EXPECT_THAT(message, HasSubstr("line "));
    ++refusals;
  }
  EXPECT_EQ(texts, 289);
  EXPECT_EQ(refusals, 34);
}

void check_chats(const std::string& source, const Json& chats, const TemplateTokens& tokens) {
  const ChatTemplate chat(source);
  ASSERT_FALSE(chats.empty());
  for (const Json& c : chats)
    EXPECT_EQ(
        chat.render({{"messages", c.at("messages")}, {"add_generation_prompt", c.at("add_generation_prompt")}}, tokens),
        c.at("text").get<std::string>());
}

TEST(ChatTemplate, SmolLM2) {
  const Json golden = Json::parse(read(data + "/llm/tokenizer_smollm2.json"));
  check_chats(golden.at("chat_template"), golden.at("chats"), {});
}

TEST(ChatTemplate, ModelFolders) {
  int folders = 0;
  for (const auto& folder : std::filesystem::directory_iterator(data + "/llm/models")) {
    if (!std::filesystem::exists(folder.path() / "tokenizer_vectors.json")) continue;
    SCOPED_TRACE(folder.path().filename().string());
    const Json config = Json::parse(read((folder.path() / "tokenizer_config.json").string()));
    const Json golden = Json::parse(read((folder.path() / "tokenizer_vectors.json").string()));
    TemplateTokens tokens;
    for (const auto& [key, value] : config.items())
      if (key.size() > 6 && key.substr(key.size() - 6) == "_token" && value.is_string()) tokens[key] = value;
    check_chats(config.at("chat_template"), golden.at("chats"), tokens);
    ++folders;
  }
  EXPECT_GE(folders, 6);
}

TEST(ChatTemplate, VariablesWinOverTokens) {
  const ChatTemplate chat("{{ bos_token }}{{ eos_token is defined }}");
  EXPECT_EQ(chat.render(Json::object(), {{"bos_token", "<s>"}}), "<s>False");
  EXPECT_EQ(chat.render({{"bos_token", "mine"}}, {{"bos_token", "<s>"}, {"eos_token", "</s>"}}), "mineTrue");
}

TEST(ChatTemplate, RaisedMessageIsShown) {
  const ChatTemplate chat(
      "{% if messages|length > 1 %}\n{{ raise_exception('Only one message, not ' ~ messages|length) }}{% endif %}");
  EXPECT_EQ(refusal(chat, {{"messages", {1, 2}}}), "the chat template refuses this (line 2): Only one message, not 2");
}

TEST(ChatTemplate, KeepsTheOrderOfKeys) {
  const ChatTemplate chat("{{ tools|tojson }}");
  EXPECT_EQ(chat.render({{"tools", Json::parse(R"([{"z": 1, "a": {"y": 2.0, "b": "ü<>&'\""}}])")}}, {}),
            R"([{"z": 1, "a": {"y": 2.0, "b": "ü<>&'\""}}])");
}

TEST(ChatTemplate, Threads) {
  const ChatTemplate chat("{% for m in messages %}{{ m.role ~ ': ' ~ 'text' ~ m.content }}\n{% endfor %}");
  const Json variables = {
      {"messages", {{{"role", "user"}, {"content", "hi"}}, {{"role", "assistant"}, {"content", "ho"}}}}};
  const std::string wanted = chat.render(variables, {});
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string& text : texts)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) text = chat.render(variables, {});
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) EXPECT_EQ(text, wanted);
}

TEST(LocalTime, ParsesAndFormats) {
  const LocalTime t = LocalTime::parse("2024-02-29T23:05:09");
  EXPECT_EQ(t.format("%Y-%m-%d %H:%M:%S %A %a %B %b %d %-d %j %p %I %y %w %% %f%z%Z"),
            "2024-02-29 23:05:09 Thursday Thu February Feb 29 29 060 PM 11 24 4 % 000000");
  EXPECT_EQ(LocalTime::parse("2026-01-02").format("%d %b %Y %H"), "02 Jan 2026 00");
  EXPECT_EQ(t.format("no code, and ü"), "no code, and ü");
  EXPECT_GE(LocalTime::now().year, 2024);
}

TEST(LocalTime, RefusesWhatIsNoTime) {
  for (const char* bad :
       {"", "2026", "2026-13-01", "2023-02-29", "2026-01-01T", "2026-01-01T24:00:00", "2026-01-01T00:00",
        "2026-01-01T00:00:00Z", "2026-1-1", "-026-01-01", "2026-01-00", "2026/01/01", "99999-01-01"}) {
    try {
      LocalTime::parse(bad);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.exit(), Exit::usage) << bad;
      EXPECT_THAT(error.what(), HasSubstr("YYYY-MM-DD"));
    }
  }
}

}  // namespace
}  // namespace consonant
