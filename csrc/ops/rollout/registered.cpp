#include "ops/rollout/registered.h"

#include <c10/util/Exception.h>

#include <cmath>
#include <list>
#include <memory>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "ops/rollout/kind.h"
#include "systems/formulas.h"

namespace lcp::ops {
namespace {

// Why a name cannot be that of a step in a text, see step_text.h; empty where it can.
std::string fault_of_name(std::string_view name) {
  if (!name.empty() && name.find_first_of(" =,") == std::string_view::npos) return {};
  return "the name of a step must not be empty nor have spaces, commas or =; got \"" + std::string(name) + '"';
}

// Says where M depends on z, at some numbers; empty where it does not. Formulas that are not finite there say nothing.
std::string fault_of_pairs(std::string_view name, const detail::RegisteredStep& step) {
  constexpr int kDraws = 16;
  constexpr double kTolerance = 1e-9;  // relative to the largest entry of M
  const detail::StepSizes& sizes = step.sizes();
  const int n = sizes.pairs;
  std::mt19937_64 generator;
  std::uniform_real_distribution<double> number(0.1, 2);
  std::vector<double> given(sizes.given()), M(n * n), moved_M(n * n), q(n);
  for (int draw = 0; draw < kDraws; ++draw) {
    for (int k = 0; k < sizes.given(); ++k) given[k] = k < sizes.starts() ? number(generator) : 0;
    step.problem(given.data(), M.data(), q.data());
    for (int i = 0; i < n; ++i) given[sizes.starts() + i] = number(generator);
    step.problem(given.data(), moved_M.data(), q.data());
    double largest = 0;
    for (const double entry : M) largest = std::max(largest, std::abs(entry));
    for (int k = 0; k < n * n; ++k) {
      if (!(std::abs(moved_M[k] - M[k]) > kTolerance * largest)) continue;
      std::ostringstream text;
      text << "pairs of " << name << " must be affine in z; the derivative of w_" << k / n << " in z_" << k % n
           << " is " << M[k] << " at z = 0 and " << moved_M[k] << " elsewhere";
      return text.str();
    }
  }
  return {};
}

struct Entry {
  std::string name;
  std::unique_ptr<const detail::RegisteredStep> step;
  systems::System system;
  std::unique_ptr<RolloutKind> kind;
  std::string fault;
  bool is_checked = false;

  Entry(std::string name_of, std::unique_ptr<const detail::RegisteredStep> made)
      : name(std::move(name_of)),
        step(std::move(made)),
        system(systems::system_of(name, *step)),
        kind(system_kind(system)),
        fault(fault_of_name(name)) {}
};

// Entries are never removed, so that what was found stays valid; the first of a name is the last one registered.
struct Registry {
  std::mutex mutex;
  std::list<Entry> entries;

  Entry* find(std::string_view name) {
    for (Entry& entry : entries) {
      if (entry.name == name) return &entry;
    }
    return nullptr;
  }
};

Registry& registry() {
  static Registry all;
  return all;
}

// nullptr where there is no step of this name. Throws c10::Error where the step has a fault.
const Entry* find_checked(std::string_view name) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  Entry* const entry = all.find(name);
  if (entry == nullptr) return nullptr;
  if (!entry->is_checked && find_library_kind(name) != nullptr) {
    entry->fault = entry->name + " is the name of a step of the library; register yours under another one";
  }
  if (!entry->is_checked && entry->fault.empty()) entry->fault = fault_of_pairs(name, *entry->step);
  entry->is_checked = true;
  TORCH_CHECK(entry->fault.empty(), entry->fault);
  return entry;
}

}  // namespace

void add_step(std::string name, std::unique_ptr<const detail::RegisteredStep> step) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (Entry* const other = all.find(name)) {
    if (std::string_view(other->step->type().name()) != step->type().name()) {
      other->fault = "two different steps are registered as " + name;
      return;
    }
  }
  all.entries.emplace_front(std::move(name), std::move(step));
}

const RolloutKind* find_registered_kind(std::string_view name) {
  const Entry* const entry = find_checked(name);
  return entry == nullptr ? nullptr : entry->kind.get();
}

const detail::RegisteredStep& registered_step(std::string_view name) {
  const Entry* const entry = find_checked(name);
  TORCH_CHECK(entry != nullptr, "there is no registered step \"", name,
              "\"; the library that registers it must be loaded");
  return *entry->step;
}

}  // namespace lcp::ops
