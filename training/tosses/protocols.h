// How well a model of a cube predicts tosses, in the three protocols of the literature.
//
//   [ContactNets] Pfrommer, Halm, Posa: ContactNets: Learning discontinuous contact dynamics with smooth, implicit
//                 representations, CoRL 2020.
//   [APY]         Acosta, Yang, Posa: Validating robotics simulators on real-world impacts, RA-L 2022.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "lcp/physics/rigid_body.h"
#include "tosses/tosses.h"

namespace lcp::training {

/// Pieces of tosses, b of them, padded to the length of the longest, float64.
struct Segments {
  physics::RigidState start;       ///< [b, 1, ...]
  torch::Tensor position;          ///< [T, b, 3], m, measured after each step; beyond the end of a piece its last one
  torch::Tensor orientation;       ///< [T, b, 4]
  torch::Tensor velocity;          ///< [T, b, 3], m/s
  torch::Tensor angular_velocity;  ///< [T, b, 3], rad/s
  torch::Tensor steps;             ///< [b], int64

  std::int64_t count() const { return steps.size(0); }
  std::int64_t longest() const { return position.size(0); }
  Segments at(const torch::Tensor& index) const;  ///< some of them, index [k], int64

  /// Whether a step exists, [T, b], bool.
  torch::Tensor exists() const;
};

/// The height above z = 0 of the lowest corner of a cube, [...], m.
torch::Tensor lowest_corner(const torch::Tensor& position, const torch::Tensor& orientation, double side);

/// Tosses, padded to the length of the longest.
class TossSet {
 public:
  explicit TossSet(const std::vector<Toss>& tosses);

  std::int64_t count() const { return samples_.size(0); }
  const torch::Tensor& samples() const { return samples_; }  ///< [count()], int64, of each toss

  /// Pieces of tosses: `steps` steps from sample `first` on, or to the end. toss, first: [b], int64.
  Segments pieces(const torch::Tensor& toss, const torch::Tensor& first, std::int64_t steps) const;

 private:
  torch::Tensor position_, orientation_, velocity_, angular_velocity_, samples_;
};

/// Each toss from its first sample on [ContactNets].
Segments whole_tosses(const std::vector<Toss>& tosses);

/// Each toss from the last sample on at which the lowest corner of a cube cannot touch the ground z = 0, since its
/// centre is higher than sqrt(3) half its side [APY]. Position and velocity there are fitted to the flight before,
/// where that has at least four samples: the centre of mass moves on a parabola, and the recorded point turns about it.
/// The angular velocity is the mean of the last ten samples of the flight.
///   side: m. gravity: m/s^2. center: [3], m, the recorded point from the centre of mass. rate: samples per second.
Segments from_first_contact(const std::vector<Toss>& tosses, double side, double gravity, const torch::Tensor& center,
                            double rate);

/// Pieces of `steps` steps that begin every `stride` samples; none where all tosses are shorter.
std::optional<Segments> windows(const std::vector<Toss>& tosses, std::int64_t steps, std::int64_t stride);

/// Of each step of each piece, [T, b], or of each piece, [b].
struct TossErrors {
  torch::Tensor position;     ///< m
  torch::Tensor rotation;     ///< rad, the angle between the orientations
  torch::Tensor penetration;  ///< m, of the lowest corner of the predicted cube below the ground
};

/// The errors of predicted positions, [T, b, 3], and orientations, [T, b, 4].
///   side: m, of the cube whose penetration is measured.
TossErrors step_errors(const Segments& measured, const torch::Tensor& position, const torch::Tensor& orientation,
                       double side);

/// The means of each piece over its steps.
TossErrors mean_errors(const Segments& measured, const TossErrors& of_steps);

/// position_error_m, position_error_percent (of the side), rotation_error_rad, rotation_error_deg and
/// penetration_percent, the means over the pieces, and their standard deviations, ..._std.
///   errors: of each piece.
nlohmann::json summary_of(const TossErrors& errors, double side);

}  // namespace lcp::training
