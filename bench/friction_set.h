// The problems of rigid contact with friction that every solver of the benchmarks gets, by the generator of the tests,
// and one judge of all answers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/rigid_contacts.h"

namespace lcp::bench {

/// Problems of one shape, drawn with a fixed seed. All tensors are float64 and contiguous.
struct FrictionSet {
  std::vector<testing::RigidContacts> problems;
  at::Tensor A, v_free, J, b, mu;  ///< as lcp::solve_friction takes them, with one batch dimension

  at::Tensor v;  ///< [count, n], the velocities with the exact cone, by lcp::solve_friction
  /// [count], bool: v is solved for, and lcp::certify_friction says that it is determined.
  at::Tensor unique;

  std::int64_t count() const { return b.size(0); }
  std::int64_t contacts() const { return mu.size(1); }
};

/// How many problems the set of that name has.
std::int64_t friction_count(const std::string& name);

/// The set of that name, generated once. Names are kind_number:
///   c_K       one body, a box or a rod, with K = 1..8 contacts
///   bodies_B  B = 2..4 bodies with masses from .01 to 100 kg and 8 contacts
///   stack_C   C / 4 boxes on one another, C contacts, with masses from .01 to 100 kg
/// Throws std::invalid_argument for any other.
const FrictionSet& friction_set(const std::string& name);

/// J A^-1 J', [count, 3 c, 3 c].
at::Tensor delassus(const FrictionSet& set);

/// What a solver returns for a set.
struct FrictionAnswer {
  at::Tensor v;       ///< [count, n]
  at::Tensor gamma;   ///< [count, 3 c]
  at::Tensor claims;  ///< [count], bool, whether the solver says that it has solved the problem
};

/// The answer of impulses alone: v = v_free + A^-1 J' gamma.
FrictionAnswer answer_of(const FrictionSet& set, const at::Tensor& gamma, const at::Tensor& claims);

/// All answers by the same formulas, which are not the library's: the larger of the residual of FrictionOptions and of
/// the relative error of A (v - v_free) = J' gamma.
struct FrictionVerdict {
  std::int64_t claimed = 0;
  std::int64_t solved = 0;        ///< residual <= 1e-8, whatever the solver says
  std::int64_t false_claims = 0;  ///< claimed, and not residual <= 1e-6
};
FrictionVerdict judge(const FrictionSet& set, const FrictionAnswer& answer);

/// The largest component of J (v - set.v), contact velocities, over the largest |J v_free + b|; of the claimed elements
/// where set.v is unique. v - set.v itself has m/s and rad/s. It is 0 only where J (v - set.v) is.
struct VelocityErrors {
  std::int64_t compared = 0;
  double median = 0, ninety = 0, largest = 0;  ///< ninety: 90 % of all are at most this
};
VelocityErrors velocity_errors(const FrictionSet& set, const FrictionAnswer& answer);

}  // namespace lcp::bench
