#include "peers.h"

namespace lcp::bench {

std::vector<PeerSolver> peer_solvers() {
  std::vector<PeerSolver> all;
  [[maybe_unused]] const auto append = [&](const std::vector<PeerSolver>& some) {
    all.insert(all.end(), some.begin(), some.end());
  };
#ifdef TORCHLCP_HAS_SICONOS
  append(siconos_solvers());
#endif
#ifdef TORCHLCP_HAS_BULLET
  append(bullet_solvers());
#endif
  return all;
}

std::vector<MixedPeerSolver> mixed_peer_solvers() {
#ifdef TORCHLCP_HAS_SICONOS
  return siconos_mixed_solvers();
#else
  return {};
#endif
}

}  // namespace lcp::bench
