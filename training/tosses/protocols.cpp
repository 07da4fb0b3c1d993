#include "tosses/protocols.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "lcp/physics/rotation.h"

namespace lcp::training {
namespace {

using torch::Tensor;

// Samples first, first + 1, ..., first + steps of a toss, or to its end, and its state at the first of them.
struct Piece {
  const Toss* toss;
  std::int64_t first, steps;
  Tensor position, velocity, angular_velocity;  // [3], at the first
};

Piece piece(const Toss& toss, std::int64_t first, std::int64_t steps) {
  return {&toss, first, steps, toss.position[first], toss.velocity[first], toss.angular_velocity[first]};
}

Segments segments(const std::vector<Piece>& pieces) {
  std::int64_t longest = 0;
  for (const Piece& p : pieces) longest = std::max(longest, p.steps);
  std::vector<Tensor> position, orientation, start, turned, velocity, angular;
  std::vector<std::int64_t> steps;
  for (const Piece& p : pieces) {
    const Tensor index = (p.first + 1 + at::arange(longest)).clamp_max(p.first + p.steps);
    position.push_back(p.toss->position.index_select(0, index));
    orientation.push_back(p.toss->orientation.index_select(0, index));
    start.push_back(p.position);
    turned.push_back(p.toss->orientation[p.first]);
    velocity.push_back(p.velocity);
    angular.push_back(p.angular_velocity);
    steps.push_back(p.steps);
  }
  const auto first = [](const std::vector<Tensor>& x) { return at::stack(x).unsqueeze(1); };
  return {{first(start), first(turned), first(velocity), first(angular)},
          at::stack(position, 1),
          at::stack(orientation, 1),
          torch::tensor(steps, torch::kLong)};
}

// The least-squares parabola of gravity through positions, [n, 3], dt apart: position and velocity at the last, [2, 3].
Tensor flight(const Tensor& position, double gravity, double dt) {
  const std::int64_t n = position.size(0);
  const Tensor time = dt * (at::arange(n, at::kDouble) - static_cast<double>(n - 1));
  const Tensor fall = at::zeros_like(position);
  fall.select(1, 2).copy_(0.5 * gravity * time.square());
  return std::get<0>(at::linalg_lstsq(at::stack({at::ones_like(time), time}, 1), position + fall));
}

// The z of the lowest corner of a cube, [...].
Tensor lowest_corner(const Tensor& position, const Tensor& orientation, double side) {
  const Tensor upward = physics::rotation_matrix(orientation).select(-2, 2);
  return position.select(-1, 2) - side / 2 * upward.abs().sum(-1);
}

}  // namespace

Segments Segments::at(const Tensor& index) const {
  const auto rows = [&](const Tensor& x) { return x.index_select(0, index); };
  return {{rows(start.position), rows(start.orientation), rows(start.velocity), rows(start.angular_velocity)},
          position.index_select(1, index),
          orientation.index_select(1, index),
          rows(steps)};
}

Tensor Segments::exists() const { return at::arange(longest()).unsqueeze(1) < steps; }

Segments whole_tosses(const std::vector<Toss>& tosses) {
  std::vector<Piece> pieces;
  pieces.reserve(tosses.size());
  for (const Toss& toss : tosses) pieces.push_back(piece(toss, 0, toss.count() - 1));
  return segments(pieces);
}

Segments from_first_contact(const std::vector<Toss>& tosses, double side, double gravity, double rate) {
  constexpr std::int64_t kFewest = 4, kLast = 10;
  std::vector<Piece> pieces;
  for (const Toss& toss : tosses) {
    const Tensor near = (toss.position.select(1, 2) <= std::numbers::sqrt3 * side / 2).nonzero();
    const std::int64_t touch = near.size(0) > 0 ? near[0][0].item<std::int64_t>() : toss.count() - 1;
    const std::int64_t first = std::clamp<std::int64_t>(touch - 1, 0, toss.count() - 2);
    Piece p = piece(toss, first, toss.count() - 1 - first);
    if (first + 1 >= kFewest) {
      const Tensor fitted = flight(toss.position.slice(0, 0, first + 1), gravity, 1 / rate);
      p.position = fitted[0];
      p.velocity = fitted[1];
      p.angular_velocity =
          toss.angular_velocity.slice(0, std::max<std::int64_t>(0, first + 1 - kLast), first + 1).mean(0);
    }
    pieces.push_back(std::move(p));
  }
  return segments(pieces);
}

Segments windows(const std::vector<Toss>& tosses, std::int64_t steps, std::int64_t stride) {
  std::vector<Piece> pieces;
  for (const Toss& toss : tosses) {
    for (std::int64_t first = 0; first + steps < toss.count(); first += stride) {
      pieces.push_back(piece(toss, first, steps));
    }
  }
  return segments(pieces);
}

TossErrors errors_of(const Segments& measured, const Tensor& position, const Tensor& orientation, double side) {
  const Tensor exists = measured.exists();
  const auto mean = [&](const Tensor& x) { return at::where(exists, x, 0).sum(0) / measured.steps; };
  return {mean((position - measured.position).norm(2, {-1})),
          mean(physics::angle_between(orientation, measured.orientation)),
          mean((-lowest_corner(position, orientation, side)).clamp_min(0))};
}

nlohmann::json summary_of(const TossErrors& errors, double side) {
  nlohmann::json metrics;
  const auto add = [&](const std::string& name, const Tensor& x) {
    metrics[name] = x.mean().item<double>();
    metrics[name + "_std"] = x.size(0) > 1 ? nlohmann::json(x.std().item<double>()) : nlohmann::json();
  };
  add("position_error_m", errors.position);
  add("position_error_percent", 100 / side * errors.position);
  add("rotation_error_rad", errors.rotation);
  add("rotation_error_deg", 180 / std::numbers::pi * errors.rotation);
  add("penetration_percent", 100 / side * errors.penetration);
  return metrics;
}

}  // namespace lcp::training
