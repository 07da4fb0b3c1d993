// Dual numbers, which carry derivatives through formulas in forward mode, and the functions that formulas may use.
//
// A formula that is to be differentiated is a template over the type R of its numbers. It uses + - * /, comparisons,
// the functions of this header, and `where` in place of branches on numbers: lcp::sqrt(x), lcp::where(x > 0, x, 0).
//
//   [GW] Griewank, Walther: Evaluating Derivatives, 2nd ed., SIAM, 2008, sec. 3.1.
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <type_traits>

namespace lcp {

/// A number and its derivatives in `size` directions. Base: the type of the value, such as double.
template <class Base, int size>
struct Dual {
  Base value = 0;
  std::array<Base, size> change = {};

  Dual() = default;
  /// A constant: its derivatives are 0.
  template <std::convertible_to<Base> Number>
  Dual(const Number& constant) : value(constant) {}  // NOLINT(google-explicit-constructor)

  /// f(x) for the number x, given f(x) and f'(x).
  Dual image(const Base& result, const Base& slope) const {
    Dual y = result;
    for (int k = 0; k < size; ++k) y.change[k] = slope * change[k];
    return y;
  }
  /// f(a, b), given its value and its derivatives in a and in b.
  static Dual image(const Base& result, const Dual& a, const Base& by_a, const Dual& b, const Base& by_b) {
    Dual y = result;
    for (int k = 0; k < size; ++k) y.change[k] = by_a * a.change[k] + by_b * b.change[k];
    return y;
  }

  friend Dual operator-(const Dual& a) { return a.image(-a.value, -1); }
  friend Dual operator+(const Dual& a, const Dual& b) {
    Dual y = a.value + b.value;
    for (int k = 0; k < size; ++k) y.change[k] = a.change[k] + b.change[k];
    return y;
  }
  friend Dual operator-(const Dual& a, const Dual& b) {
    Dual y = a.value - b.value;
    for (int k = 0; k < size; ++k) y.change[k] = a.change[k] - b.change[k];
    return y;
  }
  friend Dual operator*(const Dual& a, const Dual& b) { return image(a.value * b.value, a, b.value, b, a.value); }
  friend Dual operator/(const Dual& a, const Dual& b) {
    const Base inverse = 1 / b.value, ratio = a.value * inverse;
    return image(a.value / b.value, a, inverse, b, -(ratio * inverse));
  }
  Dual& operator+=(const Dual& other) { return *this = *this + other; }
  Dual& operator-=(const Dual& other) { return *this = *this - other; }
  Dual& operator*=(const Dual& other) { return *this = *this * other; }
  Dual& operator/=(const Dual& other) { return *this = *this / other; }

  friend auto operator<(const Dual& a, const Dual& b) { return a.value < b.value; }
  friend auto operator>(const Dual& a, const Dual& b) { return a.value > b.value; }
  friend auto operator<=(const Dual& a, const Dual& b) { return a.value <= b.value; }
  friend auto operator>=(const Dual& a, const Dual& b) { return a.value >= b.value; }
};

using std::abs;
using std::acos;
using std::asin;
using std::atan;
using std::atan2;
using std::cos;
using std::exp;
using std::log;
using std::pow;
using std::sin;
using std::sqrt;
using std::tan;
using std::tanh;

/// `a` if the condition holds, else `b`.
inline double where(bool condition, double a, double b) { return condition ? a : b; }
template <class Condition, class Base, int size>
Dual<Base, size> where(const Condition& condition, const Dual<Base, size>& a, const Dual<Base, size>& b) {
  Dual<Base, size> y = where(condition, a.value, b.value);
  for (int k = 0; k < size; ++k) y.change[k] = where(condition, a.change[k], b.change[k]);
  return y;
}
template <class Condition, class Base, int size>
Dual<Base, size> where(const Condition& condition, const Dual<Base, size>& a, const std::type_identity_t<Base>& b) {
  return where(condition, a, Dual<Base, size>(b));
}
template <class Condition, class Base, int size>
Dual<Base, size> where(const Condition& condition, const std::type_identity_t<Base>& a, const Dual<Base, size>& b) {
  return where(condition, Dual<Base, size>(a), b);
}

/// The smaller and the larger number; if both are equal, the first.
template <class R>
R min(const R& a, const std::type_identity_t<R>& b) {
  return where(b < a, b, a);
}
template <class R>
R max(const R& a, const std::type_identity_t<R>& b) {
  return where(b > a, b, a);
}

template <class Base, int size>
Dual<Base, size> sqrt(const Dual<Base, size>& x) {
  const Base root = sqrt(x.value);
  return x.image(root, 0.5 / root);
}
template <class Base, int size>
Dual<Base, size> exp(const Dual<Base, size>& x) {
  const Base power = exp(x.value);
  return x.image(power, power);
}
template <class Base, int size>
Dual<Base, size> log(const Dual<Base, size>& x) {
  return x.image(log(x.value), 1 / x.value);
}
template <class Base, int size>
Dual<Base, size> pow(const Dual<Base, size>& x, double exponent) {
  return x.image(pow(x.value, exponent), exponent * pow(x.value, exponent - 1));
}
template <class Base, int size>
Dual<Base, size> sin(const Dual<Base, size>& x) {
  return x.image(sin(x.value), cos(x.value));
}
template <class Base, int size>
Dual<Base, size> cos(const Dual<Base, size>& x) {
  return x.image(cos(x.value), -sin(x.value));
}
template <class Base, int size>
Dual<Base, size> tan(const Dual<Base, size>& x) {
  const Base tangent = tan(x.value);
  return x.image(tangent, 1 + tangent * tangent);
}
template <class Base, int size>
Dual<Base, size> asin(const Dual<Base, size>& x) {
  return x.image(asin(x.value), 1 / sqrt(1 - x.value * x.value));
}
template <class Base, int size>
Dual<Base, size> acos(const Dual<Base, size>& x) {
  return x.image(acos(x.value), -1 / sqrt(1 - x.value * x.value));
}
template <class Base, int size>
Dual<Base, size> atan(const Dual<Base, size>& x) {
  return x.image(atan(x.value), 1 / (1 + x.value * x.value));
}
template <class Base, int size>
Dual<Base, size> tanh(const Dual<Base, size>& x) {
  const Base result = tanh(x.value);
  return x.image(result, 1 - result * result);
}
template <class Base, int size>
Dual<Base, size> atan2(const Dual<Base, size>& y, const Dual<Base, size>& x) {
  const Base square = x.value * x.value + y.value * y.value;
  return Dual<Base, size>::image(atan2(y.value, x.value), y, x.value / square, x, -y.value / square);
}
/// The derivative at 0 is 0.
template <class Base, int size>
Dual<Base, size> abs(const Dual<Base, size>& x) {
  return x.image(abs(x.value), where(x.value > 0, Base(1), where(x.value < 0, Base(-1), Base(0))));
}

}  // namespace lcp
