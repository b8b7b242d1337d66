// SPDX-License-Identifier: Apache-2.0
// A tokenizer.json of any bytes becomes a tokenizer whose ids are of its vocabulary, or is refused as bad input;
// anything else is a fault.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.hpp"
#include "formats/hf_tokenizer.hpp"
#include "text/tokenizer.hpp"

using namespace consonant;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  try {
    const TokenizerFiles files{HfConfig(parse_json(json, "tokenizer.json"), "tokenizer.json"),
                               HfConfig(Json{{"add_bos_token", false}}, "tokenizer_config.json"),
                               HfConfig(Json::object(), "generation_config.json"), std::nullopt};
    const HfConfig config(Json{{"vocab_size", 300}}, "config.json");
    Meta meta;
    meta.source = "fuzz";
    add_tokenizer(files, config, meta);
    const Tokenizer tokenizer = Tokenizer::load(meta);
    for (const int32_t id : tokenizer.encode("It's 12 caf\xC3\xA9s, <|a|>\n\n  ok \xF0\x9F\x99\x82"))
      if (id < 0 || id >= tokenizer.size()) std::abort();
    for (int32_t id = 0; id < tokenizer.size(); ++id) tokenizer.bytes(id);
  } catch (const Error& error) {
    if (error.exit() != Exit::input) std::abort();
  }
  return 0;
}
