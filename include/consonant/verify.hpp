// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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

// The same of a speech model: the encoder on the first window of `audio`, then all tokens in one step.
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

// What a sweep of one kernel over its op's cases found.
struct KernelReport {
  std::string op, device;
  int64_t cases = 0;
  double error = 0, tolerance = 0;  // of the case nearest to its tolerance: shares of what its numbers are made of
  std::vector<std::string> faults;  // each with its case; empty if the kernel is right
};

// Runs the kernels of a device ("auto", "cpu", "reference") over their cases, those of one op if it is named, and
// compares them with the reference. Unknown names are wrong usage.
std::vector<KernelReport> verify_ops(const std::string& device, const std::string& op = "");

// The page docs/ops.md: which kernels there are, and what they take.
std::string describe_ops();

}  // namespace consonant
