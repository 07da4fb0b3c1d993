// The problems of a step with impacts.
#pragma once

#include <cstdint>
#include <vector>

#include "rigid/scene.h"
#include "rigid/vectors.h"

namespace lcp::rigid {

/// A problem of a step with impacts, and its solution.
struct StepProblem {
  enum class Kind {
    kStart,    ///< the contacts that are no impacts
    kImpacts,  ///< all impacts at one time
    kSlow      ///< the contacts that an impact has made close slower than the threshold
  };
  enum class Role : std::uint8_t {
    kHolds,    ///< the contact may close its gap by the end of the step, without rebound
    kBounces,  ///< the contact is an impact, later than the problem
    kFirst     ///< the contact is an impact at the time of the problem
  };

  Kind kind = Kind::kStart;
  std::vector<int> chosen;                 ///< pairs
  std::vector<Role> roles;                 ///< of the chosen
  std::vector<double> v, gamma, unknowns;  ///< as ContactResult has them
  std::vector<std::int8_t> states;
};

/// Calls set(body, x) for each free body on which impacts of the role kFirst act with a positive impulse; x is the mean
/// of of_impact over these impacts.
///   chosen, roles, gamma: of StepProblem. of_impact(j, is_other): a vector of the chosen contact j for its body, or
///   for its other body.
template <class T, class OfImpact, class Set>
void for_each_hit(const Scene& scene, const std::vector<int>& chosen, const std::vector<StepProblem::Role>& roles,
                  const std::vector<double>& gamma, const OfImpact& of_impact, const Set& set) {
  for (int body = 0; body < scene.free(); ++body) {
    Vector<T> sum = {};
    int count = 0;
    for (std::size_t j = 0; j < chosen.size(); ++j) {
      const Pair& pair = scene.pairs[chosen[j]];
      if (roles[j] != StepProblem::Role::kFirst || !(gamma[3 * j + 2] > 0)) continue;
      if (pair.body != body && pair.other_body != body) continue;
      sum = sum + of_impact(j, pair.body != body);
      ++count;
    }
    if (count > 0) set(body, count == 1 ? sum : (1.0 / count) * sum);
  }
}

}  // namespace lcp::rigid
