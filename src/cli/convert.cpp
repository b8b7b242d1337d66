// SPDX-License-Identifier: Apache-2.0
#include "formats/convert.hpp"

#include <filesystem>
#include <memory>

#include "base/log.hpp"
#include "base/threads.hpp"
#include "cli/commands.hpp"
#include "cli/models.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"

namespace consonant {
namespace {

struct Convert {
  std::string in, out, type;
  std::vector<std::string> overrides;
  int threads = 0;

  int run(World& world) const;
};

int Convert::run(World&) const {
  std::error_code error;
  const std::string source = resolve_model(in);
  if (std::filesystem::equivalent(source, out, error)) bad_usage("{} and {} are the same file", source, out);
  const ModelFile model = open_model(source);
  for (const std::string& text : overrides) apply_override(*model.meta, text);
  {
    Progress progress;
    convert_model(model, out, type, threads > 0 ? threads : usable_cores(), [&](size_t done, size_t all) {
      progress.show(fmt::format("converting tensor {} of {}", done + 1, all));
    });
  }
  if (log_level() >= LogLevel::normal)
    log_line(fmt::format("{}: {:.1f} MB of {}, from {:.1f} MB of {}", out,
                         double(std::filesystem::file_size(out)) / 1e6, type, double(model.file_bytes) / 1e6,
                         model.format));
  return 0;
}

}  // namespace

Action add_convert(CLI::App& program) {
  CLI::App& app = add_command(program, "convert", "A model folder or file of any known format to GGUF",
                              "consonant convert Llama-3.2-1B/ llama-3.2-1b-q4_k_m.gguf --type q4_k_m");
  auto command = std::make_shared<Convert>();
  app.add_option("IN", command->in, "Folder of Hugging Face or CTranslate2, file of whisper.cpp, or GGUF file")
      ->required();
  app.add_option("OUT", command->out, "The GGUF file to write; replaced if there is one")->required();
  app.add_option("--type", command->type, "One of " + conversion_types())->type_name("TYPE")->required();
  add_repeatable(app, "--override-kv", command->overrides,
                 "KEY=TYPE:VALUE in place of the input's metadata; may be repeated");
  app.add_option("--threads", command->threads, "CPU threads; default: one a core that this process may use")
      ->type_name("N")
      ->check(whole_number(1, ThreadPool::most));
  return [command](World& world) { return command->run(world); };
}

}  // namespace consonant
