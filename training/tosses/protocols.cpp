#include "tosses/protocols.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "lcp/physics/rotation.h"

namespace lcp::training {
namespace {

using identification::MotionWindows;
using identification::Recording;
using identification::RecordingSet;
using torch::Tensor;

// The least-squares parabola of gravity through positions, [n, 3], dt apart: position and velocity at the last, [2, 3].
// By sums, whose order is always the same, unlike that of LAPACK's.
Tensor flight(const Tensor& position, double gravity, double dt) {
  const std::int64_t n = position.size(0);
  const Tensor time = (dt * (at::arange(n, at::kDouble) - static_cast<double>(n - 1))).unsqueeze(1);
  Tensor line = position.clone();
  line.select(1, 2).add_(0.5 * gravity * time.squeeze(1).square());
  const Tensor middle = time.mean(), from_middle = time - middle;
  const Tensor velocity = (from_middle * line).sum(0) / from_middle.square().sum();
  return at::stack({line.mean(0) - velocity * middle, velocity});
}

// The vector in the axes of the world of x, [3], in those of bodies with the rotation matrices R, [..., 3, 3].
Tensor in_world(const Tensor& R, const Tensor& x) { return (R * x).sum(-1); }

}  // namespace

std::vector<Recording> recordings_of(const std::vector<Toss>& tosses) {
  std::vector<Recording> recordings;
  recordings.reserve(tosses.size());
  for (const Toss& toss : tosses) {
    recordings.push_back({toss.position.unsqueeze(1), toss.orientation.unsqueeze(1), toss.velocity.unsqueeze(1),
                          toss.angular_velocity.unsqueeze(1)});
  }
  return recordings;
}

MotionWindows windows_of(const std::vector<Toss>& tosses, double size, double gravity, double rate) {
  constexpr double kJump = 3, kPosition = 0.12, kRotation = 0.27;
  return {recordings_of(tosses),
          {.jump = kJump * gravity / rate, .position_unit = kPosition * size, .rotation_unit = kRotation}};
}

Segments whole_tosses(const std::vector<Toss>& tosses) {
  const RecordingSet set(recordings_of(tosses));
  return set.pieces(at::arange(set.count()), at::zeros({set.count()}, at::kLong),
                    set.samples().max().item<std::int64_t>());
}

Segments from_first_contact(const std::vector<Toss>& tosses, const BodyForm& form, double gravity, const Tensor& center,
                            double rate) {
  constexpr std::int64_t kFewest = 4, kLast = 10;
  std::vector<std::int64_t> first;
  std::vector<Tensor> position, velocity, angular_velocity;
  for (const Toss& toss : tosses) {
    const Tensor near = (toss.position.select(1, 2) <= form.reach).nonzero();
    const std::int64_t touch = near.size(0) > 0 ? near[0][0].item<std::int64_t>() : toss.count() - 1;
    const std::int64_t k = std::clamp<std::int64_t>(touch - 1, 0, toss.count() - 2);
    first.push_back(k);
    if (k + 1 >= kFewest) {
      angular_velocity.push_back(
          toss.angular_velocity.slice(0, std::max<std::int64_t>(0, k + 1 - kLast), k + 1).mean(0));
      const Tensor R = physics::rotation_matrix(toss.orientation.slice(0, 0, k + 1));
      const Tensor offset = in_world(R, center);
      const Tensor fitted = flight(toss.position.slice(0, 0, k + 1) - offset, gravity, 1 / rate);
      position.push_back(fitted[0] + offset[k]);
      velocity.push_back(fitted[1] + in_world(R[k], at::linalg_cross(angular_velocity.back(), center)));
    } else {
      position.push_back(toss.position[k]);
      velocity.push_back(toss.velocity[k]);
      angular_velocity.push_back(toss.angular_velocity[k]);
    }
  }
  const RecordingSet set(recordings_of(tosses));
  Segments pieces =
      set.pieces(at::arange(set.count()), torch::tensor(first, torch::kLong), set.samples().max().item<std::int64_t>());
  pieces.start.position = at::stack(position).unsqueeze(1);
  pieces.start.velocity = at::stack(velocity).unsqueeze(1);
  pieces.start.angular_velocity = at::stack(angular_velocity).unsqueeze(1);
  return pieces;
}

std::optional<Segments> windows(const std::vector<Toss>& tosses, std::int64_t steps, std::int64_t stride) {
  const RecordingSet set(recordings_of(tosses));
  std::vector<std::int64_t> toss, first;
  for (std::size_t k = 0; k < tosses.size(); ++k) {
    for (std::int64_t begin = 0; begin + steps < tosses[k].count(); begin += stride) {
      toss.push_back(static_cast<std::int64_t>(k));
      first.push_back(begin);
    }
  }
  if (toss.empty()) return std::nullopt;
  return set.pieces(torch::tensor(toss, torch::kLong), torch::tensor(first, torch::kLong), steps);
}

TossErrors step_errors(const Segments& measured, const physics::RigidState& predicted, const BodyForm& form) {
  const Tensor position = predicted.position.squeeze(-2), orientation = predicted.orientation.squeeze(-2);
  return {(position - measured.measured.position.squeeze(-2)).norm(2, {-1}),
          physics::angle_between(orientation, measured.measured.orientation.squeeze(-2)),
          (-form.lowest_point(position, orientation)).clamp_min(0)};
}

TossErrors mean_errors(const Segments& measured, const TossErrors& of_steps) {
  const Tensor exists = measured.exists();
  const auto mean = [&](const Tensor& x) { return at::where(exists, x, 0).sum(0) / measured.steps; };
  return {mean(of_steps.position), mean(of_steps.rotation), mean(of_steps.penetration)};
}

nlohmann::json summary_of(const TossErrors& errors, double size) {
  nlohmann::json metrics;
  const auto add = [&](const std::string& name, const Tensor& x) {
    metrics[name] = x.mean().item<double>();
    metrics[name + "_std"] = x.size(0) > 1 ? nlohmann::json(x.std().item<double>()) : nlohmann::json();
  };
  add("position_error_m", errors.position);
  add("position_error_percent", 100 / size * errors.position);
  add("rotation_error_rad", errors.rotation);
  add("rotation_error_deg", 180 / std::numbers::pi * errors.rotation);
  add("penetration_percent", 100 / size * errors.penetration);
  return metrics;
}

}  // namespace lcp::training
