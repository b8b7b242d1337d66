// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "cli/commands.hpp"
#include "cli/files.hpp"
#include "cli/options.hpp"

namespace consonant {
namespace {

struct Tokenize {
  ModelOptions model;
  std::optional<std::string> text, file;
  bool no_special = false, add_special = false, decode = false, json = false;

  int run(World& world) const;
};

int Tokenize::run(World& world) const {
  if (!text && !file) bad_usage("tokenize: TEXT or -f FILE is needed");
  if (text && file) bad_usage("tokenize: TEXT and -f FILE are both given; wanted is one of them");
  const std::string input = file ? read_file(*file) : *text;
  const std::string source = file ? *file : "TEXT";
  if (!decode) require_utf8(input, source);
  const std::shared_ptr<Engine> engine = model.load(world);
  if (!decode) {
    world.out.line(
        nlohmann::json(engine->tokenize(input, {.parse_special = !no_special, .add_special = add_special})).dump());
    return 0;
  }
  const std::string result = engine->detokenize(parse_tokens(input, source));
  if (json) {
    world.out.line(nlohmann::json(result).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    world.out.write(result);
    if (world.out.terminal()) world.out.write("\n");
  }
  return 0;
}

}  // namespace

Action add_tokenize(CLI::App& program) {
  CLI::App& app = add_command(program, "tokenize", "Text to token ids, as a JSON array, and back",
                              "consonant tokenize -m model.gguf \"Hello, world\"\n"
                              "  consonant tokenize -m model.gguf --decode \"[19556, 28, 905]\"");
  auto command = std::make_shared<Tokenize>();
  app.add_option("TEXT", command->text, "The text (after -- if it begins with a dash)");
  app.add_option("-f,--file", command->file, "The text from a file, every byte of it")->type_name("FILE");
  CLI::Option* no_special =
      app.add_flag("--no-special", command->no_special, "Special tokens written out in the text stay text");
  CLI::Option* add_special = app.add_flag("--add-special", command->add_special, "BOS and EOS as the model wants them");
  app.add_flag("--decode", command->decode, "Ids to text: exactly its bytes (on a terminal a newline follows)")
      ->excludes(no_special)
      ->excludes(add_special);
  command->model.add(app);
  app.add_flag("--json", command->json, "JSON: what ids are anyway; with --decode a JSON string");
  return [command](World& world) { return command->run(world); };
}

}  // namespace consonant
