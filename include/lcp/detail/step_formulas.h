// The formulas of a step, see step.h, for one trajectory.
#pragma once

namespace lcp::detail {

/// The numbers of parameters, states, inputs and pairs of a step.
struct StepSizes {
  int parameters, states, inputs, pairs;

  /// The parameters, the state and the input.
  int starts() const { return parameters + states + inputs; }
  /// All numbers that a step is given.
  int given() const { return starts() + 2 * pairs; }
};

/// The numbers that a step is given lie one behind another: the parameters, the state, the input, z and w.
class StepFormulas {
 public:
  /// The two functions of a step. kPairs gives M z + q and does not read w; kNext gives the next state.
  enum class Function { kPairs, kNext };

  explicit StepFormulas(const StepSizes& sizes) : sizes_(sizes) {}
  virtual ~StepFormulas() = default;
  StepFormulas(const StepFormulas&) = delete;
  StepFormulas& operator=(const StepFormulas&) = delete;

  const StepSizes& sizes() const { return sizes_; }

  virtual void value(Function function, const double* given, double* out) const = 0;

  /// out: the change of the function's values where the given numbers change by `change`.
  virtual void push(Function function, const double* given, const double* change, double* out) const = 0;

  /// out: the gradient, in the given numbers, of the sum of g_i times value i.
  virtual void pull(Function function, const double* given, const double* g, double* out) const = 0;

  /// M, row-major, and q at the given parameters, state and input; z must be 0.
  virtual void problem(const double* given, double* M, double* q) const = 0;

 private:
  StepSizes sizes_;
};

}  // namespace lcp::detail
