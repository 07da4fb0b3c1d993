// The interface of the systems to the program `simulate`: flags, inputs and simulation.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lcp/physics/problem.h"
#include "run/columns.h"
#include "run/command_line.h"
#include "run/files.h"

namespace lcp::training {

/// The flags that all systems have in common.
struct Request {
  std::string formulation;
  std::int64_t steps = 0;
  std::int64_t trajectories = 1;
  std::optional<Table> inputs;  ///< each row is one independent step: one trajectory of one step
  torch::ScalarType dtype = torch::kDouble;
  std::int64_t seed = 0;
  double velocity_noise = 0;  ///< m/s, standard deviation of the noise on the velocities of the table
  double position_noise = 0;  ///< m, the same for the positions

  std::int64_t count() const { return inputs ? static_cast<std::int64_t>(inputs->rows()) : trajectories; }

  /// A column of the inputs, [rows], or of zeros where it is missing and optional.
  torch::Tensor input(const std::string& name) const;
  torch::Tensor vector_input(const std::vector<std::string>& names) const;  ///< [rows, names]

  /// Factors by which the starts of the trajectories differ, [trajectories]: 1 for the first, random from 0.5 to 1.5
  /// for the others. Each k has its own random numbers.
  torch::Tensor variation(std::int64_t k) const;

  /// x, [steps + 1, trajectories, ...], with the noise of the flags.
  torch::Tensor with_velocity_noise(const torch::Tensor& x) const;
  torch::Tensor with_position_noise(const torch::Tensor& x) const;
};

/// The result of a simulation; tensors are [steps, trajectories].
struct Motion {
  Table data;
  torch::Tensor residual;
  torch::Tensor status;
  torch::Tensor error;  ///< m/s, the difference of the velocities from those of an exact rollout with the same start;
                        ///< NaN where none is known
  torch::Tensor sticking;  ///< bool: the step ends at rest, in contact
  physics::RolloutCertificate certificate;
  std::string exact;                                  ///< the name of the exact solution; empty where none is known
  nlohmann::json metrics = nlohmann::json::object();  ///< metrics that only this system has
  std::vector<std::pair<std::string, Table>> tables;  ///< further tables, by the names of their files
  std::vector<std::string> remarks;                   ///< lines to print
  bool expects_no_solution = false;                   ///< whether the formulation is known to be infeasible
};

/// What `simulate` must know of a system before it runs.
struct SystemTraits {
  std::vector<std::string> formulations;  ///< the first is the default
  std::int64_t default_steps;             ///< of --steps
  std::string example;                    ///< flags for --help
  std::vector<std::string> inputs;        ///< columns that --inputs must have; without any there is no such flag
  std::vector<std::string> optional_inputs = {};
  std::vector<std::string> rollout_flags;  ///< which have no meaning with --inputs
  PhysicsFlags physics = {};               ///< the defaults of the common flags
  bool has_positions = true;
};

class System : public SystemTraits {
 public:
  explicit System(SystemTraits traits) : SystemTraits(std::move(traits)) {}
  virtual ~System() = default;

  /// The common flags of the physics.
  virtual void add_physics(CommandLine& line) { physics.add_to(line); }

  /// Flags beside the common ones.
  virtual void add_to(CommandLine& line) = 0;

  /// The columns of these names, which may depend on flags.
  virtual std::vector<std::string> columns(const std::vector<std::string>& names) const { return names; }

  /// Throws a UsageError where flags do not go together.
  virtual void check_flags(const Request&) const {}

  virtual Motion run(const Request& request) const = 0;
};

std::vector<std::string> system_names();

/// Null for an unknown name.
std::unique_ptr<System> make_system(const std::string& name);
std::unique_ptr<System> make_compliant_block(), make_compliant_particle(), make_cube(), make_falling_block(),
    make_planar_block(), make_point_mass(), make_robot(), make_rolling(), make_sliding_block(), make_spheres(),
    make_stack(), make_tripod();

/// A table that begins with the columns trajectory and step; the steps are first, first + 1, ...
TrajectoryTable motion_table(std::int64_t steps, std::int64_t trajectories, std::int64_t first = 1);

/// `first`, then `next`: [steps + 1, ...].
torch::Tensor with_start(const torch::Tensor& first, const torch::Tensor& next);

/// max over the last dimension of |a - b|.
torch::Tensor largest_difference(const torch::Tensor& a, const torch::Tensor& b);

/// The velocities, [steps, ...], of the trajectory that next(state, u[k]) computes step by step from `state`. A state
/// is a velocity, or has one as its member `velocity`.
template <class State, class Next>
torch::Tensor velocities(State state, const torch::Tensor& u, const Next& next) {
  std::vector<torch::Tensor> all;
  for (std::int64_t k = 0; k < u.size(0); ++k) {
    state = next(state, u[k]);
    if constexpr (std::is_same_v<State, torch::Tensor>) {
      all.push_back(state);
    } else {
      all.push_back(state.velocity);
    }
  }
  return torch::stack(all);
}

}  // namespace lcp::training
