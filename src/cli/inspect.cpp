// SPDX-License-Identifier: Apache-2.0
#include "formats/inspect.hpp"

#include <memory>

#include "base/error.hpp"
#include "cli/commands.hpp"
#include "cli/models.hpp"
#include "cli/options.hpp"

namespace consonant {
namespace {

struct Inspect {
  std::string path, model;
  bool tensors = false, json = false;

  int run(World& world) const {
    if (path.empty() == model.empty()) bad_usage("inspect: one file is needed: consonant inspect FILE");
    const ModelFile file = open_model(resolve_model(path.empty() ? model : path));
    if (json) {
      world.out.line(model_to_json(file, tensors).dump(-1, ' ', false, Json::error_handler_t::replace));
    } else {
      world.out.write(describe_model(file, tensors));
    }
    return 0;
  }
};

}  // namespace

Action add_inspect(CLI::App& program) {
  CLI::App& app =
      add_command(program, "inspect", "Metadata and tensors of a file", "consonant inspect model.gguf --tensors");
  auto command = std::make_shared<Inspect>();
  app.add_option("FILE", command->path, "GGUF file or Hugging Face folder");
  app.add_option("-m,--model", command->model, "The same, as the other commands have it")->type_name("PATH");
  app.add_flag("--tensors", command->tensors, "List the tensors too");
  app.add_flag("--json", command->json, "One JSON document");
  return [command](World& world) { return command->run(world); };
}

}  // namespace consonant
