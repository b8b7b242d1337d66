// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "consonant/engine.hpp"
#include "consonant/transcribe.hpp"

namespace consonant {

struct RecordOptions {
  std::vector<int32_t> tokens;    // evaluated, every position's logits kept
  int64_t steps = 0;              // then this many more, greedily
  std::vector<std::string> taps;  // globs of node names whose values are kept as well
  std::string options_text;       // the command line's options, for the header
};

// Runs the model and writes a recording: safetensors with `tokens` [n] int32, `logits` [n, vocab] float32, each tapped
// node under its name, and in the header device, model_sha256, version, options and positive_control. The positive
// control runs the same tokens twice and with another number of threads: anything but bit-equality is an error (7) and
// nothing is written. Bad input for tokens and steps that don't fit the context; wrong usage for a tap that matches no
// node.
void record(Engine& engine, const RecordOptions& options, const std::string& path);

struct SpeechRecordOptions {
  std::vector<int32_t> tokens;    // evaluated after the sound; empty: the prompt and what greedy decoding writes
  TranscribeOptions transcribe;   // language, task, prompt and timestamps of that
  std::vector<std::string> taps;  // globs of node names, of the encoder's and the decoder's
  std::string options_text;
};

// The same of a speech model: the encoder on the first window of `audio`, then all tokens in one step. The recording
// holds that sound too: `sound` [n] float32, at 16 kHz.
void record(Transcriber& transcriber, AudioInput& audio, const SpeechRecordOptions& options, const std::string& path);

// One tensor of both recordings, row by row over its last dimension; the worst row counts.
struct NodeComparison {
  std::string name, source;
  double cosine = 1, max_abs = 0;    // NaN where a number isn't finite
  double max_rel = 0;                // a row's greatest difference over the reference's greatest magnitude in it
  int64_t argmax_disagreements = 0;  // rows whose greatest element differs
  bool within_tolerance = true;
};

struct Comparison {
  double worst_cosine = 1, max_abs = 0;
  int64_t decisions = 0,
          disagreements = 0;  // argmax of logits rows; a disagreement lies outside the reference's tie margin
  std::string first_divergent_node, source;
  std::vector<NodeComparison> nodes;
  std::vector<std::string> not_compared;  // nodes that only one of the recordings has
  bool positive_control = true;           // both recordings passed it; without it nothing is said to agree
  bool agree = true;
};

// Compares two recordings of the same tokens: `a` is the reference. Different tokens or shapes are bad input; a
// recording without a passed positive control is never reported as agreement.
Comparison compare(const std::string& a, const std::string& b);

// A node of a device beside the CPU's with all in float32.
struct NodeAgreement {
  std::string name, op, kernel, source;
  // Worst row: root mean square of the differences over that of the reference's row. `error`: with the reference's
  // inputs, so the kernel's own; `drift`: in a run of its own, where errors add up.
  double error = 0, tolerance = 0, drift = 0;
  bool within_tolerance = true;
};

// Whether a device computes what the CPU does. The decisions come from the tokens given (teacher-forced): sampled
// output is never compared.
struct Agreement {
  std::string model, device, driver, version;
  std::vector<std::pair<std::string, int64_t>> kernels;  // of a step, and how many nodes each runs
  bool positive_control = false;         // both devices gave the same bits twice; without it nothing is said to agree
  double worst_cosine = 1, max_abs = 0;  // of the logits
  int64_t decisions = 0, disagreements = 0;  // argmax of rows; outside the reference's tie margin
  double least_cosine = 0;                   // that the logits must have
  // Of a model with experts: choices of a token in a layer, those for which the device would have chosen others, and
  // the worst relative distance of the scores' logits there. The logits above are those of the reference's choices.
  int64_t choices = 0, choices_differ = 0;
  double choices_drift = 0, most_drift = 0;  // and what such a distance may be
  std::vector<NodeAgreement> nodes;          // in the device's order
  std::vector<std::string> not_compared;     // nodes that the reference doesn't have
  std::string first_divergent_node, source;  // the first past its tolerance with the reference's inputs
  bool agree = false;
};

// Runs `tokens` on both, all positions' logits compared, then node by node. Both must be of the same file; the
// reference a CPU with precision "f32". Bad input for tokens that don't fit.
Agreement prove(Engine& reference, Engine& device, const std::vector<int32_t>& tokens);
// The same of a speech model: the first window of `audio`, then `options.tokens` or what the reference hears.
Agreement prove(Transcriber& reference, Transcriber& device, AudioInput& audio, const SpeechRecordOptions& options);

// The tokens of a recording, evaluated anew by `engine` and recorded with the nodes that the recording has. A speech
// model evaluates them after the recording's sound.
void replay(Engine& engine, const std::string& recording, const std::string& path);
void replay(Transcriber& transcriber, const std::string& recording, const std::string& path);
std::vector<int32_t> recorded_tokens(const std::string& recording);
std::unique_ptr<AudioInput> recorded_sound(const std::string& recording);  // null: a language model's

// What a sweep of one kernel over its op's cases found.
struct KernelReport {
  std::string op, kernel, device;  // `kernel`: the op's name unless the device has several for it
  std::string takes;               // types by the roles of its inputs
  int64_t cases = 0;
  double error = 0, tolerance = 0;  // of the case nearest to its tolerance: shares of what its numbers are made of
  std::vector<std::string> faults;  // each with its case; empty if the kernel is right
};

struct OpsReport {
  std::string machine;  // the card, what its kernels are compiled for, its driver
  std::vector<KernelReport> kernels;
};

struct OpsOptions {
  std::string device = "cpu";  // "auto", "reference", "cuda:1", "emu32", ...
  std::string op;              // this op, or this kernel, alone
  bool reduced = false;        // small cases only, for tools that slow each access down
};

// Runs the kernels of a device over their cases and compares them with the reference. Unknown names are wrong usage.
OpsReport verify_ops(const OpsOptions& options);

// The page docs/ops.md: which kernels there are, and what they take.
std::string describe_ops();

}  // namespace consonant
