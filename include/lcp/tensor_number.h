// Tensors as the numbers of a formula, one number for each element of a batch.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/acos.h>
#include <ATen/ops/asin.h>
#include <ATen/ops/atan.h>
#include <ATen/ops/atan2.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/log.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/tan.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/where.h>

#include <cmath>
#include <type_traits>
#include <utility>

namespace lcp {

/// Whether a comparison holds, for each element of a batch.
class TensorCondition {
 public:
  TensorCondition(bool value) : value_(value) {}  // NOLINT(google-explicit-constructor)
  TensorCondition(at::Tensor mask, const at::Tensor& numbers) : mask_(std::move(mask)), options_(numbers.options()) {}

  bool is_constant() const { return !mask_.defined(); }
  const at::Tensor& mask() const { return mask_; }
  const at::TensorOptions& options() const { return options_; }

  /// Throws c10::Error unless the condition is the same for all elements, whatever their numbers are.
  explicit operator bool() const {
    TORCH_CHECK(is_constant(),
                "a step that branches on its numbers has no derivatives of higher order: "
                "write lcp::where(condition, a, b) in place of if and ?:");
    return value_;
  }

 private:
  bool value_ = false;
  at::Tensor mask_;
  at::TensorOptions options_;
};

/// A number for each element of a batch, or a constant. Sums with the constant 0 and products with the constants 0 and
/// 1 take no operation, so that derivatives that vanish cost nothing.
class TensorNumber {
 public:
  TensorNumber() = default;
  template <class Number>
  requires std::is_arithmetic_v<Number> TensorNumber(Number constant)
      : constant_(constant) {}                                        // NOLINT(google-explicit-constructor)
  TensorNumber(at::Tensor numbers) : numbers_(std::move(numbers)) {}  // NOLINT(google-explicit-constructor)

  bool is_constant() const { return !numbers_.defined(); }
  bool is(double constant) const { return is_constant() && constant_ == constant; }
  double constant() const { return constant_; }
  /// The numbers; undefined for a constant.
  const at::Tensor& numbers() const { return numbers_; }
  /// The numbers, or a tensor [] of these options that holds the constant.
  at::Tensor tensor(const at::TensorOptions& options) const {
    return is_constant() ? at::scalar_tensor(constant_, options) : numbers_;
  }

  friend TensorNumber operator-(const TensorNumber& a) {
    return a.image([](const auto& x) { return -x; });
  }
  friend TensorNumber operator+(const TensorNumber& a, const TensorNumber& b) {
    if (a.is(0)) return b;
    if (b.is(0)) return a;
    return combine<TensorNumber>(a, b, [](const auto& x, const auto& y) { return x + y; });
  }
  friend TensorNumber operator-(const TensorNumber& a, const TensorNumber& b) {
    if (a.is(0)) return -b;
    if (b.is(0)) return a;
    return combine<TensorNumber>(a, b, [](const auto& x, const auto& y) { return x - y; });
  }
  friend TensorNumber operator*(const TensorNumber& a, const TensorNumber& b) {
    if (a.is(0) || b.is(1)) return a;
    if (b.is(0) || a.is(1)) return b;
    return combine<TensorNumber>(a, b, [](const auto& x, const auto& y) { return x * y; });
  }
  friend TensorNumber operator/(const TensorNumber& a, const TensorNumber& b) {
    if (a.is(0) || b.is(1)) return a;
    return combine<TensorNumber>(a, b, [](const auto& x, const auto& y) { return x / y; });
  }
  TensorNumber& operator+=(const TensorNumber& other) { return *this = *this + other; }
  TensorNumber& operator-=(const TensorNumber& other) { return *this = *this - other; }
  TensorNumber& operator*=(const TensorNumber& other) { return *this = *this * other; }
  TensorNumber& operator/=(const TensorNumber& other) { return *this = *this / other; }

  friend TensorCondition operator<(const TensorNumber& a, const TensorNumber& b) {
    return combine<TensorCondition>(a, b, [](const auto& x, const auto& y) { return x < y; });
  }
  friend TensorCondition operator>(const TensorNumber& a, const TensorNumber& b) { return b < a; }
  friend TensorCondition operator<=(const TensorNumber& a, const TensorNumber& b) {
    return combine<TensorCondition>(a, b, [](const auto& x, const auto& y) { return x <= y; });
  }
  friend TensorCondition operator>=(const TensorNumber& a, const TensorNumber& b) { return b <= a; }

  /// f(x), for a function of numbers and of tensors.
  template <class F>
  TensorNumber image(const F& f) const {
    return is_constant() ? TensorNumber(f(constant_)) : TensorNumber(f(numbers_));
  }

 private:
  // A constant enters an operation as a scalar, which keeps the dtype of the other operand.
  template <class Result, class F>
  static Result combine(const TensorNumber& a, const TensorNumber& b, const F& f) {
    const auto made = [](at::Tensor found, const at::Tensor& like) {
      if constexpr (std::is_same_v<Result, TensorCondition>) {
        return Result(std::move(found), like);
      } else {
        return Result(std::move(found));
      }
    };
    if (a.is_constant() && b.is_constant()) return Result(f(a.constant_, b.constant_));
    if (a.is_constant()) return made(f(at::Scalar(a.constant_), b.numbers_), b.numbers_);
    if (b.is_constant()) return made(f(a.numbers_, at::Scalar(b.constant_)), a.numbers_);
    return made(f(a.numbers_, b.numbers_), a.numbers_);
  }

  double constant_ = 0;
  at::Tensor numbers_;
};

/// `a` where the condition holds, else `b`.
inline TensorNumber where(const TensorCondition& condition, const TensorNumber& a, const TensorNumber& b) {
  if (condition.is_constant()) return static_cast<bool>(condition) ? a : b;
  if (a.is_constant() && b.is(a.constant())) return a;
  return at::where(condition.mask(), a.tensor(condition.options()), b.tensor(condition.options()));
}

inline TensorNumber sqrt(const TensorNumber& x) {
  using std::sqrt;
  return x.image([](const auto& number) { return sqrt(number); });
}
inline TensorNumber exp(const TensorNumber& x) {
  using std::exp;
  return x.image([](const auto& number) { return exp(number); });
}
inline TensorNumber log(const TensorNumber& x) {
  using std::log;
  return x.image([](const auto& number) { return log(number); });
}
inline TensorNumber sin(const TensorNumber& x) {
  using std::sin;
  return x.image([](const auto& number) { return sin(number); });
}
inline TensorNumber cos(const TensorNumber& x) {
  using std::cos;
  return x.image([](const auto& number) { return cos(number); });
}
inline TensorNumber tan(const TensorNumber& x) {
  using std::tan;
  return x.image([](const auto& number) { return tan(number); });
}
inline TensorNumber asin(const TensorNumber& x) {
  using std::asin;
  return x.image([](const auto& number) { return asin(number); });
}
inline TensorNumber acos(const TensorNumber& x) {
  using std::acos;
  return x.image([](const auto& number) { return acos(number); });
}
inline TensorNumber atan(const TensorNumber& x) {
  using std::atan;
  return x.image([](const auto& number) { return atan(number); });
}
inline TensorNumber tanh(const TensorNumber& x) {
  using std::tanh;
  return x.image([](const auto& number) { return tanh(number); });
}
inline TensorNumber abs(const TensorNumber& x) {
  using std::abs;
  return x.image([](const auto& number) { return abs(number); });
}
inline TensorNumber pow(const TensorNumber& x, double exponent) {
  using std::pow;
  return x.image([exponent](const auto& number) { return pow(number, exponent); });
}
inline TensorNumber atan2(const TensorNumber& y, const TensorNumber& x) {
  if (y.is_constant() && x.is_constant()) return std::atan2(y.constant(), x.constant());
  const at::Tensor& like = y.is_constant() ? x.numbers() : y.numbers();
  return at::atan2(y.tensor(like.options()), x.tensor(like.options()));
}

}  // namespace lcp
