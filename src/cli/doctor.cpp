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

Json describe_placement(const Placement& placement) {
  const ModelInfo& info = placement.info;
  Json json;
  json["path"] = info.path;
  json["architecture"] = info.architecture;
  json["format"] = info.format;
  json["device"] = info.device;
  json["passed_over"] = info.passed_over;
  json["threads"] = info.threads;
  json["precision"] = info.precision;
  json["weight_bytes"] = placement.weight_bytes;
  json["cache"] = info.kv;
  json["context"] = info.context;
  json["cache_bytes"] = placement.cache_bytes;
  json["step_bytes"] = placement.arena_bytes;
  json["needed_bytes"] = placement.weight_bytes + placement.cache_bytes + placement.arena_bytes;
  json["needed_to_load_bytes"] = placement.needed_bytes;
  json["available_bytes"] = placement.available_bytes >= 0 ? Json(placement.available_bytes) : Json();
  json["fits"] = placement.fits();
  json["ops"] = Json::object();
  for (const auto& [op, count] : placement.ops) json["ops"][op] = count;
  json["not_placed"] = placement.refusals;
  return json;
}

Json describe_backend(const BackendEntry& backend) {
  Json json;
  json["name"] = backend.name;
  json["plugin"] = backend.plugin.empty() ? Json() : Json(backend.plugin);
  json["reason"] = backend.reason.empty() ? Json() : Json(backend.reason);
  return json;
}

Json describe_device(const DeviceEntry& device) {
  Json json;
  json["name"] = device.name;
  if (!device.reason.empty()) {
    json["reason"] = device.reason;
    return json;
  }
  json["model"] = device.model;
  json["target"] = device.target;
  json["driver"] = device.driver;
  json["total_bytes"] = device.total_bytes;
  json["free_bytes"] = device.free_bytes;
  json["unified"] = device.unified;
  return json;
}

Json Doctor::examine(World& world) const {
  model.check();
  Json json;
  json["version"] = version;
  json["devices"] = {{{"name", "cpu"}, {"vectors", vectors()}}, {{"name", "reference"}, {"vectors", "none"}}};
  json["backends"] = Json::array();
  for (const BackendEntry& backend : world.accelerators()) {
    json["backends"].push_back(describe_backend(backend));
    for (const DeviceEntry& device : backend.devices) json["devices"].push_back(describe_device(device));
  }
  const int64_t memory = available_memory();
  json["available_bytes"] = memory >= 0 ? Json(memory) : Json();
  if (model.path.empty()) return json;
  const std::string path = resolve_model(model.path);
  json["model"] = describe_placement(world.speech.holds_speech(path) ? world.speech.plan(path, model.engine)
                                                                     : world.plan(path, model.engine));
  return json;
}

std::string megabytes(int64_t bytes) { return fmt::format("{:.1f} MB", double(bytes) / 1e6); }

std::string describe_accelerators(const Json& json) {
  std::string text;
  for (const Json& device : json["devices"]) {
    if (device.contains("vectors")) continue;
    const std::string device_name = device["name"];
    text += device.contains("reason")
                ? fmt::format("{:<10} can't be used: {}\n", device_name, device["reason"].get<std::string>())
                : fmt::format("{:<10} {}, {}, {}; memory {} of {} free{}\n", device_name,
                              device["model"].get<std::string>(), device["target"].get<std::string>(),
                              device["driver"].get<std::string>(), megabytes(device["free_bytes"]),
                              megabytes(device["total_bytes"]), device["unified"].get<bool>() ? ", the host's" : "");
  }
  for (const Json& backend : json["backends"]) {
    const std::string plugin = backend["plugin"].is_null() ? "no plug-in" : backend["plugin"].get<std::string>();
    text += fmt::format("{:<10} {}{}\n", backend["name"].get<std::string>(), plugin,
                        backend["reason"].is_null() ? "" : ": " + backend["reason"].get<std::string>());
  }
  return text;
}

std::string describe_model(const Json& m) {
  std::string text = fmt::format("model      {} ({}, {})\n", m["path"].get<std::string>(),
                                 m["architecture"].get<std::string>(), m["format"].get<std::string>());
  text += fmt::format("runs on    {}, {} threads, precision {}\n", m["device"].get<std::string>(),
                      m["threads"].get<int>(), m["precision"].get<std::string>());
  for (const Json& other : m["passed_over"]) text += fmt::format("not on     {}\n", other.get<std::string>());
  if (!m["not_placed"].empty()) {
    text += fmt::format("refused    {} nodes have no kernel:\n", m["not_placed"].size());
    for (const Json& node : m["not_placed"]) text += "  " + node.get<std::string>() + "\n";
    return text;
  }
  text += fmt::format("needs      {}: weights {}, {} cache {} when all {} positions are filled, a step {}\n",
                      megabytes(m["needed_bytes"]), megabytes(m["weight_bytes"]), m["cache"].get<std::string>(),
                      megabytes(m["cache_bytes"]), m["context"].get<int64_t>(), megabytes(m["step_bytes"]));
  if (!m["available_bytes"].is_null())
    text += fmt::format("to load    {} of {} that are free{}\n", megabytes(m["needed_to_load_bytes"]),
                        megabytes(m["available_bytes"]), m["fits"].get<bool>() ? "" : ": NOT ENOUGH");
  text += "kernels   ";
  for (const auto& [op, count] : m["ops"].items()) text += fmt::format(" {} x{}", op, count.get<int64_t>());
  return text + "; every op has one\n";
}

std::string describe(const Json& json) {
  std::string text = fmt::format("consonant {}\n", json["version"].get<std::string>());
  text += fmt::format("devices    cpu ({}), reference (naive kernels, for comparison), emu32 and emu64 (for tests)\n",
                      json["devices"][0]["vectors"].get<std::string>());
  text += describe_accelerators(json);
  text += "memory     " +
          (json["available_bytes"].is_null() ? "unknown" : megabytes(json["available_bytes"]) + " available") + "\n";
  return text + (json.contains("model") ? describe_model(json["model"])
                                        : std::string("with -m MODEL: what that model needs and runs\n"));
}

int Doctor::run(World& world) const {
  const Json result = examine(world);
  if (json) {
    world.out.line(result.dump(-1, ' ', false, Json::error_handler_t::replace));
  } else {
    world.out.write(describe(result));
  }
  if (!result.contains("model")) return 0;
  const Json& m = result["model"];
  if (!m["not_placed"].empty()) return int(Exit::device);
  return m["fits"].get<bool>() ? 0 : int(Exit::memory);
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
