#include "tosses/cube_model.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "run/error.h"

namespace lcp::training {
namespace {

using identification::MotionParameter;
using identification::MotionRange;
using torch::Tensor;

constexpr const char* kAxes[] = {"x", "y", "z"};

double number(const Tensor& x) { return x.item<double>(); }

double side_of(const Tensor& corners) { return 2 * number(corners.abs().mean()); }

// What --learn names, as parameters of numbers.
std::vector<MotionParameter> parameters_of(const Cube& start, const CubeContact& contact,
                                           const std::vector<std::string>& learned) {
  const auto has = [&](const char* name) { return std::find(learned.begin(), learned.end(), name) != learned.end(); };
  const auto refuse_both = [&](const char* one, const char* other) {
    if (has(one) && has(other)) throw UsageError(std::string("--learn: either ") + one + " or " + other + ", not both");
  };
  refuse_both("side", "corners");
  refuse_both("center", "corners");
  refuse_both("inertia", "inertia_axes");
  const bool compliant = contact.name == "compliant";
  for (const char* name : {"stiffness", "dissipation"}) {
    if (has(name) && !compliant) throw UsageError(std::string("--learn: ") + name + " is of --contact compliant");
  }
  if (has("restitution") && compliant) throw UsageError("--learn: compliant contact has no restitution");

  std::vector<MotionParameter> parameters;
  const auto add = [&](const std::string& name, MotionRange range, double value, double scale) {
    if (range == MotionRange::kPositive && value <= 0) {
      throw UsageError("--learn: " + name + " must begin with a value > 0");
    }
    parameters.push_back({name, torch::tensor(value, torch::kDouble), range, scale});
  };
  if (has("mu")) add("mu", MotionRange::kPositive, number(start.mu), 1);
  if (has("restitution")) add("restitution", MotionRange::kShare, number(start.restitution), 1);
  if (has("side")) add("side", MotionRange::kPositive, side_of(start.corners), 0.1);
  for (std::int64_t k = 0; has("corners") && k < start.corners.size(0); ++k) {
    for (int i = 0; i < 3; ++i) {
      add("corner_" + std::to_string(k) + "_" + kAxes[i], MotionRange::kAny, number(start.corners[k][i]), 0.003);
    }
  }
  for (int i = 0; has("center") && i < 3; ++i) {
    add(std::string("center_") + kAxes[i], MotionRange::kAny, number(start.center[i]), 0.01);
  }
  if (has("rounding")) add("rounding", MotionRange::kPositive, number(start.rounding), 1);
  if (has("inertia")) add("inertia", MotionRange::kPositive, number(start.inertia.mean()), 1);
  for (int i = 0; has("inertia_axes") && i < 3; ++i) {
    add(std::string("inertia_") + kAxes[i], MotionRange::kPositive, number(start.inertia[i]), 1);
  }
  if (has("height")) add("height", MotionRange::kAny, number(start.height), 0.01);
  for (int i = 0; has("tilt") && i < 2; ++i) {
    add(std::string("tilt_") + kAxes[i], MotionRange::kAny, number(start.tilt[i]), 0.05);
  }
  if (has("stiffness")) add("stiffness", MotionRange::kPositive, number(start.stiffness), 1);
  if (has("dissipation")) add("dissipation", MotionRange::kPositive, number(start.dissipation), 1);
  return parameters;
}

// The cube with values, [..., v], of these parameters.
Cube with_values(const Cube& start, const std::vector<MotionParameter>& parameters, const Tensor& values) {
  Cube cube = start;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const std::string& name = parameters[k].name;
    const auto i = static_cast<std::int64_t>(k);
    const Tensor value = values.select(-1, i);
    if (name == "mu") cube.mu = value;
    if (name == "restitution") cube.restitution = value;
    if (name == "side") cube.corners = start.corners * (value / side_of(start.corners)).unsqueeze(-1).unsqueeze(-1);
    if (name == "corner_0_x") cube.corners = values.narrow(-1, i, 24).unflatten(-1, {8, 3});
    if (name == "center_x") cube.center = values.narrow(-1, i, 3);
    if (name == "rounding") cube.rounding = value;
    if (name == "inertia") cube.inertia = value.unsqueeze(-1).repeat_interleave(3, -1);
    if (name == "inertia_x") cube.inertia = values.narrow(-1, i, 3);
    if (name == "height") cube.height = value;
    if (name == "tilt_x") cube.tilt = values.narrow(-1, i, 2);
    if (name == "stiffness") cube.stiffness = value;
    if (name == "dissipation") cube.dissipation = value;
  }
  return cube;
}

identification::MotionModel motion_of(const Cube& start, const CubeContact& contact, double rate,
                                      const std::vector<std::string>& learned) {
  const std::vector<MotionParameter> parameters = parameters_of(start, contact, learned);
  const auto scene = [=](const Tensor& values) { return scene_of(with_values(start, parameters, values), 1 / rate); };
  return {parameters, scene, contact.options()};
}

}  // namespace

CubeModel::CubeModel(const Cube& start, const CubeContact& contact, double rate,
                     const std::vector<std::string>& learned)
    : BodyModel(motion_of(start, contact, rate, learned), contact.name, rate), start_(start) {}

Cube CubeModel::cube_at(const Tensor& numbers) const {
  return with_values(start_, motion().parameters(), values_at(numbers));
}

}  // namespace lcp::training
