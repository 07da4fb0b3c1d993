// Sums of outer products over a batch, on the CPU: the gradient of a matrix that several elements share.
#include <ATen/Dispatch.h>
#include <ATen/ExpandUtils.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <c10/core/SymIntArrayRef.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "batch/outer_products.h"
#include "ops/active_set/operators.h"
#include "ops/batch.h"
#include "ops/elements.h"

namespace lcp::ops {
namespace {

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
      BatchReader<scalar_t> read_t(batch, 0, t_view, 1, true), read_x(batch, 1, x_view, 1, true);
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t first = task % pieces * kPiece;
        const std::int64_t last = std::min(first + kPiece, terms);
        const std::int64_t begins = task / pieces * terms + first;
        if (has_kernel) {
          const scalar_t* const t_piece = read_t(begins, last - first).data;
          const scalar_t* const x_piece = read_x(begins, last - first).data;
          batch::sum_outer_products(n, last - first, t_piece, x_piece, sum.data());
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

TORCH_LIBRARY_IMPL(lcp, CPU, library) { library.impl("_sum_outer", TORCH_FN(sum_outer_cpu)); }

}  // namespace
}  // namespace lcp::ops
