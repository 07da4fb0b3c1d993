// A registered step, see step.h, as the library calls it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/TensorBody.h>
#include <ATen/ops/broadcast_tensors.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "lcp/detail/step_formulas.h"
#include "lcp/dual.h"
#include "lcp/export.h"
#include "lcp/tensor_number.h"

namespace lcp {

/// The names of the numbers of a step.
struct StepNames {
  std::vector<std::string> parameters, states, inputs, pairs;
};

namespace detail {

/// The formulas of a step, with numbers and with tensors.
class RegisteredStep : public StepFormulas {
 public:
  using StepFormulas::StepFormulas;

  virtual StepNames names() const = 0;
  virtual const std::type_info& type() const = 0;

  /// M [..., n, n] and q [..., n], from the tensors [...] of the parameters, the state and the input.
  virtual std::pair<at::Tensor, at::Tensor> problem_of(const std::vector<at::Tensor>& start) const = 0;
  /// The next state, [..., k], from these tensors and the tensors of z and w.
  virtual at::Tensor next_of(const std::vector<at::Tensor>& given) const = 0;
};

template <class Step>
class RegisteredStepOf final : public RegisteredStep {
  static constexpr int kParameters = std::size(Step::kParameters), kStates = std::size(Step::kStates),
                       kInputs = std::size(Step::kInputs), kPairs = std::size(Step::kPairs);
  static constexpr int kStarts = kParameters + kStates + kInputs, kGiven = kStarts + 2 * kPairs;
  // The number of directions in which a gradient is found at a time: two vectors of four numbers.
  static constexpr int kChunk = 8;

 public:
  RegisteredStepOf() : RegisteredStep({kParameters, kStates, kInputs, kPairs}) {}

  StepNames names() const override {
    const auto all = [](const auto& names) { return std::vector<std::string>(names.begin(), names.end()); };
    return {all(Step::kParameters), all(Step::kStates), all(Step::kInputs), all(Step::kPairs)};
  }

  const std::type_info& type() const override { return typeid(Step); }

  void value(Function function, const double* given, double* out) const override {
    evaluate<double>(
        function, [given](int k) { return given[k]; }, [out](int i, const double& y) { out[i] = y; });
  }

  void push(Function function, const double* given, const double* change, double* out) const override {
    using R = Dual<double, 1>;
    const auto number = [&](int k) {
      R x = given[k];
      x.change[0] = change[k];
      return x;
    };
    evaluate<R>(function, number, [out](int i, const R& y) { out[i] = y.change[0]; });
  }

  void pull(Function function, const double* given, const double* g, double* out) const override {
    using R = Dual<double, kChunk>;
    const int count = function == Function::kPairs ? kStarts : kGiven;
    for (int first = 0; first < count; first += kChunk) {
      const auto number = [&](int k) {
        R x = given[k];
        if (k >= first && k < first + kChunk) x.change[k - first] = 1;
        return x;
      };
      const int end = std::min(kChunk, count - first);
      std::fill_n(out + first, end, 0.0);
      evaluate<R>(function, number, [&](int i, const R& y) {
        if (g[i] == 0) return;  // also where the derivative is infinite
        for (int k = 0; k < end; ++k) out[first + k] += g[i] * y.change[k];
      });
    }
  }

  void problem(const double* given, double* M, double* q) const override {
    using R = Dual<double, kPairs>;
    evaluate<R>(Function::kPairs, seeded<R>([given](int k) { return given[k]; }), [&](int i, const R& y) {
      q[i] = y.value;
      std::copy_n(y.change.begin(), kPairs, M + i * kPairs);
    });
  }

  std::pair<at::Tensor, at::Tensor> problem_of(const std::vector<at::Tensor>& start) const override {
    using R = Dual<TensorNumber, kPairs>;
    std::vector<TensorNumber> M, q;
    const auto number = [&](int k) { return k < kStarts ? TensorNumber(start[k]) : TensorNumber(0); };
    evaluate<R>(Function::kPairs, seeded<R>(number), [&](int, const R& y) {
      q.push_back(y.value);
      M.insert(M.end(), y.change.begin(), y.change.end());
    });
    return {joined(M, start).unflatten(-1, {kPairs, kPairs}), joined(q, start)};
  }

  at::Tensor next_of(const std::vector<at::Tensor>& given) const override {
    std::vector<TensorNumber> next;
    evaluate<TensorNumber>(
        Function::kNext, [&](int k) { return TensorNumber(given[k]); },
        [&](int, const TensorNumber& y) { next.push_back(y); });
    return joined(next, given);
  }

 private:
  // The given numbers, with z as the numbers that change.
  template <class R, class Number>
  static auto seeded(const Number& number) {
    return [number](int k) {
      R x = number(k);
      if (k >= kStarts && k < kStarts + kPairs) x.change[k - kStarts] = 1;
      return x;
    };
  }

  // The numbers, broadcast with the tensors `like` that they were computed from: [..., count].
  static at::Tensor joined(const std::vector<TensorNumber>& numbers, const std::vector<at::Tensor>& like) {
    std::vector<at::Tensor> all = like;
    for (const TensorNumber& number : numbers) all.push_back(number.tensor(like.front().options()));
    all = at::broadcast_tensors(all);
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(like.size()));
    return all.empty() ? like.front().new_empty({0}) : at::stack(all, -1);
  }

  // Calls use(i, value i). number(k): the given number k.
  template <class R, class Number, class Use>
  static void evaluate(Function function, const Number& number, const Use& use) {
    int k = 0;
    const auto take = [&](auto& to) {
      for (R& x : to) x = number(k++);
    };
    std::array<R, kParameters> parameters;
    std::array<R, kStates> state;
    std::array<R, kInputs> input;
    std::array<R, kPairs> z, w;
    take(parameters);
    take(state);
    take(input);
    take(z);
    const auto pass = [&use](const auto& values) {
      for (int i = 0; i < static_cast<int>(values.size()); ++i) use(i, values[i]);
    };
    if (function == Function::kPairs) {
      const std::array<R, kPairs> pairs = Step::template pairs<R>(parameters, state, input, z);
      pass(pairs);
    } else {
      take(w);
      const std::array<R, kStates> next = Step::template next<R>(parameters, state, input, z, w);
      pass(next);
    }
  }
};

LCP_API void register_step(std::string name, std::unique_ptr<const RegisteredStep> step);

}  // namespace detail

}  // namespace lcp
