// Other people's solvers, behind one interface.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "problem_set.h"

namespace lcp::bench {

/// A solver with its own copy of the problems, in its own layout.
class Peer {
 public:
  virtual ~Peer() = default;

  /// Makes good what a solve destroys of the problems; not timed.
  virtual void restore() {}

  /// Solves problem k; z is of n doubles. Returns what the solver itself says: that it has a solution.
  virtual bool solve(std::size_t k, double* z) = 0;
};

struct PeerSolver {
  std::string name;  ///< library: method
  bool needs_symmetric = false;
  int largest_n = 0;  ///< beyond it, it takes minutes
  std::unique_ptr<Peer> (*prepare)(const ProblemSet& set) = nullptr;
};

/// Those that were compiled in.
std::vector<PeerSolver> peer_solvers();

std::vector<PeerSolver> siconos_solvers();
std::vector<PeerSolver> bullet_solvers();

}  // namespace lcp::bench
