#include "ops/library.h"

#include <algorithm>
#include <array>
#include <vector>

#include "ops/active_set/operators.h"
#include "ops/certify/operators.h"
#include "ops/contact/operators.h"
#include "ops/friction/operators.h"
#include "ops/lcs/operators.h"
#include "ops/path/operators.h"
#include "ops/registration.h"
#include "ops/rollout/operators.h"
#include "ops/solve/operators.h"

namespace lcp::ops {
namespace {

// clang-format off
constexpr std::array kOperators = {
    &kSolve, &kSolveMixed, &kSolveWithBasis,
    &kPiece, &kTangent, &kAdjoint, &kSumOuter,
    &kPathPoint, &kPathTangent, &kPathAdjoint,
    &kCertify, &kDirectionalDerivative, &kGradientRadius,
    &kSolveContact, &kCertifyContact, &kAddEquality, &kEqualityImpulses, &kContactDual, &kDelassusDiagonal, &kContactParameters,
    &kContactPoint, &kContactAdjoint, &kContactInverse,
    &kSolveFriction, &kCertifyFriction, &kCertifyContacts, &kCertifyRows, &kFrictionProblem, &kFrictionMotion, &kFrictionPoint, &kFrictionPath, &kFrictionAdjoint, &kRowPoint, &kRowAdjoint, &kLeastNorm,
    &kSimulateLcs,
    &kRollout, &kRolloutAdjoint, &kRolloutTangent, &kRolloutAdjointTangent, &kRolloutTangentTangent, &kRolloutLinearization,
    &kRolloutCertificate,
};
// clang-format on

LCP_LIBRARY(library) {
  const std::vector<at::Tag> tags = {at::Tag::pt2_compliant_tag};
  for (const Operator* op : kOperators) library.def(op->schema().c_str(), tags);
}

}  // namespace

c10::ArrayRef<const Operator*> operators() { return kOperators; }

const Operator& find_operator(std::string_view name) {
  if (name.starts_with("lcp::")) name.remove_prefix(5);
  return **std::find_if(kOperators.begin(), kOperators.end(), [&](const Operator* op) { return op->name() == name; });
}

}  // namespace lcp::ops
