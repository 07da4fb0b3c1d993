// Batches whose elements have different sizes. An operator with the argument `sizes` runs its kernel for all elements
// of one size at a time, on the parts of the tensors that exist. So each element gets the bits that it would get alone.
#pragma once

#include <functional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "ops/operator.h"

namespace lcp::ops {

/// The number of unknowns, or contacts, of each element; they are the first ones.
inline constexpr Argument kSizes = {
    .kind = Argument::Kind::kTensor, .declaration = "Tensor? sizes=None", .sizes = "", .dtype = at::kLong};

namespace by_size {

using Results = std::vector<Tensor>;

/// Cuts the tensor x, the k-th argument, to the parts of the elements of one size.
using Take = std::function<Tensor(std::size_t k, const Tensor& x)>;

/// Calls the kernel for each size that occurs and puts its results in the places of their elements; beyond the sizes
/// the results are 0. letters: the dimensions that differ between elements, as the table of op names them. Throws
/// c10::Error where a size is not in 0..the dimension of letters[0].
Results run(const Operator& op, std::string_view letters, const Call& call,
            const std::function<Results(const Take& take)>& kernel);

inline Results as_vector(Tensor x) { return {std::move(x)}; }
template <class... T>
Results as_vector(std::tuple<T...> x) {
  return std::apply([](auto&... each) { return Results{std::move(each)...}; }, x);
}

template <class R, std::size_t... k>
R from_vector(Results& x, std::index_sequence<k...>) {
  return R(std::move(x[k])...);
}

}  // namespace by_size

/// Runs kernel(arguments...) for each size. `arguments` are all arguments of op, with `sizes` among them.
template <class R, class... Parameters, class... Arguments>
R for_each_size(const Operator& op, std::string_view letters, R (*kernel)(Parameters...),
                const Arguments&... arguments) {
  const auto cut = [&op](const by_size::Take& take, std::size_t k, const auto& x) {
    using T = std::decay_t<decltype(x)>;
    if constexpr (std::is_same_v<T, Tensor>) {
      return take(k, x);
    } else if constexpr (std::is_same_v<T, std::optional<Tensor>>) {
      if (!x || op.arguments()[k].name == kSizes.name) return std::optional<Tensor>();
      return std::optional<Tensor>(take(k, *x));
    } else {
      return x;
    }
  };
  const auto of_size = [&](const by_size::Take& take) {
    return [&]<std::size_t... k>(std::index_sequence<k...>) {
      return by_size::as_vector(kernel(cut(take, k, arguments)...));
    }
    (std::index_sequence_for<Arguments...>());
  };
  auto results = with_call(
      op, [&](const Call& call) { return by_size::run(op, letters, call, of_size); }, arguments...);
  if constexpr (std::is_same_v<R, Tensor>) {
    return results.front();
  } else {
    return by_size::from_vector<R>(results, std::make_index_sequence<std::tuple_size_v<R>>());
  }
}

}  // namespace lcp::ops
