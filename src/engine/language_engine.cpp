// SPDX-License-Identifier: Apache-2.0
#include "engine/language_engine.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "base/checked.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"
#include "engine/auto_device.hpp"
#include "engine/model_setup.hpp"
#include "engine/render.hpp"
#include "engine/sequence_file.hpp"
#include "engine/session.hpp"
#include "formats/sha256.hpp"
#include "text/chat_template.hpp"

namespace consonant {

LanguageEngine::LanguageEngine(const std::string& path, const EngineOptions& options, Target target,
                               std::vector<std::string> passed_over)
    : options_(options), file_(open_for(path, options)), target_(std::move(target)) {
  const auto start = Clock::now();
  weights_.emplace(file_);
  model_ = load_language_model(file_, *weights_);
  if (options.draft != Draft::own_head) warn_of_unused(file_, *weights_);  // it is the draft that uses them
  // llama.cpp writes "no_vocab" for a model that comes without one.
  if (file_.meta->string("tokenizer.ggml.model", "no_vocab") != "no_vocab") tokenizer_ = Tokenizer::load(*file_.meta);
  check_overrides(file_);

  if (!options.draft.empty()) draft_.emplace(path, options, file_, *model_);
  const Draft* const draft = draft_ ? &*draft_ : nullptr;
  const RunnerOptions runner = runner_options();
  const auto sources = sources_of(file_, *weights_);
  check_memory(file_, options_, *model_, sources, runner, draft);
  runner_ = std::make_unique<Runner>(*model_, sources, runner);
  if (draft_) draft_->load(draft_->runner_options(runner));
  options_.on_weights = {};  // whoever wanted to see it needn't be there for later runners

  info_ = describe_model(path, file_, *weights_, options, runner, runner_->weight_bytes());
  info_.layers = model_->layers, info_.width = model_->width, info_.vocabulary = model_->vocabulary;
  info_.context = runner_->context();
  info_.weights_s = runner_->weights_s();
  info_.passed_over = std::move(passed_over);
  load_seconds_ = seconds_since(start);
  log_verbose("{}: {} {}, {} layers, {} parameters, on {} with {} threads, loaded in {:.0f} ms", path, info_.format,
              info_.architecture, info_.layers, info_.parameters, info_.device, info_.threads, load_seconds_ * 1e3);
}

namespace {

int64_t page_bytes(const LanguageModel& model, DType kv) {
  return CacheLayout{CacheRole::self, model.kv, kv, kv_page, 1}.bytes();
}

// The model's own context, or on an accelerator, where a cache is taken at once, what nine tenths of its free memory
// hold.
int64_t context_that_fits(RunnerOptions options, const LanguageModel& model, const std::vector<WeightSource>& sources,
                          const Draft* draft) {
  Accelerator* const accelerator = options.device.accelerator.get();
  if (!accelerator) return model.context;
  int64_t page = std::max<int64_t>(page_bytes(model, options.kv), 1);
  int64_t free = accelerator->free_bytes() / 10 * 9 - WeightStore::bytes_needed(sources, options.device.kind) -
                 Runner::slots_of(model, options).bytes();
  if (draft) {
    page += page_bytes(draft->model(), options.kv);
    free -= WeightStore::bytes_needed(draft->sources(), options.device.kind);
    free -= Runner::slots_of(draft->model(), draft->runner_options(options)).bytes();
  }
  const auto holds = [&](int64_t bytes) {
    return std::clamp<int64_t>(bytes / page, 1, ceil_div(model.context, kv_page)) * kv_page;
  };
  options.context = holds(free);  // a shorter one has no larger arena
  free -= Runner::needs(model, sources, options).arena;
  if (draft) free -= Runner::needs(draft->model(), draft->sources(), draft->runner_options(options)).arena;
  return holds(free);
}

}  // namespace

RunnerOptions runner_options_for(const EngineOptions& options, const Target& target, const LanguageModel& model,
                                 const std::vector<WeightSource>& sources, const Draft* draft) {
  RunnerOptions runner = runner_options_of(options, target);
  runner.marks = HeldText::marks_for(model, LanguageSession::places, draft != nullptr);
  if (draft) runner.rows = options.draft_tokens + 1, runner.hidden = draft->is_head();
  runner.context = options.context > 0 ? options.context : context_that_fits(runner, model, sources, draft);
  if (options.context > model.context)
    log_warning("a context of {} tokens, but the model was trained for {}", options.context, model.context);
  return runner;
}

// The model's own context is an upper bound, not a wish: its cache is committed as it fills.
int64_t counted_context(const EngineOptions& options, const LanguageModel& model, const RunnerOptions& runner) {
  return options.context == 0 && !runner.device.accelerator ? std::min<int64_t>(model.context, kv_page)
                                                            : runner.context;
}

void check_memory(const ModelFile& file, const EngineOptions& options, const LanguageModel& model,
                  const std::vector<WeightSource>& sources, const RunnerOptions& runner, const Draft* draft) {
  RunnerOptions counted = runner;
  counted.context = counted_context(options, model, runner);
  std::string advice =
      options.context > 0 ? "try a smaller --context" : "try a smaller model or a more compact quantisation";
  int64_t drafted = 0;
  if (draft) {
    drafted = Runner::needs(draft->model(), draft->sources(), draft->runner_options(counted)).bytes();
    advice = fmt::format("{:.0f} MB of it are for its draft, {}; {}", static_cast<double>(drafted) / 1e6,
                         draft->file().meta->source, advice);
  }
  // A cache that can't be is refused before anything is planned with it.
  const CacheLayout cache{CacheRole::self, model.kv, counted.kv, counted.context, counted.sequences};
  const SlotLayout slots = Runner::slots_of(model, counted);
  check_memory(file, runner.device,
               checked_add(checked_add(WeightStore::bytes_needed(sources, runner.device.kind), drafted),
                           checked_add(cache.bytes(), slots.bytes())),
               advice);
  check_memory(file, runner.device, checked_add(Runner::needs(model, sources, counted).bytes(), drafted), advice);
}

RunnerOptions LanguageEngine::runner_options() const {
  return runner_options_for(options_, target_, *model_, sources_of(file_, *weights_), draft_ ? &*draft_ : nullptr);
}

std::unique_ptr<Runner> LanguageEngine::make_runner(int threads, int sequences) const {
  RunnerOptions runner = runner_options_for(options_, target_, *model_, sources_of(file_, *weights_));
  runner.threads = threads, runner.sequences = sequences, runner.marks = 0;
  const auto sources = sources_of(file_, *weights_);
  check_memory(file_, options_, *model_, sources, runner);
  return std::make_unique<Runner>(*model_, sources, runner);
}

std::string LanguageEngine::fingerprint() const { return consonant::fingerprint(file_, options_.override_kv); }

std::string LanguageEngine::sha256() const {
  std::vector<std::filesystem::path> files = file_.files;
  std::sort(files.begin(), files.end());
  return sha256_of_files(files);
}

namespace {

const Tokenizer& need(const std::optional<Tokenizer>& tokenizer, const ModelFile& file) {
  if (!tokenizer) bad_input("{}: the model has no tokenizer; give token ids", file.meta->source);
  return *tokenizer;
}

}  // namespace

std::vector<int32_t> LanguageEngine::tokenize(std::string_view text, const TokenizeOptions& options) const {
  return need(tokenizer_, file_).encode(text, {options.parse_special, options.add_special});
}

std::string LanguageEngine::detokenize(std::span<const int32_t> tokens, bool special) const {
  return need(tokenizer_, file_).decode(tokens, {!special});
}

std::string LanguageEngine::render_chat(std::string_view variables, std::string_view source,
                                        std::string_view now) const {
  std::string_view text = source;
  if (text.empty()) {
    if (!info_.has_chat_template)
      bad_input("{}: the model has no chat template; give one with --template, or a plain prompt", file_.meta->source);
    text = file_.meta->string("tokenizer.chat_template");
  }
  const nlohmann::ordered_json json = template_variables(variables);
  TemplateTokens tokens;
  const auto supply = [&](const char* key, int32_t id) {
    if (id >= 0) tokens[key] = tokenizer_->token_text(id);
  };
  if (tokenizer_) {
    supply("bos_token", tokenizer_->bos());
    supply("eos_token", tokenizer_->eos());
    supply("unk_token", tokenizer_->unknown());
    supply("pad_token", tokenizer_->padding());
  }
  return ChatTemplate(text).render(json, tokens, now.empty() ? LocalTime::now() : LocalTime::parse(now));
}

std::unique_ptr<Session> LanguageEngine::session() { return std::make_unique<LanguageSession>(shared_from_this()); }

LanguageEngine& language_engine(Engine& engine) {
  auto* language = dynamic_cast<LanguageEngine*>(&engine);
  if (!language) bad_usage("{} isn't a language model", engine.info().path);
  return *language;
}

std::shared_ptr<Engine> Engine::load(const std::string& path, const EngineOptions& options) {
  return load_on(options.device, [&](const Target& target, const std::vector<std::string>& passed_over) {
    return std::make_shared<LanguageEngine>(path, options, target, passed_over);
  });
}

int exit_code(const std::exception& error) {
  if (const auto* known = dynamic_cast<const Error*>(&error)) return static_cast<int>(known->exit());
  if (dynamic_cast<const std::bad_alloc*>(&error)) return static_cast<int>(Exit::memory);
  return static_cast<int>(Exit::failed);
}

std::string_view name(StopReason reason) {
  switch (reason) {
    case StopReason::end_token:
      return "end_token";
    case StopReason::stop_string:
      return "stop_string";
    case StopReason::caller_limit:
      return "caller_limit";
    case StopReason::input_bound:
      return "input_bound";
    case StopReason::context_full:
      return "context_full";
    case StopReason::deadline:
      return "deadline";
    case StopReason::cancelled:
      return "cancelled";
  }
  return "unknown";
}

int exit_code(StopReason reason) {
  switch (reason) {
    case StopReason::end_token:
    case StopReason::stop_string:
    case StopReason::caller_limit:
      return static_cast<int>(Exit::done);
    case StopReason::input_bound:
    case StopReason::context_full:
      return static_cast<int>(Exit::bound);
    case StopReason::deadline:
      return static_cast<int>(Exit::failed);
    case StopReason::cancelled:
      return static_cast<int>(Exit::interrupted);
  }
  return static_cast<int>(Exit::failed);
}

}  // namespace consonant
