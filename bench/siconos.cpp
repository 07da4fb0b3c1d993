// Siconos, through the driver that its users call: it checks an answer before it claims one.
#include <LinearComplementarityProblem.h>
#include <NonSmoothDrivers.h>
#include <NumericsMatrix.h>
#include <SolverOptions.h>
#include <lcp_cst.h>

#include <algorithm>
#include <map>

#include "peers.h"

namespace lcp::bench {
namespace {

class Siconos : public Peer {
 public:
  Siconos(const std::vector<testing::Problem>& problems, int solver) {
    for (const testing::Problem& problem : problems) {
      matrices_.emplace_back(problem.M);
      q_.push_back(problem.q);
    }
    for (std::size_t k = 0; k < matrices_.size(); ++k) {
      // Matrix headers for memory that this class owns; they must not free it.
      const int n = problems[k].n();
      heads_.push_back(NM_create_from_data(NM_DENSE, n, n, matrices_[k].data()));
      problems_.push_back({n, heads_.back(), q_[k].data()});
      options_.try_emplace(n, solver_options_create(solver), &solver_options_delete);
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
    const int n = problems_[k].size;
    std::fill_n(z, n, 0.0);  // the Newton methods start here
    w_.assign(n, 0.0);
    return linearComplementarity_driver(&problems_[k], z, w_.data(), options_.at(n).get()) == 0;
  }

 private:
  std::vector<double> w_;
  std::map<int, std::unique_ptr<SolverOptions, void (*)(SolverOptions*)>> options_;  // of each n, with work space
  std::vector<Eigen::MatrixXd> matrices_;                                            // column by column
  std::vector<Eigen::VectorXd> q_;
  std::vector<NumericsMatrix*> heads_;
  std::vector<LinearComplementarityProblem> problems_;
};

template <int solver>
std::unique_ptr<Peer> prepare(const std::vector<testing::Problem>& problems) {
  return std::make_unique<Siconos>(problems, solver);
}

}  // namespace

std::vector<PeerSolver> siconos_solvers() {
  return {{"Siconos: Lemke", false, 1000, prepare<SICONOS_LCP_LEMKE>},
          {"Siconos: enumeration", false, 10, prepare<SICONOS_LCP_ENUM>},
          {"Siconos: FB-Newton", false, 1000, prepare<SICONOS_LCP_NEWTON_FB_FBLSA>},
          {"Siconos: min-FB-Newton", false, 1000, prepare<SICONOS_LCP_NEWTON_MIN_FBLSA>},
          {"Siconos: min-Newton", false, 1000, prepare<SICONOS_LCP_NEWTONMIN>}};
}

}  // namespace lcp::bench
