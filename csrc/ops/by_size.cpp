#include "ops/by_size.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

namespace lcp::ops::by_size {
namespace {

// Cuts each dimension that is named by one of the letters to its first entries.
Tensor cut(Tensor x, const Sizes& sizes, std::string_view letters, std::int64_t size) {
  for (int k = 0; k < sizes.count; ++k) {
    const auto [factor, letter] = sizes.size[k];
    if (letters.find(letter) != std::string_view::npos) x = x.narrow(k - sizes.count, 0, factor * size);
  }
  return x;
}

// The number of elements by which memory is fetched ahead, since the elements of one size lie far apart.
constexpr std::int64_t kAhead = 8;

enum class Direction { kGather, kScatter };

// Copies between the elements `chosen` of `all`, whose batch dimensions broadcast to `batch`, and `part`, contiguous,
// [chosen, ...]. T has the size of the dtype.
template <Direction direction, class T>
void copy(const Tensor& all, at::IntArrayRef batch, const std::vector<std::int64_t>& chosen, const Tensor& part) {
  const std::int64_t core_dims = part.dim() - 1;
  const std::int64_t rows = core_dims == 2 ? all.size(-2) : 1, columns = core_dims > 0 ? all.size(-1) : 1;
  const std::int64_t row = core_dims == 2 ? all.stride(-2) : 0, column = core_dims > 0 ? all.stride(-1) : 0;
  const std::int64_t missing = static_cast<std::int64_t>(batch.size()) - (all.dim() - core_dims);
  const auto place_of = [&](std::int64_t element) {
    std::int64_t place = 0;
    for (std::int64_t d = static_cast<std::int64_t>(batch.size()) - 1; d >= missing; --d) {
      if (all.size(d - missing) != 1) place += element % batch[d] * all.stride(d - missing);
      element /= batch[d];
    }
    return place;
  };
  T* const of_all = static_cast<T*>(all.data_ptr());
  T* const of_part = static_cast<T*>(part.data_ptr());
  const auto count = static_cast<std::int64_t>(chosen.size());
  at::parallel_for(0, count, 32'768 / (rows * columns + 1) + 1, [&](std::int64_t begin, std::int64_t end) {
    T* dense = of_part + begin * rows * columns;
    for (std::int64_t k = begin; k < end; ++k) {
      T* const strided = of_all + place_of(chosen[k]);
      if (k + kAhead < end) {
        const T* const ahead = of_all + place_of(chosen[k + kAhead]);
        for (std::int64_t i = 0; i < rows; ++i) __builtin_prefetch(ahead + i * row);
      }
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j, ++dense) {
          if constexpr (direction == Direction::kGather) {
            *dense = strided[i * row + j * column];
          } else {
            strided[i * row + j * column] = *dense;
          }
        }
      }
    }
  });
}

template <Direction direction>
void copy(const Tensor& all, at::IntArrayRef batch, const std::vector<std::int64_t>& chosen, const Tensor& part) {
  switch (all.element_size()) {
    case 1:
      return copy<direction, std::uint8_t>(all, batch, chosen, part);
    case 4:
      return copy<direction, std::uint32_t>(all, batch, chosen, part);
    default:
      return copy<direction, std::uint64_t>(all, batch, chosen, part);
  }
}

}  // namespace

Results run(const Operator& op, std::string_view letters, const Call& call,
            const std::function<Results(const Take& take)>& kernel) {
  const std::int64_t most = call.size(letters.front()).expect_int();
  const at::DimVector batch(C10_AS_INTARRAYREF_SLOW(c10::SymIntArrayRef(call.batch())));
  const Tensor sizes = std::get<const Tensor*>(call.value(kSizes.name))->expand(batch).contiguous();
  std::vector<std::vector<std::int64_t>> elements(most + 1);  // indexed by size
  const auto* const size_of = sizes.const_data_ptr<std::int64_t>();
  for (std::int64_t b = 0; b < sizes.numel(); ++b) {
    TORCH_CHECK(size_of[b] >= 0 && size_of[b] <= most, kSizes.name, " must be 0..", most, "; got ", size_of[b]);
    elements[size_of[b]].push_back(b);
  }

  Results results;
  for (const Result& result : op.results()) {
    results.push_back(at::zeros_symint(call.shape(result), call.options(result)));
  }
  for (std::int64_t size = 0; size <= most; ++size) {
    if (elements[size].empty()) continue;
    const std::vector<std::int64_t>& chosen = elements[size];
    const auto count = static_cast<std::int64_t>(chosen.size());
    const auto shape_of_part = [&](at::IntArrayRef core) {
      at::DimVector shape = {count};
      shape.append(core.begin(), core.end());
      return shape;
    };
    const bool all = count == sizes.numel();
    const Results parts = kernel([&](std::size_t k, const Tensor& x) {
      const Sizes& core = op.arguments()[k].sizes;
      Tensor there = cut(x, core, letters, size);
      if (all) return there;
      const auto own = there.sizes().slice(there.dim() - core.count);
      if (c10::multiply_integers(own) == there.numel()) return there.reshape(own);  // all elements share it
      const Tensor part = at::empty(shape_of_part(own), there.options());
      copy<Direction::kGather>(there, batch, chosen, part);
      return part;
    });
    for (std::size_t k = 0; k < results.size(); ++k) {
      const Sizes& core = op.results()[k].sizes;
      const Tensor there = cut(results[k], core, letters, size);
      if (all) {
        there.copy_(parts[k]);
      } else {
        const auto own = there.sizes().slice(there.dim() - core.count);
        copy<Direction::kScatter>(there, batch, chosen, parts[k].expand(shape_of_part(own)).contiguous());
      }
    }
  }
  return results;
}

}  // namespace lcp::ops::by_size
