// Reverse-mode nodes made of a formula, for the engine and for compiled autograd alike.
#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/dynamo/compiled_autograd.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace lcp::ops {

using torch::autograd::variable_list;
using Shape = std::vector<c10::SymInt>;
using Needs = std::vector<bool>;  ///< whether the gradient of each input of the operator is wanted

/// The Node whose gradients are formula(output gradients, needs, saved...). The formula must depend on nothing but its
/// arguments, since compiled autograd traces and calls it when the node is gone. `save` stores its arguments: tensors,
/// optional tensors, lists of tensors, shapes, bool, std::int64_t, double or std::string.
template <auto formula>
class FormulaNode;

template <class... Saved, variable_list (*formula)(const variable_list&, const Needs&, const Saved&...)>
class FormulaNode<formula> final : public torch::autograd::Node {
 public:
  explicit FormulaNode(std::string name) : name_(std::move(name)) {}

  /// Keeps the arguments of the formula. To be called when the outputs have their history.
  void save(const Saved&... values) { saved_ = {store(values)...}; }

  std::string name() const override { return name_; }

  void release_variables() override {
    const std::scoped_lock lock(mutex_);
    std::apply([](auto&... saved) { (release(saved), ...); }, saved_);
  }

  variable_list apply(variable_list&& gradients) override {
    const std::scoped_lock lock(mutex_);
    return std::apply([&](const auto&... saved) { return formula(gradients, needs(), load(saved)...); }, saved_);
  }

  void compiled_args(torch::dynamo::autograd::CompiledNodeArgs& arguments) const override {
    std::apply([&](const auto&... saved) { (collect(arguments, saved), ...); }, saved_);
  }

  variable_list apply_with_saved(const variable_list& gradients,
                                 torch::dynamo::autograd::SwapSavedVariables& proxies) override {
    using namespace torch::dynamo::autograd;
    const auto& python = getPyCompilerInterface();
    // Compiled autograd traces in one thread at a time.
    static std::map<std::string, std::string> functions;  // bound once for each operator that uses the formula
    std::string& function = functions[name_];
    if (function.empty()) {
      function = python->bind_function(proxies.get_py_compiler(), name_, call,
                                       {IValuePacker<Needs>::packed_type(), IValuePacker<Saved>::packed_type()...},
                                       /*is_custom_function=*/true);  // so that the graph shows the operator's name
    }
    return std::apply(
        [&](auto&... saved) {
          (proxies.before(saved), ...);
          auto result =
              python->call_function(proxies.get_py_compiler(), "apply_functional", function, gradients,
                                    {IValuePacker<Needs>::pack(needs()), IValuePacker<Saved>::pack(load(saved))...},
                                    IValuePacker<std::vector<std::optional<torch::autograd::InputMetadata>>>::pack(
                                        get_input_metadata(next_edges())));
          (proxies.after(saved), ...);
          return result;
        },
        saved_);
  }

 private:
  using SavedVariable = torch::autograd::SavedVariable;
  using MaybeTensor = std::optional<at::Tensor>;
  using TensorVector = std::vector<at::Tensor>;
  template <class T>
  using Stored = std::conditional_t<
      std::is_same_v<T, at::Tensor>, SavedVariable,
      std::conditional_t<std::is_same_v<T, MaybeTensor>, std::optional<SavedVariable>,
                         std::conditional_t<std::is_same_v<T, TensorVector>, std::vector<SavedVariable>, T>>>;

  SavedVariable store(const at::Tensor& x) { return SavedVariable(x, x.grad_fn().get() == this); }
  std::optional<SavedVariable> store(const MaybeTensor& x) {
    return x ? std::optional<SavedVariable>(store(*x)) : std::nullopt;
  }
  std::vector<SavedVariable> store(const TensorVector& list) {
    std::vector<SavedVariable> stored;
    stored.reserve(list.size());
    for (const at::Tensor& x : list) stored.push_back(store(x));
    return stored;
  }
  template <class T>
  const T& store(const T& x) {
    return x;
  }

  at::Tensor load(const SavedVariable& x) { return x.unpack(getptr()); }
  MaybeTensor load(const std::optional<SavedVariable>& x) { return x ? MaybeTensor(load(*x)) : std::nullopt; }
  TensorVector load(const std::vector<SavedVariable>& stored) {
    TensorVector list;
    list.reserve(stored.size());
    for (const SavedVariable& x : stored) list.push_back(load(x));
    return list;
  }
  template <class T>
  const T& load(const T& x) {
    return x;
  }

  static void release(SavedVariable& x) { x.reset_data(); }
  static void release(std::optional<SavedVariable>& x) {
    if (x) release(*x);
  }
  static void release(std::vector<SavedVariable>& list) {
    for (SavedVariable& x : list) release(x);
  }
  template <class T>
  static void release(T&) {}

  static void collect(torch::dynamo::autograd::CompiledNodeArgs& arguments, const SavedVariable& x) {
    arguments.collect(x, true);
  }
  static void collect(torch::dynamo::autograd::CompiledNodeArgs& arguments, const std::optional<SavedVariable>& x) {
    arguments.collect(x.has_value());
    if (x) collect(arguments, *x);
  }
  static void collect(torch::dynamo::autograd::CompiledNodeArgs& arguments, const std::vector<SavedVariable>& list) {
    for (const SavedVariable& x : list) collect(arguments, x);
  }
  template <class T>
  static void collect(torch::dynamo::autograd::CompiledNodeArgs& arguments, const T& x) {
    arguments.collect(x);
  }

  Needs needs() const {
    Needs result(num_outputs());
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = task_should_compute_output(i);
    return result;
  }

  static variable_list call(const variable_list& gradients, const std::vector<c10::IValue>& values) {
    torch::dynamo::autograd::PackedArgs arguments(values);
    auto needs = arguments.unpack<Needs>();
    std::tuple<Saved...> saved{arguments.unpack<Saved>()...};  // braces evaluate in order
    return std::apply([&](const auto&... x) { return formula(gradients, needs, x...); }, saved);
  }

  std::string name_;
  std::tuple<Stored<Saved>...> saved_;
};

}  // namespace lcp::ops
