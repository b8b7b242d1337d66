// SPDX-License-Identifier: Apache-2.0
#include "cli/prove.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "cli/files.hpp"
#include "cli/models.hpp"
#include "cli/options.hpp"

namespace consonant {
namespace {

using Json = nlohmann::ordered_json;

// What is evaluated unless something else is given: a few hundred tokens of any tokenizer.
constexpr const char* usual_text =
    "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, it "
    "was "
    "the epoch of belief, it was the epoch of incredulity, it was the season of Light, it was the season of Darkness, "
    "it was "
    "the spring of hope, it was the winter of despair.";

struct Prove {
  ModelOptions model;
  std::optional<std::string> tokens, text, audio, recording;
  std::string language = "auto", output;
  bool json = false;

  EngineOptions reference_options() const;
  int64_t enough_positions() const;
  std::vector<int32_t> wanted_tokens(const Engine& engine) const;
  Agreement prove(World& world) const;
  bool has_sound() const { return audio || (recording && recorded_sound(*recording)); }
  Agreement prove_speech(World& world) const;
  int run(World& world) const;
  int bisect(World& world) const;
};

// The CPU, all in float32, with the device's type of cache.
EngineOptions Prove::reference_options() const {
  EngineOptions options = model.engine;
  options.device = "cpu", options.precision = "f32";
  if (options.kv.empty()) options.kv = model.engine.precision == "f32" ? "f32" : "f16";
  return options;
}

std::vector<int32_t> Prove::wanted_tokens(const Engine& engine) const {
  std::vector<int32_t> ids;
  if (recording)
    ids = recorded_tokens(*recording);
  else if (tokens)
    ids = parse_tokens(read_file(*tokens), *tokens);
  else
    ids = engine.tokenize(text ? *text : usual_text, {.parse_special = true, .add_special = true});
  if (ids.empty()) bad_input("there is no token to evaluate");
  for (const int32_t id : ids)
    if (id < 0 || id >= engine.info().vocabulary)
      bad_input("token id {}, but the model's go from 0 to {}", id, engine.info().vocabulary - 1);
  return ids;
}

// At least as many as the tokens: a token has a byte or more, but for those that a model adds.
int64_t Prove::enough_positions() const {
  constexpr int64_t added = 16;
  if (recording) return std::ssize(recorded_tokens(*recording));
  if (tokens) return std::ssize(parse_tokens(read_file(*tokens), *tokens));
  return std::ssize(text ? *text : std::string(usual_text)) + added;
}

Agreement Prove::prove(World& world) const {
  EngineOptions mine = model.engine, theirs = reference_options();
  // Both caches must be alike, and needn't hold more than is evaluated.
  if (mine.context == 0) mine.context = theirs.context = std::max<int64_t>(enough_positions(), 1);
  const std::string path = resolve_model(model.path);
  if (world.speech.holds_speech(path)) bad_usage("{}: a speech model; its sound is needed: --audio FILE", path);
  const std::shared_ptr<Engine> reference = world.load(path, theirs);
  const std::vector<int32_t> ids = wanted_tokens(*reference);
  if (static_cast<int64_t>(ids.size()) > mine.context)
    bad_input("{} tokens don't fit the context of {}", ids.size(), mine.context);
  const std::shared_ptr<Engine> device = world.load(path, mine);
  return world.prove(*reference, *device, ids);
}

Agreement Prove::prove_speech(World& world) const {
  if (text) bad_usage("verify: --audio goes with --tokens alone");
  SpeechRecordOptions options;
  if (recording) options.tokens = recorded_tokens(*recording);
  if (tokens) options.tokens = parse_tokens(read_file(*tokens), *tokens);
  options.transcribe.language = language;
  const std::unique_ptr<AudioInput> sound = audio ? world.speech.open(*audio, {}) : recorded_sound(*recording);
  const std::string path = resolve_model(model.path);
  const auto reference = world.speech.load(path, reference_options()), device = world.speech.load(path, model.engine);
  return world.speech.prove(*reference, *device, *sound, options);
}

int Prove::run(World& world) const {
  model.check();
  if (model.path.empty()) bad_usage("verify: -m MODEL is needed");
  const Agreement agreement = audio ? prove_speech(world) : prove(world);
  const std::string report = json ? agreement_json(agreement) + "\n" : agreement_page(agreement);
  if (output.empty()) {
    world.out.write(report);
  } else {
    AtomicFile file(output);
    file.write(report);
    file.commit();
  }
  return agreement.agree ? 0 : int(Exit::disagree);
}

int Prove::bisect(World& world) const {
  model.check();
  const Agreement a = has_sound() ? prove_speech(world) : prove(world);
  if (json) {
    world.out.line(agreement_json(a));
  } else if (a.first_divergent_node.empty()) {
    world.out.line(fmt::format("{} nodes, each within its tolerance with the reference's inputs", a.nodes.size()));
  } else {
    const auto node = std::find_if(a.nodes.begin(), a.nodes.end(),
                                   [&](const NodeAgreement& n) { return n.name == a.first_divergent_node; });
    world.out.line(fmt::format("{} ({}), op {}, kernel {}: error {:.3e}, tolerance {:.3e}", node->name, node->source,
                               node->op, node->kernel, node->error, node->tolerance));
  }
  return a.agree ? 0 : int(Exit::disagree);
}

// Of the nodes of one kernel: the worst, and how many.
struct KernelRow {
  int64_t nodes = 0, past = 0;
  NodeAgreement worst;
};

std::map<std::string, KernelRow> by_kernel(const Agreement& agreement) {
  std::map<std::string, KernelRow> rows;
  for (const NodeAgreement& n : agreement.nodes) {
    KernelRow& row = rows[n.kernel];
    if (row.nodes++ == 0 || !(n.error <= row.worst.error)) row.worst = n;
    row.past += n.within_tolerance ? 0 : 1;
  }
  return rows;
}

struct Replay {
  ModelOptions model;
  std::string recording, output;

  int run(World& world) const {
    ModelOptions own = model;
    own.check();
    if (const std::string path = resolve_model(model.path); world.speech.holds_speech(path)) {
      const std::shared_ptr<Transcriber> transcriber = world.speech.load(path, own.engine);
      world.speech.replay(*transcriber, recording, output);
    } else {
      const std::shared_ptr<Engine> engine = own.load(world);
      world.replay(*engine, recording, output);
    }
    log_verbose("{}: replayed", output);
    return 0;
  }
};

// A number that JSON has, or null.
Json number(double x) { return std::isfinite(x) ? Json(x) : Json(); }

}  // namespace

std::string agreement_page(const Agreement& a) {
  std::string text =
      fmt::format("# {} {} the CPU on {}\n\n", a.device, a.agree ? "agrees with" : "DISAGREES with", a.model);
  text += fmt::format("- consonant {}; {}\n", a.version, a.driver.empty() ? "no driver" : a.driver);
  text += fmt::format("- positive control (each device twice, bit for bit): {}\n",
                      a.positive_control ? "passed" : "FAILED");
  text += fmt::format(
      "- logits, teacher-forced: worst cosine {:.9f} (wanted {}), max abs {:.3e}, {} decisions, {} disagree\n",
      a.worst_cosine, a.least_cosine, a.max_abs, a.decisions, a.disagreements);
  if (a.choices > 0) {
    text += fmt::format("- experts: {} choices, {} differ", a.choices, a.choices_differ);
    text += a.choices_differ == 0 ? "\n"
                                  : fmt::format(
                                        " where scores nearly tie: their logits differ by {:.2e} at most (allowed "
                                        "{:.0e}); the logits above follow "
                                        "the CPU's choices\n",
                                        a.choices_drift, a.most_drift);
  }
  if (a.first_divergent_node.empty())
    text += fmt::format("- {} nodes, each within its tolerance with the reference's inputs\n", a.nodes.size());
  else
    text += fmt::format("- first node past its tolerance: `{}` ({})\n", a.first_divergent_node, a.source);
  if (!a.not_compared.empty())
    text += fmt::format("- {} nodes have no counterpart in the reference, the first `{}`\n", a.not_compared.size(),
                        a.not_compared.front());
  text +=
      "\n| kernel | nodes | past tolerance | worst error | tolerance | drift there | worst node | source |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const auto& [kernel, row] : by_kernel(a))
    text += fmt::format("| {} | {} | {} | {:.2e} | {:.2e} | {:.2e} | `{}` | {} |\n", kernel, row.nodes, row.past,
                        row.worst.error, row.worst.tolerance, row.worst.drift, row.worst.name, row.worst.source);
  text += "\nA step runs:";
  for (const auto& [kernel, count] : a.kernels) text += fmt::format(" {} x{}", kernel, count);
  return text + "\n";
}

std::string agreement_json(const Agreement& a) {
  Json json = {{"model", a.model},
               {"device", a.device},
               {"driver", a.driver},
               {"version", a.version},
               {"agree", a.agree},
               {"positive_control", a.positive_control},
               {"worst_cosine", number(a.worst_cosine)},
               {"least_cosine", a.least_cosine},
               {"max_abs", number(a.max_abs)},
               {"decisions", a.decisions},
               {"disagreements", a.disagreements},
               {"expert_choices", a.choices},
               {"expert_choices_differ", a.choices_differ},
               {"expert_choices_drift", number(a.choices_drift)},
               {"first_divergent_node", a.first_divergent_node.empty() ? Json() : Json(a.first_divergent_node)},
               {"source", a.source.empty() ? Json() : Json(a.source)},
               {"not_compared", a.not_compared}};
  json["kernels"] = Json::object();
  for (const auto& [kernel, count] : a.kernels) json["kernels"][kernel] = count;
  json["nodes"] = Json::array();
  for (const NodeAgreement& n : a.nodes)
    json["nodes"].push_back({{"name", n.name},
                             {"op", n.op},
                             {"kernel", n.kernel},
                             {"source", n.source},
                             {"error", number(n.error)},
                             {"tolerance", n.tolerance},
                             {"drift", number(n.drift)},
                             {"within_tolerance", n.within_tolerance}});
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

namespace {

void add_inputs(CLI::App& app, Prove& prove) {
  CLI::Option* tokens =
      app.add_option("--tokens", prove.tokens, "Token ids from a file, separated by white space")->type_name("FILE");
  app.add_option("--text", prove.text, "Text, tokenised with BOS as the model wants it")->excludes(tokens);
  app.add_flag("--json", prove.json, "One JSON document, with every node");
}

}  // namespace

Action add_prove(CLI::App& verify) {
  auto whole = std::make_shared<Prove>();
  add_inputs(verify, *whole);
  verify.add_option("--audio", whole->audio, "Sound, for a speech model: its first window and what is said there")
      ->type_name("FILE");
  verify.add_option("-l,--language", whole->language, "Of --audio: what is spoken")->capture_default_str();
  verify.add_option("-o,--output", whole->output, "Write the report to a file")->type_name("FILE");
  whole->model.add(verify, false);

  CLI::App& bisect_app =
      add_command(verify, "bisect", "Name the first node that a device miscomputes; exit 7 if there is one",
                  "consonant verify bisect reference.safetensors -m model.gguf --device cuda");
  auto bisect = std::make_shared<Prove>();
  bisect_app.add_option("RECORDING", bisect->recording, "Whose tokens are evaluated")->required();
  bisect_app.add_option("--audio", bisect->audio, "Of a speech model's recording: a sound instead of its own")
      ->type_name("FILE");
  bisect_app.add_flag("--json", bisect->json, "One JSON document, with every node");
  bisect->model.add(bisect_app);

  CLI::App& replay_app =
      add_command(verify, "replay", "Evaluate a recording's tokens (and sound) anew and record the same nodes",
                  "consonant verify replay cpu.safetensors -m model.gguf --device cuda -o cuda.safetensors");
  auto replay = std::make_shared<Replay>();
  replay_app.add_option("RECORDING", replay->recording, "The recording")->required();
  replay_app.add_option("-o,--output", replay->output, "The new recording, a safetensors file")
      ->type_name("FILE")
      ->required();
  replay->model.add(replay_app);

  return [=, bisect_command = &bisect_app, replay_command = &replay_app](World& world) {
    if (bisect_command->parsed()) return bisect->bisect(world);
    if (replay_command->parsed()) return replay->run(world);
    return whole->run(world);
  };
}

}  // namespace consonant
