#include "lcp/pad.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/diag_embed.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <tuple>

#include "ops/registration.h"

namespace lcp {
namespace ops {
namespace {

using at::Tensor;

std::tuple<Tensor, Tensor> pad_composite(const std::vector<Tensor>& tensors, std::int64_t dims, double diagonal) {
  TORCH_CHECK(!tensors.empty(), "tensors must be at least one; got none");
  const Tensor& first = tensors.front();
  TORCH_CHECK(dims >= 1 && dims <= first.dim(), "dims must be 1..", first.dim(), ", the dimensions of tensors[0]; got ",
              dims);
  TORCH_CHECK(diagonal == 0 || dims == 2, "dims must be 2 where diagonal is not 0; got ", dims);
  const auto outer = first.sizes().slice(0, first.dim() - dims);
  at::DimVector most(dims, 0);
  std::vector<std::int64_t> sizes;
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    const Tensor& x = tensors[k];
    TORCH_CHECK(x.dim() == first.dim() && x.sizes().slice(0, outer.size()) == outer, "tensors[", k, "] must be ", outer,
                " with ", dims, " dimensions behind these, as tensors[0]; got ", x.sizes());
    TORCH_CHECK(x.scalar_type() == first.scalar_type() && x.device() == first.device(), "tensors[", k, "] must be ",
                first.scalar_type(), " on ", first.device(), ", as tensors[0]; got ", x.scalar_type(), " on ",
                x.device());
    TORCH_CHECK(diagonal == 0 || x.size(-1) == x.size(-2), "tensors[", k,
                "] must be square where diagonal is not 0; got ", x.sizes());
    sizes.push_back(x.size(-dims));
    for (std::int64_t d = 0; d < dims; ++d) most[d] = std::max(most[d], x.size(d - dims));
  }
  std::vector<Tensor> padded;
  for (const Tensor& x : tensors) {
    std::vector<std::int64_t> ends;  // pads in the order of constant_pad_nd, the last dimension first
    for (std::int64_t d = dims - 1; d >= 0; --d) ends.insert(ends.end(), {0, most[d] - x.size(d - dims)});
    padded.push_back(at::constant_pad_nd(x, ends, 0));
    if (diagonal != 0) {
      const Tensor beyond = at::arange(most[0], x.options().dtype(at::kLong)) >= x.size(-1);
      padded.back() = padded.back() + at::diag_embed(beyond.to(x.scalar_type()) * diagonal);
    }
  }
  return {at::stack(padded), at::tensor(sizes, first.options().dtype(at::kLong))};
}

std::vector<Tensor> unpad_composite(const Tensor& x, const Tensor& sizes) {
  TORCH_CHECK(x.dim() >= 1 && sizes.sizes() == x.sizes().slice(0, x.dim() - 1),
              "sizes must be [...] for x [..., n]; got ", sizes.sizes(), " for ", x.sizes());
  TORCH_CHECK(sizes.scalar_type() == at::kLong, "sizes must be Long; got ", sizes.scalar_type());
  const Tensor rows = x.reshape({sizes.numel(), x.size(-1)}), on_cpu = sizes.cpu().contiguous();
  std::vector<Tensor> parts;
  for (std::int64_t b = 0; b < sizes.numel(); ++b) {
    const std::int64_t size = on_cpu.const_data_ptr<std::int64_t>()[b];
    TORCH_CHECK(size >= 0 && size <= x.size(-1), "sizes must be 0..", x.size(-1), ", the size of x's rows; got ", size);
    parts.push_back(rows.select(0, b).narrow(0, 0, size));
  }
  return parts;
}

// These operators are not among operators(): they take and return lists, and have no kernel.
LCP_LIBRARY_FRAGMENT(library) {
  library.def("pad(Tensor[] tensors, int dims, *, float diagonal=0.0) -> (Tensor values, Tensor sizes)");
  library.def("unpad(Tensor x, Tensor sizes) -> Tensor[]");
  library.impl("pad", c10::DispatchKey::CompositeImplicitAutograd, TORCH_FN(pad_composite));
  library.impl("unpad", c10::DispatchKey::CompositeImplicitAutograd, TORCH_FN(unpad_composite));
}

}  // namespace
}  // namespace ops

PaddedBatch pad(const std::vector<at::Tensor>& tensors, std::int64_t dims, double diagonal) {
  auto [values, sizes] = ops::pad_composite(tensors, dims, diagonal);
  return {values, sizes};
}

std::vector<at::Tensor> unpad(const at::Tensor& x, const at::Tensor& sizes) { return ops::unpad_composite(x, sizes); }

}  // namespace lcp
