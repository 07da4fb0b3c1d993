// Coulomb's law with a pyramid: the LCP of include/lcp/friction_problem.h.
#pragma once

#include <vector>

#include "batch/batch_derivative.h"
#include "batch/batch_solver.h"
#include "contact/system.h"
#include "friction/pyramid.h"
#include "linalg/aligned.h"
#include "rigid/contact_law.h"

namespace lcp::rigid {

/// The LCP of `contacts` contacts and the rows of the scene. The unknowns of each contact, its impulses along the
/// normal and in the directions of friction and its slip, stand one behind another, and then those of the rows.
class PolyhedralProblem {
 public:
  PolyhedralProblem(const Scene& scene, int contacts);

  int size() const { return size_; }
  const double* M() const { return M_.data(); }  ///< [size, size]

  /// False where A is not positive definite.
  bool set(const ContactProblem& problem);

  /// q for the velocities u [3 c + k] of the bodies without impulses. Overwrites u.
  void set_offsets(double* u, double* q) const;

  /// The changes of the impulses [3 c + k] with unknowns, and the reverse: the gradient of the unknowns of that of the
  /// impulses.
  void to_impulses(const double* z, double* gamma) const;
  void to_unknowns(const double* gamma, double* z) const;
  /// Adds the impulses where the unknowns are 0. Round-off does not take those of rows out of their intervals.
  void add_base(double* gamma) const;
  /// The place of the second unknown of a row, whose entry of q is upper - lower.
  int second_of_row(int r) const { return size_ - friction::PyramidRows::kUnknowns * (rows_.count - r) + 1; }
  int rows() const { return rows_.count; }

  /// A^-1 x, [n].
  const contact::Vector& solve(const double* x);
  /// A^-1 J' gamma, [n].
  const contact::Vector& motion_of(const double* gamma);

 private:
  Eigen::Index n_;
  int contacts_, size_;
  contact::AnySystem systems_;
  contact::System* system_ = nullptr;
  std::vector<Eigen::Matrix3d> no_compliance_;
  std::vector<double> cosine_, sine_;  // of the directions
  friction::Directions directions_;
  friction::PyramidRows rows_;
  std::vector<double> W_;
  linalg::AlignedVector<double> M_;
  contact::Vector gamma_, v_;
};

/// Allocates for the first problem with as many contacts as none had before, where a problem is sparse, and as
/// batch::BatchSolver does.
class PolyhedralSolver final : public ContactSolver {
 public:
  PolyhedralSolver(const Scene& scene, double tolerance);

  Status solve(int contacts, const ContactProblem& problem, const ContactResult& result) override;
  std::int64_t iterations() const override { return 0; }

 private:
  struct Workspace {
    PolyhedralProblem problem;
    batch::BatchSolver<double> solver;
    std::vector<double> u, q, z, w;

    Workspace(const Scene& scene, int contacts, const solver::Settings& settings);
  };

  const Scene& scene_;
  Eigen::Index n_;
  solver::Settings settings_;
  ForEachCount<Workspace> workspaces_;
};

/// The same, as batch::BatchDerivative does.
class PolyhedralDerivative final : public ContactDerivative {
 public:
  PolyhedralDerivative(const Scene& scene, Ties ties);

  void adjoint(int contacts, const ContactProblem& problem, const SolvedContacts& at, bool same, const double* g_v,
               const double* g_gamma, const ContactData<double>& g) override;
  void tangent(int contacts, const ContactProblem& problem, const SolvedContacts& at, bool same,
               const ContactData<const double>& d, double* dv, double* dgamma) override;

 private:
  struct Workspace {
    PolyhedralProblem problem;
    bool is_set = false;  // the problem
    batch::BatchDerivative<double> inactive, active;
    std::vector<double> of_contacts, of_pairs, no_g_w, dw, t, other_t;

    Workspace(const Scene& scene, int contacts);
  };

  template <class Map>
  void derive(Workspace& work, const Map& map);

  const Scene& scene_;
  Eigen::Index n_;
  Ties ties_;
  ForEachCount<Workspace> workspaces_;
};

}  // namespace lcp::rigid
