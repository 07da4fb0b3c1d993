// A libFuzzer target that makes a problem, settings and a guess of any bytes. The solver's answer must be correct, and
// agree with the exact answer where that is known.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "solver/ladder.h"
#include "support/claims.h"
#include "support/exact.h"

namespace {

using lcp::Status;
using lcp::testing::Answer;
using lcp::testing::Problem;

// Numbers from the bytes; zeros after the last.
class Reader {
 public:
  Reader(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  int byte() { return at_ < size_ ? data_[at_++] : 0; }

  // Mostly small integers, which make ties and singular bases; otherwise the previous number, exactly, approximately or
  // in other units, or any bits.
  double number() {
    const int code = byte();
    switch (code >> 5) {
      case 0:
        last_ = bits();
        break;
      case 1:
        last_ = std::ldexp(last_, 8 * (byte() - 128));
        break;
      case 2:
        last_ = std::nextafter(last_, code & 1 ? 0 : 10);
        break;
      case 3:
        last_ = code & 1 ? last_ : -last_;
        break;
      default:
        last_ = code % 8 - 4;
    }
    return last_;
  }

 private:
  double bits() {
    std::uint8_t raw[sizeof(double)];
    for (auto& part : raw) part = static_cast<std::uint8_t>(byte());
    double x = 0;
    std::memcpy(&x, raw, sizeof x);
    return x;
  }

  const std::uint8_t* data_;
  std::size_t size_, at_ = 0;
  double last_ = 0;
};

void require(const std::string& broken, const Problem& problem, const lcp::solver::Settings& settings,
             const Answer& answer) {
  if (broken.empty()) return;
  std::fprintf(stderr, "%s: method %d, tolerance %a, single %d, budget %lld, %s\n", broken.c_str(),
               static_cast<int>(settings.method), settings.tolerance, settings.single_precision,
               static_cast<long long>(settings.max_pivots.value_or(-1)),
               lcp::testing::describe(problem, answer).c_str());
  std::abort();
}

bool has_exact_answer(const Problem& problem) {
  const auto small_integer = [](double x) { return std::abs(x) <= 32 && x == std::floor(x); };
  const auto all_small = [&](const auto& x) { return std::all_of(x.begin(), x.end(), small_integer); };
  return problem.n() <= 5 && all_small(problem.M.reshaped()) && all_small(problem.q);
}

std::string false_status(const Problem& problem, const lcp::solver::Settings& settings, Status status) {
  const lcp::testing::Truth truth = lcp::testing::truth_of(problem);
  if (status == Status::kSolved && !truth.solvable && settings.tolerance <= 1e-9)
    return "solved, but there is no solution";
  if (status == Status::kInfeasible && truth.feasible) return "called infeasible, but it is feasible";
  const bool complete = settings.method == lcp::solver::Method::kAuto && !settings.max_pivots &&
                        !settings.single_precision && settings.tolerance == 1e-9;
  if (complete && status != Status::kSolved && truth.solvable) return "not solved, but there is a solution";
  return "";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Reader reader(data, size);
  const int n = reader.byte() % 32 == 31 ? 11 : reader.byte() % 7;  // 11 unknowns are too many for enumeration
  const int flags = reader.byte();
  lcp::solver::Settings settings;
  settings.method = static_cast<lcp::solver::Method>(flags & 8 ? flags % 5 : 0);
  settings.single_precision = (flags & 16) != 0;
  if (flags & 32) settings.tolerance = std::pow(10.0, -(reader.byte() % 18));
  if ((flags & 64) || n > 10) settings.max_pivots = reader.byte();  // else n > 10 would take most of the time
  const auto number = [&] { return reader.number(); };
  Eigen::VectorXd guess;
  if (flags & 128) guess = Eigen::VectorXd::NullaryExpr(n, number);
  Problem problem{lcp::testing::RowMatrix(n, n), Eigen::VectorXd(n)};
  if (n > 0 && reader.byte() % 4 == 3) {  // the fuzzer would hardly find the bytes of a hostile problem by itself
    unsigned seed = 0;
    for (int k = 0; k < 3; ++k) seed = 256 * seed + static_cast<unsigned>(reader.byte());
    std::mt19937_64 random(seed);
    problem = lcp::testing::hostile(random, n).problem;
  } else {
    for (double& x : problem.M.reshaped()) x = number();
    for (double& x : problem.q) x = number();
  }

  const Answer answer = lcp::testing::solve(problem, settings, guess);
  require(lcp::testing::answer_error(problem, settings, answer), problem, settings, answer);
  if (has_exact_answer(problem)) {
    require(false_status(problem, settings, answer.status), problem, settings, answer);
  }
  return 0;
}
