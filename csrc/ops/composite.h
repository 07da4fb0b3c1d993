// Operators that are made of others, which modules of tensor code register beside the table of this folder.
//
// A schema has the names of its arguments from a text, and their types from the C++ function. A struct stands for its
// members, of which LCP_MEMBERS tells the names, so that most operators are the C++ function itself:
//
//   LCP_MEMBERS(Body, mass, dt)
//   LCP_MEMBERS(BodyStep, v_next, force)
//   LCP_ENUMERATORS(Formulation, "forward", "direct")
//   define<Tensor, Tensor, Body, Formulation, SolveOptions>(
//       library, "_simulate_body(v, u, parameters[], *, formulation, options=)", LCP_CALL(simulate));
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/jit_type.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "lcp/feedback.h"
#include "lcp/solve.h"
#include "ops/registration.h"

/// Names the members of a struct in a schema, in their order, where they need not have the names of C++. A member that
/// is a struct stands for its own members; a name that begins with an underscore is added to theirs. It is written in
/// the namespace of the struct.
#define LCP_MEMBERS(Struct, ...)                               \
  LCP_MEMBERS_BY(Struct, #__VA_ARGS__, [](auto& all_members) { \
    auto& [__VA_ARGS__] = all_members;                         \
    return std::tie(__VA_ARGS__);                              \
  })
/// The same of some of the members, by a text of their names and a function that returns references to them.
#define LCP_MEMBERS_BY(Struct, names, ...) \
  constexpr auto in_schema(Struct* /*type*/) { return ::lcp::ops::Members{names, __VA_ARGS__}; }
/// Names all enumerators of an enum in their order. An argument of its type is a string.
#define LCP_ENUMERATORS(Enum, ...) \
  constexpr auto in_schema(Enum* /*type*/) { return std::array{__VA_ARGS__}; }
/// An overloaded function, of which `define` is told the types of the arguments.
#define LCP_CALL(function) [](const auto&... x) { return function(x...); }

namespace lcp {
namespace ops {

/// x without the wrappers of tensors that torch.func differentiates.
at::Tensor without_wrappers(at::Tensor x);

template <class Access>
struct Members {
  const char* names;
  Access access;
};

}  // namespace ops

LCP_MEMBERS_BY(SolveOptions, "method, ties, kappa, tolerance, max_pivots",
               [](auto& x) { return std::tie(x.method, x.ties, x.kappa, x.tolerance, x.max_pivots); })

namespace ops {

constexpr std::nullptr_t in_schema(const void* /*other*/) { return nullptr; }
template <class A, class B>
constexpr auto in_schema(std::pair<A, B>* /*type*/) {
  return Members{"first, second", [](auto& x) { return std::tie(x.first, x.second); }};
}

template <class State>
constexpr auto in_schema(Feedback<State>* /*type*/) {
  return Members{std::is_same_v<State, at::Tensor> ? "K, reference" : "K, _reference",
                 [](auto& x) { return std::tie(x.K, x.reference); }};
}

/// What LCP_MEMBERS or LCP_ENUMERATORS say of a type.
template <class T>
inline constexpr auto kInSchema = in_schema(static_cast<T*>(nullptr));
template <class T>
inline constexpr bool kIsNamed = !std::is_same_v<decltype(kInSchema<T>), const std::nullptr_t>;
template <class T>
inline constexpr bool kIsStruct = std::is_class_v<T>&& kIsNamed<T>;
template <class T>
inline constexpr bool kIsEnum = std::is_enum_v<T>&& kIsNamed<T>;
template <class T>
inline constexpr bool kIsOptionalStruct = false;
template <class T>
inline constexpr bool kIsOptionalStruct<std::optional<T>> = kIsStruct<T>;

/// The enumerator called `name`. Throws c10::Error with the name of the option where there is none.
template <class Enum>
Enum enumerator_named(std::string_view option, std::string_view name) {
  constexpr const auto& kAll = kInSchema<Enum>;
  std::string all;
  for (std::size_t k = 0; k < kAll.size(); ++k) {
    if (name == kAll[k]) return static_cast<Enum>(k);
    all += std::string(k == 0 ? "" : k + 1 < kAll.size() ? ", " : " or ") + kAll[k];
  }
  TORCH_CHECK(false, option, " must be ", all, "; got ", name);
}

/// use(member) for each member of a struct in its order.
template <class T, class Use>
void each_member(T& x, const Use& use) {
  std::apply([&](auto&... member) { (use(member), ...); }, kInSchema<T>.access(x));
}

/// The members of a struct as a tuple.
template <class T>
auto values_of(T x) {
  return std::apply([](auto&... member) { return std::tuple(member...); }, kInSchema<T>.access(x));
}

/// Writes a schema from the text of `define`.
class SchemaWriter {
 public:
  explicit SchemaWriter(std::string_view text);

  /// Adds the next argument of the text, whose type is T.
  template <class T>
  void add_argument() {
    declare<T>(next_name(), T(), arguments_);
  }

  /// The schema, once all arguments are added, of an operator that returns R.
  template <class R>
  std::string schema() {
    if constexpr (std::is_void_v<R>) {
      return schema("()");
    } else if constexpr (kIsStruct<R>) {
      std::vector<std::string> results;
      declare<R>(result_names_, R(), results);
      return schema(in_parentheses(results));
    } else {
      return schema(type_of<R>());
    }
  }

 private:
  template <class T>
  static std::string type_of() {
    if constexpr (kIsEnum<T> || std::is_base_of_v<std::string, T>) {
      return "str";
    } else if constexpr (std::is_same_v<T, at::ScalarType>) {
      return "ScalarType";  // of which PyTorch says that it is an int
    } else {
      return c10::getFakeTypePtrCopy<T>()->str();
    }
  }

  template <class T>
  static std::string default_of(const T& x) {
    if constexpr (std::is_base_of_v<std::string, T>) {
      return "=\"" + x + '"';
    } else if constexpr (std::is_same_v<T, bool>) {
      return x ? "=True" : "=False";
    } else if constexpr (std::is_arithmetic_v<T>) {
      return c10::str("=", x);
    } else {
      return std::is_same_v<T, at::Tensor> ? "?=None" : "=None";
    }
  }

  /// Adds an argument or result, or the members of a struct. `x` has the defaults.
  template <class T>
  void declare(const std::string& name, T x, std::vector<std::string>& all) {
    if constexpr (kIsStruct<T>) {
      if (name.ends_with("[]")) {
        all.push_back("Tensor[] " + name.substr(0, name.size() - 2));
        declare_numbers(x);
        return;
      }
      const std::vector<std::string> names = member_names(name, kInSchema<T>.names);
      auto next = names.begin();
      each_member(x, [&]<class M>(M& member) {
        const bool has_default = name.ends_with('=') && !kIsStruct<M>;
        declare<M>(has_default ? *next + default_of(member) : *next, member, all);
        ++next;
      });
    } else if constexpr (kIsOptionalStruct<T>) {
      typename T::value_type members{};
      const std::vector<std::string> names = member_names(name, kInSchema<typename T::value_type>.names);
      auto next = names.begin();
      each_member(members, [&]<class M>(M& member) { declare<M>(*next++ + "?=None", member, all); });
    } else {
      all.push_back(declaration(type_of<T>(), name));
    }
  }

  /// Collects the numbers of a struct whose tensors are a list.
  template <class T>
  void declare_numbers(T& x) {
    const std::vector<std::string> names = member_names("", kInSchema<T>.names);
    auto next = names.begin();
    each_member(x, [&]<class M>(M& member) {
      if constexpr (kIsStruct<M>) {
        declare_numbers(member);
      } else if constexpr (!std::is_same_v<M, at::Tensor>) {
        declare<M>(*next, member, numbers_);
      }
      ++next;
    });
  }

  /// The names of the members of an argument or result: those in the parentheses of its own name, if it has any.
  static std::vector<std::string> member_names(const std::string& name, std::string_view names);
  static std::string declaration(const std::string& type, const std::string& name);
  static std::string in_parentheses(const std::vector<std::string>& parts);

  /// Adds the star, and the numbers behind it, where the text has it next.
  void take_star();
  std::string next_name();
  std::string schema(const std::string& result);

  std::string name_, result_names_;
  std::vector<std::string> names_, arguments_, numbers_;
  std::size_t next_ = 0;
};

/// The struct whose tensors are this list. set_number(member) sets its numbers. Throws c10::Error, with the name of the
/// argument, where the list has another size.
template <class T, class Set>
T from_list(const std::string& name, at::TensorList list, const Set& set_number) {
  T x{};
  std::size_t count = 0;
  const auto assign = [&](const auto& self, auto& member) -> void {
    using Member = std::remove_reference_t<decltype(member)>;
    if constexpr (kIsStruct<Member>) {
      each_member(member, [&](auto& inner) { self(self, inner); });
    } else if constexpr (std::is_same_v<Member, at::Tensor>) {
      if (count < list.size()) member = list[count];
      ++count;
    } else {
      set_number(member);
    }
  };
  assign(assign, x);
  TORCH_CHECK(list.size() == count, name, " must be ", count, " tensors; got ", list.size());
  return x;
}

template <class T>
T from_list(const std::string& name, at::TensorList list) {
  return from_list<T>(name, list, [](auto&) {});
}

/// Reads the arguments of a call one after another.
class ArgumentReader {
 public:
  ArgumentReader(const c10::FunctionSchema& schema, const torch::jit::Stack& stack);

  template <class T>
  T read() {
    if constexpr (kIsStruct<T>) {
      T x{};
      if (values_[next_].isTensorList()) {
        x = from_list<T>(name(), values_[next_].toTensorVector(), [&]<class Number>(Number& number) {
          number = converted<Number>(values_[first_keyword_ + numbers_++]);
        });
        advance();
      } else {
        each_member(x, [&]<class M>(M& member) { member = read<M>(); });
      }
      return x;
    } else if constexpr (kIsOptionalStruct<T>) {
      const std::size_t first = next_;
      T x = read<typename T::value_type>();
      const bool is_given = !values_[first].isNone();
      for (std::size_t k = first; k < next_; ++k) {
        TORCH_CHECK(values_[k].isNone() != is_given, schema_.arguments()[first].name(), " and ",
                    schema_.arguments()[k].name(), " must both be given, or neither");
      }
      return is_given ? x : T();
    } else {
      T x = converted<T>(values_[next_]);
      advance();
      return x;
    }
  }

 private:
  template <class T>
  T converted(const c10::IValue& value) const {
    if constexpr (kIsEnum<T>) {
      return enumerator_named<T>(name(), value.toStringRef());
    } else if constexpr (std::is_base_of_v<std::string, T>) {
      return T(value.toStringRef());
    } else if constexpr (std::is_same_v<T, at::Tensor> || std::is_same_v<T, at::Generator>) {
      return value.isNone() ? T() : value.to<T>();
    } else {
      return value.to<T>();
    }
  }

  void advance() {
    if (++next_ == first_keyword_) next_ += numbers_;
  }
  const std::string& name() const { return schema_.arguments()[next_].name(); }

  const c10::FunctionSchema& schema_;
  at::ArrayRef<c10::IValue> values_;
  std::size_t first_keyword_, next_ = 0, numbers_ = 0;
};

template <class T>
void push_result(torch::jit::Stack& stack, T& x) {
  if constexpr (kIsStruct<T>) {
    each_member(x, [&](auto& member) { push_result(stack, member); });
  } else {
    stack.emplace_back(std::move(x));
  }
}

/// A function as the dispatcher calls it, where P are the types of its arguments.
template <class Function, class... P>
struct Boxed {
  using Result = std::invoke_result_t<Function, const P&...>;

  static std::string schema(std::string_view text) {
    SchemaWriter writer(text);
    (writer.add_argument<P>(), ...);
    return writer.schema<Result>();
  }

  static void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    ArgumentReader reader(op.schema(), *stack);
    const std::tuple<P...> arguments{reader.read<P>()...};
    torch::jit::drop(*stack, op.schema().arguments().size());
    if constexpr (std::is_void_v<Result>) {
      std::apply(Function(), arguments);
    } else {
      Result result = std::apply(Function(), arguments);
      push_result(*stack, result);
    }
  }

  static torch::CppFunction function() { return torch::CppFunction::makeFromBoxedFunction<&call>(); }
};

/// The same, with the types of the arguments from the signature where they are not given.
template <class Function, class R, class... P>
Boxed<Function, std::remove_cvref_t<P>...> by_signature(R (Function::* /*function*/)(P...) const) {
  return {};
}
template <class Function, class... P>
auto boxed() {
  if constexpr (sizeof...(P) > 0) {
    return Boxed<Function, P...>();
  } else {
    return by_signature(&Function::operator());
  }
}

/// A function that is not overloaded, as an object.
template <auto function, class Pointer = decltype(function)>
struct FunctionObject;
template <auto function, class R, class... P>
struct FunctionObject<function, R (*)(P...)> {
  R operator()(const std::remove_cvref_t<P>&... x) const { return function(x...); }
};

/// Registers an operator without a kernel of its own, also for torch.vmap.
///   P: the types of the arguments. They may be left out where `function` has one signature.
///   text: the name, the arguments and, where they have other names than the members of a struct, the results, such as
///       "_name(a, b?, c[], *, d=1.0, e=) -> (f, g)". A struct stands for its members, with = with the defaults that
///       they have in C++. With [] it is the list of the tensors in it, and its numbers are the first keywords. The
///       members of a std::optional struct are None by default. A tensor with ? is undefined where the operator is
///       given None.
///   function: a lambda that captures nothing.
template <class... P, class Function>
void define(torch::Library& library, std::string_view text, const Function& /*function*/) {
  using Kernel = decltype(boxed<Function, P...>());
  const std::string schema = Kernel::schema(text);
  library.def(schema.c_str(), Kernel::function(), {at::Tag::pt2_compliant_tag});
  library.impl(schema.substr(0, schema.find('(')).c_str(),
               torch::dispatch(c10::DispatchKey::FuncTorchBatchedDecomposition, Kernel::function()));
}

template <auto function>
void define(torch::Library& library, std::string_view text) {
  define(library, text, FunctionObject<function>());
}

/// Registers an operator that torch.func does not transform, such as one whose results are numbers.
template <class... P, class Function>
void define_plain(torch::Library& library, std::string_view text, const Function& /*function*/) {
  using Kernel = decltype(boxed<Function, P...>());
  library.def(Kernel::schema(text).c_str(), Kernel::function());
}

template <auto function>
void define_plain(torch::Library& library, std::string_view text) {
  define_plain(library, text, FunctionObject<function>());
}

}  // namespace ops
}  // namespace lcp
