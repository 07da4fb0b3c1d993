// Walks bodies on compliant ground backward in time, and in forward mode.
#pragma once

#include <cstdint>

#include "compliant/linear_step.h"

namespace lcp::compliant {

/// The gradients that a walk backward writes: of the parameters, summed over the steps, of the first state and of the
/// inputs. nullptr where one is not wanted.
struct Gradients {
  double *parameters, *first;
  Series<double> u;
};

/// The gradients of a trajectory for those of the ends of its steps and of their impulses. Those that go through a step
/// that was not solved are NaN.
void adjoint(LinearStep& step, const Body& body, std::int64_t steps, const Inputs& inputs, const WalkedPath& walked,
             Series<const double> g_next, Series<const double> g_gamma, const Gradients& to);

/// The tangents of the ends of the steps of a trajectory and of their impulses, for those of what it is computed from.
/// From the first step on that was not solved they are NaN if these are not 0.
void tangent(LinearStep& step, const Body& body, std::int64_t steps, const Inputs& inputs, const WalkedPath& walked,
             const Inputs& d, Series<double> next, Series<double> gamma);

}  // namespace lcp::compliant
