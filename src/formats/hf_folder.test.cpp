// SPDX-License-Identifier: Apache-2.0
#include "formats/hf_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "base/error.hpp"
#include "formats/hf_tokenizer.hpp"
#include "formats/json.hpp"
#include "formats/safetensors.hpp"

namespace consonant {
namespace {

using testing::HasSubstr;

const std::filesystem::path models = CONSONANT_TEST_DATA "/llm/models";

// A copy of a folder to spoil.
struct Copy {
  std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) /
      fmt::format("{}-{}", testing::UnitTest::GetInstance()->current_test_info()->name(), ::getpid());
  explicit Copy(const std::string& model) {
    std::filesystem::create_directories(path);
    for (const char* name : {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"})
      std::filesystem::copy_file(models / model / name, path / name);
  }
  ~Copy() { std::filesystem::remove_all(path); }

  Json read(const std::string& name) const { return parse_json(MappedFile::open(path / name)->text(), name); }
  void write(const std::string& name, const Json& json) const { std::ofstream(path / name) << json.dump(); }
  template <class F>
  void edit(const std::string& name, F&& change) const {
    Json json = read(name);
    change(json);
    write(name, json);
  }
};

std::string refusal(const std::filesystem::path& path) {
  try {
    open_model(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::input);
    return error.what();
  }
  return "accepted";
}

// Arrays of arrays don't occur.
bool same_value(const MetaValue& a, const MetaValue& b) {
  return std::visit(
      [](const auto& x, const auto& y) {
        if constexpr (std::is_same_v<decltype(x), decltype(y)> &&
                      !std::is_same_v<std::decay_t<decltype(x)>, MetaNested>)
          return x == y;
        else
          return false;
      },
      a.value, b.value);
}

class SameAsGguf : public testing::TestWithParam<const char*> {
 protected:
  const std::filesystem::path folder_ = models / GetParam();
  const ModelFile hf_ = open_model(folder_);
  const ModelFile gguf_ =
      open_model(folder_ / (std::string(GetParam()) == "llama_q256" ? "model-bf16.gguf" : "model-f32.gguf"));
};

TEST_P(SameAsGguf, Tensors) {
  std::set<std::string> names, expected;
  for (const StoredTensor& t : hf_.tensors) names.insert(t.name);
  for (const StoredTensor& t : gguf_.tensors) expected.insert(t.name);
  EXPECT_EQ(names, expected);
  for (const StoredTensor& t : gguf_.tensors) {
    const StoredTensor* ours = hf_.find(t.name);
    ASSERT_NE(ours, nullptr) << t.name;
    EXPECT_EQ(ours->sizes, t.sizes) << t.name;
    const HostTensor loaded = ours->load();
    EXPECT_EQ(loaded.type, ours->type) << t.name;
    EXPECT_EQ(static_cast<int64_t>(loaded.bytes.size()), ours->bytes) << t.name;
    EXPECT_EQ(loaded.to_floats(), t.load().to_floats()) << t.name;
    hf_.release(loaded.bytes);
    EXPECT_EQ(ours->load().to_floats(), t.load().to_floats()) << t.name;
  }
}

TEST_P(SameAsGguf, Metadata) {
  // What the folder doesn't say in this form: how the file was made, and add_sep_token, which no reader uses.
  const std::set<std::string> others = {"general.size_label", "general.file_type", "general.quantization_version",
                                        "tokenizer.ggml.add_sep_token"};
  for (const auto& [key, value] : gguf_.meta->entries()) {
    if (others.count(key)) continue;
    const MetaValue* ours = hf_.meta->find(key);
    ASSERT_NE(ours, nullptr) << key;
    EXPECT_EQ(ours->describe(), value.describe()) << key;
    EXPECT_TRUE(same_value(*ours, value)) << key;
  }
  EXPECT_EQ(hf_.format, "Hugging Face folder");
}

INSTANTIATE_TEST_SUITE_P(HfFolder, SameAsGguf,
                         testing::Values("llama", "llama_rope", "llama_q256", "qwen2", "qwen3", "gemma3"));

TEST(HfFolder, ReadsBothStylesOfConfig) {
  const Copy copy("llama_rope");
  const ModelFile before = open_model(copy.path);
  copy.edit("config.json", [](Json& c) {
    c["rope_parameters"] = c["rope_scaling"];
    c.erase("rope_scaling");
    c.erase("rope_theta");
    c["dtype"] = c["torch_dtype"];
    c.erase("torch_dtype");
  });
  const ModelFile after = open_model(copy.path);
  EXPECT_EQ(after.meta->number("llama.rope.freq_base"), 500000);
  EXPECT_EQ(after.find("rope_freqs.weight")->load().to_floats(), before.find("rope_freqs.weight")->load().to_floats());
}

TEST(HfFolder, ReadsShards) {
  const Copy copy("qwen3");
  const ModelFile whole = open_model(copy.path);
  Json map = Json::object();
  {
    const SafetensorsFile file = SafetensorsFile::open(copy.path / "model.safetensors");
    std::vector<NamedTensor> parts[2];
    for (size_t i = 0; i < file.entries().size(); ++i) {
      const auto& entry = file.entries()[i];
      parts[i % 2].push_back({entry.name, file.tensor(entry)});
      map[entry.name] = fmt::format("model-{}.safetensors", i % 2);
    }
    write_safetensors(copy.path / "model-0.safetensors", parts[0]);
    write_safetensors(copy.path / "model-1.safetensors", parts[1]);
  }
  std::filesystem::remove(copy.path / "model.safetensors");
  copy.write("model.safetensors.index.json", {{"metadata", Json::object()}, {"weight_map", map}});
  const ModelFile parts = open_model(copy.path);
  ASSERT_EQ(parts.tensors.size(), whole.tensors.size());
  for (size_t i = 0; i < parts.tensors.size(); ++i) {
    EXPECT_EQ(parts.tensors[i].name, whole.tensors[i].name);
    EXPECT_EQ(parts.tensors[i].load().to_floats(), whole.tensors[i].load().to_floats());
  }
  std::filesystem::rename(copy.path / "model-1.safetensors", copy.path / "other");
  EXPECT_THAT(refusal(copy.path), HasSubstr("model-1.safetensors, which is missing"));
  std::filesystem::copy_file(copy.path / "model-0.safetensors", copy.path / "model-1.safetensors");
  EXPECT_THAT(refusal(copy.path), HasSubstr("but doesn't"));
  map.front() = "../model.safetensors";
  copy.write("model.safetensors.index.json", {{"weight_map", map}});
  EXPECT_THAT(refusal(copy.path), HasSubstr("no name of a file in this folder"));
}

TEST(HfFolder, IgnoresBuffersAndFurtherLayers) {
  const Copy copy("llama");
  const ModelFile whole = open_model(copy.path);
  std::vector<NamedTensor> tensors;
  {
    const SafetensorsFile file = SafetensorsFile::open(copy.path / "model.safetensors");
    for (const auto& e : file.entries()) tensors.push_back({e.name, file.tensor(e)});
    tensors.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", HostTensor::allocate(DType::f32, {8})});
    tensors.push_back({"model.layers.2.self_attn.q_proj.weight", HostTensor::allocate(DType::f32, {8, 8})});
  }
  write_safetensors(copy.path / "model.safetensors", tensors);
  EXPECT_EQ(open_model(copy.path).tensors.size(), whole.tensors.size());
  tensors.push_back({"model.layers.1.self_attn.sinks", HostTensor::allocate(DType::f32, {8})});
  write_safetensors(copy.path / "model.safetensors", tensors);
  EXPECT_THAT(refusal(copy.path), HasSubstr("\"model.layers.1.self_attn.sinks\": isn't one of llama"));
}

TEST(HfFolder, RefusesWhatDoesNotFit) {
  const auto with = [](const char* key, const Json& value) {
    const Copy copy("llama");
    copy.edit("config.json", [&](Json& c) { c[key] = value; });
    return refusal(copy.path);
  };
  EXPECT_EQ(with("use_cache", false), "accepted");
  EXPECT_THAT(with("architectures", Json::array({"OtherForCausalLM"})), HasSubstr("known are LlamaForCausalLM"));
  EXPECT_THAT(with("architectures", "LlamaForCausalLM"), HasSubstr("doesn't name a class"));
  EXPECT_THAT(with("vocab_size", 2147483647), HasSubstr("model.embed_tokens.weight is [512, 64]"));
  EXPECT_THAT(with("vocab_size", -1), HasSubstr("\"vocab_size\" is -1"));
  EXPECT_THAT(with("hidden_size", 1e30), HasSubstr("\"hidden_size\" is 1e+30"));
  EXPECT_THAT(with("num_attention_heads", 5), HasSubstr("heads"));
  EXPECT_THAT(with("num_key_value_heads", 3), HasSubstr("32 rows can't be 3 heads"));
  EXPECT_THAT(with("num_hidden_layers", 0), HasSubstr("\"num_hidden_layers\" is 0"));
  EXPECT_THAT(with("rms_norm_eps", "x"), HasSubstr("\"rms_norm_eps\" is \"x\""));
  EXPECT_THAT(with("hidden_act", "gelu"), HasSubstr("only \"silu\" is supported"));
  EXPECT_THAT(with("rope_scaling", Json{{"rope_type", "longrope"}, {"factor", 2}}), HasSubstr("longrope"));
  const auto with_llama3 = [](const char* key, const Json& value) {
    const Copy copy("llama");
    copy.edit("config.json", [&](Json& c) {
      c[key] = value;
      if (key != std::string("head_dim")) c.erase("head_dim");
      c["rope_scaling"] = {{"rope_type", "llama3"}, {"factor", 8}, {"original_max_position_embeddings", 64}};
    });
    return refusal(copy.path);
  };
  EXPECT_THAT(with_llama3("head_dim", 2147483646), HasSubstr("\"head_dim\" is 2147483646, more than 65536"));
  EXPECT_THAT(with_llama3("hidden_size", 1073741824), HasSubstr("makes heads of more than 65536"));
  EXPECT_THAT(with("bos_token_id", 512), HasSubstr("accepted"));  // tokenizer_config.json names the token
  {
    const Copy copy("llama");
    copy.edit("tokenizer_config.json", [](Json& c) { c.erase("bos_token"); });
    copy.edit("config.json", [](Json& c) { c["bos_token_id"] = 512; });
    EXPECT_THAT(refusal(copy.path), HasSubstr("past the vocabulary of 512"));
  }
  {
    const Copy copy("llama");
    copy.edit("tokenizer.json", [](Json& t) { t["model"]["vocab"]["extra"] = 512; });
    EXPECT_THAT(refusal(copy.path), HasSubstr("\"extra\" has id 512"));
    copy.edit("tokenizer.json", [](Json& t) { t["model"]["vocab"]["extra"] = 3; });
    EXPECT_THAT(refusal(copy.path), HasSubstr("id 3 stands for"));
    copy.edit("tokenizer.json", [](Json& t) { t["model"]["type"] = "Unigram"; });
    EXPECT_THAT(refusal(copy.path), HasSubstr("Unigram"));
    std::filesystem::remove(copy.path / "tokenizer.json");
    EXPECT_THAT(refusal(copy.path), HasSubstr("tokenizer.json: can't be opened"));
    std::filesystem::remove(copy.path / "model.safetensors");
    EXPECT_THAT(refusal(copy.path), HasSubstr("neither model.safetensors nor"));
    std::ofstream(copy.path / "config.json") << "{";
    EXPECT_THAT(refusal(copy.path), HasSubstr("not JSON"));
  }
}

TEST(HfTokenizer, ChatTemplates) {
  const Copy copy("llama");
  copy.edit("tokenizer_config.json", [](Json& c) {
    c["chat_template"] =
        Json::array({{{"name", "default"}, {"template", "D"}}, {{"name", "tool_use"}, {"template", "T"}}});
  });
  EXPECT_EQ(open_model(copy.path).meta->string("tokenizer.chat_template"), "D");
  EXPECT_EQ(open_model(copy.path).meta->string("tokenizer.chat_template.tool_use"), "T");
  std::ofstream(copy.path / "chat_template.jinja") << "J";
  EXPECT_EQ(open_model(copy.path).meta->string("tokenizer.chat_template"), "J");
}

TEST(HfTokenizer, FurtherEndTokens) {
  const Copy copy("llama");
  copy.write("generation_config.json", {{"eos_token_id", {511, 508, 510}}});
  const ModelFile model = open_model(copy.path);
  EXPECT_EQ(model.meta->integer("tokenizer.ggml.eos_token_id"), 511);
  EXPECT_EQ(model.meta->integer("tokenizer.ggml.eot_token_id"), 508);
  EXPECT_EQ(model.meta->integer("tokenizer.ggml.eom_token_id"), 510);
}

TEST(HfTokenizer, UnknownPreTokenizersGetNoName) {
  const Copy copy("qwen2");
  EXPECT_EQ(open_model(copy.path).meta->string("tokenizer.consonant.normalizer"), "nfc");
  copy.edit("tokenizer.json", [](Json& t) { t["normalizer"] = nullptr; });
  EXPECT_EQ(open_model(copy.path).meta->string("tokenizer.ggml.pre"), "qwen2");
  EXPECT_EQ(open_model(copy.path).meta->string("tokenizer.consonant.normalizer"), "none");
  copy.edit("tokenizer.json", [](Json& t) { t["normalizer"] = {{"type", "NFKC"}}; });
  EXPECT_FALSE(open_model(copy.path).meta->has("tokenizer.ggml.pre"));
  copy.edit("tokenizer.json", [](Json& t) {
    t["normalizer"] = nullptr;
    t["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = ".";
  });
  const ModelFile model = open_model(copy.path);
  EXPECT_FALSE(model.meta->has("tokenizer.ggml.pre"));
  EXPECT_THAT(std::string(model.meta->string("tokenizer.consonant.pre_tokenizer")), HasSubstr("Sequence"));
}

TEST(HfTokenizer, RecognisesByDefinition) {
  const Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
  const Json digits = {{"type", "Digits"}, {"individual_digits", true}};
  const Json nfc = {{"type", "NFC"}};
  const auto pre = [](const Json& normalizer, const Json& definition) {
    return recognise_pre_tokenizer(HfConfig(Json{{"normalizer", normalizer}, {"pre_tokenizer", definition}}, "t"),
                                   false, false)
        .pre;
  };
  const auto sequence = [](const Json& a, const Json& b) {
    return Json{{"type", "Sequence"}, {"pretokenizers", Json::array({a, b})}};
  };
  EXPECT_EQ(pre(nullptr, bytes), "gpt-2");
  EXPECT_EQ(pre(nfc, bytes), "olmo");
  EXPECT_EQ(pre(nullptr, sequence(digits, bytes)), "smollm");
  EXPECT_EQ(pre(nfc, sequence(digits, bytes)), "command-r");
  EXPECT_EQ(pre(nullptr, sequence(bytes, digits)), "");
  EXPECT_EQ(pre(nullptr, {{"type", "ByteLevel"}, {"add_prefix_space", true}}), "");
  EXPECT_EQ(pre(nullptr, nullptr), "");
  const auto file = [](const char* model) {
    const HfConfig tokenizer(parse_json(MappedFile::open(models / model / "tokenizer.json")->text(), model), model);
    return recognise_pre_tokenizer(tokenizer, false, false).pre;
  };
  EXPECT_EQ(file("glm4_moe_lite"), "glm4");
  EXPECT_EQ(file("deepseek_v3"), "gpt-2");
}

}  // namespace
}  // namespace consonant
