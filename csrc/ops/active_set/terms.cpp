#include "ops/active_set/terms.h"

#include <ATen/ExpandUtils.h>
#include <c10/util/Exception.h>

#include <vector>

namespace lcp::ops {

Terms arrange(const Tensor& t, const Tensor& x, c10::IntArrayRef size) {
  const std::int64_t rows = t.size(-1);
  const std::int64_t columns = x.size(-1);
  TORCH_CHECK(size.size() >= 2 && size[size.size() - 2] == rows && size.back() == columns, "size must end in [", rows,
              ", ", columns, "]; got ", size);
  const auto full = at::infer_size_dimvector(t.sizes().slice(0, t.dim() - 1), x.sizes().slice(0, x.dim() - 1));
  const auto dims = static_cast<std::int64_t>(full.size());
  const auto target = size.slice(0, size.size() - 2);
  const std::int64_t missing = dims - static_cast<std::int64_t>(target.size());
  TORCH_CHECK(missing >= 0, "size must not have more batch dimensions than t and x; got ", size);
  Terms terms;
  c10::DimVector order, summed;
  for (std::int64_t d = 0; d < dims; ++d) {
    const bool keeps = d >= missing && target[d - missing] == full[d];
    TORCH_CHECK(keeps || d < missing || target[d - missing] == 1, "size must be t x' or 1 in each batch dimension, ",
                full, "; got ", size);
    (keeps ? order : summed).push_back(d);
    (keeps ? terms.outputs : terms.per_output) *= full[d];
  }
  order.append(summed.begin(), summed.end());
  for (const std::int64_t d : order) terms.sizes.push_back(full[d]);
  order.push_back(dims);
  const auto view = [&](const Tensor& of) {
    std::vector<std::int64_t> shape(full.begin(), full.end());
    shape.push_back(of.size(-1));
    return of.expand(shape).permute(order);
  };
  terms.t = view(t);
  terms.x = view(x);
  return terms;
}

}  // namespace lcp::ops
