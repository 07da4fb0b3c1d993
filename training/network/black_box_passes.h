// Black boxes of all families, in passes: once, and networks from other random starts again while a search has taken
// longer.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "network/black_box.h"

namespace lcp::training {

struct BlackBoxes {
  std::map<std::int64_t, BlackBox> trained;  ///< by family + kBlackBoxFamilies * pass
  double seconds = 0;                        ///< that their training has taken

  /// The one with the least validation error; there must be one.
  const BlackBox& best() const;
};

struct PassOptions {
  std::int64_t iterations = 4000;  ///< for each network in the first pass; each further pass takes twice as many
  double seconds = 0;              ///< another pass follows while all have taken less than this; 0: there is one pass
  std::int64_t threads = 1;        ///< how many black boxes each process trains at once
  bool quiet = false;              ///< whether progress is not shown
};

/// Trains the black boxes that are missing in `boxes`, divided among the processes, and completes a pass that has
/// begun, whatever time it takes. Collective.
///   train: called by several threads, for the number of a black box in `trained` and its iterations.
///   changed: called after each group of black boxes that were trained at once.
///   stopped: once it returns true in one of the processes, the black boxes that are being trained are discarded, and
///   no others follow.
void train_in_passes(BlackBoxes& boxes, const PassOptions& options,
                     const std::function<BlackBox(std::int64_t number, std::int64_t iterations)>& train,
                     const std::function<void()>& changed, const std::function<bool()>& stopped);

}  // namespace lcp::training
