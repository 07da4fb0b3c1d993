#include "physics/stepping.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/ExpandUtils.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "lcp/certify.h"
#include "lcp/ties.h"
#include "ops/composite.h"
#include "ops/rollout/rollout.h"

namespace lcp::physics {
namespace {

using at::Tensor;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// M x for each element: [..., rows].
Tensor times(const Tensor& M, const Tensor& x) { return at::matmul(M, x.unsqueeze(-1)).squeeze(-1); }

// mask, [...], with dimensions of size 1 appended, so that it broadcasts against x, [..., ...].
Tensor broadcastable(const Tensor& mask, const Tensor& x) {
  Shape shape = mask.sizes().vec();
  shape.resize(x.dim(), 1);
  return mask.view(shape);
}

// Which elements of x, [batch..., ...], are not finite: [batch...]. It is undefined if all are known to be finite.
Tensor not_finite(const Tensor& x, std::int64_t batch_dims) {
  const Tensor finite = x.isfinite();
  if (!may_be_true(~finite)) return {};
  return ~(x.dim() > batch_dims ? finite.flatten(batch_dims).all(-1) : finite);
}

Tensor either(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? a | b : a;
}

// The sum of the numbers of each element of x, [batch..., ...], where `mask`, [batch...], is true, else 0.
Tensor sums_where(const Tensor& mask, const Tensor& x) {
  return at::where(mask, x.dim() > mask.dim() ? x.flatten(mask.dim()).sum(-1) : x, 0);
}

Tensor zero_where(const Tensor& mask, const Tensor& x) { return at::where(broadcastable(mask, x), 0, x); }

// at::stack, in which an undefined tensor stands for zeros. The result is undefined if all of them are.
Tensor stacked(const Tensors& parts) {
  const auto some = std::find_if(parts.begin(), parts.end(), [](const Tensor& x) { return x.defined(); });
  if (some == parts.end()) return {};
  Tensors all = parts;
  for (Tensor& x : all) {
    if (!x.defined()) x = at::zeros_like(*some);
  }
  return at::stack(all);
}

// Whether check(number) holds for each number of x.
template <class Check>
bool all_of(const Tensor& x, const Check& check) {
  if (x.dim() > 1 && !x.is_contiguous()) return all_of(x.contiguous(), check);
  const std::int64_t stride = x.dim() == 1 ? x.stride(0) : 1;
  return AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "lcp::physics::all_of", [&] {
    const auto* const number = x.const_data_ptr<scalar_t>();
    for (std::int64_t k = 0; k < x.numel(); ++k) {
      if (!check(number[k * stride])) return false;
    }
    return true;
  });
}

// x, with NaN in place of the numbers for which check(x) does not hold. Most are in range, which is read from memory:
// operators of tensors would take longer than a step.
template <class Check>
Tensor in_range(const Tensor& x, const Check& check) {
  if (x.scalar_type() != at::kDouble && x.scalar_type() != at::kFloat) return in_range(x.to(at::kDouble), check);
  if (x.device().is_cpu() && can_read(x) && all_of(x, check)) return x;
  return x + at::where(check(x), 0, kNaN);
}

}  // namespace

Tensor positive_or_nan(const Tensor& x) {
  return in_range(x, [](const auto& number) { return number > 0; });
}

Tensor nonnegative_or_nan(const Tensor& x) {
  return in_range(x, [](const auto& number) { return number >= 0; });
}

Tensor share_or_nan(const Tensor& x) {
  return in_range(x, [](const auto& number) { return (number >= 0) & (number <= 1); });
}

Tensor refused_where_nan(const Tensor& parameter, const Tensor& u, std::int64_t core_dims) {
  const bool is_known = parameter.device().is_cpu() && can_read(parameter);
  if (is_known && all_of(parameter, [](double number) { return !std::isnan(number); })) return u;
  Tensor bad = parameter.isnan();
  for (std::int64_t k = 0; k < core_dims; ++k) bad = bad.unsqueeze(-1);
  return at::where(bad, kNaN, u);
}

double positive_number(const char* name, double x) {
  TORCH_CHECK(std::isfinite(x) && x > 0, name, " must be > 0; got ", x);
  return x;
}

Tensor positive_parameter(const char* name, double x) {
  return at::scalar_tensor(positive_number(name, x), at::kDouble);
}

Tensor nonnegative_parameter(const char* name, double x) {
  TORCH_CHECK(std::isfinite(x) && x >= 0, name, " must be >= 0; got ", x);
  return at::scalar_tensor(x, at::kDouble);
}

bool can_read(const Tensor& x) {
  using c10::DispatchKey;
  const c10::DispatchKeySet wrappers({DispatchKey::FuncTorchBatched, DispatchKey::FuncTorchGradWrapper,
                                      DispatchKey::Functionalize, DispatchKey::Python});
  return !x.key_set().has_any(wrappers) && !x.is_meta();
}

Tensor without_transforms(Tensor x) {
  x = ops::without_wrappers(x);
  while (const auto* const mapped = at::functorch::maybeGetBatchedImpl(x)) x = ops::without_wrappers(mapped->value());
  return x;
}

bool may_be_true(const Tensor& mask) { return !can_read(mask) || mask.any().item<bool>(); }

Tensor refused_where(const Tensor& mask, const Tensor& u) { return at::where(mask.unsqueeze(-1), kNaN, u); }

Tensor constants(std::initializer_list<double> numbers, const at::TensorOptions& options) {
  Tensors all;
  for (const double x : numbers) all.push_back(at::scalar_tensor(x, options));
  return at::stack(all);
}

Shape common_shape(std::initializer_list<at::IntArrayRef> shapes) {
  Shape common;
  for (const at::IntArrayRef shape : shapes) common = at::infer_size(common, shape);
  return common;
}

at::IntArrayRef leading(const Tensor& x, std::int64_t count) {
  TORCH_CHECK(x.dim() >= count, "a tensor of at least ", count, " dimensions is needed; got ", x.sizes());
  return x.sizes().slice(0, x.dim() - count);
}

Tensor expanded(const Tensor& x, const Shape& batch, std::initializer_list<std::int64_t> last) {
  Shape shape = batch;
  shape.insert(shape.end(), last);
  return x.expand(shape);
}

Tensor expanded_inputs(const Tensor& u, const Shape& batch, const char* expected,
                       std::initializer_list<std::int64_t> last) {
  TORCH_CHECK(u.dim() > static_cast<std::int64_t>(last.size()), expected, "; got ", u.sizes());
  TORCH_CHECK(u.size(0) >= 1, "a rollout must have at least one step; got ", u.sizes());
  Shape shape = {u.size(0)};
  shape.resize(1 + batch.size() + last.size() + 1 - u.dim(), 1);
  shape.insert(shape.end(), u.sizes().begin() + 1, u.sizes().end());
  Shape wide = {u.size(0)};
  wide.insert(wide.end(), batch.begin(), batch.end());
  return expanded(u.reshape(shape), wide, last);
}

Tensor vector_of(std::initializer_list<Tensor> entries) { return at::stack(at::broadcast_tensors(entries), -1); }

Tensor matrix_of(std::initializer_list<Tensor> rows) { return at::stack(at::broadcast_tensors(rows), -2); }

Tensor matvec(const Tensor& M, const Tensor& x) { return (M * x.unsqueeze(-2)).sum(-1); }

Tensor cross_product(const Tensor& a, const Tensor& b) {
  const std::vector<Tensor> both = at::broadcast_tensors({a, b});
  return at::linalg_cross(both[0], both[1]);
}

Tensor solve_3x3(const Tensor& A, const Tensor& b) {
  const Tensor first = A.select(-1, 0), second = A.select(-1, 1), third = A.select(-1, 2);
  const auto determinant = [](const Tensor& x, const Tensor& y, const Tensor& z) {
    return (x * cross_product(y, z)).sum(-1);
  };
  return vector_of({determinant(b, second, third), determinant(first, b, third), determinant(first, second, b)}) /
         determinant(first, second, third).unsqueeze(-1);
}

Tensor along(const Tensor& a, const Tensor& D) {
  return a.select(-1, 0).unsqueeze(-1) * D[0] + a.select(-1, 1).unsqueeze(-1) * D[1];
}

Tensor combined(const Tensor& z, const Tensor& D) { return at::stack({(z * D[0]).sum(-1), (z * D[1]).sum(-1)}, -1); }

Tensor positive_part(const Tensor& x) { return at::where(x < 0, 0, x); }

Tensor soft_threshold(const Tensor& x, const Tensor& limit) {
  return at::where(limit == 0, x, x.sign() * positive_part(x.abs() - limit));
}

Tensor held(const Tensor& still, const Tensor& x, const SolveOptions& options) {
  return options.kappa > 0 ? at::where(still, x - x.detach(), x) : at::where(still, 0, x);
}

void check_ties(std::string_view ties) {
  TORCH_CHECK(std::find(kTiesNames.begin(), kTiesNames.end(), ties) != kTiesNames.end(),
              "ties must be \"inactive\", \"active\" or \"midpoint\"; got \"", ties, "\"");
}

SolveOptions held_by_ties(SolveOptions options) {
  if (options.kappa == 0) options.ties = "active";
  return options;
}

Inputs::Inputs(const Tensor& given, const Tensor& gains, std::initializer_list<Part> parts) {
  const std::int64_t steps = given.size(0), m = given.size(-1);
  const at::ScalarType dtype = given.scalar_type();
  Tensors all;
  Shape batch;
  std::int64_t size = 0;
  for (const Part& part : parts) {
    all.push_back(ops::of_all_steps(part.name, part.x.to(dtype), {part.size}, steps, /*steps_first=*/true));
    batch = common_shape({batch, leading(all.back()).slice(1)});
    size += part.size;
  }
  for (Tensor& x : all) x = expanded_inputs(x, batch, "", {x.size(-1)});
  reference = at::cat(all, -1);
  K = ops::of_all_steps("K", gains.to(dtype), {m, size}, steps, /*steps_first=*/true);
  u = expanded_inputs(given, common_shape({batch, leading(given).slice(1), leading(K, 2).slice(1)}), "", {m});
}

Tensor Inputs::at(std::int64_t step, const Tensors& state) const {
  const Tensor now = u[step];
  if (!K.defined()) return now;
  const std::int64_t batch_dims = reference.dim() - 2;
  Tensors numbers;
  for (const Tensor& x : state) numbers.push_back(x.dim() > batch_dims ? x : x.unsqueeze(-1));
  return now + matvec(K[step], reference[step] - at::cat(numbers, -1)).reshape(now.sizes());
}

Tensors Inputs::feedback(std::int64_t size) const {
  if (!K.defined()) return {};
  const auto padded = [&](const Tensor& x) { return at::constant_pad_nd(x, {0, size - x.size(-1)}); };
  return {padded(K).movedim(0, -3).flatten(-2), padded(reference).movedim(0, -2)};
}

Rollout roll_out(Tensors state, Inputs inputs, const Shape& batch, const StepFunctions& functions) {
  const auto batch_dims = static_cast<std::int64_t>(batch.size());
  if (inputs.K.defined()) {
    inputs.K = expanded_inputs(inputs.K, batch, "", {inputs.K.size(-2), inputs.K.size(-1)});
    inputs.reference = expanded_inputs(inputs.reference, batch, "", {inputs.reference.size(-1)});
  }
  Tensor failed;  // [batch...]
  for (const Tensor& x : state) failed = either(failed, not_finite(x, batch_dims));
  // NaN, [batch...], as a sum of what failed, so that the gradient of a failed step reaches that.
  Tensor nan = at::full(batch, kNaN, state[0].options());
  if (failed.defined()) {
    for (Tensor& x : state) {
      nan = nan + sums_where(failed, x);
      x = zero_where(failed, x);
    }
  }
  Tensor invalid, lost;  // [steps, batch...]
  for (Tensor* const x : {&inputs.u, &inputs.K, &inputs.reference}) {
    const Tensor bad = x->defined() ? not_finite(*x, batch_dims + 1) : Tensor();
    if (!bad.defined()) continue;
    const Tensor sum = sums_where(bad, *x);
    lost = invalid.defined() ? lost + sum : sum;
    invalid = either(invalid, bad);
    *x = zero_where(bad, *x);
  }

  Rollout rollout;
  std::vector<Tensors> ends(state.size()), extras;
  Tensors z, w, status, failure, acted;
  const Tensors first = state;
  for (std::int64_t k = 0; k < inputs.u.size(0); ++k) {
    if (invalid.defined()) {
      failed = either(failed, invalid[k]);
      nan = nan + lost[k];
    }
    const Tensor poison = failed.defined() ? at::where(failed, nan, 0) : Tensor{};
    const Tensor now = inputs.at(k, state);
    acted.push_back(now);
    Solved solved = functions.solve(state, now, poison);
    SolveResult& result = solved.result;
    failure.emplace_back();
    if (const Tensor unsolved = result.status != 0; may_be_true(unsolved)) {
      failed = either(failed, unsolved);
      failure.back() = at::where(unsolved, result.z.sum(-1), 0);
      result.z = zero_where(unsolved, result.z);
      result.w = zero_where(unsolved, result.w);
    }
    state = functions.advance(state, now, solved);
    for (std::size_t i = 0; i < state.size(); ++i) ends[i].push_back(state[i]);
    z.push_back(std::move(result.z));
    w.push_back(std::move(result.w));
    status.push_back(std::move(result.status));
    extras.resize(solved.extras.size());
    for (std::size_t i = 0; i < extras.size(); ++i) extras[i].push_back(std::move(solved.extras[i]));
  }
  for (std::size_t i = 0; i < first.size(); ++i) {
    rollout.ends.push_back(at::stack(ends[i]));
    rollout.starts.push_back(starts_of(first[i], rollout.ends.back()));
  }
  for (const Tensors& extra : extras) rollout.extras.push_back(at::stack(extra));
  rollout.u = inputs.K.defined() ? at::stack(acted) : inputs.u;
  rollout.result = {at::stack(z), at::stack(w), at::stack(status)};
  rollout.failure = stacked(failure);
  return rollout;
}

Tensor with_failures(const Tensor& x, const Tensor& failure) {
  if (!failure.defined() || !x.is_floating_point()) return x;
  const Tensor nan = broadcastable(failure, x).to(x.scalar_type());
  return at::where(nan.isnan(), nan, x);
}

Tensor starts_of(const Tensor& first, const Tensor& next) {
  return at::cat({first.expand_as(next[0]).unsqueeze(0), next.slice(0, 0, -1)});
}

Tensor natural_residual(const Problem& problem, const Tensor& z) {
  const c10::NoGradGuard no_grad;
  return at::minimum(z, times(problem.M, z) + problem.q).abs().amax(-1);
}

Tensor natural_residual(const MixedProblem& problem, const Tensor& x, const Tensor& z) {
  const c10::NoGradGuard no_grad;
  const Tensor equations = times(problem.A, x) + times(problem.B, z) + problem.p;
  const Tensor w = times(problem.C, x) + times(problem.M, z) + problem.q;
  return at::maximum(equations.abs().amax(-1), at::minimum(z, w).abs().amax(-1));
}

RolloutCertificate certify_steps(const Problem& problem, const Tensor& z, const Tensor& status,
                                 const CertificateOptions& options) {
  const c10::NoGradGuard no_grad;
  Tensor ties = certify(problem.M, problem.q, z, options.tolerance).ties;
  if (options.terms.defined()) {
    ties = ties | (problem.q.abs() <= tie_tolerance(options.tolerance, z.scalar_type()) * options.terms);
  }
  const Tensor solved = status == 0;
  return {(~solved).sum(0), (solved & ties.any(-1)).sum(0), (solved & options.kinked(ties)).sum(0)};
}

double tie_tolerance(std::optional<double> tolerance, at::ScalarType dtype) {
  const double epsilon =
      dtype == at::kDouble ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  return tolerance.value_or(64 * epsilon);
}

Tensor kinked_friction(const Tensor& ties, const Tensor& force, const Tensor& limit, const Tensor& gamma,
                       double tolerance) {
  const Tensor sliding = gamma > 0;
  const Tensor at_the_edge = force >= (1 - tolerance) * limit;
  return at::where(sliding, ties.any(-1) | (limit == 0), at_the_edge);
}

Tensor polygon_size(const Tensor& f, std::int64_t n) {
  const double turn = std::numbers::pi / static_cast<double>(n);
  const Tensor angle = (2 * at::arange(n, f.options()) + 1) * turn;  // the angles of the normals of the edges
  return along(f, at::stack({at::cos(angle), at::sin(angle)})).amax(-1) / std::cos(turn);
}

Tensor sticks(const Tensor& z, const Tensor& w) {
  const Tensor held_back = (w.select(-1, -1) > 0) | (z.slice(-1, 0, -1) > 0).any(-1);
  return (z.select(-1, -1) == 0) & held_back;
}

void unknown_formulation() { TORCH_CHECK(false, "no such formulation"); }

}  // namespace lcp::physics
