#include "linear_program/complementarity_program.h"

#include <ATen/ATen.h>

#include <limits>
#include <vector>

namespace lcp::training {
namespace {

using at::Tensor;

// The unknowns (M, W) as a vector: the rows [n, n + k] are reordered to M row by row, then W row by row.
Tensor unknowns(const Tensor& rows) {
  const std::int64_t n = rows.size(0);
  return at::cat({rows.slice(1, 0, n).flatten(), rows.slice(1, n).flatten()});
}

// The places of row i, [M_i|W_i], among the unknowns of a program.
Tensor places_of_row(const LinearProgram& program, std::int64_t n, std::int64_t i) {
  const std::int64_t k = program.cost.size(0) / n - n;
  return at::cat({at::arange(i * n, (i + 1) * n), at::arange(n * n + i * k, n * n + (i + 1) * k)});
}

// The Kronecker product I x a' for the a of each sample: [samples, n, n size(a)].
Tensor row_by_row(const Tensor& a, std::int64_t n) {
  return (at::eye(n, a.options()).unsqueeze(-1) * a.unsqueeze(1).unsqueeze(1)).flatten(2);
}

}  // namespace

LinearProgram complementarity_program(const Tensor& lambda, const Tensor& d, const KnownEntries& known,
                                      double epsilon) {
  TORCH_CHECK(lambda.dim() == 2 && lambda.scalar_type() == at::kDouble, "lambda must be [samples, n], float64; got ",
              lambda.sizes(), ", ", lambda.scalar_type());
  const std::int64_t n = lambda.size(1);
  TORCH_CHECK(d.dim() == 2 && d.size(0) == lambda.size(0) && d.scalar_type() == at::kDouble, "d must be [",
              lambda.size(0), ", k], float64; got ", d.sizes(), ", ", d.scalar_type());
  const auto fits = [&](const Tensor& x) { return x.dim() == 2 && x.size(0) == n && x.size(1) == n + d.size(1); };
  TORCH_CHECK(fits(known.mask) && known.mask.scalar_type() == at::kBool, "mask must be [", n, ", ", n + d.size(1),
              "], bool; got ", known.mask.sizes(), ", ", known.mask.scalar_type());
  TORCH_CHECK(fits(known.values) && known.values.scalar_type() == at::kDouble, "values must be [", n, ", ",
              n + d.size(1), "], float64; got ", known.values.sizes(), ", ", known.values.scalar_type());
  TORCH_CHECK(epsilon >= 0, "epsilon must be >= 0; got ", epsilon);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Tensor constraints = at::cat({row_by_row(lambda, n), row_by_row(d, n)}, 2).flatten(0, 1);
  const Tensor mask = unknowns(known.mask), values = unknowns(known.values);
  return {(lambda.flatten().unsqueeze(-1) * constraints).sum(0), constraints,
          at::full({constraints.size(0)}, epsilon, at::kDouble), at::where(mask, values, -kInfinity),
          at::where(mask, values, kInfinity)};
}

LinearProgram row_program(const LinearProgram& program, std::int64_t n, std::int64_t i) {
  const Tensor places = places_of_row(program, n, i);
  const auto of_row = [&](const Tensor& x) { return x.index_select(-1, places); };
  return {of_row(program.cost), of_row(program.constraints.slice(0, i, std::nullopt, n)),
          program.bound.slice(0, i, std::nullopt, n), of_row(program.lower), of_row(program.upper)};
}

LinearProgram monotone_program(const LinearProgram& program) {
  // The coefficients of M, row by row, in constraints >= 0.
  const Tensor of_M = at::tensor({0., 0., 1., 0., 0., 0., 1., 0., 0., 0., 0.,  -1., 0.,  0., 0.,  -1., 0.,  0.,
                                  0., 0., 0., 0., 0., 1., 0., 1., 0., 0., 0.,  0.,  0.,  0., -1., 0.,  -1., 0.,
                                  1., .5, 0., .5, 0., 0., 0., 0., 0., 1., -.5, 0.,  -.5, 0., 0.,  0.,  0.,  0.,
                                  0., .5, 0., .5, 1., 0., 0., 0., 0., 0., -.5, 0.,  -.5, 1., 0.,  0.,  0.,  0.},
                                 at::kDouble)
                          .view({8, 9});
  LinearProgram monotone = program;
  monotone.constraints = at::cat({program.constraints, at::constant_pad_nd(of_M, {0, program.cost.size(0) - 9})});
  monotone.bound = at::cat({program.bound, at::zeros({8}, at::kDouble)});
  for (Tensor* limit : {&monotone.lower, &monotone.upper}) {
    *limit = limit->clone();
    (*limit)[8] = 0;  // M33
  }
  return monotone;
}

LinearProgram with_row_first(const LinearProgram& program, std::int64_t n, std::int64_t i) {
  std::vector<Tensor> order = {places_of_row(program, n, i)};
  for (std::int64_t j = 0; j < n; ++j) {
    if (j != i) order.push_back(places_of_row(program, n, j));
  }
  const Tensor columns = at::cat(order);
  const auto ordered = [&](const Tensor& x) { return x.index_select(-1, columns); };
  return {ordered(program.cost), ordered(program.constraints), program.bound, ordered(program.lower),
          ordered(program.upper)};
}

LinearProgram with_l1(const LinearProgram& program, double weight) {
  TORCH_CHECK(weight >= 0, "weight must be >= 0; got ", weight);
  const Tensor zero = at::zeros_like(program.cost);
  const Tensor one = at::eye(zero.size(0), at::kDouble);
  return {at::cat({program.cost, at::full_like(zero, weight)}),
          at::cat({at::cat({program.constraints, at::zeros_like(program.constraints)}, 1), at::cat({-one, one}, 1),
                   at::cat({one, one}, 1)}),
          at::cat({program.bound, zero, zero}), at::cat({program.lower, zero}),
          at::cat({program.upper, at::full_like(zero, std::numeric_limits<double>::infinity())})};
}

Tensor lower_bound(const Tensor& lambda, double epsilon) { return epsilon * lambda.sum(0); }

}  // namespace lcp::training
