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
  explicit BulletLemke(const ProblemSet& set) : n_(set.n()) {
    for (const testing::Problem& problem : set.problems) {
      btMatrixXu M(n_, n_);
      btVectorXu q(n_);
      for (int i = 0; i < n_; ++i) {
        for (int j = 0; j < n_; ++j) M.setElem(i, j, problem.M(i, j));
        q[i] = problem.q[i];
      }
      problems_.emplace_back(M, q);
    }
  }

  bool solve(std::size_t k, double* z) override {
    constexpr unsigned kMaxLoops = 1000;  // as btLemkeSolver has it
    const btVectorXu w_and_z = problems_[k].solve(kMaxLoops);
    for (int i = 0; i < n_; ++i) z[i] = w_and_z[n_ + i];
    return problems_[k].getInfo() == 0;
  }

 private:
  int n_;
  std::vector<btLemkeAlgorithm> problems_;
};

// Solves A x = b + w, lo <= x <= hi, so b = -q; it overwrites A and b.
class BulletDantzig : public Peer {
 public:
  explicit BulletDantzig(const ProblemSet& set)
      : set_(set), n_(set.n()), A_(set.problems.size()), b_(A_.size()), w_(n_), low_(n_), high_(n_), index_(n_) {}

  void restore() override {
    for (std::size_t k = 0; k < A_.size(); ++k) {
      const testing::Problem& problem = set_.problems[k];
      A_[k].assign(problem.M.data(), problem.M.data() + problem.M.size());
      b_[k] = -problem.q;
    }
  }

  bool solve(std::size_t k, double* z) override {
    std::fill_n(z, n_, 0.0);
    std::fill(low_.begin(), low_.end(), 0.0);
    std::fill(high_.begin(), high_.end(), std::numeric_limits<double>::infinity());
    std::fill(index_.begin(), index_.end(), -1);
    return btSolveDantzigLCP(n_, A_[k].data(), z, b_[k].data(), w_.data(), 0, low_.data(), high_.data(), index_.data(),
                             scratch_);
  }

 private:
  const ProblemSet& set_;
  int n_;
  std::vector<std::vector<double>> A_;
  std::vector<Eigen::VectorXd> b_;
  std::vector<double> w_, low_, high_;
  std::vector<int> index_;
  btDantzigScratchMemory scratch_;
};

template <class Solver>
std::unique_ptr<Peer> prepare(const ProblemSet& set) {
  return std::make_unique<Solver>(set);
}

}  // namespace

std::vector<PeerSolver> bullet_solvers() {
  return {{"Bullet: Lemke", false, 512, prepare<BulletLemke>}, {"Bullet: Dantzig", true, 1000, prepare<BulletDantzig>}};
}

}  // namespace lcp::bench
