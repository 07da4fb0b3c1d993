// What train_network has computed, as a checkpoint.
#pragma once

#include <vector>

#include "lcp/learning/network_search.h"
#include "network/black_box.h"
#include "run/checkpoint.h"

namespace lcp::training {

struct NetworkState {
  std::vector<learning::NetworkRound> rounds;
  BlackBoxes black_boxes;
  double search_seconds = 0;

  /// Adds the state to a checkpoint.
  void save(Checkpoint& checkpoint) const;

  /// The state in a checkpoint, for networks with these parts. Throws std::exception where there is none.
  static NetworkState load(const Checkpoint& checkpoint, const nn::LcpNetworkOptions& parts);
};

}  // namespace lcp::training
