#include "ops/solve/operators.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <string>

#include "lcp/method.h"

namespace lcp::ops {
namespace {

// Throws unless the value is one of the names.
template <std::size_t count>
void check_name(std::string_view name, const Value& value, const std::array<const char*, count>& names) {
  const auto given = std::get<std::string_view>(value);
  if (std::find(names.begin(), names.end(), given) != names.end()) return;
  std::string listed;
  for (std::size_t k = 0; k < count; ++k) {
    listed.append(k == 0 ? "" : k + 1 == count ? " or " : ", ").append("\"").append(names[k]).append("\"");
  }
  TORCH_CHECK(false, name, " must be ", listed, "; got \"", given, "\"");
}

}  // namespace

void check_method(std::string_view name, const Value& value) { check_name(name, value, kMethodNames); }

void check_ties(std::string_view name, const Value& value) { check_name(name, value, kTiesNames); }

Ties ties_named(std::string_view name) {
  const auto* const found = std::find(kTiesNames.begin(), kTiesNames.end(), name);
  return static_cast<Ties>(found - kTiesNames.begin());
}

void check_solve(const Call& call) {
  if (std::get<double>(call.value("kappa")) == 0) return;
  const auto ties = std::get<std::string_view>(call.value("ties"));
  TORCH_CHECK(ties == "inactive",
              "ties must be \"inactive\" where kappa > 0, since a smoothed gradient has no ties; got \"", ties, "\"");
}

void check_num_equations(const Call& call) {
  const auto num_equations = std::get<std::int64_t>(call.value("num_equations"));
  TORCH_CHECK(num_equations >= 0 && num_equations <= call.size('n'),
              "num_equations must be 0..n with M's n = ", call.size('n'), "; got ", num_equations);
}

void check_solve_with_basis(const Call& call) {
  check_solve(call);
  check_num_equations(call);
  TORCH_CHECK(std::get<std::int64_t>(call.value("num_equations")) == 0 ||
                  std::holds_alternative<std::monostate>(call.value(kSizes.name)),
              "sizes must be None where there are equations");
  const auto* const guess = std::get_if<const Tensor*>(&call.value("guess"));
  if (guess == nullptr) return;
  const c10::SymInt pairs = call.size('n') - std::get<std::int64_t>(call.value("num_equations"));
  TORCH_CHECK(call.size('p') == pairs, "guess must be [..., n] with M's n = ", pairs, "; got ", (**guess).sym_sizes());
}

}  // namespace lcp::ops
