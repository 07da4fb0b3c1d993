#include "ops/solve/operators.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>

namespace lcp::ops {
namespace {

bool is_one_of(std::initializer_list<std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void check_method(std::string_view name, const Value& value) {
  const auto method = std::get<std::string_view>(value);
  TORCH_CHECK(is_one_of({"auto", "lemke", "enumeration", "newton_min", "central_path"}, method), name,
              " must be \"auto\", \"lemke\", \"enumeration\", \"newton_min\" or \"central_path\"; got \"", method,
              "\"");
}

void check_ties(std::string_view name, const Value& value) {
  const auto ties = std::get<std::string_view>(value);
  TORCH_CHECK(is_one_of({"inactive", "active", "midpoint"}, ties), name,
              " must be \"inactive\", \"active\" or \"midpoint\"; got \"", ties, "\"");
}

void check_solve(const Call& call) {
  const auto ties = std::get<std::string_view>(call.value("ties"));
  TORCH_CHECK(std::get<double>(call.value("kappa")) == 0 || ties == "inactive",
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
  const auto* const guess = std::get_if<const Tensor*>(&call.value("guess"));
  if (guess == nullptr) return;
  const c10::SymInt pairs = call.size('n') - std::get<std::int64_t>(call.value("num_equations"));
  TORCH_CHECK(call.size('p') == pairs, "guess must be [..., n] with M's n = ", pairs, "; got ", (**guess).sym_sizes());
}

}  // namespace lcp::ops
