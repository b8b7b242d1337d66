// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace consonant {

// GGUF's name of a Qwen3-TTS checkpoint's tensor; nothing if it isn't one of that network.
std::optional<std::string> qwen3_tts_gguf_name(std::string_view hf);

}  // namespace consonant
