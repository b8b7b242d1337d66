// SPDX-License-Identifier: Apache-2.0
// Continues a text with a model, through the C++ interface: generate MODEL TEXT
#include <consonant/engine.hpp>
#include <iostream>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: " << argv[0] << " MODEL TEXT\n";
    return 2;
  }
  try {
    const auto engine = consonant::Engine::load(argv[1]);
    const auto prompt = engine->tokenize(argv[2], {.add_special = true});
    consonant::GenerateOptions options;
    options.max_tokens = 32;
    const auto result = engine->session()->generate(
        prompt, options,
        [](std::string_view text, std::span<const int32_t>) { return bool(std::cout << text << std::flush); });
    std::cout << '\n';
    return consonant::exit_code(result.stop_reason);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return consonant::exit_code(error);
  }
}
