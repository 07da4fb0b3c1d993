// The CPU kernels: strided tensors in, the solver's contiguous doubles inside, threads over the batch.
#include <ATen/Dispatch.h>
#include <ATen/ExpandUtils.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <c10/core/SymIntArrayRef.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "batch/batch_derivative.h"
#include "batch/batch_solver.h"
#include "batch/outer_products.h"
#include "ops/batch.h"
#include "ops/elements.h"
#include "ops/schema.h"
#include "solver/central_path.h"
#include "solver/certifier.h"
#include "solver/directional_derivative.h"
#include "solver/mixed.h"
#include "solver/path_derivative.h"

namespace lcp::ops {
namespace {

template <class T>
constexpr double kDefaultTolerance = std::is_same_v<T, double> ? 1e-9 : 1e-4;

// As `grain`, where there are SIMD kernels.
std::int64_t kernel_grain(std::int64_t n) { return n <= batch::kLockstep ? 50'000 / (n * n + 1) : grain(n); }

solver::Method method_of(std::string_view name) {
  if (name == "lemke") return solver::Method::kLemke;
  if (name == "enumeration") return solver::Method::kEnumeration;
  if (name == "newton_min") return solver::Method::kNewtonMin;
  if (name == "central_path") return solver::Method::kCentralPath;
  return solver::Method::kAuto;
}

template <class T>
solver::Settings settings_of(const SolveArguments& arguments) {
  return {.method = method_of(arguments.method),
          .tolerance = arguments.tolerance.value_or(kDefaultTolerance<T>),
          .max_pivots = arguments.max_pivots,
          .single_precision = std::is_same_v<T, float>};
}

struct Solution {
  Solution(const c10::SymDimVector& batch, const Tensor& M, const Tensor& q)
      : z(new_output(vector_shape(batch, M), q.options())),
        w(new_output(vector_shape(batch, M), q.options())),
        status(new_output(batch, q.options().dtype(at::kChar))) {}

  Tensor z, w, status;
};

// Fills in the solution and, unless it is nullptr, the basis.
void solve_lcp(const Tensor& M, const Tensor& q, const SolveArguments& arguments, const Solution& solution,
               std::int8_t* basis) {
  const auto n = M.size(-1);
  const std::optional<Tensor>& guess = arguments.guess;
  AT_DISPATCH_FLOATING_TYPES(M.scalar_type(), "lcp::solve", [&] {
    const auto settings = settings_of<scalar_t>(arguments);
    const batch::Solutions<scalar_t> all = {solution.z.mutable_data_ptr<scalar_t>(),
                                            solution.w.mutable_data_ptr<scalar_t>(),
                                            solution.status.mutable_data_ptr<std::int8_t>(), basis};
    for_each_run<scalar_t>(
        solution.status.sizes(), {{M, 2}, {q, 1, true}, {guess ? *guess : q, 1}}, nullptr, n, kernel_grain(n), [&] {
          return [&, solver = batch::BatchSolver<scalar_t>(static_cast<int>(n), settings)](
                     const auto& views, std::int64_t b, std::int64_t count) mutable {
            const auto proposal = guess ? views[2] : batch::BatchView<scalar_t>{nullptr, true};
            solver.solve(
                count, views[0], views[1], proposal,
                {all.z + b * n, all.w + b * n, all.status + b, basis == nullptr ? nullptr : all.states + b * n});
          };
        });
  });
}

// The same where the first num_equations rows are equations.
void solve_mixed_lcp(const Tensor& H, const Tensor& h, std::int64_t num_equations, const SolveArguments& arguments,
                     const Solution& solution, std::int8_t* basis) {
  const auto size = H.size(-1);
  const std::optional<Tensor>& guess = arguments.guess;
  auto* const status = solution.status.mutable_data_ptr<std::int8_t>();
  AT_DISPATCH_FLOATING_TYPES(H.scalar_type(), "lcp::_solve_blocks", [&] {
    const auto settings = settings_of<scalar_t>(arguments);
    for_each_element<scalar_t>(solution.status.sizes(), {{H, 2}, {h, 1}, {guess ? *guess : h, 1}}, size, [&] {
      const auto equations = static_cast<int>(num_equations);
      return [&, solver = solver::Mixed(equations, static_cast<int>(size) - equations, settings),
              pair_states = solver::PairStates(static_cast<int>(size), equations, settings.single_precision),
              to_v = Writer<scalar_t>(solution.z),
              to_y = Writer<scalar_t>(solution.w)](const double* const* x, std::int64_t b) mutable {
        status[b] =
            static_cast<std::int8_t>(solver.solve(x[0], x[1], guess ? x[2] : nullptr, to_v.data(), to_y.data()));
        pair_states.find(x[0], x[1], to_v.data(), to_y.data(), basis + b * size);
        to_v.store(b);
        to_y.store(b);
      };
    });
  });
}

Three solve_cpu(const Tensor& M, const Tensor& q, const std::optional<Tensor>& guess, std::string_view method,
                std::string_view ties, double kappa, std::optional<double> tolerance,
                std::optional<std::int64_t> max_pivots) {
  const SolveArguments arguments = {guess, method, ties, kappa, tolerance, max_pivots};
  const Solution solution(check_solve(M, q, 0, arguments), M, q);
  solve_lcp(M, q, arguments, solution, nullptr);
  return {solution.z, solution.w, solution.status};
}

Four solve_blocks_cpu(const Tensor& H, const Tensor& h, std::int64_t num_equations, const std::optional<Tensor>& guess,
                      std::string_view method, std::string_view ties, double kappa, std::optional<double> tolerance,
                      std::optional<std::int64_t> max_pivots) {
  const SolveArguments arguments = {guess, method, ties, kappa, tolerance, max_pivots};
  const auto batch = check_solve(H, h, num_equations, arguments);
  const Solution solution(batch, H, h);
  const Tensor basis = new_output(vector_shape(batch, H), h.options().dtype(at::kChar));
  auto* const states = basis.mutable_data_ptr<std::int8_t>();
  if (num_equations == 0) {
    solve_lcp(H, h, arguments, solution, states);
  } else {
    solve_mixed_lcp(H, h, num_equations, arguments, solution, states);
  }
  return {solution.z, solution.w, solution.status, basis};
}

Two tangent_cpu(const Tensor& M, const Tensor& basis, const Tensor& r, bool tied_active) {
  const auto shape = vector_shape(check_derivative(M, basis, {{"r", r}}), M);
  const Tensor dz = new_output(shape, r.options());
  const Tensor dw = new_output(shape, r.options());
  const auto n = static_cast<int>(M.size(-1));
  AT_DISPATCH_FLOATING_TYPES(M.scalar_type(), "lcp::_tangent", [&] {
    auto* const to_dz = dz.mutable_data_ptr<scalar_t>();
    auto* const to_dw = dw.mutable_data_ptr<scalar_t>();
    for_each_run<scalar_t>(batch_of(dz), {{M, 2}, {r, 1}}, &basis, n, grain(n), [&] {
      return [&, derivative = batch::BatchDerivative<scalar_t>(n, tied_active)](const auto& views, std::int64_t b,
                                                                                std::int64_t count) mutable {
        derivative.tangent(count, views[0], views.states, views[1], to_dz + b * n, to_dw + b * n);
      };
    });
  });
  return {dz, dw};
}

Tensor adjoint_cpu(const Tensor& M, const Tensor& basis, const Tensor& g_z, const Tensor& g_w, bool tied_active) {
  const auto shape = vector_shape(check_derivative(M, basis, {{"g_z", g_z}, {"g_w", g_w}}), M);
  const Tensor t = new_output(shape, g_z.options());
  const auto n = static_cast<int>(M.size(-1));
  AT_DISPATCH_FLOATING_TYPES(M.scalar_type(), "lcp::_adjoint", [&] {
    auto* const to_t = t.mutable_data_ptr<scalar_t>();
    for_each_run<scalar_t>(batch_of(t), {{M, 2}, {g_z, 1}, {g_w, 1}}, &basis, n, kernel_grain(n), [&] {
      return [&, derivative = batch::BatchDerivative<scalar_t>(n, tied_active)](const auto& views, std::int64_t b,
                                                                                std::int64_t count) mutable {
        derivative.adjoint(count, views[0], views.states, views[1], views[2], to_t + b * n);
      };
    });
  });
  return t;
}

Two path_point_cpu(const Tensor& M, const Tensor& q, const Tensor& z_0, std::int64_t num_equations, double kappa) {
  const auto shape = vector_shape(check_shapes({{"M", M}}, {{"q", q}, {"z_0", z_0}}), M);
  check_num_equations(num_equations, M);
  const Tensor z = new_output(shape, q.options());
  const Tensor w = new_output(shape, q.options());
  const auto n = static_cast<int>(M.size(-1));
  AT_DISPATCH_FLOATING_TYPES(M.scalar_type(), "lcp::_path_point", [&] {
    for_each_element<scalar_t>(batch_of(z), {{M, 2}, {q, 1}, {z_0, 1}}, n, [&] {
      return [&, path = solver::CentralPath(n, static_cast<int>(num_equations)), to_z = Writer<scalar_t>(z),
              to_w = Writer<scalar_t>(w)](const double* const* x, std::int64_t b) mutable {
        if (!path.point(x[0], x[1], x[2], kappa, to_z.data(), to_w.data())) {
          std::fill_n(to_z.data(), n, std::numeric_limits<double>::quiet_NaN());
          std::fill_n(to_w.data(), n, std::numeric_limits<double>::quiet_NaN());
        }
        to_z.store(b);
        to_w.store(b);
      };
    });
  });
  return {z, w};
}

// K or K', see schema.h.
template <bool kTransposed>
Two path_derivative_cpu(const Tensor& M, const Tensor& a, const Tensor& b, const Tensor& r, const Tensor& s) {
  const auto shape = vector_shape(check_shapes({{"M", M}}, {{"a", a}, {"b", b}, {"r", r}, {"s", s}}), M);
  const Tensor x_result = new_output(shape, a.options());
  const Tensor y_result = new_output(shape, a.options());
  const auto n = static_cast<int>(M.size(-1));
  AT_DISPATCH_FLOATING_TYPES(M.scalar_type(), "lcp::_path_tangent", [&] {
    for_each_element<scalar_t>(batch_of(x_result), {{M, 2}, {a, 1}, {b, 1}, {r, 1}, {s, 1}}, n, [&] {
      return [&, derivative = solver::PathDerivative(n), to_x = Writer<scalar_t>(x_result),
              to_y = Writer<scalar_t>(y_result)](const double* const* in, std::int64_t element) mutable {
        derivative.set(in[0], in[1], in[2]);
        if constexpr (kTransposed) {
          derivative.adjoint(in[3], in[4], to_x.data(), to_y.data());
        } else {
          derivative.tangent(in[3], in[4], to_x.data(), to_y.data());
        }
        to_x.store(element);
        to_y.store(element);
      };
    });
  });
  return {x_result, y_result};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> certify_cpu(const Tensor& M, const Tensor& q, const Tensor& z,
                                                               std::optional<double> tolerance) {
  check_tolerance(tolerance);
  const auto batch = check_shapes({{"M", M}}, {{"q", q}, {"z", z}});
  const Tensor residual = new_output(batch, z.options());
  const Tensor margin = new_output(batch, z.options());
  const Tensor condition = new_output(batch, z.options());
  const Tensor rank = new_output(batch, z.options().dtype(at::kLong));
  const Tensor ties = new_output(vector_shape(batch, M), z.options().dtype(at::kBool));
  const auto n = static_cast<int>(M.size(-1));
  AT_DISPATCH_FLOATING_TYPES(M.scalar_type(), "lcp::certify", [&] {
    for_each_element<scalar_t>(residual.sizes(), {{M, 2}, {q, 1}, {z, 1}}, n, [&] {
      return [&, certifier = solver::Certifier(n, std::is_same_v<scalar_t, float>),
              to_residual = residual.mutable_data_ptr<scalar_t>(), to_margin = margin.mutable_data_ptr<scalar_t>(),
              to_condition = condition.mutable_data_ptr<scalar_t>(), to_rank = rank.mutable_data_ptr<std::int64_t>(),
              to_ties = ties.mutable_data_ptr<bool>()](const double* const* x, std::int64_t b) mutable {
        certifier.set(x[0], x[1], x[2], tolerance);
        to_residual[b] = static_cast<scalar_t>(certifier.residual());
        to_margin[b] = static_cast<scalar_t>(certifier.margin());
        to_condition[b] = static_cast<scalar_t>(certifier.condition());
        to_rank[b] = certifier.rank();
        for (int i = 0; i < n; ++i) to_ties[b * n + i] = certifier.tied(i);
      };
    });
  });
  return {residual, margin, condition, rank, ties};
}

Three directional_derivative_cpu(const Tensor& M, const Tensor& q, const Tensor& z, const Tensor& dM,
                                 const Tensor& dq) {
  const auto batch = check_shapes({{"M", M}, {"dM", dM}}, {{"q", q}, {"z", z}, {"dq", dq}});
  const Tensor dz = new_output(vector_shape(batch, M), z.options());
  const Tensor dw = new_output(vector_shape(batch, M), z.options());
  const Tensor status = new_output(batch, z.options().dtype(at::kChar));
  const auto n = static_cast<int>(M.size(-1));
  auto* status_data = status.mutable_data_ptr<std::int8_t>();
  AT_DISPATCH_FLOATING_TYPES(M.scalar_type(), "lcp::directional_derivative", [&] {
    for_each_element<scalar_t>(status.sizes(), {{M, 2}, {q, 1}, {z, 1}, {dM, 2}, {dq, 1}}, n, [&] {
      return
          [&, derivative = solver::DirectionalDerivative(n, std::is_same_v<scalar_t, float>),
           to_dz = Writer<scalar_t>(dz), to_dw = Writer<scalar_t>(dw)](const double* const* x, std::int64_t b) mutable {
            derivative.set(x[0], x[1], x[2]);
            status_data[b] = static_cast<std::int8_t>(derivative(x[3], x[4], to_dz.data(), to_dw.data()));
            to_dz.store(b);
            to_dw.store(b);
          };
    });
  });
  return {dz, dw, status};
}

Tensor gradient_radius_cpu(const Tensor& M, const Tensor& q, const Tensor& z, const Tensor& dq) {
  const Tensor radius = new_output(check_shapes({{"M", M}}, {{"q", q}, {"z", z}, {"dq", dq}}), z.options());
  const auto n = static_cast<int>(M.size(-1));
  AT_DISPATCH_FLOATING_TYPES(M.scalar_type(), "lcp::gradient_radius", [&] {
    auto* data = radius.mutable_data_ptr<scalar_t>();
    for_each_element<scalar_t>(radius.sizes(), {{M, 2}, {q, 1}, {z, 1}, {dq, 1}}, n, [&] {
      return [&, derivative = solver::DirectionalDerivative(n, std::is_same_v<scalar_t, float>)](
                 const double* const* x, std::int64_t b) mutable {
        derivative.set(x[0], x[1], x[2]);
        data[b] = static_cast<scalar_t>(derivative.radius(x[3]));
      };
    });
  });
  return radius;
}

// Sums over the batch are cut into pieces of this many elements, whatever the number of threads; the pieces are
// added in order.
constexpr std::int64_t kPiece = 1024;

Tensor sum_outer_cpu(const Tensor& t, const Tensor& x, c10::SymIntArrayRef symbolic_size) {
  const auto size = c10::asIntArrayRefSlow(symbolic_size, __FILE__, __LINE__);
  const std::int64_t rows = t.size(-1);
  const std::int64_t columns = x.size(-1);
  TORCH_CHECK(size.size() >= 2 && size[size.size() - 2] == rows && size.back() == columns, "size must end in [", rows,
              ", ", columns, "]; got ", size);
  Tensor result = at::empty(size, t.options());

  // The batch of t and x, with the dimensions that are summed moved inwards.
  const auto full = at::infer_size_dimvector(t.sizes().slice(0, t.dim() - 1), x.sizes().slice(0, x.dim() - 1));
  const auto dims = static_cast<std::int64_t>(full.size());
  const auto target = size.slice(0, size.size() - 2);
  const std::int64_t missing = dims - static_cast<std::int64_t>(target.size());
  TORCH_CHECK(missing >= 0, "size must not have more batch dimensions than t and x; got ", size);
  c10::DimVector kept, summed, sizes;
  for (std::int64_t d = 0; d < dims; ++d) {
    const bool keeps = d >= missing && target[d - missing] == full[d];
    TORCH_CHECK(keeps || d < missing || target[d - missing] == 1, "size must be t x' or 1 in each batch dimension, ",
                full, "; got ", size);
    (keeps ? kept : summed).push_back(d);
  }
  std::int64_t terms = 1;
  c10::DimVector order(kept);
  order.append(summed.begin(), summed.end());
  for (const std::int64_t d : order) sizes.push_back(full[d]);
  for (const std::int64_t d : summed) terms *= full[d];
  order.push_back(dims);
  c10::DimVector t_shape(full), x_shape(full);
  t_shape.push_back(rows);
  x_shape.push_back(columns);
  const Tensor t_view = t.expand(t_shape).permute(order);
  const Tensor x_view = x.expand(x_shape).permute(order);

  Batch batch(sizes);
  batch.add(t_view, 1);
  batch.add(x_view, 1);
  const std::int64_t outputs = terms == 0 ? 0 : batch.count() / terms;
  const std::int64_t pieces = (terms + kPiece - 1) / kPiece;
  const std::int64_t area = rows * columns;
  if (outputs == 0) return result.zero_();
  AT_DISPATCH_FLOATING_TYPES(t.scalar_type(), "lcp::_sum_outer", [&] {
    const auto n = static_cast<int>(rows);
    const bool has_kernel = rows == columns && batch::has_outer_products(rows);
    if (has_kernel && terms == 1) {
      auto* const data = result.mutable_data_ptr<scalar_t>();
      for_each_run<scalar_t>(sizes, {{t_view, 1, true}, {x_view, 1, true}}, nullptr, rows, kernel_grain(rows), [&] {
        return [&](const auto& views, std::int64_t b, std::int64_t count) {
          batch::outer_products(n, count, views[0].data, views[1].data, data + b * area);
        };
      });
      return;
    }
    const scalar_t* t_data = t_view.const_data_ptr<scalar_t>();
    const scalar_t* x_data = x_view.const_data_ptr<scalar_t>();
    const std::int64_t t_stride = t_view.stride(-1);
    const std::int64_t x_stride = x_view.stride(-1);
    std::vector<double> partial(pieces > 1 ? outputs * pieces * area : 0);
    scalar_t* result_data = result.mutable_data_ptr<scalar_t>();
    const std::int64_t tasks = outputs * pieces;
    const std::int64_t cost = std::min(terms, kPiece) * area / (has_kernel ? 4 : 1) + 1;
    at::parallel_for(0, tasks, std::max<std::int64_t>(1, 32'768 / cost), [&](std::int64_t begin, std::int64_t end) {
      std::vector<double> sum(area);
      RunReader<scalar_t> read_t(batch, 0, t_view, 1, true), read_x(batch, 1, x_view, 1, true);
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t first = task % pieces * kPiece;
        const std::int64_t last = std::min(first + kPiece, terms);
        const std::int64_t begins = task / pieces * terms + first;
        if (has_kernel) {
          const scalar_t* const own_t = read_t(begins, last - first).data;
          const scalar_t* const own_x = read_x(begins, last - first).data;
          batch::sum_outer_products(n, last - first, own_t, own_x, sum.data());
        } else {
          std::fill(sum.begin(), sum.end(), 0.0);
          Batch::Cursor cursor(batch, begins);
          for (std::int64_t k = first; k < last; ++k, cursor.next()) {
            const scalar_t* a = t_data + cursor.offset(0);
            const scalar_t* b = x_data + cursor.offset(1);
            for (std::int64_t j = 0; j < columns; ++j) {
              const double factor = std::isnan(b[j * x_stride]) ? 0.0 : static_cast<double>(b[j * x_stride]);
              for (std::int64_t i = 0; i < rows; ++i) sum[i * columns + j] += a[i * t_stride] * factor;
            }
          }
        }
        if (pieces > 1) {
          std::copy(sum.begin(), sum.end(), partial.begin() + task * area);
        } else {
          std::copy(sum.begin(), sum.end(), result_data + task * area);
        }
      }
    });
    if (pieces == 1) return;
    for (std::int64_t output = 0; output < outputs; ++output) {
      for (std::int64_t k = 0; k < area; ++k) {
        double sum = 0;
        for (std::int64_t piece = 0; piece < pieces; ++piece) sum += partial[(output * pieces + piece) * area + k];
        result_data[output * area + k] = static_cast<scalar_t>(sum);
      }
    }
  });
  return result;
}

Two piece_cpu(const Tensor& M, const Tensor& q, const Tensor& z, const Tensor& w, const Tensor& basis, bool) {
  check_derivative(M, basis, {{"q", q}, {"z", z}, {"w", w}});
  return {z.clone(), w.clone()};
}

TORCH_LIBRARY_IMPL(lcp, CPU, library) {
  library.impl("solve", TORCH_FN(solve_cpu));
  library.impl("_solve_blocks", TORCH_FN(solve_blocks_cpu));
  library.impl("certify", TORCH_FN(certify_cpu));
  library.impl("directional_derivative", TORCH_FN(directional_derivative_cpu));
  library.impl("gradient_radius", TORCH_FN(gradient_radius_cpu));
  library.impl("_piece", TORCH_FN(piece_cpu));
  library.impl("_tangent", TORCH_FN(tangent_cpu));
  library.impl("_adjoint", TORCH_FN(adjoint_cpu));
  library.impl("_path_point", TORCH_FN(path_point_cpu));
  library.impl("_path_tangent", TORCH_FN(path_derivative_cpu<false>));
  library.impl("_path_adjoint", TORCH_FN(path_derivative_cpu<true>));
  library.impl("_sum_outer", TORCH_FN(sum_outer_cpu));
}

}  // namespace
}  // namespace lcp::ops
