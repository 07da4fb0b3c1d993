// The description of an operator: its arguments and results. Its schema, the checks of its arguments, the shapes of its
// results on every backend, and its rules for torch.vmap and torch.autocast follow from this.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/SymIntArrayRef.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/DimVector.h>
#include <c10/util/OptionalArrayRef.h>
#include <c10/util/SmallVector.h>

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace lcp::ops {

using at::Tensor;

/// The size of one dimension behind the batch dimensions: a whole number, or a multiple of a size which a letter names.
struct Size {
  int factor = 1;
  char letter = 0;
};

/// The dimensions of a tensor behind its batch dimensions, such as "n n" of a matrix, "3c n" of a Jacobian or "" of
/// a number.
struct Sizes {
  std::array<Size, 2> size = {};
  int count = 0;

  constexpr Sizes() = default;
  constexpr Sizes(const char* written) {  // NOLINT(google-explicit-constructor): a table is read more easily so
    const std::string_view text = written;
    for (std::size_t k = 0; k < text.size(); ++k) {
      if (text[k] == ' ') continue;
      Size& next = size[count++];
      const auto is_digit = [&] { return k < text.size() && text[k] >= '0' && text[k] <= '9'; };
      if (is_digit()) next.factor = 0;
      for (; is_digit(); ++k) next.factor = 10 * next.factor + (text[k] - '0');
      if (k < text.size() && text[k] != ' ') next.letter = text[k];
    }
  }

  /// One dimension of this size, behind the dimension of the steps where `each_step` is set.
  constexpr Sizes(int number, bool each_step) {
    if (each_step) size[count++].letter = 'T';
    size[count++].factor = number;
  }

  constexpr bool is_square() const {
    return count == 2 && size[0].letter == size[1].letter && size[0].factor == 1 && size[1].factor == 1;
  }
};

/// The value of an argument; std::monostate for None.
using Value = std::variant<std::monostate, const Tensor*, bool, std::int64_t, double, std::string_view,
                           c10::SymIntArrayRef, at::TensorList>;

/// An argument: `declaration` is its text in a schema, such as "float kappa=0.0". Arguments with a default are given by
/// keyword, unless is_positional is set.
struct Argument {
  enum class Kind { kTensor, kTensors, kFlag, kShapeOfResult };

  Kind kind = Kind::kTensor;
  std::string_view declaration;
  Sizes sizes = {};                   ///< the sizes of a tensor, or the letter of a flag that is a size
  at::ScalarType dtype = at::kFloat;  ///< the dtype of a tensor; at::kFloat: that of the first argument
  void (*check)(std::string_view name, const Value& value) = nullptr;  ///< the check of a flag, see below
  std::string_view name = name_in(declaration);
  bool is_positional = false;  ///< whether it is given by position although it has a default
  /// The descriptions of the tensors of a list, for a call whose first argument is this string.
  c10::ArrayRef<Argument> (*parts)(std::string_view first) = nullptr;

  static constexpr std::string_view name_in(std::string_view declaration) {
    const std::string_view type_and_name = declaration.substr(0, declaration.find('='));
    return type_and_name.substr(type_and_name.rfind(' ') + 1);
  }
};

constexpr Argument tensor(std::string_view declaration, Sizes sizes) {
  return {.kind = Argument::Kind::kTensor, .declaration = declaration, .sizes = sizes};
}
constexpr Argument matrix(std::string_view declaration) { return tensor(declaration, "n n"); }
constexpr Argument vector(std::string_view declaration) { return tensor(declaration, "n"); }
constexpr Argument tensors(std::string_view declaration, c10::ArrayRef<Argument> (*parts)(std::string_view first)) {
  return {.kind = Argument::Kind::kTensors, .declaration = declaration, .parts = parts};
}
/// The complementary basis that a solve returned, see solver/pair_states.h.
constexpr Argument basis() {
  return {.kind = Argument::Kind::kTensor, .declaration = "Tensor basis", .sizes = "n", .dtype = at::kChar};
}
/// check: throws c10::Error where the value is not allowed.
constexpr Argument flag(std::string_view declaration, void (*check)(std::string_view, const Value&) = nullptr) {
  return {.kind = Argument::Kind::kFlag, .declaration = declaration, .check = check};
}
constexpr Argument positional_flag(std::string_view declaration, void (*check)(std::string_view, const Value&)) {
  Argument argument = flag(declaration, check);
  argument.is_positional = true;
  return argument;
}
/// A whole number, the size that a letter names.
constexpr Argument size_flag(std::string_view declaration, Sizes letter) {
  return {.kind = Argument::Kind::kFlag, .declaration = declaration, .sizes = letter};
}
constexpr Argument shape_of_result(std::string_view declaration) {
  return {.kind = Argument::Kind::kShapeOfResult, .declaration = declaration};
}

// Checks of flags: a finite number; a finite number > 0; a finite number >= 0; a whole number >= 0. None is allowed.
void check_finite(std::string_view name, const Value& value);
void check_positive(std::string_view name, const Value& value);
void check_nonnegative(std::string_view name, const Value& value);
void check_count(std::string_view name, const Value& value);

struct Result {
  std::string_view name;
  Sizes sizes = {};
  at::ScalarType dtype = at::kFloat;  ///< at::kFloat: the dtype of the first argument
  bool steps_first = false;           ///< whether in memory the steps, the first of `sizes`, are before the batch
};

// A result of each step. In memory the steps are before the batch, so that a walk through time writes one step behind
// another.
constexpr Result of_each_step(std::string_view name, Sizes sizes, at::ScalarType dtype = at::kFloat) {
  return {name, sizes, dtype, true};
}

class Call;

class Operator {
 public:
  static constexpr std::size_t kMost = 48;

  enum class Kind {
    kDifferentiable,     ///< a kernel for each backend, and derivatives in autograd.cpp
    kNotDifferentiable,  ///< a kernel for each backend
    kComposite           ///< made of other operators
  };

  constexpr Operator(std::string_view name, Kind kind, std::initializer_list<Argument> arguments,
                     std::initializer_list<Result> results, void (*check_call)(const Call& call) = nullptr)
      : Operator(name, kind, arguments, check_call) {
    for (const Result& result : results) results_[result_count_++] = result;
  }

  /// An operator that returns a list of tensors. listed_results: their descriptions, for a call whose first argument is
  /// this string.
  constexpr Operator(std::string_view name, Kind kind, std::initializer_list<Argument> arguments,
                     c10::ArrayRef<Result> (*listed_results)(std::string_view first),
                     void (*check_call)(const Call& call))
      : Operator(name, kind, arguments, check_call) {
    listed_results_ = listed_results;
  }

  constexpr std::string_view name() const { return name_; }
  constexpr Kind kind() const { return kind_; }
  /// Whether users call it; other operators' names begin with an underscore.
  constexpr bool is_public() const { return name_.front() != '_'; }
  c10::ArrayRef<Argument> arguments() const { return {arguments_.data(), argument_count_}; }
  /// The places of the single tensors among the arguments, square matrices first: the messages on other tensors then
  /// say which matrix a size was read from.
  c10::ArrayRef<int> tensors() const { return {tensors_.data(), tensor_count_}; }
  /// Whether it returns a list of tensors.
  constexpr bool returns_list() const { return listed_results_ != nullptr; }
  /// first: the first argument of a call, if it is a string.
  c10::ArrayRef<Result> results(std::string_view first = {}) const {
    return returns_list() ? listed_results_(first) : c10::ArrayRef<Result>(results_.data(), result_count_);
  }
  /// The place of the argument that is the shape of every result, if there is one.
  constexpr std::optional<int> shape_of_result() const { return shape_of_result_; }
  /// Checks conditions on several arguments; may be nullptr.
  constexpr auto check() const { return check_; }

  std::string schema() const;

 private:
  constexpr Operator(std::string_view name, Kind kind, std::initializer_list<Argument> arguments,
                     void (*check_call)(const Call& call))
      : name_(name), kind_(kind), check_(check_call) {
    for (const Argument& argument : arguments) {
      if (argument.kind == Argument::Kind::kShapeOfResult) shape_of_result_ = static_cast<int>(argument_count_);
      arguments_[argument_count_++] = argument;
    }
    for (const bool square : {true, false}) {
      for (std::size_t k = 0; k < argument_count_; ++k) {
        const Argument& argument = arguments_[k];
        const bool is_tensor = argument.kind == Argument::Kind::kTensor;
        if (is_tensor && argument.sizes.is_square() == square) tensors_[tensor_count_++] = static_cast<int>(k);
      }
    }
  }

  std::string_view name_;
  Kind kind_;
  std::array<Argument, kMost> arguments_ = {};
  std::array<int, kMost> tensors_ = {};
  std::array<Result, kMost> results_ = {};
  std::size_t argument_count_ = 0, tensor_count_ = 0, result_count_ = 0;
  std::optional<int> shape_of_result_;
  c10::ArrayRef<Result> (*listed_results_)(std::string_view) = nullptr;
  void (*check_)(const Call&);
};

/// One checked call of an operator. All tensors are dense, of one device and of the dtypes in the table, and their
/// shapes agree. Their batch dimensions broadcast, and every flag is allowed.
class Call {
 public:
  /// values: the values of all arguments in order. Throws c10::Error, which names the argument, the condition and the
  /// received value.
  Call(const Operator& op, c10::ArrayRef<Value> values);

  const c10::SymDimVector& batch() const { return batch_; }
  /// The size that `letter` names.
  const c10::SymInt& size(char letter) const;
  const Value& value(std::string_view name) const;
  c10::ArrayRef<Argument> arguments() const { return op_.arguments(); }
  /// The first argument, if it is a string.
  std::string_view text() const;
  /// The first tensor.
  const Tensor& first() const { return *first_.tensor; }
  /// The descriptions of the results.
  c10::ArrayRef<Result> results() const { return op_.results(text()); }

  /// The shape [batch..., sizes].
  c10::SymDimVector shape(const Sizes& sizes) const;
  c10::SymDimVector shape(const Result& result) const;
  at::TensorOptions options(const Result& result) const;
  /// The result, without values.
  Tensor empty(const Result& result) const;

 private:
  struct Known {
    char letter;
    std::string_view from;  ///< the argument that it was read from
    c10::SymInt size;
  };

  struct Given {
    const Argument* argument;
    const Tensor* tensor;
  };

  void list_tensors();
  const Known* find(char letter) const;
  void check_sizes(const Argument& argument, const Tensor& x);
  void check_dtype(const Argument& argument, const Tensor& x) const;
  void broadcast(const Argument& argument, const Tensor& x);

  const Operator& op_;
  c10::ArrayRef<Value> values_;
  c10::SmallVector<Given, 8> tensors_;  // the tensors in the order in which they are checked
  Given first_ = {};                    // the first tensor of all arguments
  c10::SmallVector<Known, 3> known_;
  c10::SymDimVector batch_;
};

/// Throws where x is sparse. Otherwise the dispatcher would throw, with a message that does not name the argument.
void check_layout(std::string_view name, const Tensor& x);

/// Checks the arguments of a boxed call, the tensors' values aside, and calls use(call).
void with_boxed_call(const Operator& op, c10::ArrayRef<c10::IValue> arguments,
                     const std::function<void(const Call&)>& use);

inline Value value_of(const Tensor& x) { return &x; }
inline Value value_of(const std::optional<Tensor>& x) { return x ? Value(&*x) : Value(); }
inline Value value_of(bool x) { return x; }
inline Value value_of(std::int64_t x) { return x; }
inline Value value_of(double x) { return x; }
inline Value value_of(std::string_view x) { return x; }
inline Value value_of(c10::SymIntArrayRef x) { return x; }
inline Value value_of(at::TensorList x) { return x; }
inline Value value_of(c10::OptionalArrayRef<c10::SymInt> x) { return x ? Value(*x) : Value(); }
template <class T>
Value value_of(const std::optional<T>& x) {
  return x ? Value(*x) : Value();
}

/// Checks the arguments of an operator and calls use(call).
template <class Use, class... Arguments>
auto with_call(const Operator& op, const Use& use, const Arguments&... arguments) {
  const std::array<Value, sizeof...(Arguments)> values = {value_of(arguments)...};
  return use(Call(op, values));
}

template <class... Arguments>
void check(const Operator& op, const Arguments&... arguments) {
  with_call(
      op, [](const Call&) {}, arguments...);
}

/// Checks the arguments of an operator and makes its results, without values.
template <std::size_t count, class... Arguments>
std::array<Tensor, count> new_results(const Operator& op, const Arguments&... arguments) {
  return with_call(
      op,
      [&op](const Call& call) {
        std::array<Tensor, count> results;
        for (std::size_t k = 0; k < count; ++k) results[k] = call.empty(op.results()[k]);
        return results;
      },
      arguments...);
}

/// Like new_results, for an operator that returns a list.
template <class... Arguments>
std::vector<Tensor> new_list(const Operator& op, const Arguments&... arguments) {
  return with_call(
      op,
      [](const Call& call) {
        std::vector<Tensor> results;
        for (const Result& result : call.results()) results.push_back(call.empty(result));
        return results;
      },
      arguments...);
}

template <std::size_t>
using IndexedTensor = Tensor;
template <class Indices>
struct TensorTuple;
template <std::size_t... k>
struct TensorTuple<std::index_sequence<k...>> {
  using type = std::tuple<IndexedTensor<k>...>;
};
/// The type in which the dispatcher returns the results of an operator with several.
template <std::size_t count>
using Tensors = typename TensorTuple<std::make_index_sequence<count>>::type;

template <std::size_t count>
Tensors<count> as_tuple(std::array<Tensor, count>&& tensors) {
  return std::apply([](auto&... x) { return Tensors<count>(std::move(x)...); }, tensors);
}

// Handles to the operators: `call` goes through the whole dispatcher, `redispatch` to the keys that are left.
template <class Signature>
using Handle = c10::TypedOperatorHandle<Signature>;

/// The handle of an operator, found once.
template <class Signature, const Operator& op>
const Handle<Signature>& handle() {
  static const Handle<Signature> found = c10::Dispatcher::singleton()
                                             .findSchemaOrThrow(std::string("lcp::").append(op.name()).c_str(), "")
                                             .typed<Signature>();
  return found;
}

}  // namespace lcp::ops
