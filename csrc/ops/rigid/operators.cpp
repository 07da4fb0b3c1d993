#include "ops/rigid/operators.h"

#include <c10/util/Exception.h>

#include "rigid/contact_law.h"

namespace lcp::ops {

rigid::Formulation formulation_named(std::string_view name) {
  if (name == "exact_cone") return rigid::Formulation::kExactCone;
  if (name == "polyhedral") return rigid::Formulation::kPolyhedral;
  TORCH_CHECK(name == "compliant", "formulation must be exact_cone, polyhedral or compliant; got ", name);
  return rigid::Formulation::kCompliant;
}

namespace {

// Returns the number of unknowns of all contacts, and checks the law.
c10::SymInt num_unknowns_of(const Call& call) {
  const auto directions = std::get<std::int64_t>(call.value("directions"));
  const rigid::Law law = {formulation_named(std::get<std::string_view>(call.value("formulation"))),
                          static_cast<int>(directions)};
  TORCH_CHECK(law.formulation != rigid::Formulation::kPolyhedral || directions >= 3, "directions must be >= 3; got ",
              directions);
  return call.size('c') * rigid::unknowns_of(law);
}

void check_scene(const Call& call) {
  TORCH_CHECK(call.first().scalar_type() == at::kDouble, "mass must be float64; got ", call.first().scalar_type());
  const auto pairs = std::get<c10::SymIntArrayRef>(call.value("pairs"));
  const c10::SymInt &bodies = call.size('b'), &balls = call.size('p'), &planes = call.size('h');
  TORCH_CHECK(call.size('c') * 4 == static_cast<std::int64_t>(pairs.size()),
              "pairs must have four numbers for each of mu's c = ", call.size('c'), " contacts; got ", pairs.size());
  for (std::size_t k = 0; k < pairs.size(); k += 4) {
    const auto check_range = [&](const char* what, const c10::SymInt& x, std::int64_t first, const c10::SymInt& end) {
      TORCH_CHECK(x >= first && x < end, "pair ", k / 4, " names ", what, " ", x, " of ", end);
    };
    check_range("body", pairs[k], 0, bodies);
    check_range("ball", pairs[k + 1], 0, balls);
    check_range("body", pairs[k + 2], -1, bodies);
    check_range("plane or ball", pairs[k + 3], 0, planes + balls);
    TORCH_CHECK(pairs[k] != pairs[k + 2] && (pairs[k + 2] >= 0 || pairs[k + 3] < planes), "pair ", k / 4,
                " must be of a body and another one, or a fixed plane");
  }
}

}  // namespace

void check_rigid(const Call& call) {
  check_scene(call);
  const c10::SymInt all = num_unknowns_of(call);
  TORCH_CHECK(call.size('s') == 0 || call.size('s') == all, "num_unknowns must be 0 or ", all, "; got ",
              call.size('s'));
}

void check_rigid_adjoint(const Call& call) {
  check_scene(call);
  const c10::SymInt all = num_unknowns_of(call);
  TORCH_CHECK(call.size('s') == all, "unknowns must be [..., T, ", all, "]; got [..., T, ", call.size('s'), "]");
}

}  // namespace lcp::ops
