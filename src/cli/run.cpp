// SPDX-License-Identifier: Apache-2.0
#include "cli/run.hpp"

#include <algorithm>
#include <new>

#include "base/log.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "engine/version.hpp"

namespace consonant {
namespace {

constexpr const char* exit_codes =
    "Exit codes: 0 done; 1 failed at run time; 2 wrong usage; 3 bad input; 4 the device can't run the model; 5 a "
    "generation\n"
    "reached its bound without ending; 6 the device stalled; 7 backends disagree; 8 not enough memory; 130 "
    "interrupted.";

// Options as people read them: the choices or the kind of value and the default, without the library's bookkeeping.
class Help : public CLI::Formatter {
 public:
  Help() { column_width(32); }
  std::string make_option_opts(const CLI::Option* option) const override {
    const bool positional = option->get_snames().empty() && option->get_lnames().empty();
    if (option->get_type_size() == 0) return "";
    if (positional) return option->get_required() ? " (required)" : "";
    const std::string type = option->get_type_name();
    const size_t colon = type.find(':'), choices = type.find('{');
    std::string text = " " + (choices == std::string::npos ? type.substr(0, colon) : type.substr(choices));
    if (!option->get_default_str().empty()) text += "=" + option->get_default_str();
    return text + (option->get_required() ? " (required)" : "");
  }
};

int fail(Exit exit, std::string_view message) {
  log_line("error: " + std::string(message));
  return int(exit);
}

// The library's wording knows options; a word that isn't a command deserves a better one.
int usage(const CLI::App& program, const CLI::ParseError& error, const std::vector<std::string>& arguments) {
  const auto is_option = [](const std::string& word) { return word.starts_with("-"); };
  const auto word = std::find_if_not(arguments.begin(), arguments.end(), is_option);
  if (program.get_subcommands().empty() && word != arguments.end())
    return fail(Exit::usage, "there is no command '" + *word + "' in this version; see consonant --help");
  const CLI::App* at = &program;
  std::string name = "consonant";
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    name += " " + at->get_name();
  }
  const auto command = std::find(arguments.begin(), arguments.end(), at->get_name());
  const auto next = command == arguments.end() ? command : command + 1;
  if (next != arguments.end() && !is_option(*next) && at->get_require_subcommand_max() > 0)
    return fail(Exit::usage,
                "there is no command '" + at->get_name() + " " + *next + "' in this version; see " + name + " --help");
  return fail(Exit::usage, std::string(error.what()) + "; see " + name + " --help");
}

int dispatch(const std::vector<std::string>& arguments, World& world) {
  CLI::App program("Runs language and speech models on the machine at hand.", "consonant");
  program.formatter(std::make_shared<Help>());
  program.require_subcommand(1);
  program.footer(std::string("\nconsonant COMMAND --help explains a command and gives an example.\n") + exit_codes);
  program.set_version_flag("--version", std::string("consonant ") + version);

  std::vector<std::pair<CLI::App*, Action>> commands;
  for (Action (*add)(CLI::App&) : {add_generate, add_chat, add_transcribe, add_speak, add_tokenize, add_verify,
                                   add_bench, add_inspect, add_convert, add_pull, add_doctor}) {
    Action action = add(program);
    commands.emplace_back(program.get_subcommands([](CLI::App*) { return true; }).back(), std::move(action));
  }
  try {
    // The library takes the words from the back.
    program.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    world.out.write(program.help());
    return 0;
  } catch (const CLI::CallForVersion& version) {
    world.out.line(version.what());
    return 0;
  } catch (const CLI::ParseError& error) {
    return usage(program, error, arguments);
  }
  for (const auto& [command, action] : commands)
    if (command->parsed()) return action(world);
  throw std::logic_error("no command ran");
}

}  // namespace

CLI::App& add_command(CLI::App& program, const std::string& name, const std::string& what, const std::string& example) {
  CLI::App* app = program.add_subcommand(name, what);
  app->footer("\nExample:\n  " + example);
  app->set_version_flag("--version", std::string("consonant ") + version);
  add_logging(*app);
  return *app;
}

int run(const std::vector<std::string>& arguments, World& world) {
  set_log_level(LogLevel::normal);
  try {
    return dispatch(arguments, world);
  } catch (const OutputClosed&) {
    return int(Exit::failed);
  } catch (const std::bad_alloc&) {
    return fail(Exit::memory, "not enough memory");
  } catch (const std::exception& error) {
    log_line(std::string("error: ") + error.what());
    return exit_code(error);
  }
}

}  // namespace consonant
