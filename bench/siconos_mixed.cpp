// Siconos' solvers of mixed problems, through the driver that its users call.
#include <MLCP_Solvers.h>
#include <MixedLinearComplementarityProblem.h>
#include <NonSmoothDrivers.h>
#include <NumericsMatrix.h>
#include <SolverOptions.h>

#include <algorithm>

#include "peers.h"

namespace lcp::bench {
namespace {

class SiconosMixed : public Peer {
 public:
  SiconosMixed(const std::vector<testing::MixedProblem>& problems, int solver, double tolerance)
      : problems_(problems), solver_(solver), tolerance_(tolerance) {}

  bool solve(std::size_t k, double* v) override {
    const testing::MixedProblem& problem = problems_[k];
    const int equations = problem.k, size = problem.size(), pairs = size - equations;
    Eigen::VectorXd w = Eigen::VectorXd::Zero(size), h = problem.h;
    Eigen::MatrixXd H = problem.H;  // column by column, as its blocks
    Eigen::MatrixXd A = H.topLeftCorner(equations, equations), B = H.topRightCorner(equations, pairs),
                    C = H.bottomLeftCorner(pairs, equations), M = H.bottomRightCorner(pairs, pairs);
    int rows[] = {0, equations, size}, are_pairs[] = {0, 1};
    // Some solvers read H, others its blocks, of which Siconos calls B ours C, C ours B, D ours C and B ours M.
    NumericsMatrix* head = NM_create_from_data(NM_DENSE, size, size, H.data());
    MixedLinearComplementarityProblem mixed{
        1,        1,        equations, pairs,    rows,     are_pairs, head,
        h.data(), A.data(), M.data(),  B.data(), C.data(), h.data(),  h.data() + equations};
    std::fill_n(v, size, 0.0);
    SolverOptions* options = solver_options_create(solver_);
    options->dparam[SICONOS_DPARAM_TOL] = tolerance_;
    mlcp_driver_init(&mixed, options);
    const bool claims = mlcp_driver(&mixed, v, w.data(), options) == 0;
    mlcp_driver_reset(&mixed, options);
    solver_options_delete(options);
    head->matrix0 = nullptr;
    NM_free(head);
    return claims;
  }

 private:
  const std::vector<testing::MixedProblem>& problems_;
  int solver_;
  double tolerance_;
};

}  // namespace

std::vector<MixedPeerSolver> siconos_mixed_solvers() {
  // The tolerances are those that Siconos takes for LCPs by the same method. That for mixed problems is 1e-12, which
  // few solutions meet.
  const auto solver = [](const std::string& name, int largest_n, int id, double tolerance) {
    return MixedPeerSolver{name, false, largest_n, [=](const std::vector<testing::MixedProblem>& problems) {
                             return std::make_unique<SiconosMixed>(problems, id, tolerance);
                           }};
  };
  return {solver("Siconos: Lemke", 1000, SICONOS_MLCP_LCP_LEMKE, 1e-6),
          solver("Siconos: enumeration", 10, SICONOS_MLCP_ENUM, 1e-6),
          solver("Siconos: FB-Newton", 10, SICONOS_MLCP_FB, 1e-10)};
}

}  // namespace lcp::bench
