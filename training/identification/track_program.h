// Tracks and the bodies that made them as mathematical programs with complementarity constraints: what the programs of
// all bodies have in common.
//
//   [BT] Berard, Trinkle: An MPEC formulation for parameter identification of complementarity systems, 2008.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "identification/bilinear_program.h"
#include "identification/track_model.h"
#include "run/files.h"

namespace lcp::training {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// A bound on the distance of each observation from the motion.
struct NoiseBound {
  double size = 0;         ///< m; 0: no bound
  bool euclidean = false;  ///< bounds the Euclidean distance, as in [BT]; else each coordinate, as a length
};

/// What a solution of a program says. The tensors of steps are [steps + 1, b]; those of forces are NaN at the start.
struct ProgramMotion {
  torch::Tensor theta;  ///< [b, p], the unknowns of the TrackModel
  BodyState motion;     ///< [steps + 1, b, k]
  std::vector<std::string> force_names;
  torch::Tensor forces;    ///< [steps + 1, b, f], N and N m
  torch::Tensor product;   ///< the largest product of a complementary pair of the step
  torch::Tensor residual;  ///< m/s, the distance of the velocity, as that of a length, from the model's step
};

/// The program of one body after another: mu, q_0 and v_0, then for each step q, v, the random forces w, if there are
/// any, and the unknowns of contact. The initial guess is that of [BT]: the observed positions, no forces, mu = 1.
class TrackProgram {
 public:
  /// contact: the number of unknowns of contact in each step.
  TrackProgram(const TrackFlags& flags, const TrackProblem& problem, const NoiseBound& bound, std::int64_t contact);

  /// Begins a body whose coordinates are at least `least`, [k].
  void add_body(std::int64_t body, std::vector<double> least);

  /// Adds q, v and w of step k, and the equations q_k = q_k-1 + dt v_k. The unknowns of contact must follow.
  /// Throws std::runtime_error where an observation is farther than the bound from the permitted positions.
  void add_step(std::int64_t k);

  /// The equation inertia (v_k - v_k-1) = dt (known + w + terms), coordinate c.
  void balance(std::int64_t k, std::int64_t c, double inertia, double known,
               const std::vector<BilinearProgram::Term>& terms);

  // Indices of the unknowns of the present body.
  std::int64_t mu() const { return first_; }
  std::int64_t q(std::int64_t step, std::int64_t c) const { return step == 0 ? first_ + 1 + c : of(step, c); }
  std::int64_t v(std::int64_t step, std::int64_t c) const { return q(step, width_ + c); }
  std::int64_t contact(std::int64_t step, std::int64_t i) const { return of(step, moving_ + i); }

  /// The solution of the program, as [steps, b, ...] and [b, ...] tensors.
  struct Solution {
    torch::Tensor theta;    ///< [b, p]
    BodyState motion;       ///< [steps + 1, b, k]
    torch::Tensor contact;  ///< [steps, b, contact]
  };
  Solution read(const MpecSolution& solution, const TrackModel& model) const;

  /// Lets the initial guess of all bodies have this mu.
  void begin_with(double mu);

  /// The same program with the initial velocities of all bodies held at their guess.
  BilinearProgram with_known_velocity() const;

  BilinearProgram program;

 private:
  std::int64_t of(std::int64_t step, std::int64_t i) const {
    return first_ + 1 + 2 * width_ + (step - 1) * (moving_ + contact_) + i;
  }
  void add_position(std::int64_t k, std::int64_t c, double low, double high, double initial, double weight);

  const TrackFlags& flags_;
  const TrackProblem& problem_;
  NoiseBound bound_;
  std::int64_t width_, moving_, contact_;  // k; the numbers of unknowns of a step, without and of contact
  std::int64_t body_ = 0, first_ = 0;
  std::vector<double> least_;
};

/// A row for each observation: track, step, time, positions, velocities, forces, product, residual.
Table motion_table(const TrackFlags& flags, const Tracks& tracks, const ProgramMotion& found);

/// x of the steps, [steps, b, ...], with NaN at the start.
torch::Tensor after_start(const torch::Tensor& x);

/// The distance of the velocities from the steps of the model that begin at the states before, [steps + 1, b].
torch::Tensor step_residual(const TrackModel& model, const torch::Tensor& theta, const BodyState& motion);

}  // namespace lcp::training
