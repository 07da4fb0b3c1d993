// Walks linear complementarity systems in forward mode: the changes of their trajectories.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "batch/batch_path.h"
#include "lcp/ties.h"
#include "lcs/blocks.h"
#include "lcs/cone.h"
#include "lcs/system.h"
#include "lcs/tied_derivative.h"
#include "linalg/aligned.h"

namespace lcp::lcs {

/// With the change r of E x + H u + M z + q at constant z, z and w change by (dz, dw) = J r, see solver/active_set.h,
/// and x_next by the product rule; the w of a contact that sticks does not change. Smoothed, the changes are those that
/// Adjoint says. Where a step is not solved, all changes are NaN if what it starts from changes, else 0.
///
/// T is the type of the numbers in memory, double or float. Allocates for the longest run, and as TiedDerivative does.
template <class T>
class Tangent {
 public:
  /// kappa: > 0 where derivatives are smoothed, which have no ties.
  Tangent(const Size& size, Cone cone, Ties ties, double kappa = 0);

  void run(std::int64_t count, std::int64_t steps, const Given<T>& given, const WalkedSteps<T>& walked,
           const Given<T>& change, const Changes<T>& to);

 private:
  void run_block(std::int64_t count, std::int64_t steps, const Given<T>& given, const WalkedSteps<T>& walked,
                 const Given<T>& change, const Changes<T>& to);

  Size size_;
  Cone cone_;
  Ties ties_;
  TiedDerivative<T> derivative_;
  std::optional<batch::BatchPath<T>> path_;  // where derivatives are smoothed
  std::vector<T> M_;                         // the transposes, since the vector kernels have J' alone
  std::vector<T> r_, none_, dz_;             // numbers of one vector
  linalg::AlignedVector<double> workspace_;
};

}  // namespace lcp::lcs
