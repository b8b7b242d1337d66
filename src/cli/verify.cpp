// SPDX-License-Identifier: Apache-2.0
#include "consonant/verify.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/log.hpp"
#include "cli/commands.hpp"
#include "cli/files.hpp"
#include "cli/models.hpp"
#include "cli/options.hpp"
#include "cli/prove.hpp"
#include "engine/version.hpp"

namespace consonant {
namespace {

struct Record {
  ModelOptions model;
  std::optional<std::string> tokens, text, audio;
  std::vector<std::string> taps;
  std::string output, language = "auto", task = "transcribe", prompt;
  int64_t steps = 0;

  std::string describe() const;
  int run_speech(World& world) const;
  int run(World& world) const;
};

// What of the command line changes the numbers, for the header of the recording.
std::string Record::describe() const {
  std::string text = fmt::format("--device {} --precision {}", model.engine.device, model.engine.precision);
  if (model.engine.threads > 0) text += fmt::format(" --threads {}", model.engine.threads);
  if (!model.engine.kv.empty()) text += " --kv " + model.engine.kv;
  if (model.engine.context > 0) text += fmt::format(" --context {}", model.engine.context);
  for (const std::string& o : model.engine.override_kv) text += " --override-kv " + o;
  if (steps > 0) text += fmt::format(" --steps {}", steps);
  if (audio) text += fmt::format(" --audio {} -l {} --task {}", *audio, language, task);
  if (!prompt.empty()) text += " --prompt " + prompt;
  return text;
}

int Record::run_speech(World& world) const {
  if (text) bad_usage("verify record: --audio and --text exclude each other");
  if (steps > 0) bad_usage("verify record: --steps has no place with --audio, whose text ends by itself");
  SpeechRecordOptions options;
  if (tokens) options.tokens = parse_tokens(read_file(*tokens), *tokens);
  options.transcribe.language = language;
  options.transcribe.task = task == "translate" ? SpeechTask::translate : SpeechTask::transcribe;
  options.transcribe.prompt = prompt;
  options.taps = taps;
  options.options_text = describe();
  const std::unique_ptr<AudioInput> sound = world.speech.open(*audio, {});
  const std::shared_ptr<Transcriber> transcriber = world.speech.load(resolve_model(model.path), model.engine);
  world.speech.record(*transcriber, *sound, options, output);
  log_verbose("{}: recorded, the positive control is bit-exact", output);
  return 0;
}

int Record::run(World& world) const {
  if (audio) return run_speech(world);
  if (!tokens && !text) bad_usage("verify record: --tokens FILE, --text TEXT or --audio FILE is needed");
  if (text) require_utf8(*text, "--text");
  RecordOptions options;
  if (tokens) options.tokens = parse_tokens(read_file(*tokens), *tokens);
  const std::shared_ptr<Engine> engine = model.load(world);
  if (text) options.tokens = engine->tokenize(*text, {.parse_special = true, .add_special = true});
  if (options.tokens.empty()) bad_input("{}: there is no token to evaluate", tokens ? *tokens : "--text");
  for (const int32_t id : options.tokens)
    if (id >= engine->info().vocabulary)
      bad_input("token id {}, but the model's go from 0 to {}", id, engine->info().vocabulary - 1);
  options.steps = steps;
  options.taps = taps;
  options.options_text = describe();
  world.record(*engine, options, output);
  log_verbose("{}: {} tokens recorded, the positive control is bit-exact", output,
              int64_t(options.tokens.size()) + steps);
  return 0;
}

struct Compare {
  std::string reference, other;
  bool json = false;

  std::string table(const Comparison& c) const;
  int run(World& world) const;
};

std::string Compare::table(const Comparison& c) const {
  size_t width = 4;
  for (const NodeComparison& n : c.nodes) width = std::max(width, n.name.size());
  std::string text = fmt::format("{:<{}} {:>14} {:>12} {:>12} {:>7}  {}\n", "node", width, "1 - cosine", "max abs",
                                 "max rel", "argmax", "source");
  for (const NodeComparison& n : c.nodes)
    text += fmt::format("{:<{}} {:>14.3e} {:>12.3e} {:>12.3e} {:>7}  {}{}\n", n.name, width, 1 - n.cosine, n.max_abs,
                        n.max_rel, n.argmax_disagreements, n.source, n.within_tolerance ? "" : "  PAST TOLERANCE");
  text += fmt::format("decisions: {}, of which {} disagree\n", c.decisions, c.disagreements);
  if (!c.first_divergent_node.empty())
    text += fmt::format("first node past tolerance: {} ({})\n", c.first_divergent_node, c.source);
  if (!c.not_compared.empty())
    text += fmt::format("not compared, as only one recording has them: {} node{}, the first {}\n",
                        c.not_compared.size(), c.not_compared.size() == 1 ? "" : "s", c.not_compared.front());
  if (!c.positive_control) text += "a recording lacks its positive control: nothing can be said to agree\n";
  return text + (c.agree ? "the recordings agree\n" : "the recordings DISAGREE\n");
}

int Compare::run(World& world) const {
  const Comparison c = world.compare(reference, other);
  if (json) {
    nlohmann::ordered_json document;
    document["worst_cosine"] = c.worst_cosine;
    document["max_abs"] = c.max_abs;
    document["decisions"] = c.decisions;
    document["disagreements"] = c.disagreements;
    document["first_divergent_node"] =
        c.first_divergent_node.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(c.first_divergent_node);
    document["source"] = c.source.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(c.source);
    document["positive_control"] = c.positive_control;
    document["not_compared"] = c.not_compared;
    world.out.line(document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else {
    world.out.write(table(c));
  }
  return c.agree ? 0 : int(Exit::disagree);
}

struct Ops {
  OpsOptions options;
  bool list = false, json = false;

  int run(World& world) const;
};

std::string table(const OpsReport& report) {
  std::string text = fmt::format("{}\n{:<16} {:<10} {:>6} {:>12} {:>12}\n", report.machine, "kernel", "device", "cases",
                                 "worst error", "tolerance");
  for (const KernelReport& r : report.kernels) {
    text += fmt::format("{:<16} {:<10} {:>6} {:>12.2e} {:>12.2e}{}\n", r.kernel, r.device, r.cases, r.error,
                        r.tolerance, r.faults.empty() ? "" : "  WRONG");
    for (const std::string& fault : r.faults) text += "  " + fault + "\n";
  }
  return text;
}

// JSON has no infinity: an error without a number is null.
nlohmann::ordered_json document(const OpsReport& report) {
  auto kernels = nlohmann::ordered_json::array();
  for (const KernelReport& r : report.kernels)
    kernels.push_back({{"op", r.op},
                       {"kernel", r.kernel},
                       {"device", r.device},
                       {"takes", r.takes},
                       {"cases", r.cases},
                       {"worst_error", std::isfinite(r.error) ? nlohmann::ordered_json(r.error) : nullptr},
                       {"tolerance", r.tolerance},
                       {"faults", r.faults}});
  return {{"kind", "verify_ops"}, {"version", version}, {"machine", report.machine}, {"kernels", kernels}};
}

int Ops::run(World& world) const {
  if (list) {
    world.out.write(describe_ops());
    return 0;
  }
  const OpsReport report = world.verify_ops(options);
  if (json)
    world.out.line(document(report).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  else
    world.out.write(table(report));
  const bool right =
      std::all_of(report.kernels.begin(), report.kernels.end(), [](const auto& r) { return r.faults.empty(); });
  return right ? 0 : int(Exit::disagree);
}

// `verify -m M ops`: an option of `verify` that no subcommand would hear of.
void refuse_misplaced(const CLI::App& verify) {
  if (verify.get_subcommands().empty()) return;
  for (const CLI::Option* option : verify.get_options())
    if (option->count() > 0 && !option->check_lname("verbose") && !option->check_lname("quiet"))
      bad_usage("verify: {} stands before {}; options go behind it", option->get_name(),
                verify.get_subcommands().front()->get_name());
}

}  // namespace

Action add_verify(CLI::App& program) {
  CLI::App& app = add_command(program, "verify", "Prove a device against the CPU; record, compare",
                              "consonant verify -m model.gguf --device cuda\n"
                              "  consonant verify record -m model.gguf --text \"Once upon a time\" -o a.safetensors\n"
                              "  consonant verify compare a.safetensors b.safetensors");
  app.require_subcommand(0, 1);
  const Action prove = add_prove(app);

  CLI::App& record_app =
      add_command(app, "record", "Evaluate tokens and keep every position's logits",
                  "consonant verify record -m model.gguf --tokens ids.txt --tap \"blk.*\" -o a.safetensors");
  auto record = std::make_shared<Record>();
  CLI::Option* tokens =
      record_app.add_option("--tokens", record->tokens, "Token ids from a file, separated by white space")
          ->type_name("FILE");
  record_app.add_option("--text", record->text, "Text, tokenised with BOS as the model wants it")->excludes(tokens);
  record_app.add_option("--audio", record->audio, "Sound, for a speech model: its first window and what is said there")
      ->type_name("FILE");
  record_app.add_option("-l,--language", record->language, "Of --audio: what is spoken")->capture_default_str();
  record_app.add_option("--task", record->task, "Of --audio: transcribe or translate")
      ->check(CLI::IsMember({"transcribe", "translate"}))
      ->capture_default_str();
  record_app.add_option("--prompt", record->prompt, "Of --audio: text that might have come before");
  record_app.add_option("-o,--output", record->output, "The recording, a safetensors file")
      ->type_name("FILE")
      ->required();
  add_repeatable(record_app, "--tap", record->taps,
                 "Keep the nodes whose names match this glob as well; may be repeated")
      ->type_name("GLOB");
  record_app.add_option("--steps", record->steps, "Then generate so many more, greedily")
      ->type_name("N")
      ->check(whole_number(0, int64_t(1) << 30))
      ->capture_default_str();
  record->model.add(record_app);

  CLI::App& compare_app = add_command(app, "compare", "Compare a recording with a reference; exit 7 if they disagree",
                                      "consonant verify compare reference.safetensors other.safetensors --json");
  auto compare = std::make_shared<Compare>();
  compare_app.add_option("A", compare->reference, "The reference")->required();
  compare_app.add_option("B", compare->other, "What is compared with it")->required();
  compare_app.add_flag("--json", compare->json, "One JSON document");

  CLI::App& ops_app = add_command(app, "ops", "Run every kernel over its cases; exit 7 if one isn't the reference's",
                                  "consonant verify ops --device cuda --op attend");
  auto ops = std::make_shared<Ops>();
  ops_app
      .add_option("--device", ops->options.device,
                  "The device whose kernels are run: cpu, reference, cuda, cuda:1, hip, emu32 or emu64")
      ->type_name("DEVICE")
      ->capture_default_str();
  ops_app.add_option("--op", ops->options.op, "This op, or this kernel, alone")->type_name("NAME");
  ops_app.add_flag("--reduced", ops->options.reduced, "Small cases only, for tools that slow each access down");
  CLI::Option* json = ops_app.add_flag("--json", ops->json, "One JSON document");
  ops_app.add_flag("--list", ops->list, "Run nothing: the ops and what their kernels take, as docs/ops.md has it")
      ->excludes(json);

  return [=, verify = &app, record_command = &record_app, compare_command = &compare_app,
          ops_command = &ops_app](World& world) {
    refuse_misplaced(*verify);
    if (ops_command->parsed()) return ops->run(world);
    if (record_command->parsed()) return record->run(world);
    if (compare_command->parsed()) return compare->run(world);
    return prove(world);
  };
}

}  // namespace consonant
