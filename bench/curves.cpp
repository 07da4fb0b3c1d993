// order/: time against n, positive definite, by each method that the operator has; size/: time against the size of the
// batch.
#include <ATen/ATen.h>

#include <algorithm>
#include <functional>

#include "measure.h"

namespace lcp::bench {
namespace {

// As many problems as fill 8 MB, between 1 and 4096.
std::int64_t batch_of_order(int n) { return std::clamp<std::int64_t>((std::int64_t{1} << 20) / (n * n), 1, 4096); }

void add_order(int n) {
  const std::int64_t count = batch_of_order(n);
  const std::string path = "order/" + std::to_string(n) + "/";
  const auto set = [=]() -> const ProblemSet& { return problem_set("definite_" + std::to_string(n), count); };
  const auto add_method = [&](const std::string& method) {
    add(path + method, count, [=](benchmark::State& state) {
      SolveOptions options;
      options.method = method;
      report(state, check_solve(set(), options), count);
      return solving(set().M, set().q, options);
    });
  };
  for (const char* method : {"auto", "lemke", "newton_min"}) add_method(method);
  if (n <= 10) add_method("enumeration");
  if (n <= 128) add_method("central_path");
  add(path + "copy", count, [=](benchmark::State&) { return copying(set().M, set().q); });
  add(path + "LU", count, [=](benchmark::State&) { return factoring(set().M); });
  add(path + "forward and backward", count, [=](benchmark::State&) { return differentiating(set().M, set().q); });
}

void add_size(const std::string& name, std::int64_t count) {
  using Prepare = std::function<Work(const at::Tensor&, const at::Tensor&)>;
  const auto add_work = [&](const std::string& who, const Prepare& prepare) {
    add("size/" + name + "/" + std::to_string(count) + "/" + who, count, [=](benchmark::State&) {
      constexpr std::int64_t kDrawn = 4096;
      const ProblemSet& set = problem_set(name, kDrawn);
      const std::int64_t times = (count + kDrawn - 1) / kDrawn;
      return prepare(set.M.repeat({times, 1, 1}).slice(0, 0, count).clone(),
                     set.q.repeat({times, 1}).slice(0, 0, count).clone());
    });
  };
  add_work("forward", [](const at::Tensor& M, const at::Tensor& q) { return solving(M, q); });
  add_work("forward and backward", [](const at::Tensor& M, const at::Tensor& q) { return differentiating(M, q); });
  add_work("copy", copying);
}

}  // namespace

void add_curves() {
  for (const int n : {1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512})
    add_order(n);
  for (std::int64_t count = 1; count <= 1'000'000; count *= 10) {
    for (const std::int64_t step : {1, 3}) {
      if (count * step <= 1'000'000) add_size("sliding_3", count * step);
      if (count * step <= 10'000) add_size("friction_24", count * step);
    }
  }
}

}  // namespace lcp::bench
