#include "friction_set.h"

#include <ATen/ATen.h>
#include <lcp/certify_friction.h>
#include <lcp/solve_friction.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <stdexcept>

namespace lcp::bench {
namespace {

using at::Tensor;
using testing::RigidContactMaker;
using testing::RigidContacts;

constexpr std::int64_t kSmall = 512, kStacks = 20;
constexpr double kSolved = 1e-8, kFalse = 1e-6;

struct Name {
  std::string kind;
  int number;
};

Name parsed(const std::string& name) {
  const auto mark = name.find('_');
  const Name found{name.substr(0, mark), mark == std::string::npos ? 0 : std::stoi(name.substr(mark + 1))};
  const auto within = [&](int low, int high) { return low <= found.number && found.number <= high; };
  if ((found.kind == "c" && within(1, 8)) || (found.kind == "bodies" && within(2, 4)) ||
      (found.kind == "stack" && within(4, 400) && found.number % 4 == 0)) {
    return found;
  }
  throw std::invalid_argument("no set of contacts is called " + name);
}

std::vector<RigidContacts> drawn(const Name& name, std::int64_t count) {
  RigidContactMaker make(static_cast<unsigned>(name.number));
  std::vector<RigidContacts> problems;
  while (static_cast<std::int64_t>(problems.size()) < count) {
    RigidContacts next = name.kind == "c"        ? make.one_body()
                         : name.kind == "bodies" ? make.bodies()
                                                 : make.stack(name.number / 4);
    const bool fits = name.kind == "c"        ? next.contacts() == name.number
                      : name.kind == "bodies" ? next.n() == 6 * name.number && next.contacts() == 8
                                              : true;
    if (fits) problems.push_back(std::move(next));
  }
  return problems;
}

Tensor stacked(std::vector<RigidContacts>& problems, at::IntArrayRef shape,
               const std::function<double*(RigidContacts&)>& data) {
  std::vector<Tensor> parts;
  parts.reserve(problems.size());
  for (RigidContacts& problem : problems) parts.push_back(at::from_blob(data(problem), shape, at::kDouble));
  return at::stack(parts);
}

Eigen::Map<const Eigen::VectorXd> row(const Tensor& x, std::int64_t k) {
  return {x.const_data_ptr<double>() + k * x.size(1), x.size(1)};
}

}  // namespace

std::int64_t friction_count(const std::string& name) { return parsed(name).kind == "stack" ? kStacks : kSmall; }

const FrictionSet& friction_set(const std::string& name) {
  static std::map<std::string, FrictionSet> sets;
  const auto [entry, is_new] = sets.try_emplace(name);
  FrictionSet& set = entry->second;
  if (!is_new) return set;
  set.problems = drawn(parsed(name), friction_count(name));
  const std::int64_t n = set.problems.front().n(), c = set.problems.front().contacts();
  set.A = stacked(set.problems, {n, n}, [](RigidContacts& x) { return x.A.data(); });
  set.v_free = stacked(set.problems, {n}, [](RigidContacts& x) { return x.v_free.data(); });
  set.J = stacked(set.problems, {3 * c, n}, [](RigidContacts& x) { return x.J.data(); });
  set.b = stacked(set.problems, {3 * c}, [](RigidContacts& x) { return x.b.data(); });
  set.mu = stacked(set.problems, {c}, [](RigidContacts& x) { return x.mu.data(); });
  const FrictionResult exact = solve_friction(set.A, set.v_free, set.J, set.b, set.mu);
  set.v = exact.v;
  set.unique =
      (exact.status == 0) & certify_friction(set.A, set.v_free, set.J, set.b, set.mu, exact.v, exact.gamma).unique;
  return set;
}

Tensor delassus(const FrictionSet& set) { return at::matmul(set.J, at::linalg_solve(set.A, set.J.mT())); }

FrictionAnswer answer_of(const FrictionSet& set, const Tensor& gamma, const Tensor& claims) {
  const Tensor push = at::matmul(set.J.mT(), gamma.unsqueeze(-1));
  return {set.v_free + at::linalg_solve(set.A, push).squeeze(-1), gamma, claims};
}

FrictionVerdict judge(const FrictionSet& set, const FrictionAnswer& answer) {
  FrictionVerdict verdict;
  const Tensor all_v = answer.v.contiguous(), all_gamma = answer.gamma.contiguous();
  for (std::int64_t k = 0; k < set.count(); ++k) {
    const RigidContacts& problem = set.problems[k];
    const Eigen::VectorXd v = row(all_v, k), gamma = row(all_gamma, k);
    const bool claimed = answer.claims[k].item<bool>(), finite = v.allFinite() && gamma.allFinite();
    const double violation = problem.residual(v, gamma), imbalance = problem.imbalance(v, gamma);
    const auto within = [&](double bound) { return finite && violation <= bound && imbalance <= bound; };
    verdict.claimed += claimed ? 1 : 0;
    verdict.solved += within(kSolved) ? 1 : 0;
    verdict.false_claims += claimed && !within(kFalse) ? 1 : 0;
  }
  return verdict;
}

VelocityErrors velocity_errors(const FrictionSet& set, const FrictionAnswer& answer) {
  const Tensor unit = (at::matmul(set.J, set.v_free.unsqueeze(-1)).squeeze(-1) + set.b).abs().amax(-1);
  const Tensor all = at::matmul(set.J, (answer.v - set.v).unsqueeze(-1)).squeeze(-1).abs().amax(-1) / unit;
  const Tensor errors = std::get<0>(all.index({set.unique & answer.claims}).sort());
  const std::int64_t count = errors.numel();
  if (count == 0) return {};
  const auto at_share = [&](double share) {
    const auto place = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(count))) - 1;
    return errors[std::max<std::int64_t>(place, 0)].item<double>();
  };
  return {count, at_share(0.5), at_share(0.9), at_share(1)};
}

}  // namespace lcp::bench
