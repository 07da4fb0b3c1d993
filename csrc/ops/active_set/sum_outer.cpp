// Sums of outer products over a batch, on the CPU: the gradient of a matrix that several elements share.
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <c10/core/SymIntArrayRef.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "batch/outer_products.h"
#include "ops/active_set/operators.h"
#include "ops/active_set/terms.h"
#include "ops/broadcast.h"
#include "ops/elements.h"
#include "ops/registration.h"

namespace lcp::ops {
namespace {

// Sums over the batch are cut into pieces of this many elements, whatever the number of threads; the pieces are
// added in order.
constexpr std::int64_t kTermsPerPiece = 1024;

// One term for each output, n <= 16.
template <class T>
void write_products(int n, const Terms& terms, T* result) {
  for_each_run<T>(terms.sizes, {{terms.t, 1, true}, {terms.x, 1, true}}, nullptr, n, kernel_grain(n), [&] {
    return [&](const auto& views, std::int64_t b, std::int64_t count) {
      batch::outer_products(n, count, views[0].data, views[1].data, result + b * n * n);
    };
  });
}

// The sum over `count` elements from `first` on, without a kernel. row: space for as many numbers as x has.
template <class T>
void add_products(const Terms& terms, const BroadcastBatch& batch, std::int64_t first, std::int64_t count, double* row,
                  double* sum) {
  const std::int64_t rows = terms.t.size(-1);
  const std::int64_t columns = terms.x.size(-1);
  const T* const t = terms.t.const_data_ptr<T>();
  const T* const x = terms.x.const_data_ptr<T>();
  const std::int64_t t_stride = terms.t.stride(-1);
  const std::int64_t x_stride = terms.x.stride(-1);
  std::fill_n(sum, rows * columns, 0.0);
  BroadcastBatch::Cursor cursor(batch, first);
  for (std::int64_t k = 0; k < count; ++k, cursor.next()) {
    const T* const a = t + cursor.offset(0);
    const T* const b = x + cursor.offset(1);
    for (std::int64_t j = 0; j < columns; ++j) row[j] = std::isnan(b[j * x_stride]) ? 0.0 : b[j * x_stride];
    for (std::int64_t i = 0; i < rows; ++i) {
      const double factor = a[i * t_stride];
      for (std::int64_t j = 0; j < columns; ++j) sum[i * columns + j] += factor * row[j];
    }
  }
}

template <class T>
void write_sums(const Terms& terms, bool has_kernel, T* result) {
  const std::int64_t area = terms.t.size(-1) * terms.x.size(-1);
  const std::int64_t pieces = (terms.per_output + kTermsPerPiece - 1) / kTermsPerPiece;
  const std::int64_t cost = std::min(terms.per_output, kTermsPerPiece) * area / (has_kernel ? 4 : 1) + 1;
  BroadcastBatch batch(terms.sizes);
  batch.add(terms.t, 1);
  batch.add(terms.x, 1);
  std::vector<double> partial(pieces > 1 ? terms.outputs * pieces * area : 0);
  at::parallel_for(
      0, terms.outputs * pieces, std::max<std::int64_t>(1, 32'768 / cost), [&](std::int64_t begin, std::int64_t end) {
        std::vector<double> sum(area), row(terms.x.size(-1));
        BatchReader<T> read_t(batch, 0, terms.t, 1, true), read_x(batch, 1, terms.x, 1, true);
        for (std::int64_t task = begin; task < end; ++task) {
          const std::int64_t in_output = task % pieces * kTermsPerPiece;
          const std::int64_t count = std::min(kTermsPerPiece, terms.per_output - in_output);
          const std::int64_t first = task / pieces * terms.per_output + in_output;
          if (has_kernel) {
            const T* const t_piece = read_t(first, count).data;
            const T* const x_piece = read_x(first, count).data;
            batch::sum_outer_products(static_cast<int>(terms.t.size(-1)), count, t_piece, x_piece, sum.data());
          } else {
            add_products<T>(terms, batch, first, count, row.data(), sum.data());
          }
          if (pieces > 1) {
            std::copy(sum.begin(), sum.end(), partial.begin() + task * area);
          } else {
            std::copy(sum.begin(), sum.end(), result + task * area);
          }
        }
      });
  if (pieces == 1) return;
  for (std::int64_t output = 0; output < terms.outputs; ++output) {
    for (std::int64_t k = 0; k < area; ++k) {
      double sum = 0;
      for (std::int64_t piece = 0; piece < pieces; ++piece) sum += partial[(output * pieces + piece) * area + k];
      result[output * area + k] = static_cast<T>(sum);
    }
  }
}

Tensor sum_outer_cpu(const Tensor& t, const Tensor& x, c10::SymIntArrayRef symbolic_size) {
  const auto size = c10::asIntArrayRefSlow(symbolic_size, __FILE__, __LINE__);
  const Terms terms = arrange(t, x, size);
  Tensor result = at::empty(size, t.options());
  if (terms.outputs * terms.per_output == 0) return result.zero_();
  const std::int64_t n = t.size(-1);
  const bool has_kernel = n == x.size(-1) && batch::has_outer_products(n);
  AT_DISPATCH_FLOATING_TYPES(t.scalar_type(), "lcp::_sum_outer", [&] {
    auto* const data = result.mutable_data_ptr<scalar_t>();
    if (has_kernel && terms.per_output == 1) {
      write_products(static_cast<int>(n), terms, data);
    } else {
      write_sums(terms, has_kernel, data);
    }
  });
  return result;
}

LCP_LIBRARY_IMPL(CPU, library) { library.impl("_sum_outer", TORCH_FN(sum_outer_cpu)); }

}  // namespace
}  // namespace lcp::ops
