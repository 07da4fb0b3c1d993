// Systems of one's own: a step in time, written once as formulas, is rolled out, differentiated and called from Python.
//
// A step of length dt is an LCP and an update of the state,
//
//   w = M z + q,   0 <= z  perp  w >= 0,   x_next = next(parameters, x, u, z, w),
//
// where M and q depend on the parameters, the state x and the input u. A struct says it:
//
//   struct DryPendulum {
//     static constexpr std::array kParameters = {"inertia", "weight", "friction", "dt"};  // their names
//     static constexpr std::array kStates = {"angle", "velocity"};
//     static constexpr std::array kInputs = {"torque"};
//     static constexpr std::array kPairs = {"forward", "backward"};
//
//     // w = M z + q: affine in z.
//     template <class R>
//     static std::array<R, 2> pairs(const std::array<R, 4>& parameters, const std::array<R, 2>& state,
//                                   const std::array<R, 1>& input, const std::array<R, 2>& z);
//
//     // The next state. Where z_i > 0, w_i is exactly 0.
//     template <class R>
//     static std::array<R, 2> next(const std::array<R, 4>& parameters, const std::array<R, 2>& state,
//                                  const std::array<R, 1>& input, const std::array<R, 2>& z,
//                                  const std::array<R, 2>& w);
//   };
//
//   const bool registered = lcp::register_step<DryPendulum>("my::dry_pendulum");
//
// R is double, a dual number or a tensor: see dual.h for what formulas may use. A list of names that is empty is a
// std::array<const char*, 0>.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "lcp/detail/registered_step.h"
#include "lcp/export.h"
#include "lcp/feedback.h"
#include "lcp/name_of.h"
#include "lcp/status.h"
#include "lcp/ties.h"

namespace lcp {

struct SimulateStepOptions {
  // All are as in SolveOptions, for the LCP of each step.
  NameOf<Ties, ties_name> ties = Ties::kInactive;
  double kappa = 0.0;
  std::optional<double> tolerance = {};
};

/// The rollout of T steps of a system with k states and n pairs.
struct StepRollout {
  at::Tensor x_next;    ///< [..., T, k], the states at the ends of the steps
  at::Tensor z;         ///< [..., T, n]
  at::Tensor w;         ///< [..., T, n], without a gradient
  at::Tensor status;    ///< [..., T], int8; the values of lcp::Status
  at::Tensor residual;  ///< [..., T], max_i |min(z_i, (M z + q)_i)|; it has no gradient
};

/// Steps a registered system for each element of a batch.
///
/// x_next and z are differentiable in the parameters, x and u, any number of times, in reverse and forward mode. Where
/// a step is not solved, its results and those of all later steps are NaN; the later statuses are kBadInput. The
/// gradient of a trajectory that is not solved is 0 where its incoming gradient is 0, else NaN. The status is kBadInput
/// where a parameter, a state or an input is not finite.
///
///   step: the name with which the system was registered.
///   parameters: [..., p]. x: [..., k], the first state. u: [..., T, m], the input of each step. All are of one dtype,
///   float32 or float64, and one device; formulas are computed in float64 on the CPU. All batch dimensions broadcast.
///   feedback: a feedback of the state beside u.
///
/// In memory the results have the steps before the batch.
///
/// Throws c10::Error, before any work, for an unknown step, and for other shapes, dtypes, devices or options.
LCP_API StepRollout simulate_step(const std::string& step, const at::Tensor& parameters, const at::Tensor& x,
                                  const at::Tensor& u, const SimulateStepOptions& options = {},
                                  const std::optional<Feedback<at::Tensor>>& feedback = std::nullopt);

/// The names of a registered step. Throws c10::Error where there is none.
LCP_API StepNames names_of_step(const std::string& step);

/// Registers a step under a name, such as "my::dry_pendulum", for simulate_step and for Python. Returns true, so that a
/// constant of a library can call it. simulate_step reports any fault of the step or of its name, since an error in the
/// initialisation of a library would end the program.
template <class Step>
bool register_step(std::string name) {
  detail::register_step(std::move(name), std::make_unique<const detail::RegisteredStepOf<Step>>());
  return true;
}

}  // namespace lcp
