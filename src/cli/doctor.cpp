// SPDX-License-Identifier: Apache-2.0
#include <hwy/targets.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "cli/commands.hpp"
#include "cli/models.hpp"
#include "cli/options.hpp"
#include "engine/memory_info.hpp"
#include "engine/version.hpp"

namespace consonant {
namespace {

using Json = nlohmann::ordered_json;

// The best vector instructions of this CPU for which kernels are compiled. Highway numbers its targets so that the
// lowest bit is the best.
std::string vectors() {
  const auto targets = hwy::SupportedTargets() & HWY_TARGETS;
  return targets == 0 ? "none" : hwy::TargetName(targets & (~targets + 1));
}

struct Doctor {
  ModelOptions model;
  bool json = false;

  Json examine(World& world) const;
  int run(World& world) const;
};

Json describe_placement(const ModelInfo& info, const Placement& placement) {
  Json json;
  json["path"] = info.path;
  json["architecture"] = info.architecture;
  json["format"] = info.format;
  json["device"] = info.device;
  json["threads"] = info.threads;
  json["precision"] = info.precision;
  json["weight_bytes"] = placement.weight_bytes;
  json["cache"] = info.kv;
  json["context"] = info.context;
  json["cache_bytes"] = placement.cache_bytes_per_position * info.context;
  json["step_bytes"] = placement.arena_bytes;
  json["needed_bytes"] =
      placement.weight_bytes + placement.cache_bytes_per_position * info.context + placement.arena_bytes;
  json["ops"] = Json::object();
  for (const auto& [op, count] : placement.ops) json["ops"][op] = count;
  json["not_placed"] = Json::array();  // had there been any, loading had refused with the list
  return json;
}

Json examine_model(World& world, const ModelOptions& options) {
  const std::string path = resolve_model(options.path);
  if (world.speech.holds_speech(path)) {
    const std::shared_ptr<Transcriber> transcriber = world.speech.load(path, options.engine);
    return describe_placement(transcriber->info(), world.speech.placement(*transcriber));
  }
  const std::shared_ptr<Engine> engine = options.load(world);
  return describe_placement(engine->info(), world.placement(*engine));
}

Json Doctor::examine(World& world) const {
  model.check();
  Json json;
  json["version"] = version;
  json["devices"] = {{{"name", "cpu"}, {"vectors", vectors()}}, {{"name", "reference"}, {"vectors", "none"}}};
  const int64_t memory = available_memory();
  json["available_bytes"] = memory >= 0 ? Json(memory) : Json();
  if (!model.path.empty()) json["model"] = examine_model(world, model);
  return json;
}

std::string megabytes(int64_t bytes) { return fmt::format("{:.1f} MB", double(bytes) / 1e6); }

std::string describe(const Json& json) {
  std::string text = fmt::format("consonant {}\n", json["version"].get<std::string>());
  text += fmt::format("devices    cpu ({}), reference (naive kernels, for comparison)\n",
                      json["devices"][0]["vectors"].get<std::string>());
  text += "memory     " +
          (json["available_bytes"].is_null() ? "unknown" : megabytes(json["available_bytes"]) + " available") + "\n";
  if (!json.contains("model")) return text + "with -m MODEL: what that model needs and runs\n";
  const Json& m = json["model"];
  text += fmt::format("model      {} ({}, {})\n", m["path"].get<std::string>(), m["architecture"].get<std::string>(),
                      m["format"].get<std::string>());
  text += fmt::format("runs on    {}, {} threads, precision {}\n", m["device"].get<std::string>(),
                      m["threads"].get<int>(), m["precision"].get<std::string>());
  text += fmt::format("needs      {}: weights {}, {} cache {} when all {} positions are filled, a step {}\n",
                      megabytes(m["needed_bytes"]), megabytes(m["weight_bytes"]), m["cache"].get<std::string>(),
                      megabytes(m["cache_bytes"]), m["context"].get<int64_t>(), megabytes(m["step_bytes"]));
  text += "kernels   ";
  for (const auto& [op, count] : m["ops"].items()) text += fmt::format(" {} x{}", op, count.get<int64_t>());
  return text + "; every op has one\n";
}

int Doctor::run(World& world) const {
  const Json result = examine(world);
  if (json) {
    world.out.line(result.dump(-1, ' ', false, Json::error_handler_t::replace));
  } else {
    world.out.write(describe(result));
  }
  return 0;
}

}  // namespace

Action add_doctor(CLI::App& program) {
  CLI::App& app = add_command(program, "doctor", "What this machine can run", "consonant doctor -m model.gguf");
  auto command = std::make_shared<Doctor>();
  command->model.add(app, false);
  app.add_flag("--json", command->json, "One JSON document");
  return [command](World& world) { return command->run(world); };
}

}  // namespace consonant
