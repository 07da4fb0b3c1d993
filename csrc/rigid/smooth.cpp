#include "rigid/smooth.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "friction/law_error.h"
#include "friction/smooth_path.h"

namespace lcp::rigid {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

bool any_nonzero(const double* x, std::size_t size) {
  return std::any_of(x, x + size, [](double number) { return number != 0; });
}

}  // namespace

SmoothSystem::SmoothSystem(int n, int contacts)
    : n_(n),
      contacts_(contacts),
      mass_(n, linalg::Pivoting::kPartial),
      lu_(n, linalg::Pivoting::kPartial),
      A_(n * n),
      response_(contacts),
      entries_(std::ptrdiff_t{3} * contacts * n),
      columns_(std::ptrdiff_t{contacts} * n),
      first_(contacts + 1) {}

bool SmoothSystem::set(const ContactProblem& problem) {
  double* const A = mass_.matrix(n_);
  for (std::ptrdiff_t i = 0; i < n_; ++i) {
    for (std::ptrdiff_t j = 0; j < n_; ++j) {
      A[i * n_ + j] = A_[i * n_ + j] = 0.5 * (problem.A[i * n_ + j] + problem.A[j * n_ + i]);
    }
  }
  if (mass_.factor(0) < n_) return false;
  for (std::ptrdiff_t k = 0; k < contacts_; ++k) {
    const double* const J = problem.J + 3 * k * n_;
    int next = first_[k];
    double sum = 0;
    for (std::ptrdiff_t j = 0; j < n_; ++j) {
      const double of_column[3] = {J[j], J[n_ + j], J[2 * n_ + j]};
      if (of_column[0] == 0 && of_column[1] == 0 && of_column[2] == 0) continue;
      std::copy_n(of_column, 3, entries_.begin() + std::ptrdiff_t{3} * next);
      columns_[next++] = static_cast<int>(j);
      for (const double entry : of_column) sum += entry * entry / A_[j * n_ + j];
    }
    first_[k + 1] = next;
    response_[k] = sum > 0 ? sum / 3 : 1;
  }
  return true;
}

bool SmoothSystem::factor(const double* K) {
  double* const S = lu_.matrix(n_);
  std::copy(A_.begin(), A_.end(), S);
  for (int k = 0; k < contacts_; ++k, K += 9) {
    for (int i = first_[k]; i < first_[k + 1]; ++i) {
      const double* const a = entries_.data() + std::ptrdiff_t{3} * i;
      double a_K[3];
      for (int l = 0; l < 3; ++l) a_K[l] = a[0] * K[l] + a[1] * K[3 + l] + a[2] * K[6 + l];
      double* const row = S + std::ptrdiff_t{columns_[i]} * n_;
      for (int j = first_[k]; j < first_[k + 1]; ++j) {
        const double* const b = entries_.data() + std::ptrdiff_t{3} * j;
        row[columns_[j]] += a_K[0] * b[0] + a_K[1] * b[1] + a_K[2] * b[2];
      }
    }
  }
  return lu_.factor(0) == n_;
}

void SmoothSystem::to_contacts(const double* v, double* u) const {
  for (int k = 0; k < contacts_; ++k, u += 3) {
    u[0] = u[1] = u[2] = 0;
    for (int i = first_[k]; i < first_[k + 1]; ++i) {
      for (int l = 0; l < 3; ++l) u[l] += entries_[std::ptrdiff_t{3} * i + l] * v[columns_[i]];
    }
  }
}

void SmoothSystem::add_to_bodies(const double* gamma, double* p) const {
  for (int k = 0; k < contacts_; ++k, gamma += 3) {
    for (int i = first_[k]; i < first_[k + 1]; ++i) {
      const double* const a = entries_.data() + std::ptrdiff_t{3} * i;
      p[columns_[i]] += a[0] * gamma[0] + a[1] * gamma[1] + a[2] * gamma[2];
    }
  }
}

namespace {

// A path, and the point on it that was found last. It is sought in impulses h_k = gamma_k sqrt(d_k) / unit and
// velocities u_k / (sqrt(d_k) unit), where d_k is the response of contact k and unit the largest |J v_free + b|.
class Path {
 public:
  Path(int n, int contacts)
      : system(n, contacts),
        K(9 * contacts),
        e(3 * contacts),
        v(n),
        gamma(3 * contacts),
        n_(n),
        contacts_(contacts),
        weight_(contacts),
        mu_(contacts),
        u_(3 * contacts),
        work_(3 * contacts),
        step_(n),
        step_K_(9 * contacts) {}
  virtual ~Path() = default;
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;

  /// Finds K, e, v and gamma of the point near a solution. False where there is none; v and gamma are then those of the
  /// solution.
  bool find(const ContactProblem& problem, const SolvedContacts& solution, double kappa) {
    std::copy_n(solution.v, n_, v.begin());
    std::copy_n(solution.gamma, 3 * contacts_, gamma.begin());
    if (!system.set(problem)) return false;
    problem_ = &problem;
    velocities(problem.v_free, u_.data());
    unit_ = 0;
    for (const double number : u_) unit_ = std::max(unit_, std::abs(number));
    if (!(unit_ > 0)) unit_ = 1;
    for (int k = 0; k < contacts_; ++k) {
      weight_[k] = std::sqrt(system.response(k));
      mu_[k] = std::min(problem.mu[k], friction::kLargestFriction);
    }
    if (!search(solution, kappa / (unit_ * unit_))) return false;
    // From the units of h and u to those of gamma and J v + b.
    for (int k = 0; k < contacts_; ++k) {
      for (int i = 0; i < 9; ++i) K[9 * k + i] /= weight_[k] * weight_[k];
      for (int i = 0; i < 3; ++i) e[3 * k + i] *= problem.mu[k] == mu_[k] ? unit_ / weight_[k] : 0;
      for (int i = 0; i < 3; ++i) gamma[3 * k + i] = h(k)[i] * unit_ / weight_[k];
    }
    move(v.data());
    return system.factor(K.data());
  }

  SmoothSystem system;
  std::vector<double> K, e, v, gamma;  // [c, 3, 3], [3 c], [n], [3 c]

 protected:
  // In the units of h and u.
  virtual bool search(const SolvedContacts& solution, double kappa) = 0;
  virtual const double* h(int k) const = 0;

  // u := (J v + b), [3 c].
  void velocities(const double* at, double* u) const {
    system.to_contacts(at, u);
    for (int i = 0; i < 3 * contacts_; ++i) u[i] += problem_->b[i];
  }
  // v := v_free + A^-1 J' gamma for the impulses h.
  void move(double* to) {
    for (int k = 0; k < contacts_; ++k) {
      for (int i = 0; i < 3; ++i) work_[3 * k + i] = h(k)[i] * unit_ / weight_[k];
    }
    std::fill_n(to, n_, 0.0);
    system.add_to_bodies(work_.data(), to);
    system.solve_mass(to);
    for (int i = 0; i < n_; ++i) to[i] += problem_->v_free[i];
  }
  // u := J v + b for the impulses h, in the units of u.
  void follow(double* u) {
    move(step_.data());
    velocities(step_.data(), u);
    scale(u);
  }
  void scale(double* u) const {
    for (int i = 0; i < 3 * contacts_; ++i) u[i] /= weight_[i / 3] * unit_;
  }
  // du := J dv, where (A + J' K J) dv = -J' g, in the units of h and u. False where the matrix is singular.
  bool newton_step(const double* g, double* du) {
    for (int k = 0; k < contacts_; ++k) {
      for (int i = 0; i < 9; ++i) step_K_[9 * k + i] = K[9 * k + i] / (weight_[k] * weight_[k]);
      for (int i = 0; i < 3; ++i) work_[3 * k + i] = -g[3 * k + i] * unit_ / weight_[k];
    }
    if (!system.factor(step_K_.data())) return false;
    std::fill(step_.begin(), step_.end(), 0.0);
    system.add_to_bodies(work_.data(), step_.data());
    system.solve(step_.data());
    system.to_contacts(step_.data(), du);
    scale(du);
    return true;
  }

  int n_, contacts_;
  const ContactProblem* problem_ = nullptr;
  double unit_ = 1;
  std::vector<double> weight_, mu_, u_, work_, step_, step_K_;
};

// z_i w_i = kappa for the unknowns of a pyramid: for each contact the impulses along its normal and in the directions,
// and its slip. Damped Newton steps as in solver/central_path.h.
class PyramidPath final : public Path {
 public:
  PyramidPath(const Scene& scene, int contacts)
      : Path(scene.velocities(), contacts),
        each_(unknowns_of(scene.law)),
        all_(static_cast<std::size_t>(each_) * contacts),
        h_(3 * contacts),
        g_(3 * contacts),
        du_(3 * contacts) {
    const double step = 2 * std::numbers::pi / scene.law.directions;
    for (int k = 0; k < scene.law.directions; ++k) {
      cosine_.push_back(std::cos(scene.law.angle + step * k));
      sine_.push_back(std::sin(scene.law.angle + step * k));
    }
    for (std::vector<double>* x : {&z_, &w_, &f_, &dz_, &trial_z_, &trial_w_, &trial_f_, &along_z_, &along_w_}) {
      x->resize(all_);
    }
    slopes_.resize(contacts);
  }

 private:
  static constexpr int kSteps = 60, kHalvings = 25;
  static constexpr double kNear = 1e-8;  // relative to sqrt(kappa): the error of the next step is round-off

  // The change of the slip of a contact as a function of that of its velocity, slip + by_normal du_n + by_tangent'
  // du_t.
  struct Slopes {
    double slip, by_normal, by_tangent[2];
  };

  const double* h(int k) const override { return h_.data() + std::ptrdiff_t{3} * k; }
  static double root_of(double difference, double kappa) { return std::sqrt(difference * difference + 4 * kappa); }
  bool has_friction(int k) const { return mu_[k] > 0; }
  int directions() const { return each_ - 2; }

  void to_impulses(const double* z) {
    for (int k = 0; k < contacts_; ++k, z += each_) {
      double* const h = h_.data() + std::ptrdiff_t{3} * k;
      h[0] = h[1] = 0;
      h[2] = z[0];
      for (int j = 0; has_friction(k) && j < directions(); ++j) {
        h[0] += cosine_[j] * z[1 + j];
        h[1] += sine_[j] * z[1 + j];
      }
    }
  }

  // Fills w and f for z; returns |f|^2.
  double merit(const std::vector<double>& z, double kappa, std::vector<double>& w, std::vector<double>& f) {
    to_impulses(z.data());
    follow(u_.data());
    double sum = 0;
    for (int k = 0; k < contacts_; ++k) {
      const double *const u = u_.data() + std::ptrdiff_t{3} * k, *const of_z = z.data() + std::ptrdiff_t{each_} * k;
      double* const of_w = w.data() + std::ptrdiff_t{each_} * k;
      const int slip = each_ - 1, count = has_friction(k) ? each_ : 1;
      of_w[0] = u[2];
      of_w[slip] = mu_[k] * of_z[0];
      for (int j = 0; j < directions(); ++j) {
        of_w[1 + j] = cosine_[j] * u[0] + sine_[j] * u[1] + of_z[slip];
        of_w[slip] -= of_z[1 + j];
      }
      double* const of_f = f.data() + std::ptrdiff_t{each_} * k;
      for (int i = 0; i < count; ++i) {
        const double root = root_of(of_z[i] - of_w[i], kappa), total = of_z[i] + of_w[i];
        of_f[i] = total > 0 ? 4 * (of_z[i] * of_w[i] - kappa) / (total + root) : total - root;
        sum += of_f[i] * of_f[i];
      }
    }
    return sum;
  }

  // K, and with it g_ and slopes_, of a_i dz_i + b_i dw_i = -f_i.
  void linearize(const std::vector<double>& a, const std::vector<double>& b, const std::vector<double>& f) {
    for (int k = 0; k < contacts_; ++k) {
      const std::ptrdiff_t at = std::ptrdiff_t{each_} * k;
      const double *const of_a = a.data() + at, *const of_b = b.data() + at, *const of_f = f.data() + at;
      double *const of_K = K.data() + std::ptrdiff_t{9} * k, *const g = g_.data() + std::ptrdiff_t{3} * k;
      std::fill_n(of_K, 9, 0.0);
      const double normal = of_b[0] / of_a[0];
      of_K[8] = normal;
      g[0] = g[1] = 0;
      g[2] = of_f[0] / of_a[0];
      if (!has_friction(k)) continue;
      const int slip = each_ - 1;
      double sum = 0, sum_x = 0, sum_y = 0, sum_f = 0;
      for (int j = 0; j < directions(); ++j) {
        const double by = of_b[1 + j] / of_a[1 + j];
        sum += by;
        sum_x += by * cosine_[j];
        sum_y += by * sine_[j];
        sum_f += of_f[1 + j] / of_a[1 + j];
      }
      const double size = of_a[slip] + of_b[slip] * sum, share_b = of_b[slip] / size, share_a = of_a[slip] / size;
      const double x = sum > 0 ? sum_x / sum : 0, y = sum > 0 ? sum_y / sum : 0;
      double& xx = of_K[0];
      double& xy = of_K[1];
      double& yy = of_K[4];
      // The sum of b_j / a_j d_j d_j' without its part along the mean direction, which the slip takes.
      for (int j = 0; j < directions(); ++j) {
        const double by = of_b[1 + j] / of_a[1 + j], d_x = cosine_[j] - x, d_y = sine_[j] - y;
        xx += by * d_x * d_x;
        xy += by * d_x * d_y;
        yy += by * d_y * d_y;
        const double change = of_f[1 + j] / of_a[1 + j];
        g[0] += change * cosine_[j];
        g[1] += change * sine_[j];
      }
      xx += sum_x * x * share_a;
      xy += sum_x * y * share_a;
      yy += sum_y * y * share_a;
      of_K[3] = xy;
      const double by_normal = share_b * mu_[k] * normal;
      of_K[2] = sum_x * by_normal;
      of_K[5] = sum_y * by_normal;
      Slopes& slopes = slopes_[k];
      slopes = {
          -of_f[slip] / size + share_b * (mu_[k] * g[2] - sum_f), by_normal, {-share_b * sum_x, -share_b * sum_y}};
      g[0] += sum_x * slopes.slip;
      g[1] += sum_y * slopes.slip;
    }
  }

  // One damped Newton step; false where there is none that lowers the merit.
  bool step(double kappa, double& value, int halvings) {
    for (std::size_t i = 0; i < all_; ++i) {
      const double x = z_[i] - w_[i], root = root_of(x, kappa);
      const double lesser = 4 * kappa / (root * (root + std::abs(x))), greater = 1 + std::abs(x) / root;
      along_z_[i] = x > 0 ? lesser : greater;
      along_w_[i] = x > 0 ? greater : lesser;
    }
    linearize(along_z_, along_w_, f_);
    if (!newton_step(g_.data(), du_.data())) return false;
    for (int k = 0; k < contacts_; ++k) {
      const std::ptrdiff_t at = std::ptrdiff_t{each_} * k;
      const double* const du = du_.data() + std::ptrdiff_t{3} * k;
      const int slip = each_ - 1;
      dz_[at] = -(f_[at] + along_w_[at] * du[2]) / along_z_[at];
      if (!has_friction(k)) continue;
      const Slopes& slopes = slopes_[k];
      dz_[at + slip] =
          slopes.slip + slopes.by_normal * du[2] + slopes.by_tangent[0] * du[0] + slopes.by_tangent[1] * du[1];
      for (int j = 0; j < directions(); ++j) {
        const std::ptrdiff_t i = at + 1 + j;
        const double dw = cosine_[j] * du[0] + sine_[j] * du[1] + dz_[at + slip];
        dz_[i] = -(f_[i] + along_w_[i] * dw) / along_z_[i];
      }
    }
    double length = 1;
    for (int count = 0; count < halvings; ++count, length /= 2) {
      for (std::size_t i = 0; i < all_; ++i) trial_z_[i] = z_[i] + length * dz_[i];
      const double trial = merit(trial_z_, kappa, trial_w_, trial_f_);
      if (!(trial < value * (1 - 1e-4 * length))) continue;
      value = trial;
      z_.swap(trial_z_);
      w_.swap(trial_w_);
      f_.swap(trial_f_);
      return true;
    }
    return false;
  }

  // A contact whose unknowns are all 0 starts with the slip of its velocity.
  bool search(const SolvedContacts& solution, double kappa) override {
    velocities(solution.v, u_.data());
    scale(u_.data());
    for (int k = 0; k < contacts_; ++k) {
      const std::ptrdiff_t at = std::ptrdiff_t{each_} * k;
      const double *const given = solution.unknowns + at, *const u = u_.data() + std::ptrdiff_t{3} * k;
      const int slip = each_ - 1;
      for (int i = 0; i < slip; ++i) z_[at + i] = given[i] * weight_[k] / unit_;
      z_[at + slip] = given[slip] / (weight_[k] * unit_);
      if (any_nonzero(given, each_)) continue;
      for (int j = 0; j < directions(); ++j) {
        z_[at + slip] = std::max(z_[at + slip], -(cosine_[j] * u[0] + sine_[j] * u[1]));
      }
    }
    for (int k = 0; k < contacts_; ++k) {
      if (!has_friction(k)) std::fill_n(z_.begin() + std::ptrdiff_t{each_} * k + 1, each_ - 1, 0.0);
    }
    std::fill(dz_.begin(), dz_.end(), 0.0);
    double value = merit(z_, kappa, w_, f_);
    // Newton's method has the squared error of the step before: one more step leaves round-off.
    for (int k = 0; k < kSteps; ++k) {
      const bool is_near = value <= kNear * kNear * kappa;
      if (!step(kappa, value, is_near ? 1 : kHalvings) || is_near) break;
    }
    const double allowed = std::max(1e-9 * std::sqrt(kappa), 1e-14);
    for (int k = 0; k < contacts_; ++k) {
      for (int i = 0; i < (has_friction(k) ? each_ : 1); ++i) {
        double &z = z_[std::ptrdiff_t{each_} * k + i], &w = w_[std::ptrdiff_t{each_} * k + i];
        if (!(std::abs(f_[std::ptrdiff_t{each_} * k + i]) <= allowed)) return false;
        (z > w ? w : z) = kappa / (z > w ? z : w);
        if (!(z > 0 && w > 0)) return false;
      }
    }
    to_impulses(z_.data());
    std::fill(f_.begin(), f_.end(), 0.0);
    linearize(w_, z_, f_);
    std::fill(e.begin(), e.end(), 0.0);
    for (int k = 0; k < contacts_; ++k) {
      if (!has_friction(k)) continue;
      const std::ptrdiff_t at = std::ptrdiff_t{each_} * k;
      // dmu raises the unused friction of the slip by z_n.
      for (int i = 0; i < 2; ++i) e[3 * k + i] = -slopes_[k].by_tangent[i] * z_[at];
    }
    return true;
  }

  int each_;
  std::size_t all_;
  std::vector<double> h_, g_, du_, cosine_, sine_;
  std::vector<double> z_, w_, f_, dz_, trial_z_, trial_w_, trial_f_, along_z_, along_w_;
  std::vector<Slopes> slopes_;
};

// The path of friction/smooth_path.h. Newton steps as there.
class ConePath final : public Path {
 public:
  ConePath(const Scene& scene, int contacts)
      : Path(scene.velocities(), contacts),
        h_(3 * contacts),
        gap_(3 * contacts),
        g_(3 * contacts),
        step_h_(3 * contacts),
        step_u_(3 * contacts),
        at_u_(3 * contacts) {}

 private:
  static constexpr int kSteps = 100, kStalled = 3;
  static constexpr double kInside = 0.9, kConverged = 1e-13, kRounding = 1e-5, kFast = 0.1, kSlow = 0.5;
  static constexpr double kNear = 1e-8;  // the error of the next step is round-off

  const double* h(int k) const override { return h_.data() + std::ptrdiff_t{3} * k; }

  double evaluate(double kappa) {
    follow(gap_.data());
    double worst = 0;
    for (std::size_t i = 0; i < gap_.size(); ++i) {
      gap_[i] -= at_u_[i];
      worst = std::max(worst, std::abs(gap_[i]));
    }
    for (int k = 0; k < contacts_; ++k) {
      const friction::SmoothLaw law(h(k), at_u_.data() + std::ptrdiff_t{3} * k, mu_[k], kappa);
      const double sliding = h(k)[2] * law.D[0][0];
      worst = std::max({worst, std::abs(law.F[0]) / sliding, std::abs(law.F[1]) / sliding, std::abs(law.F[2]) / kappa});
    }
    return worst;
  }

  // K = D^-1 C, and D^-1 x; D is upper triangular.
  static void solve(const friction::SmoothLaw& law, double x, double y, double z, double* out, std::ptrdiff_t stride) {
    out[2 * stride] = z / law.D[2][2];
    out[stride] = (y - law.D[1][2] * out[2 * stride]) / law.D[1][1];
    out[0] = (x - law.D[0][2] * out[2 * stride]) / law.D[0][0];
  }
  void linearize(int k, const friction::SmoothLaw& law) {
    for (int j = 0; j < 3; ++j) {
      solve(law, law.C[0][j], law.C[1][j], law.C[2][j], K.data() + std::ptrdiff_t{9} * k + j, 3);
    }
  }

  bool newton(double kappa, double fall) {
    double least = kInfinity;
    int since = 0;
    bool is_near = false;
    for (int count = 0; count < kSteps; ++count) {
      double mean = 0;
      for (int k = 0; k < contacts_; ++k) mean += h_[3 * k + 2] * at_u_[3 * k + 2] / contacts_;
      const double target = std::max(kappa, fall * mean), norm = evaluate(kappa);
      if (!std::isfinite(norm)) return false;
      since = norm < 0.5 * least ? 0 : since + 1;
      least = std::min(least, norm);
      if (norm <= kConverged || (norm <= kRounding && (is_near || since > kStalled))) return true;
      is_near = norm <= kNear;
      for (int k = 0; k < contacts_; ++k) {
        const friction::SmoothLaw law(h(k), at_u_.data() + std::ptrdiff_t{3} * k, mu_[k], target);
        linearize(k, law);
        double* const g = g_.data() + std::ptrdiff_t{3} * k;
        solve(law, law.F[0], law.F[1], law.F[2], g, 1);
        for (int i = 0; i < 3; ++i) {
          for (int l = 0; l < 3; ++l) g[i] += K[9 * k + 3 * i + l] * gap_[3 * k + l];
        }
      }
      if (!newton_step(g_.data(), step_u_.data())) return false;
      double length = 1;
      for (int k = 0; k < contacts_; ++k) {
        double *const du = step_u_.data() + std::ptrdiff_t{3} * k, *const dh = step_h_.data() + std::ptrdiff_t{3} * k;
        for (int i = 0; i < 3; ++i) {
          dh[i] = -g_[3 * k + i];
          for (int l = 0; l < 3; ++l) dh[i] -= K[9 * k + 3 * i + l] * du[l];
        }
        for (int i = 0; i < 3; ++i) du[i] += gap_[3 * k + i];
        if (dh[2] < 0) length = std::min(length, -kInside * h_[3 * k + 2] / dh[2]);
        if (du[2] < 0) length = std::min(length, -kInside * at_u_[3 * k + 2] / du[2]);
      }
      for (std::size_t i = 0; i < h_.size(); ++i) {
        h_[i] += length * step_h_[i];
        at_u_[i] += length * step_u_[i];
      }
    }
    return false;
  }

  bool search(const SolvedContacts& solution, double kappa) override {
    velocities(solution.v, at_u_.data());
    scale(at_u_.data());
    for (std::size_t i = 0; i < h_.size(); ++i) h_[i] = solution.gamma[i] * weight_[i / 3] / unit_;
    const auto start_at_least = [&](double least) {
      for (std::size_t i = 2; i < h_.size(); i += 3) {
        h_[i] = std::max(h_[i], least);
        at_u_[i] = std::max(at_u_[i], least);
      }
    };
    start_at_least(std::sqrt(kappa));
    if (!newton(kappa, kFast)) {
      std::fill(h_.begin(), h_.end(), 0.0);
      std::fill(at_u_.begin(), at_u_.end(), 0.0);
      start_at_least(std::max(1.0, std::sqrt(kappa)));
      if (!newton(kappa, kSlow)) return false;
    }
    for (int k = 0; k < contacts_; ++k) {
      const friction::SmoothLaw law(h(k), at_u_.data() + std::ptrdiff_t{3} * k, mu_[k], 0);
      linearize(k, law);
      solve(law, law.E[0], law.E[1], law.E[2], e.data() + std::ptrdiff_t{3} * k, 1);
    }
    return true;
  }

  std::vector<double> h_, gap_, g_, step_h_, step_u_, at_u_;
};

class SmoothDerivative final : public ContactDerivative {
 public:
  explicit SmoothDerivative(const Scene& scene) : scene_(scene), n_(scene.velocities()), paths_(scene.contacts() + 1) {}

  SolvedContacts point(int contacts, const ContactProblem& problem, const SolvedContacts& solution) override {
    std::unique_ptr<Path>& path = paths_[contacts];
    if (!path) {
      if (is_pyramid()) {
        path = std::make_unique<PyramidPath>(scene_, contacts);
      } else {
        path = std::make_unique<ConePath>(scene_, contacts);
      }
      g_.resize(std::max<std::size_t>(g_.size(), 3 * contacts));
    }
    is_defined_ = path->find(problem, solution, scene_.law.kappa);
    return {path->v.data(), path->gamma.data(), nullptr, nullptr};
  }

  // With S = A + J' K J, lambda = S^-T (g_v - J' K' g_gamma) is the gradient of p, -K' (J lambda + g_gamma) that of s.
  // The velocities of pyramids follow from gamma with the data at the solution, so that g_v is one of p there, and of
  // gamma.
  void adjoint(int contacts, const ContactProblem& /*problem*/, const SolvedContacts& /*at*/, bool /*same*/,
               const double* g_v, const double* g_gamma, const ContactData<double>& g) override {
    Path& path = *paths_[contacts];
    if (!is_defined_) {
      const double value = any_nonzero(g_v, n_) || any_nonzero(g_gamma, 3 * contacts) ? kNaN : 0;
      std::fill_n(g.p, n_, value);
      if (is_pyramid()) std::fill_n(g.p_of_solution, n_, value);
      std::fill_n(g.s, 3 * contacts, value);
      return static_cast<void>(std::fill_n(g.mu, contacts, value));
    }
    std::copy_n(g_gamma, 3 * contacts, g_.begin());
    std::copy_n(g_v, n_, g.p);
    if (is_pyramid()) {
      std::copy_n(g_v, n_, g.p_of_solution);
      path.system.solve_mass(g.p_of_solution);
      path.system.to_contacts(g.p_of_solution, g.s);
      for (int i = 0; i < 3 * contacts; ++i) g_[i] += g.s[i];
      std::fill_n(g.p, n_, 0.0);
    }
    times_K(path, contacts, g_.data(), g.s);
    path.system.add_to_bodies(g.s, g.p);
    path.system.solve_transposed(g.p);
    path.system.to_contacts(g.p, g.s);
    for (int i = 0; i < 3 * contacts; ++i) g_[i] += g.s[i];
    times_K(path, contacts, g_.data(), g.s);
    for (int k = 0; k < contacts; ++k) {
      g.mu[k] = 0;
      for (int i = 0; i < 3; ++i) g.mu[k] += path.e[3 * k + i] * g_[3 * k + i];
    }
  }

  void tangent(int contacts, const ContactProblem& /*problem*/, const SolvedContacts& /*at*/, bool /*same*/,
               const ContactData<const double>& d, double* dv, double* dgamma) override {
    Path& path = *paths_[contacts];
    if (!is_defined_) {
      const bool changes = any_nonzero(d.p, n_) || any_nonzero(d.s, 3 * contacts) || any_nonzero(d.mu, contacts);
      std::fill_n(dv, n_, changes ? kNaN : 0);
      return static_cast<void>(std::fill_n(dgamma, 3 * contacts, changes ? kNaN : 0));
    }
    const auto impulses = [&](const double* du) {
      for (int k = 0; k < contacts; ++k) {
        for (int i = 0; i < 3; ++i) {
          double& number = dgamma[3 * k + i];
          number = path.e[3 * k + i] * d.mu[k];
          for (int l = 0; l < 3; ++l) number -= path.K[9 * k + 3 * i + l] * du[3 * k + l];
        }
      }
    };
    impulses(d.s);
    std::copy_n(d.p, n_, dv);
    path.system.add_to_bodies(dgamma, dv);
    path.system.solve(dv);
    path.system.to_contacts(dv, g_.data());
    for (int i = 0; i < 3 * contacts; ++i) g_[i] += d.s[i];
    impulses(g_.data());
    if (!is_pyramid()) return;
    std::copy_n(d.p_of_solution, n_, dv);
    path.system.add_to_bodies(dgamma, dv);
    path.system.solve_mass(dv);
  }

 private:
  bool is_pyramid() const { return scene_.law.formulation == Formulation::kPolyhedral; }

  // y := -K' x.
  static void times_K(const Path& path, int contacts, const double* x, double* y) {
    for (int k = 0; k < contacts; ++k) {
      for (int i = 0; i < 3; ++i) {
        double sum = 0;
        for (int l = 0; l < 3; ++l) sum += path.K[9 * k + 3 * l + i] * x[3 * k + l];
        y[3 * k + i] = -sum;
      }
    }
  }

  const Scene& scene_;
  int n_;
  bool is_defined_ = false;                   // whether the last problem has a point
  std::vector<std::unique_ptr<Path>> paths_;  // for each number of contacts, made when they are first needed
  std::vector<double> g_;
};

}  // namespace

std::unique_ptr<ContactDerivative> make_smooth_derivative(const Scene& scene) {
  return std::make_unique<SmoothDerivative>(scene);
}

}  // namespace lcp::rigid
