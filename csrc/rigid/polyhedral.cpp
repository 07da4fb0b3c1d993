#include "rigid/polyhedral.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace lcp::rigid {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

PolyhedralProblem::PolyhedralProblem(const Scene& scene, int contacts)
    : n_(scene.velocities()),
      contacts_(contacts),
      size_(unknowns_of(scene.law) * contacts + friction::PyramidRows::kUnknowns * scene.rows()),
      systems_(n_, contacts, scene.rows(), contact::Factors::kOnce),
      no_compliance_(contacts, Eigen::Matrix3d::Zero()),
      rows_{scene.rows()},
      M_(size_ * size_),
      gamma_(3 * contacts + scene.rows()),
      v_(n_) {
  W_.resize(gamma_.size() * gamma_.size());
  const Law& law = scene.law;
  const double step = 2 * std::numbers::pi / law.directions;
  for (int k = 0; k < law.directions; ++k) {
    cosine_.push_back(std::cos(law.angle + step * k));
    sine_.push_back(std::sin(law.angle + step * k));
  }
  directions_ = {law.directions, cosine_.data(), sine_.data(), 0};
}

bool PolyhedralProblem::set(const ContactProblem& problem) {
  system_ = &systems_.set(problem.A, problem.J);
  if (!system_->factor(no_compliance_)) return false;
  system_->compliance(W_.data());
  for (int r = 0; r < rows_.count; ++r) W_[(3 * contacts_ + r) * (gamma_.size() + 1)] += problem.compliance[r];
  rows_.lower = problem.lower;
  rows_.upper = problem.upper;
  friction::pyramid_matrix(contacts_, directions_, rows_, W_.data(), problem.mu, M_.data());
  return true;
}

void PolyhedralProblem::set_offsets(double* u, double* q) const {
  const Eigen::Index size = gamma_.size();
  for (int r = 0; r < rows_.count; ++r) {
    const double base = rows_.base(r), *row = W_.data() + (3 * contacts_ + r) * size;
    for (Eigen::Index i = 0; i < size; ++i) u[i] += base * row[i];
  }
  friction::pyramid_offsets(contacts_, directions_, rows_, u, q);
}

void PolyhedralProblem::add_base(double* gamma) const {
  for (int r = 0; r < rows_.count; ++r) {
    double& impulse = gamma[3 * contacts_ + r];
    impulse = std::min(std::max(impulse + rows_.base(r), rows_.lower[r]), rows_.upper[r]);
  }
}

void PolyhedralProblem::to_impulses(const double* z, double* gamma) const {
  friction::pyramid_impulses(contacts_, directions_, rows_, z, gamma);
}

void PolyhedralProblem::to_unknowns(const double* gamma, double* z) const {
  friction::pyramid_unknowns(contacts_, directions_, rows_, gamma, z);
}

const contact::Vector& PolyhedralProblem::solve(const double* x) {
  std::copy_n(x, n_, v_.data());
  system_->solve(v_);
  return v_;
}

const contact::Vector& PolyhedralProblem::motion_of(const double* gamma) {
  std::copy_n(gamma, gamma_.size(), gamma_.data());
  system_->to_bodies(gamma_, v_);
  system_->solve(v_);
  return v_;
}

PolyhedralSolver::Workspace::Workspace(const Scene& scene, int contacts, const solver::Settings& settings)
    : problem(scene, contacts),
      solver(problem.size(), settings),
      u(3 * contacts + scene.rows()),
      q(problem.size()),
      z(problem.size()),
      w(problem.size()) {}

PolyhedralSolver::PolyhedralSolver(const Scene& scene, double tolerance)
    : scene_(scene), n_(scene.velocities()), settings_{.tolerance = tolerance, .max_pivots = {}}, workspaces_(scene) {}

Status PolyhedralSolver::solve(int contacts, const ContactProblem& problem, const ContactResult& result) {
  if (contacts + scene_.rows() == 0) {
    std::copy_n(problem.v_free, n_, result.v);
    return Status::kSolved;
  }
  Workspace& work = workspaces_.get(contacts, scene_, contacts, settings_);
  if (!work.problem.set(problem)) return Status::kBadInput;
  contact_velocities(static_cast<int>(work.u.size()), n_, problem, problem.v_free, work.u.data());
  work.problem.set_offsets(work.u.data(), work.q.data());
  double* const z = result.unknowns != nullptr ? result.unknowns : work.z.data();
  std::int8_t status = 0;
  work.solver.solve(1, {work.problem.M(), false}, {work.q.data(), false}, {nullptr, true},
                    {z, work.w.data(), &status, result.states});
  if (static_cast<Status>(status) != Status::kSolved) return static_cast<Status>(status);
  work.problem.to_impulses(z, result.gamma);
  work.problem.add_base(result.gamma);
  const contact::Vector& change = work.problem.motion_of(result.gamma);
  for (Eigen::Index i = 0; i < n_; ++i) result.v[i] = problem.v_free[i] + change[i];
  return Status::kSolved;
}

PolyhedralDerivative::Workspace::Workspace(const Scene& scene, int contacts)
    : problem(scene, contacts),
      inactive(problem.size(), false),
      active(problem.size(), true),
      of_contacts(3 * contacts + scene.rows()),
      of_pairs(problem.size()),
      no_g_w(problem.size()),
      dw(problem.size()),
      t(problem.size()),
      other_t(problem.size()) {}

PolyhedralDerivative::PolyhedralDerivative(const Scene& scene, Ties ties)
    : scene_(scene), n_(scene.velocities()), ties_(ties), workspaces_(scene) {}

// work.t := what `map` makes with the derivative that `ties` chooses.
template <class Map>
void PolyhedralDerivative::derive(Workspace& work, const Map& map) {
  map(ties_ == Ties::kActive ? work.active : work.inactive, work.t);
  if (ties_ != Ties::kMidpoint) return;
  map(work.active, work.other_t);
  for (std::size_t i = 0; i < work.t.size(); ++i) work.t[i] = 0.5 * work.t[i] + 0.5 * work.other_t[i];
}

// v = v_free + A^-1 J' gamma and gamma = D z, so that with a = A^-1 g_v
//
//   dL = a' dp + (g_gamma + J a)' D dz
//
// and with t = -M_aa^-T of the gradient of z, and the rows M z + q = D' (J v + b) of M,
//
//   dL = t' D' (ds + J A^-1 dp) + t_slip z_n dmu.
//
// A change of the lower bound of a row acts as a given impulse, and upper - lower is the entry of q of its second
// unknown.
void PolyhedralDerivative::adjoint(int contacts, const ContactProblem& problem, const SolvedContacts& at, bool same,
                                   const double* g_v, const double* g_gamma, const ContactData<double>& g) {
  Workspace& work = workspaces_.get(contacts, scene_, contacts);
  if (!(same ? work.is_set : (work.is_set = work.problem.set(problem)))) {
    std::fill_n(g.p, n_, kNaN);
    std::fill_n(g.s, work.of_contacts.size(), kNaN);
    for (double* const bound : {g.lower, g.upper}) std::fill_n(bound, work.problem.rows(), kNaN);
    return static_cast<void>(std::fill_n(g.mu, contacts, kNaN));
  }
  const contact::Vector& a = work.problem.solve(g_v);
  std::copy_n(a.data(), n_, g.p);
  for (std::size_t i = 0; i < work.of_contacts.size(); ++i) {
    work.of_contacts[i] = g_gamma[i];
    for (std::ptrdiff_t j = 0; j < n_; ++j) work.of_contacts[i] += problem.J[i * n_ + j] * a[j];
  }
  work.problem.to_unknowns(work.of_contacts.data(), work.of_pairs.data());
  derive(work, [&](batch::BatchDerivative<double>& derivative, std::vector<double>& t) {
    derivative.adjoint(1, {work.problem.M(), false}, at.states, {work.of_pairs.data(), false},
                       {work.no_g_w.data(), false}, t.data());
  });
  work.problem.to_impulses(work.t.data(), g.s);
  const contact::Vector& change = work.problem.motion_of(g.s);
  for (Eigen::Index i = 0; i < n_; ++i) g.p[i] += change[i];
  const std::ptrdiff_t each = unknowns_of(scene_.law);
  for (std::ptrdiff_t k = 0; k < contacts; ++k) g.mu[k] = work.t[each * k + each - 1] * at.unknowns[each * k];
  for (int r = 0; r < work.problem.rows(); ++r) {
    const std::ptrdiff_t i = 3 * contacts + r;
    g.upper[r] = work.t[work.problem.second_of_row(r)];
    g.lower[r] = g_gamma[i] - g.upper[r] + problem.compliance[r] * g.s[i];
    for (std::ptrdiff_t j = 0; j < n_; ++j) g.lower[r] += problem.J[i * n_ + j] * g.p[j];
  }
}

// dz = -M_aa^-1 r with the change r = D' (ds + J A^-1 dp) + z_n dmu of M z + q for the same z.
void PolyhedralDerivative::tangent(int contacts, const ContactProblem& problem, const SolvedContacts& at, bool same,
                                   const ContactData<const double>& d, double* dv, double* dgamma) {
  Workspace& work = workspaces_.get(contacts, scene_, contacts);
  if (!(same ? work.is_set : (work.is_set = work.problem.set(problem)))) {
    std::fill_n(dv, n_, kNaN);
    return static_cast<void>(std::fill_n(dgamma, work.of_contacts.size(), kNaN));
  }
  std::copy_n(d.p, n_, dv);
  for (int r = 0; r < work.problem.rows(); ++r) {
    for (std::ptrdiff_t j = 0; j < n_; ++j) dv[j] += problem.J[(3 * contacts + r) * n_ + j] * d.lower[r];
  }
  const contact::Vector& x = work.problem.solve(dv);
  std::copy_n(x.data(), n_, dv);
  for (std::size_t i = 0; i < work.of_contacts.size(); ++i) {
    work.of_contacts[i] = d.s[i];
    for (std::ptrdiff_t j = 0; j < n_; ++j) work.of_contacts[i] += problem.J[i * n_ + j] * x[j];
  }
  for (int r = 0; r < work.problem.rows(); ++r)
    work.of_contacts[3 * contacts + r] += problem.compliance[r] * d.lower[r];
  work.problem.to_unknowns(work.of_contacts.data(), work.of_pairs.data());
  const std::ptrdiff_t each = unknowns_of(scene_.law);
  for (std::ptrdiff_t k = 0; k < contacts; ++k) work.of_pairs[each * k + each - 1] += at.unknowns[each * k] * d.mu[k];
  for (int r = 0; r < work.problem.rows(); ++r) {
    work.of_pairs[work.problem.second_of_row(r)] += d.upper[r] - d.lower[r];
  }
  derive(work, [&](batch::BatchDerivative<double>& derivative, std::vector<double>& dz) {
    derivative.tangent(1, {work.problem.M(), false}, at.states, {work.of_pairs.data(), false}, dz.data(),
                       work.dw.data());
  });
  work.problem.to_impulses(work.t.data(), dgamma);
  const contact::Vector& change = work.problem.motion_of(dgamma);
  for (Eigen::Index i = 0; i < n_; ++i) dv[i] += change[i];
  for (int r = 0; r < work.problem.rows(); ++r) dgamma[3 * contacts + r] += d.lower[r];
}

}  // namespace lcp::rigid
