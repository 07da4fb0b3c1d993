#include "lcp/identification/motion_model.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lcp/physics/rotation.h"

namespace lcp::identification {
namespace {

using at::Tensor;

// Shares begin at least this far from 0 and 1, where their logits are finite.
constexpr double kLeastShare = 1e-3;

bool is_matrix(const MotionParameter& parameter) { return parameter.range == MotionRange::kPositiveDefinite; }

std::int64_t numbers_in(const MotionParameter& parameter) {
  if (!is_matrix(parameter)) return parameter.start.numel();
  const std::int64_t n = parameter.start.size(-1);
  return n * (n + 1) / 2;
}

double logit(double x) { return std::log(x / (1 - x)); }

// Symmetric matrices [..., n, n] of numbers [..., n (n + 1) / 2], the rows of their lower triangles.
Tensor symmetric(const Tensor& numbers, std::int64_t n) {
  std::vector<std::int64_t> place;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      const auto [low, high] = std::minmax(i, j);
      place.push_back(high * (high + 1) / 2 + low);
    }
  }
  return numbers.index_select(-1, at::tensor(place, at::kLong)).unflatten(-1, {n, n});
}

}  // namespace

physics::RigidState motion_of_points(const physics::RigidState& state, const Tensor& points) {
  const Tensor R = physics::rotation_matrix(state.orientation);
  const auto turned = [&](const Tensor& x) { return (R * x.unsqueeze(-2)).sum(-1); };
  const Tensor& omega = state.angular_velocity;
  const Tensor whole = points.expand(at::infer_size(points.sizes(), omega.sizes()));
  return {state.position + turned(whole), state.orientation,
          state.velocity + turned(at::linalg_cross(omega.expand_as(whole), whole)), omega};
}

MotionModel::MotionModel(std::vector<MotionParameter> parameters, SceneFunction scene,
                         const physics::RigidOptions& options)
    : parameters_(std::move(parameters)), scene_(std::move(scene)), options_(options) {
  const c10::NoGradGuard no_grad;
  TORCH_CHECK(options.substeps >= 1, "substeps must be >= 1; got ", options.substeps);
  for (MotionParameter& parameter : parameters_) {
    const std::string& name = parameter.name;
    Tensor& start = parameter.start;
    TORCH_CHECK(start.defined() && start.is_floating_point() && start.isfinite().all().item<bool>(), name,
                " must begin with finite numbers");
    TORCH_CHECK(parameter.scale > 0, name, " must have a scale > 0; got ", parameter.scale);
    start = start.detach().to(at::kDouble).cpu().contiguous();
    Tensor root;
    switch (parameter.range) {
      case MotionRange::kAny:
        break;
      case MotionRange::kPositive:
        TORCH_CHECK((start > 0).all().item<bool>(), name, " must begin with a value > 0; got ", start);
        break;
      case MotionRange::kShare:
        TORCH_CHECK(((start >= 0) & (start <= 1)).all().item<bool>(), name, " must begin from 0 to 1; got ", start);
        start = start.clamp(kLeastShare, 1 - kLeastShare);
        break;
      case MotionRange::kPositiveDefinite: {
        TORCH_CHECK(start.dim() == 2 && start.size(0) == start.size(1) && at::allclose(start, start.t(), 1e-9, 0), name,
                    " must begin with a symmetric matrix; got ", start);
        const auto [factor, info] = at::linalg_cholesky_ex(start);
        TORCH_CHECK(info.item<int>() == 0, name, " must begin with a positive definite matrix; got ", start);
        root = factor;
        break;
      }
    }
    roots_.push_back(root);
  }
}

std::int64_t MotionModel::numbers() const {
  std::int64_t count = 0;
  for (const MotionParameter& parameter : parameters_) count += numbers_in(parameter);
  return count;
}

std::vector<std::string> MotionModel::value_names() const {
  std::vector<std::string> names;
  for (const MotionParameter& parameter : parameters_) {
    const at::IntArrayRef shape = parameter.start.sizes();
    for (std::int64_t k = 0; k < parameter.start.numel(); ++k) {
      std::string indices;
      std::int64_t rest = k;
      for (auto size = shape.rbegin(); size != shape.rend(); ++size) {
        indices = c10::str("[", rest % *size, "]", indices);
        rest /= *size;
      }
      names.push_back(parameter.name + indices);
    }
  }
  return names;
}

Tensor MotionModel::values_at(const Tensor& numbers) const {
  TORCH_CHECK(numbers.dim() >= 1 && numbers.size(-1) == this->numbers(), "numbers must be [..., ", this->numbers(),
              "]; got ", numbers.sizes());
  std::vector<Tensor> values;
  std::int64_t next = 0;
  for (std::size_t k = 0; k < parameters_.size(); ++k) {
    const MotionParameter& parameter = parameters_[k];
    if (is_matrix(parameter)) {
      const std::int64_t count = numbers_in(parameter);
      const Tensor S = symmetric(numbers.narrow(-1, next, count), parameter.start.size(-1));
      const Tensor matrix =
          at::matmul(at::matmul(roots_[k], at::linalg_matrix_exp(parameter.scale * S)), roots_[k].mT());
      for (const Tensor& value : matrix.flatten(-2).unbind(-1)) values.push_back(value);
      next += count;
      continue;
    }
    const double* const first = parameter.start.const_data_ptr<double>();
    for (std::int64_t i = 0; i < parameter.start.numel(); ++i) {
      const Tensor change = parameter.scale * numbers.select(-1, next++);
      switch (parameter.range) {
        case MotionRange::kPositive:
          values.push_back(first[i] * change.exp());
          break;
        case MotionRange::kShare:
          values.push_back((logit(first[i]) + change).sigmoid());
          break;
        default:
          values.push_back(first[i] + change);
          break;
      }
    }
  }
  return values.empty() ? numbers : at::stack(values, -1);
}

Tensor MotionModel::numbers_of(const Tensor& values) const {
  const c10::NoGradGuard no_grad;
  const auto count = static_cast<std::int64_t>(value_names().size());
  TORCH_CHECK(values.sizes() == at::IntArrayRef({count}), "values must be [", count, "]; got ", values.sizes());
  const Tensor given = values.to(at::kDouble).contiguous();
  std::vector<Tensor> numbers = {at::empty({0}, at::kDouble)};
  std::int64_t next = 0;
  for (std::size_t k = 0; k < parameters_.size(); ++k) {
    const MotionParameter& parameter = parameters_[k];
    const std::int64_t size = parameter.start.numel();
    const Tensor start = parameter.start.flatten(), value = given.narrow(0, next, size);
    next += size;
    Tensor change;
    switch (parameter.range) {
      case MotionRange::kAny:
        change = value - start;
        break;
      case MotionRange::kPositive:
        change = (value / start).log();
        break;
      case MotionRange::kShare:
        change = value.logit() - start.logit();
        break;
      case MotionRange::kPositiveDefinite: {
        const std::int64_t n = parameter.start.size(-1);
        const Tensor left = at::linalg_solve_triangular(roots_[k], value.view({n, n}), /*upper=*/false);
        const Tensor inner = at::linalg_solve_triangular(roots_[k], left.mT(), /*upper=*/false);
        const auto [eigenvalues, V] = at::linalg_eigh((inner + inner.mT()) / 2);
        const Tensor S = at::matmul(V * eigenvalues.log(), V.mT()), lower = at::tril_indices(n, n);
        change = S.index({lower[0], lower[1]});
        break;
      }
    }
    numbers.push_back(change / parameter.scale);
  }
  return at::cat(numbers);
}

MotionScene MotionModel::scene_of(const Tensor& values) const {
  MotionScene found = scene_(values);
  found.scene.dt = found.scene.dt / static_cast<double>(options_.substeps);
  return found;
}

physics::RigidSolution MotionModel::roll_out(const Tensor& values, const physics::RigidState& start,
                                             std::int64_t steps) const {
  const MotionScene at = scene_of(values);
  const auto bodies = static_cast<std::int64_t>(at.scene.bodies.size());
  const Tensor no_forces = at::zeros({steps, bodies, 6}, start.velocity.options());
  const auto scaled = [](const physics::RigidState& state, const Tensor& length) -> physics::RigidState {
    return {length * state.position, state.orientation, length * state.velocity, state.angular_velocity};
  };
  physics::RigidState first = start;
  const Tensor length = at.length.defined() ? at.length.unsqueeze(-1).unsqueeze(-1) : Tensor();
  if (length.defined()) first = scaled(first, length);
  if (at.points.defined()) first = motion_of_points(first, -at.points);
  physics::RigidSolution found = physics::simulate(first, no_forces, at.scene, options_);
  if (at.points.defined()) found.next = motion_of_points(found.next, at.points);
  if (length.defined()) found.next = scaled(found.next, length.reciprocal());
  return found;
}

MotionModel MotionModel::finer() const {
  MotionModel model = *this;
  model.options_.substeps *= 2;
  return model;
}

}  // namespace lcp::identification
