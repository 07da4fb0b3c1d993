// The solvers of other projects ("peers"), with one interface.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "friction_set.h"
#include "problem_set.h"

namespace lcp::bench {

/// A solver with its own copy of the problems, in its own layout.
class Peer {
 public:
  virtual ~Peer() = default;

  /// Restores the parts of the problems that a solve overwrites; not timed.
  virtual void restore() {}

  /// Solves problem k; z: n doubles. Returns whether the solver claims to have found a solution.
  virtual bool solve(std::size_t k, double* z) = 0;
};

struct PeerSolver {
  std::string name;  ///< library: method
  bool needs_symmetric = false;
  int largest_n = 0;  ///< a solve of a larger problem would take minutes
  std::unique_ptr<Peer> (*prepare)(const ProblemSet& set) = nullptr;
};

/// The peers that were found when this program was built.
std::vector<PeerSolver> peer_solvers();

std::vector<PeerSolver> siconos_solvers();
std::vector<PeerSolver> bullet_solvers();

/// The same for contact with friction.
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

/// The peers that were found when this program was built.
std::vector<FrictionPeerSolver> friction_peer_solvers();

std::vector<FrictionPeerSolver> siconos_friction_solvers();

}  // namespace lcp::bench
