// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "base/error.hpp"
#include "base/log.hpp"
#include "cli/answer.hpp"
#include "cli/commands.hpp"
#include "cli/files.hpp"
#include "cli/messages.hpp"
#include "cli/options.hpp"

namespace consonant {
namespace {

struct Generate {
  ModelOptions model;
  GenerationFlags generation;
  std::optional<std::string> text, file, tokens;
  bool raw = false, emit_tokens = false, json = false;

  std::vector<int32_t> prompt(const Engine& engine) const;
  int run(World& world) const;
};

std::vector<int32_t> Generate::prompt(const Engine& engine) const {
  if (tokens) {
    std::vector<int32_t> ids = parse_tokens(read_file(*tokens), *tokens);
    if (ids.empty()) bad_input("{}: the prompt is empty: there is no token id in it", *tokens);
    for (const int32_t id : ids)
      if (id >= engine.info().vocabulary)
        bad_input("{}: token id {}, but the model's go from 0 to {}", *tokens, id, engine.info().vocabulary - 1);
    return ids;
  }
  const std::string prompt = file ? read_text(*file) : *text;
  if (!file) require_utf8(prompt, "-p");
  if (prompt.empty()) bad_input("{}: the prompt is empty", file ? *file : "-p");
  if (raw || !engine.info().has_chat_template)
    return engine.tokenize(prompt, {.parse_special = true, .add_special = true});
  return engine.tokenize(engine.render_chat(chat_variables({{"user", prompt}})),
                         {.parse_special = true, .add_special = false});
}

int Generate::run(World& world) const {
  GenerateOptions options = generation.options();
  options.logprobs = json;
  if (!text && !file && !tokens) bad_usage("generate: a prompt is needed: -p TEXT, -f FILE or --tokens FILE");
  const std::shared_ptr<Engine> engine = model.load(world);
  const std::vector<int32_t> ids = prompt(*engine);
  announce(options);
  const std::unique_ptr<Session> session = engine->session();
  const Streaming streaming = json ? Streaming::nothing : emit_tokens ? Streaming::tokens : Streaming::text;
  const Generation result = answer(world, *session, ids, options, streaming);
  if (json) world.out.line(to_json(result, options, engine->info()));
  if (streaming == Streaming::text) world.out.write("\n");
  return report(result, options);
}

}  // namespace

Action add_generate(CLI::App& program) {
  CLI::App& app = add_command(program, "generate", "Text from a prompt or token ids",
                              "consonant generate -m model.gguf -p \"Why is the sky blue?\" -n 200");
  auto command = std::make_shared<Generate>();
  CLI::Option* text =
      app.add_option("-p,--prompt", command->text, "The prompt; as a user's message if the model has a chat template");
  CLI::Option* file =
      app.add_option("-f,--file", command->file, "The prompt from a file, every byte of it")->type_name("FILE");
  CLI::Option* tokens =
      app.add_option("--tokens", command->tokens, "The prompt as token ids from a file, separated by white space")
          ->type_name("FILE");
  text->excludes(file)->excludes(tokens);
  file->excludes(tokens);
  app.add_flag("--raw", command->raw, "No chat template: the prompt as it is, after BOS if the model wants one");
  command->model.add(app);
  command->model.add_draft(app);
  command->generation.add(app);
  CLI::Option* emit = app.add_flag("--emit-tokens", command->emit_tokens, "Token ids, one a line, instead of text");
  app.add_flag("--json", command->json, "One JSON document with text, tokens, log-probabilities and timings")
      ->excludes(emit);
  return [command](World& world) { return command->run(world); };
}

}  // namespace consonant
