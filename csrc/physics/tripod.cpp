#include "lcp/physics/tripod.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include "lcp/physics/friction_cone.h"
#include "physics/stepping.h"

namespace lcp::physics {
namespace {

using at::Tensor;

constexpr std::int64_t kSupports = 3;

Tensor widened(const Tensor& x, const std::vector<std::int64_t>& batch, std::initializer_list<std::int64_t> last) {
  auto sizes = batch;
  sizes.insert(sizes.end(), last);
  return x.expand(sizes);
}

Tripod in_precision_of(at::ScalarType dtype, const Tripod& tripod) {
  return {tripod.mass.to(dtype),    tripod.inertia.to(dtype),  tripod.dt.to(dtype),        tripod.mu.to(dtype),
          tripod.gravity.to(dtype), tripod.supports.to(dtype), tripod.com_height.to(dtype)};
}

// The arguments of a step, all of one batch shape and dtype.
struct Arguments {
  Tripod tripod;
  TripodState state;
  Tensor u;
  std::vector<std::int64_t> batch;
};

Arguments broadcast(const TripodState& state, const Tensor& u, const Tripod& parameters) {
  const Tripod t = in_precision_of(state.velocity.scalar_type(), parameters);
  const auto shape =
      at::broadcast_tensors({state.pose.select(-1, 0), state.velocity.select(-1, 0), u.select(-1, 0), t.mass, t.inertia,
                             t.dt, t.mu, t.gravity, t.com_height, t.supports.select(-1, 0).select(-1, 0)});
  const auto batch = shape[0].sizes().vec();
  return {{t.mass.expand(batch), t.inertia.expand(batch), t.dt.expand(batch), t.mu.expand(batch),
           t.gravity.expand(batch), widened(t.supports, batch, {kSupports, 2}), t.com_height.expand(batch)},
          {widened(state.pose, batch, {3}), widened(state.velocity, batch, {3})},
          widened(u.to(t.mass.scalar_type()), batch, {3}),
          batch};
}

// R(theta) r_i: [..., 3, 2].
Tensor arms_of(const Tensor& pose, const Tripod& tripod) {
  const Tensor c = pose.select(-1, 2).cos().unsqueeze(-1);
  const Tensor s = pose.select(-1, 2).sin().unsqueeze(-1);
  const Tensor x = tripod.supports.select(-1, 0);
  const Tensor y = tripod.supports.select(-1, 1);
  return vector_of({c * x - s * y, s * x + c * y});
}

// J with v_i = J_i nu: [..., 3, 2, 3].
Tensor contact_jacobian(const Tensor& arms) {
  const Tensor one = at::ones_like(arms.select(-1, 0));
  const Tensor zero = at::zeros_like(one);
  return matrix_of({vector_of({one, zero, -arms.select(-1, 1)}), vector_of({zero, one, arms.select(-1, 0)})});
}

Tensor inverse_inertia(const Tripod& tripod) {
  return vector_of({1 / tripod.mass, 1 / tripod.mass, 1 / tripod.inertia});
}

Tensor free_velocity(const Arguments& a) {
  return a.state.velocity + a.tripod.dt.unsqueeze(-1) * inverse_inertia(a.tripod) * a.u;
}

// The loads on the supports under friction forces f, [..., 6]: N = rest + shift f. They follow from
// sum_i N_i = m g and sum_i N_i arm_i = -h sum_i f_i, with h the height of the centre of mass.
struct Loads {
  Tensor rest;   // [..., 3]
  Tensor shift;  // [..., 3, 6]
};

Loads loads(const Tensor& arms, const Tripod& tripod) {
  const Tensor x = arms.select(-1, 0);
  const Tensor inverse = at::linalg_inv(matrix_of({at::ones_like(x), x, arms.select(-1, 1)}));
  const Tensor sum = at::eye(2, arms.options()).repeat({1, kSupports});
  const Tensor h = tripod.com_height.unsqueeze(-1).unsqueeze(-1);
  return {(tripod.mass * tripod.gravity).unsqueeze(-1) * inverse.select(-1, 0),
          -h * at::matmul(inverse.slice(-1, 1), sum)};
}

// The directions d_j, [2, n], on each of the supports: [6, 3 n].
Tensor on_supports(const Tensor& D) { return at::kron(at::eye(kSupports, D.options()), D); }

Problem problem_of(const Arguments& a, const Tensor& D) {
  const Tensor arms = arms_of(a.state.pose, a.tripod);
  const Tensor W = at::matmul(contact_jacobian(arms).flatten(-3, -2).mT(), on_supports(D));  // [..., 3, 3 n]
  const Loads load = loads(arms, a.tripod);
  const Tensor k = (a.tripod.dt.unsqueeze(-1) * inverse_inertia(a.tripod)).unsqueeze(-1);
  const Tensor mu = a.tripod.mu.unsqueeze(-1);
  const Tensor e = at::eye(kSupports, D.options()).repeat_interleave(D.size(1), 1);
  const Tensor top = at::cat({at::matmul(W.mT(), k * W), widened(e.t(), a.batch, {e.size(1), kSupports})}, -1);
  const Tensor bottom = at::cat(
      {mu.unsqueeze(-1) * at::matmul(load.shift, on_supports(D)) - e, at::zeros_like(W).slice(-1, 0, kSupports)}, -1);
  return {at::cat({top, bottom}, -2), at::cat({times(W.mT(), free_velocity(a)), mu * load.rest}, -1)};
}

TripodStep read(const Arguments& a, const Tensor& z) {
  const std::int64_t n = z.size(-1) / kSupports - 1;
  const Tensor arms = arms_of(a.state.pose, a.tripod);
  const Tensor D = friction_directions(n, z.options());
  const Tensor f = at::matmul(z.slice(-1, 0, kSupports * n), on_supports(D).t());  // [..., 6]
  const Tensor slip = z.slice(-1, kSupports * n);
  const Tensor moved = free_velocity(a) + a.tripod.dt.unsqueeze(-1) * inverse_inertia(a.tripod) *
                                              times(contact_jacobian(arms).flatten(-3, -2).mT(), f);
  // Two points at rest hold the whole block; exactly, not up to the round-off of their forces.
  const Tensor resting = (slip == 0).sum(-1, true) >= 2;
  const Tensor velocity = at::where(resting, 0, moved);
  const Loads load = loads(arms, a.tripod);
  return {{a.state.pose + a.tripod.dt.unsqueeze(-1) * velocity, velocity},
          f.unflatten(-1, {kSupports, 2}),
          load.rest + times(load.shift, f),
          slip};
}

void check_support(const Tripod& tripod) {
  const Tensor normals = static_normals(tripod);
  TORCH_CHECK((normals >= 0).all().item<bool>(),
              "supports must carry the centre of mass: it must be above their triangle; the smallest load is ",
              normals.min().item<double>(), " N");
}

using Vector = Eigen::Vector3d;
using Jacobian = Eigen::Matrix<double, 2, 3>;
using Forces = Eigen::Matrix<double, 2 * kSupports, 1>;

// argmin |nu - free|_M^2 / 2 + dt sum_i a_i |J_i nu|, where support i resists by at most a_i. |v| is taken for
// sqrt(|v|^2 + eps^2), with eps falling to 0.
class IsotropicStep {
 public:
  IsotropicStep(const Vector& free, const Vector& inertia, double dt, const std::array<Jacobian, kSupports>& J)
      : free_(free), inertia_(inertia), dt_(dt), J_(J) {}

  /// Returns nu and the forces on the supports.
  std::pair<Vector, Forces> minimise(const Vector& a) const {
    double fastest = 0;
    for (const Jacobian& J : J_) fastest = std::max(fastest, (J * free_).norm());
    if (fastest == 0) return {Vector::Zero(), Forces::Zero()};
    Vector nu = free_;
    double eps = 0.1 * fastest;
    for (int round = 0; round < 13; ++round, eps *= 0.1) newton(a, eps, nu);
    Forces f = Forces::Zero();
    for (int i = 0; i < kSupports; ++i) f.segment<2>(2 * i) = -a[i] * pull(i, nu, eps);
    // A block that rests is moved by eps alone.
    return {value(a, 0, Vector::Zero()) <= value(a, 0, nu) ? Vector(Vector::Zero()) : nu, f};
  }

 private:
  double speed(int i, const Vector& nu, double eps) const { return std::hypot((J_[i] * nu).norm(), eps); }
  Eigen::Vector2d pull(int i, const Vector& nu, double eps) const { return J_[i] * nu / speed(i, nu, eps); }

  double value(const Vector& a, double eps, const Vector& nu) const {
    double sum = 0.5 * (nu - free_).dot(inertia_.cwiseProduct(nu - free_));
    for (int i = 0; i < kSupports; ++i) sum += dt_ * a[i] * speed(i, nu, eps);
    return sum;
  }

  void newton(const Vector& a, double eps, Vector& nu) const {
    for (int iteration = 0; iteration < 100; ++iteration) {
      Vector gradient = inertia_.cwiseProduct(nu - free_);
      Eigen::Matrix3d hessian = inertia_.asDiagonal();
      for (int i = 0; i < kSupports; ++i) {
        const Eigen::Vector2d t = pull(i, nu, eps);
        const double stiffness = dt_ * a[i] / speed(i, nu, eps);
        gradient += dt_ * a[i] * J_[i].transpose() * t;
        hessian += stiffness * J_[i].transpose() * (Eigen::Matrix2d::Identity() - t * t.transpose()) * J_[i];
      }
      const Vector step = -hessian.ldlt().solve(gradient);
      const double slope = gradient.dot(step);
      const double here = value(a, eps, nu);
      double length = 1;
      while (length > 1e-12 && !(value(a, eps, nu + length * step) <= here + 1e-4 * length * slope)) length *= 0.5;
      if (length <= 1e-12) return;  // as far as rounding lets it
      nu += length * step;
      if (step.norm() <= 1e-15 * nu.norm()) return;
    }
  }

  Vector free_;
  Vector inertia_;
  double dt_;
  std::array<Jacobian, kSupports> J_;
};

}  // namespace

Tripod Tripod::of(double mass, double inertia, double dt, double mu, double gravity, double com_height) {
  return {positive_parameter("mass", mass),
          positive_parameter("inertia", inertia),
          positive_parameter("dt", dt),
          nonnegative_parameter("mu", mu),
          nonnegative_parameter("gravity", gravity),
          at::tensor({0.045, 0.0, -0.03, 0.035, -0.03, -0.035}, at::kDouble).view({kSupports, 2}),
          nonnegative_parameter("com_height", com_height)};
}

Tensor static_normals(const Tripod& tripod) { return loads(tripod.supports, tripod).rest; }

TripodState exact_step(const TripodState& state, const Tensor& u, const Tripod& parameters) {
  const c10::NoGradGuard no_grad;
  const Arguments a = broadcast({state.pose.to(at::kDouble), state.velocity.to(at::kDouble)}, u, parameters);
  const Tensor arms = arms_of(a.state.pose, a.tripod);
  const Loads load = loads(arms, a.tripod);
  const Tensor jacobians = contact_jacobian(arms).contiguous().view({-1, kSupports, 2, 3});
  const Tensor free = free_velocity(a).contiguous().view({-1, 3});
  const Tensor inertia = (1 / inverse_inertia(a.tripod)).contiguous().view({-1, 3});
  const Tensor rest = load.rest.contiguous().view({-1, kSupports});
  const Tensor shift = load.shift.contiguous().view({-1, kSupports, 2 * kSupports});
  const Tensor mu = a.tripod.mu.reshape(-1);
  const Tensor dt = a.tripod.dt.reshape(-1);
  Tensor velocity = at::empty_like(free);
  for (std::int64_t b = 0; b < free.size(0); ++b) {
    using Rows = Eigen::Matrix<double, 2, 3, Eigen::RowMajor>;
    using Shift = Eigen::Matrix<double, kSupports, 2 * kSupports, Eigen::RowMajor>;
    std::array<Jacobian, kSupports> J;
    for (int i = 0; i < kSupports; ++i) J[i] = Eigen::Map<const Rows>(jacobians[b][i].const_data_ptr<double>());
    Vector nu(free[b].const_data_ptr<double>());
    const IsotropicStep step(nu, Vector(inertia[b].const_data_ptr<double>()), dt[b].item<double>(), J);
    const Vector at_rest(rest[b].const_data_ptr<double>());
    const Eigen::Map<const Shift> shifted(shift[b].const_data_ptr<double>());
    Vector normal = at_rest;
    bool settled = false;
    for (int round = 0; round < 100 && !settled; ++round) {
      Forces f;
      std::tie(nu, f) = step.minimise(mu[b].item<double>() * normal.cwiseMax(0));
      const Vector next = at_rest + shifted * f;
      settled = (next - normal).norm() <= 1e-12 * at_rest.norm();
      normal = next;
    }
    Eigen::Map<Vector>(velocity[b].data_ptr<double>()) = nu;
  }
  velocity = velocity.view_as(a.state.velocity);
  return {a.state.pose + a.tripod.dt.unsqueeze(-1) * velocity, velocity};
}

Problem polyhedral_problem(const TripodState& state, const Tensor& u, const Tripod& tripod, std::int64_t directions) {
  return problem_of(broadcast(state, u, tripod), friction_directions(directions, state.velocity.options()));
}

TripodStep read_polyhedral(const TripodState& state, const Tensor& u, const Tensor& z, const Tripod& tripod) {
  return read(broadcast(state, u, tripod), z);
}

TripodSolution step(const TripodState& state, const Tensor& u, const Tripod& tripod, std::int64_t directions,
                    const SolveOptions& options) {
  check_support(tripod);
  const Arguments a = broadcast(state, u, tripod);
  const Problem problem = problem_of(a, friction_directions(directions, state.velocity.options()));
  const SolveResult result = solve(problem.M, problem.q, options);
  return {read(a, result.z), result.z, natural_residual(problem, result.z), result.status};
}

TripodSolution simulate(const TripodState& state, const Tensor& u, const Tripod& tripod, std::int64_t directions,
                        const SolveOptions& options) {
  TORCH_CHECK(u.dim() >= 2, "u must be [steps, ..., 3]; got ", u.sizes());
  const Tensors all = roll({state.pose, state.velocity}, u.size(0), [&](const Tensors& at, std::int64_t k) -> Tensors {
    const TripodSolution now = step({at[0], at[1]}, u[k], tripod, directions, options);
    return {now.step.next.pose, now.step.next.velocity,
            now.step.friction,  now.step.normal,
            now.step.slip,      now.z,
            now.residual,       now.status};
  });
  return {{{all[0], all[1]}, all[2], all[3], all[4]}, all[5], all[6], all[7]};
}

RolloutCertificate certify_rollout(const TripodState& state, const Tensor& u, const Tripod& tripod,
                                   std::int64_t directions, const TripodSolution& rollout,
                                   std::optional<double> tolerance) {
  const TripodState now{starts(state.pose, rollout.step.next.pose), starts(state.velocity, rollout.step.next.velocity)};
  const Problem problem = polyhedral_problem(now, u, tripod, directions);
  return certify_steps(problem, rollout.z, rollout.status, tolerance, [&](const Tensor& ties) {
    const Tensor friction = ties.slice(-1, 0, kSupports * directions).unflatten(-1, {kSupports, directions});
    const Tensor each = at::cat({friction, ties.slice(-1, kSupports * directions).unsqueeze(-1)}, -1);
    return kinked_friction(each, rollout.step.slip).any(-1);
  });
}

}  // namespace lcp::physics
