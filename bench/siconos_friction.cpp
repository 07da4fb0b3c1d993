// Siconos' solvers of contact with friction, through the driver that its users call. They get the problem in the
// impulses alone, u = W gamma + q.
#include <FrictionContactProblem.h>
#include <Friction_cst.h>
#include <NonSmoothDrivers.h>
#include <NumericsMatrix.h>
#include <SolverOptions.h>

#include <algorithm>

#include "friction_peers.h"

namespace lcp::bench {
namespace {

constexpr double kTolerance = 1e-10;  // of the norm of its natural map over that of q

// Where Siconos has component i: its contacts begin with the normal.
int place(int i) { return i - i % 3 + (i + 1) % 3; }

class SiconosFriction : public FrictionPeer {
 public:
  SiconosFriction(const FrictionSet& set, int solver, int iterations)
      : size_(static_cast<int>(3 * set.contacts())),
        reaction_(size_),
        velocity_(size_),
        options_(solver_options_create(solver), &solver_options_delete) {
    options_->iparam[SICONOS_IPARAM_MAX_ITER] = iterations;
    options_->dparam[SICONOS_DPARAM_TOL] = kTolerance;
    for (const testing::RigidContacts& problem : set.problems) {
      const Eigen::MatrixXd W = problem.J * problem.A.ldlt().solve(problem.J.transpose().eval());
      const Eigen::VectorXd q = problem.J * problem.v_free + problem.b;
      matrices_.emplace_back(size_, size_);
      q_.emplace_back(size_);
      mu_.push_back(problem.mu);
      for (int i = 0; i < size_; ++i) {
        q_.back()[place(i)] = q[i];
        for (int j = 0; j < size_; ++j) matrices_.back()(place(i), place(j)) = W(i, j);
      }
    }
    for (std::size_t k = 0; k < matrices_.size(); ++k) {
      // Matrix headers for memory that this class owns; they must not free it.
      heads_.push_back(NM_create_from_data(NM_DENSE, size_, size_, matrices_[k].data()));
      problems_.push_back({3, size_ / 3, heads_.back(), q_[k].data(), mu_[k].data()});
    }
  }
  ~SiconosFriction() override {
    for (NumericsMatrix* head : heads_) {
      head->matrix0 = nullptr;
      NM_free(head);
    }
  }
  SiconosFriction(const SiconosFriction&) = delete;
  SiconosFriction& operator=(const SiconosFriction&) = delete;

  bool solve(std::size_t k, double* gamma) override {
    std::fill(reaction_.begin(), reaction_.end(), 0.0);
    std::fill(velocity_.begin(), velocity_.end(), 0.0);
    const int failed = fc3d_driver(&problems_[k], reaction_.data(), velocity_.data(), options_.get());
    for (int i = 0; i < size_; ++i) gamma[i] = reaction_[place(i)];
    return failed == 0;
  }

 private:
  int size_;
  std::vector<double> reaction_, velocity_;
  std::unique_ptr<SolverOptions, void (*)(SolverOptions*)> options_;
  std::vector<Eigen::MatrixXd> matrices_;  // column by column
  std::vector<Eigen::VectorXd> q_, mu_;
  std::vector<NumericsMatrix*> heads_;
  std::vector<FrictionContactProblem> problems_;
};

template <int solver, int iterations>
std::unique_ptr<FrictionPeer> prepare(const FrictionSet& set) {
  return std::make_unique<SiconosFriction>(set, solver, iterations);
}

}  // namespace

std::vector<FrictionPeerSolver> siconos_friction_solvers() {
  return {{"Siconos: NSGS", prepare<SICONOS_FRICTION_3D_NSGS, 10'000>},
          {"Siconos: NSN_AC", prepare<SICONOS_FRICTION_3D_NSN_AC, 1000>}};
}

}  // namespace lcp::bench
