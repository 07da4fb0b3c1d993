// The CPU kernels: strided tensors in, the solver's contiguous doubles inside, threads over the batch.
#include <ATen/Dispatch.h>
#include <ATen/ExpandUtils.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <c10/core/SymIntArrayRef.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "ops/batch.h"
#include "ops/schema.h"
#include "solver/active_set.h"
#include "solver/ladder.h"

namespace lcp::ops {
namespace {

template <class T>
constexpr double kDefaultTolerance = std::is_same_v<T, double> ? 1e-9 : 1e-4;

// Elements of the batch for one task, so that a task is worth starting.
std::int64_t grain(std::int64_t n) { return std::max<std::int64_t>(1, 100'000 / (n * n * n + 50)); }

// A matrix or a vector inside a tensor, read as contiguous doubles: in place where it is just that.
template <class T>
class Reader {
 public:
  Reader(const Tensor& x, std::int64_t core_dims)
      : data_(x.const_data_ptr<T>()),
        rows_(core_dims == 2 ? x.size(-2) : 1),
        columns_(x.size(-1)),
        row_stride_(core_dims == 2 ? x.stride(-2) : 0),
        column_stride_(x.stride(-1)),
        contiguous_((column_stride_ == 1 || columns_ <= 1) && (rows_ <= 1 || row_stride_ == columns_)),
        copy_(std::is_same_v<T, double> && contiguous_ ? 0 : rows_ * columns_) {}

  const double* operator()(std::int64_t offset) {
    const T* source = data_ + offset;
    if constexpr (std::is_same_v<T, double>) {
      if (contiguous_) return source;
    }
    if (offset == copied_) return copy_.data();  // a shared matrix is converted once
    copied_ = offset;
    double* target = copy_.data();
    for (std::int64_t i = 0; i < rows_; ++i) {
      for (std::int64_t j = 0; j < columns_; ++j) *target++ = source[i * row_stride_ + j * column_stride_];
    }
    return copy_.data();
  }

 private:
  const T* data_;
  std::int64_t rows_, columns_, row_stride_, column_stride_;
  bool contiguous_;
  std::int64_t copied_ = -1;  // the offset of what copy_ holds
  std::vector<double> copy_;
};

Tensor new_output(const Tensor& like, c10::SymIntArrayRef shape) {
  return at::empty(c10::asIntArrayRefSlow(shape, __FILE__, __LINE__), like.options());
}

solver::Settings settings_of(const SolveArguments& arguments, double default_tolerance, bool single_precision) {
  solver::Settings settings;
  settings.method = arguments.method == "lemke" ? solver::Method::kLemke : solver::Method::kAuto;
  settings.tolerance = arguments.tolerance.value_or(default_tolerance);
  settings.max_pivots = arguments.max_pivots;
  settings.single_precision = single_precision;
  return settings;
}

std::tuple<Tensor, Tensor, Tensor> solve_cpu(const Tensor& M, const Tensor& q, const std::optional<Tensor>& guess,
                                             std::string_view method, std::string_view ties, double kappa,
                                             std::optional<double> tolerance, std::optional<std::int64_t> max_pivots) {
  const SolveArguments arguments{guess, method, ties, kappa, tolerance, max_pivots};
  const auto batch_shape = check_solve(M, q, arguments);
  const auto shape = vector_shape(batch_shape, M);
  Tensor z = new_output(q, shape);
  Tensor w = new_output(q, shape);
  Tensor status = at::empty(c10::asIntArrayRefSlow(batch_shape, __FILE__, __LINE__), q.options().dtype(at::kChar));

  Batch batch(status.sizes());
  const int in_M = batch.add(M, 2);
  const int in_q = batch.add(q, 1);
  const auto n = M.size(-1);
  AT_DISPATCH_FLOATING_TYPES(M.scalar_type(), "lcp::solve", [&] {
    const auto settings = settings_of(arguments, kDefaultTolerance<scalar_t>, std::is_same_v<scalar_t, float>);
    scalar_t* z_data = z.mutable_data_ptr<scalar_t>();
    scalar_t* w_data = w.mutable_data_ptr<scalar_t>();
    auto* status_data = status.mutable_data_ptr<std::int8_t>();
    at::parallel_for(0, batch.count(), grain(n), [&](std::int64_t begin, std::int64_t end) {
      solver::Ladder ladder(static_cast<int>(n), settings);
      Reader<scalar_t> matrix(M, 2);
      Reader<scalar_t> vector(q, 1);
      std::vector<double> z_element(n), w_element(n);
      Batch::Cursor cursor(batch, begin);
      for (std::int64_t b = begin; b < end; ++b, cursor.next()) {
        const Status element =
            ladder.solve(matrix(cursor.offset(in_M)), vector(cursor.offset(in_q)), z_element.data(), w_element.data());
        std::copy(z_element.begin(), z_element.end(), z_data + b * n);
        std::copy(w_element.begin(), w_element.end(), w_data + b * n);
        status_data[b] = static_cast<std::int8_t>(element);
      }
    });
  });
  return {z, w, status};
}

// Calls body(derivative, arguments, out) for each element, with each of `vectors` as doubles and room for the results,
// and stores what it leaves in `out` [outputs.size() n], n numbers for each of `outputs`.
template <class T, class Body>
void for_each_derivative(const Tensor& M, const Tensor& z, const Tensor& w, std::initializer_list<Tensor> vectors,
                         std::initializer_list<Tensor> outputs, const Body& body) {
  const Tensor& first = *outputs.begin();
  Batch batch(first.sizes().slice(0, first.dim() - 1));
  batch.add(M, 2);
  batch.add(z, 1);
  batch.add(w, 1);
  for (const Tensor& x : vectors) batch.add(x, 1);
  const auto n = M.size(-1);
  std::vector<T*> results;
  for (const Tensor& output : outputs) results.push_back(output.mutable_data_ptr<T>());
  at::parallel_for(0, batch.count(), grain(n), [&](std::int64_t begin, std::int64_t end) {
    solver::ActiveSet derivative(static_cast<int>(n), std::is_same_v<T, float>);
    Reader<T> matrix(M, 2);
    Reader<T> read_z(z, 1);
    Reader<T> read_w(w, 1);
    std::vector<Reader<T>> read;
    for (const Tensor& x : vectors) read.emplace_back(x, 1);
    std::vector<const double*> arguments(vectors.size());
    std::vector<double> out(results.size() * n);
    Batch::Cursor cursor(batch, begin);
    for (std::int64_t b = begin; b < end; ++b, cursor.next()) {
      derivative.set(matrix(cursor.offset(0)), read_z(cursor.offset(1)), read_w(cursor.offset(2)));
      for (std::size_t k = 0; k < read.size(); ++k) arguments[k] = read[k](cursor.offset(3 + static_cast<int>(k)));
      body(derivative, arguments, out.data());
      for (std::size_t k = 0; k < results.size(); ++k) std::copy_n(out.data() + k * n, n, results[k] + b * n);
    }
  });
}

using Arguments = std::vector<const double*>;

std::tuple<Tensor, Tensor> solve_tangent_cpu(const Tensor& M, const Tensor& z, const Tensor& w, const Tensor& r) {
  const auto batch = check_derivative(M, {&z, &w, &r});
  Tensor dz = new_output(z, vector_shape(batch, M));
  Tensor dw = at::empty(dz.sizes(), dz.options());
  const auto n = M.size(-1);
  AT_DISPATCH_FLOATING_TYPES(M.scalar_type(), "lcp::_solve_tangent", [&] {
    for_each_derivative<scalar_t>(M, z, w, {r}, {dz, dw},
                                  [n](solver::ActiveSet& derivative, const Arguments& arguments, double* out) {
                                    derivative.tangent(arguments[0], out, out + n);
                                  });
  });
  return {dz, dw};
}

Tensor solve_adjoint_cpu(const Tensor& M, const Tensor& z, const Tensor& w, const Tensor& g_z, const Tensor& g_w) {
  Tensor t = new_output(z, vector_shape(check_derivative(M, {&z, &w, &g_z, &g_w}), M));
  AT_DISPATCH_FLOATING_TYPES(M.scalar_type(), "lcp::_solve_adjoint", [&] {
    for_each_derivative<scalar_t>(M, z, w, {g_z, g_w}, {t},
                                  [](solver::ActiveSet& derivative, const Arguments& arguments, double* out) {
                                    derivative.adjoint(arguments[0], arguments[1], out);
                                  });
  });
  return t;
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
    const scalar_t* t_data = t_view.const_data_ptr<scalar_t>();
    const scalar_t* x_data = x_view.const_data_ptr<scalar_t>();
    const std::int64_t t_stride = t_view.stride(-1);
    const std::int64_t x_stride = x_view.stride(-1);
    std::vector<double> partial(pieces > 1 ? outputs * pieces * area : 0);
    scalar_t* result_data = result.mutable_data_ptr<scalar_t>();
    const std::int64_t tasks = outputs * pieces;
    const std::int64_t cost = std::min(terms, kPiece) * area + 1;
    at::parallel_for(0, tasks, std::max<std::int64_t>(1, 32'768 / cost), [&](std::int64_t begin, std::int64_t end) {
      std::vector<double> sum(area);
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t first = task % pieces * kPiece;
        const std::int64_t last = std::min(first + kPiece, terms);
        std::fill(sum.begin(), sum.end(), 0.0);
        Batch::Cursor cursor(batch, task / pieces * terms + first);
        for (std::int64_t k = first; k < last; ++k, cursor.next()) {
          const scalar_t* a = t_data + cursor.offset(0);
          const scalar_t* b = x_data + cursor.offset(1);
          for (std::int64_t j = 0; j < columns; ++j) {
            const double factor = std::isnan(b[j * x_stride]) ? 0.0 : static_cast<double>(b[j * x_stride]);
            for (std::int64_t i = 0; i < rows; ++i) sum[i * columns + j] += a[i * t_stride] * factor;
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

TORCH_LIBRARY_IMPL(lcp, CPU, library) {
  library.impl("solve", TORCH_FN(solve_cpu));
  library.impl("_solve_tangent", TORCH_FN(solve_tangent_cpu));
  library.impl("_solve_adjoint", TORCH_FN(solve_adjoint_cpu));
  library.impl("_sum_outer", TORCH_FN(sum_outer_cpu));
}

}  // namespace
}  // namespace lcp::ops
