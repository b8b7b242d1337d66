// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "decode/sampler.hpp"
#include "decode/stop.hpp"

namespace consonant {

// Positions of a sequence for a model that speaks in frames of codes, one code a codebook. A position is what is read
// there and what is heard there.
struct FrameRows {
  int64_t groups = 0;          // codebooks
  std::vector<int32_t> text;   // [row]: a text token
  std::vector<int32_t> codes;  // [row, groups]: -1 where nothing of a codebook is heard
  std::vector<int32_t> voice;  // [row]: 0 where the sequence's voice is heard, else -1

  int64_t size() const { return static_cast<int64_t>(text.size()); }
};

// How a frame's codes are drawn.
struct FrameDraw {
  Sampler* first;                         // of codebook 0; takes its next number
  std::span<const int32_t> history = {};  // codes of codebook 0 that it has drawn so far
  Sampler* others;                        // takes a number for each other codebook
  bool may_end = true;                    // whether the end token may be drawn
  std::span<const int32_t> forced = {};   // [groups]: these codes come out whatever the logits; empty: none
  bool logits = false;                    // those of codebook 0 are wanted,
  bool all_logits = false;                // and those of all others and the state too
};

// Rows that one sequence reads in a step, and the frame that follows the last of them.
struct FramePiece {
  int sequence;
  const FrameRows* rows;
  FrameDraw draw;
};

struct Frame {
  std::vector<int32_t> codes;      // [groups]; those after an end token mean nothing
  std::vector<float> logits;       // [codes of codebook 0], raw
  std::vector<float> code_logits;  // [groups - 1, codes]
  std::vector<float> hidden;       // [width]: the talker's state that gave the logits
};

// The model as the loop sees it: a few sequences at once, each with its cache.
struct FrameModel {
  virtual ~FrameModel() = default;

  virtual int sequences() const = 0;                   // that may be open at once
  virtual int open(std::span<const float> voice) = 0;  // a new one; `voice` [width], or empty
  virtual void close(int sequence) = 0;
  // One frame for each piece, of different sequences. A sequence's frames don't depend on its neighbours.
  virtual std::vector<Frame> frames(std::span<const FramePiece> pieces) = 0;
};

// How the end token stood in the raw logits before a frame: 1 is first, and its part of their softmax.
struct EndStanding {
  int64_t rank;
  double probability;
};

// One thing to say.
struct Utterance {
  FrameRows prompt;
  std::vector<int32_t> trailing;  // text ids read in the frames after the prompt, one each; then the padding
  std::span<const float> voice = {};
  Sampling first, others;
  StopLimits limits;                     // in frames; one end token
  std::span<const int32_t> forced = {};  // [frame, groups]: a recording that is spoken again; then it ends
  bool record = false;                   // all logits and states are kept
};

struct Spoken {
  std::vector<int32_t> codes;  // [frame, groups]
  int64_t frames = 0;
  Stop stop = Stop::end_token;
  std::vector<EndStanding> end;  // before the last frames of a run that reached a limit, the oldest first
  double prompt_s = 0, frames_s = 0;
  // Of each step, the last included, if recorded: [frame + 1, codes], [frame, groups - 1, book], [frame + 1, width].
  std::vector<float> logits, code_logits, hidden;
};

// Called with each frame [groups] of an utterance; returning false cancels that one.
using OnFrame = std::function<bool(size_t utterance, std::span<const int32_t> codes)>;

// Speaks all of them, as many at once as the model takes. The rules of Qwen3-TTS: a repetition penalty over all codes
// of codebook 0, no end in the first two steps; and whatever an utterance's samplers say. `text_pad` is what is read
// when there is nothing left to read. A run may end, at the latest, with the step after its last allowed frame.
std::vector<Spoken> speak_frames(FrameModel& model, std::span<const Utterance> utterances, int32_t text_pad,
                                 const OnFrame& on_frame = {});

}  // namespace consonant
