#include "friction/interior_point.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>

#include "friction/smooth_path.h"

namespace lcp::friction {
namespace {

using Eigen::Matrix3d;
using Eigen::Vector3d;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr int kSteps = 100;
constexpr double kInside = 0.95;  // the share of the way to the border of the cones that a step takes
// The factors by which kappa falls, after a step of at least the given length.
constexpr struct { double length, fall; } kFalls[] = {{0.9, 0.1}, {0.3, 0.5}, {0.1, 0.8}, {0, 1}};
constexpr double kShort = 0.02;  // a shorter step makes no progress; kShortSteps in a row end the method
constexpr int kShortSteps = 7;
// Newton's method for the law is tried below the first kappa, and again each time that kappa has fallen by the second.
constexpr double kFirstPolish = 1e-6, kNextPolish = 1e-2;
constexpr double kEnd = 1e-20;
// An interval that is narrower, in the units of Impulses, counts as one number.
constexpr double kLeastWidth = 1e-12;
constexpr int kPolishSteps = 8;

// The square x' diag(-1, -1, 1) x of a vector (t1, t2, 0th), which is > 0 inside the second-order cone.
double square(const Vector3d& x) {
  const double size = x.head<2>().norm();
  return (x[2] - size) * (x[2] + size);
}

// The largest length at which x + length dx is in the second-order cone, for an x inside.
double length_within(const Vector3d& x, const Vector3d& dx) {
  const double a = dx.head<2>().squaredNorm() - dx[2] * dx[2], b = x.head<2>().dot(dx.head<2>()) - x[2] * dx[2];
  const double c = square(x), root = b * b + a * c;
  double length = dx[2] < 0 ? -x[2] / dx[2] : kInfinity;
  if (root >= 0 && b + std::sqrt(root) > 0) length = std::min(length, c / (b + std::sqrt(root)));
  return length;
}

double length_positive(double x, double dx) { return dx < 0 ? -x / dx : kInfinity; }

// The vector x on the cone's path, for a contact with friction.
Vector3d in_cone(const double* h, double mu) { return {h[0], h[1], mu * h[2]}; }

}  // namespace

InteriorPoint::InteriorPoint(Eigen::Index n, int contacts, int rows)
    : n_(n),
      contacts_(contacts),
      lu_(static_cast<int>(n), linalg::Pivoting::kPartial),
      newton_(contacts, rows),
      L_(n, n),
      B_(3 * contacts + rows, n),
      KB_(3, n),
      local_(contacts),
      at_rows_(rows),
      p_(n),
      dp_(n),
      bodies_(n),
      trial_(3 * contacts + rows),
      best_(3 * contacts + rows) {
  for (Vector* const x : {&h_, &dh_, &u_, &du_, &rows_}) x->resize(3 * contacts + rows);
}

void InteriorPoint::set(const Problem& problem, const Impulses& impulses) {
  impulses_ = impulses;
  const Eigen::Map<const Matrix> A(problem.A, n_, n_);
  L_ = (A + A.transpose()) / 2;
  Eigen::LLT<Eigen::Ref<Matrix>> factor(L_);
  B_ = Eigen::Map<const Matrix>(problem.J, B_.rows(), n_);
  for (int i = 0; i < impulses.size(); ++i) B_.row(i) /= impulses.weight[impulses.owner(i)];
  factor.matrixL().transpose().solveInPlace<Eigen::OnTheRight>(B_);
}

// The impulses start inside their intervals.
void InteriorPoint::start_rows(double start) {
  for (int r = 0; r < impulses_.rows; ++r) {
    const double lower = impulses_.lower[r], upper = impulses_.upper[r];
    Row& at = at_rows_[r];
    at = {};
    at.is_fixed = !(upper - lower > kLeastWidth);
    at.has_lower = !at.is_fixed && std::isfinite(lower);
    at.has_upper = !at.is_fixed && std::isfinite(upper);
    if (at.has_lower) at.a = start;
    if (at.has_upper) at.b = start;
    double& h = h_[3 * contacts_ + r];
    h = at.is_fixed                    ? lower
        : at.has_lower && at.has_upper ? (lower + upper) / 2
        : at.has_lower                 ? lower + start
        : at.has_upper                 ? upper - start
                                       : 0;
  }
}

// The mean of x'y, which is kappa on the path.
double InteriorPoint::mean_product(Path path) const {
  double sum = 0;
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    const double* h = h_.data() + 3 * k;
    const double* y = u_.data() + 3 * k;
    const double mu = impulses_.mu[k];
    sum += path == Path::kCone && mu > 0 ? h[0] * y[0] + h[1] * y[1] + mu * h[2] * y[2] : h[2] * y[2];
  }
  int count = contacts_;
  for (int r = 0; r < impulses_.rows; ++r) {
    const Row& at = at_rows_[r];
    const double h = h_[3 * contacts_ + r];
    if (at.has_lower) sum += (h - impulses_.lower[r]) * at.a;
    if (at.has_upper) sum += (impulses_.upper[r] - h) * at.b;
    count += static_cast<int>(at.has_lower) + static_cast<int>(at.has_upper);
  }
  return count > 0 ? sum / count : 0;
}

// The directions of Nesterov and Todd: x + dx = kappa y^-1 - S dy, where S y = x is the scaling [VDB, sec. 4 and 7].
void InteriorPoint::linearize_cone(Eigen::Index k, double kappa, double blur) {
  Local& at = local_[k];
  const Vector3d u = rows_.segment<3>(3 * k), y = u_.segment<3>(3 * k);
  const double mu = impulses_.mu[k], slip = std::hypot(u[0], u[1], blur);
  const Vector3d x = in_cone(h_.data() + 3 * k, mu), reflect(-1, -1, 1);
  const double x_square = square(x), y_square = square(y);
  const Vector3d x_unit = x / std::sqrt(x_square), y_unit = y / std::sqrt(y_square);
  const Vector3d middle = (x_unit + reflect.cwiseProduct(y_unit)) / std::sqrt(2 + 2 * x_unit.dot(y_unit));
  Matrix3d scaling = 2 * middle * middle.transpose();
  scaling.diagonal() -= reflect;
  scaling *= std::sqrt(x_square / y_square);
  at.slope << 1, 0, 0, 0, 1, 0, u[0] / slip, u[1] / slip, 1 / mu;
  at.gap = Vector3d(u[0], u[1], u[2] / mu + slip) - y;
  at.change = kappa / y_square * reflect.cwiseProduct(y) - x - scaling * at.gap;
  at.K = scaling * at.slope;
  at.change[2] /= mu;
  at.K.row(2) /= mu;
}

void InteriorPoint::linearize_smooth(Eigen::Index k, double kappa) {
  Local& at = local_[k];
  const SmoothLaw law(h_.data() + 3 * k, u_.data() + 3 * k, impulses_.mu[k], kappa);
  const auto matrix = [](const double(&x)[3][3]) {
    return Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>(x[0]);
  };
  const auto D = matrix(law.D).triangularView<Eigen::Upper>();
  at.slope.setIdentity();
  at.gap = rows_.segment<3>(3 * k) - u_.segment<3>(3 * k);
  at.K = D.solve(Matrix3d(matrix(law.C)));
  at.change = -D.solve(Vector3d(Eigen::Map<const Vector3d>(law.F))) - at.K * at.gap;
}

// (h - lower) (a + da) + a dh = kappa, and the same at the other bound with -dh. An equation, which has no bounds, gets
// the small compliance kappa. Where the row is compliant, ds has a part of dh, too.
void InteriorPoint::linearize_row(Eigen::Index r, double kappa) {
  Row& at = at_rows_[r];
  const double h = h_[3 * contacts_ + r], s = rows_[3 * contacts_ + r];
  at.K = at.change = 0;
  if (at.is_fixed) return;
  double slope = 0, push = -s;
  if (at.has_lower) {
    slope += at.a / (h - impulses_.lower[r]);
    push += kappa / (h - impulses_.lower[r]);
  }
  if (at.has_upper) {
    slope += at.b / (impulses_.upper[r] - h);
    push -= kappa / (impulses_.upper[r] - h);
  }
  at.K = 1 / ((slope > 0 ? slope : kappa) + impulses_.compliance[r]);
  at.change = at.K * push;
}

void InteriorPoint::finish_row(Eigen::Index r, double kappa) {
  Row& at = at_rows_[r];
  const double h = h_[3 * contacts_ + r], dh = dh_[3 * contacts_ + r];
  if (at.has_lower) at.da = (kappa - at.a * dh) / (h - impulses_.lower[r]) - at.a;
  if (at.has_upper) at.db = (kappa + at.b * dh) / (impulses_.upper[r] - h) - at.b;
}

// Finds the step from h, y and p, where u = B p + q and the path has y in place of u. The step leads to
//   p + dp = B' (h + dh),  h + dh by the law of the path,
// and solves (I + B' K B) dp = B' (h + change) - p. The matrix has entries from 1 to 1 / kappa; nevertheless the step
// is accurate where it matters [W], except for dp = B' dh, which is corrected by a second solve. Returns false where
// the step fails.
bool InteriorPoint::step(Path path, double kappa, double blur) {
  rows_.noalias() = B_ * p_;
  rows_ += Eigen::Map<const Vector>(impulses_.q, rows_.size());
  for (Eigen::Index r = 0; r < impulses_.rows; ++r) {
    rows_[3 * contacts_ + r] += impulses_.compliance[r] * h_[3 * contacts_ + r];
  }
  Eigen::Map<Matrix> H(lu_.matrix(static_cast<int>(n_)), n_, n_);
  H.setIdentity();
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    if (path == Path::kCone && impulses_.mu[k] > 0) {
      linearize_cone(k, kappa, blur);
    } else {
      linearize_smooth(k, kappa);
    }
    const auto rows = B_.middleRows<3>(3 * k);
    KB_.noalias() = local_[k].K.lazyProduct(rows);
    for (Eigen::Index j = 0; j < n_; ++j) {
      for (Eigen::Index l = 0; l < 3; ++l) {
        if (rows(l, j) != 0) H.row(j) += rows(l, j) * KB_.row(l);
      }
    }
    dh_.segment<3>(3 * k) = local_[k].change;
  }
  for (Eigen::Index r = 0; r < impulses_.rows; ++r) {
    linearize_row(r, kappa);
    const auto row = B_.row(3 * contacts_ + r);
    for (Eigen::Index j = 0; j < n_; ++j) {
      if (row[j] != 0) H.row(j) += at_rows_[r].K * row[j] * row;
    }
    dh_[3 * contacts_ + r] = at_rows_[r].change;
  }
  if (lu_.factor(0) < n_) return false;
  bodies_.noalias() = B_.transpose() * h_;
  bodies_ -= p_;
  dp_.noalias() = B_.transpose() * dh_;
  dp_ += bodies_;
  lu_.solve(dp_.data());
  rows_.noalias() = B_ * dp_;
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    const Vector3d du = rows_.segment<3>(3 * k);
    dh_.segment<3>(3 * k) -= local_[k].K * du;
    du_.segment<3>(3 * k) = local_[k].slope * du + local_[k].gap;
  }
  for (Eigen::Index r = 0; r < impulses_.rows; ++r) dh_[3 * contacts_ + r] -= at_rows_[r].K * rows_[3 * contacts_ + r];
  bodies_.noalias() += B_.transpose() * dh_;
  bodies_ -= dp_;
  lu_.solve(bodies_.data());
  dp_ += bodies_;
  rows_.noalias() = B_ * bodies_;
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    const Vector3d du = rows_.segment<3>(3 * k);
    dh_.segment<3>(3 * k) -= local_[k].K * du;
    du_.segment<3>(3 * k) += local_[k].slope * du;
  }
  for (Eigen::Index r = 0; r < impulses_.rows; ++r) {
    const Eigen::Index i = 3 * contacts_ + r;
    dh_[i] -= at_rows_[r].K * rows_[i];
    du_[i] = 0;
    finish_row(r, kappa);
  }
  return dh_.allFinite() && du_.allFinite();
}

// The largest length of the step that stays within the cones of the path.
double InteriorPoint::longest(Path path) const {
  double length = kInfinity;
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    const double mu = impulses_.mu[k];
    if (path == Path::kCone && mu > 0) {
      length = std::min({length, length_within(in_cone(h_.data() + 3 * k, mu), in_cone(dh_.data() + 3 * k, mu)),
                         length_within(u_.segment<3>(3 * k), du_.segment<3>(3 * k))});
    } else {
      const Eigen::Index n = 3 * k + 2;
      length = std::min({length, length_positive(h_[n], dh_[n]), length_positive(u_[n], du_[n])});
    }
  }
  for (int r = 0; r < impulses_.rows; ++r) {
    const Row& at = at_rows_[r];
    const double h = h_[3 * contacts_ + r], dh = dh_[3 * contacts_ + r];
    if (at.has_lower)
      length = std::min({length, length_positive(h - impulses_.lower[r], dh), length_positive(at.a, at.da)});
    if (at.has_upper)
      length = std::min({length, length_positive(impulses_.upper[r] - h, -dh), length_positive(at.b, at.db)});
  }
  return length;
}

// Tries Newton's method for the law from h_, with two scales of the velocities. With the scale 1 / sqrt(kappa), a
// contact is apart if its h_n is about kappa and its u_n is not, and the reverse if it touches. With the scale 1,
// velocities and impulses are compared as they are.
void InteriorPoint::polish(double kappa, double goal, std::int64_t& steps, std::int64_t most) {
  NewtonSettings kinds[] = {{false, 1e-12, kPolishSteps}, {false, 1e-9, kPolishSteps}};
  kinds[0].scale = 1 / std::sqrt(std::max(kappa, kEnd));
  for (NewtonSettings& settings : kinds) {
    settings.patience = kPolishSteps;
    if (best_residual_ <= goal || steps >= most) return;
    std::copy_n(h_.data(), h_.size(), trial_.data());
    const double residual = newton_.solve(impulses_, {}, settings, goal, trial_.data(), steps, most);
    if (!(residual < best_residual_)) continue;
    best_residual_ = residual;
    best_.swap(trial_);
  }
}

double InteriorPoint::solve(const InteriorSettings& settings, double goal, double* h, std::int64_t& steps,
                            std::int64_t most) {
  const Path path = settings.path;
  p_.setZero();
  h_.setZero();
  u_.setZero();
  for (Eigen::Index k = 0; k < contacts_; ++k) {
    const double mu = impulses_.mu[k];
    h_[3 * k + 2] = settings.start;
    u_[3 * k + 2] = path == Path::kCone && mu > 0 ? settings.start / mu : settings.start;
  }
  start_rows(settings.start);
  std::fill(best_.begin(), best_.end(), 0.0);
  best_residual_ = kInfinity;
  double next_polish = kFirstPolish, fall = kFalls[1].fall;
  int short_steps = 0;
  for (int k = 0; k < kSteps && steps < most; ++k) {
    const double kappa = mean_product(path);
    const bool ends = short_steps == kShortSteps || kappa < kEnd;
    if (kappa < next_polish || ends) {
      polish(kappa, goal, steps, most);
      while (next_polish > kappa) next_polish *= kNextPolish;
    }
    if (ends || best_residual_ <= goal || !step(path, fall * kappa, settings.blur * kappa)) break;
    ++steps;
    const double length = std::min(1.0, kInside * longest(path));
    p_ += length * dp_;
    h_ += length * dh_;
    u_ += length * du_;
    for (Row& at : at_rows_) {
      at.a += length * at.da;
      at.b += length * at.db;
    }
    fall = std::find_if(std::begin(kFalls), std::end(kFalls), [&](const auto& x) { return length >= x.length; })->fall;
    short_steps = length < kShort ? short_steps + 1 : 0;
  }
  std::copy(best_.begin(), best_.end(), h);
  return best_residual_;
}

}  // namespace lcp::friction
