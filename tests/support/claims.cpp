#include "support/claims.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "batch/batch_solver.h"

namespace lcp::testing {
namespace {

// Products of doubles neither over- nor underflow in a long double, and with their rounding error they are exact.
static_assert(std::numeric_limits<long double>::max_exponent > 2 * std::numeric_limits<double>::max_exponent);

// A sum without rounding, as nonoverlapping parts of increasing size [Shewchuk, Adaptive precision floating-point
// arithmetic and fast robust geometric predicates, 1997].
class ExactSum {
 public:
  void add(long double x) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      long double y = parts_[i];
      if (std::abs(x) < std::abs(y)) std::swap(x, y);
      const long double high = x + y;
      const long double low = y - (high - x);
      if (low != 0) parts_[kept++] = low;
      x = high;
    }
    parts_[kept++] = x;
    count_ = kept;
  }

  void add_product(double a, double b) {
    if (a == 0 || b == 0) return;
    const long double product = static_cast<long double>(a) * b;
    add(product);
    add(std::fma(static_cast<long double>(a), static_cast<long double>(b), -product));
  }

  // The rounded sum. Its sign is exact.
  long double value() const {
    long double sum = 0;
    for (std::size_t i = 0; i < count_; ++i) sum += parts_[i];
    return sum;
  }

 private:
  // Parts of 64 bits that do not overlap, over the exponents of products of doubles.
  long double parts_[80];
  std::size_t count_ = 0;
};

// (M z + q)_i.
long double row_value(const Problem& problem, const Eigen::VectorXd& z, int i) {
  ExactSum sum;
  sum.add(problem.q[i]);
  for (int j = 0; j < problem.n(); ++j) sum.add_product(problem.M(i, j), z[j]);
  return sum.value();
}

// a'b.
long double dot(const Eigen::Ref<const Eigen::VectorXd>& a, const Eigen::VectorXd& b) {
  ExactSum sum;
  for (Eigen::Index i = 0; i < a.size(); ++i) sum.add_product(a[i], b[i]);
  return sum.value();
}

// Row i of the problem by the rule of solver/verify.h: (M z + q)_i, the scale of its error, and the rounding error of a
// sum in twice the precision [Ogita, Rump, Oishi, Accurate sum and dot product, 2005, proposition 5.5].
struct Row {
  long double w, scale, rounding;
};

Row row_of(const Problem& problem, const Eigen::VectorXd& z, int i) {
  const long double largest_q = problem.q.cwiseAbs().maxCoeff();
  long double terms = std::abs(problem.q[i]);
  for (int j = 0; j < problem.n(); ++j) terms += std::abs(static_cast<long double>(problem.M(i, j)) * z[j]);
  const long double unit = (problem.n() + 1) * std::numeric_limits<double>::epsilon();
  return {row_value(problem, z, i), std::min(largest_q, std::max(terms, 1e-4L * largest_q)), unit * unit * terms};
}

std::string at(int i, const std::string& what) { return what + ", i = " + std::to_string(i); }

std::string solution_error(const Problem& problem, const solver::Settings& settings, const Answer& answer) {
  const int n = problem.n();
  const bool single = settings.single_precision;
  const long double epsilon = single ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  const long double tiny =
      single ? std::numeric_limits<float>::denorm_min() : std::numeric_limits<double>::denorm_min();
  for (int i = 0; i < n; ++i) {
    const double z = answer.z[i];
    const double w = answer.w[i];
    if (!std::isfinite(z) || !std::isfinite(w)) return at(i, "solved, but z or w is not finite");
    if (!(z >= 0) || !(w >= 0)) return at(i, "solved, but z or w is negative");
    if (z != 0 && w != 0) return at(i, "solved, but z w is not 0");
    if (single && (z != static_cast<float>(z) || w != static_cast<float>(w))) return at(i, "z or w is no float");
  }
  for (int i = 0; i < n; ++i) {
    const auto [w, scale, sum_rounding] = row_of(problem, answer.z, i);
    const long double allowed = 1.02L * settings.tolerance * scale;
    const long double positive_w = std::max(0.0L, w);
    const long double rounding = epsilon * (positive_w + scale) + sum_rounding + tiny;
    if (answer.z[i] > 0 ? std::abs(w) > allowed : -w > allowed) return at(i, "solved, but the residual is too large");
    if (answer.z[i] == 0 && std::abs(answer.w[i] - positive_w) > allowed + rounding) {
      return at(i, "solved, but w is not M z + q");
    }
  }
  return "";
}

// y >= 0, M'y <= 0 and q'y < 0 leave no z >= 0 with M z + q >= 0, since y'(M z + q) would be negative.
bool proves_infeasible(const Problem& problem, const Eigen::VectorXd& y) {
  if (!y.allFinite() || (y.array() < 0).any() || !(dot(problem.q, y) < 0)) return false;
  for (int j = 0; j < problem.n(); ++j) {
    if (dot(problem.M.col(j), y) > 0) return false;
  }
  return true;
}

void append(std::string& text, const char* name, const double* values, Eigen::Index count) {
  text += std::string("\n") + name + " = {";
  for (Eigen::Index i = 0; i < count; ++i) {
    char number[40];
    std::snprintf(number, sizeof number, "%s%a", i == 0 ? "" : ", ", values[i]);
    text += number;
  }
  text += "}";
}

Answer solve_by_ladder(const Problem& problem, const solver::Settings& settings, const double* guess) {
  solver::Ladder ladder(problem.n(), settings);
  Answer answer{Status::kNotFound, Eigen::VectorXd(problem.n()), Eigen::VectorXd(problem.n()), {}, 0};
  answer.status = ladder.solve(problem.M.data(), problem.q.data(), guess, answer.z.data(), answer.w.data());
  if (answer.status == Status::kInfeasible) {
    answer.farkas = Eigen::Map<const Eigen::VectorXd>(ladder.farkas(), problem.n());
  }
  answer.pivots = ladder.pivots();
  return answer;
}

// Solves the problem as a batch of one in the type T, as the operator does.
template <class T>
Answer solve_as_batch(const Problem& problem, const solver::Settings& settings, const Eigen::VectorXd& guess) {
  const int n = problem.n();
  const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> M = problem.M.cast<T>();
  const Eigen::VectorX<T> q = problem.q.cast<T>();
  const Eigen::VectorX<T> proposal = guess.cast<T>();  // NOLINT(performance-unnecessary-copy-initialization): or float
  Eigen::VectorX<T> z(n), w(n);
  std::int8_t status = 0;
  batch::BatchSolver<T> solver(n, settings);
  solver.solve(1, {M.data(), false}, {q.data(), false}, {guess.size() > 0 ? proposal.data() : nullptr, false},
               {z.data(), w.data(), &status, nullptr});
  return {static_cast<Status>(status), z.template cast<double>(), w.template cast<double>(), {}, 0};
}

}  // namespace

Answer solve(const Problem& problem, const solver::Settings& settings, const Eigen::VectorXd& guess) {
  const Answer alone = solve_by_ladder(problem, settings, guess.size() > 0 ? guess.data() : nullptr);
  const auto is_float = [](double x) { return std::isnan(x) || static_cast<double>(static_cast<float>(x)) == x; };
  Answer batched = alone;
  if (!settings.single_precision) {
    batched = solve_as_batch<double>(problem, settings, guess);
  } else if (std::all_of(problem.M.data(), problem.M.data() + problem.M.size(), is_float) &&
             std::all_of(problem.q.data(), problem.q.data() + problem.q.size(), is_float)) {
    batched = solve_as_batch<float>(problem, settings, guess);
  }
  if (batched.status == Status::kInfeasible) batched.farkas = alone.farkas;
  const bool lost = alone.status == Status::kSolved && batched.status != Status::kSolved;
  return lost || !answer_error(problem, settings, batched).empty() ? batched : alone;
}

bool is_solution(const Problem& problem, const Eigen::VectorXd& z, double tolerance) {
  if (!z.allFinite() || (z.array() < 0).any()) return false;
  for (int i = 0; i < problem.n(); ++i) {
    const Row row = row_of(problem, z, i);
    const long double error = z[i] > 0 ? std::abs(row.w) : -row.w;
    if (error > tolerance * row.scale || row.w > std::numeric_limits<double>::max()) return false;
  }
  return true;
}

std::string answer_error(const Problem& problem, const solver::Settings& settings, const Answer& answer) {
  const bool finite = problem.M.allFinite() && problem.q.allFinite();
  if (finite && answer.status == Status::kBadInput) return "called bad, but all entries are finite";
  if (!finite && answer.status != Status::kBadInput) return "not called bad, but an entry is not finite";
  if (settings.max_pivots && answer.pivots > *settings.max_pivots) return "more pivots than the budget";
  const bool limited = settings.max_pivots || (settings.method != solver::Method::kAuto && problem.n() > 10);
  if (answer.status == Status::kPivotLimit && !limited) return "a pivot limit that nobody set";
  if (answer.status == Status::kSolved) return solution_error(problem, settings, answer);
  if (!answer.z.array().isNaN().all() || !answer.w.array().isNaN().all()) return "not solved, but z or w is not NaN";
  if (answer.status == Status::kInfeasible && !proves_infeasible(problem, answer.farkas))
    return "not proved infeasible";
  return "";
}

std::string describe(const Problem& problem, const Answer& answer) {
  std::string text = "status " + std::to_string(static_cast<int>(answer.status));
  append(text, "M", problem.M.data(), problem.M.size());
  append(text, "q", problem.q.data(), problem.q.size());
  append(text, "z", answer.z.data(), answer.z.size());
  append(text, "w", answer.w.data(), answer.w.size());
  if (answer.farkas.size() > 0) append(text, "y", answer.farkas.data(), answer.farkas.size());
  return text;
}

}  // namespace lcp::testing
