// SPDX-License-Identifier: Apache-2.0
// Models whose layers are of several kinds, against the goldens of the reference implementation, and what becomes of
// the states that their sequences own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/error.hpp"
#include "consonant/verify.hpp"
#include "engine/sequence_file.hpp"
#include "formats/convert.hpp"
#include "formats/json.hpp"
#include "formats/mapped_file.hpp"
#include "tests/language_golden.hpp"

namespace consonant {
namespace {

using testing::HasSubstr;

std::string hybrid_path(const std::string& name, const std::string& file = "model-f32.gguf") {
  return CONSONANT_TEST_DATA "/llm_mamba/models/" + name + "/" + file;
}

struct Prompts {
  explicit Prompts(const std::string& model) {
    const Golden golden(hybrid_path(model, "golden.safetensors"));
    a = golden.ids("input_ids"), b = golden.ids("input_ids_b");
  }
  std::vector<int32_t> a, b;
};

template <class F>
std::string refusal_of(const F& f, Exit exit = Exit::input) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), exit) << error.what();
    return error.what();
  }
  return "accepted";
}

struct HybridCase {
  const char *model, *file, *device;
};

class HybridModel : public testing::TestWithParam<HybridCase> {};

TEST_P(HybridModel, AgreesWithTheReference) {
  const auto [model, file, device] = GetParam();
  expect_goldens(*load_engine(hybrid_path(model, file), "f32", 2, device),
                 Golden(hybrid_path(model, "golden.safetensors")));
}

constexpr const char* models[] = {"nemotron_h_dense", "nemotron_h", "nemotron_h_latent"};

std::vector<HybridCase> hybrid_cases() {
  std::vector<HybridCase> cases;
  for (const char* model : models) {
    for (const char* device : {"cpu", "reference", "emu32", "emu64"})
      cases.push_back({model, "model-f32.gguf", device});
    cases.push_back({model, "", "cpu"});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, HybridModel, testing::ValuesIn(hybrid_cases()), [](const auto& info) {
  return std::string(info.param.model) + (*info.param.file ? "_gguf_" : "_folder_") + info.param.device;
});

class HybridState : public testing::TestWithParam<std::string> {
 protected:
  std::string path() const { return hybrid_path(GetParam()); }
};

// The reference device runs every node as the model wrote it, so the outputs of mixers have names: all but those of
// experts, whose output is a sum that fusion would hide; they show in the logits and in the decisions.
TEST_P(HybridState, EachMixerAgrees) {
  const Golden golden(hybrid_path(GetParam(), "golden.safetensors"));
  const auto engine = load_engine(path(), "f32", 1, "reference");
  Runner& runner = language_engine(*engine).runner();
  runner.watch({"*/linear(ssm_out)", "*/linear(attn_output)", "*/linear(ffn_down)"});
  all_logits(runner, golden.ids("input_ids"));
  size_t found = 0, experts = 0;
  for (const Runner::TapRows& tap : runner.take_taps()) {
    const std::string layer = tap.name.substr(4, tap.name.find('/') - 4);
    SCOPED_TRACE(tap.name);
    const auto wanted = golden.floats("mixer." + layer);
    ASSERT_EQ(tap.rows.size(), wanted.size());
    EXPECT_LE(distance_of(wanted, tap.rows, static_cast<size_t>(engine->info().width)).max_abs, 1e-4);
    ++found;
  }
  for (int64_t i = 0; i < engine->info().layers; ++i) experts += golden.has(fmt::format("moe.{}.experts", i));
  EXPECT_EQ(found + experts, static_cast<size_t>(engine->info().layers));
}

// What a sequence's logits are doesn't depend on how its tokens are cut into steps, on its neighbours, or on threads.
TEST_P(HybridState, CutsNeighboursAndThreadsChangeNoBit) {
  const Prompts prompts(GetParam());
  const auto engine = load_engine(path(), "auto", 1);
  LanguageEngine& language = language_engine(*engine);
  const auto n = static_cast<size_t>(engine->info().vocabulary);
  const auto whole = all_logits(language.runner(), prompts.a), other = all_logits(language.runner(), prompts.b);
  const auto shared = language.make_runner(3, 3);
  EXPECT_EQ(all_logits(*shared, prompts.a), whole) << "three threads";
  for (size_t cut = 1; cut <= 17; ++cut) {
    const int a = shared->open(), b = shared->open(), c = shared->open();
    std::vector<float> together, neighbour;
    for (size_t at = 0, at_b = 0; at < prompts.a.size(); at += cut) {
      const auto part = std::span(prompts.a).subspan(at, std::min(cut, prompts.a.size() - at));
      const auto rest = std::span(prompts.b).subspan(at_b, std::min<size_t>(cut % 3, prompts.b.size() - at_b));
      std::vector<Piece> pieces;
      if (!rest.empty()) pieces.push_back({b, rest, true});
      pieces.push_back({a, part, true});
      pieces.push_back({c, std::span(prompts.b).first(2), false});
      const auto logits = shared->evaluate(pieces);
      neighbour.insert(neighbour.end(), logits.begin(), logits.begin() + static_cast<int64_t>(rest.size() * n));
      const auto mine = logits.subspan(rest.size() * n, part.size() * n);
      together.insert(together.end(), mine.begin(), mine.end());
      at_b += rest.size();
    }
    EXPECT_EQ(together, whole) << "cut into " << cut;
    EXPECT_TRUE(std::equal(neighbour.begin(), neighbour.end(), other.begin())) << "beside cuts of " << cut;
    for (int sequence : {a, b, c}) shared->close(sequence);
  }
}

std::vector<float> read(Runner& runner, int sequence, std::span<const int32_t> tokens) {
  const Piece piece{sequence, tokens, true};
  const auto logits = runner.evaluate({&piece, 1});
  return {logits.begin(), logits.end()};
}

TEST_P(HybridState, AForkGoesOnByItself) {
  const Prompts prompts(GetParam());
  for (const std::string device : {"cpu", "emu32"}) {
    SCOPED_TRACE(device);
    const auto engine = load_engine(path(), "f32", 2, device);
    const auto runner = language_engine(*engine).make_runner(2, 2);
    const auto first = std::span(prompts.a).first(11), rest = std::span(prompts.a).subspan(11);
    const int plain = runner->open();
    read(*runner, plain, first);
    const auto wanted = read(*runner, plain, rest);
    runner->close(plain);

    const int one = runner->open();
    read(*runner, one, first);
    const int two = runner->fork(one);
    EXPECT_EQ(runner->length(two), 11);
    read(*runner, one, prompts.b);
    EXPECT_EQ(read(*runner, two, rest), wanted);
    EXPECT_THROW(runner->fork(one), Error);  // there is no room for a third
    runner->close(one), runner->close(two);
  }
}

TEST_P(HybridState, IsClearedWholeOrNotAtAll) {
  const Prompts prompts(GetParam());
  const auto engine = load_engine(path(), "f32");
  Runner& runner = language_engine(*engine).runner();
  const int sequence = runner.open();
  const auto wanted = read(runner, sequence, prompts.a);
  const std::string refusal = refusal_of([&] { runner.truncate(sequence, 5); }, Exit::usage);
  EXPECT_THAT(refusal,
              HasSubstr("a sequence of 48 positions can't be cut to 5: this model's Mamba layers keep one state"));
  runner.truncate(sequence, 48);
  EXPECT_EQ(runner.length(sequence), 48);
  runner.truncate(sequence, 0);
  EXPECT_EQ(read(runner, sequence, prompts.a), wanted);
  runner.close(sequence);
  EXPECT_EQ(all_logits(runner, prompts.a), wanted) << "a slot that another sequence had";
}

// A conversation that goes on is not read again; one that is changed is.
TEST_P(HybridState, ASessionReusesWhatItCan) {
  const Prompts prompts(GetParam());
  const auto engine = load_engine(path(), "f32");
  GenerateOptions options;
  options.max_tokens = 4, options.ignore_eos = true;
  const auto fresh = [&](std::span<const int32_t> prompt) {
    const auto session = engine->session();
    return session->generate(prompt, options).tokens;
  };
  std::vector<int32_t> longer = prompts.a;
  const auto first = fresh(prompts.a);
  longer.insert(longer.end(), first.begin(), first.end());
  const auto next = fresh(longer), other = fresh(prompts.b);
  std::vector<int32_t> changed = longer;
  changed[40] = changed[40] == 7 ? 8 : 7;
  const auto after_change = fresh(changed);
  const auto session = engine->session();
  EXPECT_EQ(session->generate(prompts.a, options).tokens, first);
  EXPECT_EQ(session->generate(longer, options).tokens, next);
  EXPECT_EQ(session->generate(changed, options).tokens, after_change);
  EXPECT_EQ(session->generate(changed, options).tokens, after_change);
  EXPECT_EQ(session->generate(prompts.b, options).tokens, other);
}

struct TemporaryFile {
  std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) /
      fmt::format("{}-{}", testing::UnitTest::GetInstance()->current_test_info()->line(), ::getpid());
  ~TemporaryFile() { std::filesystem::remove(path); }

  std::string bytes() const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& bytes) const { std::ofstream(path, std::ios::binary) << bytes; }
};

TEST_P(HybridState, ASavedSequenceGoesOnBitByBit) {
  const Prompts prompts(GetParam());
  const TemporaryFile saved;
  for (const std::string device : {"cpu", "emu64"})
    for (const std::string kv : {"f16", "f32", "q8_0"}) {
      SCOPED_TRACE(device + " " + kv);
      EngineOptions options{.device = device};
      options.kv = kv, options.threads = 2;
      const auto engine = Engine::load(path(), options), again = Engine::load(path(), options);
      Runner &one = language_engine(*engine).runner(), &two = language_engine(*again).runner();
      const int a = one.open(), b = two.open();
      read(one, a, prompts.a);
      read(two, b, prompts.b);  // which is replaced
      save_sequence(saved.path, one, a, prompts.a, "this");
      EXPECT_EQ(restore_sequence(saved.path, two, b, "this"), prompts.a);
      EXPECT_EQ(two.length(b), one.length(a));
      EXPECT_EQ(read(two, b, prompts.b), read(one, a, prompts.b));
      one.close(a), two.close(b);
    }
}

TEST_P(HybridState, ASessionIsSavedAndRestored) {
  const Prompts prompts(GetParam());
  const TemporaryFile saved;
  GenerateOptions options;
  options.max_tokens = 5, options.ignore_eos = options.logprobs = true;
  std::vector<int32_t> longer = prompts.a;
  Generation wanted;
  {
    const auto engine = load_engine(path(), "f32");
    const auto session = engine->session();
    const auto made = session->generate(prompts.a, options).tokens;
    session->save(saved.path.string());
    longer.insert(longer.end(), made.begin(), made.end());
    wanted = session->generate(longer, options);
  }
  const auto engine = load_engine(path(), "f32");
  const auto session = engine->session();
  session->restore(saved.path.string());
  EXPECT_EQ(session->length(), static_cast<int64_t>(longer.size()) - 1);
  const Generation got = session->generate(longer, options);
  EXPECT_EQ(got.tokens, wanted.tokens);
  EXPECT_EQ(got.logprobs, wanted.logprobs);
}

TEST_P(HybridState, ADamagedSequenceIsRefusedAndChangesNothing) {
  const Prompts prompts(GetParam());
  const TemporaryFile saved;
  const auto engine = load_engine(path(), "f32");
  Runner& runner = language_engine(*engine).runner();
  int sequence = runner.open();
  read(runner, sequence, prompts.a);
  const auto wanted = read(runner, sequence, prompts.b);
  runner.close(sequence);
  sequence = runner.open();
  read(runner, sequence, prompts.a);
  save_sequence(saved.path, runner, sequence, prompts.a, "this");
  const std::string whole = saved.bytes();
  const auto refused = [&](const std::string& bytes, const std::string& model = "this") {
    saved.write(bytes);
    return refusal_of([&] { restore_sequence(saved.path, runner, sequence, model); });
  };
  EXPECT_THAT(refused(whole, "other"), HasSubstr("was saved with another model"));
  for (const size_t at : {whole.size() - 1, whole.size() - 40, whole.size() / 2, size_t{40}, size_t{9}, size_t{13}}) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 16);
    EXPECT_THAT(refused(flipped), HasSubstr("is damaged or cut short")) << at;
  }
  for (const size_t size : {whole.size() - 1, whole.size() / 2, size_t{60}})
    EXPECT_THAT(refused(whole.substr(0, size)), HasSubstr("is damaged or cut short")) << size;
  EXPECT_THAT(refused(whole.substr(0, 30)), HasSubstr("is cut short"));
  EXPECT_THAT(refused(whole + "x"), HasSubstr("is damaged or cut short"));
  EXPECT_THAT(refused("GGUF" + whole.substr(4)), HasSubstr("is no saved sequence"));
  saved.write(whole);
  EngineOptions options{.device = "cpu"};
  options.kv = "f16";
  const auto other = Engine::load(path(), options);
  Runner& halves = language_engine(*other).runner();
  EXPECT_THAT(refusal_of([&] { restore_sequence(saved.path, halves, halves.open(), "this"); }),
              HasSubstr("was saved with a cache of f32, but this one is of f16"));
  options.kv = "f32", options.context = 47;
  const auto shorter = Engine::load(path(), options);
  Runner& small = language_engine(*shorter).runner();
  EXPECT_THAT(refusal_of([&] { restore_sequence(saved.path, small, small.open(), "this"); }),
              HasSubstr("its 48 tokens don't fit the context of 47"));
  EXPECT_EQ(read(runner, sequence, prompts.b), wanted);
}

// The states are part of what a runner needs before it is loaded, however short its context.
TEST_P(HybridState, SlotsAreCounted) {
  const auto engine = load_engine(path(), "f32");
  LanguageEngine& language = language_engine(*engine);
  EXPECT_GT(language.runner().slot_bytes(), 0);
  const auto many = language.make_runner(1, 5);
  EXPECT_EQ(many->slots().layout().bytes(), 5 * language.runner().slot_bytes());
}

TEST_P(HybridState, IsProvenOnTheEmulators) {
  const Prompts prompts(GetParam());
  for (const char* name : {"emu32", "emu64"}) {
    SCOPED_TRACE(name);
    const auto reference = load_engine(path(), "f32"), device = load_engine(path(), "f32", 2, name);
    const Agreement found = prove(*reference, *device, std::vector<int32_t>(prompts.a.begin(), prompts.a.begin() + 20));
    EXPECT_TRUE(found.agree) << found.first_divergent_node;
    EXPECT_TRUE(found.positive_control);
    EXPECT_TRUE(found.not_compared.empty());
    EXPECT_EQ(found.disagreements, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, HybridState,
                         testing::ValuesIn(std::vector<std::string>(std::begin(models), std::end(models))));

// Expert by expert: the goldens have them in the order of their numbers.
TEST(NemotronH, TokensGoToTheReferencesExperts) {
  for (const auto& [model, layers] : {std::pair<std::string, size_t>{"nemotron_h", 2}, {"nemotron_h_latent", 1}})
    for (const std::string device : {"cpu", "reference"}) {
      SCOPED_TRACE(model + " on " + device);
      const auto engine = load_engine(hybrid_path(model), "f32", 2, device);
      expect_routing(language_engine(*engine).runner(), Golden(hybrid_path(model, "golden.safetensors")), layers);
    }
}

TEST(NemotronH, QuantisedAgreesWithTheReference) {
  const auto ids = Prompts("nemotron_h").a;
  const Golden golden(hybrid_path("nemotron_h", "golden-Q8_0.safetensors"));
  const auto rows_of = [&](Engine& engine) {
    const auto logits = all_logits(language_engine(engine).runner(), ids);
    const auto n = static_cast<size_t>(engine.info().vocabulary);
    std::vector<float> kept;
    for (const int32_t row : golden.ids("rows"))
      kept.insert(kept.end(), logits.begin() + static_cast<int64_t>(static_cast<size_t>(row) * n),
                  logits.begin() + static_cast<int64_t>(static_cast<size_t>(row + 1) * n));
    return kept;
  };
  const std::string file = hybrid_path("nemotron_h", "model-Q8_0.gguf");
  for (const std::string device : {"cpu", "reference", "emu32"}) {
    const auto engine = load_engine(file, "f32", 2, device);
    const auto n = static_cast<size_t>(engine->info().vocabulary);
    EXPECT_LE(distance_of(golden.floats("logits_dequant"), rows_of(*engine), n).max_abs, 1e-3) << device;
  }
  // With activations of 8 bits a few tokens go to other experts, so the median of the rows is what counts.
  const auto engine = load_engine(file, "auto");
  const auto n = static_cast<size_t>(engine->info().vocabulary);
  const auto wanted = golden.floats("logits"), got = rows_of(*engine);
  std::vector<double> cosines;
  for (size_t at = 0; at < wanted.size(); at += n)
    cosines.push_back(distance_of(std::span(wanted).subspan(at, n), std::span(got).subspan(at, n), n).worst_cosine);
  std::nth_element(cosines.begin(), cosines.begin() + static_cast<int64_t>(cosines.size() / 2), cosines.end());
  EXPECT_GT(cosines[cosines.size() / 2], 0.995);
}

TEST(NemotronH, RefusesExpertsThatDoNotFit) {
  const auto with = [](const std::string& override_kv) {
    EngineOptions options{.device = "cpu"};
    options.override_kv = {"nemotron_h_moe." + override_kv};
    return refusal_of([&] { Engine::load(hybrid_path("nemotron_h"), options); });
  };
  EXPECT_THAT(with("expert_used_count=int:9"), HasSubstr("nemotron_h_moe.expert_used_count"));
  EXPECT_THAT(with("expert_count=int:7"), HasSubstr("nemotron_h_moe.expert_count"));
  EXPECT_THAT(with("expert_group_count=int:3"), HasSubstr("nemotron_h_moe.expert_group_count"));
  EXPECT_THAT(with("expert_shared_feed_forward_length=int:63"), HasSubstr("blk.1.ffn_up_shexp.weight"));
  EXPECT_THAT(with("moe_latent_size=int:32"), HasSubstr("blk.1.ffn_up_exps.weight"));
  ModelFile file = open_model(hybrid_path("nemotron_h"));
  std::erase_if(file.tensors, [](const StoredTensor& t) { return t.name == "blk.4.exp_probs_b.bias"; });
  const Weights weights(file);
  EXPECT_THAT(refusal_of([&] { load_language_model(file, weights); }), HasSubstr("blk.4.exp_probs_b.bias"));
}

// Converted from the folder, it is the GGUF that the reference converter makes.
TEST_P(HybridState, AFolderBecomesTheSameFile) {
  const ModelFile folder = open_model(hybrid_path(GetParam(), "")), gguf = open_model(hybrid_path(GetParam()));
  ASSERT_EQ(folder.tensors.size(), gguf.tensors.size());
  for (const StoredTensor& wanted : gguf.tensors) {
    const StoredTensor* found = folder.find(wanted.name);
    ASSERT_NE(found, nullptr) << wanted.name;
    EXPECT_EQ(found->sizes, wanted.sizes) << wanted.name;
    const auto a = found->load().to_floats(), b = wanted.load().to_floats();
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_FLOAT_EQ(a[i], b[i]) << wanted.name << ", element " << i;
  }
  for (const auto& [key, value] : gguf.meta->entries()) {
    if (!key.starts_with("nemotron_h") || key.ends_with(".context_length")) continue;  // there 2^20 for every model
    const MetaValue* found = folder.meta->find(key);
    ASSERT_NE(found, nullptr) << key;
    EXPECT_EQ(found->describe(), value.describe()) << key;
  }
  const TemporaryFile converted;
  convert_model(folder, converted.path, "f32");
  const auto ids = Prompts(GetParam()).a;
  const auto engine = load_engine(converted.path.string(), "f32"),
             wanted = load_engine(hybrid_path(GetParam(), ""), "f32");
  EXPECT_EQ(all_logits(language_engine(*engine).runner(), ids), all_logits(language_engine(*wanted).runner(), ids));
}

TEST(NemotronH, RefusesNumbersThatMakeNoSense) {
  const auto with = [](const std::string& override_kv) {
    EngineOptions options{.device = "cpu"};
    options.override_kv = {"nemotron_h." + override_kv};
    return refusal_of([&] { Engine::load(hybrid_path("nemotron_h_dense"), options); });
  };
  EXPECT_THAT(with("block_count=int:3"),
              HasSubstr("nemotron_h.attention.head_count_kv is for 4 layers, but there are 3"));
  EXPECT_THAT(with("ssm.inner_size=int:191"),
              HasSubstr("nemotron_h.ssm.time_step_rank 12 doesn't divide nemotron_h.ssm.inner_size 191"));
  EXPECT_THAT(with("ssm.inner_size=int:96"), HasSubstr("blk.0.ssm_in.weight"));
  EXPECT_THAT(with("ssm.group_count=int:5"), HasSubstr("nemotron_h.ssm.group_count 5 doesn't divide"));
  EXPECT_THAT(with("ssm.state_size=int:1000"), HasSubstr("nemotron_h.ssm.state_size is 1000, more than 256"));
  EXPECT_THAT(with("ssm.conv_kernel=int:1"), HasSubstr("nemotron_h.ssm.conv_kernel is 1"));
  EXPECT_THAT(with("attention.head_count=int:3"), HasSubstr("nemotron_h.attention.head_count_kv 2 doesn't divide"));
  EXPECT_THAT(with("nextn_predict_layers=int:4"), HasSubstr("nemotron_h.nextn_predict_layers is 4 of 4 blocks"));
}

TEST(NemotronH, RefusesAFolderWhosePatternDoesNotFit) {
  const auto folder = std::filesystem::path(testing::TempDir()) / fmt::format("nemotron-{}", ::getpid());
  std::filesystem::create_directories(folder);
  for (const char* name : {"model.safetensors", "tokenizer.json", "tokenizer_config.json"})
    std::filesystem::copy_file(hybrid_path("nemotron_h_dense", name), folder / name,
                               std::filesystem::copy_options::overwrite_existing);
  const std::string config = hybrid_path("nemotron_h_dense", "config.json");
  const auto with = [&](const char* key, const Json& value) {
    Json json = parse_json(MappedFile::open(config)->text(), config);
    json[key] = value;
    std::ofstream(folder / "config.json") << json.dump();
    return refusal_of([&] { open_model(folder); });
  };
  EXPECT_EQ(with("use_cache", false), "accepted");
  EXPECT_THAT(with("hybrid_override_pattern", "M-*MM"),
              HasSubstr("\"hybrid_override_pattern\" is of 5 layers, but \"num_hidden_layers\" is 4"));
  EXPECT_THAT(with("hybrid_override_pattern", "M-*X"), HasSubstr("\"hybrid_override_pattern\" holds 'X'"));
  EXPECT_THAT(with("num_hidden_layers", 5), HasSubstr("\"hybrid_override_pattern\" is of 4 layers"));
  EXPECT_THAT(with("mlp_hidden_act", "silu"), HasSubstr("\"mlp_hidden_act\" is \"silu\""));
  EXPECT_THAT(with("n_groups", 7), HasSubstr("a multiple of \"n_groups\""));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace consonant
