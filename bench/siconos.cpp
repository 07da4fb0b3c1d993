// Siconos, through the driver that its users call: it checks an answer before it claims one.
#include <LinearComplementarityProblem.h>
#include <NonSmoothDrivers.h>
#include <NumericsMatrix.h>
#include <SolverOptions.h>
#include <lcp_cst.h>

#include <algorithm>

#include "peers.h"

namespace lcp::bench {
namespace {

class Siconos : public Peer {
 public:
  Siconos(const ProblemSet& set, int solver)
      : n_(set.n()), w_(set.n()), options_(solver_options_create(solver), &solver_options_delete) {
    for (const testing::Problem& problem : set.problems) {
      matrices_.emplace_back(problem.M);
      q_.push_back(problem.q);
    }
    for (std::size_t k = 0; k < matrices_.size(); ++k) {
      // Matrix headers for memory that this class owns; they must not free it.
      heads_.push_back(NM_create_from_data(NM_DENSE, n_, n_, matrices_[k].data()));
      problems_.push_back({n_, heads_.back(), q_[k].data()});
    }
  }
  ~Siconos() override {
    for (NumericsMatrix* head : heads_) {
      head->matrix0 = nullptr;
      NM_free(head);
    }
  }
  Siconos(const Siconos&) = delete;
  Siconos& operator=(const Siconos&) = delete;

  bool solve(std::size_t k, double* z) override {
    std::fill_n(z, n_, 0.0);  // the Newton methods start here
    std::fill_n(w_.data(), n_, 0.0);
    return linearComplementarity_driver(&problems_[k], z, w_.data(), options_.get()) == 0;
  }

 private:
  int n_;
  std::vector<double> w_;
  std::unique_ptr<SolverOptions, void (*)(SolverOptions*)> options_;
  std::vector<Eigen::MatrixXd> matrices_;  // column by column
  std::vector<Eigen::VectorXd> q_;
  std::vector<NumericsMatrix*> heads_;
  std::vector<LinearComplementarityProblem> problems_;
};

template <int solver>
std::unique_ptr<Peer> prepare(const ProblemSet& set) {
  return std::make_unique<Siconos>(set, solver);
}

}  // namespace

std::vector<PeerSolver> siconos_solvers() {
  return {{"Siconos: Lemke", false, 1000, prepare<SICONOS_LCP_LEMKE>},
          {"Siconos: FB-Newton", false, 1000, prepare<SICONOS_LCP_NEWTON_FB_FBLSA>},
          {"Siconos: min-FB-Newton", false, 1000, prepare<SICONOS_LCP_NEWTON_MIN_FBLSA>},
          {"Siconos: min-Newton", false, 1000, prepare<SICONOS_LCP_NEWTONMIN>}};
}

}  // namespace lcp::bench
