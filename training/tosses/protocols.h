// How well a model of a body predicts tosses, in the three protocols of the literature.
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

#include "lcp/identification/motion_windows.h"
#include "tosses/body.h"
#include "tosses/tosses.h"

namespace lcp::training {

/// Pieces of tosses, recordings of one body each.
using Segments = identification::MotionPieces;

/// The tosses as recordings, [T, 1, ...].
std::vector<identification::Recording> recordings_of(const std::vector<Toss>& tosses);

/// Windows of tosses to learn from. Errors of .12 sizes and of .27 rad count 1: about so large are the errors of the
/// best known models, so that both count alike. Free flight and rest change the velocity by at most dt g from a sample
/// to the next, sliding and rolling by little more: three times as much shows an impact.
///   size: m, of the body. gravity: m/s^2. rate: samples per second.
identification::MotionWindows windows_of(const std::vector<Toss>& tosses, double size, double gravity, double rate);

/// Each toss from its first sample on [ContactNets].
Segments whole_tosses(const std::vector<Toss>& tosses);

/// Each toss from the last sample on at which no point of the body can touch the ground z = 0, since the recorded point
/// is higher than the reach of the form [APY]. Position and velocity there are fitted to the flight before,
/// where that has at least four samples: the centre of mass moves on a parabola, and the recorded point turns about it.
/// The angular velocity is the mean of the last ten samples of the flight.
///   gravity: m/s^2. center: [3], m, the recorded point from the centre of mass. rate: samples per second.
Segments from_first_contact(const std::vector<Toss>& tosses, const BodyForm& form, double gravity,
                            const torch::Tensor& center, double rate);

/// Pieces of `steps` steps that begin every `stride` samples; none where all tosses are shorter.
std::optional<Segments> windows(const std::vector<Toss>& tosses, std::int64_t steps, std::int64_t stride);

/// Of each step of each piece, [T, b], or of each piece, [b].
struct TossErrors {
  torch::Tensor position;     ///< m
  torch::Tensor rotation;     ///< rad, the angle between the orientations
  torch::Tensor penetration;  ///< m, of the lowest point of the predicted body below the ground
};

/// The errors of a predicted motion, [T, b, 1, ...].
///   form: of the body whose penetration is measured.
TossErrors step_errors(const Segments& measured, const physics::RigidState& predicted, const BodyForm& form);

/// The means of each piece over its steps.
TossErrors mean_errors(const Segments& measured, const TossErrors& of_steps);

/// position_error_m, position_error_percent (of the size), rotation_error_rad, rotation_error_deg and
/// penetration_percent, the means over the pieces, and their standard deviations, ..._std.
///   errors: of each piece.
nlohmann::json summary_of(const TossErrors& errors, double size);

}  // namespace lcp::training
