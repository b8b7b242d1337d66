// SPDX-License-Identifier: Apache-2.0
#include "models/experts.hpp"

#include <cmath>

#include "models/config.hpp"

namespace consonant {

namespace {

constexpr int64_t most = int64_t{1} << 24;  // far above any model; keeps products of sizes in range

int64_t count(const Meta& meta, const std::string& key, int64_t least, int64_t greatest) {
  const int64_t n = meta.integer(key);
  if (n < least || n > greatest)
    bad_input("{}: {} is {}, should be from {} to {}", meta.source, key, n, least, greatest);
  return n;
}

int64_t count_or(const Meta& meta, const std::string& key, int64_t least, int64_t greatest, int64_t fallback) {
  return meta.has(key) ? count(meta, key, least, greatest) : fallback;
}

Scoring scoring(const Meta& meta, const std::string& key, Scoring usual) {
  if (!meta.has(key)) return usual;
  switch (meta.integer(key)) {
    case 1:
      return Scoring::softmax;
    case 2:
      return Scoring::sigmoid;
    default:
      bad_input("{}: {} is {}; this version knows 1 (softmax) and 2 (sigmoid)", meta.source, key, meta.integer(key));
  }
}

// The first tensor whose name ends so must have `wanted` for its dimension `at`.
void check_tensors(const ModelFile& file, std::string_view ending, size_t at, const std::string& key, int64_t wanted) {
  for (const StoredTensor& t : file.tensors) {
    if (!t.name.ends_with(ending) || t.sizes.size() <= at) continue;
    if (t.sizes[at] != wanted)
      bad_input("{}: {} is {}, but {} is {}", file.meta->source, key, wanted, t.name, to_string(t.sizes));
    return;
  }
}

}  // namespace

ExpertConfig::ExpertConfig(const ModelFile& file, std::string_view architecture, const RouteAttr& usual)
    : route(usual) {
  const Meta& meta = *file.meta;
  const auto key = [&](std::string_view name) { return arch_key(architecture, name); };
  count = consonant::count(meta, key("expert_count"), 1, most);
  used = consonant::count(meta, key("expert_used_count"), 1, count);
  ff = consonant::count(meta, key("expert_feed_forward_length"), 1, most);
  shared = count_or(meta, key("expert_shared_count"), 0, most, 0);
  check_tensors(file, ".ffn_gate_inp.weight", 0, key("expert_count"), count);
  for (const std::string_view ending : {".ffn_up_exps.weight", ".ffn_down_exps.weight"})
    check_tensors(file, ending, 0, key("expert_count"), count);
  check_tensors(file, ".ffn_up_exps.weight", 1, key("expert_feed_forward_length"), ff);

  route.used = used;
  route.scoring = scoring(meta, key("expert_gating_func"), usual.scoring);
  route.normalise = meta.boolean(key("expert_weights_norm"), usual.normalise);
  const double scale = positive_number(meta, key("expert_weights_scale"), usual.scale);
  route.scale = static_cast<float>(scale);
  if (!std::isfinite(route.scale))
    bad_input("{}: {} is {}, too large", meta.source, key("expert_weights_scale"), scale);

  route.groups = count_or(meta, key("expert_group_count"), 1, count, usual.groups);
  route.groups_used = count_or(meta, key("expert_group_used_count"), 1, route.groups, route.groups);
  const int64_t in_group = count / route.groups;
  if (count % route.groups != 0)
    bad_input("{}: {} experts don't divide into {} groups ({})", meta.source, count, route.groups,
              key("expert_group_count"));
  if (route.groups > 1 && route.scoring == Scoring::sigmoid && in_group < 2)
    bad_input("{}: {} is {}, which leaves less than two of {} experts to a group", meta.source,
              key("expert_group_count"), route.groups, count);
  if (used > route.groups_used * in_group)
    bad_input("{}: {} is {}, but {} used groups ({}) have {} experts", meta.source, key("expert_used_count"), used,
              route.groups_used, key("expert_group_used_count"), route.groups_used * in_group);
}

}  // namespace consonant
