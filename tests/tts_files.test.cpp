// SPDX-License-Identifier: Apache-2.0
// Files of Qwen3-TTS talkers that are wrong: refused before anything runs, with the key, the tensor or the file named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/error.hpp"
#include "formats/json.hpp"
#include "tests/tts_golden.hpp"

namespace consonant {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// What loading says of it; "" if it is taken.
template <class F>
std::string complaint(const F& load) {
  try {
    load();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::input) << error.what();
    return error.what();
  }
  return "";
}

std::string complaint_of(ModelFile file, const std::function<void(Meta&)>& change, const std::string& without = "") {
  auto meta = std::make_shared<Meta>();
  meta->source = "file";
  for (const auto& [key, value] : file.meta->entries())
    if (key != without) meta->add(key, value);
  change(*meta);
  const auto kept = file.meta;  // its strings live there
  file.meta = meta;
  return complaint([&] {
    const Weights weights(file);
    Qwen3Tts(file, weights);
    Tokenizer::load(*file.meta);
  });
}

TEST(TtsFiles, AKeyThatIsMissingIsNamed) {
  const std::set<std::string> optional = {"qwen3tts.talker.position_id_per_seconds",
                                          "qwen3tts.talker.use_sliding_window",
                                          "qwen3tts.talker.rope_interleaved",
                                          "qwen3tts.talker.mrope_section",
                                          "qwen3tts.talker.rope_theta",
                                          "qwen3tts.talker.rms_norm_eps",
                                          "qwen3tts.code_pred.max_length",
                                          "qwen3tts.tts_model_type",
                                          "qwen3tts.assistant_token_id",
                                          "qwen3tts.spk_names",
                                          "qwen3tts.spk_dialect_token_ids",
                                          "qwen3tts.codec_language_names"};
  const ModelFile file = open_model(tts_gguf(custom_model));
  int required = 0;
  for (const auto& [key, value] : file.meta->entries()) {
    if (!key.starts_with("qwen3tts.")) continue;
    const std::string said = complaint_of(
        file, [](Meta&) {}, key);
    if (optional.contains(key)) {
      EXPECT_EQ(said, "") << key;
      continue;
    }
    EXPECT_THAT(said, HasSubstr(key));
    ++required;
  }
  EXPECT_GT(required, 25);
}

TEST(TtsFiles, ANumberThatCannotBeIsNamed) {
  const ModelFile file = open_model(tts_gguf(custom_model));
  int seen = 0;
  for (const auto& [key, value] : file.meta->entries()) {
    const bool unused = key.ends_with("position_id_per_seconds") || key.ends_with("max_length");
    if (!key.starts_with("qwen3tts.") || value.is_array || value.type != MetaType::u32 || unused) continue;
    ++seen;
    for (const int64_t number : {int64_t{-1}, int64_t{1} << 40}) {
      const std::string said = complaint_of(file, [&](Meta& meta) {
        meta.replace(key, {MetaType::i64, false, number});
      });
      EXPECT_THAT(said, AllOf(HasSubstr(key), HasSubstr(std::to_string(number))));
    }
  }
  EXPECT_GT(seen, 25);
  for (const char* key : {"qwen3tts.talker.rope_theta", "qwen3tts.talker.rms_norm_eps"})
    EXPECT_THAT(complaint_of(file,
                             [&](Meta& meta) {
                               meta.replace(key, {MetaType::f32, false, 0.0});
                             }),
                HasSubstr(key));
}

TEST(TtsFiles, ListsThatDoNotFitAreNamed) {
  const ModelFile file = open_model(tts_gguf(custom_model));
  for (const char* key : {"qwen3tts.spk_token_ids", "qwen3tts.spk_dialect_token_ids", "qwen3tts.codec_language_ids"}) {
    EXPECT_THAT(complaint_of(file,
                             [&](Meta& meta) {
                               meta.replace(key, {MetaType::i32, true, MetaInts{1, 2}});
                             }),
                HasSubstr(key));
    MetaInts ids = file.meta->integers(key);
    ids.back() = 1088;
    EXPECT_THAT(complaint_of(file,
                             [&](Meta& meta) {
                               meta.replace(key, {MetaType::i32, true, ids});
                             }),
                AllOf(HasSubstr(key), HasSubstr("1088")));
  }
  EXPECT_THAT(complaint_of(file,
                           [&](Meta& meta) {
                             meta.replace("qwen3tts.tts_model_type", {MetaType::string, false, std::string_view("x")});
                           }),
              HasSubstr("tts_model_type"));
}

TEST(TtsFiles, ATensorThatIsMissingOrOfAnotherShapeIsNamed) {
  for (const std::string& model : {base_model, custom_model}) {
    const ModelFile file = open_model(tts_gguf(model));
    for (size_t i = 0; i < file.tensors.size(); ++i) {
      const std::string name = file.tensors[i].name;
      if (name.starts_with("speaker.")) continue;
      ModelFile less = file;
      less.tensors.erase(less.tensors.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_THAT(complaint_of(less, [](Meta&) {}), HasSubstr(name));
      ModelFile other = file;
      other.tensors[i].sizes.back() += 2;
      // The file has no other word for the size of the predictor's heads.
      const bool tells = name == "code_pred.blk.0.attn_q_norm.weight";
      EXPECT_THAT(complaint_of(other, [](Meta&) {}), HasSubstr(tells ? "code_pred.blk.0.attn_q.weight" : name));
    }
  }
}

// ---- folders

class TtsFolders : public testing::Test {
 protected:
  TtsFolders() : folder_(std::filesystem::temp_directory_path() / fmt::format("tts-folder-{}", getpid())) {
    std::filesystem::create_directories(folder_);
    for (const char* name : {"config.json", "generation_config.json", "vocab.json", "merges.txt", "model.safetensors"})
      std::filesystem::copy(std::filesystem::path(tts_folder(custom_model)) / name, folder_ / name);
  }
  ~TtsFolders() override { std::filesystem::remove_all(folder_); }

  std::string said() const {
    return complaint([&] { LoadedTts loaded(folder_.string()); });
  }
  // What is said once `file` was changed; it is put back after.
  std::string changed(const std::string& file, const std::function<void(Json&)>& change) const {
    const auto path = folder_ / file;
    std::string before;
    {
      std::ifstream in(path);
      before.assign(std::istreambuf_iterator<char>(in), {});
    }
    Json json = Json::parse(before);
    change(json);
    std::ofstream(path) << json.dump();
    const std::string result = said();
    std::ofstream(path) << before;
    return result;
  }

  std::filesystem::path folder_;
};

TEST_F(TtsFolders, TheOriginalIsTaken) { EXPECT_EQ(said(), ""); }

TEST_F(TtsFolders, AKeyOfTheConfigurationThatIsWrongIsNamed) {
  const auto talker = [](auto f) { return [=](Json& j) { f(j["talker_config"]); }; };
  for (const char* key :
       {"hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
        "intermediate_size", "vocab_size", "text_vocab_size", "text_hidden_size", "num_code_groups",
        "max_position_embeddings", "codec_bos_id", "codec_eos_token_id", "codec_pad_id", "codec_think_id",
        "codec_nothink_id", "codec_think_bos_id", "codec_think_eos_id", "rms_norm_eps"}) {
    EXPECT_THAT(changed("config.json", talker([=](Json& t) { t.erase(key); })), HasSubstr(key));
    EXPECT_THAT(changed("config.json", talker([=](Json& t) { t[key] = "many"; })), HasSubstr(key));
  }
  for (const char* key : {"tts_bos_token_id", "tts_eos_token_id", "tts_pad_token_id", "im_start_token_id"})
    EXPECT_THAT(changed("config.json", [=](Json& j) { j[key] = 512; }), HasSubstr(key));
  EXPECT_THAT(changed("config.json", talker([](Json& t) { t["spk_is_dialect"]["eric"] = "martian"; })),
              HasSubstr("martian"));
  EXPECT_THAT(changed("config.json", talker([](Json& t) { t["hidden_act"] = "gelu"; })), HasSubstr("hidden_act"));
  EXPECT_THAT(changed("config.json", talker([](Json& t) { t["code_predictor_config"]["rope_theta"] = 7; })),
              HasSubstr("rope_theta"));
  EXPECT_THAT(changed("generation_config.json", [](Json& j) { j["temperature"] = -1; }), HasSubstr("temperature"));
}

TEST_F(TtsFolders, AVocabularyThatIsWrongIsNamed) {
  EXPECT_THAT(changed("vocab.json", [](Json& j) { j["!"] = 1; }), HasSubstr("vocab.json"));
  EXPECT_THAT(changed("vocab.json", [](Json& j) { j["!"] = -4; }), HasSubstr("vocab.json"));
  EXPECT_THAT(changed("vocab.json", [](Json& j) { j.erase("!"); }), HasSubstr("vocab.json"));
  std::filesystem::remove(folder_ / "merges.txt");
  EXPECT_THAT(said(), HasSubstr("merges.txt"));
}

TEST_F(TtsFolders, SettingsOfItsMakersAreRead) {
  const LoadedTts loaded(folder_.string());
  const TtsVocabulary& v = loaded.model->vocabulary();
  EXPECT_EQ(v.first.temperature, 0.9f);
  EXPECT_EQ(v.others.top_k, 50);
  EXPECT_EQ(v.repeat_penalty, 1.05f);
  EXPECT_EQ(v.kind, TtsVocabulary::Kind::custom_voice);
}

}  // namespace
}  // namespace consonant
