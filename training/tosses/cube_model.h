// A cube whose parameters are learned from tosses.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "tosses/body_model.h"
#include "tosses/cube.h"

namespace lcp::training {

/// The names of the learned numbers are those of --learn or, of several numbers, with the axes behind them; `side` is
/// the mean one.
class CubeModel : public BodyModel {
 public:
  /// start: where the parameters begin. learned: names of kLearnable.
  /// Throws a UsageError where they do not fit together.
  CubeModel(const Cube& start, const CubeContact& contact, double rate, const std::vector<std::string>& learned);

  Cube cube() const { return cube_at(raw); }
  /// The cubes with these raw numbers, [..., p].
  Cube cube_at(const torch::Tensor& numbers) const;

 private:
  Cube start_;
};

/// What --learn may name: `center` is that of the cube, which need not be the centre of mass; `corners` are the eight
/// corners one by one, in place of `side` and `center`; `inertia_axes` three moments in place of `inertia`.
constexpr const char* kLearnable[] = {"mu",      "restitution",  "side",   "corners", "center",    "rounding",
                                      "inertia", "inertia_axes", "height", "tilt",    "stiffness", "dissipation"};

}  // namespace lcp::training
