#include "ops/by_size.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <numeric>

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
constexpr std::int64_t kAhead = 32;

enum class Direction { kGather, kScatter };

// Elements of a batch, ascending.
using Chosen = c10::ArrayRef<std::int64_t>;

// The places of elements in memory. Where one stride leads from each element to the next, no division finds them.
class Places {
 public:
  Places(const Tensor& x, at::IntArrayRef batch, std::int64_t core_dims) : batch_(batch), strides_(batch.size()) {
    const std::int64_t dims = x.dim() - core_dims, missing = static_cast<std::int64_t>(batch.size()) - dims;
    for (std::int64_t d = 0; d < dims; ++d) strides_[missing + d] = x.size(d) == 1 ? 0 : x.stride(d);
    std::int64_t next = -1;  // the stride that continues those of the dimensions behind
    for (std::size_t d = batch.size(); d-- > 0;) {
      if (batch[d] == 1) continue;
      if (next < 0) step_ = strides_[d];
      is_even_ = is_even_ && (next < 0 || strides_[d] == next);
      next = strides_[d] * batch[d];
    }
  }

  std::int64_t operator()(std::int64_t element) const {
    if (is_even_) return element * step_;
    std::int64_t place = 0;
    for (std::size_t d = batch_.size(); d-- > 0;) {
      place += element % batch_[d] * strides_[d];
      element /= batch_[d];
    }
    return place;
  }

 private:
  at::IntArrayRef batch_;
  at::DimVector strides_;
  bool is_even_ = true;
  std::int64_t step_ = 0;
};

// Copies `count` rows that lie `stride` apart from or to dense memory. kColumns: their length where it is known.
template <Direction direction, int kColumns, class T>
void copy_rows(std::int64_t count, std::int64_t columns, std::int64_t stride, T* __restrict strided,
               T* __restrict dense) {
  if constexpr (kColumns > 0) columns = kColumns;
  for (std::int64_t i = 0; i < count; ++i, strided += stride, dense += columns) {
    for (std::int64_t j = 0; j < columns; ++j) {
      if constexpr (direction == Direction::kGather) {
        dense[j] = strided[j];
      } else {
        strided[j] = dense[j];
      }
    }
  }
}

// Copies between the elements `chosen` of `all`, whose batch dimensions broadcast to `batch`, and `part`, contiguous,
// [chosen, ...]. T has the size of the dtype. kColumns: the length of a row where it is short.
template <Direction direction, int kColumns, class T>
void copy(const Tensor& all, const Places& place_of, Chosen chosen, const Tensor& part) {
  const std::int64_t core_dims = part.dim() - 1;
  const std::int64_t rows = core_dims == 2 ? all.size(-2) : 1, columns = core_dims > 0 ? all.size(-1) : 1;
  const std::int64_t row = core_dims == 2 ? all.stride(-2) : 0, column = core_dims > 0 ? all.stride(-1) : 1;
  T* const of_all = static_cast<T*>(all.data_ptr());
  T* const of_part = static_cast<T*>(part.data_ptr());
  const auto count = static_cast<std::int64_t>(chosen.size());
  at::parallel_for(0, count, 32'768 / (rows * columns + 1) + 1, [&](std::int64_t begin, std::int64_t end) {
    T* dense = of_part + begin * rows * columns;
    for (std::int64_t k = begin; k < end; ++k, dense += rows * columns) {
      T* const strided = of_all + place_of(chosen[k]);
      if (k + kAhead < end) {
        const T* const ahead = of_all + place_of(chosen[k + kAhead]);
        for (std::int64_t i = 0; i < rows; ++i) __builtin_prefetch(ahead + i * row);
      }
      if (column == 1) {
        copy_rows<direction, kColumns>(rows, columns, row, strided, dense);
      } else {
        for (std::int64_t i = 0; i < rows; ++i) {
          copy_rows<direction, 1>(columns, 1, column, strided + i * row, dense + i * columns);
        }
      }
    }
  });
}

template <Direction direction, class T>
void copy(const Tensor& all, at::IntArrayRef batch, Chosen chosen, const Tensor& part) {
  const std::int64_t core_dims = part.dim() - 1;
  const Places places(all, batch, core_dims);
  switch (core_dims > 0 ? all.size(-1) : 1) {
    case 1:
      return copy<direction, 1, T>(all, places, chosen, part);
    case 2:
      return copy<direction, 2, T>(all, places, chosen, part);
    case 3:
      return copy<direction, 3, T>(all, places, chosen, part);
    case 4:
      return copy<direction, 4, T>(all, places, chosen, part);
    default:
      return copy<direction, -1, T>(all, places, chosen, part);
  }
}

template <Direction direction>
void copy(const Tensor& all, at::IntArrayRef batch, Chosen chosen, const Tensor& part) {
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
  const auto* const size_of = sizes.const_data_ptr<std::int64_t>();
  std::vector<std::int64_t> first(most + 2), elements(sizes.numel());  // those of size n begin at elements[first[n]]
  for (std::int64_t b = 0; b < sizes.numel(); ++b) {
    TORCH_CHECK(size_of[b] >= 0 && size_of[b] <= most, kSizes.name, " must be 0..", most, "; got ", size_of[b]);
    ++first[size_of[b] + 1];
  }
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<std::int64_t> next = first;
  for (std::int64_t b = 0; b < sizes.numel(); ++b) elements[next[size_of[b]]++] = b;

  Results results;
  for (const Result& result : op.results()) {
    results.push_back(at::zeros_symint(call.shape(result), call.options(result)));
  }
  for (std::int64_t size = 0; size <= most; ++size) {
    const std::int64_t count = first[size + 1] - first[size];
    if (count == 0) continue;
    const Chosen chosen(elements.data() + first[size], count);
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
