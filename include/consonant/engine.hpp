// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace consonant {

// Errors of the library are consonant::Error (a std::runtime_error) with `exit_code(error)` as the design's table has
// it: 2 wrong usage, 3 bad input, 4 the device can't run this, 5 bound reached, 6 stalled, 8 not enough memory, 1 the
// rest.
int exit_code(const std::exception& error);

inline constexpr int most_draft_tokens = 32;

// How a model is loaded and run.
struct EngineOptions {
  // "auto" (the first accelerator of CUDA or HIP that can hold and run the model, or else the CPU), "cpu", "reference"
  // (naive kernels in double: slow, the oracle), "cuda", "cuda:1", "hip", or "emu32" and "emu64" (an accelerator that
  // the processor emulates, with its rules enforced: for tests)
  std::string device = "auto";
  int threads = 0;  // 0: one a core that this process may use
  // "auto": quantised weights meet activations of 8 or 16 bits, on an accelerator of float16; "f32": weights decoded,
  // all in float32.
  std::string precision = "auto";
  std::string kv = "";                   // cache type "f16", "f32", "q8_0"; empty: f16, or f32 with precision "f32"
  int64_t context = 0;                   // positions a sequence may hold; 0: the model's own
  std::vector<std::string> override_kv;  // KEY=TYPE:VALUE, applied to the file's metadata before anything reads it
  // Speculative decoding, for sessions: a smaller model with the same tokens, on the same device, guesses how a text
  // goes on, and the model reads the guesses in one step. What is generated stays the same, token for token. Bad input
  // for a model with other tokens. Instead of a model it may be "mtp", the head for further tokens that files of
  // deepseek2 and nemotron_h_moe may have beside their model; bad input if there is none.
  std::string draft = {};  // its path, or mtp; empty: none
  int draft_tokens = 4;    // guessed at a time, from 1 to most_draft_tokens
  // To prove the deadlines, on an accelerator: NODE=SECONDS, a node that takes that much longer. Empty: none.
  std::string spin = {};
  // Called while weights are brought to the device: bytes that are there, of how many. Not after it.
  std::function<void(int64_t done, int64_t all)> on_weights = {};
};

// Why a generation ended.
enum class StopReason {
  end_token,     // the model said so
  stop_string,   // a string of `stop` appeared
  caller_limit,  // max_tokens
  input_bound,   // the bound that comes from the input
  context_full,
  deadline,
  cancelled
};
std::string_view name(StopReason reason);  // "end_token", ...
int exit_code(StopReason reason);          // 0, 0, 0, 5, 5, 1, 130

// Sampling. Temperature 0 is greedy. The stages run in this order: logit bias, repetition, frequency and presence
// penalties, top-k, typical, top-p, min-p, temperature, draw. A stage at its default does nothing.
struct SamplingOptions {
  float temperature = 0;
  int top_k = 0;
  float top_p = 1;
  float min_p = 0;
  float typical = 1;
  float repeat_penalty = 1;
  float frequency_penalty = 0;
  float presence_penalty = 0;
  int penalty_window = 64;  // last tokens that the penalties look at, prompt included; -1: all
  std::vector<std::pair<int32_t, float>> logit_bias;
  uint64_t seed = 0;
};

struct GenerateOptions {
  SamplingOptions sampling;
  int64_t max_tokens = -1;  // -1: up to what the context leaves
  std::vector<std::string> stop;
  bool ignore_eos = false;
  double deadline = 0;  // seconds; 0: none
  bool logprobs = false;
  // Tokens at the beginning of the prompt that later prompts of the session will begin with as well. A model whose
  // state is one of all positions remembers it there, so that only what comes after is read again, if the rest differs;
  // the last two such places are kept. 0: none.
  int64_t stable = 0;
};

struct Timings {
  double load_s = 0, prompt_s = 0, generate_s = 0, first_token_s = 0;
  int64_t prompt_tokens = 0, generated_tokens = 0;
  int64_t cached_tokens = 0;  // of the prompt, that the session held already
};

struct Generation {
  std::string text;             // whole characters; without the stop string and the end token
  std::vector<int32_t> tokens;  // generated ones, the end token included
  std::vector<float> logprobs;  // of each token, natural log, of the raw logits' softmax; if asked for
  StopReason stop_reason = StopReason::end_token;
  Timings timings;
  int64_t drafted = 0, accepted = 0;  // tokens that the draft guessed, and those of them that were generated
};

// Called with each piece of text (whole characters) and the ids that it came with; returning false cancels.
using OnText = std::function<bool(std::string_view text, std::span<const int32_t> tokens)>;

struct ModelInfo {
  std::string architecture, name, path, format, device, precision, kv;
  int64_t layers = 0, width = 0, vocabulary = 0, context = 0, parameters = 0;
  int64_t file_bytes = 0, weight_bytes = 0;
  double weights_s = 0;  // that it took to bring the weights from the file to the device
  int threads = 0;
  bool has_chat_template = false;
  std::vector<std::string> passed_over;  // devices that "auto" would rather have taken, and why it didn't: "cuda: ..."
};

struct TokenizeOptions {
  bool parse_special = true;  // text that spells a special token becomes it
  bool add_special = false;   // BOS and EOS as the model wants
};

class Session;

// A loaded model. Its const functions may be called from several threads at once.
class Engine {
 public:
  // Bad input for a file that is no sound model of a known architecture; wrong usage for options with no meaning; 4 for
  // what the device can't run, 8 for what its memory can't hold.
  static std::shared_ptr<Engine> load(const std::string& path, const EngineOptions& options = {});
  virtual ~Engine() = default;

  virtual const ModelInfo& info() const = 0;
  virtual double load_seconds() const = 0;
  virtual std::string sha256() const = 0;  // of the model's file (a folder: of its tensor files in name order)

  // Bad input for text that isn't UTF-8, for ids outside the vocabulary, and where the model has no tokenizer.
  virtual std::vector<int32_t> tokenize(std::string_view text, const TokenizeOptions& options = {}) const = 0;
  virtual std::string detokenize(std::span<const int32_t> tokens, bool special = true) const = 0;

  // Text of a conversation by the model's own template, or by `source` if it isn't empty. `variables` is a JSON object
  // with the template's variables ("messages", "tools", "add_generation_prompt", ...); special tokens that it lacks
  // come from the model. `now`: ISO time for the template's clock; empty: now.
  virtual std::string render_chat(std::string_view variables, std::string_view source = {},
                                  std::string_view now = {}) const = 0;

  // A new sequence, which keeps the engine alive. There is room for one: another one is an error until that one is
  // gone.
  virtual std::unique_ptr<Session> session() = 0;
};

// A sequence: what it has read stays in its cache, so a conversation only pays for what is new. Of one thread at a
// time, but for cancel.
class Session {
 public:
  virtual ~Session() = default;

  // Continues from `prompt`, which is the whole sequence so far: the longest prefix that the cache already holds is
  // reused, the rest is read, and new tokens follow. Bad input for an empty prompt, one that leaves no room in the
  // context, and ids outside the vocabulary; wrong usage for options out of their range.
  virtual Generation generate(std::span<const int32_t> prompt, const GenerateOptions& options,
                              const OnText& on_text = {}) = 0;

  // Stops a running generate from another thread or a signal handler.
  virtual void cancel() noexcept = 0;

  // The positions held in the cache.
  virtual int64_t length() const = 0;
  virtual void reset() = 0;

  // What the sequence holds, to a file and back, so that it goes on without reading its tokens again. With the same
  // device and options it goes on bit by bit as it would have. Bad input, and nothing is changed, for a file that is
  // damaged or of another model or type of cache.
  virtual void save(const std::string& path) = 0;
  virtual void restore(const std::string& path) = 0;
};

// Bytes in use: of a device's memory, by anybody, and of the host's, by this process.
struct MemoryInUse {
  int64_t device = 0, host = 0;  // 0 on the CPU; -1 where nothing says
};
MemoryInUse memory_in_use(Engine& engine);

// Measures for `bench`.
struct BenchResult {
  int threads = 0;
  int64_t prompt = 0, generated = 0, depth = 0, batch = 1;
  std::vector<double> prefill_tokens_per_s, decode_tokens_per_s, time_to_first_token_ms;  // one a repetition
  int64_t decode_bytes_per_token = 0;  // weights, cache and states that a token's step reads, states written too
  // Of an accelerator, a decoded token each: kernels and captured steps launched, and waits.
  double launches_per_token = 0, waits_per_token = 0;
  // Of an accelerator, if asked for: what a decoded token's kernels take, each kind alone, those of the most time
  // first.
  struct Kernel {
    std::string name;  // and the types and shapes of what it reads and makes
    int64_t count = 0;
    double seconds = 0;        // of one
    int64_t weight_bytes = 0;  // that one reads
  };
  std::vector<Kernel> kernels;
  // After two thirds of the first repetition's tokens, for which programs have been made, and after the last one's.
  MemoryInUse begin, end;
  double bandwidth = 0;  // bytes a second that its memory reads and writes in a copy, measured now; 0 on the CPU
};
struct BenchOptions {
  int64_t prompt = 512, generate = 128, depth = 0, batch = 1;
  int repeat = 3;
  bool kernels = false;  // time them, on an accelerator
};
BenchResult run_bench(Engine& engine, const BenchOptions& options);

// Generations of changing lengths, up to these, one after the other. The first rounds make the programs of all sizes;
// from then on nothing may be left behind.
struct SoakOptions {
  int64_t generations = 200, prompt = 512, generate = 128;
};
struct SoakResult {
  int64_t generations = 0, warm_up = 0, tokens = 0;
  std::vector<double> seconds;            // of each
  MemoryInUse loaded, first, warm, last;  // before any, after the first, after the warm-up, after all
  bool grew() const;                      // since the warm-up
};
SoakResult run_soak(Engine& engine, const SoakOptions& options);

// Bytes a second that `threads` threads read from memory, measured now, for the bound of decode.
double measure_bandwidth(int threads);

}  // namespace consonant
