// The solvers of other projects for contact with friction, with one interface.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "friction_set.h"

namespace lcp::bench {

/// A solver with its own copy of the problems, in its own layout.
class FrictionPeer {
 public:
  virtual ~FrictionPeer() = default;

  /// Solves problem k; gamma: 3 c doubles, (t1, t2, n) of each contact. Returns whether the solver claims to have found
  /// a solution.
  virtual bool solve(std::size_t k, double* gamma) = 0;
};

struct FrictionPeerSolver {
  std::string name;  ///< library: method
  std::unique_ptr<FrictionPeer> (*prepare)(const FrictionSet& set) = nullptr;
};

std::vector<FrictionPeerSolver> siconos_friction_solvers();

/// The peers that were found when this program was built.
inline std::vector<FrictionPeerSolver> friction_peer_solvers() {
#ifdef TORCHLCP_HAS_SICONOS
  return siconos_friction_solvers();
#else
  return {};
#endif
}

}  // namespace lcp::bench
