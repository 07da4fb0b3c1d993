// The solvers of other projects ("peers"), with one interface.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/circuits.h"
#include "support/problems.h"

namespace lcp::bench {

/// A solver with its own copy of the problems, in its own layout.
class Peer {
 public:
  virtual ~Peer() = default;

  /// Restores the parts of the problems that a solve overwrites; not timed.
  virtual void restore() {}

  /// Solves problem k; z: n doubles, of a mixed problem its k equations' unknowns and then z. Returns whether the
  /// solver claims to have found a solution.
  virtual bool solve(std::size_t k, double* z) = 0;
};

/// P: testing::Problem or testing::MixedProblem.
template <class P>
struct PeerSolverOf {
  std::string name;  ///< library: method
  bool needs_symmetric = false;
  int largest_n = 0;  ///< a solve of a larger problem, of more pairs, would take minutes
  /// The problems must outlive the peer.
  std::function<std::unique_ptr<Peer>(const std::vector<P>& problems)> prepare;
};
using PeerSolver = PeerSolverOf<testing::Problem>;
using MixedPeerSolver = PeerSolverOf<testing::MixedProblem>;

/// The peers that were found when this program was built.
std::vector<PeerSolver> peer_solvers();
std::vector<MixedPeerSolver> mixed_peer_solvers();

std::vector<PeerSolver> siconos_solvers();
std::vector<MixedPeerSolver> siconos_mixed_solvers();
std::vector<PeerSolver> bullet_solvers();

/// Drake's, through `python`, the path of an interpreter that has it. They are for counts alone: a solve includes the
/// way to another process.
std::vector<PeerSolver> drake_solvers(const std::string& python);

}  // namespace lcp::bench
