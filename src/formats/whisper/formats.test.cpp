// SPDX-License-Identifier: Apache-2.0
// One model, written in each of the formats, is read as the same model; what doesn't fit is refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <set>

#include "base/error.hpp"
#include "formats/convert.hpp"
#include "formats/ct2.hpp"
#include "formats/ggml.hpp"
#include "formats/whisper/small_model.hpp"

namespace consonant {
namespace {

using namespace testing_whisper;
using testing::HasSubstr;

struct Folder {
  std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) /
      fmt::format("{}-{}", testing::UnitTest::GetInstance()->current_test_info()->name(), ::getpid());
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path / name) << text; }
};

std::string refusal_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::input) << error.what();
    return error.what();
  }
  return "accepted";
}
std::string refusal(const std::filesystem::path& path) {
  return refusal_of([&] { open_model(path); });
}

constexpr int32_t small_end = 300;
constexpr int64_t small_vocabulary = 400;  // three languages, 85 timestamps

std::vector<std::string> small_texts(const SmallModel& m) {
  std::vector<std::string> texts = m.texts(small_end);
  for (int64_t id = small_end; id < small_vocabulary; ++id)
    texts[static_cast<size_t>(id)] = whisper_control_text({small_end, 3}, id);
  return texts;
}

void write_ct2(const SmallModel& m, const Folder& folder, DType type, uint32_t version = 6) {
  Ct2Writer(m, type, version).bytes().write(folder.path / "model.bin");
  folder.write("config.json", R"({"suppress_ids": [1, 2], "suppress_ids_begin": [3], "alignment_heads": [[0, 1]]})");
  folder.write("vocabulary.json", Json(small_texts(m)).dump());
}

// The names and shapes of all tensors, and their values where `exact` says so.
void expect_same(const ModelFile& file, const SmallModel& m, const std::set<DType>& inexact = {}) {
  ASSERT_EQ(file.tensors.size(), m.tensors.size());
  for (const StoredTensor& t : file.tensors) {
    const HostTensor loaded = t.load();
    EXPECT_EQ(loaded.type, t.type) << t.name;
    EXPECT_EQ(loaded.sizes, t.sizes) << t.name;
    EXPECT_EQ(static_cast<int64_t>(loaded.bytes.size()), t.bytes) << t.name;
    ASSERT_EQ(m.tensors.count(t.name), 1u) << t.name;
    const Sizes& stored = m.tensors.at(t.name).sizes;
    EXPECT_EQ(t.sizes, stored.size() == 3 ? (Sizes{stored[0], 3 * stored[1]}) : stored) << t.name;
    const bool vector = stored.size() == 1 || t.name.ends_with("position_embd.weight");
    EXPECT_TRUE(!vector || t.type == DType::f32) << t.name;
    if (inexact.count(t.type)) continue;
    EXPECT_EQ(loaded.to_floats(), m.expected(t.name)) << t.name;
    file.release(loaded.bytes);
    EXPECT_EQ(t.load().to_floats(), m.expected(t.name)) << t.name;
  }
}

TEST(WhisperFormats, HuggingFace) {
  const SmallModel m(small_vocabulary);
  const Folder folder;
  write_hf(m, folder.path);
  expect_same(open_model(folder.path), m);
  EXPECT_FALSE(open_model(folder.path).meta->has("tokenizer.ggml.tokens"));
  // vocab.json and merges.txt, with the control tokens where older files have them.
  Json vocab = Json::object(), added = Json::object();
  const auto texts = small_texts(m);
  for (size_t i = 0; i < texts.size(); ++i) (i < small_end ? vocab : added)[texts[i]] = i;
  folder.write("vocab.json", vocab.dump());
  folder.write("added_tokens.json", added.dump());
  folder.write("merges.txt", "#version: 0.2\n" + texts[0] + " " + texts[0] + "\n");
  folder.write("generation_config.json", R"({"suppress_tokens": [], "begin_suppress_tokens": null})");
  const ModelFile file = open_model(folder.path);
  EXPECT_EQ(file.meta->strings("tokenizer.ggml.merges").size(), 1u);
  EXPECT_EQ(file.meta->strings("tokenizer.ggml.tokens")[301], "<|startoftranscript|>");
  EXPECT_EQ(file.meta->integers("whisper.language_tokens"), (MetaInts{302, 303, 304}));
  EXPECT_TRUE(file.meta->integers("whisper.suppress_tokens").empty()) << "stated as none";
  EXPECT_EQ(file.meta->integers("whisper.begin_suppress_tokens"), (MetaInts{32, 300})) << "not stated";
  EXPECT_FALSE(file.meta->has("whisper.alignment_heads"));
}

TEST(WhisperFormats, TinyRandomCheckpoint) {
  const std::filesystem::path folder = CONSONANT_TEST_DATA "/asr/tiny-random-whisper";
  const ModelFile file = open_model(folder);
  EXPECT_EQ(file.meta->integer("whisper.vocab_size"), 600);
  EXPECT_EQ(file.meta->integer("whisper.encoder.context_length"), 50);
  EXPECT_EQ(file.meta->integer("tokenizer.ggml.bos_token_id"), 501);
  EXPECT_EQ(file.meta->integer("tokenizer.ggml.eos_token_id"), 500);
  EXPECT_EQ(file.tensors.size(), 89u);
  const SafetensorsFile stored = SafetensorsFile::open(folder / "model.safetensors");
  EXPECT_EQ(file.find("dec.blk.1.cross_attn_v.weight")->load().to_floats(),
            stored.tensor("model.decoder.layers.1.encoder_attn.v_proj.weight").to_floats());
  const auto conv = stored.tensor("model.encoder.conv1.weight").to_floats(),
             ours = file.find("enc.conv1.weight")->load().to_floats();
  EXPECT_EQ(ours[(5 * 3 + 2) * 80 + 17], conv[(5 * 80 + 17) * 3 + 2]);  // tap 2 of channel 17, output 5
}

TEST(WhisperFormats, CTranslate2) {
  const SmallModel m(small_vocabulary);
  for (const auto& [type, version] : {std::pair(DType::f32, 6u), std::pair(DType::f16, 6u), std::pair(DType::f16, 4u),
                                      std::pair(DType::f32, 3u), std::pair(DType::f32, 2u)}) {
    const Folder folder;
    write_ct2(m, folder, type, version);
    const ModelFile file = open_model(folder.path);
    expect_same(file, m);
    EXPECT_EQ(file.find("dec.blk.0.ffn_up.weight")->type, type);
    EXPECT_EQ(file.meta->integer("whisper.decoder.attention.head_count"), 4);
    EXPECT_EQ(file.meta->integers("whisper.suppress_tokens"), (MetaInts{1, 2}));
    EXPECT_EQ(file.meta->integers("whisper.alignment_heads"), (MetaInts{0, 1}));
    EXPECT_EQ(open_model(folder.path / "model.bin").tensors.size(), m.tensors.size());
  }
}

TEST(WhisperFormats, CTranslate2EightBits) {
  const SmallModel m(small_vocabulary);
  const Folder folder;
  write_ct2(m, folder, DType::i8);
  const ModelFile file = open_model(folder.path);
  expect_same(file, m, {DType::q8_0, DType::f32});
  EXPECT_EQ(file.find("enc.blk.0.attn_norm.weight")->load().to_floats(), m.expected("enc.blk.0.attn_norm.weight"));
  EXPECT_EQ(file.find("token_embd.weight")->type, DType::q8_0);
  EXPECT_EQ(file.find("enc.conv1.weight")->type, DType::f32);
  const auto ct2 = std::make_shared<const Ct2File>(parse_ct2(MappedFile::open(folder.path / "model.bin")));
  const auto ours = file.find("dec.blk.0.ffn_down.weight")->load();
  const auto floats = ours.to_floats();
  const HostTensor quants = ct2->tensor(*ct2->find("decoder/layer_0/ffn/linear_1/weight"));
  const auto scales = ct2->tensor(*ct2->find("decoder/layer_0/ffn/linear_1/weight_scale")).to_floats();
  for (size_t i = 0; i < floats.size(); ++i) {
    const float exact = static_cast<float>(static_cast<int8_t>(quants.bytes[i])) / scales[i / 64];
    EXPECT_NEAR(floats[i], exact, std::abs(exact) / 2048);  // the step in half precision
    EXPECT_EQ(ours.bytes[i / 32 * 34 + 2 + i % 32], quants.bytes[i]) << "the whole numbers stay";
  }
}

std::vector<std::string> words_for(const SmallModel& m) {
  std::vector<std::string> words = m.texts(50256);
  words.resize(50256);
  return words;
}

TEST(WhisperFormats, WhisperCpp) {
  const SmallModel m(51864);
  const auto words = words_for(m);
  for (const DType type : {DType::f32, DType::f16, DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::q8_0}) {
    const Folder folder;
    const auto path = folder.path / "ggml-x.bin";
    ggml_file(m, type, words).write(path);
    const ModelFile file = open_model(path);
    expect_same(file, m, {DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::q8_0});
    const HostTensor loaded = file.find("dec.blk.0.attn_q.weight")->load();
    EXPECT_EQ(loaded.type, type);
    const std::string wanted = as_type(type, m.tensors.at("dec.blk.0.attn_q.weight"));
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(loaded.bytes.data()), loaded.bytes.size()), wanted);
    EXPECT_EQ(file.meta->integers("whisper.language_tokens"), MetaInts{50258});
    EXPECT_EQ(file.meta->strings("tokenizer.ggml.tokens")[32], "Ġ");
    EXPECT_EQ(file.meta->strings("tokenizer.ggml.tokens").back(), "<|30.00|>");
    EXPECT_FALSE(file.meta->integers("whisper.suppress_tokens").empty());
    // As GGUF, in the same type, nothing is lost.
    const auto gguf = folder.path / "x.gguf";
    convert_model(file, gguf, name(type));
    const ModelFile ours = open_model(gguf);
    ASSERT_EQ(ours.tensors.size(), file.tensors.size());
    for (const StoredTensor& t : ours.tensors) {
      EXPECT_EQ(t.type, file.find(t.name)->type) << t.name;
      EXPECT_EQ(t.load().to_floats(), file.find(t.name)->load().to_floats()) << t.name;
    }
    EXPECT_EQ(ours.meta->integer("whisper.encoder.block_count"), 2);
  }
}

TEST(WhisperFormats, ConvertKeepsConvolutionsAndPositions) {
  const SmallModel m(small_vocabulary);
  const Folder folder;
  write_hf(m, folder.path);
  const ModelFile file = open_model(folder.path);
  for (const char* kind : {"f32", "f16", "bf16", "q8_0", "q4_0", "q5_0", "q4_k_m", "q6_k"}) {
    for (const GgufTensorPlan& t : plan_conversion(file, kind)) {
      if (t.sizes.size() == 1 || t.name.ends_with("position_embd.weight")) {
        EXPECT_EQ(t.type, DType::f32) << t.name;
      } else if (t.name.find("conv") != t.name.npos) {
        EXPECT_EQ(t.type, kind == std::string("f32") ? DType::f32 : DType::f16) << t.name;
      }
    }
  }
}

TEST(WhisperFormats, RefusesFoldersThatDoNotFit) {
  const SmallModel m(small_vocabulary);
  const Folder folder;
  write_hf(m, folder.path);
  const Json config = hf_config(m.sizes);
  const auto with = [&](const char* key, const Json& value) {
    Json changed = config;
    changed[key] = value;
    folder.write("config.json", changed.dump());
    return refusal(folder.path);
  };
  EXPECT_EQ(with("use_cache", true), "accepted");
  EXPECT_THAT(with("vocab_size", 2147483647),
              HasSubstr("\"model.decoder.embed_tokens.weight\" is [400, 32], should be [2"));
  EXPECT_THAT(with("encoder_layers", 3), HasSubstr("no tensor \"model.encoder.layers.2.self_attn_layer_norm.weight\""));
  EXPECT_THAT(with("encoder_layers", 2147483647), HasSubstr("2147483647 encoder layers, but has"));
  EXPECT_THAT(with("encoder_layers", 1), HasSubstr("belongs to no layer"));
  EXPECT_THAT(with("num_mel_bins", 128), HasSubstr("conv1.weight\" is [32, 80, 3], should be [32, 128, 3]"));
  EXPECT_THAT(with("decoder_attention_heads", 5), HasSubstr("isn't a multiple of the decoder's 5 heads"));
  EXPECT_THAT(with("activation_function", "relu"), HasSubstr("only \"gelu\" is supported"));
  EXPECT_THAT(with("suppress_tokens", {400}), HasSubstr("suppress_tokens names token 400"));
  EXPECT_THAT(with("suppress_tokens", {-1}), HasSubstr("no token id"));
  EXPECT_THAT(with("alignment_heads", {{1, 0}}), HasSubstr("alignment head 0 of layer 1: the decoder has 1 layers"));
  folder.write("config.json", config.dump());
  auto texts = small_texts(m);
  texts[300] = "x";
  folder.write("vocabulary.json", Json(texts).dump());
  EXPECT_THAT(refusal(folder.path), HasSubstr("isn't Whisper's: it has no \"<|endoftext|>\""));
  texts = small_texts(m);
  texts.push_back("<|1.70|>");
  folder.write("vocabulary.json", Json(texts).dump());
  EXPECT_THAT(refusal(folder.path), HasSubstr("has id 400, but the model has 400 tokens"));
  EXPECT_THAT(refusal(folder.path / "model.safetensors"), HasSubstr("name the folder"));
}

TEST(WhisperFormats, RefusesDamagedCTranslate2) {
  const SmallModel m(small_vocabulary);
  const std::string whole = Ct2Writer(m, DType::f32).bytes().bytes();
  const auto open = [](const std::string& bytes) {
    return refusal_of([&] {
      WhisperSizes sizes;
      read_ct2_whisper(std::make_shared<const Ct2File>(parse_ct2(Bytes().raw(bytes).file("model.bin"))), sizes);
    });
  };
  EXPECT_EQ(open(whole), "accepted");
  for (size_t size = 1; size < whole.size(); size = size < 400 ? size + 1 : size * 3 / 2)
    EXPECT_THAT(open(whole.substr(0, size)), HasSubstr("is cut short")) << size;
  EXPECT_THAT(open(whole + "x"), HasSubstr("1 bytes follow"));
  EXPECT_THAT(open("\x07" + whole.substr(1)), HasSubstr("version 7, should be 1 to 6"));
  Ct2Writer other(m, DType::f32);
  other.kind = "TransformerSpec";
  EXPECT_THAT(open(other.bytes().bytes()), HasSubstr("a model of kind TransformerSpec"));
  Ct2Writer activation(m, DType::f32);
  activation.scalar("decoder/activation", 0);
  EXPECT_THAT(open(activation.bytes().bytes()), HasSubstr("\"decoder/activation\" is 0, where Whisper has 3"));
  Bytes huge;
  huge.number(uint32_t{6}).string("WhisperSpec").number(uint32_t{3}).number(uint32_t{1}).string("a").number(uint8_t{2});
  huge.number(0xFFFFFFFFu).number(0xFFFFFFFFu).number(uint8_t{0}).number(uint32_t{16});
  EXPECT_THAT(open(huge.bytes()), HasSubstr("overflow"));
  const Folder folder;
  Bytes().raw(whole).write(folder.path / "x.bin");
  EXPECT_THAT(refusal(folder.path / "x.bin"), HasSubstr("has to be named model.bin"));
  Bytes().raw(whole).write(folder.path / "model.bin");
  EXPECT_THAT(refusal(folder.path), HasSubstr("config.json: can't be opened"));
}

TEST(WhisperFormats, RefusesDamagedWhisperCpp) {
  const SmallModel m(51864);
  const auto words = words_for(m);
  const auto open = [](const std::string& bytes) {
    return refusal_of([&] { read_ggml(parse_ggml(Bytes().raw(bytes).file("ggml-x.bin"))); });
  };
  const std::string whole = ggml_file(m, DType::q5_0, words).bytes();
  EXPECT_EQ(open(whole), "accepted");
  for (size_t size = 4; size < whole.size(); size = size < 100 ? size + 1 : size * 2)
    EXPECT_THAT(open(whole.substr(0, size)), HasSubstr("is cut short")) << size;
  const auto with = [&](size_t field, int32_t value) {
    std::string changed = whole;
    std::memcpy(changed.data() + 4 * field, &value, sizeof value);
    return open(changed);
  };
  EXPECT_THAT(with(1, 2147483647), HasSubstr("the size of the vocabulary is 2147483647"));
  EXPECT_THAT(with(1, 51865), HasSubstr("\"decoder.token_embedding.weight\" is [51864, 32], should be [51865, 32]"));
  EXPECT_THAT(with(2, -1), HasSubstr("audio positions is -1"));
  EXPECT_THAT(with(5, 1024), HasSubstr("1024 encoder layers"));
  EXPECT_THAT(with(7, 64), HasSubstr("widths of 32 and 64"));
  EXPECT_THAT(with(10, 128), HasSubstr("mel filters of [80, 201], should be [128, 201]"));
  EXPECT_THAT(with(11, 1007), HasSubstr("blocks of version 1; only version 2"));
  EXPECT_THAT(with(14 + 80 * 201, -1), HasSubstr("-1 words"));
  EXPECT_THAT(with(14 + 80 * 201, 2000000), HasSubstr("2000000 words for a vocabulary of 51864"));
  auto fewer = words;
  fewer.resize(1000);
  EXPECT_THAT(open(ggml_file(m, DType::f16, fewer).bytes()), HasSubstr("1000 words; a vocabulary of 51864 has 50256"));
  const SmallModel other(1000);
  EXPECT_THAT(open(ggml_file(other, DType::f16, {}).bytes()), HasSubstr("a vocabulary of 1000 tokens; Whisper's have"));
}

}  // namespace
}  // namespace consonant
