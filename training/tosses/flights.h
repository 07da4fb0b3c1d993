// What the free flights of tosses tell.
#pragma once

#include <cstdint>
#include <vector>

#include "tosses/body.h"
#include "tosses/estimate.h"
#include "tosses/tosses.h"

namespace lcp::training {

struct Flights {
  Estimate gravity;    ///< m/s^2
  Estimate center[3];  ///< m, the recorded point from the centre of mass, in the axes of the body
  Estimate drag;       ///< 1/s, the deceleration per velocity
  std::int64_t count;  ///< of the tosses whose flights are long enough

  /// The drag, or 0 where its interval is not above 0 or there are fewer than 20 flights, whose interval says little.
  double seen_drag() const { return count >= 20 && drag.low > 0 ? drag.value : 0; }
};

/// Least squares over the samples of each toss from its first on in which the body cannot touch the ground, of
///   p = p_0 + v_0 t - gravity t^2 / 2 e_z - drag (integral of p - p_0) + R center
/// for gravity, drag and the centre, or without drag for the others where it is not seen; R is the measured
/// orientation, p_0 and v_0 are each toss's own. The intervals allow for errors that are correlated within a toss.
///   form: of the body. rate: samples per second.
/// Throws a UsageError where fewer than two tosses have eight such samples.
Flights fit_flights(const std::vector<Toss>& tosses, const BodyForm& form, double rate);

}  // namespace lcp::training
