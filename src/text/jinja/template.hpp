// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "text/jinja/failure.hpp"
#include "text/jinja/local_time.hpp"

namespace consonant::jinja {

struct Template;

// A template of jinja2's language as transformers sets it up: trim_blocks, lstrip_blocks, loop controls, `generation`
// blocks, the immutable sandbox, no autoescape. A template that can't be read or run is an Error (input) which names
// the line; a rendering never has a part of the text missing.
class Compiled {
 public:
  explicit Compiled(std::string_view source);
  ~Compiled();
  Compiled(Compiled&&) noexcept;
  Compiled& operator=(Compiled&&) noexcept;

  // `variables` is an object. Renderings of the same template may run at the same time.
  std::string render(const nlohmann::ordered_json& variables, const LocalTime& now, const Limits& limits = {}) const;

 private:
  std::unique_ptr<const Template> tree_;
};

}  // namespace consonant::jinja
