// Bullet's two direct solvers, in double precision, below the interface that is made for its rigid bodies.
#include <BulletDynamics/MLCPSolvers/btDantzigLCP.h>
#include <BulletDynamics/MLCPSolvers/btLemkeAlgorithm.h>

#include <algorithm>
#include <limits>

#include "peers.h"

namespace lcp::bench {
namespace {

class BulletLemke : public Peer {
 public:
  explicit BulletLemke(const std::vector<testing::Problem>& problems) {
    for (const testing::Problem& problem : problems) {
      const int n = problem.n();
      btMatrixXu M(n, n);
      btVectorXu q(n);
      for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) M.setElem(i, j, problem.M(i, j));
        q[i] = problem.q[i];
      }
      problems_.emplace_back(M, q);
    }
  }

  bool solve(std::size_t k, double* z) override {
    constexpr unsigned kMaxLoops = 1000;  // as btLemkeSolver has it
    const btVectorXu w_and_z = problems_[k].solve(kMaxLoops);
    const int n = w_and_z.size() / 2;
    for (int i = 0; i < n; ++i) z[i] = w_and_z[n + i];
    return problems_[k].getInfo() == 0;
  }

 private:
  std::vector<btLemkeAlgorithm> problems_;
};

// Solves A x = b + w, lo <= x <= hi, so b = -q; it overwrites A and b.
class BulletDantzig : public Peer {
 public:
  explicit BulletDantzig(const std::vector<testing::Problem>& problems)
      : problems_(problems), A_(problems.size()), b_(problems.size()) {}

  void restore() override {
    for (std::size_t k = 0; k < A_.size(); ++k) {
      const testing::Problem& problem = problems_[k];
      A_[k].assign(problem.M.data(), problem.M.data() + problem.M.size());
      b_[k] = -problem.q;
    }
  }

  bool solve(std::size_t k, double* z) override {
    const int n = problems_[k].n();
    std::fill_n(z, n, 0.0);
    w_.resize(n);
    low_.assign(n, 0.0);
    high_.assign(n, std::numeric_limits<double>::infinity());
    index_.assign(n, -1);
    return btSolveDantzigLCP(n, A_[k].data(), z, b_[k].data(), w_.data(), 0, low_.data(), high_.data(), index_.data(),
                             scratch_);
  }

 private:
  const std::vector<testing::Problem>& problems_;
  std::vector<std::vector<double>> A_;
  std::vector<Eigen::VectorXd> b_;
  std::vector<double> w_, low_, high_;
  std::vector<int> index_;
  btDantzigScratchMemory scratch_;
};

template <class Solver>
std::unique_ptr<Peer> prepare(const std::vector<testing::Problem>& problems) {
  return std::make_unique<Solver>(problems);
}

}  // namespace

std::vector<PeerSolver> bullet_solvers() {
  return {{"Bullet: Lemke", false, 512, prepare<BulletLemke>}, {"Bullet: Dantzig", true, 1000, prepare<BulletDantzig>}};
}

}  // namespace lcp::bench
