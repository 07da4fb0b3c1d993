#include "simulation/tripod_flags.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "run/error.h"

namespace lcp::training {
namespace {

// Supports whose triangle has no more area than this times the terms of its sum lie on a line, up to rounding.
constexpr double kNoArea = 1e-14;

// Whether (0, 0) is within the triangle of the supports, that is on the same side of all its edges.
bool carries(const std::vector<double>& supports) {
  double least = INFINITY, most = -INFINITY, area = 0, terms = 0;
  for (std::size_t i = 0; i < 6; i += 2) {
    const std::size_t j = (i + 2) % 6;
    const double to_x = supports[i] * supports[j + 1];
    const double to_y = supports[i + 1] * supports[j];
    const double side = to_x - to_y;
    least = std::min(least, side);
    most = std::max(most, side);
    area += side;
    terms += std::abs(to_x) + std::abs(to_y);
  }
  return std::abs(area) > kNoArea * terms && (least >= 0 || most <= 0);
}

}  // namespace

std::string even_directions(const std::int64_t& n) { return n >= 4 && n % 2 == 0 ? at_least_one(n) : "even and >= 4"; }

void TripodFlags::add_to(CommandLine& line) {
  line.add("directions", directions, "Directions of each support's friction polygon", even_directions);
  line.add("inertia", inertia, "Moment of inertia about the centre of mass, kg m^2", positive);
  line.add("supports", supports, "X1 Y1 X2 Y2 X3 Y3, the supports from the centre of mass, m", finite_numbers(6));
  line.add("com-height", com_height, "Height of the centre of mass over the plane, m", nonnegative);
}

physics::Tripod TripodFlags::tripod(const PhysicsFlags& block) const {
  if (!carries(supports)) throw UsageError("--supports must have the centre of mass, (0, 0), within their triangle");
  auto tripod = physics::Tripod::of(block.mass, inertia, block.dt, block.mu, block.gravity, com_height);
  tripod.supports = at::tensor(supports, at::kDouble).view({3, 2});
  return tripod;
}

}  // namespace lcp::training
