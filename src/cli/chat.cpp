// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/log.hpp"
#include "cli/answer.hpp"
#include "cli/commands.hpp"
#include "cli/files.hpp"
#include "cli/interrupt.hpp"
#include "cli/line_editor.hpp"
#include "cli/messages.hpp"
#include "cli/options.hpp"
#include "engine/render.hpp"

namespace consonant {
namespace {

struct ChatFlags {
  ModelOptions model;
  GenerationFlags generation;
  std::optional<std::string> system, text, template_file, render;
  std::string now;
  bool json = false;

  int run(World& world) const;
  int print_prompt(World& world) const;
};

// What `render` gives; its errors name the template's file, where it comes from one.
template <class Render>
std::string naming(const std::optional<std::string>& template_file, const Render& render) {
  try {
    return render();
  } catch (const Error& error) {
    if (!template_file || error.exit() != Exit::input) throw;
    bad_input("{}: {}", *template_file, error.what());
  }
}

// The template's variables from a file.
std::string read_variables(const std::string& path) {
  std::string text = read_text(path);
  try {
    const nlohmann::json variables = nlohmann::json::parse(text);
    if (!variables.is_object()) bad_input("{}: has to be a JSON object, not {}", path, variables.type_name());
  } catch (const nlohmann::json::parse_error& error) {
    bad_input("{}: is no JSON from byte {} on", path, error.byte);
  }
  return text;
}

// One conversation with one model.
class Conversation {
 public:
  Conversation(World& world, const ChatFlags& flags, std::shared_ptr<Engine> engine)
      : world_(world), flags_(flags), engine_(std::move(engine)), session_(engine_->session()) {
    if (flags.template_file) template_ = read_text(*flags.template_file);
    if (template_.empty() && !engine_->info().has_chat_template)
      bad_input("{}: the model has no chat template; give one with --template FILE, or use generate",
                engine_->info().path);
    options_ = flags.generation.options();
    options_.logprobs = flags.json;
    reset();
  }

  void reset() {
    messages_.clear();
    if (flags_.system) messages_.push_back({"system", *flags_.system});
  }

  // Answers `text`; the exit code that the answer ends with. A question that fails leaves the conversation as it was.
  int ask(const std::string& text) {
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) bad_input("the prompt is empty");
    require_utf8(text, "the prompt");
    messages_.push_back({"user", text});
    try {
      const std::vector<int32_t> ids = prompt(true);
      // What stands before the answer stands there in later prompts too, whatever becomes of the answer.
      const std::vector<int32_t> lasting = prompt(false);
      options_.stable = std::mismatch(ids.begin(), ids.end(), lasting.begin(), lasting.end()).first - ids.begin();
      const Generation result =
          answer(world_, *session_, ids, options_, flags_.json ? Streaming::nothing : Streaming::text);
      messages_.push_back({"assistant", result.text});
      world_.out.line(flags_.json ? to_json(result, options_, engine_->info()) : "");
      return report(result, options_);
    } catch (...) {
      messages_.pop_back();
      throw;
    }
  }

  const GenerateOptions& options() const { return options_; }
  const ModelInfo& info() const { return engine_->info(); }

 private:
  // The template writes the special tokens that the model wants: none are added.
  std::vector<int32_t> prompt(bool to_answer) const {
    const std::string text = naming(flags_.template_file, [&] {
      return engine_->render_chat(chat_variables(messages_, to_answer), template_, flags_.now);
    });
    return engine_->tokenize(text, {.parse_special = true, .add_special = false});
  }

  World& world_;
  const ChatFlags& flags_;
  std::shared_ptr<Engine> engine_;
  std::unique_ptr<Session> session_;
  std::string template_;
  GenerateOptions options_;
  std::vector<Message> messages_;
};

constexpr const char* help_text =
    "/reset  forget the conversation\n"
    "/exit   leave (so does the end of the input)\n"
    "/help   this\n"
    "Ctrl-C stops an answer; a second one leaves.";

void tell(std::string_view text) {
  if (log_level() >= LogLevel::normal) log_line(text);
}

// Commands begin with a slash; anything else of that kind is more likely a slip than a question.
enum class Line { question, handled, leave };
Line obey(const std::string& line, Conversation& conversation) {
  const std::string word = line.substr(0, line.find_last_not_of(" \t") + 1);
  if (word.empty()) return Line::handled;
  if (word == "/exit" || word == "/quit") return Line::leave;
  if (word == "/reset") {
    conversation.reset();
    tell("a new conversation");
    return Line::handled;
  }
  if (word == "/help") {
    log_line(help_text);
    return Line::handled;
  }
  if (word[0] == '/' && word.find_first_of(" /", 1) == std::string::npos) {
    log_line("there is no command " + word + "; /help lists them");
    return Line::handled;
  }
  return Line::question;
}

// Errors of one question don't end the conversation; those of the output, the device or the program do.
bool can_go_on(const Error& error) { return error.exit() == Exit::input; }

int converse(World& world, Conversation& conversation) {
  const std::unique_ptr<LineReader> lines = LineReader::open(world.in, "> ");
  tell(conversation.info().name + " on " + conversation.info().device + "; /help for help, /exit or Ctrl-D to leave");
  bool failed = false;
  // From end to end: a Ctrl-C meant for an answer that has just ended mustn't end the conversation.
  const Interrupts::Deferred deferred;
  while (true) {
    bool interrupted = false;
    const std::optional<std::string> line = lines->next(interrupted);
    if (interrupted) {
      tell("Ctrl-C again leaves");
      continue;
    }
    Interrupts::forget();
    if (!line) break;
    const Line kind = obey(*line, conversation);
    if (kind == Line::leave) break;
    if (kind == Line::handled) continue;
    try {
      conversation.ask(*line);
    } catch (const Error& error) {
      if (!can_go_on(error)) throw;
      log_line(std::string("error: ") + error.what() + " (/reset starts a new conversation)");
      failed = true;
    }
  }
  return failed ? int(Exit::failed) : 0;
}

int ChatFlags::print_prompt(World& world) const {
  const std::string variables = read_variables(*render);
  std::string source;
  if (template_file) source = read_text(*template_file);
  std::string text;
  if (model.path.empty()) {
    if (!template_file)
      bad_usage("chat --render: a template is needed: --template FILE, or -m with a model that has one");
    model.check();
    text = naming(template_file, [&] { return render_template(source, variables, now); });
  } else {
    const std::shared_ptr<Engine> engine = model.load(world);
    text = naming(template_file, [&] { return engine->render_chat(variables, source, now); });
  }
  world.out.write(text);
  if (world.out.terminal()) world.out.write("\n");
  return 0;
}

int ChatFlags::run(World& world) const {
  if (render) return print_prompt(world);
  if (model.path.empty()) bad_usage("chat: a model is needed: -m PATH");
  generation.options();  // refuses before the model is loaded
  if (text) require_utf8(*text, "-p");
  if (system) require_utf8(*system, "--system");
  Conversation conversation(world, *this, model.load(world));
  announce(conversation.options());
  return text ? conversation.ask(*text) : converse(world, conversation);
}

}  // namespace

Action add_chat(CLI::App& program) {
  CLI::App& app = add_command(program, "chat", "A conversation with the model's own template",
                              "consonant chat -m model.gguf\n"
                              "  consonant chat -m model.gguf --system \"Answer briefly.\" -p \"What is a fugue?\"");
  auto command = std::make_shared<ChatFlags>();
  CLI::Option* system = app.add_option("--system", command->system, "What the model is told before the conversation");
  CLI::Option* text = app.add_option("-p,--prompt", command->text, "One question, one answer");
  app.add_option("--template", command->template_file, "A chat template in place of the model's")->type_name("FILE");
  CLI::Option* render = app.add_option("--render", command->render,
                                       "Print the prompt and stop: the JSON file holds the template's variables "
                                       "(messages, tools, add_generation_prompt, ...); "
                                       "what it lacks comes from the model, which a given --template can do without")
                            ->type_name("FILE");
  app.add_option("--now", command->now, "The template's clock, as 2026-01-31T12:00:00; default: the real one")
      ->type_name("TIME");
  app.add_flag("--json", command->json, "An answer as one line of JSON")->excludes(render);
  render->excludes(system)->excludes(text);
  command->model.add(app, false);
  command->model.add_draft(app);
  command->generation.add(app);
  return [command](World& world) { return command->run(world); };
}

}  // namespace consonant
