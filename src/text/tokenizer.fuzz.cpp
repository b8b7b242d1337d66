// SPDX-License-Identifier: Apache-2.0
// A tokenizer as a stranger's file describes it, and a text for it. The input is a GGUF file or a tokenizer.json; what
// stands behind a zero byte at the end of a tokenizer.json is the text.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/utf8.hpp"
#include "formats/gguf.hpp"
#include "formats/hf_tokenizer.hpp"
#include "text/stream.hpp"
#include "text/tokenizer.hpp"

namespace {

using namespace consonant;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

void use(const Tokenizer& tokenizer, std::string_view text) {
  for (const bool parse_special : {true, false}) {
    const std::vector<int32_t> ids = tokenizer.encode(text, {.parse_special = parse_special, .add_special = true});
    TextStream stream(tokenizer, {.skip_special = false});
    std::string streamed;
    for (const int32_t id : ids) {
      require(id >= 0 && id < tokenizer.size(), "ids are those of the vocabulary");
      streamed += stream.push(id);
    }
    streamed += stream.flush();
    require(is_utf8(streamed), "a stream is UTF-8");
    require(tokenizer.decode(ids).size() <= 3 * streamed.size() + 1, "decoding and streaming agree");
  }
  for (const int32_t id : tokenizer.end_ids()) require(tokenizer.is_end(id), "ends are ends");
}

void run(std::string_view input) {
  auto meta = std::make_shared<Meta>();
  std::string text =
      "Hi  there, it's 12345!\n\n  <s>caf\u00E9 \u4F60\u597D \U0001F642</s>\t<|im_end|> aaaaaaaa e\u0301";
  if (input.starts_with("GGUF")) {
    std::vector<std::byte> bytes(input.size());
    std::copy(input.begin(), input.end(), reinterpret_cast<char*>(bytes.data()));
    auto file = parse_gguf(MappedFile::of_bytes("x.gguf", std::move(bytes)));
    const Tokenizer tokenizer = Tokenizer::load(file.meta);
    return use(tokenizer, text);
  }
  if (const size_t end = input.find('\0'); end != std::string_view::npos) {
    text = sanitize_utf8(input.substr(end + 1));
    input = input.substr(0, end);
  }
  const TokenizerFiles files{HfConfig(parse_json(input, "tokenizer.json"), "tokenizer.json"),
                             HfConfig(Json{{"add_bos_token", false}}, "tokenizer_config.json"),
                             HfConfig(Json::object(), "generation_config.json"), std::nullopt};
  const HfConfig config(Json{{"vocab_size", 520}}, "config.json");
  add_tokenizer(files, config, *meta);
  use(Tokenizer::load(*meta), text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  set_log_level(LogLevel::quiet);
  try {
    run(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const Error& error) {
    require(error.exit() == Exit::input, "what a file causes is bad input");
  }
  return 0;
}
