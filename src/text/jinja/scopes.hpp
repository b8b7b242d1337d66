// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "text/jinja/ast.hpp"

namespace consonant::jinja {

// Gives every name of the template its slot and every scope what it loads on entry.
//
// jinja2 decides from the text of a template, before it runs, where a name is looked up: a name that is assigned
// anywhere in a scope belongs to that scope, and whether its first use stands before or after the first assignment
// decides if it starts with the caller's variable of that name or unset. Published templates depend on this, so it is
// done in the same way here (jinja2's idtracking).
void resolve_scopes(Template& tree);

}  // namespace consonant::jinja
