// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/scopes.hpp"

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "text/jinja/library.hpp"

namespace consonant::jinja {

namespace {

// What runs with a frame of its own.
struct Function {
  explicit Function(Function* o) : outer(o) {}
  Function* outer;
  std::map<std::pair<int, std::string>, int> slots;
  int slot(int level, const std::string& name) {
    return slots.emplace(std::pair(level, name), static_cast<int>(slots.size())).first->second;
  }
  int size() const { return static_cast<int>(slots.size()); }
};

// The names of one scope.
class Symbols {
 public:
  Symbols(Symbols* parent, Function* function, int level) : parent_(parent), function_(function), level_(level) {}

  void store(const std::string& name) {
    stores_.insert(name);
    if (refs_.count(name)) return;
    if (parent_ && parent_->find(name))
      define(name, Load::From::outer);
    else
      define(name, Load::From::nowhere);
  }
  int declare_parameter(const std::string& name) {
    stores_.insert(name);
    return define(name, std::nullopt);
  }
  void load(const std::string& name) {
    if (!find(name)) define(name, Load::From::context);
  }

  // A branch of an `if` was analysed on a copy; what any of them stored may or may not have been stored afterwards.
  void merge(const std::vector<Symbols>& branches) {
    std::set<std::string> stored;
    for (const Symbols& b : branches) stored.insert(b.stores_.begin(), b.stores_.end());
    for (const std::string& name : stores_) stored.erase(name);
    for (const Symbols& b : branches) {
      for (const auto& [name, slot] : b.refs_) refs_[name] = slot;
      for (const auto& [slot, from] : b.loads_) loads_[slot] = from;
      for (const auto& name : b.stores_) stores_.insert(name);
    }
    for (const std::string& name : stored)
      loads_[refs_.at(name)] = parent_ && parent_->find(name) ? Load::From::outer : Load::From::context;
  }

  SlotRef ref(const std::string& name, int line) const {
    const auto found = find(name);
    if (!found) fail_at(line, "the name '{}' isn't known here", name);
    return seen_from_here(*found);
  }

  Scope scope() const {
    Scope scope;
    for (const auto& [name, slot] : refs_) {
      scope.clear.push_back(slot);
      const auto& from = loads_.at(slot);
      if (!from) continue;  // a parameter
      Load load{*from, slot, name, {}};
      if (*from == Load::From::outer) load.source = seen_from_here(*parent_->find(name));
      scope.loads.push_back(std::move(load));
    }
    return scope;
  }

  Function* function() const { return function_; }
  int level() const { return level_; }
  size_t size() const { return refs_.size(); }

 private:
  struct Place {
    const Function* function;
    int slot;
  };
  std::optional<Place> find(const std::string& name) const {
    const auto it = refs_.find(name);
    if (it != refs_.end()) return Place{function_, it->second};
    return parent_ ? parent_->find(name) : std::nullopt;
  }
  SlotRef seen_from_here(const Place& place) const {
    SlotRef ref{0, place.slot};
    for (const Function* f = function_; f != place.function; f = f->outer) ++ref.hops;
    return ref;
  }
  int define(const std::string& name, std::optional<Load::From> from) {
    const int slot = function_->slot(level_, name);
    refs_[name] = slot;
    loads_[slot] = from;
    return slot;
  }

  Symbols* parent_;
  Function* function_;
  int level_;
  std::map<std::string, int> refs_;
  std::map<int, std::optional<Load::From>> loads_;  // nothing: a parameter
  std::set<std::string> stores_;
};

// Collects the names of one scope. It doesn't go into the scopes within.
class Collector {
 public:
  explicit Collector(Symbols& symbols) : symbols_(&symbols) {}

  void visit(Node& node) {
    switch (node.kind) {
      case NodeKind::name:
        return name(static_cast<NameNode&>(node));
      case NodeKind::space_attribute:
        return symbols_->load(static_cast<SpaceAttributeNode&>(node).name);
      case NodeKind::if_:
        return if_(static_cast<IfNode&>(node));
      case NodeKind::macro:
        return symbols_->store(static_cast<MacroNode&>(node).name);
      case NodeKind::set:
        visit(*static_cast<SetNode&>(node).value);
        return visit(*static_cast<SetNode&>(node).target);
      case NodeKind::for_:
        return visit(*static_cast<ForNode&>(node).items);
      case NodeKind::call_block: {
        const auto& call = static_cast<CallBlockNode&>(node).call;
        return call ? visit(*call) : void();
      }
      case NodeKind::filter_block:
        return visit(*static_cast<FilterBlockNode&>(node).filter);
      case NodeKind::with:
        return visit(static_cast<WithNode&>(node).values);
      case NodeKind::set_block:
        return visit(*static_cast<SetBlockNode&>(node).target);
      default:
        return for_each_child(node, [this](Node& child) { visit(child); });
    }
  }
  void visit(const Body& body) {
    for (const NodePtr& node : body) visit(*node);
  }
  void parameters(Node& target) {
    if (target.kind == NodeKind::name)
      symbols_->declare_parameter(static_cast<NameNode&>(target).name);
    else
      for_each_child(target, [this](Node& child) { parameters(child); });
  }

 private:
  void name(NameNode& node) {
    switch (node.use) {
      case NameUse::load:
        return symbols_->load(node.name);
      case NameUse::store:
        return symbols_->store(node.name);
      case NameUse::parameter:
        symbols_->declare_parameter(node.name);
    }
  }

  Symbols branch(const Symbols& before, const Body& body) {
    // The copies make this quadratic in the number of branches and names: what no template needs is refused.
    if ((work_ += before.size() + 1) > max_work) fail(Fault::limit, "the template has too many branches and names");
    Symbols copy = before;
    Symbols* outer = std::exchange(symbols_, &copy);
    visit(body);
    symbols_ = outer;
    return copy;
  }

  void if_(IfNode& node) {
    visit(*node.branches.front().test);
    const Symbols before = *symbols_;
    Symbols body = branch(before, node.branches.front().body);
    Symbols others = before;
    Symbols* outer = std::exchange(symbols_, &others);
    for (size_t i = 1; i < node.branches.size(); ++i) {
      visit(*node.branches[i].test);
      const Symbols here = others;
      others.merge({branch(here, node.branches[i].body)});
    }
    symbols_ = outer;
    Symbols otherwise = branch(before, node.otherwise);
    symbols_->merge({std::move(body), std::move(others), std::move(otherwise)});
  }

  static constexpr size_t max_work = 500'000;
  Symbols* symbols_;
  size_t work_ = 0;
};

// Which of `names` are read somewhere below before they are assigned there.
class Undeclared {
 public:
  explicit Undeclared(std::set<std::string> names) : names_(std::move(names)) {}
  void visit(Node& node) {
    if (node.kind == NodeKind::name) {
      const auto& name = static_cast<NameNode&>(node);
      if (name.use == NameUse::load && names_.count(name.name))
        found.insert(name.name);
      else
        names_.erase(name.name);
    }
    for_each_child(node, [this](Node& child) { visit(child); });
  }
  void visit(const Body& body) {
    for (const NodePtr& node : body) visit(*node);
  }
  std::set<std::string> found;

 private:
  std::set<std::string> names_;
};

// Goes through the tree with the symbols of each scope at hand and writes down the slots.
class Resolver {
 public:
  void run(Template& tree) {
    Function function(nullptr);
    Symbols symbols(nullptr, &function, 0);
    Collector(symbols).visit(tree.body);
    resolve(tree.body, symbols, false);
    tree.scope = symbols.scope();
    tree.slots = function.size();
  }

 private:
  static Symbols inner(Symbols& outer) { return Symbols(&outer, outer.function(), outer.level() + 1); }

  void resolve(const Body& body, Symbols& symbols, bool soft) {
    for (const NodePtr& node : body) resolve(*node, symbols, soft);
  }

  // `soft`: within an `if`, where a filter or test that doesn't exist is only an error if it is reached.
  void resolve(Node& node, Symbols& symbols, bool soft) {
    switch (node.kind) {
      case NodeKind::name: {
        auto& name = static_cast<NameNode&>(node);
        if (loops_ > 0 && name.use == NameUse::store && name.name == "loop")
          fail_at(node.line, "'loop' can't be assigned to within a loop");
        name.ref = symbols.ref(name.name, node.line);
        return;
      }
      case NodeKind::space_attribute:
        static_cast<SpaceAttributeNode&>(node).ref =
            symbols.ref(static_cast<SpaceAttributeNode&>(node).name, node.line);
        return;
      case NodeKind::filter:
      case NodeKind::test: {
        const auto& f = static_cast<FilterNode&>(node);
        const bool filter = node.kind == NodeKind::filter;
        if (!soft && !(filter ? has_filter(f.name) : has_test(f.name)))
          fail_at(node.line, "there is no {} '{}'", filter ? "filter" : "test", f.name);
        break;
      }
      case NodeKind::condition:
      case NodeKind::if_:
        return for_each_child(node, [&](Node& child) { resolve(child, symbols, true); });
      case NodeKind::for_:
        return for_(static_cast<ForNode&>(node), symbols);
      case NodeKind::macro:
        static_cast<MacroNode&>(node).ref = symbols.ref(static_cast<MacroNode&>(node).name, node.line);
        return macro(static_cast<MacroNode&>(node), symbols);
      case NodeKind::call_block: {
        auto& block = static_cast<CallBlockNode&>(node);
        if (block.call) resolve(*block.call, symbols, soft);
        return macro(*block.caller, symbols);
      }
      case NodeKind::filter_block: {
        auto& block = static_cast<FilterBlockNode&>(node);
        Symbols within = inner(symbols);
        Collector collector(within);
        collector.visit(block.body);
        collector.visit(*block.filter);
        resolve(block.body, within, false);
        resolve(*block.filter, within, false);
        block.scope = within.scope();
        return;
      }
      case NodeKind::set_block: {
        auto& block = static_cast<SetBlockNode&>(node);
        Symbols within = inner(symbols);
        Collector(within).visit(block.body);
        resolve(block.body, within, false);
        if (block.filter) resolve(*block.filter, within, false);
        resolve(*block.target, symbols, soft);
        block.scope = within.scope();
        return;
      }
      case NodeKind::with:
        return with(static_cast<WithNode&>(node), symbols, soft);
      default:
        break;
    }
    for_each_child(node, [&](Node& child) { resolve(child, symbols, soft); });
  }

  void with(WithNode& node, Symbols& symbols, bool soft) {
    resolve(node.values, symbols, soft);
    Symbols within = inner(symbols);
    Collector collector(within);
    collector.visit(node.targets);
    collector.visit(node.body);
    resolve(node.targets, within, false);
    resolve(node.body, within, false);
    node.scope = within.scope();
  }

  void for_(ForNode& node, Symbols& symbols) {
    resolve(*node.items, symbols, false);
    Function own(symbols.function());
    Function* function = node.recursive ? &own : symbols.function();
    const int level = symbols.level() + 1;
    Symbols body(&symbols, function, level), otherwise(&symbols, function, level);
    // The test sees its own copies of the loop's variables: it may look at the next item while the body runs.
    Symbols test(&symbols, function, level + test_levels);

    Undeclared uses({"loop"});
    uses.visit(node.body);
    if (node.recursive || !uses.found.empty()) node.loop_slot = body.declare_parameter("loop");
    Collector collector(body);
    collector.parameters(*node.target);
    collector.visit(node.body);
    Collector(otherwise).visit(node.otherwise);

    ++loops_;
    if (node.test) {
      Collector test_collector(test);
      test_collector.parameters(*node.test_target);
      test_collector.visit(*node.test);
      resolve(*node.test_target, test, false);
      resolve(*node.test, test, false);
      node.test_scope = test.scope();
    }
    resolve(*node.target, body, false);
    resolve(node.body, body, false);
    resolve(node.otherwise, otherwise, false);
    --loops_;
    node.body_scope = body.scope();
    node.else_scope = otherwise.scope();
    node.slots = own.size();
  }

  void macro(MacroNode& node, Symbols& symbols) {
    Function function(symbols.function());
    Symbols within(&symbols, &function, symbols.level() + 1);
    const auto analyse = [&] {
      Collector collector(within);
      for (const auto& parameter : node.parameters) collector.visit(*parameter);
      collector.visit(node.defaults);
      collector.visit(node.body);
    };
    analyse();
    Undeclared uses({"caller", "kwargs", "varargs"});
    uses.visit(node.body);
    std::set<std::string> parameters;
    node.uses_caller = uses.found.count("caller") > 0;
    for (size_t i = 0; i < node.parameters.size(); ++i) {
      parameters.insert(node.parameters[i]->name);
      if (node.parameters[i]->name != "caller") continue;
      node.has_caller_parameter = true;
      if (uses.found.count("caller") && i + node.defaults.size() < node.parameters.size())
        fail_at(node.line, "the parameter 'caller' of a macro needs a default, or must be left out");
    }
    if (uses.found.count("caller") && !node.has_caller_parameter) node.caller_slot = within.declare_parameter("caller");
    if (uses.found.count("kwargs") && !parameters.count("kwargs"))
      node.kwargs_slot = within.declare_parameter("kwargs");
    if (uses.found.count("varargs") && !parameters.count("varargs"))
      node.varargs_slot = within.declare_parameter("varargs");
    analyse();
    for (const auto& parameter : node.parameters) resolve(*parameter, within, false);
    resolve(node.defaults, within, false);
    resolve(node.body, within, false);
    node.scope = within.scope();
    node.slots = function.size();
  }

  static constexpr int test_levels = 1'000'000;
  int loops_ = 0;
};

}  // namespace

void resolve_scopes(Template& tree) { Resolver().run(tree); }

}  // namespace consonant::jinja
